//! Long loops: a loop is one step of the recorded graph, whatever its trip count, and calls that
//! take another path through it are served correctly.

use std::panic::Location;
use std::sync::Arc;

use crate::common::served::{NUMERICS, Pair, Served, manual};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Outcome, interpret, verify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Numerics, Var, traced};

/// The merged runs of `f` at these points.
fn recorded(points: &[Vec<f64>], f: impl Fn(&[Var]) -> Var) -> MergedTraces {
    let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(points[0].len(), 0));
    for point in points {
        let inputs = Inputs { active: point, inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: 1 << 20, nodes: 1 << 24 }).unwrap();
    }
    let graph = Arc::clone(traces.graph());
    let compact = traces.compact();
    verify(compact).unwrap_or_else(|error| panic!("{error}\n{compact}"));
    let rolled = reroll(compact, RerollLimits::default());
    verify(&rolled).unwrap_or_else(|error| panic!("{error}\n{rolled}"));
    for point in points {
        let expected = interpret(&graph, point);
        assert!(matches!(expected, Outcome::Values(_)));
        assert_eq!(
            (interpret(compact, point), interpret(&rolled, point)),
            (expected.clone(), expected)
        );
    }
    traces
}

fn fold(times: usize) -> impl Fn(&[Var]) -> Var + Copy {
    move |x| (0..times).fold(x[0], |y, i| (y * x[1] + (i as f64 * 0.7).sin()).sin())
}

#[traced]
fn annotated(x: &[Var]) -> Var {
    let mut y = x[0];
    for i in 0..1000 {
        y = (y * x[1] + i as f64).sin();
    }
    y
}

#[traced]
fn scaled(y: Var, by: Var) -> Var {
    let mut product = y;
    for _ in 0..2 {
        product *= by;
    }
    product
}

#[traced]
fn branched(x: &[Var]) -> Var {
    let mut y = (0..400).fold(x[0], |y, i| (y * x[1] + f64::from(i)).sin());
    if x[0] > x[1] {
        y = (0..300).fold(y, |y, _| (y * x[0]).cos());
    } else {
        y *= 0.5;
    }
    (0..300).fold(y, |y, _| y.sin() + x[0])
}

#[test]
fn a_loop_is_as_small_as_its_body() {
    let size = |times| {
        let mut traces = recorded(&[vec![0.3, 0.7]], fold(times));
        assert_eq!(traces.steps(), 3 * times);
        traces.compact().nodes.len()
    };
    assert_eq!(size(1000), size(200));
    assert_eq!(size(1000), size(20_000));
    assert!(size(1000) < 20);
}

#[test]
fn annotated_loops_with_one_path_are_small_too() {
    let mut traces = recorded(&[vec![0.3, 0.7], vec![0.4, 0.6]], annotated);
    assert!(traces.compact().nodes.len() < 20, "{}", traces.compact());
    assert_eq!(traces.steps(), 3000);
    // With a function that it calls, too.
    let f = |x: &[Var]| (0..1000).fold(x[0], |y, _| scaled(y, x[1]).sin() + 1.0);
    let mut traces = recorded(&[vec![0.3, 0.7], vec![0.4, 0.7]], f);
    assert!(traces.compact().nodes.len() < 20, "{}", traces.compact());
}

#[test]
fn long_loops_in_branches_and_between_them_are_small() {
    let points: Vec<Vec<f64>> =
        [[0.3, 0.7], [0.7, 0.3], [0.4, 0.6], [0.9, 0.2]].iter().map(|x| x.to_vec()).collect();
    let mut traces = recorded(&points, branched);
    assert!(traces.unmerged().is_empty());
    assert!(traces.compact().nodes.len() < 50, "{}", traces.compact());
    let rolled = reroll(traces.compact(), RerollLimits::default());
    assert!(rolled.nodes.len() < 50, "{rolled}");
}

#[test]
fn code_does_not_grow_with_the_iterations() {
    let sizes = |times: usize| {
        let pair = Pair::with(manual(Numerics::Real), Numerics::Real, fold(times));
        pair.profile(&[vec![0.3, 0.7]]);
        assert_eq!(pair.check(&[0.4, 0.6]), Served::Kernel);
        let report = pair.kernel.report();
        let kernel = &report.kernels[1];
        assert!(kernel.recorded_nodes > 3 * times, "{}", kernel.recorded_nodes);
        (kernel.nodes, kernel.code_bytes)
    };
    assert_eq!(sizes(1000), sizes(10_000));
}

#[test]
fn guards_in_loops_are_counted_one_by_one() {
    let pair = Pair::with(manual(Numerics::Real), Numerics::Real, |x: &[Var]| {
        (0..500).fold(x[0], |y, _| if y > -2.0 { (y * x[1]).sin() } else { y })
    });
    pair.profile(&[vec![0.3, 0.7]]);
    assert_eq!(pair.check(&[0.5, 0.6]), Served::Kernel);
    assert_eq!(pair.kernel.report().conditions, 500);
}

#[test]
fn calls_that_exit_a_loop_in_any_iteration_are_right() {
    const COUNT: usize = 200;
    let f = |x: &[Var]| {
        let mut state = Var::from(1.0);
        for &x in x {
            state = if x > 0.0 { (state * x).sin() + x } else { state * 0.5 - x };
        }
        state
    };
    for numerics in NUMERICS {
        let pair = Pair::with(manual(numerics), numerics, f);
        let all = vec![0.9; COUNT];
        pair.profile(core::slice::from_ref(&all));
        assert_eq!(pair.check(&all), Served::Kernel);
        for at in [0, 1, 5, 99, COUNT - 1] {
            let mut other = all.clone();
            other[at] = -0.5;
            assert_eq!(pair.check(&other), Served::Fallback, "{at}");
            pair.profile(core::slice::from_ref(&other));
            assert_eq!(pair.check(&other), Served::Kernel, "{at}");
            assert_eq!(pair.check(&all), Served::Kernel, "{at}");
        }
    }
}

#[test]
fn code_around_long_loops_is_rolled_with_them() {
    let mut traces = recorded(&[vec![0.3, 0.7, 0.9]], |x: &[Var]| {
        let mut state = x[0];
        for i in 0..10 {
            state = (0..300).fold(state, |y, j| (y * x[1] + f64::from((i + 1) * j)).sin());
            state *= x[2];
        }
        state
    });
    let rolled = reroll(traces.compact(), RerollLimits::default());
    let bounds = rolled.regions.values().filter_map(|data| data.cycle.as_ref());
    assert_eq!(bounds.map(|cycle| cycle.bound).collect::<Vec<_>>(), [10, 300], "{rolled}");
    let long = reroll(traces.graph(), RerollLimits::default());
    assert_eq!(rolled.nodes.len(), long.nodes.len(), "{rolled}\n{long}");
}

/// In the first iteration 0.9·m is constant, not a step.
fn momentum(x: &[Var], times: usize) -> Var {
    let (mut w, mut m) = (x[0], Var::from(0.0));
    for _ in 0..times {
        let gradient = (w - x[1]) * w;
        m = 0.9 * m - x[2] * gradient;
        w += m;
    }
    w
}

#[traced]
fn annotated_momentum(x: &[Var], times: usize) -> Var {
    let (mut w, mut m) = (x[0], Var::from(0.0));
    for _ in 0..times {
        let gradient = (w - x[1]) * w;
        m = 0.9 * m - x[2] * gradient;
        w += m;
    }
    w
}

#[test]
fn a_loop_with_constant_first_values_carries_the_variables_of_the_program() {
    let programs: [fn(&[Var], usize) -> Var; 2] = [momentum, annotated_momentum];
    for program in programs {
        // Short ones are loops only after rerolling.
        for times in [12, 300] {
            let mut traces = recorded(&[vec![0.7, 0.4, 0.1]], |x| program(x, times));
            let is_kept = traces.compact().nodes.len() < traces.graph().nodes.len();
            assert_eq!(is_kept, times > 12, "{times}");
            for graph in [Arc::clone(traces.graph()), Arc::clone(traces.compact())] {
                let rolled = reroll(&graph, RerollLimits::default());
                let loops = rolled.regions.values().filter_map(|region| region.cycle.as_ref());
                let shapes = loops.map(|cycle| (cycle.bound as usize, cycle.entries.len()));
                let (bound, carried) = shapes.max().unwrap();
                assert!(bound + 2 >= times && carried == 2, "{rolled}");
            }
        }
    }
}
