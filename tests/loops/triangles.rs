//! Loops whose trip count changes from one iteration of the loop around to the next: pairs and
//! triangles of any size are rolled into graphs of one size, with the same results and derivatives.

use std::panic::Location;

use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, Outcome, interpret, simplify, verify};
use phigrad::internals::trace::{Inputs, Tracer};

use crate::common::rolling::agree;

fn recorded(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Graph {
    let x = vec![0.5; inputs];
    let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(inputs, 0));
    let inputs = Inputs { active: &x, inactive: &[] };
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    Graph::clone(traces.graph())
}

/// Rolls `f` of so many inputs, and compares results and derivatives.
fn roll(inputs: usize, f: impl Fn(&[Var]) -> Var) -> Graph {
    let graph = recorded(inputs, f);
    let rolled = reroll(&graph, RerollLimits::default());
    verify(&rolled).unwrap_or_else(|error| panic!("{error}\n{rolled}"));
    let gradients = [&graph, &simplify(&rolled, Folding::Real)].map(|graph| {
        let gradient = reverse(graph, Wanted::Gradient, Folding::Real);
        verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
        gradient
    });
    let mut random = Random::new(inputs as u64);
    for _ in 0..3 {
        let x: Vec<f64> = (0..inputs).map(|_| random.uniform(-1.0, 1.0)).collect();
        agree(&graph, &rolled, &x);
        let [expected, found] = [0, 1].map(|at| match interpret(&gradients[at], &x) {
            Outcome::Values(values) => values,
            outcome => panic!("{outcome:?}"),
        });
        let largest = expected.iter().fold(1.0f64, |most, x| most.max(x.abs()));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-12 * largest, "{found} {expected}\n{rolled}");
        }
    }
    rolled
}

/// Asserts that the rolled graph does not grow with the length, but for the pieces at the ends that
/// are too short to be loops.
fn assert_one_size(name: &str, f: impl Fn(&[Var]) -> Var) {
    let sizes = [30, 41, 70].map(|inputs| roll(inputs, &f).nodes.len());
    let all = sizes.iter().all(|&size| size == sizes[0]);
    assert!(all && sizes[0] < 400, "{name}: {sizes:?}\n{}", roll(30, &f));
}

#[test]
fn pairs_are_loops_in_loops() {
    assert_one_size("pairs below", |x| {
        let mut energy = Var::from(0.0);
        for i in 0..x.len() {
            for j in 0..i {
                let d = x[i] - x[j];
                energy += (d * d + 0.01).sqrt();
            }
        }
        energy
    });
    assert_one_size("pairs above", |x| {
        let mut energy = Var::from(0.0);
        for i in 0..x.len() {
            for j in i + 1..x.len() {
                let d = x[i] * 0.5 - x[j];
                energy += d * d * d;
            }
        }
        energy
    });
    assert_one_size("forces", |x| {
        let mut energy = Var::from(0.0);
        for i in 0..x.len() {
            let mut force = Var::from(0.0);
            for j in 0..i {
                force += (x[i] - x[j]).sin();
            }
            energy += force * force;
        }
        energy
    });
}

#[test]
fn triangles_have_tables_and_several_inner_loops() {
    assert_one_size("lower triangular product", |x| {
        let mut norm = Var::from(0.0);
        for i in 0..x.len() {
            let row = (0..=i).map(|j| x[j] * (((i * 7 + j * 3) % 11) as f64 - 5.0));
            norm += row.sum::<Var>().powi(2);
        }
        norm
    });
    assert_one_size("two triangles", |x| {
        let (n, mut sum) = (x.len(), Var::from(0.0));
        for i in 0..n {
            let below: Var = (0..i).map(|j| x[j] * x[j]).sum();
            let above: Var = (i..n).map(|j| (x[j] + x[i]).cos()).sum();
            sum += below * above;
        }
        sum
    });
    assert_one_size("every other one", |x| {
        let mut sum = Var::from(0.0);
        for i in (0..x.len() - 1).step_by(2) {
            for j in (0..=i).rev() {
                sum += x[i + 1] * x[j].exp();
            }
        }
        sum
    });
}

#[test]
fn triangles_repeat_in_a_loop() {
    assert_one_size("a triangle for each of eight data", |x| {
        let mut sum = Var::from(0.0);
        for d in 0..8 {
            for i in 0..x.len() {
                for j in 0..i {
                    let distance = x[i] - x[j] * (f64::from(d) * 0.1);
                    sum += distance * distance;
                }
            }
        }
        sum
    });
}

#[test]
fn windows_are_loops() {
    for width in 2..9 {
        let sizes = [30, 47, 80].map(|inputs| {
            let rolled = roll(inputs, |x| {
                let mut energy = Var::from(0.0);
                for n in width..x.len() {
                    for m in n - width..n {
                        let d = x[n] - x[m];
                        energy += d * d;
                    }
                }
                energy
            });
            rolled.nodes.len()
        });
        assert!(sizes.iter().all(|&size| size < 60), "{width}: {sizes:?}");
    }
}

/// A random nest: bounds, what the inner loops read, and what they pass on.
fn nest(seed: u64, x: &[Var]) -> Var {
    let mut random = Random::new(seed);
    let n = x.len();
    let bounds = random.below(7);
    let (reads, passes, tables) = (random.below(6), random.below(4), random.below(3));
    let (has_second, is_reversed) = (random.below(3) == 0, random.below(3) == 0);
    let row = |i: usize| match bounds {
        0 => 0..i,
        1 => 0..i + 1,
        2 => i + 1..n,
        3 => i..n,
        4 => i / 2..i,
        5 => 0..(2 * i).min(n),
        _ => i.saturating_sub(6)..i,
    };
    let table = |i: usize, j: usize| ((i * 31 + j * 17 + seed as usize) % 13) as f64 * 0.1 - 0.5;
    let (mut total, mut memory) = (Var::from(0.0), x[0]);
    for i in 0..n {
        let mut inner = if passes == 3 { memory } else { x[i] * 0.5 };
        let mut step = |j: usize| {
            let read = match reads {
                0 => x[i] - x[j],
                1 => x[j] * x[n - 1 - i],
                2 => x[(i + j) / 2] + x[j],
                3 => x[n - 1 - j] * x[i],
                4 => x[j] * f64::from(j as u32),
                _ => x[(i + j) % n] * x[j],
            };
            let read = match tables {
                0 => read,
                1 => read * table(i, j),
                _ => read + table(j, 0),
            };
            inner = match passes {
                0 | 3 => inner + read * read,
                1 => inner * 0.5 + read.sin(),
                _ => inner + read * memory,
            };
        };
        match is_reversed {
            true => row(i).rev().for_each(&mut step),
            false => row(i).for_each(&mut step),
        }
        if has_second {
            (0..n - i).for_each(|k| inner += x[k].cos() * 0.1);
        }
        memory = inner.tanh();
        total += memory * x[i];
    }
    total
}

#[test]
fn random_nests_have_the_same_results_and_derivatives() {
    let mut rolled = 0;
    for seed in 0..120 {
        let graph = roll(14 + seed as usize % 9, |x| nest(seed, x));
        rolled += usize::from(!graph.regions.is_empty());
    }
    assert!(rolled > 60, "{rolled}");
}
