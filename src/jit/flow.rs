//! Control flow: the basic blocks of a function become Cranelift blocks that jump to one
//! another or return to another function.
//!
//! A function has the C signature
//! `fn(active: *const f64, inactive: *const f64, constants: *const f64,
//! scratch: *mut f64, outputs: *mut f64, entry: u32) -> u32`.
//! Blocks that other functions jump to are entries, which have numbers. A function is called
//! with the number of one of its entries and returns a [`Status`]. All live values are in the
//! buffers at an entry.

use core::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{self, AbiParam, BlockArg, InstBuilder, Signature, Value};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::Switch;
use smallvec::SmallVec;

use super::Lanes;
use super::lower::{Lowered, Lowering};
use super::plan::{Next, Plan, Step};
use super::schedule::Test;
use super::vector::{VectorLoop, loads_constants_only};
use crate::ssa::{Node, Region, last_iteration};

/// The result of a function; native code returns it as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The outputs are complete.
    Done,
    /// A guard failed.
    SideExit,
    /// The kernel continues at the entry with this number.
    Entry(u32),
}

impl Status {
    const DONE: u32 = u32::MAX;
    const SIDE_EXIT: u32 = u32::MAX - 1;

    /// The word that native code returns.
    fn word(self) -> u32 {
        match self {
            Status::Done => Status::DONE,
            Status::SideExit => Status::SIDE_EXIT,
            Status::Entry(number) => number,
        }
    }

    /// The status that native code returned as `word`.
    pub(super) fn of(word: u32) -> Status {
        match word {
            Status::DONE => Status::Done,
            Status::SIDE_EXIT => Status::SideExit,
            number => Status::Entry(number),
        }
    }
}

/// The signature of a function.
pub(super) fn signature(isa: &dyn TargetIsa) -> Signature {
    let pointer = AbiParam::new(isa.pointer_type());
    let mut signature = Signature::new(isa.default_call_conv());
    signature.params = vec![pointer; 5];
    signature.params.push(AbiParam::new(I32));
    signature.returns = vec![AbiParam::new(I32)];
    signature
}

/// The blocks that other functions jump to, and the first one.
pub(super) struct Entries {
    /// Those blocks in order; the position of a block is its number as an entry.
    blocks: Vec<usize>,
}

impl Entries {
    pub(super) fn of(plan: &Plan) -> Self {
        let function = |block| plan.functions.partition_point(|&first| first <= block);
        let mut blocks = vec![0];
        for (index, block) in plan.blocks.iter().enumerate() {
            let targets: SmallVec<[usize; 2]> = match block.next {
                Next::Jump(next, _) | Next::BackEdge(_, next, _) => [next].into_iter().collect(),
                Next::Branch { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
                Next::Done => SmallVec::new(),
            };
            let here = function(index);
            blocks.extend(targets.into_iter().filter(|&target| function(target) != here));
        }
        blocks.sort_unstable();
        blocks.dedup();
        Entries { blocks }
    }

    /// The entries in a range of blocks, with their numbers.
    pub(super) fn within(&self, range: Range<usize>) -> impl Iterator<Item = (u32, usize)> + '_ {
        let first = self.blocks.partition_point(|&block| block < range.start);
        let blocks = self.blocks[first..].iter().copied();
        (first as u32..).zip(blocks.take_while(move |&block| block < range.end))
    }

    fn number(&self, block: usize) -> u32 {
        self.blocks.partition_point(|&entry| entry < block) as u32
    }
}

/// Lowers the function that consists of a range of `blocks`.
pub(super) fn lower(
    lowering: Lowering<'_, '_>,
    plan: &Plan,
    blocks: Range<usize>,
    entries: &Entries,
) {
    // The first block comes last: it defines what the others use.
    let first = lowering.builder.create_block();
    lowering.builder.append_block_params_for_function_params(first);
    lowering.builder.func.layout.append_block(first);
    let start = lowering.builder.create_block();
    lowering.builder.switch_to_block(start);
    let mut parameters = [Value::from_u32(0); 6];
    parameters.copy_from_slice(lowering.builder.block_params(first));
    let [active, inactive, constants, scratch, outputs, entry] = parameters;
    let lowering =
        Lowering { buffers: [active, inactive, constants, scratch, outputs], ..lowering };
    let mut flow = Flow {
        lowering,
        entries,
        blocks: blocks.clone(),
        ir_blocks: vec![],
        side_exit: None,
        is_cold: false,
    };
    flow.make_blocks(plan, start, entry);
    flow.set_cold_blocks(plan, start);
    let mut marks = Vec::with_capacity(blocks.len());
    for (index, block) in plan.blocks[blocks.clone()].iter().enumerate() {
        // The values on entry are those after the block `after`, which precedes this one on
        // all paths here.
        let mark = block.after.map_or(0, |after| marks[after - blocks.start]);
        flow.lowering.values.back_to(mark);
        let ir_block = flow.ir_blocks[index];
        if ir_block != start {
            flow.lowering.builder.switch_to_block(ir_block);
        }
        for (i, &phi) in block.parameters.iter().enumerate() {
            let value = flow.lowering.builder.block_params(ir_block)[i];
            flow.lowering.values.insert(phi, Lowered::Number(value));
        }
        flow.lowering.pointers.clear();
        flow.is_cold = block.is_cold;
        for &step in &block.steps {
            if let Step::Compute(node) = step
                && flow.lowering.graph.is_custom_call(node)
            {
                // An operation sees no inputs that the function does not call it with.
                flow.side_exit_if_failed();
            }
            flow.lowering.step(step);
        }
        flow.finish(plan, &block.next);
        marks.push(flow.lowering.values.mark());
    }
    if let Some(ir_block) = flow.side_exit {
        flow.lowering.builder.switch_to_block(ir_block);
        flow.return_status(Status::SideExit);
    }
    flow.lowering.values.back_to(0);
    flow.lowering.builder.switch_to_block(first);
    flow.lowering.begin_counters();
    flow.lowering.builder.ins().jump(start, &[]);
    flow.lowering.builder.seal_all_blocks();
}

/// The successor of a block: in this function, or outside.
#[derive(Clone, Copy)]
enum Target {
    Block(ir::Block),
    /// The entry that the function returns.
    Outside(Status),
}

/// A jump to the next iteration of a loop.
struct Repeat<'p> {
    region: Region,
    header: ir::Block,
    values: &'p [Node],
    /// Loads of constants.
    steps: &'p [Step],
}

struct Flow<'a, 'b, 'f> {
    lowering: Lowering<'b, 'f>,
    entries: &'a Entries,
    blocks: Range<usize>,
    /// The Cranelift block of each basic block.
    ir_blocks: Vec<ir::Block>,
    /// The block of the side exit for failed guards, if there is one.
    side_exit: Option<ir::Block>,
    /// True if the current block is cold.
    is_cold: bool,
}

impl Flow<'_, '_, '_> {
    /// Marks cold blocks, but for `start`, where the function begins.
    fn set_cold_blocks(&mut self, plan: &Plan, start: ir::Block) {
        let blocks = &plan.blocks[self.blocks.clone()];
        for (block, &ir_block) in blocks.iter().zip(&self.ir_blocks) {
            if block.is_cold && ir_block != start {
                self.lowering.builder.set_cold_block(ir_block);
            }
        }
    }

    /// Makes a Cranelift block for each basic block, and a switch from the start to the block of
    /// `entry`.
    fn make_blocks(&mut self, plan: &Plan, start: ir::Block, entry: Value) {
        let number = self.lowering.number_type();
        let builder = &mut *self.lowering.builder;
        let numbered: Vec<(u32, usize)> = self.entries.within(self.blocks.clone()).collect();
        // Only back edges lead to the first block of a function.
        let repeats =
            |next: &Next| matches!(next, Next::BackEdge(_, to, _) if *to == self.blocks.start);
        let repeated = plan.blocks[self.blocks.clone()].iter().any(|block| repeats(&block.next));
        let only_first = numbered.len() == 1 && !repeated;
        for block in self.blocks.clone() {
            if only_first && block == self.blocks.start {
                self.ir_blocks.push(start);
                continue;
            }
            let ir_block = builder.create_block();
            for _ in &plan.blocks[block].parameters {
                builder.append_block_param(ir_block, number);
            }
            self.ir_blocks.push(ir_block);
        }
        if !only_first {
            let mut switch = Switch::new();
            for (number, block) in numbered {
                debug_assert!(plan.blocks[block].parameters.is_empty(), "all is in the buffers");
                switch.set_entry(number.into(), self.ir_blocks[block - self.blocks.start]);
            }
            switch.emit(builder, entry, self.ir_blocks[0]);
        }
    }

    fn target(&self, block: usize) -> Target {
        match block.checked_sub(self.blocks.start).and_then(|index| self.ir_blocks.get(index)) {
            Some(&ir_block) => Target::Block(ir_block),
            None => Target::Outside(Status::Entry(self.entries.number(block))),
        }
    }

    /// Lowers the end of a block, with a side exit if a guard in it has failed.
    fn finish(&mut self, plan: &Plan, next: &Next) {
        match *next {
            Next::Done => self.return_unless_failed(|flow| flow.status(Status::Done)),
            Next::Jump(block, ref values) => match self.target(block) {
                Target::Outside(status) => self.return_unless_failed(|flow| flow.status(status)),
                Target::Block(ir_block)
                    if let Some(vector_loop) = self.vector_loop(plan, block) =>
                {
                    self.side_exit_if_failed();
                    let args = self.run_pairs(&vector_loop, values);
                    self.lowering.builder.ins().jump(ir_block, &args);
                }
                Target::Block(ir_block) => {
                    let args = self.arguments(values);
                    match self.take_failed() {
                        Some(failed) => {
                            let side_exit = self.side_exit();
                            let builder = &mut self.lowering.builder;
                            builder.ins().brif(failed, side_exit, &[], ir_block, &args);
                        }
                        None => {
                            self.lowering.builder.ins().jump(ir_block, &args);
                        }
                    }
                }
            },
            Next::BackEdge(region, header, ref values) => self.back_edge(region, header, values),
            Next::Branch { test, then, otherwise } => {
                self.side_exit_if_lanes_differ(test);
                if let Some(repeat) = self.repeat(plan, then) {
                    self.repeat_or_go_on(test, repeat, otherwise);
                    return;
                }
                match (self.target(then), self.target(otherwise)) {
                    (Target::Outside(then), Target::Outside(otherwise)) => {
                        self.return_unless_failed(|flow| {
                            let holds = flow.test(test);
                            let (then, otherwise) = (flow.status(then), flow.status(otherwise));
                            flow.lowering.builder.ins().select(holds, then, otherwise)
                        });
                    }
                    (then, otherwise) => self.branch(test, then, otherwise),
                }
            }
        }
    }

    /// Lowers a back edge of `region`, with a side exit if its bound may be exceeded.
    fn back_edge(&mut self, region: Region, header: usize, values: &[Node]) {
        self.side_exit_if_failed();
        let replays = self.lowering.graph.regions[region].replays.is_some();
        let number = self.lowering.counter(region);
        let number = self.next_number(region, number);
        let is_within = || last_iteration(self.lowering.graph, region).is_some();
        if let (Some(cycle), false) = (&self.lowering.graph.regions[region].cycle, replays)
            && !is_within()
        {
            let bound = i64::from(cycle.bound);
            let builder = &mut self.lowering.builder;
            let failed = builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, number, bound);
            self.side_exit_if(failed);
        }
        self.lowering.set_counter(region, number);
        match self.target(header) {
            Target::Outside(status) => self.return_status(status),
            Target::Block(ir_block) => {
                let args = self.arguments(values);
                self.lowering.builder.ins().jump(ir_block, &args);
            }
        }
    }

    /// The vector loop in front of the loop with this header.
    fn vector_loop(&self, plan: &Plan, header: usize) -> Option<VectorLoop> {
        let is_scalar = self.lowering.lanes == Lanes::One && !plan.blocks[header].is_cold;
        is_scalar.then(|| VectorLoop::of(self.lowering.graph, plan, header)).flatten()
    }

    /// Lowers a vector loop, with the initial values of its φs; returns those of the loop after it.
    fn run_pairs(&mut self, vector_loop: &VectorLoop, firsts: &[Node]) -> Vec<BlockArg> {
        let firsts: Vec<Value> = firsts.iter().map(|&first| self.lowering.number(first)).collect();
        let side_exit = vector_loop.has_guards().then(|| self.side_exit());
        self.lowering.vector_loop(vector_loop, &firsts, side_exit)
    }

    /// The header of the loop and the arguments that `block` passes on to it, if it does nothing
    /// else and the loop cannot exceed its bound.
    fn repeat<'p>(&self, plan: &'p Plan, block: usize) -> Option<Repeat<'p>> {
        let block_plan = &plan.blocks[block];
        let Next::BackEdge(region, header, values) = &block_plan.next else { return None };
        let Target::Block(header) = self.target(*header) else { return None };
        let is_own = matches!(self.target(block), Target::Block(_));
        let graph = self.lowering.graph;
        let is_within =
            graph.regions[*region].replays.is_some() || last_iteration(graph, *region).is_some();
        (is_own && loads_constants_only(block_plan) && is_within).then_some(Repeat {
            region: *region,
            header,
            values,
            steps: &block_plan.steps,
        })
    }

    /// Lowers the end of a loop: one jump for each iteration.
    fn repeat_or_go_on(&mut self, test: Test, repeat: Repeat<'_>, otherwise: usize) {
        self.side_exit_if_failed();
        let Repeat { region, header, values, steps } = repeat;
        let mark = self.lowering.values.mark();
        steps.iter().for_each(|&step| self.lowering.step(step));
        let holds = self.test(test);
        let number = self.lowering.counter(region);
        let next = self.next_number(region, number);
        self.lowering.set_counter(region, next);
        let (args, after) = (self.arguments(values), self.create_block());
        self.lowering.values.back_to(mark);
        self.lowering.builder.ins().brif(holds, header, &args, after, &[]);
        self.lowering.builder.switch_to_block(after);
        self.lowering.set_counter(region, number);
        match self.target(otherwise) {
            Target::Outside(status) => self.return_status(status),
            Target::Block(ir_block) => {
                self.lowering.builder.ins().jump(ir_block, &[]);
            }
        }
    }

    /// The number of the iteration after iteration `number`.
    fn next_number(&mut self, region: Region, number: Value) -> Value {
        let replays = self.lowering.graph.regions[region].replays.is_some();
        self.lowering.builder.ins().iadd_imm_s(number, if replays { -1 } else { 1 })
    }

    /// The outcome of the test, as an integer.
    fn test(&mut self, test: Test) -> Value {
        match test {
            Test::Node(condition) => {
                let truth = self.lowering.truth(condition, true);
                self.lowering.all(truth)
            }
            Test::More(region) => {
                let number = self.lowering.counter(region);
                self.lowering.builder.ins().icmp_imm_s(IntCC::NotEqual, number, 0)
            }
        }
    }

    /// The test whether a guard in the block has failed, as an integer, if there is one.
    fn take_failed(&mut self) -> Option<Value> {
        let failed = self.lowering.failed.take()?;
        Some(self.lowering.any(failed))
    }

    fn side_exit_if_failed(&mut self) {
        if let Some(failed) = self.take_failed() {
            self.side_exit_if(failed);
        }
    }

    /// Takes the side exit if `test` differs between the elements.
    fn side_exit_if_lanes_differ(&mut self, test: Test) {
        let (Test::Node(condition), Lanes::Two) = (test, self.lowering.lanes) else { return };
        self.side_exit_if_failed();
        let truth = self.lowering.truth(condition, true);
        let (any, all) = (self.lowering.any(truth), self.lowering.all(truth));
        let differ = self.lowering.builder.ins().icmp(IntCC::NotEqual, any, all);
        self.side_exit_if(differ);
    }

    /// Takes the side exit if `failed`.
    fn side_exit_if(&mut self, failed: Value) {
        let side_exit = self.side_exit();
        let on = self.create_block();
        self.lowering.builder.ins().brif(failed, side_exit, &[], on, &[]);
        self.lowering.builder.switch_to_block(on);
    }

    fn branch(&mut self, test: Test, then: Target, otherwise: Target) {
        self.side_exit_if_failed();
        let holds = self.test(test);
        let [(then, then_exit), (otherwise, otherwise_exit)] =
            [then, otherwise].map(|target| match target {
                Target::Block(ir_block) => (ir_block, None),
                Target::Outside(status) => (self.create_block(), Some(status)),
            });
        self.lowering.builder.ins().brif(holds, then, &[], otherwise, &[]);
        for (ir_block, exit) in [(then, then_exit), (otherwise, otherwise_exit)] {
            if let Some(status) = exit {
                self.lowering.builder.switch_to_block(ir_block);
                self.return_status(status);
            }
        }
    }

    /// Makes a Cranelift block that belongs to the current block.
    fn create_block(&mut self) -> ir::Block {
        let ir_block = self.lowering.builder.create_block();
        if self.is_cold {
            self.lowering.builder.set_cold_block(ir_block);
        }
        ir_block
    }

    /// Returns the value that `next` makes, or the side exit if a guard in the block has failed.
    fn return_unless_failed(&mut self, next: impl FnOnce(&mut Self) -> Value) {
        let mut result = next(self);
        if let Some(failed) = self.take_failed() {
            let side_exit = self.status(Status::SideExit);
            result = self.lowering.builder.ins().select(failed, side_exit, result);
        }
        self.lowering.builder.ins().return_(&[result]);
    }

    fn return_status(&mut self, status: Status) {
        let word = self.status(status);
        self.lowering.builder.ins().return_(&[word]);
    }

    fn status(&mut self, status: Status) -> Value {
        self.lowering.builder.ins().iconst(I32, i64::from(status.word()))
    }

    /// The block of the side exit.
    fn side_exit(&mut self) -> ir::Block {
        let builder = &mut self.lowering.builder;
        *self.side_exit.get_or_insert_with(|| {
            let ir_block = builder.create_block();
            builder.set_cold_block(ir_block);
            ir_block
        })
    }

    fn arguments(&mut self, values: &[Node]) -> SmallVec<[BlockArg; 8]> {
        values.iter().map(|&value| self.lowering.number(value).into()).collect()
    }
}
