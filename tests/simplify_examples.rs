//! Simplification of segments, checked on the printed form: the worked example of
//! branches (section 3 of the paper), and forms that survive large operands.
#![allow(clippy::unwrap_used)] // A failing helper fails its test.

use phigrad::diff::{Wanted, reverse};
use phigrad::phi::{SimplifyLimits, Stage, simplify_segments};
use phigrad::soi::divide;
use phigrad::ssa::{
    Folding, Graph, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};

fn simplified(graph: &Graph, stage: Stage) -> Graph {
    let segments = divide(graph, 100);
    let result = simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT);
    assert_eq!(verify(&result), Ok(()), "{result}");
    assert_eq!(
        result,
        simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT),
        "not deterministic"
    );
    result
}

/// The gradient of `text`, simplified before and after differentiating.
fn gradient(text: &str) -> Graph {
    let primal = simplify(&parse(text).unwrap(), Folding::Real);
    let primal = simplified(&primal, Stage::Primal);
    let gradient = eliminate_dead_code(&reverse(&primal, Wanted::Gradient, Folding::Real));
    simplified(&gradient, Stage::Final)
}

fn values(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    match interpret(graph, inputs) {
        Outcome::Values(values) => values,
        Outcome::Unseen(_) => vec![],
    }
}

#[test]
fn powers_cancel_inside_a_branch() {
    let text = "graph active 2 inactive 0\nv2 = const 0.0\nv3 = const 1.5\nb0:\n  \
                v4 = mul v0 v1\n  v5 = gt v4 v2\n  branch v5 b1 b2\nb1:\n  v6 = powf v4 v3\n  \
                v7 = div v6 v4\n  return v7\nb2:\n  return v4\n";
    let primal = simplified(&parse(text).unwrap(), Stage::Primal);
    println!("{primal}");
    println!("{}", gradient(text));
}

#[test]
fn the_factor_cancels_with_the_derivative_of_the_logarithm() {
    // ln(1 + e^y)·(1 + e^y)
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  v3 = add v2 v1\n  \
                v4 = ln v3\n  v5 = mul v4 v3\n  return v5\n";
    println!("{}", gradient(text));
    println!("{:?}", values(&gradient(text), &[0.3]));
}
#[test]
fn softplus() {
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  v3 = add v2 v1\n  \
                v4 = ln v3\n  return v4\n";
    println!("{}", gradient(text));
    println!("{:?}", values(&gradient(text), &[0.3]));
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n v9 = neg v0\n v2 = exp v9\n  v3 = add v2 v1\n  \
                v4 = recip v3\n  return v4\n";
    println!("{}", gradient(text));
    println!("{:?}", values(&gradient(text), &[0.3]));
    let text = "graph active 2 inactive 0\nb0:\n v2 = exp v0\n  v3 = exp v1\n  v4 = add v2 v3\n v5 = ln v4\n  return v5\n";
    println!("{}", gradient(text));
    println!("{:?}", values(&gradient(text), &[0.3, 0.4]));
}
