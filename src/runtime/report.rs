//! Reports: what was learnt and compiled, what was declined and why, and how
//! often each executor served.

use core::fmt;
use core::time::Duration;

use crate::jit::CompileError;
use crate::phi::{Applied, Refused};
use crate::ssa::{Decision, LiftError, Place, Trips, Unmerged};

/// What a kernel computes. A hot function gets a kernel for each purpose that it
/// was called for, `compile` makes all three.
///
/// # Examples
///
/// ```
/// use phigrad::{Purpose, Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0].sin());
/// f.grad(&[1.0])?;
/// f.compile()?;
/// let purposes: Vec<Purpose> = f.report().kernels.iter().map(|k| k.purpose).collect();
/// assert_eq!(purposes, [Purpose::Value, Purpose::Gradient, Purpose::ValueAndGradient]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The value alone.
    Value,
    /// The gradient alone.
    Gradient,
    /// Both.
    ValueAndGradient,
}

impl Purpose {
    pub(super) const ALL: [Purpose; 3] =
        [Purpose::Value, Purpose::Gradient, Purpose::ValueAndGradient];
}

/// Why the tape serves although the function is hot.
///
/// The gradients are right all the same; a refusal tells what to change to make
/// them fast. Its `Display` is a sentence for people.
///
/// # Examples
///
/// ```
/// use std::cell::Cell;
///
/// use phigrad::{Refusal, Tape, Var};
///
/// // Hidden state: each call does something else than the one before.
/// let calls = Cell::new(0.0);
/// let f = Tape::record(|x: &[Var]| x[0] * calls.replace(calls.get() + 1.0));
/// f.grad(&[1.0])?;
/// f.grad(&[1.0])?;
/// assert!(matches!(f.report().refusals[..], [Refusal::Path(_)]));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A path could not be added to the graph; see [`LiftError`].
    #[error(transparent)]
    Path(#[from] LiftError),
    /// The graph could not be compiled; see [`CompileError`].
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// What is left of the graph when loops have been made is too large to compile.
    #[error("what is to be compiled has {size} steps, more than {limit} (Limits::compiled)")]
    TooManyToCompile {
        /// How many steps it has.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The compiler panicked, which is a bug of this library.
    #[error("the compiler failed unexpectedly; please report this")]
    Panicked,
    /// No thread could be started to compile on.
    #[error("no thread could be started to compile on: {reason}")]
    Thread {
        /// What the operating system says.
        reason: String,
    },
    /// The function was called with more lengths of input than the limits allow.
    #[error("more than {limit} lengths of input (Limits::specialisations)")]
    TooManyLengths {
        /// The limit.
        limit: usize,
    },
}

#[cfg(feature = "serde")]
impl serde::Serialize for Refusal {
    /// As its sentence.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
    /// The nodes of the recorded graph it was made from.
    pub recorded_nodes: usize,
    /// The nodes of the final graph that was compiled.
    pub nodes: usize,
    /// The segments that its code is cut into ([`Limits::segment`](crate::Limits::segment)).
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
    /// How often a call left a kernel because it took a side here that was not
    /// known.
    pub left: u64,
}

/// What happened to a recorded function so far: who served, what was learnt and
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
    /// The number of paths learnt, over all lengths of input.
    pub paths: usize,
    /// The number of guards and branches on all paths.
    pub conditions: usize,
    /// Calls that the tape served.
    pub tape_calls: u64,
    /// Calls that a kernel served.
    pub kernel_calls: u64,
    /// Calls in which a kernel met a path it does not know, so that the tape served.
    /// After many in a row the kernel is tried less often.
    pub fallbacks: u64,
    /// Calls in which a kernel's result was not finite, so that the tape decided.
    pub non_finite: u64,
    /// Where the path learnt last left the paths known before.
    pub last_new_path: Option<Place>,
    /// The kernels in use.
    pub kernels: Vec<KernelReport>,
    /// What was declined, and why.
    pub refusals: Vec<Refusal>,
    /// The comparisons that decided something, by place.
    pub decisions: Vec<DecisionReport>,
    /// The loops of annotated functions, by place.
    pub loops: Vec<Trips>,
    /// Regions of annotated functions whose ways are not merged, and why.
    pub unmerged: Vec<Unmerged>,
    /// The formulas of φ-calculus that made closed forms in the latest kernels.
    pub closed: Vec<Applied>,
    /// The loops that stayed loops there, or values of them, and why.
    pub open: Vec<Refused>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} calls by kernels, {} by the tape ({} on an unknown path, {} not finite)",
            self.kernel_calls, self.tape_calls, self.fallbacks, self.non_finite
        )?;
        writeln!(
            f,
            "{} paths with {} conditions, longest run {} events",
            self.paths, self.conditions, self.trace_events
        )?;
        if let Some(place) = &self.last_new_path {
            writeln!(f, "the latest path left the known ones at {place}")?;
        }
        for kernel in &self.kernels {
            writeln!(
                f,
                "kernel {:?} for {}+{} inputs: {} paths, {} nodes from {}, {} bytes, {:.3} ms",
                kernel.purpose,
                kernel.active,
                kernel.inactive,
                kernel.paths,
                kernel.nodes,
                kernel.recorded_nodes,
                kernel.bytes,
                kernel.compile_time.as_secs_f64() * 1e3
            )?;
        }
        for form in &self.closed {
            writeln!(f, "{form}")?;
        }
        for open in &self.open {
            writeln!(f, "{open}")?;
        }
        for refusal in &self.refusals {
            writeln!(f, "declined: {refusal}")?;
        }
        for DecisionReport { decision, left } in &self.decisions {
            writeln!(
                f,
                "{} at {}: held {} times, failed {}, margin {:.3e}, {left} kernels left here",
                decision.op, decision.at, decision.held, decision.failed, decision.margin
            )?;
        }
        for trips in &self.loops {
            let Trips { at, entered, fewest, most, .. } = trips;
            writeln!(f, "loop at {at}: entered {entered} times, {fewest} to {most} iterations")?;
        }
        for unmerged in &self.unmerged {
            writeln!(f, "{unmerged}")?;
        }
        Ok(())
    }
}
