//! Code memory: the only file with `unsafe` code.
//!
//! [`Code`] owns the module whose pages hold the native functions. It is made
//! from [`Generated`] alone, which vouches that `lower` compiled the functions,
//! for buffers of the recorded sizes, and [`Code::run`] checks those sizes
//! before it calls them.

use core::fmt;
use core::mem::{ManuallyDrop, transmute};

use cranelift_jit::JITModule;

use super::generate::{Generated, Sizes};
use super::kernel::RunError;
use super::lower::{DONE, UNSEEN};

/// A chunk of native code; see `lower` for the meaning of the parameters.
type ChunkFn = unsafe extern "C" fn(*const f64, *const f64, *const f64, *mut f64, *mut f64) -> u32;

/// Native functions and the pages that they live in.
pub(super) struct Code {
    module: ManuallyDrop<JITModule>,
    chunks: Vec<ChunkFn>,
    sizes: Sizes,
}

impl Code {
    /// Takes over what was generated.
    pub(super) fn new(generated: Generated) -> Self {
        let (module, functions, sizes) = generated.into_parts();
        let chunks = functions
            .into_iter()
            .map(|id| {
                let address = module.get_finalized_function(id);
                // SAFETY: `Generated` vouches that this is a finalised function
                // that `lower` compiled, and `lower` gives all this signature.
                unsafe { transmute::<*const u8, ChunkFn>(address) }
            })
            .collect();
        Code { module: ManuallyDrop::new(module), chunks, sizes }
    }

    /// What the functions were compiled for.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Runs chunk after chunk to the end.
    pub(super) fn run(
        &self,
        active: &[f64],
        inactive: &[f64],
        constants: &[f64],
        scratch: &mut [f64],
        outputs: &mut [f64],
    ) -> Result<(), RunError> {
        let found = Sizes {
            active: active.len(),
            inactive: inactive.len(),
            constants: constants.len(),
            scratch: scratch.len(),
            outputs: outputs.len(),
        };
        if found != self.sizes {
            return Err(RunError::Shape);
        }
        let mut chunk = 0;
        loop {
            let function = self.chunks[chunk as usize];
            // SAFETY: `lower` compiled the function (contract of `Generated`).
            // It reads and writes only inside these buffers, whose sizes have
            // been checked, and it does not unwind. The pages live as long as
            // `self.module`.
            chunk = unsafe {
                function(
                    active.as_ptr(),
                    inactive.as_ptr(),
                    constants.as_ptr(),
                    scratch.as_mut_ptr(),
                    outputs.as_mut_ptr(),
                )
            };
            match chunk {
                DONE => return Ok(()),
                UNSEEN => return Err(RunError::Unseen),
                _ => {}
            }
        }
    }
}

/// Frees a module that was not put into use.
pub(super) fn free(module: JITModule) {
    // SAFETY: no address of a function of the module was ever given out.
    unsafe { module.free_memory() }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped, so nobody calls the functions any
        // more, and the module is not used after it is taken out here.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() }
    }
}

// SAFETY: after it was finalised the module is only freed, by the one owner;
// the functions touch the buffers that they are given and no other state.
unsafe impl Send for Code {}
// SAFETY: as above; `run` takes `&self` and changes nothing in it.
unsafe impl Sync for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}
