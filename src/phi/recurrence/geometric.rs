//! Powers of a number that is known as a pair, their sum, and the derivatives of both.

use super::doubling::{digits, loop_of};
use super::emit::Emitter;
use super::slopes::{chosen, inverse};
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// After so many squarings a pair is made normal again: until then what is neglected,
/// the square of its second part, has grown by no more than some bits.
const ROUGH: u32 = 3;
/// Where a fraction loses digits, and the first terms of its series have enough.
struct Near {
    /// The largest n·(a - 1); where the sum is meant, (n - 1)·(a - 1).
    way: f64,
    /// How many terms count there, behind the first.
    terms: u32,
}

/// Where the sum is meant, and its derivative, which loses twice as many digits. Errors of
/// powers grow with the number of steps.
const SUM: [Near; 2] =
    [Near { way: marked(1.0 / 8192.0), terms: 4 }, Near { way: marked(1.0 / 1024.0), terms: 5 }];
/// Where the power less 1 is meant.
const CHANGE: [Near; 2] = [
    Near { way: marked(1.0 / 16_777_216.0), terms: 2 },
    Near { way: marked(1.0 / 16384.0), terms: 4 },
];
/// From so many steps the second ones are taken.
const MANY_STEPS: usize = 1 << 14;
/// The square of a number that is less than this is one without rounding.
const EXACT: usize = 1 << 26;

/// What is known after a number of steps.
#[derive(Clone, Copy)]
pub(super) struct Powers {
    /// How many they are, and how many at most.
    pub(super) number: Node,
    most: usize,
    /// The power of the factor, and its derivative by the factor.
    pub(super) power: Pair,
    pub(super) slope: Pair,
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
    pub(super) fn after(&self, emitter: &mut Emitter<'_>, times: usize) -> Powers {
        let before = self.power(emitter, times - 1);
        let power = emitter.product(before, self.value);
        let number = emitter.constant(times as f64);
        let slope = emitter.product(before, number.into());
        Powers { number, most: times, power, slope }
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
    pub(super) fn after_count(&self, emitter: &mut Emitter<'_>, count: Node, most: u32) -> Powers {
        let (zero, one) = (emitter.constant(0.0), emitter.constant(1.0));
        let minus_one = emitter.constant(-1.0);
        // If there are no steps, no digit of that is one.
        let before = emitter.apply(Op::Add, &[count, minus_one]);
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
        let one: Pair = one.into();
        let before = match after[..] {
            [.., high, low] => Pair { high, low: Some(low) },
            _ => one,
        };
        // The other numbers are those of no steps because the power and the count are.
        let is_any = emitter.apply(Op::Gt, &[count, zero]);
        let last = chosen(emitter, is_any, self.value, one);
        let power = emitter.product(before, last);
        let slope = emitter.product(before, count.into());
        Powers { number: count, most: most as usize, power, slope }
    }

    /// The power less 1.
    pub(super) fn change(&self, emitter: &mut Emitter<'_>, powers: &Powers) -> Pair {
        let (is_far, limits) = self.is_far(emitter, powers, powers.number, &CHANGE);
        let far = |emitter: &mut Emitter<'_>| {
            let less = emitter.number(-1.0, 0.0);
            normal_sum(emitter, powers.power, less)
        };
        let near = |emitter: &mut Emitter<'_>| self.near_change(emitter, powers, limits);
        either(emitter, is_far, far, near)
    }

    /// Whether the power may be told from 1, and what to multiply a way by: the power if
    /// so, otherwise the power less 1.
    pub(super) fn power_or_change(
        &self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
    ) -> (Whether, Pair) {
        let (is_far, limits) = self.is_far(emitter, powers, powers.number, &CHANGE);
        let near = match is_far.may_be(false) {
            true => self.near_change(emitter, powers, limits),
            false => powers.power,
        };
        (is_far, is_far.either(emitter, powers.power, near))
    }

    fn near_change(&self, emitter: &mut Emitter<'_>, powers: &Powers, limits: &Near) -> Pair {
        let near = self.series(emitter, powers, 0, limits);
        emitter.product(near, self.less_one)
    }

    /// The sum of the powers before.
    pub(super) fn sum(&self, emitter: &mut Emitter<'_>, powers: &Powers) -> Pair {
        let (is_far, limits) = self.is_sum_far(emitter, powers);
        let far = |emitter: &mut Emitter<'_>| {
            let inverse = self.inverse(emitter, is_far);
            let less = emitter.number(-1.0, 0.0);
            let top = normal_sum(emitter, powers.power, less);
            emitter.product(top, inverse)
        };
        let near = |emitter: &mut Emitter<'_>| self.series(emitter, powers, 0, limits);
        either(emitter, is_far, far, near)
    }

    /// The derivative of that by the factor.
    pub(super) fn sum_slope(&self, emitter: &mut Emitter<'_>, powers: &Powers, sum: Pair) -> Pair {
        let (is_far, limits) = self.is_sum_far(emitter, powers);
        let far = |emitter: &mut Emitter<'_>| {
            let inverse = self.inverse(emitter, is_far);
            let less = emitter.number(-1.0, 0.0);
            let negative = emitter.product(sum, less);
            let top = normal_sum(emitter, powers.slope, negative);
            emitter.product(top, inverse)
        };
        let near = |emitter: &mut Emitter<'_>| self.series(emitter, powers, 1, limits);
        either(emitter, is_far, far, near)
    }

    /// The inverse of the factor less 1; finite where it is not taken, so that no
    /// derivative of that is more than nothing.
    fn inverse(&self, emitter: &mut Emitter<'_>, is_far: Whether) -> Pair {
        let one = emitter.number(1.0, 0.0);
        let high = is_far.either(emitter, self.less_one.high.into(), one).high;
        inverse(emitter, Pair { high, low: self.less_one.low })
    }

    /// The sum of one power is near whatever the factor is: it is 1, and what rounding
    /// leaves of that in a fraction would be a slope. For factors beyond 10⁶⁰ it is no number.
    fn is_sum_far(&self, emitter: &mut Emitter<'_>, powers: &Powers) -> (Whether, &'static Near) {
        let minus_one = emitter.constant(-1.0);
        let further = emitter.apply(Op::Add, &[powers.number, minus_one]);
        self.is_far(emitter, powers, further, &SUM)
    }

    fn is_far<'a>(
        &self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
        steps: Node,
        [few, many]: &'a [Near; 2],
    ) -> (Whether, &'a Near) {
        let limits = if powers.most < MANY_STEPS { few } else { many };
        if emitter.value(steps) == Some(0.0) {
            return (Whether::Known(false), limits);
        }
        let way = emitter.apply(Op::Mul, &[self.less_one.high, steps]);
        (is_beyond(emitter, way, limits.way), limits)
    }

    /// Σ_k C(n, k + 1)·(a - 1)ᵏ for n steps, if `order` is 0, or its derivative. The terms
    /// behind the first are so small that rounding does not matter.
    fn series(
        &self,
        emitter: &mut Emitter<'_>,
        powers: &Powers,
        order: u32,
        limits: &Near,
    ) -> Pair {
        let number = powers.number;
        let way = emitter.apply(Op::Mul, &[self.less_one.high, number]);
        let mut rest = None;
        for term in (order..limits.terms + order).rev() {
            let k = f64::from(term);
            let ratio = match order {
                0 => 1.0 / (k + 2.0),
                _ => (k + 1.0) / (k * (k + 2.0)),
            };
            // (n - k - 1)·(a - 1)
            let less = emitter.constant(-k - 1.0);
            let scaled = match emitter.value(number) {
                Some(number) => {
                    let left = emitter.constant((number - k - 1.0) * ratio);
                    emitter.apply(Op::Mul, &[left, self.less_one.high])
                }
                None => {
                    let left = emitter.apply(Op::MulAdd, &[self.less_one.high, less, way]);
                    let ratio = emitter.constant(ratio);
                    emitter.apply(Op::Mul, &[left, ratio])
                }
            };
            rest = Some(match rest {
                Some(rest) => emitter.apply(Op::MulAdd, &[scaled, rest, scaled]),
                None => scaled,
            });
        }
        let rest = rest.unwrap_or_else(|| emitter.constant(0.0));
        let first: Pair = match order {
            0 => number.into(),
            _ => {
                let minus_one = emitter.constant(-1.0);
                let other = emitter.apply(Op::Add, &[number, minus_one]);
                let half = emitter.constant(0.5);
                let half = emitter.apply(Op::Mul, &[number, half]);
                match powers.most < EXACT {
                    true => emitter.apply(Op::Mul, &[half, other]).into(),
                    false => emitter.product(half.into(), other.into()),
                }
            }
        };
        let low = match first.low {
            Some(low) => emitter.apply(Op::MulAdd, &[first.high, rest, low]),
            None => emitter.apply(Op::Mul, &[first.high, rest]),
        };
        Pair { high: first.high, low: Some(low) }
    }
}

/// What `far` or `near` comes to.
fn either(
    emitter: &mut Emitter<'_>,
    is_far: Whether,
    far: impl FnOnce(&mut Emitter<'_>) -> Pair,
    near: impl FnOnce(&mut Emitter<'_>) -> Pair,
) -> Pair {
    let zero = emitter.number(0.0, 0.0);
    let far = if is_far.may_be(true) { far(emitter) } else { zero };
    let near = if is_far.may_be(false) { near(emitter) } else { zero };
    let number = is_far.either(emitter, far, near);
    emitter.normal(number)
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
