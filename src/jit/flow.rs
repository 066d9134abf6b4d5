//! Control flow: the chunks of a function become blocks that jump to one
//! another, or leave for another function.
//!
//! A function has the C signature
//! `fn(active: *const f64, inactive: *const f64, constants: *const f64,
//! scratch: *mut f64, outputs: *mut f64, entry: u32) -> u32`.
//! Chunks that other functions go on to are entries, which have numbers. A
//! function is called with the number of one of its entries, and returns that of
//! the entry to go on with, [`DONE`] or [`UNSEEN`]. Everything that an entry
//! needs is in the buffers.

use core::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, I32};
use cranelift_codegen::ir::{self, AbiParam, BlockArg, InstBuilder, Signature, Value};
use cranelift_frontend::Switch;
use cranelift_module::Module;
use smallvec::SmallVec;

use super::lower::{Lowered, Lowering};
use super::plan::{Next, Plan};
use super::schedule::Test;
use crate::ssa::{Node, Region};

/// Returned by a function when the outputs are complete.
pub(super) const DONE: u32 = u32::MAX;
/// Returned by a function when a guard failed.
pub(super) const UNSEEN: u32 = u32::MAX - 1;

/// The signature of a function.
pub(super) fn signature(module: &impl Module) -> Signature {
    let pointer = AbiParam::new(module.target_config().pointer_type());
    let mut signature = module.make_signature();
    signature.params = vec![pointer; 5];
    signature.params.push(AbiParam::new(I32));
    signature.returns = vec![AbiParam::new(I32)];
    signature
}

/// The chunks that are entered from other functions, or first.
pub(super) struct Entries {
    /// Those chunks in order; the position of a chunk is its number as an entry.
    chunks: Vec<usize>,
}

impl Entries {
    pub(super) fn of(plan: &Plan) -> Self {
        let function = |chunk| plan.functions.partition_point(|&first| first <= chunk);
        let mut chunks = vec![0];
        for (index, chunk) in plan.chunks.iter().enumerate() {
            let targets: SmallVec<[usize; 2]> = match chunk.next {
                Next::Chunk(next, _) | Next::Again(_, next, _) => [next].into_iter().collect(),
                Next::Branch { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
                Next::Done => SmallVec::new(),
            };
            let here = function(index);
            chunks.extend(targets.into_iter().filter(|&target| function(target) != here));
        }
        chunks.sort_unstable();
        chunks.dedup();
        Entries { chunks }
    }

    /// The entries among these chunks: their numbers, and the chunks.
    pub(super) fn within(&self, range: Range<usize>) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = self.chunks.partition_point(|&chunk| chunk < range.start);
        let chunks = self.chunks[first..].iter().copied();
        (first as u32..).zip(chunks.take_while(move |&chunk| chunk < range.end))
    }

    fn number(&self, chunk: usize) -> u32 {
        self.chunks.partition_point(|&entry| entry < chunk) as u32
    }
}

/// Fills in the body of the function of these chunks.
pub(super) fn lower(
    lowering: Lowering<'_, '_>,
    plan: &Plan,
    chunks: Range<usize>,
    entries: &Entries,
) {
    let start = lowering.builder.create_block();
    lowering.builder.append_block_params_for_function_params(start);
    lowering.builder.switch_to_block(start);
    let mut parameters = [Value::from_u32(0); 6];
    parameters.copy_from_slice(lowering.builder.block_params(start));
    let [active, inactive, constants, scratch, outputs, entry] = parameters;
    let lowering =
        Lowering { buffers: [active, inactive, constants, scratch, outputs], ..lowering };
    let mut flow = Flow {
        lowering,
        entries,
        chunks: chunks.clone(),
        blocks: vec![],
        unseen: None,
        is_cold: false,
    };
    flow.make_blocks(plan, start, entry);
    flow.set_cold_blocks(plan, start);
    let mut marks = Vec::with_capacity(chunks.len());
    for (index, chunk) in plan.chunks[chunks.clone()].iter().enumerate() {
        // What is known there are the values after the chunk that this one
        // follows, which is before it on every way here.
        let mark = chunk.after.map_or(0, |after| marks[after - chunks.start]);
        flow.lowering.values.back_to(mark);
        let block = flow.blocks[index];
        if block != start {
            flow.lowering.builder.switch_to_block(block);
        }
        for (i, &phi) in chunk.parameters.iter().enumerate() {
            let value = flow.lowering.builder.block_params(block)[i];
            flow.lowering.values.insert(phi, Lowered::Number(value));
        }
        flow.lowering.pointers.clear();
        flow.is_cold = chunk.is_cold;
        for &step in &chunk.steps {
            flow.lowering.step(step);
        }
        flow.finish(&chunk.next);
        marks.push(flow.lowering.values.mark());
    }
    if let Some(block) = flow.unseen {
        flow.lowering.builder.switch_to_block(block);
        flow.leave(UNSEEN);
    }
    flow.lowering.values.back_to(0);
    flow.lowering.builder.seal_all_blocks();
}

/// Where a chunk goes on: in this function, or outside.
#[derive(Clone, Copy)]
enum Target {
    Block(ir::Block),
    /// The function returns this number.
    Outside(u32),
}

struct Flow<'a, 'b, 'f> {
    lowering: Lowering<'b, 'f>,
    entries: &'a Entries,
    chunks: Range<usize>,
    /// The block of each chunk.
    blocks: Vec<ir::Block>,
    /// The block that leaves because of a failed guard, if one is needed.
    unseen: Option<ir::Block>,
    /// Whether the current chunk is cold.
    is_cold: bool,
}

impl Flow<'_, '_, '_> {
    /// Sets the blocks cold that are hardly ever reached; a function begins with its `start`.
    fn set_cold_blocks(&mut self, plan: &Plan, start: ir::Block) {
        let chunks = &plan.chunks[self.chunks.clone()];
        for (chunk, &block) in chunks.iter().zip(&self.blocks) {
            if chunk.is_cold && block != start {
                self.lowering.builder.set_cold_block(block);
            }
        }
    }

    /// Makes a block for each chunk, and goes from the start to that of the
    /// entry that is wanted.
    fn make_blocks(&mut self, plan: &Plan, start: ir::Block, entry: Value) {
        let builder = &mut *self.lowering.builder;
        let numbered: Vec<(u32, usize)> = self.entries.within(self.chunks.clone()).collect();
        // Nothing in the function jumps to its first chunk, but for loops.
        let repeats =
            |next: &Next| matches!(next, Next::Again(_, to, _) if *to == self.chunks.start);
        let repeated = plan.chunks[self.chunks.clone()].iter().any(|chunk| repeats(&chunk.next));
        let only_first = numbered.len() == 1 && !repeated;
        for chunk in self.chunks.clone() {
            if only_first && chunk == self.chunks.start {
                self.blocks.push(start);
                continue;
            }
            let block = builder.create_block();
            for _ in &plan.chunks[chunk].parameters {
                builder.append_block_param(block, F64);
            }
            self.blocks.push(block);
        }
        if !only_first {
            let mut switch = Switch::new();
            for (number, chunk) in numbered {
                debug_assert!(plan.chunks[chunk].parameters.is_empty(), "all is in the buffers");
                switch.set_entry(number.into(), self.blocks[chunk - self.chunks.start]);
            }
            switch.emit(builder, entry, self.blocks[0]);
        }
    }

    fn target(&self, chunk: usize) -> Target {
        match chunk.checked_sub(self.chunks.start).and_then(|index| self.blocks.get(index)) {
            Some(&block) => Target::Block(block),
            None => Target::Outside(self.entries.number(chunk)),
        }
    }

    /// Goes on after a chunk, unless it has failed.
    fn finish(&mut self, next: &Next) {
        match *next {
            Next::Done => self.return_unless_failed(|flow| flow.number(DONE)),
            Next::Chunk(chunk, ref values) => match self.target(chunk) {
                Target::Outside(number) => self.return_unless_failed(|flow| flow.number(number)),
                Target::Block(block) => {
                    let args = self.arguments(values);
                    match self.lowering.failed.take() {
                        Some(failed) => {
                            let unseen = self.unseen();
                            let builder = &mut self.lowering.builder;
                            builder.ins().brif(failed, unseen, &[], block, &args);
                        }
                        None => {
                            self.lowering.builder.ins().jump(block, &args);
                        }
                    }
                }
            },
            Next::Again(region, header, ref values) => self.again(region, header, values),
            Next::Branch { test, then, otherwise } => {
                match (self.target(then), self.target(otherwise)) {
                    (Target::Outside(then), Target::Outside(otherwise)) => {
                        self.return_unless_failed(|flow| {
                            let holds = flow.test(test);
                            let (then, otherwise) = (flow.number(then), flow.number(otherwise));
                            flow.lowering.builder.ins().select(holds, then, otherwise)
                        });
                    }
                    (then, otherwise) => self.branch(test, then, otherwise),
                }
            }
        }
    }

    /// Goes on with the next iteration of `region`, unless there are too many.
    fn again(&mut self, region: Region, header: usize, values: &[Node]) {
        self.stop_if_failed();
        let replays = self.lowering.graph.regions[region].replays.is_some();
        let number = self.lowering.counter(region);
        let step = if replays { -1 } else { 1 };
        let number = self.lowering.builder.ins().iadd_imm_s(number, step);
        if let (Some(cycle), false) = (&self.lowering.graph.regions[region].cycle, replays) {
            let bound = i64::from(cycle.bound);
            let builder = &mut self.lowering.builder;
            let failed = builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, number, bound);
            self.stop_if(failed);
        }
        self.lowering.set_counter(region, number);
        match self.target(header) {
            Target::Outside(number) => self.leave(number),
            Target::Block(block) => {
                let args = self.arguments(values);
                self.lowering.builder.ins().jump(block, &args);
            }
        }
    }

    /// Whether the test holds, as an integer.
    fn test(&mut self, test: Test) -> Value {
        match test {
            Test::Node(condition) => self.lowering.truth(condition, true),
            Test::More(region) => {
                let number = self.lowering.counter(region);
                self.lowering.builder.ins().icmp_imm_s(IntCC::NotEqual, number, 0)
            }
        }
    }

    fn stop_if_failed(&mut self) {
        if let Some(failed) = self.lowering.failed.take() {
            self.stop_if(failed);
        }
    }

    /// Leaves if a guard has `failed`.
    fn stop_if(&mut self, failed: Value) {
        let leaves = self.unseen();
        let on = self.create_block();
        self.lowering.builder.ins().brif(failed, leaves, &[], on, &[]);
        self.lowering.builder.switch_to_block(on);
    }

    fn branch(&mut self, test: Test, then: Target, otherwise: Target) {
        self.stop_if_failed();
        let holds = self.test(test);
        let [(then, then_exit), (otherwise, otherwise_exit)] =
            [then, otherwise].map(|target| match target {
                Target::Block(block) => (block, None),
                Target::Outside(number) => (self.create_block(), Some(number)),
            });
        self.lowering.builder.ins().brif(holds, then, &[], otherwise, &[]);
        for (block, exit) in [(then, then_exit), (otherwise, otherwise_exit)] {
            if let Some(number) = exit {
                self.lowering.builder.switch_to_block(block);
                self.leave(number);
            }
        }
    }

    /// Makes a block that belongs to the current chunk.
    fn create_block(&mut self) -> ir::Block {
        let block = self.lowering.builder.create_block();
        if self.is_cold {
            self.lowering.builder.set_cold_block(block);
        }
        block
    }

    /// Returns what `next` makes, unless the chunk has failed.
    fn return_unless_failed(&mut self, next: impl FnOnce(&mut Self) -> Value) {
        let mut result = next(self);
        if let Some(failed) = self.lowering.failed.take() {
            let number = self.number(UNSEEN);
            result = self.lowering.builder.ins().select(failed, number, result);
        }
        self.lowering.builder.ins().return_(&[result]);
    }

    fn leave(&mut self, number: u32) {
        let number = self.number(number);
        self.lowering.builder.ins().return_(&[number]);
    }

    fn number(&mut self, number: u32) -> Value {
        self.lowering.builder.ins().iconst(I32, i64::from(number))
    }

    /// The block to leave by because of a failed guard.
    fn unseen(&mut self) -> ir::Block {
        let builder = &mut self.lowering.builder;
        *self.unseen.get_or_insert_with(|| {
            let block = builder.create_block();
            builder.set_cold_block(block);
            block
        })
    }

    fn arguments(&mut self, values: &[Node]) -> SmallVec<[BlockArg; 8]> {
        values.iter().map(|&value| self.lowering.number(value).into()).collect()
    }
}
