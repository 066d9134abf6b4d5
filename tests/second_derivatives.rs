//! Second derivatives: the gradient of a gradient's graph, with closed forms or relays, is that
//! of the program step by step.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use std::panic::Location;

use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::{CloseLimits, close};
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, hoist, interpret, reroll, simplify,
    verify,
};
use phigrad::trace::{Inputs, Tracer};

type Run = fn(&[Var], &[Var]) -> Var;

/// A line through points, and its spread.
fn likelihood(x: &[Var], _: &[Var]) -> Var {
    let term = |i: i32| {
        let t = f64::from(i) * 0.1;
        let residual = x[0] * t + x[1] - (t * 0.7).sin() - 3.0;
        residual * residual * x[2] - x[2].ln()
    };
    (0..120).map(term).sum()
}

/// Descent on a sum of squares over data that are known in the call alone.
fn descent(x: &[Var], data: &[Var]) -> Var {
    let mut w = x[0];
    for _ in 0..40 {
        let slope: Var = data.iter().map(|&d| (w * d - 0.5) * d).sum();
        w -= x[1] * slope * 0.001;
    }
    w * w + x[2] * w
}

/// What a bond's price, of coupons that grow, comes to.
fn bond(x: &[Var], _: &[Var]) -> Var {
    let (mut price, mut discount) = (Var::from(0.0), Var::from(1.0));
    for i in 0..400 {
        discount /= 1.0 + x[0] * 0.01;
        price += (x[1] + x[2] * f64::from(i)) * discount;
    }
    price
}

/// Payments at the end of each month.
fn payments(x: &[Var], _: &[Var]) -> Var {
    let payment = |i: i32| {
        let t = f64::from(i + 1) / 12.0;
        (x[1] + x[2] * t) * (-x[0] * t).exp()
    };
    (0..400).map(payment).sum()
}

/// A chain of three states.
fn chain(x: &[Var], _: &[Var]) -> Var {
    let mut p = [Var::from(1.0), Var::from(0.0), Var::from(0.0)];
    for _ in 0..60 {
        p = [
            p[0] * (1.0 - x[0]) + p[2] * x[2],
            p[0] * x[0] + p[1] * (1.0 - x[1]),
            p[1] * x[1] + p[2] * (1.0 - x[2]),
        ];
    }
    p[1] + 2.0 * p[2]
}

/// An oscillation that fades.
fn spring(x: &[Var], _: &[Var]) -> Var {
    let (mut place, mut speed) = (x[2], Var::from(0.0));
    for _ in 0..200 {
        speed -= (x[0] * place + x[1] * speed) * 0.05;
        place += speed * 0.05;
    }
    place
}

fn second(graph: &Graph, folding: Folding) -> Graph {
    let first = reverse(graph, Wanted::Gradient, folding);
    reverse(&first, Wanted::Gradient, folding)
}

fn values(name: &str, graph: &Graph, x: &[f64]) -> Vec<f64> {
    match interpret(graph, x) {
        Outcome::Values(values) => values,
        other => panic!("{name}: {other:?}"),
    }
}

/// The square of the first input, whatever the second is: it begins where it goes to, or leaves.
fn square(x: &[Var], _: &[Var]) -> Var {
    let square = x[0] * x[0];
    let mut s = square;
    for _ in 0..1000 {
        s = s - x[1] * (s - 1.0) + x[1] * (square - 1.0);
    }
    s
}

#[test]
fn where_nothing_is_left_of_a_closed_form_its_second_derivatives_are_no_numbers() {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(2, 0);
    let inputs = Inputs { active: &[0.4, 0.5], inactive: &[] };
    let trace = tracer.run(square, inputs, 1 << 20, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 20 }).unwrap();
    let straight = Graph::clone(lifted.graph());
    let rolled = simplify(&reroll(&straight, RerollLimits::default()), Folding::Real);
    let closed = close(&rolled, CloseLimits::default());
    assert!(!closed.applied.is_empty(), "{:?}", closed.refused);
    let plain = second(&closed.graph, Folding::Real);
    let small = hoist(&simplify(&plain, Folding::Real));
    let points = [[1.0, -0.06], [0.5, -0.25], [1.0, 2.25], [1.0, 0.5], [0.9, 0.5], [0.9, 1e-3]];
    for graph in [&plain, &small] {
        let mut served = 0;
        for x in points {
            let Outcome::Values(got) = interpret(graph, &x) else { continue };
            for (got, expected) in got.iter().zip([2.0, 0.0]).filter(|(got, _)| got.is_finite()) {
                served += 1;
                assert!((got - expected).abs() <= 1e-9, "{x:?}: {got:e} {expected:e}");
            }
        }
        assert!((4..2 * points.len()).contains(&served), "{served}");
    }
}

#[test]
fn second_derivatives_with_closed_forms_are_those_of_the_program() {
    let programs: [(&str, Run, bool); 6] = [
        ("likelihood", likelihood, true),
        ("descent", descent, true),
        ("bond", bond, true),
        ("payments", payments, true),
        ("chain", chain, false),
        ("spring", spring, true),
    ];
    let mut random = Random::new(3);
    let data: Vec<f64> = (0..100).map(|i| 0.5 + (f64::from(i) * 0.7).sin()).collect();
    for (name, run, is_closed) in programs {
        let mut tracer = Tracer::default();
        let mut lifted = Lifted::new(3, data.len());
        let inputs = Inputs { active: &[0.4, 0.5, 0.6], inactive: &data };
        let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
        lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 20 }).unwrap();
        let straight = Graph::clone(lifted.graph());
        let rolled = simplify(&reroll(&straight, RerollLimits::default()), Folding::Real);
        let closed = close(&rolled, CloseLimits::default());
        assert_eq!(!closed.applied.is_empty(), is_closed, "{name}: {:?}", closed.refused);
        // Gradients of loops have loops that replay them, and no gradients; loops over data
        // are not passed through.
        let primal = match is_closed {
            true => closed.graph,
            false => simplify(&straight, Folding::Real),
        };
        let expected = second(&straight, Folding::Exact);
        let plain = second(&primal, Folding::Real);
        let small = hoist(&simplify(&plain, Folding::Real));
        for graph in [&plain, &small] {
            verify(graph).unwrap_or_else(|error| panic!("{name}: {error}\n{graph}"));
            for _ in 0..10 {
                let mut x: Vec<f64> = (0..3).map(|_| random.uniform(0.2, 0.9)).collect();
                x.extend(&data);
                let (got, expected) = (values(name, graph, &x), values(name, &expected, &x));
                let largest = expected.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
                assert!(largest > 1e-6, "{name}: {expected:?}");
                for (got, expected) in got.iter().zip(&expected) {
                    let near = (got - expected).abs() <= 1e-9 * largest;
                    assert!(near, "{name} at {:?}: {got:e} {expected:e}", &x[..3]);
                }
            }
        }
    }
}
