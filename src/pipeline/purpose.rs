//! The purpose of a kernel: value, gradient or both.

/// The results of a kernel. A hot function gets a kernel for each purpose that it is called
/// for; `compile` makes all three.
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
}

impl core::fmt::Display for Purpose {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Purpose::Value => "value",
            Purpose::Gradient => "gradient",
            Purpose::ValueAndGradient => "value and gradient",
        })
    }
}

impl Purpose {
    pub(crate) const ALL: [Purpose; 3] =
        [Purpose::Value, Purpose::Gradient, Purpose::ValueAndGradient];
}
