//! The value of a polynomial of live-ins, with partial derivatives.
//!
//! A sum over data is a polynomial whose coefficients, the moments of the data, have been folded
//! in double-double with their bounds. It is a coefficient program whose last slot is the value:
//! evaluated and differentiated in double-double, so that what cancels between the monomials is
//! covered by the error bound. A result that fails the accuracy contract rejects the call.

use super::acceptance::{Range, accepts, partial_scale, value_scale};
use super::double_double::{Bounded, on_stack};
use super::program::{MAX_SLOTS, Program, ProgramError, Slot};
use crate::entity::Entity;

/// The memory of a call in numbers, for programs of each size: all of it is cleared, so short
/// programs take less.
const TINY_MEMORY: usize = 48;
/// For programs of up to 64 slots.
const SMALL_MEMORY: usize = 128;
/// For all programs.
const MAX_MEMORY: usize = 2 * MAX_SLOTS;

/// A slot of a program, as a function of the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Polynomial {
    program: Program,
    start: Slot,
    value: Slot,
    differentiated: Vec<u32>,
    /// The slots of the differentiated inputs; the program may read fewer.
    differentiated_slots: Vec<Option<Slot>>,
}

impl Polynomial {
    /// The slot `value` of `program`, and its partial derivatives by the inputs `differentiated`.
    /// `start` is what the sum begins with, by which the effect of inputs is measured.
    ///
    /// # Errors
    ///
    /// If one of them does not exist, an input is differentiated twice, or the program has powers.
    pub fn new(
        program: Program,
        start: Slot,
        value: Slot,
        differentiated: Vec<u32>,
    ) -> Result<Polynomial, ProgramError> {
        program.check_slot(start)?;
        program.check_slot(value)?;
        program.check_differentiated(&differentiated)?;
        if program.has_powers() {
            return Err(ProgramError::Powers);
        }
        let differentiated_slots =
            differentiated.iter().map(|input| program.input_slot(*input)).collect();
        Ok(Polynomial { program, start, value, differentiated, differentiated_slots })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What the sum begins with.
    pub fn start(&self) -> Slot {
        self.start
    }

    /// The slot of the value.
    pub fn value(&self) -> Slot {
        self.value
    }

    /// The inputs by which partial derivatives are wanted.
    pub fn differentiated(&self) -> &[u32] {
        &self.differentiated
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.program.inputs() as usize
    }

    /// Computes whether the call is accepted (1) or not (0), the value, and its partial
    /// derivatives by the differentiated inputs. What is not computed is NaN, as in
    /// [`AffinePower::run`](super::AffinePower::run).
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        self.run_inlined(inputs, with_partials, results);
    }

    /// The same, compiled for the target features of the caller.
    #[inline(always)]
    pub(super) fn run_inlined(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        results.fill(f64::NAN);
        let fits = inputs.len() >= self.inputs();
        let [first, results @ ..] = results else { return };
        let fits = fits && results.len() > self.differentiated.len();
        let accepted = fits && self.compute(inputs, with_partials, results).is_some();
        *first = f64::from(u8::from(accepted));
    }

    #[inline(always)]
    fn compute(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) -> Option<()> {
        let size = 2 * self.program.slots();
        on_stack!(let memory = size, of tiny: TINY_MEMORY, small: SMALL_MEMORY, all: MAX_MEMORY);
        let (slots, memory) = memory.split_at_mut_checked(self.program.slots())?;
        let (adjoints, memory) = memory.split_at_mut_checked(slots.len())?;
        let mut range = Range::START;
        self.program.evaluate::<false>(inputs, slots, memory, &mut range)?;
        let value = slots[self.value.index()];
        let scale = value_scale(value.hi, slots[self.start.index()].hi);
        let [to, partials @ ..] = results else { return None };
        *to = value.hi;
        if !(accepts(value, scale) && range.holds()) {
            return None;
        }
        if with_partials {
            adjoints[self.value.index()] = Bounded::ONE;
            self.program.reverse::<false>(slots, adjoints, memory, &mut range)?;
            let all = self.differentiated.iter().zip(&self.differentiated_slots);
            let mut accepted = true;
            for ((&input, slot), to) in all.zip(partials) {
                let partial = slot.map_or(Bounded::ZERO, |slot| adjoints[slot.index()]);
                *to = partial.hi;
                accepted &= accepts(partial, partial_scale(scale, inputs[input as usize]));
            }
            if !accepted {
                return None;
            }
        }
        range.holds().then_some(())
    }
}
