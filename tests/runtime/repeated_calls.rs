//! Kernel calls that the tape repeats: on an error nothing is written, and none is made by the
//! repetition.

use std::cell::Cell;

use phigrad::{BatchError, Numerics, SparseMatrix, Tape, Var};

use super::long_runs::two_loops;
use crate::common::served::{limits, manual};

/// A function of its inputs that returns an error from its call number `fails` on.
fn failing<'a>(
    runs: &'a Cell<usize>,
    fails: &'a Cell<usize>,
) -> impl Fn(&[Var]) -> Result<Var, &'static str> + 'a {
    |x| {
        runs.set(runs.get() + 1);
        if runs.get() >= fails.get() { Err("late") } else { Ok(x[0] * x[0] * x[1]) }
    }
}

#[test]
fn an_error_of_a_repetition_leaves_the_results_unchanged() {
    let (runs, fails) = (Cell::new(0), Cell::new(usize::MAX));
    let f = manual(Numerics::Real).audit(1).record(failing(&runs, &fails));
    let (x, mut sparse) = ([2.0, 3.0], SparseMatrix::default());
    for _ in 0..2 {
        f.value_and_grad(&x).unwrap().unwrap();
        f.grad(&x).unwrap().unwrap();
        f.hvp(&x, &[1.0, 0.0]).unwrap().unwrap();
        f.sparse_hessian_into(&x, &mut sparse).unwrap().unwrap();
        f.compile().unwrap();
    }
    let before = sparse.clone();
    fails.set(0);
    let (x, mut slice) = ([4.0, 5.0], [7.0; 2]);
    assert_eq!(f.grad_into(&x, &mut slice).unwrap(), Err("late"));
    assert_eq!(f.value_and_grad_into(&x, &mut slice).unwrap(), Err("late"));
    assert_eq!(f.hvp_into(&x, &[1.0, 0.0], &mut slice).unwrap(), Err("late"));
    assert_eq!(f.sparse_hessian_into(&x, &mut sparse).unwrap(), Err("late"));
    assert_eq!((slice, sparse), ([7.0; 2], before));
    assert_eq!(f.report().kernel_calls, 8);
}

#[test]
fn an_error_of_a_repeated_element_leaves_it_unchanged() {
    let (runs, fails) = (Cell::new(0), Cell::new(usize::MAX));
    let f = manual(Numerics::Real).audit(10).record(failing(&runs, &fails));
    f.value_and_grad(&[2.0, 3.0]).unwrap().unwrap();
    f.compile().unwrap();
    fails.set(0);
    let (mut values, mut gradients) = ([7.0; 100], [7.0; 200]);
    let error =
        f.value_and_grad_batch_into(&[2.0; 200], 100, &mut values, &mut gradients).unwrap_err();
    let BatchError::Elements(errors) = error else { panic!("{error}") };
    assert_eq!(errors.len(), 9);
    for (element, (value, gradient)) in values.iter().zip(gradients.chunks(2)).enumerate() {
        let has_error = errors.iter().any(|error| error.element == element);
        let expected = if has_error { (7.0, [7.0; 2]) } else { (8.0, [8.0, 4.0]) };
        assert_eq!((*value, gradient), (expected.0, &expected.1[..]), "{element}");
    }
}

#[test]
fn a_repetition_that_is_too_long_for_the_tape_is_no_error() {
    let limits = limits(|limits| (limits.trace_events, limits.call_events) = (1000, 1000));
    let f = manual(Numerics::Real).audit(1).limits(limits).record_with(two_loops);
    let expected = Tape::builder().tape_only().record_with(two_loops);
    let (x, v) = ([0.5, 0.25], [1.0, -1.0]);
    for data in [[90.0, 2.0], [80.0, 3.0], [2.0, 90.0], [3.0, 80.0]] {
        f.jvp(&x, &data, &v).unwrap();
        f.grad(&x, &data).unwrap();
    }
    f.compile().unwrap();
    let data = [90.0, 90.0];
    let gradient = expected.grad(&x, &data).unwrap();
    let found = f.grad(&x, &data).unwrap();
    let near = |found: f64, other: f64| assert!((found - other).abs() <= 1e-12, "{found} {other}");
    found.iter().zip(&gradient).for_each(|(&found, &other)| near(found, other));
    near(f.jvp(&x, &data, &v).unwrap(), gradient[0] - gradient[1]);
    let report = f.report();
    assert_eq!((report.kernel_calls, report.refusals.len()), (2, 0), "{report}");
}
