//! The builder of a coefficient program: a straight-line program over the live-ins of a loop.

use hashbrown::HashMap;

use crate::numeric::{Instruction, Power, Program, Slot};
use crate::op::Op;
use crate::phi::reason::RecurrenceReason;
use crate::ssa::Node;

/// A coefficient program with its live-ins. Equal instructions are shared. Products with zero and
/// one are folded, so an exact zero has no slot.
#[derive(Default)]
pub(super) struct Coefficients {
    program: Program,
    /// The node of each input.
    live_ins: Vec<Node>,
    /// The slots of nodes.
    of_nodes: HashMap<Node, Slot>,
    /// The slots of constants, by their bits.
    constants: HashMap<u64, Slot>,
    /// The slots of applications.
    known: HashMap<(Op, Slot, Slot), Slot>,
    /// The constant in each slot that holds one.
    numbers: HashMap<Slot, f64>,
}

impl Coefficients {
    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The node of each input.
    pub(super) fn live_ins(&self) -> &[Node] {
        &self.live_ins
    }

    /// The program, and the node of each of its inputs.
    pub(super) fn into_parts(self) -> (Program, Vec<Node>) {
        (self.program, self.live_ins)
    }

    pub(super) fn constant(&mut self, number: f64) -> Result<Slot, RecurrenceReason> {
        if let Some(&slot) = self.constants.get(&number.to_bits()) {
            return Ok(slot);
        }
        let slot = self
            .program
            .push(Instruction::Constant(number))
            .map_err(|_| RecurrenceReason::TooManySteps)?;
        self.constants.insert(number.to_bits(), slot);
        self.numbers.insert(slot, number);
        Ok(slot)
    }

    /// The slot of the live-in `node`, which carries a rounding error of one ulp if `is_rounded`.
    pub(super) fn live_in(
        &mut self,
        node: Node,
        is_rounded: bool,
    ) -> Result<Slot, RecurrenceReason> {
        if let Some(slot) = self.known(node) {
            return Ok(slot);
        }
        let load = if is_rounded { Instruction::Rounded } else { Instruction::Input };
        let instruction = load(self.new_input(node));
        let slot = self.program.push(instruction).map_err(|_| RecurrenceReason::TooManySteps)?;
        self.of_nodes.insert(node, slot);
        Ok(slot)
    }

    /// The slot of `node`, if it has one.
    pub(super) fn known(&self, node: Node) -> Option<Slot> {
        self.of_nodes.get(&node).copied()
    }

    /// Records that `slot` holds the value of `node`.
    pub(super) fn define(&mut self, node: Node, slot: Slot) {
        self.of_nodes.insert(node, slot);
    }

    /// Appends the input `node` without loading it into a slot. Returns its number.
    pub(super) fn new_input(&mut self, node: Node) -> u32 {
        self.live_ins.push(node);
        self.program.add_input()
    }

    /// The constant in `slot`, if it holds one.
    pub(super) fn number(&self, slot: Slot) -> Option<f64> {
        self.numbers.get(&slot).copied()
    }

    /// The sum of two coefficients.
    pub(super) fn add(&mut self, a: Slot, b: Slot) -> Result<Slot, RecurrenceReason> {
        self.apply(Op::Add, a, b)
    }

    /// The product of two coefficients; `None` is exactly zero.
    pub(super) fn mul(&mut self, a: Slot, b: Slot) -> Result<Option<Slot>, RecurrenceReason> {
        match (self.number(a), self.number(b)) {
            (Some(0.0), _) | (_, Some(0.0)) => Ok(None),
            (Some(1.0), _) => Ok(Some(b)),
            (_, Some(1.0)) => Ok(Some(a)),
            _ => self.apply(Op::Mul, a, b).map(Some),
        }
    }

    pub(super) fn div(&mut self, a: Slot, b: Slot) -> Result<Slot, RecurrenceReason> {
        match self.number(b) {
            Some(1.0) => Ok(a),
            _ => self.apply(Op::Div, a, b),
        }
    }

    pub(super) fn neg(&mut self, a: Slot) -> Result<Slot, RecurrenceReason> {
        match self.number(a) {
            Some(number) => self.constant(-number),
            None => self.apply(Op::Neg, a, a),
        }
    }

    /// Applies one of the operations of programs; a unary one has its operand twice.
    pub(super) fn apply(&mut self, op: Op, a: Slot, b: Slot) -> Result<Slot, RecurrenceReason> {
        let (a, b) = if op.commutes() && b < a { (b, a) } else { (a, b) };
        if let Some(&slot) = self.known.get(&(op, a, b)) {
            return Ok(slot);
        }
        let instruction = Instruction::Apply(op, [a, b]);
        let slot = self.program.push(instruction).map_err(|_| RecurrenceReason::TooManySteps)?;
        self.known.insert((op, a, b), slot);
        Ok(slot)
    }

    /// The results of the power of an inner loop: A^m row by row, then Σ A^k b.
    pub(super) fn power(&mut self, power: Power) -> Result<Vec<Slot>, RecurrenceReason> {
        let results = power.results();
        let first = self
            .program
            .push(Instruction::Power(Box::new(power)))
            .map_err(|_| RecurrenceReason::TooManySteps)?;
        Ok((0..results).map(|at| first.plus(at)).collect())
    }
}
