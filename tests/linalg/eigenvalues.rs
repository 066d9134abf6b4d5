//! Eigenvalues of symmetric matrices, also of equal ones.

use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var, linalg};

use crate::{assert_near, check, manual, vector};

/// A symmetric matrix with eigenvalues that are not close.
fn symmetric(random: &mut Random, n: usize) -> Vec<f64> {
    let mut a = vector(random, n * n);
    for i in 0..n {
        for j in 0..i {
            a[j * n + i] = a[i * n + j];
        }
        a[i * (n + 1)] += 4.0 * ((i * 3 % n) as f64);
    }
    a
}

#[test]
fn derivatives_are_those_of_differences() {
    for n in [1, 2, 3, 5] {
        let eigenvalues = move |a: &[Var]| linalg::symmetric_eigenvalues(a, n);
        check("symmetric_eigenvalues", eigenvalues, move |random| symmetric(random, n));
    }
}

#[test]
fn sums_and_products_of_eigenvalues_are_trace_and_determinant() {
    let (n, mut random) = (6, Random::new(9));
    let trace =
        Tape::record(|a: &[Var]| linalg::symmetric_eigenvalues(a, n).into_iter().sum::<Var>());
    let ln_det = Tape::record(|a: &[Var]| {
        linalg::symmetric_eigenvalues(a, n).into_iter().map(|value| value.abs().ln()).sum::<Var>()
    });
    let expected = Tape::record(|a: &[Var]| {
        // Of the lower triangle, too.
        let entry = |at: usize| a[(at / n).max(at % n) * n + (at / n).min(at % n)];
        let full: Vec<Var> = (0..n * n).map(entry).collect();
        linalg::log_det(&full, n).unwrap().ln_abs
    });
    let a = symmetric(&mut random, n);
    let diagonal: f64 = a.iter().step_by(n + 1).sum();
    assert!((trace.eval(&a).unwrap() - diagonal).abs() < 1e-13);
    let unit: Vec<f64> = (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
    assert_near("trace", &trace.grad(&a).unwrap(), &unit, 1e-13);
    assert!((ln_det.eval(&a).unwrap() - expected.eval(&a).unwrap()).abs() < 1e-12);
    assert_near("ln det", &ln_det.grad(&a).unwrap(), &expected.grad(&a).unwrap(), 1e-12);
    let v = vector(&mut random, n * n);
    let (one, other) = (ln_det.hvp(&a, &v).unwrap(), expected.hvp(&a, &v).unwrap());
    assert_near("Hessian of ln det", &one, &other, 1e-11);
}

#[test]
fn equal_eigenvalues_have_a_first_derivative_and_no_second_one() {
    let f = manual(Numerics::Real).record(|a: &[Var]| {
        let values = linalg::symmetric_eigenvalues(a, 2);
        values[0] * values[0] + values[1] * values[1]
    });
    let (identity, v) = ([1.0, 0.0, 0.0, 1.0], [0.3, 0.0, 1.0, 0.2]);
    assert_near("gradient", &f.grad(&identity).unwrap(), &[2.0, 0.0, 0.0, 2.0], 1e-15);
    assert!(f.hvp(&identity, &v).unwrap().iter().any(|entry| entry.is_nan()));
    // The square of the Frobenius norm.
    let product = f.hvp(&[1.0, 0.0, 0.0, 1.5], &v).unwrap();
    assert_near("Hessian", &product, &[0.6, 0.0, 4.0, 0.4], 1e-14);
}

#[test]
fn numbers_that_are_not_finite_give_nan() {
    let f = Tape::record(|a: &[Var]| linalg::symmetric_eigenvalues(a, 3));
    for number in [f64::NAN, f64::INFINITY] {
        let values = f.eval(&[1.0, 0.0, 0.0, number, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap();
        assert!(values.iter().all(|value| value.is_nan()));
    }
}
