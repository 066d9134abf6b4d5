//! The origin of NaN and infinity in values and derivatives.

use std::convert::Infallible;

use phigrad::{
    CustomOperation, Limits, NonFiniteOrigin, NonFiniteResult, Operation, Tape, Var, traced,
};

/// A function, a point, the sentence, and the line of its place after that of the first case.
type Case = (fn(&[Var]) -> Var, &'static [f64], &'static str, u32);

/// The sentence about the first result of `f` at `x` that is not finite, without the place, and the
/// line of the place.
fn found<F: Fn(&[Var]) -> Var>(f: F, x: &[f64]) -> (String, Option<u32>) {
    let found = Tape::record(f).find_non_finite(x).unwrap().unwrap();
    let text = found.to_string();
    match found.place() {
        Some(place) => (text.replace(&format!(" at {place}"), ""), Some(place.line)),
        None => (text, None),
    }
}

#[test]
fn the_operation_that_made_the_value_is_found() {
    let line = line!() + 1;
    let cases: [Case; 6] = [
        (|x| (x[0].ln() + x[1]).exp() * x[1], &[-1.0, 2.0], "ln of -1 is NaN", 1),
        (|x| x[0] / x[1] - 2.0, &[1.0, 0.0], "div of 1 and 0 is infinite", 2),
        (|x| (x[0] * x[1]).sqrt(), &[1e200, 1e300], "mul of 1e200 and 1e300 is infinite", 3),
        (|x| x[0].exp() - x[1].exp(), &[800.0, 900.0], "exp of 800 is infinite", 4),
        (
            |x| x[0].mul_add(x[1], x[1]),
            &[1e200, 1e200],
            "mul_add of 1e200, 1e200 and 1e200 is infinite",
            6,
        ),
        (|x| x[0] * f64::NAN + x[1], &[1.0, 2.0], "mul of 1 and NaN is NaN", 11),
    ];
    for (f, x, text, after) in cases {
        assert_eq!(found(f, x), (text.to_owned(), Some(line + after)));
    }
}

#[test]
fn inputs_that_are_not_finite_are_their_own_origin() {
    assert_eq!(found(|x| x[0] + x[1].sin(), &[1.0, f64::NAN]), ("input 1 is NaN".to_owned(), None));
    let f = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[1]);
    let found = f.find_non_finite(&[1.0], &[0.0, f64::INFINITY]).unwrap().unwrap();
    assert_eq!(found.to_string(), "inactive input 1 is infinite");
    assert_eq!(found.origin, NonFiniteOrigin::Data { input: 1, value: f64::INFINITY });
    let constant = Tape::record(|_: &[Var]| Var::from(f64::NAN));
    let found = constant.find_non_finite(&[1.0]).unwrap().unwrap();
    assert_eq!(found.origin, NonFiniteOrigin::Constant);
}

#[test]
fn the_operation_that_made_the_derivative_is_found() {
    let line = line!() + 1;
    let cases: [Case; 4] = [
        (|x| (x[0] - x[1]).sqrt() * 3.0, &[2.0, 2.0], "sqrt of 0 has an infinite derivative", 1),
        (
            |x| x[0].powf(0.5) + x[1],
            &[0.0, 2.0],
            "powf of 0 and 0.5 has an infinite derivative by operand 1",
            3,
        ),
        (
            |x| (x[0] * 1e200 * x[1]).sin() * 1e200,
            &[0.0, 1.0],
            "mul of 0 and 1e200 has the derivative 1e200 by operand 1, times 1e200 it overflows",
            9,
        ),
        (|x| x[0].acos(), &[1.0], "acos of 1 has an infinite derivative", 14),
    ];
    for (f, x, text, after) in cases {
        assert_eq!(found(f, x), (text.to_owned(), Some(line + after)));
    }
    let f = Tape::record(|x: &[Var]| x[0] * 1e308 + x[0] * 1e308);
    let found = f.find_non_finite(&[0.0]).unwrap().unwrap();
    assert_eq!(found.origin, NonFiniteOrigin::Sum { place: None });
}

#[test]
fn results_that_are_finite_have_no_origin() {
    for f in [
        // Nothing depends on the infinite number.
        |x: &[Var]| 1.0 / x[0].exp(),
        // The adjoint of the root is zero.
        |x: &[Var]| (x[0] - x[0]).sqrt() * 0.0 + x[0],
        |x: &[Var]| x[0].max(0.0).sin(),
    ] {
        assert_eq!(Tape::record(f).find_non_finite(&[1000.0]).unwrap(), None);
    }
}

#[test]
fn the_first_output_and_input_are_named() {
    let f = Tape::record(|x: &[Var]| vec![x[0].sin(), x[1].sqrt(), x[0] / x[1]]);
    let found = f.find_non_finite(&[1.0, 0.0]).unwrap().unwrap();
    assert_eq!(found.result, NonFiniteResult::Value { output: 2 });
    let f = Tape::record(|x: &[Var]| [x[0].sin(), x[1].sqrt()]);
    let found = f.find_non_finite(&[1.0, 0.0]).unwrap().unwrap();
    assert_eq!(found.result, NonFiniteResult::Derivative { output: 1, input: 1 });
    let negative = |x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) };
    let f = Tape::record(negative);
    assert_eq!(f.find_non_finite(&[-1.0]).unwrap(), Err("negative"));
    assert!(f.find_non_finite(&[0.0]).unwrap().unwrap().is_some());
    assert_eq!(f.find_non_finite(&[1.0]).unwrap(), Ok(None));
}

#[traced]
fn annotated(x: &[Var]) -> Var {
    let mut sum = x[0];
    for i in 0..5 {
        if sum > 0.0 {
            sum -= x[1] * f64::from(i);
        } else {
            sum = sum.ln();
        }
    }
    sum
}

#[test]
fn origins_are_found_through_annotated_functions_and_kernels() {
    let f = Tape::builder().background(false).hot_threshold(u32::MAX).record(annotated);
    f.grad(&[9.0, 1.0]).unwrap();
    f.compile().unwrap();
    let before = f.report().tape_calls;
    let found = f.find_non_finite(&[0.5, 1.0]).unwrap().unwrap();
    assert!(found.to_string().starts_with("ln of -0.5 at "), "{found}");
    assert_eq!(f.report().tape_calls, before);
}

#[test]
fn a_long_run_is_an_error() {
    let mut limits = Limits::default();
    limits.trace_events = 10;
    let f = Tape::builder().limits(limits).record(|x: &[Var]| (0..20).fold(x[0], |y, _| y.ln()));
    let error = f.find_non_finite(&[5.0]).unwrap_err();
    assert!(error.is_too_long() && error.place().is_some());
    assert!(error.to_string().contains("Limits::trace_events"), "{error}");
}

/// The logarithm of the second argument, with the first one ignored.
struct Logarithm;

impl Operation for Logarithm {
    type Error = Infallible;

    fn name(&self) -> &str {
        "logarithm"
    }

    fn inputs(&self) -> usize {
        2
    }

    fn outputs(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
        y[0] = x[1].ln();
        Ok(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        out[1] = w[0] / x[1];
    }
}

#[test]
fn custom_operations_are_origins() {
    let f = CustomOperation::new(Logarithm);
    let f = Tape::record(move |x: &[Var]| {
        let Ok(y) = f.call(&[x[0], x[1] * 2.0]);
        (y[0] * 3.0).exp()
    });
    let found = f.find_non_finite(&[1.0, -1.0]).unwrap().unwrap();
    assert!(found.to_string().starts_with("logarithm of 1 and -2 at "), "{found}");
    assert_eq!(found.result, NonFiniteResult::Value { output: 0 });
    let found = f.find_non_finite(&[f64::INFINITY, f64::NAN]).unwrap().unwrap();
    assert_eq!(found.to_string(), "input 0 is infinite");
    let f = CustomOperation::new(Logarithm);
    let f = Tape::record(move |x: &[Var]| {
        let Ok(y) = f.call(&[x[0], x[1] * x[0]]);
        1.0 / (y[0] * y[0] + 1.0)
    });
    assert_eq!(f.find_non_finite(&[1.0, 2.0]).unwrap(), None);
    let found = f.find_non_finite(&[1.0, 1e-320]).unwrap().unwrap();
    assert_eq!(found.result, NonFiniteResult::Derivative { output: 0, input: 0 });
    assert!(found.to_string().ends_with("has an infinite derivative by operand 2"), "{found}");
}
