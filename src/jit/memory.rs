//! Lowering of memory accesses: iteration numbers, trajectories and arrays.
//!
//! Iteration numbers are 64-bit integers. Wherever an access runs, the iteration numbers in its
//! address are set and below the bounds of their loops: the verifier checks this of the graph,
//! and `flow` exits a loop at its bound. So all addresses are in the buffers; see `layout`.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::Lanes;
use super::layout::{ArraySource, Trajectory};
use super::lower::Lowering;
use super::operands::known_element;
use super::pairs::Pairs;
use super::plan::{Source, Step};
use crate::ssa::{Access, Def, Node, Region};

/// The largest number of pointers that are reused: fewer than there are registers for them.
const MAX_POINTERS: usize = 4;

/// An address: the index in a buffer is `first` plus the parts of the strides.
pub(super) struct Address {
    buffer: Value,
    first: u32,
    pub(super) strides: Strides,
}

type Strides = SmallVec<[Stride; 2]>;

/// The part of an index that an iteration number gives.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stride {
    /// A multiple of it.
    By(Region, i64),
    /// A multiple of `k (k − 1) / 2`, with `k` the iteration number.
    Change(Region, i64),
}

impl Stride {
    pub(super) fn region(self) -> Region {
        match self {
            Stride::By(region, _) | Stride::Change(region, _) => region,
        }
    }
}

/// The iteration numbers of a function: variables, so that they are in registers.
pub(super) struct Counters {
    /// By the word of the scratch buffer.
    variables: BTreeMap<u32, Variable>,
    /// True if other functions read and write these words.
    are_shared: bool,
}

impl Counters {
    pub(super) fn new(are_shared: bool) -> Counters {
        Counters { variables: BTreeMap::new(), are_shared }
    }

    fn variable(&mut self, builder: &mut FunctionBuilder<'_>, word: u32) -> Variable {
        *self.variables.entry(word).or_insert_with(|| builder.declare_var(I64))
    }
}

/// Pointers into buffers at the current iteration numbers, by their strides. Most accesses in a
/// loop differ in the first index only, so they share a pointer.
#[derive(Default)]
pub(super) struct Pointers {
    known: Vec<Pointer>,
    /// Those at the iteration numbers of the loops around a vector loop.
    hoisted: Vec<Pointer>,
}

type Pointer = (Value, Strides, Value);

impl Pointers {
    /// Forgets all pointers of the block, when iteration numbers change or at a new block.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}

/// The one of `pointers` with these strides.
fn find(pointers: &[Pointer], buffer: Value, strides: &Strides) -> Option<Value> {
    let found = pointers.iter().find(|known| known.0 == buffer && known.1 == *strides);
    found.map(|known| known.2)
}

impl Lowering<'_, '_> {
    /// The iteration number of `region`.
    pub(super) fn counter(&mut self, region: Region) -> Value {
        let word = self.layout.counter(self.graph, region);
        let variable = self.counters.variable(self.builder, word);
        self.builder.use_var(variable)
    }

    pub(super) fn set_counter(&mut self, region: Region, number: Value) {
        let word = self.layout.counter(self.graph, region);
        let variable = self.counters.variable(self.builder, word);
        self.builder.def_var(variable, number);
        if self.counters.are_shared {
            let (flags, scratch, offset) = (self.flags(), self.scratch(), self.offset(word));
            self.builder.ins().store(flags, number, scratch, offset);
        }
    }

    /// Defines all iteration numbers that the function uses, in its first block.
    pub(super) fn begin_counters(&mut self) {
        let (flags, scratch) = (self.flags(), self.scratch());
        for (word, variable) in core::mem::take(&mut self.counters.variables) {
            let offset = self.offset(word);
            let number = match self.counters.are_shared {
                true => self.builder.ins().load(I64, flags, scratch, offset),
                // Each loop begins in the function.
                false => self.builder.ins().iconst(I64, 0),
            };
            self.builder.def_var(variable, number);
        }
    }

    /// Sets the iteration number of `region` to that of its first iteration.
    pub(super) fn begin(&mut self, region: Region) {
        let replayed = self.graph.regions[region].replays;
        let number = match replayed.and_then(|replayed| self.layout.last(replayed)) {
            Some(trajectory) => {
                let address = self.trajectory_address(trajectory);
                self.load_integer(address)
            }
            None => self.builder.ins().iconst(I64, 0),
        };
        self.set_counter(region, number);
        self.pointers.clear();
    }

    /// Saves the last iteration number of `region`, which has ended, for a loop that replays it.
    pub(super) fn save_last(&mut self, region: Region) {
        if let Some(trajectory) = self.layout.last(region) {
            let number = self.counter(region);
            let address = self.trajectory_address(trajectory);
            self.store(number, address);
        }
    }

    /// Loads the value of `node` from its trajectory, or converts an iteration number.
    pub(super) fn saved_value(&mut self, node: Node, source: Source) -> Value {
        match (source, self.layout.trajectory(node)) {
            (Source::Iteration(region), _) => self.iteration(region),
            (_, Some(trajectory)) => {
                let address = self.trajectory_address(trajectory);
                self.load(address)
            }
            (_, None) => self.constant(f64::NAN),
        }
    }

    /// Stores `value` to the trajectory of `node`.
    pub(super) fn save(&mut self, value: Node, node: Node) {
        if let Some(trajectory) = self.layout.trajectory(node) {
            let value = self.number(value);
            let address = self.trajectory_address(trajectory);
            self.store(value, address);
        }
    }

    /// Loads `node`, the element at `access`.
    pub(super) fn element(&mut self, node: Node, access: Access) -> Value {
        match known_element(self.graph, node) {
            Some(source) => self.number(source),
            None => {
                let address = self.of_access(access);
                self.load(address)
            }
        }
    }

    pub(super) fn accumulate(&mut self, access: Access, node: Node) {
        let value = self.number(node);
        let address = self.of_access(access);
        if self.layout.single_additions[self.graph.accesses[access].array] {
            let zero = self.constant(0.0);
            let sum = self.builder.ins().fadd(zero, value);
            self.store(sum, address);
            return;
        }
        if let Some(pairs) = self.pairs {
            self.accumulate_pair(value, address, pairs);
            return;
        }
        let (pointer, distance) = self.pointer(address);
        let (flags, number) = (self.flags(), self.number_type());
        let before = self.builder.ins().load(number, flags, pointer, distance);
        let sum = self.builder.ins().fadd(before, value);
        self.builder.ins().store(flags, sum, pointer, distance);
    }

    pub(super) fn store_cell(&mut self, access: Access, node: Node) {
        let value = self.number(node);
        let address = self.of_access(access);
        self.store(value, address);
    }

    /// Sets `len` words of the scratch buffer to zero, the first at `word`.
    pub(super) fn zero(&mut self, word: u32, len: u32) {
        self.zero_in(self.scratch(), word, len);
    }

    /// Sets `count` outputs to zero, the first at `first`.
    pub(super) fn zero_outputs(&mut self, first: u32, count: u32) {
        self.zero_in(self.buffers[4], first, count);
    }

    fn zero_in(&mut self, buffer: Value, word: u32, len: u32) {
        let flags = self.flags();
        let zero = self.constant(0.0);
        if len <= 8 {
            for word in word..word + len {
                let offset = self.offset(word);
                self.builder.ins().store(flags, zero, buffer, offset);
            }
            return;
        }
        // Four words in each iteration, after the odd ones.
        let rest = len % 4;
        for word in word..word + rest {
            let offset = self.offset(word);
            self.builder.ins().store(flags, zero, buffer, offset);
        }
        let (word, len) = (word + rest, len - rest);
        let zeros = match self.lanes {
            Lanes::One => self.pair_of(0.0),
            Lanes::Two => zero,
        };
        let (flags, pairs) = (MemFlagsData::new().with_notrap(), self.offset(4) / 16);
        let (body, after) = (self.builder.create_block(), self.builder.create_block());
        let number = self.builder.append_block_param(body, I64);
        let start = self.builder.ins().iconst(I64, 0);
        self.builder.ins().jump(body, &[start.into()]);
        self.builder.switch_to_block(body);
        let (shift, offset) = (self.entry_shift(), self.offset(word));
        let distance = self.builder.ins().ishl_imm_u(number, shift);
        let pointer = self.builder.ins().iadd(buffer, distance);
        for pair in 0..pairs {
            self.builder.ins().store(flags, zeros, pointer, offset + 16 * pair);
        }
        let next = self.builder.ins().iadd_imm_s(number, 4);
        let again = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, next, i64::from(len));
        self.builder.ins().brif(again, body, &[next.into()], after, &[]);
        self.builder.switch_to_block(after);
    }

    fn scratch(&self) -> Value {
        self.buffers[3]
    }

    fn trajectory_address(&self, trajectory: &Trajectory) -> Address {
        let strides = trajectory.strides.iter();
        let strides = strides.map(|&(region, stride)| Stride::By(region, i64::from(stride)));
        Address { buffer: self.scratch(), first: trajectory.first, strides: strides.collect() }
    }

    fn of_access(&self, access: Access) -> Address {
        let data = &self.graph.accesses[access];
        let [active, inactive, constants, scratch, outputs] = self.buffers;
        let mut strides = Strides::new();
        let (buffer, start, step) = match self.layout.arrays[data.array] {
            ArraySource::Constants(first) => (constants, first, 1),
            ArraySource::Scratch(first) => (scratch, first, 1),
            ArraySource::Outputs(first) => (outputs, first, 1),
            ArraySource::Active { first, stride } => (active, first, i64::from(stride)),
            ArraySource::Inactive { first, stride } => (inactive, first, i64::from(stride)),
            ArraySource::Saved(node, around) => {
                let (mut start, mut step) = (0, 1);
                if let Some(trajectory) = self.layout.trajectory(node) {
                    start = trajectory.first;
                    for &(region, stride) in &trajectory.strides {
                        match region == around {
                            true => step = i64::from(stride),
                            false => strides.push(Stride::By(region, i64::from(stride))),
                        }
                    }
                }
                (scratch, start, step)
            }
        };
        let first = i64::from(start) + step * i64::from(data.base);
        let by = |&(region, by): &(Region, i32)| Stride::By(region, i64::from(by) * step);
        let change = |&(region, by): &(Region, i32)| Stride::Change(region, i64::from(by) * step);
        strides.extend(data.strides.iter().map(by).chain(data.changes.iter().map(change)));
        Address { buffer, first: first as u32, strides }
    }

    fn load(&mut self, address: Address) -> Value {
        if let Some(pairs) = self.pairs {
            return self.load_pair(address, pairs);
        }
        let (pointer, distance) = self.pointer(address);
        let (flags, number) = (self.flags(), self.number_type());
        self.builder.ins().load(number, flags, pointer, distance)
    }

    fn load_integer(&mut self, address: Address) -> Value {
        let (pointer, distance) = self.pointer(address);
        let flags = self.flags();
        self.builder.ins().load(I64, flags, pointer, distance)
    }

    fn store(&mut self, value: Value, address: Address) {
        if let Some(pairs) = self.pairs {
            self.store_pair(value, address, pairs);
            return;
        }
        let (pointer, distance) = self.pointer(address);
        let flags = self.flags();
        self.builder.ins().store(flags, value, pointer, distance);
    }

    /// The address as a pointer and an offset in bytes.
    pub(super) fn pointer(&mut self, address: Address) -> (Value, i32) {
        let Address { buffer, first, mut strides } = address;
        let offset = self.offset(first);
        if let Some(pointer) = find(&self.pointers.known, buffer, &strides) {
            return (pointer, offset);
        }
        let mut pointer = buffer;
        let all = strides.clone();
        if let Some(pairs) = self.pairs {
            let around = self.around(pairs, &strides);
            if let Some(hoisted) = find(&self.pointers.hoisted, buffer, &around) {
                pointer = hoisted;
                strides.retain(|stride| self.is_of(pairs, stride.region()));
            }
        }
        if strides.is_empty() {
            return (pointer, offset);
        }
        pointer = self.moved(pointer, &strides);
        if self.pointers.known.len() >= MAX_POINTERS {
            self.pointers.clear();
        }
        self.pointers.known.push((buffer, all, pointer));
        (pointer, offset)
    }

    /// `pointer` at the current iteration numbers.
    fn moved(&mut self, mut pointer: Value, strides: &Strides) -> Value {
        let (shift, bytes) = (self.entry_shift(), i64::from(self.entry_bytes()));
        for &stride in strides {
            let number = self.counter(stride.region());
            let distance = match stride {
                Stride::By(_, 1) => self.builder.ins().ishl_imm_u(number, shift),
                Stride::By(_, by) => self.builder.ins().imul_imm_s(number, by * bytes),
                Stride::Change(_, by) => {
                    let before = self.builder.ins().iadd_imm_s(number, -1);
                    let product = self.builder.ins().imul(number, before);
                    // Even, and not negative.
                    let pairs = self.builder.ins().ushr_imm_u(product, 1);
                    self.builder.ins().imul_imm_s(pairs, by * bytes)
                }
            };
            pointer = self.builder.ins().iadd(pointer, distance);
        }
        pointer
    }

    /// The strides of the loops around that of `pairs`.
    fn around(&self, pairs: Pairs, strides: &Strides) -> Strides {
        strides.iter().copied().filter(|stride| !self.is_of(pairs, stride.region())).collect()
    }

    /// Computes the pointers of `steps`, those of a vector loop, as far as they do not change in it.
    pub(super) fn hoist_pointers(&mut self, steps: &[Step], pairs: Pairs) {
        for step in steps {
            let Some(Address { buffer, strides, .. }) = self.address_of(step) else { continue };
            let around = self.around(pairs, &strides);
            let hoisted = &self.pointers.hoisted;
            let is_known = around.is_empty() || find(hoisted, buffer, &around).is_some();
            if !is_known && hoisted.len() < MAX_POINTERS {
                let pointer = self.moved(buffer, &around);
                self.pointers.hoisted.push((buffer, around, pointer));
            }
        }
    }

    /// The address of the element or the trajectory that `step` reads or writes.
    fn address_of(&self, step: &Step) -> Option<Address> {
        match *step {
            Step::Compute(node) => match self.graph.nodes[node].def {
                Def::Element(access) if known_element(self.graph, node).is_none() => {
                    Some(self.of_access(access))
                }
                _ => None,
            },
            Step::Accumulate(access, _) | Step::Store(access, _) => Some(self.of_access(access)),
            Step::Load(node, Source::Saved) | Step::Save(_, node) => {
                self.layout.trajectory(node).map(|trajectory| self.trajectory_address(trajectory))
            }
            _ => None,
        }
    }
}
