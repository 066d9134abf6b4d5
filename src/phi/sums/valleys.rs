//! Valleys: directions in which the terms of a sum change least, or not at all.
//!
//! In (aᵢ·y − m)², where m changes by ā·y, the terms change as the aᵢ differ, but monomials by all
//! of the aᵢ, and cancel. Programs go there: m is the mean of what it is subtracted from. In
//! (x + aᵢ·y − m)² no term changes where x and m do by the same. There is no end of such a
//! valley, and nothing bounds what cancels.

use std::collections::BTreeMap;

use super::frame::Frame;
use super::moments::Evaluator;
use super::polynomial::Basis;
use crate::phi::double::Double;

/// What is left of a variable's slopes, relative to their squares, is rounding up to here.
const FLAT: f64 = 1e-28;

/// The directions in which terms change least.
#[derive(Clone, Debug, Default)]
pub(super) struct Valleys {
    /// Whether there is one in which no term changes.
    pub(super) is_flat: bool,
    /// For each variable how the others change, if it does, so that the terms change least.
    pub(super) directions: Vec<Vec<f64>>,
}

/// The valleys of the terms of `count` iterations, in these `around`.
pub(super) fn valleys(
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    variables: usize,
    count: u32,
    around: &[u32],
) -> Valleys {
    if variables < 2 {
        return Valleys::default();
    }
    let slopes = slopes(evaluator, basis, variables, count, around);
    let scales: Vec<f64> = (0..variables).map(|v| slopes[v][v].high.sqrt().recip()).collect();
    // What no term depends on has no part in any of them.
    let used: Vec<usize> = (0..variables).filter(|&v| scales[v].is_normal()).collect();
    let scaled = |&i: &usize| {
        let part = |&j: &usize| slopes[i][j] * scales[i].into() * scales[j].into();
        used.iter().map(part).collect()
    };
    let Some(inverse) = inverse(used.iter().map(scaled).collect()) else {
        return Valleys { is_flat: true, directions: Vec::new() };
    };
    let unscaled = inverse.iter().map(|column| {
        let mut all = vec![0.0; variables];
        used.iter().zip(column).for_each(|(&v, part)| all[v] = part.rounded() * scales[v]);
        all
    });
    let is_finite = |direction: &Vec<f64>| direction.iter().all(|part| part.is_finite());
    Valleys { is_flat: false, directions: unscaled.filter(is_finite).collect() }
}

/// For each two variables the sum of the products of the coefficients of the derivatives of all
/// terms by them. A direction takes it to zero if the derivative of each term along it is zero.
fn slopes(
    evaluator: &mut Evaluator<'_>,
    basis: &Basis,
    variables: usize,
    count: u32,
    around: &[u32],
) -> Vec<Vec<Double>> {
    // Of each monomial's derivative by each variable its place and its factor.
    let mut places: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let mut lowered: Vec<Vec<(usize, usize, f64)>> = vec![Vec::new(); variables];
    for (from, monomial) in basis.monomials.iter().enumerate() {
        for (lowered, (variable, &exponent)) in lowered.iter_mut().zip(monomial.iter().enumerate())
        {
            let mut lower = monomial.clone();
            lower[variable] = exponent.saturating_sub(1);
            if exponent > 0 {
                let next = places.len();
                let to = *places.entry(lower).or_insert(next);
                lowered.push((from, to, f64::from(exponent)));
            }
        }
    }
    let mut sums = vec![vec![Double::ZERO; variables]; variables];
    let mut slopes = vec![vec![Double::ZERO; places.len()]; variables];
    let frame = Frame::at(vec![0.0; variables]);
    evaluator.for_each_term(0.0, &frame, count, around, |term| {
        for (slope, lowered) in slopes.iter_mut().zip(&lowered) {
            slope.fill(Double::ZERO);
            lowered.iter().for_each(|&(from, to, factor)| {
                slope[to] = slope[to] + term[from] * factor.into();
            });
        }
        for (row, left) in sums.iter_mut().zip(&slopes) {
            for (sum, right) in row.iter_mut().zip(&slopes) {
                let products = left.iter().zip(right).map(|(&x, &y)| x * y);
                *sum = products.fold(*sum, |sum, product| sum + product);
            }
        }
    });
    sums
}

/// The inverse of a symmetric matrix without negative eigenvalues, and with ones on its diagonal;
/// `None` if it has none.
fn inverse(mut rows: Vec<Vec<Double>>) -> Option<Vec<Vec<Double>>> {
    let size = rows.len();
    // Beside it the unit matrix, which becomes the inverse.
    for (at, row) in rows.iter_mut().enumerate() {
        row.extend((0..size).map(|column| Double::from(f64::from(u8::from(column == at)))));
    }
    for pivot in 0..size {
        let by = rows[pivot][pivot];
        if by.high <= FLAT {
            return None;
        }
        let row: Vec<Double> = rows[pivot].iter().map(|&x| x / by).collect();
        for (_, other) in rows.iter_mut().enumerate().filter(|&(at, _)| at != pivot) {
            let factor = other[pivot];
            other.iter_mut().zip(&row).for_each(|(x, &part)| *x = *x - factor * part);
        }
        rows[pivot] = row;
    }
    Some(rows.into_iter().map(|row| row[size..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inverted(rows: &[&[f64]]) -> Option<Vec<Vec<f64>>> {
        let rows = rows.iter().map(|row| row.iter().map(|&x| x.into()).collect()).collect();
        let rounded = |row: Vec<Double>| row.into_iter().map(Double::rounded).collect();
        inverse(rows).map(|rows| rows.into_iter().map(rounded).collect())
    }

    #[test]
    fn only_matrices_of_full_rank_have_an_inverse() {
        let found = inverted(&[&[1.0, 0.5], &[0.5, 1.0]]).unwrap();
        for (found, expected) in found.iter().flatten().zip([4.0, -2.0, -2.0, 4.0]) {
            assert!((found - expected / 3.0).abs() < 1e-15);
        }
        assert_eq!(inverted(&[&[1.0, -1.0], &[-1.0, 1.0]]), None);
        assert_eq!(inverted(&[&[1.0, 1.0, 0.0], &[1.0, 1.0, 0.0], &[0.0, 0.0, 1.0]]), None);
        // Data that are far from zero, but not the same.
        assert!(inverted(&[&[1.0, 1.0 - 1e-15], &[1.0 - 1e-15, 1.0]]).is_some());
    }
}
