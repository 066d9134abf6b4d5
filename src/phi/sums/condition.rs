//! Conditioning: where to put the pivot of a sum, and whether the form is then
//! about as accurate as the loop for all values of the variables.
//!
//! The loop adds n terms one by one, and each addition rounds what has been added
//! up so far: its error is some part of ε·√Σ(gₖ² + sₖ²), gₖ the terms and sₖ the
//! partial sums. The form adds coefficients times monomials, with an error of some
//! part of ε times the sum of their magnitudes. So the form is as good where that
//! sum is not much larger than that root, or than the value. Around the
//! least-squares pivot of a residual this is so everywhere; with raw moments of
//! data far from zero, it is not.

use super::frame::Frame;
use super::moments::Moments;
use super::polynomial::{At, Basis};
use super::valleys::Valleys;
use crate::phi::double::Double;

/// How much larger than the root the magnitudes in the form may be. If all
/// roundings were independent and each magnitude were rounded twice, four times
/// the loop's error would be 4.
const ROOTS: f64 = 4.0;

/// How much larger than the value they may be: as many are four ulps, if each
/// magnitude has an error of two thirds of an ulp.
const VALUES: f64 = 6.0;

/// Where the parts of a form may cancel, wherever its pivot is.
#[derive(Default)]
pub(super) struct Suspects {
    /// Where the lines of which the terms are made are smallest, if they are products of more.
    pub(super) center: Option<Vec<f64>>,
    pub(super) valleys: Valleys,
}

/// How large the magnitudes in the form of `moments` are at worst, relative to
/// what is good: the largest ratio found, for the value and for the
/// derivatives. Up to 1 it is good, and of what is not good a few points tell how bad it is. At
/// the `suspects` most may cancel.
pub(super) fn worst(moments: &Moments, basis: &Basis, frame: &Frame, suspects: &Suspects) -> f64 {
    let ratio = rough(moments, basis, frame, suspects);
    if ratio > 1.0 { ratio } else { searched(moments, basis, frame, suspects) }
}

/// The largest ratio that a search finds.
fn searched(moments: &Moments, basis: &Basis, frame: &Frame, suspects: &Suspects) -> f64 {
    let variables = frame.pivot.len();
    let sums: Vec<f64> = moments.sums.iter().map(|sum| sum.rounded()).collect();
    let form = Form { moments, basis, sums, frame };
    let scales: Vec<f64> = (0..variables).map(|variable| form.scale(variable)).collect();
    let mut starts: Vec<Vec<f64>> = form.center(suspects).into_iter().collect();
    let valleys = form.valleys(suspects, &scales);
    for direction in directions(variables).into_iter().chain(valleys) {
        for exponent in -40..=40 {
            let size = 10f64.powf(0.5 * f64::from(exponent));
            let point = direction.iter().zip(&scales).map(|(d, scale)| d * scale * size);
            starts.push(point.collect::<Vec<f64>>());
        }
    }
    let mut found: Vec<(f64, Vec<f64>)> =
        starts.into_iter().map(|point| (form.ratio(&point), point)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(8);
    let climbed = found.into_iter().map(|(ratio, point)| form.climb(ratio, point));
    climbed.fold(0.0, f64::max)
}

/// The same, as far as a few points tell: no more than a search finds.
pub(super) fn rough(moments: &Moments, basis: &Basis, frame: &Frame, suspects: &Suspects) -> f64 {
    let variables = frame.pivot.len();
    let sums: Vec<f64> = moments.sums.iter().map(|sum| sum.rounded()).collect();
    let form = Form { moments, basis, sums, frame };
    let scales: Vec<f64> = (0..variables).map(|variable| form.scale(variable)).collect();
    let ratio = |direction: &Vec<f64>, exponent: i32| {
        let size = 10f64.powi(exponent);
        let point = direction.iter().zip(&scales).map(|(d, scale)| d * scale * size);
        form.ratio(&point.collect::<Vec<f64>>())
    };
    let step = if variables > 1 { 3 } else { 1 };
    let valleys = form.valleys(suspects, &scales);
    let directions = directions(variables).into_iter().step_by(step).chain(valleys);
    let ratios = directions.flat_map(|direction| {
        (-12..=12).map(move |exponent| (direction.clone(), exponent)).collect::<Vec<_>>()
    });
    let all = ratios.map(|(direction, exponent)| ratio(&direction, exponent));
    let at_center = form.center(suspects).map_or(0.0, |point| form.ratio(&point));
    all.fold(at_center, f64::max)
}

/// Directions to look into: on axes, diagonals, and spread in between.
fn directions(variables: usize) -> Vec<Vec<f64>> {
    if variables == 1 {
        return vec![vec![1.0], vec![-1.0]];
    }
    let mut all = Vec::new();
    for variable in 0..variables {
        for sign in [1.0, -1.0] {
            let mut axis = vec![0.0; variables];
            axis[variable] = sign;
            all.push(axis);
        }
    }
    // A low-discrepancy sequence, the same on all hosts.
    const SPREAD: f64 = 0.618_033_988_749_894_9;
    for index in 0..24 * variables {
        let part = |variable: usize| {
            let step = SPREAD.powi(variable as i32 + 1);
            2.0 * ((index as f64 + 1.0) * step).fract() - 1.0
        };
        all.push((0..variables).map(part).collect());
    }
    all
}

struct Form<'a> {
    moments: &'a Moments,
    basis: &'a Basis,
    sums: Vec<f64>,
    frame: &'a Frame,
}

impl Form<'_> {
    /// Where the center of what is added up is, relative to the pivot.
    fn center(&self, suspects: &Suspects) -> Option<Vec<f64>> {
        let center = suspects.center.as_ref()?.iter().zip(&self.frame.pivot);
        Some(center.map(|(center, pivot)| center - pivot).collect())
    }

    /// A size of `variable` at which it matters about as much as the constants.
    fn scale(&self, variable: usize) -> f64 {
        let size = self.basis.len();
        let products = &self.moments.products;
        let Some(linear) = self.basis.variable(variable) else { return 1.0 };
        let pure = |degree: usize| {
            // The number of the monomial of this variable alone with this degree.
            let wanted = |monomial: &Vec<u32>| {
                let powers = monomial.iter().enumerate();
                powers.clone().all(|(v, &e)| e == if v == variable { degree as u32 } else { 0 })
            };
            self.basis.monomials.iter().position(wanted).map(|at| products[at * size + at])
        };
        let constant = products[0];
        let own = products[linear * size + linear];
        let scale = match pure(2).filter(|&square| square > 0.0) {
            Some(square) if constant > 0.0 => (constant / square).powf(0.25),
            Some(square) if own > 0.0 => (own / square).sqrt(),
            _ if own > 0.0 && constant > 0.0 => (constant / own).sqrt(),
            _ => 1.0,
        };
        if scale.is_normal() { scale } else { 1.0 }
    }

    /// The valleys, one way and the other, in units of `scales`.
    fn valleys(&self, suspects: &Suspects, scales: &[f64]) -> Vec<Vec<f64>> {
        let directions = suspects.valleys.directions.iter().flat_map(|direction| {
            let direction = self.frame.coordinates(direction);
            let parts: Vec<f64> = direction.iter().zip(scales).map(|(d, s)| d / s).collect();
            let length = parts.iter().fold(0.0, |length: f64, part| length.max(part.abs()));
            let is_known = length.is_normal() && parts.iter().all(|part| part.is_finite());
            let signs: &[f64] = if is_known { &[1.0, -1.0] } else { &[] };
            signs.iter().map(move |sign| parts.iter().map(|part| part * sign / length).collect())
        });
        directions.collect()
    }

    /// The worst of the value and the derivatives at `point`, relative to the pivot.
    fn ratio(&self, point: &[f64]) -> f64 {
        // Two numbers are at least so far apart. With several variables the pivot's
        // own rounding shows a few steps around it, where all is small.
        let step = if point.len() > 1 { 4.0 } else { 0.49 } * f64::EPSILON;
        let differences = point.iter().zip(&self.frame.pivot).map(|(&difference, pivot)| {
            let is_distinct = difference.abs() >= step * pivot.abs();
            if is_distinct { difference } else { 0.0 }
        });
        let point: Vec<f64> = differences.collect();
        let added = self.frame.added(&point);
        let at = self.basis.at(&point);
        let mut worst = self.compare(&[(1.0, None)], &at, &added);
        for variable in 0..point.len() {
            // The chain rule through the shear.
            let after = (variable + 1..point.len())
                .map(|other| (self.frame.shear[other][variable], Some(other)))
                .filter(|&(factor, _)| factor != 0.0);
            let parts: Vec<_> = [(1.0, Some(variable))].into_iter().chain(after).collect();
            worst = worst.max(self.compare(&parts, &at, &added));
        }
        worst
    }

    /// How large what the form adds up is compared with what is good, of the sum
    /// of these multiples of the value, or of its derivatives, at a point, where
    /// `added` is what the shear of the frame adds.
    fn compare(&self, parts: &[(f64, Option<usize>)], at: &At<'_>, added: &[f64]) -> f64 {
        let mut monomials = vec![0.0; self.basis.len()];
        let mut magnitudes = 0.0;
        for &(factor, variable) in parts {
            let values = at.derivatives(variable.as_slice());
            for ((monomial, value), sum) in monomials.iter_mut().zip(&values).zip(&self.sums) {
                *monomial += factor * value;
                magnitudes += (factor * value * sum).abs();
            }
            // What the shear's rounding comes to.
            for (other, &size) in added.iter().enumerate().filter(|&(_, &size)| size > 0.0) {
                let slopes = match variable {
                    Some(variable) => at.derivatives(&[variable, other]),
                    None => at.derivatives(&[other]),
                };
                let slope: f64 = slopes.iter().zip(&self.sums).map(|(m, sum)| m * sum).sum();
                magnitudes += (factor * slope).abs() * size;
            }
        }
        if !magnitudes.is_finite() || magnitudes == 0.0 {
            return 0.0;
        }
        // Scaled, so that nothing overflows.
        let size = monomials.len();
        let scaled: Vec<f64> = monomials.iter().map(|m| m / magnitudes).collect();
        let value: f64 = scaled.iter().zip(&self.sums).map(|(m, sum)| m * sum).sum();
        let mut squares = 0.0;
        for (i, x) in scaled.iter().enumerate() {
            for (j, y) in scaled.iter().enumerate() {
                let of_both = i * size + j;
                let product = self.moments.products[of_both] + self.moments.partial[of_both];
                squares += x * y * product;
            }
        }
        1.0 / (ROOTS * squares.max(0.0).sqrt() + VALUES * value.abs())
    }

    /// Climbs from `point` to where the ratio is largest nearby.
    fn climb(&self, mut best: f64, mut point: Vec<f64>) -> f64 {
        let mut step = 0.5;
        for _ in 0..60 {
            let mut better = false;
            for variable in 0..point.len() {
                for sign in [1.0, -1.0] {
                    let mut next = point.clone();
                    next[variable] *= 1.0 + sign * step;
                    let ratio = self.ratio(&next);
                    if ratio > best {
                        (best, point, better) = (ratio, next, true);
                    }
                }
            }
            if !better {
                step *= 0.5;
            }
        }
        best
    }
}

/// Pivots to try, relative to that of `raw`; each is found in another way.
pub(super) fn pivots(raw: &Moments, basis: &Basis, variables: usize) -> [Option<Vec<f64>>; 3] {
    let size = basis.len();
    let mut all = [None, None, None];
    // Where the gradient of the sum is zero, if it is a quadratic form.
    let hessian = |i: usize, j: usize| {
        let sum = basis.product(1 + i, 1 + j).map_or(Double::ZERO, |at| raw.sums[at]);
        if i == j { sum + sum } else { sum }
    };
    let gradient = |i: usize| -raw.sums[1 + i];
    if basis.monomials.iter().any(|monomial| monomial.iter().sum::<u32>() == 2) {
        all[0] = solve(variables, hessian, gradient);
    }
    if variables == 1 {
        // Where the monomial below the highest vanishes: the root of a line, the
        // vertex of a parabola, and where residuals to any power balance.
        let (top, below) = (raw.sums[size - 1], raw.sums[size - 2]);
        let degree = Double::from((size - 1) as f64);
        all[1] = solve(1, |_, _| top * degree, |_| -below);
    }
    // Where the linear parts of the terms are smallest, by least squares.
    let products = |i: usize, j: usize| raw.products[(1 + i) * size + 1 + j].into();
    all[2] = solve(variables, products, |i| (-raw.products[1 + i]).into());
    all
}

/// The vertex of the sum in those variables that are measured from somewhere: for which a
/// monomial and that of one degree less have coefficients. Others, which are factors, count
/// as one.
pub(super) fn vertex(raw: &Moments, basis: &Basis, variables: usize) -> Option<Vec<f64>> {
    let has = |at: usize| raw.sums[at].rounded() != 0.0;
    let lower = |monomial: &[u32], variable: usize| {
        let mut lower = monomial.to_vec();
        lower[variable] = lower[variable].checked_sub(1)?;
        basis.monomials.iter().position(|other| *other == lower)
    };
    let is_shifted = |&variable: &usize| {
        let all = basis.monomials.iter().enumerate();
        let mut squares = all.filter(|(at, monomial)| monomial[variable] > 1 && has(*at));
        squares.any(|(_, monomial)| lower(monomial, variable).is_some_and(has))
    };
    let shifted: Vec<usize> = (0..variables).filter(is_shifted).collect();
    let size = shifted.len();
    let mut hessian = vec![Double::ZERO; size * size];
    let mut gradient = vec![Double::ZERO; size];
    for (at, monomial) in basis.monomials.iter().enumerate() {
        let sum = raw.sums[at];
        let own: Vec<(usize, u32)> = shifted.iter().map(|&v| monomial[v]).enumerate().collect();
        let own: Vec<(usize, u32)> = own.into_iter().filter(|&(_, e)| e > 0).collect();
        match *own.as_slice() {
            [(i, 1)] => gradient[i] = gradient[i] - sum,
            [(i, 2)] => hessian[i * size + i] = hessian[i * size + i] + sum + sum,
            [(i, 1), (j, 1)] => {
                hessian[i * size + j] = hessian[i * size + j] + sum;
                hessian[j * size + i] = hessian[i * size + j];
            }
            _ => {}
        }
    }
    let found = solve(size, |i, j| hessian[i * size + j], |i| gradient[i])?;
    let mut pivot = vec![0.0; variables];
    shifted.iter().zip(found).for_each(|(&variable, at)| pivot[variable] = at);
    (size > 0).then_some(pivot)
}

/// The solution of a symmetric system, by elimination with pivoting. Data far from zero make
/// it ill-conditioned, so it has twice the digits.
fn solve(
    size: usize,
    matrix: impl Fn(usize, usize) -> Double,
    right: impl Fn(usize) -> Double,
) -> Option<Vec<f64>> {
    let mut rows: Vec<Vec<Double>> =
        (0..size).map(|i| (0..size).map(|j| matrix(i, j)).chain([right(i)]).collect()).collect();
    for column in 0..size {
        let size_of = |row: usize| rows[row][column].rounded().abs();
        let best = (column..size).max_by(|&a, &b| size_of(a).total_cmp(&size_of(b)))?;
        rows.swap(column, best);
        let pivot = rows[column].clone();
        if pivot[column].rounded() == 0.0 {
            return None;
        }
        for (_, row) in rows.iter_mut().enumerate().filter(|&(index, _)| index != column) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(x, &p)| *x = *x - factor * p);
        }
    }
    let solution: Vec<f64> =
        rows.iter().enumerate().map(|(index, row)| (row[size] / row[index]).rounded()).collect();
    solution.iter().all(|x| x.is_finite()).then_some(solution)
}
