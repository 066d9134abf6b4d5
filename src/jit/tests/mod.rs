//! Native code of graphs with regions equals the interpreter, also with few registers and cuts
//! everywhere.

mod loops;
mod random;
mod single_additions;
#[cfg(feature = "jit")]
mod vector;

use core::ops::Range;

use super::plan::{REGISTERS, Step, plan};
use super::{Allocator, Lanes, RunError, Schedule, schedule, schedule_with_profile};
use crate::op::Op;
use crate::random::Random;
use crate::ssa::{End, Graph, Node, Outcome, block_profile, interpret, parse, verify};
use random::{Shape, graph, number};

/// The cuts and the number of registers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The largest number of instructions of a function, but for regions without a cut.
    insts: usize,
    /// The largest number of instructions of a region without a cut.
    uncut: usize,
    registers: usize,
}

const LIMITS: [Limits; 7] = [
    Limits { insts: 400, uncut: 250, registers: REGISTERS },
    Limits { insts: 400, uncut: 0, registers: REGISTERS },
    Limits { insts: 1, uncut: 0, registers: 3 },
    Limits { insts: 3, uncut: 0, registers: 4 },
    Limits { insts: 8, uncut: 10, registers: 4 },
    Limits { insts: 16, uncut: usize::MAX, registers: 2 },
    Limits { insts: 40, uncut: 30, registers: 6 },
];

impl Limits {
    fn cuts(self, schedule: &Schedule<'_>) -> Vec<u32> {
        let sequence = schedule.sequence();
        let small = |region: &&Range<u32>| region.len() <= self.uncut;
        let uncut: Vec<_> = sequence.regions.iter().filter(small).collect();
        let is_whole =
            |&cut: &u32| uncut.iter().all(|region| !(region.start + 1..region.end).contains(&cut));
        (0..sequence.steps).step_by(self.insts).skip(1).filter(is_whole).collect()
    }
}

fn assert_native(graph: &Graph, limits: Limits, points: &[Vec<f64>]) -> usize {
    let cuts = limits.cuts(&schedule(graph).unwrap());
    assert_native_when_cut(graph, &cuts, limits.registers, points)
}

fn assert_native_when_cut(
    graph: &Graph,
    cuts: &[u32],
    registers: usize,
    points: &[Vec<f64>],
) -> usize {
    // The placement of code does not matter.
    let profile = block_profile(graph, points.get(..1).unwrap_or_default());
    let schedule = schedule_with_profile(graph, profile.as_ref()).unwrap();
    let kernel =
        schedule.compile_with((Allocator::Backtracking, Lanes::One), cuts, registers).unwrap();
    assert_two_lanes(&schedule, cuts, registers, points);
    let mut scratch = vec![f64::NAN; 3];
    let mut found = vec![0.0; kernel.outputs()];
    let mut values = 0;
    for point in points {
        // The content of the buffer does not matter.
        scratch.iter_mut().zip(1..).for_each(|(slot, i)| *slot = f64::from(i) * 1e5);
        let (active, inactive) = point.split_at(graph.active);
        let result = kernel.run(active, inactive, &mut scratch, &mut found);
        match interpret(graph, point) {
            Outcome::Unseen(_) => assert_eq!(result, Err(RunError::SideExit), "{graph}"),
            Outcome::Values(expected) => {
                assert_eq!(result, Ok(()), "{cuts:?} {registers} {point:?}\n{graph}");
                let same =
                    |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(
                    found.iter().zip(&expected).all(same),
                    "{cuts:?} {registers}\nfound {found:?}\nexpected {expected:?}\nat {point:?}\n{graph}"
                );
                values += 1;
            }
        }
    }
    values
}

/// Asserts that code for two elements at once has the results of code for one: always for equal
/// points, and for different ones where it has results. Returns the number of the latter.
fn assert_two_lanes(
    schedule: &Schedule<'_>,
    cuts: &[u32],
    registers: usize,
    points: &[Vec<f64>],
) -> usize {
    if !schedule.graph.calls.is_empty() {
        return 0;
    }
    let [one, two] = [Lanes::One, Lanes::Two].map(|lanes| {
        schedule.compile_with((Allocator::Backtracking, lanes), cuts, registers).unwrap()
    });
    let active = schedule.graph.active;
    let scalar = |point: &[f64]| {
        let mut found = vec![0.0; one.outputs()];
        let (active, inactive) = point.split_at(active);
        one.run(active, inactive, &mut Vec::new(), &mut found).map(|()| found)
    };
    let two_lanes = |first: &[f64], second: &[f64]| {
        let mut found = vec![0.0; two.outputs()];
        let both: Vec<f64> = first.iter().zip(second).flat_map(|(a, b)| [*a, *b]).collect();
        let (active, inactive) = both.split_at(2 * active);
        two.run(active, inactive, &mut vec![f64::NAN; 3], &mut found).map(|()| found)
    };
    let bits = |numbers: &[f64]| -> Vec<u64> {
        numbers.iter().map(|x| if x.is_nan() { f64::NAN } else { *x }.to_bits()).collect()
    };
    let joined = |first: &[f64], second: &[f64]| -> Vec<f64> {
        first.iter().zip(second).flat_map(|(a, b)| [*a, *b]).collect()
    };
    let mut compared = 0;
    for (first, second) in points.iter().zip(points.iter().skip(1)) {
        match (scalar(first), two_lanes(first, first)) {
            (Ok(one), Ok(two)) => assert_eq!(bits(&two), bits(&joined(&one, &one))),
            (one, two) => assert_eq!(one, two, "{first:?}"),
        }
        if let Ok(both) = two_lanes(first, second) {
            let (first, second) = (scalar(first).unwrap(), scalar(second).unwrap());
            assert_eq!(bits(&both), bits(&joined(&first, &second)));
            compared += 1;
        }
    }
    compared
}

fn assert_random(shape: Shape, seed: u64, graphs: usize) {
    let mut random = Random::new(seed);
    let (mut values, mut runs, mut regions) = (0, 0, 0);
    for _ in 0..graphs {
        let graph = graph(shape, &mut random);
        verify(&graph).unwrap();
        regions += graph.regions.len();
        let point = |_| (0..=shape.inputs).map(|_| number(&mut random)).collect();
        let points: Vec<Vec<f64>> = (0..12).map(point).collect();
        for limits in LIMITS {
            values += assert_native(&graph, limits, &points);
            runs += points.len();
        }
    }
    // Both results are common.
    assert!(values * 4 > runs && (shape.guards == 0.0 || values < runs), "{values} of {runs}");
    assert!(regions > graphs, "{regions}");
}

#[test]
fn small_graphs_agree_with_the_interpreter() {
    let shape = Shape { inputs: 3, items: 6, depth: 4, regions: 0.25, guards: 0.02, phis: 3 };
    assert_random(shape, 1, 60);
}

#[test]
fn graphs_with_many_live_values_and_phis_agree_with_the_interpreter() {
    let shape = Shape { inputs: 6, items: 40, depth: 3, regions: 0.08, guards: 0.0, phis: 20 };
    assert_random(shape, 2, 8);
}

#[test]
fn deep_graphs_agree_with_the_interpreter() {
    let shape = Shape { inputs: 2, items: 4, depth: 7, regions: 0.4, guards: 0.01, phis: 4 };
    assert_random(shape, 3, 8);
}

/// Cuts are also requested at instructions that do not allow one.
#[test]
fn code_that_is_cut_anywhere_agrees_with_the_interpreter() {
    let mut random = Random::new(5);
    let shape = Shape { inputs: 3, items: 8, depth: 3, regions: 0.12, guards: 0.0, phis: 3 };
    let mut values = 0;
    for _ in 0..20 {
        let graph = graph(shape, &mut random);
        let inputs = graph.active + graph.inactive;
        let point = |_| (0..inputs).map(|_| number(&mut random)).collect();
        let points: Vec<Vec<f64>> = (0..6).map(point).collect();
        let steps = schedule(&graph).unwrap().sequence().steps;
        for one_of in [1, 2, 5, 20] {
            let cuts: Vec<u32> = (0..steps + 2).filter(|_| random.below(one_of) == 0).collect();
            values += assert_native_when_cut(&graph, &cuts, 4, &points);
        }
    }
    assert!(values > 300, "{values}");
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
    let plan = plan(&schedule(&graph).unwrap(), &[], REGISTERS);
    assert_eq!((plan.functions.len(), plan.blocks.len()), (1, 4));
    // Two inputs and an output: the node that is live across the region has a slot, too, since a
    // longer arm might need its register.
    let memory = |step: &&Step| !matches!(step, Step::Compute(_));
    let steps = plan.blocks.iter().flat_map(|block| &block.steps);
    assert_eq!(steps.filter(memory).count(), 4, "{plan:?}");
    assert_eq!(plan.blocks[3].parameters.len(), 1);
}

#[test]
fn code_continues_in_another_function_after_a_cut() {
    let mut random = Random::new(4);
    let shape = Shape { inputs: 3, items: 30, depth: 4, regions: 0.2, guards: 0.0, phis: 3 };
    let graph = graph(shape, &mut random);
    let schedule = schedule(&graph).unwrap();
    let count = |insts, uncut| {
        let limits = Limits { insts, uncut, registers: 4 };
        plan(&schedule, &limits.cuts(&schedule), limits.registers).functions.len()
    };
    assert!(count(8, 0) > 10 && count(8, 250) < count(8, 0) && count(400, 0) < count(8, 0));
    assert_eq!(count(usize::MAX, 0), 1);
}

#[test]
fn an_arm_that_no_profiled_run_takes_is_cold() {
    let text = "\
graph active 1 inactive 0
v1 = const 0
b0:
  v2 = gt v0 v1
  v3 = mul v0 v0
  v9 = region r0 b1
  v10 = mul v9 v3
  return v10
b1:
  branch v2 b2 b3
b2:
  return v0
b3:
  v4 = lt v3 v0
  v7 = region r1 b4
  v8 = neg v7
  return v8
b4:
  branch v4 b5 b6
b5:
  v5 = abs v0
  return v5
b6:
  v6 = sqrt v3
  return v6
";
    let graph = parse(text).unwrap();
    let cold = |points: &[[f64; 1]]| -> Vec<bool> {
        let profile = block_profile(&graph, points);
        let schedule = schedule_with_profile(&graph, profile.as_ref()).unwrap();
        plan(&schedule, &[], REGISTERS).blocks.iter().map(|block| block.is_cold).collect()
    };
    assert_eq!(cold(&[[2.0]]), [false, false, true, true, true, true, false]);
    assert_eq!(cold(&[[2.0], [-2.0]]), [false, false, false, true, false, false, false]);
    assert_eq!(cold(&[]), [false; 7]);
}

#[test]
fn fused_products_with_one_are_sums_of_the_same_bits() {
    let text = "\
graph active 2 inactive 0
v2 = const 1.0
v3 = const -1.0
b0:
  v4 = mul_add v0 v2 v1
  v5 = mul_add v2 v0 v1
  v6 = mul_add v0 v3 v1
  v7 = mul_add v3 v0 v1
  v8 = mul_add v2 v3 v1
  v9 = mul_add v0 v0 v3
  return v4 v5 v6 v7 v8 v9
";
    let graph = parse(text).unwrap();
    let mut numbers = vec![0.0, 1.0, 0.1, 1e-320, 1e300, f64::MAX, f64::INFINITY, f64::NAN];
    numbers.extend(numbers.clone().into_iter().map(|number| -number));
    let points: Vec<Vec<f64>> =
        numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| vec![a, b])).collect();
    assert_eq!(assert_native(&graph, LIMITS[0], &points), points.len());
}

/// Products of each two inputs, and sums of these with constants, each of which is used twice, once
/// in the reverse order. Every 37th goes through a call.
fn far_apart() -> Graph {
    const COUNT: usize = 150;
    let mut graph = Graph::new(COUNT, COUNT);
    let root = graph.root();
    let sums = (0..COUNT).map(|number| {
        let factors = [graph.input(number), graph.input(COUNT + number)];
        let product = graph.push_apply(root, Op::Mul, &factors, None);
        let constant = graph.push_const((number as f64 + 0.5).to_bits());
        graph.push_apply(root, Op::Add, &[product, constant], None)
    });
    let sums: Vec<Node> = sums.collect();
    let outputs = sums.iter().zip(sums.iter().rev()).zip(0..).map(|((&a, &b), number)| {
        let difference = graph.push_apply(root, Op::Sub, &[a, b], None);
        match number % 37 {
            36 => graph.push_apply(root, Op::Sin, &[difference], None),
            _ => difference,
        }
    });
    let outputs = outputs.collect();
    graph.blocks[root].end = End::Return(outputs);
    graph
}

#[test]
fn large_offsets_address_the_right_words() {
    let graph = far_apart();
    let numbers = |from: f64| (0..300).map(|i| from + f64::from(i).sqrt()).collect();
    let points: Vec<Vec<f64>> = [0.0, -7.25, 1e9].map(numbers).into();
    for limits in LIMITS {
        assert_eq!(assert_native(&graph, limits, &points), 3);
    }
    let kernel = schedule(&graph).unwrap().compile(&[]).unwrap();
    assert!(kernel.scratch_len() > 100);
}
