//! The coefficient program: a straight-line program from live-ins to the coefficients of a map.
//!
//! Slots are in static single assignment form: each instruction defines the next slot, but for
//! [`Instruction::Power`], which defines as many as it has results. A program is appended to and
//! checked with each instruction, so one that exists is well formed.

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

/// The operations that programs consist of.
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

/// How many steps a loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trips {
    /// As many, below [`MAX_TRIPS`].
    Constant(u64),
    /// As many as the input says, if that is an integer from 0 to below [`MAX_TRIPS`]. The number
    /// of steps has no derivative.
    Input(u32),
}

impl Trips {
    /// The number of steps for these inputs, unless that is no number of steps.
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

/// A map of the states, `z -> A z + b`. An entry that is `None` is zero exactly.
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

    /// Which states depend on which.
    #[inline(always)]
    pub(super) fn dependence(&self) -> &Dependence {
        &self.dependence
    }

    /// All slots that it reads.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.matrix.iter().chain(&self.offset).copied().flatten()
    }
}

/// An inner loop that has been extracted: the map of all its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Power {
    /// The map of one step.
    pub map: AffineMap,
    /// The number of steps, m.
    pub trips: u64,
}

impl Power {
    /// The number of results: the entries of A^m, row by row, then those of the sum of A^k b
    /// for all k below m.
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
    /// A live-in that an operation has rounded.
    Rounded(u32),
    /// A finite number.
    Constant(f64),
    /// A number that was folded in double-double, with its bound.
    Folded(Bounded),
    /// The double-double whose words and bound are this input and the two after it. It has no
    /// derivative.
    Bounded(u32),
    /// One of [`OPERATIONS`]. Those of one operand have it twice.
    Apply(Op, [Slot; 2]),
    /// The map of an inner loop.
    Power(Box<Power>),
}

impl Instruction {
    /// The input that it loads.
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

/// Why a program or a routine is malformed.
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
    /// No outputs, or one that is no state, or twice the same.
    #[error("the outputs are not different states, at least one")]
    Outputs,
    /// Powers, in a routine that computes none.
    #[error("the routine computes no powers")]
    Powers,
    /// Two words that are no double-double, or a negative error bound.
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

    /// Whether an instruction is a power.
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

    /// Appends an instruction; returns the first slot that it defines. An input is loaded once:
    /// another load of it appends nothing and returns the slot that it has.
    ///
    /// # Errors
    ///
    /// If it reads what is not defined, is no finite constant, or the program becomes too long.
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

    /// Checks that these are different inputs.
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

    /// Checks what a map and its number of steps read.
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
