//! The public types: the entry point [`Tape`] and the recorded functions.

use core::fmt;
use std::panic::Location;

use super::core::{Core, Request};
use super::error::Error;
use super::options::TapeBuilder;
use super::report::Report;
use crate::pipeline::{Options, Purpose, Recording};
use crate::trace::{Inputs, Site, Var};

/// The entry point: records functions.
///
/// # Examples
///
/// ```
/// use phigrad::{Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x.iter().map(|&x| x * x).sum());
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
    /// Inputs may be of any length, each length is recorded on its own; an empty
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
    #[must_use]
    pub fn record<F: Fn(&[Var]) -> Var>(f: F) -> Recorded<F> {
        Recorded::new(f, TapeBuilder::default().options, Location::caller())
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
    ///     data.iter().map(|&d| (d - w[0]).powi(2)).sum()
    /// });
    /// assert_eq!(squares.grad(&[1.0], &[2.0, 4.0])?, [-8.0]);
    /// assert_eq!(squares.grad(&[1.0], &[0.0, 1.0])?, [2.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn record_with<F: Fn(&[Var], &[Var]) -> Var>(f: F) -> RecordedWith<F> {
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
            pub(super) fn new(f: F, options: Options, created_at: Site) -> Self {
                $name { f, core: Core::new(options, created_at) }
            }

            /// The value at `x`.
            ///
            /// # Errors
            ///
            /// When the function uses a foreign `Var`
            /// ([`Error::is_foreign_var`]), or more operations than the limits
            /// allow ([`Error::is_too_long`]); a gradient of very many operations also when the
            /// function cannot be repeated ([`Error::is_not_repeatable`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0].exp());
            /// assert_eq!(f.eval(&[0.0])?, 1.0);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.eval(&[2.0], &[3.0])?, 6.0);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn eval(&self, x: &[f64] $(, $data: $type)?) -> Result<f64, Error> {
                self.call(x $(, $data)?, Purpose::Value, &mut [])
            }

            /// The gradient at `x`, one number for each active input.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.grad(&[2.0, 3.0])?, [3.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.grad(&[2.0], &[3.0])?, [3.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn grad(&self, x: &[f64] $(, $data: $type)?) -> Result<Vec<f64>, Error> {
                let mut gradient = vec![0.0; x.len()];
                self.call(x $(, $data)?, Purpose::Gradient, &mut gradient)?;
                Ok(gradient)
            }

            /// The value and the gradient at `x`, for little more than the
            /// gradient alone.
            ///
            /// # Errors
            ///
            /// As for `eval`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.value_and_grad(&[2.0, 3.0])?, (6.0, vec![3.0, 2.0]));
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.value_and_grad(&[2.0], &[3.0])?, (6.0, vec![3.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_and_grad(
                &self,
                x: &[f64] $(, $data: $type)?
            ) -> Result<(f64, Vec<f64>), Error> {
                let mut gradient = vec![0.0; x.len()];
                let value = self.call(x $(, $data)?, Purpose::ValueAndGradient, &mut gradient)?;
                Ok((value, gradient))
            }

            /// The gradient at `x`, written into `gradient`, which is as long as
            /// `x`. Nothing is allocated once a kernel serves and the thread has
            /// called it before. On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `eval`, and when `gradient` and `x` differ in length
            /// ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut gradient = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// f.grad_into(&[2.0, 3.0], &mut gradient)?;
            /// assert_eq!(gradient, [3.0, 2.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| data[0] * x[0] * x[1]);
            /// f.grad_into(&[2.0, 3.0], &[5.0], &mut gradient)?;
            /// assert_eq!(gradient, [15.0, 10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<(), Error> {
                self.call(x $(, $data)?, Purpose::Gradient, gradient).map(drop)
            }

            /// The value at `x`, returned, and the gradient, written into
            /// `gradient` as `grad_into` does. On an error `gradient` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `grad_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut gradient = [0.0];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0]);
            /// assert_eq!(f.value_and_grad_into(&[3.0], &mut gradient)?, 9.0);
            /// assert_eq!(gradient, [6.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.value_and_grad_into(&[3.0], &[5.0], &mut gradient)?, 15.0);
            /// assert_eq!(gradient, [5.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_and_grad_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
            ) -> Result<f64, Error> {
                self.call(x $(, $data)?, Purpose::ValueAndGradient, gradient)
            }

            /// The derivative at `x` along the direction `v`, which has a number for each active
            /// input: the gradient times `v`.
            ///
            /// # Errors
            ///
            /// As for `eval`, when `v` and `x` differ in length ([`Error::is_shape`]), and for a
            /// call longer than [`Limits::trace_events`](crate::Limits::trace_events)
            /// ([`Error::is_too_long`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[1]);
            /// assert_eq!(f.jvp(&[2.0, 3.0], &[1.0, 10.0])?, 23.0);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
            /// assert_eq!(f.jvp(&[2.0], &[3.0], &[10.0])?, 30.0);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn jvp(&self, x: &[f64] $(, $data: $type)?, v: &[f64]) -> Result<f64, Error> {
                let purpose = Purpose::DirectionalDerivative;
                self.call(x $(, $data)?, Request { purpose, direction: v }, &mut [])
            }

            /// The Hessian at `x` times the vector `v`, for little more than twice the time of a
            /// gradient.
            ///
            /// # Errors
            ///
            /// As for `jvp`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// // The Hessian of x²·y is (2y, 2x; 2x, 0).
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// assert_eq!(f.hvp(&[3.0, 5.0], &[1.0, 0.0])?, [10.0, 6.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[0] * data[0]);
            /// assert_eq!(f.hvp(&[3.0], &[5.0], &[1.0])?, [10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hvp(&self, x: &[f64] $(, $data: $type)?, v: &[f64]) -> Result<Vec<f64>, Error> {
                let mut product = vec![0.0; x.len()];
                self.hvp_into(x $(, $data)?, v, &mut product)?;
                Ok(product)
            }

            /// The Hessian at `x` times the vector `v`, written into `product`, which is as long
            /// as `x`. On an error `product` is unchanged.
            ///
            /// # Errors
            ///
            /// As for `jvp`, and when `product` and `x` differ in length.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut product = [0.0; 2];
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// f.hvp_into(&[3.0, 5.0], &[0.0, 1.0], &mut product)?;
            /// assert_eq!(product, [6.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[1] * data[0]);
            /// f.hvp_into(&[3.0, 5.0], &[2.0], &[0.0, 1.0], &mut product)?;
            /// assert_eq!(product, [2.0, 0.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hvp_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                v: &[f64],
                product: &mut [f64],
            ) -> Result<(), Error> {
                let request = Request { purpose: Purpose::HessianProduct, direction: v };
                self.call(x $(, $data)?, request, product).map(drop)
            }

            /// The Hessian at `x`, row by row, as one Hessian product for each input.
            ///
            /// # Errors
            ///
            /// As for `jvp`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0] * x[0] * x[1]);
            /// assert_eq!(f.hessian(&[3.0, 5.0])?, [10.0, 6.0, 6.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[0] * data[0]);
            /// assert_eq!(f.hessian(&[3.0], &[5.0])?, [10.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hessian(&self, x: &[f64] $(, $data: $type)?) -> Result<Vec<f64>, Error> {
                let mut hessian = vec![0.0; x.len() * x.len()];
                self.hessian_into(x $(, $data)?, &mut hessian)?;
                Ok(hessian)
            }

            /// The Hessian at `x`, written row by row into `hessian`, which has the square of the
            /// length of `x`. On an error some rows may have been written.
            ///
            /// # Errors
            ///
            /// As for `jvp`, and when `hessian` has another length ([`Error::is_shape`]).
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let mut hessian = [0.0; 4];
            /// let f = Tape::record(|x: &[Var]| (x[0] * x[1]).exp());
            /// f.hessian_into(&[0.0, 0.0], &mut hessian)?;
            /// assert_eq!(hessian, [0.0, 1.0, 1.0, 0.0]);
            /// let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * x[1] * data[0]);
            /// f.hessian_into(&[1.0, 1.0], &[3.0], &mut hessian)?;
            /// assert_eq!(hessian, [0.0, 3.0, 3.0, 0.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn hessian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                hessian: &mut [f64],
            ) -> Result<(), Error> {
                Error::check_length(x.len() * x.len(), hessian.len())?;
                let mut v = vec![0.0; x.len()];
                for (row, product) in hessian.chunks_exact_mut(x.len().max(1)).enumerate() {
                    v[row] = 1.0;
                    self.hvp_into(x $(, $data)?, &v, product)?;
                    v[row] = 0.0;
                }
                Ok(())
            }

            /// The value at `x`, returned, with the gradient and the Hessian, written into
            /// `gradient` and `hessian`: all that a step of Newton's method needs.
            ///
            /// # Errors
            ///
            /// As for `grad_into` and `hessian_into`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let (mut gradient, mut hessian) = ([0.0], [0.0]);
            /// let f = Tape::record(|x: &[Var]| x[0].powi(3));
            /// assert_eq!(f.value_grad_hessian_into(&[2.0], &mut gradient, &mut hessian)?, 8.0);
            /// assert_eq!((gradient, hessian), ([12.0], [12.0]));
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn value_grad_hessian_into(
                &self,
                x: &[f64] $(, $data: $type)?,
                gradient: &mut [f64],
                hessian: &mut [f64],
            ) -> Result<f64, Error> {
                // Before anything is written.
                Error::check_length(x.len(), gradient.len())?;
                self.hessian_into(x $(, $data)?, hessian)?;
                self.value_and_grad_into(x $(, $data)?, gradient)
            }

            fn call<'r>(
                &self,
                x: &[f64] $(, $data: $type)?,
                request: impl Into<Request<'r>>,
                gradient: &mut [f64],
            ) -> Result<f64, Error> {
                let $f = &self.f;
                #[allow(unused_mut, unused_assignments)]
                let mut inputs = Inputs { active: x, inactive: &[] };
                $(inputs.inactive = $data;)?
                self.core.call($call, inputs, request.into(), gradient)
            }
        }

        impl<F> $name<F> {
            /// Compiles everything recorded so far, now, on this thread: kernels for
            /// the value, the gradient, and both, and for derivatives along a direction if these
            /// have been called.
            ///
            /// It is not required: hot functions are compiled automatically. It is for programs
            /// that must have no slow calls after a certain point, and for measurements.
            ///
            /// # Errors
            ///
            /// When no call has been made yet, when no kernel can be made, or when a length of
            /// input that was called gets none; the error gives the reason
            /// ([`Error::is_refused`]). The tape still serves.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0].sin());
            /// assert!(f.compile().unwrap_err().is_refused()); // Nothing is recorded yet.
            /// f.grad(&[0.5])?;
            /// f.compile()?;
            /// f.grad(&[0.6])?;
            /// assert_eq!(f.report().kernel_calls, 1);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn compile(&self) -> Result<(), Error> {
                self.core.compile()
            }

            /// Forgets all recorded paths and kernels: for a function that reads state besides its
            /// inputs, after that state has changed. Later calls record anew, and the report
            /// begins anew.
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
            /// let f = Tape::record(move |x: &[Var]| x[0] * read.get());
            /// f.grad(&[3.0])?;
            /// f.compile()?;
            /// scale.set(-1.0);
            /// f.invalidate();
            /// assert_eq!(f.grad(&[3.0])?, [-1.0]);
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn invalidate(&self) {
                self.core.invalidate();
            }

            /// The calls, paths, kernels and refusals so far; see [`Report`].
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::{Tape, Var};
            ///
            /// let f = Tape::record(|x: &[Var]| x[0].sin());
            /// f.grad(&[0.5])?;
            /// println!("{}", f.report());
            /// # Ok::<(), phigrad::Error>(())
            /// ```
            pub fn report(&self) -> Report {
                self.core.report()
            }
        }

        impl<F> $name<F> {
            /// The recorded graph, for its explanation.
            pub(crate) fn recording(&self) -> Result<Recording, Error> {
                self.core.recording()
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{Recorded, Tape, Var};
    ///
    /// struct Fit<F> {
    ///     loss: Recorded<F>,
    ///     at: Vec<f64>,
    /// }
    ///
    /// impl<F: Fn(&[Var]) -> Var> Fit<F> {
    ///     fn step(&mut self, rate: f64) -> Result<(), phigrad::Error> {
    ///         let gradient = self.loss.grad(&self.at)?;
    ///         self.at.iter_mut().zip(gradient).for_each(|(x, g)| *x -= rate * g);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let loss = Tape::record(|x: &[Var]| (x[0] - 3.0).powi(2));
    /// let mut fit = Fit { loss, at: vec![0.0] };
    /// fit.step(0.5)?;
    /// assert_eq!(fit.at, [3.0]);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    Recorded<F>, Fn(&[Var]) -> Var, (), |f| |active, _| f(active)
}

recorded! {
    /// A recorded function of active and inactive inputs; made by
    /// [`Tape::record_with`].
    ///
    /// All methods take `&self`; many threads may call at once when `F` allows
    /// it. Dropping it frees its kernels and buffers.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::{RecordedWith, Tape, Var};
    ///
    /// fn on_batches<F: Fn(&[Var], &[Var]) -> Var>(
    ///     loss: &RecordedWith<F>,
    ///     batches: &[f64],
    /// ) -> Result<f64, phigrad::Error> {
    ///     batches.chunks(2).try_fold(1.0, |x, batch| Ok(x - 0.25 * loss.grad(&[x], batch)?[0]))
    /// }
    ///
    /// let loss = Tape::record_with(|x: &[Var], batch: &[Var]| {
    ///     batch.iter().map(|&b| (x[0] - b).powi(2)).sum()
    /// });
    /// assert_eq!(on_batches(&loss, &[3.0, 5.0, 2.0, 8.0])?, 5.0);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    RecordedWith<F>, Fn(&[Var], &[Var]) -> Var, (data: &[f64]), |f| f
}
