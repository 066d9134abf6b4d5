//! The adjoints of ranges of active inputs: arrays of outputs.
//!
//! A loop that reads `x[i]` does not have a node for each input, so their adjoints are not
//! nodes either. The outputs for a range of inputs are an array of sums
//! ([`ArrayData::Outputs`]). A sweep begins with zeros in it and adds each contribution to
//! these inputs there, including contributions to an input that is also a node. So neither
//! the gradient graph nor its code grows with the number of inputs.

use hashbrown::HashMap;

use super::primal::Primal;
use super::reverse::Reverse;
use crate::ssa::{Access, AccessData, AffineIndex, Array, ArrayData, Def, Graph, Node};

/// A range of active inputs whose derivatives are an array of outputs.
pub(super) struct OutputArray {
    /// The number of the first input, and of its derivative among the outputs.
    first: u32,
    count: u32,
    /// The array in the gradient graph, in the current sweep.
    sums: Option<Array>,
}

impl OutputArray {
    fn contains(&self, number: u32) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }
}

/// The ranges of active inputs, in order: those that loops read by index, and longer ranges
/// that no node reads, whose derivatives are zero.
pub(super) fn output_arrays(primal: &Primal<'_>) -> Vec<OutputArray> {
    /// The least number of unused inputs for which an array of zeros pays.
    const UNUSED: u32 = 16;
    let graph = primal.graph;
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for data in graph.nodes.values() {
        if let Def::Element(access) = data.def
            && let Some(first) = primal.first_input(access)
        {
            let (low, high) = range(graph, &graph.accesses[access]);
            let number = |index: i64| u32::try_from(i64::from(first) + index).unwrap_or(first);
            spans.push((number(low), number(high) + 1));
        }
    }
    let active = graph.active as u32;
    let mut nodes: Vec<u32> = graph.input_nodes().map(|(_, number)| number).collect();
    nodes.retain(|&number| number < active);
    nodes.sort_unstable();
    nodes.push(active);
    let mut free = 0;
    for number in nodes {
        if number >= free + UNUSED {
            spans.push((free, number));
        }
        free = number + 1;
    }
    spans.sort_unstable();
    let mut output_arrays: Vec<OutputArray> = Vec::new();
    for (first, end) in spans {
        match output_arrays.last_mut() {
            Some(output_array) if first <= output_array.first + output_array.count => {
                output_array.count = output_array.count.max(end - output_array.first);
            }
            _ => output_arrays.push(OutputArray { first, count: end - first, sums: None }),
        }
    }
    output_arrays
}

/// The smallest and the largest index of this access.
pub(super) fn range(graph: &Graph, data: &AccessData) -> (i64, i64) {
    let (low, high) = AffineIndex::of(data).range(graph);
    (low as i64, high as i64)
}

impl Reverse<'_> {
    /// Sets the arrays of outputs to zero where the sweep of a path begins.
    pub(super) fn zero_output_arrays(&mut self) {
        for index in 0..self.output_arrays.len() {
            let OutputArray { first, count, .. } = self.output_arrays[index];
            let sums = self.builder.array(ArrayData::Outputs { first, count });
            self.builder.fill(sums);
            self.output_arrays[index].sums = Some(sums);
        }
    }

    /// The array and the index of the adjoint of input `number`, if it is in a range.
    pub(super) fn output_element_of(&self, number: u32) -> Option<(Array, u32)> {
        let after = self.output_arrays.partition_point(|output_array| output_array.first <= number);
        let output_array = self.output_arrays[..after]
            .last()
            .filter(|output_array| output_array.contains(number))?;
        Some((output_array.sums?, number - output_array.first))
    }

    /// The array of outputs for `access` to active inputs, and the offset from an index of
    /// the access to an index of the array.
    pub(super) fn output_array_of(&self, access: Access) -> Option<(Array, i64)> {
        let first = self.primal.first_input(access)?;
        let base = self.graph.accesses[access].base;
        let (sums, at) = self.output_element_of(first + base)?;
        Some((sums, i64::from(at) - i64::from(base)))
    }

    /// The adjoints of the active inputs that are in no range.
    pub(super) fn other_derivatives(&self) -> Vec<Option<Node>> {
        let inputs = self.graph.input_nodes();
        let adjoints: HashMap<u32, Node> =
            inputs.filter_map(|(node, number)| Some((number, self.adjoints.get(node)?))).collect();
        let numbers = self.builder.graph().returned_outputs();
        let numbers = numbers.take_while(|&number| self.graph.is_active(number));
        numbers.map(|number| adjoints.get(&number).copied()).collect()
    }
}
