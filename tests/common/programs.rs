//! Helpers of several test targets: recorded programs, merged traces, and comparisons with
//! readable failures.

use std::panic::Location;

use super::outcomes;
use super::random_programs::{Program, Recipe};
use phigrad::check::same;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::merge::{MergeLimits, MergeOutcome, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph};
use phigrad::internals::trace::{Adjoints, Inputs, Tracer, sweep};
use phigrad::internals::{Random, Tier, Tuning};
use phigrad::{Numerics, RecordedWith, Tape, Var};

/// Active and inactive inputs.
pub type Point = (Vec<f64>, Vec<f64>);

/// Value and gradient.
pub type Answer = (f64, Vec<f64>);

/// The program as a recorded function that compiles kernels of this tier, only on request.
pub fn record(
    program: &Program,
    numerics: Numerics,
    tier: Tier,
) -> RecordedWith<impl Fn(&[Var], &[Var]) -> Var + use<>> {
    let program = program.clone();
    Tape::builder()
        .hot_threshold(u32::MAX)
        .background(false)
        .numerics(numerics)
        .tuning(Tuning { tier: Some(tier), ..Tuning::default() })
        .record_with(move |x, data| program.eval(x, data))
}

/// Random points for programs of this recipe.
pub fn points(recipe: &Recipe, random: &mut Random, count: usize) -> Vec<Point> {
    (0..count).map(|_| recipe.inputs(random)).collect()
}

/// Value and gradient by the tape.
pub fn taped(program: &Program, (x, data): &Point) -> Answer {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: data };
    let run = |x: &[Var], data: &[Var]| program.eval(x, data);
    let trace = tracer.run(run, inputs, 1 << 24, Location::caller()).unwrap();
    let mut adjoints = Adjoints::default();
    let gradient = sweep(&trace, &mut adjoints).to_vec();
    (trace.value(), gradient)
}

/// The merged traces of `program` at `points`.
pub fn traces(program: &Program, points: &[Point]) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(program.active(), program.inactive());
    for (x, data) in points {
        let inputs = Inputs { active: x, inactive: data };
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let trace = tracer.run(run, inputs, 1 << 24, Location::caller()).unwrap();
        let limits = MergeLimits { paths: usize::MAX, nodes: 1 << 24 };
        let merged = traces.merge(&trace, limits).unwrap();
        assert_eq!(
            merged == MergeOutcome::First,
            traces.paths() == 1 && merged != MergeOutcome::Known
        );
    }
    assert_eq!(traces.paths(), traces.graph().paths());
    Graph::clone(traces.graph())
}

/// The graph of gradient and value.
pub fn reversed(graph: &Graph, folding: Folding) -> Graph {
    reverse(graph, Wanted::GradientAndValue, folding)
}

/// The interpreter's outputs at a point; `None` on an unseen path.
pub fn interpreted(graph: &Graph, (x, data): &Point) -> Option<Vec<f64>> {
    outcomes::outputs(graph, &[x.as_slice(), data].concat())
}

/// Tests whether all numbers have the same bits; all NaN are equal.
pub fn all_same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(a, b))
}

/// The gradient and then the value, in the order of a gradient graph.
pub fn outputs((value, gradient): &Answer) -> Vec<f64> {
    [gradient.as_slice(), &[*value]].concat()
}
