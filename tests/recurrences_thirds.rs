//! Programs that begin where they stay, by coefficients that are rounded: closed forms, in which
//! rounding would grow, are not used there, also where only the value is asked for.
#![allow(clippy::unwrap_used)] // Tests fail like this.

#[path = "support/bound.rs"]
mod bound;

use bound::ulp;
use phigrad::{Tape, Var};

type Run = fn(&[Var]) -> Var;

/// Coefficients that are rounded, as a third is: rounding leaves something of what a step adds.
#[test]
fn at_rest_by_coefficients_that_are_rounded() {
    let programs: [(&str, Run); 3] = [
        ("one", |x| {
            let (mut c, rate) = (x[0], x[1] * 0.03);
            for _ in 0..100 {
                let mean = (x[0] + x[0] + c) / 3.0;
                c -= (c - mean) * rate;
            }
            c
        }),
        ("one by a constant", |x| {
            let (mut c, tenth) = (x[0], x[0] / 7.0);
            for _ in 0..100 {
                c += (c / 7.0 - tenth) * x[1];
            }
            c
        }),
        ("two", |x| {
            let rate = x[1] * 0.03;
            let (a, mut b, mut c) = (x[0], x[0], x[0]);
            for _ in 0..100 {
                let mean = (a + b + c) / 3.0;
                let way = rate * (b - c) - (c - mean) * 0.1;
                (b, c) = (b - way, way + c);
            }
            c
        }),
    ];
    for (name, run) in programs {
        let kernel = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
        for _ in 0..2 {
            kernel.eval(&[0.4, 1.3]).unwrap();
            kernel.value_and_grad(&[0.4, 1.3]).unwrap();
            kernel.compile().unwrap();
        }
        for x0 in [1.0, 0.3, -7.25] {
            for x1 in [1.3, 40.0, 150.0, 300.0, 1000.0] {
                let value = kernel.eval(&[x0, x1]).unwrap();
                let (beside, _) = kernel.value_and_grad(&[x0, x1]).unwrap();
                let most = 4.0 * ulp(x0);
                assert!((value - x0).abs() <= most, "{name} {x0} {x1}: {value:e}");
                assert!((beside - x0).abs() <= most, "{name} {x0} {x1}: {beside:e}");
            }
        }
        assert!(!kernel.report().closed.is_empty(), "{name}: {}", kernel.report());
    }
}

/// Of constants it is known beforehand where powers are large.
#[test]
fn at_rest_by_constants_that_are_rounded() {
    let programs: [(&str, Run); 3] = [
        ("one", |x| {
            let mut c = x[0];
            for _ in 0..100 {
                let mean = (x[0] + x[0] + c) / 3.0;
                c -= (c - mean) * 7.0;
            }
            c
        }),
        ("two", |x| {
            let (a, mut b, mut c) = (x[0], x[0], x[0]);
            for _ in 0..100 {
                let mean = (a + b + c) / 3.0;
                let way = 9.0 * (b - c) - (c - mean) * 0.1;
                (b, c) = (b - way, way + c);
            }
            c
        }),
        ("three", |x| {
            let (mut a, mut b, mut c) = (x[0], x[0], x[0]);
            for _ in 0..100 {
                let mean = (a + b + c + x[0]) / 4.0;
                let way = (mean - (a * 0.1 + b * 0.2 + c * 0.7)) * 5.0;
                (a, b, c) = (a - way, b + way * 2.0, c + (b - a) / 3.0);
            }
            c
        }),
    ];
    for (name, run) in programs {
        let kernel = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
        for _ in 0..2 {
            kernel.eval(&[0.4]).unwrap();
            kernel.value_and_grad(&[0.4]).unwrap();
            kernel.compile().unwrap();
        }
        for x0 in [1.0, 0.3, -7.25, 1e5] {
            let value = kernel.eval(&[x0]).unwrap();
            let (beside, _) = kernel.value_and_grad(&[x0]).unwrap();
            let most = 4.0 * ulp(x0);
            assert!((value - x0).abs() <= most, "{name} {x0}: {value:e}");
            assert!((beside - x0).abs() <= most, "{name} {x0}: {beside:e}");
        }
        assert_ne!(kernel.report().kernel_calls, 0, "{name}: {}", kernel.report());
    }
}
