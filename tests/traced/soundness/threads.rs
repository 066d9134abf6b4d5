//! Several threads call one new function at once; a path that is first
//! seen after kernels were made; inputs of several lengths.

use std::thread;

use phigrad::check::same;
use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var};

/// A branch for each input; the number of those taken decides at the end.
#[phigrad::traced]
fn branches(x: &[Var]) -> Var {
    let mut y = Var::from(1.0);
    let mut count = 0;
    for &v in x {
        if v > 0.0 {
            y += v.sin();
        } else if v < -1.0 {
            count += 1;
            y *= v;
        } else {
            y -= v * v;
        }
    }
    if count == 2 { y.exp() } else { y }
}

fn point(random: &mut Random, len: usize, low: f64, high: f64) -> Vec<f64> {
    (0..len).map(|_| random.uniform(low, high)).collect()
}

#[track_caller]
fn assert_same(x: &[f64], (value, gradient): &(f64, Vec<f64>), expected: &(f64, Vec<f64>)) {
    let all = gradient.iter().zip(&expected.1).all(|(&a, &b)| same(a, b));
    assert!(same(*value, expected.0) && all, "{x:?}: {value} {gradient:?} {expected:?}");
}

#[test]
fn threads_add_different_paths_at_once() {
    for background in [false, true] {
        let builder = Tape::builder().numerics(Numerics::Exact).background(background);
        let recorded = &builder.hot_threshold(20).record(branches);
        thread::scope(|scope| {
            for seed in 0..3 {
                scope.spawn(move || {
                    let reference = Tape::builder().hot_threshold(u32::MAX).record(branches);
                    let mut random = Random::new(seed);
                    for round in 0..300 {
                        // Each thread begins in a corner of its own.
                        let (low, high) = match (round < 150, seed) {
                            (true, 0) => (0.1, 2.0),
                            (true, 1) => (-1.0, 0.0),
                            _ => (-2.0, 2.0),
                        };
                        let x = point(&mut random, 6, low, high);
                        let expected = reference.value_and_grad(&x).unwrap();
                        assert_same(&x, &recorded.value_and_grad(&x).unwrap(), &expected);
                    }
                });
            }
        });
        let report = recorded.report();
        assert!(report.refusals.is_empty(), "{report}");
    }
}

#[test]
fn a_path_seen_after_kernels_were_made_joins() {
    for numerics in [Numerics::Exact, Numerics::Real] {
        let builder = Tape::builder().numerics(numerics).background(false);
        let recorded = builder.hot_threshold(10).record(branches);
        let reference = Tape::builder().hot_threshold(u32::MAX).record(branches);
        let mut random = Random::new(7);
        let mut check = |low, high| {
            for _ in 0..200 {
                let x = point(&mut random, 5, low, high);
                let (found, expected) = (recorded.value_and_grad(&x), reference.value_and_grad(&x));
                let (found, expected) = (found.unwrap(), expected.unwrap());
                match numerics {
                    Numerics::Exact => assert_same(&x, &found, &expected),
                    _ => {
                        let near = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs().max(1.0);
                        let all = found.1.iter().zip(&expected.1).all(|(&a, &b)| near(a, b));
                        assert!(near(found.0, expected.0) && all, "{x:?}: {found:?} {expected:?}");
                    }
                }
            }
        };
        check(0.1, 2.0);
        check(-0.9, 2.0);
        check(-2.0, 2.0);
        check(0.1, 2.0);
    }
}

#[test]
fn lengths_do_not_mix() {
    let builder = Tape::builder().numerics(Numerics::Exact).background(false);
    let recorded = builder.hot_threshold(10).record(branches);
    let reference = Tape::builder().hot_threshold(u32::MAX).record(branches);
    let mut random = Random::new(3);
    for round in 0..600 {
        let x = point(&mut random, round % 4, -2.0, 2.0);
        let expected = reference.value_and_grad(&x).unwrap();
        assert_same(&x, &recorded.value_and_grad(&x).unwrap(), &expected);
    }
}
