//! The closed form of one value of a loop: from the polynomial that an iteration adds to moments
//! around an expansion point.

use hashbrown::HashSet;

use super::condition::{Expansion, expansion_point, measured};
use super::data::Datum;
use super::extract::{Extraction, Of, Place, Variable};
use super::form::{Coefficient, Sum};
use super::hoist::Hoist;
use super::moments::{Iterate, Moments};
use super::polynomial::Monomial;
use super::product::Product;
use super::record;
use crate::numeric::Routine;
use crate::numeric::double_double::Bounded;
use crate::phi::close::CloseLimits;
use crate::phi::reason::SumReason;
use crate::phi::recurrence::{Body, needed};
use crate::phi::rule::Rule;
use crate::ssa::{Graph, Node};

/// A power of the base e that is a factor of a sum neither underflows to a number with fewer
/// digits nor overflows where the product, beyond 1e±285, does not, if the sum is no larger than
/// this and no smaller than its inverse.
const MOST_BESIDE_POWERS: f64 = 1e20;

/// A closed form.
pub(super) enum Form {
    Sum(Sum),
    Product(Product),
}

/// The closed form of a value.
pub(super) struct Found {
    /// The number of the entry φ.
    pub(super) entry: usize,
    pub(super) rule: Rule,
    /// The record of the formula.
    pub(super) formula: String,
    pub(super) form: Form,
    /// Whether it is accurate in working precision.
    pub(super) is_accurate: bool,
    /// The loops in which moments are computed, if that is in a call.
    pub(super) hoist: Option<Hoist>,
    pub(super) iterate: Iterate,
    pub(super) pivot: Vec<f64>,
}

impl Form {
    /// The nodes that it depends on.
    pub(super) fn nodes(&self, graph: &Graph) -> Vec<Node> {
        match self {
            Form::Sum(sum) => sum.nodes(),
            Form::Product(product) => {
                let mut nodes: Vec<Node> = product.variables.iter().map(|of| of.node).collect();
                nodes.push(product.first);
                nodes.retain(|&node| graph.constant(node).is_none());
                nodes.sort_unstable();
                nodes.dedup();
                nodes
            }
        }
    }

    /// The routine that evaluates it, and its inputs.
    pub(super) fn routine(
        &self,
        graph: &Graph,
        is_differentiated: impl Fn(Node) -> bool,
    ) -> Result<(Routine, Vec<Node>), SumReason> {
        Ok(match self {
            Form::Sum(sum) => {
                let (polynomial, inputs) = sum.routine(is_differentiated)?;
                (Routine::Polynomial(polynomial), inputs)
            }
            Form::Product(product) => {
                let (power, inputs) = product.routine(graph, is_differentiated)?;
                (Routine::AffinePower(power), inputs)
            }
        })
    }

    /// The number of steps in working precision.
    pub(super) fn steps(&self) -> u64 {
        match self {
            Form::Sum(sum) => sum.steps(),
            Form::Product(_) => 0,
        }
    }
}

impl Found {
    /// The value after `count` iterations where these nodes have these values.
    pub(super) fn at(
        &self,
        graph: &Graph,
        count: u64,
        nodes: &[Node],
        values: &[f64],
    ) -> Option<f64> {
        let form = match &self.form {
            Form::Sum(sum) => {
                let begin = if sum.is_begun { sum.begin } else { 0.0 };
                let Moments { factor, sums, .. } = self.iterate.fold(count, &self.pivot, begin);
                let numbers = self.pivot.iter().map(|&x| Coefficient::Number(Bounded::exact(x)));
                let pivot = numbers.collect();
                Form::Sum(Sum { pivot, ..sum.with_moments(factor, &sums) })
            }
            Form::Product(product) => {
                let monomial = (product.variables.clone(), product.monomial);
                Form::Product(Product::of(&self.iterate, monomial, product.first, count).ok()?)
            }
        };
        let (routine, inputs) = form.routine(graph, |_| false).ok()?;
        let value =
            |input: &Node| values.get(nodes.iter().position(|node| node == input)?).copied();
        let point = inputs.iter().map(value).collect::<Option<Vec<f64>>>()?;
        let mut results = vec![0.0; routine.results()];
        routine.run(&point, false, &mut results);
        results.get(routine.value_index(0)).copied().filter(|_| results[0] != 0.0)
    }
}

/// What an iteration makes of a value, and the variables.
pub(super) struct Extracted {
    pub(super) iterate: Iterate,
    pub(super) variables: Vec<Variable>,
    /// What the value is multiplied by, beside the factor.
    pub(super) ratio: Monomial,
}

/// The closed form of `value`, the next value of an entry φ.
pub(super) fn found(
    place: Place<'_>,
    body: &Body,
    value: Node,
    count: u64,
    limits: &CloseLimits,
) -> Result<Found, SumReason> {
    let graph = place.graph;
    let entry = body.nexts.iter().position(|&next| next == value).ok_or(SumReason::Exit)?;
    let first = graph.entries(place.region)[entry].first;
    let needed = needed(graph, place.nest, place.region, &body.nexts, &[value]);
    let extract = |pivots: &[bool]| {
        let extracted = extracted(place, body, &needed, (value, entry), pivots, limits)?;
        match extracted.iterate.terms.len() > limits.monomials {
            true => Err(SumReason::Monomials(limits.monomials)),
            false => Ok(extracted),
        }
    };
    let plain = extract(&[])?;
    if !plain.iterate.can_be_folded() {
        return Err(SumReason::DataOfCall);
    }
    if count.saturating_mul(plain.iterate.work()) > limits.work {
        return Err(SumReason::Work(limits.work));
    }
    let Extracted { mut iterate, variables, ratio } = plain;
    let changes = iterate.data.changes();
    if ratio != Monomial::ONE || iterate.factor.is_some() {
        // With coefficients of one kind it is a recurrence.
        if !changes {
            return Err(SumReason::Factors);
        }
        if ratio != Monomial::ONE {
            let product = Product::of(&iterate, (variables, ratio), first, count)?;
            let formula = record::product(graph, &product, count);
            let (rule, form) = (Rule::C8, Form::Product(product));
            let (is_accurate, hoist, pivot) = (false, None, Vec::new());
            return Ok(Found { entry, rule, formula, form, is_accurate, hoist, iterate, pivot });
        }
    }
    let factors = factors(&iterate.terms, &variables);
    let number = graph.constant(first);
    let is_begun = factors.is_empty() && iterate.factor.is_none();
    let begin = number.filter(|_| is_begun).unwrap_or(0.0);
    if begin != 0.0 {
        iterate.add_constant();
    }
    let moments = iterate.fold(count, &[], begin);
    let monomials = without(&factors, &iterate.terms);
    let expansion = Expansion { monomials: &monomials, moments: &moments, pivot: &[] };
    let mut is_measured = measured(&monomials, variables.len());
    // Another power of it would not have these factors.
    factors.iter().for_each(|&(number, _)| is_measured[number] = false);
    let pivot = expansion_point(&expansion, &is_measured);
    is_measured.iter_mut().zip(&pivot).for_each(|(is, &pivot)| *is &= pivot != 0.0);
    let (iterate, moments) = match is_measured.contains(&true) {
        true => {
            let mut iterate = extract(&is_measured)?.iterate;
            if begin != 0.0 {
                iterate.add_constant();
            }
            let moments = iterate.fold(count, &pivot, begin);
            (iterate, moments)
        }
        false => (iterate, moments),
    };
    let monomials = without(&factors, &iterate.terms);
    let in_range = |number: &Bounded| number.hi.is_finite() && number.bound.is_finite();
    if !(moments.sums.iter().all(in_range) && in_range(&moments.factor)) {
        return Err(SumReason::Range);
    }
    let is_accurate = is_accurate(&variables, &factors, &pivot, (&monomials, &moments))?;
    let rule = match (&iterate.factor, monomials.is_empty(), changes) {
        (None, _, true) => Rule::C7,
        // What is always the same is added by C6 with a = 1.
        (None, _, false) => Rule::C6,
        (Some(_), true, _) => Rule::C8,
        (Some(_), false, _) => Rule::C9,
    };
    let mut moments = moments;
    if is_accurate {
        // A moment of zero whose bound is below working precision counts as zero.
        for sum in moments.sums.iter_mut().filter(|sum| sum.hi == 0.0) {
            *sum = Bounded::ZERO;
        }
    }
    let sum = Sum {
        variables,
        factors,
        monomials,
        pivot: pivot.iter().map(|&x| Coefficient::Number(Bounded::exact(x))).collect(),
        begin: if is_begun { begin } else { number.unwrap_or(0.0) },
        is_begun,
        first: Some(first).filter(|_| number.is_none()),
        factor: moments.factor,
        moments: moments.sums.iter().map(|&sum| Coefficient::Number(sum)).collect(),
    };
    let formula = match iterate.factor {
        None => record::sum(graph, &sum, &moments.sizes, count),
        Some(_) => record::recurrence(graph, &sum, &moments.sizes, count),
    };
    let (form, hoist) = (Form::Sum(sum), None);
    Ok(Found { entry, rule, formula, form, is_accurate, hoist, iterate, pivot })
}

/// Whether a polynomial is accurate in working precision.
fn is_accurate(
    variables: &[Variable],
    factors: &[(usize, u8)],
    pivot: &[f64],
    (monomials, moments): (&[Monomial], &Moments),
) -> Result<bool, SumReason> {
    let is_used = |number: usize| monomials.iter().any(|of| of.exponents[number] > 0);
    let is_power = |number: usize| matches!(variables[number].of, Of::Exponential | Of::Decay);
    if factors.iter().any(|&(number, _)| is_power(number)) {
        let range = 1.0 / MOST_BESIDE_POWERS..MOST_BESIDE_POWERS;
        if !moments.sums.iter().all(|sum| range.contains(&sum.hi.abs())) {
            return Err(SumReason::Range);
        }
    }
    let expansion = Expansion { monomials, moments, pivot };
    let has_inverse = |number: usize| variables[number].of == Of::Inverse && is_used(number);
    let is_scaled = moments.factor != Bounded::ONE && !monomials.is_empty();
    // One of two powers may be out of range where their product is not.
    let has_one_power = factors.iter().filter(|&&(number, _)| is_power(number)).count() < 2;
    // The rounding of a power is the same in all terms, and may be all that is left.
    Ok(has_one_power
        && !(0..variables.len()).any(|number| is_power(number) && is_used(number))
        && !is_scaled
        && !(0..variables.len()).any(has_inverse)
        && moments.factor.bound <= f64::EPSILON.powi(2) * 1e6 * moments.factor.hi.abs()
        && expansion.is_accurate())
}

pub(super) fn extracted(
    place: Place<'_>,
    body: &Body,
    needed: &HashSet<Node>,
    (value, entry): (Node, usize),
    pivots: &[bool],
    limits: &CloseLimits,
) -> Result<Extracted, SumReason> {
    let mut extraction = Extraction::new(place, pivots, limits.variables);
    let polynomial = extraction.polynomial(body, needed, value)?;
    let (data, variables) = (extraction.data, extraction.variables);
    let is_carried = |(monomial, _): &&(Monomial, Datum)| monomial.carried.is_some();
    let (carried, others): (Vec<_>, Vec<_>) = polynomial.terms().iter().partition(is_carried);
    let &[&(Monomial { carried, exponents }, factor)] = &carried[..] else {
        return Err(if carried.is_empty() { SumReason::Exit } else { SumReason::Factors });
    };
    if carried != Some(entry as u32) {
        return Err(SumReason::NotAdded);
    }
    let ratio = Monomial { carried: None, exponents };
    let terms: Vec<(Monomial, Datum)> = others.into_iter().copied().collect();
    if ratio != Monomial::ONE && !terms.is_empty() {
        return Err(SumReason::Factors);
    }
    let factor = Some(factor).filter(|&factor| data.number(factor) != Some(1.0));
    let iterate = Iterate { data, factor, terms };
    Ok(Extracted { iterate, variables, ratio })
}

/// The variables that are factors of all terms, with their exponents: those of several variables,
/// or what is no node itself.
pub(super) fn factors(terms: &[(Monomial, Datum)], variables: &[Variable]) -> Vec<(usize, u8)> {
    let least = |number: usize| terms.iter().map(|(of, _)| of.exponents[number]).min().unwrap_or(0);
    (0..variables.len())
        .map(|number| (number, least(number)))
        .filter(|&(number, least)| {
            least > 0 && (variables.len() > 1 || variables[number].of != Of::Itself)
        })
        .collect()
}

/// The monomials of terms without their factors.
pub(super) fn without(factors: &[(usize, u8)], terms: &[(Monomial, Datum)]) -> Vec<Monomial> {
    let divided = |&(mut monomial, _): &(Monomial, Datum)| {
        for &(number, exponent) in factors {
            monomial.exponents[number] -= exponent;
        }
        monomial
    };
    terms.iter().map(divided).collect()
}
