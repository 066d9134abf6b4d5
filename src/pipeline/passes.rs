//! The order of the passes, as tables: from the recorded graph with loops ([`rolled`]) to the
//! primal graph ([`primal_passes`]), and from there to the graph of a kernel ([`kernel_passes`]).
//!
//! Each pass maps a graph to a graph. [`run`] applies the rows of a table in order and verifies
//! the graph after each of them, in debug builds. The order is decided here and nowhere else.

use core::ops::Range;
use std::sync::Arc;

use super::loop_forms::{
    MOST_UNROLLED_STEPS, close_loops, closed_forms, expand_short_loops, most_cells,
    rolled_in_order, size, with_loops,
};
use super::{BatchSource, LoopForm, Numerics, Options, Purpose, Refusal, Tier};
use crate::diff::{
    Checkpointed, Wanted, checkpoint, custom_without_derivative, reordered, tangent,
};
use crate::jit::{Allocator, Kernel, MAX_WORDS, saved_words, schedule_with_profile};
use crate::loops::{RerollLimits, hoist, hoist_inputs, store_arrays, without_loops};
use crate::phi::{Applied, Closed, OpenLoop, simplify_branches};
use crate::simplify::{SimplifyLimits, Stage, share_reciprocals, simplify_segments};
use crate::soi::{crossing, cut, cut_evenly, divide};
use crate::ssa::{
    Folding, Graph, Sequence, block_profile, eliminate_dead_code, join_leaves, most_steps,
    simplify, verify, without_attached, without_invariant_entries,
};

/// A row of a table of passes.
pub(super) struct Pass<S> {
    pub(super) name: &'static str,
    /// The condition for the pass.
    pub(super) applies: fn(&S) -> bool,
    pub(super) run: fn(Graph, &mut S) -> Graph,
}

/// Applies `passes` to `graph` in order, and verifies each result in debug builds.
pub(super) fn run<S>(passes: &[Pass<S>], mut graph: Graph, state: &mut S) -> Graph {
    for pass in passes {
        if (pass.applies)(state) {
            graph = (pass.run)(graph, state);
            check(pass.name, &graph);
        }
    }
    graph
}

/// Verifies the result of the pass `name` in debug builds.
pub(super) fn check(name: &str, graph: &Graph) {
    if cfg!(debug_assertions) {
        let verified = verify(graph);
        debug_assert!(verified.is_ok(), "after {name}: {verified:?}\n{graph}");
    }
}

/// The passes from the graph with loops to the primal graph, for [`Numerics::Real`].
fn primal_passes<'a>() -> [Pass<PrimalState<'a>>; 7] {
    [
        Pass { name: "close", applies: PrimalState::closes, run: close_loops },
        Pass {
            name: "branches",
            // Before expansion, which repeats branches.
            applies: PrimalState::closes,
            run: |graph, state| with_simple_branches(graph, &mut state.applied),
        },
        Pass { name: "expand", applies: PrimalState::expands, run: expand_short_loops },
        Pass {
            name: "cells",
            // After all passes that have loops in closed form or as straight-line code.
            applies: |_| true,
            run: |graph, state| store_arrays(&graph, most_cells(state.options)),
        },
        Pass { name: "hoist", applies: |_| true, run: |graph, _| hoist_inputs(&graph) },
        Pass {
            name: "segments",
            applies: PrimalState::is_optimised,
            run: |graph, state| simplify_in_segments(&graph, Stage::Primal, state.options),
        },
        Pass { name: "join", applies: |_| true, run: |graph, _| join_leaves(graph) },
    ]
}

/// The passes from the primal graph, with checkpoints, to the graph of a kernel.
pub(super) fn kernel_passes<'a>() -> [Pass<KernelState<'a>>; 7] {
    [
        Pass {
            name: "reverse",
            applies: KernelState::has_gradient,
            run: |_, state| state.primal.reverse(state.wanted(), state.options.numerics.folding()),
        },
        Pass {
            name: "attached",
            applies: |_| true,
            run: |graph, state| without_attached(&graph, state.options.numerics.folding()),
        },
        Pass {
            name: "fold",
            // The builder has folded a gradient already.
            applies: |state| !state.has_gradient(),
            run: |graph, state| simplify(&graph, state.options.numerics.folding()),
        },
        Pass {
            name: "dead code",
            applies: KernelState::has_gradient,
            run: |graph, state| {
                // An adjoint may be the same in all iterations.
                without_invariant_entries(
                    eliminate_dead_code(&graph),
                    state.options.numerics.folding(),
                )
            },
        },
        Pass {
            name: "segments",
            applies: |state| state.is_real() && state.is_optimised(),
            run: |graph, state| simplify_in_segments(&graph, Stage::Final, state.options),
        },
        Pass {
            name: "reciprocals",
            // Of the final graph alone: a derivative of a quotient uses the quotient.
            applies: |state| state.is_real() && state.is_optimised() && state.is_compiled,
            run: |graph, _| share_reciprocals(&graph),
        },
        Pass {
            name: "hoist",
            applies: |state| state.is_real() && state.is_optimised() && state.is_compiled,
            run: |graph, _| hoist(&graph),
        },
    ]
}

/// The state of the passes to the primal graph.
pub(super) struct PrimalState<'a> {
    pub(super) options: &'a Options,
    tier: Tier,
    /// The form of all loops, if it is prescribed.
    pub(super) form: Option<LoopForm>,
    /// The graph before all passes.
    pub(super) recorded: &'a Graph,
    /// The formulas of φ-calculus that have been applied.
    pub(super) applied: Vec<Applied>,
    /// The number of these that close loops; they are first.
    pub(super) closed: usize,
    /// The loops without a closed form.
    pub(super) open: Vec<OpenLoop>,
    /// The graph for kernels of the value alone, if that is another one.
    pub(super) for_values: Option<Graph>,
}

impl<'a> PrimalState<'a> {
    fn new(recorded: &'a Graph, tier: Tier, options: &'a Options, form: Option<LoopForm>) -> Self {
        let (applied, open) = Default::default();
        PrimalState { options, tier, form, recorded, applied, closed: 0, open, for_values: None }
    }

    fn is_optimised(&self) -> bool {
        self.tier == Tier::Optimised
    }

    /// True if loops get closed forms.
    pub(super) fn closes(&self) -> bool {
        self.is_optimised()
            && self.options.phi_calculus
            && matches!(self.form, None | Some(LoopForm::Closed))
    }

    /// True if short loops become straight-line code: unless all loops have a prescribed form.
    fn expands(&self) -> bool {
        match self.form {
            None => self.is_optimised(),
            Some(LoopForm::Closed) => !self.options.phi_calculus,
            Some(LoopForm::Rolled | LoopForm::Unrolled) => false,
        }
    }
}

/// The state of the passes to the graph of a kernel.
pub(super) struct KernelState<'a> {
    primal: &'a Checkpointed,
    tier: Tier,
    purpose: Purpose,
    options: &'a Options,
    /// False for explanations, which show the gradient without passes that make only code faster.
    is_compiled: bool,
}

impl<'a> KernelState<'a> {
    pub(super) fn new(
        primal: &'a Checkpointed,
        tier: Tier,
        purpose: Purpose,
        options: &'a Options,
    ) -> Self {
        KernelState { primal, tier, purpose, options, is_compiled: true }
    }

    fn has_gradient(&self) -> bool {
        self.purpose.has_reverse_sweep()
    }

    fn is_optimised(&self) -> bool {
        self.tier == Tier::Optimised
    }

    fn is_real(&self) -> bool {
        self.options.numerics == Numerics::Real
    }

    fn wanted(&self) -> Wanted {
        match self.purpose {
            Purpose::ValueAndGradient => Wanted::GradientAndValue,
            _ => Wanted::Gradient,
        }
    }
}

/// A kernel, with statistics for the report.
pub(crate) struct Coarsened {
    pub(crate) kernel: Kernel,
    /// The source of code for batches, if there can be such code.
    pub(crate) batches: Option<BatchSource>,
    /// The number of nodes of the compiled graph.
    pub(crate) nodes: usize,
    /// The number of values that loops save for the reverse sweep.
    pub(crate) saved_values: u64,
    /// The number of loops that the reverse sweep computes again.
    pub(crate) recomputed: usize,
    /// The number of segments of its code.
    pub(crate) segments: usize,
    /// The number of words that are live from one segment to another.
    pub(crate) crossing: usize,
}

/// A recorded graph with its loops, which all tiers share.
pub(crate) struct Rolled {
    recorded: Arc<Graph>,
    graph: Graph,
}

impl Rolled {
    /// The graph, whose paths include those of all kernels.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph before its loops were found.
    pub(super) fn recorded(&self) -> &Graph {
        &self.recorded
    }

    /// The derivative along a direction.
    pub(crate) fn tangent(&self, options: &Options) -> Result<Rolled, Refusal> {
        let folding = options.numerics.folding();
        let derivative = |graph: &Graph| -> Result<Graph, Refusal> {
            let graph = tangent(graph).ok_or(Refusal::Panicked)?;
            check("tangent", &graph);
            Ok(simplify(&graph, folding))
        };
        Ok(Rolled {
            recorded: Arc::new(derivative(&self.recorded)?),
            graph: derivative(&self.graph)?,
        })
    }

    /// The same function as one of `weights`, a range of inputs, with the others inactive.
    pub(crate) fn by_weights(&self, weights: Range<u32>) -> Rolled {
        let by = |graph: &Graph| {
            let graph = graph.with_active(weights.clone());
            check("weights", &graph);
            graph
        };
        Rolled { recorded: Arc::new(by(&self.recorded)), graph: by(&self.graph) }
    }
}

/// Finds the loops of `recorded`.
pub(crate) fn rolled(recorded: &Arc<Graph>, options: &Options) -> Result<Rolled, Refusal> {
    check("recording", recorded);
    let graph = match (options.numerics, options.tuning.loop_form) {
        // The sweep must add up what the tape adds up, so equal nodes are shared only after it.
        (Numerics::Exact, _) => rolled_in_order(recorded, options)?,
        (Numerics::Real, Some(LoopForm::Unrolled)) => simplify(recorded, Folding::Real),
        (Numerics::Real, _) => with_loops(recorded, RerollLimits::DEFAULT, options),
    };
    Ok(Rolled { recorded: Arc::clone(recorded), graph })
}

/// The graph that all kernels of a tier are made from.
pub(crate) struct Primal {
    tier: Tier,
    graph: Graph,
    /// The graph for kernels of the value alone, if that is another one.
    values: Option<Graph>,
    /// The formulas of φ-calculus that were applied.
    pub(crate) applied: Vec<Applied>,
    /// The loops without a closed form.
    pub(crate) open: Vec<OpenLoop>,
    /// The recorded graph, if the cost model has chosen the forms of its loops.
    recorded: Option<Arc<Graph>>,
}

impl Primal {
    /// The primal graph without loops, if those in `kernel`, the graph of a kernel with a reverse
    /// sweep, cannot be worth it: it is not much smaller than the recording, and takes many more
    /// steps. A loop that reads values computed outside it by index adds up their adjoints in memory.
    fn straight_line_code(
        &self,
        kernel: &Graph,
        options: &Options,
    ) -> Result<Option<Graph>, Refusal> {
        /// The size of a graph with loops that are worth it, as a part of the recorded steps. Then
        /// straight-line code takes much longer to compile.
        const RECORDED_STEPS_PER_ITEM: u64 = 8;
        /// The number of steps for each recorded one in kernels with loops that are worth it.
        /// Straight-line code takes about three.
        const MOST_STEPS_PER_RECORDED: u64 = 8;
        let Some(recording) = &self.recorded else { return Ok(None) };
        if kernel.regions.values().all(|region| region.cycle.is_none()) {
            return Ok(None);
        }
        let (steps, recorded) = (most_steps(kernel, |_| 1), most_steps(recording, |_| 1));
        let is_small = RECORDED_STEPS_PER_ITEM.saturating_mul(size(kernel) as u64) <= recorded;
        if is_small || steps <= MOST_STEPS_PER_RECORDED.saturating_mul(recorded) {
            return Ok(None);
        }
        let limit = MOST_UNROLLED_STEPS.min(options.limits.compiled as u64);
        let straight = (recorded <= limit).then(|| without_loops(recording)).flatten();
        let Some(straight) = straight else {
            // Then the tape is faster, too.
            let is_slow = steps > 2 * MOST_STEPS_PER_RECORDED.saturating_mul(recorded);
            return if is_slow { Err(Refusal::SlowLoops { steps, recorded }) } else { Ok(None) };
        };
        let form = Some(LoopForm::Unrolled);
        let mut state = PrimalState::new(recording, self.tier, options, form);
        let straight = simplify(&straight, Folding::Real);
        Ok(Some(run(&primal_passes(), straight, &mut state)))
    }

    pub(super) fn tier(&self) -> Tier {
        self.tier
    }

    /// The graph that kernels with a reverse sweep are made from.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }
}

/// Makes the primal graph of `rolled` for `tier`.
pub(crate) fn primal(rolled: &Rolled, tier: Tier, options: &Options) -> Result<Primal, Refusal> {
    let primal = match options.numerics {
        Numerics::Exact => {
            let graph = join_leaves(rolled.graph.clone());
            let (applied, open) = Default::default();
            Primal { tier, graph, values: None, applied, open, recorded: None }
        }
        Numerics::Real => real_primal(rolled, tier, options),
    };
    limited(&primal.graph, options)?;
    Ok(primal)
}

fn real_primal(rolled: &Rolled, tier: Tier, options: &Options) -> Primal {
    let (passes, recorded) = (primal_passes(), &*rolled.recorded);
    let mut state = PrimalState::new(recorded, tier, options, options.tuning.loop_form);
    let graph = run(&passes, rolled.graph.clone(), &mut state);
    // The graph for values continues with the pass after the closed forms.
    let rest = passes.iter().position(|pass| pass.name == "close").map_or(0, |at| at + 1);
    let values = state.for_values.take().map(|graph| {
        run(&passes[rest..], graph, &mut PrimalState::new(recorded, tier, options, None))
    });
    let is_chosen = options.tuning.loop_form.is_none();
    let recorded = is_chosen.then(|| Arc::clone(&rolled.recorded));
    Primal { tier, graph, values, applied: state.applied, open: state.open, recorded }
}

/// Makes the kernel for `purpose`. Blocks that the runs of `profiling_inputs` reach are hot in an
/// optimised one.
pub(crate) fn coarsen(
    primal: &Primal,
    purpose: Purpose,
    options: &Options,
    profiling_inputs: &[Arc<[f64]>],
) -> Result<Coarsened, Refusal> {
    let values = primal.values.as_ref().filter(|_| !purpose.has_reverse_sweep());
    let mut kernel =
        KernelGraph::of(values.unwrap_or(&primal.graph), primal.tier, purpose, options)?;
    if purpose.has_reverse_sweep()
        && let Some(straight) = primal.straight_line_code(&kernel.graph, options)?
    {
        let other = KernelGraph::of(&straight, primal.tier, purpose, options)?;
        if most_steps(&other.graph, |_| 1) < most_steps(&kernel.graph, |_| 1) {
            kernel = other;
        }
    }
    let KernelGraph { graph, recomputed } = kernel;
    let coarsened = compile(&graph, primal.tier, options, profiling_inputs)?;
    let batches = match primal.tier {
        Tier::First => None,
        Tier::Optimised => BatchSource::new(graph, purpose, options, profiling_inputs),
    };
    Ok(Coarsened { recomputed, batches, ..coarsened })
}

/// The graph of a kernel.
struct KernelGraph {
    graph: Graph,
    /// The number of loops that the reverse sweep computes again.
    recomputed: usize,
}

impl KernelGraph {
    /// That for `purpose`, of the graph `primal`, with as many checkpoints as it needs.
    fn of(
        primal: &Graph,
        tier: Tier,
        purpose: Purpose,
        options: &Options,
    ) -> Result<KernelGraph, Refusal> {
        let mut checkpointed = Checkpointed::new(primal);
        let custom = custom_without_derivative(&checkpointed.graph);
        if let Some(custom) = custom.filter(|_| purpose.has_reverse_sweep()) {
            return Err(Refusal::NoSecondDerivative { operation: custom.name().to_owned() });
        }
        // A limit beyond the largest buffer has no effect.
        let limit = options.limits.saved_values.min(MAX_WORDS as usize);
        loop {
            let mut state = KernelState::new(&checkpointed, tier, purpose, options);
            let graph = run(&kernel_passes(), checkpointed.graph.clone(), &mut state);
            let words = saved_words(&graph);
            if words <= limit as u64 {
                return Ok(KernelGraph { graph, recomputed: checkpointed.recomputed.len() });
            }
            // Checkpoints save memory in reverse sweeps only.
            let less = checkpoint(&checkpointed).filter(|_| purpose.has_reverse_sweep());
            let is_in_order = |less: &Checkpointed| {
                options.numerics == Numerics::Real || reordered(&less.graph).is_empty()
            };
            let less = less.filter(is_in_order);
            checkpointed = less.ok_or(Refusal::SavedValues { words, limit })?;
            check("checkpoint", &checkpointed.graph);
        }
    }
}

/// Compiles `graph`, the graph of a kernel. Blocks that the runs of `profiling_inputs` reach are
/// hot in an optimised one.
pub(super) fn compile(
    graph: &Graph,
    tier: Tier,
    options: &Options,
    profiling_inputs: &[Arc<[f64]>],
) -> Result<Coarsened, Refusal> {
    let (profile, allocator) = match tier {
        Tier::First => (None, Allocator::SinglePass),
        Tier::Optimised => (block_profile(graph, profiling_inputs), Allocator::Backtracking),
    };
    let schedule = schedule_with_profile(graph, profile.as_ref())?;
    let sequence = schedule.sequence();
    let cuts = cuts(&sequence, options);
    Ok(Coarsened {
        kernel: schedule.compile_by(allocator, &cuts)?,
        batches: None,
        nodes: graph.nodes.len(),
        saved_values: saved_words(graph),
        recomputed: 0,
        segments: cuts.len() + 1,
        crossing: crossing(&sequence, &cuts),
    })
}

/// The positions where the code is cut into segments.
pub(super) fn cuts(sequence: &Sequence, options: &Options) -> Vec<u32> {
    match options.tuning.reuse_aware {
        true => cut(sequence, options.tuning.segment),
        false => cut_evenly(sequence, options.tuning.segment),
    }
}

/// Equality saturation on each segment of `graph`.
pub(super) fn simplify_in_segments(graph: &Graph, stage: Stage, options: &Options) -> Graph {
    let segments = divide(graph, options.tuning.simplified);
    simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph
}

/// `graph` with simplified branches, by formulas that are added to `applied`.
pub(crate) fn with_simple_branches(graph: Graph, applied: &mut Vec<Applied>) -> Graph {
    let simple = simplify_branches(&graph);
    if simple.applied.is_empty() {
        return graph;
    }
    applied.extend(simple.applied);
    simplify(&simple.graph, Folding::Real)
}

/// Refuses a graph that would take too long to compile.
pub(super) fn limited(graph: &Graph, options: &Options) -> Result<(), Refusal> {
    let limit = options.limits.compiled;
    let size = size(graph);
    if size > limit { Err(Refusal::TooManyToCompile { size, limit }) } else { Ok(()) }
}

/// The recorded graph of a function, for explanations.
pub(crate) struct Recording {
    pub(crate) graph: Arc<Graph>,
    pub(crate) paths: usize,
    pub(crate) options: Options,
}

impl Recording {
    /// The graph with its loops, short ones included.
    pub(crate) fn with_loops(&self) -> Graph {
        with_loops(&self.graph, RerollLimits::DEFAULT, &self.options)
    }

    /// `graph` with closed forms, if the options have φ-calculus.
    pub(crate) fn closed(&self, graph: &Graph) -> Option<Closed> {
        let is_real = self.options.phi_calculus && self.options.numerics == Numerics::Real;
        is_real.then(|| closed_forms(graph, self.options.tuning.loop_form.is_some()))
    }

    /// The gradient of `graph`, with the rules of [`Numerics::Real`] and without hoisting.
    pub(crate) fn gradient(&self, graph: &Graph) -> Graph {
        let options = Options { numerics: Numerics::Real, ..self.options };
        let simplified = simplify_in_segments(graph, Stage::Primal, &options);
        check("segments", &simplified);
        let primal = Checkpointed::new(&simplified);
        let (tier, purpose, options) = (Tier::Optimised, Purpose::Gradient, &options);
        let mut state =
            KernelState { is_compiled: false, ..KernelState::new(&primal, tier, purpose, options) };
        run(&kernel_passes(), simplified, &mut state)
    }
}
