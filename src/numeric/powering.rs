//! Binary powering of an affine map, and its reverse sweep.
//!
//! With P_k = A^(2^k) and w_k the offset of 2^k steps, level k holds P_k, w_k and the state
//! before it. The state advances by `v -> P_k v + w_k` if bit k of the number of steps is set,
//! then `w_{k+1} = P_k w_k + w_k` and `P_{k+1} = P_k P_k`. A^n is not formed, so that a contraction
//! does not amplify cancellation in it.
//!
//! The state has columns, and the offset is added to the first one. A loop advances one column; an
//! inner loop advances zero and the unit vectors, to compute its map.
//!
//! Levels are written and read in place, number by number: copies would wait for store forwarding.

use super::acceptance::Range;
use super::dependence::{Dependence, contains, mask};
use super::double_double::{Bounded, Dot};

/// A number for each state.
pub type Vector<const K: usize> = [Bounded; K];
/// A square matrix, by rows.
pub type Matrix<const K: usize> = [[Bounded; K]; K];

/// The number of numbers in a level.
#[inline(always)]
pub const fn level_size(states: usize, columns: usize) -> usize {
    states * (states + 1 + columns)
}

/// The number of levels for `trips` steps.
#[inline(always)]
pub const fn levels(trips: u64) -> usize {
    (u64::BITS - trips.leading_zeros()) as usize
}

/// The parameters of advancing a loop.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    /// The number of states, at most the `K` of the arrays. A literal unrolls all loops.
    pub states: usize,
    /// The number of columns of the state, at most the `C` of the arrays.
    pub columns: usize,
    /// The dependence of the states.
    pub dependence: &'a Dependence,
    /// The number of steps.
    pub trips: u64,
}

/// P_k, w_k and the state before level k.
type Level<'a, const K: usize, const C: usize> = (&'a Matrix<K>, &'a Vector<K>, &'a [Vector<K>; C]);

/// A level in memory.
#[inline(always)]
fn level<const K: usize, const C: usize>(memory: &[Bounded]) -> Option<Level<'_, K, C>> {
    let (rows, sum_and_states) = memory.split_at_checked(K * K)?;
    let (sum, states) = sum_and_states.split_first_chunk()?;
    let (power, columns) = (rows.as_chunks().0.first_chunk()?, states.as_chunks().0);
    Some((power, sum, columns.first_chunk()?))
}

/// A mutable level in memory.
#[inline(always)]
fn level_mut<const K: usize, const C: usize>(
    memory: &mut [Bounded],
) -> Option<(&mut Matrix<K>, &mut Vector<K>, &mut [Vector<K>; C])> {
    let (rows, sum_and_states) = memory.split_at_mut_checked(K * K)?;
    let (sum, states) = sum_and_states.split_first_chunk_mut()?;
    let (power, columns) = (rows.as_chunks_mut().0.first_chunk_mut()?, states.as_chunks_mut().0);
    Some((power, sum, columns.first_chunk_mut()?))
}

/// `Σ_q a_q b_q` over the states.
#[inline(always)]
fn dot(states: usize, a: impl Fn(usize) -> Bounded, b: impl Fn(usize) -> Bounded) -> Dot {
    let mut sum = Dot::product(a(0), b(0));
    for q in 1..states {
        sum = sum.plus_product(a(q), b(q));
    }
    sum
}

/// Advances the state by the map of a level: the columns `next` from those before it. A state that
/// depends on exact zeros alone stays an exact zero.
#[inline(always)]
fn apply<const K: usize, const C: usize>(
    steps: Steps<'_>,
    (power, sum, before): Level<'_, K, C>,
    next: &mut [Vector<K>; C],
    range: &mut Range,
) {
    let Steps { states: n, columns, dependence, .. } = steps;
    for c in 0..columns {
        let first = c == 0;
        let live = dependence.dependent(mask(&before[c], |number| !number.is_zero()));
        for i in 0..n {
            next[c][i] = Bounded::ZERO;
            if contains(live, i) || first && dependence.is_driven(i) {
                let product = dot(n, |q| power[i][q], |q| before[c][q]);
                let total = if first { product.plus(sum[i]) } else { product };
                next[c][i] = total.finish(n + 1);
                range.check(next[c][i]);
            }
        }
    }
}

/// The state after all steps of `z -> matrix z + offset`. The levels are stored in `memory`, which
/// takes [`level_size`] numbers for each of the [`levels`]; `None` if they do not fit.
#[inline(always)]
pub fn advance<const K: usize, const C: usize>(
    steps: Steps<'_>,
    matrix: &Matrix<K>,
    offset: &Vector<K>,
    start: &[Vector<K>; C],
    memory: &mut [Bounded],
    range: &mut Range,
) -> Option<[Vector<K>; C]> {
    let Steps { states: n, dependence, trips, .. } = steps;
    let count = levels(trips);
    let mut end = *start;
    if count == 0 {
        return Some(end);
    }
    let (power, sum, states) = level_mut::<K, C>(memory)?;
    (*power, *sum, *states) = (*matrix, *offset, *start);
    let mut memory = memory;
    for k in 0..count - 1 {
        let (before, after) = memory.split_at_mut_checked(level_size(K, C))?;
        let (power, sum, states) = level::<K, C>(before)?;
        let (next_power, next_sum, next_states) = level_mut::<K, C>(after)?;
        if trips >> k & 1 == 1 {
            apply(steps, (power, sum, states), next_states, range);
        } else {
            *next_states = *states;
        }
        for i in 0..n {
            next_sum[i] = Bounded::ZERO;
            if dependence.is_driven(i) {
                let total = dot(n, |q| power[i][q], |q| sum[q]).plus(sum[i]);
                next_sum[i] = total.finish(n + 1);
                range.check(next_sum[i]);
            }
            for j in 0..n {
                next_power[i][j] = Bounded::ZERO;
                if dependence.depends(i, j) {
                    next_power[i][j] = dot(n, |q| power[i][q], |q| power[q][j]).finish(n);
                    range.check(next_power[i][j]);
                }
            }
        }
        memory = after;
    }
    // The highest bit is set.
    apply(steps, level(memory)?, &mut end, range);
    Some(end)
}

/// The adjoints of the map and the start of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Adjoints<const K: usize, const C: usize> {
    /// Those of the entries of A.
    pub matrix: Matrix<K>,
    /// Those of b.
    pub offset: Vector<K>,
    /// Those of the state.
    pub start: [Vector<K>; C],
}

/// The reverse sweep through the levels that [`advance`] has stored, from the adjoints `end` of the
/// advanced state; `None` if `memory` is too small.
#[inline(always)]
pub fn sweep<const K: usize, const C: usize>(
    steps: Steps<'_>,
    memory: &[Bounded],
    end: &[Vector<K>; C],
    range: &mut Range,
) -> Option<Adjoints<K, C>> {
    let Steps { states: n, columns, dependence, trips } = steps;
    let zero = [Bounded::ZERO; K];
    let mut adjoints = Adjoints { matrix: [zero; K], offset: zero, start: *end };
    let is_wanted = |column: &Vector<K>| mask(column, |number| !number.is_zero());
    let wanted = end.iter().fold(0, |set, column| set | is_wanted(column));
    let influencing = dependence.influencing(wanted);
    let count = levels(trips);
    for k in (0..count).rev() {
        let size = level_size(K, C);
        let (power, sum, states) = level::<K, C>(memory.get(k * size..)?)?;
        // Adjoints of P_k and w_k: from squaring (but for the last level), and from the state if
        // bit k is set.
        let applied = trips >> k & 1 == 1;
        let squared = k + 1 < count;
        let Adjoints { matrix, offset, start } = adjoints;
        for i in 0..n {
            if !contains(influencing, i) {
                continue;
            }
            for j in 0..n {
                if !dependence.depends(i, j) {
                    continue;
                }
                let mut total = Dot::product(offset[i], sum[j]);
                if squared {
                    for q in 0..n {
                        total = total.plus_product(matrix[i][q], power[j][q]);
                        total = total.plus_product(power[q][i], matrix[q][j]);
                    }
                }
                if applied {
                    for c in 0..columns {
                        total = total.plus_product(start[c][i], states[c][j]);
                    }
                }
                adjoints.matrix[i][j] = total.finish(1 + 2 * n + columns);
                range.check(adjoints.matrix[i][j]);
            }
            let mut total = dot(n, |q| offset[q], |q| power[q][i]).plus(offset[i]);
            if applied {
                total = total.plus(start[0][i]);
            }
            adjoints.offset[i] = total.finish(n + 2);
            range.check(adjoints.offset[i]);
            if applied {
                for (column, next) in start.iter().zip(&mut adjoints.start).take(columns) {
                    next[i] = dot(n, |q| column[q], |q| power[q][i]).finish(n);
                    range.check(next[i]);
                }
            }
        }
    }
    Some(adjoints)
}
