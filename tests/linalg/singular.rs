//! Singular matrices: a typed error of the function, on the tape and where a kernel has met them.

use phigrad::linalg::{self, Singular};
use phigrad::{Tape, Var};

use crate::{NUMERICS, manual};

const REGULAR: [f64; 9] = [2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0];

/// Singular matrices that elimination finds without rounding errors.
const SINGULAR: [[f64; 9]; 5] = [
    [0.0; 9],
    [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 5.0, 1.0, 0.0],
    [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 5.0, 7.0],
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
    [4.0, 2.0, 1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 1.0],
];

#[test]
fn singular_matrices_are_errors_of_the_function() {
    type Function = fn(&[Var]) -> Result<Var, Singular>;
    let functions: [Function; 3] = [
        |a| Ok(linalg::solve(a, &[a[0], 1.0.into(), 2.0.into()], 3)?[1]),
        |a| Ok(linalg::log_det(a, 3)?.ln_abs),
        |a| Ok(linalg::inverse(a, 3)?[4]),
    ];
    for numerics in NUMERICS {
        for function in functions {
            let f = manual(numerics).record(function);
            for _ in 0..2 {
                assert!(f.grad(&REGULAR).unwrap().is_ok());
                assert!(f.eval(&REGULAR).unwrap().is_ok());
                assert!(f.hvp(&REGULAR, &[1.0; 9]).unwrap().is_ok());
                for a in SINGULAR {
                    assert_eq!(f.grad(&a).unwrap(), Err(Singular), "{a:?}");
                    assert_eq!(f.eval(&a).unwrap(), Err(Singular), "{a:?}");
                    assert_eq!(f.hvp(&a, &[1.0; 9]).unwrap(), Err(Singular), "{a:?}");
                }
                f.compile().unwrap();
            }
            assert_eq!((f.report().kernel_calls, f.report().paths), (3, 1));
        }
    }
}

#[test]
fn matrices_at_the_border_have_results() {
    let f = Tape::record(|a: &[Var]| linalg::log_det(a, 2).map(|determinant| determinant.ln_abs));
    let near = [1.0, 1.0, 1.0, 1.0 + f64::EPSILON];
    assert_eq!(f.eval(&near).unwrap(), Ok(f64::EPSILON.ln()));
    assert_eq!(f.eval(&[1.0; 4]).unwrap(), Err(Singular));
    let entries = f.grad(&near).unwrap().unwrap();
    assert!(entries.iter().all(|entry| entry.abs() > 1e15));
}

#[test]
fn nan_is_no_error() {
    let f = Tape::record(|a: &[Var]| linalg::inverse(a, 2));
    for place in 0..4 {
        let mut a = [0.0; 4];
        a[place] = f64::NAN;
        let inverse = f.eval(&a).unwrap().unwrap();
        assert!(inverse.iter().any(|entry| entry.is_nan()), "{a:?}: {inverse:?}");
    }
}

#[test]
fn the_tape_serves_runs_that_go_on_after_an_error() {
    for numerics in NUMERICS {
        let f = manual(numerics).record(|x: &[Var]| match linalg::solve(&x[..1], &x[1..], 1) {
            Ok(y) => y[0],
            Err(Singular) => x[1] * 10.0,
        });
        for _ in 0..2 {
            assert_eq!(f.grad(&[2.0, 3.0]).unwrap(), [-0.75, 0.5]);
            assert_eq!(f.grad(&[0.0, 3.0]).unwrap(), [0.0, 10.0]);
            f.compile().unwrap();
        }
        let report = f.report();
        assert_eq!((report.kernel_calls, report.tape_calls, report.paths), (1, 3, 1));
    }
}
