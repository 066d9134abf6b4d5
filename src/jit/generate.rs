//! Generation: a plan to machine code.

use core::ops::Range;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Value;
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::flow::{self, Entries};
use super::kernel::Sizes;
use super::layout::Layout;
use super::lower::{Lowering, Signatures, Values};
use super::memory::{Counters, Pointers};
use super::plan::Plan;
use super::{Lanes, Schedule};
use crate::numeric::Routine;
use crate::ssa::Graph;

/// Machine code with the buffer sizes that it was compiled for. Only [`generate`] makes a value of
/// this type, so it proves that `flow` made the code.
pub(super) struct Generated {
    code: Vec<u8>,
    /// The offset of the function of each entry.
    entries: Vec<usize>,
    sizes: Sizes,
    /// The routines that the functions call, which must outlive them.
    routines: Vec<Arc<Routine>>,
}

impl Generated {
    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<usize>, Sizes, Vec<Arc<Routine>>) {
        (self.code, self.entries, self.sizes, self.routines)
    }

    /// The size of the code in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.code.len()
    }
}

/// Generates the code of `plan`, which was made for `schedule`. The error is the message of the
/// code generator.
pub(super) fn generate(
    schedule: &Schedule<'_>,
    plan: &Plan,
    lanes: Lanes,
    isa: &dyn TargetIsa,
) -> Result<Generated, String> {
    let Schedule { graph, layout, .. } = schedule;
    let mut generator = Generator {
        graph,
        layout,
        lanes,
        isa,
        context: Context::new(),
        frontend: FunctionBuilderContext::new(),
        values: Values::new(graph),
        code: Vec::new(),
    };
    let entries = generator.define(plan)?;
    let sizes = Sizes {
        active: graph.active * lanes.count(),
        inactive: graph.inactive * lanes.count(),
        constants: plan.constants.len() * lanes.count(),
        scratch: (layout.words as usize + plan.slots) * lanes.count(),
        outputs: graph.outputs() * lanes.count(),
    };
    let routines = graph.calls.values().map(|call| Arc::clone(&call.routine)).collect();
    Ok(Generated { code: generator.code, entries, sizes, routines })
}

struct Generator<'a> {
    graph: &'a Graph,
    layout: &'a Layout,
    lanes: Lanes,
    isa: &'a dyn TargetIsa,
    context: Context,
    frontend: FunctionBuilderContext,
    values: Values,
    code: Vec<u8>,
}

impl Generator<'_> {
    /// Compiles the functions of `plan` one after another. Returns the offset of the function of
    /// each entry.
    fn define(&mut self, plan: &Plan) -> Result<Vec<usize>, String> {
        let entries = Entries::of(plan);
        let mut of_entries = Vec::new();
        let ends = plan.functions.iter().skip(1).copied().chain([plan.blocks.len()]);
        for (&start, end) in plan.functions.iter().zip(ends) {
            let offset = self.define_function(plan, start..end, &entries)?;
            of_entries.extend(entries.within(start..end).map(|_| offset));
        }
        Ok(of_entries)
    }

    fn define_function(
        &mut self,
        plan: &Plan,
        blocks: Range<usize>,
        entries: &Entries,
    ) -> Result<usize, String> {
        let context = &mut self.context;
        context.func.signature = flow::signature(self.isa);
        let mut builder = FunctionBuilder::new(&mut context.func, &mut self.frontend);
        let lowering = Lowering {
            graph: self.graph,
            layout: self.layout,
            buffers: [Value::from_u32(0); 5],
            lanes: self.lanes,
            builder: &mut builder,
            signatures: Signatures::new(self.isa),
            values: &mut self.values,
            failed: None,
            pointers: Pointers::default(),
            counters: Counters::new(plan.functions.len() > 1),
            pairs: None,
        };
        flow::lower(lowering, plan, blocks, entries);
        builder.finalize(self.isa.frontend_config());
        let compiled = context.compile(self.isa, &mut ControlPlane::default());
        let buffer = &compiled.map_err(|error| error.inner.to_string())?.buffer;
        if !buffer.relocs().is_empty() {
            return Err("the code refers to symbols".to_owned());
        }
        let least = self.isa.function_alignment().minimum.max(buffer.alignment);
        let alignment = u64::from(least).max(self.isa.symbol_alignment());
        let offset = self.code.len().next_multiple_of(alignment as usize);
        self.code.resize(offset, 0);
        self.code.extend_from_slice(buffer.data());
        context.clear();
        Ok(offset)
    }
}
