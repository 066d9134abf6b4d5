//! Loops in loops that are affine: one closed form stands for the whole nest, and its
//! values and gradients are as good as those of the tape.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/precise.rs"]
mod precise;

use std::panic::Location;

use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::phi::recurrence::solve_all;
use phigrad::ssa::{
    Folding, Graph, Lifted, Outcome, Paths, RerollLimits, eliminate_dead_code, fuse, interpret,
    reroll, simplify, verify,
};
use phigrad::trace::{Adjoints, Inputs, Tracer, sweep};
use precise::{Dual, Number};

trait Program {
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

/// A number of programs: which one, and how often both loops are gone through.
#[derive(Clone, Copy, Debug)]
struct Nest {
    kind: usize,
    outer: usize,
    inner: usize,
}

const KINDS: usize = 9;

impl Program for Nest {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut y, mut z) = (x[0], x[3]);
        for _ in 0..self.outer {
            for _ in 0..self.inner {
                match self.kind {
                    // An account with interest and payments.
                    0 => y = y * (T::from(1.0) + x[1] * T::from(1.0 / 120.0)) + x[2],
                    1 => y = y * x[1] + x[2],
                    // Gradient descent.
                    2 | 3 => y = y - x[1] * (y - x[2]),
                    4 => y = y * x[1],
                    // The inner loop uses a number that only the outer one changes.
                    5 => y = y * x[1] + z,
                    6 => {
                        y = y * x[1] + z * x[2];
                        z = z * T::from(0.5) + x[3];
                    }
                    7 => y = y * T::from(0.9) + x[1] * T::from(0.25),
                    _ => {
                        for _ in 0..5 {
                            y = y * x[1] + x[2];
                        }
                        y = y - x[3];
                    }
                }
            }
            match self.kind {
                0 | 1 | 4 => y = y - x[3],
                2 => {}
                3 => y = y * x[3],
                5 => z = z * x[3],
                6 => y = y + x[3],
                7 => y = y * x[2],
                _ => y = y * x[3] + x[2],
            }
        }
        if self.kind == 5 || self.kind == 6 { y * z } else { y }
    }
}

fn nests() -> Vec<Nest> {
    let sizes = [(30, 10), (60, 70)];
    // The smaller nest of two numbers is not worth its closed form.
    let of = |kind| sizes.map(|(outer, inner)| Nest { kind, outer, inner });
    let is_worth = |nest: &Nest| nest.kind != 6 || nest.outer == 60;
    (0..KINDS).flat_map(of).filter(is_worth).collect()
}

#[test]
fn nests_are_as_good_as_the_tape() {
    let (mut random, mut found) = (Random::new(0x4E57), Vec::new());
    for nest in nests() {
        let points: Vec<Vec<f64>> = (0..16)
            .map(|at| {
                let factor = match at % 4 {
                    0 => random.uniform(0.0, 1.0),
                    1 => 1.0 - random.uniform(0.0, 1e-3) * random.uniform(0.0, 1.0),
                    2 => 1.0 + random.uniform(-1e-9, 1e-9),
                    _ => random.uniform(-1.0, 1.0),
                };
                let mut others = || random.uniform(-2.0, 2.0);
                let mut point = vec![others(), factor, others(), others()];
                if at == 0 {
                    point[1] = 1.0;
                } else if at == 4 {
                    point[1] = 0.0;
                }
                // Rates of descent are not negative, and products are to stay finite.
                if nest.kind == 2 || nest.kind == 3 {
                    point[1] = point[1].abs();
                }
                if nest.kind == 3 || nest.kind == 8 {
                    point[3] *= 0.5;
                }
                point
            })
            .collect();
        let worse = compare(&nest, &points, |_, _| 0.0);
        assert!(worse.components > 0);
        found.extend(worse.found.into_iter().map(|worse| format!("{nest:?}: {worse}")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Value and gradient in one list.
fn taped(program: &impl Program, x: &[f64]) -> Vec<f64> {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: x, inactive: &[] };
    let trace =
        tracer.run(|x, _| program.eval::<Var>(x), inputs, 1 << 24, Location::caller()).unwrap();
    let value = trace.value();
    let gradient = sweep(&trace, &mut Adjoints::default()).to_vec();
    [gradient, vec![value]].concat()
}

fn lifted(program: &impl Program, x: &[f64]) -> Graph {
    let mut tracer = Tracer::default();
    let mut lifted = Lifted::new(x.len(), 0);
    let inputs = Inputs { active: x, inactive: &[] };
    let trace =
        tracer.run(|x, _| program.eval::<Var>(x), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
    Graph::clone(lifted.graph())
}

fn precise(program: &impl Program, x: &[f64]) -> Vec<f64> {
    let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
    let y = program.reference(&inputs);
    let mut all: Vec<f64> = (0..x.len()).map(|i| y.slope(i)).collect();
    all.push(y.value());
    all
}

/// The graph of gradient and value, without a loop.
fn closed(program: &impl Program, x: &[f64]) -> Graph {
    derived(&reroll(&lifted(program, x), RerollLimits::default()))
}

fn derived(rolled: &Graph) -> Graph {
    let solved = solve_all(rolled);
    verify(&solved.graph).unwrap_or_else(|error| panic!("{error}\n{}", solved.graph));
    let small = simplify(&solved.graph, Folding::Real);
    let gradient = reverse(&small, Wanted::GradientAndValue, Folding::Real);
    let fused = fuse(&eliminate_dead_code(&gradient));
    verify(&fused).unwrap();
    assert!(fused.regions.is_empty(), "{:?}\n{rolled}", solved.refused);
    fused
}

fn ulp(x: f64) -> f64 {
    let x = x.abs().max(f64::MIN_POSITIVE);
    f64::from_bits(x.to_bits() + 1) - x
}

/// Where the tape's own error is four times smaller, by more than four ulps.
struct Worse {
    components: usize,
    found: Vec<String>,
}

type Terms = fn(&[f64], f64) -> f64;

/// Compares kernel and tape with the reference, as the project promises: an error
/// of four times the tape's, and four ulps of the result more. Where larger terms
/// cancel the ulps are those of the terms, whose size `terms` tells from the point
/// and the largest component.
fn compare(program: &impl Program, points: &[Vec<f64>], terms: Terms) -> Worse {
    compare_graph(&closed(program, &points[0]), program, points, terms)
}

fn compare_graph(
    graph: &Graph,
    program: &impl Program,
    points: &[Vec<f64>],
    terms: Terms,
) -> Worse {
    let mut worse = Worse { components: 0, found: Vec::new() };
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

#[test]
fn the_form_of_a_nest_is_told_from_the_inside_out() {
    let nest = Nest { kind: 0, outer: 100, inner: 120 };
    let rolled = reroll(&lifted(&nest, &[1.0, 0.5, 0.25, 2.0]), RerollLimits::default());
    let solved = solve_all(&rolled);
    let forms: Vec<&str> = solved.applied.iter().map(|formula| formula.form.as_str()).collect();
    let growth = "(1 + 0.008333333333333333·x₁)";
    let inner = "a^120·p + b·Σ_{j<120} a^j, where p = φ_L(x₀, …), \
                 a = 1 + 0.008333333333333333·x₁, b = x₂";
    let outer = format!(
        "a^100·p + b·Σ_{{j<100}} a^j, where p = x₀, a = {growth}^120, \
         b = x₂·Σ_{{j<120}} {growth}^j + −x₃"
    );
    assert_eq!(forms, [inner, &outer]);
    assert!(solved.graph.regions.is_empty());
}

#[test]
fn a_nest_that_is_not_affine_stays() {
    let mut tracer = Tracer::default();
    let program = |x: &[Var], _: &[Var]| {
        let (mut w, mut rate) = (x[0], x[1]);
        for _ in 0..20 {
            for _ in 0..50 {
                w -= rate * (w - 1.0);
            }
            rate *= x[2];
        }
        w
    };
    let inputs = Inputs { active: &[0.5, 0.1, 0.9], inactive: &[] };
    let trace = tracer.run(program, inputs, 1 << 24, Location::caller()).unwrap();
    let mut lifted = Lifted::new(3, 0);
    lifted.merge(&trace, Paths { paths: 1, nodes: 1 << 24 }).unwrap();
    let solved = solve_all(&reroll(lifted.graph(), RerollLimits::default()));
    assert!(!solved.graph.regions.is_empty());
    assert!(!solved.refused.is_empty());
}
