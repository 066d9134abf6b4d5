//! Long runs: gradients of runs that are too long to be kept whole.
//!
//! The reverse sweep needs all values, and the steps in reverse order. Only the steps of one window
//! are kept at a time, and the calls of custom operations with their saved values: the function
//! runs again for each window, from the last to the first. So an event outside of the window takes
//! 16 bytes, for its value and its adjoint. The sums are those of one sweep over all events, in the
//! same order.

use core::fmt;
use core::ops::Range;

use super::store::Extent;
use super::sweep::WindowedSweep;
use super::tracer::Finished;
use super::{Adjoints, Events, Inputs, Site, Trace, TraceError, Tracer, Var};

/// The largest number of repeated runs; larger windows make up for it.
const MAX_REPEATED: usize = 16;

/// A recorded run.
#[derive(Debug)]
pub enum Run<'a> {
    /// All of its events were kept.
    Whole(Trace<'a>),
    /// It was too long for that.
    Long(LongRun<'a>),
}

/// A run with too many events to keep them whole.
///
/// # Examples
///
/// ```
/// use std::panic::Location;
///
/// use phigrad::Var;
/// use phigrad::internals::trace::{Adjoints, Inputs, Run, RunLimits, Tracer};
///
/// let power = |x: &[Var], _: &[Var]| (1..100).fold(x[0], |y, _| y * x[0]);
/// let inputs = Inputs { active: &[1.0], inactive: &[] };
/// let limits = RunLimits { whole: 30, call: 1000, has_reverse_sweep: true };
/// let mut tracer = Tracer::default();
/// let Run::Long(mut run) = tracer.run_within(power, inputs, limits, Location::caller())? else {
///     panic!("100 operations are more than 30");
/// };
/// assert_eq!((run.value(), run.events()), (1.0, 100));
/// assert_eq!(run.sweep(&power, &mut Adjoints::default())?, [100.0]);
/// # Ok::<(), phigrad::internals::trace::TraceError>(())
/// ```
pub struct LongRun<'a> {
    tracer: &'a mut Tracer,
    inputs: Inputs<'a>,
    made: Site,
    first: Finished,
    beyond: Site,
}

impl<'a> LongRun<'a> {
    /// The run that is `first` of several and has left its events in `tracer`.
    pub(super) fn new(
        tracer: &'a mut Tracer,
        inputs: Inputs<'a>,
        made: Site,
        first: Finished,
        beyond: Site,
    ) -> Self {
        LongRun { tracer, inputs, made, first, beyond }
    }

    /// The value that the function returned.
    pub fn value(&self) -> f64 {
        self.first.value
    }

    /// The number of events.
    pub fn events(&self) -> usize {
        self.first.extent.len
    }

    /// The first operation beyond the limit for a whole run.
    pub fn beyond(&self) -> Site {
        self.beyond
    }

    /// The derivatives of the output with respect to the active inputs, bit for bit those of one
    /// sweep over a whole run. Runs `f`, the function of this run, again for each window of steps,
    /// at most 16 times. The limits of the run must have said that it is swept.
    ///
    /// # Errors
    ///
    /// [`TraceError::NotRepeatable`] if such a run is different, and those of [`Tracer::run`].
    ///
    /// # Panics
    ///
    /// Only if `f` does.
    pub fn sweep<'b>(
        &mut self,
        f: &impl Fn(&[Var], &[Var]) -> Var,
        adjoints: &'b mut Adjoints,
    ) -> Result<&'b [f64], TraceError> {
        let active = self.inputs.active.len();
        if active == 0 {
            return Ok(&[]);
        }
        let inputs = active + self.inputs.inactive.len();
        let Extent { len, first_step, window, .. } = self.first.extent;
        let mut sweep = WindowedSweep::new(self.first.output, (inputs, len), adjoints);
        if sweep.end() > first_step {
            // The first run has kept these steps.
            let (Events { values, steps, .. }, calls) = self.tracer.recorded();
            sweep.pass(values, &steps[..sweep.end() - first_step], calls);
        }
        let repeated = sweep.end().saturating_sub(inputs);
        let size = window.max(repeated.div_ceil(MAX_REPEATED)).max(1);
        while sweep.end() > inputs {
            let window = sweep.end().saturating_sub(size).max(inputs)..sweep.end();
            self.repeat(f, window)?;
            let (Events { values, steps, .. }, calls) = self.tracer.recorded();
            sweep.pass(values, steps, calls);
        }
        Ok(sweep.finish(active))
    }

    /// Runs `f` again and keeps the steps of `window`.
    fn repeat(
        &mut self,
        f: &impl Fn(&[Var], &[Var]) -> Var,
        window: Range<usize>,
    ) -> Result<(), TraceError> {
        let finished = self.tracer.repeat(f, self.inputs, self.events(), window, self.made)?;
        if finished.signature == self.first.signature && finished.output == self.first.output {
            Ok(())
        } else {
            Err(TraceError::NotRepeatable { at: finished.latest })
        }
    }
}

impl fmt::Debug for LongRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("LongRun");
        fields.field("value", &self.value()).field("events", &self.events());
        fields.field("beyond", &self.beyond).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;
    use core::panic::Location;

    use super::*;
    use crate::custom::{CustomOperation, Operation};
    use crate::trace::RunLimits;

    /// The sine, with its slope saved.
    struct Sine;

    impl Operation for Sine {
        type Error = Infallible;

        fn inputs(&self) -> usize {
            1
        }

        fn outputs(&self) -> usize {
            1
        }

        fn saved(&self) -> usize {
            1
        }

        fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Infallible> {
            (y[0], saved[0]) = x[0].sin_cos();
            Ok(())
        }

        fn vjp(&self, _: &[f64], _: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
            out[0] = w[0] * saved[0];
        }
    }

    #[test]
    fn calls_are_kept_in_one_window_only() {
        let operation = CustomOperation::new(Sine);
        let f = |x: &[Var], _: &[Var]| {
            (0..1000).fold(x[0], |y, _| match operation.call(&[y]) {
                Ok(y) => y[0],
                Err(never) => match never {},
            })
        };
        let inputs = Inputs { active: &[1.0], inactive: &[] };
        for has_reverse_sweep in [false, true] {
            let mut tracer = Tracer::default();
            let limits = RunLimits { whole: 200, call: 10_000, has_reverse_sweep };
            let run = tracer.run_within(f, inputs, limits, Location::caller());
            let Ok(Run::Long(mut run)) = run else { unreachable!("2000 events") };
            let kept = run.tracer.recorded().1.len();
            assert!(if has_reverse_sweep { kept <= 101 } else { kept == 0 }, "{kept}");
            if has_reverse_sweep {
                let mut adjoints = Adjoints::default();
                let expected =
                    (0..1000).fold((1.0f64, 1.0), |(y, slope), _| (y.sin(), slope * y.cos()));
                let found = run.sweep(&f, &mut adjoints).map(|gradient| gradient[0]);
                assert!(found.is_ok_and(|found| (found - expected.1).abs() < 1e-12));
                assert!(run.tracer.recorded().1.len() <= 101);
            }
        }
    }
}
