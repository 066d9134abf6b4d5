//! The arrays that steps write and that are filled, during the walk.

use crate::entity::PrimaryMap;
use crate::ssa::arrays::Array;
use crate::ssa::graph::{BlockData, Graph, Item};

/// The arrays that are filled at a point of the walk.
pub(super) struct Filled {
    /// True if the array has been filled by a step in this block or above.
    filled: PrimaryMap<Array, bool>,
    /// True if the walk has visited a step that fills the array.
    seen: PrimaryMap<Array, bool>,
}

impl Filled {
    pub(super) fn new(graph: &Graph) -> Self {
        let none = PrimaryMap::filled(false, graph.arrays.len());
        Filled { filled: none.clone(), seen: none }
    }

    /// Tests whether `array` has been filled here.
    pub(super) fn is_filled(&self, array: Array) -> bool {
        self.filled[array]
    }

    /// Fills `array`; with `again` other paths may do the same.
    pub(super) fn fill(&mut self, array: Array, again: bool) -> Result<(), String> {
        if if again { self.filled[array] } else { self.seen[array] } {
            return Err(format!("fills {array}, as another step does"));
        }
        self.seen[array] = true;
        self.filled[array] = true;
        Ok(())
    }

    /// Ends `block`.
    pub(super) fn leave(&mut self, block: &BlockData) {
        for item in &block.items {
            if let Item::Fill(array) = *item {
                self.filled[array] = false;
            }
        }
    }
}
