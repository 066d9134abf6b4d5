//! What users can choose: numerics, limits, and when to compile.

use std::panic::Location;

use super::recorded::{Recorded, RecordedWith};
use crate::trace::Var;

/// What kernels promise about rounding; chosen by [`TapeBuilder::numerics`].
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
pub enum Numerics {
    /// Kernels may add up and share in another order than the tape, multiply and add
    /// in one rounding where nothing is decided by it, and compute formulas in other
    /// forms. The result is about as close to the true derivative as the tape's, and a
    /// finite result never becomes NaN or infinite. Where a step on the way has no
    /// derivative (the root in `x.sqrt() * x.sqrt()` at 0), that of another form may be
    /// returned.
    #[default]
    Real,
    /// Kernels return the tape's value and gradient bit for bit (NaN as some NaN). So the tape
    /// adds up in the same order in all calls, which it does not do with [`Numerics::Real`]:
    /// there it leaves out the marks of annotated functions where there is nothing to learn.
    Exact,
}

/// How a kernel computes a loop.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForcedLoopForm {
    /// In closed form, if there is one.
    Closed,
    /// As a loop.
    Rolled,
    /// As straight-line code.
    Unrolled,
}

/// Bounds on what is kept and compiled. Beyond them the tape serves, and the
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
    /// The largest number of operations of one call, of 24 to 32 bytes each. Beyond
    /// it the call is an error ([`Error::is_too_long`](crate::Error::is_too_long)).
    /// By default 2²⁴, half a gibibyte. The buffers of the longest call so far
    /// are kept, one for each thread that calls at the same time.
    pub trace_events: usize,
    /// The largest number of operations on all paths together that is learnt; by
    /// default 2²³. What several paths share counts for each of them, because
    /// each has a reverse sweep of its own.
    pub nodes: usize,
    /// The largest number of operations that is compiled, when loops have been
    /// made of what repeats itself; by default 2²¹. Beyond it a compilation would
    /// take long: it is linear, but a few microseconds for each operation.
    pub compiled: usize,
    /// The most numbers, of 8 bytes each, that a kernel keeps of the iterations of its
    /// loops for the reverse sweep; by default 2²², 32 mebibytes. Each thread that calls
    /// has a buffer for them. Beyond it the kernel keeps checkpoints and goes through the
    /// iterations once more, so that it takes up to twice as long: of a loop of n
    /// iterations it then keeps what about 2√n of them need. If that is still too much
    /// there are checkpoints within checkpoints. A loop whose number of iterations depends
    /// on the inputs counts with the most that it may have. Where nothing helps the tape
    /// serves: if one loop reads what another, which has ended, computed in each iteration.
    /// More than 2²⁷ counts as 2²⁷.
    pub history: usize,
    /// The largest number of steps of a graph that are compiled together, but for a
    /// few; by default 512. What crosses from one such segment to another goes through
    /// memory, but the time to compile one grows faster than its size.
    /// `phigrad-bench soi` measures both: compiling 50,000 operations of straight code
    /// costs about the same from 64 to 4,096 steps; their kernel is fastest from 512 to
    /// 4,096 and a fifth slower from 8,192 on; segments of 64 steps hand over half as
    /// much again as those of 512.
    pub segment: usize,
    /// The largest number of steps of a graph that are simplified together; by default 64. Rules of
    /// simplification see a little beyond, and what is larger takes longer for each of its steps:
    /// `phigrad-bench simplify` measures that. 0 counts as 1.
    pub simplified: usize,
    /// The largest number of paths that is compiled; by default 64. Calls on
    /// further paths are served by the tape.
    pub paths: usize,
    /// The largest number of input lengths that is learnt; by default 8. Calls
    /// with further lengths are served by the tape.
    pub specialisations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            trace_events: 1 << 24,
            nodes: 1 << 23,
            compiled: 1 << 21,
            history: 1 << 22,
            segment: 512,
            simplified: 64,
            paths: 64,
            specialisations: 8,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) hot_threshold: u32,
    pub(super) background: bool,
    pub(super) numerics: Numerics,
    pub(super) limits: Limits,
    pub(super) phi_calculus: bool,
    pub(super) reuse_aware: bool,
    /// The form of all loops, if the cost model is not to choose it.
    pub(super) loop_form: Option<ForcedLoopForm>,
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
    /// relative to the size of all paths together. Value, gradient and both of them have
    /// kernels of their own: each is made when it has been asked for on the tape and such a
    /// number of calls of any kind has been served there since the last compilation.
    ///
    /// Each path that is learnt later makes the kernel out of date, and it is made
    /// again after as many calls on the tape again: a low number makes a function
    /// with many paths compile all the time.
    ///
    /// The default, 500, is about where the time spent on the tape has paid for
    /// compiling.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let builder = Tape::builder().background(false);
    /// let f = builder.hot_threshold(10).record(|x: &[Var]| x[0].sin());
    /// for i in 0..100 {
    ///     f.grad(&[f64::from(i)])?;
    /// }
    /// assert!(f.report().kernel_calls > 0);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn hot_threshold(mut self, calls: u32) -> Self {
        self.options.hot_threshold = calls;
        self
    }

    /// Whether hot functions are compiled on a thread of their own (the
    /// default), or by the call that finds them hot. That call makes the graph of
    /// what was learnt in any case; none waits for its derivatives and its code.
    ///
    /// In the background it depends on timing which call is the first that a
    /// kernel serves; without it a program does the same on every run.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let calls = || {
    ///     let builder = Tape::builder().background(false).hot_threshold(10);
    ///     let f = builder.record(|x: &[Var]| x[0].sin());
    ///     (0..100).try_for_each(|i| f.grad(&[f64::from(i)]).map(drop))?;
    ///     Ok::<_, phigrad::Error>(f.report().tape_calls)
    /// };
    /// assert_eq!(calls()?, calls()?);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.options.background = background;
        self
    }

    /// What kernels promise about rounding; [`Numerics::Real`] by default. For an
    /// example see [`Numerics`].
    #[must_use]
    pub fn numerics(mut self, numerics: Numerics) -> Self {
        self.options.numerics = numerics;
        self
    }

    /// Whether loops become closed forms where there are good ones (the default);
    /// never with [`Numerics::Exact`]. Without it loops stay loops; straight code is
    /// simplified all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let sum = |x: &[Var]| (0..1000).map(|i| x[0] * f64::from(i)).sum::<Var>();
    /// let (with, without) = (Tape::record(sum), Tape::builder().phi_calculus(false).record(sum));
    /// for f in [&with, &without] {
    ///     f.grad(&[1.0])?;
    ///     f.compile()?;
    ///     assert_eq!(f.grad(&[2.0])?, [499500.0]);
    /// }
    /// assert!(with.report().kernels[0].nodes < without.report().kernels[0].nodes);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn phi_calculus(mut self, phi_calculus: bool) -> Self {
        self.options.phi_calculus = phi_calculus;
        self
    }

    /// Whether code is cut into segments ([`Limits::segment`]) where few values cross
    /// (the default), or at equal distances. That changes no result, and times a little.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let mut limits = Limits::default();
    /// limits.segment = 40;
    /// let crossing = |reuse_aware| {
    ///     let builder = Tape::builder().limits(limits).reuse_aware(reuse_aware);
    ///     let f = builder.record(|x: &[Var]| {
    ///         (0..10).fold(x[0], |y, i| (y + f64::from(i)) / (y * y + 1.0).sqrt())
    ///     });
    ///     let on_tape = f.grad(&[2.0])?;
    ///     f.compile()?;
    ///     let kernel = f.report().kernels[0].clone();
    ///     assert!(kernel.segments > 1 && (f.grad(&[2.0])?[0] - on_tape[0]).abs() < 1e-14);
    ///     Ok::<_, phigrad::Error>(kernel.crossing)
    /// };
    /// assert!(crossing(true)? <= crossing(false)?);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn reuse_aware(mut self, reuse_aware: bool) -> Self {
        self.options.reuse_aware = reuse_aware;
        self
    }

    /// Computes all loops in this form, not in that which costs least: for measurements.
    #[doc(hidden)]
    #[must_use]
    pub fn loop_form(mut self, form: ForcedLoopForm) -> Self {
        self.options.loop_form = Some(form);
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

    /// Records `f` with these options; see [`Tape::record`](crate::Tape::record).
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::builder().background(false).record(|x: &[Var]| x[0] * x[0]);
    /// assert_eq!(f.grad(&[3.0])?, [6.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record<F: Fn(&[Var]) -> Var>(self, f: F) -> Recorded<F> {
        Recorded::new(f, self.options, Location::caller())
    }

    /// Records `f` with these options; see
    /// [`Tape::record_with`](crate::Tape::record_with).
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let builder = Tape::builder().background(false);
    /// let f = builder.record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
    /// assert_eq!(f.grad(&[3.0], &[5.0])?, [5.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record_with<F: Fn(&[Var], &[Var]) -> Var>(self, f: F) -> RecordedWith<F> {
        RecordedWith::new(f, self.options, Location::caller())
    }
}

impl Default for TapeBuilder {
    fn default() -> Self {
        let (numerics, limits) = (Numerics::default(), Limits::default());
        let options = Options {
            hot_threshold: 500,
            background: true,
            numerics,
            limits,
            phi_calculus: true,
            reuse_aware: true,
            loop_form: None,
        };
        TapeBuilder { options }
    }
}
