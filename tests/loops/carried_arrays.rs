//! Arrays that loops carry from one iteration to the next: graphs that do not grow with the length
//! of the arrays, with the same results and derivatives.

use std::panic::Location;

use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Checkpointed, Directions, Wanted, checkpoint, reverse, tangents};
use phigrad::internals::jit::schedule;
use phigrad::internals::loops::{RerollLimits, reroll, store_arrays};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{
    Def, Folding, Graph, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};
use phigrad::internals::trace::{Inputs, Tracer};

use crate::common::outcomes;

type Program = fn(&[Var], usize) -> Var;

/// Two arrays, one of which has a first element that no step changes.
fn transport(x: &[Var], steps: usize) -> Var {
    let (mut y, mut k) = (x.to_vec(), x.to_vec());
    for _ in 0..steps {
        for i in 1..y.len() {
            k[i] = x[i] * y[i - 1];
        }
        for i in 0..y.len() {
            y[i] += 0.1 * k[i];
        }
    }
    y[y.len() - 1]
}

/// A heat equation with fixed ends; all of the last state is used.
fn heat(x: &[Var], steps: usize) -> Var {
    let mut u = x.to_vec();
    for _ in 0..steps {
        let mut next = u.clone();
        for i in 1..u.len() - 1 {
            next[i] = u[i] + 0.2 * (u[i - 1] - 2.0 * u[i] + u[i + 1]);
        }
        u = next;
    }
    u.iter().map(|&u| u * u).sum()
}

/// A nonlinear heat equation on a circle.
fn burgers(x: &[Var], steps: usize) -> Var {
    let (n, mut u) = (x.len(), x.to_vec());
    for _ in 0..steps {
        u = (0..n)
            .map(|i| {
                let (left, right) = (u[(i + n - 1) % n], u[(i + 1) % n]);
                u[i] - 0.05 * u[i] * (right - left) + 0.1 * (left - 2.0 * u[i] + right)
            })
            .collect();
    }
    u.iter().map(|&u| u.sin()).sum()
}

/// Positions and velocities of a chain, which end in one number.
fn chain(x: &[Var], steps: usize) -> Var {
    let n = x.len();
    let (mut position, mut velocity) = (x.to_vec(), vec![Var::from(0.0); n]);
    for _ in 0..steps {
        for i in 0..n {
            let left = if i > 0 { position[i - 1] } else { Var::from(0.0) };
            let right = if i + 1 < n { position[i + 1] } else { Var::from(0.0) };
            velocity[i] += 0.01 * (left - 2.0 * position[i] + right - position[i].powi(3));
        }
        for i in 0..n {
            position[i] += 0.1 * velocity[i];
        }
    }
    position.iter().zip(&velocity).map(|(&p, &v)| p * p + v * v).sum()
}

/// A Runge-Kutta method of order 4 for an array of numbers.
fn runge_kutta(x: &[Var], steps: usize) -> Var {
    let slope = |y: &[Var]| -> Vec<Var> { y.iter().map(|&y| -y * (y + 1.0)).collect() };
    let shifted = |y: &[Var], k: &[Var], by: f64| -> Vec<Var> {
        y.iter().zip(k).map(|(&y, &k)| y + by * k).collect()
    };
    let mut y = x.to_vec();
    for _ in 0..steps {
        let k1 = slope(&y);
        let k2 = slope(&shifted(&y, &k1, 0.05));
        let k3 = slope(&shifted(&y, &k2, 0.05));
        let k4 = slope(&shifted(&y, &k3, 0.1));
        for i in 0..y.len() {
            y[i] += (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]) * (0.1 / 6.0);
        }
    }
    y.into_iter().reduce(|a, b| a + b).unwrap_or(0.0.into())
}

/// A recurrent network: a product with a matrix of constants in each step.
fn network(x: &[Var], steps: usize) -> Var {
    let n = x.len();
    let mut h = vec![Var::from(0.1); n];
    for _ in 0..steps {
        h = (0..n)
            .map(|i| {
                let row = (0..n).map(|j| h[j] * (((i * 5 + j * 3) % 7) as f64 * 0.1 - 0.3));
                (row.sum::<Var>() + x[i]).tanh()
            })
            .collect();
    }
    h.iter().map(|&h| h * h).sum()
}

/// A gate for each element, and a sum over all of them in each step.
fn gates(x: &[Var], steps: usize) -> Var {
    let (mut y, mut total) = (x.to_vec(), Var::from(0.0));
    for t in 0..steps {
        for i in 0..y.len() {
            let gate = 1.0 / (1.0 + (-(x[i] * ((t * 7 + i * 3) % 2) as f64 + 0.1)).exp());
            y[i] = (y[i] * x[i] + gate).tanh() * gate;
        }
        let scale = (y.iter().map(|v| v.exp()).sum::<Var>() + 2.0).ln();
        for (i, &y) in y.iter().enumerate() {
            total += ((t * 5 + i) % 2) as f64 * (y - scale);
        }
    }
    total
}

const PROGRAMS: [(&str, Program); 7] = [
    ("transport", transport),
    ("heat", heat),
    ("burgers", burgers),
    ("chain", chain),
    ("runge_kutta", runge_kutta),
    ("network", network),
    ("gates", gates),
];

/// The recorded graph of `f`; with `compact` with the loops that the tracer has found.
pub(super) fn recorded(inputs: usize, compact: bool, f: impl Fn(&[Var]) -> Var) -> Graph {
    let x: Vec<f64> = (0..inputs).map(|i| 0.3 + (i as f64 * 0.7).sin() * 0.2).collect();
    let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(inputs, 0));
    let inputs = Inputs { active: &x, inactive: &[] };
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    Graph::clone(if compact { traces.compact() } else { traces.graph() })
}

fn stored(graph: &Graph) -> Graph {
    let rolled = simplify(&reroll(graph, RerollLimits::default()), Folding::Real);
    let stored = store_arrays(&rolled, 1 << 20);
    verify(&stored).unwrap_or_else(|error| panic!("{error}\n{stored}"));
    let text = stored.to_string();
    assert_eq!(parse(&text).map(|graph| graph.to_string()), Ok(text));
    stored
}

fn outputs(graph: &Graph, x: &[f64]) -> Vec<f64> {
    match interpret(graph, x) {
        Outcome::Values(values) => values,
        outcome => panic!("{outcome:?}\n{graph}"),
    }
}

pub(super) fn assert_close(name: &str, expected: &[f64], found: &[f64]) {
    let largest = expected.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(found) {
        assert!((found - expected).abs() <= 1e-12 * largest, "{name}: {found} {expected}");
    }
}

/// Compares `stored` with `graph` at random points: values, gradients, products of the Hessian with
/// a direction, each by the interpreter and by native code.
pub(super) fn compare(name: &str, graph: &Graph, stored: &Graph) {
    let gradient = |graph: &Graph| {
        let gradient = reverse(graph, Wanted::GradientAndValue, Folding::Real);
        verify(&gradient).unwrap_or_else(|error| panic!("{name}: {error}\n{gradient}"));
        eliminate_dead_code(&gradient)
    };
    let curvature = |graph: &Graph| {
        let tangent = tangents(&gradient(graph), Directions::Inputs(1)).unwrap();
        verify(&tangent).unwrap_or_else(|error| panic!("{name}: {error}\n{tangent}"));
        eliminate_dead_code(&tangent)
    };
    let [plain, new] = [graph, stored].map(|graph| [gradient(graph), curvature(graph)]);
    let mut random = Random::new(graph.active as u64);
    for _ in 0..2 {
        let mut x: Vec<f64> = (0..2 * graph.active).map(|_| random.uniform(-0.5, 0.9)).collect();
        let direction = x.split_off(graph.active);
        assert_close(name, &outputs(graph, &x), &outputs(stored, &x));
        for (expected, found) in plain.iter().zip(&new) {
            if found.inactive > 0 {
                x.extend(&direction);
            }
            let values = outputs(found, &x);
            assert_close(name, &outputs(expected, &x), &values);
            let schedule = schedule(found).unwrap();
            for cuts in [vec![], (0..schedule.sequence().steps).step_by(13).skip(1).collect()] {
                let kernel = schedule.compile(&cuts).unwrap();
                assert_close(name, &values, &outcomes::call(found, &kernel, &x).unwrap());
            }
        }
    }
}

#[test]
fn carried_arrays_have_the_same_derivatives() {
    for (name, program) in PROGRAMS {
        for (inputs, steps) in [(12, 5), (17, 9), (20, 40)] {
            for compact in [false, true] {
                let graph = recorded(inputs, compact, |x| program(x, steps));
                compare(name, &graph, &stored(&graph));
            }
        }
    }
}

/// The number of nodes of `graph` other than inputs.
pub(super) fn size(graph: &Graph) -> usize {
    graph.nodes.values().filter(|data| !matches!(data.def, Def::Input(_))).count()
}

#[test]
fn graphs_do_not_grow_with_carried_arrays() {
    for (name, program) in PROGRAMS {
        let sizes = [(24, 40), (31, 40), (50, 40), (31, 76)]
            .map(|(inputs, steps)| size(&stored(&recorded(inputs, false, |x| program(x, steps)))));
        let all = sizes.iter().all(|&size| size == sizes[0]);
        let (graph, small) = (|| stored(&recorded(24, false, |x| program(x, 40))), sizes[0] < 200);
        assert!(all && small, "{name}: {sizes:?}\n{}", graph());
    }
}

#[test]
fn loops_with_cells_are_not_recomputed() {
    let x: Vec<f64> = (0..20).map(|i| (f64::from(i) * 0.7).sin() * 0.4).collect();
    // The second inner loop of an iteration saves much, and reads cells that the next overwrites.
    let measured: Program = |x, steps| {
        let (mut y, mut k, mut total) = (x.to_vec(), x.to_vec(), Var::from(0.0));
        for _ in 0..steps {
            for i in 1..y.len() {
                k[i] = (x[i] * y[i - 1]).sin();
            }
            for (i, &k) in k.iter().enumerate() {
                total += ((k * x[i]).tanh() * 3.0).exp().sqrt().sin() * k.cos();
            }
            for i in 0..y.len() {
                y[i] += 0.1 * k[i];
            }
        }
        total
    };
    for (name, program) in PROGRAMS.into_iter().chain([("measured", measured)]) {
        let graph = stored(&recorded(x.len(), false, |x| program(x, 20)));
        let plain = Checkpointed::new(&graph);
        let expected = outputs(&plain.reverse(Wanted::Gradient, Folding::Real), &x);
        let mut next = checkpoint(&plain);
        while let Some(less) = next {
            let gradient = less.reverse(Wanted::Gradient, Folding::Real);
            verify(&gradient).unwrap_or_else(|error| panic!("{name}: {error}\n{gradient}"));
            assert_close(name, &expected, &outputs(&gradient, &x));
            next = checkpoint(&less);
        }
    }
}

#[test]
fn elements_are_not_written_after_they_are_read() {
    let run = |array: &str, steps: &str| {
        let text = format!(
            "graph active 1 inactive 0\na0 = {array}\ni0 = a0 base 0\nb0:\n  fill a0\n{steps}"
        );
        let graph = parse(&text).unwrap();
        assert_eq!(verify(&graph), Ok(()));
        outputs(&graph, &[2.0])[0]
    };
    let cells = |steps: &str| run("cells 1", steps);
    assert_eq!(cells("  store i0 v0\n  v1 = element i0\n  return v1\n"), 2.0);
    assert!(cells("  v1 = element i0\n  return v1\n").is_nan());
    assert!(cells("  store i0 v0\n  store i0 v0\n  v1 = element i0\n  return v1\n").is_nan());
    let sums = |steps: &str| run("sums _", steps);
    let (add, read) = ("  accumulate i0 v0\n", "  v1 = element i0\n  v2 = element i0\n");
    assert_eq!(sums(&format!("{add}{add}{read}  return v2\n")), 4.0);
    let late = format!("{add}  v1 = element i0\n{add}  v2 = element i0\n  return v2\n");
    assert!(sums(&late).is_nan());
}
