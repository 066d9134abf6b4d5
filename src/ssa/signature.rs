//! What a graph takes and returns: which of its nodes are inputs, and which numbers
//! its outputs have.

use smallvec::SmallVec;

use super::arrays::{Array, ArrayData};
use super::graph::{Def, End, Graph, Node, NodeData};

impl Graph {
    /// A graph of the same inputs and places, without a step. What is an input in this
    /// graph is one in the new one, too: those nodes come first, by their numbers.
    pub(crate) fn emptied(&self) -> Graph {
        let mut graph = Graph::without_nodes(self.active, self.inactive);
        graph.places = self.places.clone();
        let mut numbers: Vec<u32> = self.input_nodes().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers.into_iter().for_each(|number| _ = graph.push_input(number));
        graph
    }

    /// Whether input number `number` is active.
    pub(crate) fn is_active(&self, number: u32) -> bool {
        (number as usize) < self.active
    }

    /// The nodes that are inputs, with their numbers.
    pub(crate) fn input_nodes(&self) -> impl Iterator<Item = (Node, u32)> + '_ {
        self.nodes.iter().filter_map(|(node, data)| match data.def {
            Def::Input(number) => Some((node, number)),
            _ => None,
        })
    }

    /// Appends a node of input number `number`, which has none yet and is visible everywhere.
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
        let rows = self.output_rows();
        self.returned() + rows.iter().map(|&(_, _, count)| count as usize).sum::<usize>()
    }

    /// How many of them paths return; the others are in arrays.
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

    /// The arrays that are outputs, with the number of the first one and how many there
    /// are, in order.
    pub(crate) fn output_rows(&self) -> SmallVec<[(Array, u32, u32); 1]> {
        let row = |(array, data): (Array, &ArrayData)| match *data {
            ArrayData::Outputs { first, count } => Some((array, first, count)),
            _ => None,
        };
        let mut rows: SmallVec<_> = self.arrays.iter().filter_map(row).collect();
        rows.sort_by_key(|&(_, first, _)| first);
        rows
    }

    /// The numbers of the outputs that paths return, in order: all but those of
    /// array, and on without end.
    pub(crate) fn returned_outputs(&self) -> impl Iterator<Item = u32> {
        let (mut next, mut rows) = (0, self.output_rows().into_iter().peekable());
        core::iter::from_fn(move || {
            while let Some((_, first, count)) = rows.next_if(|&(_, first, _)| first <= next) {
                next = next.max(first.saturating_add(count));
            }
            next += 1;
            Some(next - 1)
        })
    }
}
