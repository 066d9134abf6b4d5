//! Second derivatives: the directional derivative of a gradient's graph with closed forms equals
//! that of the program step by step.

use std::panic::Location;

use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, directional, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::phi::{CloseLimits, close};
use phigrad::internals::ssa::{Folding, Graph, simplify, verify};
use phigrad::internals::trace::{Inputs, Tracer};

type Run = fn(&[Var], &[Var]) -> Var;

/// The likelihood of a straight line through points with a variance.
fn likelihood(x: &[Var], _: &[Var]) -> Var {
    let term = |i: i32| {
        let t = f64::from(i) * 0.1;
        let residual = x[0] * t + x[1] - (t * 0.7).sin() - 3.0;
        residual * residual * x[2] - x[2].ln()
    };
    (0..120).map(term).sum()
}

/// Gradient descent on a sum of squares over data that are inputs.
fn descent(x: &[Var], data: &[Var]) -> Var {
    let mut w = x[0];
    for _ in 0..40 {
        let gradient: Var = data.iter().map(|&d| (w * d - 0.5) * d).sum();
        w -= x[1] * gradient * 0.001;
    }
    w * w + x[2] * w
}

/// The price of a bond with growing coupons.
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

/// A damped oscillation.
fn spring(x: &[Var], _: &[Var]) -> Var {
    let (mut place, mut speed) = (x[2], Var::from(0.0));
    for _ in 0..200 {
        speed -= (x[0] * place + x[1] * speed) * 0.05;
        place += speed * 0.05;
    }
    place
}

/// The gradient graph with closed forms, and that of the straight-line program.
fn gradients(run: Run, data: &[f64]) -> (bool, Graph, Graph) {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(3, data.len());
    let inputs = Inputs { active: &[0.4, 0.5, 0.6], inactive: data };
    let trace = tracer.run(run, inputs, 1 << 20, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: 1, nodes: 1 << 20 }).unwrap();
    let straight = Graph::clone(traces.graph());
    let rolled = simplify(&reroll(&straight, RerollLimits::default()), Folding::Real);
    let closed = close(&rolled, CloseLimits::default());
    let gradient = |graph: &Graph, folding| {
        let gradient = reverse(graph, Wanted::Gradient, folding);
        verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
        gradient
    };
    let closes = !closed.applied.is_empty();
    (closes, gradient(&closed.graph, Folding::Real), gradient(&straight, Folding::Exact))
}

#[test]
fn second_derivatives_with_closed_forms_are_those_of_the_program() {
    let programs: [(&str, Run, bool); 6] = [
        ("likelihood", likelihood, false),
        ("descent", descent, true),
        ("bond", bond, true),
        ("payments", payments, false),
        ("chain", chain, false),
        ("spring", spring, true),
    ];
    let mut random = Random::new(3);
    let data: Vec<f64> = (0..100).map(|i| 0.5 + (f64::from(i) * 0.7).sin()).collect();
    for (name, run, closes) in programs {
        let (found, closed, straight) = gradients(run, &data);
        assert!(found || !closes, "{name}");
        for _ in 0..10 {
            let mut x: Vec<f64> = (0..3).map(|_| random.uniform(0.2, 0.9)).collect();
            let direction: Vec<f64> = (0..3).map(|_| random.uniform(-1.0, 1.0)).collect();
            x.extend(&data);
            let products = |graph| directional(graph, &x, &direction).unwrap().1;
            let (got, expected) = (products(&closed), products(&straight));
            let largest = expected.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
            assert!(largest > 1e-6, "{name}: {expected:?}");
            for (got, expected) in got.iter().zip(&expected) {
                let near = (got - expected).abs() <= 1e-9 * largest;
                assert!(near, "{name} at {:?}: {got:e} {expected:e}", &x[..3]);
            }
        }
    }
}

#[test]
fn directional_derivatives_of_gradients_are_differences_of_gradients() {
    for run in [likelihood as Run, bond, chain, spring] {
        let (_, gradient, _) = gradients(run, &[]);
        let (x, direction, step) = ([0.4, 0.5, 0.6], [0.3, -0.2, 0.5], 1e-6);
        let (_, products) = directional(&gradient, &x, &direction).unwrap();
        let at = |sign: f64| {
            let moved: Vec<f64> =
                x.iter().zip(direction).map(|(x, d)| x + sign * step * d).collect();
            directional(&gradient, &moved, &[]).unwrap().0
        };
        let (above, below) = (at(1.0), at(-1.0));
        for ((product, above), below) in products.iter().zip(above).zip(below) {
            let difference = (above - below) / (2.0 * step);
            let allowed = 1e-6 * product.abs().max(1.0) + 1e-9 * above.abs() / step;
            assert!((product - difference).abs() <= allowed, "{product:e} {difference:e}");
        }
    }
}
