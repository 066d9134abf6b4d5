//! Wrong shapes fail the recording, with the place of the call.

use phigrad::{Tape, Var, linalg};

#[test]
fn a_wrong_shape_is_an_error_at_the_call() {
    type Function = fn(&[Var]) -> Vec<Var>;
    let functions: &[(Function, &str)] = &[
        (|x| vec![linalg::dot(&x[1..], x)], "length of `b` of `linalg::dot` is 5"),
        (|x| linalg::axpy(1.0, x, &x[1..]), "`y`"),
        (|x| linalg::matvec(x, [2, 3], &x[..3]), "`a` of `linalg::matvec` is 5"),
        (|x| linalg::matvec(&x[..4], [2, 2], x), "`x`"),
        (|x| linalg::matmul(x, [2, 2], &x[..4], [2, 2]), "`a`"),
        (|x| linalg::matmul(&x[..4], [2, 2], x, [2, 2]), "`b`"),
        (|x| linalg::matmul(&x[..4], [2, 2], &x[..3], [3, 1]), "number of rows of `b`"),
        (|x| linalg::matmul(x, [usize::MAX, 2], x, [2, 0]), "`a`"),
        (|x| linalg::cholesky(x, 2).unwrap(), "`linalg::cholesky` is 5"),
        (|x| linalg::cholesky_solve(x, &x[..2], 2), "`l`"),
        (|x| linalg::cholesky_solve(&x[..4], x, 2), "`b`"),
        #[cfg(feature = "linalg")]
        (|x| linalg::solve(x, &x[..2], 2).unwrap(), "`a`"),
        #[cfg(feature = "linalg")]
        (|x| linalg::solve(&x[..4], x, 2).unwrap(), "`b`"),
        #[cfg(feature = "linalg")]
        (|x| vec![linalg::log_det(x, 2).unwrap().ln_abs], "`linalg::log_det`"),
        #[cfg(feature = "linalg")]
        (|x| linalg::inverse(x, 2).unwrap(), "`linalg::inverse`"),
        #[cfg(feature = "linalg")]
        (|x| linalg::symmetric_eigenvalues(x, 2), "`linalg::symmetric_eigenvalues`"),
    ];
    for (function, part) in functions {
        // One output, whatever the shape of the others.
        let error = Tape::record(|x: &[Var]| function(x).into_iter().sum::<Var>() + x[0])
            .grad(&[1.0, 2.0, 3.0, 4.0, 5.0])
            .unwrap_err();
        assert!(error.is_shape(), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        let place = error.place().unwrap();
        assert!(place.file.ends_with("shapes.rs"), "{error}");
    }
}

#[test]
fn a_shape_beyond_all_memory_is_an_error() {
    type Function = fn(&[Var]) -> usize;
    let functions: &[Function] = &[
        |x| linalg::matvec(x, [1 << 40, 2], x).len(),
        |x| linalg::matmul(x, [1 << 40, 2], x, [2, 1 << 40]).len(),
        |x| linalg::cholesky(x, 1 << 30).unwrap().len(),
        |x| linalg::cholesky_solve(x, x, 1 << 40).len(),
        #[cfg(feature = "linalg")]
        |x| linalg::solve(x, x, 1 << 40).unwrap().len(),
        #[cfg(feature = "linalg")]
        |x| linalg::inverse(x, 1 << 30).unwrap().len(),
        #[cfg(feature = "linalg")]
        |x| linalg::symmetric_eigenvalues(x, 1 << 40).len(),
    ];
    for function in functions {
        let f = Tape::record(|x: &[Var]| x[0] * function(x) as f64);
        assert!(f.grad(&[1.0; 9]).unwrap_err().is_shape());
    }
}

#[test]
fn calls_outside_of_a_recording_compute_numbers() {
    let [a, b, c] = [2.0, 3.0, f64::NAN].map(Var::from);
    assert_eq!(linalg::dot(&[a, b], &[b, b]).value(), 15.0);
    assert!(linalg::dot(&[a, b], &[c]).value().is_nan());
    assert_eq!(linalg::cholesky(&[a * a], 1).unwrap()[0].value(), 2.0);
}
