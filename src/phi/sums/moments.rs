//! Moments: the coefficients of a sum of polynomials, folded in double-double, and how large what
//! a loop adds up is.

use super::data::{Data, Datum, Step};
use super::polynomial::Monomial;
use crate::numeric::double_double::Bounded;

/// What a loop makes of a value: `factor` times the value and `terms`, in each iteration.
pub(super) struct Iterate {
    pub(super) data: Data,
    /// What the value is multiplied by; `None` for one.
    pub(super) factor: Option<Datum>,
    /// What is added, without entry φs.
    pub(super) terms: Vec<(Monomial, Datum)>,
}

/// The sum of the terms of all iterations.
pub(super) struct Moments {
    /// What the first value is multiplied by.
    pub(super) factor: Bounded,
    /// The coefficient of each monomial.
    pub(super) sums: Vec<Bounded>,
    /// The sum of the magnitudes of each.
    pub(super) sizes: Vec<f64>,
    /// For each two monomials the sum of the products of their coefficients in the terms, and in
    /// the sums after each iteration, by rows: A in `condition`.
    pub(super) products: Vec<f64>,
}

impl Iterate {
    /// Coefficients of numbers that are known only in a call cannot be folded.
    pub(super) fn can_be_folded(&self) -> bool {
        !self.data.is_read()
    }

    /// Adds the monomial 1, of which the sum begins with a number, if it is not there.
    pub(super) fn add_constant(&mut self) {
        if self.terms.iter().all(|(monomial, _)| *monomial != Monomial::ONE) {
            let zero = self.data.constant(0.0);
            self.terms.insert(0, (Monomial::ONE, zero));
        }
    }

    /// The number of products that folding one iteration takes, roughly.
    pub(super) fn work(&self) -> u64 {
        let applications = self.data.steps().iter().filter(|step| matches!(step, Step::Apply(..)));
        (applications.count() + self.terms.len() * self.terms.len()).max(1) as u64
    }

    /// The moments of `count` iterations around `pivot`, where the sum begins with `begin`.
    pub(super) fn fold(&self, count: u64, pivot: &[f64], begin: f64) -> Moments {
        let size = self.terms.len();
        let mut moments = Moments {
            factor: Bounded::ONE,
            sums: vec![Bounded::ZERO; size],
            sizes: vec![0.0; size],
            products: vec![0.0; size * size],
        };
        for (at, _) in self.terms.iter().enumerate().filter(|(_, (m, _))| *m == Monomial::ONE) {
            moments.sums[at] = Bounded::exact(begin);
            moments.sizes[at] = begin.abs();
        }
        let mut values = Vec::with_capacity(self.data.steps().len());
        for iteration in 0..count {
            self.data.evaluate(iteration, pivot, &mut values);
            if let Some(factor) = self.factor {
                let factor = values[factor];
                moments.factor = moments.factor * factor;
                moments.sums.iter_mut().for_each(|sum| *sum = *sum * factor);
                moments.sizes.iter_mut().for_each(|size| *size *= factor.hi.abs());
            }
            for (at, &(_, datum)) in self.terms.iter().enumerate() {
                moments.sums[at] = moments.sums[at] + values[datum];
                moments.sizes[at] += values[datum].hi.abs();
            }
            for (row, &(_, a)) in self.terms.iter().enumerate() {
                for (column, &(_, b)) in self.terms.iter().enumerate().skip(row) {
                    moments.products[row * size + column] += values[a].hi * values[b].hi
                        + moments.sums[row].hi * moments.sums[column].hi;
                }
            }
        }
        for row in 0..size {
            for column in 0..row {
                moments.products[row * size + column] = moments.products[column * size + row];
            }
        }
        moments
    }
}
