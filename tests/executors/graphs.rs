//! Native code of graphs with regions and loops, against the interpreter: arrays of inputs, large
//! bodies, buffers, and random graphs. Each construct by hand is in `tests/corpus`.

use std::fmt::Write;

use crate::common::graphs::GraphRecipe;
use crate::common::outcomes::{assert_as_interpreted, call};
use phigrad::internals::Random;
use phigrad::internals::jit::{CompileError, Kernel, RunError, compile};
use phigrad::internals::ssa::{Graph, parse};

const SUM: &str = include_str!("../corpus/constants_forward.graph");
const WHILE: &str = include_str!("../corpus/doubling.graph");
const TRIANGLE: &str = include_str!("../corpus/carried_bound.graph");
const REPLAY: &str = include_str!("../corpus/replayed_loop.graph");
const NESTED: &str = include_str!("../corpus/replayed_nest.graph");

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

/// Compares kernels of `graphs` random graphs of each recipe with the interpreter.
fn assert_random(recipes: &[GraphRecipe], seed: u64, graphs: usize, runs: usize) {
    let mut random = Random::new(seed);
    for recipe in recipes {
        let (mut values, mut unseen) = (0, 0);
        for _ in 0..graphs {
            let graph = recipe.graph(&mut random);
            let kernel = compile(&graph).unwrap();
            for _ in 0..runs {
                match assert_as_interpreted(&graph, &kernel, &recipe.inputs(&mut random)) {
                    true => values += 1,
                    false => unseen += 1,
                }
            }
        }
        let may_stop = recipe.guards > 0.0 || recipe.loops > 0.0;
        assert!(values > 100 && (unseen > 0) == may_stop, "{values} {unseen}");
    }
}

#[test]
fn random_graphs_with_loops_agree_with_the_interpreter() {
    let recipe = GraphRecipe { loops: 0.2, elements: 0.1, sums: 0.03, ..GraphRecipe::default() };
    let recipes = [
        recipe,
        GraphRecipe { guards: 0.0, loops: 0.4, steps: 60, ..recipe },
        GraphRecipe { guards: 0.0, regions: 0.3, replays: 0.7, depth: 5, ..recipe },
        GraphRecipe { guards: 0.0, loops: 0.4, replays: 0.7, elements: 0.2, ..recipe },
        GraphRecipe { guards: 0.002, steps: 400, ..recipe },
    ];
    assert_random(&recipes, 12, 100, 8);
}

#[test]
fn random_graphs_with_regions_agree_with_the_interpreter() {
    let recipe = GraphRecipe::default();
    let recipes = [
        recipe,
        GraphRecipe { guards: 0.0, steps: 150, depth: 6, ..recipe },
        GraphRecipe { guards: 0.0, regions: 0.5, replays: 0.7, depth: 5, ..recipe },
        GraphRecipe { branches: 0.9, steps: 300, guards: 0.002, ..recipe },
    ];
    assert_random(&recipes, 11, 60, 10);
}
