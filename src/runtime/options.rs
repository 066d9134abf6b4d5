//! The builder: numerics, limits, and the time of compilation.

use std::panic::Location;

use super::outputs::Output;
use super::recorded::{Recorded, RecordedWith};
use crate::pipeline::{Audit, Hotness, Limits, Numerics, Options, Tuning};
use crate::trace::Var;

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
    /// The number of calls on the tape after which a function with one path is compiled. With
    /// several paths the number is relative to the size of all paths together. Value, gradient
    /// and both of them have kernels of their own: each is made when it has been requested on the
    /// tape and that number of calls of any kind has been served there since the last compilation.
    ///
    /// Each path that is recorded later puts the kernel out of date, and it is made again
    /// after as many calls on the tape: with a low number a function with many paths is
    /// compiled all the time.
    ///
    /// `u32::MAX` means that only [`Recorded::compile`](crate::Recorded::compile) makes kernels.
    /// Then all calls before it are profiling runs, whatever they cost.
    ///
    /// By default there is no such number: a kernel is made when the time spent on the tape equals
    /// the estimated compile time, or after some hundred calls.
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
        self.options.hotness = match calls {
            u32::MAX => Hotness::OnRequest,
            _ => Hotness::Calls(calls),
        };
        self
    }

    /// Compiles in the first call for each purpose, and in each call that takes a new path: no
    /// later call on a known path runs on the tape, but for those of other threads meanwhile, and
    /// the calls that compile are slow. After 64 compilations a function is compiled as by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::builder().compile_at_first_call().record(|x: &[Var]| x[0].sin());
    /// f.grad(&[0.5])?;
    /// f.grad(&[0.6])?;
    /// assert_eq!(f.report().kernel_calls, 1);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn compile_at_first_call(mut self) -> Self {
        self.options.hotness = Hotness::FirstCall;
        self
    }

    /// Serves all calls from the tape, and merges none of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::builder().tape_only().record(|x: &[Var]| x[0].sin());
    /// for i in 0..10_000 {
    ///     f.grad(&[f64::from(i)])?;
    /// }
    /// assert_eq!(f.report().kernel_calls, 0);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn tape_only(mut self) -> Self {
        self.options.hotness = Hotness::TapeOnly;
        self
    }

    /// Repeats each `every`-th kernel call on the tape, 0 for none, and compares the steps and
    /// constants of the run with those that were recorded. A function that differs depends on state
    /// that is no input: its kernels are discarded, and the report names the place.
    ///
    /// By default the kernel calls number 64, 128, 256 and so on are repeated. For state that
    /// changes at a known time there is [`Recorded::invalidate`](crate::Recorded::invalidate).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// use std::rc::Rc;
    ///
    /// use phigrad::{Tape, Var};
    ///
    /// let scale = Rc::new(Cell::new(1.0));
    /// let read = Rc::clone(&scale);
    /// let f = Tape::builder().audit(1).record(move |x: &[Var]| x[0] * read.get());
    /// f.grad(&[3.0])?;
    /// f.compile()?;
    /// scale.set(-1.0);
    /// assert_eq!(f.grad(&[3.0])?, [-1.0]);
    /// assert!(f.report().refusals[0].to_string().contains("it depends on state"));
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[must_use]
    pub fn audit(mut self, every: u32) -> Self {
        self.options.audit = match every {
            0 => Audit::Never,
            _ => Audit::Every(every),
        };
        self
    }

    /// True to compile hot functions on a background thread (the default), false to compile
    /// in the call that finds them hot. That call builds the recorded graph in any case; no
    /// call waits for derivatives and code in the background.
    ///
    /// With background compilation the first call that a kernel serves depends on timing;
    /// without it a program does the same on every run.
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

    /// The guarantee of kernels about rounding; [`Numerics::Real`] by default. For an
    /// example see [`Numerics`].
    #[must_use]
    pub fn numerics(mut self, numerics: Numerics) -> Self {
        self.options.numerics = numerics;
        self
    }

    /// True to replace loops by closed forms that are accurate and faster (the default);
    /// [`Numerics::Exact`] has none. Without closed forms, straight-line code is still
    /// simplified.
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

    /// The sizes and forms that the pipeline works with, for measurements and tests.
    #[cfg(feature = "internals")]
    #[doc(hidden)]
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.options.tuning = tuning;
        self
    }

    /// The limits on recording and compiling.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Limits, Tape, Var};
    ///
    /// let mut limits = Limits::default();
    /// limits.call_events = 2;
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
    pub fn record<O: Output, F: Fn(&[Var]) -> O>(self, f: F) -> Recorded<F> {
        Recorded::new(f, self.options, Location::caller())
    }

    /// Records `f` with these options; see
    /// [`Tape::record_into`](crate::Tape::record_into).
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::builder().record_into(1, |x: &[Var], out: &mut [Var]| out[0] = x[0] * x[0]);
    /// assert_eq!(f.jacobian(&[3.0])?, [6.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record_into<F: Fn(&[Var], &mut [Var])>(
        self,
        outputs: usize,
        f: F,
    ) -> Recorded<impl Fn(&[Var]) -> Vec<Var>> {
        self.record(move |x: &[Var]| {
            let mut to = vec![Var::from(0.0); outputs];
            f(x, &mut to);
            to
        })
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
    pub fn record_with<O: Output, F: Fn(&[Var], &[Var]) -> O>(self, f: F) -> RecordedWith<F> {
        RecordedWith::new(f, self.options, Location::caller())
    }
}

impl Default for TapeBuilder {
    fn default() -> Self {
        let (numerics, limits) = (Numerics::default(), Limits::default());
        let options = Options {
            hotness: Hotness::Measured,
            audit: Audit::Growing,
            background: true,
            numerics,
            limits,
            phi_calculus: true,
            tuning: Tuning::default(),
        };
        TapeBuilder { options }
    }
}
