//! Loops at a rate that an outer loop changes: what they carry comes to a point, or leaves it, in
//! each of its iterations.
#![allow(clippy::unwrap_used)] // Tests fail like this.

use phigrad::{Tape, Var};

type Run = fn(&[Var]) -> Var;

/// Twenty epochs at rates that are multiplied by input 3, from input 0 and at rest, toward
/// input 2.
fn epochs(x: &[Var], step: impl Fn(Var, Var, Var) -> (Var, Var), times: usize) -> Var {
    let (mut s, mut speed, mut rate) = (x[0], x[0] * 0.0, x[1]);
    for _ in 0..20 {
        for _ in 0..times {
            (s, speed) = step(s, speed, rate);
        }
        rate *= x[3];
    }
    s
}

fn descent(x: &[Var]) -> Var {
    epochs(x, |s, speed, rate| (s - rate * (s - x[2]), speed), 40)
}

fn mixture(x: &[Var]) -> Var {
    epochs(x, |s, speed, rate| (s + (x[2] - s) * rate * 0.5, speed), 60)
}

fn momentum(x: &[Var]) -> Var {
    let step = |s: Var, speed: Var, rate: Var| {
        let next = speed * 0.5 - rate * (s - x[2]);
        (s + next, next)
    };
    epochs(x, step, 400)
}

fn spring(x: &[Var]) -> Var {
    let step = |s: Var, speed: Var, rate: Var| {
        let next = speed + rate * (x[2] - s) * 0.1 - speed * 0.2;
        (s + next * 0.1, next)
    };
    epochs(x, step, 400)
}

/// Toward a quotient.
fn scaled(x: &[Var]) -> Var {
    epochs(x, |s, speed, rate| (s - rate * (s * x[4] - x[2]), speed), 40)
}

/// Loops one after the other, at powers of the rate.
fn sequence(x: &[Var]) -> Var {
    (0..5).fold(x[0], |s, epoch| {
        let rate = x[1].powi(epoch + 1) * x[3];
        (0..64).fold(s, |s, _| s - rate * (s - x[2]))
    })
}

/// The value and the gradient of `run` by the tape and by kernels with a closed form, and how many
/// calls these have served without the one in reserve.
fn both(run: Run, x: &[f64]) -> ([(f64, Vec<f64>); 2], u64) {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(run), builder().record(run));
    kernel.value_and_grad(&[0.3, 0.2, 0.5, 0.9, 0.7][..x.len()]).unwrap();
    kernel.compile().unwrap();
    let results = [&tape, &kernel].map(|recorded| recorded.value_and_grad(x).unwrap());
    let report = kernel.report();
    assert!(report.closed.iter().any(|applied| applied.at.is_some()), "{report}");
    (results, report.kernel_calls - report.reserve_calls)
}

#[test]
fn what_a_target_gets_is_what_the_start_loses() {
    // Both derivatives are 1 together, however large they are on the way.
    let programs: [(&str, Run, &[[f64; 2]]); 5] = [
        ("descent", descent, &[[0.5, 1.0884], [0.3, 1.03], [0.5, 1.1], [0.5, -1.08], [0.5, -1.1]]),
        ("mixture", mixture, &[[1.0, 1.0884], [0.6, 1.1], [1.0, -1.08]]),
        ("momentum", momentum, &[[1.29, 1.0538], [0.001, 1.54], [0.002, 1.49], [0.01, 0.95]]),
        ("sequence", sequence, &[[1.19, 1.0], [1.1, 0.9], [0.5, 1.0]]),
        ("spring", spring, &[[1.1, -1.06], [1.3, 1.03], [0.7, 1.02]]),
    ];
    for (name, program, rates) in programs {
        let mut served = 0;
        for &[rate, change] in rates {
            let ([(_, tape), (_, kernel)], by_kernel) = both(program, &[0.25, rate, 3.0, change]);
            let error = |slopes: &[f64]| (slopes[0] + slopes[2] - 1.0).abs();
            let size = tape[0].abs().max(1.0);
            let most = 4.0 * error(&tape) + 16.0 * f64::EPSILON * size;
            assert!(error(&kernel) <= most, "{name} {rate} {change}: {tape:?} {kernel:?}");
            served += by_kernel;
        }
        assert!(served > 0, "{name}");
    }
}

#[test]
fn what_has_come_to_rest_stays() {
    // A spring at rest that the next epochs would drive away, if anything were left of the way.
    let ([(tape, _), (kernel, _)], served) = both(spring, &[1.2908, 1.3699, 1.1491, -1.0877]);
    assert!((kernel - tape).abs() <= 1e-12 * tape.abs(), "{tape} {kernel}");
    assert_eq!(served, 0, "the speed may be on its way to zero");
    // What does not move the point where it rests has derivatives that vanish with the way there.
    let mut served = 0;
    for [rate, change, scale] in [0.4, 0.7, 0.75, 0.8, 0.9, 1.0].map(|x| [x, 1.5 - x, 0.6 + x]) {
        let ([(_, tape), (_, kernel)], by_kernel) = both(scaled, &[1.3, rate, 1.7, change, scale]);
        if tape[1].abs() < 1e-60 {
            assert!(kernel[1].abs() < 1e-60 && kernel[3].abs() < 1e-60, "{kernel:?} for {tape:?}");
            served += by_kernel;
        }
    }
    assert!(served > 0);
}

/// The largest difference of two gradients, next to the largest derivative.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, f64::max);
    let apart = largest(&mut a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    apart / largest(&mut b.iter().map(|b| b.abs()))
}

#[test]
fn targets_and_starts_of_all_kinds_have_their_derivatives() {
    fn steps(mut s: Var, rate: Var, target: Var) -> Var {
        for _ in 0..40 {
            s -= rate * (s - target);
        }
        s
    }
    fn rates(x: &[Var], epoch: impl Fn(Var, Var) -> Var) -> Var {
        let (mut s, mut rate) = (x[0], x[1]);
        for _ in 0..20 {
            s = epoch(s, rate);
            rate *= x[3];
        }
        s
    }
    let programs: [(&str, Run); 9] = [
        ("negative", |x| rates(x, |s, rate| steps(s, rate, -x[2]))),
        ("half", |x| rates(x, |s, rate| steps(s, rate, x[2] * 0.5))),
        ("sum", |x| rates(x, |s, rate| steps(s, rate, x[2] + x[4] * 0.3 + 1.0))),
        ("product", |x| rates(x, |s, rate| steps(s, rate, x[2] * x[4]))),
        ("of the rate", |x| rates(x, |s, rate| steps(s, rate, x[2] * rate))),
        ("of the start", |x| rates(x, |s, rate| steps(s, rate, x[2] + s * 0.5))),
        ("rate of the start", |x| rates(x, |s, rate| steps(s, rate * s * 0.1, x[2]))),
        ("carried", |x| {
            let (mut s, mut target, mut rate) = (x[0], x[2], x[1]);
            for _ in 0..20 {
                s = steps(s, rate, target);
                target = target * 0.9 + x[4] * 0.01;
                rate *= x[3];
            }
            s
        }),
        ("two from one", |x| {
            rates(x, |s, rate| {
                let (mut a, mut b) = (s, s);
                for _ in 0..400 {
                    a = a - rate * (a - x[2]) + b * 0.1;
                    b = b * 0.5 + x[4] * 0.01;
                }
                a + b
            })
        }),
    ];
    for (name, program) in programs {
        let mut served = 0;
        for x in
            [[0.25, 0.02, 1.5, 1.05, 0.7], [0.5, 0.4, -0.8, 0.9, 1.3], [0.1, 0.01, 2.0, 0.8, 0.2]]
        {
            let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
            let (tape, kernel) = (builder().record(program), builder().record(program));
            kernel.value_and_grad(&[0.3, 0.2, 0.5, 0.9, 0.7]).unwrap();
            kernel.compile().unwrap();
            let [(expected, slopes), (value, found)] =
                [&tape, &kernel].map(|recorded| recorded.value_and_grad(&x).unwrap());
            assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{name} {x:?}");
            let error = difference(&found, &slopes);
            assert!(error <= 1e-11, "{name} {x:?}: {found:?} for {slopes:?}");
            served += kernel.report().kernel_calls - kernel.report().reserve_calls;
        }
        assert_eq!(served, 3, "{name}");
    }
}

#[test]
fn at_rest_only_what_moves_nothing_has_no_derivative() {
    // The target is a sum, or the quotient of inputs: the speed is zero there, but is moved by it.
    fn epochs_to(x: &[Var], force: impl Fn(Var) -> Var) -> Var {
        let (mut s, mut speed, mut rate) = (x[0], x[0] * 0.0, x[1]);
        for _ in 0..3 {
            for _ in 0..400 {
                speed = speed * 0.5 - rate * force(s);
                s += speed;
            }
            rate *= x[3];
        }
        s + speed
    }
    let programs: [(&str, Run); 2] = [
        ("sum", |x| epochs_to(x, |s| s - (x[2] + x[4]))),
        ("quotient", |x| epochs_to(x, |s| s * x[4] - x[2])),
    ];
    for (name, program) in programs {
        let mut served = 0;
        for rate in [0.001, 0.002, 0.01, 3.0, 3.01] {
            let start = if name == "sum" { 1.25 + 0.5 } else { 1.25 / 0.5 };
            let ([(_, tape), (_, kernel)], by_kernel) =
                both(program, &[start, rate, 1.25, 1.0, 0.5]);
            let error = difference(&kernel, &tape);
            assert!(error <= 1e-11, "{name} {rate}: {kernel:?} for {tape:?}");
            served += by_kernel;
        }
        assert!(served > 0, "{name}");
    }
}

#[test]
fn a_rate_of_zero_moves_nothing_and_has_a_derivative() {
    let twice: Run = |x| {
        let (mut s, mut before) = (x[0], x[0]);
        for rate in [x[1], x[3]] {
            for _ in 0..100 {
                let next = s - rate * (s - x[2]) + 0.5 * (s - before);
                (before, s) = (s, next);
            }
        }
        s
    };
    let behind: Run = |x| {
        let mut s = x[0];
        for _ in 0..100 {
            s -= x[1] * (s - x[2]);
        }
        let mut before = s;
        for _ in 0..400 {
            let next = s - x[3] * (s - 1.0) + 0.5 * (s - before);
            (before, s) = (s, next);
        }
        s
    };
    let epochs: Run = |x| {
        let (mut s, mut speed, mut rate) = (x[0], x[0] * 0.0, x[1]);
        for _ in 0..4 {
            for _ in 0..400 {
                speed = speed * x[3] - rate * (s - x[2]);
                s += speed;
            }
            rate *= 0.9;
        }
        s
    };
    for (name, program) in [("twice", twice), ("behind", behind), ("epochs", epochs)] {
        for x in [
            [1.0, 0.0, 2.0, 0.0],
            [0.5, 0.3, 2.0, 0.0],
            [1.0, 0.0, 2.0, 0.9],
            [1.0, 1e-9, 2.0, 0.01],
        ] {
            let ([(expected, tape), (value, kernel)], _) = both(program, &x);
            assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{name} {x:?}");
            let error = difference(&kernel, &tape);
            assert!(error <= 1e-10, "{name} {x:?}: {kernel:?} for {tape:?}");
        }
    }
}

#[test]
fn a_target_where_several_loops_rest_has_all_of_its_derivative() {
    let springs: Run = |x| {
        let (mut s, mut speed, mut rate) = (x[0], x[0] * 0.0, x[1]);
        for _ in 0..4 {
            for _ in 0..100 {
                speed += (x[2] - s) * rate - speed * 0.3;
                s += speed * 0.1;
            }
            rate *= x[3];
        }
        s
    };
    let behind: Run = |x| {
        let (mut s, mut speed) = (x[0], x[0] * 0.0);
        for _ in 0..400 {
            s -= x[1] * (s - x[2]);
        }
        for _ in 0..400 {
            speed = 0.8 * speed - x[1] * x[3] * (s - x[2]);
            s += speed;
        }
        s
    };
    for (name, program) in [("springs", springs), ("behind", behind)] {
        for x in [[1.0, 0.25, 1.0, 0.5], [1.125, 0.001, 1.125, 0.75], [0.3, 0.09, -0.3, 0.33]] {
            let ([(_, tape), (_, kernel)], served) = both(program, &x);
            let error = difference(&kernel, &tape);
            assert!(error <= 1e-11, "{name} {x:?}: {kernel:?} for {tape:?}");
            assert_eq!(served, 1, "{name} {x:?}");
        }
    }
}

/// A rate may be a sum: what it is a factor of has no term of its own for that, and the fixed point
/// is a quotient by another factor, which may vanish.
#[test]
fn rates_that_are_sums_are_factors() {
    let programs: [fn(&[Var]) -> Var; 3] = [
        |x| {
            let rate = 1.0 - x[0];
            (0..33).fold(Var::from(0.0), |s, _| s - rate * (s * x[1] - 0.8)) + x[2]
        },
        |x| {
            let rate = x[0] + 1.0;
            (0..33).fold(x[2], |s, _| s * (1.0 - rate * x[1]) + rate * x[2])
        },
        |x| {
            let rate = x[0] - x[2];
            (0..33).fold(x[2], |s, _| s - rate * (s * x[1] - x[2] * x[0]))
        },
    ];
    for (number, run) in programs.into_iter().enumerate() {
        let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
        let (tape, kernel) = (builder().record(run), builder().record(run));
        kernel.value_and_grad(&[0.13, 0.34, 0.7]).unwrap();
        kernel.compile().unwrap();
        assert!(!kernel.report().closed.is_empty(), "{number}: {}", kernel.report());
        let sizes = [0.3, 0.01, 1e-8, 1e-15, -1e-18, 1e-25, -1e-30, 1e-40, 1e-60];
        for x in sizes.map(|size| [0.136, size, 0.7]) {
            let [(value, slopes), (closed, found)] =
                [&tape, &kernel].map(|recorded| recorded.value_and_grad(&x).unwrap());
            assert!((value - closed).abs() <= 1e-13 * value.abs(), "{number} {x:?}: {closed}");
            for (slope, found) in slopes.iter().zip(&found) {
                let most = 1e-12 * (1.0 + slope.abs());
                assert!((slope - found).abs() <= most, "{number} {x:?}: {found:e} {slope:e}");
            }
        }
        assert_eq!(kernel.report().kernel_calls, 9, "{number}: {}", kernel.report());
    }
}
