//! The cost model: what loops take, and what routines take that stand for them.
//!
//! All is in tenths of a nanosecond, as measured on the x86-64 server of the benchmarks.

use super::graph::{Def, Graph, Item, Node, Region};
use crate::numeric::{AffinePower, Routine, Trips};
use crate::op::{Op, throughput};

/// What an iteration of a loop takes besides its steps: counting, comparing, jumping.
const ITERATION: u64 = 10;
/// A step with its part of the reverse sweep takes so many times the step alone.
const WITH_SWEEP: u64 = 3;
/// Calling a routine: arguments and results through memory, and the branch on acceptance.
const CALL: u64 = 300;
/// An instruction of a coefficient program with its reverse step.
const INSTRUCTION: u64 = 60;
/// One state by quotients, for each output.
const QUOTIENTS: u64 = 900;
/// A level of binary powering with its reverse step, by the number of states.
const LEVEL: [u64; 6] = [250, 1_000, 2_300, 4_600, 8_200, 13_500];

/// A loop of fewer iterations, or that replaces fewer steps, is faster as straight-line code, by
/// up to a half, and that is small anyway.
pub(crate) const LEAST_ROLLED_TRIPS: u32 = 32;
pub(crate) const LEAST_ROLLED_STEPS: u64 = 512;

/// What `node` takes when it is computed.
fn step(graph: &Graph, node: Node) -> u64 {
    match graph.nodes[node].def {
        Def::Apply(op, _) => throughput(op),
        Def::Element(_) => 3,
        _ => 0,
    }
}

/// What all iterations of `region`, a loop, take, with their reverse sweep.
fn loop_with_sweep(graph: &Graph, region: Region) -> u64 {
    let (mut total, mut pending) = (0u64, vec![(graph.regions[region].root, 1u64, region)]);
    while let Some((block, outer, inside)) = pending.pop() {
        let bound = graph.regions[inside].cycle.as_ref().map_or(1, |cycle| u64::from(cycle.bound));
        let times = outer.saturating_mul(bound);
        let mut steps = if bound > 1 { ITERATION } else { 0 };
        for item in &graph.blocks[block].items {
            match *item {
                Item::Node(node) => steps += WITH_SWEEP * step(graph, node),
                Item::Region(inner) => pending.push((graph.regions[inner].root, times, inner)),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => steps += 5,
            }
        }
        total = total.saturating_add(times.saturating_mul(steps));
    }
    total
}

/// What a call of `routine` takes for so many trips.
fn routine(routine: &AffinePower) -> u64 {
    let trips = match routine.trips() {
        Trips::Constant(count) => count,
        Trips::Input(_) => 100,
    };
    let instructions = routine.program().instructions().len() as u64;
    let outputs = routine.outputs().len() as u64;
    let levels = u64::from(u64::BITS - trips.leading_zeros());
    let states = routine.map().states();
    let power = match states {
        1 => QUOTIENTS,
        _ => LEVEL[(states - 1).min(5)] * levels,
    };
    // One half of a level is its reverse step, which each output has.
    CALL + INSTRUCTION * instructions * (1 + outputs) / 2 + power * (1 + outputs) / 2
}

/// Whether closed forms by these routines take less than `region`, a loop.
pub(crate) fn is_worth_closing<'a>(
    graph: &Graph,
    region: Region,
    routines: impl Iterator<Item = &'a AffinePower>,
) -> bool {
    routines.map(routine).sum::<u64>() < loop_with_sweep(graph, region)
}

/// The same behind a loop that stays, without its reverse sweep, to find its trip count: half of
/// the largest as a rule.
pub(crate) fn is_worth_closing_behind<'a>(
    graph: &Graph,
    region: Region,
    routines: impl Iterator<Item = &'a AffinePower>,
) -> bool {
    let sweep = loop_with_sweep(graph, region) / WITH_SWEEP * (WITH_SWEEP - 1) / 2;
    routines.map(routine).sum::<u64>() < sweep
}

/// Whether closed forms of so many additions and multiplications, and by these routines, take less
/// than `region`, a loop.
pub(crate) fn is_worth_folding<'a>(
    graph: &Graph,
    region: Region,
    steps: u64,
    routines: impl Iterator<Item = &'a Routine>,
) -> bool {
    let cost = |of: &Routine| match of {
        Routine::AffinePower(power) => routine(power),
        Routine::Polynomial(polynomial) => {
            CALL + INSTRUCTION * polynomial.program().instructions().len() as u64
        }
    };
    let steps = WITH_SWEEP * steps * throughput(Op::Mul);
    steps + routines.map(cost).sum::<u64>() < loop_with_sweep(graph, region)
}

/// Whether to go over the data of `region`, a loop, once before `outer`, in `passes` loops without
/// a reverse sweep that take about as many steps, takes less than the loop itself in all iterations
/// of `outer`, a loop around it: half of the largest number as a rule.
pub(crate) fn is_worth_hoisting(graph: &Graph, region: Region, runs: u64, passes: u64) -> bool {
    // Each moment takes an addition, and the steps that its coefficient is made of.
    const MORE_STEPS: u64 = 2;
    let once = loop_with_sweep(graph, region) / WITH_SWEEP;
    once * passes * MORE_STEPS < once * WITH_SWEEP * runs / 2
}
