//! Loops that add an input and take it away again: where it is NaN or infinite a kernel does
//! what the program does, though its closed form does not depend on that input.
#![allow(clippy::unwrap_used)] // A failing helper fails its test.

use phigrad::{Tape, Var};

type Program = fn(&[Var]) -> Var;

/// 100 iterations of `step`.
fn iterated(x: &[Var], step: impl Fn(Var, usize) -> Var) -> Var {
    (0..100).fold(x[1], step)
}

fn check(name: &str, program: Program, point: &[f64]) {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(program), builder().record(program));
    kernel.value_and_grad(&[0.5, 0.9]).unwrap();
    kernel.compile().unwrap();
    let report = kernel.report();
    assert!(!report.closed.is_empty(), "{name}: {report}");
    let bits = |(value, gradient): (f64, Vec<f64>)| -> Vec<Option<u64>> {
        let all = gradient.into_iter().chain([value]);
        all.map(|number| (!number.is_nan()).then(|| number.to_bits())).collect()
    };
    let expected = tape.value_and_grad(point).unwrap();
    let (value, gradient) = (kernel.eval(point).unwrap(), kernel.grad(point).unwrap());
    for got in [kernel.value_and_grad(point).unwrap(), (value, gradient)] {
        let shown = format!("{name} at {point:?}: {got:?} for {expected:?}");
        assert_eq!(bits(got), bits(expected.clone()), "{shown}");
    }
    // A finite call is one of the kernel.
    let before = kernel.report().kernel_calls;
    kernel.value_and_grad(&[0.25, 0.75]).unwrap();
    assert_eq!(kernel.report().kernel_calls, before + 1, "{name}");
}

#[test]
fn what_is_no_number_is_not_forgotten() {
    let decided: Program = |x| {
        let s = iterated(x, |s, _| s + x[0] - x[0]);
        if s != s { x[1] * 5.0 } else { x[1] }
    };
    let compared: Program = |x| {
        let s = iterated(x, |s, _| s + x[0] - x[0]);
        if s > 0.0 { x[1] * 2.0 } else { x[1] * 7.0 }
    };
    let programs: [(&str, Program); 14] = [
        ("decided", decided),
        ("compared", compared),
        ("limited", |x| {
            let s = iterated(x, |s, _| s + x[0] - x[0]);
            s.max(0.1) + s.min(5.0)
        }),
        ("returned", |x| iterated(x, |s, _| s + x[0] - x[0])),
        ("decayed", |x| iterated(x, |s, _| s * 0.9 + x[0] - x[0])),
        ("products", |x| iterated(x, |s, _| s + x[0] * x[1] - x[1] * x[0])),
        ("differences", |x| iterated(x, |s, _| x[0] - (x[0] - s))),
        ("to and fro", |x| iterated(x, |s, i| if i % 2 == 0 { s + x[0] } else { s - x[0] })),
        ("tables", |x| iterated(x, |s, i| s + x[0] * (i % 3) as f64 - x[0] * (i % 3) as f64)),
        ("remembered", |x| {
            let mut numbers = vec![x[1]];
            (0..100).for_each(|i| numbers.push(numbers[i] + x[0] - x[0]));
            numbers[50] * 2.0 + numbers[20]
        }),
        ("from itself", |x| iterated(x, |s, _| s + x[1] - (x[0] - x[0]) * x[1])),
        ("but for its inverse", |x| iterated(x, |s, _| s + x[0] - x[0] + 1.0 / x[0])),
        ("but for an exponential", |x| iterated(x, |s, _| s * 0.5 + x[0] - x[0] + (-x[0]).exp())),
        ("nested", |x| {
            (0..60).fold(x[1], |w, _| {
                let start = w * 0.0;
                w - (0..40).fold(start, |g, _| g + x[0] - x[0] + w * 0.001)
            })
        }),
    ];
    for (name, program) in programs {
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            check(name, program, &[x, 0.3]);
            check(name, program, &[x, -2.0]);
        }
    }
}

#[test]
fn inactive_inputs_that_are_no_numbers_are_not_forgotten() {
    let run = |x: &[Var], data: &[Var]| {
        let s = (0..100).fold(x[0], |s, _| s * 0.5 + data[0] - data[0]);
        if s != s { x[0] * 5.0 } else { x[0] * s }
    };
    let f = Tape::builder().background(false).record_with(run);
    f.value_and_grad(&[0.5], &[1.0]).unwrap();
    f.compile().unwrap();
    for data in [f64::NAN, f64::INFINITY] {
        assert_eq!(f.grad(&[0.3], &[data]).unwrap(), [5.0]);
    }
    assert!(!f.report().closed.is_empty(), "{}", f.report());
}

#[test]
fn what_overflows_is_not_forgotten() {
    let decided = |x: &[Var], s: Var| if s > -1e9 { x[1] * 2.0 } else { x[1] * 7.0 };
    let programs: [(&str, Program); 6] = [
        ("products", |x| iterated(x, |s, _| s + x[0] * x[2] - x[2] * x[0])),
        ("decayed products", |x| iterated(x, |s, _| s * 0.9 + x[0] * x[2] - x[2] * x[0])),
        ("exponentials", |x| {
            let e = x[0].exp();
            iterated(x, |s, _| s + e - e)
        }),
        ("inverses", |x| iterated(x, |s, _| s + 1.0 / x[3] - 1.0 / x[3])),
        ("powers", |x| iterated(x, |s, _| s * 0.5 + x[0].powi(2) - x[0].powi(2))),
        ("systems", |x| {
            let (mut a, mut b) = (x[1], x[1] * 0.5);
            for _ in 0..2000 {
                (a, b) = (a * 0.5 + b * x[1] + x[0] * x[2] - x[2] * x[0], b * 0.25 + a * x[1]);
            }
            a + b
        }),
    ];
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let mut wrong = Vec::new();
    for (name, program) in programs {
        let whole = move |x: &[Var]| decided(x, program(x));
        let (tape, kernel) = (builder().record(whole), builder().record(whole));
        kernel.value_and_grad(&[0.5, 0.25, 0.5, 0.75]).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{name}: {}", kernel.report());
        let x = [1e200, 0.3, 1e200, 0.0];
        let expected = tape.value_and_grad(&x).unwrap();
        assert_eq!(expected.1[1], 7.0, "{name}");
        let got = kernel.value_and_grad(&x).unwrap();
        if got != expected {
            wrong.push(format!("{name}: {got:?} for {expected:?}"));
        }
        // A call in range is one of the kernel.
        let before = kernel.report().kernel_calls;
        kernel.value_and_grad(&[0.25, 0.125, 0.5, 1.5]).unwrap();
        assert_eq!(kernel.report().kernel_calls, before + 1, "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
