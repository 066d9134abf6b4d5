//! Explanations: the recorded program, its closed forms and its gradient in mathematical notation.
//!
//! - `notation`: terms and formulas in Unicode and LaTeX
//! - `dot`: pictures of graphs
//! - `names`: names for nodes and arrays
//! - `program`: a graph as lines of steps, conditions and loops
//! - `display`: closed forms without fallback versions of loops
//! - `phis`: counts of φs before and after
//! - `report`: an explanation as text, and in LaTeX

mod display;
pub(crate) mod dot;
mod names;
pub(crate) mod notation;
pub(crate) mod phis;
pub(crate) mod program;
mod report;

pub use phis::Phis;
use phis::differentiated_phis;
use program::program;

use crate::phi::{Applied, OpenLoop, Rule};
use crate::pipeline::{Recording, with_simple_branches};
use crate::runtime::{Error, Recorded, RecordedWith};
use crate::ssa::{Graph, Place};
use dot::dot;
pub use notation::Notation;

/// An explanation of what was recorded of a function: the program, each loop with its closed form,
/// the rules that were applied, and the gradient if it is short.
///
/// Made by [`Recorded::explain`](crate::Recorded::explain); `Display` shows all of it as text.
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
/// assert_eq!(gradient.text, "provided that x₁ > 0\n∂f/∂x₀ = e^x₀\n∂f/∂x₁ = 0");
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
    /// The number of recorded paths.
    pub paths: usize,
    /// The recorded program, with its loops.
    pub program: Notation,
    /// The loops, outer ones before inner ones.
    pub loops: Vec<LoopExplanation>,
    /// The rules that were applied to branches.
    pub branches: Vec<Formula>,
    /// The loops without a closed form, with the reasons.
    pub open: Vec<OpenLoop>,
    /// The φs of the recorded program by place, and those that remain there.
    pub phis: Vec<(Phis, Phis)>,
    /// The program with closed forms.
    pub closed: Notation,
    /// The gradient, if it is short: formulas, or a program if loops remain.
    pub gradient: Option<Notation>,
    /// Notes for reading the gradient, or the reason why it is not shown.
    pub notes: Vec<String>,
    #[cfg_attr(feature = "serde", serde(skip))]
    before: Graph,
    #[cfg_attr(feature = "serde", serde(skip))]
    after: Graph,
}

/// An application of a rule of φ-calculus; for an example see [`Explanation`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Formula {
    /// The rule.
    pub rule: Rule,
    /// The place in the user's source, if it is known.
    pub at: Option<Place>,
    /// The resulting form.
    pub form: Notation,
}

/// A loop of an [`Explanation`], with its closed forms.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopExplanation {
    /// The place in the user's source, if it is known.
    pub at: Option<Place>,
    /// The loop as recorded.
    pub seen: Notation,
    /// The closed forms of its values; empty if the loop stays open.
    pub forms: Vec<Formula>,
}

impl Explanation {
    fn of(recording: &Recording) -> Explanation {
        /// The largest graph whose gradient is derived.
        const MAX_NODES: usize = 4096;
        let mut before = recording.with_loops();
        let mut loops: Vec<LoopExplanation> = Vec::new();
        for (region, seen) in program::loops(&before) {
            // Different loops at one place are numbered, so that their forms differ. Equal
            // ones, such as those of several calls of one function, are shown once.
            let mut at = before.place(before.regions[region].place).cloned();
            while let Some(place) = &mut at
                && loops.iter().any(|known| known.at.as_ref() == Some(place) && known.seen != seen)
            {
                place.nth += 1;
            }
            if let Some(place) = at.clone().filter(|place| place.nth > 0) {
                let place = before.places.push(place);
                before.move_region(region, place);
            }
            let new = LoopExplanation { at, seen, forms: Vec::new() };
            if !loops.contains(&new) {
                loops.push(new);
            }
        }
        let (mut after, mut applied, mut open) = (before.clone(), Vec::new(), Vec::new());
        let closed = recording.closed(&before);
        let is_closed = closed.is_some();
        if let Some(closed) = closed {
            (applied, open) = (closed.applied, closed.open);
            after = with_simple_branches(display::display_form(&closed.graph), &mut applied);
        }
        let form = |Applied { rule, at, form }| Formula { rule, at, form: Notation::formula(form) };
        let mut formulas: Vec<Formula> = applied.into_iter().map(form).collect();
        let derived = (after.nodes.len() <= MAX_NODES).then(|| recording.gradient(&after));
        if derived.is_some() {
            // A φ without a place is none of the recorded program.
            formulas.extend(differentiated_phis(&after).into_iter().filter(|new| new.at.is_some()));
        }
        let mut branches = Vec::new();
        for formula in formulas {
            match loops.iter_mut().find(|known| known.at.is_some() && known.at == formula.at) {
                // A φ of a closed form is none of the recorded program.
                Some(known)
                    if formula.rule == Rule::C2
                        && known.has(|rule| rule.is_about_loops() && rule != Rule::C5) => {}
                Some(known) => known.forms.push(formula),
                None => branches.push(formula),
            }
        }
        let phis = phis::before_and_after(&before, &after);
        if is_closed {
            loops.iter_mut().for_each(|known| known.name_exits(&phis, &open));
        }
        let gradient = match &derived {
            _ if recording.graph.active == 0 => {
                Err("no gradient: there are no active inputs".to_owned())
            }
            Some(derived) => program::gradient(derived)
                .map_err(|lines| format!("the gradient is not shown: {lines} lines")),
            None => {
                let steps = after.nodes.len();
                Err(format!("the gradient is not shown: the program has {steps} steps"))
            }
        };
        let note = match &gradient {
            Ok(_) if derived.as_ref().is_some_and(has_reversed_loops) => {
                "in a loop that runs backwards, a value of the forward loop is that of the same \
                 iteration"
            }
            Ok(_) => "",
            Err(note) => note,
        };
        Explanation {
            active: recording.graph.active,
            inactive: recording.graph.inactive,
            paths: recording.paths,
            program: program(&before),
            loops,
            branches,
            open,
            phis,
            closed: program(&after),
            notes: Some(note.to_owned()).filter(|note| !note.is_empty()).into_iter().collect(),
            gradient: gradient.ok(),
            before,
            after,
        }
    }

    /// The rules that were applied, sorted and without duplicates.
    pub fn rules(&self) -> Vec<Rule> {
        self.rules_where(|_| true)
    }

    fn rules_where(&self, fits: impl Fn(&Formula) -> bool) -> Vec<Rule> {
        let formulas = self.loops.iter().flat_map(|known| &known.forms).chain(&self.branches);
        let mut rules: Vec<Rule> =
            formulas.filter(|formula| fits(formula)).map(|formula| formula.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// The graph of the recorded program, in the language of Graphviz.
    pub fn dot_before(&self) -> String {
        dot(&self.before)
    }

    /// The graph of the program with closed forms, in the language of Graphviz.
    pub fn dot_after(&self) -> String {
        dot(&self.after)
    }
}

/// True if `gradient` has loops that run from the last iteration to the first.
fn has_reversed_loops(gradient: &Graph) -> bool {
    gradient.regions.values().any(|data| data.replays.is_some() && data.cycle.is_some())
}

impl LoopExplanation {
    fn has(&self, matches: impl Fn(Rule) -> bool) -> bool {
        self.forms.iter().any(|formula| matches(formula.rule))
    }

    /// Adds F5 if exit φs are carried values, and C5 if the loop stays open.
    fn name_exits(&mut self, phis: &[(Phis, Phis)], open: &[OpenLoop]) {
        let is_carried = |(seen, left): &(Phis, Phis)| {
            seen.at == self.at && left.exits < left.entries && seen.exits > left.exits
        };
        let is_open = self.at.is_some() && open.iter().any(|open| open.at == self.at);
        let mut missing = Vec::new();
        if phis.iter().any(is_carried) && !self.has(|rule| rule == Rule::F5) {
            let form = "φ_L'(p, b1, ..) = the carried value at each exit";
            missing.push((Rule::F5, form));
        }
        if is_open && !self.has(Rule::is_about_loops) {
            let form = "d after the loop = f^[n](p), where f is an iteration: the loop stays open";
            missing.push((Rule::C5, form));
        }
        for (rule, form) in missing {
            let form = Notation::formula(form.to_owned());
            self.forms.push(Formula { rule, at: self.at.clone(), form });
        }
    }
}

macro_rules! explained {
    ($name:ident) => {
        impl<F> $name<F> {
            /// Explains what was recorded for the most frequent input length, in mathematical
            /// notation. The function is not run, and its recordings do not change.
            ///
            /// # Errors
            ///
            /// If nothing has been recorded yet, or the recordings contradict each other.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| (x[0] * x[1]).sin() + x[0]);
            /// assert!(f.explain().is_err()); // Nothing has been recorded yet.
            /// f.grad(&[0.5, 2.0])?;
            /// let explanation = f.explain()?;
            /// assert_eq!(explanation.program.text, "return x₀ + sin(x₀·x₁)");
            /// println!("{explanation}");
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn explain(&self) -> Result<Explanation, Error> {
                Ok(Explanation::of(&self.recording()?))
            }
        }
    };
}

explained!(Recorded);
explained!(RecordedWith);
