//! The closed form of one value of a loop: the polynomial that an iteration adds becomes moments
//! around an expansion point.

use hashbrown::HashSet;

use super::condition::{Expansion, expansion_point, shifted_variables};
use super::data::Datum;
use super::description;
use super::extract::{Extraction, LoopContext, Transform, Variable};
use super::form::{Coefficient, Sum};
use super::hoist::Hoist;
use super::moments::{Moments, Update};
use super::polynomial::Monomial;
use super::product::Product;
use crate::numeric::Routine;
use crate::numeric::double_double::Bounded;
use crate::phi::close::CloseLimits;
use crate::phi::reason::SumReason;
use crate::phi::recurrence::{Body, needed};
use crate::phi::rule::Rule;
use crate::ssa::{Graph, Node};

/// The largest magnitude of a sum with an exponential as common factor; the smallest is its
/// reciprocal. The exponential then neither overflows nor becomes subnormal while the product is
/// between 1e-285 and 1e285.
const MAX_EXPONENTIAL_COFACTOR: f64 = 1e20;

/// A closed form as an expression.
pub(super) enum Expression {
    Sum(Sum),
    Product(Product),
}

/// The closed form of one value of a loop.
pub(super) struct ClosedForm {
    /// The index of the entry φ.
    pub(super) entry: usize,
    pub(super) rule: Rule,
    /// The display form.
    pub(super) description: String,
    pub(super) expression: Expression,
    /// True if it is accurate in working precision; if not, it is evaluated by a routine.
    pub(super) is_accurate: bool,
    /// The loops that compute moments in the call, if some data are not constants.
    pub(super) hoist: Option<Hoist>,
    pub(super) update: Update,
    pub(super) expansion_point: Vec<f64>,
}

impl Expression {
    /// The nodes that it reads.
    pub(super) fn nodes(&self, graph: &Graph) -> Vec<Node> {
        match self {
            Expression::Sum(sum) => sum.nodes(),
            Expression::Product(product) => {
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
            Expression::Sum(sum) => {
                let (polynomial, inputs) = sum.routine(is_differentiated)?;
                (Routine::Polynomial(polynomial), inputs)
            }
            Expression::Product(product) => {
                let (power, inputs) = product.routine(graph, is_differentiated)?;
                (Routine::AffinePower(power), inputs)
            }
        })
    }

    /// The number of steps in working precision.
    pub(super) fn steps(&self) -> u64 {
        match self {
            Expression::Sum(sum) => sum.steps(),
            Expression::Product(_) => 0,
        }
    }
}

impl ClosedForm {
    /// The value after `count` iterations if `nodes` have `values`; for translation validation.
    pub(super) fn at(
        &self,
        graph: &Graph,
        count: u64,
        nodes: &[Node],
        values: &[f64],
    ) -> Option<f64> {
        let expression = match &self.expression {
            Expression::Sum(sum) => {
                let start = if sum.start_is_moment { sum.start_number } else { 0.0 };
                let Moments { factor, sums, .. } =
                    self.update.fold(count, &self.expansion_point, start);
                let numbers =
                    self.expansion_point.iter().map(|&x| Coefficient::Number(Bounded::exact(x)));
                let expansion_point = numbers.collect();
                Expression::Sum(Sum { expansion_point, ..sum.with_moments(factor, &sums) })
            }
            Expression::Product(product) => {
                let monomial = (product.variables.clone(), product.monomial);
                Expression::Product(Product::of(&self.update, monomial, product.first, count).ok()?)
            }
        };
        let (routine, inputs) = expression.routine(graph, |_| false).ok()?;
        let value =
            |input: &Node| values.get(nodes.iter().position(|node| node == input)?).copied();
        let values = inputs.iter().map(value).collect::<Option<Vec<f64>>>()?;
        let mut results = vec![0.0; routine.results()];
        routine.run(&values, false, &mut results);
        results.get(routine.value_index(0)).copied().filter(|_| results[0] != 0.0)
    }
}

/// The update of a value, and its variables.
pub(super) struct ExtractedUpdate {
    pub(super) update: Update,
    pub(super) variables: Vec<Variable>,
    /// The invariant factor of the value, beside `update.factor`.
    pub(super) ratio: Monomial,
}

/// The closed form of `value`, the next value of an entry φ.
pub(super) fn closed_form(
    context: LoopContext<'_>,
    body: &Body,
    value: Node,
    count: u64,
    limits: &CloseLimits,
) -> Result<ClosedForm, SumReason> {
    let graph = context.graph;
    let entry = body.nexts.iter().position(|&next| next == value).ok_or(SumReason::Exit)?;
    let first = graph.entries(context.region)[entry].first;
    let needed = needed(graph, context.nest, context.region, &body.nexts, &[value]);
    let extract = |is_shifted: &[bool]| {
        let extracted = extract_update(context, body, &needed, (value, entry), is_shifted, limits)?;
        match extracted.update.terms.len() > limits.monomials {
            true => Err(SumReason::Monomials(limits.monomials)),
            false => Ok(extracted),
        }
    };
    let plain = extract(&[])?;
    if !plain.update.is_constant() {
        return Err(SumReason::DataOfCall);
    }
    if count.saturating_mul(plain.update.work()) > limits.work {
        return Err(SumReason::Work(limits.work));
    }
    let ExtractedUpdate { mut update, variables, ratio } = plain;
    let changes = update.data.changes();
    if ratio != Monomial::ONE || update.factor.is_some() {
        // Constant coefficients are for `recurrence`.
        if !changes {
            return Err(SumReason::Factors);
        }
        if ratio != Monomial::ONE {
            let product = Product::of(&update, (variables, ratio), first, count)?;
            let description = description::product(graph, &product, count);
            let (rule, expression) = (Rule::C8, Expression::Product(product));
            let (is_accurate, hoist, expansion_point) = (false, None, Vec::new());
            return Ok(ClosedForm {
                entry,
                rule,
                description,
                expression,
                is_accurate,
                hoist,
                update,
                expansion_point,
            });
        }
    }
    // The moments around zero, from which the expansion point is computed.
    let factors = factors(&update.terms, &variables);
    let number = graph.constant(first);
    let start_is_moment = factors.is_empty() && update.factor.is_none();
    let start = number.filter(|_| start_is_moment).unwrap_or(0.0);
    if start != 0.0 {
        update.add_constant();
    }
    let moments = update.fold(count, &[], start);
    let monomials = divide_out(&factors, &update.terms);
    let expansion = Expansion { monomials: &monomials, moments: &moments, expansion_point: &[] };
    let mut is_shifted = shifted_variables(&monomials, variables.len());
    // A common factor is not expanded: its shifted powers would not have it as a factor.
    factors.iter().for_each(|&(number, _)| is_shifted[number] = false);
    let expansion_point = expansion_point(&expansion, &is_shifted);
    is_shifted.iter_mut().zip(&expansion_point).for_each(|(is, &x)| *is &= x != 0.0);
    // The moments around the expansion point.
    let (update, moments) = match is_shifted.contains(&true) {
        true => {
            let mut update = extract(&is_shifted)?.update;
            if start != 0.0 {
                update.add_constant();
            }
            let moments = update.fold(count, &expansion_point, start);
            (update, moments)
        }
        false => (update, moments),
    };
    let monomials = divide_out(&factors, &update.terms);
    let in_range = |number: &Bounded| number.hi.is_finite() && number.bound.is_finite();
    if !(moments.sums.iter().all(in_range) && in_range(&moments.factor)) {
        return Err(SumReason::Range);
    }
    let is_accurate = is_accurate(&variables, &factors, &expansion_point, (&monomials, &moments))?;
    let rule = match (&update.factor, monomials.is_empty(), changes) {
        (None, _, true) => Rule::C7,
        // A constant increment is C6 with a = 1.
        (None, _, false) => Rule::C6,
        (Some(_), true, _) => Rule::C8,
        (Some(_), false, _) => Rule::C9,
    };
    let mut moments = moments;
    if is_accurate {
        // A zero moment whose error bound is negligible in working precision counts as exact.
        for sum in moments.sums.iter_mut().filter(|sum| sum.hi == 0.0) {
            *sum = Bounded::ZERO;
        }
    }
    let sum = Sum {
        variables,
        factors,
        monomials,
        expansion_point: expansion_point
            .iter()
            .map(|&x| Coefficient::Number(Bounded::exact(x)))
            .collect(),
        start_number: if start_is_moment { start } else { number.unwrap_or(0.0) },
        start_is_moment,
        start_node: Some(first).filter(|_| number.is_none()),
        factor: moments.factor,
        moments: moments.sums.iter().map(|&sum| Coefficient::Number(sum)).collect(),
    };
    let description = match update.factor {
        None => description::sum(graph, &sum, &moments.sizes, count),
        Some(_) => description::recurrence(graph, &sum, &moments.sizes, count),
    };
    let (expression, hoist) = (Expression::Sum(sum), None);
    Ok(ClosedForm {
        entry,
        rule,
        description,
        expression,
        is_accurate,
        hoist,
        update,
        expansion_point,
    })
}

/// True if a polynomial is accurate in working precision.
fn is_accurate(
    variables: &[Variable],
    factors: &[(usize, u8)],
    expansion_point: &[f64],
    (monomials, moments): (&[Monomial], &Moments),
) -> Result<bool, SumReason> {
    let is_used = |number: usize| monomials.iter().any(|of| of.exponents[number] > 0);
    let is_power =
        |number: usize| matches!(variables[number].transform, Transform::Exp | Transform::ExpNeg);
    if factors.iter().any(|&(number, _)| is_power(number)) {
        let range = 1.0 / MAX_EXPONENTIAL_COFACTOR..MAX_EXPONENTIAL_COFACTOR;
        if !moments.sums.iter().all(|sum| range.contains(&sum.hi.abs())) {
            return Err(SumReason::Range);
        }
    }
    let expansion = Expansion { monomials, moments, expansion_point };
    let has_inverse =
        |number: usize| variables[number].transform == Transform::Reciprocal && is_used(number);
    let is_scaled = moments.factor != Bounded::ONE && !monomials.is_empty();
    // Of two exponentials one may be out of range although their product is not.
    let has_one_power = factors.iter().filter(|&&(number, _)| is_power(number)).count() < 2;
    // An exponential in the monomials is rejected: its rounding error is the same in all terms, and
    // may dominate where these cancel.
    Ok(has_one_power
        && !(0..variables.len()).any(|number| is_power(number) && is_used(number))
        && !is_scaled
        && !(0..variables.len()).any(has_inverse)
        && moments.factor.bound <= f64::EPSILON.powi(2) * 1e6 * moments.factor.hi.abs()
        && expansion.is_accurate())
}

/// Extracts the update of `value`, the next value of the entry φ with index `entry`.
pub(super) fn extract_update(
    context: LoopContext<'_>,
    body: &Body,
    needed: &HashSet<Node>,
    (value, entry): (Node, usize),
    is_shifted: &[bool],
    limits: &CloseLimits,
) -> Result<ExtractedUpdate, SumReason> {
    let mut extraction = Extraction::new(context, is_shifted, limits.variables);
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
    let update = Update { data, factor, terms };
    Ok(ExtractedUpdate { update, variables, ratio })
}

/// The common factors of all terms, with their exponents. A single variable that is a node is none.
pub(super) fn factors(terms: &[(Monomial, Datum)], variables: &[Variable]) -> Vec<(usize, u8)> {
    let least = |number: usize| terms.iter().map(|(of, _)| of.exponents[number]).min().unwrap_or(0);
    (0..variables.len())
        .map(|number| (number, least(number)))
        .filter(|&(number, least)| {
            least > 0 && (variables.len() > 1 || variables[number].transform != Transform::Identity)
        })
        .collect()
}

/// The monomials of `terms` divided by the common `factors`.
pub(super) fn divide_out(factors: &[(usize, u8)], terms: &[(Monomial, Datum)]) -> Vec<Monomial> {
    let divided = |&(mut monomial, _): &(Monomial, Datum)| {
        for &(number, exponent) in factors {
            monomial.exponents[number] -= exponent;
        }
        monomial
    };
    terms.iter().map(divided).collect()
}
