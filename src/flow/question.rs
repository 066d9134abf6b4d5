//! The question mark, which is not yet a trait of the stable language.

use core::convert::Infallible;
use core::ops::ControlFlow;

/// Types that `?` is used on: go on with the output, or leave the function with
/// the residual.
#[diagnostic::on_unimplemented(message = "`?` on `{Self}` is not known to `#[phigrad::traced]`")]
pub trait Question {
    /// What `?` evaluates to.
    type Output;
    /// What the function returns otherwise, before it is converted.
    type Residual;

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
