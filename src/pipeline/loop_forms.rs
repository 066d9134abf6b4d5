//! The choice between forms of loops: closed form, loop, or straight-line code.

use hashbrown::HashSet;

use super::cost::{self, ShortLoops};
use super::passes::{PrimalState, check, with_simple_branches};
use super::{Options, Refusal};
use crate::diff::reordered;
use crate::jit::MAX_WORDS;
use crate::loops::{RerollLimits, expand, fuse, recognise_nests, reroll, without_loops};
use crate::phi::{Applied, CloseLimits, Closed, OpenLoop, OpenReason, close};
use crate::ssa::{
    ArrayData, Block, Folding, Graph, Nest, Region, last_iteration, most_steps, simplify, verify,
};

/// The limits for loops that are faster than their straight-line code.
const LONG_LOOPS: RerollLimits = RerollLimits {
    iterations: cost::LEAST_ROLLED_TRIPS,
    weight: cost::LEAST_ROLLED_STEPS,
    ..RerollLimits::DEFAULT
};

/// The largest number of recorded steps for which trace loops become straight-line code again.
pub(super) const MOST_UNROLLED_STEPS: u64 = 1 << 18;

/// The largest number of cells of a graph.
pub(super) fn most_cells(options: &Options) -> u64 {
    (options.limits.saved_values as u64).min(MAX_WORDS) / 4
}

/// The recorded graph with the loops that `limits` allow.
pub(super) fn with_loops(recorded: &Graph, limits: RerollLimits, options: &Options) -> Graph {
    let rolled = with_nests(recorded, limits, most_cells(options));
    check("reroll", &rolled);
    let folded = simplify(&rolled, Folding::Real);
    check("fold", &folded);
    folded
}

/// `recorded` with loops: nests in memory if they are small and have a triangle, or beat the rolled
/// graph in size or time; otherwise the rolled graph, or either form of the graph without its trace
/// loops.
fn with_nests(recorded: &Graph, limits: RerollLimits, most_cells: u64) -> Graph {
    /// The number of items and elements up to which rolled code has no smaller form.
    const MOST_ROLLED_ITEMS: usize = 64;
    /// The number of values that a loop carries from which on they may be an array.
    const LEAST_CARRIED_VALUES: usize = 16;
    /// Nests of at most so many items are used without a comparison.
    const MOST_NEST_ITEMS: usize = 256;
    /// From so many recorded items on nests are searched before loops are rolled.
    const LEAST_RECORDED_ITEMS: usize = 1 << 12;
    /// The largest number of recorded items in which nests are searched.
    const MOST_RECORDED_ITEMS: usize = 1 << 22;
    // Without regions `most_steps` would find that number in more time.
    let steps = match recorded.regions.len() {
        0 => size(recorded) as u64,
        _ => most_steps(recorded, |_| 1),
    };
    let is_searched = size(recorded) <= MOST_RECORDED_ITEMS;
    let nests_of = |graph: &Graph| {
        recognise_nests(graph, most_cells).map(|nests| simplify(&nests, Folding::Real))
    };
    let mut nests = None;
    let is_searched_first = is_searched && size(recorded) >= LEAST_RECORDED_ITEMS;
    if is_searched_first {
        nests = nests_of(recorded);
        if let Some(nests) =
            nests.take_if(|nests| size(nests) <= MOST_NEST_ITEMS && has_triangle(nests))
        {
            return nests;
        }
    }
    let rolled = reroll(recorded, limits);
    let carries_many = |region: Region| rolled.entries(region).len() >= LEAST_CARRIED_VALUES;
    let rolled_size = size(&rolled) + elements(&rolled);
    let is_large = rolled_size > MOST_ROLLED_ITEMS || rolled.regions.keys().any(carries_many);
    if !is_large {
        return rolled;
    }
    let is_smaller = |other: &Graph| 2 * (size(other) + elements(other)) < rolled_size;
    let is_better = |nests: &Graph| match has_triangle(nests) {
        true => is_smaller(nests) && steps >= cost::LEAST_ROLLED_STEPS,
        false => nests.nodes.len() < rolled.nodes.len() && cost::is_as_fast(nests, &rolled),
    };
    if is_searched && !is_searched_first {
        nests = nests_of(recorded);
    }
    if let Some(nests) = nests {
        return if is_better(&nests) { nests } else { rolled };
    }
    let has_loops = recorded.regions.values().any(|region| region.cycle.is_some());
    if !has_loops || steps > MOST_UNROLLED_STEPS {
        return rolled;
    }
    // A trace loop may begin in the middle of an inner loop.
    let Some(straight) = without_loops(recorded) else { return rolled };
    let nests = nests_of(&straight).filter(is_better);
    nests.or_else(|| Some(reroll(&straight, limits)).filter(is_smaller)).unwrap_or(rolled)
}

/// The number of steps of `graph`.
pub(super) fn size(graph: &Graph) -> usize {
    graph.blocks.values().map(|block| block.items.len()).sum()
}

/// The number of elements of arrays of nodes.
fn elements(graph: &Graph) -> usize {
    let count = |array: &ArrayData| match array {
        ArrayData::Nodes(nodes) => nodes.len(),
        _ => 0,
    };
    graph.arrays.values().map(count).sum()
}

/// Tests whether `graph` has a loop whose trip count depends on another one. Rerolling takes longer
/// to find such a nest, and finds none that writes memory.
fn has_triangle(graph: &Graph) -> bool {
    let is_inner =
        |region: Region| last_iteration(graph, region).is_some_and(|last| !last.terms.is_empty());
    graph.regions.keys().any(is_inner)
}

/// The recorded graph with those loops whose sweep adds up adjoints in the order of the tape,
/// for [`Numerics::Exact`](super::Numerics::Exact).
pub(super) fn rolled_in_order(recorded: &Graph, options: &Options) -> Result<Graph, Refusal> {
    /// The order is checked in time proportional to loops times nodes.
    const MAX_LOOPS: usize = 256;
    // Values that regions carry are events of the tape, so regions are not taken apart.
    let all = RerollLimits { threading: false, ..LONG_LOOPS };
    // The second attempt is without data-dependent exits, which cannot be expanded.
    for limits in [all, RerollLimits { exits: None, ..all }] {
        let mut graph = reroll(recorded, limits);
        let loops = graph.regions.values().filter(|region| region.cycle.is_some());
        if loops.count() > MAX_LOOPS {
            break;
        }
        // Loops in another order are expanded until none is left.
        loop {
            check("reroll", &graph);
            let others = reordered(&graph);
            if others.is_empty() {
                return Ok(graph);
            }
            if expanded_size(&graph, &others, options).is_err() {
                break;
            }
            let Some(straight) = expand(&graph, &others) else { break };
            graph = straight;
        }
    }
    // Otherwise all loops, which the tracer has found, become straight-line code.
    let loops = |region: &Region| recorded.regions[*region].cycle.is_some();
    let loops: Vec<Region> = recorded.regions.keys().filter(loops).collect();
    if loops.is_empty() {
        return Ok(recorded.clone());
    }
    let size = expanded_size(recorded, &loops, options)?;
    let refusal = Refusal::TooManyToCompile { size, limit: options.limits.compiled };
    expand(recorded, &loops).ok_or(refusal)
}

/// The size of `graph` with `loops` as straight-line code, or the refusal to compile it.
fn expanded_size(graph: &Graph, loops: &[Region], options: &Options) -> Result<usize, Refusal> {
    let nest = Nest::of(graph);
    let loops: HashSet<Region> = loops.iter().copied().collect();
    let bound =
        |region: Region| graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
    let times = |block: Block| {
        let around = core::iter::successors(nest.block_loop(block), |&r| nest.loop_around(r));
        let bounds = around.filter(|region| loops.contains(region)).map(bound);
        bounds.fold(1, |all, bound| usize::saturating_mul(all, bound as usize))
    };
    let sizes =
        graph.blocks.iter().map(|(block, data)| data.items.len().saturating_mul(times(block)));
    let (size, limit) = (sizes.fold(0, usize::saturating_add), options.limits.compiled);
    if size > limit { Err(Refusal::TooManyToCompile { size, limit }) } else { Ok(size) }
}

/// Replaces loops by closed forms, if there are any, and records formulas and open loops.
pub(super) fn close_loops(graph: Graph, state: &mut PrimalState<'_>) -> Graph {
    let closed = closed_forms(&graph, state.form.is_some());
    state.open = closed.open;
    state.for_values = closed.for_values;
    // Without closed forms the loops stay as they were before fusion.
    if closed.applied.is_empty() {
        return graph;
    }
    state.applied = closed.applied;
    state.closed = state.applied.len();
    closed.graph
}

/// The graph with closed forms; `always` includes those that cost more than their loops.
pub(super) fn closed_forms(rolled: &Graph, always: bool) -> Closed {
    let fused = fuse(rolled);
    fused.iter().for_each(|fused| check("fuse", fused));
    // Fusion repeats what several loops read, which must not cost more. In a release build an
    // invalid result is dropped: the loops without fusion give the right kernel, too.
    let steps = |graph: &Graph| most_steps(graph, |_| 1);
    let fused = fused.filter(|fused| steps(fused) <= steps(rolled) && verify(fused).is_ok());
    let fused = fused.as_ref().unwrap_or(rolled);
    let closed = close(fused, CloseLimits { always, ..CloseLimits::DEFAULT });
    check("close", &closed.graph);
    closed
}

/// Expands short loops, or returns the recorded graph with long loops alone if that costs less:
/// then there are no closed forms.
pub(super) fn expand_short_loops(graph: Graph, state: &mut PrimalState<'_>) -> Graph {
    let (mut graph, is_open) = expanded(graph, state);
    if is_open {
        for Applied { at, .. } in state.applied.drain(..state.closed) {
            if state.open.iter().all(|known: &OpenLoop| known.at != at) {
                state.open.push(OpenLoop { at, reasons: vec![OpenReason::Cost] });
            }
        }
        state.for_values = None;
        // Those of branches belong to the other graph.
        state.applied.clear();
        if state.closes() {
            graph = with_simple_branches(graph, &mut state.applied);
        }
    }
    graph
}

/// `graph` with its short loops as straight-line code, and false. If short loops have
/// data-dependent exits, the recorded graph with long loops alone may cost less; then returns
/// that, and true.
fn expanded(graph: Graph, state: &PrimalState<'_>) -> (Graph, bool) {
    let ShortLoops { loops, others, steps, .. } = cost::short_loops(&graph);
    let straight = |graph: Graph| match expand(&graph, &loops) {
        Some(straight) => simplify(&straight, Folding::Real),
        None => graph,
    };
    if !others {
        return (straight(graph), false);
    }
    let long = with_loops(state.recorded, LONG_LOOPS, state.options);
    if 2 * (size(&long) as u64) < steps {
        return (long, true);
    }
    let straight = straight(graph);
    if cost::time_with_sweep(&long) < cost::time_with_sweep(&straight) {
        (long, true)
    } else {
        (straight, false)
    }
}
