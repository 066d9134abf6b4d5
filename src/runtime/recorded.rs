//! The recorded functions.

use core::cell::Cell;
use core::fmt;
use std::sync::Arc;

use super::core::Core;
use super::error::Error;
use super::nested::NestedOperations;
use super::outputs::{Output, OutputWriter, Outputs};
use super::report::Report;
use crate::pipeline::{Options, Recording};
use crate::trace::{Site, Var};

/// A recorded function, which operations that stand for it share.
struct Inner<F> {
    f: F,
    core: Core,
}

/// The inputs of a call: the active ones, and the inactive ones if the function has any.
macro_rules! inputs {
    ($active:expr) => {
        $crate::trace::Inputs { active: $active, inactive: &[] }
    };
    ($active:expr, $inactive:expr) => {
        $crate::trace::Inputs { active: $active, inactive: $inactive }
    };
}

pub(super) use inputs;

macro_rules! recorded {
    (
        $(#[$meta:meta])*
        $name:ident<F> { $($nested:ident: $operations:ty)? }, ($($args:ty),*),
        |$f:ident| $call:expr
    ) => {
        $(#[$meta])*
        pub struct $name<F> {
            inner: Arc<Inner<F>>,
            $(pub(super) $nested: $operations,)?
        }

        impl<O: Output, F: Fn($($args),*) -> O> $name<F> {
            pub(super) fn new(f: F, options: Options, created_at: Site) -> Self {
                let inner = Arc::new(Inner { f, core: Core::new(options, created_at) });
                $name { inner $(, $nested: <$operations>::default())? }
            }

            /// The function of active and inactive inputs.
            pub(super) fn function(&self) -> impl Fn(&[Var], &[Var]) -> O + '_ {
                let $f = &self.inner.f;
                $call
            }

            /// The function as one that writes its outputs. False if it has returned an error,
            /// which is then in `failure`.
            pub(super) fn writer(
                &self,
                failure: &Cell<Option<O::Error>>,
            ) -> impl Fn(&[Var], &[Var], &mut OutputWriter) -> bool {
                let function = self.function();
                move |active, inactive, to| match function(active, inactive).into_outputs() {
                    Ok(outputs) => {
                        outputs.write(to);
                        true
                    }
                    Err(error) => {
                        failure.set(Some(error));
                        false
                    }
                }
            }

            /// The function as one that returns its only output. `None` if it has not one output,
            /// or has returned an error, which is then in `failure`.
            pub(super) fn only_output(
                &self,
                failure: &Cell<Option<O::Error>>,
            ) -> impl Fn(&[Var], &[Var]) -> Option<Var> {
                let write = self.writer(failure);
                move |active, inactive| {
                    let mut outputs = OutputWriter::default();
                    write(active, inactive, &mut outputs);
                    outputs.single()
                }
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
                self.core().compile()
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
                self.core().invalidate();
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
                self.core().report()
            }
        }

        impl<F> $name<F> {
            pub(super) fn core(&self) -> &Core {
                &self.inner.core
            }

            /// The recorded graph, for its explanation.
            pub(crate) fn recording(&self) -> Result<Recording, Error> {
                self.core().recording()
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
    /// A recorded function of active inputs; made by [`Tape::record`](crate::Tape::record).
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
    Recorded<F> { nested: NestedOperations }, (&[Var]), |f| |active: &[Var], _: &[Var]| f(active)
}

recorded! {
    /// A recorded function of active and inactive inputs; made by
    /// [`Tape::record_with`](crate::Tape::record_with).
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
    ///     batch.iter().map(|&b| (x[0] - b).powi(2)).sum::<Var>()
    /// });
    /// assert_eq!(on_batches(&loss, &[3.0, 5.0, 2.0, 8.0])?, 5.0);
    /// # Ok::<(), phigrad::Error>(())
    /// ```
    RecordedWith<F> {}, (&[Var], &[Var]), |f| f
}

impl<F> Recorded<F> {
    /// The same recorded function.
    pub(super) fn handle(&self) -> Recorded<F> {
        Recorded { inner: Arc::clone(&self.inner), nested: NestedOperations::default() }
    }
}
