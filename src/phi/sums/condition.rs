//! The expansion point of a sum, and the condition for evaluating its polynomial there in working
//! precision.
//!
//! The loop adds n terms g_k = c_k·v, where v is the vector of the monomials. Each addition
//! rounds the partial sum, and each term is rounded, so the loop's error is of the order of
//! u·√(v'Av) with A = Σ (c_k c_k' + s_k s_k'), where s_k are the partial sums of the c_k. The
//! error of the polynomial M·v with M = Σ c_k is of the order of u·Σ|M_i v_i|. If rounding errors
//! are independent and each product is rounded twice, the contract of four times the loop's error
//! and four ulps holds if
//!
//! ```text
//! Σ|M_i v_i|  <=  4 √(v'Av) + 6 |M·v|
//! ```
//!
//! By the Cauchy-Schwarz inequality this holds for all v of m entries if 16 A + 36 M M' - m D² is
//! positive definite, where D is the diagonal matrix of the M_i. A partial derivative is such a
//! sum over the monomials of its variable, whose exponents only scale v.
//!
//! Two more cases are well conditioned: a sum of even powers with coefficients of one sign, and a
//! quadratic form with a constant that is positive definite: with k variables, H scaled to a
//! diagonal of ones and its least eigenvalue λ, Σ|H_ij d_i d_j| <= k/λ · d'Hd.

use super::moments::Moments;
use super::polynomial::{MAX_VARIABLES, Monomial};
use crate::numeric::double_double::Bounded;
use crate::numeric::{is_positive_definite, solve};

/// The factor of √(v'Av) in the condition: four times the loop's error.
const LOOP_ERROR_FACTOR: f64 = 4.0;
/// The factor of |M·v| in the condition, from four ulps.
const VALUE_ERROR_FACTOR: f64 = 6.0;
/// Products of numbers up to this size and down to its inverse are in range.
const LARGEST: f64 = 1e100;
/// The largest error bound of a moment, relative to the sum of the magnitudes, that is negligible
/// in working precision.
const MAX_FOLDING_ERROR: f64 = 1.0 / (1u64 << 60) as f64;

/// A sum: its monomials and moments around an expansion point.
pub(super) struct Expansion<'a> {
    pub(super) monomials: &'a [Monomial],
    pub(super) moments: &'a Moments,
    pub(super) expansion_point: &'a [f64],
}

impl Expansion<'_> {
    /// The moment of `monomial`, zero if the sum has no such term.
    fn sum(&self, monomial: &Monomial) -> Bounded {
        let at = self.monomials.iter().position(|other| other == monomial);
        at.map_or(Bounded::ZERO, |at| self.moments.sums[at])
    }

    /// True if the polynomial and its partials are accurate in working precision for all
    /// arguments.
    pub(super) fn is_accurate(&self) -> bool {
        let fits = |size: f64| size == 0.0 || (1.0 / LARGEST..LARGEST).contains(&size);
        let Moments { sums, sizes, products, .. } = self.moments;
        let is_folded =
            |(sum, size): (&Bounded, &f64)| fits(*size) && sum.bound <= MAX_FOLDING_ERROR * size;
        if !sums.iter().zip(sizes).all(is_folded) || !products.iter().all(|x| x.is_finite()) {
            return false;
        }
        let all: Vec<usize> = (0..sums.len()).collect();
        (self.is_definite() || self.is_bounded_by_loop_error(&all))
            && (0..MAX_VARIABLES).all(|variable| {
                let has = |&&at: &&usize| self.monomials[at].exponents[variable] > 0;
                self.is_bounded_by_loop_error(&all.iter().filter(has).copied().collect::<Vec<_>>())
            })
    }

    /// True if a moment is within the rounding error of the expansion point, which the terms of
    /// the next higher degree exceed for any argument but the expansion point itself.
    fn is_negligible(&self, at: usize) -> bool {
        let rounding: f64 = (0..self.expansion_point.len())
            .filter_map(|variable| {
                let above = self.monomials[at].shifted(variable, 1)?;
                let exponent = f64::from(above.exponents[variable]);
                Some(exponent * (self.sum(&above).hi * self.expansion_point[variable]).abs())
            })
            .sum();
        self.moments.sums[at].hi.abs() <= 2.0 * f64::EPSILON * rounding
    }

    /// True for a sum of even powers with coefficients of one sign, and for a well-conditioned
    /// definite quadratic form with a constant.
    fn is_definite(&self) -> bool {
        let all = 0..self.monomials.len();
        let kept: Vec<usize> = all.filter(|&at| !self.is_negligible(at)).collect();
        let is_even = |at: usize| self.monomials[at].exponents.iter().all(|e| e % 2 == 0);
        let sign = kept.first().map_or(1.0, |&at| self.moments.sums[at].hi.signum());
        let is_one_sided = |&at: &usize| self.moments.sums[at].hi * sign >= 0.0;
        if !kept.iter().filter(|&&at| is_even(at)).all(is_one_sided) {
            return false;
        }
        if kept.iter().all(|&at| is_even(at)) {
            return true;
        }
        let variables: Vec<usize> = (0..self.expansion_point.len())
            .filter(|&v| kept.iter().any(|&at| self.monomials[at].exponents[v] > 0))
            .collect();
        let is_quadratic = |&at: &usize| matches!(self.monomials[at].degree(), 0 | 2);
        let size = variables.len();
        let scale = |&v: &usize| {
            let square = Monomial::variable(v).shifted(v, 1);
            square.map_or(0.0, |square| (2.0 * self.sum(&square).hi * sign).sqrt())
        };
        let scales: Vec<f64> = variables.iter().map(scale).collect();
        let entry = |i: usize, j: usize| {
            let of_both = Monomial::variable(variables[i]).shifted(variables[j], 1);
            let coefficient = of_both.map_or(0.0, |of_both| self.sum(&of_both).hi * sign);
            coefficient / (scales[i] * scales[j])
        };
        let least = size as f64 / VALUE_ERROR_FACTOR;
        kept.iter().all(is_quadratic)
            && is_positive_definite(size, |i, j| if i == j { 1.0 - least } else { entry(i, j) })
    }

    /// True if the condition in the module header holds for these monomials. Negligible moments
    /// count as zero in M, but not in A.
    fn is_bounded_by_loop_error(&self, monomials: &[usize]) -> bool {
        let Moments { sums, products, .. } = self.moments;
        let product = |a: usize, b: usize| products[a * sums.len() + b];
        let read = monomials.iter().filter(|&&at| product(at, at) > 0.0);
        let all: Vec<(usize, f64)> =
            read.map(|&at| (at, if self.is_negligible(at) { 0.0 } else { sums[at].hi })).collect();
        let count = all.iter().filter(|(_, moment)| *moment != 0.0).count();
        let scale = |i: usize| product(all[i].0, all[i].0).sqrt();
        count < 2
            || is_positive_definite(all.len(), |i, j| {
                let ((a, of_a), (b, of_b)) = (all[i], all[j]);
                let of_form = VALUE_ERROR_FACTOR * VALUE_ERROR_FACTOR
                    - if i == j { count as f64 } else { 0.0 };
                let entry =
                    LOOP_ERROR_FACTOR * LOOP_ERROR_FACTOR * product(a, b) + of_a * of_b * of_form;
                entry / (scale(i) * scale(j))
            })
    }
}

/// The variables to expand around a point: those with two successive powers in otherwise equal
/// monomials.
pub(super) fn shifted_variables(monomials: &[Monomial], variables: usize) -> Vec<bool> {
    let is_shifted = |variable: usize| {
        let has_lower = |monomial: &Monomial| {
            let lower = monomial.shifted(variable, -1);
            lower.is_some_and(|lower| monomials.contains(&lower))
        };
        monomials.iter().any(has_lower)
    };
    (0..variables).map(is_shifted).collect()
}

/// The expansion point for the variables `is_shifted`, from the moments around zero.
///
/// - Degree 2: the vertex of the quadratic form; for a sum of squares the least-squares solution.
/// - Degree 1 in several variables: the least-squares solution.
/// - Otherwise, for each variable: the point where the second highest coefficient vanishes, such as
///   the root of a line or the mean for a power of a distance.
pub(super) fn expansion_point(expansion: &Expansion<'_>, is_shifted: &[bool]) -> Vec<f64> {
    let Expansion { monomials, moments, .. } = expansion;
    let all: Vec<usize> = (0..is_shifted.len()).filter(|&variable| is_shifted[variable]).collect();
    let sum = |monomial: Option<Monomial>| match monomial {
        Some(monomial) => expansion.sum(&monomial),
        None => Bounded::ZERO,
    };
    let degree = monomials.iter().map(Monomial::degree).max().unwrap_or(0);
    let solution = match degree {
        2 => {
            let hessian = |i: usize, j: usize| {
                let sum = sum(Monomial::variable(all[i]).shifted(all[j], 1));
                if i == j { sum + sum } else { sum }
            };
            solve(all.len(), hessian, |i| -sum(Some(Monomial::variable(all[i]))))
        }
        1 if all.len() > 1 => {
            let place = |monomial: Monomial| monomials.iter().position(|other| *other == monomial);
            let product = |a: Monomial, b: Monomial| match (place(a), place(b)) {
                (Some(a), Some(b)) => Bounded::exact(moments.products[a * monomials.len() + b]),
                _ => Bounded::ZERO,
            };
            let column = |i: usize| Monomial::variable(all[i]);
            let products = |i: usize, j: usize| product(column(i), column(j));
            solve(all.len(), products, |i| -product(Monomial::ONE, column(i)))
        }
        _ => {
            let top = |&variable: &usize| {
                let highest =
                    monomials.iter().map(|monomial| monomial.exponents[variable]).max()?;
                let mut power = Monomial::ONE;
                power.exponents[variable] = highest;
                let (lower, count) = (power.shifted(variable, -1), f64::from(highest));
                Some((-sum(lower) / (sum(Some(power)) * Bounded::exact(count))).hi)
            };
            all.iter().map(top).collect()
        }
    };
    let mut expansion_point = vec![0.0; is_shifted.len()];
    for (&variable, at) in all.iter().zip(solution.unwrap_or_default()) {
        if at.is_finite() && at.abs() < LARGEST {
            expansion_point[variable] = at;
        }
    }
    expansion_point
}
