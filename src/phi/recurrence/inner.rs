//! A single number that an iteration of a loop in another loop multiplies and adds to: what
//! it comes to is written so that nothing cancels, neither in its value nor in its
//! derivatives, which are found by a sweep.
//!
//! Let y become a·y + b, n times, and d = b - (1 - a)·y be the first change; the
//! change is multiplied by a in each iteration. Where aⁿ is not small, y + d·Σaᵏ is a
//! good form: at a fixed point d is zero, and so is all that comes of it, however
//! large the powers are. Where aⁿ is small, 1 - a is not, and (b - aⁿ·d) / (1 - a) is
//! a good form: it tells apart the fixed point and what is left of the way to it.
//!
//! A factor that both b and 1 - a have, such as the rate of gradient descent, does not
//! move the fixed point. It is not in the second form at all, and the derivative by it
//! is no difference of large numbers.

use super::doubling::over_digits;
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Forms};
use super::power::{LAST, System, dot};
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// Where the n-th power is as large as this, or larger, the first form is taken.
const LARGE: f64 = 0.4;

/// The steps of a number: a - 1, and what is added.
struct Steps {
    less_one: Pair,
    /// The products that are added up.
    added: Vec<(Pair, Node)>,
    /// What all of the above is to be multiplied by.
    shared: Option<Pair>,
}

/// A number on its way.
struct Way {
    factor: Pair,
    first: Node,
    /// The first change, and what each change is multiplied by to be added.
    change: Node,
    weight: Node,
    /// What is added in a step, and a - 1, both without the factor that they share.
    total: Node,
    less_one: Node,
}

/// The number of `system`, which has one, after `times` steps; `None` if nothing is
/// added, or nothing multiplied.
pub(super) fn changed(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
) -> Option<Vec<Node>> {
    let way = begin(forms, system)?;
    let known = forms.number(way.factor).map(|number| number.rounded());
    let emitter = &mut *forms.emitter;
    let (mut sum, mut change) = (way.weight, way.change);
    let (mut power, mut moved, mut left) = (way.factor, way.first, times);
    loop {
        let last = left < 2 * LAST;
        for _ in 0..if last { left } else { left & 1 } {
            moved = dot(emitter, &[(sum.into(), change)], Some(moved));
            change = dot(emitter, &[(power, change)], None);
        }
        if last {
            break;
        }
        left >>= 1;
        sum = match power == way.factor {
            true => twice(emitter, sum, power),
            false => dot(emitter, &[(power, sum)], Some(sum)),
        };
        let square = emitter.product(power, power);
        power = emitter.normal(square);
    }
    let bound = LARGE.powf(1.0 / times as f64);
    let node = match known {
        Some(factor) if factor.abs() >= bound => moved,
        Some(_) => way.settled(emitter, change, None),
        None => {
            let bound = emitter.constant(bound);
            way.either(emitter, moved, change, bound)
        }
    };
    Some(vec![node])
}

/// The same after `count` steps, of which there are `most` at most.
pub(super) fn changed_by(
    forms: &mut Forms<'_, '_>,
    system: &System,
    count: Node,
    most: u32,
) -> Option<Node> {
    let way = begin(forms, system)?;
    let emitter = &mut *forms.emitter;
    let low = way.factor.low.unwrap_or(emitter.constant(0.0));
    let firsts = vec![way.first, way.change, way.weight, way.factor.high, low];
    let after = over_digits(emitter, count, most, firsts, 2, |body, odd, carried| {
        let &[moved, change, sum, high, low] = carried else { return Vec::new() };
        let power = Pair { high, low: Some(low) };
        let next_moved = dot(body, &[(sum.into(), change)], Some(moved));
        let next_change = dot(body, &[(power, change)], None);
        let next_moved = body.apply(Op::Select, &[odd, next_moved, moved]);
        let next_change = body.apply(Op::Select, &[odd, next_change, change]);
        let next_sum = twice(body, sum, power);
        let square = body.product(power, power);
        let square = body.normal(square);
        let low = square.low.unwrap_or(body.constant(0.0));
        vec![next_moved, next_change, next_sum, square.high, low]
    });
    let &[moved, change] = &after[..] else { return None };
    // LARGE^(1/count); for no steps that is 0, and all is as it was.
    let log = emitter.constant(LARGE.ln());
    let exponent = emitter.apply(Op::Div, &[log, count]);
    let bound = emitter.apply(Op::Exp, &[exponent]);
    Some(way.either(emitter, moved, change, bound))
}

/// The weight of the sum of twice as many powers: multiplied by 1 + a, 1 + a², 1 + a⁴,
/// …, of which only in the first anything can cancel.
fn twice(emitter: &mut Emitter<'_>, sum: Node, power: Pair) -> Node {
    let one = emitter.constant(1.0);
    let high = emitter.apply(Op::Add, &[one, power.high]);
    let both = emitter.rounded(Pair { high, low: power.low });
    emitter.apply(Op::Mul, &[both, sum])
}

/// How the number of `system` sets out; `None` if there are more of them, if nothing is
/// added, or nothing multiplied.
fn begin(forms: &mut Forms<'_, '_>, system: &System) -> Option<Way> {
    let ([row], &[state], &[first]) = (&system.rows[..], &system.states[..], &system.firsts[..])
    else {
        return None;
    };
    let Some(&Coefficient::Fixed(factor)) = row.get(&Base::State(state)) else { return None };
    let known = forms.number(factor).map(|number| number.rounded());
    if row.len() == 1 || known == Some(1.0) || known == Some(0.0) {
        return None;
    }
    let steps = steps(forms, row, factor)?;
    let emitter = &mut *forms.emitter;
    let mut total = None;
    for &(coefficient, node) in &steps.added {
        let product = emitter.product(coefficient, node.into());
        total = emitter.sum(total, Some(product));
    }
    let total = total?;
    let product = emitter.product(steps.less_one, first.into());
    let change = emitter.sum(Some(total), Some(product))?;
    let change = emitter.rounded(change);
    let weight = match steps.shared {
        Some(shared) => emitter.rounded(shared),
        None => emitter.constant(1.0),
    };
    let total = emitter.rounded(total);
    let less_one = emitter.rounded(steps.less_one);
    Some(Way { factor, first, change, weight, total, less_one })
}

impl Way {
    /// The form for small powers, where `change` is what the last change was multiplied
    /// to. Where `is_large` is not zero it is finite, and not taken.
    fn settled(&self, emitter: &mut Emitter<'_>, change: Node, is_large: Option<Node>) -> Node {
        let left = emitter.apply(Op::Sub, &[self.total, change]);
        let mut divisor = emitter.apply(Op::Neg, &[self.less_one]);
        if let (Some(is_large), None) = (is_large, emitter.value(divisor)) {
            let one = emitter.constant(1.0);
            divisor = emitter.apply(Op::Select, &[is_large, one, divisor]);
        }
        match emitter.value(divisor) {
            Some(1.0) => left,
            _ => emitter.apply(Op::Div, &[left, divisor]),
        }
    }

    /// The form for large powers, `moved`, if the factor is as large as `bound`, and else
    /// that for small ones.
    fn either(&self, emitter: &mut Emitter<'_>, moved: Node, change: Node, bound: Node) -> Node {
        let size = emitter.apply(Op::Abs, &[self.factor.high]);
        let is_large = emitter.apply(Op::Ge, &[size, bound]);
        let settled = self.settled(emitter, change, Some(is_large));
        emitter.apply(Op::Select, &[is_large, moved, settled])
    }
}

/// What `row` says of a number that is multiplied by `factor`.
fn steps(forms: &mut Forms<'_, '_>, row: &Affine, factor: Pair) -> Option<Steps> {
    let less_one = match forms.beyond_one.get(&factor) {
        Some(&less_one) => less_one,
        None => {
            let minus_one = forms.emitter.number(-1.0, 0.0);
            forms.emitter.sum(Some(factor), Some(minus_one))?
        }
    };
    let mut added = Vec::new();
    for (&base, coefficient) in row {
        match (base, coefficient) {
            (Base::Node(node), &Coefficient::Fixed(pair)) => added.push((pair, node)),
            (Base::Node(_), Coefficient::Table(_)) => return None,
            (Base::State(_), _) => {}
        }
    }
    let one = forms.emitter.constant(1.0);
    let mut steps = Steps { less_one, added, shared: None };
    // The factor that a product got last is the first to be taken out.
    while let Some(&(rest, shared)) = forms.products.get(&steps.less_one) {
        let without = |&(pair, node): &(Pair, Node)| match forms.products.get(&pair) {
            Some(&(rest, factor)) if factor == shared => Some((rest, node)),
            _ => (node == shared).then_some((pair, one)),
        };
        let Some(added) = steps.added.iter().map(without).collect() else { break };
        let product = steps.shared.map(|before| forms.emitter.product(before, shared.into()));
        steps = Steps { less_one: rest, added, shared: Some(product.unwrap_or(shared.into())) };
    }
    Some(steps)
}
