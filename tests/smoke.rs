//! The whole way on small functions: tape and kernels agree, and a flipped
//! guard after compilation gives the tape's answer.

use phigrad::{Numerics, Tape, Var};

fn program(x: &[Var]) -> Var {
    let product = x[0] * x[1];
    let chosen = if product > 1.0 { product.sin() + x[0] } else { (x[1] - 2.0 * x[0]).exp() };
    chosen / (1.0 + x[1] * x[1]).sqrt()
}

#[test]
fn exact_kernels_equal_the_tape_bit_for_bit() {
    let tape = Tape::builder().hot_threshold(u32::MAX).record(program);
    let kernel = Tape::builder().numerics(Numerics::Exact).hot_threshold(u32::MAX).record(program);
    for x in [[0.5, 0.25], [2.0, 1.5]] {
        kernel.grad(&x).unwrap();
    }
    kernel.compile().unwrap();
    for i in 0..200 {
        let x = [0.02 * f64::from(i) - 1.0, 1.5 - 0.01 * f64::from(i)];
        let (value, gradient) = tape.value_and_grad(&x).unwrap();
        let (kernel_value, kernel_gradient) = kernel.value_and_grad(&x).unwrap();
        assert_eq!(value.to_bits(), kernel_value.to_bits(), "{x:?}");
        for (a, b) in gradient.iter().zip(&kernel_gradient) {
            assert_eq!(a.to_bits(), b.to_bits(), "{x:?}");
        }
    }
    let report = kernel.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (200, 0));
}

#[test]
fn an_unseen_side_gives_the_answer_of_the_tape() {
    let tape = Tape::builder().hot_threshold(u32::MAX).record(program);
    let kernel = Tape::builder().hot_threshold(u32::MAX).record(program);
    kernel.grad(&[2.0, 1.5]).unwrap();
    kernel.compile().unwrap();
    let unseen = [0.5, 0.25];
    assert_eq!(kernel.grad(&unseen).unwrap(), tape.grad(&unseen).unwrap());
    assert_eq!(kernel.report().fallbacks, 1);
}

#[test]
fn a_panic_inside_the_function_leaves_it_usable() {
    let f = Tape::record(|x: &[Var]| {
        assert!(x[0] > 0.0, "only positive inputs");
        x[0].ln()
    });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.grad(&[-1.0])));
    assert!(panicked.is_err());
    assert_eq!(f.grad(&[2.0]).unwrap(), [0.5]);
}

#[test]
fn a_var_that_outlives_its_call_is_a_typed_error() {
    let kept = std::cell::Cell::new(None);
    let f = Tape::record(|x: &[Var]| x[0] * kept.replace(Some(x[0])).unwrap_or(x[0]));
    assert_eq!(f.grad(&[3.0]).unwrap(), [6.0]);
    let error = f.grad(&[3.0]).unwrap_err();
    assert!(error.is_foreign_var(), "{error}");
    assert!(error.place().is_some());
}
