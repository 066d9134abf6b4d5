//! The records of the formulas that sums and products were closed by.

use super::extract::{Of, Variable};
use super::form::{Coefficient, Sum};
use super::polynomial::Monomial;
use super::product::Product;
use crate::explain::notation::{Brief, number};
use crate::ssa::{Graph, Node};

const NAMES: [&str; 7] = ["u", "v", "w", "s", "t", "z", "…"];
/// A moment that is smaller than this part of the others is rounding.
const ROUNDING: f64 = 1e-13;

/// The form of `sum` over `count` iterations.
pub(super) fn sum(graph: &Graph, sum: &Sum, sizes: &[f64], count: u64) -> String {
    let has_first = sum.first.is_some();
    let begin = if has_first { "p + " } else { "" };
    let mut text = format!("{begin}Σ_{{i<{count}}} g(i) = {begin}");
    let mut used = vec![false; sum.variables.len()];
    let mut form = String::new();
    for (at, monomial) in sum.monomials.iter().enumerate().rev() {
        let (mut factors, is_negative) = match sum.moments[at] {
            Coefficient::Number(moment) if moment.hi.abs() <= ROUNDING * sizes[at] => continue,
            Coefficient::Number(moment) => (vec![number(moment.hi.abs())], moment.hi < 0.0),
            // It is known in a call.
            Coefficient::Node(_) | Coefficient::DoubleDouble(_) => (vec![format!("S{at}")], false),
        };
        for variable in (0..used.len()).filter(|&variable| monomial.exponents[variable] > 0) {
            used[variable] = true;
            let mut factor = difference(NAMES[variable], sum.pivot.get(variable));
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
            1 => text.push_str(&format!("{}·", NAMES[variable])),
            _ => text.push_str(&format!("{}^{exponent}·", NAMES[variable])),
        }
    }
    text.push_str(&match form.as_str() {
        "" => "0".to_owned(),
        _ if sum.factors.is_empty() => form,
        _ => format!("({form})"),
    });
    text.push_str(", where g(i) is what is added");
    text.push_str(&names(graph, &sum.variables, &used, sum.first));
    text
}

/// `name` measured from a point.
fn difference(name: &str, pivot: Option<&Coefficient>) -> String {
    match pivot {
        Some(Coefficient::Number(pivot)) if pivot.hi < 0.0 => {
            format!("({name} + {})", number(-pivot.hi))
        }
        Some(Coefficient::Number(pivot)) if pivot.hi > 0.0 => {
            format!("({name} − {})", number(pivot.hi))
        }
        Some(Coefficient::Node(_)) => format!("({name} − {name}₀)"),
        _ => name.to_owned(),
    }
}

/// What the used variables are, and what the value begins with.
fn names(graph: &Graph, variables: &[Variable], used: &[bool], first: Option<Node>) -> String {
    let (brief, mut text) = (Brief::new(graph), String::new());
    for (at, variable) in variables.iter().enumerate().filter(|&(at, _)| used[at]) {
        let node = brief.node(variable.node);
        let node = match variable.of {
            Of::Itself => node,
            Of::Inverse => format!("1/({node})"),
            Of::Exponential => format!("exp({node})"),
            Of::Decay => format!("exp(−({node}))"),
        };
        text.push_str(&format!(", {} = {node}", NAMES[at]));
    }
    if let Some(first) = first {
        text.push_str(&format!(", p = {}", brief.node(first)));
    }
    text
}

/// The form of a product over `count` iterations.
pub(super) fn product(graph: &Graph, product: &Product, count: u64) -> String {
    let Monomial { exponents, .. } = product.monomial;
    let used: Vec<bool> =
        (0..product.variables.len()).map(|variable| exponents[variable] > 0).collect();
    let mut powers = String::new();
    for variable in (0..used.len()).filter(|&variable| used[variable]) {
        let exponent = u64::from(exponents[variable]) * count;
        powers.push_str(&format!("·{}^{exponent}", NAMES[variable]));
    }
    let data = match product.data.hi {
        1.0 => String::new(),
        data => format!("·{}", number(data)),
    };
    format!(
        "p·Π_{{i<{count}}} g(i) = p{data}{powers}, where g(i) is what is multiplied by{}",
        names(graph, &product.variables, &used, Some(product.first))
    )
}

/// The form of a recurrence with data as coefficients over `count` iterations.
pub(super) fn recurrence(graph: &Graph, sum: &Sum, sizes: &[f64], count: u64) -> String {
    let form = self::sum(graph, sum, sizes, count);
    let form = form.split_once("= p + ").map_or(form.as_str(), |(_, form)| form);
    let factor = number(sum.factor.hi);
    match sum.moments.is_empty() {
        true => {
            let name = names(graph, &[], &[], sum.first);
            format!(
                "p·Π_{{i<{count}}} g(i) = {factor}·p, where g(i) is what is multiplied by{name}"
            )
        }
        false => format!("p·Π_i a(i) + Σ_i b(i)·Π_{{j>i}} a(j) = {factor}·p + {form}"),
    }
}
