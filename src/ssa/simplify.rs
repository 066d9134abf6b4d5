//! Simplification: copies a graph through the folding builder and drops what
//! no output, guard or branch needs.

use super::build::Builder;
use super::fold::Folding;
use super::graph::{Def, End, Graph, Item, Node};
use crate::entity::Array;

/// A smaller graph with the same outputs and the same paths.
///
/// With [`Folding::Exact`] the outputs are the same bits; with
/// [`Folding::Real`] the same real numbers.
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
    // Folding leaves unused nodes behind; the second copy drops them.
    let folded = rebuild(graph, folding, |_, _, _| None);
    rebuild(&folded, Folding::Off, |_, _, _| None)
}

/// Copies what is live in `graph`. `rewrite` may give another node for a node
/// of `graph`, built from the copies of nodes before it.
pub(super) fn rebuild(
    graph: &Graph,
    folding: Folding,
    mut rewrite: impl FnMut(&mut Builder, Node, &Copies) -> Option<Node>,
) -> Graph {
    let live = live_nodes(graph);
    let mut builder = Builder::new(graph.active, graph.inactive, folding);
    let mut copy: Copies = Array::filled(None, graph.nodes.len());
    // Blocks still to copy; `None` closes the block opened last.
    let mut pending = vec![Some((graph.root(), None))];
    while let Some(step) = pending.pop() {
        let Some((block, new_block)) = step else {
            builder.leave();
            continue;
        };
        if let Some(new_block) = new_block {
            builder.enter(new_block);
            pending.push(None);
        }
        for &item in &graph.blocks[block].items {
            match item {
                Item::Node(node) if live[node] => {
                    let place = graph.nodes[node].place;
                    builder.set_place(place.map(|place| &graph.places[place]));
                    match rewrite(&mut builder, node, &copy) {
                        Some(rewritten) => copy[node] = Some(rewritten),
                        None => {
                            copied(graph, &mut builder, &mut copy, node);
                        }
                    }
                }
                Item::Node(_) => {}
                Item::Guard { condition, expect } => {
                    let condition = copied(graph, &mut builder, &mut copy, condition);
                    builder.guard(condition, expect);
                }
            }
        }
        match &graph.blocks[block].end {
            End::Return(outputs) => {
                let outputs: Vec<Node> =
                    outputs.iter().map(|&n| copied(graph, &mut builder, &mut copy, n)).collect();
                builder.finish_block(&outputs);
            }
            End::Branch { condition, then, otherwise } => {
                let condition = copied(graph, &mut builder, &mut copy, *condition);
                let (new_then, new_otherwise) = builder.branch(condition);
                pending.push(Some((*otherwise, Some(new_otherwise))));
                pending.push(Some((*then, Some(new_then))));
            }
            End::Open => {}
        }
    }
    builder.into_graph()
}

/// For each node of the old graph its copy in the new one.
pub(super) type Copies = Array<Node, Option<Node>>;

/// The copy of `node`, made now if it was not before.
fn copied(graph: &Graph, builder: &mut Builder, copy: &mut Copies, node: Node) -> Node {
    if let Some(new) = copy[node] {
        return new;
    }
    let data = &graph.nodes[node];
    let new = match data.def {
        Def::Input(i) => builder.input(i as usize),
        Def::Const(bits) => builder.constant(f64::from_bits(bits)),
        Def::Apply(op, args) => {
            let args = args.map(|arg| copy[arg].unwrap_or_else(|| leaf(graph, builder, arg)));
            builder.apply(op, &args[..op.arity()])
        }
    };
    copy[node] = Some(new);
    new
}

/// The copy of an operand that no block computes.
fn leaf(graph: &Graph, builder: &mut Builder, node: Node) -> Node {
    match graph.nodes[node].def {
        Def::Input(i) => builder.input(i as usize),
        Def::Const(bits) => builder.constant(f64::from_bits(bits)),
        // A verified graph computes operands before their uses.
        Def::Apply(..) => builder.constant(f64::NAN),
    }
}

/// Which nodes an output, guard or branch needs.
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
