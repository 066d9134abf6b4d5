//! Kernels that multiply by a reciprocal, at divisors so small that it overflows: the tape serves.

use phigrad::{Tape, Var};

/// Infinite quotients would be hidden: e^-∞ is 0.
fn decays(x: &[Var]) -> Var {
    (-(x[1] / x[0])).exp() + (-(x[2] / x[0])).exp()
}

fn expected(x: &[f64; 3]) -> f64 {
    (-(x[1] / x[0])).exp() + (-(x[2] / x[0])).exp()
}

#[test]
fn the_tape_serves_where_a_reciprocal_overflows() {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(decays);
    f.eval(&[2.0, 1.0, 3.0]).unwrap();
    f.value_and_grad(&[2.0, 1.0, 3.0]).unwrap();
    f.compile().unwrap();
    for scale in [1.0, 1e-300, 1e-307, 1e300] {
        let (x, calls) = ([2.0 * scale, scale, 3.0 * scale], f.report().kernel_calls);
        let value = f.eval(&x).unwrap();
        assert!((value - expected(&x)).abs() <= 4.0 * f64::EPSILON, "{scale:e} {value}");
        assert_eq!(f.report().kernel_calls, calls + 1, "{scale:e}");
    }
    let (partials, scale) = (f.grad(&[2.0, 1.0, 3.0]).unwrap(), 0.5);
    let by_first = scale * scale * ((-0.5f64).exp() + 3.0 * (-1.5f64).exp());
    assert!((partials[0] - by_first).abs() <= 4.0 * f64::EPSILON, "{partials:?}");
    let calls = f.report().kernel_calls;
    for divisor in [1e-310, 5e-324, -3e-309] {
        let x = [divisor, 2.0 * divisor, 0.0];
        for _ in 0..20 {
            assert_eq!(f.eval(&x).unwrap(), expected(&x), "{divisor:e}");
        }
    }
    let report = f.report();
    assert_eq!((report.kernel_calls, report.paths), (calls, 1), "{report}");
    // A divisor of 0 is no reason to leave the kernel.
    let infinite = f.eval(&[0.0, 1.0, 2.0]).unwrap();
    assert_eq!(infinite, 0.0);
}
