//! Folding: what a single application simplifies to, given its operands.
//!
//! Every rule is either exact (same bits for all operands, NaN included) or
//! real-only (same bits for all operands but NaN, whose sign may change, which
//! only `copysign` and `signum` of NaN would show). Zeros keep their signs under
//! both. Rules that need a fact about an operand are not here.

use super::graph::{Def, Graph, Node};
use crate::op::{Op, eval};

/// Which rules may be used.
///
/// # Examples
///
/// ```
/// use phigrad::op::Op;
/// use phigrad::ssa::{Builder, Folding};
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

/// What `op` applied to `args` folds to.
pub(super) enum Folded {
    /// A node that exists.
    Node(Node),
    /// A constant.
    Const(f64),
    /// Another application.
    Apply(Op, Node),
}

/// The simpler form of `op` applied to `args`, if a rule knows one.
pub(super) fn fold(graph: &Graph, folding: Folding, op: Op, args: &[Node]) -> Option<Folded> {
    let constant = |i: usize| args.get(i).and_then(|&arg| graph.constant(arg));
    let (a, b) = (constant(0), constant(1));
    if args.iter().all(|&arg| graph.constant(arg).is_some()) {
        let values = core::array::from_fn(|i| constant(i).unwrap_or(0.0));
        return Some(Folded::Const(eval(op, values)));
    }
    exact(graph, op, args, a, b).or_else(|| match folding {
        Folding::Real => real(op, args, a, b),
        Folding::Exact => None,
    })
}

fn exact(graph: &Graph, op: Op, args: &[Node], a: Option<f64>, b: Option<f64>) -> Option<Folded> {
    let is = |constant: Option<f64>, value: f64| {
        constant.is_some_and(|c| c.to_bits() == value.to_bits())
    };
    let inner = |op: Op| match graph.nodes[args[0]].def {
        Def::Apply(inner, inner_args) if inner == op => Some(inner_args[0]),
        _ => None,
    };
    match op {
        Op::Add if is(a, -0.0) => Some(Folded::Node(args[1])),
        Op::Add if is(b, -0.0) => Some(Folded::Node(args[0])),
        Op::Sub if is(b, 0.0) => Some(Folded::Node(args[0])),
        Op::Mul if is(a, 1.0) => Some(Folded::Node(args[1])),
        Op::Mul if is(b, 1.0) => Some(Folded::Node(args[0])),
        Op::Div if is(b, 1.0) => Some(Folded::Node(args[0])),
        Op::Div if is(a, 1.0) => Some(Folded::Apply(Op::Recip, args[1])),
        Op::Powi if is(b, 1.0) => Some(Folded::Node(args[0])),
        Op::Powi if b == Some(0.0) => Some(Folded::Const(1.0)),
        Op::Neg => inner(Op::Neg).map(Folded::Node),
        Op::Abs => inner(Op::Abs).or(inner(Op::Neg)).map(|node| Folded::Apply(Op::Abs, node)),
        Op::Select => match a {
            Some(condition) => Some(Folded::Node(args[if condition != 0.0 { 1 } else { 2 }])),
            None => (args[1] == args[2]).then_some(Folded::Node(args[1])),
        },
        Op::Same => (args[0] == args[1]).then_some(Folded::Const(1.0)),
        _ => None,
    }
}

fn real(op: Op, args: &[Node], a: Option<f64>, b: Option<f64>) -> Option<Folded> {
    match op {
        Op::Sub if a.is_some_and(|a| a.to_bits() == (-0.0f64).to_bits()) => {
            Some(Folded::Apply(Op::Neg, args[1]))
        }
        Op::Mul if a == Some(-1.0) => Some(Folded::Apply(Op::Neg, args[1])),
        Op::Mul | Op::Div if b == Some(-1.0) => Some(Folded::Apply(Op::Neg, args[0])),
        _ => None,
    }
}
