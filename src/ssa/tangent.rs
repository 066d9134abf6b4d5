//! Tangents: nodes that are zero, with the derivative one. They tell differentiation
//! what a derivative is that has been computed already.
//!
//! A value Y with known derivatives D by nodes x is Y + Σ D·t(x), where t(x) is the
//! tangent of x. Y and D pass no derivative on: each is less its own tangent, and
//! differentiation knows that what is less a tangent is constant. So D is the whole
//! derivative, however Y is computed, and D may have digits that a sweep through Y
//! would not have.
//!
//! A tangent is `(x + FAR) - FAR`, spelt with `mul_add` as rounding errors are, by which
//! rewriting by the rules of real numbers leaves it alone. It is a mark more than a
//! computation: [`without_tangents`] takes it out before anything is compiled.

use super::dead::eliminate_dead_code;
use super::fold::Folding;
use super::graph::{Def, End, Graph, Item, Node};
use super::nest::Nest;
use super::rebuild::{Rebuild, rebuild};
use crate::entity::Array;
use crate::op::Op;

/// What a tangent is far from: numbers of less than 2⁹⁴⁶ vanish beside it. Its digits
/// are such as no program has by accident.
pub(crate) const FAR: f64 = f64::from_bits(0x7E76_A09E_667F_3BCD);

/// Whether `node` is the tangent of something.
pub(crate) fn is_tangent(graph: &Graph, node: Node) -> bool {
    let Def::Apply(Op::MulAdd, [a, b, c]) = graph.nodes[node].def else { return false };
    let constant = |node| graph.constant(node);
    constant(c) == Some(-FAR) && (constant(a) == Some(1.0) || constant(b) == Some(1.0))
}

/// Whether `node` is a number less a tangent, which has no derivative.
pub(crate) fn is_held(graph: &Graph, node: Node) -> bool {
    matches!(graph.nodes[node].def, Def::Apply(Op::Sub, [_, b, _]) if is_tangent(graph, b))
}

/// `graph` with tangents as the zeros that they are, and nothing that is computed of
/// them alone.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::{parse, without_tangents};
///
/// // Without tangents it is the same.
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n";
/// assert_eq!(without_tangents(&parse(text)?).to_string(), text);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn without_tangents(graph: &Graph) -> Graph {
    if !has_tangents(graph) {
        return graph.clone();
    }
    let zero = zeros(graph);
    let plain = rebuild(graph, Folding::Real, |rebuild, node| {
        if zero[node] {
            return Some(rebuild.builder.constant(0.0));
        }
        let Def::Apply(op, [a, b, c]) = graph.nodes[node].def else { return None };
        let copied = |rebuild: &mut Rebuild<'_>, node| Some(rebuild.copied(node));
        match op {
            Op::Add if zero[a] => copied(rebuild, b),
            Op::Add | Op::Sub if zero[b] => copied(rebuild, a),
            Op::Sub if zero[a] => {
                let b = rebuild.copied(b);
                Some(rebuild.builder.apply(Op::Neg, &[b]))
            }
            Op::MulAdd if zero[a] || zero[b] => copied(rebuild, c),
            Op::MulAdd if zero[c] => {
                let (a, b) = (rebuild.copied(a), rebuild.copied(b));
                Some(rebuild.builder.apply(Op::Mul, &[a, b]))
            }
            _ => None,
        }
    });
    eliminate_dead_code(&plain)
}

/// Whether all tangents of `graph` are used as they are meant: to be taken from a
/// number, or to be multiplied by one that has no derivative.
pub(crate) fn tangents_hold(graph: &Graph) -> bool {
    if !has_tangents(graph) {
        return true;
    }
    let tangents: Array<Node, bool> =
        graph.nodes.keys().map(|node| is_tangent(graph, node)).collect();
    let is_held = |node| is_held(graph, node) || graph.constant(node).is_some();
    let of = |tangent: Node, number: Node| match graph.nodes[tangent].def {
        Def::Apply(_, [a, b, _]) => [a, b].into_iter().any(|sum| match graph.nodes[sum].def {
            Def::Apply(Op::Add | Op::Sub, args) => args[..2].contains(&number),
            _ => false,
        }),
        _ => false,
    };
    let used_well = |data: &Def| match *data {
        Def::Apply(Op::Sub, [a, b, _]) => !tangents[a] && (!tangents[b] || of(b, a)),
        Def::Apply(Op::Mul, [a, b, _]) => {
            (!tangents[a] || is_held(b)) && (!tangents[b] || is_held(a))
        }
        Def::Apply(op, args) => args[..op.arity()].iter().all(|&arg| !tangents[arg]),
        _ => true,
    };
    let steps = graph.blocks.values().all(|block| {
        let ends = match &block.end {
            End::Return(values) => values.iter().all(|&value| !tangents[value]),
            End::Branch { condition, .. } => !tangents[*condition],
            End::Open => true,
        };
        let is_good = |item: &Item| match *item {
            Item::Node(node) => used_well(&graph.nodes[node].def),
            Item::Guard { condition, .. } => !tangents[condition],
            Item::Accumulate(_, node) => !tangents[node],
            Item::Region(_) | Item::Fill(_) => true,
        };
        ends && block.items.iter().all(is_good)
    });
    let firsts = graph.regions.values().flat_map(|data| &data.cycle);
    steps && firsts.flat_map(|cycle| &cycle.entries).all(|entry| !tangents[entry.first])
}

/// Whether there are tangents.
pub(crate) fn has_tangents(graph: &Graph) -> bool {
    graph.nodes.keys().any(|node| is_tangent(graph, node))
}

/// Whether there are tangents in loops.
pub(crate) fn loops_have_tangents(graph: &Graph) -> bool {
    if !has_tangents(graph) {
        return false;
    }
    let nest = Nest::of(graph);
    graph.nodes.keys().any(|node| is_tangent(graph, node) && nest.node_loop(node).is_some())
}

/// Which nodes are zero because tangents are.
fn zeros(graph: &Graph) -> Array<Node, bool> {
    let mut zero: Array<Node, bool> = Array::filled(false, graph.nodes.len());
    // Operands have been made before; where they have not, a step stays that adds zero.
    for node in graph.nodes.keys() {
        let Def::Apply(op, [a, b, c]) = graph.nodes[node].def else { continue };
        zero[node] = match op {
            Op::MulAdd => is_tangent(graph, node) || (zero[a] || zero[b]) && zero[c],
            Op::Mul => zero[a] || zero[b],
            Op::Add | Op::Sub => zero[a] && zero[b],
            Op::Neg | Op::Div => zero[a],
            _ => false,
        };
    }
    zero
}
