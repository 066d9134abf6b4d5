//! Cholesky factors and solutions with them.

use phigrad::internals::Random;
use phigrad::linalg::{self, NotPositiveDefinite};
use phigrad::{Numerics, Tape, Var};

use crate::{NUMERICS, assert_near, check, manual, vector};

/// A positive definite matrix MMᵀ + cI.
fn positive_definite(random: &mut Random, n: usize, shift: f64) -> Vec<f64> {
    let m = vector(random, n * n);
    let entry = |i: usize, j: usize| -> f64 {
        let product: f64 = (0..n).map(|k| m[i * n + k] * m[j * n + k]).sum();
        product + if i == j { shift } else { 0.0 }
    };
    (0..n * n).map(|at| entry(at / n, at % n)).collect()
}

#[test]
fn derivatives_are_those_of_differences() {
    for n in [1, 2, 5] {
        let factor = move |x: &[Var]| linalg::cholesky(x, n).unwrap();
        check("cholesky", factor, move |random| positive_definite(random, n, 1.0));
        for columns in [1, 3] {
            let solve = move |x: &[Var]| linalg::cholesky_solve(&x[..n * n], &x[n * n..], n);
            check("cholesky_solve", solve, move |random| {
                let mut x = positive_definite(random, n, 1.0);
                x.extend(vector(random, n * columns));
                x
            });
        }
    }
}

#[test]
fn solutions_with_the_factor_solve_the_system() {
    let n = 8;
    let solution = move |x: &[Var]| {
        let l = linalg::cholesky(&x[..n * n], n).unwrap();
        linalg::cholesky_solve(&l, &x[n * n..], n)
    };
    let product = move |x: &[Var]| {
        let y = solution(x);
        linalg::matmul(&x[..n * n], [n, n], &y, [n, 2])
    };
    let mut random = Random::new(5);
    let mut x = positive_definite(&mut random, n, 0.1);
    x.extend(vector(&mut random, 2 * n));
    assert_near("A·x = b", &Tape::record(product).eval(&x).unwrap(), &x[n * n..], 1e-12);
    check("solution", solution, move |random| {
        let mut x = positive_definite(random, n, 1.0);
        x.extend(vector(random, 2 * n));
        x
    });
}

#[test]
fn ill_conditioned_matrices_have_factors_of_small_residual() {
    // The Hilbert matrix, of condition 5e11.
    let n = 9;
    let a: Vec<f64> = (0..n * n).map(|at| 1.0 / (at / n + at % n + 1) as f64).collect();
    let f = Tape::record(|a: &[Var]| linalg::cholesky(a, n));
    let l = f.eval(&a).unwrap().unwrap();
    let entry = |at: usize| crate::dot(&l[at / n * n..][..n], &l[at % n * n..][..n]);
    let product: Vec<f64> = (0..n * n).map(entry).collect();
    assert_near("LLᵀ = A", &product, &a, 1e-15);
}

#[test]
fn matrices_that_are_not_positive_definite_are_errors() {
    for numerics in NUMERICS {
        let f = manual(numerics).record(|a: &[Var]| {
            let l = linalg::cholesky(a, 2)?;
            Ok::<_, NotPositiveDefinite>(l[3])
        });
        for _ in 0..2 {
            assert_eq!(f.grad(&[4.0, 9.0, 2.0, 5.0]).unwrap(), Ok(vec![0.0625, 0.0, -0.25, 0.25]));
            for a in [[1.0, 0.0, 1.0, 1.0], [0.0; 4], [-1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 2.0, 1.0]] {
                assert_eq!(f.grad(&a).unwrap(), Err(NotPositiveDefinite), "{a:?}");
                assert_eq!(f.eval(&a).unwrap(), Err(NotPositiveDefinite), "{a:?}");
            }
            assert!(f.eval(&[1.0, 0.0, f64::NAN, 1.0]).unwrap().unwrap().is_nan());
            f.compile().unwrap();
        }
        assert_eq!((f.report().kernel_calls, f.report().paths), (1, 1));
    }
}

#[test]
fn the_upper_triangle_is_ignored() {
    let f = manual(Numerics::Real).record(|a: &[Var]| linalg::cholesky(a, 2).unwrap()[3]);
    let gradient = f.grad(&[1.0, f64::NAN, 0.5, 1.0]).unwrap();
    assert_eq!(gradient[1], 0.0);
}
