//! Accumulators that are filled, and those that may have been read, during the walk.

use crate::entity::PrimaryMap;
use crate::ssa::analysis::Nest;
use crate::ssa::arrays::Array;
use crate::ssa::graph::{BlockData, Def, Graph, Item, Region};

/// The state of all accumulators at a point of the walk.
pub(super) struct Sums {
    /// True if the array has been filled by a step in this block or above.
    filled: PrimaryMap<Array, bool>,
    /// True if the walk has visited a step that fills the array.
    seen: PrimaryMap<Array, bool>,
    /// The number of times that each array is in the list of those read.
    counts: PrimaryMap<Array, u32>,
    /// The arrays that may have been read, in order.
    read: Vec<Array>,
    /// Arrays read in other arms of branches: after the join they may have been read.
    other_arms: Vec<Array>,
    /// The lengths of both lists at the beginning of each open block.
    marks: Vec<(usize, usize)>,
    /// The arrays that each loop reads.
    in_loops: PrimaryMap<Region, Vec<Array>>,
}

impl Sums {
    pub(super) fn new(graph: &Graph, nest: &Nest) -> Self {
        let mut in_loops = PrimaryMap::filled(Vec::new(), graph.regions.len());
        for (node, data) in graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let array = graph.accesses[access].array;
            if !graph.arrays[array].is_sums() {
                continue;
            }
            let mut next = nest.node_loop(node);
            while let Some(region) = next {
                in_loops[region].push(array);
                next = nest.loop_around(region);
            }
        }
        Sums {
            filled: PrimaryMap::filled(false, graph.arrays.len()),
            seen: PrimaryMap::filled(false, graph.arrays.len()),
            counts: PrimaryMap::filled(0, graph.arrays.len()),
            read: Vec::new(),
            other_arms: Vec::new(),
            marks: Vec::new(),
            in_loops,
        }
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

    pub(super) fn read(&mut self, array: Array) -> Result<(), String> {
        if !self.filled[array] {
            return Err(format!("reads {array}, not filled here"));
        }
        self.note(array);
        Ok(())
    }

    pub(super) fn add(&self, array: Array) -> Result<(), String> {
        if !self.filled[array] {
            return Err(format!("adds to {array}, not filled here"));
        }
        if self.counts[array] > 0 {
            return Err(format!("adds to {array}, which may have been read"));
        }
        Ok(())
    }

    /// Begins a block.
    pub(super) fn enter(&mut self) {
        self.marks.push((self.read.len(), self.other_arms.len()));
    }

    /// Begins a loop: an array that one iteration reads has been read in the next.
    pub(super) fn enter_loop(&mut self, region: Region) {
        for array in core::mem::take(&mut self.in_loops[region]) {
            if self.filled[array] {
                self.note(array);
            }
        }
    }

    /// Ends `block`; with `joins` it is the root of a region, whose leaves join here.
    pub(super) fn leave(&mut self, block: &BlockData, joins: bool) {
        for item in &block.items {
            if let Item::Fill(array) = *item {
                self.filled[array] = false;
            }
        }
        let Some((read, other_arms)) = self.marks.pop() else { return };
        let mut here = self.read.split_off(read);
        here.iter().for_each(|&array| self.counts[array] -= 1);
        if !joins {
            self.other_arms.append(&mut here);
            return;
        }
        here.extend(self.other_arms.drain(other_arms..));
        here.sort_unstable();
        here.dedup();
        here.into_iter().for_each(|array| self.note(array));
    }

    fn note(&mut self, array: Array) {
        if self.counts[array] == 0 {
            self.counts[array] += 1;
            self.read.push(array);
        }
    }
}
