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

#[test]
fn bounds_keep_what_cannot_overflow() {
    // A guard bounds the exponent, which may be NaN.
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const 40.0\nb0:\n  v3 = gt v0 v2\n  \
                guard not v3\n  v4 = exp v0\n  v5 = add v4 v1\n  v6 = ln v5\n  return v6\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
    // Here the bound may be NaN, and tells nothing.
    let text = "graph active 2 inactive 0\nv2 = const 1.0\nb0:\n  v3 = gt v0 v1\n  guard not v3\n  \
                v4 = exp v0\n  v5 = add v4 v2\n  v6 = ln v5\n  return v6\n";
    let stable = simplified(&parse(text).unwrap(), Stage::Final);
    assert!(stable.to_string().contains("abs"), "{stable}");
    for (x, expected) in [(1000.0, 1000.0), (0.0, 2f64.ln()), (-700.0, (-700f64).exp())] {
        let [found] = values(&stable, &[x, f64::NAN])[..] else { panic!("{stable}") };
        assert!((found - expected).abs() <= 1e-15 * expected, "{found} {expected}");
    }
}

#[test]
fn guards_of_a_replayed_loop_bound_what_is_seen_of_it() {
    // The derivative is in another loop, and uses what the first one has computed.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 1.0\nv3 = const 40.0\n\
                v4 = const 99.0\nv5 = iteration r0\nb0:\n  v14 = region r0 b1 bound 100 entries v6=v1\n  \
                return v14\nb1:\n  v7 = mul v0 v5\n  v8 = gt v7 v3\n  guard not v8\n  v9 = exp v7\n  \
                v10 = add v9 v2\n  v11 = ln v10\n  v12 = add v6 v11\n  v13 = lt v5 v4\n  \
                return v13 v12 v12\n";
    let bounded = gradient(text).to_string();
    assert_eq!(
        (bounded.matches("exp").count(), bounded.matches("abs").count()),
        (1, 0),
        "{bounded}"
    );
    let unbounded = gradient(&text.replace("  guard not v8\n", "")).to_string();
    assert_eq!((unbounded.matches("exp").count(), unbounded.matches("abs").count()), (1, 1));
}

/// Value and gradient of the logarithm of a sum of exponentials, simplified.
fn value_and_gradient(text: &str) -> (Graph, Graph) {
    let primal = simplify(&parse(text).unwrap(), Folding::Real);
    let both = reverse(&primal, Wanted::GradientAndValue, Folding::Real);
    let both = eliminate_dead_code(&both);
    let stable = simplified(&both, Stage::Final);
    (both, stable)
}

#[test]
fn what_overflows_anyway_is_not_computed_twice() {
    let text = "graph active 2 inactive 0\nb0:\n  v2 = exp v0\n  v3 = exp v1\n  v4 = add v2 v3\n  \
                v5 = ln v4\n  return v5\n";
    let (_, both) = value_and_gradient(text);
    let printed = both.to_string();
    assert_eq!((printed.matches("exp").count(), printed.matches("ln").count()), (2, 1), "{both}");
    let primal = simplify(&parse(text).unwrap(), Folding::Real);
    let value = simplified(&primal, Stage::Final).to_string();
    assert_eq!(value.matches("exp").count(), 1, "{value}");
    // What is not divided by the sum has a scale that matters.
    let text = text.replace("return v5", "v6 = mul v5 v2\n  return v6");
    let (before, after) = value_and_gradient(&text);
    assert_eq!(before, after);
}

#[test]
fn gradients_of_sums_of_exponentials_are_scaled_where_they_overflow() {
    for terms in 2..=20_usize {
        let (before, stable) = value_and_gradient(&log_sum_exp(terms));
        let spread = |scale: f64, shift: f64| -> Vec<f64> {
            (0..terms).map(|i| scale * (1.7 * i as f64).sin() + shift).collect()
        };
        for scale in [0.0, 1.0, 30.0, 600.0] {
            // Bit for bit the same where nothing overflows.
            assert_eq!(values(&before, &spread(scale, 0.0)), values(&stable, &spread(scale, 0.0)));
        }
        for (scale, shift) in [(5.0, 1024.0), (5.0, -1024.0), (0.0, 2048.0), (30.0, 4096.0)] {
            // The same numbers without the shift, which is no matter of rounding.
            let inputs = spread(scale, shift);
            let exact: Vec<f64> = inputs.iter().map(|x| x - shift).collect();
            let mut exact = values(&before, &exact);
            exact[terms] += shift;
            let got = values(&stable, &inputs);
            for (got, exact) in got.iter().zip(&exact) {
                assert!((got - exact).abs() <= 4e-14 * exact.abs(), "{got} {exact}\n{stable}");
            }
        }
    }
}

#[test]
fn parts_of_sums_that_may_vanish_are_not_scaled() {
    // ln((e^a + e^b)/(e^a + e^b + e^c)): with a large c the first sum would be 0.
    let text = "graph active 3 inactive 0\nb0:\n  v3 = exp v0\n  v4 = exp v1\n  v5 = exp v2\n  \
                v6 = add v3 v4\n  v7 = add v6 v5\n  v8 = div v6 v7\n  v9 = div v3 v6\n  \
                return v8 v9\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
    // The quotient by the whole sum may be, also where the exponents come late.
    let text = "graph active 3 inactive 0\nb0:\n  v3 = exp v0\n  v4 = sin v1\n  v5 = exp v4\n  \
                v6 = mul v2 v0\n  v7 = exp v6\n  v8 = add v3 v5\n  v9 = add v8 v7\n  \
                v10 = div v3 v9\n  return v10\n";
    let stable = simplified(&parse(text).unwrap(), Stage::Final);
    assert_eq!(values(&stable, &[900.0, 0.0, 1.0]), [0.5]);
    assert_eq!(values(&stable, &[0.0, 0.0, 1.0]), [1.0 / 3.0]);
    // The user has subtracted the largest.
    let text = "graph active 2 inactive 0\nb0:\n  v2 = max v0 v1\n  v3 = sub v0 v2\n  v4 = exp v3\n  \
                v5 = sub v1 v2\n  v6 = exp v5\n  v7 = add v4 v6\n  v8 = div v4 v7\n  return v8\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
}

#[test]
fn sums_of_exponentials_that_decide_are_not_scaled() {
    // e^a/(e^a + e^b) is compared: where the sum overflows the kernel goes the tape's way.
    let text = "graph active 2 inactive 0\nv2 = const 0.5\nb0:\n  v3 = exp v0\n  v4 = exp v1\n  \
                v5 = add v3 v4\n  v6 = div v3 v5\n  v7 = gt v6 v2\n  guard v7\n  return v6\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
    let free = parse(&text.replace("  v7 = gt v6 v2\n  guard v7\n", "")).unwrap();
    let scaled = simplified(&free, Stage::Final);
    assert!(scaled.to_string().contains("abs"), "{scaled}");
    assert_eq!(values(&scaled, &[900.0, 900.0]), [0.5]);
    // The scale of what is returned matters.
    let graph = parse(&text.replace("  guard v7\n  return v6", "  return v6 v5")).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
}

fn log_sum_exp(terms: usize) -> String {
    let mut text = format!("graph active {terms} inactive 0\nb0:\n");
    (0..terms).for_each(|i| text += &format!("  v{} = exp v{i}\n", terms + i));
    (1..terms).for_each(|i| {
        let before = if i == 1 { terms } else { 2 * terms + i - 2 };
        text += &format!("  v{} = add v{before} v{}\n", 2 * terms + i - 1, terms + i);
    });
    text += &format!("  v{} = ln v{}\n  return v{0}\n", 3 * terms - 1, 3 * terms - 2);
    text
}

#[test]
fn logarithms_of_sums_of_exponentials_survive_large_operands() {
    for terms in 2..=20_usize {
        // More than two are scaled.
        let graph = parse(&log_sum_exp(terms)).unwrap();
        let stable = simplified(&graph, Stage::Final);
        let spread = |scale: f64, shift: f64| -> Vec<f64> {
            (0..terms).map(|i| scale * (1.7 * i as f64).sin() + shift).collect()
        };
        for (scale, shift) in [(1.0, 0.0), (30.0, 0.0), (5.0, 900.0), (5.0, -900.0), (0.0, 800.0)] {
            let exact = shift + values(&graph, &spread(scale, 0.0))[0];
            let got = values(&stable, &spread(scale, shift))[0];
            assert!((got - exact).abs() <= 2e-15 * exact.abs().max(1.0), "{got} {exact}");
        }
        let mut spoilt = spread(1.0, 0.0);
        for i in 0..terms {
            let before = core::mem::replace(&mut spoilt[i], f64::NAN);
            assert!(values(&stable, &spoilt)[0].is_nan());
            spoilt[i] = before;
        }
    }
}

#[test]
fn runs_are_counted() {
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  v3 = add v2 v1\n  \
                v4 = ln v3\n  return v4\n";
    let graph = parse(text).unwrap();
    let segments = divide(&graph, 100);
    let run = |iterations| {
        let limits = SimplifyLimits { iterations, ..SimplifyLimits::DEFAULT };
        simplify_segments(&graph, &segments, Stage::Final, limits).runs
    };
    let all = run(SimplifyLimits::DEFAULT.iterations);
    assert_eq!(all.len(), 1);
    assert!(all[0].complete && all[0].improved && all[0].nodes == 3 && all[0].terms > 3);
    assert!((2..=SimplifyLimits::DEFAULT.iterations).contains(&all[0].iterations));
    assert_eq!(
        run(1).iter().map(|run| (run.iterations, run.complete)).collect::<Vec<_>>(),
        [(1, false)]
    );
    // No rule has such a left side.
    let plain = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n").unwrap();
    let none =
        simplify_segments(&plain, &divide(&plain, 100), Stage::Final, SimplifyLimits::DEFAULT);
    assert_eq!((none.graph, none.runs), (plain, vec![]));
}
