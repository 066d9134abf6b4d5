//! Code memory: the only file with `unsafe` code.
//!
//! [`Code`] owns the module whose pages hold the native functions. Its contract
//! is that only functions with the signature of a chunk, made by `lower`, are
//! put into it, and that `call` gives them buffers of the sizes that they were
//! compiled for.

use core::fmt;
use core::mem::{ManuallyDrop, transmute};

use cranelift_jit::JITModule;

/// A chunk of native code; see `lower` for the meaning of the parameters.
type ChunkFn = unsafe extern "C" fn(*const f64, *const f64, *const f64, *mut f64, *mut f64) -> u32;

/// Native functions and the pages that they live in.
pub(super) struct Code {
    module: ManuallyDrop<JITModule>,
    chunks: Vec<ChunkFn>,
}

impl Code {
    /// Takes over a finalised module and the addresses of its chunks.
    ///
    /// # Safety
    ///
    /// Each address must be of a finalised function of `module` that was
    /// compiled by `lower`, all from one plan.
    pub(super) unsafe fn new(module: JITModule, chunks: &[*const u8]) -> Self {
        let chunks = chunks
            .iter()
            // SAFETY: the caller vouches that these are functions of this type.
            .map(|&address| unsafe { transmute::<*const u8, ChunkFn>(address) })
            .collect();
        Code { module: ManuallyDrop::new(module), chunks }
    }

    /// Calls chunk number `chunk` and returns the number of the next.
    ///
    /// The kernel has checked that the buffers have the sizes of the plan.
    #[inline]
    pub(super) fn call(
        &self,
        chunk: u32,
        active: &[f64],
        inactive: &[f64],
        constants: &[f64],
        scratch: &mut [f64],
        outputs: &mut [f64],
    ) -> u32 {
        let function = self.chunks[chunk as usize];
        // SAFETY: the function was compiled by `lower` (contract of `new`). It
        // reads and writes only inside these buffers, whose sizes the kernel
        // has checked against the plan, and it does not unwind.
        unsafe {
            function(
                active.as_ptr(),
                inactive.as_ptr(),
                constants.as_ptr(),
                scratch.as_mut_ptr(),
                outputs.as_mut_ptr(),
            )
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
// the functions read the buffers that they are given and no other state.
unsafe impl Send for Code {}
// SAFETY: as above; `call` takes `&self` and changes nothing in it.
unsafe impl Sync for Code {}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("chunks", &self.chunks.len()).finish_non_exhaustive()
    }
}
