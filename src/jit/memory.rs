//! Lowering of memory accesses: iteration numbers, trajectories and arrays.
//!
//! Iteration numbers are 64-bit integers. Wherever an access runs, the iteration numbers in its
//! address are set and below the bounds of their loops: the verifier checks this of the graph,
//! and `flow` exits a loop at its bound. So all addresses are in the buffers; see `layout`.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::{FunctionBuilder, Variable};
use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::layout::{ArraySource, Trajectory};
use super::lower::Lowering;
use super::operands::known_element;
use super::plan::Source;
use crate::ssa::{Access, Node, Region};

/// The largest number of pointers that are reused: fewer than there are registers for them.
const MAX_POINTERS: usize = 4;

/// An address: the index in a buffer is `first` plus the sum of iteration number times stride, and
/// of the parts of changing strides.
struct Address {
    buffer: Value,
    first: u32,
    strides: Strides,
}

#[derive(Clone, PartialEq, Default)]
struct Strides {
    strides: SmallVec<[(Region, i64); 2]>,
    changes: SmallVec<[(Region, i64); 1]>,
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
pub(super) struct Pointers(Vec<(Value, Strides, Value)>);

impl Pointers {
    /// Forgets all pointers, when iteration numbers change or at a new block.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn get(&self, buffer: Value, strides: &Strides) -> Option<Value> {
        let found = self.0.iter().find(|known| known.0 == buffer && known.1 == *strides);
        found.map(|known| known.2)
    }
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
            (Source::Iteration(region), _) => {
                let number = self.counter(region);
                self.of_iteration(number)
            }
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
        let (body, after) = (self.builder.create_block(), self.builder.create_block());
        let number = self.builder.append_block_param(body, I64);
        let start = self.builder.ins().iconst(I64, 0);
        self.builder.ins().jump(body, &[start.into()]);
        self.builder.switch_to_block(body);
        let (shift, offset) = (self.entry_shift(), self.offset(word));
        let distance = self.builder.ins().ishl_imm_u(number, shift);
        let pointer = self.builder.ins().iadd(buffer, distance);
        self.builder.ins().store(flags, zero, pointer, offset);
        let next = self.builder.ins().iadd_imm_s(number, 1);
        let again = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, next, i64::from(len));
        self.builder.ins().brif(again, body, &[next.into()], after, &[]);
        self.builder.switch_to_block(after);
    }

    fn scratch(&self) -> Value {
        self.buffers[3]
    }

    fn trajectory_address(&self, trajectory: &Trajectory) -> Address {
        let strides =
            trajectory.strides.iter().map(|&(region, stride)| (region, i64::from(stride)));
        let strides = Strides { strides: strides.collect(), ..Strides::default() };
        Address { buffer: self.scratch(), first: trajectory.first, strides }
    }

    fn of_access(&self, access: Access) -> Address {
        let data = &self.graph.accesses[access];
        let [active, inactive, constants, scratch, outputs] = self.buffers;
        let mut strides: SmallVec<[(Region, i64); 2]> = SmallVec::new();
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
                            false => strides.push((region, i64::from(stride))),
                        }
                    }
                }
                (scratch, start, step)
            }
        };
        let first = i64::from(start) + step * i64::from(data.base);
        strides.extend(data.strides.iter().map(|&(r, stride)| (r, i64::from(stride) * step)));
        let changes = data.changes.iter().map(|&(r, change)| (r, i64::from(change) * step));
        let strides = Strides { strides, changes: changes.collect() };
        Address { buffer, first: first as u32, strides }
    }

    fn load(&mut self, address: Address) -> Value {
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
        let (pointer, distance) = self.pointer(address);
        let flags = self.flags();
        self.builder.ins().store(flags, value, pointer, distance);
    }

    /// The address as a pointer and an offset in bytes.
    fn pointer(&mut self, address: Address) -> (Value, i32) {
        let Address { buffer, first, strides } = address;
        if strides == Strides::default() {
            return (buffer, self.offset(first));
        }
        if let Some(pointer) = self.pointers.get(buffer, &strides) {
            return (pointer, self.offset(first));
        }
        let mut pointer = buffer;
        let (shift, bytes) = (self.entry_shift(), i64::from(self.entry_bytes()));
        for &(region, stride) in &strides.strides {
            let number = self.counter(region);
            let distance = match stride {
                1 => self.builder.ins().ishl_imm_u(number, shift),
                _ => self.builder.ins().imul_imm_s(number, stride * bytes),
            };
            pointer = self.builder.ins().iadd(pointer, distance);
        }
        for &(region, change) in &strides.changes {
            let number = self.counter(region);
            let before = self.builder.ins().iadd_imm_s(number, -1);
            let product = self.builder.ins().imul(number, before);
            // Even, and at most zero for the first iteration.
            let pairs = self.builder.ins().sshr_imm_u(product, 1);
            let distance = self.builder.ins().imul_imm_s(pairs, change * bytes);
            pointer = self.builder.ins().iadd(pointer, distance);
        }
        if self.pointers.0.len() >= MAX_POINTERS {
            self.pointers.clear();
        }
        self.pointers.0.push((buffer, strides, pointer));
        (pointer, self.offset(first))
    }
}
