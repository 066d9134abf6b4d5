//! Where values come from: through primitives, φs, loops and arrays.

use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::ssa::arrays::Array;
use crate::ssa::graph::{Block, Def, End, Graph, Item, Node, Region};

/// For each node the nodes that its value comes from.
///
/// Loops make circles: what an entry φ comes from may come from it. So a
/// property of nodes that spreads along the flow is found by repeating until
/// nothing changes.
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
    /// What is added to the sums of each array.
    added: PrimaryMap<Array, Vec<Node>>,
}

impl<'a> Flow<'a> {
    /// The flow of `graph`, a verified graph.
    pub fn of(graph: &'a Graph) -> Self {
        let leaves = graph.regions.values().map(|region| graph.leaves(region.root)).collect();
        let mut added = PrimaryMap::filled(Vec::new(), graph.arrays.len());
        for block in graph.blocks.values() {
            for item in &block.items {
                if let Item::Accumulate(access, node) = *item {
                    added[graph.accesses[access].array].push(node);
                }
            }
        }
        Flow { graph, leaves, added }
    }

    /// The graph.
    pub(crate) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The ends of the tree of `region`, as [`Graph::leaves`] lists them.
    pub fn leaves(&self, region: Region) -> &[Block] {
        &self.leaves[region]
    }

    /// What `node` is computed from: its operands, what the ends of a region pass
    /// on to it, its first value, or all that may be in its array.
    pub fn sources(&self, node: Node) -> SmallVec<[Node; 4]> {
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) | Def::Iteration(_) => SmallVec::new(),
            Def::Apply(..) | Def::Call(_) | Def::Result(..) => {
                graph.operands(node).iter().copied().collect()
            }
            Def::Phi(region, number) => {
                let (decides, nexts) = graph.passed_before_phis(region);
                self.passed(region, decides + nexts + number as usize).collect()
            }
            Def::Entry(region, number) => {
                let (decides, _) = graph.passed_before_phis(region);
                let first = graph.entries(region)[number as usize].first;
                let nexts = self.passed(region, decides + number as usize);
                core::iter::once(first).chain(nexts).collect()
            }
            Def::Element(access) => self.elements(graph.accesses[access].array).collect(),
        }
    }

    /// What the elements of `array` are computed from.
    pub(crate) fn elements(&self, array: Array) -> impl Iterator<Item = Node> {
        let added = self.added[array].iter().copied();
        self.graph.arrays[array].nodes().chain(added)
    }

    /// The values with this number among those that each end of `region` passes on.
    pub(crate) fn passed(&self, region: Region, number: usize) -> impl Iterator<Item = Node> {
        self.leaves[region].iter().filter_map(move |&leaf| match &self.graph.blocks[leaf].end {
            End::Return(values) => values.get(number).copied(),
            End::Branch { .. } | End::Open => None,
        })
    }
}

/// Which of the values that an end of `region` passes on matter, by their
/// numbers: of one after which the loop certainly goes on those for its φs do
/// not, of one after which it certainly does not those for its entry φs do not.
pub(crate) fn matters(graph: &Graph, region: Region, values: &[Node], number: usize) -> bool {
    let (decides, nexts) = graph.passed_before_phis(region);
    let again = (decides == 1).then(|| values.first().copied()).flatten();
    match again.and_then(|again| graph.constant(again)) {
        Some(again) if number >= decides => (again != 0.0) == (number < decides + nexts),
        _ => true,
    }
}

/// How many places refer to each node; one that does so several times counts once.
pub(crate) fn uses(graph: &Graph) -> PrimaryMap<Node, u32> {
    let mut uses = PrimaryMap::filled(0, graph.nodes.len());
    let mut count = |nodes: &[Node]| {
        let again = |&(i, node): &(usize, &Node)| !nodes[..i].contains(node);
        nodes.iter().enumerate().filter(again).for_each(|(_, &node)| uses[node] += 1);
    };
    graph.nodes.keys().for_each(|node| count(graph.operands(node)));
    for data in graph.blocks.values() {
        for item in &data.items {
            if let Item::Guard { condition: node, .. } | Item::Accumulate(_, node) = *item {
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
