//! Formulas of user programs in kernels: no less accurate than on the tape, and finite where the
//! tape is.

use crate::common::ulp::ulp;
use phigrad::{Numerics, Recorded, Tape, Var};

/// A formula, with accurate hand-written forms of its value and gradient.
struct Formula {
    name: &'static str,
    run: fn(&[Var]) -> Var,
    exact: fn(&[f64]) -> (f64, Vec<f64>),
    points: &'static [&'static [f64]],
}

fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    if x > 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

const SCALARS: &[&[f64]] =
    &[&[0.0], &[0.7], &[-0.7], &[3.0], &[-20.0], &[30.0], &[-100.0], &[100.0]];
const PAIRS: &[&[f64]] = &[&[3.0, 4.0], &[1.0, 1.0 + 1e-9], &[-2.0, 0.5], &[7.0, -7.5]];

const FORMULAS: &[Formula] = &[
    Formula {
        name: "softplus",
        run: |x| (x[0].exp() + 1.0).ln(),
        exact: |x| (softplus(x[0]), vec![sigmoid(x[0])]),
        points: SCALARS,
    },
    Formula {
        name: "logistic loss",
        run: |x| -(1.0 / (1.0 + (-(x[0] * x[1])).exp())).ln(),
        exact: |x| {
            let partial = -sigmoid(-(x[0] * x[1]));
            (softplus(-(x[0] * x[1])), vec![partial * x[1], partial * x[0]])
        },
        points: PAIRS,
    },
    Formula {
        name: "sigmoid",
        run: |x| 1.0 / (1.0 + (-x[0]).exp()),
        exact: |x| (sigmoid(x[0]), vec![sigmoid(x[0]) * sigmoid(-x[0])]),
        points: SCALARS,
    },
    Formula {
        name: "norm",
        run: |x| (x[0] * x[0] + x[1] * x[1]).sqrt(),
        exact: |x| {
            let norm = x[0].hypot(x[1]);
            (norm, vec![x[0] / norm, x[1] / norm])
        },
        points: PAIRS,
    },
    Formula {
        name: "quotient by the norm",
        run: |x| x[0] / (x[0] * x[0] + x[1] * x[1]).sqrt(),
        exact: |x| {
            let norm = x[0].hypot(x[1]);
            let cubed = norm * norm * norm;
            (x[0] / norm, vec![x[1] * x[1] / cubed, -x[0] * x[1] / cubed])
        },
        points: PAIRS,
    },
    Formula {
        name: "difference of squares over difference",
        run: |x| (x[0] * x[0] - x[1] * x[1]) / (x[0] - x[1]),
        exact: |x| (x[0] + x[1], vec![1.0, 1.0]),
        points: PAIRS,
    },
    Formula {
        name: "exponential less 1",
        run: |x| x[0].exp() - 1.0,
        exact: |x| (x[0].exp_m1(), vec![x[0].exp()]),
        points: SCALARS,
    },
    Formula {
        name: "logarithm near 1",
        run: |x| (x[0] * x[0] + 1.0).ln(),
        exact: |x| ((x[0] * x[0]).ln_1p(), vec![2.0 * x[0] / (x[0] * x[0] + 1.0)]),
        points: SCALARS,
    },
    Formula {
        name: "powers",
        run: |x| x[0].powi(3) * x[0].powi(2) + (x[0] * x[0] + 1.0).powf(1.5) / (x[0] * x[0] + 1.0),
        exact: |x| {
            let root = (x[0] * x[0] + 1.0).sqrt();
            (x[0].powi(5) + root, vec![5.0 * x[0].powi(4) + x[0] / root])
        },
        points: SCALARS,
    },
];

fn compiled(run: fn(&[Var]) -> Var, at: &[f64]) -> Recorded<fn(&[Var]) -> Var> {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
    for _ in 0..2 {
        f.eval(at).unwrap();
        f.grad(at).unwrap();
        f.value_and_grad(at).unwrap();
        f.compile().unwrap();
    }
    f
}

#[test]
fn kernels_are_no_less_accurate_than_the_tape() {
    for Formula { name, run, exact, points } in FORMULAS {
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
        let on_tape = builder.numerics(Numerics::Exact).record(*run);
        let in_kernel = compiled(*run, points[0]);
        for &x in *points {
            let (value, partials) = exact(x);
            let calls = in_kernel.report().kernel_calls;
            let taped = on_tape.value_and_grad(x).unwrap();
            let got = in_kernel.value_and_grad(x).unwrap();
            assert_eq!(in_kernel.grad(x).unwrap(), got.1, "{name} {x:?}");
            let parts = partials.iter().zip(&taped.1).zip(&got.1);
            let parts = parts.map(|((&exact, &taped), &got)| (exact, taped, got));
            for (exact, taped, got) in parts.chain([(value, taped.0, got.0)]) {
                if taped.is_finite() {
                    // The hand-written forms have rounding errors, too.
                    let bound = 4.0 * (taped - exact).abs() + 6.0 * ulp(exact);
                    assert!(
                        (got - exact).abs() <= bound,
                        "{name} {x:?}: {got} in the kernel, {taped} on the tape, {exact}"
                    );
                    assert!(in_kernel.report().kernel_calls > calls, "{name} {x:?}");
                }
            }
        }
    }
}

#[test]
fn kernels_are_finite_where_the_tape_overflows() {
    let softplus = compiled(|x| (x[0].exp() + 1.0).ln(), &[0.5]);
    let calls = softplus.report().kernel_calls;
    assert_eq!(softplus.value_and_grad(&[800.0]).unwrap(), (800.0, vec![1.0]));
    assert_eq!(softplus.value_and_grad(&[-800.0]).unwrap(), (0.0, vec![0.0]));
    assert_eq!(softplus.report().kernel_calls, calls + 2);
    let loss = compiled(|x| -(1.0 / (1.0 + (-(x[0] * x[1])).exp())).ln(), &[0.5, 0.25]);
    assert_eq!(loss.value_and_grad(&[-800.0, 1.0]).unwrap(), (800.0, vec![-1.0, 800.0]));
}

#[test]
fn differences_near_1_keep_their_digits() {
    type Case = (fn(&[Var]) -> Var, fn(f64) -> f64);
    let cases: [Case; 4] = [
        (|x| x[0].exp() - 1.0, f64::exp_m1),
        (|x| 2.0 * (x[0].exp() + -1.0), |x| 2.0 * x.exp_m1()),
        (|x| (x[0] + 1.0).ln(), f64::ln_1p),
        (|x| (1.0 + x[0] * x[0]).ln(), |x| (x * x).ln_1p()),
    ];
    for (number, (run, exact)) in cases.into_iter().enumerate() {
        let kernel = compiled(run, &[0.3]);
        for x in [1e-3, -1e-3, 1e-9, -1e-9, 1e-12, 0.3, -0.3, 2.0] {
            let (exact, calls) = (exact(x), kernel.report().kernel_calls);
            for got in [kernel.eval(&[x]).unwrap(), kernel.value_and_grad(&[x]).unwrap().0] {
                assert!((got - exact).abs() <= 2.0 * ulp(exact), "{number} {x}: {got} {exact}");
            }
            assert_eq!(kernel.report().kernel_calls, calls + 2);
        }
    }
}

/// The logarithm of a probability p of a logistic model where it is tiny, alone and beside
/// that of 1 - p.
#[test]
fn logarithms_of_logistic_functions_agree_in_all_kernels() {
    let alone: [fn(&[Var]) -> Var; 3] = [
        |x| (1.0 / (1.0 + (-x[0]).exp())).ln(),
        |x| ((-x[0]).exp() + 1.0).recip().ln(),
        |x| (1.0 - 1.0 / (1.0 + x[0].exp())).ln(),
    ];
    for (number, run) in alone.into_iter().enumerate() {
        let kernel = compiled(run, &[0.5]);
        for x in [-1e5, -800.0, -710.0, -700.0, -40.0, -1.0, 0.0, 0.5, 40.0, 800.0, 1e5] {
            let calls = kernel.report().kernel_calls;
            let (value, partials) = kernel.value_and_grad(&[x]).unwrap();
            let (exact, partial) = (-softplus(-x), sigmoid(-x));
            assert!((value - exact).abs() <= 4.0 * ulp(exact), "{number} {x}: {value} {exact}");
            assert!(
                (partials[0] - partial).abs() <= 4.0 * ulp(partial),
                "{number} {x}: {partials:?}"
            );
            assert_eq!(kernel.grad(&[x]).unwrap(), partials, "{number} {x}");
            let again = kernel.eval(&[x]).unwrap();
            assert!((again - exact).abs() <= 4.0 * ulp(exact), "{number} {x}: {again} {exact}");
            assert_eq!(kernel.report().kernel_calls, calls + 3, "{number} {x}");
        }
    }
}

#[test]
fn likelihoods_of_logistic_models_agree_in_all_kernels() {
    const DATA: [(f64, f64); 7] =
        [(1.0, 1.0), (2.0, 0.0), (-1.5, 1.0), (0.3, 0.0), (0.4, 1.0), (0.5, 0.0), (-2.0, 1.0)];
    fn loss(x: &[Var], data: &[(f64, f64)]) -> Var {
        let mut loss = Var::from(0.0);
        for &(feature, label) in data {
            let p = 1.0 / (1.0 + (-(x[0] * feature + x[1])).exp());
            loss -= label * p.ln() + (1.0 - label) * (1.0 - p).ln();
        }
        loss
    }
    let runs: [fn(&[Var]) -> Var; 4] = [
        |x| loss(x, &DATA[..1]),
        |x| loss(x, &DATA[..3]),
        |x| loss(x, &DATA[..6]),
        |x| loss(x, &DATA),
    ];
    for (run, count) in runs.into_iter().zip([1, 3, 6, 7]) {
        let kernel = compiled(run, &[0.5, 0.1]);
        for x in [[0.5, 0.1], [-800.0, 1.0], [800.0, 1.0], [2000.0, -900.0], [30.0, -2.0]] {
            let (mut value, mut partials) = (0.0, [0.0; 2]);
            for &(feature, label) in &DATA[..count] {
                let z: f64 = x[0] * feature + x[1];
                value += softplus(if label == 1.0 { -z } else { z });
                let partial = if label == 1.0 { -sigmoid(-z) } else { sigmoid(z) };
                partials = [partials[0] + partial * feature, partials[1] + partial];
            }
            let calls = kernel.report().kernel_calls;
            let (got, got_partials) = kernel.value_and_grad(&x).unwrap();
            let again = (kernel.eval(&x).unwrap(), kernel.grad(&x).unwrap());
            assert_eq!(kernel.report().kernel_calls, calls + 3, "{count} {x:?}");
            let all = [(got, value), (again.0, value)].into_iter();
            let partials = got_partials.iter().zip(partials).chain(again.1.iter().zip(partials));
            for (got, exact) in all.chain(partials.map(|(&got, exact)| (got, exact))) {
                let bound = 1e-14 * exact.abs() + 1e-15;
                assert!((got - exact).abs() <= bound, "{count} {x:?}: {got} {exact}");
            }
        }
    }
}
