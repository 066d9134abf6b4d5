//! Sums of polynomials over data that are known only in a call.
//!
//! The coefficients of what each iteration adds, around the pivot and in the coordinates
//! that `hoist` finds for its lines, are added up in pairs of numbers before the loops
//! around. What the form and its derivatives are of them is computed in pairs, too, and
//! told by tangents, since for some values of the variables its parts cancel.

use std::collections::BTreeSet;

use super::hoist::{Coordinates, Sum};
use super::polynomial::Basis;
use super::precise::{Monomial, nested};
use super::rows::Lines;
use super::steps::{Coefficient, Place, Steps};
use super::terms::Step;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// About how many steps a product of pairs takes that is added to another.
const STEP: u64 = 20;

/// The monomials of the terms of `lines`, if a form is shorter than a loop of the first of
/// `counts` that is run as often as the second says.
pub(super) fn basis(
    lines: &Lines,
    counts: (u64, u64),
    limit: usize,
    all_forms: bool,
) -> Result<Basis, String> {
    let (count, runs) = counts;
    let variables = lines.terms.variables.len();
    let basis = match lines.mixes() {
        // A shear makes others of monomials.
        true => Basis::new(variables, lines.terms.degree(), limit),
        false => Basis::covering(&lines.terms, limit),
    };
    let basis = basis.ok_or_else(|| format!("a form would have more than {limit} monomials"))?;
    let (work, size) = work(lines, &basis);
    let form = STEP * (size * (1 + variables)) as u64;
    let before = count.saturating_mul(work);
    // A loop takes three steps for one where its derivatives are computed as well.
    let loops = runs.saturating_mul(3 * count).saturating_mul(lines.terms.steps.len() as u64);
    // To gain little is not worth that its steps wait for each other.
    let form = before.saturating_add(runs.saturating_mul(form));
    match form.saturating_mul(2) > loops && !all_forms {
        true => Err("a form would be no shorter".to_owned()),
        false => Ok(basis),
    }
}

/// About how many steps it takes to compute the coefficients of one iteration, and how many
/// of these there are.
fn work(lines: &Lines, basis: &Basis) -> (u64, usize) {
    let (terms, mixes) = (&lines.terms, lines.mixes());
    let measured: BTreeSet<usize> = lines.variables().into_iter().flatten().collect();
    let line: BTreeSet<usize> = (1..=terms.variables.len()).collect();
    let mut known: Vec<BTreeSet<usize>> = Vec::new();
    let mut all = 0;
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        let (result, products) = match step {
            // One in no line is a factor: its pivot is zero.
            Step::Variable(number) if !measured.contains(number) => {
                (BTreeSet::from([1 + number]), 0)
            }
            Step::Variable(_) if mixes => (&line | &BTreeSet::from([0]), 0),
            Step::Variable(number) => (BTreeSet::from([0, 1 + number]), 0),
            Step::Apply(op, args) if degree > 0 => {
                let [a, b, c] = args.map(|arg| known.get(arg).cloned().unwrap_or_default());
                match op {
                    Op::Mul if args[0] == args[1] => {
                        (product(basis, &a, &b), a.len() * (a.len() + 1) / 2)
                    }
                    Op::Mul => (product(basis, &a, &b), a.len() * b.len()),
                    Op::MulAdd => (&product(basis, &a, &b) | &c, a.len() * b.len()),
                    Op::Powi => {
                        let times = degree / terms.degrees[args[0]].max(1);
                        let power =
                            (1..times).fold(a.clone(), |power, _| product(basis, &power, &a));
                        (power, times.ilog2() as usize * 2 * a.len() * a.len())
                    }
                    _ => (&(&a | &b) | &c, a.len()),
                }
            }
            Step::Apply(..) => (BTreeSet::from([0]), 1),
            _ => (BTreeSet::from([0]), 0),
        };
        all += products;
        known.push(result);
    }
    let size =
        terms.added.iter().flat_map(|&(_, step)| &known[step]).collect::<BTreeSet<_>>().len();
    (STEP * (all + size) as u64, size)
}

fn product(basis: &Basis, a: &BTreeSet<usize>, b: &BTreeSet<usize>) -> BTreeSet<usize> {
    a.iter().flat_map(|&i| b.iter().filter_map(move |&j| basis.product(i, j))).collect()
}

impl Sum<'_> {
    /// Inserts a loop over the data before the loops around, and the form before the loop.
    pub(super) fn expanded(
        &mut self,
        basis: &Basis,
        coordinates: &Coordinates,
        pivots: &[Node],
    ) -> Node {
        let size = self.variables.len();
        let zero = self.draft.constant(0.0);
        let shear = match self.lines.mixes() {
            true => coordinates.shear.clone(),
            false => vec![vec![zero; size]; size],
        };
        let measured: BTreeSet<usize> = self.lines.variables().into_iter().flatten().collect();
        let pivot = |(number, &pivot): (usize, &Node)| match measured.contains(&number) {
            true => pivot,
            false => zero,
        };
        let pivot: Vec<Node> = pivots.iter().enumerate().map(pivot).collect();
        let differences = self.inverse(&shear);
        let body = self.begin(2 * basis.len());
        let (lines, region) = (self.lines, self.region);
        let mut sums = lines.coefficients(self.draft, &body, region, &pivot, &differences, basis);
        sums.resize(basis.len(), None);
        let found = self.end_pairs(&body, &sums);
        let monomials: Vec<(Vec<u32>, Pair)> = basis
            .monomials
            .iter()
            .zip(found)
            .zip(&sums)
            .filter(|(_, sum)| sum.is_some())
            .map(|((monomial, pair), _)| (monomial.clone(), pair))
            .collect();
        let slopes: Vec<Vec<(Vec<u32>, Pair)>> =
            (0..size).map(|number| self.lowered(&monomials, number)).collect();
        let coordinates = self.coordinates(&pivot, &shear);
        let mut steps = Steps { draft: self.draft, place: Place::Before(self.region) };
        let coordinates: Vec<Pair> =
            coordinates.into_iter().map(|coordinate| steps.normal(coordinate)).collect();
        let form = |steps: &mut Steps<'_>, monomials: &[(Vec<u32>, Pair)]| {
            let monomials: Vec<Monomial<'_, Pair>> =
                monomials.iter().map(|(exponents, pair)| (exponents.as_slice(), *pair)).collect();
            nested(steps, &monomials, &coordinates, &|_, pair| pair)
        };
        let value = form(&mut steps, &monomials);
        let by_coordinates: Vec<Option<Pair>> =
            slopes.iter().map(|monomials| form(&mut steps, monomials)).collect();
        let mut slopes = Vec::new();
        for (number, &variable) in self.variables.iter().enumerate() {
            if steps.draft.is_passive(variable) {
                continue;
            }
            let mut slope = by_coordinates[number];
            for (before, &part) in by_coordinates.iter().enumerate().take(number) {
                let factor = Some(shear[before][number]).filter(|&factor| factor != zero);
                let part = part.map(|part| steps.normal(part));
                let part = steps.times(factor.map(Pair::from), part, true);
                slope = steps.sum(slope, part);
            }
            slopes.extend(slope.map(|slope| (variable, steps.rounded(slope))));
        }
        let value = value.unwrap_or(zero.into());
        let value = steps.rounded(value);
        steps.with_slopes(value, &slopes)
    }

    /// The differences of the variables from the pivot as linear forms in the coordinates.
    fn inverse(&mut self, shear: &[Vec<Node>]) -> Vec<Vec<Coefficient>> {
        let size = shear.len();
        let mut steps = Steps { draft: self.draft, place: Place::Before(self.outer) };
        let (zero, one) = (steps.constant(0.0), steps.constant(1.0));
        let mut rows: Vec<Vec<Coefficient>> = vec![vec![None; size]; size];
        for number in (0..size).rev() {
            let mut row = vec![None; size];
            row[number] = Some(one.into());
            for other in number + 1..size {
                let factor = Some(shear[number][other]).filter(|&factor| factor != zero);
                for (to, &part) in row.iter_mut().zip(&rows[other]) {
                    let part = steps.times(factor.map(Pair::from), part, true);
                    *to = steps.minus(*to, part, true);
                }
            }
            rows[number] = row;
        }
        rows
    }

    /// The derivatives of monomials by coordinate `number`.
    fn lowered(&mut self, monomials: &[(Vec<u32>, Pair)], number: usize) -> Vec<(Vec<u32>, Pair)> {
        let mut steps = Steps { draft: self.draft, place: Place::Before(self.outer) };
        let mut lowered = Vec::new();
        for (exponents, coefficient) in monomials {
            let mut lower = exponents.clone();
            let Some(exponent) = lower[number].checked_sub(1) else { continue };
            lower[number] = exponent;
            let factor = steps.number(f64::from(exponent) + 1.0, 0.0);
            let part = steps.times(Some(factor), Some(*coefficient), true);
            lowered.extend(part.map(|part| (lower, steps.normal(part))));
        }
        lowered
    }
}
