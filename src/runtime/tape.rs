//! The entry point.

use std::panic::Location;

use super::options::TapeBuilder;
use super::outputs::Output;
use super::recorded::{Recorded, RecordedWith};
use crate::trace::Var;

/// The entry point: records functions.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x.iter().map(|&x| x * x).sum::<Var>());
/// assert_eq!(f.grad(&[1.0, 2.0, 3.0])?, [2.0, 4.0, 6.0]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tape;

impl Tape {
    /// Records a function of active inputs.
    ///
    /// Nothing runs yet. Each call of the result runs `f` under the tape until
    /// the function is hot; then a native kernel takes over, guarded so that it
    /// serves exactly the calls that take a path that `f` has taken before.
    ///
    /// `f` may read its inputs and constants: a captured number is part of the kernel.
    /// Functions that depend on other state are detected (not always at once) and stay on
    /// the tape. A call with more operations than [`Limits::trace_events`](crate::Limits) runs `f`
    /// several times.
    ///
    /// `f` returns a `Var`, an array, vector or tuple of outputs, or a `Result` of these: see
    /// [`Outputs`](crate::Outputs) and [`Output`]. A function of one output has a gradient and a
    /// Hessian; all have a Jacobian and products with it. Where the type does not tell the number
    /// of outputs, as that of a vector does not, the first call with each length of input runs `f`
    /// twice.
    ///
    /// Inputs may be of any length, each length is recorded on its own; an empty
    /// input has an empty gradient. Numbers that are not finite are passed to
    /// `f` like any other, and a result that is not finite is returned as the
    /// tape computes it. Calls may nest: with [`Recorded::call`] a recorded function is one node
    /// of another one; the results of `eval` and `grad` are, to the outer one, constants.
    ///
    /// # Panics
    ///
    /// Calls panic when `f` does, and the function stays usable.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record(|x: &[Var]| (x[0] * x[1]).sin() + x[0]);
    /// let g = f.grad(&[0.5, 2.0])?;
    /// assert_eq!(g, [2.0 * 1.0f64.cos() + 1.0, 0.5 * 1.0f64.cos()]);
    /// let polar = Tape::record(|x: &[Var]| [x[0] * x[1].cos(), x[0] * x[1].sin()]);
    /// assert_eq!(polar.jacobian(&[2.0, 0.0])?, [1.0, 0.0, 0.0, 2.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record<O: Output, F: Fn(&[Var]) -> O>(f: F) -> Recorded<F> {
        Recorded::new(f, TapeBuilder::default().options, Location::caller())
    }

    /// Records a function that writes its `outputs` outputs into a slice, which is zero before.
    ///
    /// Everything else is as for [`Tape::record`] with a function that returns a vector: the first
    /// call with each length of input runs `f` twice.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let f = Tape::record_into(2, |x: &[Var], out: &mut [Var]| {
    ///     out[0] = x[0] * x[1];
    ///     out[1] = x[0] + x[1];
    /// });
    /// assert_eq!(f.eval(&[2.0, 3.0])?, [6.0, 5.0]);
    /// assert_eq!(f.vjp(&[2.0, 3.0], &[1.0, 10.0])?, [13.0, 12.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record_into<F: Fn(&[Var], &mut [Var])>(
        outputs: usize,
        f: F,
    ) -> Recorded<impl Fn(&[Var]) -> Vec<Var>> {
        TapeBuilder::default().record_into(outputs, f)
    }

    /// Records a function of active inputs and inactive ones: data that may
    /// change from call to call but need no gradient.
    ///
    /// Everything else is as for [`Tape::record`]. An inactive input costs less
    /// than an active one, because nothing is passed back to it; comparisons of
    /// inactive inputs are guards like others.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let squares = Tape::record_with(|w: &[Var], data: &[Var]| {
    ///     data.iter().map(|&d| (d - w[0]).powi(2)).sum::<Var>()
    /// });
    /// assert_eq!(squares.grad(&[1.0], &[2.0, 4.0])?, [-8.0]);
    /// assert_eq!(squares.grad(&[1.0], &[0.0, 1.0])?, [2.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record_with<O: Output, F: Fn(&[Var], &[Var]) -> O>(f: F) -> RecordedWith<F> {
        RecordedWith::new(f, TapeBuilder::default().options, Location::caller())
    }

    /// Options other than the default ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Numerics, Tape, Var};
    ///
    /// let f = Tape::builder().numerics(Numerics::Exact).record(|x: &[Var]| x[0].sqrt());
    /// assert_eq!(f.grad(&[4.0])?, [0.25]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    pub fn builder() -> TapeBuilder {
        TapeBuilder::default()
    }
}
