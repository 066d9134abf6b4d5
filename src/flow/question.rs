//! The question mark, which is not yet a trait of the stable language.

use core::convert::Infallible;
use core::ops::ControlFlow;

use super::Carrier;

/// Types that `?` is used on: go on with the output, or leave the function with
/// the residual.
#[diagnostic::on_unimplemented(message = "`?` on `{Self}` is not known to `#[phigrad::traced]`")]
pub trait Question {
    /// What `?` evaluates to.
    type Output;
    /// What the function returns otherwise, before it is converted.
    type Residual: Residual;

    /// Tells which it is.
    fn branch(self) -> ControlFlow<Self::Residual, Self::Output>;
}

impl<T> Question for Option<T> {
    type Output = T;
    type Residual = Option<Infallible>;

    #[inline]
    fn branch(self) -> ControlFlow<Self::Residual, T> {
        self.map_or(ControlFlow::Break(None), ControlFlow::Continue)
    }
}

impl<T, E> Question for Result<T, E> {
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

impl<B, C> Question for ControlFlow<B, C> {
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

/// What `?` leaves a function with.
pub trait Residual {
    /// Tells of it. Its type may not be known yet where `?` stands, so what is in
    /// an error is opaque.
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
