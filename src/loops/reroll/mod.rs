//! Rerolling: makes loops again of repetition that recording has unrolled.
//!
//! A recorded run is straight-line code, and what was a loop in the user's code
//! repeats there: iteration after iteration has the same primitives from the
//! same places. `collect` makes a list of steps of each block, `period` finds
//! where a list repeats itself, `roll` which of that are loops and makes a step
//! of each, so that loops around them repeat in turn; `emit` makes a graph of
//! what has come of it, and `argument` finds out how operands depend on
//! iteration numbers.

mod argument;
mod chain;
mod collect;
mod emit;
mod flatten;
mod leave;
mod period;
mod places;
mod ready;
mod roll;
mod search;
mod shape;
mod thread;

use crate::ssa::{End, Graph};
use ready::has_only_ready_loops;

/// What [`reroll`] makes a loop, and how far it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RerollLimits {
    /// The least number of iterations; at least 2. Default: 4.
    pub iterations: u32,
    /// The largest number of iterations; more become several loops. Default: 2²⁴.
    pub times: u32,
    /// The least number of steps that a loop replaces. Default: 16.
    pub weight: u64,
    /// The least number of iterations of a loop that may end in each of them. What
    /// comes behind such a loop is there once for each, so few are worth it.
    /// Default: 3.
    pub exits: u32,
    /// How many iterations back an operand may come from. Default: 4.
    pub distance: u32,
    /// How many occurrences back a step is compared: a body may have as many
    /// equal steps. Default: 16.
    pub occurrences: u32,
    /// How many iterations may become one, if operands are then in even steps.
    /// Default: 4.
    pub together: u32,
    /// How deep loops are nested at most. Default: 8.
    pub depth: u32,
    /// A graph with regions nested deeper than this stays as it is. Default: 64.
    pub regions: usize,
    /// Whether regions that only choose an exit are taken apart, if loops become of it.
    /// What they carry is no step of its own then. Default: true.
    pub threading: bool,
}

impl RerollLimits {
    /// The default, as a constant.
    pub const DEFAULT: RerollLimits = RerollLimits {
        iterations: 4,
        times: 1 << 24,
        weight: 16,
        exits: 3,
        distance: 4,
        occurrences: 16,
        together: 4,
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

/// Makes loops of repetition in `graph`, a faithful graph: each operation of the
/// user's code is a node, in order, nothing folded or shared.
///
/// The same operations are done on the same numbers in the same order, so the
/// new graph means the same to the last bit. A graph in which nothing repeats stays as
/// it is, and so does one that has loops or replays already, unless they are such loops as
/// [`MergedTraces::compact`](crate::merge::MergedTraces::compact) makes.
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
    if has_only_ready_loops(graph) {
        let mut shapes = shape::Shapes::default();
        // What is threaded must be there step by step.
        if !thread::has_selectors(graph)
            && let Some(whole) = collect::collect(graph, &mut shapes, &limits)
        {
            if whole.loops == 0 {
                return graph.clone();
            }
            if let Some(rolled) = emit::emit(graph, &shapes, &whole) {
                return rolled;
            }
        }
        return reroll(&flatten::flatten(graph), limits);
    }
    // Threading is for what has a loop that ends here or there, and for nothing else.
    if limits.threading
        && let Some(threaded) = thread::thread(graph)
    {
        let mut shapes = shape::Shapes::default();
        if let Some(whole) = collect::collect(&threaded, &mut shapes, &limits)
            && whole.chains > 0
            && let Some(rolled) = emit::emit(&threaded, &shapes, &whole)
        {
            return rolled;
        }
    }
    let mut shapes = shape::Shapes::default();
    let whole = collect::collect(graph, &mut shapes, &limits).filter(|whole| whole.loops > 0);
    whole.and_then(|whole| emit::emit(graph, &shapes, &whole)).unwrap_or_else(|| graph.clone())
}

/// How deep the regions of `graph` are nested.
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
