//! By how much what a recurrence is made of may have grown, so that it cancels where the program
//! does not.
//!
//! A loop that rests at a fixed point, or adds to numbers the difference of two that are
//! equal, multiplies nothing by large numbers. What it comes to may be a large power of the one
//! number, less as large a product of the other; rounding leaves of that but the digits of the
//! power. So sums in which there is such a power are no numbers where it shows.

use std::collections::BTreeSet;

use super::doubt::grown_share;
use super::emit::Emitter;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// A constant that is larger may be a power of another one, which nobody told.
const LARGE: f64 = (1u32 << 20) as f64;

/// The powers that something is made of, each with the number of its factors.
#[derive(Clone, Default)]
pub(super) struct Growth {
    powers: BTreeSet<(Pair, usize)>,
}

impl Growth {
    /// Takes `pair` for one of them, of so many factors.
    pub(super) fn add(&mut self, pair: Pair, factors: usize) {
        self.powers.insert((pair, factors));
    }

    /// The same if it is a constant that is large.
    pub(super) fn add_constant(&mut self, emitter: &Emitter<'_>, pair: Pair) {
        if emitter.value(pair.high).is_some_and(|number| number.is_nan() || number.abs() > LARGE) {
            self.add(pair, 1);
        }
    }

    pub(super) fn is_none(&self) -> bool {
        self.powers.is_empty()
    }

    /// The part that is to be left of sums after a number of `steps`, which multiply by `power`;
    /// `None` if nothing has grown by much.
    pub(super) fn share(
        &self,
        emitter: &mut Emitter<'_>,
        steps: Node,
        power: Option<Pair>,
    ) -> Option<Node> {
        let (mut grown, mut most) = (None, 1);
        for (power, factors) in self.powers.iter().copied().chain(power.map(|power| (power, 1))) {
            let size = emitter.apply(Op::Abs, &[power.high]);
            let one = emitter.constant(1.0);
            let more = emitter.apply(Op::Add, &[size, one]);
            grown = Some(grown.map_or(more, |grown| emitter.apply(Op::Mul, &[grown, more])));
            most = most.max(factors);
        }
        let factors = emitter.constant(most as f64);
        let steps = emitter.apply(Op::Mul, &[steps, factors]);
        grown_share(emitter, steps, factors, grown?)
    }
}
