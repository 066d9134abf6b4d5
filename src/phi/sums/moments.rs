//! Moments: the coefficients of a sum of polynomials, folded in double-double, and measures of the
//! loop's rounding error.

use super::data::{Data, Datum, Step};
use super::polynomial::Monomial;
use crate::numeric::double_double::Bounded;

/// The update of a carried value in each iteration: `factor` times the value plus `terms`.
pub(super) struct Update {
    pub(super) data: Data,
    /// The factor of the value; `None` is one.
    pub(super) factor: Option<Datum>,
    /// The terms that are added, without entry φs.
    pub(super) terms: Vec<(Monomial, Datum)>,
}

/// The sum of the terms of all iterations.
pub(super) struct Moments {
    /// The factor of the first value.
    pub(super) factor: Bounded,
    /// The coefficient of each monomial.
    pub(super) sums: Vec<Bounded>,
    /// The sum of the magnitudes of each coefficient.
    pub(super) sizes: Vec<f64>,
    /// The matrix A of `condition` by rows: sums of the products of two coefficients, over all
    /// terms and all partial sums.
    pub(super) products: Vec<f64>,
}

impl Update {
    /// True if all data are constants, so that the moments can be folded.
    pub(super) fn is_constant(&self) -> bool {
        !self.data.has_live_ins()
    }

    /// Adds the monomial 1 for a constant first value, if there is none.
    pub(super) fn add_constant(&mut self) {
        if self.terms.iter().all(|(monomial, _)| *monomial != Monomial::ONE) {
            let zero = self.data.constant(0.0);
            self.terms.insert(0, (Monomial::ONE, zero));
        }
    }

    /// The approximate number of products to fold one iteration.
    pub(super) fn work(&self) -> u64 {
        let applications = self.data.steps().iter().filter(|step| matches!(step, Step::Apply(..)));
        (applications.count() + self.terms.len() * self.terms.len()).max(1) as u64
    }

    /// The moments of `count` iterations around `expansion_point`, with `start` as first value.
    pub(super) fn fold(&self, count: u64, expansion_point: &[f64], start: f64) -> Moments {
        let size = self.terms.len();
        let mut moments = Moments {
            factor: Bounded::ONE,
            sums: vec![Bounded::ZERO; size],
            sizes: vec![0.0; size],
            products: vec![0.0; size * size],
        };
        for (at, _) in self.terms.iter().enumerate().filter(|(_, (m, _))| *m == Monomial::ONE) {
            moments.sums[at] = Bounded::exact(start);
            moments.sizes[at] = start.abs();
        }
        let mut values = Vec::with_capacity(self.data.steps().len());
        for iteration in 0..count {
            self.data.evaluate(iteration, expansion_point, &mut values);
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
