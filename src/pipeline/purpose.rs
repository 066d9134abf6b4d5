//! The purpose of a kernel: its results.

/// The results of a kernel. A hot function gets a kernel for each purpose that it is called
/// for; `compile` makes those for value, gradient and both in any case, and for a function of
/// several outputs those for the outputs and for vector-Jacobian products.
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
    /// The outputs of a function of several.
    Outputs,
    /// The derivatives of the outputs along a direction: the Jacobian times the direction.
    JacobianVectorProduct,
    /// The gradient of a weighted sum of the outputs: the weights times the Jacobian.
    VectorJacobianProduct,
    /// The Jacobian: the derivative of each output by each active input.
    Jacobian,
    /// The Hessian of a function of one output.
    Hessian,
    /// The Hessian as a sparse matrix, by Hessian products.
    SparseHessian,
    /// The Jacobian as a sparse matrix, by products with it.
    SparseJacobian,
}

impl core::fmt::Display for Purpose {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Purpose::Value => "value",
            Purpose::Gradient => "gradient",
            Purpose::ValueAndGradient => "value and gradient",
            Purpose::DirectionalDerivative => "directional derivative",
            Purpose::HessianProduct => "Hessian product",
            Purpose::Outputs => "outputs",
            Purpose::JacobianVectorProduct => "Jacobian-vector product",
            Purpose::VectorJacobianProduct => "vector-Jacobian product",
            Purpose::Jacobian => "Jacobian",
            Purpose::Hessian => "Hessian",
            Purpose::SparseHessian => "sparse Hessian",
            Purpose::SparseJacobian => "sparse Jacobian",
        })
    }
}

impl Purpose {
    pub(crate) const COUNT: usize = Purpose::ALL.len();

    pub(crate) const ALL: [Purpose; 12] = [
        Purpose::Value,
        Purpose::Gradient,
        Purpose::ValueAndGradient,
        Purpose::DirectionalDerivative,
        Purpose::HessianProduct,
        Purpose::Outputs,
        Purpose::JacobianVectorProduct,
        Purpose::VectorJacobianProduct,
        Purpose::Jacobian,
        Purpose::Hessian,
        Purpose::SparseHessian,
        Purpose::SparseJacobian,
    ];

    /// Tests whether there is a direction: a further inactive input for each active one.
    pub(crate) fn has_direction(self) -> bool {
        matches!(
            self,
            Purpose::DirectionalDerivative
                | Purpose::HessianProduct
                | Purpose::JacobianVectorProduct
        )
    }

    /// Tests whether it is a purpose of functions of several outputs. Their recorded graph is the
    /// sum of the outputs, each times a weight: a further inactive input after the others.
    pub(crate) fn has_weights(self) -> bool {
        matches!(
            self,
            Purpose::Outputs
                | Purpose::JacobianVectorProduct
                | Purpose::VectorJacobianProduct
                | Purpose::Jacobian
        )
    }

    /// Tests whether the results are derivatives by the weights: the outputs, or their
    /// derivatives along the direction.
    pub(crate) fn is_by_weights(self) -> bool {
        matches!(self, Purpose::Outputs | Purpose::JacobianVectorProduct)
    }

    /// Tests whether there are calls for batches.
    pub(crate) fn has_batches(self) -> bool {
        matches!(self, Purpose::Value | Purpose::Gradient | Purpose::ValueAndGradient)
    }

    /// Tests whether the tape is swept for it.
    pub(crate) fn is_swept(self) -> bool {
        self.has_reverse_sweep() && !self.is_by_weights()
    }

    /// Tests whether the tape passes over a run more than once, or forward, for it.
    pub(crate) fn needs_whole_run(self) -> bool {
        self.has_direction() || self.is_matrix()
    }

    /// Tests whether the result is a matrix of derivatives.
    pub(crate) fn is_matrix(self) -> bool {
        matches!(self, Purpose::Jacobian | Purpose::Hessian) || self.is_sparse()
    }

    /// Tests whether the results are second derivatives.
    pub(crate) fn is_second_order(self) -> bool {
        matches!(self, Purpose::HessianProduct | Purpose::Hessian | Purpose::SparseHessian)
    }

    /// Tests whether the result is a sparse matrix.
    pub(crate) fn is_sparse(self) -> bool {
        matches!(self, Purpose::SparseHessian | Purpose::SparseJacobian)
    }

    /// Tests whether a single number is among the results: the value, or its derivative along the
    /// direction.
    pub(crate) fn has_value(self) -> bool {
        matches!(self, Purpose::Value | Purpose::ValueAndGradient | Purpose::DirectionalDerivative)
    }

    /// Tests whether a kernel has a reverse sweep, with a result for each active input or for each
    /// weight.
    pub(crate) fn has_reverse_sweep(self) -> bool {
        !matches!(self, Purpose::Value | Purpose::DirectionalDerivative) && !self.is_sparse()
    }
}
