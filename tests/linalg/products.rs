//! Products of vectors and matrices, and the loops of their kernels.

use phigrad::{Numerics, Var, linalg};

use crate::{check, manual, vector};

#[test]
fn products_of_vectors() {
    check("dot", |x| vec![linalg::dot(&x[..5], &x[5..])], |random| vector(random, 10));
    check("axpy", |x| linalg::axpy(x[0], &x[1..5], &x[5..]), |random| vector(random, 9));
    check(
        "axpy with a number",
        |x| linalg::axpy(2.0, &x[..4], &x[4..]),
        |random| vector(random, 8),
    );
    check("matvec", |x| linalg::matvec(&x[..12], [3, 4], &x[12..]), |random| vector(random, 16));
}

#[test]
fn products_of_matrices_by_primitives_and_by_an_operation() {
    for [m, k, n] in [[2, 3, 4], [1, 1, 1], [7, 9, 8], [3, 40, 5], [20, 2, 30]] {
        let product = move |x: &[Var]| linalg::matmul(&x[..m * k], [m, k], &x[m * k..], [k, n]);
        check("matmul", product, |random| vector(random, (m + n) * k));
    }
}

#[test]
fn a_product_has_the_entries_of_the_definition() {
    let (m, k, n) = (7, 9, 8);
    let f = manual(Numerics::Real)
        .record(|x: &[Var]| linalg::matmul(&x[..m * k], [m, k], &x[m * k..], [k, n]));
    let x: Vec<f64> = (0..(m + n) * k).map(|i| f64::from(i as u32 * 7 % 11)).collect();
    let (a, b) = x.split_at(m * k);
    let entry = |i: usize, j: usize| (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f64>();
    let expected: Vec<f64> = (0..m).flat_map(|i| (0..n).map(move |j| entry(i, j))).collect();
    assert_eq!(f.eval(&x).unwrap(), expected);
}

#[test]
fn empty_matrices_have_empty_or_zero_products() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let mut y = linalg::matmul(&x[..0], [2, 0], &x[..0], [0, 3]);
        y.extend(linalg::matmul(&x[..0], [0, 2], &x[..6], [2, 3]));
        y.extend(linalg::matvec(&x[..0], [2, 0], &x[..0]));
        y.push(linalg::dot(&[], &[]));
        y.extend(linalg::axpy(x[0], &[], &[]));
        y
    });
    assert_eq!(f.eval(&[1.0; 6]).unwrap(), [0.0; 9]);
}

#[test]
fn loops_stay_loops_in_kernels() {
    type Function = fn(&[Var]) -> Var;
    let functions: [(&str, Function); 5] = [
        ("dot", |x| linalg::dot(&x[..400], &x[400..])),
        ("norm", linalg::norm),
        ("log_sum_exp", linalg::log_sum_exp),
        ("softmax", |x| linalg::dot(&linalg::softmax(x), x)),
        ("matvec", |x| linalg::matvec(&x[..780], [39, 20], &x[780..]).into_iter().sum()),
    ];
    for (name, function) in functions {
        let f = manual(Numerics::Real).record(function);
        f.grad(&[0.25; 800]).unwrap();
        f.compile().unwrap();
        f.grad(&[0.25; 800]).unwrap();
        let report = f.report();
        assert_eq!(report.kernel_calls, 1, "{name}");
        assert!(report.kernels[0].code_bytes < 20_000, "{name}: {}", report.kernels[0].code_bytes);
    }
}
