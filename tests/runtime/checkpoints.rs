//! Recorded functions with a low limit on saved values: kernels with checkpoints agree with the
//! tape, and functions without possible checkpoints stay on the tape.

use crate::common::served::{Pair, Served, limits, manual};
use phigrad::internals::Random;
use phigrad::report::KernelReport;
use phigrad::{Limits, Numerics, Purpose, Refusal, TapeBuilder, Var, traced};

fn saved_values(numbers: usize) -> Limits {
    limits(|limits| limits.saved_values = numbers)
}

fn builder(numbers: usize) -> TapeBuilder {
    manual(Numerics::Real).phi_calculus(false).limits(saved_values(numbers))
}

/// The kernels of `f`, which agree with the tape at all of `points`.
fn kernels<F: Fn(&[Var]) -> Var + Copy>(
    numbers: usize,
    points: &[Vec<f64>],
    f: F,
) -> Vec<KernelReport> {
    let pair = Pair::with(builder(numbers), Numerics::Real, f);
    pair.profile(points);
    for point in points {
        assert_eq!(pair.check(point), Served::Kernel);
    }
    let report = pair.kernel.report();
    assert_eq!(report.refusals, []);
    assert!(report.kernels.iter().all(|kernel| kernel.saved_values <= numbers as u64), "{report}");
    let gradient = report.kernels.iter().find(|kernel| kernel.purpose == Purpose::Gradient);
    let is_reported =
        report.to_string().contains("kernel for the gradient has checkpoints: it saves");
    assert_eq!(is_reported, gradient.unwrap().recomputed > 0, "{report}");
    report.kernels
}

fn points(count: usize, ranges: &[(f64, f64)]) -> Vec<Vec<f64>> {
    let mut random = Random::new(count as u64);
    let mut point = || ranges.iter().map(|&(a, b)| random.uniform(a, b)).collect();
    (0..count).map(|_| point()).collect()
}

fn sines(x: &[Var]) -> Var {
    (0..1000).fold(x[0], |state, i| (state * x[1] + f64::from(i).cos()).sin())
}

#[test]
fn a_loop_has_checkpoints_if_the_limit_requires_them() {
    let points = points(5, &[(0.1, 2.0), (0.1, 0.8)]);
    let free = kernels(1 << 20, &points, sines);
    assert!(free.iter().all(|kernel| kernel.recomputed == 0));
    assert!(free[1].saved_values >= 1000, "{free:?}");
    for (numbers, most) in [(300, 1), (100, 3), (80, 5)] {
        let kernels = kernels(numbers, &points, sines);
        assert!((1..=most).contains(&kernels[1].recomputed), "{numbers}: {kernels:?}");
    }
}

#[test]
fn nested_loops_have_checkpoints() {
    fn nested(x: &[Var]) -> Var {
        (0..50).fold(x[0], |state, i| {
            let inner = (0..200).fold(state, |inner, j| (inner * x[1] + f64::from(j).sin()).sin());
            state * 0.5 + inner * f64::from(i).cos()
        })
    }
    let points = points(3, &[(0.1, 2.0), (0.1, 0.8)]);
    for numbers in [1000, 200] {
        assert!(kernels(numbers, &points, nested)[1].recomputed > 0);
    }
}

#[test]
fn inputs_that_a_loop_reads_have_their_derivatives() {
    fn filter(x: &[Var]) -> Var {
        let mut states = [x[0], x[1]];
        for input in &x[2..] {
            states = [(states[0] * 0.5 + states[1] * *input).sin(), states[0] * states[1] + 0.1];
        }
        states[0] + states[1]
    }
    let points = points(3, &[(0.1, 0.9); 502]);
    assert!(kernels(400, &points, filter)[1].recomputed > 0);
}

/// Its number of iterations depends on the inputs.
#[traced]
fn decay(x: &[Var]) -> Var {
    let (mut y, mut z) = (x[0], x[1]);
    while y > 0.1 {
        y = y * (x[1] * 0.01 + 0.9) - y.sin() * 0.01;
        z = (z + y).sin() * 1.1;
    }
    y * z
}

#[test]
fn a_loop_with_a_data_dependent_exit_has_checkpoints() {
    let points = points(60, &[(0.05, 50.0), (0.1, 2.0)]);
    let free = kernels(1 << 20, &points, decay);
    let saved = free[1].saved_values;
    assert!(saved > 100 && free[1].recomputed == 0, "{free:?}");
    let checkpointed = kernels(saved as usize * 2 / 3, &points, decay);
    assert!(checkpointed[1].recomputed > 0, "{checkpointed:?}");
}

#[test]
fn a_long_loop_needs_little_memory() {
    fn long(x: &[Var]) -> Var {
        (0..200_000).fold(x[0], |state, _| state.sin() + x[1])
    }
    let kernels = kernels(2000, &[vec![0.7, 1.3]], long);
    assert_eq!(kernels[1].recomputed, 1, "{kernels:?}");
}

#[test]
fn trajectories_that_are_read_later_are_refused_beyond_the_limit() {
    let f = |x: &[Var]| {
        let mut states = vec![x[0]];
        for i in 0..300 {
            states.push((states[i] * x[1] + f64::from(i as u32).cos()).sin());
        }
        states.iter().rev().fold(x[1], |sum, &state| (sum * state).cos())
    };
    let f = builder(100).record(f);
    let on_tape = f.grad(&[0.3, 0.4]).unwrap();
    let error = f.compile().unwrap_err();
    assert!(error.is_refused() && error.to_string().contains("(Limits::saved_values)"), "{error}");
    let refusals = f.report().refusals;
    assert!(
        refusals.iter().all(|r| matches!(r, Refusal::SavedValues { limit: 100, .. })),
        "{refusals:?}"
    );
    assert_eq!(f.grad(&[0.3, 0.4]).unwrap(), on_tape);
}
