//! The purpose of a kernel: value, gradient, both, or a derivative along a direction.

/// The results of a kernel. A hot function gets a kernel for each purpose that it is called
/// for; `compile` makes those for value, gradient and both in any case.
///
/// # Examples
///
/// ```
/// use phigrad::{Purpose, Tape, Var};
///
/// let f = Tape::record(|x: &[Var]| x[0].sin());
/// f.grad(&[1.0])?;
/// f.compile()?;
/// let purposes: Vec<Purpose> = f.report().kernels.iter().map(|k| k.purpose).collect();
/// assert_eq!(purposes, [Purpose::Value, Purpose::Gradient, Purpose::ValueAndGradient]);
/// # Ok::<(), phigrad::Error>(())
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// The value alone.
    Value,
    /// The gradient alone.
    Gradient,
    /// Both.
    ValueAndGradient,
    /// The derivative along a direction.
    DirectionalDerivative,
    /// The derivative of the gradient along a direction: the Hessian times the direction.
    HessianProduct,
}

impl core::fmt::Display for Purpose {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Purpose::Value => "value",
            Purpose::Gradient => "gradient",
            Purpose::ValueAndGradient => "value and gradient",
            Purpose::DirectionalDerivative => "directional derivative",
            Purpose::HessianProduct => "Hessian product",
        })
    }
}

impl Purpose {
    pub(crate) const COUNT: usize = Purpose::ALL.len();

    pub(crate) const ALL: [Purpose; 5] = [
        Purpose::Value,
        Purpose::Gradient,
        Purpose::ValueAndGradient,
        Purpose::DirectionalDerivative,
        Purpose::HessianProduct,
    ];

    /// Tests whether there is a direction: a further inactive input for each active one.
    pub(crate) fn has_direction(self) -> bool {
        matches!(self, Purpose::DirectionalDerivative | Purpose::HessianProduct)
    }

    /// Tests whether there is a reverse sweep, with a result for each active input.
    pub(crate) fn has_reverse_sweep(self) -> bool {
        !matches!(self, Purpose::Value | Purpose::DirectionalDerivative)
    }
}
