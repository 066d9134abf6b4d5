//! The kernel: native code with its data, an owning and safe value.

use super::code::Code;
use super::lower::{DONE, UNSEEN};

/// Stopped at a guard: the inputs take a path that the kernel does not know.
/// No result was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the inputs take a path that the kernel does not know")]
pub struct Unseen;

/// A graph as native code.
///
/// It owns its pages and frees them when dropped; they are never writable and
/// executable at once. It may be used by many threads at once.
#[derive(Debug)]
pub struct Kernel {
    pub(super) code: Code,
    pub(super) constants: Vec<f64>,
    pub(super) scratch: usize,
    pub(super) active: usize,
    pub(super) inactive: usize,
    pub(super) outputs: usize,
    pub(super) bytes: usize,
}

impl Kernel {
    /// Runs the code. `scratch` is grown to [`Kernel::scratch_len`] and may be
    /// reused between kernels.
    ///
    /// # Errors
    ///
    /// [`Unseen`] when a guard failed; `outputs` may then be partly written.
    /// Also when a slice is shorter than the kernel needs, which is a bug in
    /// the caller and fails an assertion in debug builds.
    pub fn run(
        &self,
        active: &[f64],
        inactive: &[f64],
        scratch: &mut Vec<f64>,
        outputs: &mut [f64],
    ) -> Result<(), Unseen> {
        let fits = active.len() == self.active
            && inactive.len() == self.inactive
            && outputs.len() == self.outputs;
        debug_assert!(fits, "the slices do not fit the kernel");
        if !fits {
            return Err(Unseen);
        }
        if scratch.len() < self.scratch {
            scratch.resize(self.scratch, 0.0);
        }
        let mut chunk = 0;
        loop {
            chunk = self.code.call(chunk, active, inactive, &self.constants, scratch, outputs);
            match chunk {
                DONE => return Ok(()),
                UNSEEN => return Err(Unseen),
                _ => {}
            }
        }
    }

    /// The number of values that do not fit into registers.
    pub fn scratch_len(&self) -> usize {
        self.scratch
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The size of code and constants in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes + self.constants.len() * size_of::<f64>()
    }
}
