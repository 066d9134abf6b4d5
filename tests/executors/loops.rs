//! Native code of graphs with loops, against the interpreter: each feature by hand, and random
//! graphs.

use std::fmt::Write;

use crate::common::graphs::GraphRecipe;
use crate::native::{assert_as_interpreted, call};
use phigrad::internals::Random;
use phigrad::internals::jit::{CompileError, Kernel, RunError, compile};
use phigrad::internals::ssa::{Graph, parse};

fn read(text: &str) -> (Graph, Kernel) {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = compile(&graph).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (graph, kernel)
}

/// Checks the text's kernel against these outputs, and against the interpreter.
fn assert_outputs<const I: usize, const O: usize>(
    text: &str,
    inputs: [f64; I],
    expected: [f64; O],
) {
    let (graph, kernel) = read(text);
    assert!(assert_as_interpreted(&graph, &kernel, &inputs), "{inputs:?}");
    assert_eq!(call(&graph, &kernel, &inputs).unwrap(), expected, "{inputs:?}");
}

fn assert_stops(text: &str, inputs: &[f64]) {
    let (graph, kernel) = read(text);
    assert!(!assert_as_interpreted(&graph, &kernel, inputs), "{inputs:?}");
}

/// The sum of four constants times x.
const SUM: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 3.0
v4 = iteration r0
a0 = constants 1.0 2.0 3.5 4.0
i0 = a0 base 0 r0*1
b0:
  v9 = region r0 b1 bound 4 entries v3=v1
  return v9
b1:
  v5 = element i0
  v6 = mul v5 v0
  v7 = add v3 v6
  v8 = lt v4 v2
  return v8 v7 v7
";

#[test]
fn a_loop_adds_up_constants() {
    assert_outputs(SUM, [2.0], [21.0]);
    assert_outputs(&SUM.replace("base 0 r0*1", "base 3 r0*-1"), [2.0], [21.0]);
    assert_outputs(&SUM.replace("const 3.0", "const 1.0"), [2.0], [6.0]);
    // One iteration more than the bound.
    assert_stops(&SUM.replace("const 3.0", "const 4.0"), &[2.0]);
}

#[test]
fn elements_are_loaded_from_inputs_at_equal_distances_or_from_copies() {
    let text = SUM.replace("active 1 inactive 0", "active 1 inactive 5");
    let renamed = |text: &str| {
        let mut text = text.to_owned();
        for node in (1..10).rev() {
            text = text.replace(&format!("v{node}"), &format!("w{}", node + 5));
        }
        text.replace('w', "v")
    };
    let text = renamed(&text);
    let inputs = [2.0, 1.0, 3.0, 5.0, 7.0, 11.0];
    let cases = [
        ("v1 v2 v3 v4", 32.0),
        ("v5 v4 v3 v2", 52.0),
        ("v1 v1 v1 v1", 8.0),
        ("v1 v3 v5 v2", 40.0),
        ("v0 v1 v2 v3", 22.0),
        ("v1 v2 v7 v0", 18.0),
    ];
    for (nodes, expected) in cases {
        let text = text.replace("constants 1.0 2.0 3.5 4.0", &format!("nodes {nodes}"));
        assert_outputs(&text, inputs, [expected]);
    }
}

#[test]
fn entry_phis_are_assigned_in_parallel() {
    let text = "\
graph active 2 inactive 0
v2 = const 8.0
v5 = iteration r0
b0:
  v8 v9 = region r0 b1 bound 9 entries v3=v0 v4=v1
  return v8 v9
b1:
  v6 = add v3 v4
  v7 = lt v5 v2
  return v7 v4 v6 v3 v6
";
    assert_outputs(text, [0.0, 1.0], [21.0, 55.0]);
}

/// Doubles x until it is at least 100.
const WHILE: &str = "\
graph active 1 inactive 0
v1 = const 100.0
b0:
  v5 = region r0 b1 bound 4 entries v2=v0
  return v5
b1:
  v3 = add v2 v2
  v4 = lt v3 v1
  return v4 v3 v3
";

#[test]
fn a_loop_beyond_its_bound_stops_the_kernel() {
    assert_outputs(WHILE, [60.0], [120.0]);
    assert_outputs(WHILE, [7.0], [112.0]);
    assert_outputs(WHILE, [100.0], [200.0]);
    for x in [6.0, 0.0, -1.0] {
        assert_stops(WHILE, &[x]);
    }
    let (graph, kernel) = read(WHILE);
    assert!(assert_as_interpreted(&graph, &kernel, &[f64::NAN]));
}

#[test]
fn a_guard_stops_a_loop_in_the_iteration_in_which_it_fails() {
    // It would run for hours.
    let text = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 1.0
v3 = const 4000000000.0
v5 = iteration r0
b0:
  v9 = region r0 b1 bound 4294967295 entries v4=v1
  return v9
b1:
  v6 = lt v5 v0
  guard v6
  v7 = add v4 v2
  v8 = lt v5 v3
  return v8 v7 v7
";
    let (graph, kernel) = read(text);
    assert_eq!(call(&graph, &kernel, &[1000.0]), Err(RunError::SideExit));
}

#[test]
fn a_loop_without_entries_runs() {
    let text = "\
graph active 0 inactive 0
v0 = const 2.0
v1 = iteration r0
b0:
  v3 = region r0 b1 bound 3
  return v3
b1:
  v2 = lt v1 v0
  return v2 v1
";
    assert_outputs(text, [], [2.0]);
}

#[test]
fn ends_with_constant_conditions_do_not_branch() {
    let text = "\
graph active 2 inactive 0
v2 = const 0.0
v3 = const 1.0
b0:
  v8 = region r0 b1 bound 50 entries v4=v0
  return v8
b1:
  v5 = lt v4 v1
  branch v5 b2 b3
b2:
  v6 = add v4 v3
  return v3 v6 v2
b3:
  v7 = mul v4 v4
  return v2 v3 v7
";
    assert_outputs(text, [1.5, 4.0], [20.25]);
    assert_outputs(text, [9.0, 4.0], [81.0]);
    assert_stops(text, &[0.0, 51.0]);
    // No end is known to be the last one.
    assert_stops(&text.replace("return v2 v3 v7", "return v3 v3 v7"), &[1.5, 4.0]);
}

/// Σ over i < 4 of Σ over j <= i of x·(10·i + j), with a loop-carried inner bound.
const TRIANGLE: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 1.0
v3 = const 10.0
v4 = const 4.0
v7 = iteration r1
b0:
  v17 = region r0 b1 bound 4 entries v5=v1 v6=v1
  return v17
b1:
  v14 = region r1 b2 bound 4 entries v8=v6
  v15 = add v5 v2
  v16 = lt v15 v4
  return v16 v15 v14 v14
b2:
  v9 = mul v5 v3
  v10 = add v9 v7
  v11 = mul v10 v0
  v12 = add v8 v11
  v13 = lt v7 v5
  return v13 v12 v12
";

#[test]
fn loops_nest_with_loop_carried_inner_bounds() {
    let pairs = (0..4).flat_map(|i| (0..=i).map(move |j| f64::from(10 * i + j)));
    assert_outputs(TRIANGLE, [0.5], [pairs.sum::<f64>() * 0.5]);
}

/// Three times y := y·y - 1; then a replay collects the values of y, last first, as digits.
const REPLAY: &str = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v3 = const 0.0
v4 = const 100.0
v6 = iteration r0
a0 = saved v7
i0 = a0 base 0 r0*1
i1 = a0 base 2 r0*-1
b0:
  v10 = region r0 b1 bound 3 entries v5=v0
  v21 v22 = region r1 b2 bound 3 entries v11=v3 v12=v3 replays r0
  return v10 v21 v22
b1:
  v7 = mul v5 v5
  v8 = sub v7 v1
  v9 = lt v6 v2
  return v9 v8 v8
b2:
  v13 = mul v11 v4
  v14 = add v13 v5
  v15 = mul v12 v4
  v16 = element i0
  v17 = sub v16 v7
  v18 = element i1
  v19 = add v15 v18
  v20 = add v19 v17
  return v14 v20 v14 v20
";

#[test]
fn a_replay_sees_each_iteration_last_first() {
    assert_outputs(REPLAY, [2.0], [63.0, 80302.0, 40964.0]);
}

/// A nest with varying inner trip counts, a branch, sums and a trajectory; replayed.
const NESTED: &str = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v3 = const 0.0
v4 = const 100.0
v6 = iteration r0
v8 = iteration r1
a0 = sums _ _ _ _ _ _ _ _ _
a1 = saved v14
i0 = a0 base 0 r0*3 r1*1
i1 = a0 base 7
i2 = a1 base 2 r0*-1
b0:
  v17 = region r0 b1 bound 3 entries v5=v3
  fill a0
  v30 v31 = region r3 b5 bound 3 entries v18=v3 v19=v3 replays r0
  v32 = element i1
  return v17 v30 v31 v32
b1:
  v14 = region r1 b2 bound 3 entries v7=v5
  v15 = add v14 v1
  v16 = lt v6 v2
  return v16 v14 v15
b2:
  v9 = mul v8 v0
  v12 = region r2 b3
  v13 = lt v8 v6
  return v13 v12 v12
b3:
  branch v9 b4 b7
b4:
  v10 = add v9 v7
  return v10
b5:
  v26 = region r4 b6 bound 3 entries v20=v18 replays r1
  v27 = element i2
  v28 = mul v19 v4
  v29 = add v28 v27
  return v26 v29 v26 v29
b6:
  v25 = region r5 b8 replays r2
  accumulate i0 v25
  return v25 v25
b7:
  v11 = neg v1
  return v11
b8:
  branch v9 b9 b10
b9:
  v21 = mul v20 v4
  v22 = add v21 v10
  return v22
b10:
  v23 = mul v20 v4
  v24 = add v23 v11
  return v24
";

#[test]
fn nests_of_loops_are_replayed_last_iteration_first() {
    let digits = [8.0, 2.0, -1.0, 2.0, -1.0, -1.0];
    let number = |digits: &[f64]| digits.iter().fold(0.0, |number, digit| number * 100.0 + digit);
    let past = number(&[-1.0, 2.0, 8.0]);
    assert_outputs(NESTED, [3.0], [9.0, number(&digits), past, number(&digits[..2])]);
}

#[test]
fn kernels_do_not_depend_on_the_content_of_the_buffer() {
    let kernels = [SUM, WHILE, TRIANGLE, REPLAY, NESTED].map(read);
    let mut scratch = vec![f64::NAN; 7];
    for x in [3.0, 60.0, 0.5, 2.0, 3.0] {
        for (graph, kernel) in &kernels {
            let mut outputs = vec![0.0; kernel.outputs()];
            let expected = call(graph, kernel, &[x]);
            let found = kernel.run(&[x], &[], &mut scratch, &mut outputs).map(|()| outputs);
            assert_eq!(found, expected);
        }
    }
}

/// A loop of `steps` steps for each of `entries` entry φs, which are permuted.
fn long(entries: usize, steps: usize) -> String {
    let mut text = String::from("graph active 2 inactive 0\n");
    let first = 5;
    writeln!(text, "v2 = const 6.0\nv3 = const 0.25\nv4 = iteration r0\nb0:").unwrap();
    let again = first + entries + entries * steps * 2;
    write!(text, "  v{} = region r0 b1 bound 7 entries", again + 1).unwrap();
    (0..entries).for_each(|e| write!(text, " v{}=v{}", first + e, e % 2).unwrap());
    writeln!(text, "\n  return v{}\nb1:", again + 1).unwrap();
    let mut values: Vec<usize> = (first..first + entries).collect();
    let mut next = first + entries;
    for _ in 0..steps {
        for entry in 0..entries {
            let (a, b) = (values[entry], values[(entry + 3) % entries]);
            writeln!(text, "  v{next} = mul v{a} v3\n  v{} = sub v{b} v{next}", next + 1).unwrap();
            values[entry] = next + 1;
            next += 2;
        }
    }
    writeln!(text, "  v{again} = lt v4 v2").unwrap();
    write!(text, "  return v{again}").unwrap();
    // Every other operand is the entry φ of the neighbour.
    for (entry, &value) in values.iter().enumerate() {
        let value = if entry % 2 == 0 { value } else { first + (entry + 1) % entries };
        write!(text, " v{value}").unwrap();
    }
    writeln!(text, " v{}", values[0]).unwrap();
    text
}

#[test]
fn bodies_may_be_larger_than_functions() {
    for (entries, steps) in [(3, 1), (4, 30), (40, 1), (7, 400), (600, 2)] {
        let (graph, kernel) = read(&long(entries, steps));
        assert!(assert_as_interpreted(&graph, &kernel, &[1.5, -0.25]), "{entries} {steps}");
    }
}

#[test]
fn trajectories_of_many_iterations_are_saved() {
    let mut text = REPLAY.replace("bound 3", "bound 20000").replace("base 2 r0*-1", "base 0 r0*1");
    text = text.replace("const 2.0", "const 19999.0").replace("const 100.0", "const 0.5");
    text = text.replace("v8 = sub v7 v1", "v8 = sin v7");
    let (graph, kernel) = read(&text);
    assert!(kernel.scratch_len() > 40_000 && kernel.scratch_len() < 40_100);
    assert!(assert_as_interpreted(&graph, &kernel, &[2.0]));
}

#[test]
fn loops_that_save_too_much_are_not_compiled() {
    let text = REPLAY.replace("bound 3", "bound 4000000000").replace("base 2 r0*-1", "base 0");
    let graph = parse(&text).unwrap();
    assert!(matches!(compile(&graph), Err(CompileError::Scratch { words }) if words > 1 << 27));
}

#[test]
fn random_graphs_agree_with_the_interpreter() {
    let recipe = GraphRecipe { loops: 0.2, elements: 0.1, sums: 0.03, ..GraphRecipe::default() };
    let recipes = [
        recipe,
        GraphRecipe { guards: 0.0, loops: 0.4, steps: 60, ..recipe },
        GraphRecipe { guards: 0.0, regions: 0.3, replays: 0.7, depth: 5, ..recipe },
        GraphRecipe { guards: 0.0, loops: 0.4, replays: 0.7, elements: 0.2, ..recipe },
        GraphRecipe { guards: 0.002, steps: 400, ..recipe },
    ];
    let mut random = Random::new(12);
    for recipe in recipes {
        let (mut values, mut unseen) = (0, 0);
        for _ in 0..100 {
            let graph = recipe.graph(&mut random);
            let kernel = compile(&graph).unwrap();
            for _ in 0..8 {
                match assert_as_interpreted(&graph, &kernel, &recipe.inputs(&mut random)) {
                    true => values += 1,
                    false => unseen += 1,
                }
            }
        }
        assert!(values > 100 && unseen > 0, "{values} {unseen}");
    }
}
