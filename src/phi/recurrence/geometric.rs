//! Powers of a number that is known as a pair, their sum, and the derivatives of both.

use super::doubling::{digits, loop_of};
use super::emit::Emitter;
use super::slopes::{chosen, inverse};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// After so many squarings a pair is made normal again: until then what is neglected,
/// the square of its second part, has grown by no more than some bits.
const ROUGH: u32 = 3;
/// Where fractions lose more digits than pairs have to spare: errors of powers grow with
/// the number of steps.
struct Near {
    /// The largest n·(a - 1).
    way: f64,
    /// How many terms of the series count there, and how many of them with all digits.
    terms: usize,
    exact: usize,
}

const FEW: Near = Near { way: marked(1.0 / 8192.0), terms: 5, exact: 2 };
const MANY: Near = Near { way: marked(1.0 / 1024.0), terms: 7, exact: 3 };
/// From so many steps.
const MANY_STEPS: usize = 1 << 14;

impl Near {
    fn of(most: usize) -> Near {
        if most < MANY_STEPS { FEW } else { MANY }
    }
}

/// What is known after a number of steps: the power of the factor, and the sum of those
/// before it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) power: Pair,
    pub(super) sum: Pair,
    /// Their derivatives by the factor.
    pub(super) power_slope: Pair,
    pub(super) sum_slope: Pair,
}

/// Whether something is so.
#[derive(Clone, Copy)]
pub(super) enum Whether {
    Known(bool),
    Found(Node),
}

impl Whether {
    pub(super) fn either(self, emitter: &mut Emitter<'_>, then: Pair, otherwise: Pair) -> Pair {
        match self {
            Whether::Known(true) => then,
            Whether::Known(false) => otherwise,
            Whether::Found(condition) => chosen(emitter, condition, then, otherwise),
        }
    }

    pub(super) fn may_be(self, what: bool) -> bool {
        !matches!(self, Whether::Known(known) if known != what)
    }
}

/// What a number is multiplied by in each step.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    pub(super) value: Pair,
    /// That, less 1.
    pub(super) less_one: Pair,
}

impl Factor {
    /// What is known after `times` steps.
    pub(super) fn after(&self, emitter: &mut Emitter<'_>, times: usize) -> Known {
        let power = self.power(emitter, times - 1);
        let number = emitter.constant(times as f64);
        self.one_more(emitter, power, number, &Near::of(times))
    }

    /// The power of the factor.
    pub(super) fn power(&self, emitter: &mut Emitter<'_>, times: usize) -> Pair {
        let Some(digits) = times.checked_ilog2() else { return emitter.number(1.0, 0.0) };
        let mut power = self.value;
        for digit in (0..digits).rev() {
            power = emitter.product(power, power);
            if times >> digit & 1 == 1 {
                power = product(emitter, power, self.value);
            } else if digit % ROUGH == 0 {
                power = emitter.normal(power);
            }
        }
        power
    }

    /// What is known after `count` steps: a loop goes through the digits of that number
    /// less one, from the first one on.
    pub(super) fn after_count(&self, emitter: &mut Emitter<'_>, count: Node, most: u32) -> Known {
        let (zero, one) = (emitter.constant(0.0), emitter.constant(1.0));
        let is_any = emitter.apply(Op::Ge, &[count, one]);
        let less = emitter.apply(Op::Sub, &[count, one]);
        let before = emitter.apply(Op::Select, &[is_any, less, zero]);
        let digits = digits(most.saturating_sub(1));
        let highest = emitter.constant(f64::from(digits - 1).exp2());
        let firsts = vec![before, highest, one, zero];
        let after = loop_of(emitter, digits, firsts, |body, carried| {
            let &[left, place, high, low] = carried else { return (zero, Vec::new()) };
            let (half, one, zero) = (body.constant(0.5), body.constant(1.0), body.constant(0.0));
            let is_one = body.apply(Op::Ge, &[left, place]);
            let less = body.apply(Op::Sub, &[left, place]);
            let half = body.apply(Op::Mul, &[place, half]);
            let power = Pair { high, low: Some(low) };
            let doubled = product(body, power, power);
            let stepped = product(body, doubled, self.value);
            let next = chosen(body, is_one, stepped, doubled);
            let left = body.apply(Op::Select, &[is_one, less, left]);
            let nexts = vec![left, half, next.high, next.low.unwrap_or(zero)];
            (body.apply(Op::Ge, &[half, one]), nexts)
        });
        let (one, zero) = (emitter.number(1.0, 0.0), emitter.number(0.0, 0.0));
        let power = match after[..] {
            [.., high, low] => Pair { high, low: Some(low) },
            _ => one,
        };
        let known = self.one_more(emitter, power, count, &Near::of(most as usize));
        let mut either = |some, none| chosen(emitter, is_any, some, none);
        Known {
            power: either(known.power, one),
            sum: either(known.sum, zero),
            power_slope: either(known.power_slope, zero),
            sum_slope: either(known.sum_slope, zero),
        }
    }

    /// What is known after `number` steps, where `before` is the power of one step less.
    fn one_more(
        &self,
        emitter: &mut Emitter<'_>,
        before: Pair,
        number: Node,
        limits: &Near,
    ) -> Known {
        let (one, less) = (emitter.number(1.0, 0.0), emitter.number(-1.0, 0.0));
        let power = product(emitter, before, self.value);
        let power_slope = product(emitter, before, number.into());
        let way = emitter.apply(Op::Mul, &[self.less_one.high, number]);
        let is_far = is_beyond(emitter, way, limits.way);
        let (mut sum, mut sum_slope) = (one, one);
        if is_far.may_be(true) {
            // Finite where it is not taken, so that no derivative of that is more than
            // nothing.
            let divisor = is_far.either(emitter, self.less_one, one);
            let inverse = inverse(emitter, divisor);
            let top = normal_sum(emitter, power, less);
            sum = product(emitter, top, inverse);
            let negative = emitter.product(sum, less);
            let top = normal_sum(emitter, power_slope, negative);
            sum_slope = product(emitter, top, inverse);
        }
        if is_far.may_be(false) {
            let near = self.series(emitter, number, 0, limits);
            let near = product(emitter, near, number.into());
            sum = is_far.either(emitter, sum, near);
            let near = self.series(emitter, number, 1, limits);
            let minus_one = emitter.constant(-1.0);
            let other = emitter.apply(Op::Add, &[number, minus_one]);
            let half = emitter.number(0.5, 0.0);
            let half = emitter.product(number.into(), half);
            let pairs = product(emitter, half, other.into());
            let near = product(emitter, near, pairs);
            sum_slope = is_far.either(emitter, sum_slope, near);
        }
        Known { power, sum, power_slope, sum_slope }
    }

    /// Σ_k C(n, k + 1)·(a - 1)ᵏ for n steps, if `order` is 0, or its derivative: as a
    /// multiple of the first term.
    fn series(&self, emitter: &mut Emitter<'_>, number: Node, order: usize, limits: &Near) -> Pair {
        let one = emitter.constant(1.0);
        let mut sum: Pair = one.into();
        for term in (order..limits.terms + order).rev() {
            let k = term as f64;
            let less = emitter.constant(-k - 1.0);
            let left = emitter.apply(Op::Add, &[number, less]);
            let ratio = match order {
                0 => Double::from(1.0) / (k + 2.0).into(),
                _ => Double::from(k + 1.0) / (k * (k + 2.0)).into(),
            };
            if term - order >= limits.exact {
                // So small that rounding does not matter.
                let ratio = emitter.constant(ratio.high);
                let scaled = emitter.apply(Op::Mul, &[left, ratio]);
                let scaled = emitter.apply(Op::Mul, &[scaled, self.less_one.high]);
                sum = emitter.apply(Op::MulAdd, &[scaled, sum.high, one]).into();
                continue;
            }
            let ratio = emitter.number(ratio.high, ratio.low);
            let scaled = product(emitter, ratio, left.into());
            let scaled = emitter.product(scaled, self.less_one);
            let scaled = emitter.product(scaled, sum);
            sum = emitter.normal(Pair { high: one, low: Some(scaled.high) });
            sum.low = emitter.add_low(sum.low, scaled.low);
        }
        emitter.normal(sum)
    }
}

pub(super) fn product(emitter: &mut Emitter<'_>, a: Pair, b: Pair) -> Pair {
    let product = emitter.product(a, b);
    emitter.normal(product)
}

pub(super) fn normal_sum(emitter: &mut Emitter<'_>, a: Pair, b: Pair) -> Pair {
    let sum = emitter.sum(Some(a), Some(b)).unwrap_or(a);
    emitter.normal(sum)
}

/// Whether `number` is larger than `limit`, or less than `-limit`.
pub(super) fn is_beyond(emitter: &mut Emitter<'_>, number: Node, limit: f64) -> Whether {
    match emitter.value(number) {
        Some(number) => Whether::Known(number.abs() > limit),
        None => {
            let size = emitter.apply(Op::Abs, &[number]);
            let limit = emitter.constant(limit);
            Whether::Found(emitter.apply(Op::Gt, &[size, limit]))
        }
    }
}
