//! Sums of exponentials of data and what is invariant: Σ wᵢ·exp(u + cᵢ) is S·exp(u + m),
//! where m is the largest of the data cᵢ and S is Σ wᵢ·exp(cᵢ − m), which is data.
//!
//! So nothing overflows or is lost to underflow where it is not in the loop. The exponent
//! has the digits of a pair: its error would be that of all terms at once.

use super::chain::{Added, Chain};
use super::form::moved_out;
use super::functions::{invariants, taken_apart, values};
use super::inverses::is_invariant;
use super::steps::{Place, Steps};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::draft::Draft;
use crate::phi::notation::{Brief, number};
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Def, Node, Region};

/// So many terms of an exponent are looked at.
const TERMS: usize = 16;

/// About how many steps a form has.
const STEPS: u32 = 24;

/// A sum nearer to zero may have lost digits to underflow.
const LEAST: f64 = 1e-200;

/// Terms with their signs.
type Signed = Vec<(f64, Node)>;

/// What is added up in `node`: what is data, and what is invariant in `region`.
fn parts(draft: &Draft, region: Region, node: Node) -> Option<(Signed, Signed)> {
    let (mut data, mut invariant, mut pending) = (Vec::new(), Vec::new(), vec![(1.0, node)]);
    while let Some((sign, node)) = pending.pop() {
        let node = draft.resolve(node);
        let args: Vec<Node> = draft.args(node).collect();
        match (draft.graph.nodes[node].def, args.as_slice()) {
            _ if draft.folds(node) => data.push((sign, node)),
            _ if is_invariant(draft, region, node) => invariant.push((sign, node)),
            (Def::Apply(Op::Add, _), &[a, b]) => pending.extend([(sign, a), (sign, b)]),
            (Def::Apply(Op::Sub, _), &[a, b]) => pending.extend([(sign, a), (-sign, b)]),
            (Def::Apply(Op::Neg, _), &[a]) => pending.push((-sign, a)),
            _ => return None,
        }
        if data.len() + invariant.len() + pending.len() > TERMS {
            return None;
        }
    }
    Some((data, invariant))
}

/// Replaces a sum of exponentials in `region`, a loop in no other; returns its form.
pub(super) fn close_sum_of_exponentials(
    draft: &mut Draft,
    region: Region,
    chain: &Chain,
) -> Option<String> {
    let &[Added::Term(sign, term)] = chain.added.as_slice() else { return None };
    let (first, count) = (chain.first, chain.count);
    if draft.loop_around(region).is_some() || (count < STEPS && !draft.all_forms) {
        return None;
    }
    let (scale, all) = taken_apart(draft, region, vec![(false, draft.resolve(term))])?;
    let (data, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|&(_, node)| draft.folds(node));
    let (around, rest): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|&(_, node)| is_invariant(draft, region, node));
    let &[(inverse, exponential)] = rest.as_slice() else { return None };
    let Def::Apply(Op::Exp, [exponent, ..]) = draft.graph.nodes[exponential].def else {
        return None;
    };
    let (known, invariant) = parts(draft, region, exponent)?;
    let turn = if inverse { -1.0 } else { 1.0 };
    let mut weights = vec![Double::from(sign * scale); count as usize];
    for (inverse, node) in data {
        for (weight, value) in weights.iter_mut().zip(values(draft, region, node, count)?) {
            *weight = if inverse { *weight / value } else { *weight * value };
        }
    }
    let mut exponents = vec![Double::ZERO; count as usize];
    for (sign, node) in known {
        for (exponent, value) in exponents.iter_mut().zip(values(draft, region, node, count)?) {
            *exponent = *exponent + value * (turn * sign).into();
        }
    }
    // One that counts for nothing may overflow, too, and the sum is no number then.
    let most = exponents.iter().map(|x| x.rounded()).fold(f64::NEG_INFINITY, f64::max);
    let mut total = Double::ZERO;
    for (&weight, &exponent) in weights.iter().zip(&exponents) {
        let distance = exponent - most.into();
        let power = Double::from(distance.high.exp());
        total = total + weight * (power + power * distance.low.into());
    }
    let fits = (LEAST..1.0 / LEAST).contains(&total.rounded().abs());
    if !most.is_finite() || !fits || invariant.is_empty() {
        return None;
    }
    let mut steps = Steps { draft, place: Place::Before(region) };
    let mut exponent: Option<Pair> = None;
    let mut slopes = Vec::new();
    for (sign, node) in invariant {
        let node = moved_out(steps.draft, region, node);
        let is_negative = sign * turn < 0.0;
        let part = if is_negative { steps.apply(Op::Neg, &[node]) } else { node };
        exponent = steps.sum(exponent, Some(part.into()));
        slopes.push((node, is_negative));
    }
    let shift = steps.number(most, 0.0);
    let exponent = steps.sum(exponent, Some(shift)).map(|exponent| steps.normal(exponent))?;
    let mut value = steps.apply(Op::Exp, &[exponent.high]);
    if let Some(low) = exponent.low {
        value = steps.apply(Op::MulAdd, &[value, low, value]);
    }
    let factor = steps.constant(total.rounded());
    value = steps.apply(Op::Mul, &[value, factor]);
    let base = invariants(draft, region, around);
    let mut steps = Steps { draft, place: Place::Before(region) };
    let without = value;
    if let Some(base) = base {
        value = steps.apply(Op::Mul, &[base, value]);
    }
    let negative = steps.apply(Op::Neg, &[value]);
    let mut slopes: Vec<(Node, Node)> = slopes
        .into_iter()
        .map(|(node, is_negative)| (node, if is_negative { negative } else { value }))
        .collect();
    slopes.extend(base.map(|base| (base, without)));
    if steps.value(first) != Some(0.0) {
        value = steps.apply(Op::Add, &[first, value]);
        let one = steps.constant(1.0);
        slopes.push((first, one));
    }
    let form = steps.with_slopes(value, &slopes);
    draft.forget_use(first);
    chain.phis.iter().for_each(|&phi| draft.replace(phi, form));
    let brief = Brief::new(&draft.graph);
    let sum = number(total.rounded());
    let (exponent, first) = (brief.node(exponent.high), brief.node(first));
    let times = base.map_or(String::new(), |base| format!("{}·", brief.node(base)));
    Some(format!(
        "p + Σ_{{i<{count}}} g(i) = p + {times}{sum}·exp(u), where g(i) is what is added, \
         u = {exponent}, p = {first}"
    ))
}
