//! Moments of data that are known only in a call: sums in double-double with error bounds.

use super::acceptance::Range;
use super::double_double::{Bounded, on_stack};
use super::program::{MAX_SLOTS, Program, ProgramError, Slot};
use crate::entity::Entity;

/// The memory of most calls in numbers: all of it is cleared.
const SMALL_MEMORY: usize = 40;

/// Some slots of a program, each as three results: high-order word, low-order word and error bound.
/// [`Instruction::Bounded`](super::Instruction::Bounded) reads such a triple: the sums so far in the
/// next call, the coefficients in a [`Polynomial`](super::Polynomial). It has no partial
/// derivatives: its inputs are inactive.
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
    /// If one of them does not exist, there is none, or the program has powers.
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

    /// Computes whether all numbers are in range (1) or not (0), and the words and bounds of all
    /// values, which are NaN if not.
    pub fn run(&self, inputs: &[f64], results: &mut [f64]) {
        self.run_inlined(inputs, results);
    }

    /// The same, compiled for the target features of the caller.
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
