//! Reports: what was recorded and compiled, what was declined and why, and how
//! often each executor served.

use core::fmt;
use core::time::Duration;

use crate::merge::{Decision, SideExit, TripCounts, UnmergedRegion};
use crate::phi::{Applied, OpenLoop};
use crate::pipeline::{Purpose, Refusal};
use crate::ssa::Place;

/// One kernel: what it is for, how large it is and what it cost.
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
///     println!("{:?}: {} bytes", kernel.purpose, kernel.bytes);
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
    /// What the kernel computes.
    pub purpose: Purpose,
    /// The number of paths it knows.
    pub paths: usize,
    /// The nodes of the recorded graph it was made from, in all iterations of loops.
    pub recorded_nodes: usize,
    /// The nodes of the final graph that was compiled.
    pub nodes: usize,
    /// The numbers that it keeps of the iterations of its loops, see
    /// [`Limits::saved_values`](crate::Limits::saved_values).
    pub saved_values: u64,
    /// The loops in loops that its reverse sweep computes again, to keep less; a loop
    /// with checkpoints is such a loop in one over the checkpoints.
    pub recomputed: usize,
    /// The segments that its code is cut into.
    pub segments: usize,
    /// The words that the segments hand over: each value counts for each segment that
    /// uses it and does not compute it.
    pub crossing: usize,
    /// Code and constants in bytes.
    pub bytes: usize,
    /// Code alone in bytes.
    pub code_bytes: usize,
    /// The time to make it, from the recorded graph to native code.
    pub compile_time: Duration,
}

/// A comparison that decided something, and what it meant for kernels.
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
    /// Where it is and how it came out.
    pub decision: Decision,
    /// How often a call left a kernel because it took a side here that the kernel
    /// did not know.
    pub side_exits: u64,
}

/// A kernel that is wanted and not there, or is older than what is known.
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
/// // An input and a sine; after ten such runs a kernel is made.
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
    /// What the kernel is to compute.
    pub purpose: Purpose,
    /// Whether there is a kernel that knows less.
    pub replaces: bool,
    /// What it waits for.
    pub wait: Wait,
}

/// What a kernel waits for. For an example see [`Waiting`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// It is being compiled.
    Compiling,
    /// The tape has not yet recorded so many events that compiling pays.
    Cold {
        /// The events recorded since the latest compilation.
        recorded: u64,
        /// How many are needed.
        needed: u64,
    },
    /// Kernels are made by [`Recorded::compile`](crate::Recorded::compile) alone.
    Compile,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiting { active, inactive, purpose, replaces, wait } = self;
        let which = if *replaces { "newer kernel" } else { "kernel" };
        write!(f, "a {which} {purpose:?} for {active}+{inactive} inputs ")?;
        match wait {
            Wait::Compiling => write!(f, "is being compiled"),
            Wait::Cold { recorded, needed } => {
                write!(f, "waits for {needed} recorded events, {recorded} so far")
            }
            Wait::Compile => write!(f, "waits for `compile`"),
        }
    }
}

/// What happened to a recorded function so far: who served, what was recorded and
/// compiled, and what was declined. Its `Display` is a summary of some lines.
///
/// A slow function shows here why: many `fallbacks` mean that it keeps finding
/// new paths (`last_new_path` says where), `refusals` that it cannot be compiled.
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
    /// Calls in which a kernel met a path it does not know, so that the tape served.
    /// A kernel that has not served many calls in a row is tried less often.
    pub fallbacks: u64,
    /// Calls in which a kernel's result was not finite, so that the tape decided.
    pub non_finite: u64,
    /// Where the path recorded last left the paths known before.
    pub last_new_path: Option<Place>,
    /// Why a call last left a kernel, if a comparison was the reason.
    pub last_side_exit: Option<SideExit>,
    /// The kernels in use.
    pub kernels: Vec<KernelReport>,
    /// The kernels that are waited for.
    pub waiting: Vec<Waiting>,
    /// What was declined, and why.
    pub refusals: Vec<Refusal>,
    /// The comparisons that decided something, by place.
    pub decisions: Vec<DecisionReport>,
    /// The loops of annotated functions, by place.
    pub loops: Vec<TripCounts>,
    /// Regions of annotated functions whose paths are not merged, and why.
    pub unmerged: Vec<UnmergedRegion>,
    /// The formulas of φ-calculus that made closed forms in the latest kernels.
    pub closed_forms: Vec<Applied>,
    /// The loops that stayed loops there, or values of them, and why.
    pub open_loops: Vec<OpenLoop>,
}

/// One line for each formula and place; many iterations may each have one.
fn write_closed(f: &mut fmt::Formatter<'_>, closed: &[Applied]) -> fmt::Result {
    /// Longer forms are for programs that read the report.
    const MOST_LETTERS: usize = 200;
    let mut lines: Vec<(&Applied, usize)> = Vec::new();
    for form in closed {
        match lines.iter_mut().find(|(one, _)| (one.rule, &one.at) == (form.rule, &form.at)) {
            Some((_, others)) => *others += 1,
            None => lines.push((form, 0)),
        }
    }
    for (form, others) in lines {
        let line = form.to_string();
        match line.char_indices().nth(MOST_LETTERS) {
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
            writeln!(f, "the latest path left the known ones at {place}")?;
        }
        if let Some(SideExit { at, op, held, .. }) = &self.last_side_exit {
            let outcome = if *held { "held" } else { "failed" };
            writeln!(f, "a call last left a kernel because {op} {outcome} at {at}")?;
        }
        for kernel in &self.kernels {
            writeln!(
                f,
                "kernel {:?} for {}+{} inputs: {}, {} from {}, {}, {:.3} ms",
                kernel.purpose,
                kernel.active,
                kernel.inactive,
                Count(kernel.paths as u64, "path"),
                Count(kernel.nodes as u64, "node"),
                kernel.recorded_nodes,
                Count(kernel.bytes as u64, "byte"),
                kernel.compile_time.as_secs_f64() * 1e3
            )?;
            if kernel.recomputed > 0 {
                writeln!(
                    f,
                    "kernel {:?} has checkpoints: it keeps {} numbers and computes {} loops again",
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
            writeln!(f, "declined: {refusal}")?;
        }
        for DecisionReport { decision, side_exits } in &self.decisions {
            writeln!(
                f,
                "{} at {}: held {}, failed {}, margin {:.3e}, {} left a kernel here",
                decision.op,
                decision.at,
                Count(decision.held, "time"),
                Count(decision.failed, "time"),
                decision.margin,
                Count(*side_exits, "call")
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

/// A number of things.
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
