//! Segments: pieces of basic blocks, with their inputs and outputs.

use super::arrays::ArrayData;
use super::graph::{Block, Def, End, Graph, Item, Node};
use crate::entity::PrimaryMap;

/// Applications of primitives in one block; no value leaves a segment and comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The block of the applications.
    pub block: Block,
    /// The applications, in the order of the block.
    pub nodes: Vec<Node>,
    /// The values that they use from outside, once each, in the order of first use.
    pub inputs: Vec<Node>,
    /// The applications with uses outside the segment, in the order of the block.
    pub outputs: Vec<Node>,
}

/// The segments of a graph. Each application is in one segment at most.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Segments, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v1\n  v3 = exp v2\n  return v3\n";
/// let graph = parse(text)?;
/// let nodes: Vec<_> = graph.nodes.keys().collect();
/// let segments = Segments::new(&graph, vec![nodes[1..3].to_vec(), nodes[3..].to_vec()]);
/// assert_eq!(segments.list[0].inputs, nodes[..1]);
/// assert_eq!(segments.list[0].outputs, nodes[2..3]);
/// assert_eq!(segments.of[nodes[3]], Some(1));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Segments {
    /// The segments, in the order of the blocks, and of their steps.
    pub list: Vec<Segment>,
    /// The number of each node's segment.
    pub of: PrimaryMap<Node, Option<u32>>,
}

impl Segments {
    /// The segments of these lists of nodes. Each list holds applications of one block in its
    /// order; other lists are dropped.
    pub fn new(graph: &Graph, lists: Vec<Vec<Node>>) -> Segments {
        let blocks = blocks_of_nodes(graph);
        let mut segments =
            Segments { list: Vec::new(), of: PrimaryMap::filled(None, graph.nodes.len()) };
        for nodes in lists {
            let Some(block) = nodes.first().and_then(|&node| blocks[node]) else { continue };
            let fits = |&node: &Node| {
                let is_application = matches!(graph.nodes[node].def, Def::Apply(..));
                is_application && blocks[node] == Some(block) && segments.of[node].is_none()
            };
            if nodes.iter().all(fits) {
                let number = segments.list.len() as u32;
                nodes.iter().for_each(|&node| segments.of[node] = Some(number));
                let (inputs, outputs) = (Vec::new(), Vec::new());
                segments.list.push(Segment { block, nodes, inputs, outputs });
            }
        }
        segments.find_boundaries(graph);
        segments
    }

    fn find_boundaries(&mut self, graph: &Graph) {
        let mut is_output = PrimaryMap::filled(false, graph.nodes.len());
        // The last segment that has the node as an input; segments are visited in order.
        let mut input_of = PrimaryMap::filled(None, graph.nodes.len());
        for (node, data) in graph.nodes.iter() {
            for &arg in data.args() {
                if self.of[node] != self.of[arg] {
                    is_output[arg] = true;
                }
            }
        }
        for_each_use(graph, |node| is_output[node] = true);
        for (number, segment) in (0u32..).zip(&mut self.list) {
            for &node in &segment.nodes {
                for &arg in graph.operands(node) {
                    if self.of[arg] != Some(number) && input_of[arg] != Some(number) {
                        input_of[arg] = Some(number);
                        segment.inputs.push(arg);
                    }
                }
            }
            segment.outputs =
                segment.nodes.iter().copied().filter(|&node| is_output[node]).collect();
        }
    }
}

/// The block of each node that is a step of one.
fn blocks_of_nodes(graph: &Graph) -> PrimaryMap<Node, Option<Block>> {
    let mut blocks = PrimaryMap::filled(None, graph.nodes.len());
    for (block, data) in graph.blocks.iter() {
        for item in &data.items {
            if let Item::Node(node) = *item {
                blocks[node] = Some(block);
            }
        }
    }
    blocks
}

/// Calls `used` with each use of a node other than by an application.
fn for_each_use(graph: &Graph, mut used: impl FnMut(Node)) {
    for block in graph.blocks.values() {
        for item in &block.items {
            match *item {
                Item::Guard { condition: node, .. }
                | Item::Accumulate(_, node)
                | Item::Store(_, node) => used(node),
                Item::Node(_) | Item::Region(_) | Item::Fill(_) => {}
            }
        }
        match &block.end {
            End::Return(values) => values.iter().for_each(|&value| used(value)),
            End::Branch { condition, .. } => used(*condition),
            End::Open => {}
        }
    }
    for region in graph.regions.keys() {
        graph.entries(region).iter().for_each(|entry| used(entry.first));
    }
    graph.calls.values().flat_map(|call| &call.args).for_each(|&arg| used(arg));
    graph.arrays.values().flat_map(ArrayData::nodes).for_each(used);
}
