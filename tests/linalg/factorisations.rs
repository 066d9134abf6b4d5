//! Solutions, determinants and inverses by pivoted factorisations.

use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var, linalg};

use crate::{NUMERICS, assert_near, check, manual, vector};

/// A matrix with a dominant entry in each row, in a random order of rows.
fn shuffled(random: &mut Random, n: usize) -> Vec<f64> {
    let mut a = vector(random, n * n);
    let mut columns: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        columns.swap(i, random.below(i + 1));
    }
    for (row, column) in columns.into_iter().enumerate() {
        a[row * n + column] += 2.0 * n as f64;
    }
    a
}

fn solve(n: usize) -> impl Fn(&[Var]) -> Vec<Var> + Clone {
    move |x: &[Var]| linalg::solve(&x[..n * n], &x[n * n..], n).unwrap()
}

#[test]
fn derivatives_are_those_of_differences() {
    for n in [1, 2, 5] {
        for columns in [1, 3] {
            check("solve", solve(n), move |random| {
                let mut x = shuffled(random, n);
                x.extend(vector(random, n * columns));
                x
            });
        }
        let log_det = move |a: &[Var]| {
            let determinant = linalg::log_det(a, n).unwrap();
            vec![determinant.ln_abs, determinant.sign]
        };
        check("log_det", log_det, move |random| shuffled(random, n));
        let inverse = move |a: &[Var]| {
            // Of the order of one.
            linalg::inverse(a, n).unwrap().into_iter().map(|entry| entry * n as f64).collect()
        };
        check("inverse", inverse, move |random| shuffled(random, n));
    }
}

#[test]
fn a_matrix_times_its_inverse_is_the_identity() {
    let mut random = Random::new(8);
    for n in [1, 3, 12, 30] {
        let a = vector(&mut random, n * n);
        let product = Tape::record(move |a: &[Var]| {
            linalg::matmul(a, [n, n], &linalg::inverse(a, n).unwrap(), [n, n])
        });
        let identity: Vec<f64> =
            (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
        assert_near("A·A⁻¹", &product.eval(&a).unwrap(), &identity, 1e-11);
    }
}

#[test]
fn the_gradient_of_a_log_determinant_is_the_transpose_of_the_inverse() {
    let (n, mut random) = (9, Random::new(2));
    let log_det = Tape::record(|a: &[Var]| linalg::log_det(a, n).unwrap().ln_abs);
    let inverse = Tape::record(|a: &[Var]| linalg::inverse(a, n).unwrap());
    for _ in 0..5 {
        let a = vector(&mut random, n * n);
        let (gradient, inverse) = (log_det.grad(&a).unwrap(), inverse.eval(&a).unwrap());
        let transpose: Vec<f64> = (0..n * n).map(|at| inverse[at % n * n + at / n]).collect();
        assert_near("A⁻ᵀ", &gradient, &transpose, 1e-11);
    }
}

#[test]
fn determinants_have_their_sign() {
    let f = Tape::record(|a: &[Var]| {
        let determinant = linalg::log_det(a, 3).unwrap();
        determinant.sign * determinant.ln_abs.exp()
    });
    let mut random = Random::new(6);
    for _ in 0..50 {
        let a = vector(&mut random, 9);
        let minor = |i: usize, j: usize| a[3 + i] * a[6 + j] - a[3 + j] * a[6 + i];
        let expected = a[0] * minor(1, 2) - a[1] * minor(0, 2) + a[2] * minor(0, 1);
        assert!((f.eval(&a).unwrap() - expected).abs() < 1e-14);
    }
}

#[test]
fn ill_conditioned_systems_have_small_residuals() {
    // The Hilbert matrix, of condition 5e11, with rows in reverse order.
    let n = 9;
    let f = manual(Numerics::Real).record(solve(n));
    for _ in 0..2 {
        let mut x: Vec<f64> = (0..n * n).map(|at| 1.0 / (n - at / n + at % n) as f64).collect();
        x.extend((0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }));
        let y = f.eval(&x).unwrap();
        let scale = y.iter().fold(0.0f64, |most, y| most.max(y.abs()));
        for i in 0..n {
            let residual = crate::dot(&x[i * n..][..n], &y) - x[n * n + i];
            assert!(residual.abs() <= 1e-15 * n as f64 * scale, "{residual} {scale}");
        }
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 1);
}

#[test]
fn all_orders_of_pivots_are_one_path() {
    let n = 4;
    for numerics in NUMERICS {
        let of = solve(n);
        let f = manual(numerics).record(move |x: &[Var]| of(x).into_iter().sum::<Var>());
        let mut random = Random::new(1);
        f.grad(&vector(&mut random, n * n + n)).unwrap();
        f.compile().unwrap();
        let mut calls = 0;
        for order in 0..256usize {
            let columns: [usize; 4] = core::array::from_fn(|i| order >> (2 * i) & 3);
            let mut sorted = columns;
            sorted.sort_unstable();
            if sorted != [0, 1, 2, 3] {
                continue;
            }
            let mut x = vector(&mut random, n * n + n);
            columns.iter().enumerate().for_each(|(row, column)| x[row * n + column] += 3.0);
            assert!(f.grad(&x).unwrap().iter().all(|entry| entry.is_finite()));
            calls += 1;
        }
        assert_eq!(calls, 24);
        assert_eq!((f.report().kernel_calls, f.report().paths), (24, 1));
    }
}

#[test]
fn a_system_of_twenty_unknowns_is_one_path() {
    let n = 20;
    let of = solve(n);
    let f = manual(Numerics::Real).record(move |x: &[Var]| of(x).into_iter().sum::<Var>());
    let mut random = Random::new(4);
    for round in 0..20 {
        let x = vector(&mut random, n * n + n);
        let gradient = f.grad(&x).unwrap();
        // The adjoint of b solves the transposed system.
        for j in 0..n {
            let image: f64 = (0..n).map(|i| x[i * n + j] * gradient[n * n + i]).sum();
            assert!((image - 1.0).abs() < 1e-10, "{image}");
        }
        if round == 0 {
            f.compile().unwrap();
        }
    }
    assert_eq!((f.report().kernel_calls, f.report().paths), (19, 1), "{}", f.report());
}
