//! Calls of routines and custom derivatives: text form, invariants, and agreement of interpreter,
//! kernels and differentiation.

use crate::common::outcomes::{call, values};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, directional, reverse};
use phigrad::internals::jit::compile;
use phigrad::internals::ssa::{Folding, Graph, eliminate_dead_code, parse, simplify};

/// x₁¹⁰⁰·x₀ + …, with attached partials, if the routine accepts; otherwise 7·x₁.
const VERSIONS: &str = "graph active 2 inactive 1\nv3 = const 7.0\n\
    c0 = routine affine_power inputs 3 wrt x0 x1 : t0 = x0 | t1 = x1 | t2 = x2 | \
    advance 100 states 1 matrix t1 offset t2 start t0 outputs 0\n\
    b0:\n  v4 = call c0 v0 v1 v2\n  v5 = result v4 1\n  v6 = result v4 2\n  v7 = result v4 3\n  \
    v11 = region r0 b1\n  v12 = mul v11 v0\n  return v12\n\
    b1:\n  branch v4 b2 b3\n\
    b2:\n  v8 = attach v5 v0 v6\n  v9 = attach v8 v1 v7\n  return v9\n\
    b3:\n  v10 = mul v1 v3\n  return v10\n";

fn in_kernel(graph: &Graph, x: &[f64]) -> Vec<f64> {
    call(graph, &compile(graph).unwrap(), x).unwrap()
}

#[test]
fn the_text_form_round_trips() {
    let graph = parse(VERSIONS).unwrap();
    assert_eq!(graph.to_string(), VERSIONS);
    assert_eq!(simplify(&graph, Folding::Exact).calls.len(), 1);
}

#[test]
fn malformed_calls_are_rejected() {
    let broken = |from: &str, to: &str, what: &str| {
        let text = VERSIONS.replace(from, to);
        assert_ne!(text, VERSIONS);
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    };
    broken(
        "call c0 v0 v1 v2",
        "call c0 v0 v1",
        "another number of operands than its routine has inputs",
    );
    broken("call c0", "call c1", "expected `c1 = routine …` first");
    broken("result v4 3", "result v4 4", "is no result of a call");
    broken("result v4 3", "result v4 0", "is no result of a call");
    broken("result v4 3", "result v0 1", "is no result of a call");
    broken("call c0 v0", "call c0 v9", "larger id");
    broken("states 1", "states 0", "expected offset");
    let moved =
        VERSIONS.replace("  v7 = result v4 3\n", "").replace("b2:\n", "b2:\n  v7 = result v4 3\n");
    let error = parse(&moved).unwrap_err().to_string();
    assert!(error.contains("another block than its call"), "{error}");
}

#[test]
fn attached_partials_are_the_derivatives_of_accepted_calls() {
    let graph = parse(VERSIONS).unwrap();
    let gradient = eliminate_dead_code(&reverse(&graph, Wanted::GradientAndValue, Folding::Real));
    let mut random = Random::new(5);
    for _ in 0..50 {
        let (p, a, b) =
            (random.uniform(-2.0, 2.0), random.uniform(0.5, 1.1), random.uniform(-1.0, 1.0));
        let (mut y, mut by_p, mut by_a) = (p, 1.0, 0.0);
        for _ in 0..100 {
            (y, by_p, by_a) = (y * a + b, by_p * a, by_a * a + y);
        }
        let expected = [by_p * p + y, by_a * p, y * p];
        let (slow, fast) = (values(&gradient, &[p, a, b]), in_kernel(&gradient, &[p, a, b]));
        assert_eq!(slow, fast);
        for (found, expected) in slow.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found}");
        }
    }
    // The power exceeds 2^500: out of range, rejected.
    let x = [0.5, 60.0, 0.25];
    assert_eq!(values(&gradient, &x), [420.0, 3.5, 210.0]);
    assert_eq!(in_kernel(&gradient, &x), [420.0, 3.5, 210.0]);
}

#[test]
fn second_derivatives_are_those_of_the_fallback() {
    let graph = parse(VERSIONS).unwrap();
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
    // The fallback is 7·x₁·x₀.
    let (partials, products) = directional(&gradient, &[0.5, 0.9, 0.1], &[1.0, 2.0]).unwrap();
    assert_eq!((partials, products), (vec![7.0 * 0.9, 3.5], vec![14.0, 7.0]));
}

#[test]
fn calls_in_loops_run_in_each_iteration() {
    // Ten times y ← y + y·0.9¹⁰⁰ + x₁·Σ 0.9^j, whose reverse loop needs the partials of each.
    let text = "graph active 2 inactive 0\nv2 = const 0.9\nv3 = const 9.0\nv5 = iteration r0\n\
        c0 = routine affine_power inputs 3 wrt x0 x2 : t0 = x0 | t1 = x1 | t2 = x2 | \
        advance 100 states 1 matrix t1 offset t2 start t0 outputs 0\n\
        b0:\n  v14 = region r0 b1 bound 10 entries v4=v0\n  return v14\n\
        b1:\n  v6 = call c0 v4 v2 v1\n  v7 = result v6 1\n  v8 = result v6 2\n  \
        v9 = result v6 3\n  v10 = attach v7 v4 v8\n  v11 = attach v10 v1 v9\n  \
        v12 = mul v11 v4\n  v13 = lt v5 v3\n  return v13 v12 v12\n";
    let graph = parse(text).unwrap();
    let gradient = eliminate_dead_code(&reverse(&graph, Wanted::GradientAndValue, Folding::Real));
    let x = [0.7, 0.11];
    let (power, sum) = (0.9f64.powi(100), (1.0 - 0.9f64.powi(100)) / 0.1);
    let (mut y, mut by) = (x[0], [1.0, 0.0]);
    for _ in 0..10 {
        let inner = y * power + x[1] * sum;
        let by_inner = [by[0] * power, by[1] * power + sum];
        by = [0, 1].map(|i| by_inner[i] * y + inner * by[i]);
        y *= inner;
    }
    let (slow, fast) = (values(&gradient, &x), in_kernel(&gradient, &x));
    assert_eq!(slow, fast);
    for (found, expected) in slow.iter().zip([by[0], by[1], y]) {
        assert!((found - expected).abs() <= 1e-11 * expected.abs(), "{slow:?} {by:?} {y}");
    }
}
