//! Native code by Cranelift, for the host.

use std::sync::{Arc, OnceLock};

use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};

pub(super) use super::code::Code;
use super::generate::generate;
use super::plan::Plan;
use super::{Allocator, CompileError, Lanes, Schedule};

/// The code of `plan`, which was made for `schedule`, and its size in bytes.
pub(super) fn compile(
    schedule: &Schedule<'_>,
    plan: &Plan,
    (allocator, lanes): (Allocator, Lanes),
) -> Result<(Code, usize), CompileError> {
    let generated = generate(schedule, plan, lanes, &*host_isa(allocator)?)
        .map_err(|reason| CompileError::Generator { reason })?;
    let bytes = generated.bytes();
    let code = Code::new(generated).map_err(|error| CompileError::Generator {
        reason: format!("no executable pages: {error}"),
    })?;
    Ok((code, bytes))
}

/// An error if kernels cannot be compiled on this host.
pub(crate) fn require_host() -> Result<(), CompileError> {
    host_isa(Allocator::Backtracking).map(drop)
}

/// The instruction set of this host, which is constant, with an allocator.
fn host_isa(allocator: Allocator) -> Result<Arc<dyn TargetIsa>, CompileError> {
    type Host = OnceLock<Result<Arc<dyn TargetIsa>, String>>;
    static HOSTS: [Host; 2] = [const { Host::new() }; 2];
    let host = HOSTS[allocator as usize].get_or_init(|| {
        let mut flags = settings::builder();
        let options = [
            // The graph is simplified, and the plan has assigned registers.
            ("opt_level", "none"),
            ("regalloc_algorithm", allocator.name()),
            ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
            ("unwind_info", "false"),
            ("is_pic", "false"),
        ];
        for (name, value) in options {
            flags.set(name, value).map_err(|error| error.to_string())?;
        }
        let isa = cranelift_native::builder()?;
        isa.finish(settings::Flags::new(flags)).map_err(|error| error.to_string())
    });
    host.clone().map_err(|reason| CompileError::Host { reason })
}

impl Allocator {
    /// The name of the setting of Cranelift.
    fn name(self) -> &'static str {
        match self {
            Allocator::Backtracking => "backtracking",
            Allocator::SinglePass => "single_pass",
        }
    }
}
