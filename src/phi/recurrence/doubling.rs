//! What an affine recurrence with invariant coefficients comes to after a number of
//! steps that is computed in the call.
//!
//! A loop goes through the binary digits of that number, the last one first: it
//! squares the map of one step, and applies what it has where the digit is 1. The
//! derivative is that of an ordinary loop, of as many iterations as there are digits.

use super::emit::Emitter;
use super::power::{Matrix, System, applied, one_step, squared};
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{End, Item, Node, RegionData};

/// The states after `count` steps, of which there are `most` at most, one node for each.
pub(super) fn advanced_by(
    emitter: &mut Emitter<'_>,
    system: &System,
    count: Node,
    most: u32,
) -> Vec<Node> {
    let (map, columns) = one_step(emitter, system);
    let zero = emitter.constant(0.0);
    let shape = filled(&map);
    let is_single = map.len() == 1;
    // What is added to a single number has no second part.
    let has_low = |column: usize| !is_single || column == 0;
    let mut firsts = vec![count];
    firsts.extend(&system.firsts);
    for (row, shape) in map.iter().zip(&shape) {
        for (column, entry) in row.iter().enumerate().filter(|&(column, _)| shape[column]) {
            firsts.push(entry.map_or(zero, |entry| entry.high));
            if has_low(column) {
                firsts.push(entry.and_then(|entry| entry.low).unwrap_or(zero));
            }
        }
    }

    let graph = &mut *emitter.graph;
    let root = graph.new_block();
    let (phis, cycle) = (Vec::new(), None);
    // It has no place: it is no loop of the program.
    let region = graph.regions.push(RegionData { root, phis, replays: None, cycle, place: None });
    let entries = graph.make_loop(region, digits(most), &firsts);
    let mut entries = entries.into_iter();
    let left = entries.next().unwrap_or(count);
    let state: Vec<Node> = entries.by_ref().take(map.len()).collect();
    let mut entry = |column: usize| -> Option<Pair> {
        let high = entries.next()?;
        let low = if has_low(column) { entries.next() } else { None };
        Some(Pair { high, low })
    };
    let map: Matrix<Pair> = shape
        .iter()
        .map(|row| {
            let places = row.iter().enumerate();
            places.map(|(column, &is_there)| is_there.then(|| entry(column)).flatten()).collect()
        })
        .collect();

    let mut body = Emitter::new(graph, None);
    let (half, two, one) = (body.constant(0.5), body.constant(2.0), body.constant(1.0));
    let half = body.apply(Op::Mul, &[left, half]);
    let half = body.apply(Op::Floor, &[half]);
    let even = body.apply(Op::Mul, &[half, two]);
    let odd = body.apply(Op::Sub, &[left, even]);
    let after = applied(&mut body, &map, &state, &columns);
    let states: Vec<Node> = after
        .iter()
        .zip(&state)
        .map(|(&after, &before)| body.apply(Op::Select, &[odd, after, before]))
        .collect();
    let square = squared(&mut body, &map);
    let again = body.apply(Op::Ge, &[half, one]);
    let mut passed = vec![again, half];
    passed.extend(&states);
    for (row, shape) in square.iter().zip(&shape) {
        for (column, entry) in row.iter().enumerate().filter(|&(column, _)| shape[column]) {
            passed.push(entry.map_or(zero, |entry| entry.high));
            if has_low(column) {
                passed.push(entry.and_then(|entry| entry.low).unwrap_or(zero));
            }
        }
    }
    passed.extend(&states);
    let items = body.items;
    let graph = &mut *emitter.graph;
    graph.blocks[root].items = items;
    graph.blocks[root].end = End::Return(passed.into_iter().collect());
    let phis = states.iter().map(|_| graph.push_phi(region)).collect();
    emitter.items.push(Item::Region(region));
    phis
}

/// The number of binary digits of the numbers up to `most`.
pub(super) fn digits(most: u32) -> u32 {
    (u32::BITS - most.leading_zeros()).max(1)
}

/// Which entries of the powers of a map may be other than zero.
fn filled(map: &Matrix<Pair>) -> Vec<Vec<bool>> {
    let mut shape: Vec<Vec<bool>> =
        map.iter().map(|row| row.iter().map(Option::is_some).collect()).collect();
    // A way from a state to another one is no longer than there are states.
    for _ in 0..map.len() {
        let before = shape.clone();
        for row in &mut shape {
            let through: Vec<usize> = (0..map.len()).filter(|&state| row[state]).collect();
            for column in 0..row.len() {
                row[column] |= through.iter().any(|&state| before[state][column]);
            }
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_so_many_digits() {
        for (most, count) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (1000, 10), (1024, 11)] {
            assert_eq!(digits(most), count);
        }
    }
}
