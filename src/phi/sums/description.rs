//! Descriptions of the closed forms of sums and products, for reports and explanations.

use super::extract::{Transform, Variable};
use super::form::{Coefficient, Sum};
use super::polynomial::Monomial;
use super::product::Product;
use crate::explain::notation::{Brief, number};
use crate::ssa::{Graph, Node};

const VARIABLE_NAMES: [&str; 7] = ["u", "v", "w", "s", "t", "z", "…"];
/// The size of a moment, relative to the sum of the magnitudes, that is shown as zero.
const ROUNDING_ERROR: f64 = 1e-13;

/// Describes `sum` over `count` iterations.
pub(super) fn sum(graph: &Graph, sum: &Sum, sizes: &[f64], count: u64) -> String {
    let has_start_node = sum.start_node.is_some();
    let start = if has_start_node { "p + " } else { "" };
    let mut text = format!("{start}Σ_{{i<{count}}} g(i) = {start}");
    let mut used = vec![false; sum.variables.len()];
    let mut form = String::new();
    for (at, monomial) in sum.monomials.iter().enumerate().rev() {
        let (mut factors, is_negative) = match sum.moments[at] {
            Coefficient::Number(moment) if moment.hi.abs() <= ROUNDING_ERROR * sizes[at] => {
                continue;
            }
            Coefficient::Number(moment) => (vec![number(moment.hi.abs())], moment.hi < 0.0),
            // Known only in a call.
            Coefficient::Node(_) | Coefficient::DoubleDouble(_) => (vec![format!("S{at}")], false),
        };
        for variable in (0..used.len()).filter(|&variable| monomial.exponents[variable] > 0) {
            used[variable] = true;
            let mut factor =
                difference(VARIABLE_NAMES[variable], sum.expansion_point.get(variable));
            if monomial.exponents[variable] > 1 {
                factor.push_str(&format!("^{}", monomial.exponents[variable]));
            }
            factors.push(factor);
        }
        if factors.len() > 1 && factors[0] == "1" {
            factors.remove(0);
        }
        form.push_str(match (form.is_empty(), is_negative) {
            (true, false) => "",
            (true, true) => "−",
            (false, false) => " + ",
            (false, true) => " − ",
        });
        form.push_str(&factors.join("·"));
    }
    for &(variable, exponent) in &sum.factors {
        used[variable] = true;
        match exponent {
            1 => text.push_str(&format!("{}·", VARIABLE_NAMES[variable])),
            _ => text.push_str(&format!("{}^{exponent}·", VARIABLE_NAMES[variable])),
        }
    }
    text.push_str(&match form.as_str() {
        "" => "0".to_owned(),
        _ if sum.factors.is_empty() => form,
        _ => format!("({form})"),
    });
    text.push_str(", where g(i) is the term");
    text.push_str(&definitions(graph, &sum.variables, &used, sum.start_node));
    text
}

/// `name` minus its coordinate of the expansion point.
fn difference(name: &str, expansion_point: Option<&Coefficient>) -> String {
    match expansion_point {
        Some(Coefficient::Number(expansion_point)) if expansion_point.hi < 0.0 => {
            format!("({name} + {})", number(-expansion_point.hi))
        }
        Some(Coefficient::Number(expansion_point)) if expansion_point.hi > 0.0 => {
            format!("({name} − {})", number(expansion_point.hi))
        }
        Some(Coefficient::Node(_)) => format!("({name} − {name}₀)"),
        _ => name.to_owned(),
    }
}

/// The definitions of the used variables, and of the first value.
fn definitions(
    graph: &Graph,
    variables: &[Variable],
    used: &[bool],
    first: Option<Node>,
) -> String {
    let (brief, mut text) = (Brief::new(graph), String::new());
    for (at, variable) in variables.iter().enumerate().filter(|&(at, _)| used[at]) {
        let node = brief.node(variable.node);
        let node = match variable.transform {
            Transform::Identity => node,
            Transform::Reciprocal => format!("1/({node})"),
            Transform::Exp => format!("exp({node})"),
            Transform::ExpNeg => format!("exp(−({node}))"),
        };
        text.push_str(&format!(", {} = {node}", VARIABLE_NAMES[at]));
    }
    if let Some(first) = first {
        text.push_str(&format!(", p = {}", brief.node(first)));
    }
    text
}

/// Describes a product over `count` iterations.
pub(super) fn product(graph: &Graph, product: &Product, count: u64) -> String {
    let Monomial { exponents, .. } = product.monomial;
    let used: Vec<bool> =
        (0..product.variables.len()).map(|variable| exponents[variable] > 0).collect();
    let mut powers = String::new();
    for variable in (0..used.len()).filter(|&variable| used[variable]) {
        let exponent = u64::from(exponents[variable]) * count;
        powers.push_str(&format!("·{}^{exponent}", VARIABLE_NAMES[variable]));
    }
    let data = match product.data.hi {
        1.0 => String::new(),
        data => format!("·{}", number(data)),
    };
    format!(
        "p·Π_{{i<{count}}} g(i) = p{data}{powers}, where g(i) is the factor{}",
        definitions(graph, &product.variables, &used, Some(product.first))
    )
}

/// Describes a recurrence with data as coefficients over `count` iterations.
pub(super) fn recurrence(graph: &Graph, sum: &Sum, sizes: &[f64], count: u64) -> String {
    let form = self::sum(graph, sum, sizes, count);
    let form = form.split_once("= p + ").map_or(form.as_str(), |(_, form)| form);
    let factor = number(sum.factor.hi);
    match sum.moments.is_empty() {
        true => {
            let name = definitions(graph, &[], &[], sum.start_node);
            format!("p·Π_{{i<{count}}} g(i) = {factor}·p, where g(i) is the factor{name}")
        }
        false => format!("p·Π_i a(i) + Σ_i b(i)·Π_{{j>i}} a(j) = {factor}·p + {form}"),
    }
}
