//! Exponentials of the iteration number, as exp(−k·i): powers of exp(−k), which is computed
//! with twice the digits. Its error counts as often as it is multiplied.

use super::binomials::{Polynomial, Rounded};
use super::emit::{Emitter, Told};
use super::form::{Affine, Coefficient, Form, Forms, NONLINEAR};
use super::rounded::ADD_UP;
use super::slopes::Parts;
use crate::phi::double::Double;
use crate::phi::notation::Brief;
use crate::phi::pair::{Pair, Pairs};

/// The exponent is halved so often before its series is added up.
const HALVINGS: i32 = 16;
/// Of a number below 2⁻⁶ the next term is none of the digits of a pair.
const TERMS: usize = 14;

impl Forms<'_, '_> {
    /// The exponential of `exponent`, if that grows in even steps.
    pub(super) fn exponential(&mut self, exponent: &Form) -> Result<Form, &'static str> {
        let (Some(_), Form::Affine(exponent)) = (&self.powers, exponent) else {
            return Err(NONLINEAR);
        };
        let Ok(Coefficient::Polynomial(polynomial)) = self.without_states(exponent) else {
            return Err(NONLINEAR);
        };
        if polynomial.rounded == Rounded::Anywhere {
            return Err(ADD_UP);
        }
        self.power_of_e(&polynomial).ok_or(NONLINEAR)
    }

    /// exp(`exponent`), if that grows in even steps.
    fn power_of_e(&mut self, exponent: &Polynomial) -> Option<Form> {
        let (first, step) = match &exponent.parts[..] {
            [first, Some(step)] => (*first, *step),
            _ => return None,
        };
        let factor = exponential(self.emitter, step)?;
        let before = match first {
            None => self.emitter.number(1.0, 0.0),
            Some(first) if first == step => factor,
            Some(first) => {
                let before = exponential(self.emitter, first)?;
                // Where it has vanished or overflown others may make up for that.
                self.emitter.require_size(before.high, false);
                self.emitter.require_size(before.high, true);
                before
            }
        };
        let is_rounded = exponent.rounded != Rounded::Not;
        if is_rounded {
            /// The largest exponentials of a sum are those near zero, or of small exponents.
            /// Where these are large so are their errors.
            const MOST_GROWTH: f64 = 4.0;
            let most = (MOST_GROWTH / self.times as f64).exp();
            self.emitter.require_below(factor.high, most);
        }
        let base = self.base_of_exponential(step, factor, is_rounded)?;
        let affine: Affine = [(base, Coefficient::Fixed(before))].into();
        Some(Form::Affine(affine))
    }
}

/// exp(x), and its derivatives.
fn exponential(emitter: &mut Emitter<'_>, x: Pair) -> Option<Pair> {
    let parts = Parts::of(emitter, &[x])?;
    let number = parts.numbers(emitter)[&x];
    let scale = emitter.number(f64::from(-HALVINGS).exp2(), 0.0);
    let small = emitter.product(number, scale);
    let small = emitter.normal(small);
    let mut coefficients = vec![Double::from(1.0)];
    for k in 1..TERMS {
        coefficients.push(coefficients[k - 1] / (k as f64).into());
    }
    let mut power = emitter.number(0.0, 0.0);
    for coefficient in coefficients.into_iter().rev() {
        let product = emitter.product(power, small);
        let coefficient = emitter.number(coefficient.high, coefficient.low);
        let sum = emitter.sum(Some(product), Some(coefficient))?;
        power = emitter.normal(sum);
    }
    for _ in 0..HALVINGS {
        let square = emitter.product(power, power);
        power = emitter.normal(square);
    }
    let mut slopes = Vec::new();
    for leaf in parts.leaves() {
        if let Some(&slope) = parts.slopes(emitter, leaf).get(&x) {
            let slope = emitter.product(slope, power);
            slopes.push((leaf, emitter.normal(slope)));
        }
    }
    let text = Brief::new(emitter.graph).node(x.high);
    let text = if text.contains(' ') { format!("e^({text})") } else { format!("e^{text}") };
    emitter.tell(power, Told { slopes, text, factors: None });
    Some(power)
}
