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
    let result = simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph;
    assert_eq!(verify(&result), Ok(()), "{result}");
    assert_eq!(
        result,
        simplify_segments(graph, &segments, stage, SimplifyLimits::DEFAULT).graph,
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
    let primal = simplified(&parse(text).unwrap(), Stage::Primal).to_string();
    assert!(primal.contains("b1:\n  v5 = sqrt v2\n  return v5\n"), "{primal}");
    let gradient = gradient(text);
    let printed = gradient.to_string();
    assert!(!printed.contains("powf"), "{printed}");
    assert!(printed.contains("v5 = sqrt v3\n  v7 = div v6 v5\n  v8 = mul v1 v7\n"), "{printed}");
    assert_eq!(values(&gradient, &[2.0, 8.0]), [1.0, 0.25]);
}

#[test]
fn powers_do_not_cancel_where_the_base_may_be_zero() {
    let text = "graph active 1 inactive 0\nv1 = const 1.5\nb0:\n  v2 = powf v0 v1\n  \
                v3 = div v2 v0\n  return v3\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
}

#[test]
fn the_factor_cancels_with_the_derivative_of_the_logarithm() {
    // ln(1 + e^y)·(1 + e^y)
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  v3 = add v2 v1\n  \
                v4 = ln v3\n  v5 = mul v4 v3\n  return v5\n";
    let gradient = gradient(text);
    assert!(!gradient.to_string().contains("div"), "{gradient}");
    let exact = 0.3f64.exp() * (1.0 + 0.3f64.exp().ln_1p());
    assert!((values(&gradient, &[0.3])[0] - exact).abs() < 4e-15);
}

/// Whether the value and the gradient of `text` at `x` are those.
fn assert_value_and_gradient(text: &str, x: &[f64], value: f64, slopes: &[f64]) {
    let graph = parse(text).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-15 * b.abs();
    let got = values(&simplified(&graph, Stage::Final), x);
    assert!(close(got[0], value), "{got:?} {value}");
    let got = values(&gradient(text), x);
    assert!(got.iter().zip(slopes).all(|(&a, &b)| close(a, b)), "{got:?} {slopes:?}");
}

#[test]
fn stable_forms_survive_large_operands() {
    let softplus = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  v3 = add v2 v1\n  \
                    v4 = ln v3\n  return v4\n";
    assert_value_and_gradient(softplus, &[0.0], 2f64.ln(), &[0.5]);
    assert_value_and_gradient(softplus, &[800.0], 800.0, &[1.0]);
    let small = (-40f64).exp();
    assert_value_and_gradient(softplus, &[-40.0], small, &[small]);
    let logistic = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = neg v0\n  v3 = exp v2\n  \
                    v4 = add v3 v1\n  v5 = recip v4\n  return v5\n";
    assert_value_and_gradient(logistic, &[0.0], 0.5, &[0.25]);
    assert_value_and_gradient(logistic, &[-800.0], 0.0, &[0.0]);
    assert_value_and_gradient(logistic, &[800.0], 1.0, &[0.0]);
    let sum = "graph active 2 inactive 0\nb0:\n  v2 = exp v0\n  v3 = exp v1\n  v4 = add v2 v3\n  \
               v5 = ln v4\n  return v5\n";
    let both = simplified(&parse(sum).unwrap(), Stage::Final);
    assert_eq!(values(&both, &[900.0, 900.0]), [900.0 + 2f64.ln()]);
    assert_eq!(values(&both, &[-900.0, -901.0]).len(), 1);
}

#[test]
fn what_decides_keeps_its_bits() {
    // The difference of squares is compared, so it stays as it is.
    let text = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  v3 = mul v0 v0\n  v4 = mul v1 v1\n  \
                v5 = sub v3 v4\n  v6 = gt v5 v2\n  guard v6\n  return v5\n";
    let graph = parse(text).unwrap();
    let printed = simplified(&graph, Stage::Final).to_string();
    assert!(printed.contains("v4 = sub v2 v3\n") && !printed.contains("add"), "{printed}");
}
