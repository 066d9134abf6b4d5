//! Generation: a plan to native functions in a module.

use core::ops::Range;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::ir::types::{F64, I32};
use cranelift_codegen::ir::{AbiParam, FuncRef, Value};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};

use super::Schedule;
use super::code::{CodeMemory, RUN};
use super::flow::{self, Entries};
use super::layout::Layout;
use super::lower::{Lowering, Values};
use super::math::{Function, is_call};
use super::memory::Pointers;
use super::plan::{BasicBlock, Plan, Step};
use crate::numeric::Routine;
use crate::op::Op;
use crate::ssa::{Def, Graph};

/// Finalised native functions with the buffer sizes that they were compiled for. Only
/// [`generate`] makes a value of this type, so it proves that `flow` made the code.
pub(super) struct Generated {
    memory: CodeMemory,
    /// The function of each entry.
    entries: Vec<FuncId>,
    sizes: Sizes,
    /// The routines that the functions call, which must outlive them.
    routines: Vec<Arc<Routine>>,
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
    pub(super) fn into_parts(self) -> (CodeMemory, Vec<FuncId>, Sizes, Vec<Arc<Routine>>) {
        (self.memory, self.entries, self.sizes, self.routines)
    }

    /// The size of the code in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Generates the code of `plan`, which was made for `schedule`.
pub(super) fn generate(
    schedule: &Schedule<'_>,
    plan: &Plan,
    isa: Arc<dyn TargetIsa>,
) -> Result<Generated, Box<ModuleError>> {
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    for &op in Op::ALL.iter().filter(|&&op| is_call(op)) {
        builder.symbol(symbol(op), Function::of(op).address());
    }
    builder.symbol(RUN_ROUTINE, RUN as *const u8);
    let Schedule { graph, layout, .. } = schedule;
    let mut generator = Generator::new(CodeMemory::new(JITModule::new(builder)), schedule);
    let entries = generator.define(plan)?;
    let sizes = Sizes {
        active: graph.active,
        inactive: graph.inactive,
        constants: plan.constants.len(),
        scratch: layout.words as usize + plan.slots,
        outputs: graph.outputs(),
    };
    let Generator { memory, bytes, .. } = generator;
    let routines = graph.calls.values().map(|call| Arc::clone(&call.routine)).collect();
    Ok(Generated { memory, entries, sizes, routines, bytes })
}

struct Generator<'a> {
    graph: &'a Graph,
    layout: &'a Layout,
    memory: CodeMemory,
    context: Context,
    frontend: FunctionBuilderContext,
    values: Values,
    /// The imported function of each primitive that is a call, by its number.
    imported: Vec<Option<FuncId>>,
    /// The imported function that runs routines.
    routine: Option<FuncId>,
    bytes: usize,
}

impl<'a> Generator<'a> {
    fn new(memory: CodeMemory, schedule: &'a Schedule<'_>) -> Self {
        let graph = schedule.graph;
        Generator {
            graph,
            layout: &schedule.layout,
            context: memory.module().make_context(),
            memory,
            frontend: FunctionBuilderContext::new(),
            values: Values::new(graph),
            imported: vec![None; Op::ALL.len()],
            routine: None,
            bytes: 0,
        }
    }

    /// Defines the functions of `plan` and finalises them. Returns the function
    /// of each entry.
    fn define(&mut self, plan: &Plan) -> Result<Vec<FuncId>, Box<ModuleError>> {
        let entries = Entries::of(plan);
        let mut of_entries = Vec::new();
        let ends = plan.functions.iter().skip(1).copied().chain([plan.blocks.len()]);
        for (&start, end) in plan.functions.iter().zip(ends) {
            let id = self.define_function(plan, start..end, &entries)?;
            of_entries.extend(entries.within(start..end).map(|_| id));
        }
        self.memory.module_mut().finalize_definitions()?;
        Ok(of_entries)
    }

    fn define_function(
        &mut self,
        plan: &Plan,
        blocks: Range<usize>,
        entries: &Entries,
    ) -> Result<FuncId, Box<ModuleError>> {
        let references = self.import_calls(&plan.blocks[blocks.clone()])?;
        let routine = self.import_routine(&plan.blocks[blocks.clone()])?;
        let module = self.memory.module_mut();
        let context = &mut self.context;
        let signature = flow::signature(module);
        context.func.signature = signature.clone();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut self.frontend);
        let lowering = Lowering {
            graph: self.graph,
            layout: self.layout,
            buffers: [Value::from_u32(0); 5],
            builder: &mut builder,
            functions: &references,
            routine,
            values: &mut self.values,
            failed: None,
            pointers: Pointers::default(),
        };
        flow::lower(lowering, plan, blocks, entries);
        builder.finalize(module.target_config());
        let id = module.declare_anonymous_function(&signature)?;
        module.define_function(id, context)?;
        self.bytes += context.compiled_code().map_or(0, |code| code.buffer.data().len());
        module.clear_context(context);
        Ok(id)
    }

    /// Imports the function that runs routines, if `blocks` call one.
    fn import_routine(
        &mut self,
        blocks: &[BasicBlock],
    ) -> Result<Option<FuncRef>, Box<ModuleError>> {
        let is_call = |step: &Step| match *step {
            Step::Compute(node) => matches!(self.graph.nodes[node].def, Def::Call(_)),
            _ => false,
        };
        if !blocks.iter().flat_map(|block| &block.steps).any(is_call) {
            return Ok(None);
        }
        let module = self.memory.module_mut();
        let id = match self.routine {
            Some(id) => id,
            None => {
                let pointer = AbiParam::new(module.target_config().pointer_type());
                let mut signature = module.make_signature();
                signature.params = vec![pointer, pointer, pointer, AbiParam::new(I32)];
                module.declare_function(RUN_ROUTINE, Linkage::Import, &signature)?
            }
        };
        self.routine = Some(id);
        Ok(Some(module.declare_func_in_func(id, &mut self.context.func)))
    }

    /// Imports the functions that `blocks` call.
    fn import_calls(
        &mut self,
        blocks: &[BasicBlock],
    ) -> Result<Vec<Option<FuncRef>>, Box<ModuleError>> {
        let mut references = vec![None; Op::ALL.len()];
        for step in blocks.iter().flat_map(|block| &block.steps) {
            let Step::Compute(node) = *step else { continue };
            let Def::Apply(op, _) = self.graph.nodes[node].def else { continue };
            if references[op as usize].is_none() && is_call(op) {
                let module = self.memory.module_mut();
                let id = import_function(module, &mut self.imported[op as usize], op)?;
                let reference = module.declare_func_in_func(id, &mut self.context.func);
                references[op as usize] = Some(reference);
            }
        }
        Ok(references)
    }
}

/// The name of the function that runs routines.
const RUN_ROUTINE: &str = "phigrad_run_routine";

fn import_function(
    module: &mut JITModule,
    imported: &mut Option<FuncId>,
    op: Op,
) -> Result<FuncId, Box<ModuleError>> {
    if let Some(id) = *imported {
        return Ok(id);
    }
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(F64); op.arity()];
    signature.returns = vec![AbiParam::new(F64)];
    let id = module.declare_function(&symbol(op), Linkage::Import, &signature)?;
    *imported = Some(id);
    Ok(id)
}

fn symbol(op: Op) -> String {
    format!("phigrad_{}", op.name())
}
