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
    let programs: [(&str, Run, &[[f64; 2]]); 4] = [
        ("descent", descent, &[[0.5, 1.0884], [0.3, 1.03], [0.5, 1.1], [0.5, -1.08], [0.5, -1.1]]),
        ("mixture", mixture, &[[1.0, 1.0884], [0.6, 1.1], [1.0, -1.08]]),
        ("momentum", momentum, &[[1.29, 1.0538], [0.001, 1.54], [0.002, 1.49], [0.01, 0.95]]),
        ("spring", spring, &[[1.1, -1.06], [1.3, 1.03], [0.7, 1.02]]),
    ];
    for (name, program, rates) in programs {
        let mut served = 0;
        for &[rate, change] in rates {
            let ([(_, tape), (_, kernel)], by_kernel) = both(program, &[0.25, rate, 3.0, change]);
            let error = |slopes: &[f64]| (slopes[0] + slopes[2] - 1.0).abs();
            let size = kernel[0].abs().max(1.0);
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
    let ([(tape, _), (kernel, _)], _) = both(spring, &[1.2908, 1.3699, 1.1491, -1.0877]);
    assert!((kernel - tape).abs() <= 1e-12 * tape.abs(), "{tape} {kernel}");
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
