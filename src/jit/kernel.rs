//! The kernel: native code with its data, an owning and safe value.

use super::native::Code;

/// The sizes of the buffers that the functions read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) active: usize,
    pub(super) inactive: usize,
    pub(super) constants: usize,
    pub(super) scratch: usize,
    pub(super) outputs: usize,
}

/// The reason why a kernel has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A guard failed, or a loop exceeded its bound: the inputs take a path that is not compiled.
    #[error("the inputs take a path that the kernel does not know")]
    SideExit,
    /// The number of inputs or outputs differs from the one it was compiled for.
    #[error("the slices do not have the lengths that the kernel was compiled for")]
    Shape,
}

/// A graph as native code.
///
/// It owns its pages and frees them when dropped; they are never writable and
/// executable at once. It may be used by many threads at once.
#[derive(Debug)]
pub struct Kernel {
    pub(super) code: Code,
    pub(super) constants: Vec<f64>,
    pub(super) code_bytes: usize,
}

impl Kernel {
    /// Runs the code. `scratch` grows as required; its content does not matter, so one buffer
    /// may serve many kernels.
    ///
    /// # Errors
    ///
    /// See [`RunError`]; after [`RunError::SideExit`] `outputs` may be partly written.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::jit::{RunError, compile};
    ///
    /// let text = "graph active 1 inactive 0\nv1 = const 0\nb0:\n  v2 = gt v0 v1\n  guard v2\n  v3 = ln v0\n  return v3\n";
    /// let kernel = compile(&phigrad::internals::ssa::parse(text)?)?;
    /// let (mut scratch, mut output) = (Vec::new(), [0.0]);
    /// assert_eq!(kernel.run(&[1.0], &[], &mut scratch, &mut output), Ok(()));
    /// assert_eq!(kernel.run(&[-1.0], &[], &mut scratch, &mut output), Err(RunError::SideExit));
    /// assert_eq!(kernel.run(&[], &[], &mut scratch, &mut output), Err(RunError::Shape));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run(
        &self,
        active: &[f64],
        inactive: &[f64],
        scratch: &mut Vec<f64>,
        outputs: &mut [f64],
    ) -> Result<(), RunError> {
        let needed = self.code.sizes().scratch;
        if scratch.len() < needed {
            scratch.resize(needed, 0.0);
        }
        self.code.run(active, inactive, &self.constants, &mut scratch[..needed], outputs)
    }

    /// The number of spilled and saved values: the length of `scratch` for which
    /// [`Kernel::run`] does not allocate.
    pub fn scratch_len(&self) -> usize {
        self.code.sizes().scratch
    }

    /// The number of outputs, which is the length of their slice.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1 v0\n";
    /// let kernel = phigrad::internals::jit::compile(&phigrad::internals::ssa::parse(text)?)?;
    /// assert_eq!(kernel.outputs(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn outputs(&self) -> usize {
        self.code.sizes().outputs
    }

    /// The size of the code in bytes, without the constants, whose number grows with the
    /// tables that loops read.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n";
    /// let kernel = phigrad::internals::jit::compile(&phigrad::internals::ssa::parse(text)?)?;
    /// assert!(kernel.code_bytes() > 0 && kernel.code_bytes() <= kernel.bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// The size of code and constants in bytes.
    pub fn bytes(&self) -> usize {
        self.code_bytes + self.constants.len() * size_of::<f64>()
    }
}
