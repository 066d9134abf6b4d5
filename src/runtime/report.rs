//! Reports: the recorded paths, the kernels, the refusals, and how often tape and kernels served.

use core::fmt;
use core::time::Duration;

use super::specialisation::ServedCalls;
use crate::merge::{Decision, SideExit, TripCounts, UnmergedRegion};
use crate::phi::{Applied, OpenLoop};
use crate::pipeline::{Purpose, Refusal};
use crate::ssa::Place;

/// A kernel: its purpose, size and compile time.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
/// f.grad(&[1.0, 2.0])?;
/// f.compile()?;
/// for kernel in &f.report().kernels {
///     assert_eq!((kernel.active, kernel.inactive, kernel.paths), (2, 0, 1));
///     println!("{}: {} bytes", kernel.purpose, kernel.bytes);
/// }
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelReport {
    /// The number of active inputs.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
    /// The purpose of the kernel.
    pub purpose: Purpose,
    /// The number of paths that are compiled.
    pub paths: usize,
    /// The number of nodes of the recorded graph, in all iterations of loops.
    pub recorded_nodes: usize,
    /// The number of nodes of the compiled graph.
    pub nodes: usize,
    /// The number of values that its loops save for the reverse sweep, see
    /// [`Limits::saved_values`](crate::Limits::saved_values).
    pub saved_values: u64,
    /// The number of inner loops that its reverse sweep computes again to save less. A loop with
    /// checkpoints is such an inner loop of a loop over the checkpoints.
    pub recomputed: usize,
    /// The number of segments of its code.
    pub segments: usize,
    /// The words that the segments hand over: each value counts for each segment that
    /// uses it and does not compute it.
    pub crossing: usize,
    /// The size of code and constants in bytes.
    pub bytes: usize,
    /// The size of the code in bytes.
    pub code_bytes: usize,
    /// The compile time, from the recorded graph to native code.
    pub compile_time: Duration,
    /// True if calls do not try it at present: it took more time than the tape, or hardly ever had
    /// a result. It is tried again later.
    pub is_backing_off: bool,
}

/// A comparison with several outcomes, and its side exits.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| if x[0] > 1.0 { x[0] } else { -x[0] });
/// f.grad(&[1.25])?;
/// f.grad(&[-3.0])?;
/// let report = f.report();
/// let decision = &report.decisions[0].decision;
/// assert_eq!((decision.held, decision.failed, decision.margin), (1, 1, 0.25));
/// assert!(decision.at.file.ends_with(".rs"));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DecisionReport {
    /// The place of the comparison and its outcomes.
    pub decision: Decision,
    /// The number of calls that took a side exit here, because the kernel does not have this
    /// arm.
    pub side_exits: u64,
}

/// A kernel that is requested and missing, or out of date.
///
/// # Examples
///
/// ```
/// use phigrad::report::Wait;
/// use phigrad::{Purpose, Tape, Var};
///
/// let f = Tape::builder().hot_threshold(10).record(|x: &[Var]| x[0].sin());
/// f.grad(&[1.0])?;
/// let waiting = &f.report().waiting[0];
/// assert_eq!((waiting.purpose, waiting.replaces), (Purpose::Gradient, false));
/// // An input and a sine; a kernel is made after ten such runs.
/// assert_eq!(waiting.wait, Wait::Cold { recorded: 2, needed: 20 });
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The number of active inputs.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
    /// The purpose of the kernel.
    pub purpose: Purpose,
    /// True if there is a kernel of an older version.
    pub replaces: bool,
    /// The event that it waits for.
    pub wait: Wait,
}

/// The event that a kernel waits for. For an example see [`Waiting`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// The end of its compilation.
    Compiling,
    /// More events on the tape, until their time equals compile time.
    Cold {
        /// The events recorded since the latest compilation.
        recorded: u64,
        /// The number of events that are required.
        needed: u64,
    },
    /// A call of [`Recorded::compile`](crate::Recorded::compile), which alone makes kernels.
    Compile,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { active, inactive, purpose, replaces, wait } = self;
        let which = if *replaces { "newer kernel" } else { "kernel" };
        write!(f, "a {which} for the {purpose} of {active}+{inactive} inputs ")?;
        match wait {
            Wait::Compiling => write!(f, "is being compiled"),
            Wait::Cold { recorded, needed } => {
                write!(f, "waits for {needed} recorded events, {recorded} so far")
            }
            Wait::Compile => write!(f, "waits for `compile`"),
        }
    }
}

/// The state of a recorded function: who served its calls, what was recorded and compiled, and
/// what was refused. Its `Display` is a summary of some lines.
///
/// It shows why a function is slow: many `fallbacks` mean that new paths keep occurring
/// (`last_new_path` is the place of the last one), `refusals` that it cannot be compiled.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0].sin());
/// f.grad(&[1.0])?;
/// let report = f.report();
/// assert_eq!((report.tape_calls, report.kernel_calls, report.paths), (1, 0, 1));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The operations, guards and inputs of the longest run recorded.
    pub trace_events: usize,
    /// The number of paths recorded, over all lengths of input.
    pub paths: usize,
    /// The number of guards and branches on all paths.
    pub conditions: usize,
    /// Calls that the tape served; not those that panicked or failed, which may be
    /// among `fallbacks`.
    pub tape_calls: u64,
    /// Calls that a kernel served.
    pub kernel_calls: u64,
    /// Calls in which a kernel took a side exit, so that the tape served. A kernel with many
    /// such calls is not tried for a while.
    pub fallbacks: u64,
    /// Calls in which a kernel's result was not finite, so that the tape served.
    pub non_finite: u64,
    /// The place where the latest path branched off from the known ones.
    pub last_new_path: Option<Place>,
    /// The last side exit of a kernel at a comparison.
    pub last_side_exit: Option<SideExit>,
    /// The kernels in use.
    pub kernels: Vec<KernelReport>,
    /// The kernels that are due, with the event that they wait for.
    pub waiting: Vec<Waiting>,
    /// The reasons why paths or graphs were not compiled.
    pub refusals: Vec<Refusal>,
    /// The comparisons with several outcomes, by place.
    pub decisions: Vec<DecisionReport>,
    /// The loops of annotated functions, by place.
    pub loops: Vec<TripCounts>,
    /// Regions of annotated functions whose paths are not merged, and why.
    pub unmerged: Vec<UnmergedRegion>,
    /// The formulas of φ-calculus in the latest kernels.
    pub closed_forms: Vec<Applied>,
    /// The loops without a closed form in the latest kernels, with reasons.
    pub open_loops: Vec<OpenLoop>,
}

// Several lengths of input add to one report.
impl Report {
    pub(super) fn add_served(&mut self, ServedCalls { tape, kernels }: ServedCalls) {
        self.tape_calls += tape;
        self.kernel_calls += kernels;
    }

    /// Adds a reason, once.
    pub(super) fn add_refusal(&mut self, refusal: &Refusal) {
        if !self.refusals.contains(refusal) {
            self.refusals.push(refusal.clone());
        }
    }

    /// Adds the outcomes of a comparison to those at the same place.
    pub(super) fn add_decision(&mut self, new: DecisionReport) {
        let key = |report: &DecisionReport| (report.decision.at.clone(), report.decision.op);
        match self.decisions.iter_mut().find(|known| key(known) == key(&new)) {
            Some(known) => {
                known.side_exits += new.side_exits;
                known.decision.held += new.decision.held;
                known.decision.failed += new.decision.failed;
                known.decision.margin = known.decision.margin.min(new.decision.margin);
            }
            None => self.decisions.push(new),
        }
    }

    /// Adds the trip counts of a loop to those at the same place.
    pub(super) fn add_loop(&mut self, new: TripCounts) {
        match self.loops.iter_mut().find(|known| known.at == new.at) {
            Some(known) => {
                known.entered += new.entered;
                known.fewest = known.fewest.min(new.fewest);
                known.most = known.most.max(new.most);
            }
            None => self.loops.push(new),
        }
    }
}

/// Writes one line for each formula and place, since each iteration may have one.
fn write_closed(f: &mut fmt::Formatter<'_>, closed: &[Applied]) -> fmt::Result {
    /// The largest number of characters of a form; the report has longer ones.
    const MAX_CHARACTERS: usize = 200;
    let mut lines: Vec<(&Applied, usize)> = Vec::new();
    for form in closed {
        match lines.iter_mut().find(|(one, _)| (one.rule, &one.at) == (form.rule, &form.at)) {
            Some((_, others)) => *others += 1,
            None => lines.push((form, 0)),
        }
    }
    for (form, others) in lines {
        let line = form.to_string();
        match line.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => write!(f, "{}…", &line[..end])?,
            None => f.write_str(&line)?,
        }
        match others {
            0 => writeln!(f)?,
            _ => writeln!(f, " (and {others} more)")?,
        }
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} by kernels, {} by the tape ({} on an unknown path, {} not finite)",
            Count(self.kernel_calls, "call"),
            self.tape_calls,
            self.fallbacks,
            self.non_finite
        )?;
        writeln!(
            f,
            "{} with {}, longest run {}",
            Count(self.paths as u64, "path"),
            Count(self.conditions as u64, "condition"),
            Count(self.trace_events as u64, "event")
        )?;
        if let Some(place) = &self.last_new_path {
            writeln!(f, "the latest path branched off at {place}")?;
        }
        if let Some(SideExit { at, op, held, .. }) = &self.last_side_exit {
            let outcome = if *held { "held" } else { "failed" };
            writeln!(f, "last side exit of a kernel: {op} {outcome} at {at}")?;
        }
        for kernel in &self.kernels {
            writeln!(
                f,
                "kernel for the {} of {}+{} inputs: {}, {} from {}, {}, {:.3} ms",
                kernel.purpose,
                kernel.active,
                kernel.inactive,
                Count(kernel.paths as u64, "path"),
                Count(kernel.nodes as u64, "node"),
                kernel.recorded_nodes,
                Count(kernel.bytes as u64, "byte"),
                kernel.compile_time.as_secs_f64() * 1e3
            )?;
            if kernel.is_backing_off {
                let KernelReport { purpose, .. } = kernel;
                writeln!(f, "kernel for the {purpose} does not pay; the tape serves for a while")?;
            }
            if kernel.recomputed > 0 {
                writeln!(
                    f,
                    "kernel for the {} has checkpoints: it saves {} numbers and computes {} loops again",
                    kernel.purpose, kernel.saved_values, kernel.recomputed
                )?;
            }
        }
        for waiting in &self.waiting {
            writeln!(f, "{waiting}")?;
        }
        write_closed(f, &self.closed_forms)?;
        for open in &self.open_loops {
            writeln!(f, "{open}")?;
        }
        for refusal in &self.refusals {
            writeln!(f, "not compiled: {refusal}")?;
        }
        for DecisionReport { decision, side_exits } in &self.decisions {
            writeln!(
                f,
                "{} at {}: held {}, failed {}, margin {:.3e}, {} of a kernel",
                decision.op,
                decision.at,
                Count(decision.held, "time"),
                Count(decision.failed, "time"),
                decision.margin,
                Count(*side_exits, "side exit")
            )?;
        }
        for trips in &self.loops {
            let TripCounts { at, entered, fewest, most, .. } = trips;
            let (entered, most) = (Count(*entered, "time"), Count(*most, "iteration"));
            writeln!(f, "loop at {at}: entered {entered}, {fewest} to {most}")?;
        }
        self.unmerged.iter().try_for_each(|unmerged| writeln!(f, "{unmerged}"))
    }
}

/// A number of things, in singular or plural.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, name) = self;
        write!(f, "{number} {name}{}", if *number == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phi::Rule;

    #[test]
    fn formulas_of_one_place_share_a_line() {
        let form = |rule, form: &str| Applied { rule, at: None, form: form.to_owned() };
        let closed = [form(Rule::F2, "a"), form(Rule::C7, &"φ".repeat(500)), form(Rule::F2, "b")];
        let report = Report { closed_forms: closed.to_vec(), ..Report::default() };
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(": ")).collect();
        assert!(text.contains("F2: a (and 1 more)"), "{text}");
        assert!(lines.iter().any(|line| line.starts_with("C7: φφ") && line.ends_with("φ…")));
        assert!(lines.iter().all(|line| line.chars().count() <= 201), "{text}");
    }
}
