//! Where the expansion point of a sum is, and whether its polynomial may be evaluated in working
//! precision there.
//!
//! The loop adds n terms g_k = c_k·v, where v is the vector of the monomials. Each addition
//! rounds what has been added up so far, and each term has an error of its own, so the loop's
//! error is some part of u·√(v'Av) with A = Σ (c_k c_k' + s_k s_k'), where s_k are the partial
//! sums of the c_k. The polynomial M·v with M = Σ c_k has an error of some part of u·Σ|M_i v_i|.
//! Where roundings are independent and each product is rounded twice, the contract of four times
//! the loop's error and four ulps holds if
//!
//! ```text
//! Σ|M_i v_i|  <=  4 √(v'Av) + 6 |M·v|
//! ```
//!
//! By the Cauchy-Schwarz inequality this is so for all v of m entries, of whatever variables they
//! are monomials, if 16 A + 36 M M' - m D² is positive definite, D the diagonal of the M_i. A
//! partial derivative is such a sum over the monomials that its variable is in, as their
//! exponents only scale v. Beside that, nothing cancels in a sum of even powers with coefficients
//! of one sign, and little in a quadratic form with a constant if it is positive definite and well
//! conditioned: with k variables, H scaled to a diagonal of ones and its least eigenvalue λ,
//! Σ|H_ij d_i d_j| <= k/λ · d'Hd.

use super::moments::Moments;
use super::polynomial::{MOST_VARIABLES, Monomial};
use crate::numeric::double_double::Bounded;
use crate::numeric::{is_positive_definite, solved};

/// How much larger than the loop's error, in units of u, what is added up may be.
const ROOTS: f64 = 4.0;
/// How much larger than the value.
const VALUES: f64 = 6.0;
/// Products of numbers up to this size and down to its inverse are in range.
const LARGEST: f64 = 1e100;
/// A folded coefficient is as good as exact with a bound of this part of what was added up.
const FOLDED: f64 = 1.0 / (1u64 << 60) as f64;

/// A sum with its monomials and its expansion point.
pub(super) struct Expansion<'a> {
    pub(super) monomials: &'a [Monomial],
    pub(super) moments: &'a Moments,
    pub(super) pivot: &'a [f64],
}

impl Expansion<'_> {
    fn sum(&self, monomial: &Monomial) -> Bounded {
        let at = self.monomials.iter().position(|other| other == monomial);
        at.map_or(Bounded::ZERO, |at| self.moments.sums[at])
    }

    /// Whether the polynomial is accurate for all arguments in working precision.
    pub(super) fn is_accurate(&self) -> bool {
        let fits = |size: f64| size == 0.0 || (1.0 / LARGEST..LARGEST).contains(&size);
        let Moments { sums, sizes, products, .. } = self.moments;
        let is_folded = |(sum, size): (&Bounded, &f64)| fits(*size) && sum.bound <= FOLDED * size;
        if !sums.iter().zip(sizes).all(is_folded) || !products.iter().all(|x| x.is_finite()) {
            return false;
        }
        let all: Vec<usize> = (0..sums.len()).collect();
        (self.is_positive() || self.is_bounded(&all))
            && (0..MOST_VARIABLES).all(|variable| {
                let has = |&&at: &&usize| self.monomials[at].exponents[variable] > 0;
                self.is_bounded(&all.iter().filter(has).copied().collect::<Vec<_>>())
            })
    }

    /// Whether a coefficient is what rounding the expansion point has made of zero. Two arguments
    /// differ by more than that point is off, so it is less than the terms above it.
    fn is_negligible(&self, at: usize) -> bool {
        let of_pivot: f64 = (0..self.pivot.len())
            .filter_map(|variable| {
                let above = self.monomials[at].shifted(variable, 1)?;
                let exponent = f64::from(above.exponents[variable]);
                Some(exponent * (self.sum(&above).hi * self.pivot[variable]).abs())
            })
            .sum();
        self.moments.sums[at].hi.abs() <= 2.0 * f64::EPSILON * of_pivot
    }

    /// Whether the parts of the polynomial cancel little.
    fn is_positive(&self) -> bool {
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
        let variables: Vec<usize> = (0..self.pivot.len())
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
        let least = size as f64 / VALUES;
        kept.iter().all(is_quadratic)
            && is_positive_definite(size, |i, j| if i == j { 1.0 - least } else { entry(i, j) })
    }

    /// Whether the parts of the polynomial of these monomials are bounded by the loop's error. What
    /// is negligible counts as zero, but for the loop.
    fn is_bounded(&self, monomials: &[usize]) -> bool {
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
                let of_form = VALUES * VALUES - if i == j { count as f64 } else { 0.0 };
                let entry = ROOTS * ROOTS * product(a, b) + of_a * of_b * of_form;
                entry / (scale(i) * scale(j))
            })
    }
}

/// The variables that are measured from somewhere: those of which two successive powers are
/// factors of otherwise equal monomials.
pub(super) fn measured(monomials: &[Monomial], variables: usize) -> Vec<bool> {
    let is_measured = |variable: usize| {
        let has_lower = |monomial: &Monomial| {
            let lower = monomial.shifted(variable, -1);
            lower.is_some_and(|lower| monomials.contains(&lower))
        };
        monomials.iter().any(has_lower)
    };
    (0..variables).map(is_measured).collect()
}

/// The expansion point of a sum, whose moments around zero are given, for the variables that are
/// `measured`.
///
/// It is the vertex of a quadratic form, which for a sum of squares is the least-squares solution,
/// and the least-squares solution for lines. Of each variable of other sums it is where the second
/// highest power vanishes: the root of a line, the mean for a power of a distance.
pub(super) fn expansion_point(expansion: &Expansion<'_>, measured: &[bool]) -> Vec<f64> {
    let Expansion { monomials, moments, .. } = expansion;
    let all: Vec<usize> = (0..measured.len()).filter(|&variable| measured[variable]).collect();
    let sum = |monomial: Option<Monomial>| match monomial {
        Some(monomial) => expansion.sum(&monomial),
        None => Bounded::ZERO,
    };
    let degree = monomials.iter().map(Monomial::degree).max().unwrap_or(0);
    let found = match degree {
        2 => {
            let hessian = |i: usize, j: usize| {
                let sum = sum(Monomial::variable(all[i]).shifted(all[j], 1));
                if i == j { sum + sum } else { sum }
            };
            solved(all.len(), hessian, |i| -sum(Some(Monomial::variable(all[i]))))
        }
        1 if all.len() > 1 => {
            let place = |monomial: Monomial| monomials.iter().position(|other| *other == monomial);
            let product = |a: Monomial, b: Monomial| match (place(a), place(b)) {
                (Some(a), Some(b)) => Bounded::exact(moments.products[a * monomials.len() + b]),
                _ => Bounded::ZERO,
            };
            let column = |i: usize| Monomial::variable(all[i]);
            let products = |i: usize, j: usize| product(column(i), column(j));
            solved(all.len(), products, |i| -product(Monomial::ONE, column(i)))
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
    let mut pivot = vec![0.0; measured.len()];
    for (&variable, at) in all.iter().zip(found.unwrap_or_default()) {
        if at.is_finite() && at.abs() < LARGEST {
            pivot[variable] = at;
        }
    }
    pivot
}
