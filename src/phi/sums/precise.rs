//! Sums whose parts may cancel: polynomials computed in pairs of numbers, with their
//! derivatives.
//!
//! Around any pivot the parts of a polynomial in several variables cancel somewhere: those
//! of a parabola through points do almost everywhere. The loop's own error is small there,
//! as what it adds up is small. In pairs of numbers, and with coefficients that are pairs,
//! what cancels has digits left. A sweep would go through the first numbers alone, so the
//! derivatives are polynomials of their own, also in pairs, and tangents tell them.

use super::chain::Chain;
use super::form::all_moved_out;
use super::frame::Frame;
use super::steps::{Place, Steps};
use super::terms::Terms;
use super::{Moments, Sum};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::draft::Draft;
use crate::phi::pair::{Pair, Pairs};
use crate::phi::sums::polynomial::Basis;
use crate::ssa::{Def, Node, Region};

/// About how many steps a product of pairs takes to which another pair is added.
const STEP: u64 = 22;

/// A monomial: its exponents and its coefficient.
pub(super) type Monomial<'a, C = Double> = (&'a [u32], C);

/// About how many steps the form and its derivatives take.
pub(super) fn cost(moments: &Moments, basis: &Basis) -> u64 {
    let counted = |monomial: &Monomial<'_>| 1 + monomial.0.iter().filter(|&&e| e > 0).count();
    let all: usize = monomials(moments, basis).iter().map(counted).sum();
    STEP * all as u64
}

fn monomials<'a>(moments: &Moments, basis: &'a Basis) -> Vec<Monomial<'a>> {
    let all = basis.monomials.iter().map(Vec::as_slice).zip(moments.sums.iter().copied());
    all.filter(|&(_, coefficient)| coefficient != Double::ZERO).collect()
}

/// Inserts what `sum` is before `region`, the loop that it replaces, if that is in no other.
pub(super) fn emit(draft: &mut Draft, region: Region, chain: &Chain, sum: &Sum) -> Node {
    let Some((frame, moments)) = sum.parts.first() else { return draft.constant(0.0) };
    let mut steps = Steps { draft, place: Place::Before(region) };
    let is_apart = steps.value(chain.first).is_none() && sum.terms.begin.is_none();
    let first = is_apart.then_some(chain.first);
    let polynomial = Polynomial::of(&mut steps, region, &sum.terms, &sum.basis, frame, moments);
    let zero = steps.number(0.0, 0.0);
    let value = steps.sum(first.map(Pair::from), polynomial.value).unwrap_or(zero);
    let value = steps.rounded(value);
    let one = steps.constant(1.0);
    let mut slopes: Vec<(Node, Node)> = first.into_iter().map(|first| (first, one)).collect();
    for (variable, slope) in by_what_logarithms_are_of(&mut steps, polynomial.slopes) {
        slopes.push((variable, steps.rounded(slope)));
    }
    steps.with_slopes(value, &slopes)
}

/// Whether one of `variables` is the logarithm of another one, so that the derivatives
/// by both may cancel: those of a·ln x − b·x do at its maximum, and each term may have its
/// own near to that.
pub(super) fn has_logarithm(draft: &Draft, variables: &[Node]) -> bool {
    variables.iter().any(|&variable| {
        let of = logarithm(draft, variable);
        of.is_some_and(|(_, of)| variables.iter().any(|&variable| draft.resolve(variable) == of))
    })
}

/// How many times the logarithm of which number, or of a constant times that, `node` is: by
/// that number the derivative is the same.
fn logarithm(draft: &Draft, node: Node) -> Option<(f64, Node)> {
    let (times, logarithm) = without_factors(draft, node);
    match draft.graph.nodes[logarithm].def {
        Def::Apply(Op::Ln, [of, ..]) => Some((times, without_factors(draft, of).1)),
        _ => None,
    }
}

/// The constant factors of `node`, and what they multiply.
fn without_factors(draft: &Draft, node: Node) -> (f64, Node) {
    let constant = |node: Node| draft.graph.constant(draft.resolve(node));
    let (mut times, mut node) = (1.0, draft.resolve(node));
    loop {
        let (factor, of) = match draft.graph.nodes[node].def {
            Def::Apply(Op::Neg, [of, ..]) => (-1.0, of),
            Def::Apply(Op::Mul, [a, b, _]) => match (constant(a), constant(b)) {
                (Some(factor), _) => (factor, b),
                (_, Some(factor)) => (factor, a),
                _ => return (times, node),
            },
            _ => return (times, node),
        };
        times *= factor;
        node = draft.resolve(of);
    }
}

/// `slopes` with those by logarithms of other variables among those by these.
fn by_what_logarithms_are_of(
    steps: &mut Steps<'_>,
    mut slopes: Vec<(Node, Pair)>,
) -> Vec<(Node, Pair)> {
    for number in (0..slopes.len()).rev() {
        let (variable, slope) = slopes[number];
        let Some((times, of)) = logarithm(steps.draft, variable) else { continue };
        let of_slopes = slopes.iter().position(|&(variable, _)| variable == of);
        if let Some(other) = of_slopes {
            let times = steps.number(times, 0.0);
            let slope = steps.product(times, slope);
            let part = steps.quotient(slope, of);
            if let Some(sum) = steps.sum(Some(slopes[other].1), Some(part)) {
                slopes[other].1 = sum;
                slopes.remove(number);
            }
        }
    }
    slopes
}

/// A polynomial as steps before a loop.
pub(super) struct Polynomial {
    /// Nothing if it is zero.
    pub(super) value: Option<Pair>,
    /// The derivatives by nodes, other than zeros.
    pub(super) slopes: Vec<(Node, Pair)>,
}

impl Polynomial {
    /// The polynomial that `terms` come to, with these `moments` in `frame`.
    pub(super) fn of(
        steps: &mut Steps<'_>,
        region: Region,
        terms: &Terms,
        basis: &Basis,
        frame: &Frame,
        moments: &Moments,
    ) -> Polynomial {
        let variables = all_moved_out(steps.draft, region, &terms.variables);
        let mut differences: Vec<Pair> = Vec::new();
        for (&variable, &pivot) in variables.iter().zip(&frame.pivot) {
            let variable = Pair::from(variable);
            let pivot = (pivot != 0.0).then(|| steps.number(-pivot, 0.0));
            differences.push(steps.sum(Some(variable), pivot).unwrap_or(variable));
        }
        let coordinates = sheared(steps, frame, &differences);
        let monomials = monomials(moments, basis);
        let value = nested(steps, &monomials, &coordinates, &of_number);
        let mut by_coordinates: Vec<Option<Pair>> = Vec::new();
        for number in 0..variables.len() {
            let lowered = lowered(&monomials, number);
            let lowered = lowered.iter().map(|(e, sum)| (e.as_slice(), *sum));
            let lowered: Vec<Monomial<'_>> = lowered.collect();
            by_coordinates.push(nested(steps, &lowered, &coordinates, &of_number));
        }
        let mut slopes = Vec::new();
        for (number, &variable) in variables.iter().enumerate() {
            if steps.draft.is_passive(variable) {
                continue;
            }
            let mut slope = by_coordinates[number];
            let later = by_coordinates.iter().zip(&frame.shear).skip(number + 1);
            for (&part, shear) in later {
                let part = part.map(|part| steps.normal(part));
                let part = scaled(steps, part, shear[number]);
                slope = steps.sum(slope, part);
            }
            slopes.extend(slope.map(|slope| (variable, slope)));
        }
        Polynomial { value, slopes }
    }
}

/// The coordinates of `frame`, of differences from its pivot.
fn sheared(steps: &mut Steps<'_>, frame: &Frame, differences: &[Pair]) -> Vec<Pair> {
    let mut coordinates = Vec::new();
    for (&difference, factors) in differences.iter().zip(&frame.shear) {
        let mut coordinate = difference;
        for (&other, &factor) in differences.iter().zip(factors.iter()) {
            let part = scaled(steps, Some(other), factor);
            coordinate = steps.sum(Some(coordinate), part).unwrap_or(coordinate);
        }
        let is_changed = coordinate != difference;
        coordinates.push(if is_changed { steps.normal(coordinate) } else { difference });
    }
    coordinates
}

/// A number so many times; nothing if that is zero.
fn scaled(steps: &mut Steps<'_>, number: Option<Pair>, factor: f64) -> Option<Pair> {
    let number = number.filter(|_| factor != 0.0)?;
    let factor = steps.number(factor, 0.0);
    Some(steps.product(factor, number))
}

/// The derivatives of monomials by variable `number`.
fn lowered(monomials: &[Monomial<'_>], number: usize) -> Vec<(Vec<u32>, Double)> {
    let with = monomials.iter().filter(|(exponents, _)| exponents[number] > 0);
    let lower = |&(exponents, coefficient): &Monomial<'_>| {
        let mut lower = exponents.to_vec();
        lower[number] -= 1;
        (lower, Double::from(f64::from(exponents[number])) * coefficient)
    };
    with.map(lower).collect()
}

/// The sum of monomials, by Horner's rule, with pairs for their coefficients.
pub(super) fn nested<C: Copy>(
    steps: &mut Steps<'_>,
    monomials: &[Monomial<'_, C>],
    differences: &[Pair],
    pair: &impl Fn(&mut Steps<'_>, C) -> Pair,
) -> Option<Pair> {
    let Some((&difference, rest)) = differences.split_first() else {
        return monomials.first().map(|&(_, coefficient)| pair(steps, coefficient));
    };
    let exponent = |monomial: &Monomial<'_, C>| monomial.0[monomial.0.len() - differences.len()];
    let degree = monomials.iter().map(exponent).max()?;
    let mut form: Option<Pair> = None;
    for power in (0..=degree).rev() {
        let inner = monomials.iter().copied().filter(|monomial| exponent(monomial) == power);
        let inner: Vec<Monomial<'_, C>> = inner.collect();
        form = form.map(|form| {
            let form = steps.normal(form);
            steps.product(form, difference)
        });
        let inner = nested(steps, &inner, rest, pair);
        form = steps.sum(form, inner);
    }
    form
}

/// The pair of a number of twice the digits.
fn of_number(steps: &mut Steps<'_>, number: Double) -> Pair {
    steps.number(number.high, number.low)
}
