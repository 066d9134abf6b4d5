//! Sums over data that are known only in a call: data so large or small that products of
//! them leave the range of numbers are the tape's.
#![allow(clippy::unwrap_used)] // Helpers of tests may fail like tests.

use phigrad::phi::Rule;
use phigrad::{Tape, Var};

/// So many points are fitted.
const DATA: usize = 40;

type Program = fn(&[Var], &[Var]) -> Var;

/// What comes of sums over the data, after `rounds` numbers.
fn rounds(
    x: &[Var],
    d: &[Var],
    rounds: usize,
    term: impl Fn(Var, Var) -> Var,
    bounded: impl Fn(Var) -> Var,
) -> Var {
    let (mut all, mut a) = (Var::from(0.0), x[0]);
    for _ in 0..rounds {
        let mut sum = Var::from(0.0);
        for i in 0..DATA {
            sum += term(a * d[i] - d[DATA + i], d[i]);
        }
        all = all * 0.5 + bounded(sum);
        a = a * 0.75 + x[0] * 0.25;
    }
    all
}

fn large_squares(x: &[Var], d: &[Var]) -> Var {
    rounds(x, d, 60, |r, _| r * r, |sum| sum.max(Var::from(5.0)))
}

fn squares(x: &[Var], d: &[Var]) -> Var {
    rounds(x, d, 60, |r, _| r * r, |sum| sum)
}

fn small_lines(x: &[Var], d: &[Var]) -> Var {
    rounds(x, d, 60, |r, x| r * x * 1e-3, |sum| sum.min(Var::from(5.0)))
}

fn small_cubes(x: &[Var], d: &[Var]) -> Var {
    rounds(x, d, 600, |r, _| r * r * r, |sum| sum.min(Var::from(5.0)))
}

fn sixth_powers(x: &[Var], d: &[Var]) -> Var {
    let term = |r: Var, x: Var| {
        let cube = r * r * r;
        cube * cube + cube * x
    };
    rounds(x, d, 600, term, |sum| sum)
}

/// Numbers around `x`, and others around `y`.
fn data(x: f64, y: f64) -> Vec<f64> {
    let xs = (0..DATA).map(|i| x * (1.0 + 0.1 * i as f64));
    let ys = (0..DATA).map(|i| y * (1.0 + 0.03 * (i * 7 % 5) as f64));
    xs.chain(ys).collect()
}

/// Calls the kernel of `f` for a number and data; whether it served each of them. What
/// comes of them is what the tape says.
fn served(f: Program, calls: &[(f64, Vec<f64>)]) -> Vec<bool> {
    let f = |x: &[Var], d: &[Var]| f(x, d);
    let tape = Tape::builder().hot_threshold(u32::MAX).record_with(f);
    let recorded = Tape::builder().hot_threshold(u32::MAX).background(false).record_with(f);
    recorded.value_and_grad(&[0.5], &data(1.0, 1.0)).unwrap();
    for (x, data) in calls {
        recorded.value_and_grad(&[*x], data).unwrap();
    }
    recorded.compile().unwrap();
    let explanation = recorded.explain().unwrap();
    assert!(explanation.rules().contains(&Rule::C7), "{explanation}");
    let call = |(x, data): &(f64, Vec<f64>)| {
        let before = recorded.report().kernel_calls;
        let (value, gradient) = recorded.value_and_grad(&[*x], data).unwrap();
        let is_served = recorded.report().kernel_calls > before;
        let expected = tape.value_and_grad(&[*x], data).unwrap();
        let near =
            |a: f64, b: f64| a == b || (a - b).abs() <= 1e-10 * b.abs() || a.is_nan() && b.is_nan();
        assert!(near(value, expected.0), "{value} {} at {x}, {}", expected.0, data[0]);
        assert!(near(gradient[0], expected.1[0]), "{gradient:?} {expected:?} at {x}, {}", data[0]);
        is_served
    };
    calls.iter().map(call).collect()
}

#[test]
fn data_out_of_range_are_the_tapes() {
    let sizes = [103.0, 110.0, 160.0, 170.0, 200.0, -103.0, -110.0, -160.0, -170.0, -200.0];
    let far: Vec<(f64, Vec<f64>)> =
        sizes.iter().map(|&size| (10f64.powf(-size), data(10f64.powf(size), 3.0))).collect();
    for f in [large_squares as Program, squares, small_lines, small_cubes, sixth_powers] {
        assert_eq!(served(f, &far), vec![false; far.len()]);
    }
    let sizes = [-60.0, -54.0, -52.0, -48.0, -40.0, -30.0, 30.0, 54.0, 60.0, 100.0, -100.0];
    let near: Vec<(f64, Vec<f64>)> =
        sizes.iter().map(|&size| (10f64.powf(-size), data(10f64.powf(size), 3.0))).collect();
    for f in [large_squares as Program, squares, small_lines, small_cubes, sixth_powers] {
        served(f, &near);
    }
}

#[test]
fn ordinary_data_are_the_kernels() {
    let mut with_zeros = data(1.0, 2.0);
    with_zeros[3] = 0.0;
    with_zeros[7] = -0.0;
    with_zeros[DATA + 3] = 0.0;
    let on_line: Vec<f64> = data(1.0, 1.0)[..DATA].to_vec();
    let on_line = [on_line.clone(), on_line.iter().map(|x| 2.0 * x).collect()].concat();
    let calls = vec![
        (0.5, data(1.0, 2.0)),
        (1e3, data(1.0, 1e-3)),
        (0.7, with_zeros),
        (0.7, on_line),
        (1e-6, data(1e6, 3.0)),
        (1e6, data(1e-6, 3.0)),
    ];
    for f in [large_squares as Program, squares, small_lines, sixth_powers] {
        assert_eq!(served(f, &calls), vec![true; calls.len()]);
    }
}

#[test]
fn data_that_are_no_numbers_are_the_tapes() {
    let mut calls = vec![(0.5, data(1.0, 2.0)), (0.5, data(1.0, 2.0)), (0.5, data(1.0, 2.0))];
    calls[0].1[2] = f64::NAN;
    calls[1].1[2] = f64::INFINITY;
    calls[2].1[DATA + 5] = f64::NEG_INFINITY;
    for f in [large_squares as Program, small_lines, small_cubes] {
        assert_eq!(served(f, &calls), vec![false; calls.len()]);
    }
}
