//! Explanations: what a recorded function was seen to do, and what has become of it.
//!
//! - `names`: which nodes get names, and what the others are as terms
//! - `program`: a graph as lines of steps, conditions and loops
//! - `arrays`: what the elements are called of arrays that loops read
//! - `display`: closed forms without the loops that are their fallback
//! - `phis`: the φs that were seen, and those that are left
//! - `report`: all of it as text, and in LaTeX

mod arrays;
mod display;
mod names;
mod phis;
mod program;
mod report;

pub use phis::{Phis, differentiated_phis};
pub use program::program;

pub use crate::notation::Notation;
use crate::phi::{Refused, Rule};
use crate::runtime::{Error, Recorded, RecordedWith, Recording};
use crate::ssa::{Graph, Place, dot};

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
    /// What is not shown, and why.
    pub notes: Vec<String>,
    #[cfg_attr(feature = "serde", serde(skip))]
    before: Graph,
    #[cfg_attr(feature = "serde", serde(skip))]
    after: Graph,
}

/// A formula of φ-calculus that was applied; for an example see [`Explanation`].
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
    fn of(recording: &Recording) -> Explanation {
        /// The gradient of a larger graph is not shown.
        const MOST_NODES: usize = 4096;
        let mut before = recording.with_loops();
        let seen = program::loops(&before);
        phis::number_loops(&mut before, &seen);
        let mut loops: Vec<LoopForm> = Vec::new();
        for (region, seen) in seen {
            let at = before.regions[region].place.and_then(|place| before.places.get(place));
            let new = LoopForm { at: at.cloned(), seen, forms: Vec::new() };
            // The same loop of several calls of one function is shown once.
            if !loops.contains(&new) {
                loops.push(new);
            }
        }
        let closed = recording.closed(&before);
        let is_closed = closed.is_some();
        let (mut after, mut applied, mut refused) = (before.clone(), Vec::new(), Vec::new());
        if let Some(closed) = closed {
            (applied, refused) = (closed.applied, closed.refused);
            after = recording.branched(display::display_form(&closed.graph), &mut applied);
        }
        let formulas = applied.into_iter().map(|applied| Formula {
            rule: applied.rule,
            at: applied.at,
            form: Notation::formula(applied.form),
        });
        let gradient = (after.nodes.len() <= MOST_NODES).then(|| recording.gradient(&after));
        let derived = gradient.iter().flat_map(|_| differentiated_phis(&after));
        // What has no place is no φ of the program.
        let derived = derived.filter(|formula| formula.at.is_some());
        let mut branches = Vec::new();
        for formula in formulas.chain(derived) {
            match loops.iter_mut().find(|known| known.at.is_some() && known.at == formula.at) {
                // A φ of a closed form is no φ of the program.
                Some(known)
                    if formula.rule == Rule::C2
                        && known.forms.iter().any(|form| form.rule > Rule::C5) => {}
                Some(known) => known.forms.push(formula),
                None => branches.push(formula),
            }
        }
        let phis = phis::seen_and_left(&before, &after);
        if is_closed {
            name_exits(&mut loops, &phis, &refused);
        }
        let mut notes = Vec::new();
        let gradient = match gradient.as_ref().map(program::gradient) {
            _ if recording.graph.active == 0 => {
                Err("no gradient: there are no active inputs".into())
            }
            Some(Ok(gradient)) => Ok(gradient),
            Some(Err(lines)) => Err(format!("the gradient is not shown: {lines} lines")),
            None => {
                let steps = after.nodes.len();
                Err(format!("the gradient is not shown: the program has {steps} steps"))
            }
        };
        match &gradient {
            Ok(gradient) if gradient.text.contains("backwards") => notes.push(
                "what a loop has computed is, in the loop that goes backwards, what it was in that \
                 iteration"
                    .to_owned(),
            ),
            Ok(_) => {}
            Err(note) => notes.push(String::clone(note)),
        }
        Explanation {
            active: recording.graph.active,
            inactive: recording.graph.inactive,
            paths: recording.paths,
            program: program(&before),
            loops,
            branches,
            refused,
            phis,
            closed: program(&after),
            gradient: gradient.ok(),
            notes,
            before,
            after,
        }
    }

    /// All rules that were applied, in order, each once.
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

    /// The regions of the program as it was seen, in the language of Graphviz.
    pub fn dot_before(&self) -> String {
        dot(&self.before)
    }

    /// The regions of what the program has become, in the language of Graphviz.
    pub fn dot_after(&self) -> String {
        dot(&self.after)
    }
}

/// Adds F5 to loops whose exit φs are what they carry, and C5 to those that stay open.
fn name_exits(loops: &mut [LoopForm], phis: &[(Phis, Phis)], refused: &[Refused]) {
    let mut add = |rule, at: &Option<Place>, names_it: fn(&Rule) -> bool, form: &str| {
        let known = loops.iter_mut().find(|known| known.at == *at);
        if let Some(known) = known
            && !known.forms.iter().any(|formula| names_it(&formula.rule))
        {
            let form = Notation::formula(form.to_owned());
            known.forms.push(Formula { rule, at: at.clone(), form });
        }
    };
    for (seen, left) in phis {
        if left.exits < left.entries && seen.exits > left.exits {
            let form = "φ_L'(p, b1, ..) = what is carried at the exit, whichever it is";
            add(Rule::F5, &seen.at, |rule| *rule == Rule::F5, form);
        }
    }
    for refused in refused.iter().filter(|refused| refused.at.is_some()) {
        let form = "d after the loop = f^[n](p), where f is an iteration: the loop stays open";
        add(Rule::C5, &refused.at, |rule| *rule >= Rule::C5, form);
    }
}

macro_rules! explained {
    ($name:ident) => {
        impl<F> $name<F> {
            /// What was recorded so far of the length of input that was called most, in
            /// mathematical notation. The function is not run, and nothing about it changes.
            ///
            /// # Errors
            ///
            /// When nothing has been recorded yet, or what was recorded cannot be trusted.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| (x[0] * x[1]).sin() + x[0]);
            /// assert!(f.explain().is_err()); // Nothing is known yet.
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
