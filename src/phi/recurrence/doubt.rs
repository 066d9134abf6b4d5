//! Where nothing is left of a sum but rounding.
//!
//! At a fixed point that repels, or where a program never leaves the few directions in which
//! a system does not grow, terms with large powers add up to little or nothing. The loop
//! stays there exactly, or not at all; of the sum no digit is left, not even with twice the
//! digits. There the closed form is no number, so that its kernel does not serve, and one
//! with the loop does.
//!
//! Where powers are small terms are so, too, and so is what rounding leaves of them.

use super::emit::Emitter;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{NO_NUMBER, Node};

/// Pairs tell 104 binary digits apart. Powers of n steps have lost as many of them as n has,
/// and so many, with four to spare, may cancel that 50 are left of a sum.
const DIGITS: f64 = (1u64 << 50) as f64;

/// Whether sums are to be doubted.
#[derive(Clone, Copy)]
pub(super) struct Doubt {
    /// What is less than its terms by this has too few digits.
    limit: Node,
}

impl Doubt {
    /// Of sums of what was of the size `before` and is of the size `after` a number of
    /// `steps`; `None` if it is known not to be much larger. What has grown by less leaves
    /// little next to what was there before; and sums that grow as powers of n do keep their
    /// forms.
    pub(super) fn of(
        emitter: &mut Emitter<'_>,
        steps: Node,
        before: Node,
        after: Node,
    ) -> Option<Doubt> {
        let one_step = emitter.constant(1.0 / DIGITS);
        let limit = emitter.apply(Op::Mul, &[steps, one_step]);
        let scaled = emitter.apply(Op::Mul, &[after, limit]);
        // What is NaN is doubted.
        let is_small = emitter.apply(Op::Le, &[scaled, before]);
        let zero = emitter.constant(0.0);
        let limit = emitter.apply(Op::Select, &[is_small, zero, limit]);
        (emitter.value(limit) != Some(0.0)).then_some(Doubt { limit })
    }

    /// `sum`, of terms whose sizes come to `size`; no number if too little is left of them.
    pub(super) fn checked(self, emitter: &mut Emitter<'_>, sum: Pair, size: Node) -> Pair {
        let limit = emitter.apply(Op::Mul, &[size, self.limit]);
        let left = emitter.apply(Op::Abs, &[sum.high]);
        let is_left = emitter.apply(Op::Ge, &[left, limit]);
        let no_number = emitter.graph.push_const(NO_NUMBER);
        let one = emitter.constant(1.0);
        // A factor makes what is derived from it no number, too.
        let factor = emitter.apply(Op::Select, &[is_left, one, no_number]);
        Pair { high: emitter.apply(Op::Mul, &[sum.high, factor]), ..sum }
    }
}
