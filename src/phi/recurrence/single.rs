//! A single number that an iteration multiplies and adds to: what it comes to is
//! written so that nothing cancels, neither in its value nor in its derivatives.
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

/// The number of `system`, which has one, after `times` steps; `None` if nothing is
/// added, or nothing multiplied.
pub(super) fn changed(
    forms: &mut Forms<'_, '_>,
    system: &System,
    times: usize,
) -> Option<Vec<Node>> {
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
    let mut change = emitter.rounded(change);
    let mut sum = match steps.shared {
        Some(shared) => emitter.rounded(shared),
        None => emitter.constant(1.0),
    };
    let (mut power, mut moved, mut left) = (factor, first, times);
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
        // Multiplied by 1 + a, 1 + a², 1 + a⁴, …: only in the first of these can
        // anything cancel.
        sum = if power == factor {
            let one = emitter.constant(1.0);
            let high = emitter.apply(Op::Add, &[one, power.high]);
            let both = emitter.rounded(Pair { high, low: power.low });
            emitter.apply(Op::Mul, &[both, sum])
        } else {
            dot(emitter, &[(power, sum)], Some(sum))
        };
        let square = emitter.product(power, power);
        power = emitter.normal(square);
    }
    let bound = LARGE.powf(1.0 / times as f64);
    let settled = |emitter: &mut Emitter<'_>, is_large: Option<Node>| {
        let total = emitter.rounded(total);
        let left = emitter.apply(Op::Sub, &[total, change]);
        let less_one = emitter.rounded(steps.less_one);
        let mut divisor = emitter.apply(Op::Neg, &[less_one]);
        if let (Some(is_large), None) = (is_large, emitter.value(divisor)) {
            // So that it is never zero: what is not taken must be finite, too.
            let one = emitter.constant(1.0);
            divisor = emitter.apply(Op::Select, &[is_large, one, divisor]);
        }
        match emitter.value(divisor) {
            Some(1.0) => left,
            _ => emitter.apply(Op::Div, &[left, divisor]),
        }
    };
    let node = match known {
        Some(factor) if factor.abs() >= bound => moved,
        Some(_) => settled(emitter, None),
        None => {
            let (size, bound) = (emitter.apply(Op::Abs, &[factor.high]), emitter.constant(bound));
            let is_large = emitter.apply(Op::Ge, &[size, bound]);
            let settled = settled(emitter, Some(is_large));
            emitter.apply(Op::Select, &[is_large, moved, settled])
        }
    };
    Some(vec![node])
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
