//! The adjoints of rows of active inputs: they are outputs from the beginning.
//!
//! What loops read of a row of inputs has no nodes, so no adjoints that are nodes
//! either. The outputs for these inputs, and for those between, are an array of sums
//! ([`ArrayData::Outputs`]), which is empty where a sweep begins and gets what is
//! passed on to each of these inputs, also to one that is a node by itself. So neither
//! the gradient graph nor its code grows with the number of inputs.

use hashbrown::HashMap;

use super::activity::{Activity, bound};
use super::reverse::Reverse;
use crate::ssa::{Access, AccessData, Array, ArrayData, Def, Graph, Node};

/// Active inputs whose derivatives are the elements of an array of the new graph.
pub(super) struct Row {
    /// The number of the first input, which is that of its derivative.
    first: u32,
    count: u32,
    /// Known where a sweep has begun.
    sums: Option<Array>,
}

impl Row {
    fn contains(&self, number: u32) -> bool {
        (self.first..self.first + self.count).contains(&number)
    }
}

/// The rows of active inputs, in order: those that elements with adjoints may be, and
/// others that no node is.
pub(super) fn rows(activity: &Activity<'_>) -> Vec<Row> {
    /// A few zeros are not worth a row.
    const UNUSED: u32 = 16;
    let graph = activity.graph;
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for data in graph.nodes.values() {
        if let Def::Element(access) = data.def
            && let Some(first) = activity.input_row(access)
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
    let mut rows: Vec<Row> = Vec::new();
    for (first, end) in spans {
        match rows.last_mut() {
            Some(row) if first <= row.first + row.count => {
                row.count = row.count.max(end - row.first);
            }
            _ => rows.push(Row { first, count: end - first, sums: None }),
        }
    }
    rows
}

/// The least and the largest index of this access.
pub(super) fn range(graph: &Graph, data: &AccessData) -> (i64, i64) {
    let base = i64::from(data.base);
    data.strides.iter().fold((base, base), |(low, high), &(region, stride)| {
        let most = i64::from(stride) * (i64::from(bound(graph, region)) - 1).max(0);
        (low + most.min(0), high + most.max(0))
    })
}

impl Reverse<'_> {
    /// Begins the rows at the end of a path.
    pub(super) fn fill_rows(&mut self) {
        for index in 0..self.rows.len() {
            let Row { first, count, .. } = self.rows[index];
            let sums = self.builder.array(ArrayData::Outputs { first, count });
            self.builder.fill(sums);
            self.rows[index].sums = Some(sums);
        }
    }

    /// The sums that have the adjoint of input number `number`, if it is in a row, and
    /// where it is.
    pub(super) fn place_of_input(&self, number: u32) -> Option<(Array, u32)> {
        let after = self.rows.partition_point(|row| row.first <= number);
        let row = self.rows[..after].last().filter(|row| row.contains(number))?;
        Some((row.sums?, number - row.first))
    }

    /// The sums that have the adjoints of what the element at `access` may be, if those
    /// are active inputs, and what to add to its index there.
    pub(super) fn row_of(&self, access: Access) -> Option<(Array, i64)> {
        let first = self.activity.input_row(access)?;
        let base = self.graph.accesses[access].base;
        let (sums, at) = self.place_of_input(first + base)?;
        Some((sums, i64::from(at) - i64::from(base)))
    }

    /// The outputs for active inputs that are in no row: what the sweep has come to for
    /// each of them.
    pub(super) fn other_derivatives(&self) -> Vec<Option<Node>> {
        let inputs = self.graph.input_nodes();
        let adjoints: HashMap<u32, Node> =
            inputs.filter_map(|(node, number)| Some((number, self.adjoints.get(node)?))).collect();
        let numbers = self.builder.graph().returned_outputs();
        let numbers = numbers.take_while(|&number| self.graph.is_active(number));
        numbers.map(|number| adjoints.get(&number).copied()).collect()
    }
}
