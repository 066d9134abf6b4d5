//! Powers whose exponents are integers in even steps, as xⁱ and (1+y)⁻ⁱ: numbers of the
//! state, which an iteration multiplies by the power of the step.
//!
//! Where exponents go down to zero, as in Σ xⁿ⁻ⁱ, the loop is gone through backwards, if all
//! that it does is to add up: so no power is the quotient of two that have vanished.

use super::binomials::turned;
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Form, Forms, Rows};
use crate::phi::notation::Brief;
use crate::phi::pair::{How, Pair, Pairs};
use crate::ssa::Node;

/// From here on numbers of the state are powers: no loop carries so many others.
pub(super) const POWERS: usize = 1 << 20;

/// Neither first exponents nor steps are larger: such powers are made of products.
const MOST_EXPONENT: f64 = 64.0;

const MIXED: &str = "its powers go down, and it does more than to add them up";

/// How deep products are looked into to be inverted.
const MOST_FACTORS: usize = 12;

/// A power that starts at 1.
struct Power {
    of: Of,
    /// What it is multiplied by in each iteration.
    factor: Pair,
    /// Whether the program rounds exponents that are in even steps here.
    is_rounded: bool,
}

/// What a power is of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// A node to the power of this times the iteration number.
    Node(Node, i32),
    /// The exponential of this times the iteration number.
    Exponential(Pair),
}

/// The powers that are numbers of the state.
#[derive(Default)]
pub(super) struct Powers {
    all: Vec<Power>,
    /// Whether some grow from the first iteration to the last, and some the other way.
    forwards: bool,
    backwards: bool,
}

impl Forms<'_, '_> {
    /// `of` to the power of `exponents`, if these are such that no power is made of a
    /// larger one: that might have vanished.
    pub(super) fn power(&mut self, of: Node, exponents: &[f64]) -> Option<Form> {
        let (&first, &last) = (exponents.first()?, exponents.last()?);
        let step = exponents.get(1).map_or(first.signum(), |second| second - first);
        let is_even = |(i, &exponent): (usize, &f64)| exponent == first + step * i as f64;
        if step == 0.0 || !exponents.iter().enumerate().all(is_even) {
            return None;
        }
        let grows = |least: f64, step: f64| least == 0.0 || (least > 0.0) == (step > 0.0);
        let powers = self.powers.as_mut()?;
        let (least, step) = match (grows(first, step), grows(last, -step)) {
            (true, _) => {
                powers.forwards = true;
                (first, step)
            }
            (false, true) => {
                powers.backwards = true;
                (last, -step)
            }
            (false, false) => return None,
        };
        let is_small = |number: f64| number.fract() == 0.0 && number.abs() <= MOST_EXPONENT;
        if !is_small(least) || !is_small(step) {
            return None;
        }
        let before = powered(self.emitter, of, least as i32);
        let base = self.base_of(of, step as i32)?;
        Some(Form::Affine([(base, Coefficient::Fixed(before))].into()))
    }

    /// Turns the iterations round that `rows` tell of, if powers ask for that; `is_end` says
    /// that nothing is wanted but what comes out in the end.
    pub(super) fn turn(&mut self, rows: &mut Rows, is_end: bool) -> Result<(), &'static str> {
        if self.powers.as_ref().is_none_or(|powers| !powers.backwards) {
            return Ok(());
        }
        let one = self.emitter.number(1.0, 0.0);
        let is_sum = |(&state, row): (&usize, &Affine)| {
            let own = row.get(&Base::State(state));
            let is_one = matches!(own, Some(Coefficient::Fixed(pair)) if *pair == one);
            let mut others = row.keys().filter(|&&base| base != Base::State(state));
            is_one && others.all(|base| !matches!(base, Base::State(other) if *other < POWERS))
        };
        let is_mixed = self.powers.as_ref().is_some_and(|powers| powers.forwards);
        if !is_end || is_mixed || !rows.iter().all(is_sum) {
            return Err(MIXED);
        }
        for coefficient in rows.values_mut().flat_map(|row| row.values_mut()) {
            match coefficient {
                Coefficient::Fixed(_) => {}
                Coefficient::Table(table) => {
                    *coefficient = Coefficient::Table(table.iter().rev().copied().collect());
                }
                Coefficient::Polynomial(polynomial) => {
                    *polynomial = turned(self.emitter, polynomial, self.times - 1);
                }
            }
        }
        Ok(())
    }

    /// The number of the state that is `of` to the power of `step` times the iteration.
    fn base_of(&mut self, of: Node, step: i32) -> Option<Base> {
        let factor = powered(self.emitter, of, step);
        self.base(Power { of: Of::Node(of, step), factor, is_rounded: false })
    }

    /// The number of the state that is the exponential of `step` times the iteration, and
    /// that of `step` is `factor`.
    pub(super) fn base_of_exponential(
        &mut self,
        step: Pair,
        factor: Pair,
        is_rounded: bool,
    ) -> Option<Base> {
        self.powers.as_mut()?.forwards = true;
        self.base(Power { of: Of::Exponential(step), factor, is_rounded })
    }

    /// Whether number `state` is an exponential whose exponents the program rounds.
    pub(super) fn is_rounded_exponential(&self, state: usize) -> bool {
        let number = state.checked_sub(POWERS);
        let power = number.and_then(|number| self.powers.as_ref()?.all.get(number));
        power.is_some_and(|power| power.is_rounded)
    }

    fn base(&mut self, power: Power) -> Option<Base> {
        let all = &mut self.powers.as_mut()?.all;
        let number = match all.iter().position(|other| other.of == power.of) {
            Some(number) => {
                all[number].is_rounded |= power.is_rounded;
                number
            }
            None => {
                all.push(power);
                all.len() - 1
            }
        };
        Some(Base::State(POWERS + number))
    }

    /// The power that number `state` is in iteration i, for people.
    pub(super) fn power_text(&self, state: usize) -> Option<String> {
        let power = self.powers.as_ref()?.all.get(state.checked_sub(POWERS)?)?;
        let (of, step) = match power.of {
            Of::Node(of, step) => (of, step),
            Of::Exponential(step) => {
                let step = Brief::new(self.emitter.graph).node(step.high);
                let step = if step.contains(' ') { format!("({step})") } else { step };
                return Some(format!("e^({step}·i)"));
            }
        };
        let of = Brief::new(self.emitter.graph).node(of);
        let of = if of.contains(' ') { format!("({of})") } else { of };
        Some(match step {
            1 => format!("{of}^i"),
            -1 => format!("{of}^(−i)"),
            step => format!("{of}^({}·i)", step.to_string().replace('-', "−")),
        })
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
        let power = self.powers.as_ref()?.all.get(state.checked_sub(POWERS)?)?;
        let Of::Node(of, step) = power.of else { return None };
        let step = step.checked_neg()?;
        let inverse = inverse(self.emitter, *pair, MOST_FACTORS)?;
        Some([(self.base_of(of, step)?, Coefficient::Fixed(inverse))].into())
    }

    /// Adds what powers are next to `rows`, of those that these depend on.
    pub(super) fn add_powers(&self, rows: &mut Rows) {
        let powers = self.powers.iter().flat_map(|powers| &powers.all);
        for (number, power) in powers.enumerate() {
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
