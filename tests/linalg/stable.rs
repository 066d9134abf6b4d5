//! Norm, log-sum-exp and softmax, also of large, infinite and equal numbers.

use phigrad::{Numerics, Tape, Var, linalg};

use crate::{check, manual, vector};

const INFINITY: f64 = f64::INFINITY;

#[test]
fn derivatives_are_those_of_differences() {
    check("norm", |x| vec![linalg::norm(x)], |random| vector(random, 6));
    check("log_sum_exp", |x| vec![linalg::log_sum_exp(x)], |random| vector(random, 6));
    check("softmax", linalg::softmax, |random| vector(random, 6));
    let far = |x: &[Var]| {
        let x: Vec<Var> = x.iter().map(|&x| 1000.0 - 3.0 * x).collect();
        let mut y = linalg::softmax(&x);
        y.push(linalg::log_sum_exp(&x) - 1000.0);
        y
    };
    check("far", far, |random| vector(random, 5));
}

/// Asserts value and gradient, on the tape and by a kernel with the path of other numbers.
fn assert_result(f: fn(&[Var]) -> Var, x: &[f64], (value, gradient): (f64, &[f64])) {
    let recorded = manual(Numerics::Real).record(f);
    let others: Vec<f64> = (0..x.len()).map(|i| 0.5 - 0.25 * i as f64).collect();
    for is_kernel in [false, true] {
        if is_kernel {
            recorded.value_and_grad(&others).unwrap();
            recorded.compile().unwrap();
        }
        let (found, found_gradient) = recorded.value_and_grad(x).unwrap();
        assert!((found - value).abs() <= 1e-15 * value.abs() || found == value, "{found} {value}");
        for (one, other) in found_gradient.iter().zip(gradient) {
            assert!((one - other).abs() <= 1e-15, "{x:?}: {found_gradient:?}");
        }
        let report = recorded.report();
        assert_eq!((report.kernel_calls, report.paths), (u64::from(is_kernel), 1), "{x:?}");
    }
}

#[test]
fn norms_do_not_overflow() {
    for scale in [1e-300, 1e-200, 1e-10, 1.0, 1e200, 1e307] {
        let x = [3.0 * scale, -4.0 * scale, 0.0];
        assert_result(linalg::norm, &x, (5.0 * scale, &[0.6, -0.8, 0.0]));
    }
    assert_result(linalg::norm, &[0.0, -0.0, 0.0], (0.0, &[0.0, 0.0, 0.0]));
    let tape = Tape::record(linalg::norm);
    assert_eq!(tape.eval(&[1.0, -INFINITY]).unwrap(), INFINITY);
    assert!(tape.eval(&[1.0, f64::NAN]).unwrap().is_nan());
    assert_eq!(tape.eval(&[f64::from_bits(1), 0.0]).unwrap(), f64::from_bits(1));
    assert_eq!(tape.eval(&[f64::MAX, 0.0]).unwrap(), f64::MAX);
    assert_eq!(tape.hvp(&[0.0, 0.0], &[1.0, 0.0]).unwrap(), [0.0, 0.0]);
}

#[test]
fn exponentials_do_not_overflow() {
    let half = 2.0f64.ln();
    for shift in [1000.0, -1000.0, 1e100, 0.0] {
        assert_result(linalg::log_sum_exp, &[shift, shift], (shift + half, &[0.5, 0.5]));
        let x = [shift, -INFINITY, shift];
        assert_result(linalg::log_sum_exp, &x, (shift + half, &[0.5, 0.0, 0.5]));
    }
    assert_result(linalg::log_sum_exp, &[1000.0, -1000.0], (1000.0, &[1.0, 0.0]));
    assert_result(linalg::log_sum_exp, &[1e-10, -1000.0], (1e-10, &[1.0, 0.0]));
    let first = |x: &[Var]| linalg::softmax(x)[0];
    assert_result(first, &[1000.0, 1000.0], (0.5, &[0.25, -0.25]));
    assert_result(first, &[-1000.0, 1000.0], (0.0, &[0.0, 0.0]));
    assert_result(first, &[-1000.0, -1000.0, -INFINITY], (0.5, &[0.25, -0.25, 0.0]));
    assert_result(first, &[-INFINITY, 3.0], (0.0, &[0.0, 0.0]));
}

#[test]
fn infinite_and_missing_numbers_have_the_documented_results() {
    let f = Tape::record(linalg::log_sum_exp);
    assert_eq!(f.eval(&[-INFINITY, -INFINITY]).unwrap(), -INFINITY);
    assert_eq!(f.eval(&[0.0, INFINITY]).unwrap(), INFINITY);
    assert!(f.eval(&[0.0, f64::NAN, 1.0]).unwrap().is_nan());
    assert_eq!(f.eval(&[]).unwrap(), -INFINITY);
    let f = Tape::record(linalg::softmax);
    for x in [[-INFINITY, -INFINITY], [0.0, INFINITY], [0.0, f64::NAN]] {
        assert!(f.eval(&x).unwrap().iter().any(|y| y.is_nan()), "{x:?}");
    }
}
