//! The signature of a graph: its inputs and outputs by number.

use smallvec::SmallVec;

use super::arrays::{Array, ArrayData};
use super::graph::{Def, End, Graph, Node, NodeData};

impl Graph {
    /// Tests whether input number `number` is active.
    pub(crate) fn is_active(&self, number: u32) -> bool {
        (number as usize) < self.active
    }

    /// The nodes of inputs, with the numbers of the inputs.
    pub(crate) fn input_nodes(&self) -> impl Iterator<Item = (Node, u32)> + '_ {
        self.nodes.iter().filter_map(|(node, data)| match data.def {
            Def::Input(number) => Some((node, number)),
            _ => None,
        })
    }

    /// Appends the node of input number `number`, which has none yet and is visible everywhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{Def, Graph};
    ///
    /// let mut graph = Graph::without_nodes(10, 0);
    /// let last = graph.push_input(9);
    /// assert_eq!((graph.nodes.len(), graph.nodes[last].def), (1, Def::Input(9)));
    /// ```
    pub fn push_input(&mut self, number: u32) -> Node {
        self.nodes.push(NodeData { def: Def::Input(number), place: None })
    }

    /// The number of outputs, the same on every path.
    pub fn outputs(&self) -> usize {
        let arrays = self.output_arrays();
        self.returned() + arrays.iter().map(|&(_, _, count)| count as usize).sum::<usize>()
    }

    /// The number of outputs that paths return; the others are in arrays.
    pub(crate) fn returned(&self) -> usize {
        let mut block = self.root();
        loop {
            match &self.blocks[block].end {
                End::Return(outputs) => return outputs.len(),
                End::Branch { then, .. } => block = *then,
                End::Open => return 0,
            }
        }
    }

    /// The arrays of outputs in order, each with its first output and its length.
    pub(crate) fn output_arrays(&self) -> SmallVec<[(Array, u32, u32); 1]> {
        let output_array = |(array, data): (Array, &ArrayData)| match *data {
            ArrayData::Outputs { first, count } => Some((array, first, count)),
            _ => None,
        };
        let mut arrays: SmallVec<_> = self.arrays.iter().filter_map(output_array).collect();
        arrays.sort_by_key(|&(_, first, _)| first);
        arrays
    }

    /// The numbers of the outputs that paths return: all but those of arrays, in order, without
    /// an upper bound.
    pub(crate) fn returned_outputs(&self) -> impl Iterator<Item = u32> {
        let (mut next, mut arrays) = (0, self.output_arrays().into_iter().peekable());
        core::iter::from_fn(move || {
            while let Some((_, first, count)) = arrays.next_if(|&(_, first, _)| first <= next) {
                next = next.max(first.saturating_add(count));
            }
            next += 1;
            Some(next - 1)
        })
    }
}
