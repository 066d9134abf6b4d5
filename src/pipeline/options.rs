//! Options: numerics, limits, the form of loops, and the time of compilation.

use super::Tier;
use crate::ssa::Folding;

/// The promise of kernels about rounding, see
/// [`TapeBuilder::numerics`](crate::TapeBuilder::numerics).
///
/// # Examples
///
/// ```
/// use phigrad::{Numerics, Tape, Var};
///
/// let program = |x: &[Var]| (x[0] * x[1] + x[1]).exp() * x[0];
/// let exact = Tape::builder().numerics(Numerics::Exact).record(program);
/// let on_tape = exact.grad(&[0.3, 0.7])?;
/// exact.compile()?;
/// assert_eq!(exact.grad(&[0.3, 0.7])?, on_tape); // Bit for bit.
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numerics {
    /// Kernels may reorder additions, share subexpressions, fuse multiplications with additions
    /// where no comparison depends on it, and use other forms of a formula. The result is about
    /// as close to the true derivative as the tape's, and a finite result never becomes NaN or
    /// infinite. If a step has no derivative (the root in `x.sqrt() * x.sqrt()` at 0), the
    /// derivative may be that of another form.
    #[default]
    Real,
    /// Kernels return the tape's value and gradient bit for bit (any NaN counts as NaN). So the
    /// tape multiplies and adds up in the same order in all calls; with [`Numerics::Real`] calls
    /// that are not merged omit the marks of annotated functions, and partial derivatives are
    /// multiplied where they are computed.
    Exact,
}

impl Numerics {
    /// The folding of constants in kernels.
    pub(crate) fn folding(self) -> Folding {
        match self {
            Numerics::Exact => Folding::Exact,
            Numerics::Real => Folding::Real,
        }
    }
}

/// The form of a loop in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopForm {
    /// In closed form, if there is one.
    Closed,
    /// As a loop.
    Rolled,
    /// As straight-line code.
    Unrolled,
}

/// The sizes and forms that the pipeline uses. They change run times, not results, so they are
/// for measurements and tests: the builder takes them with the feature `internals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The approximate largest number of steps of a graph that are compiled together; by default
    /// 4,096. Values that are live from one such segment to another go through memory, but the
    /// time to compile a segment grows faster than its size. `phigrad-bench soi` measures both.
    pub segment: usize,
    /// True to cut code into segments where few values are live (the default), false to cut at
    /// equal distances.
    pub reuse_aware: bool,
    /// The largest number of steps of a graph that are simplified together; by default 64. Rules
    /// match a few steps only, and a larger segment takes longer for each of its steps:
    /// `phigrad-bench simplify` measures that. 0 counts as 1.
    pub simplified: usize,
    /// The form of all loops; by default the cost model decides for each loop.
    pub loop_form: Option<LoopForm>,
    /// The tier of all kernels; by default both in the background, and the optimised one otherwise.
    pub tier: Option<Tier>,
}

impl Tuning {
    /// The defaults, with all loops in this form.
    pub fn with_loops(form: LoopForm) -> Tuning {
        Tuning { loop_form: Some(form), ..Tuning::default() }
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { segment: 1 << 12, reuse_aware: true, simplified: 64, loop_form: None, tier: None }
    }
}

/// Limits on recording and compiling. Beyond them the tape serves, and the
/// [`Report`](crate::Report) says so.
///
/// All are counts, so that a program does the same on every machine.
///
/// # Examples
///
/// ```
/// use phigrad::{Limits, Tape, Var};
///
/// let mut limits = Limits::default();
/// limits.paths = 2;
/// // A path for each number of steps.
/// let f = Tape::builder().limits(limits).record(|x: &[Var]| {
///     let (mut y, mut n) = (x[0], 0);
///     while y > 1.0 && n < 100 {
///         (y, n) = (y * 0.5, n + 1);
///     }
///     y
/// });
/// for x in [1.5, 3.0, 6.0] {
///     f.grad(&[x])?;
/// }
/// let report = f.report();
/// assert_eq!((report.paths, report.refusals.len()), (2, 1));
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest number of operations of one call that are recorded together, of 24 to 32 bytes
    /// each; by default 2²⁴, half a gibibyte. The buffers of the longest such call so far are kept,
    /// one for each thread that calls at the same time.
    ///
    /// In a call that is not merged only operations on two numbers that depend on different
    /// variables count, with [`Numerics::Real`].
    ///
    /// A longer call is never compiled. Its gradient takes 16 bytes for each operation and up to 17
    /// runs of the function, which must not depend on state other than its inputs
    /// ([`Error::is_not_repeatable`](crate::Error::is_not_repeatable)): the steps of a window of so
    /// many operations, or of a sixteenth of all if that is more, are recorded in each run. These
    /// buffers are freed when the call ends.
    pub trace_events: usize,
    /// The largest number of operations of one call. Beyond it the call is an error
    /// ([`Error::is_too_long`](crate::Error::is_too_long)). By default 2²⁸, for which a gradient
    /// takes little more than four gibibytes. More than 2³¹ - 1 counts as 2³¹ - 1.
    pub call_events: usize,
    /// The largest number of operations on all paths together that is recorded; by
    /// default 2²³. An operation that several paths share counts for each of them, because
    /// each path has a reverse sweep of its own.
    pub nodes: usize,
    /// The largest number of operations that is compiled, after repetition has become loops;
    /// by default 2²¹. Compile time is linear, with a few microseconds for each operation.
    pub compiled: usize,
    /// The largest number of values, of 8 bytes each, that the loops of a kernel save for the
    /// reverse sweep; by default 2²², 32 mebibytes. Each thread that calls has a buffer for
    /// them. Beyond the limit the kernel has checkpoints and runs iterations twice, which takes
    /// up to twice as long: a loop of n iterations then saves about 2√n of them. If that is too
    /// much, there are checkpoints within checkpoints. A loop with a trip count that depends on
    /// the inputs counts with its largest one. Checkpoints are impossible if a loop reads the
    /// values that an earlier loop has computed in each iteration; then the tape serves. More
    /// than 2²⁷ counts as 2²⁷.
    pub saved_values: usize,
    /// The largest number of paths that is compiled; by default 64. The tape serves calls on
    /// further paths.
    pub paths: usize,
    /// The largest size of the recorded paths of a function, in bytes; by default 256 mebibytes.
    /// Beyond it no path is added.
    pub profile_bytes: usize,
    /// The largest number of lengths of inputs and outputs that is recorded at the same time; by
    /// default 64. The
    /// tape serves calls with further lengths, until one of them is called so often that it takes
    /// the place of the least used.
    pub specialisations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            trace_events: 1 << 24,
            call_events: 1 << 28,
            nodes: 1 << 23,
            compiled: 1 << 21,
            saved_values: 1 << 22,
            paths: 64,
            profile_bytes: 1 << 28,
            specialisations: 64,
        }
    }
}

/// The condition under which a function is hot, so that a kernel is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hotness {
    /// The time spent on the tape equals the estimated compile time.
    Measured,
    /// The tape has served so many calls along each path.
    Calls(u32),
    /// The tape has served a call.
    FirstCall,
    /// The user asks for kernels.
    OnRequest,
    /// Never: no run is merged.
    TapeOnly,
}

impl Hotness {
    /// Tests whether cost decides: then the cost of profiling is bounded by that of calls. It does
    /// not where the user says when kernels are made.
    pub(crate) fn is_measured(self) -> bool {
        self == Hotness::Measured
    }

    /// The bound of the cost of profiling, as a multiple of what cost alone would decide; `None`
    /// for no bound.
    pub(crate) fn profiling_bound(self) -> Option<u64> {
        match self {
            Hotness::Measured | Hotness::TapeOnly => Some(1),
            Hotness::Calls(_) | Hotness::FirstCall => Some(64),
            Hotness::OnRequest => None,
        }
    }
}

/// The kernel calls that the tape repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audit {
    /// One between each power of two, from 64 on, and the next one.
    Growing,
    /// One of so many.
    Every(u32),
    Never,
}

/// The golden ratio: its multiples are spread evenly.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Audit {
    /// Tests whether kernel call number `call`, from 1, is repeated. The distances are irregular,
    /// so that state that alternates from call to call does not hide.
    #[inline]
    pub(crate) fn includes(self, call: u64) -> bool {
        match self {
            Audit::Growing => {
                let power = call.max(1).ilog2();
                call >= 64 && call == Self::after_power(power)
            }
            Audit::Every(every) => call == Self::in_round(call / u64::from(every), every),
            Audit::Never => false,
        }
    }

    /// The number of the first repeated call after call number `call`.
    pub(crate) fn next_after(self, call: u64) -> u64 {
        let after = |next: u64| (next > call).then_some(next);
        match self {
            Audit::Growing => {
                let power = call.max(64).ilog2();
                after(Self::after_power(power)).unwrap_or_else(|| Self::after_power(power + 1))
            }
            Audit::Every(every) => {
                let round = call / u64::from(every);
                after(Self::in_round(round, every))
                    .unwrap_or_else(|| Self::in_round(round + 1, every))
            }
            Audit::Never => u64::MAX,
        }
    }

    /// The repeated call from call number 2^`power` on.
    fn after_power(power: u32) -> u64 {
        let offset = GOLDEN.wrapping_mul(u64::from(power)).checked_shr(65 - power);
        (1u64 << power.min(63)).saturating_add(offset.unwrap_or(0))
    }

    /// The repeated call in round number `round` of `every` calls.
    fn in_round(round: u64, every: u32) -> u64 {
        let every = u64::from(every);
        round * every + (GOLDEN.wrapping_mul(round) >> 32) % every
    }

    /// Tests whether few audits take place around call number `call`, one of them.
    pub(crate) fn is_rare(self, call: u64) -> bool {
        self == Audit::Growing || call.is_power_of_two()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) hotness: Hotness,
    pub(crate) background: bool,
    pub(crate) audit: Audit,
    pub(crate) numerics: Numerics,
    pub(crate) limits: Limits,
    pub(crate) phi_calculus: bool,
    pub(crate) tuning: Tuning,
}

impl Options {
    /// Tests whether measured time may decide: not in a program that compiles in the foreground,
    /// which does the same on every run, and not where the user says when kernels are made.
    pub(crate) fn is_timed(&self) -> bool {
        self.hotness.is_measured() && self.background
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_audited_call_is_the_first_one_that_is_included() {
        for audit in [Audit::Growing, Audit::Every(1), Audit::Every(7), Audit::Every(1000)] {
            let mut next = 0;
            for call in 0..20_000 {
                if next <= call {
                    next = (call + 1..).find(|&call| audit.includes(call)).unwrap();
                }
                assert_eq!(audit.next_after(call), next, "{audit:?} after {call}");
            }
        }
        assert_eq!(Audit::Never.next_after(5), u64::MAX);
    }
}
