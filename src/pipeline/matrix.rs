//! Kernels of matrices of derivatives: one run, or few, for a Jacobian, a Hessian, or the products
//! that give a sparse one.
//!
//! A product is a row of the Jacobian, or a sum of rows, by the reverse sweep; a column of it; or a
//! column of the Hessian. All of them are derivatives of a sweep along directions: of the outputs
//! along those of the inputs, of the gradient along those of the inputs, and of the gradient of the
//! weighted sum of outputs, which is linear in the weights, along those of the weights. So
//! [`tangents`] makes several at once, and the rest of the sweep is computed once for all.

use core::ops::Range;

use super::passes::{
    Coarsened, KernelState, Primal, Rolled, check, compile, kernel_passes, limited, run,
    simplify_in_segments,
};
use super::{Numerics, Options, Purpose, Refusal, Tier};
use crate::diff::{Checkpointed, Directions, Wanted, jacobian, reverse, tangents};
use crate::jit::{MAX_WORDS, saved_words};
use crate::simplify::Stage;
use crate::ssa::{Folding, Graph, eliminate_dead_code, simplify};

/// The runs of a kernel that serve one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// One, whose outputs are the results.
    One,
    /// One for each product; the kernel is that of calls for this purpose.
    EachProduct(Purpose),
    /// One for each group of products of this purpose: one for each of the directions. The outputs
    /// are those of one product after the other.
    Groups(Purpose, Directions),
}

/// A matrix of derivatives, by products.
pub(crate) struct Matrix {
    pub(crate) purpose: Purpose,
    /// The purpose of the products, and their number.
    pub(crate) product: Purpose,
    pub(crate) products: usize,
    /// The numbers of the weights among the inputs of the recorded graph.
    pub(crate) weights: Range<u32>,
}

/// The largest size of a graph of several products: so many steps, and so many for each one of the
/// recorded graph, or of the graph of a single product, which bounds the time to compile it.
const STEPS: usize = 4096;
const STEPS_PER_NODE: usize = 8;
const STEPS_PER_STEP: usize = 2;

/// The largest number of products along axes, all in one run; more are computed in groups of at
/// most so many.
const MAX_AXES: usize = 16;
const MAX_GROUP: usize = 8;

/// Makes a kernel that computes all of a Jacobian or Hessian in one run. Its inputs are the active
/// ones, the weights of a Jacobian, which it does not use, and the other inactive ones. `None` if
/// the recorded graph is no straight-line code, or the matrix too large.
pub(crate) fn whole_matrix(
    rolled: &Rolled,
    matrix: &Matrix,
    tier: Tier,
    options: &Options,
) -> Result<Option<Coarsened>, Refusal> {
    let recorded = rolled.recorded();
    let is_dense = matches!(matrix.purpose, Purpose::Jacobian | Purpose::Hessian);
    if !is_dense || options.numerics == Numerics::Exact || !recorded.regions.is_empty() {
        return Ok(None);
    }
    limited(recorded, options)?;
    let differentiated = match matrix.purpose {
        Purpose::Hessian => reverse(recorded, Wanted::Gradient, Folding::Real),
        _ => outputs(
            &reverse(
                &recorded.with_active(matrix.weights.clone()),
                Wanted::Gradient,
                Folding::Real,
            ),
            recorded.active,
            matrix,
        ),
    };
    let differentiated = simplify(&eliminate_dead_code(&differentiated), Folding::Real);
    let most = STEPS + STEPS_PER_NODE * recorded.nodes.len();
    let Some(mut graph) = jacobian(&differentiated, Folding::Real, most) else { return Ok(None) };
    check("jacobian", &graph);
    if tier == Tier::Optimised {
        graph = simplify_in_segments(&graph, Stage::Final, options);
    }
    graph = eliminate_dead_code(&graph);
    limited(&graph, options)?;
    compile(&graph, tier, options, &[]).map(Some)
}

/// The graph `by_weights`, whose outputs are those of the function, with the active inputs before
/// the weights.
fn outputs(by_weights: &Graph, active: usize, matrix: &Matrix) -> Graph {
    let weights = matrix.weights.len() as u32;
    by_weights.with_active(weights..weights + active as u32)
}

/// Makes a kernel that computes several products in one run, from the primal graph: by the weights
/// if the products are those of columns of the Jacobian. `None` if there are no such products, or
/// no such kernel.
pub(crate) fn grouped_products(
    primal: &Primal,
    matrix: &Matrix,
    active: usize,
    options: &Options,
) -> Result<Option<(Coarsened, Runs)>, Refusal> {
    let has_groups = matches!(
        matrix.product,
        Purpose::HessianProduct | Purpose::JacobianVectorProduct | Purpose::VectorJacobianProduct
    );
    if options.numerics == Numerics::Exact || matrix.products < 2 || !has_groups {
        return Ok(None);
    }
    let checkpointed = Checkpointed::new(primal.graph());
    let swept = checkpointed.reverse(Wanted::Gradient, Folding::Real);
    let swept = eliminate_dead_code(&swept);
    let swept = match matrix.product {
        Purpose::HessianProduct => swept,
        Purpose::VectorJacobianProduct => swept.with_active(matrix.weights.clone()),
        _ => outputs(&swept, active, matrix),
    };
    let Some(directions) = directions(&swept, matrix) else { return Ok(None) };
    let Some(graph) = tangents(&swept, directions) else { return Ok(None) };
    check("tangents", &graph);
    let graph = simplify(&eliminate_dead_code(&graph), Folding::Real);
    let passes = kernel_passes();
    let rest = passes.iter().position(|pass| pass.name == "reverse").map_or(0, |at| at + 1);
    let mut state = KernelState::new(&checkpointed, primal.tier(), Purpose::Gradient, options);
    let graph = run(&passes[rest..], graph, &mut state);
    limited(&graph, options)?;
    if saved_words(&graph) > options.limits.saved_values.min(MAX_WORDS as usize) as u64 {
        return Ok(None);
    }
    let coarsened = compile(&graph, primal.tier(), options, &[])?;
    Ok(Some((coarsened, Runs::Groups(matrix.product, directions))))
}

/// The directions along which `swept` is differentiated in one run; `None` if that would be too
/// large for more than one.
fn directions(swept: &Graph, matrix: &Matrix) -> Option<Directions> {
    let steps: usize = swept.blocks.values().map(|block| block.items.len()).sum();
    let most = (STEPS + STEPS_PER_STEP * steps) / steps.max(1);
    let is_dense = !matrix.purpose.is_sparse();
    if is_dense && matrix.products <= most.min(MAX_AXES) {
        return Some(Directions::Axes);
    }
    // Groups of about the same size.
    let runs = matrix.products.div_ceil(most.clamp(1, MAX_GROUP));
    let group = matrix.products.div_ceil(runs);
    (group > 1).then_some(Directions::Inputs(group))
}
