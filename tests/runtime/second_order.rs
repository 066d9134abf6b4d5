//! Derivatives along a direction, Hessian products and Hessians: by kernels as on the tape, and
//! against differences of gradients.

use phigrad::internals::Random;
use phigrad::{Limits, Numerics, Purpose, Recorded, Refusal, Tape, Var, traced};

use crate::common::random_programs::Recipe;
use crate::common::served::{NUMERICS, limits, manual};

fn rosenbrock(x: &[Var]) -> Var {
    x.windows(2).map(|w| (1.0 - w[0]).powi(2) + 100.0 * (w[1] - w[0] * w[0]).powi(2)).sum()
}

/// A loop without closed form, with a branch.
#[traced]
fn driven(x: &[Var]) -> Var {
    let (mut y, mut cost) = (x[0], Var::from(0.0));
    for k in 0..60 {
        let force = if y > x[1] { -x[2] * y } else { (x[2] * f64::from(k)).sin() };
        y += 0.1 * (force - y.powi(3));
        cost += y * y * x[3].exp();
    }
    cost
}

/// A recurrence with a closed form.
fn growth(x: &[Var]) -> Var {
    (0..200).fold(x[0], |y, _| y * (1.0 + 0.01 * x[1]) + x[2]) * x[3]
}

/// A loop whose trip count depends on the inputs.
#[traced]
fn root(x: &[Var]) -> Var {
    let mut y = 1.0 + x[1] * x[1];
    while (y * y * y - x[0] - 2.0).abs() > 1e-9 {
        y -= (y * y * y - x[0] - 2.0) / (3.0 * y * y);
    }
    y * x[2] + x[3] * x[3].sin()
}

type Function = fn(&[Var]) -> Var;

const PROGRAMS: [(&str, Function); 4] =
    [("rosenbrock", rosenbrock), ("driven", driven), ("growth", growth), ("root", root)];

fn vector(random: &mut Random) -> Vec<f64> {
    (0..4).map(|_| random.uniform(-0.9, 0.9)).collect()
}

fn assert_near(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= tolerance * largest, "{name}: {found:?} {expected:?}");
    }
}

/// The Hessian product by a difference of gradients; `None` if both are on different paths, so that
/// it depends on the step.
fn product<F: Fn(&[Var]) -> Var>(f: &Recorded<F>, x: &[f64], v: &[f64]) -> Option<Vec<f64>> {
    let [one, two] = [1e-5, 2e-5].map(|step| difference(f, x, v, step));
    let largest = one.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    one.iter().zip(&two).all(|(a, b)| (a - b).abs() < 1e-5 * largest).then_some(one)
}

fn difference<F: Fn(&[Var]) -> Var>(f: &Recorded<F>, x: &[f64], v: &[f64], step: f64) -> Vec<f64> {
    let at = |sign: f64| {
        let moved: Vec<f64> = x.iter().zip(v).map(|(x, v)| x + sign * step * v).collect();
        f.grad(&moved).unwrap()
    };
    let (above, below) = (at(1.0), at(-1.0));
    above.iter().zip(below).map(|(above, below)| (above - below) / (2.0 * step)).collect()
}

#[test]
fn kernels_and_tape_agree_and_products_are_differences_of_gradients() {
    for numerics in NUMERICS {
        for (name, program) in PROGRAMS {
            let tape = Tape::builder().tape_only().numerics(numerics).record(program);
            let f = manual(numerics).record(program);
            let mut random = Random::new(3);
            for _ in 0..80 {
                f.hvp(&vector(&mut random), &[0.0; 4]).unwrap();
                f.jvp(&vector(&mut random), &[0.0; 4]).unwrap();
            }
            f.compile().unwrap();
            let (before, mut compared) = (f.report().kernel_calls, 0);
            for _ in 0..20 {
                let (x, v) = (vector(&mut random), vector(&mut random));
                let found = tape.hvp(&x, &v).unwrap();
                if let Some(expected) = product(&tape, &x, &v) {
                    assert_near(name, &found, &expected, 1e-5);
                    compared += 1;
                }
                assert_near(name, &f.hvp(&x, &v).unwrap(), &found, 1e-9);
                let gradient = tape.grad(&x).unwrap();
                let along: f64 = gradient.iter().zip(&v).map(|(g, v)| g * v).sum();
                assert_near(name, &[tape.jvp(&x, &v).unwrap()], &[along], 1e-10);
                assert_near(name, &[f.jvp(&x, &v).unwrap()], &[along], 1e-9);
            }
            let served = f.report().kernel_calls - before;
            assert!(compared > 10, "{name}: {compared}");
            assert!(served > 30, "{name} {numerics:?}: {served}\n{}", f.report());
        }
    }
}

#[test]
fn hessians_are_symmetric_and_of_all_pieces() {
    let f = Tape::record_with(|x: &[Var], data: &[Var]| {
        data.iter().map(|&d| (x[0] * d + x[1] - d.sin()).powi(2) * x[2].exp()).sum::<Var>()
    });
    let (x, data) = ([0.3, -0.2, 0.5], [0.5, 1.5, 2.5]);
    let (mut gradient, mut hessian) = ([0.0; 3], [0.0; 9]);
    for round in 0..2 {
        let value = f.value_grad_hessian_into(&x, &data, &mut gradient, &mut hessian).unwrap();
        assert_eq!((value, gradient.to_vec()), f.value_and_grad(&x, &data).unwrap());
        assert_near("hessian", &hessian, &f.hessian(&x, &data).unwrap(), 0.0);
        for (row, column) in [(0, 1), (0, 2), (1, 2)] {
            let pair = (hessian[3 * row + column], hessian[3 * column + row]);
            assert!((pair.0 - pair.1).abs() < 1e-12 * pair.0.abs().max(1.0), "{pair:?}");
        }
        // ∂²/∂x₁² = 2·n·exp(x₂).
        assert!((hessian[4] - 6.0 * 0.5f64.exp()).abs() < 1e-12, "round {round}: {hessian:?}");
        f.compile().unwrap();
    }
    assert!(f.report().kernels.iter().any(|kernel| kernel.purpose == Purpose::Hessian));
}

#[test]
fn random_programs_have_the_same_second_derivatives_in_kernels() {
    let recipe = Recipe::default();
    let mut random = Random::new(21);
    let mut compared = 0;
    for _ in 0..60 {
        let program = recipe.program(&mut random);
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let f = manual(Numerics::Real).record_with(run);
        let tape = Tape::builder().tape_only().record_with(run);
        let points: Vec<(Vec<f64>, Vec<f64>)> =
            (0..8).map(|_| recipe.inputs(&mut random)).collect();
        let v: Vec<f64> = (0..program.active()).map(|_| random.uniform(-1.0, 1.0)).collect();
        for (x, data) in &points {
            f.hvp(x, data, &v).unwrap();
            f.jvp(x, data, &v).unwrap();
        }
        if f.compile().is_err() {
            continue;
        }
        for (x, data) in &points {
            let (found, expected) = (f.hvp(x, data, &v).unwrap(), tape.hvp(x, data, &v).unwrap());
            if expected.iter().all(|number| number.abs() < 1e6) {
                assert_near(&program.to_string(), &found, &expected, 1e-7);
                compared += 1;
            }
            let (found, expected) = (f.jvp(x, data, &v).unwrap(), tape.jvp(x, data, &v).unwrap());
            if expected.abs() < 1e6 {
                assert_near(&program.to_string(), &[found], &[expected], 1e-8);
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn lengths_are_checked_and_long_calls_are_refused() {
    let f = Tape::record(rosenbrock);
    let x = [0.5; 3];
    assert!(f.jvp(&x, &[1.0; 2]).unwrap_err().is_shape());
    assert!(f.hvp(&x, &[1.0; 4]).unwrap_err().is_shape());
    assert!(f.hvp_into(&x, &[1.0; 3], &mut [0.0; 2]).unwrap_err().is_shape());
    assert!(f.hessian_into(&x, &mut [0.0; 8]).unwrap_err().is_shape());
    assert!(f.value_grad_hessian_into(&x, &mut [0.0; 2], &mut [0.0; 9]).unwrap_err().is_shape());
    assert!(f.hessian(&[]).unwrap().is_empty());
    let limits = limits(|limits: &mut Limits| limits.trace_events = 5);
    let f = Tape::builder().limits(limits).record(rosenbrock);
    let error = f.hvp(&x, &[1.0; 3]).unwrap_err();
    assert!(error.is_too_long() && error.to_string().contains("Limits::trace_events"), "{error}");
    assert_eq!(f.grad(&x).unwrap(), Tape::record(rosenbrock).grad(&x).unwrap());
    assert!(matches!(f.report().refusals[..], [Refusal::LongRun { .. }]));
}

/// A loop in which a number without derivative is recomputed, and one with a closed form.
#[traced]
fn detached(x: &[Var]) -> Var {
    let (mut y, mut weight) = (x[0], x[1]);
    for _ in 0..40 {
        weight = 0.5 * weight.detach() + y * y;
        y += 0.05 * (x[1] - y) * weight.detach();
        if y > 2.0 {
            y = y.detach() + x[2];
        }
    }
    y * y + (0..50).fold(x[0].detach() * x[3], |sum, _| 1.01 * sum + x[3])
}

#[test]
fn detached_numbers_are_recomputed_and_have_no_derivative() {
    for numerics in NUMERICS {
        let tape = Tape::builder().tape_only().numerics(numerics).record(detached);
        let f = manual(numerics).record(detached);
        let mut random = Random::new(8);
        for _ in 0..20 {
            let (x, v) = (vector(&mut random), vector(&mut random));
            f.value_and_grad(&x).unwrap();
            f.hvp(&x, &v).unwrap();
            f.jvp(&x, &v).unwrap();
        }
        f.compile().unwrap();
        let before = f.report().kernel_calls;
        for _ in 0..20 {
            let (x, v) = (vector(&mut random), vector(&mut random));
            let (expected, found) =
                (tape.value_and_grad(&x).unwrap(), f.value_and_grad(&x).unwrap());
            assert_near("value", &[found.0], &[expected.0], 1e-12);
            assert_near("gradient", &found.1, &expected.1, 1e-12);
            let along: f64 = expected.1.iter().zip(&v).map(|(g, v)| g * v).sum();
            assert_near("jvp", &[f.jvp(&x, &v).unwrap()], &[along], 1e-11);
            assert_near("hvp", &f.hvp(&x, &v).unwrap(), &tape.hvp(&x, &v).unwrap(), 1e-10);
        }
        assert!(f.report().kernel_calls - before > 50, "{}", f.report());
    }
    // The derivative by x of (detach(x)·x)·(detach(x)·y) is that with the detached numbers fixed.
    let f = Tape::record(|x: &[Var]| x[0].detach().powi(2) * x[0] * x[1]);
    for x in [[3.0, 5.0], [2.0, 7.0]] {
        assert_eq!(f.value_and_grad(&x).unwrap().1, [x[0] * x[0] * x[1], x[0].powi(3)]);
        assert_eq!(f.hessian(&x).unwrap(), [0.0, x[0] * x[0], x[0] * x[0], 0.0]);
        assert_eq!(f.jvp(&x, &[1.0, 0.0]).unwrap(), x[0] * x[0] * x[1]);
        f.compile().unwrap();
    }
    assert_eq!(f.report().paths, 1);
}

/// A loop over pairs with a branch, of any number of inputs.
#[traced]
fn energies(x: &[Var]) -> Var {
    let (mut energy, mut memory) = (Var::from(0.0), x[0]);
    for round in 0..12 {
        for i in 1..x.len() {
            let d = x[i] - x[i - 1] * memory;
            memory = memory * 0.5 + if d > 0.0 { d } else { (d * f64::from(round)).sin() };
            energy += d * d * (1.0 + memory * memory).ln();
        }
    }
    energy
}

/// Hessians whose columns are computed along axes and in groups.
#[test]
fn hessians_of_loops_in_one_run_and_in_groups() {
    let mut random = Random::new(37);
    for inputs in [2, 7, 16, 17, 40] {
        let tape = Tape::builder().tape_only().record(energies);
        let kernel = manual(Numerics::Real).record(energies);
        let mut served = 0;
        for round in 0..40 {
            let x: Vec<f64> = (0..inputs).map(|_| random.uniform(0.2, 0.9)).collect();
            let expected = tape.hessian(&x).unwrap();
            let before = kernel.report().kernel_calls;
            let name = format!("{inputs} inputs, round {round}");
            assert_near(&name, &kernel.hessian(&x).unwrap(), &expected, 1e-9);
            served += kernel.report().kernel_calls - before;
            let sparse = kernel.sparse_hessian(&x).unwrap().to_dense();
            assert_near(&format!("sparse, {name}"), &sparse, &expected, 1e-9);
            if round % 10 == 8 {
                kernel.compile().unwrap();
            }
        }
        assert!(served > 0, "{inputs} inputs: {served}\n{}", kernel.report());
    }
}
