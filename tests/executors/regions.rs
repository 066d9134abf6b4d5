//! Native code of graphs with regions, against the interpreter: each feature by hand, and random
//! graphs.

use crate::common::graphs::GraphRecipe;
use crate::native::{assert_as_interpreted, call};
use phigrad::internals::Random;
use phigrad::internals::jit::compile;
use phigrad::internals::ssa::parse;

/// Checks the text's kernel against these outputs, and against the interpreter.
fn assert_outputs<const I: usize, const O: usize>(text: &str, cases: &[([f64; I], [f64; O])]) {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let kernel = compile(&graph).unwrap();
    for (inputs, expected) in cases {
        assert!(assert_as_interpreted(&graph, &kernel, inputs), "{inputs:?}");
        assert_eq!(call(&graph, &kernel, inputs).unwrap(), expected, "{inputs:?}");
    }
}

#[test]
fn a_region_returns_a_constant_an_input_an_outer_node_and_an_inner_node() {
    let text = "\
graph active 2 inactive 1
v3 = const 7.0
b0:
  v4 = add v0 v1
  v5 = lt v0 v2
  v7 v8 v9 v10 = region r0 b1
  return v7 v8 v9 v10
b1:
  branch v5 b2 b3
b2:
  v6 = mul v4 v4
  return v3 v1 v4 v6
b3:
  return v0 v3 v5 v4
";
    assert_outputs(
        text,
        &[([1.0, 2.0, 3.0], [7.0, 2.0, 3.0, 9.0]), ([3.0, 2.0, 1.0], [3.0, 7.0, 0.0, 5.0])],
    );
}

#[test]
fn an_outer_region_returns_phis_of_an_inner_one() {
    let text = "\
graph active 2 inactive 0
v2 = const 0.0
b0:
  v3 = gt v0 v2
  v4 = gt v1 v2
  v9 = region r0 b1
  v10 = add v9 v0
  return v10
b1:
  branch v3 b2 b3
b2:
  v6 = region r1 b4
  v7 = neg v6
  return v7
b3:
  v8 = mul v0 v1
  return v8
b4:
  branch v4 b5 b6
b5:
  return v1
b6:
  v5 = mul v1 v1
  return v5
";
    let cases = [([1.0, 2.0], [-1.0]), ([1.0, -3.0], [-8.0]), ([-1.0, 2.0], [-3.0])];
    assert_outputs(text, &cases);
}

#[test]
fn phis_that_swap_values_of_another_region_do_not_overwrite_one_another() {
    let text = "\
graph active 3 inactive 0
b0:
  v3 = lt v0 v1
  v4 v5 = region r0 b1
  v6 = lt v1 v2
  v7 v8 = region r1 b4
  v9 = lt v2 v0
  v10 v11 = region r2 b7
  return v10 v11
b1:
  branch v3 b2 b3
b2:
  return v1 v0
b3:
  return v0 v1
b4:
  branch v6 b5 b6
b5:
  return v5 v4
b6:
  return v4 v5
b7:
  branch v9 b8 b9
b8:
  return v8 v7
b9:
  return v7 v8
";
    assert_outputs(
        text,
        &[
            ([1.0, 2.0, 3.0], [1.0, 2.0]),
            ([2.0, 1.0, 3.0], [1.0, 2.0]),
            ([2.0, 1.0, 0.0], [1.0, 2.0]),
            ([1.0, 2.0, 0.0], [1.0, 2.0]),
            ([1.0, 3.0, 2.0], [3.0, 1.0]),
        ],
    );
}

#[test]
fn a_replay_sees_the_values_of_the_taken_arm() {
    let text = "\
graph active 1 inactive 0
v1 = const 0.0
b0:
  v2 = gt v0 v1
  v12 = region r0 b1
  v13 = sin v12
  v20 = region r2 b9 replays r0
  v21 = mul v20 v13
  return v21
b1:
  v3 = mul v0 v0
  branch v2 b2 b3
b2:
  v4 = add v3 v0
  v5 = lt v4 v3
  v9 = region r1 b4
  v10 = mul v9 v4
  return v10
b3:
  v11 = sub v3 v0
  return v11
b4:
  branch v5 b5 b6
b5:
  return v4
b6:
  v6 = add v4 v4
  v7 = add v6 v4
  v8 = gt v7 v6
  branch v8 b7 b8
b7:
  return v7
b8:
  return v6
b9:
  branch v2 b10 b11
b10:
  v17 = region r3 b12 replays r1
  v18 = add v17 v9
  return v18
b11:
  v19 = mul v11 v3
  return v19
b12:
  v14 = mul v4 v4
  branch v5 b13 b14
b13:
  return v14
b14:
  v15 = sub v6 v7
  v16 = add v14 v15
  return v16
";
    let graph = parse(text).unwrap();
    let kernel = compile(&graph).unwrap();
    for x in [-2.0, -1.0, 0.0, 0.5, 3.0, f64::NAN, f64::INFINITY] {
        assert!(assert_as_interpreted(&graph, &kernel, &[x]));
    }
    assert_eq!(call(&graph, &kernel, &[-2.0]), Ok(vec![24.0 * 6.0f64.sin()]));
}

#[test]
fn trees_may_end_early() {
    let text = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v3 = const 3.0
b0:
  v10 = region r0 b1
  v11 = mul v10 v10
  return v11
b1:
  v4 = lt v0 v1
  branch v4 b2 b3
b2:
  return v1
b3:
  v5 = sub v0 v1
  v6 = lt v5 v1
  branch v6 b4 b5
b4:
  return v2
b5:
  v7 = sub v5 v1
  v8 = lt v7 v1
  branch v8 b6 b7
b6:
  return v3
b7:
  v9 = sub v7 v1
  return v9
";
    let cases = [([0.0], [1.0]), ([1.0], [4.0]), ([2.5], [9.0]), ([13.0], [100.0])];
    assert_outputs(text, &cases);
}

#[test]
fn guards_in_regions_stop_the_kernel_on_their_arm_alone() {
    let text = "\
graph active 2 inactive 0
v2 = const 0.0
b0:
  v3 = gt v0 v2
  v4 = gt v1 v2
  v9 = region r0 b1
  v10 = lt v9 v0
  guard v10
  return v9
b1:
  guard not v4
  branch v3 b2 b3
b2:
  v5 = lt v0 v1
  guard not v5
  return v1
b3:
  v6 = same v0 v2
  guard not v6
  v7 = mul v1 v0
  v8 = neg v7
  return v8
";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let kernel = compile(&graph).unwrap();
    let points = [
        ([1.0, -1.0], Some(-1.0)),
        // Each of the guards, and guards that are not on the path.
        ([1.0, 1.0], None),
        ([0.0, -1.0], None),
        ([-0.0, -3.0], None),
        ([-1.0, -2.0], Some(-2.0)),
        ([-1.0, -0.5], None),
    ];
    for (inputs, expected) in points {
        assert_eq!(assert_as_interpreted(&graph, &kernel, &inputs), expected.is_some());
        assert_eq!(call(&graph, &kernel, &inputs).ok().map(|found| found[0]), expected);
    }
}

#[test]
fn random_graphs_agree_with_the_interpreter() {
    let recipe = GraphRecipe::default();
    let recipes = [
        recipe,
        GraphRecipe { guards: 0.0, steps: 150, depth: 6, ..recipe },
        GraphRecipe { guards: 0.0, regions: 0.5, replays: 0.7, depth: 5, ..recipe },
        GraphRecipe { branches: 0.9, steps: 300, guards: 0.002, ..recipe },
    ];
    let mut random = Random::new(11);
    for recipe in recipes {
        let (mut values, mut unseen) = (0, 0);
        for _ in 0..60 {
            let graph = recipe.graph(&mut random);
            let kernel = compile(&graph).unwrap();
            for _ in 0..10 {
                match assert_as_interpreted(&graph, &kernel, &recipe.inputs(&mut random)) {
                    true => values += 1,
                    false => unseen += 1,
                }
            }
        }
        assert!(values > 100 && (unseen > 0) == (recipe.guards > 0.0), "{values} {unseen}");
    }
}
