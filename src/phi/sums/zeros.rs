//! Where a sum is zero whatever its data are: a factor without data is zero where its
//! variables are, and nothing that is computed around another pivot is, not in pairs of
//! numbers either.

use super::frame::Frame;
use super::moments::Moments;
use super::polynomial::Basis;
use super::rows::Lines;
use super::terms::{Step, Terms};
use crate::op::Op;

/// Why there is no form.
pub(super) const LOST: &str = "a form would not be zero where a factor without data is";

/// So many sets of variables are looked at that may be zero, beside all.
const MOST_SETS: usize = 14;

/// What counts for a variable that is not zero, beside its pivot.
const ELSEWHERE: f64 = 0.617;

/// Whether all terms, or all their derivatives by a variable, are zero where some variables
/// are, and the form that has these `moments` in `frame` is not. `at` tells the moments in
/// other frames.
pub(super) fn are_lost(
    basis: &Basis,
    frame: &Frame,
    moments: &Moments,
    mut at: impl FnMut(&Frame) -> Option<Moments>,
) -> bool {
    let pivot = &frame.pivot;
    let all = (1u32 << pivot.len()) - 1;
    let mut sets = (1..all).take(MOST_SETS).chain([all]);
    sets.any(|set| {
        let is_in = |&variable: &usize| set >> variable & 1 == 1;
        if !(0..pivot.len()).filter(is_in).any(|variable| pivot[variable] != 0.0) {
            return false;
        }
        let elsewhere = |variable: usize| match is_in(&variable) {
            true => 0.0,
            false => 1.5 * pivot[variable] + ELSEWHERE,
        };
        let place: Vec<f64> = (0..pivot.len()).map(elsewhere).collect();
        let Some(there) = at(&Frame::at(place.clone())) else { return false };
        let mut parts = core::iter::once(None).chain((0..pivot.len()).map(Some));
        parts.any(|variable| {
            let number = variable.map_or(Some(0), |variable| basis.variable(variable));
            let is_zero = number.is_some_and(|number| there.magnitudes[number] == 0.0);
            is_zero && is_made_of_any(basis, frame, moments, &place, variable)
        })
    })
}

/// Whether the form, or its derivative by a variable, adds up anything at `place`.
fn is_made_of_any(
    basis: &Basis,
    frame: &Frame,
    moments: &Moments,
    place: &[f64],
    variable: Option<usize>,
) -> bool {
    let differences: Vec<f64> =
        place.iter().zip(&frame.pivot).map(|(x, pivot)| x - pivot).collect();
    let coordinate = |(number, factors): (usize, &Vec<f64>)| {
        let added = factors.iter().zip(&differences).map(|(factor, x)| factor * x);
        differences[number] + added.sum::<f64>()
    };
    let coordinates: Vec<f64> = frame.shear.iter().enumerate().map(coordinate).collect();
    // A variable is in its own coordinate, and in those that the shear adds it to.
    let of = |by: usize| {
        let is_in = move |&other: &usize| {
            other == by || frame.shear[other].get(by).is_some_and(|factor| *factor != 0.0)
        };
        (0..coordinates.len()).filter(is_in)
    };
    let monomials = basis.at(&coordinates);
    let is_any = |by: Option<usize>| {
        let values = monomials.derivatives(by.as_slice());
        values.iter().zip(&moments.sums).any(|(value, sum)| value * sum.rounded() != 0.0)
    };
    match variable {
        None => is_any(None),
        Some(variable) => of(variable).any(|other| is_any(Some(other))),
    }
}

/// Whether a factor of `lines` without data has a variable that is measured from a pivot
/// which the data tell.
pub(super) fn may_be_lost(lines: &Lines) -> bool {
    let terms = &lines.terms;
    let (has_number, variables) = (has_number(terms), lines.variables_of_steps());
    let measured: Vec<usize> = lines
        .steps()
        .filter(|&step| has_number[step])
        .flat_map(|step| variables[step].iter().copied())
        .collect();
    let is_factor = |&step: &usize| {
        terms.degrees[step] == 1
            && !has_number[step]
            && variables[step].iter().any(|variable| measured.contains(variable))
    };
    terms.steps.iter().zip(&terms.degrees).any(|(step, &degree)| match step {
        Step::Apply(Op::Mul | Op::MulAdd, [a, b, _]) if degree > 1 => {
            [a, b].into_iter().any(is_factor)
        }
        Step::Apply(Op::Powi, [a, ..]) if degree > 1 => is_factor(a),
        _ => false,
    })
}

/// Which steps have a part that does not depend on the variables.
fn has_number(terms: &Terms) -> Vec<bool> {
    let mut has: Vec<bool> = Vec::new();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        let of = |step: usize| has.get(step).copied().unwrap_or(false);
        has.push(match step {
            Step::Variable(_) => false,
            Step::Apply(op, [a, b, c]) if degree > 0 => match op {
                Op::Mul => of(*a) && of(*b),
                Op::MulAdd => of(*a) && of(*b) || of(*c),
                Op::Add | Op::Sub => of(*a) || of(*b),
                Op::Select => of(*b) || of(*c),
                _ => of(*a),
            },
            _ => true,
        });
    }
    has
}
