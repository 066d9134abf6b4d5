//! The record of the formula that a recurrence was solved by.

use super::MOST_STATES;
use super::binomials::Polynomial;
use super::body::Body;
use super::emit::Emitter;
use super::form::{Affine, Base, Coefficient, Forms};
use super::power::System;
use crate::phi::notation::{Brief, number};
use crate::phi::pair::{How, Pair};
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Node, Place, Region};

const SUBSCRIPTS: [char; MOST_STATES] = ['₁', '₂', '₃', '₄', '₅', '₆'];

/// Systems of at most so many numbers are written out.
const WRITTEN: usize = 3;

/// What is further down than this is left out.
const DEPTH: usize = 8;
/// So is what takes more bytes: what loops in loops come to may be used many times.
const LONGEST: usize = 512;
const LEFT_OUT: &str = "…";

pub(super) fn place(emitter: &Emitter<'_>, region: Region) -> Option<Place> {
    let graph = &emitter.graph;
    graph.regions[region].place.and_then(|place| graph.places.get(place)).cloned()
}

/// By which formula `system` is solved, and what its letters stand for.
pub(super) fn record(forms: &Forms<'_, '_>, body: &Body, system: &System) -> Applied {
    record_after(forms, body.region, &forms.times.to_string(), system)
}

/// The same for `n` steps of the loop `region`, a number or what stands for it.
pub(super) fn record_after(
    forms: &Forms<'_, '_>,
    region: Region,
    n: &str,
    system: &System,
) -> Applied {
    let graph = &*forms.emitter.graph;
    let at = place(forms.emitter, region);
    let tables = |row: &Affine| row.values().any(|c| !matches!(c, Coefficient::Fixed(_)));
    let changes = system.rows.iter().any(tables);
    let own = system.rows[0].get(&Base::State(system.states[0]));
    let is_one = |c: &Coefficient| match c {
        Coefficient::Fixed(pair) => pair.low.is_none() && graph.constant(pair.high) == Some(1.0),
        Coefficient::Table(_) | Coefficient::Polynomial(_) => false,
    };
    let steady = own.is_some_and(is_one);
    let mut bases = system.rows.iter().flat_map(|row| row.keys());
    let is_driven = bases.any(|base| matches!(base, Base::Node(_)));
    let (rule, form) = match (system.states.len(), changes) {
        (1, false) if steady => (Rule::C6, format!("p + {n}·b")),
        (1, false) if system.rows[0].len() == 1 => (Rule::C6, format!("a^{n}·p")),
        (1, false) => (Rule::C6, format!("a^{n}·p + b·Σ_{{j<{n}}} a^j")),
        (1, true) if steady => (Rule::C7, format!("p + Σ_{{i<{n}}} b(i)")),
        (1, true) if system.rows[0].len() == 1 => (Rule::C8, format!("p·Π_{{i<{n}}} a(i)")),
        (1, true) => (Rule::C9, format!("p·Π_{{i<{n}}} a(i) + Σ_i b(i)·Π_{{j>i}} a(j)")),
        (_, false) => {
            let added = if is_driven { format!(" + Σ_{{j<{n}}} A^j·b") } else { String::new() };
            (Rule::C6, format!("A^{n}·p{added}, {}", numbers(forms, system)))
        }
        (size, true) => {
            let added = if is_driven { " + Σ_i Π_{j>i} A(j)·b(i)" } else { "" };
            (Rule::C9, format!("Π_{{i<{n}}} A(i)·p{added}, {size} numbers"))
        }
    };
    let known = letters(forms.emitter, system, changes, steady);
    let form = if known.is_empty() { form } else { format!("{form}, where {known}") };
    Applied { rule, at, form }
}

/// How many numbers `system` has; what those are that the loop does not carry.
fn numbers(forms: &Forms<'_, '_>, system: &System) -> String {
    let size = system.states.len();
    let counter = forms.counter();
    let carried = |state: usize| match forms.power_text(state) {
        Some(power) => power,
        None => match system.states.iter().position(|&other| other == state) {
            Some(at) => format!("d{}", SUBSCRIPTS[at.min(MOST_STATES - 1)]),
            None => "1".to_owned(),
        },
    };
    let text = |&state: &usize| {
        let product = state.checked_sub(counter + 1).and_then(|at| forms.products.get(at));
        let (degree, of) = match product {
            Some(&product) => product,
            None if state == counter => (1, None),
            None => return carried(state),
        };
        let binomial = if degree == 1 { "i".to_owned() } else { format!("C(i, {degree})") };
        match of {
            Some(of) => format!("{binomial}·{}", carried(of)),
            None => binomial,
        }
    };
    match system.states.iter().any(|&state| state > counter) {
        true => {
            let all: Vec<String> = system.states.iter().map(text).collect();
            format!("{size} numbers: {}", all.join(", "))
        }
        false => format!("{size} numbers"),
    }
}

/// What the letters of the form stand for.
fn letters(emitter: &Emitter<'_>, system: &System, changes: bool, steady: bool) -> String {
    let (size, brief) = (system.states.len(), Brief::new(emitter.graph));
    if size > WRITTEN {
        return String::new();
    }
    let all = |texts: Vec<String>, separator: &str| match texts.as_slice() {
        [text] => text.clone(),
        _ => format!("({})", texts.join(separator)),
    };
    let firsts = system.firsts.iter().map(|&first| brief.node(first)).collect();
    let mut known = vec![format!("p = {}", all(firsts, ", "))];
    let row = |row: &Affine| -> String {
        let entry = |state: &usize| match row.get(&Base::State(*state)) {
            Some(coefficient) => factor(emitter, coefficient),
            None => "0".to_owned(),
        };
        system.states.iter().map(entry).collect::<Vec<String>>().join(", ")
    };
    let (small, large, i) = ("a", "A", if changes { "(i)" } else { "" });
    if !steady || size > 1 {
        let rows: Vec<String> = system.rows.iter().map(row).collect();
        let letter = if size == 1 { small } else { large };
        known.push(format!("{letter}{i} = {}", all(rows, "; ")));
    }
    let offsets: Vec<String> = system.rows.iter().map(|row| offset_text(emitter, row)).collect();
    if offsets.iter().any(|offset| offset != "0") {
        known.push(format!("b{i} = {}", all(offsets, ", ")));
    }
    known.join(", ")
}

/// A coefficient; of one that changes the first numbers.
fn factor(emitter: &Emitter<'_>, coefficient: &Coefficient) -> String {
    match coefficient {
        Coefficient::Fixed(pair) => written(emitter, *pair, DEPTH).0,
        Coefficient::Table(table) => {
            let shown = table.iter().take(2).map(|x| number(x.rounded()));
            format!("[{}, …]", shown.collect::<Vec<String>>().join(", "))
        }
        Coefficient::Polynomial(Polynomial { parts, .. }) => {
            let part = |(degree, part): (usize, &Option<Pair>)| {
                let (text, _) = written(emitter, (*part)?, DEPTH);
                Some(if degree == 0 { text } else { format!("{text}·C(i, {degree})") })
            };
            let all: Vec<String> = parts.iter().enumerate().filter_map(part).collect();
            format!("[{}]", all.join(" + "))
        }
    }
}

/// What a number is multiplied by in each iteration.
pub(super) fn factor_text(emitter: &Emitter<'_>, pair: Pair) -> String {
    written(emitter, pair, DEPTH).0
}

/// What is added in each iteration.
pub(super) fn offset_text(emitter: &Emitter<'_>, row: &Affine) -> String {
    let graph = &*emitter.graph;
    let mut fixed: Vec<(Option<Node>, Node)> = Vec::new();
    let mut tables = Vec::new();
    for (base, coefficient) in row {
        let Base::Node(node) = *base else { continue };
        match coefficient {
            Coefficient::Fixed(pair) => {
                if emitter.is_made_of_told(*pair) {
                    let node = (graph.constant(node) != Some(1.0)).then(|| node.into());
                    tables.push(product(emitter, Some(*pair), node, DEPTH));
                    continue;
                }
                let is_one = graph.constant(pair.high) == Some(1.0);
                fixed.push(((!is_one).then_some(pair.high), node));
            }
            _ if graph.constant(node) == Some(1.0) => {
                tables.push(factor(emitter, coefficient));
            }
            _ => {
                let base = Brief::new(graph).combination(&[(None, node)]);
                tables.push(format!("{}·{base}", factor(emitter, coefficient)));
            }
        }
    }
    if !fixed.is_empty() || tables.is_empty() {
        tables.push(Brief::new(graph).combination(&fixed));
    }
    tables.join(" + ")
}

/// What `pair` was made of, as far as that is what loops in the loop come to; and whether
/// it is a sum. What is further down than `depth`, and what would be too long, is left out.
fn written(emitter: &Emitter<'_>, pair: Pair, depth: usize) -> (String, bool) {
    let (text, is_sum) = match (emitter.told(pair), emitter.origin(pair)) {
        (Some(told), _) => (told.text.clone(), false),
        (None, Some((_, how))) if emitter.is_made_of_told(pair) => match how {
            _ if depth == 0 => (LEFT_OUT.to_owned(), false),
            How::Sum(a, b) => {
                let [(a, _), (b, _)] = [a, b].map(|part| written(emitter, part, depth - 1));
                (format!("{a} + {b}"), true)
            }
            How::Product(a, b) => (product(emitter, Some(a), Some(b), depth - 1), false),
            How::Quotient(..) => (Brief::new(emitter.graph).node(pair.high), false),
        },
        _ => (Brief::new(emitter.graph).node(pair.high), false),
    };
    match text.len() > LONGEST {
        true => (LEFT_OUT.to_owned(), false),
        false => (text, is_sum),
    }
}

fn product(emitter: &Emitter<'_>, a: Option<Pair>, b: Option<Pair>, depth: usize) -> String {
    let factors =
        [a, b].into_iter().flatten().map(|factor| match written(emitter, factor, depth) {
            (text, true) => format!("({text})"),
            (text, false) => text,
        });
    factors.collect::<Vec<String>>().join("·")
}
