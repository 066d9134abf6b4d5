//! Simplification: copies a graph through the folding builder, and drops what
//! no output, guard or branch needs.

use super::build::Builder;
use super::fold::Folding;
use super::graph::{BlockData, Def, End, Graph, Item, Node, NodeData};
use crate::entity::{Array, Entity};

/// A smaller graph with the same outputs and the same paths.
///
/// With [`Folding::Exact`] the outputs are the same bits; with
/// [`Folding::Real`] the same bits but for the sign of NaN.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{Folding, parse, simplify};
///
/// let text = "graph active 1 inactive 0\nv1 = const 1\nb0:\n  v2 = mul v0 v1\n  v3 = exp v0\n  return v2\n";
/// let small = simplify(&parse(text)?, Folding::Exact);
/// assert_eq!(small.to_string(), "graph active 1 inactive 0\nb0:\n  return v0\n");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn simplify(graph: &Graph, folding: Folding) -> Graph {
    // Folding leaves unused nodes behind.
    eliminate_dead_code(&rebuild(graph, folding, |_, _| None))
}

/// The graph without the nodes that no output, guard or branch needs.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{eliminate_dead_code, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = exp v0\n  v2 = sin v0\n  return v2\n";
/// let small = eliminate_dead_code(&parse(text)?);
/// assert_eq!(small.to_string(), "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn eliminate_dead_code(graph: &Graph) -> Graph {
    let live = live_nodes(graph);
    let mut kept: Array<Node, NodeData> = Array::new();
    // Inputs are kept, so a dead node that were referred to would show as the
    // first node of a block that does not compute it, which the verifier sees.
    let mut renamed = Array::filled(Node::from_index(0), graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        if live[node] || matches!(data.def, Def::Input(_)) {
            let def = match data.def {
                Def::Apply(op, args) => Def::Apply(op, args.map(|arg| renamed[arg])),
                leaf @ (Def::Input(_) | Def::Const(_) | Def::Phi(..)) => leaf,
            };
            renamed[node] = kept.push(NodeData { def, place: data.place });
        }
    }
    let rename_item = |item: &Item| match *item {
        Item::Node(node) => live[node].then(|| Item::Node(renamed[node])),
        Item::Guard { condition, expect } => {
            Some(Item::Guard { condition: renamed[condition], expect })
        }
        Item::Region(region) => Some(Item::Region(region)),
    };
    let rename_block = |block: &BlockData| BlockData {
        items: block.items.iter().filter_map(rename_item).collect(),
        end: match &block.end {
            End::Return(outputs) => End::Return(outputs.iter().map(|&n| renamed[n]).collect()),
            End::Branch { condition, then, otherwise } => {
                let condition = renamed[*condition];
                End::Branch { condition, then: *then, otherwise: *otherwise }
            }
            End::Open => End::Open,
        },
    };
    Graph {
        nodes: kept,
        blocks: graph.blocks.values().map(rename_block).collect(),
        regions: graph.regions.clone(),
        places: graph.places.clone(),
        active: graph.active,
        inactive: graph.inactive,
    }
}

/// Copies what is live in `graph`. `rewrite` may give another node for a node
/// of `graph`, built from the copies of nodes before it.
pub(super) fn rebuild(
    graph: &Graph,
    folding: Folding,
    mut rewrite: impl FnMut(&mut Rebuild<'_>, Node) -> Option<Node>,
) -> Graph {
    let live = live_nodes(graph);
    let mut rebuild = Rebuild::new(graph, folding);
    // Blocks still to copy; `None` closes the block opened last.
    let mut pending = vec![Some((graph.root(), None))];
    while let Some(step) = pending.pop() {
        let Some((block, new_block)) = step else {
            rebuild.builder.leave();
            continue;
        };
        if let Some(new_block) = new_block {
            rebuild.builder.enter(new_block);
            pending.push(None);
        }
        for &item in &graph.blocks[block].items {
            match item {
                Item::Node(node) if live[node] => {
                    rebuild.builder.set_place(graph.nodes[node].place);
                    match rewrite(&mut rebuild, node) {
                        Some(rewritten) => rebuild.copies[node] = Some(rewritten),
                        None => rebuild.copy_node(node),
                    }
                }
                Item::Node(_) | Item::Region(_) => {}
                Item::Guard { condition, expect } => {
                    let condition = rebuild.copied(condition);
                    rebuild.builder.guard(condition, expect);
                }
            }
        }
        match &graph.blocks[block].end {
            End::Return(outputs) => {
                let outputs: Vec<Node> = outputs.iter().map(|&n| rebuild.copied(n)).collect();
                rebuild.builder.finish_block(&outputs);
            }
            End::Branch { condition, then, otherwise } => {
                let condition = rebuild.copied(*condition);
                let (new_then, new_otherwise) = rebuild.builder.branch(condition);
                pending.push(Some((*otherwise, Some(new_otherwise))));
                pending.push(Some((*then, Some(new_then))));
            }
            End::Open => {}
        }
    }
    rebuild.builder.into_graph()
}

/// A graph on its way into a new one.
pub(super) struct Rebuild<'a> {
    graph: &'a Graph,
    pub(super) builder: Builder,
    /// For each node of the old graph its copy in the new one.
    copies: Array<Node, Option<Node>>,
}

impl<'a> Rebuild<'a> {
    fn new(graph: &'a Graph, folding: Folding) -> Self {
        let builder = Builder::of(graph, folding);
        Rebuild { graph, builder, copies: Array::filled(None, graph.nodes.len()) }
    }

    /// The copy of `node`, which is a leaf or was copied before.
    pub(super) fn copied(&mut self, node: Node) -> Node {
        if let Some(copy) = self.copies[node] {
            return copy;
        }
        let copy = match self.graph.nodes[node].def {
            Def::Input(i) => self.builder.input(i as usize),
            Def::Const(bits) => self.builder.constant(f64::from_bits(bits)),
            // A verified graph computes operands before their uses.
            Def::Apply(..) | Def::Phi(..) => self.builder.constant(f64::NAN),
        };
        self.copies[node] = Some(copy);
        copy
    }

    fn copy_node(&mut self, node: Node) {
        if let Def::Apply(op, args) = self.graph.nodes[node].def {
            let args = args.map(|arg| self.copied(arg));
            self.copies[node] = Some(self.builder.apply(op, &args[..op.arity()]));
        }
    }
}

/// Which nodes an output, guard or branch needs.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{live_nodes, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v0\n  return v2\n";
/// let live = live_nodes(&parse(text)?);
/// assert_eq!(live.values().copied().collect::<Vec<_>>(), [true, false, true]);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn live_nodes(graph: &Graph) -> Array<Node, bool> {
    let mut live = Array::filled(false, graph.nodes.len());
    for block in graph.blocks.values() {
        for item in &block.items {
            if let Item::Guard { condition, .. } = item {
                live[*condition] = true;
            }
        }
        match &block.end {
            End::Return(outputs) => outputs.iter().for_each(|&node| live[node] = true),
            End::Branch { condition, .. } => live[*condition] = true,
            End::Open => {}
        }
    }
    // Operands have smaller ids than their users.
    for (node, data) in graph.nodes.iter().rev() {
        if live[node] {
            data.args().iter().for_each(|&arg| live[arg] = true);
        }
    }
    live
}
