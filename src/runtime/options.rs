//! What users can choose: numerics, limits, and when to compile.

use std::panic::Location;

use super::recorded::{Recorded, RecordedWith};
use crate::trace::Var;

/// What kernels promise about rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numerics {
    /// Kernels may use real-number identities and fused operations. The result
    /// is about as close to the true derivative as the tape's, and a finite
    /// result never becomes NaN or infinite.
    #[default]
    Real,
    /// Kernels return the tape's value and gradient bit for bit (NaN as some NaN).
    Exact,
}

/// Bounds on what is kept and compiled. Beyond them the tape serves, and the
/// [`Report`](crate::Report) says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest number of operations of one call, of 32 bytes each. Beyond
    /// it the call is an error.
    pub trace_events: usize,
    /// The largest number of nodes, over all paths, that is compiled.
    pub nodes: usize,
    /// The largest number of paths that is compiled.
    pub paths: usize,
    /// The largest number of input lengths that is learnt.
    pub specialisations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { trace_events: 1 << 24, nodes: 1 << 21, paths: 64, specialisations: 8 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) hot_threshold: u32,
    pub(super) background: bool,
    pub(super) numerics: Numerics,
    pub(super) limits: Limits,
}

/// Records functions with other options than [`Tape::record`](crate::Tape::record).
///
/// # Examples
///
/// ```
/// use phigrad::{Numerics, Tape, Var};
///
/// let f = Tape::builder()
///     .numerics(Numerics::Exact)
///     .hot_threshold(100)
///     .background(false)
///     .record(|x: &[Var]| x[0].exp());
/// assert_eq!(f.grad(&[0.0])?, [1.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TapeBuilder {
    pub(super) options: Options,
}

impl TapeBuilder {
    /// Calls on the tape, for a function with one path, before it is compiled
    /// by itself; `u32::MAX` means never. With several paths the number counts
    /// relative to the size of all paths together.
    ///
    /// The default, 500, is about where the time spent on the tape has paid for
    /// compiling.
    #[must_use]
    pub fn hot_threshold(mut self, calls: u32) -> Self {
        self.options.hot_threshold = calls;
        self
    }

    /// Whether hot functions are compiled on a thread of their own (the
    /// default), so that no call waits, or by the call that finds them hot.
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.options.background = background;
        self
    }

    /// What kernels promise about rounding; [`Numerics::Real`] by default.
    #[must_use]
    pub fn numerics(mut self, numerics: Numerics) -> Self {
        self.options.numerics = numerics;
        self
    }

    /// Bounds on what is kept and compiled.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let mut limits = Limits::default();
    /// limits.trace_events = 2;
    /// let f = Tape::builder().limits(limits).record(|x: &[Var]| x[0] * x[0] * x[0] * x[0]);
    /// assert!(f.grad(&[1.0]).unwrap_err().is_too_long());
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Records `f`; see [`Tape::record`](crate::Tape::record).
    #[track_caller]
    pub fn record<F: Fn(&[Var]) -> Var>(self, f: F) -> Recorded<F> {
        Recorded::new(f, self.options, Location::caller())
    }

    /// Records `f`; see [`Tape::record_with`](crate::Tape::record_with).
    #[track_caller]
    pub fn record_with<F: Fn(&[Var], &[Var]) -> Var>(self, f: F) -> RecordedWith<F> {
        RecordedWith::new(f, self.options, Location::caller())
    }
}

impl Default for TapeBuilder {
    fn default() -> Self {
        let (numerics, limits) = (Numerics::default(), Limits::default());
        TapeBuilder { options: Options { hot_threshold: 500, background: true, numerics, limits } }
    }
}
