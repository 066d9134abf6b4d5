//! An explanation as text, and in LaTeX: the same sections in both.

use core::fmt;

use super::phis::{Outcome, outcomes, summary};
use super::{Explanation, Formula, Phis};
use crate::explain::notation::Notation;
use crate::ssa::Place;

/// The largest number of places that are listed with their φs.
const MAX_PLACES: usize = 16;
/// The largest number of formulas of one rule at one place.
const MAX_FORMS: usize = 4;

/// A section of an explanation: a heading in words, perhaps with a formula, and the notation below.
struct Section<'a> {
    depth: usize,
    words: String,
    formula: Option<&'static str>,
    below: Vec<&'a Notation>,
}

impl<'a> Section<'a> {
    fn new(depth: usize, words: String, below: impl Into<Option<&'a Notation>>) -> Self {
        Section { depth, words, formula: None, below: below.into().into_iter().collect() }
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

/// Appends a section for each rule and place of `formulas`.
fn formulas<'a>(sections: &mut Vec<Section<'a>>, formulas: &'a [Formula], depth: usize) {
    let first = sections.len();
    for Formula { rule, at, form } in formulas {
        let at = if depth == 0 { place(at) } else { String::new() };
        let words = format!("by {rule}{at}");
        match sections[first..].iter_mut().find(|section| section.words == words) {
            Some(section) if section.below.len() >= MAX_FORMS || section.below.contains(&form) => {}
            Some(section) => section.below.push(form),
            None => {
                let formula = Some(rule.formula());
                sections.push(Section { formula, ..Section::new(depth, words, form) });
            }
        }
    }
}

impl Explanation {
    fn sections(&self) -> Vec<Section<'_>> {
        let Explanation { active, inactive, paths, .. } = self;
        let kind = if *paths == 1 { "path" } else { "paths" };
        let inputs = format!("{active} active and {inactive} inactive inputs, {paths} {kind}");
        let mut sections = vec![Section::new(0, format!("the program ({inputs})"), &self.program)];
        for known in &self.loops {
            sections.push(Section::new(0, format!("the loop{}", place(&known.at)), &known.seen));
            formulas(&mut sections, &known.forms, 1);
        }
        formulas(&mut sections, &self.branches, 0);
        for open in &self.open {
            let words = format!("no closed form{}: {}", place(&open.at), open.explained());
            sections.push(Section::new(0, words, None));
        }
        let of_place = |seen: &Phis, left: &Phis| {
            outcomes(seen, left, &self.rules_where(|formula| formula.at == seen.at))
        };
        let outcomes: Vec<(&Phis, Vec<Outcome>)> =
            self.phis.iter().map(|(seen, left)| (seen, of_place(seen, left))).collect();
        if !outcomes.is_empty() {
            sections.push(Section::new(0, format!("the φs: {}", summary(&outcomes)), None));
        }
        for (seen, outcomes) in outcomes.iter().take(MAX_PLACES) {
            let words =
                outcomes.iter().map(|outcome| format!("{}{}", outcome.words, place(&seen.at)));
            sections.extend(words.map(|words| Section::new(1, words, None)));
        }
        if outcomes.len() > MAX_PLACES {
            sections.push(Section::new(
                1,
                format!("(and {} more)", outcomes.len() - MAX_PLACES),
                None,
            ));
        }
        if self.closed != self.program {
            sections.push(Section::new(
                0,
                "the program with closed forms".to_owned(),
                &self.closed,
            ));
        }
        if let Some(gradient) = &self.gradient {
            sections.push(Section::new(0, "the gradient".to_owned(), gradient));
        }
        sections
            .extend(self.notes.iter().map(|note| Section::new(0, format!("note: {note}"), None)));
        sections
    }

    /// The explanation in LaTeX: a part of a document that uses `amsmath`.
    pub fn latex(&self) -> String {
        let mut out = String::new();
        for section in self.sections() {
            let words = latex_words(&section.words);
            out.push_str(&match section.depth {
                0 => format!("\\paragraph{{{words}}}\n"),
                _ => format!("\n{words}\n"),
            });
            for below in section.below {
                out.push_str(&format!("\\[\n{}\n\\]\n", below.latex));
            }
        }
        out
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in self.sections() {
            let formula = section.formula.map(|formula| format!(", {formula}")).unwrap_or_default();
            writeln!(f, "{}{}{formula}", "  ".repeat(section.depth), section.words)?;
            let indent = "  ".repeat(section.depth + 1);
            let lines = section.below.into_iter().flat_map(|below| below.text.lines());
            lines.into_iter().try_for_each(|line| writeln!(f, "{indent}{line}"))?;
        }
        Ok(())
    }
}
