//! Steps and pairs of them, before a loop or in the body of one.

use crate::op::Op;
use crate::phi::draft::{Body, Draft};
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Node, Region};

/// A coefficient in the body of a loop; none is zero.
pub(super) type Coefficient = Option<Pair>;

/// Where steps are made.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// Before a loop.
    Before(Region),
    /// In the body of one.
    In(&'a Body),
}

/// Makes steps and coefficients.
pub(super) struct Steps<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) place: Place<'a>,
}

impl Pairs for Steps<'_> {
    fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        match self.place {
            Place::Before(region) => self.draft.apply(region, op, args),
            Place::In(body) => {
                let args = core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]));
                self.draft.step(body, Def::Apply(op, args))
            }
        }
    }

    fn constant(&mut self, value: f64) -> Node {
        self.draft.constant(value)
    }

    fn value(&self, node: Node) -> Option<f64> {
        self.draft.graph.constant(node)
    }
}

impl Steps<'_> {
    /// `a · b`, as a pair if it is to be `precise`.
    pub(super) fn times(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        let (a, b) = (a?, b?);
        let is_one = |steps: &Self, x: Pair| x.low.is_none() && steps.value(x.high) == Some(1.0);
        Some(match () {
            () if is_one(self, a) => b,
            () if is_one(self, b) => a,
            () if precise => self.product(a, b),
            () => self.apply(Op::Mul, &[a.high, b.high]).into(),
        })
    }

    /// The coefficient as one number.
    pub(super) fn once(&mut self, a: Coefficient) -> Coefficient {
        a.map(|a| self.rounded(a).into())
    }

    /// `a + b`, as a pair if it is to be `precise`.
    pub(super) fn plus(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        match (a, b) {
            (Some(a), Some(b)) if !precise => Some(self.apply(Op::Add, &[a.high, b.high]).into()),
            (a, b) => self.sum(a, b),
        }
    }

    /// `a − b`, as a pair if it is to be `precise`.
    pub(super) fn minus(&mut self, a: Coefficient, b: Coefficient, precise: bool) -> Coefficient {
        match (a, b) {
            (Some(a), Some(b)) if !precise => Some(self.apply(Op::Sub, &[a.high, b.high]).into()),
            (a, Some(b)) => {
                let high = self.apply(Op::Neg, &[b.high]);
                let low = b.low.map(|low| self.apply(Op::Neg, &[low]));
                self.plus(a, Some(Pair { high, low }), precise)
            }
            (a, None) => a,
        }
    }
}
