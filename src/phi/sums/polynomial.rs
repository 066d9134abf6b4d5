//! Polynomials of low degree in few variables, with coefficients of twice the
//! digits: the ring in which a loop's terms are evaluated.

use std::collections::BTreeSet;

use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::double::Double;

/// The monomials of some number of variables up to a degree, lower degrees
/// first; the first is 1.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    /// For each monomial the exponent of each variable.
    pub(super) monomials: Vec<Vec<u32>>,
    /// For each degree how many monomials have at most that.
    counts: Vec<usize>,
    /// The number of the product of two monomials, if its degree is low enough.
    products: Vec<Option<usize>>,
}

impl Basis {
    /// The monomials; `None` if there are more than `limit`.
    pub(super) fn new(variables: usize, degree: u32, limit: usize) -> Option<Basis> {
        let mut monomials: Vec<Vec<u32>> = vec![vec![0; variables]];
        let mut counts = vec![1];
        let mut first = 0;
        for _ in 0..degree {
            let last = monomials.len();
            for index in first..last {
                // Each monomial is made once: by raising its last variable.
                let from = monomials[index].iter().rposition(|&e| e > 0).unwrap_or(0);
                for variable in from..variables {
                    let mut next = monomials[index].clone();
                    next[variable] += 1;
                    monomials.push(next);
                }
                if monomials.len() > limit {
                    return None;
                }
            }
            first = last;
            counts.push(monomials.len());
        }
        Some(Basis::with(monomials, counts))
    }

    /// Those of the monomials that the results of `terms` have around any pivot, and all
    /// variables; `None` if there are more than `limit`.
    pub(super) fn covering(terms: &Terms, limit: usize) -> Option<Basis> {
        let variables = terms.variables.len();
        let mut all: BTreeSet<Vec<u32>> = BTreeSet::from([vec![0; variables]]);
        for variable in 0..variables {
            all.insert((0..variables).map(|other| u32::from(other == variable)).collect());
        }
        let mut results: Vec<BTreeSet<Vec<u32>>> = Vec::new();
        for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
            let result = match step {
                Step::Variable(number) => {
                    let line = [0, 1].map(|e| {
                        (0..variables).map(|other| if other == *number { e } else { 0 }).collect()
                    });
                    BTreeSet::from(line)
                }
                Step::Apply(op, args) if degree > 0 => {
                    let args = &args[..op.arity()];
                    let parts: Vec<&BTreeSet<Vec<u32>>> =
                        args.iter().map(|&arg| &results[arg]).collect();
                    match (op, parts.as_slice()) {
                        (Op::Mul, [a, b]) => product(a, b),
                        (Op::MulAdd, [a, b, c]) => &product(a, b) | *c,
                        (Op::Powi, [a, _]) => {
                            let base = terms.degrees[args[0]].max(1);
                            (1..degree / base).fold((*a).clone(), |power, _| product(&power, a))
                        }
                        _ => parts.into_iter().flatten().cloned().collect(),
                    }
                }
                _ => BTreeSet::from([vec![0; variables]]),
            };
            all.extend(result.iter().cloned());
            if all.len() > limit {
                return None;
            }
            results.push(result);
        }
        let mut monomials: Vec<Vec<u32>> = all.into_iter().collect();
        let degree = |monomial: &Vec<u32>| monomial.iter().sum::<u32>();
        // In a degree the first variable comes first.
        monomials.sort_by(|a, b| degree(a).cmp(&degree(b)).then_with(|| b.cmp(a)));
        let count = |most: u32| monomials.iter().filter(|m| degree(m) <= most).count();
        let counts = (0..=monomials.last().map_or(0, degree)).map(count).collect();
        Some(Basis::with(monomials, counts))
    }

    fn with(monomials: Vec<Vec<u32>>, counts: Vec<usize>) -> Basis {
        let products = monomials.iter().flat_map(|a| monomials.iter().map(move |b| (a, b)));
        let products = products.map(|(a, b)| {
            let product: Vec<u32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
            monomials.iter().position(|monomial| *monomial == product)
        });
        let products = products.collect();
        Basis { monomials, counts, products }
    }

    pub(super) fn len(&self) -> usize {
        self.monomials.len()
    }

    /// How many monomials have at most this degree.
    pub(super) fn count(&self, degree: u32) -> usize {
        self.counts.get(degree as usize).copied().unwrap_or(self.len())
    }

    /// The number of the monomial that is this variable.
    pub(super) fn variable(&self, variable: usize) -> Option<usize> {
        (self.counts.len() > 1).then_some(1 + variable)
    }

    /// The product of two polynomials. A coefficient in which a product loses digits to
    /// underflow is no number.
    pub(super) fn multiply(&self, a: &[Double], b: &[Double], to: &mut [Double]) {
        to.fill(Double::ZERO);
        for (i, &x) in a.iter().enumerate() {
            if x == Double::ZERO {
                continue;
            }
            for (j, &y) in b.iter().enumerate() {
                if let Some(at) = self.products[i * self.len() + j]
                    && let Some(sum) = to.get_mut(at)
                {
                    *sum = *sum + x.times_in_range(y);
                }
            }
        }
    }

    /// The number of the product of two monomials, if its degree is low enough.
    pub(super) fn product(&self, a: usize, b: usize) -> Option<usize> {
        self.products.get(a * self.len() + b).copied().flatten()
    }

    /// The monomials at `point`.
    pub(super) fn at(&self, point: &[f64]) -> At<'_> {
        let powers = point.iter().map(|&x| {
            let powers = core::iter::successors(Some(1.0), |power| Some(power * x));
            powers.take(self.counts.len()).collect()
        });
        At { basis: self, powers: powers.collect() }
    }
}

/// Monomials at a point.
pub(super) struct At<'a> {
    basis: &'a Basis,
    /// Of each variable, from the power zero to the degree of the basis.
    powers: Vec<Vec<f64>>,
}

impl At<'_> {
    /// What the derivative of each monomial by each of `variables` in turn is.
    pub(super) fn derivatives(&self, variables: &[usize]) -> Vec<f64> {
        let value = |monomial: &Vec<u32>| {
            let mut value = 1.0;
            for (variable, (&exponent, powers)) in monomial.iter().zip(&self.powers).enumerate() {
                let mut exponent = exponent;
                for _ in variables.iter().filter(|&&other| other == variable) {
                    value *= f64::from(exponent);
                    exponent = exponent.saturating_sub(1);
                }
                value *= powers[exponent as usize];
            }
            value
        };
        self.basis.monomials.iter().map(value).collect()
    }
}

/// The monomials of a product.
fn product(a: &BTreeSet<Vec<u32>>, b: &BTreeSet<Vec<u32>>) -> BTreeSet<Vec<u32>> {
    let sum = |a: &[u32], b: &[u32]| a.iter().zip(b).map(|(a, b)| a + b).collect();
    a.iter().flat_map(|a| b.iter().map(move |b| sum(a, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_has_each_monomial_once() {
        let basis = Basis::new(2, 2, 100).unwrap();
        assert_eq!(
            basis.monomials,
            [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]].map(Vec::from)
        );
        assert_eq!((basis.count(1), basis.variable(1)), (3, Some(2)));
        assert!(Basis::new(3, 4, 20).is_none());
        assert_eq!(Basis::new(0, 0, 1).unwrap().len(), 1);
    }

    #[test]
    fn products_collect_their_terms() {
        let basis = Basis::new(1, 2, 10).unwrap();
        let line = [Double::from(3.0), Double::from(2.0)];
        let mut square = [Double::ZERO; 3];
        basis.multiply(&line, &line, &mut square);
        assert_eq!(square.map(Double::rounded), [9.0, 12.0, 4.0]);
        assert_eq!(basis.at(&[5.0]).derivatives(&[]), [1.0, 5.0, 25.0]);
        assert_eq!(basis.at(&[5.0]).derivatives(&[0]), [0.0, 1.0, 10.0]);
        assert_eq!(basis.at(&[5.0]).derivatives(&[0, 0]), [0.0, 0.0, 2.0]);
        // 1, x, y, x², xy and y².
        let at = [5.0, 3.0];
        let basis = Basis::new(2, 2, 10).unwrap();
        assert_eq!(basis.at(&at).derivatives(&[]), [1.0, 5.0, 3.0, 25.0, 15.0, 9.0]);
        assert_eq!(basis.at(&at).derivatives(&[1]), [0.0, 0.0, 1.0, 0.0, 5.0, 6.0]);
        assert_eq!(basis.at(&at).derivatives(&[0, 1]), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    }
}
