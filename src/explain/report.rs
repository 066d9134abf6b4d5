//! An explanation as text, and in LaTeX: the same parts, written twice.

use core::fmt;

use super::phis::{Fate, fates, summary};
use super::{Explanation, Formula, Phis};
use crate::explain::notation::Notation;
use crate::ssa::Place;

/// So many places are listed with their φs.
const MOST_PLACES: usize = 16;
/// So many formulas of one rule are listed of one place.
const MOST_ALIKE: usize = 4;

/// A part of an explanation: words, perhaps a formula after them, and what is below.
struct Part<'a> {
    depth: usize,
    words: String,
    formula: Option<&'static str>,
    below: Vec<&'a Notation>,
}

impl<'a> Part<'a> {
    fn new(depth: usize, words: String, below: impl Into<Option<&'a Notation>>) -> Self {
        Part { depth, words, formula: None, below: below.into().into_iter().collect() }
    }
}

fn place(at: &Option<Place>) -> String {
    at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default()
}

/// Words in LaTeX.
fn latex_words(words: &str) -> String {
    let mut out = String::new();
    for character in words.chars() {
        match character {
            '\\' => out.push('/'),
            '_' | '%' | '#' | '&' | '$' | '{' | '}' => out.extend(['\\', character]),
            '^' => out.push_str("\\^{}"),
            _ => out.push(character),
        }
    }
    let loops = out.replace("φ\\_L'", "$\\varphi_{L'}$").replace("φ\\_L", "$\\varphi_L$");
    loops.replace('φ', "$\\varphi$")
}

/// The formulas, each rule and place once.
fn formulas<'a>(parts: &mut Vec<Part<'a>>, formulas: &'a [Formula], depth: usize) {
    let first = parts.len();
    for Formula { rule, at, form } in formulas {
        let at = if depth == 0 { place(at) } else { String::new() };
        let words = format!("by {rule}{at}");
        match parts[first..].iter_mut().find(|part| part.words == words) {
            Some(part) if part.below.len() >= MOST_ALIKE || part.below.contains(&form) => {}
            Some(part) => part.below.push(form),
            None => {
                let formula = Some(rule.formula());
                parts.push(Part { formula, ..Part::new(depth, words, form) });
            }
        }
    }
}

impl Explanation {
    fn parts(&self) -> Vec<Part<'_>> {
        let Explanation { active, inactive, paths, .. } = self;
        let kind = if *paths == 1 { "path" } else { "paths" };
        let inputs = format!("{active} active and {inactive} inactive inputs, {paths} {kind}");
        let mut parts = vec![Part::new(0, format!("the program ({inputs})"), &self.program)];
        for known in &self.loops {
            parts.push(Part::new(0, format!("the loop{}", place(&known.at)), &known.seen));
            formulas(&mut parts, &known.forms, 1);
        }
        formulas(&mut parts, &self.branches, 0);
        for open in &self.open {
            let words = format!("no closed form{}: {}", place(&open.at), open.explained());
            parts.push(Part::new(0, words, None));
        }
        let of_place = |seen: &Phis, left: &Phis| {
            fates(seen, left, &self.rules_where(|formula| formula.at == seen.at))
        };
        let fates: Vec<(&Phis, Vec<Fate>)> =
            self.phis.iter().map(|(seen, left)| (seen, of_place(seen, left))).collect();
        if !fates.is_empty() {
            parts.push(Part::new(0, format!("the φs: {}", summary(&fates)), None));
        }
        for (seen, fates) in fates.iter().take(MOST_PLACES) {
            let words = fates.iter().map(|fate| format!("{}{}", fate.words, place(&seen.at)));
            parts.extend(words.map(|words| Part::new(1, words, None)));
        }
        if fates.len() > MOST_PLACES {
            parts.push(Part::new(1, format!("(and {} more)", fates.len() - MOST_PLACES), None));
        }
        if self.closed != self.program {
            parts.push(Part::new(0, "what it has become".to_owned(), &self.closed));
        }
        if let Some(gradient) = &self.gradient {
            parts.push(Part::new(0, "the gradient".to_owned(), gradient));
        }
        parts.extend(self.notes.iter().map(|note| Part::new(0, format!("note: {note}"), None)));
        parts
    }

    /// The explanation in LaTeX: a part of a document that uses `amsmath`.
    pub fn latex(&self) -> String {
        let mut out = String::new();
        for part in self.parts() {
            let words = latex_words(&part.words);
            out.push_str(&match part.depth {
                0 => format!("\\paragraph{{{words}}}\n"),
                _ => format!("\n{words}\n"),
            });
            for below in part.below {
                out.push_str(&format!("\\[\n{}\n\\]\n", below.latex));
            }
        }
        out
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.parts() {
            let formula = part.formula.map(|formula| format!(", {formula}")).unwrap_or_default();
            writeln!(f, "{}{}{formula}", "  ".repeat(part.depth), part.words)?;
            let indent = "  ".repeat(part.depth + 1);
            let lines = part.below.into_iter().flat_map(|below| below.text.lines());
            lines.into_iter().try_for_each(|line| writeln!(f, "{indent}{line}"))?;
        }
        Ok(())
    }
}
