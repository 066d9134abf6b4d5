//! Coarsening: from the recorded graph to a kernel. The order of the passes is
//! decided here and nowhere else.

use std::sync::Arc;

use hashbrown::HashSet;

use super::cost::{self, ShortLoops};
use super::{LoopForm, Numerics, Options, Purpose, Refusal};
use crate::diff::{Checkpointed, Wanted, checkpoint, reordered};
use crate::jit::{Kernel, MAX_WORDS, saved_words, schedule_with_profile};
use crate::loops::{RerollLimits, expand, fuse, hoist, reroll};
use crate::phi::{Applied, CloseLimits, Closed, OpenLoop, OpenReason, close, simplify_branches};
use crate::simplify::{SimplifyLimits, Stage, simplify_segments};
use crate::soi::{crossing, cut, cut_evenly, divide};
use crate::ssa::{
    Block, Folding, Graph, Nest, Region, Sequence, block_profile, eliminate_dead_code, most_steps,
    simplify, verify, without_attached,
};

/// A kernel, and what there is to know of the graph it was made from.
pub(crate) struct Coarsened {
    pub(crate) kernel: Kernel,
    /// The size of the graph.
    pub(crate) nodes: usize,
    /// The numbers that are kept of the iterations of loops.
    pub(crate) saved_values: u64,
    /// The loops that the reverse sweep computes again.
    pub(crate) recomputed: usize,
    /// How many segments its code was cut into, and how many words they hand over.
    pub(crate) segments: usize,
    pub(crate) crossing: usize,
}

/// What all kernels of a recorded graph are made from.
pub(crate) struct Primal {
    graph: Graph,
    /// What the value alone is made from, if that is not the same.
    values: Option<Graph>,
    /// The formulas of φ-calculus that made it.
    pub(crate) applied: Vec<Applied>,
    /// The loops that are left.
    pub(crate) open: Vec<OpenLoop>,
}

impl Primal {
    /// Without φ-calculus.
    fn plain(graph: Graph) -> Self {
        let (applied, open) = Default::default();
        Primal { graph, values: None, applied, open }
    }
}

/// The loops that are worth it.
const ROLLED: RerollLimits = RerollLimits {
    iterations: cost::LEAST_ROLLED_TRIPS,
    weight: cost::LEAST_ROLLED_STEPS,
    ..RerollLimits::DEFAULT
};

/// The recorded graph with loops and closed forms.
pub(crate) fn primal(recorded: &Graph, options: &Options) -> Result<Primal, Refusal> {
    checked(recorded);
    let primal = match options.numerics {
        // The derivative must add up what the tape adds up, so equal nodes may
        // be shared only afterwards.
        Numerics::Exact => Primal::plain(rolled_in_order(recorded, options)?),
        Numerics::Real => closed(recorded, options),
    };
    limited(&primal.graph, options)?;
    Ok(primal)
}

/// Makes the kernel for `purpose`; blocks that the runs of `profiling_inputs` reach are hot.
pub(crate) fn coarsen(
    primal: &Primal,
    purpose: Purpose,
    options: &Options,
    profiling_inputs: &[Arc<[f64]>],
) -> Result<Coarsened, Refusal> {
    let values = primal.values.as_ref().filter(|_| purpose == Purpose::Value);
    let mut checkpointed = Checkpointed::new(values.unwrap_or(&primal.graph));
    // Beyond the largest buffer no limit helps.
    let limit = options.limits.saved_values.min(MAX_WORDS as usize);
    loop {
        let graph = optimised(&checkpointed, purpose, options);
        let words = saved_words(&graph);
        if words <= limit as u64 {
            let schedule =
                schedule_with_profile(&graph, block_profile(&graph, profiling_inputs).as_ref())?;
            let sequence = schedule.sequence();
            let cuts = cuts(&sequence, options);
            return Ok(Coarsened {
                kernel: schedule.compile(&cuts)?,
                nodes: graph.nodes.len(),
                saved_values: words,
                recomputed: checkpointed.recomputed.len(),
                segments: cuts.len() + 1,
                crossing: crossing(&sequence, &cuts),
            });
        }
        // The value alone keeps only what is read later.
        let less = checkpoint(&checkpointed).filter(|_| purpose != Purpose::Value);
        let is_in_order = |less: &Checkpointed| {
            options.numerics == Numerics::Real || reordered(&less.graph).is_empty()
        };
        let less = less.filter(is_in_order);
        checkpointed = less.ok_or(Refusal::SavedValues { words, limit })?;
        checked(&checkpointed.graph);
    }
}

/// Where the code is cut into segments.
fn cuts(sequence: &Sequence, options: &Options) -> Vec<u32> {
    match options.tuning.reuse_aware {
        true => cut(sequence, options.tuning.segment),
        false => cut_evenly(sequence, options.tuning.segment),
    }
}

/// The graph that is compiled for `purpose`.
fn optimised(primal: &Checkpointed, purpose: Purpose, options: &Options) -> Graph {
    if options.numerics == Numerics::Exact {
        let graph = derive(primal, purpose, Folding::Exact);
        checked(&graph);
        return graph;
    }
    let derived = derive(primal, purpose, Folding::Real);
    checked(&derived);
    let graph = hoist(&simplified(&derived, Stage::Final, options));
    checked(&graph);
    graph
}

/// The graph with better forms of what is computed in its blocks.
fn simplified(graph: &Graph, stage: Stage, options: &Options) -> Graph {
    let segments = divide(graph, options.tuning.simplified);
    let graph = simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph;
    checked(&graph);
    graph
}

/// What was recorded of a function, and the stages that an explanation shows of it.
pub(crate) struct Recording {
    pub(crate) graph: Arc<Graph>,
    pub(crate) paths: usize,
    pub(crate) options: Options,
}

impl Recording {
    /// The graph with its loops, also short ones.
    pub(crate) fn with_loops(&self) -> Graph {
        with_loops(&self.graph)
    }

    /// `graph` with closed forms, unless there is no φ-calculus.
    pub(crate) fn closed(&self, graph: &Graph) -> Option<Closed> {
        let is_real = self.options.phi_calculus && self.options.numerics == Numerics::Real;
        is_real.then(|| closed_forms(graph, self.options.tuning.loop_form.is_some()))
    }

    /// The gradient of `graph`.
    pub(crate) fn gradient(&self, graph: &Graph) -> Graph {
        let primal = Checkpointed::new(&simplified(graph, Stage::Primal, &self.options));
        let gradient = derive(&primal, Purpose::Gradient, Folding::Real);
        simplified(&gradient, Stage::Final, &self.options)
    }
}

/// Refuses a graph that would take too long to compile.
fn limited(graph: &Graph, options: &Options) -> Result<(), Refusal> {
    let limit = options.limits.compiled;
    let size = graph.blocks.values().map(|block| block.items.len()).sum();
    if size > limit { Err(Refusal::TooManyToCompile { size, limit }) } else { Ok(()) }
}

/// The recorded graph with loops.
fn rolled(recorded: &Graph, limits: RerollLimits) -> Graph {
    let rolled = reroll(recorded, limits);
    checked(&rolled);
    let primal = simplify(&rolled, Folding::Real);
    checked(&primal);
    primal
}

/// The recorded graph with all its loops.
fn with_loops(recorded: &Graph) -> Graph {
    rolled(recorded, RerollLimits::DEFAULT)
}

/// The recorded graph with those loops whose sweep adds up what the tape adds up.
fn rolled_in_order(recorded: &Graph, options: &Options) -> Result<Graph, Refusal> {
    /// To look at the order takes time for each loop and node.
    const MOST_LOOPS: usize = 256;
    // What regions carry was an event of the tape, so they are not taken apart.
    let all = RerollLimits { threading: false, ..ROLLED };
    // Those that may end in each iteration cannot be expanded.
    for limits in [all, RerollLimits { exits: u32::MAX, ..all }] {
        let mut graph = reroll(recorded, limits);
        let loops = graph.regions.values().filter(|region| region.cycle.is_some());
        if loops.count() > MOST_LOOPS {
            break;
        }
        loop {
            checked(&graph);
            let others = reordered(&graph);
            if others.is_empty() {
                return Ok(graph);
            }
            if expansible(&graph, &others, options).is_err() {
                break;
            }
            let Some(straight) = expand(&graph, &others) else { break };
            graph = straight;
        }
    }
    let loops = |region: &Region| recorded.regions[*region].cycle.is_some();
    let loops: Vec<Region> = recorded.regions.keys().filter(loops).collect();
    if loops.is_empty() {
        return Ok(recorded.clone());
    }
    let size = expansible(recorded, &loops, options)?;
    let refusal = Refusal::TooManyToCompile { size, limit: options.limits.compiled };
    expand(recorded, &loops).ok_or(refusal)
}

/// The size of `graph` with `loops` as straight-line code, unless that is too much to be
/// compiled.
fn expansible(graph: &Graph, loops: &[Region], options: &Options) -> Result<usize, Refusal> {
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

/// The recorded graph with loops and closed forms, where they cost less.
fn closed(recorded: &Graph, options: &Options) -> Primal {
    let stays = |graph: Graph| Primal::plain(simplified(&graph, Stage::Primal, options));
    let rolled = match options.tuning.loop_form {
        Some(LoopForm::Rolled) => return stays(with_loops(recorded)),
        Some(LoopForm::Unrolled) => return stays(simplify(recorded, Folding::Real)),
        Some(LoopForm::Closed) | None => with_loops(recorded),
    };
    if !options.phi_calculus {
        return stays(unrolled(rolled, recorded).0);
    }
    let always = options.tuning.loop_form.is_some();
    let Closed { graph, mut applied, mut open, mut for_values } = closed_forms(&rolled, always);
    let graph = if applied.is_empty() { rolled } else { graph };
    let (graph, is_open) = match always {
        true => (graph, false),
        false => unrolled(graph, recorded),
    };
    if is_open {
        for Applied { at, .. } in applied.drain(..) {
            if open.iter().all(|known: &OpenLoop| known.at != at) {
                open.push(OpenLoop { at, reasons: vec![OpenReason::Cost] });
            }
        }
        for_values = None;
    }
    let graph = simplified(&branched(graph, &mut applied), Stage::Primal, options);
    let values = for_values.map(|graph| {
        let graph = branched(unrolled(graph, recorded).0, &mut Vec::new());
        simplified(&graph, Stage::Primal, options)
    });
    Primal { graph, values, applied, open }
}

/// `graph` with its short loops as straight-line code. Where these may be left in each iteration, or
/// their code is large, the `recorded` graph with long loops alone, without closed forms, may take
/// less. Returns the graph and whether it is that one.
fn unrolled(graph: Graph, recorded: &Graph) -> (Graph, bool) {
    /// The size of code that is worth another look.
    const LARGE: u64 = 1 << 12;
    let ShortLoops { loops, others, steps } = cost::short_loops(&graph);
    let straight = |graph: Graph| {
        let straight =
            expand(&graph, &loops).map_or(graph, |graph| simplify(&graph, Folding::Real));
        checked(&straight);
        straight
    };
    if !others && steps <= LARGE {
        return (straight(graph), false);
    }
    let long = rolled(recorded, ROLLED);
    let size = long.blocks.values().map(|block| block.items.len() as u64).sum::<u64>();
    if 2 * size < steps {
        return (long, true);
    }
    let straight = straight(graph);
    if cost::whole(&long) < cost::whole(&straight) { (long, true) } else { (straight, false) }
}

/// The graph with closed forms, also with those that cost more than their loops if `always`.
fn closed_forms(rolled: &Graph, always: bool) -> Closed {
    // What is read often is not computed as often.
    let fused = fuse(rolled);
    fused.iter().for_each(checked);
    // Of a graph that is none the loops as they are would still have the right kernel.
    let steps = |graph: &Graph| most_steps(graph, |_| 1);
    let fused = fused.filter(|fused| steps(fused) <= steps(rolled) && verify(fused).is_ok());
    let fused = fused.as_ref().unwrap_or(rolled);
    let closed = close(fused, CloseLimits { always, ..CloseLimits::DEFAULT });
    checked(&closed.graph);
    closed
}

/// The graph with simpler branches.
pub(crate) fn branched(graph: Graph, applied: &mut Vec<Applied>) -> Graph {
    let branched = simplify_branches(&graph);
    if branched.applied.is_empty() {
        return graph;
    }
    applied.extend(branched.applied);
    let graph = simplify(&branched.graph, Folding::Real);
    checked(&graph);
    graph
}

fn derive(primal: &Checkpointed, purpose: Purpose, folding: Folding) -> Graph {
    let wanted = match purpose {
        Purpose::Value => return simplify(&without_attached(&primal.graph, folding), folding),
        Purpose::Gradient => Wanted::Gradient,
        Purpose::ValueAndGradient => Wanted::GradientAndValue,
    };
    let gradient = without_attached(&primal.reverse(wanted, folding), folding);
    checked(&gradient);
    // The builder has folded it already.
    eliminate_dead_code(&gradient)
}

/// Verifies between passes, in debug builds and tests.
fn checked(graph: &Graph) {
    if cfg!(debug_assertions) {
        let verified = verify(graph);
        debug_assert!(verified.is_ok(), "{verified:?}\n{graph}");
    }
}
