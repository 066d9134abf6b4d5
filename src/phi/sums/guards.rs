//! Which data, and which sums over them, a form serves: where products of the data could
//! overflow or underflow the kernel stops.

use super::hoist::Sum;
use super::rows::Lines;
use super::steps::{Place, Steps};
use super::terms::{Step, Terms};
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::ssa::Node;

/// Products of as many data as are multiplied have at most this power of ten, or its inverse.
const MOST: f64 = 200.0;

/// A number between this and its inverse counts for nothing in products.
const MODERATE: f64 = 1e5;

/// Quotients of sums over the data are at most so large.
const LARGEST_QUOTIENT: f64 = 1e100;

/// The sizes that coefficients may have which are not zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    low: f64,
    high: f64,
}

impl Sizes {
    /// Those for which the products in the form of `lines` are in range, or why a
    /// constant is not of such a size.
    pub(super) fn of(lines: &Lines) -> Result<Sizes, String> {
        let terms = &lines.terms;
        let weights = weights(terms);
        let added = terms.added.iter().map(|&(_, step)| weights[step]);
        // What makes slopes orthogonal squares them.
        let slopes = lines.steps().map(|step| weights[step].saturating_mul(2));
        let most = added.chain(slopes).max().unwrap_or(0).max(2);
        let high = 10f64.powf(MOST / f64::from(most));
        let sizes = Sizes { low: high.recip(), high };
        let number = |&(step, _): &(usize, bool)| match terms.steps[step] {
            Step::Number(number) => Some(number.abs()),
            _ => None,
        };
        let is_in = |size: f64| size == 0.0 || (sizes.low..=sizes.high).contains(&size);
        match coefficients(terms).iter().filter_map(number).all(is_in) {
            true => Ok(sizes),
            false => Err("products with a constant in it could overflow or underflow".to_owned()),
        }
    }
}

/// How many coefficients are multiplied in each step.
fn weights(terms: &Terms) -> Vec<u32> {
    let mut weights: Vec<u32> = Vec::new();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        weights.push(match step {
            Step::Number(x) if (MODERATE.recip()..=MODERATE).contains(&x.abs()) => 0,
            Step::Variable(_) => 0,
            Step::Apply(op, args) if degree > 0 => {
                let [a, b, c] = args.map(|arg| weights.get(arg).copied().unwrap_or(0));
                match op {
                    Op::Mul | Op::Div => a.saturating_add(b),
                    Op::MulAdd => a.saturating_add(b).max(c),
                    Op::Powi => a.saturating_mul(degree / terms.degrees[args[0]].max(1)),
                    Op::Select => b.max(c),
                    Op::Neg => a,
                    _ => a.max(b),
                }
            }
            _ => 1,
        });
    }
    weights
}

/// The steps without variables of which those with variables are made, or that are added,
/// and whether they are divisors.
fn coefficients(terms: &Terms) -> Vec<(usize, bool)> {
    let mut found: Vec<(usize, bool)> =
        terms.added.iter().map(|&(_, step)| (step, false)).collect();
    for (step, &degree) in terms.steps.iter().zip(&terms.degrees) {
        let Step::Apply(op, args) = step else { continue };
        if degree == 0 {
            continue;
        }
        let used = match op {
            Op::Powi => 0..1,
            Op::Select => 1..3,
            _ => 0..op.arity(),
        };
        found.extend(used.map(|number| (args[number], *op == Op::Div && number == 1)));
    }
    found.retain(|&(step, _)| terms.degrees[step] == 0);
    found.sort_unstable();
    found.dedup();
    found
}

impl Sum<'_> {
    /// Goes through the data before the loops around, and stops the graph there if the size
    /// of one of them is out of range.
    pub(super) fn require_sizes(&mut self, sizes: Sizes) {
        let (lines, outer, region) = (self.lines, self.outer, self.region);
        let is_number = |step: usize| matches!(lines.terms.steps[step], Step::Number(_));
        let mut used = coefficients(&lines.terms);
        // A divisor that is zero is out of range, whatever it is.
        used.retain(|&(step, is_divisor)| is_divisor || !is_number(step));
        if used.is_empty() {
            return;
        }
        let (zero, one) = (self.draft.constant(0.0), self.draft.constant(1.0));
        let body = self.draft.begin_loop(outer, self.count(), &[one, zero]);
        let results = lines.known(self.draft, &body, region);
        let mut steps = Steps { draft: self.draft, place: Place::In(&body) };
        let (mut low, mut high) = (body.entries[0], body.entries[1]);
        for (step, is_divisor) in used {
            let Some(x) = results[step] else { continue };
            let size = steps.apply(Op::Abs, &[x]);
            let least = match is_divisor {
                true => size,
                false => {
                    let is_zero = steps.apply(Op::Eq, &[x, zero]);
                    steps.apply(Op::Select, &[is_zero, one, size])
                }
            };
            low = steps.apply(Op::Min, &[low, least]);
            // Of a sum infinity and what is no number stay.
            high = steps.apply(Op::Add, &[high, size]);
        }
        let found = self.draft.end_loop(&body, &[low, high]);
        self.draft.require(outer, Op::Ge, found[0], sizes.low);
        self.draft.require(outer, Op::Le, found[1], sizes.high);
    }

    /// Stops the graph before the loops around if one of these quotients is too large.
    pub(super) fn require_quotients<'n>(&mut self, quotients: impl Iterator<Item = &'n Node>) {
        for &node in quotients {
            if self.draft.graph.constant(node).is_none() {
                self.draft.require_size(self.outer, node, 0.0, LARGEST_QUOTIENT);
            }
        }
    }
}
