//! Programs whose loops have closed forms: on the tape, in twice the precision, and as
//! graphs of gradient and value.
#![allow(dead_code)] // Each target uses a part of it.

use std::panic::Location;

use phigrad::Var;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, eliminate_dead_code, fuse, interpret,
    reroll, simplify, verify,
};
use phigrad::trace::{Adjoints, Inputs, Trace, Tracer, sweep};

use super::precise::{Dual, Number};

/// A function of its inputs.
pub trait Program {
    fn eval<T: Number>(&self, x: &[T]) -> T;

    /// What `eval` comes to, where twice the digits are too few for its steps.
    fn reference(&self, x: &[Dual]) -> Dual {
        self.eval(x)
    }

    /// What is nearer to zero is not compared.
    fn least(&self) -> f64 {
        0.0
    }
}

/// A program that is told how many steps it takes.
pub trait Stepped {
    fn eval<T: Number>(&self, x: &[T], steps: usize) -> T;

    /// The program of so many steps.
    fn of(&self, steps: usize) -> Steps<'_, Self> {
        Steps { program: self, steps }
    }
}

/// A program of a known number of steps.
pub struct Steps<'a, S: ?Sized> {
    program: &'a S,
    steps: usize,
}

impl<S: Stepped> Program for Steps<'_, S> {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        self.program.eval(x, self.steps)
    }
}

fn traced<T>(program: &impl Program, x: &[f64], look: impl FnOnce(&Trace<'_>) -> T) -> T {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: &[] };
    let run = |x: &[Var], _: &[Var]| program.eval::<Var>(x);
    look(&tracer.run(run, inputs, 1 << 24, Location::caller()).unwrap())
}

/// Gradient and value in one list.
pub fn taped(program: &impl Program, x: &[f64]) -> Vec<f64> {
    traced(program, x, |trace| {
        let gradient = sweep(trace, &mut Adjoints::default()).to_vec();
        [gradient, vec![trace.value()]].concat()
    })
}

/// The same in twice the precision, rounded.
pub fn precise(program: &impl Program, x: &[f64]) -> Vec<f64> {
    let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
    let y = program.reference(&inputs);
    (0..x.len()).map(|i| y.slope(i)).chain([y.value()]).collect()
}

/// The steps of a run as a graph, with loops where they repeat.
pub fn rolled(program: &impl Program, x: &[f64]) -> Graph {
    traced(program, x, |trace| {
        let mut lifted = Lifted::new(x.len(), 0);
        lifted.merge(trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
        reroll(lifted.graph(), RerollLimits::default())
    })
}

/// The graph of gradient and value of what `graph` computes.
pub fn derived(graph: &Graph) -> Graph {
    let small = simplify(graph, Folding::Real);
    let gradient = reverse(&small, Wanted::GradientAndValue, Folding::Real);
    let fused = fuse(&eliminate_dead_code(&gradient));
    verify(&fused).unwrap_or_else(|error| panic!("{error}\n{fused}"));
    fused
}

/// The graph of gradient and value, with closed forms; there may be loops left.
pub fn solved(rolled: &Graph) -> Graph {
    let solved = solve_all(rolled);
    verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}", solved.graph));
    derived(&solved.graph)
}

/// The same, without a loop.
pub fn closed(rolled: &Graph) -> Graph {
    let closed = solved(rolled);
    assert!(closed.regions.is_empty(), "{:?}\n{rolled}", solve_all(rolled).refused);
    closed
}

pub fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::MIN_POSITIVE);
    f64::from_bits(x.to_bits() + 1) - x
}

/// Values of a graph at a point.
pub fn values(graph: &Graph, x: &[f64]) -> Vec<f64> {
    match interpret(graph, x) {
        Outcome::Values(values) => values,
        other => panic!("{other:?} at {x:?}"),
    }
}
