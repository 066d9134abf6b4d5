//! The description of the closed form of a recurrence, for reports and explanations.

use super::coefficients::Coefficients;
use super::form::Variable;
use super::system::System;
use crate::entity::Entity;
use crate::explain::notation::{Brief, Level, Term};
use crate::numeric::{Instruction, Slot};
use crate::op::Op;
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Graph, Region};

/// The largest number of states of a system whose matrix is written out.
const MAX_DISPLAYED_STATES: usize = 3;
/// The longest text of a coefficient, in bytes; a longer one becomes "…".
const MAX_COEFFICIENT_LENGTH: usize = 200;

/// Describes `system` after `count` steps of `region`.
pub(super) fn describe(
    graph: &Graph,
    region: Region,
    system: &System,
    starts: &[Slot],
    coefficients: &Coefficients,
    count: impl core::fmt::Display,
) -> Applied {
    let at = graph.place(graph.regions[region].place).cloned();
    let terms = terms(graph, coefficients);
    let text = |slot: Option<Slot>| match slot {
        Some(slot) => terms[slot.index()].text(),
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
        (_, false) => ("A", format!("A^{count}·p, {}", variable_list(system))),
        (_, true) => {
            ("A", format!("A^{count}·p + Σ_{{j<{count}}} A^j·b, {}", variable_list(system)))
        }
    };
    if size > MAX_DISPLAYED_STATES {
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

/// The number of states, and their definitions if some are not carried values.
fn variable_list(system: &System) -> String {
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
    let variable_list: Vec<String> = system.variables.iter().map(name).collect();
    format!("{size} numbers: {}", variable_list.join(", "))
}

/// The term of each slot.
fn terms(graph: &Graph, coefficients: &Coefficients) -> Vec<Term> {
    let brief = Brief::new(graph);
    let mut terms: Vec<Term> = Vec::new();
    for instruction in coefficients.program().instructions() {
        let term = match *instruction {
            Instruction::Input(input)
            | Instruction::Rounded(input)
            | Instruction::Bounded(input) => brief.term(coefficients.live_ins()[input as usize]),
            Instruction::Constant(value) => Term::number(value),
            Instruction::Folded(value) => Term::number(value.hi),
            Instruction::Apply(op, ref slots) => {
                let operands = slots[..op.arity()].iter();
                Term::apply(op, operands.map(|slot| terms[slot.index()].clone()))
            }
            Instruction::Power(ref power) => {
                let (n, states) = (power.trips, power.map.states());
                match (states, power.map.matrix()[0]) {
                    (1, Some(ratio)) => {
                        let base = terms[ratio.index()].at_least(Level::Atom);
                        let sum = Term::new(format!("Σ_{{j<{n}}} {base}^j"), Level::Product);
                        let offset = power.map.offset()[0].map(|slot| terms[slot.index()].clone());
                        terms.push(abbreviated(Term::new(format!("{base}^{n}"), Level::Power)));
                        terms.push(abbreviated(offset.map_or(Term::number(0.0), |offset| {
                            Term::apply(Op::Mul, [offset, sum])
                        })));
                    }
                    _ => terms.extend((0..power.results()).map(|entry| {
                        let (row, column) = (entry / states + 1, entry % states + 1);
                        Term::atom(match entry < states * states {
                            true => format!("(A^{n})_{{{row}{column}}}"),
                            false => format!("(Σ_{{j<{n}}} A^j·b)_{column}"),
                        })
                    })),
                }
                continue;
            }
        };
        terms.push(abbreviated(term));
    }
    terms
}

/// `term`, or "…" if it is too long.
fn abbreviated(term: Term) -> Term {
    if term.text().len() > MAX_COEFFICIENT_LENGTH { Term::ellipsis() } else { term }
}
