//! Native code: maps a graph to a [`Kernel`]. The order of its passes is
//! decided here: schedule, plan, lower, finalise.

mod code;
mod kernel;
mod lower;
mod math;
mod plan;
mod schedule;

use std::sync::{Arc, OnceLock};

use cranelift_codegen::ir::types::F64;
use cranelift_codegen::ir::{AbiParam, FuncRef};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use hashbrown::HashMap;

use crate::op::Op;
use crate::ssa::Graph;
use math::{Lowering, lowering};

pub use kernel::{Kernel, Unseen};
pub use math::host_fuses;

/// Why a graph was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// There is no native code for this host.
    #[error("this host has no native compiler: {reason}")]
    Host {
        /// What the compiler says.
        reason: String,
    },
    /// The code generator failed.
    #[error("the code generator failed: {reason}")]
    Generator {
        /// What the code generator says.
        reason: String,
    },
}

/// Compiles `graph` for this host.
///
/// The kernel's outputs are the bits that the interpreter computes from the
/// same graph. Compile time is linear in the size of the graph.
///
/// # Errors
///
/// See [`CompileError`].
///
/// # Examples
///
/// ```
/// let graph =
///     phigrad::ssa::parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// let kernel = phigrad::jit::compile(&graph)?;
/// let mut output = [0.0];
/// kernel.run(&[2.0, 3.0], &[], &mut Vec::new(), &mut output)?;
/// assert_eq!(output, [6.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compile(graph: &Graph) -> Result<Kernel, CompileError> {
    let schedule = schedule::schedule(graph);
    let plan = plan::plan(graph, &schedule);
    let mut builder = JITBuilder::with_isa(host_isa()?, default_libcall_names());
    for &op in Op::ALL {
        if let Some(address) = address(op) {
            builder.symbol(symbol(op), address);
        }
    }
    let mut module = JITModule::new(builder);
    match generate(graph, &plan, &mut module) {
        Ok((functions, bytes)) => {
            let addresses: Vec<*const u8> =
                functions.iter().map(|&id| module.get_finalized_function(id)).collect();
            // SAFETY: `generate` defined each function by `lower` from this plan
            // and finalised it in this module.
            let code = unsafe { code::Code::new(module, &addresses) };
            Ok(Kernel {
                code,
                constants: plan.constants,
                scratch: plan.slots,
                active: graph.active,
                inactive: graph.inactive,
                outputs: graph.outputs(),
                bytes,
            })
        }
        Err(error) => {
            code::free(module);
            Err(CompileError::Generator { reason: error.to_string() })
        }
    }
}

/// Defines one function for each chunk, in order, and finalises them.
fn generate(
    graph: &Graph,
    plan: &plan::Plan,
    module: &mut JITModule,
) -> Result<(Vec<FuncId>, usize), Box<ModuleError>> {
    let signature = lower::signature(module);
    let frontend = module.target_config();
    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let mut imported: HashMap<Op, FuncId> = HashMap::new();
    let mut values = lower::Values::default();
    let mut functions = Vec::with_capacity(plan.chunks.len());
    let mut bytes = 0;
    for chunk in &plan.chunks {
        context.func.signature = signature.clone();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
        let mut references: HashMap<Op, FuncRef> = HashMap::new();
        let mut failure = None;
        let mut import = |builder: &mut FunctionBuilder<'_>, op: Op, arity: usize| {
            *references.entry(op).or_insert_with(|| {
                let id = import_function(module, &mut imported, op, arity);
                let id = id.unwrap_or_else(|error| {
                    failure = Some(error);
                    FuncId::from_u32(0)
                });
                module.declare_func_in_func(id, builder.func)
            })
        };
        lower::lower(graph, chunk, &mut builder, &mut import, &mut values);
        if let Some(error) = failure {
            return Err(error);
        }
        builder.finalize(frontend);
        let id = module.declare_anonymous_function(&signature)?;
        module.define_function(id, &mut context)?;
        bytes += context.compiled_code().map_or(0, |code| code.buffer.data().len());
        module.clear_context(&mut context);
        functions.push(id);
    }
    module.finalize_definitions()?;
    Ok((functions, bytes))
}

fn import_function(
    module: &mut JITModule,
    imported: &mut HashMap<Op, FuncId>,
    op: Op,
    arity: usize,
) -> Result<FuncId, Box<ModuleError>> {
    if let Some(&id) = imported.get(&op) {
        return Ok(id);
    }
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(F64); arity];
    signature.returns = vec![AbiParam::new(F64)];
    let id = module.declare_function(&symbol(op), Linkage::Import, &signature)?;
    imported.insert(op, id);
    Ok(id)
}

fn symbol(op: Op) -> String {
    format!("phigrad_{}", op.name())
}

/// The address of the function that `op` calls, if it is a call.
fn address(op: Op) -> Option<*const u8> {
    match lowering(op) {
        Lowering::Instructions => None,
        Lowering::Call1(function) => Some(function as *const u8),
        Lowering::Call2(function) => Some(function as *const u8),
        Lowering::Call3(function) => Some(function as *const u8),
    }
}

/// The description of this host; a fact that does not change while we run.
fn host_isa() -> Result<Arc<dyn TargetIsa>, CompileError> {
    static HOST: OnceLock<Result<Arc<dyn TargetIsa>, String>> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let mut flags = settings::builder();
        let options = [
            // The plan does what the optimiser would; the graph is simplified.
            ("opt_level", "none"),
            ("regalloc_algorithm", "backtracking"),
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
