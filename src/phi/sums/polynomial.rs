//! Polynomials of loop invariants, with data as coefficients.

use smallvec::SmallVec;

use super::data::{Data, Datum};
use crate::op::Op;
use crate::phi::reason::SumReason;

/// The largest number of variables of a polynomial.
pub(super) const MAX_VARIABLES: usize = 6;
/// The largest degree.
pub(super) const MAX_DEGREE: u32 = 4;

/// A product of powers of variables, and of an entry φ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Monomial {
    /// The index of the entry φ that is a factor.
    pub(super) carried: Option<u32>,
    pub(super) exponents: [u8; MAX_VARIABLES],
}

impl Monomial {
    /// The empty product.
    pub(super) const ONE: Monomial = Monomial { carried: None, exponents: [0; MAX_VARIABLES] };

    pub(super) fn variable(variable: usize) -> Monomial {
        let mut monomial = Monomial::ONE;
        monomial.exponents[variable] = 1;
        monomial
    }

    pub(super) fn degree(&self) -> u32 {
        self.exponents.iter().map(|&exponent| u32::from(exponent)).sum()
    }

    pub(super) fn times(&self, other: &Monomial) -> Result<Monomial, SumReason> {
        let carried = match (self.carried, other.carried) {
            (Some(_), Some(_)) => return Err(SumReason::NotAdded),
            (a, b) => a.or(b),
        };
        let exponents = core::array::from_fn(|i| self.exponents[i] + other.exponents[i]);
        let product = Monomial { carried, exponents };
        if product.degree() > MAX_DEGREE { Err(SumReason::Degree(MAX_DEGREE)) } else { Ok(product) }
    }

    /// This monomial with the exponent of a variable changed by `by`, if it is not negative then.
    pub(super) fn shifted(&self, variable: usize, by: i8) -> Option<Monomial> {
        let mut shifted = *self;
        shifted.exponents[variable] = self.exponents[variable].checked_add_signed(by)?;
        Some(shifted)
    }
}

/// A sum of monomials times data, sorted by monomial.
#[derive(Clone, Debug, Default)]
pub(super) struct Polynomial(SmallVec<[(Monomial, Datum); 4]>);

impl Polynomial {
    pub(super) fn of(monomial: Monomial, datum: Datum) -> Polynomial {
        Polynomial([(monomial, datum)].into_iter().collect())
    }

    pub(super) fn terms(&self) -> &[(Monomial, Datum)] {
        &self.0
    }

    /// The datum of a polynomial of degree 0: `Some(None)` for zero, `None` for a higher degree.
    pub(super) fn as_datum(&self) -> Option<Option<Datum>> {
        match self.0[..] {
            [] => Some(None),
            [(Monomial::ONE, datum)] => Some(Some(datum)),
            _ => None,
        }
    }

    pub(super) fn coefficient(&self, monomial: &Monomial) -> Option<Datum> {
        let at = self.0.binary_search_by_key(monomial, |&(monomial, _)| monomial).ok()?;
        Some(self.0[at].1)
    }

    pub(super) fn plus(&self, other: &Polynomial, data: &mut Data) -> Polynomial {
        let mut sum = self.clone();
        for &(monomial, datum) in &other.0 {
            sum.add_term(monomial, datum, data);
        }
        sum
    }

    fn add_term(&mut self, monomial: Monomial, datum: Datum, data: &mut Data) {
        match self.0.binary_search_by_key(&monomial, |&(monomial, _)| monomial) {
            Ok(at) => self.0[at].1 = data.apply(Op::Add, &[self.0[at].1, datum]),
            Err(at) => self.0.insert(at, (monomial, datum)),
        }
    }

    pub(super) fn map(&self, mut of: impl FnMut(Datum) -> Datum) -> Polynomial {
        Polynomial(self.0.iter().map(|&(monomial, datum)| (monomial, of(datum))).collect())
    }

    pub(super) fn times(
        &self,
        other: &Polynomial,
        data: &mut Data,
    ) -> Result<Polynomial, SumReason> {
        let mut product = Polynomial::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let datum = data.apply(Op::Mul, &[*x, *y]);
                if data.number(datum) != Some(0.0) {
                    product.add_term(a.times(b)?, datum, data);
                }
            }
        }
        Ok(product)
    }
}
