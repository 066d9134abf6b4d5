//! Segments: all applications are in one, their sizes are bounded, and inputs and outputs are
//! complete; reuse-aware division has fewer crossing values.

use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::assert_as_interpreted;
use phigrad::internals::Random;
use phigrad::internals::jit::schedule;
use phigrad::internals::op::Op;
use phigrad::internals::soi::{divide, divide_evenly};
use phigrad::internals::ssa::{Builder, Def, Folding, Graph, Outcome, Segments, interpret};
use phigrad::internals::{LoopForm, Tuning};
use phigrad::report::KernelReport;
use phigrad::{Tape, Var};

/// Straight-line code in which each tenth value is used by the nine after it.
fn reused(groups: usize) -> Graph {
    let mut builder = Builder::new(1, 0, Folding::Exact);
    let mut last = builder.input(0);
    for _ in 0..groups {
        let shared = builder.apply(Op::Sin, &[last]);
        let first = builder.apply(Op::Cos, &[shared]);
        last = (0..8).fold(first, |sum, _| builder.apply(Op::Sub, &[shared, sum]));
    }
    builder.finish_block(&[last]);
    builder.into_graph()
}

fn check(graph: &Graph, segments: &Segments, limit: usize) {
    let applications =
        graph.nodes.iter().filter(|(_, data)| matches!(data.def, Def::Apply(..))).count();
    let members: usize = segments.list.iter().map(|segment| segment.nodes.len()).sum();
    assert_eq!(members, applications);
    for (number, segment) in segments.list.iter().enumerate() {
        assert!((1..=limit).contains(&segment.nodes.len()));
        for &node in &segment.nodes {
            assert_eq!(segments.of[node], Some(number as u32));
            for &arg in graph.nodes[node].args() {
                let is_member = segments.of[arg] == Some(number as u32);
                assert!(is_member != segment.inputs.contains(&arg), "{node} {arg}");
            }
        }
        assert!(segment.outputs.iter().all(|node| segment.nodes.contains(node)));
        // No value leaves and comes back: inputs from the same block are computed before the
        // segment begins.
        let first = segment.nodes[0];
        assert!(segment.inputs.iter().all(|&input| input < first || segments.of[input].is_none()));
    }
}

#[test]
fn segments_of_random_graphs_are_complete_and_bounded() {
    let recipe = GraphRecipe { loops: 0.3, elements: 0.1, sums: 0.05, ..GraphRecipe::default() };
    for seed in 0..200 {
        let graph = recipe.graph(&mut Random::new(seed));
        for limit in [1, 3, 8, 1000] {
            check(&graph, &divide(&graph, limit), limit);
            check(&graph, &divide_evenly(&graph, limit), limit);
        }
    }
}

#[test]
fn reuse_aware_division_has_fewer_crossing_values() {
    let graph = reused(100);
    let crossing = |segments: &Segments| -> usize {
        segments.list.iter().map(|segment| segment.inputs.len()).sum()
    };
    for limit in [16, 24, 48, 96] {
        let (aware, even) = (divide(&graph, limit), divide_evenly(&graph, limit));
        check(&graph, &aware, limit);
        assert!(aware.list.len() <= 2 * even.list.len() + 1);
        let inputs = |segments: &Segments| crossing(segments) as f64 / segments.list.len() as f64;
        assert!(inputs(&aware) <= inputs(&even), "{limit}: {} {}", inputs(&aware), inputs(&even));
    }
    // The graph is valid.
    assert!(matches!(interpret(&graph, &[0.5]), Outcome::Values(_)));
}

#[test]
fn loops_cut_anywhere_agree_with_the_interpreter() {
    let recipe = GraphRecipe { loops: 0.4, elements: 0.1, sums: 0.05, ..GraphRecipe::default() };
    let mut values = 0;
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let graph = recipe.graph(random);
        let schedule = schedule(&graph).unwrap();
        let point: Vec<f64> =
            (0..graph.active + graph.inactive).map(|_| random.uniform(-2.0, 2.0)).collect();
        for distance in [1, 2, 5, 20] {
            let steps = 0..schedule.sequence().steps + 2;
            let cuts: Vec<u32> = steps.filter(|_| random.below(distance) == 0).collect();
            let kernel = schedule.compile(&cuts).unwrap();
            values += usize::from(assert_as_interpreted(&graph, &kernel, &point));
        }
    }
    assert!(values > 100, "{values}");
}

/// Straight-line code, a branch and a loop that stays one.
#[phigrad::traced]
fn mixed(x: &[Var]) -> Var {
    let mut y = x[0];
    for i in 0..60 {
        y = (y + x[i % 3]) / (y * y + x[(i + 1) % 3] * y.sin() + 2.0).sqrt();
    }
    if y > x[1] {
        y = y.exp() - x[2];
    }
    let mut z = x[2];
    for i in 0..200 {
        z = (z * y + f64::from(i)).cos();
    }
    y + z
}

fn kernel(segment: usize, reuse_aware: bool) -> (Vec<f64>, KernelReport) {
    let tuning = Tuning { segment, reuse_aware, ..Tuning::with_loops(LoopForm::Unrolled) };
    let f = Tape::builder().tuning(tuning).record(mixed);
    let x = [1.25, 0.5, 2.0];
    f.grad(&x).unwrap();
    f.compile().unwrap();
    let gradient = f.grad(&x).unwrap();
    let report = f.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (1, 0));
    (gradient, report.kernels[0].clone())
}

#[test]
fn cuts_change_no_bit_of_the_result() {
    let (expected, whole) = kernel(usize::MAX, true);
    assert_eq!((whole.segments, whole.crossing), (1, 0));
    let mut least = 1;
    for segment in [512, 100, 20, 3, 1, 0] {
        for reuse_aware in [true, false] {
            let (found, cut) = kernel(segment, reuse_aware);
            assert_eq!(found, expected, "{segment} {reuse_aware}");
            assert!(cut.segments >= least, "{segment}: {cut:?}");
            assert!((cut.segments > 1) == (cut.crossing > 0), "{cut:?}");
        }
        least = kernel(segment, true).1.segments / 2;
    }
    assert!(least > 100, "{least}");
}

#[test]
fn reuse_aware_cuts_have_fewer_crossing_words() {
    for segment in [32, 64, 128] {
        let (aware, even) = (kernel(segment, true).1, kernel(segment, false).1);
        assert!(aware.crossing <= even.crossing, "{segment}: {aware:?} {even:?}");
    }
}
