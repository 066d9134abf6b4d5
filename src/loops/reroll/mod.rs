//! Loop rerolling: rolls repetition that recording has unrolled into loops.
//!
//! A trace is straight-line code: each iteration of a loop of the user's code has left the same
//! primitives from the same places. Steps that are equal up to their operands have the same
//! template. The algorithm:
//!
//! 1. `collect`: a list of steps for each block; a region is one step.
//! 2. `period`: periodic runs of templates in a list.
//! 3. `search`: which periodic runs are loops, by their operands.
//! 4. `roll`: makes each loop one step and repeats, so that outer loops are found around inner
//!    ones; `non_rectangular`: around inner loops whose trip count changes.
//! 5. `exit_chain`: loops with a data-dependent exit, from chains of branches.
//! 6. `emit` makes the new graph, with `argument` (array accesses for operands that vary) and
//!    `exits` (loops with exits); `places` gives nested loops distinct source places.
//!
//! Two passes prepare the graph: `jump_threading`, for regions that only choose an exit, and
//! `expand`, for loops that `trace` found while recording (`trace_loops`) and that cannot be
//! rolled further as they are.
//!
//! LLVM's LoopReroll pass undoes unrolling inside existing loops; here the loops themselves are
//! found.

mod argument;
mod collect;
mod emit;
mod emit_affine_loop;
mod exit_chain;
mod exits;
mod jump_threading;
mod non_rectangular;
mod period;
mod places;
mod roll;
mod search;
mod template;
mod trace_loops;

pub(super) use period::{PeriodicRun, runs};
pub(super) use template::TemplateId;
pub(super) use trace_loops::{TraceLoop, trace_loop};

use super::expand::expand;
use crate::ssa::{End, Graph, Region};
use trace_loops::has_only_trace_loops;

/// The limits of [`reroll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RerollLimits {
    /// The least number of iterations; at least 2. Default: 4.
    pub iterations: u32,
    /// The largest number of iterations; longer loops are split. Default: 2²⁴.
    pub times: u32,
    /// The least number of steps that a loop replaces. Default: 16.
    pub weight: u64,
    /// The least number of steps that a loop replaces whose inner loops have another trip count in
    /// each iteration: it cannot be expanded again. Default: 512.
    pub non_rectangular_weight: u64,
    /// The least number of iterations of a loop with a data-dependent exit. The code after such a
    /// loop was recorded once for each trip count. `None` leaves them all open. Default: 3.
    pub exits: Option<u32>,
    /// The largest distance, in iterations, of a loop-carried operand. Default: 4.
    pub distance: u32,
    /// The number of earlier occurrences to which a step is compared, at least the number of
    /// equal steps in a body. Default: 16.
    pub occurrences: u32,
    /// The largest number of iterations that are merged into one, if their operands then form an
    /// arithmetic progression. Default: 4.
    pub merged_iterations: u32,
    /// The largest depth of nested loops. Default: 8.
    pub depth: u32,
    /// The largest depth of nested regions; deeper graphs are returned unchanged. Default: 64.
    pub regions: usize,
    /// True if jumps are threaded through regions that only choose an exit, if that makes loops.
    /// Values that these regions pass on are then no steps. Default: true.
    pub threading: bool,
}

impl RerollLimits {
    /// The default, as a constant.
    pub const DEFAULT: RerollLimits = RerollLimits {
        iterations: 4,
        times: 1 << 24,
        weight: 16,
        non_rectangular_weight: 512,
        exits: Some(3),
        distance: 4,
        occurrences: 16,
        merged_iterations: 4,
        depth: 8,
        regions: 64,
        threading: true,
    };
}

impl Default for RerollLimits {
    fn default() -> Self {
        RerollLimits::DEFAULT
    }
}

/// Rolls repetition in `graph` into loops. The graph is as recorded: each operation of the user's
/// code is a node, in order, nothing folded or shared.
///
/// The new graph does the same operations on the same numbers in the same order, so its results
/// have the same bits. A graph without repetition is returned unchanged, and so is one with loops
/// or replays, other than trace loops as
/// [`MergedTraces::compact`](crate::merge::MergedTraces::compact) makes them.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::Op;
/// use phigrad::internals::loops::{RerollLimits, reroll};
/// use phigrad::internals::ssa::{End, Graph, interpret};
///
/// // x · 1 · 2 · … · 100
/// let mut graph = Graph::new(1, 0);
/// let (root, mut product) = (graph.root(), graph.input(0));
/// for factor in 1..=100 {
///     let factor = graph.push_const(f64::from(factor).to_bits());
///     product = graph.push_apply(root, Op::Mul, &[product, factor], None);
/// }
/// graph.blocks[root].end = End::Return([product].into_iter().collect());
///
/// let rolled = reroll(&graph, RerollLimits::default());
/// assert_eq!(rolled.regions.len(), 1);
/// assert!(rolled.nodes.len() < 10);
/// assert_eq!(interpret(&rolled, &[1e-9]), interpret(&graph, &[1e-9]));
/// ```
pub fn reroll(graph: &Graph, limits: RerollLimits) -> Graph {
    if nesting(graph) > limits.regions {
        return graph.clone();
    }
    if has_only_trace_loops(graph) {
        let mut templates = template::Templates::default();
        // Jump threading needs unrolled iterations.
        if !jump_threading::has_selectors(graph)
            && let Some(collected) = collect::collect(graph, &mut templates, &limits)
        {
            if collected.loops == 0 {
                return graph.clone();
            }
            if let Some(rolled) = emit::emit(graph, &templates, &collected) {
                return rolled;
            }
        }
        let expanded = without_loops(graph);
        return expanded.map_or_else(|| graph.clone(), |new| reroll(&new, limits));
    }
    // Jump threading is kept only if it makes a loop with an exit. All iterations but the last
    // choose where they continue.
    if limits.threading
        && let Some(exits) = limits.exits
        && let Some(threaded) =
            jump_threading::thread_jumps(graph, (exits as usize).saturating_sub(1))
    {
        let mut templates = template::Templates::default();
        if let Some(collected) = collect::collect(&threaded, &mut templates, &limits)
            && collected.chains > 0
            && let Some(rolled) = emit::emit(&threaded, &templates, &collected)
        {
            return rolled;
        }
    }
    let mut templates = template::Templates::default();
    let collected =
        collect::collect(graph, &mut templates, &limits).filter(|collected| collected.loops > 0);
    collected
        .and_then(|collected| emit::emit(graph, &templates, &collected))
        .unwrap_or_else(|| graph.clone())
}

/// `graph` with all its trace loops as straight-line code; `None` if one has another form.
pub(crate) fn without_loops(graph: &Graph) -> Option<Graph> {
    let is_loop = |&region: &Region| graph.regions[region].cycle.is_some();
    let loops: Vec<Region> = graph.regions.keys().filter(is_loop).collect();
    expand(graph, &loops)
}

/// The depth of nested regions in `graph`.
fn nesting(graph: &Graph) -> usize {
    let (mut deepest, mut pending) = (0, vec![(graph.root(), 0)]);
    while let Some((root, depth)) = pending.pop() {
        deepest = deepest.max(depth);
        let mut blocks = vec![root];
        while let Some(block) = blocks.pop() {
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                blocks.extend([otherwise, then]);
            }
            let inside = graph.regions_of(block).map(|region| graph.regions[region].root);
            pending.extend(inside.map(|root| (root, depth + 1)));
        }
    }
    deepest
}
