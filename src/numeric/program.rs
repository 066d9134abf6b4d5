//! The coefficient program: a straight-line program from live-ins to the coefficients of a map.
//!
//! A program is in SSA form: each instruction defines the next slot, and [`Instruction::Power`] one
//! slot for each of its results. Each appended instruction is checked, so that programs are always
//! well formed.

use super::dependence::Dependence;
use super::double_double::Bounded;
use crate::entity::{Entity, entity};
use crate::op::Op;

/// The largest number of slots of a program.
pub const MAX_SLOTS: usize = 128;
/// The largest number of states of a map.
pub const MAX_STATES: usize = 6;
/// Trip counts are below this, 2^53, so that they are exact in working precision.
pub const MAX_TRIPS: u64 = 1 << 53;

/// The operations of programs.
pub const OPERATIONS: [Op; 7] = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Neg, Op::Exp, Op::Sqrt];

entity! {
    /// A value of a coefficient program.
    Slot, "t"
}

impl Slot {
    /// The slot `count` places after this one, as the results of a power are.
    pub fn plus(self, count: usize) -> Slot {
        Slot::from_index(self.index() + count)
    }
}

/// The trip count of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trips {
    /// A constant below [`MAX_TRIPS`].
    Constant(u64),
    /// The value of an input, which must be a non-negative integer below [`MAX_TRIPS`]. It has no
    /// derivative.
    Input(u32),
}

impl Trips {
    /// The trip count for these inputs; `None` if the input is no valid count.
    #[inline(always)]
    pub fn count(self, inputs: &[f64]) -> Option<u64> {
        match self {
            Trips::Constant(count) => Some(count),
            Trips::Input(input) => {
                let value = *inputs.get(input as usize)?;
                // The conversion saturates and takes NaN to 0.
                let count = value as u64;
                (count as f64 == value && count < MAX_TRIPS).then_some(count)
            }
        }
    }
}

/// A map of the states, `z -> A z + b`. The entry `None` is a structural zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffineMap {
    matrix: Vec<Option<Slot>>,
    offset: Vec<Option<Slot>>,
    dependence: Dependence,
}

impl AffineMap {
    /// The map with this matrix, row by row, and this offset, which has an entry for each state.
    ///
    /// # Errors
    ///
    /// If there are no states or too many, or the matrix is not square.
    pub fn new(
        matrix: Vec<Option<Slot>>,
        offset: Vec<Option<Slot>>,
    ) -> Result<AffineMap, ProgramError> {
        let states = offset.len();
        if !(1..=MAX_STATES).contains(&states) {
            return Err(ProgramError::States(states));
        }
        if matrix.len() != states * states {
            return Err(ProgramError::Matrix { states, entries: matrix.len() });
        }
        let dependence = Dependence::new(&matrix, &offset);
        Ok(AffineMap { matrix, offset, dependence })
    }

    /// The number of states.
    #[inline(always)]
    pub fn states(&self) -> usize {
        self.offset.len()
    }

    /// The entries of the matrix, row by row.
    #[inline(always)]
    pub fn matrix(&self) -> &[Option<Slot>] {
        &self.matrix
    }

    /// The rows of the matrix.
    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = &[Option<Slot>]> {
        self.matrix.chunks_exact(self.offset.len())
    }

    /// The entries of the offset.
    #[inline(always)]
    pub fn offset(&self) -> &[Option<Slot>] {
        &self.offset
    }

    /// The dependence of the states on one another.
    #[inline(always)]
    pub(super) fn dependence(&self) -> &Dependence {
        &self.dependence
    }

    /// All slots that it reads.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.matrix.iter().chain(&self.offset).copied().flatten()
    }
}

/// The map of all steps of an inner loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Power {
    /// The map of one step.
    pub map: AffineMap,
    /// The number of steps, m.
    pub trips: u64,
}

impl Power {
    /// The number of results: the entries of A^m, row by row, then those of the sum of A^k b over
    /// all k below m.
    #[inline(always)]
    pub fn results(&self) -> usize {
        self.map.states() * (self.map.states() + 1)
    }
}

/// An instruction of a coefficient program.
#[derive(Clone, Debug, PartialEq)]
pub enum Instruction {
    /// A live-in.
    Input(u32),
    /// A live-in with the rounding error of the operation that computed it.
    Rounded(u32),
    /// A finite number.
    Constant(f64),
    /// A number that was folded in double-double, with its error bound.
    Folded(Bounded),
    /// The double-double whose words and bound are this input and the two after it. It has no
    /// derivative.
    Bounded(u32),
    /// One of [`OPERATIONS`]; a unary one has its operand twice.
    Apply(Op, [Slot; 2]),
    /// The map of an inner loop.
    Power(Box<Power>),
}

impl Instruction {
    /// The input that it loads, if it loads one.
    fn loads(&self) -> Option<u32> {
        match self {
            Instruction::Input(input) | Instruction::Rounded(input) => Some(*input),
            _ => None,
        }
    }

    /// The number of slots that it defines.
    #[inline(always)]
    pub fn results(&self) -> usize {
        if let Instruction::Power(power) = self { power.results() } else { 1 }
    }
}

/// A reason why a program or a routine is malformed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProgramError {
    /// An instruction or a map reads a slot that is not defined before it.
    #[error("slot {0} is not defined here")]
    Undefined(Slot),
    /// An operation that is not one of [`OPERATIONS`].
    #[error("programs have no operation {}", .0.name())]
    Operation(Op),
    /// An input that the routine does not have.
    #[error("there is no input x{0}")]
    NoInput(u32),
    /// A constant that is infinite or NaN.
    #[error("the constant {0} is not finite")]
    NotFinite(f64),
    /// More than [`MAX_SLOTS`] slots.
    #[error("more than {MAX_SLOTS} slots")]
    TooLong,
    /// No states, or more than [`MAX_STATES`].
    #[error("{0} states are not from 1 to {MAX_STATES}")]
    States(usize),
    /// A matrix that is not square.
    #[error("a matrix of {states} states has not {entries} entries")]
    Matrix {
        /// The number of states.
        states: usize,
        /// The number of entries.
        entries: usize,
    },
    /// Not one start for each state.
    #[error("{starts} starts for {states} states")]
    Starts {
        /// The number of states.
        states: usize,
        /// The number of starts.
        starts: usize,
    },
    /// A number of steps of [`MAX_TRIPS`] or more.
    #[error("{0} trips are too many")]
    Trips(u64),
    /// No outputs, an output that is no state, or an output that occurs twice.
    #[error("the outputs are not different states, at least one")]
    Outputs,
    /// A program with powers, in a routine that supports none.
    #[error("the routine supports no programs with powers")]
    Powers,
    /// Words that are no double-double, or a negative error bound.
    #[error("{hi} and {lo} with the error bound {bound} are no double-double")]
    DoubleDouble {
        /// The high-order word.
        hi: f64,
        /// The low-order word.
        lo: f64,
        /// The error bound.
        bound: f64,
    },
    /// An input that is differentiated twice.
    #[error("input x{0} is differentiated twice")]
    DifferentiatedTwice(u32),
}

/// A straight-line program over live-ins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    inputs: u32,
    instructions: Vec<Instruction>,
    slots: usize,
    has_powers: bool,
}

impl Program {
    /// The program with this many inputs and no instruction.
    pub fn new(inputs: u32) -> Program {
        Program { inputs, ..Program::default() }
    }

    /// The number of inputs.
    #[inline(always)]
    pub fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Appends an input; returns its number.
    pub fn add_input(&mut self) -> u32 {
        self.inputs += 1;
        self.inputs - 1
    }

    /// The number of slots.
    #[inline(always)]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The instructions; each defines the slots after those of the instructions before it.
    #[inline(always)]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// True if an instruction is a power.
    #[inline(always)]
    pub fn has_powers(&self) -> bool {
        self.has_powers
    }

    /// The slot that holds an input, if an instruction loads it.
    pub fn input_slot(&self, input: u32) -> Option<Slot> {
        let mut slot = 0;
        for instruction in &self.instructions {
            if instruction.loads() == Some(input) {
                return Some(Slot::from_index(slot));
            }
            slot += instruction.results();
        }
        None
    }

    /// Appends an instruction; returns the first slot that it defines. A second load of an input
    /// appends nothing and returns the slot of the first.
    ///
    /// # Errors
    ///
    /// If it reads an undefined slot or input, has a number that is not finite, or the program
    /// becomes too long.
    pub fn push(&mut self, mut instruction: Instruction) -> Result<Slot, ProgramError> {
        match &instruction {
            Instruction::Input(input) | Instruction::Rounded(input) => {
                self.check_input(*input)?;
                if let Some(slot) = self.input_slot(*input) {
                    return Ok(slot);
                }
            }
            Instruction::Bounded(first) => self.check_input(first.saturating_add(2))?,
            Instruction::Constant(value) => {
                if !value.is_finite() {
                    return Err(ProgramError::NotFinite(*value));
                }
            }
            Instruction::Folded(Bounded { hi, lo, bound, .. }) => {
                if let Some(part) = [hi, lo, bound].into_iter().find(|part| !part.is_finite()) {
                    return Err(ProgramError::NotFinite(*part));
                }
                let number = Bounded::new((*hi, *lo), *bound);
                if !number.is_normalised() {
                    return Err(ProgramError::DoubleDouble { hi: *hi, lo: *lo, bound: *bound });
                }
                instruction = Instruction::Folded(number);
            }
            Instruction::Apply(op, [a, b]) => {
                if !OPERATIONS.contains(op) {
                    return Err(ProgramError::Operation(*op));
                }
                self.check_slot(*a)?;
                self.check_slot(*b)?;
                let b = if op.arity() == 1 { *a } else { *b };
                instruction = Instruction::Apply(*op, [*a, b]);
            }
            Instruction::Power(power) => {
                self.check_map(&power.map, Trips::Constant(power.trips))?
            }
        }
        let slots = self.slots + instruction.results();
        if slots > MAX_SLOTS {
            return Err(ProgramError::TooLong);
        }
        let first = Slot::from_index(self.slots);
        self.slots = slots;
        self.has_powers |= matches!(instruction, Instruction::Power(_));
        self.instructions.push(instruction);
        Ok(first)
    }

    /// Checks that an input exists.
    pub(super) fn check_input(&self, input: u32) -> Result<(), ProgramError> {
        if input < self.inputs { Ok(()) } else { Err(ProgramError::NoInput(input)) }
    }

    /// Checks that these inputs exist and are distinct.
    pub(super) fn check_differentiated(&self, inputs: &[u32]) -> Result<(), ProgramError> {
        inputs.iter().try_for_each(|input| self.check_input(*input))?;
        match duplicate(inputs) {
            Some(input) => Err(ProgramError::DifferentiatedTwice(input)),
            None => Ok(()),
        }
    }

    /// Checks that a slot is defined.
    pub(super) fn check_slot(&self, slot: Slot) -> Result<(), ProgramError> {
        if slot.index() < self.slots { Ok(()) } else { Err(ProgramError::Undefined(slot)) }
    }

    /// Checks the slots of a map, and its trip count.
    pub(super) fn check_map(&self, map: &AffineMap, trips: Trips) -> Result<(), ProgramError> {
        map.slots().try_for_each(|slot| self.check_slot(slot))?;
        match trips {
            Trips::Constant(count) if count >= MAX_TRIPS => Err(ProgramError::Trips(count)),
            Trips::Constant(_) => Ok(()),
            Trips::Input(input) => self.check_input(input),
        }
    }
}

/// An item that occurs twice.
pub(super) fn duplicate(items: &[u32]) -> Option<u32> {
    items.iter().enumerate().find(|(i, item)| items[..*i].contains(item)).map(|(_, item)| *item)
}
