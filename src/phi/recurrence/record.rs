//! The record of the formula that a recurrence was closed by.

use super::coefficients::Coefficients;
use super::form::Variable;
use super::system::System;
use crate::notation::{Brief, number};
use crate::numeric::{Instruction, Slot};
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Graph, Region};

/// Systems of at most so many variables are written out.
const MOST_WRITTEN: usize = 3;
/// A longer text of one coefficient is cut short.
const LONGEST: usize = 200;

/// How the text of an operand binds: sums need brackets in products.
struct Text {
    text: String,
    is_sum: bool,
}

/// The formula of `system`, for `count` steps of `region`.
pub(super) fn record(
    graph: &Graph,
    region: Region,
    system: &System,
    starts: &[Slot],
    coefficients: &Coefficients,
    count: impl core::fmt::Display,
) -> Applied {
    let place = graph.regions[region].place;
    let at = place.and_then(|place| graph.places.get(place)).cloned();
    let texts = texts(graph, coefficients);
    let text = |slot: Option<Slot>| match slot {
        Some(slot) => texts[crate::entity::Entity::index(slot)].text.clone(),
        None => "0".to_owned(),
    };
    let size = system.variables.len();
    let offset: Vec<String> = system.offset.iter().map(|&slot| text(slot)).collect();
    let is_driven = system.offset.iter().any(Option::is_some);
    let all = |texts: Vec<String>, separator: &str| match &texts[..] {
        [text] => text.clone(),
        _ => format!("({})", texts.join(separator)),
    };
    let (letter, form) = match (size, is_driven) {
        (1, false) => ("a", format!("a^{count}·p")),
        (1, true) => ("a", format!("a^{count}·p + b·Σ_{{j<{count}}} a^j")),
        (_, false) => ("A", format!("A^{count}·p, {}", names(system))),
        (_, true) => ("A", format!("A^{count}·p + Σ_{{j<{count}}} A^j·b, {}", names(system))),
    };
    if size > MOST_WRITTEN {
        return Applied { rule: Rule::C6, at, form };
    }
    let first = starts.iter().map(|&slot| text(Some(slot))).collect();
    let rows = system
        .matrix
        .chunks(size)
        .map(|row| row.iter().map(|&slot| text(slot)).collect::<Vec<String>>().join(", "));
    let mut form =
        format!("{form}, where p = {}, {letter} = {}", all(first, ", "), all(rows.collect(), "; "));
    if is_driven {
        form.push_str(&format!(", b = {}", all(offset, ", ")));
    }
    Applied { rule: Rule::C6, at, form }
}

/// What the numbers of a system are.
fn names(system: &System) -> String {
    let size = system.variables.len();
    if system.variables.iter().all(|variable| variable.degree == 0) {
        return format!("{size} numbers");
    }
    let mut letters = Vec::new();
    let name = |&Variable { state, degree }: &Variable| {
        let carried = state.map(|state| {
            let known = letters.iter().position(|&other| other == state);
            let at = known.unwrap_or_else(|| {
                letters.push(state);
                letters.len() - 1
            });
            format!("d{}", ['₁', '₂', '₃', '₄', '₅', '₆'][at.min(5)])
        });
        let binomial = match degree {
            0 => None,
            1 => Some("i".to_owned()),
            _ => Some(format!("C(i, {degree})")),
        };
        let parts: Vec<String> = binomial.into_iter().chain(carried).collect();
        if parts.is_empty() { "1".to_owned() } else { parts.join("·") }
    };
    let names: Vec<String> = system.variables.iter().map(name).collect();
    format!("{size} numbers: {}", names.join(", "))
}

/// The text of each slot.
fn texts(graph: &Graph, coefficients: &Coefficients) -> Vec<Text> {
    let brief = Brief::new(graph);
    let mut texts: Vec<Text> = Vec::new();
    let at = |texts: &[Text], slot: Slot, brackets: bool| {
        let Text { text, is_sum } = &texts[crate::entity::Entity::index(slot)];
        if *is_sum && brackets { format!("({text})") } else { text.clone() }
    };
    for instruction in coefficients.program().instructions() {
        let (text, is_sum) = match *instruction {
            Instruction::Input(input) => {
                let text = brief.node(coefficients.live_ins()[input as usize]);
                let is_sum = text.contains([' ']) && !text.ends_with(')');
                (text, is_sum)
            }
            Instruction::Constant(value) => (number(value), value < 0.0),
            // They are coefficients of sums alone.
            Instruction::Bounded(input) => (format!("x{input}"), false),
            Instruction::Folded(value) => (number(value.hi), value.hi < 0.0),
            Instruction::Add(a, b) => {
                match texts[crate::entity::Entity::index(b)].text.strip_prefix('−') {
                    Some(b) => (format!("{} − {b}", at(&texts, a, false)), true),
                    None => (format!("{} + {}", at(&texts, a, false), at(&texts, b, false)), true),
                }
            }
            Instruction::Sub(a, b) => {
                (format!("{} − {}", at(&texts, a, false), at(&texts, b, true)), true)
            }
            Instruction::Mul(a, b) => {
                (format!("{}·{}", at(&texts, a, true), at(&texts, b, true)), false)
            }
            Instruction::Div(a, b) => {
                (format!("{}/{}", at(&texts, a, true), at(&texts, b, true)), false)
            }
            Instruction::Neg(a) => (format!("−{}", at(&texts, a, true)), false),
            Instruction::Power(ref power) => {
                let n = match power.trips {
                    crate::numeric::Trips::Constant(count) => count.to_string(),
                    crate::numeric::Trips::Input(_) => "k".to_owned(),
                };
                let map = &power.map;
                match (map.states(), map.matrix()[0]) {
                    (1, Some(ratio)) => {
                        let base = at(&texts, ratio, true);
                        let sum = match map.offset()[0] {
                            Some(b) => format!("{}·Σ_{{j<{n}}} {base}^j", at(&texts, b, true)),
                            None => "0".to_owned(),
                        };
                        texts.push(cut(format!("{base}^{n}"), false));
                        texts.push(cut(sum, false));
                    }
                    _ => {
                        for entry in 0..power.results() {
                            let states = map.states();
                            let (row, column) = (entry / states + 1, entry % states + 1);
                            let text = match entry < states * states {
                                true => format!("(A^{n})_{{{row}{column}}}"),
                                false => format!("(Σ_{{j<{n}}} A^j·b)_{column}"),
                            };
                            texts.push(cut(text, false));
                        }
                    }
                }
                continue;
            }
        };
        texts.push(cut(text, is_sum));
    }
    texts
}

fn cut(text: String, is_sum: bool) -> Text {
    if text.len() > LONGEST {
        Text { text: "…".to_owned(), is_sum: false }
    } else {
        Text { text, is_sum }
    }
}
