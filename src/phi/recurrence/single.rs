//! A single number that an iteration multiplies and adds to: what it comes to, and its
//! derivatives, with twice the digits.
//!
//! Let y become a·y + b, n times. With m = n - 1 and S = Σ_{j<n} aʲ the end and its
//! derivatives are
//!
//! ```text
//! y = aⁿ·p + b·S,    ∂y/∂p = aⁿ,    ∂y/∂b = S,    ∂y/∂a = n·aᵐ·p + b·S',
//! S = (aⁿ - 1) / (a - 1),    S' = (n·aᵐ - S) / (a - 1).
//! ```
//!
//! Of these only the power takes many steps. Where a is near 1, both fractions lose digits:
//! there S and S' are the first terms of their series in a - 1, which are binomial
//! coefficients. Where |a| is larger than 1 the end is p + d·S, where d is the first change:
//! at a fixed point that is zero, and so is all that comes of it, however large the powers
//! are.
//!
//! A factor g that both b = g·β and a - 1 = g·l have, such as the rate of gradient descent,
//! does not move the fixed point: ∂y/∂g is (β + l·p)·n·aᵐ, which is no difference of large
//! numbers.

use std::collections::BTreeSet;

use super::doubling::{digits, loop_of};
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Forms};
use super::power::System;
use super::slopes::{Totals, chosen, inverse, sum_of_products};
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// So many nodes may a number be made of.
const MOST_LEAVES: usize = 64;
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

const MOST: &str = "it is made of too many values";

/// What is known after a number of steps: the power of the factor, and the sum of those
/// before it.
#[derive(Clone, Copy)]
struct Known {
    power: Pair,
    sum: Pair,
    /// Their derivatives by the factor.
    power_slope: Pair,
    sum_slope: Pair,
}

/// Whether something is so.
#[derive(Clone, Copy)]
enum Whether {
    Known(bool),
    Found(Node),
}

impl Whether {
    fn either(self, emitter: &mut Emitter<'_>, then: Pair, otherwise: Pair) -> Pair {
        match self {
            Whether::Known(true) => then,
            Whether::Known(false) => otherwise,
            Whether::Found(condition) => chosen(emitter, condition, then, otherwise),
        }
    }

    fn may_be(self, what: bool) -> bool {
        !matches!(self, Whether::Known(known) if known != what)
    }
}

/// A number before its first step.
struct Start {
    first: Terms,
    step: Step,
    /// What it is multiplied by, that less 1, and whether it is larger than 1.
    factor: Pair,
    less_one: Pair,
    is_large: Whether,
    has_added: bool,
}

/// The number of `system`, which has one, after `times` steps; `None` if it has more.
pub(super) fn changed(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
) -> Option<Result<Vec<Node>, &'static str>> {
    let row = row_of(system)?;
    let before = forms.emitter.items.len();
    let emitter = &mut *forms.emitter;
    let Some(start) = Start::of(emitter, system, row) else { return Some(Err(MOST)) };
    let node = match start.has_added {
        true => {
            let known = start.after(emitter, times);
            start.end(emitter, &known)
        }
        false => start.multiplied(emitter, times),
    };
    emitter.derived += emitter.items.len() - before;
    Some(Ok(vec![node]))
}

/// The same after `count` steps, of which there are `most` at most.
pub(super) fn changed_by(
    forms: &mut Forms<'_, '_>,
    system: &System,
    count: Node,
    most: u32,
) -> Option<Result<Node, &'static str>> {
    let row = row_of(system)?;
    let emitter = &mut *forms.emitter;
    let Some(start) = Start::of(emitter, system, row) else { return Some(Err(MOST)) };
    let known = start.after_count(emitter, count, most);
    Some(Ok(start.end(emitter, &known)))
}

/// What a step makes of the only number of `system`, if its coefficients do not change.
fn row_of(system: &System) -> Option<&Affine> {
    let [row] = &system.rows[..] else { return None };
    let is_fixed = |coefficient: &Coefficient| matches!(coefficient, Coefficient::Fixed(_));
    row.values().all(is_fixed).then_some(row)
}

impl Start {
    fn of(emitter: &mut Emitter<'_>, system: &System, row: &Affine) -> Option<Start> {
        let (mut added, mut less_one) = (Vec::new(), Terms::number((-1.0).into()));
        for (&base, coefficient) in row {
            let &Coefficient::Fixed(pair) = coefficient else { return None };
            let terms = Terms::of(emitter, pair)?;
            match base {
                Base::State(_) => less_one = less_one.plus(&terms),
                Base::Node(node) => {
                    let whole = terms.times(&Terms::of_node(emitter.graph, node));
                    added.push(whole.or_else(|| terms.times(&Terms::node(node)))?);
                }
            }
        }
        let first = Terms::of_node(emitter.graph, *system.firsts.first()?);
        let factor = less_one.plus(&Terms::number(1.0.into()));
        let zero = emitter.number(0.0, 0.0);
        let factor = factor.emitted(emitter).unwrap_or(zero);
        let step = Step::of(less_one.clone(), added);
        let less_one = less_one.emitted(emitter).unwrap_or(zero);
        let has_added = !step.added.is_zero();
        let is_large = match has_added {
            true => is_beyond(emitter, factor.high, marked(1.0)),
            false => Whether::Known(false),
        };
        let start = Start { first, step, factor, less_one, is_large, has_added };
        (start.leaves().len() <= MOST_LEAVES).then_some(start)
    }

    /// The nodes that all of it is made of.
    fn leaves(&self) -> BTreeSet<Node> {
        let parts = [&self.first, &self.step.less_one, &self.step.added];
        parts.into_iter().chain(&self.step.shared).flat_map(Terms::nodes).collect()
    }

    /// What is known after `times` steps.
    fn after(&self, emitter: &mut Emitter<'_>, times: usize) -> Known {
        let power = self.power(emitter, times - 1);
        let number = emitter.constant(times as f64);
        self.one_more(emitter, power, number, &Near::of(times))
    }

    /// The power of the factor.
    fn power(&self, emitter: &mut Emitter<'_>, times: usize) -> Pair {
        let Some(digits) = times.checked_ilog2() else { return emitter.number(1.0, 0.0) };
        let mut power = self.factor;
        for digit in (0..digits).rev() {
            power = emitter.product(power, power);
            if times >> digit & 1 == 1 {
                power = product(emitter, power, self.factor);
            } else if digit % ROUGH == 0 {
                power = emitter.normal(power);
            }
        }
        power
    }

    /// What is known after `count` steps: a loop goes through the digits of that number
    /// less one, from the first one on.
    fn after_count(&self, emitter: &mut Emitter<'_>, count: Node, most: u32) -> Known {
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
            let stepped = product(body, doubled, self.factor);
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
        let power = product(emitter, before, self.factor);
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

    /// The number, with its derivatives.
    fn end(&self, emitter: &mut Emitter<'_>, known: &Known) -> Node {
        let (zero, one) = (emitter.number(0.0, 0.0), emitter.number(1.0, 0.0));
        let emitted =
            |emitter: &mut Emitter<'_>, terms: &Terms| terms.emitted(emitter).unwrap_or(zero);
        let first = emitted(emitter, &self.first);
        let (less_one, added) =
            (emitted(emitter, &self.step.less_one), emitted(emitter, &self.step.added));
        let shared: Vec<Pair> =
            self.step.shared.iter().map(|factor| emitted(emitter, factor)).collect();
        let whole = |emitter: &mut Emitter<'_>, pair: Pair, without: Option<usize>| {
            let others = shared.iter().enumerate().filter(|&(at, _)| Some(at) != without);
            others.fold(pair, |whole, (_, &factor)| product(emitter, whole, factor))
        };
        // The first change, without what is shared.
        let change = sum_of(emitter, &[(less_one, first), (added, one)]);
        let large = |emitter: &mut Emitter<'_>, a: Pair, b: Pair| {
            let whole_change = whole(emitter, change, None);
            sum_of(emitter, &[(first, a), (whole_change, b)])
        };
        let small = |emitter: &mut Emitter<'_>, a: Pair, b: Pair| {
            let whole_added = whole(emitter, added, None);
            sum_of(emitter, &[(first, a), (whole_added, b)])
        };
        let either = |emitter: &mut Emitter<'_>, for_large: [Pair; 2], for_small: [Pair; 2]| {
            let zero = emitter.number(0.0, 0.0);
            let then = match self.is_large.may_be(true) {
                true => large(emitter, for_large[0], for_large[1]),
                false => zero,
            };
            let otherwise = match self.is_large.may_be(false) {
                true => small(emitter, for_small[0], for_small[1]),
                false => zero,
            };
            self.is_large.either(emitter, then, otherwise)
        };
        let value = either(emitter, [one, known.sum], [known.power, known.sum]);
        let by_sum = whole(emitter, known.sum, None);
        let leaves = self.leaves();
        let mut parts: Vec<(&Terms, Pair)> =
            vec![(&self.first, known.power), (&self.step.added, by_sum)];
        if !self.step.less_one.nodes().is_empty() {
            let slope =
                either(emitter, [known.sum, known.sum_slope], [known.power_slope, known.sum_slope]);
            parts.push((&self.step.less_one, whole(emitter, slope, None)));
        }
        for (at, factor) in self.step.shared.iter().enumerate() {
            if !factor.nodes().is_empty() {
                let slope = product(emitter, change, known.power_slope);
                parts.push((factor, whole(emitter, slope, Some(at))));
            }
        }
        with_slopes(emitter, value, &leaves, &parts)
    }

    /// The number after `times` steps if nothing is added to it. Half of the power is
    /// applied twice, so that it is in the range of numbers if the result is.
    fn multiplied(&self, emitter: &mut Emitter<'_>, times: usize) -> Node {
        let (zero, one) = (emitter.number(0.0, 0.0), emitter.number(1.0, 0.0));
        let before = times - 1;
        let power = self.power(emitter, before / 2);
        let power = emitter.normal(power);
        let first = self.first.emitted(emitter).unwrap_or(zero);
        let powered = |emitter: &mut Emitter<'_>, number: Pair| {
            let mut after = product(emitter, number, power);
            after = product(emitter, after, power);
            if before & 1 == 1 {
                after = product(emitter, after, self.factor);
            }
            after
        };
        let last = powered(emitter, first);
        let value = product(emitter, last, self.factor);
        let of_power = powered(emitter, one);
        let by_first = product(emitter, of_power, self.factor);
        let number = emitter.number(times as f64, 0.0);
        let by_factor = product(emitter, last, number);
        let mut parts = vec![(&self.first, by_first)];
        let factor = self.factor_terms();
        parts.push((&factor, by_factor));
        with_slopes(emitter, value, &self.leaves(), &parts)
    }

    /// The factor, as far as its derivatives go: 1 more or less.
    fn factor_terms(&self) -> Terms {
        let shared = &self.step.shared;
        shared.iter().fold(self.step.less_one.clone(), |terms, factor| {
            // One of the two is a single term.
            terms.times(factor).unwrap_or_default()
        })
    }
}

/// `value` with its derivatives by `leaves`, where `parts` are what it was computed of and
/// its derivatives by that.
fn with_slopes(
    emitter: &mut Emitter<'_>,
    value: Pair,
    leaves: &BTreeSet<Node>,
    parts: &[(&Terms, Pair)],
) -> Node {
    let mut totals = Totals::default();
    for &leaf in leaves {
        let mut factors = Vec::new();
        for (terms, slope) in parts {
            factors.push((terms.slope(leaf).emitted(emitter), Some(*slope)));
        }
        let total = sum_of_products(emitter, factors, None);
        totals.add(emitter, leaf, total);
    }
    let slopes = totals.rounded(emitter);
    let value = emitter.rounded(value);
    emitter.with_slopes(value, &slopes)
}

fn product(emitter: &mut Emitter<'_>, a: Pair, b: Pair) -> Pair {
    let product = emitter.product(a, b);
    emitter.normal(product)
}

fn normal_sum(emitter: &mut Emitter<'_>, a: Pair, b: Pair) -> Pair {
    let sum = emitter.sum(Some(a), Some(b)).unwrap_or(a);
    emitter.normal(sum)
}

fn sum_of(emitter: &mut Emitter<'_>, factors: &[(Pair, Pair)]) -> Pair {
    let factors = factors.iter().map(|&(a, b)| (Some(a), Some(b)));
    let zero = emitter.number(0.0, 0.0);
    sum_of_products(emitter, factors, None).unwrap_or(zero)
}

/// Whether `number` is larger than `limit`, or less than `-limit`.
fn is_beyond(emitter: &mut Emitter<'_>, number: Node, limit: f64) -> Whether {
    match emitter.value(number) {
        Some(number) => Whether::Known(number.abs() > limit),
        None => {
            let size = emitter.apply(Op::Abs, &[number]);
            let limit = emitter.constant(limit);
            Whether::Found(emitter.apply(Op::Gt, &[size, limit]))
        }
    }
}
