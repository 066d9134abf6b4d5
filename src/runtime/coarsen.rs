//! Coarsening: from the recorded graph to a kernel. The order of the passes is
//! decided here and nowhere else.

use super::options::{Numerics, Options};
use super::report::{Purpose, Refusal};
use crate::diff::{Wanted, reverse};
use crate::jit::{Kernel, compile, host_fuses};
use crate::phi::{
    Applied, Branched, Refused, SimplifyLimits, Stage, simplify_branches, simplify_segments,
};
use crate::soi::divide;
use crate::ssa::{
    Folding, Graph, RerollLimits, eliminate_dead_code, fuse, reroll, simplify, verify,
};

/// A kernel, and the size of the graph it was made from.
pub(super) struct Coarsened {
    pub(super) kernel: Kernel,
    pub(super) nodes: usize,
}

/// Makes the kernel for `purpose` of the recorded graph.
pub(super) fn coarsen(
    recorded: &Graph,
    purpose: Purpose,
    options: &Options,
) -> Result<Coarsened, Refusal> {
    let graph = optimised(recorded, purpose, options)?;
    Ok(Coarsened { kernel: compile(&graph)?, nodes: graph.nodes.len() })
}

/// What is worth a loop. A loop of few steps is faster unrolled, by up to a half,
/// and its code is small anyway; found by experiment.
const ROLLED: RerollLimits = RerollLimits { iterations: 32, weight: 512, ..RerollLimits::DEFAULT };

/// The graph that is compiled for `purpose`.
fn optimised(recorded: &Graph, purpose: Purpose, options: &Options) -> Result<Graph, Refusal> {
    checked(recorded);
    let graph = match options.numerics {
        // The derivative must add up what the tape adds up, so equal nodes may
        // be shared only afterwards.
        Numerics::Exact => {
            limited(recorded, options)?;
            derive(recorded, purpose, Folding::Exact)
        }
        Numerics::Real => {
            let rolled = reroll(recorded, ROLLED);
            checked(&rolled);
            limited(&rolled, options)?;
            let primal = simplify(&rolled, Folding::Real);
            checked(&primal);
            derive(&primal, purpose, Folding::Real)
        }
    };
    checked(&graph);
    if options.numerics == Numerics::Real && host_fuses() {
        let fused = fuse(&graph);
        checked(&fused);
        return Ok(fused);
    }
    Ok(graph)
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
    let before = simplify(&reroll(recorded, RerollLimits::DEFAULT), Folding::Real);
    let (after, applied) = match options.numerics {
        Numerics::Exact => (before.clone(), Vec::new()),
        Numerics::Real => {
            let Branched { graph, applied } = simplify_branches(&before);
            (simplify(&graph, Folding::Real), applied)
        }
    };
    let refused = Vec::new();
    let is_small = after.nodes.len() <= MOST_NODES && options.limits.compiled > 0;
    let simplified = |graph: &Graph, stage| {
        simplify_segments(graph, &divide(graph, SEGMENT), stage, SimplifyLimits::DEFAULT)
    };
    let gradient = is_small.then(|| {
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
