//! Frames: the coordinates in which the coefficients of a sum are small.
//!
//! A frame has a pivot, from which each variable is measured, and a shear, which
//! adds to each difference multiples of those before it. Of a line through points,
//! it is the level at the middle of the points instead of that at zero.

use super::moments::Moments;
use super::polynomial::Basis;
use crate::phi::double::Double;

/// Coordinates for the variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    /// What is subtracted from each variable.
    pub(super) pivot: Vec<f64>,
    /// For each variable what multiple of the difference of each before it is added.
    pub(super) shear: Vec<Vec<f64>>,
    /// For each variable its difference as a linear form in the coordinates.
    pub(super) differences: Vec<Vec<Double>>,
}

impl Frame {
    /// Without a shear.
    pub(super) fn at(pivot: Vec<f64>) -> Frame {
        let shear = (0..pivot.len()).map(|variable| vec![0.0; variable]).collect();
        Frame::new(pivot, shear)
    }

    fn new(pivot: Vec<f64>, shear: Vec<Vec<f64>>) -> Frame {
        let size = pivot.len();
        let mut differences: Vec<Vec<Double>> = Vec::new();
        for (variable, factors) in shear.iter().enumerate() {
            let mut row = vec![Double::ZERO; size];
            row[variable] = 1.0.into();
            for (before, &factor) in differences.iter().zip(factors) {
                for (sum, &x) in row.iter_mut().zip(before) {
                    *sum = *sum - x * factor.into();
                }
            }
            differences.push(row);
        }
        Frame { pivot, shear, differences }
    }

    /// This frame, without a shear, with one in which the squares of the sum do
    /// not mix: `moments` is what the sum is in this frame.
    pub(super) fn sheared(&self, moments: &Moments, basis: &Basis) -> Option<Frame> {
        let size = self.pivot.len();
        let part = |i: usize, j: usize| match basis.product(1 + i, 1 + j) {
            Some(at) if i == j => moments.sums[at].rounded(),
            Some(at) => 0.5 * moments.sums[at].rounded(),
            None => moments.products[(1 + i) * basis.len() + 1 + j],
        };
        let row = |i: usize| (0..size).map(|j| part(i, j)).collect();
        let mut form: Vec<Vec<f64>> = (0..size).map(row).collect();
        let mut shear: Vec<Vec<f64>> = (0..size).map(|variable| vec![0.0; variable]).collect();
        for last in (1..size).rev() {
            if form[last][last] == 0.0 {
                return None;
            }
            let row = form[last].clone();
            for i in 0..last {
                shear[last][i] = row[i] / row[last];
                for j in 0..last {
                    form[i][j] -= row[i] * row[j] / row[last];
                }
            }
        }
        let is_small = shear.iter().flatten().all(|factor| factor.abs() < 1e50);
        is_small.then(|| Frame::new(self.pivot.clone(), shear))
    }

    /// What a direction is in the coordinates.
    pub(super) fn coordinates(&self, direction: &[f64]) -> Vec<f64> {
        let added = |factors: &Vec<f64>| {
            factors.iter().zip(direction).map(|(factor, part)| factor * part).sum::<f64>()
        };
        direction.iter().zip(&self.shear).map(|(part, shear)| part + added(shear)).collect()
    }

    /// How large what is added for each coordinate is at this point.
    pub(super) fn added(&self, point: &[f64]) -> Vec<f64> {
        let difference =
            |row: &Vec<Double>| row.iter().zip(point).map(|(x, v)| x.high * v).sum::<f64>().abs();
        let sizes: Vec<f64> = self.differences.iter().map(difference).collect();
        let added = |factors: &Vec<f64>| {
            factors.iter().zip(&sizes).map(|(factor, size)| (factor * size).abs()).sum()
        };
        self.shear.iter().map(added).collect()
    }
}
