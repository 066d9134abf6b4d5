//! The routine for polynomials of live-ins, with partial derivatives.
//!
//! A sum over data is a polynomial whose coefficients, the moments of the data, were folded in
//! double-double with error bounds. The polynomial is a coefficient program, evaluated and
//! differentiated in double-double, so that the error bound covers cancellation between monomials.
//! A result that fails the accuracy contract rejects the call.

use super::acceptance::{Range, accepts, partial_scale, value_scale};
use super::double_double::{Bounded, on_stack};
use super::program::{MAX_SLOTS, Program, ProgramError, Slot};
use crate::entity::Entity;

/// The memory of a call for programs of up to 24 slots, in numbers. All memory is cleared, so that
/// less is faster.
const TINY_MEMORY: usize = 48;
/// The memory for programs of up to 64 slots.
const SMALL_MEMORY: usize = 128;
/// The memory for all programs.
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
    /// `start` is the first value of the sum; it enters the scale of the accuracy contract.
    ///
    /// # Errors
    ///
    /// If a slot or an input does not exist, an input is differentiated twice, or the program has
    /// powers.
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

    /// The slot of the first value of the sum.
    pub fn start(&self) -> Slot {
        self.start
    }

    /// The slot of the value.
    pub fn value(&self) -> Slot {
        self.value
    }

    /// The inputs by which partial derivatives are computed.
    pub fn differentiated(&self) -> &[u32] {
        &self.differentiated
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.program.inputs() as usize
    }

    /// Computes the results: 1 or 0 for acceptance, the value, and its partial derivatives by the
    /// differentiated inputs. Results that are not computed are NaN, as in
    /// [`AffinePower::run`](super::AffinePower::run).
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        self.run_inlined(inputs, with_partials, results);
    }

    /// [`run`](Self::run), inlined to be compiled for the target features of the caller.
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
