//! Native code of graphs with regions equals the interpreter, also within
//! limits that cut the code at each opportunity.

mod random;

use super::plan::{Limits, Step, plan};
use super::schedule::schedule;
use super::{RunError, compile_within};
use crate::ssa::{Graph, Outcome, interpret, parse, verify};
use random::{Random, Shape, graph};

const LIMITS: [Limits; 7] = [
    Limits::HOST,
    Limits { uncut: 0, ..Limits::HOST },
    Limits { steps: 1, uncut: 0, registers: 3 },
    Limits { steps: 7, uncut: 0, registers: 4 },
    Limits { steps: 20, uncut: 10, registers: 4 },
    Limits { steps: 40, uncut: usize::MAX, registers: 2 },
    Limits { steps: 100, uncut: 30, registers: 6 },
];

fn assert_native(graph: &Graph, limits: Limits, points: &[Vec<f64>]) -> usize {
    let kernel = compile_within(graph, limits).unwrap();
    let mut scratch = vec![f64::NAN; 3];
    let mut found = vec![0.0; kernel.outputs()];
    let mut values = 0;
    for point in points {
        // What is in the buffer does not matter.
        scratch.iter_mut().zip(1..).for_each(|(slot, i)| *slot = f64::from(i) * 1e5);
        let (active, inactive) = point.split_at(graph.active);
        let result = kernel.run(active, inactive, &mut scratch, &mut found);
        match interpret(graph, point) {
            Outcome::Unseen(_) => assert_eq!(result, Err(RunError::Unseen), "{graph}"),
            Outcome::Values(expected) => {
                assert_eq!(result, Ok(()), "{limits:?} {point:?}\n{graph}");
                let same =
                    |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(
                    found.iter().zip(&expected).all(same),
                    "{limits:?}\nfound {found:?}\nexpected {expected:?}\nat {point:?}\n{graph}"
                );
                values += 1;
            }
        }
    }
    values
}

fn assert_random(shape: Shape, seed: u64, graphs: usize) {
    let mut random = Random(seed);
    let (mut values, mut runs, mut regions) = (0, 0, 0);
    for _ in 0..graphs {
        let graph = graph(shape, &mut random);
        verify(&graph).unwrap();
        regions += graph.regions.len();
        let point = |_| (0..=shape.inputs).map(|_| random.number()).collect();
        let points: Vec<Vec<f64>> = (0..12).map(point).collect();
        for limits in LIMITS {
            values += assert_native(&graph, limits, &points);
            runs += points.len();
        }
    }
    // Both results are common.
    assert!(values * 4 > runs && (shape.guards == 0 || values < runs), "{values} of {runs}");
    assert!(regions > graphs, "{regions}");
}

#[test]
fn small_graphs_agree_with_the_interpreter() {
    let shape = Shape { inputs: 3, items: 6, depth: 4, regions: 25, guards: 2, phis: 3 };
    assert_random(shape, 1, 60);
}

#[test]
fn graphs_with_many_live_values_and_phis_agree_with_the_interpreter() {
    let shape = Shape { inputs: 6, items: 40, depth: 3, regions: 8, guards: 0, phis: 20 };
    assert_random(shape, 2, 8);
}

#[test]
fn deep_graphs_agree_with_the_interpreter() {
    let shape = Shape { inputs: 2, items: 4, depth: 7, regions: 40, guards: 1, phis: 4 };
    assert_random(shape, 3, 8);
}

#[test]
fn a_small_region_is_a_compare_a_jump_and_no_memory() {
    let text = "\
graph active 2 inactive 0
b0:
  v2 = mul v0 v1
  v3 = lt v0 v1
  v6 = region r0 b1
  v7 = mul v6 v2
  return v7
b1:
  branch v3 b2 b3
b2:
  v4 = add v2 v1
  return v4
b3:
  v5 = sub v2 v0
  return v5
";
    let graph = parse(text).unwrap();
    let plan = plan(&graph, &schedule(&graph), Limits::HOST);
    assert_eq!((plan.functions.len(), plan.chunks.len()), (1, 4));
    // Two inputs and an output: the node that is used across is kept, too, since
    // a longer side might need its register.
    let memory = |step: &&Step| !matches!(step, Step::Compute(_));
    let steps = plan.chunks.iter().flat_map(|chunk| &chunk.steps);
    assert_eq!(steps.filter(memory).count(), 4, "{plan:?}");
    assert_eq!(plan.chunks[3].parameters.len(), 1);
}

#[test]
fn what_is_cut_goes_on_in_another_function() {
    let mut random = Random(4);
    let shape = Shape { inputs: 3, items: 30, depth: 4, regions: 20, guards: 0, phis: 3 };
    let graph = graph(shape, &mut random);
    let lines = schedule(&graph);
    let count = |limits| plan(&graph, &lines, limits).functions.len();
    let small = Limits { steps: 20, uncut: 0, registers: 4 };
    assert!(count(small) > 10 && count(Limits::HOST) < count(small));
    assert_eq!(count(Limits { uncut: usize::MAX, steps: usize::MAX, ..small }), 1);
}
