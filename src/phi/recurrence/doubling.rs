//! What an affine recurrence with invariant coefficients comes to after a number of
//! steps that is computed in the call.
//!
//! A loop goes through the binary digits of that number, the first one first: it doubles
//! what it has, and makes one step more where the digit is 1. What it carries has its
//! derivatives with it, so no derivative passes through the loop.

use super::emit::Emitter;
use super::form::Forms;
use super::power::{COSTS, Matrix, System, Wanted};
use super::single::changed_by;
use super::slopes::chosen;
use super::start::Start;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{End, Item, Node, RegionData};

/// The states after `count` steps, of which there are `most` at most, one node for each.
/// Of those that are not `wanted` it may be any.
pub(super) fn advanced_by(
    forms: &mut Forms<'_, '_>,
    system: &System,
    count: Node,
    most: u32,
    wanted: &Wanted<'_>,
) -> Result<Vec<Node>, &'static str> {
    if let Some(node) = changed_by(forms, system, count, most) {
        return Ok(vec![node?]);
    }
    let emitter = &mut *forms.emitter;
    if system.states.len() > 1
        && wanted.allows(system, digits(most))
        && let Some(start) = Start::of(emitter, system, count, wanted.states)
    {
        return Ok(derived_by(emitter, &start, &system.firsts, count, most));
    }
    Err(COSTS)
}

/// The states after `count` steps, with derivatives of twice the precision.
///
/// The loop goes through the digits from the first one on, and from no steps: what is
/// known of them is the map that changes nothing.
pub(super) fn derived_by(
    emitter: &mut Emitter<'_>,
    start: &Start,
    firsts: &[Node],
    count: Node,
    most: u32,
) -> Vec<Node> {
    let shape = start.none(emitter, &filled(&start.map));
    let zero = emitter.constant(0.0);
    let parts: Vec<Pair> = shape.parts().into_iter().flatten().collect();
    let highest = f64::from(digits(most) - 1).exp2();
    let mut all = vec![count, emitter.constant(highest)];
    all.extend(parts.iter().flat_map(|part| [part.high, part.low.unwrap_or(zero)]));
    // The power before its last square and step, which it is to be compared with.
    let at = all.len();
    all.extend(shape.power.iter().flatten().flatten().map(|entry| entry.high));
    let after = loop_of(emitter, digits(most), all, |body, carried| {
        let &[left, place, ref rest @ ..] = &carried[..at] else { return (zero, Vec::new()) };
        let jet = shape.with(&pairs(rest));
        let is_one = body.apply(Op::Ge, &[left, place]);
        let less = body.apply(Op::Sub, &[left, place]);
        let half = body.constant(0.5);
        let (one, zero) = (body.constant(1.0), body.constant(0.0));
        let half = body.apply(Op::Mul, &[place, half]);
        let mut nexts = vec![body.apply(Op::Select, &[is_one, less, left]), half];
        let doubled = jet.doubled(body);
        let stepped = start.stepped(body, &doubled);
        for ((part, stepped), doubled) in
            shape.parts().into_iter().zip(stepped.parts()).zip(doubled.parts())
        {
            if part.is_none() {
                debug_assert!(stepped.is_none() && doubled.is_none(), "it is zero by structure");
                continue;
            }
            let nothing = Pair { high: zero, low: None };
            let (stepped, doubled) = (stepped.unwrap_or(nothing), doubled.unwrap_or(nothing));
            let next = chosen(body, is_one, stepped, doubled);
            nexts.extend([next.high, next.low.unwrap_or(zero)]);
        }
        nexts.extend(jet.power.iter().flatten().flatten().map(|entry| entry.high));
        (body.apply(Op::Ge, &[half, one]), nexts)
    });
    let jet = shape.with(&pairs(after.get(2..at).unwrap_or_default()));
    let mut rest = after.get(at..).unwrap_or_default().iter().copied();
    let mut entry = |entry: &Option<Pair>| entry.and_then(|_| rest.next()).map(Pair::from);
    let earlier = shape.power.iter().map(|row| row.iter().map(&mut entry).collect()).collect();
    let mut nodes = firsts.to_vec();
    for (number, node) in start.ends(emitter, &jet, &earlier, count) {
        nodes[number] = node;
    }
    nodes
}

/// The pairs whose parts stand in a row.
fn pairs(parts: &[Node]) -> Vec<Pair> {
    parts.chunks_exact(2).map(|pair| Pair { high: pair[0], low: Some(pair[1]) }).collect()
}

/// A loop of at most `most` iterations that carries numbers which begin as `firsts`;
/// `step` says whether there is another iteration, and how they go on. Returns what they
/// come to.
pub(super) fn loop_of(
    emitter: &mut Emitter<'_>,
    most: u32,
    firsts: Vec<Node>,
    step: impl FnOnce(&mut Emitter<'_>, &[Node]) -> (Node, Vec<Node>),
) -> Vec<Node> {
    let graph = &mut *emitter.graph;
    let root = graph.new_block();
    let (phis, cycle) = (Vec::new(), None);
    // It has no place: it is no loop of the program.
    let region = graph.regions.push(RegionData { root, phis, replays: None, cycle, place: None });
    let carried = graph.make_loop(region, most, &firsts);
    let mut body = Emitter::new(graph, None);
    let (again, nexts) = step(&mut body, &carried);
    let end = core::iter::once(again).chain(nexts.iter().chain(&nexts).copied()).collect();
    let items = body.items;
    let graph = &mut *emitter.graph;
    graph.blocks[root].items = items;
    graph.blocks[root].end = End::Return(end);
    let phis = nexts.iter().map(|_| graph.push_phi(region)).collect();
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
