//! Vector loops: pairs of iterations of an innermost loop.
//!
//! In front of a loop of one basic block whose iterations depend on each other through sums alone
//! comes one that runs two iterations at once, with vectors of two numbers as in `lanes`; the loop
//! itself runs the rest, at least one iteration. Consecutive elements are loaded and stored as
//! vectors, others one by one.
//!
//! ```text
//! for i in 0..9 { sum += x[i] · y }
//!
//! for i in 0, 2, 4, 6 { sums += x[i..i + 2] · (y, y) };  sum += sums.0 + sums.1
//! for i in 8..9 { sum += x[i] · y }
//! ```
//!
//! Sums are added up in another order, so graphs whose results need the bits of the interpreter have
//! vector loops without sums only.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F64, F64X2, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::Lanes;
use super::lower::{Lowered, Lowering};
use super::memory::Address;
use super::operands::{counter_test, in_registers, known_element};
use super::plan::{BasicBlock, Next, Plan, Source, Step};
use super::schedule::Test;
use crate::op::Op;
use crate::ssa::{Access, Def, Graph, Node, Region};

/// The least bound of a loop for which a vector loop pays.
const LEAST_TRIPS: u32 = 8;

/// A loop of one basic block that can run pairs of iterations.
pub(super) struct VectorLoop {
    pub(super) region: Region,
    /// The loop with the iteration number: a replaying loop has that of the replayed one.
    pub(super) counting: Region,
    /// The number of the last iteration of a loop that replays none.
    pub(super) last: Option<u32>,
    /// For each parameter of the block its next value.
    pub(super) carried: Vec<Carried>,
}

/// The next value of an entry φ.
#[derive(Clone, Copy)]
pub(super) enum Carried {
    /// The φ itself.
    Same,
    /// A constant: only the first iteration has another value.
    Constant(f64),
    /// This sum of the φ and something else.
    Sum(Node),
}

impl VectorLoop {
    /// The vector loop for the loop with this block as its header; with sums if `reorders_sums`.
    pub(super) fn of(
        graph: &Graph,
        plan: &Plan,
        header: usize,
        reorders_sums: bool,
    ) -> Option<Self> {
        let block = &plan.blocks[header];
        let &Next::Branch { test, then, .. } = &block.next else { return None };
        let back = &plan.blocks[then];
        let Next::BackEdge(region, to, values) = &back.next else { return None };
        let is_own = *to == header && passes_on(back);
        let data = &graph.regions[*region];
        let counting = data.replays.unwrap_or(*region);
        let last = match test {
            Test::More(_) => None,
            Test::Node(again) => Some(counter_test(graph, again).filter(|(of, _)| of == region)?.1),
        };
        if !is_own || graph.bound(*region) < LEAST_TRIPS {
            return None;
        }
        let steps = &block.steps;
        let is_plain = |step: &Step| match *step {
            Step::Load(node, Source::Slot(_)) => {
                !matches!(graph.nodes[node].def, Def::Entry(of, _) if of == *region)
            }
            Step::Compute(node) => {
                matches!(graph.nodes[node].def, Def::Apply(..) | Def::Element(_))
            }
            Step::Save(value, _) => !block.parameters.contains(&value),
            Step::Load(..) | Step::Accumulate(..) | Step::Store(..) | Step::Guard(..) => true,
            _ => false,
        };
        let are_sums_free = reorders_sums || !adds_in_order(graph, steps, counting);
        if !steps.iter().all(is_plain) || !are_independent(graph, steps, counting) || !are_sums_free
        {
            return None;
        }
        let mut carried = Vec::new();
        for (&phi, &next) in block.parameters.iter().zip(values) {
            carried.push(match graph.constant(next) {
                _ if phi == next => Carried::Same,
                Some(constant) => Carried::Constant(constant),
                None if reorders_sums && is_sum(graph, steps, phi, next) => Carried::Sum(next),
                None => return None,
            });
        }
        Some(VectorLoop { region: *region, counting, last, carried })
    }
}

/// Tests whether `block` loads constants at most, before it ends.
pub(super) fn passes_on(block: &BasicBlock) -> bool {
    let is_constant = |step: &Step| matches!(step, Step::Load(_, Source::Const(_)));
    block.parameters.is_empty() && block.steps.iter().all(is_constant)
}

/// The nodes that `step` uses.
fn used(graph: &Graph, step: &Step) -> Vec<Node> {
    match *step {
        Step::Compute(node) => match known_element(graph, node) {
            Some(source) => vec![source],
            None => in_registers(graph, node).to_vec(),
        },
        Step::Save(node, _)
        | Step::Accumulate(_, node)
        | Step::Store(_, node)
        | Step::Guard(node, _) => vec![node],
        _ => vec![],
    }
}

/// Tests whether `phi` is used for its next value alone, its sum with something else, and that for
/// nothing else.
fn is_sum(graph: &Graph, steps: &[Step], phi: Node, next: Node) -> bool {
    let Def::Apply(op, args) = graph.nodes[next].def else { return false };
    let is_added = match op {
        Op::Add => (args[0] == phi) != (args[1] == phi),
        Op::Sub => args[0] == phi && args[1] != phi,
        Op::MulAdd => args[2] == phi && args[0] != phi && args[1] != phi,
        _ => false,
    };
    let users = |of: Node| steps.iter().filter(move |step| used(graph, step).contains(&of));
    is_added && users(next).next().is_none() && users(phi).all(|step| *step == Step::Compute(next))
}

/// Tests whether several iterations may add to one element.
fn adds_in_order(graph: &Graph, steps: &[Step], counting: Region) -> bool {
    let added = steps.iter().filter_map(|step| match *step {
        Step::Accumulate(access, _) => Some(&graph.accesses[access]),
        _ => None,
    });
    let mut seen = Vec::new();
    for access in added {
        let moves = |&(region, stride): &(Region, i32)| region == counting && stride != 0;
        if seen.contains(&access.array) || !access.strides.iter().any(moves) {
            return true;
        }
        seen.push(access.array);
    }
    false
}

/// Tests whether no iteration reads what the one before or after it writes.
fn are_independent(graph: &Graph, steps: &[Step], counting: Region) -> bool {
    let (mut reads, mut writes): (Vec<Access>, Vec<Access>) = (Vec::new(), Vec::new());
    for step in steps {
        match *step {
            Step::Compute(node) => {
                if let Def::Element(access) = graph.nodes[node].def {
                    reads.push(access);
                }
            }
            Step::Accumulate(access, _) | Step::Store(access, _) => writes.push(access),
            _ => {}
        }
    }
    let is_free = |read: Access, write: Access| {
        let [read, write] = [read, write].map(|access| &graph.accesses[access]);
        if read.array != write.array {
            return true;
        }
        let mut strides = [read, write].map(|access| access.strides.to_vec());
        strides.iter_mut().for_each(|strides| strides.sort_unstable());
        let own = strides[0].iter().find(|stride| stride.0 == counting);
        let stride = own.map_or(0, |stride| i64::from(stride.1));
        let distance = i64::from(read.base) - i64::from(write.base);
        let is_next = if stride == 0 { distance == 0 } else { distance.abs() == stride.abs() };
        strides[0] == strides[1] && !is_next
    };
    reads.iter().all(|&read| writes.iter().all(|&write| is_free(read, write)))
}

impl Lowering<'_, '_> {
    /// Lowers the vector loop for the loop of `steps`, with the initial values of its parameters;
    /// returns those of the loop after it.
    pub(super) fn vector_loop(
        &mut self,
        vector_loop: &VectorLoop,
        (parameters, steps): (&[Node], &[Step]),
        firsts: &[Value],
        side_exit: impl Fn(&mut Self, Value),
    ) -> Vec<Value> {
        let &VectorLoop { region, counting, last, ref carried } = vector_loop;
        let mark = self.values.mark();
        for node in steps.iter().flat_map(|step| used(self.graph, step)) {
            self.widen(node);
        }
        // The lane of the first iteration.
        let first_lane = u8::from(last.is_none());
        let begin = |(&first, carried): (&Value, &Carried)| match *carried {
            Carried::Same => self.builder.ins().splat(F64X2, first),
            Carried::Constant(constant) => {
                let both = self.pair_of(constant);
                self.builder.ins().insertlane(both, first, first_lane)
            }
            Carried::Sum(_) => self.pair_of(0.0),
        };
        let begin: Vec<_> = firsts.iter().zip(carried).map(begin).map(Into::into).collect();
        let [head, body, after] = [(); 3].map(|()| self.builder.create_block());
        self.builder.ins().jump(head, &begin);
        self.builder.switch_to_block(head);
        let pairs: Vec<Value> =
            carried.iter().map(|_| self.builder.append_block_param(head, F64X2)).collect();
        let number = self.counter(region);
        // One iteration remains.
        let more = match last {
            Some(last) => {
                let most = i64::from(last) - 1;
                self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, number, most)
            }
            None => self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, number, 1),
        };
        self.builder.ins().brif(more, body, &[], after, &[]);
        self.builder.switch_to_block(body);
        if last.is_none() {
            // The lower one of both numbers.
            let lower = self.builder.ins().iadd_imm_s(number, -1);
            self.set_counter(region, lower);
        }
        for (&phi, &pair) in parameters.iter().zip(&pairs) {
            self.values.insert(phi, Lowered::Number(pair));
        }
        (self.lanes, self.pairs) = (Lanes::Two, Some(counting));
        self.pointers.clear();
        steps.iter().for_each(|&step| self.step(step));
        if let Some(failed) = self.failed.take() {
            let failed = self.any(failed);
            side_exit(self, failed);
        }
        let next = |(&pair, carried): (&Value, &Carried)| match *carried {
            Carried::Same => pair,
            Carried::Constant(constant) => self.pair_of(constant),
            Carried::Sum(next) => self.number(next),
        };
        let nexts: Vec<_> = pairs.iter().zip(carried).map(next).map(Into::into).collect();
        (self.lanes, self.pairs) = (Lanes::One, None);
        self.pointers.clear();
        self.values.back_to(mark);
        let by = if last.is_some() { 2 } else { -2 };
        let next = self.builder.ins().iadd_imm_s(number, by);
        self.set_counter(region, next);
        self.builder.ins().jump(head, &nexts);
        self.builder.switch_to_block(after);
        let end = |((&first, &pair), carried): ((&Value, &Value), &Carried)| match *carried {
            Carried::Same => first,
            Carried::Constant(_) => self.builder.ins().extractlane(pair, first_lane),
            Carried::Sum(_) => {
                let [a, b] = [0, 1].map(|lane| self.builder.ins().extractlane(pair, lane));
                let sum = self.builder.ins().fadd(a, b);
                self.builder.ins().fadd(first, sum)
            }
        };
        firsts.iter().zip(&pairs).zip(carried).map(end).collect()
    }

    /// The vector of a number twice.
    pub(super) fn pair_of(&mut self, number: f64) -> Value {
        let lanes = core::mem::replace(&mut self.lanes, Lanes::Two);
        let pair = self.constant(number);
        self.lanes = lanes;
        pair
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

    /// The iteration numbers of `region`, as numbers: those of both iterations if it is the loop
    /// `pairs`.
    pub(super) fn pair_of_iterations(&mut self, number: Value, region: Region) -> Value {
        let first = self.builder.ins().fcvt_from_sint(F64, number);
        let both = self.builder.ins().splat(F64X2, first);
        let counting = self.graph.regions[region].replays.unwrap_or(region);
        if self.pairs != Some(counting) {
            return both;
        }
        let one = self.builder.ins().f64const(1.0);
        let second = self.builder.ins().fadd(first, one);
        self.builder.ins().insertlane(both, second, 1)
    }

    /// Loads the numbers at `address` in both iterations of the loop `pairs`.
    pub(super) fn load_pair(&mut self, address: Address, pairs: Region) -> Value {
        let stride = address.stride(pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        match stride {
            0 => {
                let number = self.builder.ins().load(F64, flags, pointer, at);
                self.builder.ins().splat(F64X2, number)
            }
            1 => self.builder.ins().load(F64X2, flags, pointer, at),
            _ => {
                let [a, b] = [0, stride].map(|distance| {
                    let at = at + self.distance(distance);
                    self.builder.ins().load(F64, flags, pointer, at)
                });
                let both = self.builder.ins().splat(F64X2, a);
                self.builder.ins().insertlane(both, b, 1)
            }
        }
    }

    /// Stores both numbers of `pair` at `address` in both iterations of the loop `pairs`.
    pub(super) fn store_pair(&mut self, pair: Value, address: Address, pairs: Region) {
        let stride = address.stride(pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        if stride == 1 {
            self.builder.ins().store(flags, pair, pointer, at);
            return;
        }
        for (lane, distance) in [(0, 0), (1, stride)] {
            let number = self.builder.ins().extractlane(pair, lane);
            let at = at + self.distance(distance);
            self.builder.ins().store(flags, number, pointer, at);
        }
    }

    /// Adds both numbers of `pair` at `address` in both iterations of the loop `pairs`.
    pub(super) fn accumulate_pair(&mut self, pair: Value, address: Address, pairs: Region) {
        let stride = address.stride(pairs);
        let (pointer, at) = self.pointer(address);
        let flags = self.flags();
        if stride == 1 {
            let before = self.builder.ins().load(F64X2, flags, pointer, at);
            let sum = self.builder.ins().fadd(before, pair);
            self.builder.ins().store(flags, sum, pointer, at);
            return;
        }
        for (lane, distance) in [(0, 0), (1, stride)] {
            let number = self.builder.ins().extractlane(pair, lane);
            let at = at + self.distance(distance);
            let before = self.builder.ins().load(F64, flags, pointer, at);
            let sum = self.builder.ins().fadd(before, number);
            self.builder.ins().store(flags, sum, pointer, at);
        }
    }

    /// The number of bytes of so many entries.
    fn distance(&self, entries: i64) -> i32 {
        entries as i32 * self.entry_bytes()
    }
}
