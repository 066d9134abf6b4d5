//! Rerolling: recorded loops become loops again, with the same bits.

use std::panic::Location;

use crate::common::rolling::{agree, loops};
use phigrad::internals::Random;
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{ArrayData, Def, End, Graph, Item, parse, verify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Var, traced};

/// The merged traces of `f` at the points.
fn recorded(points: &[Vec<f64>], f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(points[0].len(), 0);
    for point in points {
        let inputs = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    }
    assert!(traces.unmerged().is_empty(), "{:?}", traces.unmerged());
    Graph::clone(traces.graph())
}

/// Rolls and verifies the graph, and compares both at the points.
fn rolled(graph: &Graph, points: &[Vec<f64>]) -> Graph {
    verify(graph).unwrap_or_else(|error| panic!("{error}\n{graph}"));
    let rolled = reroll(graph, RerollLimits::default());
    verify(&rolled).unwrap_or_else(|error| panic!("{error}\n{rolled}"));
    assert_eq!(parse(&rolled.to_string()).unwrap().to_string(), rolled.to_string());
    points.iter().for_each(|point| {
        agree(graph, &rolled, point);
    });
    rolled
}

/// Records `f` at a random point with so many inputs and rolls the trace; compares at other
/// points as well.
fn roll(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Graph {
    let mut random = Random::new(inputs as u64);
    let mut point = || (0..inputs).map(|_| random.uniform(0.1, 2.0)).collect::<Vec<f64>>();
    let points: Vec<Vec<f64>> = (0..4).map(|_| point()).collect();
    rolled(&recorded(&points[..1], f), &points)
}

/// The bound of each loop.
fn bounds(graph: &Graph) -> Vec<u32> {
    graph.regions.values().filter_map(|data| data.cycle.as_ref()).map(|cycle| cycle.bound).collect()
}

/// The number of steps.
fn computed(graph: &Graph) -> usize {
    let steps = graph.nodes.values();
    steps.filter(|data| matches!(data.def, Def::Apply(..) | Def::Element(_))).count()
}

fn array(graph: &Graph, is_wanted: impl Fn(&ArrayData) -> bool) -> usize {
    graph.arrays.values().filter(|data| is_wanted(data)).count()
}

fn saved(graph: &Graph) -> usize {
    array(graph, |data| matches!(data, ArrayData::Saved(_)))
}

#[test]
fn a_sum_over_constants_reads_an_array() {
    let graph = roll(1, |x| (0..50).map(|i| x[0] * (f64::from(i) * 0.3)).sum());
    assert_eq!((loops(&graph), computed(&graph)), (1, 5), "{graph}");
    assert_eq!(array(&graph, |data| matches!(data, ArrayData::Constants(_))), 1);
}

#[test]
fn graphs_do_not_grow_with_the_trip_count() {
    let nodes = |times: u32| {
        let graph = roll(1, |x| {
            let mut sum = Var::from(0.0);
            for i in 0..times {
                sum = (sum + x[0] * f64::from(i)).sin();
            }
            sum
        });
        assert_eq!(bounds(&graph), [times]);
        (graph.nodes.len(), graph.arrays.len())
    };
    assert_eq!(nodes(10), nodes(1000));
    assert_eq!(nodes(10), nodes(20000));
}

#[test]
fn a_dot_product_reads_its_inputs_in_order() {
    let graph = roll(40, |x| {
        let (a, b) = x.split_at(20);
        a.iter().zip(b).fold(Var::from(0.0), |sum, (&a, &b)| sum + a * b)
    });
    assert_eq!((bounds(&graph), computed(&graph)), (vec![20], 5), "{graph}");
    // Both factors read inputs, with different bases.
    assert_eq!(graph.arrays.len(), 1, "{graph}");
}

#[test]
fn horner_carries_one_value() {
    let graph = roll(13, |x| x[1..].iter().fold(x[0], |y, &c| y * x[0] + c));
    let cycle = graph.regions.values().find_map(|data| data.cycle.as_ref()).unwrap();
    assert_eq!((cycle.bound, cycle.entries.len()), (12, 1), "{graph}");
}

#[test]
fn recurrences_carry_their_last_values() {
    for carried in 1..=3 {
        let graph = roll(3, |x| {
            let mut y = x.to_vec();
            for i in 0..30 {
                let next = match carried {
                    1 => y[0] * 0.5 + x[1],
                    2 => y[0] * 0.5 + y[1] / x[2],
                    _ => y[0] * 0.5 + y[1] * y[2] * f64::from(i),
                };
                y = vec![next, y[0], y[1]];
            }
            y[0] + y[1] + y[2]
        });
        let cycle = graph.regions.values().find_map(|data| data.cycle.as_ref()).unwrap();
        assert_eq!((cycle.bound, cycle.entries.len()), (30, carried), "{graph}");
    }
}

#[test]
fn several_recurrences_share_a_loop() {
    let graph = roll(2, |x| {
        let (mut p, mut q) = (x[0], x[1]);
        for _ in 0..40 {
            q += p * 0.01;
            p -= q.sin() * 0.01;
        }
        p * q
    });
    assert_eq!((bounds(&graph), computed(&graph)), (vec![40], 7), "{graph}");
}

#[test]
fn loops_nest() {
    let graph = roll(9, |x| {
        let mut total = Var::from(0.0);
        for i in 0..8 {
            let mut sum = Var::from(0.0);
            for (j, &x) in x.iter().enumerate() {
                sum += x * (f64::from(i) + j as f64 * 0.1);
            }
            total += sum * sum;
        }
        total
    });
    assert_eq!(bounds(&graph), [8, 9], "{graph}");
    assert!(computed(&graph) <= 12, "{graph}");
}

#[test]
fn rows_of_matrices_are_loops_without_steps_between() {
    let graph = roll(54 + 9, |x| {
        let (matrix, vector) = x.split_at(54);
        let rows = matrix
            .chunks(9)
            .map(|row| row.iter().zip(vector).fold(Var::from(0.0), |sum, (&a, &x)| sum + a * x));
        rows.fold(Var::from(1.0), |product, y| product * y)
    });
    assert_eq!(bounds(&graph), [6, 9], "{graph}");
    assert_eq!((graph.arrays.len(), computed(&graph)), (1, 7), "{graph}");
}

#[test]
fn gradient_descent_is_a_loop_of_sums() {
    let data: Vec<(f64, f64)> =
        (0..20).map(|i| f64::from(i) * 0.1).map(|x| (x, 0.7 * x + 0.1)).collect();
    let graph = roll(1, |rate| {
        let mut w = Var::from(0.0);
        for _ in 0..10 {
            let mut slope = Var::from(0.0);
            for &(x, y) in &data {
                slope += (w * x - y) * x;
            }
            w -= rate[0] * slope * 0.1;
        }
        data.iter().map(|&(x, y)| (w * x - y).powi(2)).sum()
    });
    // In the first iteration all but the step is constant.
    assert_eq!(bounds(&graph), [9, 20, 19], "{graph}");
    assert!(computed(&graph) < 30, "{graph}");
}

#[test]
fn neighbours_are_read_from_one_array() {
    let graph = roll(30, |heights| {
        let mut y = vec![Var::from(1.0)];
        y.extend_from_slice(heights);
        y.push(Var::from(0.0));
        let mut total = Var::from(0.0);
        for i in 1..y.len() {
            let v0 = ((Var::from(3.0) - y[i - 1]) * 19.6).sqrt();
            let v1 = ((Var::from(3.0) - y[i]) * 19.6).sqrt();
            let dy = y[i] - y[i - 1];
            total += (dy * dy + 0.01).sqrt() / ((v0 + v1) / 2.0);
        }
        total
    });
    // The boundary values are constant, so the first and the last section have fewer steps.
    assert_eq!(bounds(&graph), [29], "{graph}");
    assert_eq!(graph.arrays.len(), 1, "{graph}");
}

#[test]
fn a_loop_reads_saved_values_of_an_earlier_one() {
    let graph = roll(20, |x| {
        let (mut sum, mut sums) = (x[0], vec![]);
        for &x in x {
            sum = sum * 0.9 + x;
            sums.push(sum);
        }
        let mean = sum / 20.0;
        sums.iter().rev().map(|&sum| (sum - mean).powi(2)).sum()
    });
    assert_eq!(bounds(&graph), [20, 19], "{graph}");
    assert_eq!(saved(&graph), 1);
    assert!(graph.accesses.values().any(|access| access.strides.first().unwrap().1 == -1));
}

#[test]
fn saved_values_are_read_with_neighbours() {
    let graph = roll(24, |x| {
        let squares: Vec<Var> = x.iter().map(|&x| x * x + x).collect();
        let mut total = squares[7] * squares[23];
        for i in 1..squares.len() {
            total += (squares[i] - squares[i - 1]).abs();
        }
        total
    });
    assert_eq!(bounds(&graph), [24, 23], "{graph}");
    assert!(computed(&graph) < 16, "{graph}");
}

#[test]
fn a_peculiar_first_iteration_is_peeled() {
    let graph = roll(24, |x| {
        let mut squares = vec![x[3]];
        squares.extend(x.iter().map(|&x| x * x + x));
        let mut total = Var::from(0.0);
        for i in 1..squares.len() {
            total += (squares[i] - squares[i - 1]).abs();
        }
        total
    });
    assert_eq!(bounds(&graph), [24, 23], "{graph}");
    assert!(computed(&graph) < 20, "{graph}");
}

/// The heat equation: each time step reads the saved values of the step before.
#[test]
fn time_steps_carry_arrays() {
    let heat = |steps: usize| {
        roll(12, move |x| {
            let mut u = x.to_vec();
            for _ in 0..steps {
                let mut next = u.clone();
                for i in 1..u.len() - 1 {
                    next[i] = u[i] + (u[i - 1] - u[i] * 2.0 + u[i + 1]) * 0.1;
                }
                u = next;
            }
            u.iter().copied().sum()
        })
    };
    let (few, many) = (heat(11), heat(100));
    assert_eq!(bounds(&many), [100, 10], "{many}");
    assert_eq!(few.nodes.len(), many.nodes.len());
}

/// Springs in a ring, between each vertex and the next two.
#[test]
fn iterations_are_merged_if_operands_then_form_progressions() {
    let graph = roll(40, |x| {
        let mut total = Var::from(0.0);
        for a in 0..20 {
            for (step, rest) in [(1, 1.0), (2, 1.5)] {
                let b = (a + step) % 20;
                let (dx, dy) = (x[2 * a] - x[2 * b], x[2 * a + 1] - x[2 * b + 1]);
                total += ((dx * dx + dy * dy).sqrt() - rest).powi(2);
            }
        }
        total
    });
    // The last springs close the ring.
    assert_eq!(bounds(&graph)[0], 18, "{graph}");
    let all = ArrayData::Inputs { first: 0, count: 40 };
    assert_eq!(array(&graph, |data| *data == all), 1, "{graph}");
}

#[test]
fn guards_stay_in_the_body() {
    let program = |x: &[Var]| {
        let mut sum = Var::from(0.0);
        for &x in x {
            assert!(x > 0.5 && x < 10.0);
            sum += x * x;
        }
        sum
    };
    let inside = vec![1.0; 20];
    let mut outside = inside.clone();
    outside[13] = 0.5;
    let graph = recorded(core::slice::from_ref(&inside), program);
    let small = rolled(&graph, &[inside, outside.clone()]);
    assert_eq!((bounds(&small), small.conditions()), (vec![20], 2), "{small}");
    assert!(!agree(&graph, &small, &outside));
    // A guard with another outcome splits the loop.
    let points = vec![(0..24).map(|i| if i == 12 { -1.0 } else { 1.0 }).collect::<Vec<f64>>()];
    let program = |x: &[Var]| {
        x.iter().fold(Var::from(0.0), |sum, &x| if x > 0.0 { sum + x * x } else { sum - x })
    };
    let small = rolled(&recorded(&points, program), &points);
    assert_eq!(bounds(&small), [12, 11], "{small}");
}

#[test]
fn distant_operands_split_loops() {
    // The value of the first iteration in all later ones.
    let graph = roll(20, |x| {
        let squares: Vec<Var> = x.iter().map(|&x| x * x * 0.5).collect();
        let mut y = vec![squares[0]];
        for i in 1..20 {
            y.push(squares[i] + y[0] * y[i - 1]);
        }
        y[19]
    });
    assert_eq!(bounds(&graph), [20, 19], "{graph}");
    // Copying the values in another order costs as much as the products.
    let graph = roll(20, |x| {
        let squares: Vec<Var> = x.iter().map(|&x| x * x * 0.5).collect();
        (0..20).fold(x[0], |product, i| product * squares[(i * i * 3 + i) % 20])
    });
    assert_eq!(bounds(&graph), [20], "{graph}");
    let graph = roll(20, |x| {
        let squares: Vec<Var> = x.iter().map(|&x| x * x * 0.5).collect();
        (0..20).fold(x[0], |product, i| (product * squares[(i * i * 3 + i) % 20]).sin().exp())
    });
    assert_eq!(bounds(&graph), [20, 20], "{graph}");
}

#[test]
fn triangular_loops_keep_their_results() {
    let graph = roll(12, |x| {
        let mut total = Var::from(0.0);
        for i in 0..12 {
            let mut sum = Var::from(0.0);
            for j in 0..=i {
                sum += x[j] * x[i - j];
            }
            total += sum.sin();
        }
        total
    });
    assert!(loops(&graph) > 0, "{graph}");
    // Forward substitution.
    let graph = roll(36, |x| {
        let mut y: Vec<Var> = vec![];
        for i in 0..8 {
            let sum = (0..i).fold(x[i], |sum, j| sum - x[i * (i + 1) / 2 + j] * y[j]);
            y.push(sum / x[i]);
        }
        y[7]
    });
    assert!(computed(&graph) > 0);
}

#[traced]
fn clipped(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for i in 0..x.len() {
        let mut y = x[i] * 2.0;
        if y > 2.0 {
            y = y.sqrt() + sum;
        }
        sum += y;
    }
    sum
}

#[test]
fn regions_are_rolled() {
    let mut random = Random::new(3);
    let mut point = || (0..30).map(|_| random.uniform(0.0, 2.0)).collect::<Vec<f64>>();
    let points: Vec<Vec<f64>> = (0..40).map(|_| point()).collect();
    let graph = recorded(&points[..20], clipped);
    let small = rolled(&graph, &points);
    assert!(points.iter().all(|point| agree(&graph, &small, point)));
    assert!(loops(&small) > 0 && small.regions.len() < 6, "{small}");
}

#[test]
fn regions_nested_deeper_than_the_limit_stay() {
    // x + 1 + 1 + …, again in each region.
    let nested = |depth: usize| {
        let mut graph = Graph::new(1, 0);
        let one = graph.push_const(1.0f64.to_bits());
        let (mut value, mut block) = (graph.input(0), graph.root());
        let mut open = vec![];
        for _ in 0..depth {
            for _ in 0..20 {
                value = graph.push_apply(block, Op::Add, &[value, one], None);
            }
            let region = graph.push_region(block, None, None);
            open.push((block, region));
            block = graph.regions[region].root;
        }
        for (above, region) in open.into_iter().rev() {
            graph.blocks[block].end = End::Return([value].into_iter().collect());
            value = graph.push_phi(region);
            block = above;
        }
        graph.blocks[block].end = End::Return([value].into_iter().collect());
        graph
    };
    let limit = RerollLimits::default().regions;
    assert_eq!(loops(&rolled(&nested(limit), &[vec![0.5]])), limit);
    let deeper = nested(limit + 1);
    assert_eq!(reroll(&deeper, RerollLimits::default()), deeper);
}

#[test]
fn graphs_with_loops_or_replays_stay() {
    let text = "graph active 1 inactive 0\nv1 = const 9.0\nb0:\n  v4 = region r0 b1 bound 4 entries v2=v0\n  \
                return v4\nb1:\n  v3 = lt v2 v1\n  return v3 v2 v2\n";
    let graph = parse(text).unwrap();
    assert_eq!(reroll(&graph, RerollLimits::default()), graph);
}

#[test]
fn loops_keep_their_places() {
    let graph = roll(9, |x| x.iter().fold(Var::from(0.0), |sum, &x| sum + x.exp()));
    for data in graph.nodes.values() {
        let of_code = matches!(data.def, Def::Apply(..) | Def::Element(_));
        assert_eq!(
            data.place.is_some(),
            of_code || matches!(data.def, Def::Entry(..) | Def::Phi(..))
        );
    }
    assert!(graph.to_string().contains("exp v") && graph.to_string().contains("reroll.rs"));
}

#[test]
fn graphs_without_repetition_stay() {
    let text = "graph active 2 inactive 0\nv2 = const 3.0\nb0:\n  v3 = add v0 v1\n  v4 = mul v3 v2\n  \
                v5 = add v4 v1\n  v6 = sin v5\n  v7 = add v6 v1\n  v8 = mul v7 v2\n  return v8\n";
    let graph = parse(text).unwrap();
    assert_eq!(reroll(&graph, RerollLimits::default()), graph);
}

#[test]
fn rerolling_is_deterministic() {
    let program = |x: &[Var]| (0..40).map(|i| x[i % 5].sin() * x[0]).sum();
    let graph = recorded(&[vec![0.1, 0.2, 0.3, 0.4, 0.5]], program);
    let rolled = || reroll(&graph, RerollLimits::default());
    assert_eq!(rolled().to_string(), rolled().to_string());
    let steps = |graph: &Graph| -> usize { graph.blocks.values().map(|b| b.items.len()).sum() };
    // Two loops, for the first inputs and for all that follow.
    assert!(steps(&rolled()) == 16 && steps(&graph) == 119, "{}", rolled());
    assert!(matches!(rolled().blocks.values().next().unwrap().items[2], Item::Region(_)));
}
