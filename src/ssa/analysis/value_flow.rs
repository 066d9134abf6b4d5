//! Value flow: the sources of values through primitives, φs, loops and arrays.

use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::ssa::arrays::{Array, Passed};
use crate::ssa::graph::{Block, Def, End, Graph, Item, Node, Region};

/// The nodes that the value of each node comes from.
///
/// Loops make cycles: a source of an entry φ may depend on the φ. So a property that spreads
/// along the flow is computed by iterating to a fixed point.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Flow, parse};
///
/// let text = "graph active 1 inactive 0\nv1 = const 0.0\nb0:\n  v4 = region r0 b1 bound 2 entries \
///             v2=v0\n  return v4\nb1:\n  v3 = sin v2\n  return v1 v3 v3\n";
/// let graph = parse(text)?;
/// let flow = Flow::of(&graph);
/// let sources: Vec<_> = graph.nodes.keys().map(|node| format!("{:?}", flow.sources(node))).collect();
/// assert_eq!(sources, ["[]", "[]", "[v0, v3]", "[v2]", "[v3]"]);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Flow<'a> {
    graph: &'a Graph,
    leaves: PrimaryMap<Region, Vec<Block>>,
    /// The nodes that are added to, or stored in, each array.
    written: PrimaryMap<Array, Vec<Node>>,
}

impl<'a> Flow<'a> {
    /// The flow of `graph`, a verified graph.
    pub fn of(graph: &'a Graph) -> Self {
        let leaves = graph.regions.values().map(|region| graph.leaves(region.root)).collect();
        let mut written = PrimaryMap::filled(Vec::new(), graph.arrays.len());
        for block in graph.blocks.values() {
            for item in &block.items {
                if let Item::Accumulate(access, node) | Item::Store(access, node) = *item {
                    written[graph.accesses[access].array].push(node);
                }
            }
        }
        Flow { graph, leaves, written }
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The leaves of the tree of `region`, as [`Graph::leaves`] lists them.
    pub fn leaves(&self, region: Region) -> &[Block] {
        &self.leaves[region]
    }

    /// The sources of `node`: its operands, the values passed on to it by the leaves of a region,
    /// its initial value, or the contents of its array.
    pub fn sources(&self, node: Node) -> SmallVec<[Node; 4]> {
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => SmallVec::new(),
            Def::Apply(..) | Def::Call(_) | Def::Result(..) => {
                graph.operands(node).iter().copied().collect()
            }
            Def::Phi(region, number) => {
                let (conditions, nexts) = graph.passed_before_phis(region);
                self.passed(region, conditions + nexts + number as usize).collect()
            }
            Def::Entry(region, number) => {
                let (conditions, _) = graph.passed_before_phis(region);
                let first = graph.entries(region)[number as usize].first;
                let nexts = self.passed(region, conditions + number as usize);
                core::iter::once(first).chain(nexts).collect()
            }
            Def::Element(access) => self.elements(graph.accesses[access].array).collect(),
        }
    }

    /// The operands of φ number `number` of `region` at ends that may leave it.
    pub(crate) fn phi_values(&self, region: Region, number: usize) -> impl Iterator<Item = Node> {
        let value = move |&leaf: &Block| phi_operands(self.graph, region, leaf).values.get(number);
        self.leaves[region].iter().filter_map(value).copied()
    }

    /// The operands of entry φ number `number` of `region` at ends that may go on.
    pub(crate) fn phi_nexts(&self, region: Region, number: usize) -> impl Iterator<Item = Node> {
        let next = move |&leaf: &Block| phi_operands(self.graph, region, leaf).nexts.get(number);
        self.leaves[region].iter().filter_map(next).copied()
    }

    /// The nodes that the elements of `array` are computed from.
    pub(crate) fn elements(&self, array: Array) -> impl Iterator<Item = Node> {
        let written = self.written[array].iter().copied();
        self.graph.arrays[array].nodes().chain(written)
    }

    /// Value number `number` of each leaf of `region`.
    pub(crate) fn passed(&self, region: Region, number: usize) -> impl Iterator<Item = Node> {
        self.leaves[region].iter().filter_map(move |&leaf| match &self.graph.blocks[leaf].end {
            End::Return(values) => values.get(number).copied(),
            End::Branch { .. } | End::Open => None,
        })
    }
}

/// The operands that one end of a region gives its φs.
#[derive(Clone, Copy, Default)]
pub(crate) struct PhiOperands<'a> {
    /// Those of the entry φs; empty if this end is never followed by an iteration.
    pub(crate) nexts: &'a [Node],
    /// Those of the φs; empty if this end is always followed by an iteration.
    pub(crate) values: &'a [Node],
    /// True if a condition decides whether another iteration follows.
    pub(crate) is_open: bool,
}

/// The φ operands at `leaf`, an end of `region`.
pub(crate) fn phi_operands(graph: &Graph, region: Region, leaf: Block) -> PhiOperands<'_> {
    let Some(Passed { again, nexts, values }) = graph.passed(region, leaf) else {
        return PhiOperands::default();
    };
    match again.map(|again| graph.constant(again)) {
        None => PhiOperands { nexts, values, is_open: false },
        Some(None) => PhiOperands { nexts, values, is_open: true },
        Some(Some(again)) if again != 0.0 => PhiOperands { nexts, ..PhiOperands::default() },
        Some(Some(_)) => PhiOperands { values, ..PhiOperands::default() },
    }
}

/// Tests whether value number `number` of a leaf of `region` is used. After a leaf that certainly
/// continues the loop the values for φs are not; after one that certainly ends it, those for
/// entry φs are not.
pub(crate) fn is_value_used(graph: &Graph, region: Region, values: &[Node], number: usize) -> bool {
    let (conditions, nexts) = graph.passed_before_phis(region);
    let again = (conditions == 1).then(|| values.first().copied()).flatten();
    match again.and_then(|again| graph.constant(again)) {
        Some(again) if number >= conditions => (again != 0.0) == (number < conditions + nexts),
        _ => true,
    }
}

/// The number of users of each node; one that uses it several times counts once.
pub(crate) fn uses(graph: &Graph) -> PrimaryMap<Node, u32> {
    let mut uses = PrimaryMap::filled(0, graph.nodes.len());
    let mut count = |nodes: &[Node]| {
        let again = |&(i, node): &(usize, &Node)| !nodes[..i].contains(node);
        nodes.iter().enumerate().filter(again).for_each(|(_, &node)| uses[node] += 1);
    };
    graph.nodes.keys().for_each(|node| count(graph.operands(node)));
    for data in graph.blocks.values() {
        for item in &data.items {
            if let Item::Guard { condition: node, .. }
            | Item::Accumulate(_, node)
            | Item::Store(_, node) = *item
            {
                count(&[node]);
            }
        }
        match &data.end {
            End::Return(values) => count(values),
            End::Branch { condition, .. } => count(&[*condition]),
            End::Open => {}
        }
    }
    let entries = graph.regions.keys().flat_map(|region| graph.entries(region));
    entries.for_each(|entry| count(&[entry.first]));
    uses
}
