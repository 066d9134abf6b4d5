//! Powers whose exponents are integers in even steps, as xⁱ and (1+y)⁻ⁱ: numbers of the
//! state, which an iteration multiplies by the power of the step.

use hashbrown::HashMap;

use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Form, Forms};
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::Node;

/// From here on numbers of the state are powers: no loop carries so many others.
pub(super) const POWERS: usize = 1 << 20;

/// Neither first exponents nor steps are larger: such powers are made of products.
const MOST_EXPONENT: f64 = 64.0;

/// How deep products are looked into to be inverted.
const MOST_FACTORS: usize = 12;

/// A power that starts at 1.
pub(super) struct Power {
    of: Node,
    step: i32,
    /// What it is multiplied by in each iteration.
    factor: Pair,
}

impl Forms<'_, '_> {
    /// `of` to the power of `exponents`, if these are such that no power is made of a
    /// larger one: that might have vanished.
    pub(super) fn power(&mut self, of: Node, exponents: &[f64]) -> Option<Form> {
        self.powers.as_ref()?;
        let first = *exponents.first()?;
        let step = exponents.get(1).map_or(1.0, |second| second - first);
        let is_even = |(i, &exponent): (usize, &f64)| exponent == first + step * i as f64;
        let is_small = |number: f64| number.fract() == 0.0 && number.abs() <= MOST_EXPONENT;
        let grows = step > 0.0 && first >= 0.0 || step < 0.0 && first <= 0.0;
        let are_even = exponents.iter().enumerate().all(is_even);
        if !grows || !is_small(first) || !is_small(step) || !are_even {
            return None;
        }
        let (first, step) = (first as i32, step as i32);
        let before = powered(self.emitter, of, first);
        let base = self.base_of(of, step)?;
        Some(Form::Affine([(base, Coefficient::Fixed(before))].into()))
    }

    /// The number of the state that is `of` to the power of `step` times the iteration.
    fn base_of(&mut self, of: Node, step: i32) -> Option<Base> {
        let known = |power: &Power| power.of == of && power.step == step;
        let number = match self.powers.as_ref()?.iter().position(known) {
            Some(number) => number,
            None => {
                let factor = powered(self.emitter, of, step);
                let powers = self.powers.as_mut()?;
                powers.push(Power { of, step, factor });
                powers.len() - 1
            }
        };
        Some(Base::State(POWERS + number))
    }

    /// The inverse of a single power.
    pub(super) fn inverse_power(&mut self, form: &Form) -> Option<Affine> {
        let Form::Affine(affine) = form else { return None };
        let mut all = affine.iter();
        let (Some((&Base::State(state), Coefficient::Fixed(pair))), None) =
            (all.next(), all.next())
        else {
            return None;
        };
        let power = self.powers.as_ref()?.get(state.checked_sub(POWERS)?)?;
        let (of, step) = (power.of, power.step.checked_neg()?);
        let inverse = inverse(self.emitter, *pair, MOST_FACTORS)?;
        Some([(self.base_of(of, step)?, Coefficient::Fixed(inverse))].into())
    }

    /// Adds what powers are next to `rows`, of those that these depend on.
    pub(super) fn add_powers(&self, rows: &mut HashMap<usize, Affine>) {
        for (number, power) in self.powers.iter().flatten().enumerate() {
            let base = Base::State(POWERS + number);
            if rows.values().any(|row| row.contains_key(&base)) {
                let row = [(base, Coefficient::Fixed(power.factor))];
                rows.insert(POWERS + number, row.into());
            }
        }
    }
}

/// The inverse of a product of nodes and their inverses.
fn inverse(emitter: &mut Emitter<'_>, pair: Pair, depth: usize) -> Option<Pair> {
    let depth = depth.checked_sub(1)?;
    let one = emitter.number(1.0, 0.0);
    match emitter.origin(pair) {
        None if pair.low.is_none() => Some(emitter.quotient(one, pair.high)),
        Some((_, How::Product(a, b))) => {
            let (a, b) = (inverse(emitter, a, depth)?, inverse(emitter, b, depth)?);
            Some(emitter.product(a, b))
        }
        Some((_, How::Quotient(a, b))) => {
            let a = inverse(emitter, a, depth)?;
            Some(emitter.product(a, b.into()))
        }
        _ => None,
    }
}

/// `of` to the power `exponent`, as a product with twice the digits.
fn powered(emitter: &mut Emitter<'_>, of: Node, exponent: i32) -> Pair {
    let one = emitter.number(1.0, 0.0);
    let base = if exponent < 0 { emitter.quotient(one, of) } else { of.into() };
    let mut power = one;
    for digit in (0..i32::BITS).rev().filter(|digit| exponent.unsigned_abs() >> digit > 0) {
        if power != one {
            power = emitter.product(power, power);
        }
        if exponent.unsigned_abs() >> digit & 1 == 1 {
            power = if power == one { base } else { emitter.product(power, base) };
        }
    }
    power
}
