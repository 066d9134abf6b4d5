//! Lowering of vector loops: both iterations of a pair in vectors of two numbers.
//!
//! Lane 0 has the smaller iteration number, so that neighbours in memory are neighbours in a
//! vector. A replaying loop counts down: its lane 1 is the first of both.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, F64X2, I8X16, I64, I64X2};
use cranelift_codegen::ir::{
    Block, BlockArg, ConstantData, Endianness, InstBuilder, InstructionData, MemFlagsData, Opcode,
    Value, ValueDef,
};

use hashbrown::HashSet;

use super::Lanes;
use super::lower::{Lowered, Lowering};
use super::memory::{Address, Pointers, Stride};
use super::plan::Step;
use super::vector::{Carried, VectorLoop, defined, used};
use crate::ssa::{AffineIndex, Node, Region};

/// The loop of which pairs of iterations run.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    counting: Region,
    /// The lanes in the order of their iterations.
    order: [u8; 2],
}

impl Lowering<'_, '_> {
    /// Lowers a vector loop, with the initial values of its φs; returns those of the loop after it.
    /// Loops with guards have a side exit.
    pub(super) fn vector_loop(
        &mut self,
        vector_loop: &VectorLoop,
        firsts: &[Value],
        side_exit: Option<Block>,
    ) -> Vec<BlockArg> {
        let &VectorLoop { region, counting, ref last, ref steps, ref carried } = vector_loop;
        let order = if last.is_some() { [0, 1] } else { [1, 0] };
        let by = i64::from(order[1]) - i64::from(order[0]);
        let pairs = Pairs { counting, order };
        // Another iteration remains after the two of a pair.
        let last_pair = last.as_ref().map(|last| self.affine(last, -2));
        let more = |lowering: &mut Self, number: Value| match last_pair {
            Some(last) => lowering.builder.ins().icmp(IntCC::SignedLessThanOrEqual, number, last),
            None => lowering.builder.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, number, 2),
        };
        let mark = self.values.mark();
        // A node that an earlier step of the loop loads may be in a register of a block that does not
        // dominate it.
        let mut before: HashSet<Node> = HashSet::new();
        for step in steps {
            for node in used(self.graph, step) {
                if !before.contains(&node) {
                    self.widen(node);
                }
            }
            before.extend(defined(step));
        }
        self.hoist_pointers(steps, pairs);
        let begin = |(&first, (_, carried)): (&Value, &(Node, Carried))| match *carried {
            Carried::Same => self.builder.ins().splat(F64X2, first),
            Carried::Constant(constant) => {
                let both = self.pair_of(constant);
                self.builder.ins().insertlane(both, first, order[0])
            }
            Carried::Recurrence(_) => first,
        };
        let begin: Vec<_> = firsts.iter().zip(carried).map(begin).map(BlockArg::from).collect();
        let [body, after] = [(); 2].map(|()| self.builder.create_block());
        let number = self.counter(region);
        let enters = more(self, number);
        self.builder.ins().brif(enters, body, &begin, after, &begin);
        self.begin_pairs(body, carried);
        let number = self.counter(region);
        if by < 0 {
            let smaller = self.builder.ins().iadd_imm_s(number, by);
            self.set_counter(region, smaller);
        }
        let before_body = self.values.mark();
        (self.lanes, self.pairs) = (Lanes::Two, Some(pairs));
        self.pointers.clear();
        for &step in steps {
            match recurrence(carried, step) {
                Some((phi, next)) => self.recurrence(phi, next, order),
                None => self.step(step),
            }
        }
        if let (Some(failed), Some(side_exit)) = (self.failed.take(), side_exit) {
            let (failed, on) = (self.any(failed), self.builder.create_block());
            self.builder.ins().brif(failed, side_exit, &[], on, &[]);
            self.builder.switch_to_block(on);
        }
        let next = |&(phi, how): &(Node, Carried)| match how {
            Carried::Same => self.number(phi),
            Carried::Constant(constant) => self.pair_of(constant),
            Carried::Recurrence(next) => self.number(next),
        };
        let nexts: Vec<_> = carried.iter().map(next).map(BlockArg::from).collect();
        (self.lanes, self.pairs) = (Lanes::One, None);
        self.values.back_to(before_body);
        let next = self.builder.ins().iadd_imm_s(number, 2 * by);
        self.set_counter(region, next);
        let again = more(self, next);
        self.builder.ins().brif(again, body, &nexts, after, &nexts);
        self.begin_pairs(after, carried);
        let end = |(&first, &(phi, how)): (&Value, &(Node, Carried))| match how {
            Carried::Same => first,
            Carried::Constant(_) => {
                let pair = self.number(phi);
                self.lane(pair, order[0])
            }
            Carried::Recurrence(_) => self.number(phi),
        };
        let ends = firsts.iter().zip(carried).map(end).map(BlockArg::from).collect();
        self.values.back_to(mark);
        self.pointers = Pointers::default();
        ends
    }

    /// Begins `block`, whose parameters are the φs of a vector loop.
    fn begin_pairs(&mut self, block: Block, carried: &[(Node, Carried)]) {
        self.builder.switch_to_block(block);
        for &(phi, how) in carried {
            let number = match how {
                Carried::Recurrence(_) => F64,
                Carried::Same | Carried::Constant(_) => F64X2,
            };
            let value = self.builder.append_block_param(block, number);
            self.values.insert(phi, Lowered::Number(value));
        }
    }

    /// Computes `next` from `phi`, a single number, in one iteration after the other.
    fn recurrence(&mut self, phi: Node, next: Node, order: [u8; 2]) {
        let args: Vec<Node> = self.graph.nodes[next].args().to_vec();
        let others = args.into_iter().filter(|&arg| arg != phi);
        let pairs: Vec<(Node, Value)> = others.map(|arg| (arg, self.number(arg))).collect();
        let mut value = self.number(phi);
        let both = self.pairs.take();
        self.lanes = Lanes::One;
        for lane in order {
            let mark = self.values.mark();
            for &(arg, pair) in &pairs {
                let number = self.lane(pair, lane);
                self.values.insert(arg, Lowered::Number(number));
            }
            self.values.insert(phi, Lowered::Number(value));
            self.step(Step::Compute(next));
            value = self.number(next);
            self.values.back_to(mark);
        }
        (self.lanes, self.pairs) = (Lanes::Two, both);
        self.values.insert(next, Lowered::Number(value));
    }

    /// The value of `index` in the current iterations, plus a constant.
    fn affine(&mut self, index: &AffineIndex, constant: i64) -> Value {
        let mut value = self.builder.ins().iconst(I64, index.constant as i64 + constant);
        for &(region, multiple) in &index.terms {
            let number = self.counter(region);
            let term = self.builder.ins().imul_imm_s(number, multiple as i64);
            value = self.builder.ins().iadd(value, term);
        }
        value
    }

    /// The vector of a number twice.
    pub(super) fn pair_of(&mut self, number: f64) -> Value {
        let lanes = core::mem::replace(&mut self.lanes, Lanes::Two);
        let pair = self.constant(number);
        self.lanes = lanes;
        pair
    }

    /// A number of a vector.
    fn lane(&mut self, pair: Value, lane: u8) -> Value {
        let function = &self.builder.func.dfg;
        if let ValueDef::Result(inst, _) = function.value_def(pair)
            && let InstructionData::Unary { opcode: Opcode::Splat, arg } = function.insts[inst]
        {
            return arg;
        }
        self.builder.ins().extractlane(pair, lane)
    }

    /// Gives `node`, if it has one number, a vector of two.
    fn widen(&mut self, node: Node) {
        let Some(lowered) = self.values.get(node) else { return };
        let wide = match lowered {
            Lowered::Number(value) if self.builder.func.dfg.value_type(value) == F64 => {
                Lowered::Number(self.builder.ins().splat(F64X2, value))
            }
            Lowered::Truth(truth) if !self.builder.func.dfg.value_type(truth).is_vector() => {
                let mask = self.builder.ins().bmask(I64, truth);
                Lowered::Truth(self.builder.ins().splat(I64X2, mask))
            }
            _ => return,
        };
        self.values.insert(node, wide);
    }

    /// Tests whether both iterations of a pair have other numbers of `region`.
    pub(super) fn is_paired(&self, region: Region) -> bool {
        self.pairs.is_some_and(|pairs| self.is_of(pairs, region))
    }

    /// Tests whether `region` has the iteration number of the loop of `pairs`.
    pub(super) fn is_of(&self, pairs: Pairs, region: Region) -> bool {
        self.graph.regions[region].replays.unwrap_or(region) == pairs.counting
    }

    /// Loads the numbers at `address` in both iterations of a pair.
    pub(super) fn load_pair(&mut self, address: Address, pairs: Pairs) -> Value {
        let stride = self.stride(&address, pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        match stride {
            0 => {
                let number = self.builder.ins().load(F64, flags, pointer, at);
                self.builder.ins().splat(F64X2, number)
            }
            1 => self.builder.ins().load(F64X2, flags, pointer, at),
            -1 => {
                let at = at - self.entry_bytes();
                let pair = self.builder.ins().load(F64X2, flags, pointer, at);
                self.swapped(pair)
            }
            _ => {
                let [a, b] = [0, 1].map(|lane| {
                    let (pointer, at) = self.of_lane((pointer, at), lane, stride);
                    self.builder.ins().load(F64, flags, pointer, at)
                });
                let both = self.builder.ins().splat(F64X2, a);
                self.builder.ins().insertlane(both, b, 1)
            }
        }
    }

    /// Stores both numbers of `pair` at `address` in both iterations of a pair.
    pub(super) fn store_pair(&mut self, pair: Value, address: Address, pairs: Pairs) {
        let stride = self.stride(&address, pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        match stride {
            1 => {
                self.builder.ins().store(flags, pair, pointer, at);
            }
            -1 => {
                let (swapped, at) = (self.swapped(pair), at - self.entry_bytes());
                self.builder.ins().store(flags, swapped, pointer, at);
            }
            _ => {
                for lane in pairs.order {
                    let number = self.lane(pair, lane);
                    let (pointer, at) = self.of_lane((pointer, at), lane, stride);
                    self.builder.ins().store(flags, number, pointer, at);
                }
            }
        }
    }

    /// Adds both numbers of `pair` at `address` in both iterations of a pair.
    pub(super) fn accumulate_pair(&mut self, pair: Value, address: Address, pairs: Pairs) {
        let stride = self.stride(&address, pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        let (pair, at) = match stride {
            1 => (pair, at),
            -1 => (self.swapped(pair), at - self.entry_bytes()),
            _ => {
                for lane in pairs.order {
                    let number = self.lane(pair, lane);
                    let (pointer, at) = self.of_lane((pointer, at), lane, stride);
                    let before = self.builder.ins().load(F64, flags, pointer, at);
                    let sum = self.builder.ins().fadd(before, number);
                    self.builder.ins().store(flags, sum, pointer, at);
                }
                return;
            }
        };
        let before = self.builder.ins().load(F64X2, flags, pointer, at);
        let sum = self.builder.ins().fadd(before, pair);
        self.builder.ins().store(flags, sum, pointer, at);
    }

    /// `pair` with its numbers exchanged.
    fn swapped(&mut self, pair: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let bytes = self.builder.ins().bitcast(I8X16, flags, pair);
        let order: Vec<u8> = (8..16).chain(0..8).collect();
        let order = self.builder.func.dfg.immediates.push(ConstantData::from(&order[..]));
        let swapped = self.builder.ins().shuffle(bytes, bytes, order);
        self.builder.ins().bitcast(F64X2, flags, swapped)
    }

    /// The stride of the loop of `pairs` in `address`.
    fn stride(&self, address: &Address, pairs: Pairs) -> i64 {
        let own = address.strides.iter().map(|&stride| match stride {
            Stride::By(region, by) if self.is_of(pairs, region) => by,
            // A vector loop changes no strides.
            Stride::By(..) | Stride::Change(..) => 0,
        });
        own.sum()
    }

    /// The pointer and the offset of a lane, from those of lane 0.
    fn of_lane(&mut self, (pointer, at): (Value, i32), lane: u8, stride: i64) -> (Value, i32) {
        let distance = i64::from(lane) * stride * i64::from(self.entry_bytes());
        match i32::try_from(i64::from(at) + distance) {
            Ok(at) => (pointer, at),
            Err(_) => (self.builder.ins().iadd_imm_s(pointer, distance), at),
        }
    }
}

/// The φ and its next value, if `step` computes that in a recurrence.
fn recurrence(carried: &[(Node, Carried)], step: Step) -> Option<(Node, Node)> {
    let of = |&(phi, how): &(Node, Carried)| match how {
        Carried::Recurrence(next) if step == Step::Compute(next) => Some((phi, next)),
        _ => None,
    };
    carried.iter().find_map(of)
}
