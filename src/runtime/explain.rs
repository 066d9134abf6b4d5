//! Explanations: what a recorded function was seen to do, and what became of it,
//! in mathematical notation.

use core::fmt;

use super::coarsen::{Stages, stages};
use super::fates::{Fate, fates, latex_phis, summary};
use super::options::{Numerics, Options};
use crate::phi::{
    Notation, Phis, Refused, Rule, closed_program, differentiated_phis, gradient_formula, loops,
    phis, program,
};
use crate::ssa::{Graph, Place, dot};

/// So many places are listed with their φs.
const MOST_PLACES: usize = 16;
/// So many formulas of one rule are listed of a loop, besides the first.
const MOST_ALIKE: usize = 3;

/// What a recorded function does, as far as it has been seen: the program, each
/// loop with its closed form, the rules that led there, and the gradient where it
/// is short. Made by [`Recorded::explain`](crate::Recorded::explain); `Display`
/// shows all of it as text.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| if x[1] > 0.0 { x[0].exp() } else { x[0] * x[1] });
/// f.grad(&[0.5, 2.0])?;
/// let explanation = f.explain()?;
/// assert_eq!(explanation.program.text, "provided that x₁ > 0\nreturn e^x₀");
/// let gradient = explanation.gradient.expect("it is short");
/// assert_eq!(gradient.text, "∂f/∂x₀ = e^x₀\n∂f/∂x₁ = 0\n  provided that x₁ > 0");
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The number of active inputs, x₀, x₁ and so on.
    pub active: usize,
    /// The number of inactive inputs, d₀, d₁ and so on.
    pub inactive: usize,
    /// The number of paths that were seen.
    pub paths: usize,
    /// The program as it was seen, with its loops.
    pub program: Notation,
    /// The loops, each before those in it.
    pub loops: Vec<LoopForm>,
    /// Formulas that were applied elsewhere: to branches.
    pub branches: Vec<Formula>,
    /// What stays a loop, and why.
    pub refused: Vec<Refused>,
    /// The φs of the program as it was seen, and those that are left of them.
    pub phis: Vec<(Phis, Phis)>,
    /// What the program has become.
    pub closed: Notation,
    /// The gradient, if it is short: formulas, or a program where loops are left.
    pub gradient: Option<Notation>,
    /// What is to be known besides: how the kernel computes what is shown, and what
    /// is not shown.
    pub notes: Vec<String>,
    #[cfg_attr(feature = "serde", serde(skip))]
    before: Graph,
    #[cfg_attr(feature = "serde", serde(skip))]
    after: Graph,
}

/// A formula of φ-calculus that was applied.
///
/// For an example see [`Explanation`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Formula {
    /// Which one.
    pub rule: Rule,
    /// Where in the user's source, if that is known.
    pub at: Option<Place>,
    /// What it made.
    pub form: Notation,
}

/// A loop of an [`Explanation`], with its closed forms.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopForm {
    /// Where in the user's source, if that is known.
    pub at: Option<Place>,
    /// What it does, as it was seen.
    pub seen: Notation,
    /// The closed forms of its values; none if it stays a loop.
    pub forms: Vec<Formula>,
}

impl Explanation {
    /// Explains `recorded`, the graph of what was seen on `paths` paths.
    pub(super) fn of(recorded: &Graph, paths: usize, options: &Options) -> Explanation {
        let Stages { before, after, gradient, applied, refused } = stages(recorded, options);
        let pivots = applied.iter().any(|applied| applied.rule == Rule::C7);
        let seen = loops(&before).into_iter();
        let mut loops: Vec<LoopForm> = Vec::new();
        for told in seen {
            // The same loop of several calls of one function is told once.
            if !loops.iter().any(|known| known.at == told.at && known.seen == told.notation) {
                loops.push(LoopForm { at: told.at, seen: told.notation, forms: Vec::new() });
            }
        }
        let mut branches = Vec::new();
        let derived = match &gradient {
            // What has no place is no φ of the program.
            Some(_) => {
                differentiated_phis(&after).into_iter().filter(|c2| c2.at.is_some()).collect()
            }
            None => Vec::new(),
        };
        for applied in applied.into_iter().chain(derived) {
            let (rule, at, form) = (applied.rule, applied.at, Notation::of_form(applied.form));
            let formula = Formula { rule, at, form };
            match loops.iter_mut().find(|known| known.at.is_some() && known.at == formula.at) {
                Some(known) => known.forms.push(formula),
                None => branches.push(formula),
            }
        }
        let phis = left(&before, &after);
        if options.phi_calculus && options.numerics == Numerics::Real {
            for (seen, left) in phis.iter().filter(|(_, left)| left.exits < left.entries) {
                let Some(known) = loops.iter_mut().find(|known| known.at == seen.at) else {
                    continue;
                };
                let is_exit = |formula: &Formula| formula.rule == Rule::F5;
                if seen.exits > left.exits && !known.forms.iter().any(is_exit) {
                    known.forms.push(carried_out(&seen.at));
                }
            }
        }
        for refused in &refused {
            let is_its = |known: &&mut LoopForm| known.at.is_some() && known.at == refused.at;
            let Some(known) = loops.iter_mut().find(is_its) else {
                continue;
            };
            if !known.forms.iter().any(|formula| formula.rule >= Rule::C5) {
                known.forms.push(stays_open(&refused.at));
            }
        }
        let mut notes = Vec::new();
        let shown = match gradient.as_ref().map(|graph| gradient_formula(graph, pivots)) {
            _ if recorded.active == 0 => {
                notes.push("no gradient: there are no active inputs".to_owned());
                None
            }
            Some(Ok(told)) => {
                let goes_back = |graph: &Graph| {
                    graph
                        .regions
                        .values()
                        .any(|data| data.replays.is_some() && data.cycle.is_some())
                };
                if gradient.as_ref().is_some_and(goes_back) {
                    let note = "in a loop that goes backwards, what the loop has computed is \
                                what it was in that iteration";
                    notes.push(note.to_owned());
                }
                Some(told)
            }
            Some(Err(lines)) => {
                notes.push(format!("the gradient is not shown: {lines} lines"));
                None
            }
            None => {
                let steps = after.nodes.len();
                notes.push(format!("the gradient is not shown: the program has {steps} steps"));
                None
            }
        };
        Explanation {
            active: recorded.active,
            inactive: recorded.inactive,
            paths,
            program: program(&before),
            loops,
            branches,
            refused,
            phis,
            closed: closed_program(&after, pivots),
            gradient: shown,
            notes,
            before,
            after,
        }
    }

    /// All rules that were applied, in order, each once.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].sin());
    /// f.grad(&[0.5])?;
    /// assert!(f.explain()?.rules().is_empty());
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn rules(&self) -> Vec<Rule> {
        let formulas = self.loops.iter().flat_map(|known| &known.forms).chain(&self.branches);
        let mut rules: Vec<Rule> = formulas.map(|formula| formula.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// The explanation in the language of LaTeX: a part of a document that uses
    /// `amsmath`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].sqrt());
    /// f.grad(&[0.5])?;
    /// assert!(f.explain()?.latex().contains("\\text{return }\\sqrt{x_{0}}"));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn latex(&self) -> String {
        let mut out = String::new();
        let mut paragraph = |title: &str, math: &str| {
            out.push_str(&format!("\\paragraph{{{title}}}\n\\[\n{math}\n\\]\n"));
        };
        paragraph("Program", &self.program.latex);
        for known in &self.loops {
            paragraph(&format!("Loop{}", latex_place(&known.at)), &known.seen.latex);
            for (formula, others) in grouped(&known.forms) {
                for formula in core::iter::once(formula).chain(others.into_iter().take(MOST_ALIKE))
                {
                    paragraph(&formula.rule.to_string(), &formula.form.latex);
                }
            }
        }
        for formula in &self.branches {
            let title = format!("{}{}", formula.rule, latex_place(&formula.at));
            paragraph(&title, &formula.form.latex);
        }
        let fates: Vec<(&Phis, Vec<Fate>)> = self.fates().collect();
        if !fates.is_empty() {
            let lines = fates.iter().take(MOST_PLACES).flat_map(|(seen, fates)| {
                fates.iter().map(|fate| format!("{}{}", fate.words(), latex_place(&seen.at)))
            });
            let lines: Vec<String> = lines.map(|line| latex_phis(&line)).collect();
            let summary = latex_phis(&summary(&fates));
            let words =
                format!("\\paragraph{{The $\\varphi$s}} {summary}: {}.\n", lines.join("; "));
            out.push_str(&words);
        }
        let mut paragraph = |title: &str, math: &str| {
            out.push_str(&format!("\\paragraph{{{title}}}\n\\[\n{math}\n\\]\n"));
        };
        if self.closed != self.program {
            paragraph("Closed form", &self.closed.latex);
        }
        if let Some(gradient) = &self.gradient {
            paragraph("Gradient", &gradient.latex);
        }
        for refused in &self.refused {
            let why = refused.why.replace('_', "\\_");
            out.push_str(&format!(
                "\\paragraph{{No closed form{}}} {why}.\n",
                latex_place(&refused.at)
            ));
        }
        for note in &self.notes {
            out.push_str(&format!("\\paragraph{{Note}} {note}.\n"));
        }
        out
    }

    /// What has become of the φs of each place.
    fn fates(&self) -> impl Iterator<Item = (&Phis, Vec<Fate>)> {
        let formulas = |at: &Option<Place>| {
            let loops = self.loops.iter().flat_map(|known| &known.forms);
            let all = loops.chain(&self.branches).filter(move |formula| formula.at == *at);
            let mut rules: Vec<Rule> = all.map(|formula| formula.rule).collect();
            rules.sort_unstable();
            rules.dedup();
            rules
        };
        self.phis.iter().map(move |(seen, left)| (seen, fates(seen, left, &formulas(&seen.at))))
    }

    /// The regions of the program as it was seen, in the language of Graphviz.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| x[0].sin());
    /// f.grad(&[0.5])?;
    /// let explanation = f.explain()?;
    /// assert!(explanation.dot_before().contains("v0 -> v1"));
    /// assert!(explanation.dot_after().starts_with("digraph"));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn dot_before(&self) -> String {
        dot(&self.before)
    }

    /// The regions of what the program has become, in the language of Graphviz.
    /// For an example see [`Explanation::dot_before`].
    pub fn dot_after(&self) -> String {
        dot(&self.after)
    }
}

/// F5, for a loop that stays: its exit φs are what it carries.
fn carried_out(at: &Option<Place>) -> Formula {
    let form = "φ_L'(p, b1, ..) = what is carried when the loop is left, whichever way";
    Formula { rule: Rule::F5, at: at.clone(), form: Notation::of_form(form.to_owned()) }
}

/// C5, for a loop that has no closed form.
fn stays_open(at: &Option<Place>) -> Formula {
    let form = "d after the loop = f^[n](p), where f is an iteration: the loop stays open";
    Formula { rule: Rule::C5, at: at.clone(), form: Notation::of_form(form.to_owned()) }
}

/// The φs of `before`, each with those of `after` in the same place.
fn left(before: &Graph, after: &Graph) -> Vec<(Phis, Phis)> {
    let after = phis(after, false);
    let same = |seen: &Phis| after.iter().find(|left| left.at == seen.at).cloned();
    let seen = phis(before, true).into_iter();
    seen.map(|seen| (seen.clone(), same(&seen).unwrap_or_default())).collect()
}

fn latex_place(at: &Option<Place>) -> String {
    let text = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    text.replace('\\', "/").replace('_', "\\_").replace('%', "\\%").replace('#', "\\#")
}

fn indented(f: &mut fmt::Formatter<'_>, text: &str, spaces: usize) -> fmt::Result {
    text.lines().try_for_each(|line| writeln!(f, "{:spaces$}{line}", ""))
}

/// The formulas with those of the same rule and place that come after them.
fn grouped(formulas: &[Formula]) -> Vec<(&Formula, Vec<&Formula>)> {
    let mut groups: Vec<(&Formula, Vec<&Formula>)> = Vec::new();
    for formula in formulas {
        let is_its = |(first, _): &&mut (&Formula, _)| {
            (first.rule, &first.at) == (formula.rule, &formula.at)
        };
        match groups.iter_mut().find(is_its) {
            Some((first, others)) => {
                if **first != *formula && !others.contains(&formula) {
                    others.push(formula);
                }
            }
            None => groups.push((formula, Vec::new())),
        }
    }
    groups
}

/// Says that `count` formulas are left out, if there are any.
fn more(f: &mut fmt::Formatter<'_>, count: usize, spaces: usize) -> fmt::Result {
    match count {
        0 => Ok(()),
        _ => writeln!(f, "{:spaces$}(and {count} more)", ""),
    }
}

fn place(at: &Option<Place>) -> String {
    at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { active, inactive, paths, .. } = self;
        let ways = if *paths == 1 { "path" } else { "paths" };
        writeln!(
            f,
            "the program ({active} active and {inactive} inactive inputs, {paths} {ways})"
        )?;
        indented(f, &self.program.text, 2)?;
        for known in &self.loops {
            writeln!(f, "the loop{}", place(&known.at))?;
            indented(f, &known.seen.text, 2)?;
            for (formula, others) in grouped(&known.forms) {
                writeln!(f, "  by {}, {}", formula.rule, formula.rule.formula())?;
                indented(f, &formula.form.text, 4)?;
                for other in others.iter().take(MOST_ALIKE) {
                    indented(f, &other.form.text, 4)?;
                }
                more(f, others.len().saturating_sub(MOST_ALIKE), 4)?;
            }
        }
        for (formula, others) in grouped(&self.branches) {
            let Formula { rule, at, form } = formula;
            writeln!(f, "by {rule}{}, {}", place(at), rule.formula())?;
            indented(f, &form.text, 2)?;
            more(f, others.len(), 2)?;
        }
        for refused in &self.refused {
            writeln!(f, "no closed form{}: {}", place(&refused.at), refused.why)?;
        }
        let fates: Vec<(&Phis, Vec<Fate>)> = self.fates().collect();
        if !fates.is_empty() {
            writeln!(f, "the φs: {}", summary(&fates))?;
        }
        for (seen, fates) in fates.iter().take(MOST_PLACES) {
            fates
                .iter()
                .try_for_each(|fate| writeln!(f, "  {}{}", fate.words(), place(&seen.at)))?;
        }
        more(f, fates.len().saturating_sub(MOST_PLACES), 2)?;
        if self.closed != self.program {
            writeln!(f, "what it has become")?;
            indented(f, &self.closed.text, 2)?;
        }
        if let Some(gradient) = &self.gradient {
            writeln!(f, "the gradient")?;
            indented(f, &gradient.text, 2)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
