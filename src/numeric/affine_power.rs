//! The routine for affine recurrences: what it consists of and what it returns.

use super::acceptance::accepts;
use super::double_double::Bounded;
use super::program::{AffineMap, Program, ProgramError, Slot, Trips, duplicate};

/// The state after n steps of `z -> A z + b`, whose coefficients are a program's.
#[derive(Clone, Debug, PartialEq)]
pub struct AffinePower {
    program: Program,
    map: AffineMap,
    start: Vec<Slot>,
    trips: Trips,
    outputs: Vec<u32>,
    differentiated: Vec<u32>,
    /// The slots of the differentiated inputs; the program may read fewer.
    differentiated_slots: Vec<Option<Slot>>,
}

impl AffinePower {
    /// The states `outputs` after `trips` steps of `map` from `start`, and their partial
    /// derivatives by the inputs `differentiated`.
    ///
    /// # Errors
    ///
    /// If one of them names what does not exist, the sizes do not fit, outputs or differentiated
    /// inputs occur twice, or there is no output.
    pub fn new(
        program: Program,
        map: AffineMap,
        start: Vec<Slot>,
        trips: Trips,
        outputs: Vec<u32>,
        differentiated: Vec<u32>,
    ) -> Result<AffinePower, ProgramError> {
        program.check_map(&map, trips)?;
        if start.len() != map.states() {
            return Err(ProgramError::Starts { states: map.states(), starts: start.len() });
        }
        start.iter().try_for_each(|slot| program.check_slot(*slot))?;
        let is_output = |output: &u32| (*output as usize) < map.states();
        let all_states = outputs.iter().all(is_output);
        if outputs.is_empty() || !all_states || duplicate(&outputs).is_some() {
            return Err(ProgramError::Outputs);
        }
        program.check_differentiated(&differentiated)?;
        let differentiated_slots =
            differentiated.iter().map(|input| program.input_slot(*input)).collect();
        Ok(AffinePower {
            program,
            map,
            start,
            trips,
            outputs,
            differentiated,
            differentiated_slots,
        })
    }

    /// The same with another trip count, which names an input that exists.
    pub(crate) fn with_trips(&self, trips: Trips) -> AffinePower {
        AffinePower { trips, ..self.clone() }
    }

    /// The coefficient program.
    #[inline(always)]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The map of one step.
    #[inline(always)]
    pub fn map(&self) -> &AffineMap {
        &self.map
    }

    /// Where each state starts.
    #[inline(always)]
    pub fn start(&self) -> &[Slot] {
        &self.start
    }

    /// The number of steps.
    #[inline(always)]
    pub fn trips(&self) -> Trips {
        self.trips
    }

    /// The states that are wanted.
    #[inline(always)]
    pub fn outputs(&self) -> &[u32] {
        &self.outputs
    }

    /// The inputs by which partial derivatives are wanted.
    #[inline(always)]
    pub fn differentiated(&self) -> &[u32] {
        &self.differentiated
    }

    /// The number of inputs.
    #[inline(always)]
    pub fn inputs(&self) -> usize {
        self.program.inputs() as usize
    }

    /// The place of an output's value in the results. Its partial derivatives come after it.
    #[inline(always)]
    pub fn value_index(&self, output: usize) -> usize {
        1 + output * (1 + self.differentiated.len())
    }

    /// The slots of the differentiated inputs that the program loads; the others have none.
    #[inline(always)]
    pub(super) fn differentiated_slots(&self) -> &[Option<Slot>] {
        &self.differentiated_slots
    }

    /// Computes the results. A result that is not computed is NaN: all but the first of a
    /// rejected call may be, and so are the partial derivatives of one that is without. A call
    /// with fewer inputs or less space for results than there are is rejected.
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        self.run_inlined(inputs, with_partials, results);
    }

    /// The results with their places, error bounds and scales, also those that fail the accuracy
    /// contract; none where a number is out of range or an input is missing.
    pub fn bounded_results(&self, inputs: &[f64]) -> Vec<(usize, Bounded, f64)> {
        if inputs.len() < self.inputs() {
            return Vec::new();
        }
        let mut results: Vec<(usize, Bounded, f64)> = Vec::new();
        let mut collect = |index, result, scale| {
            // Powering begins again where quotients were out of range.
            results.retain(|&(known, ..)| known != index);
            results.push((index, result, scale));
            true
        };
        let in_range = self.compute(inputs, true, &mut collect).is_some();
        if in_range { results } else { Vec::new() }
    }

    /// The same as [`run`](Self::run), compiled for the target features of the caller.
    #[inline(always)]
    pub(super) fn run_inlined(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        results.fill(f64::NAN);
        let fits =
            inputs.len() >= self.inputs() && results.len() >= self.value_index(self.outputs.len());
        let mut write = |index: usize, result: Bounded, scale: f64| {
            results[index] = result.hi;
            accepts(result, scale)
        };
        let accepted = fits && self.compute(inputs, with_partials, &mut write).is_some();
        if let Some(first) = results.first_mut() {
            *first = f64::from(u8::from(accepted));
        }
    }
}
