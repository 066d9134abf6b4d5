//! Evaluation of a coefficient program, and its reverse sweep.

use super::acceptance::Range;
use super::double_double::Bounded;
use super::powering::{Steps, Vector, advance, level_size, levels, sweep};
use super::program::{AffineMap, Instruction, MAX_STATES, Power, Program};
use crate::entity::Entity;
use crate::op::Op;

/// Calls a function for an inner loop that is generic over the number of states and of columns;
/// there is one more column than states.
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
    /// The matrix and the offset from the values of the slots.
    #[inline(always)]
    pub(super) fn load<const K: usize>(&self, slots: &[Bounded]) -> ([Vector<K>; K], Vector<K>) {
        let mut matrix = [[Bounded::ZERO; K]; K];
        let mut offset = [Bounded::ZERO; K];
        for (row, entries) in matrix.iter_mut().zip(self.rows()) {
            for (number, entry) in row.iter_mut().zip(entries) {
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
        for (entries, numbers) in self.rows().zip(matrix) {
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

impl Power {
    /// The memory of its levels, in numbers.
    #[inline(always)]
    fn memory(&self) -> usize {
        let states = if self.map.states() <= 3 { self.map.states() } else { MAX_STATES };
        levels(self.trips) * level_size(states, states + 1)
    }
}

impl Program {
    /// The memory of all powers, in numbers.
    #[inline(always)]
    pub(super) fn power_memory(&self) -> usize {
        if !self.has_powers() {
            return 0;
        }
        let memory = |instruction: &Instruction| match instruction {
            Instruction::Power(power) => power.memory(),
            _ => 0,
        };
        self.instructions().iter().map(memory).sum()
    }

    /// Computes all slots. Fails on powers unless `POWERS` is set. The levels of powers are stored
    /// in `memory`, which has [`power_memory`](Self::power_memory) numbers.
    #[inline(always)]
    pub(super) fn evaluate<const POWERS: bool>(
        &self,
        inputs: &[f64],
        slots: &mut [Bounded],
        memory: &mut [Bounded],
        range: &mut Range,
    ) -> Option<()> {
        let mut next = 0;
        let mut memory = memory;
        for instruction in self.instructions() {
            let (before, defined) = slots.split_at_mut(next);
            let value = match instruction {
                Instruction::Input(input) => Bounded::exact(inputs[*input as usize]),
                Instruction::Rounded(input) => Bounded::rounded(inputs[*input as usize]),
                Instruction::Constant(value) => Bounded::exact(*value),
                Instruction::Folded(value) => *value,
                Instruction::Bounded(first) => {
                    let [hi, lo, bound] = [0, 1, 2].map(|word| inputs[*first as usize + word]);
                    let number = Bounded::new((hi, lo), bound);
                    if !number.is_normalised() {
                        return None;
                    }
                    number
                }
                Instruction::Apply(op, [a, b]) => {
                    let (a, b) = (before[a.index()], before[b.index()]);
                    match op {
                        Op::Add => a + b,
                        Op::Sub => a - b,
                        Op::Mul => a * b,
                        Op::Div => a / b,
                        Op::Neg => -a,
                        Op::Exp => a.exp(),
                        Op::Sqrt => a.sqrt(),
                        _ => return None,
                    }
                }
                Instruction::Power(_) if !POWERS => return None,
                Instruction::Power(power) => {
                    let defined = &mut defined[..power.results()];
                    let (levels, after) = memory.split_at_mut_checked(power.memory())?;
                    memory = after;
                    for_states!(
                        power.map.states(),
                        map_of_loop(power, before, defined, levels, range)
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

    /// Reverse sweep: propagates the adjoints of all slots to the slots of the inputs.
    #[inline(always)]
    pub(super) fn reverse<const POWERS: bool>(
        &self,
        slots: &[Bounded],
        adjoints: &mut [Bounded],
        memory: &[Bounded],
        range: &mut Range,
    ) -> Option<()> {
        let mut next = self.slots();
        let mut memory = memory;
        for instruction in self.instructions().iter().rev() {
            next -= instruction.results();
            let (before, defined) = adjoints.split_at_mut(next);
            if POWERS && let Instruction::Power(power) = instruction {
                let defined = &defined[..power.results()];
                let size = memory.len().checked_sub(power.memory())?;
                let levels;
                (memory, levels) = memory.split_at_checked(size)?;
                for_states!(
                    power.map.states(),
                    reverse_map_of_loop(power, before, defined, levels, range)
                )?;
                continue;
            }
            let Instruction::Apply(op, [a, b]) = instruction else { continue };
            let adjoint = defined[0];
            range.check(adjoint);
            if adjoint.is_zero() {
                continue;
            }
            let (a, b, value) = (a.index(), b.index(), slots[next]);
            match op {
                Op::Add => {
                    add_to(&mut before[a], adjoint);
                    add_to(&mut before[b], adjoint);
                }
                Op::Sub => {
                    add_to(&mut before[a], adjoint);
                    add_to(&mut before[b], -adjoint);
                }
                Op::Mul => {
                    add_to(&mut before[a], adjoint * slots[b]);
                    add_to(&mut before[b], adjoint * slots[a]);
                }
                Op::Div => {
                    let contribution = adjoint / slots[b];
                    add_to(&mut before[a], contribution);
                    add_to(&mut before[b], -(contribution * value));
                }
                Op::Neg => add_to(&mut before[a], -adjoint),
                Op::Exp => add_to(&mut before[a], adjoint * value),
                Op::Sqrt => add_to(&mut before[a], adjoint / (value + value)),
                _ => return None,
            }
        }
        Some(())
    }
}

/// Zero and the unit vectors: the columns that an inner loop advances to compute its map.
#[inline(always)]
fn unit_vectors<const K: usize, const C: usize>() -> [Vector<K>; C] {
    let mut columns = [[Bounded::ZERO; K]; C];
    for (i, column) in columns.iter_mut().skip(1).enumerate() {
        column[i] = Bounded::ONE;
    }
    columns
}

/// Computes the map of all steps of an inner loop. The levels are kept in `memory`.
#[inline(always)]
fn map_of_loop<const K: usize, const C: usize>(
    n: usize,
    power: &Power,
    slots: &[Bounded],
    results: &mut [Bounded],
    memory: &mut [Bounded],
    range: &mut Range,
) -> Option<()> {
    let (matrix, offset) = power.map.load::<K>(slots);
    let steps =
        Steps { states: n, columns: n + 1, dependence: power.map.dependence(), trips: power.trips };
    let columns = advance::<K, C>(steps, &matrix, &offset, &unit_vectors(), memory, range)?;
    for i in 0..n {
        for j in 0..n {
            results[i * n + j] = columns[1 + j][i];
        }
        results[n * n + i] = columns[0][i];
    }
    Some(())
}

/// Propagates the adjoints of the results of [`map_of_loop`] to the entries of its map.
#[inline(always)]
fn reverse_map_of_loop<const K: usize, const C: usize>(
    n: usize,
    power: &Power,
    adjoints: &mut [Bounded],
    results: &[Bounded],
    memory: &[Bounded],
    range: &mut Range,
) -> Option<()> {
    if results.iter().all(|adjoint| adjoint.is_zero()) {
        return Some(());
    }
    let mut columns = [[Bounded::ZERO; K]; C];
    for i in 0..n {
        for j in 0..n {
            columns[1 + j][i] = results[i * n + j];
        }
        columns[0][i] = results[n * n + i];
    }
    results.iter().for_each(|adjoint| range.check(*adjoint));
    let steps =
        Steps { states: n, columns: n + 1, dependence: power.map.dependence(), trips: power.trips };
    let adjoints_of_map = sweep::<K, C>(steps, memory, &columns, range)?;
    power.map.accumulate(&adjoints_of_map.matrix, &adjoints_of_map.offset, adjoints);
    Some(())
}
