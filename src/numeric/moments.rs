//! Moments of data that are known only in a call: sums in double-double with error bounds.

use super::acceptance::Range;
use super::double_double::{Bounded, on_stack};
use super::program::{MAX_SLOTS, Program, ProgramError, Slot};
use crate::entity::Entity;

/// The memory of most calls, in numbers. All memory is cleared, so that less is faster.
const SMALL_MEMORY: usize = 40;

/// Slots of a program, each as three results: high-order word, low-order word and error bound.
///
/// [`Instruction::Bounded`](super::Instruction::Bounded) reads such a triple: the partial sums in
/// the call of the next iteration, the coefficients in a [`Polynomial`](super::Polynomial). The
/// inputs are inactive, so there are no partial derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    program: Program,
    values: Vec<Slot>,
}

impl Moments {
    /// The slots `values` of `program`.
    ///
    /// # Errors
    ///
    /// If a slot does not exist, there are no slots, or the program has powers.
    pub fn new(program: Program, values: Vec<Slot>) -> Result<Moments, ProgramError> {
        values.iter().try_for_each(|&slot| program.check_slot(slot))?;
        match values.is_empty() {
            _ if program.has_powers() => Err(ProgramError::Powers),
            true => Err(ProgramError::Outputs),
            false => Ok(Moments { program, values }),
        }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The slots that are returned.
    pub fn values(&self) -> &[Slot] {
        &self.values
    }

    /// Computes the results: 1 if all numbers are in range, then the words and bounds of all
    /// values; otherwise 0 and NaNs.
    pub fn run(&self, inputs: &[f64], results: &mut [f64]) {
        self.run_inlined(inputs, results);
    }

    /// [`run`](Self::run), inlined to be compiled for the target features of the caller.
    #[inline(always)]
    pub(super) fn run_inlined(&self, inputs: &[f64], results: &mut [f64]) {
        results.fill(f64::NAN);
        let [first, results @ ..] = results else { return };
        *first = 0.0;
        let size = self.program.slots();
        on_stack!(let memory = size, of small: SMALL_MEMORY, all: MAX_SLOTS);
        let slots = &mut memory[..self.program.slots()];
        let (mut range, fits) = (Range::START, inputs.len() >= self.program.inputs() as usize);
        let fits = fits && results.len() >= 3 * self.values.len();
        let known =
            fits.then(|| self.program.evaluate::<false>(inputs, slots, &mut [], &mut range));
        if known.flatten().is_none() || !range.holds() {
            return;
        }
        *first = 1.0;
        for (slot, to) in self.values.iter().zip(results.chunks_exact_mut(3)) {
            let Bounded { hi, lo, bound, .. } = slots[slot.index()];
            to.copy_from_slice(&[hi, lo, bound]);
        }
    }
}
