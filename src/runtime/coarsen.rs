//! Coarsening: from the recorded graph to a kernel. The order of the passes is
//! decided here and nowhere else.

use super::options::{Numerics, Options};
use super::report::{Purpose, Refusal};
use crate::diff::{Wanted, reverse};
use crate::jit::{Kernel, compile, host_fuses};
use crate::phi::{Applied, CloseLimits, Refused, close, unroll};
use crate::ssa::{
    Folding, Graph, Nest, RerollLimits, eliminate_dead_code, fuse, reroll, simplify, verify,
};

/// A kernel, and the size of the graph it was made from.
pub(super) struct Coarsened {
    pub(super) kernel: Kernel,
    pub(super) nodes: usize,
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
    Ok(Coarsened { kernel: compile(&graph)?, nodes: graph.nodes.len() })
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
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    if options.phi_calculus {
        let rolled = rolled(recorded, RerollLimits::DEFAULT);
        let closed = close(&rolled, CloseLimits::DEFAULT);
        refused = closed.refused;
        if 10 * steps(&closed.graph) <= 9 * steps(&rolled) {
            applied = closed.applied;
            checked(&closed.graph);
            let graph = unroll(&closed.graph, ROLLED.iterations, ROLLED.weight);
            checked(&graph);
            return Primal { graph, applied, refused };
        }
    }
    Primal { graph: rolled(recorded, ROLLED), applied, refused }
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
