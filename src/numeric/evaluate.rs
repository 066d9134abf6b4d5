//! Values of a coefficient program, and its reverse sweep.

use super::acceptance::Range;
use super::double_double::Bounded;
use super::powering::{Steps, Vector, advance, level_size, levels, sweep};
use super::program::{AffineMap, Instruction, MAX_STATES, Power, Program};
use crate::entity::Entity;

/// Calls a function that is generic over the number of states, and of columns for the map of an
/// inner loop, which are the states and one more.
macro_rules! for_states {
    ($states:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $states {
            1 => $function::<1, 2>(1, $($argument),*),
            2 => $function::<2, 3>(2, $($argument),*),
            3 => $function::<3, 4>(3, $($argument),*),
            n => $function::<6, 7>(n, $($argument),*),
        }
    };
}

impl AffineMap {
    /// The matrix and the offset for these values of the slots.
    #[inline(always)]
    pub(super) fn load<const K: usize>(&self, slots: &[Bounded]) -> ([Vector<K>; K], Vector<K>) {
        let mut matrix = [[Bounded::ZERO; K]; K];
        let mut offset = [Bounded::ZERO; K];
        for (line, entries) in matrix.iter_mut().zip(self.lines()) {
            for (number, entry) in line.iter_mut().zip(entries) {
                *number = entry.map_or(Bounded::ZERO, |slot| slots[slot.index()]);
            }
        }
        for (number, entry) in offset.iter_mut().zip(self.offset()) {
            *number = entry.map_or(Bounded::ZERO, |slot| slots[slot.index()]);
        }
        (matrix, offset)
    }

    /// Adds the adjoints of the matrix and the offset to those of the slots.
    #[inline(always)]
    pub(super) fn accumulate<const K: usize>(
        &self,
        matrix: &[Vector<K>; K],
        offset: &Vector<K>,
        adjoints: &mut [Bounded],
    ) {
        for (entries, numbers) in self.lines().zip(matrix) {
            for (entry, number) in entries.iter().zip(numbers) {
                if let Some(slot) = entry {
                    add_to(&mut adjoints[slot.index()], *number);
                }
            }
        }
        for (entry, number) in self.offset().iter().zip(offset) {
            if let Some(slot) = entry {
                add_to(&mut adjoints[slot.index()], *number);
            }
        }
    }
}

/// Adds a contribution to an adjoint.
#[inline(always)]
pub(super) fn add_to(adjoint: &mut Bounded, contribution: Bounded) {
    *adjoint = if adjoint.is_zero() { contribution } else { *adjoint + contribution };
}

impl Program {
    /// The most memory that one of the powers takes for these inputs, in numbers; nothing if
    /// some number of steps is none.
    #[inline(always)]
    pub(super) fn power_memory(&self, inputs: &[f64]) -> Option<usize> {
        let mut most = 0;
        if !self.has_powers() {
            return Some(most);
        }
        for instruction in self.instructions() {
            if let Instruction::Power(power) = instruction {
                let states = if power.map.states() <= 3 { power.map.states() } else { MAX_STATES };
                let count = levels(power.trips.count(inputs)?);
                most = most.max(count * level_size(states, states + 1));
            }
        }
        Some(most)
    }

    /// Computes all slots; without `POWERS` none may be there, and with them it fails if the memory of [`power_memory`](Self::power_memory) is not there.
    #[inline(always)]
    pub(super) fn evaluate<const POWERS: bool>(
        &self,
        inputs: &[f64],
        slots: &mut [Bounded],
        memory: &mut [Bounded],
        range: &mut Range,
    ) -> Option<()> {
        let mut next = 0;
        for instruction in self.instructions() {
            let (before, defined) = slots.split_at_mut(next);
            let value = match instruction {
                Instruction::Input(input) => Bounded::exact(inputs[*input as usize]),
                Instruction::Constant(value) => Bounded::exact(*value),
                Instruction::Add(a, b) => before[a.index()] + before[b.index()],
                Instruction::Sub(a, b) => before[a.index()] - before[b.index()],
                Instruction::Mul(a, b) => before[a.index()] * before[b.index()],
                Instruction::Div(a, b) => before[a.index()] / before[b.index()],
                Instruction::Neg(a) => -before[a.index()],
                Instruction::Power(_) if !POWERS => return None,
                Instruction::Power(power) => {
                    let defined = &mut defined[..power.results()];
                    let trips = power.trips.count(inputs).unwrap_or(0);
                    for_states!(
                        power.map.states(),
                        map_of_loop(power, trips, before, defined, memory, range)
                    )?;
                    next += power.results();
                    continue;
                }
            };
            range.check(value);
            defined[0] = value;
            next += 1;
        }
        Some(())
    }

    /// Passes the adjoints of all slots on to the slots of the inputs.
    #[inline(always)]
    pub(super) fn reverse<const POWERS: bool>(
        &self,
        inputs: &[f64],
        slots: &[Bounded],
        adjoints: &mut [Bounded],
        memory: &mut [Bounded],
        range: &mut Range,
    ) -> Option<()> {
        let mut next = self.slots();
        for instruction in self.instructions().iter().rev() {
            next -= instruction.results();
            let (before, defined) = adjoints.split_at_mut(next);
            if let Instruction::Input(_) | Instruction::Constant(_) = instruction {
                continue;
            }
            if POWERS && let Instruction::Power(power) = instruction {
                let defined = &defined[..power.results()];
                let trips = power.trips.count(inputs).unwrap_or(0);
                for_states!(
                    power.map.states(),
                    reverse_map_of_loop(power, trips, slots, (before, defined), memory, range)
                )?;
                continue;
            }
            let adjoint = defined[0];
            range.check(adjoint);
            if adjoint.is_zero() {
                continue;
            }
            match instruction {
                Instruction::Input(_) | Instruction::Constant(_) | Instruction::Power(_) => {}
                Instruction::Add(a, b) => {
                    add_to(&mut before[a.index()], adjoint);
                    add_to(&mut before[b.index()], adjoint);
                }
                Instruction::Sub(a, b) => {
                    add_to(&mut before[a.index()], adjoint);
                    add_to(&mut before[b.index()], -adjoint);
                }
                Instruction::Mul(a, b) => {
                    add_to(&mut before[a.index()], adjoint * slots[b.index()]);
                    add_to(&mut before[b.index()], adjoint * slots[a.index()]);
                }
                Instruction::Div(a, b) => {
                    let contribution = adjoint / slots[b.index()];
                    add_to(&mut before[a.index()], contribution);
                    add_to(&mut before[b.index()], -(contribution * slots[next]));
                }
                Instruction::Neg(a) => add_to(&mut before[a.index()], -adjoint),
            }
        }
        Some(())
    }
}

/// The unit vectors and zero: what an inner loop advances to have its map.
#[inline(always)]
fn unit_vectors<const K: usize, const C: usize>() -> [Vector<K>; C] {
    let mut columns = [[Bounded::ZERO; K]; C];
    for (i, column) in columns.iter_mut().take(K).enumerate() {
        column[i] = Bounded::ONE;
    }
    columns
}

/// The map of all steps of an inner loop. Its levels stay in `memory`.
#[inline(always)]
fn map_of_loop<const K: usize, const C: usize>(
    n: usize,
    power: &Power,
    trips: u64,
    slots: &[Bounded],
    results: &mut [Bounded],
    memory: &mut [Bounded],
    range: &mut Range,
) -> Option<()> {
    let (matrix, offset) = power.map.load::<K>(slots);
    let steps = Steps { states: n, dependence: power.map.dependence(), trips };
    let columns = advance::<K, C>(steps, &matrix, &offset, &unit_vectors(), memory, range)?;
    for i in 0..n {
        for j in 0..n {
            results[i * n + j] = columns[j][i];
        }
        results[n * n + i] = columns[K][i];
    }
    Some(())
}

/// Passes the adjoints of the results of [`map_of_loop`] on to the entries of its map.
#[inline(always)]
fn reverse_map_of_loop<const K: usize, const C: usize>(
    n: usize,
    power: &Power,
    trips: u64,
    slots: &[Bounded],
    (adjoints, results): (&mut [Bounded], &[Bounded]),
    memory: &mut [Bounded],
    range: &mut Range,
) -> Option<()> {
    if results.iter().all(|adjoint| adjoint.is_zero()) {
        return Some(());
    }
    let mut columns = [[Bounded::ZERO; K]; C];
    for i in 0..n {
        for j in 0..n {
            columns[j][i] = results[i * n + j];
        }
        columns[K][i] = results[n * n + i];
    }
    results.iter().for_each(|adjoint| range.check(*adjoint));
    let (matrix, offset) = power.map.load::<K>(slots);
    let steps = Steps { states: n, dependence: power.map.dependence(), trips };
    advance::<K, C>(steps, &matrix, &offset, &unit_vectors(), memory, range)?;
    let swept = sweep::<K, C>(steps, memory, &columns, range)?;
    power.map.accumulate(&swept.matrix, &swept.offset, adjoints);
    Some(())
}
