//! The appender: appends steps to a graph as they are, without folding or value numbering.
//!
//! What a graph needs only once exists once: the nodes of constants, inputs and iteration numbers,
//! arrays and accesses. The builder adds folding and value numbering to it (`build`).

use core::ops::{Deref, DerefMut};

use hashbrown::HashMap;

use super::arrays::{Access, AccessData, Array, ArrayData};
use super::graph::{Graph, Node, Region};

/// A graph under construction. It dereferences to the [`Graph`], whose `push_` methods append
/// steps.
#[derive(Debug)]
pub(crate) struct Appender {
    graph: Graph,
    constants: HashMap<u64, Node>,
    inputs: HashMap<u32, Node>,
    /// The iteration number of each loop.
    numbers: HashMap<Region, Node>,
    arrays: HashMap<ArrayData, Array>,
    accesses: HashMap<AccessData, Access>,
}

impl Appender {
    /// Appends to `graph`, which has nodes for inputs alone.
    pub(crate) fn new(graph: Graph) -> Self {
        let inputs = graph.input_nodes().map(|(node, number)| (number, node)).collect();
        Appender {
            graph,
            constants: HashMap::new(),
            inputs,
            numbers: HashMap::new(),
            arrays: HashMap::new(),
            accesses: HashMap::new(),
        }
    }

    /// Begins a graph with the inputs and places of `graph`. The nodes of its inputs are the first
    /// ones, ordered by number.
    pub(crate) fn like(graph: &Graph) -> Self {
        let mut new = Graph::without_nodes(graph.active, graph.inactive);
        new.places = graph.places.clone();
        let mut numbers: Vec<u32> = graph.input_nodes().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers.into_iter().for_each(|number| _ = new.push_input(number));
        Appender::new(new)
    }

    /// The finished graph.
    pub(crate) fn into_graph(self) -> Graph {
        self.graph
    }

    /// The node of input number `number`.
    pub(crate) fn intern_input(&mut self, number: u32) -> Node {
        *self.inputs.entry(number).or_insert_with(|| self.graph.push_input(number))
    }

    /// The node of the constant with these bits.
    pub(crate) fn intern_const(&mut self, bits: u64) -> Node {
        *self.constants.entry(bits).or_insert_with(|| self.graph.push_const(bits))
    }

    /// The iteration number of the loop `region`.
    pub(crate) fn intern_iteration(&mut self, region: Region) -> Node {
        *self.numbers.entry(region).or_insert_with(|| self.graph.push_iteration(region))
    }

    /// The array with these contents. Cells, and accumulators other than outputs, are always new.
    pub(crate) fn intern_array(&mut self, data: ArrayData) -> Array {
        if data.has_identity() {
            return self.graph.arrays.push(data);
        }
        let known = self.arrays.entry(data);
        *known.or_insert_with_key(|data| self.graph.arrays.push(data.clone()))
    }

    /// The access with this array and index.
    pub(crate) fn intern_access(&mut self, data: AccessData) -> Access {
        let known = self.accesses.entry(data);
        *known.or_insert_with_key(|data| self.graph.accesses.push(data.clone()))
    }

    /// Stands for an operand that was not computed before its use, which no verified graph has: a
    /// NaN, so that the result is not finite and the tape repeats the call. Debug builds panic.
    pub(crate) fn poison(&mut self) -> Node {
        debug_assert!(false, "an operand is used before it is computed:\n{}", self.graph);
        self.intern_const(f64::NAN.to_bits())
    }
}

impl Deref for Appender {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl DerefMut for Appender {
    fn deref_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }
}
