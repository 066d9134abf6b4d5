//! Coarsening: from the recorded graph to a kernel. The order of the passes is
//! decided here and nowhere else.

use super::options::{Numerics, Options};
use super::report::{Purpose, Refusal};
use crate::diff::{Wanted, reverse};
use crate::jit::{Kernel, host_fuses, schedule};
use crate::phi::{
    Applied, CloseLimits, Closed, Refused, SimplifyLimits, Stage, close, simplify_branches,
    simplify_segments, unroll,
};
use crate::soi::{crossing, cut, cut_evenly, divide};
use crate::ssa::{
    Folding, Graph, Nest, RerollLimits, eliminate_dead_code, fuse, reroll, simplify, verify,
};

/// A kernel, and what it was made from.
pub(super) struct Coarsened {
    pub(super) kernel: Kernel,
    /// The size of the graph.
    pub(super) nodes: usize,
    /// How many segments its code was cut into, and how many words they hand over.
    pub(super) segments: usize,
    pub(super) crossing: usize,
}

/// What all kernels of a recorded graph are made from.
pub(super) struct Primal {
    graph: Graph,
    /// The formulas of φ-calculus that made it.
    pub(super) applied: Vec<Applied>,
    /// The loops that are left.
    pub(super) refused: Vec<Refused>,
}

/// What is worth a loop. A loop of few steps is faster unrolled, by up to a half,
/// and its code is small anyway; found by experiment.
const ROLLED: RerollLimits = RerollLimits { iterations: 32, weight: 512, ..RerollLimits::DEFAULT };

/// The recorded graph with loops and closed forms.
pub(super) fn primal(recorded: &Graph, options: &Options) -> Result<Primal, Refusal> {
    checked(recorded);
    let primal = match options.numerics {
        // The derivative must add up what the tape adds up, so equal nodes may
        // be shared only afterwards.
        Numerics::Exact => {
            Primal { graph: recorded.clone(), applied: Vec::new(), refused: Vec::new() }
        }
        Numerics::Real => closed(recorded, options),
    };
    limited(&primal.graph, options)?;
    Ok(primal)
}

/// Makes the kernel for `purpose`.
pub(super) fn coarsen(
    primal: &Primal,
    purpose: Purpose,
    options: &Options,
) -> Result<Coarsened, Refusal> {
    let graph = optimised(&primal.graph, purpose, options.numerics);
    let schedule = schedule(&graph)?;
    let (sequence, limit) = (schedule.sequence(), options.limits.segment);
    let cuts = match options.reuse_aware {
        true => cut(&sequence, limit),
        false => cut_evenly(&sequence, limit),
    };
    Ok(Coarsened {
        kernel: schedule.compile(&cuts)?,
        nodes: graph.nodes.len(),
        segments: cuts.len() + 1,
        crossing: crossing(&sequence, &cuts),
    })
}

/// The graph that is compiled for `purpose`.
fn optimised(primal: &Graph, purpose: Purpose, numerics: Numerics) -> Graph {
    let folding = match numerics {
        Numerics::Exact => Folding::Exact,
        Numerics::Real => Folding::Real,
    };
    let graph = derive(primal, purpose, folding);
    checked(&graph);
    if numerics == Numerics::Real && host_fuses() {
        let fused = fuse(&graph);
        checked(&fused);
        return fused;
    }
    graph
}

/// What a recorded graph goes through, for people who want to see it.
pub(super) struct Stages {
    /// The graph with its loops, also short ones.
    pub(super) before: Graph,
    /// The graph with closed forms.
    pub(super) after: Graph,
    /// The derivatives, if they are wanted at all of a graph of this size.
    pub(super) gradient: Option<Graph>,
    pub(super) applied: Vec<Applied>,
    pub(super) refused: Vec<Refused>,
}

/// The stages of `recorded`.
pub(super) fn stages(recorded: &Graph, options: &Options) -> Stages {
    /// The derivatives of larger graphs are not short.
    const MOST_NODES: usize = 4096;
    /// The steps that are simplified together.
    const SEGMENT: usize = 256;
    let before = rolled(recorded, RerollLimits::DEFAULT);
    let (mut after, mut applied, mut refused) = (before.clone(), Vec::new(), Vec::new());
    if options.phi_calculus && options.numerics == Numerics::Real {
        let closed = worth_closing(&before);
        refused = closed.refused;
        applied = closed.applied;
        after = branched(closed.graph, &mut applied);
    }
    let simplified = |graph: &Graph, stage| {
        simplify_segments(graph, &divide(graph, SEGMENT), stage, SimplifyLimits::DEFAULT)
    };
    let gradient = (after.nodes.len() <= MOST_NODES).then(|| {
        let primal = simplified(&after, Stage::Primal);
        simplified(&derive(&primal, Purpose::Gradient, Folding::Real), Stage::Final)
    });
    Stages { before, after, gradient, applied, refused }
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

/// The recorded graph with closed forms, also of short loops, as far as there are
/// any; other short loops stay unrolled.
fn closed(recorded: &Graph, options: &Options) -> Primal {
    if !options.phi_calculus {
        let graph = rolled(recorded, ROLLED);
        return Primal { graph, applied: Vec::new(), refused: Vec::new() };
    }
    let Closed { graph, mut applied, refused } =
        worth_closing(&rolled(recorded, RerollLimits::DEFAULT));
    let graph = match applied.is_empty() {
        true => rolled(recorded, ROLLED),
        false => {
            let graph = unroll(&graph, ROLLED.iterations, ROLLED.weight);
            checked(&graph);
            graph
        }
    };
    Primal { graph: branched(graph, &mut applied), applied, refused }
}

/// The graph with closed forms, if those are worth it.
fn worth_closing(rolled: &Graph) -> Closed {
    let closed = close(rolled, CloseLimits::DEFAULT);
    if 10 * steps(&closed.graph) <= 9 * steps(rolled) {
        checked(&closed.graph);
        return closed;
    }
    Closed { graph: rolled.clone(), applied: Vec::new(), refused: closed.refused }
}

/// The graph with simpler branches.
fn branched(graph: Graph, applied: &mut Vec<Applied>) -> Graph {
    let branched = simplify_branches(&graph);
    if branched.applied.is_empty() {
        return graph;
    }
    applied.extend(branched.applied);
    let graph = simplify(&branched.graph, Folding::Real);
    checked(&graph);
    graph
}

/// How many steps a run takes at most. Closed forms that save less than a tenth
/// of them are not worth their loops: what is found in many short loops is slower
/// than what is unrolled, also where those are unrolled again.
fn steps(graph: &Graph) -> u64 {
    let (nest, mut total) = (Nest::of(graph), 0u64);
    for (block, data) in graph.blocks.iter() {
        let mut times = 1u64;
        let mut around = nest.block_loop(block);
        while let Some(region) = around {
            let bound = graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
            times = times.saturating_mul(u64::from(bound));
            around = nest.region_block(region).and_then(|block| nest.block_loop(block));
        }
        total = total.saturating_add(times.saturating_mul(data.items.len() as u64));
    }
    total
}

fn derive(primal: &Graph, purpose: Purpose, folding: Folding) -> Graph {
    let wanted = match purpose {
        Purpose::Value => return simplify(primal, folding),
        Purpose::Gradient => Wanted::Gradient,
        Purpose::ValueAndGradient => Wanted::GradientAndValue,
    };
    let gradient = reverse(primal, wanted, folding);
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
