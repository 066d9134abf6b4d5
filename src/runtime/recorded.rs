//! What users hold: the entry points and the recorded functions.

use core::fmt;
use std::panic::Location;

use super::core::Core;
use super::error::Error;
use super::options::{Options, TapeBuilder};
use super::report::{Purpose, Report};
use crate::trace::{Inputs, Site, Var};

/// The entry point: records functions.
#[derive(Clone, Copy, Debug)]
pub struct Tape;

impl Tape {
    /// Records a function of active inputs.
    ///
    /// Nothing runs yet. Each call of the result runs `f` under the tape until
    /// the function is hot; then a native kernel takes over, guarded so that it
    /// serves exactly the calls that take a path that `f` has taken before.
    ///
    /// What `f` reads must be its inputs, or constant: a captured number is
    /// part of the kernel. Functions that depend on other state are noticed
    /// (not always at once) and stay on the tape.
    ///
    /// Inputs may be of any length, each length is learnt on its own; an empty
    /// input has an empty gradient. Numbers that are not finite are passed to
    /// `f` like any other, and a result that is not finite is returned as the
    /// tape computes it. Calls may nest: a recorded function called inside
    /// another one is, to the outer one, a constant.
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
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    pub fn record<F: Fn(&[Var]) -> Var>(f: F) -> Recorded<F> {
        Recorded::new(f, TapeBuilder::default().options, Location::caller())
    }

    /// Records a function of active inputs and inactive ones: data that may
    /// change from call to call but need no gradient.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Tape, Var};
    ///
    /// let squares = Tape::record_with(|w: &[Var], data: &[Var]| {
    ///     data.iter().map(|&d| (d - w[0]).powi(2)).sum()
    /// });
    /// assert_eq!(squares.grad(&[1.0], &[2.0, 4.0])?, [-8.0]);
    /// assert_eq!(squares.grad(&[1.0], &[0.0, 1.0])?, [2.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    pub fn record_with<F: Fn(&[Var], &[Var]) -> Var>(f: F) -> RecordedWith<F> {
        RecordedWith::new(f, TapeBuilder::default().options, Location::caller())
    }

    /// Options other than the default ones.
    pub fn builder() -> TapeBuilder {
        TapeBuilder::default()
    }
}

macro_rules! recorded {
    (
        $(#[$meta:meta])*
        $name:ident<F>, $bound:path,
        ($($data:ident: $type:ty)?), |$f:ident| $call:expr
    ) => {
        $(#[$meta])*
        pub struct $name<F> {
            f: F,
            core: Core,
        }

        impl<F: $bound> $name<F> {
            pub(super) fn new(f: F, options: Options, made: Site) -> Self {
                $name { f, core: Core::new(options, made) }
            }

            /// The value at `x`.
            ///
            /// # Errors
            ///
            /// When the function uses a foreign `Var`, or more operations than
            /// the limits allow.
            pub fn eval(&self, x: &[f64] $(, $data: $type)?) -> Result<f64, Error> {
                self.call(x $(, $data)?, Purpose::Value, &mut [])
            }

            /// The gradient at `x`, one number for each active input.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            pub fn grad(&self, x: &[f64] $(, $data: $type)?) -> Result<Vec<f64>, Error> {
                let mut gradient = vec![0.0; x.len()];
                self.call(x $(, $data)?, Purpose::Gradient, &mut gradient)?;
                Ok(gradient)
            }

            /// The value and the gradient at `x`.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            pub fn value_and_grad(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<(f64, Vec<f64>), Error> {
                let mut gradient = vec![0.0; x.len()];
                let value = self.call(x $(, $data)?, Purpose::ValueAndGradient, &mut gradient)?;
                Ok((value, gradient))
            }

            /// The gradient at `x`, written into `gradient` without allocation.
            /// On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `gradient` and `x` differ in length.
            pub fn grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<(), Error> {
                self.call(x $(, $data)?, Purpose::Gradient, gradient).map(drop)
            }

            /// The value at `x`, returned, and the gradient, written into
            /// `gradient` without allocation. On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `gradient` and `x` differ in length.
            pub fn value_and_grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<f64, Error> {
                self.call(x $(, $data)?, Purpose::ValueAndGradient, gradient)
            }

            fn call(
                &self,
                x: &[f64] $(, $data: $type)?,
                purpose: Purpose,
                gradient: &mut [f64],
            ) -> Result<f64, Error> {
                let $f = &self.f;
                #[allow(unused_mut, unused_assignments)]
                let mut inputs = Inputs { active: x, inactive: &[] };
                $(inputs.inactive = $data;)?
                self.core.call($call, inputs, purpose, gradient)
            }
        }

        impl<F> $name<F> {
            /// Compiles everything learnt so far, now, on this thread: kernels for
            /// the value, the gradient, and both.
            ///
            /// # Errors
            ///
            /// When no call has been made yet, or when there can be no kernel; the
            /// error says why. The tape still serves.
            pub fn compile(&self) -> Result<(), Error> {
                self.core.compile()
            }

            /// What happened so far.
            pub fn report(&self) -> Report {
                self.core.report()
            }
        }

        impl<F> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("report", &self.report()).finish()
            }
        }
    };
}

recorded! {
    /// A recorded function of active inputs; made by [`Tape::record`].
    ///
    /// All methods take `&self`; many threads may call at once when `F` allows
    /// it. Dropping it frees its kernels and buffers.
    Recorded<F>, Fn(&[Var]) -> Var, (), |f| |active, _| f(active)
}

recorded! {
    /// A recorded function of active and inactive inputs; made by
    /// [`Tape::record_with`].
    ///
    /// All methods take `&self`; many threads may call at once when `F` allows
    /// it. Dropping it frees its kernels and buffers.
    RecordedWith<F>, Fn(&[Var], &[Var]) -> Var, (data: &[f64]), |f| f
}
