//! What would cancel if an application were moved into the arms of a branch.

use super::place::Places;
use crate::op::Op;
use crate::ssa::{Def, End, Node};

/// How far into operands is looked.
const DEPTH: usize = 4;

/// Whether something in `op` applied to these operands cancels by the rules of
/// real numbers, or does so in its derivative: a factor with a divisor, a term
/// with what is subtracted, a function with its inverse. `operand` is the operand
/// that would be told apart.
pub(super) fn cancels(places: &Places<'_>, op: Op, args: &[Node], operand: usize) -> bool {
    cancels_within(places, op, args, operand, DEPTH)
}

fn cancels_within(
    places: &Places<'_>,
    op: Op,
    args: &[Node],
    operand: usize,
    depth: usize,
) -> bool {
    let graph = places.graph;
    if let Def::Phi(region, number) = graph.nodes[args[operand]].def {
        // The arms of a branch that the operand joins.
        let Some(depth) = depth.checked_sub(1) else { return false };
        return graph.regions[region].cycle.is_none()
            && graph.leaves(graph.regions[region].root).iter().any(|&leaf| {
                let End::Return(values) = &graph.blocks[leaf].end else { return false };
                let mut inner = args.to_vec();
                inner[operand] = values[number as usize];
                cancels_within(places, op, &inner, operand, depth)
            });
    }
    if op.arity() == 1 {
        let Def::Apply(inner, _) = graph.nodes[args[0]].def else { return false };
        return undoes(op, inner);
    }
    let mut parts = [Vec::new(), Vec::new()];
    for (list, &arg) in parts.iter_mut().zip(args) {
        match op {
            Op::Add | Op::Sub => terms(places, arg, false, DEPTH, list),
            Op::Mul | Op::Div => factors(places, arg, false, DEPTH, list),
            _ => return false,
        }
    }
    let inverse = matches!(op, Op::Sub | Op::Div);
    let cancels = |a: &(Node, bool)| parts[1].iter().any(|b| a.0 == b.0 && a.1 != (b.1 != inverse));
    parts[0].iter().any(cancels)
}

/// Whether `outer` of `inner` is simpler than both.
fn undoes(outer: Op, inner: Op) -> bool {
    matches!(
        (outer, inner),
        (Op::Ln, Op::Exp)
            | (Op::Exp, Op::Ln | Op::Ln1p)
            | (Op::Ln1p, Op::ExpM1)
            | (Op::ExpM1, Op::Ln1p | Op::Ln)
            | (Op::Exp2, Op::Log2)
            | (Op::Log2, Op::Exp2)
            | (Op::Neg, Op::Neg | Op::Sub)
            | (Op::Recip, Op::Recip | Op::Div)
            | (Op::Abs, Op::Abs | Op::Neg | Op::Exp | Op::Sqrt)
            | (Op::Tan, Op::Atan)
            | (Op::Sin, Op::Asin)
            | (Op::Cos, Op::Acos)
            | (Op::Tanh, Op::Atanh)
    )
}

/// What is multiplied in `node`, by number, with whether it is divided by. What a
/// logarithm is taken of counts as a divisor: it is one in the derivative.
fn factors(
    places: &Places<'_>,
    node: Node,
    inverse: bool,
    depth: usize,
    list: &mut Vec<(Node, bool)>,
) {
    let value = places.values[node];
    if places.constant(value).is_some() {
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return list.push((value, inverse)) };
    let Def::Apply(op, args) = places.graph.nodes[node].def else {
        return list.push((value, inverse));
    };
    match op {
        Op::Mul | Op::Div => {
            factors(places, args[0], inverse, depth, list);
            factors(places, args[1], inverse != (op == Op::Div), depth, list);
        }
        Op::Recip => factors(places, args[0], !inverse, depth, list),
        Op::Neg | Op::Sqrt | Op::Cbrt => factors(places, args[0], inverse, depth, list),
        Op::Powi | Op::Powf => {
            let negative = places.graph.constant(args[1]).is_some_and(|power| power < 0.0);
            factors(places, args[0], inverse != negative, depth, list);
        }
        Op::Ln | Op::Log2 | Op::Log10 => {
            list.push((value, inverse));
            factors(places, args[0], !inverse, depth, list);
        }
        _ => list.push((value, inverse)),
    }
}

/// What is added up in `node`, by number, with whether it is subtracted.
fn terms(
    places: &Places<'_>,
    node: Node,
    negative: bool,
    depth: usize,
    list: &mut Vec<(Node, bool)>,
) {
    let value = places.values[node];
    let Some(depth) = depth.checked_sub(1) else { return list.push((value, negative)) };
    match places.graph.nodes[node].def {
        Def::Apply(op @ (Op::Add | Op::Sub), args) => {
            terms(places, args[0], negative, depth, list);
            terms(places, args[1], negative != (op == Op::Sub), depth, list);
        }
        Def::Apply(Op::Neg, args) => terms(places, args[0], !negative, depth, list),
        _ => list.push((value, negative)),
    }
}
