//! Invariants out of sums: Σ v·g(i) = v·Σ g(i).
//!
//! A variable that is a factor of all terms makes each monomial one of a higher degree, and its
//! place has nothing to do with where what is left of the terms cancels.

use super::chain::Chain;
use super::form::all_moved_out;
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::draft::Draft;
use crate::ssa::{Node, Region};

/// `terms` without variables that are factors of all of them, and those variables; `None` if
/// there are none, or fewer than two variables.
pub(super) fn without_factors(terms: &Terms) -> Option<(Terms, Vec<Node>)> {
    if terms.variables.len() < 2 {
        return None;
    }
    let (mut terms, mut factors) = (terms.clone(), Vec::new());
    // Others are left after each, and a power has its base several times.
    let mut variable = 0;
    while variable < terms.variables.len() {
        match divided(&terms, variable) {
            Some(quotient) => {
                factors.push(terms.variables[variable]);
                terms = quotient;
            }
            None => variable += 1,
        }
    }
    if factors.is_empty() {
        return None;
    }
    Some((with_what_is_used(&terms), factors))
}

/// `made`, which is the sum of what is left of the terms, times the `factors`, and what `chain`
/// begins with.
pub(super) fn multiplied(
    draft: &mut Draft,
    region: Region,
    chain: &Chain,
    made: Node,
    factors: &[Node],
) -> Node {
    let factors = all_moved_out(draft, region, factors);
    let product =
        factors.into_iter().fold(made, |made, by| draft.apply(region, Op::Mul, &[made, by]));
    match draft.graph.constant(chain.first) {
        Some(_) => product,
        None => draft.apply(region, Op::Add, &[chain.first, product]),
    }
}

/// `terms` divided by this variable, if it is a factor of all of them.
fn divided(terms: &Terms, variable: usize) -> Option<Terms> {
    let mut divided = terms.clone();
    let mut quotients: Vec<Option<usize>> = Vec::new();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        let quotient = match *step {
            Step::Variable(number) => (number == variable).then_some(Step::Number(1.0)),
            Step::Apply(op, args) => quotient(op, args, &quotients),
            _ => None,
        };
        quotients.push(quotient.map(|step| {
            divided.steps.push(step);
            divided.degrees.push(degree.saturating_sub(1));
            divided.steps.len() - 1
        }));
    }
    for (_, step) in &mut divided.added {
        *step = quotients[*step]?;
    }
    Some(divided)
}

/// What `op` of `args` is divided by the variable, where those that have it as a factor have
/// these quotients.
fn quotient(op: Op, args: [usize; 3], quotients: &[Option<usize>]) -> Option<Step> {
    let [a, b, c] = args.map(|arg| quotients.get(arg).copied().flatten());
    let args = match op {
        Op::Neg => [a?, args[1], args[2]],
        Op::Add | Op::Sub => [a?, b?, args[2]],
        Op::Mul | Op::Div if a.is_some() => [a?, args[1], args[2]],
        Op::Mul => [args[0], b?, args[2]],
        Op::MulAdd if a.is_some() => [a?, args[1], c?],
        Op::MulAdd => [args[0], b?, c?],
        Op::Select => [args[0], b?, c?],
        _ => return None,
    };
    Some(Step::Apply(op, args))
}

/// `terms` with those steps and variables alone that they are made of.
fn with_what_is_used(terms: &Terms) -> Terms {
    let mut used = vec![false; terms.steps.len()];
    terms.added.iter().for_each(|&(_, step)| used[step] = true);
    for (number, step) in terms.steps.iter().enumerate().rev() {
        if let (true, Step::Apply(op, args)) = (used[number], step) {
            args[..op.arity()].iter().for_each(|&arg| used[arg] = true);
        }
    }
    let mut kept = Terms {
        steps: Vec::new(),
        degrees: Vec::new(),
        added: Vec::new(),
        begin: None,
        variables: Vec::new(),
        loops: terms.loops.clone(),
    };
    let (mut numbers, mut variables) = (vec![0; terms.steps.len()], Vec::new());
    for (number, step) in terms.steps.iter().enumerate().filter(|&(number, _)| used[number]) {
        let mut step = step.clone();
        match &mut step {
            Step::Variable(variable) => {
                let known = variables.iter().position(|known| known == variable);
                let new = known.unwrap_or_else(|| {
                    variables.push(*variable);
                    kept.variables.push(terms.variables[*variable]);
                    variables.len() - 1
                });
                *variable = new;
            }
            Step::Apply(op, args) => {
                args[..op.arity()].iter_mut().for_each(|arg| *arg = numbers[*arg]);
            }
            _ => {}
        }
        numbers[number] = kept.steps.len();
        kept.steps.push(step);
        kept.degrees.push(terms.degrees[number]);
    }
    kept.added = terms.added.iter().map(|&(sign, step)| (sign, numbers[step])).collect();
    kept
}
