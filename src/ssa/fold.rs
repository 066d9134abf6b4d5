//! Folding: simplifications of a single application, given its operands.
//!
//! Every rule is either exact (same bits for all operands, NaN included) or real-only (same bits
//! for all operands but NaN, whose sign may change, which only `copysign` of NaN would show).
//! Both preserve the signs of zeros. Rules that need a fact about an operand are in `simplify`.

use smallvec::{SmallVec, smallvec};

use super::graph::{Def, Graph, Node};
use crate::op::{MAX_ARITY, Op, eval};

/// The rules that may be used.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::Op;
/// use phigrad::internals::ssa::{Builder, Folding};
///
/// for folding in [Folding::Exact, Folding::Real] {
///     let mut builder = Builder::new(1, 0, folding);
///     let (x, one, zero) = (builder.input(0), builder.constant(1.0), builder.constant(0.0));
///     assert_eq!(builder.apply(Op::Mul, &[x, one]), x);
///     // Not 0: x may be infinite or NaN.
///     assert_ne!(builder.apply(Op::Mul, &[x, zero]), zero);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folding {
    /// Exact rules; equal nodes become one.
    Exact,
    /// Exact and real-only rules; equal nodes become one.
    Real,
}

/// The result of folding an application.
pub(super) enum Folded {
    /// A node or a constant.
    To(Operand),
    /// Another application.
    Apply(Op, SmallVec<[Operand; MAX_ARITY]>),
    /// Another application, negated.
    Negated(Op, SmallVec<[Operand; MAX_ARITY]>),
}

/// A node or a constant.
#[derive(Clone, Copy)]
pub(super) enum Operand {
    Node(Node),
    Const(f64),
}

use Operand::{Const, Node as Kept};

/// Folds `op` applied to `args`; `None` if no rule applies.
pub(super) fn fold(graph: &Graph, folding: Folding, op: Op, args: &[Node]) -> Option<Folded> {
    let constant = |i: usize| args.get(i).and_then(|&arg| graph.constant(arg));
    if args.iter().all(|&arg| graph.constant(arg).is_some()) {
        let values = core::array::from_fn(|i| constant(i).unwrap_or(0.0));
        return Some(Folded::To(Const(eval(op, values))));
    }
    let constants = [constant(0), constant(1)];
    exact(graph, op, args, constants).or_else(|| match folding {
        Folding::Real => real(graph, op, args, constants),
        Folding::Exact => None,
    })
}

/// The exact rules.
fn exact(graph: &Graph, op: Op, args: &[Node], [a, b]: [Option<f64>; 2]) -> Option<Folded> {
    let is = |constant: Option<f64>, value: f64| {
        constant.is_some_and(|c| c.to_bits() == value.to_bits())
    };
    let inner = |op: Op| match graph.nodes[args[0]].def {
        Def::Apply(inner, inner_args) if inner == op => Some(inner_args[0]),
        _ => None,
    };
    let kept = |i: usize| Some(Folded::To(Kept(args[i])));
    match op {
        Op::Add if is(a, -0.0) => kept(1),
        Op::Add if is(b, -0.0) => kept(0),
        Op::Sub if is(b, 0.0) => kept(0),
        Op::Mul if is(a, 1.0) => kept(1),
        Op::Mul | Op::Div | Op::Powi if is(b, 1.0) => kept(0),
        Op::Div if b.is_some_and(has_exact_reciprocal) => {
            b.map(|b| Folded::Apply(Op::Mul, smallvec![Kept(args[0]), Const(1.0 / b)]))
        }
        Op::Div if is(a, 1.0) => Some(Folded::Apply(Op::Recip, smallvec![Kept(args[1])])),
        Op::Powi if b == Some(0.0) => Some(Folded::To(Const(1.0))),
        Op::Neg => inner(Op::Neg).map(|node| Folded::To(Kept(node))),
        Op::Abs => inner(Op::Abs)
            .or(inner(Op::Neg))
            .map(|node| Folded::Apply(Op::Abs, smallvec![Kept(node)])),
        Op::Select => match a {
            Some(condition) => kept(if condition != 0.0 { 1 } else { 2 }),
            None if args[1] == args[2] => kept(1),
            None => None,
        },
        Op::Same if args[0] == args[1] => Some(Folded::To(Const(1.0))),
        _ => None,
    }
}

/// Tests whether division by `x` is multiplication by `1 / x`, bit for bit.
fn has_exact_reciprocal(x: f64) -> bool {
    const MANTISSA: u64 = (1 << 52) - 1;
    x.is_normal() && (1.0 / x).is_normal() && x.to_bits() & MANTISSA == 0
}

/// Moves negations towards the sums that absorb them.
fn real(graph: &Graph, op: Op, args: &[Node], [a, b]: [Option<f64>; 2]) -> Option<Folded> {
    let negated = |i: usize| match graph.nodes[*args.get(i)?].def {
        Def::Apply(Op::Neg, inner) => Some(Kept(inner[0])),
        _ => None,
    };
    let arg = |i: usize| Kept(args[i]);
    let (op, args) = match (op, negated(0), negated(1)) {
        (Op::Mul, ..) if a == Some(-1.0) => (Op::Neg, smallvec![arg(1)]),
        (Op::Mul | Op::Div, ..) if b == Some(-1.0) => (Op::Neg, smallvec![arg(0)]),
        (Op::Sub, ..) if a.map(f64::to_bits) == Some((-0.0f64).to_bits()) => {
            (Op::Neg, smallvec![arg(1)])
        }
        (Op::Add, _, Some(y)) => (Op::Sub, smallvec![arg(0), y]),
        (Op::Add, Some(x), None) => (Op::Sub, smallvec![arg(1), x]),
        (Op::Sub, _, Some(y)) => (Op::Add, smallvec![arg(0), y]),
        (Op::Mul | Op::Div, Some(x), Some(y)) => (op, smallvec![x, y]),
        (Op::MulAdd, Some(x), Some(y)) => (op, smallvec![x, y, arg(2)]),
        (_, Some(x), None) => match (op, b) {
            (Op::Mul | Op::Div, Some(b)) => (op, smallvec![x, Const(-b)]),
            (Op::MulAdd, Some(b)) => (op, smallvec![x, Const(-b), arg(2)]),
            (Op::Mul | Op::Div, None) => return Some(Folded::Negated(op, smallvec![x, arg(1)])),
            _ => return None,
        },
        (_, None, Some(y)) => match (op, a) {
            (Op::Mul | Op::Div, Some(a)) => (op, smallvec![Const(-a), y]),
            (Op::MulAdd, Some(a)) => (op, smallvec![Const(-a), y, arg(2)]),
            (Op::Mul | Op::Div, None) => return Some(Folded::Negated(op, smallvec![arg(0), y])),
            _ => return None,
        },
        _ => return None,
    };
    Some(Folded::Apply(op, args))
}
