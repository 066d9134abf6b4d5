//! Cancellation that moving an application into the arms of a branch makes possible.

use super::analysis::Analysis;
use crate::op::Op;
use crate::ssa::{Def, End, Node};

/// The depth to which operands are searched.
const MAX_DEPTH: usize = 4;

/// True if `op` of these operands, or its derivative, cancels in real arithmetic: a factor with a
/// divisor, a term with its negative, a function with its inverse. `operand` is the index of the
/// operand that differs from arm to arm.
pub(super) fn cancels(analysis: &Analysis<'_>, op: Op, args: &[Node], operand: usize) -> bool {
    cancels_within(analysis, op, args, operand, MAX_DEPTH)
}

fn cancels_within(
    analysis: &Analysis<'_>,
    op: Op,
    args: &[Node],
    operand: usize,
    depth: usize,
) -> bool {
    let graph = analysis.graph;
    if let Def::Phi(region, number) = graph.nodes[args[operand]].def {
        // A φ of a branch: its operands in each arm.
        let Some(depth) = depth.checked_sub(1) else { return false };
        return graph.regions[region].cycle.is_none()
            && graph.leaves(graph.regions[region].root).iter().any(|&leaf| {
                let End::Return(values) = &graph.blocks[leaf].end else { return false };
                let mut inner = args.to_vec();
                inner[operand] = values[number as usize];
                cancels_within(analysis, op, &inner, operand, depth)
            });
    }
    if op.arity() == 1 {
        let Def::Apply(inner, _) = graph.nodes[args[0]].def else { return false };
        return is_inverse(op, inner);
    }
    let mut parts = [Vec::new(), Vec::new()];
    for (list, &arg) in parts.iter_mut().zip(args) {
        match op {
            Op::Add | Op::Sub => terms(analysis, arg, false, MAX_DEPTH, list),
            Op::Mul | Op::Div => factors(analysis, arg, false, MAX_DEPTH, list),
            _ => return false,
        }
    }
    let inverse = matches!(op, Op::Sub | Op::Div);
    let cancels = |a: &(Node, bool)| parts[1].iter().any(|b| a.0 == b.0 && a.1 != (b.1 != inverse));
    parts[0].iter().any(cancels)
}

/// True if `outer` of `inner` is simpler than both, such as the logarithm of an exponential.
fn is_inverse(outer: Op, inner: Op) -> bool {
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

/// Appends the factors of `node` to `list`: value numbers, with true for divisors. The operand of a
/// logarithm counts as a divisor, since it is one in the derivative.
fn factors(
    analysis: &Analysis<'_>,
    node: Node,
    inverse: bool,
    depth: usize,
    list: &mut Vec<(Node, bool)>,
) {
    let value = analysis.values[node];
    if analysis.constant(value).is_some() {
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return list.push((value, inverse)) };
    let Def::Apply(op, args) = analysis.graph.nodes[node].def else {
        return list.push((value, inverse));
    };
    match op {
        Op::Mul | Op::Div => {
            factors(analysis, args[0], inverse, depth, list);
            factors(analysis, args[1], inverse != (op == Op::Div), depth, list);
        }
        Op::Recip => factors(analysis, args[0], !inverse, depth, list),
        Op::Neg | Op::Sqrt | Op::Cbrt => factors(analysis, args[0], inverse, depth, list),
        Op::Powi | Op::Powf => {
            let negative = analysis.graph.constant(args[1]).is_some_and(|power| power < 0.0);
            factors(analysis, args[0], inverse != negative, depth, list);
        }
        Op::Ln | Op::Log2 | Op::Log10 => {
            list.push((value, inverse));
            factors(analysis, args[0], !inverse, depth, list);
        }
        _ => list.push((value, inverse)),
    }
}

/// Appends the terms of the sum `node` to `list`: value numbers, with true for negated ones.
fn terms(
    analysis: &Analysis<'_>,
    node: Node,
    negative: bool,
    depth: usize,
    list: &mut Vec<(Node, bool)>,
) {
    let value = analysis.values[node];
    let Some(depth) = depth.checked_sub(1) else { return list.push((value, negative)) };
    match analysis.graph.nodes[node].def {
        Def::Apply(op @ (Op::Add | Op::Sub), args) => {
            terms(analysis, args[0], negative, depth, list);
            terms(analysis, args[1], negative != (op == Op::Sub), depth, list);
        }
        Def::Apply(Op::Neg, args) => terms(analysis, args[0], !negative, depth, list),
        _ => list.push((value, negative)),
    }
}
