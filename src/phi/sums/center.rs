//! Where the lines of which terms are made are smallest: a pivot for products of any degree.
//!
//! Of a residual to the fourth power, or of the distance from a circle, the sum itself tells
//! little of where its data are; the lines in it do, as a least-squares problem.

use super::condition::vertex;
use super::frame::Frame;
use super::moments::Evaluator;
use super::polynomial::Basis;
use super::rows::factors;
use super::terms::{Step, Terms};
use crate::op::Op;

/// The point in which the sum of the squares of all lines with data in them is least, over
/// `count` iterations and in these `around`; `None` if the terms are no products of lines.
pub(super) fn center(terms: &Terms, limit: usize, count: u32, around: &[u32]) -> Option<Vec<f64>> {
    if terms.degree() < 3 {
        return None;
    }
    let lines = factors(terms);
    let mut squares = Terms { added: Vec::new(), begin: None, ..terms.clone() };
    for (step, degree) in squares.steps.iter_mut().zip(&mut squares.degrees) {
        if *degree > 1 {
            (*step, *degree) = (Step::Number(0.0), 0);
        }
    }
    for line in lines {
        squares.added.push((1.0, squares.steps.len()));
        squares.steps.push(Step::Apply(Op::Mul, [line; 3]));
        squares.degrees.push(2);
    }
    let variables = terms.variables.len();
    let basis = Basis::new(variables, 2, limit)?;
    let mut evaluator = Evaluator::new(&squares, &basis);
    let mut at = |pivot: Vec<f64>| evaluator.moments(0.0, &Frame::at(pivot), count, around);
    let first = vertex(&at(vec![0.0; variables])?, &basis, variables)?;
    // Once more from there, where less cancels.
    let step = vertex(&at(first.clone())?, &basis, variables)?;
    Some(first.iter().zip(step).map(|(pivot, step)| pivot + step).collect())
}
