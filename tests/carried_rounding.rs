//! What a loop carries is multiplied by constants and inputs again and again: if these are
//! put together before the loop, their rounding error comes in each iteration, always the
//! same. Errors of kernels grow as those of the tape all the same.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;
#[path = "support/recurrences.rs"]
mod support;

use phigrad::check::Random;
use phigrad::{Tape, Var};
use precise::Number;
use support::{Program, precise, taped};

/// How a number grows in a step by about as much as it shrinks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Products,
    Differences,
    Multiples,
    Part,
    Factors,
    Quotients,
}

const STEPS: usize = 5000;

impl Program for Step {
    fn eval<T: Number>(&self, x: &[T]) -> T {
        let (mut s, mut t) = (x[0], x[0]);
        let number = T::from;
        // Without it there are closed forms.
        let little = number(1e-12);
        for _ in 0..STEPS {
            let next = match self {
                Step::Products => s * x[1] + s * (x[1] * number(0.1)),
                Step::Differences => s * (x[1] * number(1.3)) - s * (x[1] * number(0.2)),
                Step::Multiples => (s * number(0.7) + s * number(0.4)) * x[1],
                Step::Part => (s * number(0.1) + s) * x[1],
                Step::Factors => s * number(0.7) * number(11.0 / 7.0) * x[1],
                Step::Quotients => {
                    t = t / x[1] * number(0.909);
                    s / x[1] * number(0.909)
                }
            };
            s = next + s * s * s * little;
        }
        s + t
    }
}

/// The sums of the errors of each component.
fn errors(of: &[f64], exact: &[f64], sums: &mut [f64]) {
    for ((sum, of), exact) in sums.iter_mut().zip(of).zip(exact) {
        *sum += (of - exact).abs() / exact.abs().max(1e-300);
    }
}

#[test]
fn rounding_errors_of_what_is_computed_before_a_loop_do_not_add_up() {
    let mut worse = Vec::new();
    let all = [
        Step::Products,
        Step::Differences,
        Step::Multiples,
        Step::Part,
        Step::Factors,
        Step::Quotients,
    ];
    for step in all {
        let f = Tape::builder().hot_threshold(u32::MAX).record(move |x: &[Var]| step.eval(x));
        let mut random = Random::new(7);
        let (mut of_kernel, mut of_tape) = ([0.0; 3], [0.0; 3]);
        for number in 0..12 {
            let x = [random.uniform(0.5, 2.0), random.uniform(0.90905, 0.90915)];
            if number == 0 {
                f.grad(&x).unwrap();
                f.compile().unwrap();
            }
            let before = f.report().kernel_calls;
            let (value, mut got) = f.value_and_grad(&x).unwrap();
            got.push(value);
            assert_eq!(f.report().kernel_calls, before + 1, "{}", f.report());
            let exact = precise(&step, &x);
            errors(&got, &exact, &mut of_kernel);
            errors(&taped(&step, &x), &exact, &mut of_tape);
        }
        let are_good = of_kernel.iter().zip(&of_tape).all(|(kernel, tape)| *kernel <= 3.0 * tape);
        if !are_good {
            worse.push(format!("{step:?}: {of_kernel:?}, tape {of_tape:?}"));
        }
    }
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}
