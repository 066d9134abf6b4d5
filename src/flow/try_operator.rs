//! The operator `?`, whose trait is not stable yet.

use core::convert::Infallible;
use core::ops::ControlFlow;

use super::Carrier;

/// Types with the operator `?`: it evaluates to the output, or returns the residual from the
/// function.
#[diagnostic::on_unimplemented(
    message = "`#[phigrad::traced]` does not support `?` on `{Self}`",
    note = "use `?` on an `Option`, a `Result` or a `ControlFlow`, or match on the value"
)]
pub trait TryOperator {
    /// The value of the expression.
    type Output;
    /// The value that the function returns otherwise, before conversion.
    type Residual: Residual;

    /// Tests which of the two it is.
    fn branch(self) -> ControlFlow<Self::Residual, Self::Output>;
}

impl<T> TryOperator for Option<T> {
    type Output = T;
    type Residual = Option<Infallible>;

    #[inline]
    fn branch(self) -> ControlFlow<Self::Residual, T> {
        self.map_or(ControlFlow::Break(None), ControlFlow::Continue)
    }
}

impl<T, E> TryOperator for Result<T, E> {
    type Output = T;
    type Residual = Result<Infallible, E>;

    #[inline]
    fn branch(self) -> ControlFlow<Self::Residual, T> {
        match self {
            Ok(value) => ControlFlow::Continue(value),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }
}

impl<B, C> TryOperator for ControlFlow<B, C> {
    type Output = C;
    type Residual = ControlFlow<B, Infallible>;

    #[inline]
    fn branch(self) -> ControlFlow<Self::Residual, C> {
        match self {
            ControlFlow::Continue(value) => ControlFlow::Continue(value),
            ControlFlow::Break(value) => ControlFlow::Break(ControlFlow::Break(value)),
        }
    }
}

/// The value that `?` returns from a function.
pub trait Residual {
    /// Hands it over. Its type may not be inferred yet where `?` stands, so the content of an error
    /// is opaque.
    fn hand_over(&self, to: &mut Carrier);
}

impl Residual for Option<Infallible> {
    fn hand_over(&self, _: &mut Carrier) {}
}

impl<E> Residual for Result<Infallible, E> {
    fn hand_over(&self, to: &mut Carrier) {
        to.variable("the error", true);
        to.opaque();
    }
}

impl<B> Residual for ControlFlow<B, Infallible> {
    fn hand_over(&self, to: &mut Carrier) {
        to.variable("the residual", true);
        to.opaque();
    }
}
