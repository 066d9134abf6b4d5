//! Generation: a plan to native functions in a module, one for each chunk.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::F64;
use cranelift_codegen::ir::{AbiParam, FuncRef};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};

use super::code;
use super::lower::{self, Values};
use super::math::{Lowering, lowering};
use super::plan::{Chunk, Plan};
use crate::op::Op;
use crate::ssa::Graph;

/// Finalised native functions with what they were compiled for. Only
/// [`generate`] makes one, so to hold it is to know that `lower` made the code.
pub(super) struct Generated {
    module: JITModule,
    functions: Vec<FuncId>,
    sizes: Sizes,
    bytes: usize,
}

/// The sizes of the buffers that the functions read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) active: usize,
    pub(super) inactive: usize,
    pub(super) constants: usize,
    pub(super) scratch: usize,
    pub(super) outputs: usize,
}

impl Generated {
    pub(super) fn into_parts(self) -> (JITModule, Vec<FuncId>, Sizes) {
        (self.module, self.functions, self.sizes)
    }

    /// The size of the code in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Generates the code of `plan`, which was made for `graph`.
pub(super) fn generate(
    graph: &Graph,
    plan: &Plan,
    isa: Arc<dyn TargetIsa>,
) -> Result<Generated, Box<ModuleError>> {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for &op in Op::ALL {
        if let Some(address) = address(op) {
            builder.symbol(symbol(op), address);
        }
    }
    let mut generator = Generator::new(JITModule::new(builder), graph);
    match generator.define(&plan.chunks) {
        Ok(functions) => {
            let sizes = Sizes {
                active: graph.active,
                inactive: graph.inactive,
                constants: plan.constants.len(),
                scratch: plan.slots,
                outputs: graph.outputs(),
            };
            let Generator { module, bytes, .. } = generator;
            Ok(Generated { module, functions, sizes, bytes })
        }
        Err(error) => {
            code::free(generator.module);
            Err(error)
        }
    }
}

struct Generator<'a> {
    graph: &'a Graph,
    module: JITModule,
    context: Context,
    frontend: FunctionBuilderContext,
    values: Values,
    /// The imported function of each primitive that is a call, by its number.
    imported: Vec<Option<FuncId>>,
    bytes: usize,
}

impl<'a> Generator<'a> {
    fn new(module: JITModule, graph: &'a Graph) -> Self {
        Generator {
            graph,
            context: module.make_context(),
            module,
            frontend: FunctionBuilderContext::new(),
            values: Values::new(graph),
            imported: vec![None; Op::ALL.len()],
            bytes: 0,
        }
    }

    /// Defines one function for each chunk, in order, and finalises them.
    fn define(&mut self, chunks: &[Chunk]) -> Result<Vec<FuncId>, Box<ModuleError>> {
        let functions: Result<Vec<FuncId>, _> =
            chunks.iter().map(|chunk| self.define_chunk(chunk)).collect();
        self.module.finalize_definitions()?;
        functions
    }

    fn define_chunk(&mut self, chunk: &Chunk) -> Result<FuncId, Box<ModuleError>> {
        let Generator { graph, module, context, frontend, values, imported, .. } = self;
        let signature = lower::signature(module);
        context.func.signature = signature.clone();
        let target = module.target_config();
        let mut builder = FunctionBuilder::new(&mut context.func, frontend);
        let mut references: Vec<Option<FuncRef>> = vec![None; Op::ALL.len()];
        let mut failure = None;
        let mut import = |builder: &mut FunctionBuilder<'_>, op: Op, arity: usize| {
            *references[op as usize].get_or_insert_with(|| {
                let id = import_function(module, &mut imported[op as usize], op, arity);
                let id = id.unwrap_or_else(|error| {
                    failure = Some(error);
                    FuncId::from_u32(0)
                });
                module.declare_func_in_func(id, builder.func)
            })
        };
        lower::lower(graph, chunk, &mut builder, &mut import, values);
        if let Some(error) = failure {
            return Err(error);
        }
        builder.finalize(target);
        let id = module.declare_anonymous_function(&signature)?;
        module.define_function(id, context)?;
        self.bytes += context.compiled_code().map_or(0, |code| code.buffer.data().len());
        module.clear_context(context);
        Ok(id)
    }
}

fn import_function(
    module: &mut JITModule,
    imported: &mut Option<FuncId>,
    op: Op,
    arity: usize,
) -> Result<FuncId, Box<ModuleError>> {
    if let Some(id) = *imported {
        return Ok(id);
    }
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(F64); arity];
    signature.returns = vec![AbiParam::new(F64)];
    let id = module.declare_function(&symbol(op), Linkage::Import, &signature)?;
    *imported = Some(id);
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
