//! The way out: makes nodes of a sum in closed form.

use hashbrown::HashMap;

use super::chain::Chain;
use super::frame::Frame;
use super::{Moments, Sum};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::draft::Draft;
use crate::phi::notation::{self, Brief};
use crate::ssa::{Def, Node, Region};

/// Inserts what `sum` is before `region`, the loop that it replaces.
pub(super) fn emit(draft: &mut Draft, region: Region, chain: &Chain, sum: &Sum) -> Node {
    let mut writer = Writer { draft, region, sum };
    let mut differences = Vec::new();
    let variables = all_moved_out(writer.draft, region, &sum.terms.variables);
    for (number, variable) in variables.into_iter().enumerate() {
        let pivots = sum.parts.iter().map(|(frame, _)| frame.pivot[number].into()).collect();
        differences.push(match writer.numbers(pivots) {
            None => variable,
            Some(pivot) => writer.draft.apply(region, Op::Sub, &[variable, pivot]),
        });
    }
    let coordinates = writer.sheared(&differences);
    let all: Vec<usize> = (0..sum.basis.len()).collect();
    let form = writer.nested(&all, &coordinates);
    let first = chain.first;
    let constant = draft.graph.constant(first).is_some() || sum.terms.begin.is_some();
    match form {
        Some(form) if constant => form,
        Some(form) => draft.apply(region, Op::Add, &[first, form]),
        None if constant => draft.constant(0.0),
        None => first,
    }
}

/// `node`, which is invariant in the loop, before it.
pub(super) fn moved_out(draft: &mut Draft, region: Region, node: Node) -> Node {
    all_moved_out(draft, region, &[node])[0]
}

/// `nodes`, which are invariant in the loop, before it: what several are made of once.
pub(super) fn all_moved_out(draft: &mut Draft, region: Region, nodes: &[Node]) -> Vec<Node> {
    let mut copies: HashMap<Node, Node> = HashMap::new();
    let mut pending: Vec<(Node, bool)> = nodes.iter().rev().map(|&node| (node, false)).collect();
    while let Some((node, ready)) = pending.pop() {
        if copies.contains_key(&node) {
            continue;
        }
        if !draft.is_inside(node, region)
            || matches!(draft.graph.nodes[node].def, Def::Phi(..) | Def::Entry(..))
        {
            copies.insert(node, node);
        } else if ready {
            let args: Vec<Node> = draft.args(node).map(|arg| copies[&arg]).collect();
            let copy = draft.copy(region, node, &args);
            copies.insert(node, copy);
        } else {
            pending.push((node, true));
            pending.extend(draft.args(node).map(|arg| (arg, false)));
        }
    }
    nodes.iter().map(|node| copies[node]).collect()
}

struct Writer<'a> {
    draft: &'a mut Draft,
    region: Region,
    sum: &'a Sum,
}

impl Writer<'_> {
    /// The node of a number that depends on iterations of the loops around;
    /// `None` if it is always zero.
    fn numbers(&mut self, numbers: Vec<Double>) -> Option<Node> {
        let first = *numbers.first()?;
        let lost = |number: &Double| (*number - number.rounded().into()).rounded();
        let is_same = |number: &Double| number.rounded().to_bits() == first.rounded().to_bits();
        if !numbers.iter().all(is_same) {
            let mut strides = Vec::new();
            let mut stride = 1;
            let outer = self.sum.terms.loops[1..].iter().zip(&self.sum.counts);
            for (&region, &count) in outer.rev() {
                strides.push((region, stride));
                stride *= count as i32;
            }
            let rounded = numbers.iter().map(|number| number.rounded()).collect();
            let element = self.draft.element(self.region, rounded, &strides);
            let lost: Vec<f64> = numbers.iter().map(lost).collect();
            if lost.iter().any(|&lost| lost != 0.0) {
                self.draft.lost.insert(element, lost.into_iter().map(f64::to_bits).collect());
            }
            return Some(element);
        }
        let value = first.rounded();
        (value != 0.0).then(|| self.draft.constant(value))
    }

    /// The coordinates of the frame.
    fn sheared(&mut self, differences: &[Node]) -> Vec<Node> {
        let mut coordinates = Vec::new();
        for (number, &difference) in differences.iter().enumerate() {
            let mut coordinate = difference;
            for (before, &other) in differences[..number].iter().enumerate() {
                let parts = self.sum.parts.iter();
                let factors = parts.map(|(frame, _)| frame.shear[number][before].into()).collect();
                if let Some(factor) = self.numbers(factors) {
                    let added = self.draft.apply(self.region, Op::Mul, &[factor, other]);
                    coordinate = self.draft.apply(self.region, Op::Add, &[coordinate, added]);
                }
            }
            coordinates.push(coordinate);
        }
        coordinates
    }

    fn coefficient(&mut self, monomial: usize) -> Option<Node> {
        let parts = self.sum.parts.iter();
        let numbers = parts.map(|(_, moments)| moments.sums[monomial]).collect();
        self.numbers(numbers)
    }

    /// The sum of these monomials times their coefficients, by Horner's rule.
    fn nested(&mut self, monomials: &[usize], variables: &[Node]) -> Option<Node> {
        let Some((&variable, rest)) = variables.split_first() else {
            return monomials.first().and_then(|&monomial| self.coefficient(monomial));
        };
        let index = self.sum.terms.variables.len() - variables.len();
        let exponent = |monomial: usize| self.sum.basis.monomials[monomial][index];
        let degree = monomials.iter().map(|&monomial| exponent(monomial)).max().unwrap_or(0);
        let mut form: Option<Node> = None;
        for power in (0..=degree).rev() {
            let inner: Vec<usize> =
                monomials.iter().copied().filter(|&m| exponent(m) == power).collect();
            form = form.map(|form| self.draft.apply(self.region, Op::Mul, &[form, variable]));
            let inner = self.nested(&inner, rest);
            form = match (form, inner) {
                (Some(form), Some(inner)) => {
                    Some(self.draft.apply(self.region, Op::Add, &[form, inner]))
                }
                (form, inner) => form.or(inner),
            };
        }
        form
    }
}

/// A moment that is smaller than this part of what was added up is its rounding.
const ROUNDING: f64 = 1e-13;

/// A coordinate of `frame`.
fn coordinate(frame: &Frame, variable: usize, names: &[&str]) -> String {
    let name = |variable: usize| names.get(variable).copied().unwrap_or("…");
    let difference = |variable: usize| match frame.pivot[variable] {
        shift if shift < 0.0 => format!("{} + {}", name(variable), notation::number(-shift)),
        0.0 => name(variable).to_owned(),
        shift => format!("{} − {}", name(variable), notation::number(shift)),
    };
    let mut text = difference(variable);
    for (before, &factor) in frame.shear[variable].iter().enumerate() {
        if factor != 0.0 {
            let sign = if factor < 0.0 { "−" } else { "+" };
            let factor = match factor.abs() {
                1.0 => String::new(),
                size => format!("{}·", notation::number(size)),
            };
            let of = difference(before);
            let of = if of == name(before) { of } else { format!("({of})") };
            text.push_str(&format!(" {sign} {factor}{of}"));
        }
    }
    if text == name(variable) { text } else { format!("({text})") }
}

/// The form in mathematical notation.
pub(super) fn text(draft: &Draft, chain: &Chain, sum: &Sum) -> String {
    const NAMES: [&str; 6] = ["u", "v", "w", "s", "t", "z"];
    let has_first = draft.graph.constant(chain.first).is_none();
    let mut text =
        format!("{}Σ_{{i<{}}} g(i) = ", if has_first { "p + " } else { "" }, chain.count);
    if has_first && sum.terms.begin.is_none() {
        text.push_str("p + ");
    }
    let Some((frame, moments)) = sum.parts.first() else { return text };
    let varies = sum.parts.len() > 1;
    let mut used = vec![false; sum.terms.variables.len()];
    let mut form = String::new();
    for (number, monomial) in sum.basis.monomials.iter().enumerate().rev() {
        let is_zero = |(_, moments): &(Frame, Moments)| {
            moments.sums[number].high.abs() <= ROUNDING * moments.magnitudes[number]
        };
        if sum.parts.iter().all(is_zero) {
            continue;
        }
        let value = moments.sums[number].rounded();
        let mut factors = match varies {
            true => vec![format!("S{number}(…)")],
            false => vec![notation::number(value.abs())],
        };
        for (variable, &exponent) in monomial.iter().enumerate().filter(|&(_, &e)| e > 0) {
            used[variable] = true;
            let sheared = frame.shear[variable].iter().enumerate();
            sheared
                .filter(|(_, factor)| **factor != 0.0)
                .for_each(|(before, _)| used[before] = true);
            let name = NAMES.get(variable).copied().unwrap_or("…");
            let mut factor = match varies {
                true => format!("({name} − {name}₀(…))"),
                false => coordinate(frame, variable, &NAMES),
            };
            if exponent > 1 {
                factor.push_str(&format!("^{exponent}"));
            }
            factors.push(factor);
        }
        if factors.len() > 1 && factors[0] == "1" {
            factors.remove(0);
        }
        form.push_str(match (form.is_empty(), value < 0.0 && !varies) {
            (true, false) => "",
            (true, true) => "−",
            (false, false) => " + ",
            (false, true) => " − ",
        });
        form.push_str(&factors.join("·"));
    }
    let variables = sum.terms.variables.len();
    let name = |number: usize| NAMES.get(number).copied().unwrap_or("…");
    for factor in 0..sum.factors.len() {
        text.push_str(&format!("{}·", name(variables + factor)));
    }
    text.push_str(&match form.as_str() {
        "" => "0".to_owned(),
        _ if sum.factors.is_empty() => form,
        _ => format!("({form})"),
    });
    text.push_str(", where g(i) is what is added");
    let brief = Brief::new(&draft.graph);
    used.extend(sum.factors.iter().map(|_| true));
    let named = sum.terms.variables.iter().chain(&sum.factors).enumerate();
    for (number, &variable) in named.filter(|&(number, _)| used[number]) {
        text.push_str(&format!(", {} = {}", name(number), brief.node(variable)));
    }
    if has_first {
        text.push_str(&format!(", p = {}", brief.node(chain.first)));
    }
    text
}
