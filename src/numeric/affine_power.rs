//! The routine for affine recurrences: its parts and its interface (`compute` evaluates it).

use super::acceptance::accepts;
use super::double_double::Bounded;
use super::program::{AffineMap, Program, ProgramError, Slot, Trips, duplicate};

/// The state after n steps of `z -> A z + b`, with coefficients from a program.
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
    /// If a slot, state or input does not exist, the sizes do not fit, an output or a
    /// differentiated input occurs twice, or there is no output.
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

    /// This routine with another trip count; an input of it must exist.
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

    /// The start of each state.
    #[inline(always)]
    pub fn start(&self) -> &[Slot] {
        &self.start
    }

    /// The number of steps.
    #[inline(always)]
    pub fn trips(&self) -> Trips {
        self.trips
    }

    /// The states that are returned.
    #[inline(always)]
    pub fn outputs(&self) -> &[u32] {
        &self.outputs
    }

    /// The inputs by which partial derivatives are computed.
    #[inline(always)]
    pub fn differentiated(&self) -> &[u32] {
        &self.differentiated
    }

    /// The number of inputs.
    #[inline(always)]
    pub fn inputs(&self) -> usize {
        self.program.inputs() as usize
    }

    /// The index of an output's value in the results. Its partial derivatives follow it.
    #[inline(always)]
    pub fn value_index(&self, output: usize) -> usize {
        1 + output * (1 + self.differentiated.len())
    }

    /// The slots of the differentiated inputs; `None` for inputs that the program does not load.
    #[inline(always)]
    pub(super) fn differentiated_slots(&self) -> &[Option<Slot>] {
        &self.differentiated_slots
    }

    /// Computes the results: 1 or 0 for acceptance, then for each output its value and its partial
    /// derivatives. Results that are not computed are NaN: partial derivatives without
    /// `with_partials`, and possibly all results of a rejected call. A call with too few inputs or
    /// too little space for results is rejected.
    pub fn run(&self, inputs: &[f64], with_partials: bool, results: &mut [f64]) {
        self.run_inlined(inputs, with_partials, results);
    }

    /// The results with their indices, error bounds and scales, also those that fail the accuracy
    /// contract. Empty if a number is out of range or an input is missing.
    pub fn bounded_results(&self, inputs: &[f64]) -> Vec<(usize, Bounded, f64)> {
        if inputs.len() < self.inputs() {
            return Vec::new();
        }
        let mut results: Vec<(usize, Bounded, f64)> = Vec::new();
        let mut collect = |index, result, scale| {
            // Binary powering computes a result again if the quotients failed.
            results.retain(|&(known, ..)| known != index);
            results.push((index, result, scale));
            true
        };
        let in_range = self.compute(inputs, true, &mut collect).is_some();
        if in_range { results } else { Vec::new() }
    }

    /// [`run`](Self::run), inlined to be compiled for the target features of the caller.
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
