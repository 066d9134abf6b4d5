//! Lowering: the steps of a basic block become Cranelift instructions. `flow` lowers the jumps
//! between blocks.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F64, I32, I64};
use cranelift_codegen::ir::{AbiParam, InstBuilder, SigRef, Signature, Type, Value};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::FunctionBuilder;

use super::Lanes;
use super::code::RUN;
use super::layout::{Layout, Words};
use super::math::{Function, is_call};
use super::memory::{Counters, Pointers};
use super::operands::counter_test;
use super::pairs::Pairs;
use super::plan::{Source, Step};
use crate::entity::PrimaryMap;
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{Call, Def, Graph, Node};

/// A value in the function being built.
#[derive(Clone, Copy)]
pub(super) enum Lowered {
    Number(Value),
    /// A comparison: 1 or 0 as an integer, or a mask; see `lanes`.
    Truth(Value),
}

/// The signatures of the functions that a function calls, by address.
pub(super) struct Signatures {
    convention: CallConv,
    pointer: Type,
    /// By the number of operands, all of them and the result `f64`.
    of_primitives: [Option<SigRef>; MAX_ARITY + 1],
    of_routines: Option<SigRef>,
}

impl Signatures {
    /// None yet.
    pub(super) fn new(isa: &dyn TargetIsa) -> Self {
        Signatures {
            convention: isa.default_call_conv(),
            pointer: isa.pointer_type(),
            of_primitives: [None; MAX_ARITY + 1],
            of_routines: None,
        }
    }

    fn of_primitive(&mut self, builder: &mut FunctionBuilder<'_>, arity: usize) -> SigRef {
        *self.of_primitives[arity].get_or_insert_with(|| {
            let mut signature = Signature::new(self.convention);
            signature.params = vec![AbiParam::new(F64); arity];
            signature.returns = vec![AbiParam::new(F64)];
            builder.import_signature(signature)
        })
    }

    /// The signature of [`RUN`].
    fn of_routine(&mut self, builder: &mut FunctionBuilder<'_>) -> SigRef {
        *self.of_routines.get_or_insert_with(|| {
            let mut signature = Signature::new(self.convention);
            signature.params = vec![AbiParam::new(self.pointer); 3];
            signature.params.push(AbiParam::new(I32));
            builder.import_signature(signature)
        })
    }
}

/// A function being built, at the block that is being lowered.
pub(super) struct Lowering<'a, 'f> {
    pub(super) graph: &'a Graph,
    pub(super) layout: &'a Layout,
    /// The buffers, in the order of the signature.
    pub(super) buffers: [Value; 5],
    pub(super) lanes: Lanes,
    pub(super) builder: &'a mut FunctionBuilder<'f>,
    pub(super) signatures: Signatures,
    pub(super) values: &'a mut Values,
    /// The failure of a guard of the block, if it has any.
    pub(super) failed: Option<Value>,
    /// The pointers computed in the block.
    pub(super) pointers: Pointers,
    pub(super) counters: Counters,
    /// The loop of which pairs of iterations run, if that is so.
    pub(super) pairs: Option<Pairs>,
}

/// The values of nodes at the current position; reused from function to function for its
/// memory.
pub(super) struct Values {
    lowered: PrimaryMap<Node, Option<Lowered>>,
    /// The nodes that got a value, with their former value.
    log: Vec<(Node, Option<Lowered>)>,
}

impl Values {
    pub(super) fn new(graph: &Graph) -> Self {
        Values { lowered: PrimaryMap::filled(None, graph.nodes.len()), log: Vec::new() }
    }

    pub(super) fn insert(&mut self, node: Node, value: Lowered) {
        self.log.push((node, self.lowered[node].replace(value)));
    }

    pub(super) fn get(&self, node: Node) -> Option<Lowered> {
        self.lowered[node]
    }

    /// The current position in the log, for [`Values::back_to`].
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Removes the values that were inserted since `mark`.
    pub(super) fn back_to(&mut self, mark: usize) {
        for (node, before) in self.log.drain(mark..).rev() {
            self.lowered[node] = before;
        }
    }
}

impl Lowering<'_, '_> {
    /// Lowers one step.
    pub(super) fn step(&mut self, step: Step) {
        let [active, inactive, constants, scratch, outputs] = self.buffers;
        let (slots, flags) = (self.layout.words, self.flags());
        match step {
            Step::Load(node, source) => {
                let (base, index, flags) = match source {
                    Source::Active(index) => (active, index, flags.with_readonly()),
                    Source::Inactive(index) => (inactive, index, flags.with_readonly()),
                    Source::Const(index) => (constants, index, flags.with_readonly()),
                    Source::Slot(index) => (scratch, slots + index, flags),
                    Source::Saved | Source::Iteration(_) => {
                        let value = self.saved_value(node, source);
                        self.values.insert(node, Lowered::Number(value));
                        return;
                    }
                };
                let (number, at) = (self.number_type(), self.offset(index));
                let value = match self.pairs {
                    Some(_) => {
                        let one = self.builder.ins().load(F64, flags, base, at);
                        self.builder.ins().splat(number, one)
                    }
                    None => self.builder.ins().load(number, flags, base, at),
                };
                self.values.insert(node, Lowered::Number(value));
            }
            Step::Spill(node, slot) => {
                let value = self.number(node);
                let at = self.offset(slots + slot);
                self.builder.ins().store(flags, value, scratch, at);
            }
            Step::Output(index, node) => {
                let value = self.number(node);
                let at = self.offset(index);
                self.builder.ins().store(flags, value, outputs, at);
            }
            Step::Compute(node) => {
                let value = match self.graph.nodes[node].def {
                    Def::Apply(..) if let Some(test) = counter_test(self.graph, node) => {
                        Lowered::Truth(self.is_before(test))
                    }
                    Def::Apply(op, args) => self.apply(op, &args[..op.arity()]),
                    Def::Element(access) => Lowered::Number(self.element(node, access)),
                    Def::Call(call) => Lowered::Number(self.call(call)),
                    Def::Result(of, number) => match self.graph.nodes[of].def {
                        Def::Call(call) => Lowered::Number(self.result(call, number)),
                        _ => return,
                    },
                    _ => return,
                };
                self.values.insert(node, value);
            }
            Step::Write(node, word) => {
                let value = self.number(node);
                let at = self.offset(word);
                self.builder.ins().store(flags, value, scratch, at);
            }
            Step::Zero(word, len) => self.zero(word, len),
            Step::ZeroOutputs(first, count) => self.zero_outputs(first, count),
            Step::Save(value, node) => self.save(value, node),
            Step::Accumulate(access, node) => self.accumulate(access, node),
            Step::Store(access, node) => self.store_cell(access, node),
            Step::Begin(region) => self.begin(region),
            Step::SaveLast(region) => self.save_last(region),
            Step::Guard(condition, expect) => {
                let failed = self.truth(condition, !expect);
                self.failed = Some(match self.failed {
                    Some(before) => self.builder.ins().bor(before, failed),
                    None => failed,
                });
            }
        }
    }

    /// Calls the routine of `call` on its operands, which are in the scratch buffer, and returns
    /// its first result.
    fn call(&mut self, call: Call) -> Value {
        let signature = self.signatures.of_routine(self.builder);
        let run = self.builder.ins().iconst(I64, RUN as usize as i64);
        let routine = Arc::as_ptr(&self.graph.calls[call].routine);
        let routine = self.builder.ins().iconst(I64, routine as i64);
        let Words { args, results } = self.layout.calls[call];
        let scratch = self.buffers[3];
        let [args, results] = [args, results].map(|word| {
            let offset = i64::from(self.offset(word));
            self.builder.ins().iadd_imm_s(scratch, offset)
        });
        let partials = i64::from(self.layout.needs_partials[call]);
        let partials = self.builder.ins().iconst(I32, partials);
        self.builder.ins().call_indirect(signature, run, &[routine, args, results, partials]);
        self.result(call, 0)
    }

    /// Loads a result of `call`.
    fn result(&mut self, call: Call, number: u32) -> Value {
        let word = self.layout.calls[call].results + number;
        let (flags, scratch, offset) = (self.flags(), self.buffers[3], self.offset(word));
        self.builder.ins().load(F64, flags, scratch, offset)
    }

    fn apply(&mut self, op: Op, args: &[Node]) -> Lowered {
        let comparison = match op {
            Op::Lt => Some(FloatCC::LessThan),
            Op::Le => Some(FloatCC::LessThanOrEqual),
            Op::Gt => Some(FloatCC::GreaterThan),
            Op::Ge => Some(FloatCC::GreaterThanOrEqual),
            Op::Eq => Some(FloatCC::Equal),
            Op::Ne => Some(FloatCC::NotEqual),
            _ => None,
        };
        if let Some(comparison) = comparison {
            let (a, b) = (self.number(args[0]), self.number(args[1]));
            return Lowered::Truth(self.builder.ins().fcmp(comparison, a, b));
        }
        if op == Op::Same {
            return Lowered::Truth(self.same(args[0], args[1]));
        }
        if op == Op::Select {
            let condition = self.truth(args[0], true);
            let (then, otherwise) = (self.number(args[1]), self.number(args[2]));
            return Lowered::Number(self.choose(condition, then, otherwise));
        }
        if op == Op::Powi {
            let base = self.number(args[0]);
            return Lowered::Number(match self.graph.constant(args[1]) {
                Some(exponent) => self.power(base, exponent as i32),
                // The verifier rejects it.
                None => self.constant(f64::NAN),
            });
        }
        if op == Op::MulAdd
            && let Some(sum) = self.added(args)
        {
            return Lowered::Number(sum);
        }
        let numbers: smallvec::SmallVec<[Value; 3]> =
            args.iter().map(|&arg| self.number(arg)).collect();
        Lowered::Number(if is_call(op) {
            let signature = self.signatures.of_primitive(self.builder, op.arity());
            let address = Function::of(op).address() as i64;
            self.per_lane(&numbers, |lowering, numbers| {
                let address = lowering.builder.ins().iconst(I64, address);
                let call = lowering.builder.ins().call_indirect(signature, address, numbers);
                lowering.builder.inst_results(call)[0]
            })
        } else {
            self.instructions(op, &numbers)
        })
    }

    /// `args[0] · args[1] + args[2]` as a sum or difference if one factor is 1 or -1, which has
    /// the same rounding.
    fn added(&mut self, args: &[Node]) -> Option<Value> {
        let &[a, b, addend] = args else { return None };
        let sign = |factor| self.graph.constant(factor).filter(|sign| sign.abs() == 1.0);
        let (sign, number) = match (sign(a), sign(b)) {
            (_, Some(sign)) => (sign, a),
            (Some(sign), None) => (sign, b),
            (None, None) => return None,
        };
        let (number, addend) = (self.number(number), self.number(addend));
        Some(match sign > 0.0 {
            true => self.builder.ins().fadd(addend, number),
            false => self.builder.ins().fsub(addend, number),
        })
    }

    fn instructions(&mut self, op: Op, args: &[Value]) -> Value {
        let a = args[0];
        let b = args.get(1).copied().unwrap_or(a);
        let c = args.get(2).copied().unwrap_or(a);
        match op {
            Op::Add => self.builder.ins().fadd(a, b),
            Op::Sub => self.builder.ins().fsub(a, b),
            Op::Mul => self.builder.ins().fmul(a, b),
            Op::Div => self.builder.ins().fdiv(a, b),
            Op::Neg => self.builder.ins().fneg(a),
            Op::Recip => {
                let one = self.constant(1.0);
                self.builder.ins().fdiv(one, a)
            }
            Op::MulAdd => self.builder.ins().fma(a, b, c),
            Op::Sqrt => self.builder.ins().sqrt(a),
            Op::Abs => self.builder.ins().fabs(a),
            Op::CopySign => self.copy_sign(a, b),
            Op::Signum => {
                let one = self.constant(1.0);
                let sign = self.copy_sign(one, a);
                let nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
                self.choose(nan, a, sign)
            }
            Op::Min => self.extremum(FloatCC::LessThan, a, b),
            Op::Max => self.extremum(FloatCC::GreaterThan, a, b),
            Op::Floor => self.builder.ins().floor(a),
            Op::Ceil => self.builder.ins().ceil(a),
            Op::Trunc => self.builder.ins().trunc(a),
            Op::Fract => {
                let whole = self.builder.ins().trunc(a);
                self.builder.ins().fsub(a, whole)
            }
            Op::Attach | Op::Detach => a,
            // Lowered before this match, or a call.
            _ => {
                debug_assert!(false, "no instructions for {op}");
                self.constant(f64::NAN)
            }
        }
    }

    /// `a` if the comparison with `b` holds or `b` is NaN, otherwise `b`.
    fn extremum(&mut self, comparison: FloatCC, a: Value, b: Value) -> Value {
        let before = self.builder.ins().fcmp(comparison, a, b);
        let nan = self.builder.ins().fcmp(FloatCC::Unordered, b, b);
        let first = self.builder.ins().bor(before, nan);
        self.choose(first, a, b)
    }

    /// The test whether `a` and `b` are the same bits or both NaN.
    fn same(&mut self, a: Node, b: Node) -> Value {
        let is_number = |node| self.graph.constant(node).is_some_and(|c| !c.is_nan());
        let may_be_nan = !is_number(a) && !is_number(b);
        let (a_bits, b_bits) = (self.bits(a), self.bits(b));
        let same = self.builder.ins().icmp(IntCC::Equal, a_bits, b_bits);
        if !may_be_nan {
            return same;
        }
        let (a, b) = (self.number(a), self.number(b));
        let a_nan = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
        let b_nan = self.builder.ins().fcmp(FloatCC::Unordered, b, b);
        let both = self.builder.ins().band(a_nan, b_nan);
        self.builder.ins().bor(same, both)
    }

    /// The multiplications of [`crate::op::powi`] in the same order.
    fn power(&mut self, mut base: Value, n: i32) -> Value {
        let mut exponent = n.unsigned_abs();
        let mut product = None;
        while exponent != 0 {
            if exponent & 1 == 1 {
                product = Some(match product {
                    Some(product) => self.builder.ins().fmul(product, base),
                    None => base,
                });
            }
            exponent >>= 1;
            if exponent != 0 {
                base = self.builder.ins().fmul(base, base);
            }
        }
        let one = self.constant(1.0);
        match product {
            None => one,
            Some(product) if n < 0 => self.builder.ins().fdiv(one, product),
            Some(product) => product,
        }
    }

    /// The value of `node` as a number.
    pub(super) fn number(&mut self, node: Node) -> Value {
        match self.values.get(node) {
            Some(Lowered::Number(value)) => value,
            Some(Lowered::Truth(truth)) => {
                let (one, zero) = (self.constant(1.0), self.constant(0.0));
                self.choose(truth, one, zero)
            }
            // The plan brings every operand into a register before its use.
            None => self.constant(f64::NAN),
        }
    }

    /// The test whether `node` is nonzero (or zero, if not `expect`).
    pub(super) fn truth(&mut self, node: Node, expect: bool) -> Value {
        match self.values.get(node) {
            Some(Lowered::Truth(truth)) if expect => truth,
            Some(Lowered::Truth(truth)) => self.negated(truth),
            _ => {
                let value = self.number(node);
                let zero = self.constant(0.0);
                let comparison = if expect { FloatCC::NotEqual } else { FloatCC::Equal };
                self.builder.ins().fcmp(comparison, value, zero)
            }
        }
    }

    fn bits(&mut self, node: Node) -> Value {
        let number = self.number(node);
        self.number_bits(number)
    }
}
