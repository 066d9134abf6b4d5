//! Divisions as multiplications by shared reciprocals: the printed form, what keeps its bits, and the
//! accuracy next to the smallest and largest divisors.

use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::{outputs, values};
use crate::common::ulp::ulp;
use phigrad::check::{Tolerance, close};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::op::Op;
use phigrad::internals::simplify::share_reciprocals;
use phigrad::internals::ssa::{
    End, Folding, Graph, Item, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};

fn graph(text: &str) -> Graph {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&graph), Ok(()), "{graph}");
    graph
}

fn shared(text: &str) -> String {
    let shared = share_reciprocals(&graph(text));
    assert_eq!(verify(&shared), Ok(()), "{shared}");
    shared.to_string()
}

/// Asserts that the blocks of the result are `expected`.
#[track_caller]
fn assert_blocks(text: &str, expected: &str) {
    let shared = shared(text);
    let blocks = shared.find("b0:").map_or("", |at| &shared[at..]);
    assert_eq!(blocks, expected, "{shared}");
}

#[track_caller]
fn assert_unchanged(text: &str) {
    assert_eq!(shared(text), graph(text).to_string());
}

#[test]
fn a_divisor_that_may_be_tiny_has_a_guard() {
    assert_blocks(
        "graph active 3 inactive 0\nb0:\n  v3 = div v1 v0\n  v4 = div v2 v0\n  return v3 v4\n",
        "b0:\n  v3 = recip v0\n  v4 = mul v0 v3\n  v6 = eq v4 v5\n  guard not v6\n  v7 = mul v1 v3\n  \
         v8 = mul v2 v3\n  return v7 v8\n",
    );
}

#[test]
fn roots_and_sums_with_constants_are_never_tiny() {
    for divisor in ["sqrt v0", "add v0 v3", "cosh v0"] {
        let text = format!(
            "graph active 3 inactive 0\nv3 = const 1.0\nb0:\n  v4 = {divisor}\n  v5 = div v1 v4\n  \
             v6 = div v2 v4\n  return v5 v6\n"
        );
        let shared = shared(&text);
        assert!(!shared.contains("guard") && !shared.contains("div"), "{shared}");
        assert_eq!(shared.matches("recip").count(), 1, "{shared}");
    }
}

#[test]
fn a_single_division_stays() {
    assert_unchanged("graph active 2 inactive 0\nb0:\n  v2 = div v1 v0\n  return v2\n");
    // One on each path.
    assert_unchanged(
        "graph active 3 inactive 0\nb0:\n  branch v2 b1 b2\nb1:\n  v3 = div v1 v0\n  return v3\nb2:\n  \
         v4 = div v2 v0\n  return v4\n",
    );
}

#[test]
fn arms_share_a_reciprocal_of_their_own() {
    assert_blocks(
        "graph active 3 inactive 0\nb0:\n  v3 = sqrt v0\n  branch v2 b1 b2\nb1:\n  v4 = div v1 v3\n  \
         v5 = div v4 v3\n  return v5\nb2:\n  v6 = div v2 v3\n  return v6\n",
        "b0:\n  v3 = sqrt v0\n  branch v2 b1 b2\nb1:\n  v4 = recip v3\n  v5 = mul v1 v4\n  v6 = mul v4 \
         v5\n  return v6\nb2:\n  v7 = div v2 v3\n  return v7\n",
    );
}

#[test]
fn existing_reciprocals_are_shared() {
    assert_blocks(
        "graph active 2 inactive 0\nb0:\n  v2 = sqrt v0\n  v3 = div v1 v2\n  v4 = recip v2\n  \
         return v3 v4\n",
        "b0:\n  v2 = sqrt v0\n  v3 = recip v2\n  v4 = mul v1 v3\n  return v4 v3\n",
    );
}

#[test]
fn constant_divisors_are_inverted() {
    let text = |divisor: &str| {
        format!(
            "graph active 1 inactive 0\nv1 = const {divisor}\nb0:\n  v2 = div v0 v1\n  return v2\n"
        )
    };
    let third = shared(&text("3.0"));
    assert!(third.contains("const 0.3333333333333333\n") && third.contains("mul"), "{third}");
    // The reciprocal would be subnormal or infinite.
    for divisor in ["1e308", "-1e-310", "0.0", "inf", "nan"] {
        assert!(shared(&text(divisor)).contains("div"), "{divisor}");
    }
}

#[test]
fn conditions_and_singularities_keep_their_bits() {
    // √(v1/v0), and a comparison of v2/v0.
    assert_unchanged(
        "graph active 3 inactive 0\nv3 = const 1.0\nb0:\n  v4 = div v1 v0\n  v5 = sqrt v4\n  v6 = div \
         v2 v0\n  v7 = lt v6 v3\n  branch v7 b1 b2\nb1:\n  return v5\nb2:\n  return v0\n",
    );
    assert_unchanged(
        "graph active 2 inactive 0\nv2 = const 3.0\nb0:\n  v3 = div v1 v2\n  guard v3\n  return v0\n",
    );
}

/// Four iterations of `body`, which computes v6, v7 and v8 from the iteration number v3, the root v4
/// of the first input, and the carried v5, which becomes v8.
fn looped(body: &str) -> String {
    format!(
        "graph active 2 inactive 0\nv2 = const 3.0\nv3 = iteration r0\nb0:\n  v4 = sqrt v0\n  \
         v10 = region r0 b1 bound 4 entries v5=v1\n  return v10\nb1:\n  {body}\n  v9 = lt v3 v2\n  \
         return v9 v8 v8\n"
    )
}

#[test]
fn an_invariant_divisor_is_inverted_before_the_loop() {
    let text = looped("v6 = div v3 v4\n  v7 = sin v6\n  v8 = add v7 v5");
    let shared = shared(&text);
    let (recip, region) = (shared.find("recip"), shared.find("region"));
    assert!(recip.is_some() && recip < region && !shared.contains("div"), "{shared}");
    let (before, after) = (graph(&text), graph(&shared));
    assert_eq!(values(&before, &[4.0, 1.0]), values(&after, &[4.0, 1.0]));
}

#[test]
fn errors_of_a_reciprocal_do_not_accumulate() {
    // v5 := -(v5/v4), and v5 := 2·v5/3.
    for body in ["v7 = div v5 v4\n  v8 = neg v7", "v7 = add v5 v5\n  v8 = div v7 v2"] {
        let shared = shared(&looped(&format!("v6 = neg v3\n  {body}")));
        assert!(shared.contains("div"), "{shared}");
    }
    // The divisor is another one in each iteration.
    let text = looped("v6 = sqrt v3\n  v7 = div v5 v6\n  v8 = div v7 v6");
    assert_eq!(shared(&text).matches("recip").count(), 1);
    // Up to some number of factors of a product.
    let divisions: Vec<String> = (4..40).map(|v| format!("  v{v} = div v{} v2\n", v - 1)).collect();
    let text = format!(
        "graph active 2 inactive 0\nb0:\n  v2 = sqrt v0\n  v3 = neg v1\n{}  return v39\n",
        divisions.concat()
    );
    assert_eq!(shared(&text).matches("mul").count(), 8);
}

/// A loop that adds up quotients by √(iteration + v0), and a loop that replays it and divides by
/// that once more.
fn replayed(other_factor: &str) -> String {
    format!(
        "graph active 2 inactive 0\nv2 = const 3.0\nv4 = iteration r0\nb0:\n  v10 = region r0 b1 \
         bound 4 entries v3=v1\n  v16 = region r1 b2 bound 4 entries v11=v1 replays r0\n  return \
         v10 v16\nb1:\n  v5 = add v4 v0\n  v6 = sqrt v5\n  v7 = div v1 v6\n  v8 = add v3 v7\n  v9 = lt \
         v4 v2\n  return v9 v8 v8\nb2:\n  v12 = div v11 v6\n  v13 = div v2 v6\n  v14 = mul v13 \
         {other_factor}\n  v15 = add v12 v14\n  return v15 v15\n"
    )
}

#[test]
fn a_replaying_loop_uses_the_saved_reciprocal_unless_it_needs_the_divisor() {
    for (other_factor, is_forward) in [("v11", true), ("v6", false)] {
        let text = replayed(other_factor);
        let shared = shared(&text);
        assert_eq!(shared.matches("recip").count(), 1, "{shared}");
        let (before, after) = (graph(&text), graph(&shared));
        let inputs = [0.75, 0.5];
        for (a, b) in values(&before, &inputs).into_iter().zip(values(&after, &inputs)) {
            assert!((a - b).abs() <= 16.0 * ulp(a), "{a} {b}\n{shared}");
        }
        assert_eq!(shared.find("recip") < shared.find("b2:"), is_forward, "{shared}");
    }
}

#[test]
fn quotients_by_extreme_divisors_are_accurate() {
    let text =
        "graph active 3 inactive 0\nb0:\n  v3 = div v1 v0\n  v4 = div v2 v0\n  return v3 v4\n";
    let (before, after) = (graph(text), share_reciprocals(&graph(text)));
    let mut random = Random::new(7);
    let mut stops = 0;
    for _ in 0..20_000 {
        let scaled = |random: &mut Random, least: f64, most: f64| {
            random.uniform(1.0, 2.0) * random.uniform(least, most).exp2()
        };
        let divisor = match random.below(3) {
            0 => scaled(&mut random, -1074.0, -1018.0),
            1 => scaled(&mut random, 1018.0, 1023.0),
            _ => scaled(&mut random, -1074.0, 1023.0),
        };
        let dividend = scaled(&mut random, -1074.0, 1023.0) * divisor.min(1.0);
        let inputs = [divisor, dividend, scaled(&mut random, -40.0, 40.0)];
        let expected = values(&before, &inputs);
        let Some(found) = outputs(&after, &inputs) else {
            assert!(divisor <= 2f64.powi(-1024), "{divisor:e}");
            stops += 1;
            continue;
        };
        assert!(divisor > 2f64.powi(-1024), "{divisor:e}");
        let ulps = if divisor > 2f64.powi(1022) { 3.0 } else { 2.0 };
        for (expected, found) in expected.into_iter().zip(found) {
            let is_near = (found - expected).abs() <= ulps * ulp(expected);
            // Next to the largest number.
            let overflows = found.is_infinite() && expected.abs() > f64::MAX * (1.0 - 1e-15);
            assert!(is_near || found == expected || overflows, "{inputs:?} {found:e} {expected:e}");
        }
    }
    assert!(stops > 100);
    for divisor in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        for dividend in [0.0, -1.5, f64::INFINITY, f64::NAN] {
            let inputs = [divisor, dividend, 1.0];
            let bits = |values: Vec<f64>| -> Vec<Option<u64>> {
                values.into_iter().map(|x| (!x.is_nan()).then(|| x.to_bits())).collect()
            };
            assert_eq!(bits(values(&after, &inputs)), bits(values(&before, &inputs)), "{inputs:?}");
        }
    }
}

#[test]
fn gradients_of_random_graphs_keep_their_values() {
    let recipe = GraphRecipe { loops: 0.25, elements: 0.1, sums: 0.05, ..GraphRecipe::default() };
    let mut changed = 0;
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut recorded = recipe.graph(&mut random);
        with_divisions(&mut recorded, &mut random);
        let primal = simplify(&recorded, Folding::Real);
        let sweep = reverse(&primal, Wanted::GradientAndValue, Folding::Real);
        let gradient = eliminate_dead_code(&sweep);
        let shared = share_reciprocals(&gradient);
        assert_eq!(verify(&shared), Ok(()), "{gradient}\n{shared}");
        assert_eq!(shared, share_reciprocals(&gradient));
        changed += usize::from(shared != gradient);
        for _ in 0..4 {
            let inputs = recipe.inputs(&mut random);
            // A guard may stop where a divisor is tiny.
            let (Outcome::Values(expected), Outcome::Values(found)) =
                (interpret(&gradient, &inputs), interpret(&shared, &inputs))
            else {
                continue;
            };
            let near = |(&a, &b): (&f64, &f64)| {
                !f64::is_finite(a) || close(a, b, Tolerance::new(1e-9, 1e-9))
            };
            assert!(
                expected.iter().zip(&found).all(near),
                "{inputs:?} {expected:?} {found:?}\n{gradient}\n{shared}"
            );
        }
    }
    assert!(changed > 150, "{changed}");
}

/// Adds the quotients of all values of a block by inputs to what the block passes on, unless that
/// decides whether a loop goes on.
fn with_divisions(graph: &mut Graph, random: &mut Random) {
    for block in graph.preorder() {
        let items = graph.blocks[block].items.clone();
        let End::Return(mut values) = graph.blocks[block].end.clone() else { continue };
        let Some(last) = values.pop().filter(|_| block == graph.root() || !values.is_empty())
        else {
            continue;
        };
        let mut sum = last;
        for item in items {
            let Item::Node(node) = item else { continue };
            let divisor = graph.input(random.below(4));
            let quotient = graph.push_apply(block, Op::Div, &[node, divisor], None);
            sum = graph.push_apply(block, Op::Add, &[sum, quotient], None);
        }
        values.push(sum);
        graph.blocks[block].end = End::Return(values);
    }
}
