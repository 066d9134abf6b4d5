//! Simplification of segments, checked on the printed form: the worked example of
//! branches (section 3 of the paper), and forms that survive large operands.

use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::hoist;
use phigrad::internals::simplify::{SimplifyLimits, Stage, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{
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

/// Asserts the value and the gradient of `text` at `x`.
fn assert_value_and_gradient(text: &str, x: &[f64], value: f64, partials: &[f64]) {
    let graph = parse(text).unwrap();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-15 * b.abs();
    let got = values(&simplified(&graph, Stage::Final), x);
    assert!(close(got[0], value), "{got:?} {value}");
    let got = values(&gradient(text), x);
    assert!(got.iter().zip(partials).all(|(&a, &b)| close(a, b)), "{got:?} {partials:?}");
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
}

#[test]
fn the_control_slice_keeps_its_bits() {
    // The difference of squares is compared, so it stays as it is.
    let text = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  v3 = mul v0 v0\n  v4 = mul v1 v1\n  \
                v5 = sub v3 v4\n  v6 = gt v5 v2\n  guard v6\n  return v5\n";
    let graph = parse(text).unwrap();
    let printed = simplified(&graph, Stage::Final).to_string();
    assert!(printed.contains("v4 = sub v2 v3\n") && !printed.contains("add"), "{printed}");
}

#[test]
fn bounded_exponentials_keep_their_form() {
    // A guard bounds the exponent, which may be NaN.
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const 40.0\nb0:\n  v3 = gt v0 v2\n  \
                guard not v3\n  v4 = exp v0\n  v5 = add v4 v1\n  v6 = ln v5\n  return v6\n";
    let graph = parse(text).unwrap();
    assert_eq!(simplified(&graph, Stage::Final), graph);
    // This bound may be NaN, and implies nothing.
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
fn guards_of_a_replayed_loop_bound_its_values() {
    // The derivative is in another loop, and reads values that the first one has saved.
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

/// The sum of sin(v0·d + factor·d) for numbers d between -1 and 1, where v0 and v1 are at most
/// 8 in magnitude.
fn sum_of_products(factor: &str) -> String {
    let data: Vec<String> =
        (0..100u8).map(|i| format!("{:?}", f64::from(i) / 64.0 - 0.75)).collect();
    format!(
        "graph active 2 inactive 0\nv2 = const 99.0\nv3 = iteration r0\nv4 = const 0.0\nv5 = const \
         8.0\nv6 = const 1.0\na0 = constants {}\ni0 = a0 base 0 r0*1\nb0:\n  v7 = abs v0\n  v8 = le v7 \
         v5\n  guard v8\n  v9 = le v0 v5\n  guard v9\n  v10 = neg v5\n  v11 = ge v0 v10\n  guard \
         v11\n  v12 = le v1 v5\n  guard v12\n  v13 = ge v1 v10\n  guard v13\n  v23 = region r0 b1 \
         bound 100 entries v14=v4\n  return v23\nb1:\n  v15 = lt v3 v2\n  v16 = element i0\n  v17 = \
         mul v0 v16\n  v18 = mul {factor} v16\n  v19 = add v17 v18\n  v20 = select v3 v19 \
         v19\n  v21 = sin v20\n  v22 = add v14 v21\n  return v15 v22 v22\n",
        data.join(" ")
    )
}

#[test]
fn common_factors_are_taken_out_of_hoisted_sums() {
    let graph = parse(&sum_of_products("v1")).unwrap();
    let simple = hoist(&simplified(&graph, Stage::Final)).to_string();
    let (before, body) = simple.split_once("b1:").unwrap();
    let count = |text: &str, op: &str| text.matches(&format!("= {op} ")).count();
    assert_eq!(
        (count(before, "add"), count(body, "add"), count(body, "mul")),
        (1, 1, 1),
        "{simple}"
    );
    // The carried value is not bounded, and neither is its sum.
    let graph = parse(&sum_of_products("v14")).unwrap();
    let simple = simplified(&graph, Stage::Final).to_string();
    assert_eq!(count(&simple, "mul"), 2, "{simple}");
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
