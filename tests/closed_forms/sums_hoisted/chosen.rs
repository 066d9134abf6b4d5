//! Terms chosen by branches on inactive inputs.

use phigrad::internals::{LoopForm, Tuning};
use phigrad::{Tape, Var, traced};

use super::{DATA, Program, data};

/// Squares of residuals above a line, and of residuals below another one.
#[traced]
fn sided(x: &[Var], d: &[Var]) -> Var {
    let mut all = x[0] * 0.0;
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..20 {
        let mut sum = a * 0.0;
        for i in 0..DATA {
            if d[i] > d[DATA + i] {
                let residual = a * d[i] - d[DATA + i];
                sum += residual * residual;
            } else {
                let residual = b * d[i] - d[DATA + i];
                sum += residual * residual;
            }
        }
        all = all * 0.5 + sum;
        (a, b) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25);
    }
    all
}

/// Slopes of lines through data above zero.
#[traced]
fn positive(x: &[Var], d: &[Var]) -> Var {
    let mut w = x[0];
    for _ in 0..20 {
        let mut slope = w * 0.0;
        for i in 0..DATA {
            if d[i] > 0.0 {
                slope += (w * d[i] - d[DATA + i]) * d[i];
            }
        }
        w -= x[1] * slope;
    }
    w
}

/// Descent with weights that bound the influence of outliers.
#[traced]
fn bounded(x: &[Var], d: &[Var]) -> Var {
    let mut w = x[0];
    for _ in 0..20 {
        let mut slope = w * 0.0;
        for i in 0..DATA {
            let weight = if d[i].abs() > 0.5 { 0.5 / d[i].abs() } else { Var::from(1.0) };
            slope += weight * (w * d[i] - d[DATA + i]) * d[i];
        }
        w -= x[1] * slope;
    }
    w
}

/// Cubes of residuals of one sign, and squares with weights of the others.
#[traced]
fn lopsided(x: &[Var], d: &[Var]) -> Var {
    let mut all = x[0] * 0.0;
    let mut w = x[0];
    for _ in 0..120 {
        let mut sum = w * 0.0;
        for i in 0..DATA {
            let residual = w * d[i] - d[DATA + i];
            if d[i] > d[DATA + i] {
                sum += residual * residual * residual;
            } else {
                sum -= residual * residual * d[i];
            }
        }
        all = all * 0.5 + sum;
        w = w * 0.75 + x[1];
    }
    all
}

#[test]
fn inactive_branches_choose_terms() {
    for (f, inputs) in [
        (sided as Program, [0.4, 1.1]),
        (positive, [0.3, 0.01]),
        (bounded, [0.3, 0.01]),
        (lopsided, [0.3, 0.1]),
    ] {
        let f = |x: &[Var], d: &[Var]| f(x, d);
        let recorded = Tape::record_with(f);
        let first = data(0.2, 1.0, 0.3);
        // Both arms of each comparison are recorded.
        let swapped = [&first[DATA..], &first[..DATA]].concat();
        let negative: Vec<f64> = first.iter().map(|x| -x).collect();
        for seen in [&first, &swapped, &negative] {
            recorded.value_and_grad(&inputs, seen).unwrap();
        }
        recorded.compile().unwrap();
        let explanation = recorded.explain().unwrap();
        let closed = &explanation.closed.text;
        let before = recorded.report().kernel_calls;
        for data in [data(0.2, 1.0, 0.3), data(0.2, 1.0, 0.1), data(0.0, 0.5, 1.0)] {
            let plain = Tape::builder().hot_threshold(u32::MAX).record_with(f);
            let expected = plain.value_and_grad(&inputs, &data).unwrap();
            let found = recorded.value_and_grad(&inputs, &data).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs().max(1e-3);
            assert!(near(found.0, expected.0), "{} {}\n{closed}", found.0, expected.0);
            let both = found.1.iter().zip(&expected.1);
            assert!(both.into_iter().all(|(a, b)| near(*a, *b)), "{found:?} {expected:?}");
        }
        assert!(recorded.report().kernel_calls > before);
    }
}

/// Slopes of lines through data above zero, and of some of those only if the other coordinate is
/// above zero too.
#[traced]
fn picky(x: &[Var], d: &[Var]) -> Var {
    let mut w = x[0];
    for _ in 0..20 {
        let mut slope = w * 0.0;
        for i in 0..DATA {
            if d[i] > 0.5 {
                slope += (w * d[i] - d[DATA + i]) * d[i];
            } else if d[DATA + i] > 0.0 {
                slope += (w - d[DATA + i]) * d[i];
            }
        }
        w -= x[1] * slope;
    }
    w
}

#[test]
fn unseen_branches_of_the_data_run_on_the_tape() {
    // All above zero, so that one arm, or an arm of an arm, is not recorded.
    let seen: Vec<f64> = data(1.0, 0.9, 0.1).iter().map(|x| x.abs() + 0.01).collect();
    let inputs = [0.3, 0.01];
    for f in [positive as Program, picky, bounded, lopsided] {
        let f = |x: &[Var], d: &[Var]| f(x, d);
        let recorded = Tape::record_with(f);
        recorded.value_and_grad(&inputs, &seen).unwrap();
        recorded.compile().unwrap();
        let mut other = seen.clone();
        for changed in [DATA / 2, DATA + 7] {
            other[changed] = -0.4;
            other[changed - DATA / 2] = 0.2;
            let plain = Tape::builder().hot_threshold(u32::MAX).record_with(f);
            let expected = plain.value_and_grad(&inputs, &other).unwrap();
            let found = recorded.value_and_grad(&inputs, &other).unwrap();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs().max(1e-3);
            assert!(near(found.0, expected.0), "{} {}", found.0, expected.0);
            assert!(found.1.iter().zip(&expected.1).all(|(a, b)| near(*a, *b)), "{found:?}");
        }
    }
}

/// Small cubes beside large differences.
fn cubed(x: &[Var], d: &[Var]) -> Var {
    let (mut all, mut w) = (x[0] * 0.0, x[0]);
    for _ in 0..200 {
        let mut sum = w * 0.0;
        for i in 0..DATA {
            sum += (w - d[i]) + d[DATA + i] * w * w * w;
        }
        all = all * 0.5 + sum;
        w += x[1];
    }
    all
}

#[test]
fn differences_do_not_cancel_beside_other_powers() {
    let builder = || Tape::builder().hot_threshold(u32::MAX);
    let seen: Vec<f64> = (0..2 * DATA).map(|i| (i as f64 * 0.37).sin()).collect();
    let far: Vec<f64> = seen.iter().map(|x| 1e9 + x).take(DATA).collect();
    let small = seen.iter().map(|x| 1e-30 * (x + 2.0)).take(DATA);
    let data: Vec<f64> = far.into_iter().chain(small).collect();
    let kernel = builder().tuning(Tuning::with_loops(LoopForm::Closed)).record_with(cubed);
    kernel.value_and_grad(&[1.0, 0.5], &seen).unwrap();
    kernel.compile().unwrap();
    let tape = builder().record_with(cubed);
    let inputs = [1e9, 1e-3];
    let expected = tape.value_and_grad(&inputs, &data).unwrap();
    let found = kernel.value_and_grad(&inputs, &data).unwrap();
    // The weights of the last sums are large.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
    assert!(near(found.0, expected.0), "{found:?} {expected:?}");
}
