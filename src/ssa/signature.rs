//! The signature of a graph: its inputs and outputs by number.

use core::ops::Range;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::arrays::{Array, ArrayData};
use super::graph::{Def, End, Graph, Node, NodeData};
use super::renumber::inputs_first;

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

    /// The same function of its inputs in another order: those with the numbers `active` come first
    /// and are the active ones, the others follow in order.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::diff::{Wanted, reverse};
    /// use phigrad::internals::ssa::{Folding, Outcome, interpret, parse};
    ///
    /// let graph = parse("graph active 1 inactive 1\nb0:\n  v2 = div v0 v1\n  return v2\n")?;
    /// let by_second = graph.with_active(1..2);
    /// assert_eq!(interpret(&by_second, &[4.0, 2.0]), Outcome::Values(vec![0.5]));
    /// let partial = reverse(&by_second, Wanted::Gradient, Folding::Real);
    /// assert_eq!(interpret(&partial, &[4.0, 2.0]), Outcome::Values(vec![-0.125]));
    /// # Ok::<(), phigrad::internals::ssa::ParseError>(())
    /// ```
    pub fn with_active(&self, active: Range<u32>) -> Graph {
        let number = |old: u32| match old {
            old if active.contains(&old) => old - active.start,
            old if old < active.start => old + active.len() as u32,
            old => old,
        };
        let mut graph = self.clone();
        let mut nodes: HashMap<u32, Node> =
            self.input_nodes().map(|(node, old)| (number(old), node)).collect();
        for (&new, &node) in &nodes {
            graph.nodes[node].def = Def::Input(new);
        }
        for array in self.arrays.keys() {
            let ArrayData::Inputs { first, count } = self.arrays[array] else { continue };
            let numbers = (first..first + count).map(number);
            let is_progression = numbers.clone().zip(number(first)..).all(|(a, b)| a == b);
            graph.arrays[array] = match is_progression {
                true => ArrayData::Inputs { first: number(first), count },
                // Inputs of both kinds, or from both sides.
                false => ArrayData::Nodes(
                    numbers
                        .map(|new| *nodes.entry(new).or_insert_with(|| graph.push_input(new)))
                        .collect(),
                ),
            };
        }
        graph.inactive = self.active + self.inactive - active.len();
        graph.active = active.len();
        inputs_first(graph)
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
