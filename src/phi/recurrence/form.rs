//! Affine forms: sums of states, each times a coefficient and a binomial C(i, k) of the iteration
//! number.
//!
//! By Pascal's rule C(i + 1, k) = C(i, k) + C(i, k - 1), so the binomials are states of the system
//! whose coefficients are ones.

use smallvec::SmallVec;

use super::coefficients::Coefficients;
use crate::numeric::Slot;
use crate::phi::reason::RecurrenceReason;

/// The largest k of C(i, k).
pub(in crate::phi) const MAX_DEGREE: u8 = 4;

/// A variable of forms: a state, or the number one, times C(i, degree).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Variable {
    /// The state; `None` is the number one.
    pub(super) state: Option<u32>,
    pub(super) degree: u8,
}

impl Variable {
    /// The number one.
    pub(super) const ONE: Variable = Variable { state: None, degree: 0 };

    pub(super) fn state(state: u32) -> Variable {
        Variable { state: Some(state), degree: 0 }
    }
}

/// A sum of variables times coefficients, sorted by variable, without zero coefficients.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Form(SmallVec<[(Variable, Slot); 4]>);

impl Form {
    /// A variable with the coefficient one.
    pub(super) fn variable(
        variable: Variable,
        coefficients: &mut Coefficients,
    ) -> Result<Form, RecurrenceReason> {
        Ok(Form([(variable, coefficients.constant(1.0)?)].into_iter().collect()))
    }

    /// A form that is the same in all iterations.
    pub(super) fn invariant(slot: Slot) -> Form {
        Form([(Variable::ONE, slot)].into_iter().collect())
    }

    pub(super) fn terms(&self) -> &[(Variable, Slot)] {
        &self.0
    }

    /// The coefficient of an invariant form that is not zero.
    pub(super) fn as_invariant(&self) -> Option<Slot> {
        match self.0[..] {
            [(Variable::ONE, slot)] => Some(slot),
            _ => None,
        }
    }

    /// True if no state occurs in it.
    pub(super) fn is_free_of_states(&self) -> bool {
        self.0.iter().all(|(variable, _)| variable.state.is_none())
    }

    /// The sum of two forms.
    pub(super) fn plus(
        &self,
        other: &Form,
        coefficients: &mut Coefficients,
    ) -> Result<Form, RecurrenceReason> {
        let mut sum = self.clone();
        for &(variable, slot) in &other.0 {
            sum.add_term(variable, slot, coefficients)?;
        }
        Ok(sum)
    }

    /// Adds one term.
    pub(super) fn add_term(
        &mut self,
        variable: Variable,
        slot: Slot,
        coefficients: &mut Coefficients,
    ) -> Result<(), RecurrenceReason> {
        match self.0.binary_search_by_key(&variable, |&(variable, _)| variable) {
            Ok(at) => self.0[at].1 = coefficients.add(self.0[at].1, slot)?,
            Err(at) if coefficients.number(slot) != Some(0.0) => {
                self.0.insert(at, (variable, slot))
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// The form with each coefficient mapped.
    pub(super) fn map(
        &self,
        mut of: impl FnMut(Slot) -> Result<Option<Slot>, RecurrenceReason>,
    ) -> Result<Form, RecurrenceReason> {
        let mut mapped = SmallVec::new();
        for &(variable, slot) in &self.0 {
            mapped.extend(of(slot)?.map(|slot| (variable, slot)));
        }
        Ok(Form(mapped))
    }

    /// The product of two forms, one of which is free of states.
    pub(super) fn times(
        &self,
        other: &Form,
        coefficients: &mut Coefficients,
    ) -> Result<Form, RecurrenceReason> {
        let (states, factor) = match (self.is_free_of_states(), other.is_free_of_states()) {
            (_, true) => (self, other),
            (true, false) => (other, self),
            (false, false) => return Err(RecurrenceReason::Product),
        };
        let mut product = Form::default();
        for &(Variable { degree: a, .. }, factor) in &factor.0 {
            for &(Variable { state, degree: b }, slot) in &states.0 {
                let Some(slot) = coefficients.mul(factor, slot)? else { continue };
                for (degree, count) in binomial_product(a, b)? {
                    let count = coefficients.constant(count)?;
                    let Some(slot) = coefficients.mul(count, slot)? else { continue };
                    product.add_term(Variable { state, degree }, slot, coefficients)?;
                }
            }
        }
        Ok(product)
    }
}

/// C(i, a)·C(i, b) as a sum of binomials C(i, degree): pairs of degree and coefficient.
fn binomial_product(a: u8, b: u8) -> Result<SmallVec<[(u8, f64); 4]>, RecurrenceReason> {
    if a + b > MAX_DEGREE {
        return Err(RecurrenceReason::Degree);
    }
    let factorial = |n: u8| (1..=n).map(f64::from).product::<f64>();
    let term = |k: u8| {
        let count = factorial(a + b - k) / (factorial(k) * factorial(a - k) * factorial(b - k));
        (a + b - k, count)
    };
    Ok((0..=a.min(b)).map(term).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_binomials_are_sums_of_binomials() {
        let binomial = |n: u64, k: u8| {
            (0..u64::from(k)).fold(1.0, |all, j| all * (n as f64 - j as f64) / (j + 1) as f64)
        };
        for (a, b) in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 1)] {
            for n in 0..8 {
                let terms = binomial_product(a, b).unwrap();
                let sum: f64 = terms.iter().map(|&(k, c)| c * binomial(n, k)).sum();
                assert_eq!(sum, binomial(n, a) * binomial(n, b), "{a} {b} {n}");
            }
        }
        assert!(binomial_product(4, 1).is_err());
    }
}
