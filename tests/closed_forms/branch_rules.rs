//! φs of branches: each rule is applied where it holds and only there, and outputs keep their bits.

use crate::common::graphs::GraphRecipe;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::phi::{Branched, Rule, simplify_branches};
use phigrad::internals::simplify::{SimplifyLimits, Stage, simplify_segments};
use phigrad::internals::soi::divide;
use phigrad::internals::ssa::{
    Folding, Graph, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};
use phigrad::{Tape, Var};

fn bits(outcome: &Outcome) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Values(values) => Some(values.iter().map(|value| value.to_bits()).collect()),
        Outcome::Unseen(_) => None,
    }
}

/// Simplifies the branches of the graph of `text`, and asserts that its outputs are the same.
fn branched(text: &str) -> Branched {
    let graph = parse(text).unwrap();
    verify(&graph).unwrap();
    let branched = simplify_branches(&graph);
    verify(&branched.graph).unwrap();
    let mut random = Random::new(7);
    for round in 0..200 {
        let special = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 5e-324];
        let inputs: Vec<f64> = (0..graph.active + graph.inactive)
            .map(|_| match round % 2 {
                0 => random.uniform(-2.0, 2.0),
                _ => special[random.below(special.len())],
            })
            .collect();
        let (before, after) = (interpret(&graph, &inputs), interpret(&branched.graph, &inputs));
        assert_eq!(bits(&before), bits(&after), "{inputs:?}\n{}", branched.graph);
    }
    branched
}

/// The rules that were applied, and their descriptions.
fn rules(text: &str) -> (Vec<Rule>, Vec<String>) {
    branched(text).applied.into_iter().map(|applied| (applied.rule, applied.form)).unzip()
}

const HEAD: &str = "graph active 2 inactive 0\nv2 = const 0.0\nb0:\n  v3 = gt v0 v2\n";

/// A branch on x₀ > 0 in region r0 with φ v7 and the arms `then` and `otherwise`, then `rest`.
fn branch(phis: &str, rest: &str, then: &str, otherwise: &str) -> String {
    format!(
        "{HEAD}  {phis} = region r0 b1\n{rest}b1:\n  branch v3 b2 b3\nb2:\n{then}b3:\n{otherwise}"
    )
}

#[test]
fn f1_folds_phis_of_equal_values() {
    let text = branch(
        "v8",
        "  v9 = mul v8 v1\n  return v9\n",
        "  v4 = mul v0 v1\n  v5 = sin v4\n  return v5\n",
        "  v6 = mul v0 v1\n  v7 = sin v6\n  return v7\n",
    );
    let (rules, forms) = rules(&text);
    assert_eq!(rules, [Rule::F1]);
    assert_eq!(forms, ["φ(x₀ > 0; sin(x₀·x₁), sin(x₀·x₁)) = sin(x₀·x₁)"]);
    assert!(branched(&text).graph.regions.is_empty());
}

#[test]
fn f1_copies_shared_operands_once() {
    // As a tree, the last step has 3¹⁵ operands.
    let side = |first: usize| {
        let mut text = format!("  v{first} = sin v1\n");
        for node in first + 1..first + 16 {
            let before = node - 1;
            text += &format!("  v{node} = mul_add v{before} v{before} v{before}\n");
        }
        format!("{text}  return v{}\n", first + 15)
    };
    let text = branch("v36", "  return v36\n", &side(4), &side(20));
    let branched = branched(&text);
    assert_eq!(branched.applied.iter().map(|applied| applied.rule).collect::<Vec<_>>(), [Rule::F1]);
    assert!(branched.graph.regions.is_empty() && branched.graph.nodes.len() < 60);
}

#[test]
fn f1_keeps_phis_of_different_values() {
    let text = branch(
        "v6",
        "  return v6\n",
        "  v4 = sin v0\n  return v4\n",
        "  v5 = sin v1\n  return v5\n",
    );
    assert!(rules(&text).0.is_empty());
    // Zeros of different signs are different values.
    let text = "graph active 2 inactive 0\nv2 = const 0.0\nv3 = const -0.0\nb0:\n  v4 = gt v0 v2\n  \
                v5 = region r0 b1\n  return v5\nb1:\n  branch v4 b2 b3\nb2:\n  return v2\nb3:\n  return v3\n";
    assert!(rules(text).0.is_empty());
}

#[test]
fn f2_moves_an_operation_to_its_inverse() {
    let text = branch(
        "v5",
        "  v6 = add v1 v0\n  v7 = mul v5 v6\n  return v7\n",
        "  v4 = div v0 v1\n  return v4\n",
        "  return v1\n",
    );
    // x₁ + x₀ cancels with nothing in the arms.
    assert!(rules(&text).0.is_empty());
    let (rules, forms) = rules(&text.replace("mul v5 v6", "mul v5 v1"));
    assert_eq!(rules, [Rule::F2]);
    assert_eq!(forms, ["φ(x₀ > 0; x₀/x₁, x₁)·x₁ = φ(x₀ > 0; x₀·x₁/x₁, x₁²)"]);
}

#[test]
fn f2_moves_only_operations_that_fold_or_cancel() {
    let text = branch("v4", "  v5 = exp v4\n  return v5\n", "  return v2\n", "  return v1\n");
    assert_eq!(rules(&text).0, [Rule::F2]);
    // Operands that the loop or guard in between reads cannot be moved.
    let text = branch(
        "v5",
        "  v9 = region r1 b4\n  v10 = mul v5 v9\n  return v10\n",
        "  v4 = recip v0\n  return v4\n",
        "  return v1\n",
    ) + "b4:\n  v6 = lt v1 v2\n  branch v6 b5 b6\nb5:\n  return v0\nb6:\n  v7 = sin v1\n  \
         v8 = exp v7\n  return v8\n";
    let applied = branched(&text).applied;
    assert!(applied.iter().all(|applied| applied.rule == Rule::F2), "{applied:?}");
}

#[test]
fn f3_swaps_arms_of_a_complement() {
    let text = "graph active 2 inactive 0\nb0:\n  v2 = eq v0 v1\n  v3 = select v2 v0 v1\n  \
                v4 = ne v0 v1\n  v6 = region r0 b1\n  v7 = add v3 v6\n  return v7\nb1:\n  \
                branch v4 b2 b3\nb2:\n  return v0\nb3:\n  v5 = sin v1\n  return v5\n";
    let (found, forms) = rules(text);
    assert_eq!(found, [Rule::F3]);
    assert_eq!(forms, ["φ(x₀ ≠ x₁; x₀, sin(x₁)) = φ(x₀ = x₁; sin(x₁), x₀)"]);
    // x₀ ≥ x₁ is not the complement of x₀ < x₁: both are false for NaN.
    let text = text.replace("eq v0", "lt v0").replace("ne v0", "ge v0");
    assert!(rules(&text).0.is_empty());
}

#[test]
fn c1_and_c4_combine_two_phis_of_one_branch() {
    let text = branch(
        "v5 v6",
        "  v7 = mul v5 v6\n  return v7\n",
        "  v4 = recip v1\n  return v1 v4\n",
        "  return v1 v2\n",
    );
    // By F1 the first φ is x₁, so this is F2.
    assert_eq!(rules(&text).0[0], Rule::F1);
    let text = branch(
        "v5 v6",
        "  v7 = mul v5 v6\n  return v7\n",
        "  v4 = recip v1\n  return v1 v4\n",
        "  return v0 v2\n",
    );
    let (found, forms) = rules(&text);
    assert_eq!(found, [Rule::C1]);
    assert_eq!(forms, ["φ(x₀ > 0; x₁, x₀)·φ(x₀ > 0; 1/x₁, 0) = φ(x₀ > 0; x₁/x₁, 0·x₀)"]);
    let text = branch(
        "v4 v5",
        "  v6 = max v0 v1\n  v7 = max v4 v5\n  v8 = add v6 v7\n  return v8\n",
        "  return v0 v1\n",
        "  return v0 v1\n",
    );
    assert_eq!(rules(&text).0, [Rule::F1, Rule::F1]);
    let text = "graph active 1 inactive 0\nv1 = const 2.0\nv2 = const 3.0\nb0:\n  v3 = gt v0 v1\n  \
                v4 v5 = region r0 b1\n  v6 = add v4 v5\n  v7 = mul v6 v0\n  return v7\nb1:\n  \
                branch v3 b2 b3\nb2:\n  return v1 v2\nb3:\n  return v2 v1\n";
    let (found, forms) =
        rules(&text.replace("v2 = const 3.0\n", "v2 = const 3.0\nv8 = const 5.0\n"));
    assert!(matches!(found[..], [Rule::C4] | [Rule::C1, Rule::F1]), "{found:?} {forms:?}");
}

#[test]
fn c3_exchanges_nested_branches() {
    let text = "graph active 3 inactive 0\nv3 = const 0.0\nb0:\n  v4 = gt v0 v3\n  v5 = gt v1 v3\n  \
                v8 v9 = region r0 b1\n  v10 = region r1 b4\n  return v10\nb1:\n  branch v4 b2 b3\n\
                b2:\n  return v2 v2\nb3:\n  v6 = sin v2\n  v7 = cos v2\n  return v6 v7\nb4:\n  \
                branch v5 b5 b6\nb5:\n  return v8\nb6:\n  return v9\n";
    let (found, forms) = rules(text);
    assert_eq!(found, [Rule::C3]);
    assert_eq!(
        forms,
        ["φ(x₁ > 0; φ(x₀ > 0; x₂, sin(x₂)), φ(x₀ > 0; x₂, cos(x₂))) = \
          φ(x₀ > 0; x₂, φ(x₁ > 0; sin(x₂), cos(x₂)))"]
    );
    // If both arms differ, two selects would replace one.
    let both = text.replace("return v2 v2", "return v2 v0");
    assert!(rules(&both).0.is_empty());
}

/// y = x₀ + x₁·x₂; if d₀ > 0 { if y > 0 { y^1.5 / y } else { ln(1 + e^y) } } else
/// { x₁·y }, times 1 + e^y.
const WORKED: &str = "graph active 3 inactive 2\nv5 = const 0.0\nv6 = const 1.0\nv7 = const 1.5\nb0:\n  \
    v8 = mul v1 v2\n  v9 = add v0 v8\n  v10 = gt v3 v5\n  v19 = region r0 b1\n  v20 = exp v9\n  \
    v21 = add v6 v20\n  v22 = mul v19 v21\n  return v22\nb1:\n  branch v10 b2 b3\nb2:\n  \
    v11 = gt v9 v5\n  v17 = region r1 b4\n  return v17\nb3:\n  v18 = mul v1 v9\n  return v18\nb4:\n  \
    branch v11 b5 b6\nb5:\n  v12 = powf v9 v7\n  v13 = div v12 v9\n  return v13\nb6:\n  \
    v14 = exp v9\n  v15 = add v6 v14\n  v16 = ln v15\n  return v16\n";

#[test]
fn the_worked_example_of_branches_cancels_twice() {
    let branched = branched(WORKED);
    let rules: Vec<Rule> = branched.applied.iter().map(|applied| applied.rule).collect();
    assert_eq!(rules, [Rule::F2, Rule::F2]);
    let primal = simplify(&branched.graph, Folding::Real);
    let simplified = |graph: &Graph, stage| {
        simplify_segments(graph, &divide(graph, 200), stage, SimplifyLimits::DEFAULT).graph
    };
    let primal = simplified(&primal, Stage::Primal);
    let gradient = eliminate_dead_code(&reverse(&primal, Wanted::Gradient, Folding::Real));
    let gradient = simplified(&gradient, Stage::Final);
    assert_eq!(verify(&gradient), Ok(()));
    for (c1, c2) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)] {
        let point = [c2, 0.7, 1.1, c1, 0.0];
        let y: f64 = c2 + 0.7 * 1.1;
        let factor = 1.0 + y.exp();
        let (z, of_y, of_q) = match (c1 > 0.0, c2 > 0.0) {
            (true, true) => (y.sqrt(), 0.5 / y.sqrt(), 0.0),
            (true, false) => (factor.ln(), y.exp() / factor, 0.0),
            (false, _) => (0.7 * y, 0.7, y),
        };
        let slope = of_y * factor + z * y.exp();
        let expected = [slope, slope * 1.1 + of_q * factor, slope * 0.7];
        let Outcome::Values(found) = interpret(&gradient, &point) else { unreachable!() };
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-13 * expected.abs(), "{found} {expected}");
        }
    }
    let printed = gradient.to_string();
    assert!(!printed.contains("powf"), "y^1.5 / y is √y: {printed}");
}

#[test]
fn random_graphs_keep_their_bits() {
    let recipe =
        GraphRecipe { replays: 0.0, regions: 0.3, branches: 0.4, ..GraphRecipe::default() };
    let (mut applied, mut values) = ([0; 14], 0);
    for (kind, loops) in [0.0, 0.3].into_iter().enumerate() {
        let recipe = GraphRecipe { loops, steps: 60, ..recipe };
        let mut random = Random::new(kind as u64);
        for _ in 0..400 {
            let graph = recipe.graph(&mut random);
            if graph.regions.values().any(|data| data.replays.is_some()) {
                continue;
            }
            let branched = simplify_branches(&graph);
            assert_eq!(verify(&branched.graph), Ok(()), "{graph}");
            assert_eq!(branched.graph, simplify_branches(&graph).graph, "not deterministic");
            branched.applied.iter().for_each(|made| applied[made.rule as usize] += 1);
            for _ in 0..3 {
                let inputs = recipe.inputs(&mut random);
                let before = bits(&interpret(&graph, &inputs));
                values += usize::from(before.is_some());
                assert_eq!(before, bits(&interpret(&branched.graph, &inputs)), "{graph}");
            }
        }
    }
    assert!(values > 200, "{values}");
    let made = |rule: Rule| applied[rule as usize];
    assert!(made(Rule::F1) > 5 && made(Rule::F2) > 20, "{applied:?}");
}

/// A branch in each iteration whose condition depends on all branches before.
#[phigrad::traced]
fn rotated(x: &[Var], data: &[Var]) -> Var {
    let mut a = [x[0]; 3];
    for &d in data {
        a[0] = a[0] * 0.9 + d;
        a.rotate_left(1);
        if a[0] < a[1] {
            a.swap(0, 1);
        }
    }
    a[0] * a[1] + a[2] * x[1]
}

#[test]
fn descriptions_of_nested_branches_are_bounded() {
    let f = Tape::builder().hot_threshold(u32::MAX).record_with(rotated);
    let data: Vec<f64> = (0..60).map(|i| (0.7 * f64::from(i)).sin()).collect();
    let (value, gradient) = f.value_and_grad(&[0.3, 0.4], &data).unwrap();
    // The length of unbounded descriptions doubles with each iteration.
    f.compile().unwrap();
    let (found, slopes) = f.value_and_grad(&[0.3, 0.4], &data).unwrap();
    assert_eq!(f.report().kernel_calls, 1);
    assert!((found - value).abs() <= 1e-13 * value.abs());
    assert!(slopes.iter().zip(&gradient).all(|(a, b)| (a - b).abs() <= 1e-13));
    assert!(f.report().to_string().len() < 20_000);
}
