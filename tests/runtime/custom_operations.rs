//! User-defined operations: on the tape as in kernels, in branches and loops, with errors and
//! second derivatives.

use core::convert::Infallible;

use phigrad::check::{GradientCheck, GradientError};
use phigrad::{CustomOperation, Limits, Numerics, Operation, Refusal, Tape, Var, traced};

use crate::common::served::{NUMERICS, manual};

/// (a·b + sin a, a·exp b), with the exponential saved.
struct Pair {
    is_twice_differentiable: bool,
}

impl Operation for Pair {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        2
    }

    fn outputs(&self) -> usize {
        2
    }

    fn saved(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Infallible> {
        saved[0] = x[1].exp();
        y[0] = x[0] * x[1] + x[0].sin();
        y[1] = x[0] * saved[0];
        Ok(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        out[0] = w[0] * (x[1] + x[0].cos()) + w[1] * saved[0];
        out[1] = w[0] * x[0] + w[1] * x[0] * saved[0];
    }

    fn is_twice_differentiable(&self) -> bool {
        self.is_twice_differentiable
    }

    fn vjp_tangent(
        &self,
        x: &[f64],
        _: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        out[0] = -w[0] * x[0].sin() * v[0] + (w[0] + w[1] * saved[0]) * v[1];
        out[1] = (w[0] + w[1] * saved[0]) * v[0] + w[1] * x[0] * saved[0] * v[1];
    }

    fn name(&self) -> &str {
        "pair"
    }
}

fn pair() -> CustomOperation<Pair> {
    CustomOperation::new(Pair { is_twice_differentiable: true })
}

/// The same by primitives.
fn by_primitives(a: Var, b: Var) -> [Var; 2] {
    [a * b + a.sin(), a * b.exp()]
}

/// Calls `of` in straight-line code.
fn straight(x: &[Var], of: impl Fn(Var, Var) -> [Var; 2]) -> Var {
    let [a, b] = of(x[0], x[1] * x[2]);
    let [c, d] = of(a, Var::from(0.5));
    // An output without a use, one used twice, and an argument used twice.
    let [e, _] = of(d, d);
    c * b + e * x[1] + b
}

/// Calls it in the arms of branches, and in a loop.
#[traced]
fn branching(x: &[Var], of: impl Fn(Var, Var) -> [Var; 2]) -> Var {
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..3 {
        if a > b {
            [a, b] = of(b * 0.5, a * 0.25);
        } else {
            a = of(a * 0.5, x[2]).iter().copied().sum();
        }
        b = b.sin();
    }
    a * b
}

fn assert_near(found: &[f64], expected: &[f64]) {
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= 1e-12 * other.abs().max(1.0), "{found:?} {expected:?}");
    }
}

#[test]
fn calls_have_the_derivatives_of_the_same_code_by_primitives() {
    for numerics in NUMERICS {
        for is_branching in [false, true] {
            let run = move |x: &[Var], of: &dyn Fn(Var, Var) -> [Var; 2]| match is_branching {
                false => straight(x, of),
                true => branching(x, of),
            };
            let operation = pair();
            let f = manual(numerics).record(move |x: &[Var]| {
                run(x, &|a, b| {
                    let Ok(y) = operation.call(&[a, b]);
                    [y[0], y[1]]
                })
            });
            let expected =
                Tape::builder().tape_only().record(move |x: &[Var]| run(x, &by_primitives));
            let v = [0.5, -1.0, 2.0];
            for round in 0..40 {
                let t = f64::from(round % 20);
                let x = [0.3 + t.sin(), 0.2 * t.cos(), 0.7 - 0.05 * t];
                let (value, gradient) = f.value_and_grad(&x).unwrap();
                let (other, other_gradient) = expected.value_and_grad(&x).unwrap();
                assert_near(&[value], &[other]);
                assert_near(&gradient, &other_gradient);
                assert_near(&[f.jvp(&x, &v).unwrap()], &[expected.jvp(&x, &v).unwrap()]);
                assert_near(&f.hvp(&x, &v).unwrap(), &expected.hvp(&x, &v).unwrap());
                if round == 19 {
                    f.compile().unwrap();
                }
            }
            assert_eq!(f.report().kernel_calls, 60, "{}", f.report());
        }
    }
}

#[test]
fn kernels_with_exact_numerics_have_the_bits_of_the_tape() {
    let operation = pair();
    let f = manual(Numerics::Exact).record(move |x: &[Var]| {
        straight(x, |a, b| {
            let Ok(y) = operation.call(&[a, b]);
            [y[0], y[1]]
        })
    });
    let x = [0.3, -0.7, 1.1];
    let on_tape = f.value_and_grad(&x).unwrap();
    f.compile().unwrap();
    assert_eq!(f.value_and_grad(&x).unwrap(), on_tape);
    assert_eq!(f.report().kernel_calls, 1);
}

#[test]
fn long_runs_are_swept_through_calls() {
    for whole in [5, 6, 7, 8, 9, 50] {
        let mut limits = Limits::default();
        limits.trace_events = whole;
        let operation = pair();
        let program = move |x: &[Var]| {
            (0..20).fold(x[0], |a, _| {
                let Ok(y) = operation.call(&[a * 0.1, x[1]]);
                y[0].sin() + y[1]
            })
        };
        let (f, all) = (manual(Numerics::Real).limits(limits).record(program.clone()), {
            Tape::builder().tape_only().record(program)
        });
        assert_eq!(
            f.value_and_grad(&[0.3, 0.4]).unwrap(),
            all.value_and_grad(&[0.3, 0.4]).unwrap()
        );
    }
}

/// The square root of positive numbers, otherwise an error.
struct Root;

#[derive(Debug, PartialEq)]
struct Negative(f64);

impl Operation for Root {
    type Error = Negative;

    fn inputs(&self) -> usize {
        1
    }

    fn outputs(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Negative> {
        assert!(x[0] < 100.0, "large");
        y[0] = x[0].sqrt();
        if x[0] > 0.0 { Ok(()) } else { Err(Negative(x[0])) }
    }

    fn vjp(&self, _: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        out[0] = w[0] / (2.0 * y[0]);
    }
}

#[test]
fn errors_and_panics_of_an_operation_are_those_of_the_tape() {
    let root = CustomOperation::new(Root);
    let f = manual(Numerics::Real).record(move |x: &[Var]| root.call(&[x[0] * 2.0]).map(|y| y[0]));
    for _ in 0..2 {
        assert_eq!(f.grad(&[2.0]).unwrap(), Ok(vec![0.5]));
        assert_eq!(f.grad(&[-1.0]).unwrap(), Err(Negative(-2.0)));
        let call = std::panic::AssertUnwindSafe(|| f.grad(&[50.0]));
        assert!(std::panic::catch_unwind(call).is_err());
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 1);
}

#[test]
fn second_derivatives_need_those_of_the_operation() {
    let once = CustomOperation::new(Pair { is_twice_differentiable: false });
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let Ok(y) = once.call(&[x[0], x[1]]);
        y[0] * y[1]
    });
    let error = f.hvp(&[1.0, 2.0], &[1.0, 0.0]).unwrap_err();
    assert!(error.is_not_twice_differentiable(), "{error}");
    assert_eq!(error.place().map(|place| place.line), Some(line!() - 5));
    // A kernel for it is refused, if the function was recorded by other calls.
    f.grad(&[1.0, 2.0]).unwrap();
    f.compile().unwrap();
    assert!(f.hvp(&[1.0, 2.0], &[1.0, 0.0]).unwrap_err().is_not_twice_differentiable());
    let refused = |refusal: &Refusal| matches!(refusal, Refusal::NoSecondDerivative { .. });
    assert!(!f.report().refusals.iter().any(refused));
}

#[test]
fn a_wrong_number_of_arguments_is_an_error() {
    let operation = pair();
    let f = Tape::record(move |x: &[Var]| {
        let Ok(y) = operation.call(x);
        y[0]
    });
    let error = f.grad(&[1.0, 2.0, 3.0]).unwrap_err();
    assert!(error.is_shape(), "{error}");
    assert!(f.grad(&[1.0, 2.0]).is_ok());
}

#[test]
fn calls_on_constants_are_constants() {
    let operation = pair();
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let Ok(y) = operation.call(&[2.0.into(), 0.0.into()]);
        y[1] * x[0]
    });
    assert_eq!(f.grad(&[1.0]).unwrap(), [2.0]);
    assert_eq!(f.report().trace_events, 2);
}

#[test]
fn a_number_with_a_given_derivative_has_that_one() {
    for numerics in NUMERICS {
        let f = manual(numerics).record(|x: &[Var]| {
            // The cube by its value and slope, rounded, and on a constant.
            let cube = x[0].with_derivative(x[0] * x[0] * x[0], 3.0 * x[0] * x[0]);
            let rounded = x[1].with_derivative((x[1] * x[0]).round(), 0.5);
            cube * x[1] + rounded * rounded + Var::from(2.0).with_derivative(7.0, 1.0)
        });
        for _ in 0..2 {
            let (value, gradient) = f.value_and_grad(&[2.0, 1.75]).unwrap();
            assert_eq!((value, &gradient[..]), (14.0 + 16.0 + 7.0, &[21.0, 8.0 + 4.0][..]));
            assert_eq!(f.hvp(&[2.0, 1.75], &[1.0, 0.0]).unwrap(), [21.0, 12.0]);
            assert_eq!(f.jvp(&[2.0, 1.75], &[1.0, 1.0]).unwrap(), 33.0);
            f.compile().unwrap();
        }
        assert_eq!(f.report().kernel_calls, 3);
    }
}

#[test]
fn derivatives_of_operations_are_checked_against_differences() {
    /// A pair with wrong derivatives: of the second order, or by `jvp`.
    struct Wrong {
        by_jvp: bool,
    }

    impl Operation for Wrong {
        type Error = Infallible;

        fn inputs(&self) -> usize {
            2
        }

        fn outputs(&self) -> usize {
            2
        }

        fn saved(&self) -> usize {
            1
        }

        fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Infallible> {
            RIGHT.eval(x, y, saved)
        }

        fn vjp(&self, x: &[f64], y: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
            RIGHT.vjp(x, y, saved, w, out);
        }

        fn jvp(&self, x: &[f64], y: &[f64], saved: &[f64], v: &[f64], out: &mut [f64]) {
            RIGHT.jvp(x, y, saved, v, out);
            out[1] += if self.by_jvp { v[0] } else { 0.0 };
        }

        fn is_twice_differentiable(&self) -> bool {
            true
        }

        fn vjp_tangent(
            &self,
            x: &[f64],
            y: &[f64],
            saved: &[f64],
            (w, v): (&[f64], &[f64]),
            out: &mut [f64],
        ) {
            RIGHT.vjp_tangent(x, y, saved, (w, v), out);
            out[0] += if self.by_jvp { 0.0 } else { v[1] };
        }
    }

    const RIGHT: Pair = Pair { is_twice_differentiable: true };
    let (check, x) = (GradientCheck::default(), [0.4, -0.7]);
    assert!(check.operation(&RIGHT, &x).is_ok());
    for by_jvp in [false, true] {
        let error = check.operation(&Wrong { by_jvp }, &x).unwrap_err();
        assert!(matches!(error, GradientError::Mismatch { .. }), "{error}");
    }
    assert!(matches!(check.operation(&RIGHT, &[1.0]), Err(GradientError::Shape { .. })));
    assert!(matches!(check.operation(&Root, &[-1.0]), Err(GradientError::Rough { .. })));
}
