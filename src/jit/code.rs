//! Code memory: the only file with `unsafe` code.
//!
//! [`Code`] owns the pages of the native functions. It is made
//! from [`Generated`] alone, which vouches that `flow` compiled the functions,
//! for buffers of the recorded sizes, and [`Code::run`] checks those sizes
//! before it calls them. All accesses in loops are inside the buffers for any input, because
//! the verifier has checked the range of each access; see `layout`.

use core::fmt;
use core::mem::transmute;
use core::slice::{from_raw_parts, from_raw_parts_mut};
use std::io;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut};

use super::flow::Status;
use super::generate::Generated;
use super::kernel::{RunError, Sizes};
use crate::numeric::Routine;

/// A native function; see `flow` for the meaning of the parameters.
type NativeFn =
    unsafe extern "C" fn(*const f64, *const f64, *const f64, *mut f64, *mut f64, u32) -> u32;

/// Runs a routine on operands and results in the scratch buffer.
type RunRoutine = unsafe extern "C" fn(*const Routine, *const f64, *mut f64, u32);

/// The address of `run_routine`, which native code calls.
pub(super) const RUN: RunRoutine = run_routine;

/// # Safety
///
/// `routine` is alive; `args` points to as many numbers as it has inputs, `results` to room for
/// its results, and the two do not overlap.
unsafe extern "C" fn run_routine(
    routine: *const Routine,
    args: *const f64,
    results: *mut f64,
    partials: u32,
) {
    // SAFETY: `lower` compiled the caller. The kernel that owns the code owns its routines, whose
    // lengths never change, also those of custom operations: `Custom` asks for them once. `layout`
    // has allocated words for all operands and results of each call.
    let (routine, args, results) = unsafe {
        let routine = &*routine;
        let results = from_raw_parts_mut(results, routine.results());
        (routine, from_raw_parts(args, routine.inputs()), results)
    };
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the host has the feature.
        unsafe { run_with_fma(routine, args, results, partials != 0) };
        return;
    }
    routine.run(args, partials != 0, results);
}

/// As `run_routine`, with fused multiply-add instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma")]
fn run_with_fma(routine: &Routine, args: &[f64], results: &mut [f64], partials: bool) {
    routine.run_inlined(args, partials, results);
}

/// Native functions and the pages that they live in.
pub(super) struct Code {
    /// The function of each entry; one that has several is there several times.
    entries: Vec<NativeFn>,
    sizes: Sizes,
    /// The routines that the functions have pointers to.
    _routines: Vec<Arc<Routine>>,
    /// The pages of the functions, which are unmapped when it is dropped.
    _pages: Mmap,
}

impl Code {
    /// Maps pages for what was generated, which can be written first and executed afterwards.
    pub(super) fn new(generated: Generated) -> io::Result<Self> {
        let (code, offsets, sizes, routines) = generated.into_parts();
        let mut pages = MmapMut::map_anon(code.len())?;
        pages.copy_from_slice(&code);
        synchronise(&pages)?;
        let pages = pages.make_exec()?;
        let entries = offsets.into_iter().map(|offset| {
            let address = pages[offset..].as_ptr();
            // SAFETY: `Generated` vouches that the code of a function that `flow` compiled begins
            // there, and `flow` gives all this signature.
            unsafe { transmute::<*const u8, NativeFn>(address) }
        });
        Ok(Code { entries: entries.collect(), sizes, _routines: routines, _pages: pages })
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Calls functions until one is done or takes a side exit.
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
        let mut entry = 0;
        loop {
            let function = self.entries[entry as usize];
            // SAFETY: `flow` compiled the function (contract of `Generated`).
            // From each of its entries it reads and writes only inside these
            // buffers, whose sizes have been checked, and it does not unwind.
            // The pages live as long as `self._pages`.
            let word = unsafe {
                function(
                    active.as_ptr(),
                    inactive.as_ptr(),
                    constants.as_ptr(),
                    scratch.as_mut_ptr(),
                    outputs.as_mut_ptr(),
                    entry,
                )
            };
            match Status::of(word) {
                Status::Done => return Ok(()),
                Status::SideExit => return Err(RunError::SideExit),
                Status::Entry(number) => entry = number,
            }
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// Makes the instruction caches of all processors see `code`; those of x86-64 do by themselves.
#[cfg(target_arch = "x86_64")]
fn synchronise(_code: &[u8]) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn synchronise(code: &[u8]) -> io::Result<()> {
    // SAFETY: the range is that of a slice, and the pipelines are flushed afterwards.
    unsafe {
        wasmtime_internal_jit_icache_coherence::clear_cache(code.as_ptr().cast(), code.len())
    }?;
    wasmtime_internal_jit_icache_coherence::pipeline_flush_mt()
}
