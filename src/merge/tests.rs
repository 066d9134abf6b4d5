//! Tests of loops in merged traces: the graph is the same with loops and with single steps.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use std::panic::Location;

use super::*;
use crate::loops::{RerollLimits, reroll};
use crate::random::Random;
use crate::ssa::{Def, Outcome, interpret, verify};
use crate::trace::{Detail, Inputs, LoopThreshold, Tracer, Var};

/// Short loops, too.
const SHORT: LoopThreshold = LoopThreshold { iterations: 6, events: 6 };
/// None at all.
const NEVER: LoopThreshold = LoopThreshold { iterations: usize::MAX, events: usize::MAX };
const LIMITS: MergeLimits = MergeLimits { paths: 1000, nodes: 1 << 20 };

fn traces(inputs: usize, threshold: LoopThreshold) -> MergedTraces {
    let mut traces = MergedTraces::new(inputs, 0);
    traces.tree.loop_threshold = threshold;
    traces
}

/// Merges the runs of `f` at these points into both; they must agree on everything.
fn agree(points: &[Vec<f64>], f: impl Fn(&[Var]) -> Var) -> (MergedTraces, MergedTraces) {
    let mut tracer = Tracer::default();
    tracer.detail(Detail::Captures);
    let inputs = points[0].len();
    let (mut short, mut long) = (traces(inputs, SHORT), traces(inputs, NEVER));
    for (number, point) in points.iter().enumerate() {
        let at = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), at, 1 << 20, Location::caller()).unwrap();
        let version = short.version();
        let (merged, side_exit) = long.merge_after_exit(&trace, LIMITS, version);
        assert_eq!(short.merge(&trace, LIMITS), merged, "run {number}");
        assert_eq!(long.side_exit(&trace, version), side_exit);
        assert_eq!(short.side_exit(&trace, version), side_exit);
        assert_eq!(short.graph(), long.graph(), "run {number}");
        assert_eq!((short.steps(), short.paths()), (long.steps(), long.paths()));
        assert_eq!((short.events(), short.unmerged()), (long.events(), long.unmerged()));
        compare(&mut short, points);
    }
    assert!(!long.tree.has_loops());
    (short, long)
}

/// The compact graph, before and after rerolling, means the same as the long one.
fn compare(traces: &mut MergedTraces, points: &[Vec<f64>]) {
    let (graph, compact) = (&Arc::clone(traces.graph()), traces.compact());
    verify(compact).unwrap_or_else(|error| panic!("{error}\n{compact}"));
    let limits = RerollLimits { weight: 4, ..RerollLimits::default() };
    let rolled = reroll(compact, limits);
    verify(&rolled).unwrap_or_else(|error| panic!("{error}\n{compact}\n{rolled}"));
    for point in points {
        let (expected, got) = (interpret(graph, point), interpret(compact, point));
        let again = interpret(&rolled, point);
        match (&expected, &got, &again) {
            (Outcome::Values(expected), Outcome::Values(got), Outcome::Values(again)) => {
                let bits = |all: &[f64]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!((bits(expected), bits(expected)), (bits(got), bits(again)), "{rolled}");
            }
            (Outcome::Unseen(_), Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            _ => panic!("{expected:?} {got:?} {again:?}\n{graph}\n{compact}\n{rolled}"),
        }
    }
}

fn points(count: usize, inputs: usize) -> Vec<Vec<f64>> {
    let mut random = Random::new(count as u64);
    let mut point = || (0..inputs).map(|_| random.uniform(0.1, 1.0)).collect::<Vec<f64>>();
    (0..count).map(|_| point()).collect()
}

fn loops(graph: &Graph) -> Vec<u32> {
    graph.regions.values().filter_map(|data| data.cycle.as_ref()).map(|cycle| cycle.bound).collect()
}

#[test]
fn a_loop_is_one_step() {
    let (mut short, _) =
        agree(&points(3, 2), |x| (0..100).fold(x[0], |y, i| (y * x[1] + f64::from(i)).sin()));
    assert_eq!(short.tree.basic_blocks[short.tree.root()].steps.len(), 1);
    assert_eq!(short.steps(), 300);
    assert_eq!(loops(short.compact()), [100]);
}

#[test]
fn loops_read_inputs_tables_and_earlier_loops() {
    let (mut short, _) = agree(&points(2, 50), |x| {
        let mut all: Vec<Var> = x.iter().map(|&x| (x * 0.5).sin()).collect();
        let sum = all.iter().rev().zip(x).fold(Var::from(0.0), |sum, (&a, &b)| sum + a * b);
        let more: Vec<Var> = all.iter().skip(3).map(|&a| a.cos() * sum).collect();
        all.truncate(7);
        more.iter().fold(all[2] + more[5], |y, &a| (y + a).powi(2) * 0.1)
    });
    assert_eq!(loops(short.compact()), [50, 50, 47, 47]);
}

#[test]
fn repetition_around_and_in_loops_is_rolled() {
    let nested = |outer: usize, inner: usize| {
        agree(&points(2, 3), move |x| {
            let mut state = x[0];
            for i in 0..outer {
                for j in 0..inner {
                    state = (state * x[1] + j as f64).sin();
                }
                state += x[2] * i as f64;
            }
            state
        })
    };
    for (outer, inner, seen) in [(5, 20, 5), (20, 6, 1), (20, 20, 1)] {
        let (mut short, _) = nested(outer, inner);
        assert_eq!(loops(short.compact()).len(), seen, "{}", short.compact());
        let rolled = reroll(short.compact(), RerollLimits::default());
        assert_eq!(loops(&rolled), [outer as u32, inner as u32], "{rolled}");
    }
}

#[test]
fn a_later_run_may_differ_at_each_iteration() {
    // At the first iterations, in the middle and at the end.
    for at in [0, 1, 2, 5, 9, 17, 18, 19] {
        let mut all = vec![vec![0.9; 20]; 3];
        (all[1][at], all[2][19]) = (-0.9, -0.5);
        all.push(all[0].clone());
        let (short, _) = agree(&all, |x| {
            x.iter().fold(Var::from(1.0), |y, &x| if x > 0.0 { y + x * x } else { y * 0.5 })
        });
        assert_eq!(short.paths(), if at == 19 { 2 } else { 3 });
    }
}

#[test]
fn an_iteration_that_differs_splits_the_loop() {
    // Each run takes the other branch in one iteration; loops that read the values of the
    // split loop are split with it.
    let count = 2000;
    let f = |x: &[Var]| {
        let all: Vec<Var> =
            x.iter().map(|&x| if x > 0.0 { (x * 1.5).sin() } else { (x * 0.5).cos() }).collect();
        let sum = all.iter().rev().fold(Var::from(0.0), |sum, &y| sum * 0.5 + y);
        all.iter().step_by(2).fold(sum, |sum, &y| (sum + y).sin())
    };
    let mut tracer = Tracer::default();
    let (mut short, mut long) = (traces(count, SHORT), traces(count, NEVER));
    short.tree.peel_limit = 0;
    let limits = MergeLimits { paths: 10, nodes: 1 << 20 };
    let mut points = vec![vec![0.9; count]];
    for at in [1000, 1999, 0, 3, 1001, 500, 1503] {
        let mut point = points[0].clone();
        point[at] = -0.7;
        points.push(point);
    }
    for point in &points {
        let at = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), at, 1 << 20, Location::caller()).unwrap();
        assert_eq!(short.merge(&trace, limits), long.merge(&trace, limits));
        assert_eq!(short.merge(&trace, limits), Ok(MergeOutcome::Known));
    }
    assert_eq!((short.steps(), short.paths()), (long.steps(), long.paths()));
    assert_eq!(short.graph(), long.graph());
    compare(&mut short, &points[..3]);
    // For each path a few pieces of the three loops, and a few single iterations.
    let nodes = short.compact().nodes.len();
    assert!(nodes < 8 * 3 * 8 * 20, "{nodes}");
    // A trace that is not merged changes nothing.
    let more = |at: usize| {
        let mut point = points[1].clone();
        point[at] = -0.7;
        point
    };
    let mut before = short.clone();
    for at in [7, 300, 1998] {
        let point = more(at);
        let at = Inputs { active: &point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), at, 1 << 20, Location::caller()).unwrap();
        let limit = MergeError::TooManyPaths { limit: 3 };
        assert_eq!(short.merge(&trace, MergeLimits { paths: 3, ..limits }), Err(limit));
        let limit = MergeError::TooManyNodes { limit: 9000 };
        let mut other = before.clone();
        assert_eq!(other.merge(&trace, MergeLimits { nodes: 9000, ..limits }), Err(limit));
        assert_eq!(other.compact(), before.compact());
        assert_eq!(other.tree.values.len(), before.tree.values.len());
    }
    let kept = |traces: &MergedTraces| {
        traces.tree.basic_blocks.values().map(|s| s.steps.len()).sum::<usize>()
    };
    assert_eq!(kept(&short), kept(&before));
}

#[test]
fn a_later_run_may_have_another_number_of_iterations() {
    for others in [[5.0, 40.0], [29.0, 31.0], [30.0, 30.0], [0.0, 1.0]] {
        let all: Vec<Vec<f64>> =
            [30.0].iter().chain(&others).map(|&count| vec![0.5, count]).collect();
        agree(&all, |x| {
            let (mut y, mut i) = (x[0], 0.0);
            while x[1] > i {
                (y, i) = (y.sin() * 1.5, i + 1.0);
            }
            y
        });
    }
}

#[test]
fn numbers_that_escape_are_compared() {
    let all: Vec<Vec<f64>> = [0.5, 0.5, 0.25, 0.5, 0.75].iter().map(|&x| vec![x]).collect();
    agree(&all, |x| {
        (0..20).fold(x[0], |y, _| {
            let z = y * 0.5;
            z + z.value() * 0.5
        })
    });
}

#[test]
fn hidden_state_is_found_in_a_loop() {
    let count = std::cell::Cell::new(0);
    let f = |x: &[Var]| {
        count.set(count.get() + 1);
        let at = if count.get() > 1 { 13 } else { 99 };
        (0..20).fold(x[0], |y, i| if i == at { y.cos() } else { y.sin() })
    };
    let mut tracer = Tracer::default();
    let mut traces = traces(1, SHORT);
    let inputs = Inputs { active: &[0.5], inactive: &[] };
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 20, Location::caller()).unwrap();
    traces.merge(&trace, LIMITS).unwrap();
    assert!(traces.tree.has_loops());
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 20, Location::caller()).unwrap();
    assert!(matches!(traces.merge(&trace, LIMITS), Err(MergeError::Divergent { .. })));
}

#[test]
fn steps_in_loops_count_like_single_steps() {
    let f = |x: &[Var], _: &[Var]| (0..100).fold(x[0], |y, _| y.sin());
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: &[0.5], inactive: &[] };
    let trace = tracer.run(f, inputs, 1 << 20, Location::caller()).unwrap();
    for threshold in [SHORT, NEVER] {
        let merged = |nodes| traces(1, threshold).merge(&trace, MergeLimits { paths: 1, nodes });
        assert_eq!(merged(99), Err(MergeError::TooManyNodes { limit: 99 }));
        assert_eq!(merged(100), Ok(MergeOutcome::First));
    }
}

/// A program of random loops over the values computed before.
fn random_program(seed: u64, x: &[Var]) -> Var {
    let mut random = Random::new(seed);
    let mut pool: Vec<Var> = x.to_vec();
    for _ in 0..1 + random.below(4) {
        let (times, inner) = (1 + random.below(30), [0, 0, 1, 8][random.below(4)]);
        let (start, step) = (random.below(pool.len()), random.below(3));
        let (kind, distance, fixed) = (random.below(5), 1 + random.below(5), random.below(x.len()));
        let bound = random.uniform(-1.0, 3.0);
        let mut made: Vec<Var> = vec![pool[random.below(pool.len())]; distance];
        for i in 0..times {
            let read = pool[(start + i * step) % pool.len()];
            let mut next = made[i] * [0.5, 0.25 * i as f64, 0.75][kind % 3] + read.sin();
            for j in 0..inner {
                next = (next * x[fixed] + j as f64).cos() + pool[j % pool.len()];
            }
            if kind == 3 && next > bound {
                next *= 0.5;
            }
            if kind == 4 {
                next = next.mul_add(Var::from(0.5), read);
            }
            made.push(next);
        }
        let last = made[made.len() - 1 - random.below(2)];
        let (count, keep) = (made.len(), random.below(2) == 0);
        if keep {
            pool.append(&mut made);
        } else {
            pool.push(made[count / 2]);
        }
        pool.push(last);
    }
    pool.iter().rev().take(9).fold(Var::from(0.0), |sum, &value| sum + value)
}

#[test]
fn random_programs_mean_the_same_with_and_without_loops() {
    let (cases, mut rolled) = (4000, 0);
    for seed in 0..cases {
        let all = points(4, 1 + seed as usize % 40);
        let (mut short, _) = agree(&all, |x| random_program(seed, x));
        rolled += usize::from(
            short.compact().nodes.values().any(|data| matches!(data.def, Def::Iteration(_))),
        );
    }
    assert!(rolled * 2 > cases as usize, "{rolled}");
}
