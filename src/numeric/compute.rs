//! Evaluation of an affine recurrence with all partials.
//!
//! 1. Evaluate the coefficient program.
//! 2. Advance the state by binary powering.
//! 3. For each output, propagate adjoints back through the powers and the program.
//!
//! All in double-double with error bounds. A scalar recurrence is computed by quotients first, and
//! by powering if these are not accurate. A result that fails the accuracy contract rejects the
//! call.

use super::AffinePower;
use super::acceptance::{Range, partial_scale, value_scale};
use super::double_double::{Bounded, on_stack};
use super::evaluate::add_to;
use super::powering::{Adjoints, Steps, advance, level_size, levels, sweep};
use super::program::MAX_STATES;
use super::quotients::by_quotients;
use crate::entity::Entity;

/// The largest memory of a call, in numbers of 32 bytes: enough for three states and 2³² steps,
/// four and a million, or six and a thousand, with a short program. A call that needs more is
/// rejected. The memory is on the stack, where each 4 KiB cost a probe in every call.
const MAX_MEMORY: usize = 576;
/// Memory for two states and a million steps. All memory is cleared, so that less is faster.
const MEDIUM_MEMORY: usize = 192;
/// Memory for two states and a thousand steps.
const SMALL_MEMORY: usize = 96;
/// Memory for quotients and a short program.
const TINY_MEMORY: usize = 16;

impl AffinePower {
    /// Computes all results and passes each to `accept`, with its index and its scale. Returns
    /// `None` after a result that is not accepted, or if a number is out of range.
    #[inline(always)]
    pub(super) fn compute(
        &self,
        inputs: &[f64],
        with_partials: bool,
        accept: &mut impl FnMut(usize, Bounded, f64) -> bool,
    ) -> Option<()> {
        let trips = self.trips().count(inputs)?;
        let is_scalar = self.map().states() == 1 && !self.program().has_powers();
        if is_scalar && self.by_quotients(trips, inputs, with_partials, accept).is_some() {
            return Some(());
        }
        self.by_powering(trips, inputs, with_partials, accept)
    }

    /// [`compute`](Self::compute) for a scalar recurrence without inner loops, by quotients.
    #[inline(always)]
    fn by_quotients(
        &self,
        trips: u64,
        inputs: &[f64],
        with_partials: bool,
        accept: &mut impl FnMut(usize, Bounded, f64) -> bool,
    ) -> Option<()> {
        let size = 2 * self.program().slots();
        on_stack!(let memory = size, of tiny: TINY_MEMORY, small: SMALL_MEMORY);
        let (slots, memory) = memory.split_at_mut_checked(self.program().slots())?;
        let (adjoints, _) = memory.split_at_mut_checked(slots.len())?;
        let mut range = Range::START;
        self.program().evaluate::<false>(inputs, slots, &mut [], &mut range)?;
        let ([[ratio]], [offset]) = self.map().load::<1>(slots);
        let start = slots[self.start().first()?.index()];
        let quotients = by_quotients(ratio, offset, start, trips, &mut range)?;
        let scale = value_scale(quotients.state.hi, start.hi);
        if !(accept(self.value_index(0), quotients.state, scale) && range.holds()) {
            return None;
        }
        if with_partials {
            self.accumulate(&quotients.adjoints, adjoints);
            self.program().reverse::<false>(slots, adjoints, &[], &mut range)?;
            self.accept_partials(0, scale, inputs, adjoints, accept)?;
        }
        range.holds().then_some(())
    }

    /// The memory of the levels of binary powering for `trips` steps.
    fn level_memory(&self, trips: u64) -> usize {
        levels(trips) * level_size(array_size(self.map().states()), 1)
    }

    /// True if the memory of a call is enough for this trip count.
    pub(crate) fn has_memory(&self, trips: u64) -> bool {
        let program = self.program();
        2 * program.slots() + self.level_memory(trips) + program.power_memory() <= MAX_MEMORY
    }

    /// [`compute`](Self::compute) by binary powering.
    #[inline(always)]
    fn by_powering(
        &self,
        trips: u64,
        inputs: &[f64],
        with_partials: bool,
        accept: &mut impl FnMut(usize, Bounded, f64) -> bool,
    ) -> Option<()> {
        // Memory: slots, their adjoints, levels of the loop, levels of inner loops.
        let slots = self.program().slots();
        let (outer, inner) = (self.level_memory(trips), self.program().power_memory());
        let size = 2 * slots + outer + inner;
        on_stack!(
            let memory = size,
            of small: SMALL_MEMORY, medium: MEDIUM_MEMORY, all: MAX_MEMORY
        );
        let (slots, memory) = memory.split_at_mut_checked(slots)?;
        let (adjoints, memory) = memory.split_at_mut_checked(slots.len())?;
        let (levels, memory) = memory.split_at_mut_checked(outer)?;
        let (inner, _) = memory.split_at_mut_checked(inner)?;
        let mut range = Range::START;
        self.program().evaluate::<true>(inputs, slots, inner, &mut range)?;
        if !range.holds() {
            return None;
        }
        let mut call = Call { trips, slots, adjoints, levels, range };
        let mut states = [Bounded::ZERO; MAX_STATES];
        match self.map().states() {
            1 => self.advance::<1>(1, &mut call, &mut states),
            2 => self.advance::<2>(2, &mut call, &mut states),
            3 => self.advance::<3>(3, &mut call, &mut states),
            4 => self.advance::<4>(4, &mut call, &mut states),
            n => self.advance::<MAX_STATES>(n, &mut call, &mut states),
        }?;
        for (nth, output) in self.outputs().iter().enumerate() {
            let output = *output as usize;
            let (value, start) = (states[output], call.slots[self.start()[output].index()]);
            let scale = value_scale(value.hi, start.hi);
            if !(accept(self.value_index(nth), value, scale) && call.range.holds()) {
                return None;
            }
            if !with_partials {
                continue;
            }
            if nth > 0 {
                call.adjoints.fill(Bounded::ZERO);
            }
            match self.map().states() {
                1 => self.sweep::<1>(1, &mut call, output),
                2 => self.sweep::<2>(2, &mut call, output),
                3 => self.sweep::<3>(3, &mut call, output),
                4 => self.sweep::<4>(4, &mut call, output),
                n => self.sweep::<MAX_STATES>(n, &mut call, output),
            }?;
            let Call { slots, adjoints, range, .. } = &mut call;
            self.program().reverse::<true>(slots, adjoints, inner, range)?;
            self.accept_partials(nth, scale, inputs, adjoints, accept)?;
        }
        call.range.holds().then_some(())
    }

    /// Passes the partial derivatives of an output, adjoints of slots, to `accept`.
    #[inline(always)]
    fn accept_partials(
        &self,
        output: usize,
        scale: f64,
        inputs: &[f64],
        adjoints: &[Bounded],
        accept: &mut impl FnMut(usize, Bounded, f64) -> bool,
    ) -> Option<()> {
        let mut all = true;
        for (place, input) in self.differentiated().iter().enumerate() {
            let slot = self.differentiated_slots()[place];
            let partial = slot.map_or(Bounded::ZERO, |slot| adjoints[slot.index()]);
            let scale = partial_scale(scale, inputs[*input as usize]);
            all &= accept(self.value_index(output) + 1 + place, partial, scale);
        }
        all.then_some(())
    }

    /// The parameters of binary powering.
    #[inline(always)]
    fn steps<'a>(&'a self, states: usize, call: &Call<'_>) -> Steps<'a> {
        Steps { states, columns: 1, dependence: self.map().dependence(), trips: call.trips }
    }

    /// Advances the state by binary powering.
    #[inline(always)]
    fn advance<const K: usize>(
        &self,
        n: usize,
        call: &mut Call<'_>,
        states: &mut [Bounded; MAX_STATES],
    ) -> Option<()> {
        let (matrix, offset) = self.map().load::<K>(call.slots);
        let mut start = [Bounded::ZERO; K];
        for (state, slot) in start.iter_mut().zip(self.start()) {
            *state = call.slots[slot.index()];
        }
        let steps = self.steps(n, call);
        let levels = &mut *call.levels;
        let [end] = advance::<K, 1>(steps, &matrix, &offset, &[start], levels, &mut call.range)?;
        states[..K].copy_from_slice(&end);
        Some(())
    }

    /// The adjoints of the coefficients for one output, by the sweep through the powers.
    #[inline(always)]
    fn sweep<const K: usize>(&self, n: usize, call: &mut Call<'_>, output: usize) -> Option<()> {
        let mut wanted = [Bounded::ZERO; K];
        wanted[output] = Bounded::ONE;
        let steps = self.steps(n, call);
        let adjoints = sweep::<K, 1>(steps, call.levels, &[wanted], &mut call.range)?;
        self.accumulate(&adjoints, call.adjoints);
        Some(())
    }

    /// Adds the adjoints of the coefficients and starts to those of their slots.
    #[inline(always)]
    fn accumulate<const K: usize>(&self, from: &Adjoints<K, 1>, adjoints: &mut [Bounded]) {
        self.map().accumulate(&from.matrix, &from.offset, adjoints);
        for (slot, adjoint) in self.start().iter().zip(&from.start[0]) {
            add_to(&mut adjoints[slot.index()], *adjoint);
        }
    }
}

/// The array size for `states`: common sizes are monomorphised.
#[inline(always)]
const fn array_size(states: usize) -> usize {
    if states <= 4 { states } else { MAX_STATES }
}

/// The memory of a call.
struct Call<'a> {
    /// The number of steps.
    trips: u64,
    /// The values of the program's slots.
    slots: &'a [Bounded],
    /// Their adjoints for one output.
    adjoints: &'a mut [Bounded],
    /// The levels of binary powering.
    levels: &'a mut [Bounded],
    /// The range check so far.
    range: Range,
}
