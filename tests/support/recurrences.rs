//! Programs whose loops have closed forms: on the tape, in twice the precision, and as
//! graphs of gradient and value.
#![allow(dead_code)] // Each target uses a part of it.

use std::panic::Location;

use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, eliminate_dead_code, interpret, reroll,
    simplify, verify,
};
use phigrad::trace::{Adjoints, Inputs, Trace, Tracer, sweep};

use super::bound::{neighbours, ulp};
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

/// The steps of a run as a graph, with loops where they repeat, in plain form as that
/// which is coarsened.
pub fn rolled(program: &impl Program, x: &[f64]) -> Graph {
    simplify(&reroll(&lifted(program, x), RerollLimits::default()), Folding::Real)
}

/// The steps of a run as a graph without loops, in plain form.
pub fn straight(program: &impl Program, x: &[f64]) -> Graph {
    simplify(&lifted(program, x), Folding::Real)
}

fn lifted(program: &impl Program, x: &[f64]) -> Graph {
    traced(program, x, |trace| {
        let mut lifted = Lifted::new(x.len(), 0);
        lifted.merge(trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
        Graph::clone(lifted.graph())
    })
}

/// The graph of gradient and value of what `graph` computes.
pub fn derived(graph: &Graph) -> Graph {
    let small = simplify(graph, Folding::Real);
    let gradient = reverse(&small, Wanted::GradientAndValue, Folding::Real);
    let gradient = eliminate_dead_code(&gradient);
    verify(&gradient).unwrap_or_else(|error| panic!("{error}\n{gradient}"));
    gradient
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

/// Where the tape's own error is four times smaller, by more than four ulps.
#[derive(Default)]
pub struct Worse {
    pub components: usize,
    pub found: Vec<String>,
}

pub type Terms = fn(&[f64], f64) -> f64;

/// Compares kernel and tape with the reference, as the project promises: an error
/// of four times the tape's, and four ulps of the result more. Where larger terms
/// cancel the ulps are those of the terms, whose size `terms` tells from the point
/// and the largest component.
pub fn compare(program: &impl Program, points: &[Vec<f64>], terms: Terms) -> Worse {
    compare_graph(&closed(&rolled(program, &points[0])), program, points, terms)
}

/// The same for a graph of gradient and value.
pub fn compare_graph(
    graph: &Graph,
    program: &impl Program,
    points: &[Vec<f64>],
    terms: Terms,
) -> Worse {
    let mut worse = Worse::default();
    for point in points {
        let Outcome::Values(got) = interpret(graph, point) else {
            worse.found.push(format!("no values at {point:?}"));
            continue;
        };
        let (tape, exact) = (taped(program, point), precise(program, point));
        // Of powers that have all but vanished the derivatives by coefficients of a
        // system whose eigenvalues are one are known to be worse.
        if exact[exact.len() - 1].abs() < program.least() {
            continue;
        }
        let largest = exact.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        for (index, ((got, tape), exact)) in got.iter().zip(&tape).zip(&exact).enumerate() {
            // Nor the tape nor the reference is of use where numbers underflow.
            if exact.abs() < 1e-290 && tape.abs() < 1e-290 {
                let allowed = 4.0 * ulp(terms(point, largest)) + 1e-289;
                if got.is_nan() || got.abs() > allowed {
                    worse.found.push(format!("{index} at {point:?}: {got:e} for {exact:e}"));
                }
                continue;
            }
            worse.components += 1;
            let (error, allowed) = ((got - exact).abs(), 4.0 * (tape - exact).abs());
            let ulps = 4.0 * ulp(exact.abs().max(terms(point, largest)));
            if error.is_nan() || error > allowed + ulps {
                let tape_error = (tape - exact).abs();
                worse.found.push(format!(
                    "{index} at {point:?}: {exact:e}, kernel off by {error:e}, tape {tape_error:e}"
                ));
            }
        }
    }
    worse
}

/// Random numbers of all sizes, some of them near one.
pub fn number(random: &mut Random) -> f64 {
    let near = 10f64.powf(random.uniform(-12.0, -2.0));
    match random.below(10) {
        0 => 0.0,
        1 => 1.0,
        2 => 1.0 - near,
        3 => near,
        4 => -0.5,
        5 => random.uniform(-1.0, 0.0),
        _ => random.uniform(0.0, 1.0),
    }
}

/// Where the error is more than four times the tape's, here and at points near to it, and
/// four ulps more.
#[derive(Default)]
pub struct Compared {
    pub points: usize,
    pub components: usize,
    pub found: Vec<String>,
    /// Those where it is more than sixteen times the tape's, and counts next to the largest.
    pub far: Vec<String>,
    /// At how many points a form was no number, and at how many the tape was none.
    pub unserved: usize,
    pub unmeasured: usize,
    /// At how many points a graph stopped.
    pub stopped: usize,
}

impl Compared {
    pub fn compare(
        &mut self,
        name: &str,
        graph: &Graph,
        program: &impl Program,
        points: &[Vec<f64>],
    ) {
        for point in points {
            match interpret(graph, point) {
                Outcome::Values(got) => self.compare_at(name, &got, program, point),
                _ => {
                    self.points += 1;
                    self.stopped += 1;
                }
            }
        }
    }

    /// The same for what comes out at one point: gradient and value.
    pub fn compare_at(&mut self, name: &str, got: &[f64], program: &impl Program, point: &[f64]) {
        let exact = precise(program, point);
        let largest = exact.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        self.points += 1;
        // Such powers are the tape's, and of what has underflown nobody knows the digits.
        if !exact.iter().all(|x| x.abs() < 1e150) || largest < 1e-250 {
            return;
        }
        // What is not finite is not given: a kernel with the loop serves.
        if !got.iter().all(|number| number.is_finite()) {
            self.unserved += 1;
            return;
        }
        let error_of_tape = |point: &[f64], exact: &[f64]| -> Vec<f64> {
            let tape = taped(program, point);
            tape.iter().zip(exact).map(|(tape, exact)| (tape - exact).abs()).collect()
        };
        let are_finite = |errors: &[f64]| errors.iter().all(|error| error.is_finite());
        let mut of_tape = error_of_tape(point, &exact);
        // Where it is no number the tape is no measure.
        if !are_finite(&of_tape) {
            self.unmeasured += 1;
            return;
        }
        let is_good = |of_tape: &[f64], index: usize| {
            let error: f64 = (got[index] - exact[index]).abs();
            // The reference has no more digits.
            error <= 4.0 * of_tape[index] + 4.0 * ulp(exact[index]) + 1e-28 * largest
        };
        self.components += got.len();
        if (0..got.len()).all(|index| is_good(&of_tape, index)) {
            return;
        }
        for other in neighbours(point) {
            let errors = error_of_tape(&other, &precise(program, &other));
            if are_finite(&errors) {
                of_tape.iter_mut().zip(errors).for_each(|(of, error)| *of = of.max(error));
            }
        }
        for index in (0..got.len()).filter(|&index| !is_good(&of_tape, index)) {
            let error = (got[index] - exact[index]).abs();
            let found = format!(
                "{name}, {index} at {point:?}: {:e}, off by {error:e}, tape {:e}, \
                 largest {largest:e}",
                exact[index], of_tape[index]
            );
            if error > 16.0 * of_tape[index] + 1e-13 * largest {
                self.far.push(found.clone());
            }
            self.found.push(found);
        }
    }

    #[track_caller]
    pub fn assert_none(&self) {
        assert!(self.unserved * 50 <= self.points, "{} unserved", self.unserved);
        assert!(self.stopped * 10 <= self.points, "{} stopped", self.stopped);
        assert_eq!(self.unmeasured, 0, "unmeasured");
        let shown = self.found.iter().take(20).cloned().collect::<Vec<String>>().join("\n");
        assert!(self.found.is_empty(), "{} of {}: {shown}", self.found.len(), self.components);
    }

    /// Of 5,000 components one may be worse, by little: in random programs the tape is right by
    /// chance that often, also next to a point.
    #[track_caller]
    pub fn assert_few(&self) {
        let shown = self.far.iter().chain(&self.found).take(20).cloned();
        let shown = shown.collect::<Vec<String>>().join("\n");
        assert!(self.unmeasured * 10 <= self.points, "{} unmeasured", self.unmeasured);
        let few = self.far.is_empty() && self.found.len() * 5000 <= self.components;
        assert!(few, "{} of {}: {shown}", self.found.len(), self.components);
        assert!(self.unserved * 50 <= self.points, "{} unserved", self.unserved);
        assert!(self.stopped * 10 <= self.points, "{} stopped", self.stopped);
    }
}
