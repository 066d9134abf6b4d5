//! The substitute for native code without the feature `jit`: the tape serves all calls.

use super::kernel::Sizes;
use super::plan::Plan;
use super::{Allocator, CompileError, Lanes, RunError, Schedule};

/// Code, of which there is none.
#[derive(Debug)]
pub(super) enum Code {}

impl Code {
    pub(super) fn sizes(&self) -> Sizes {
        match *self {}
    }

    pub(super) fn run(
        &self,
        _active: &[f64],
        _inactive: &[f64],
        _constants: &[f64],
        _scratch: &mut [f64],
        _outputs: &mut [f64],
    ) -> Result<(), RunError> {
        match *self {}
    }
}

pub(super) fn compile(
    _schedule: &Schedule<'_>,
    _plan: &Plan,
    _how: (Allocator, Lanes),
) -> Result<(Code, usize), CompileError> {
    Err(no_feature())
}

pub(crate) fn require_host() -> Result<(), CompileError> {
    Err(no_feature())
}

fn no_feature() -> CompileError {
    CompileError::Host { reason: "enable the feature `jit` of phigrad".to_owned() }
}
