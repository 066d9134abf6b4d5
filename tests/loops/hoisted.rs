//! Hoisted steps are as accurate as on the tape, and are not reassociated where sums of factors
//! overflow.

use std::panic::Location;

use crate::common::double_double::DoubleDouble;
use crate::common::double_double_graphs::evaluate_block;
use crate::common::ulp::ulp;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Numerics, Recorded, Tape, Var};

type Program = fn(&[Var]) -> Var;

/// Numbers between -1 and 1.
fn data() -> [f64; 200] {
    core::array::from_fn(|i| (i as f64 * 0.7).sin())
}

/// A common factor, a sum or difference of loop-invariant values.
fn factors(x: &[Var]) -> Var {
    let terms =
        data().into_iter().map(|d| (x[0] * d + x[1] * d).sin() + (x[0] * d - x[2] * d).sin());
    terms.sum()
}

/// Functions of loop-invariant values.
fn functions(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for d in data() {
        sum += ((x[0] - x[1]).exp() * d + (x[2] * x[2] + 1.0).sqrt() / (x[1] * x[1] + d * d + 1.0))
            .sin();
    }
    sum
}

/// Inner steps that vary only with the outer loop, or with neither.
fn nested(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for outer in data().into_iter().step_by(10) {
        for inner in data() {
            let scale = (x[0] * outer).sin() * (x[1] + 0.5 * x[2]).sin();
            sum += (scale * inner).exp() + (x[1] * inner + x[2] * inner).sin();
        }
    }
    sum
}

const PROGRAMS: [(&str, Program); 3] =
    [("factors", factors), ("functions", functions), ("nested", nested)];

fn compiled(run: Program, numerics: Numerics, at: &[f64]) -> Recorded<Program> {
    let tape = Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics);
    let f = tape.record(run);
    for _ in 0..2 {
        f.eval(at).unwrap();
        f.grad(at).unwrap();
        f.value_and_grad(at).unwrap();
        f.compile().unwrap();
    }
    f
}

/// The gradient and value of the recorded trace, as it is.
fn recorded(run: Program, point: &[f64]) -> Graph {
    let inputs = Inputs { active: point, inactive: &[] };
    let mut traces = MergedTraces::new(point.len(), 0);
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| run(x), inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    reverse(traces.graph(), Wanted::GradientAndValue, Folding::Exact)
}

fn error(found: f64, reference: DoubleDouble) -> f64 {
    let difference = DoubleDouble::from(found) - reference;
    (difference.0 + difference.1).abs()
}

/// The gradient, then the value.
fn results((value, mut gradient): (f64, Vec<f64>)) -> Vec<f64> {
    gradient.push(value);
    gradient
}

#[test]
fn kernels_are_as_accurate_as_the_tape() {
    let count = 40;
    let mut random = Random::new(31);
    for (name, run) in PROGRAMS {
        let kernel = compiled(run, Numerics::Real, &[0.5, 0.25, -0.75]);
        let exact = compiled(run, Numerics::Exact, &[0.5, 0.25, -0.75]);
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
        // One order of operations in all calls.
        let tape = builder.numerics(Numerics::Exact).record(run);
        let graph = recorded(run, &[0.5, 0.25, -0.75]);
        for size in [1e-9, 1e-3, 0.3, 1.0, 3.0] {
            // At a single point the tape may be exact by chance.
            let (mut errors, mut ulps) = ([[0.0f64; 2]; 4], [0.0f64; 4]);
            for _ in 0..count {
                let x: [f64; 3] = core::array::from_fn(|_| size * random.uniform(-1.0, 1.0));
                let calls = kernel.report().kernel_calls;
                let on_tape = tape.value_and_grad(&x).unwrap();
                let in_kernel = kernel.value_and_grad(&x).unwrap();
                assert_eq!(kernel.report().kernel_calls, calls + 1, "{name} {x:?}");
                assert_eq!(exact.value_and_grad(&x).unwrap(), on_tape, "{name} {x:?}");
                let truth = evaluate_block(&graph, &x);
                let both =
                    results(on_tape).into_iter().zip(results(in_kernel)).zip(truth).enumerate();
                for (i, ((taped, got), truth)) in both {
                    errors[i][0] += error(taped, truth).powi(2);
                    errors[i][1] += error(got, truth).powi(2);
                    ulps[i] += ulp(truth.0).powi(2);
                }
            }
            for (i, ([taped, got], ulp)) in errors.into_iter().zip(ulps).enumerate() {
                let [taped, got, ulp] =
                    [taped, got, ulp].map(|sum| (sum / f64::from(count)).sqrt());
                assert!(got <= 4.0 * taped + 4.0 * ulp, "{name} {i} {size}: {got:e} {taped:e}");
            }
        }
    }
}

#[test]
fn products_are_finite_where_the_sum_of_their_factors_overflows() {
    // The common factor is not factored out: the sum of the others may overflow.
    let run: Program =
        |x| data().into_iter().map(|d| (x[0] * (d * 1e-308) + x[1] * (d * 1e-308)).tanh()).sum();
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    // One order of operations in all calls.
    let tape = builder.numerics(Numerics::Exact).record(run);
    let kernel = compiled(run, Numerics::Real, &[0.5, 2.0]);
    let calls = kernel.report().kernel_calls;
    for x in [[1.5e308, 1.5e308], [-1.5e308, -1e308], [f64::MAX, f64::MAX]] {
        assert_eq!(kernel.value_and_grad(&x).unwrap(), tape.value_and_grad(&x).unwrap(), "{x:?}");
    }
    assert_eq!(kernel.report().kernel_calls, calls + 3);
    for x in [[1.5e308, -1e308], [1.0, 2.0], [0.0, 0.0]] {
        let (got, taped) = (kernel.value_and_grad(&x).unwrap(), tape.value_and_grad(&x).unwrap());
        for (got, taped) in results(got).into_iter().zip(results(taped)) {
            assert!((got - taped).abs() <= 1e-13 * taped.abs() + 1e-300, "{x:?}: {got} {taped}");
        }
    }
    assert_eq!(kernel.report().kernel_calls, calls + 6);
}

/// A loop-invariant value, used in the forward and the reverse sweep; the sum decides a branch.
#[phigrad::traced]
fn decided(x: &[Var]) -> Var {
    let mut s = x[1];
    for i in 0..300 {
        let d = (i as f64 * 0.7).sin();
        s = s + x[0].exp().sin() * d + (x[1] * d).sin();
    }
    let mut r = x[0] * 7.0;
    if s < 3.0 {
        r = x[0] + s.sin();
    }
    r
}

/// The same with a carried value in the terms.
fn carried(x: &[Var]) -> Var {
    data().into_iter().fold(x[1], |s, d| {
        s + x[0].exp().sin() * d / (s * s + 1.0) + (x[0] * x[0]).atan() * d * s.tanh()
    })
}

#[test]
fn invariant_values_of_the_reverse_sweep_are_hoisted() {
    for (run, added) in
        [(decided as Program, [[0.9, 0.3], [0.9, 30.0]]), (carried, [[0.9, 0.3], [-0.4, 1.0]])]
    {
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
        // One order of operations in all calls.
        let tape = builder.numerics(Numerics::Exact).record(run);
        let kernel = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
        added.iter().for_each(|x| drop(kernel.value_and_grad(x).unwrap()));
        kernel.compile().unwrap();
        for x in [[0.9, 0.3], [0.7, 30.0], [0.8, 0.35], [-0.2, 0.1]] {
            let (got, expected) = (kernel.value_and_grad(&x), tape.value_and_grad(&x));
            let rows = results(got.unwrap()).into_iter().zip(results(expected.unwrap()));
            for (got, expected) in rows {
                let size = expected.abs().max(1.0);
                assert!((got - expected).abs() <= 1e-12 * size, "{x:?}: {got} {expected}");
            }
        }
        assert_eq!(kernel.report().kernel_calls, 4, "{}", kernel.report());
    }
}
