//! Sums and differences of what a loop carries that are numbers of their own: they have the digits
//! of that, where all of the numbers themselves cancels.
#![allow(clippy::unwrap_used)] // Tests fail like this.

use phigrad::{RecordedWith, Tape, Var};

type Run = fn(&[Var], &[Var]) -> Var;
type Combine = fn([Var; 2]) -> Var;

/// The function by kernels, the one in reserve included.
fn compiled<F>(run: F, x: &[f64], data: &[f64]) -> RecordedWith<impl Fn(&[Var], &[Var]) -> Var>
where
    F: Fn(&[Var], &[Var]) -> Var,
{
    let recorded = Tape::builder().hot_threshold(u32::MAX).background(false).record_with(run);
    for _ in 0..2 {
        recorded.value_and_grad(x, data).unwrap();
        recorded.compile().unwrap();
    }
    recorded
}

/// Two numbers that pass on to each other `rate` of what is between them.
fn levelled(x: &[Var], rate: impl Fn() -> Var, steps: usize) -> [Var; 2] {
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..steps {
        let way = rate() * (a - b);
        (a, b) = (a - way, b + way);
    }
    [a, b]
}

/// Asserts that each slope has all of the digits that so many products have.
fn assert_near(name: &str, slopes: &[f64], expected: &[f64], steps: f64) {
    for (slope, expected) in slopes.iter().zip(expected) {
        let most = 2.0 * steps * f64::EPSILON * expected.abs();
        assert!((slope - expected).abs() <= most, "{name}: {slopes:?} for {expected:e}");
    }
}

#[test]
fn a_difference_of_numbers_that_level_out_has_all_of_its_digits() {
    let by_constant: [(f64, Run); 3] = [
        (0.3, |x, _| levelled(x, || 0.3.into(), 60).into_iter().reduce(|a, b| a - b).unwrap()),
        (0.45, |x, _| levelled(x, || 0.45.into(), 60).into_iter().reduce(|a, b| a - b).unwrap()),
        (0.48, |x, _| levelled(x, || 0.48.into(), 60).into_iter().reduce(|a, b| b - a).unwrap()),
    ];
    for (rate, run) in by_constant {
        let kernel = compiled(run, &[1.2, 0.4], &[]);
        let slopes = kernel.grad(&[1.2, 0.4], &[]).unwrap();
        let sign = if rate == 0.48 { -1.0 } else { 1.0 };
        // As many digits as 1 - 2·rate has that are rounded.
        let power = sign * (1.0 - 2.0 * rate).powi(60);
        assert_near("constant", &slopes, &[power, -power], 60.0);
        assert_eq!(kernel.report().kernel_calls, 2);
    }
    let by_data: Run = |x, data| {
        let [a, b] = levelled(x, || data[0], 60);
        a - b
    };
    let kernel = compiled(by_data, &[1.2, 0.4], &[0.3]);
    for rate in [0.3, 0.45, 0.25, 0.75, 0.499, 0.1] {
        let slopes = kernel.grad(&[1.2, 0.4], &[rate]).unwrap();
        let power = (1.0 - 2.0 * rate).powi(60);
        assert_near("data", &slopes, &[power, -power], 60.0);
    }
    let explained = kernel.explain().unwrap().to_string();
    assert!(explained.contains("by C6"), "{explained}");
}

#[test]
fn what_is_passed_on_stays_what_it_is_together() {
    let programs: [(&str, [f64; 4], Run); 3] = [
        ("two rates", [1.0, 1.0, 0.0, 0.0], |x, _| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..120 {
                let way = x[2] * a - x[3] * b;
                (a, b) = (a - way, b + way);
            }
            a + b
        }),
        ("half of the way", [0.5, 1.0, 0.0, 0.0], |x, _| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..120 {
                let way = x[2] * (a - b);
                (a, b) = (a - way, b + way * 0.5);
            }
            a * 0.5 + b
        }),
        ("three numbers", [-2.0, -2.0, 0.0, -2.0], |x, _| {
            let (mut a, mut b, mut c) = (x[0], x[1], x[3]);
            for _ in 0..120 {
                let (d, e) = (x[2] * (b - a), x[2] * 0.5 * (c - b));
                (a, b, c) = (a + d, b - d + e, c - e);
            }
            (a + b + c) * -2.0
        }),
    ];
    for (name, expected, run) in programs {
        let points = [[1.2e6, 0.4, 0.29, 0.193], [0.3, -1.2, 0.3, 0.2], [1.0, 1.0, 0.7, 0.1]];
        let kernel = compiled(run, &points[0], &[]);
        for x in points {
            assert_eq!(kernel.grad(&x, &[]).unwrap(), expected, "{name} {x:?}");
        }
        assert!(kernel.report().kernel_calls >= 4, "{name}: {}", kernel.report());
    }
}

#[test]
fn sums_and_differences_count_however_they_are_written() {
    // What of the sum, and what of the difference.
    let programs: [(&str, [f64; 2], Combine); 9] = [
        ("iterator", [1.0, 0.0], |z| z.iter().copied().sum::<Var>()),
        ("references", [1.0, 0.0], |z| z.iter().sum::<Var>()),
        ("from zero", [1.0, 0.0], |z| 0.0 + z[0] + z[1]),
        ("from minus zero", [1.0, 0.0], |z| -0.0 + z[1] + z[0]),
        ("mean", [0.5, 0.0], |z| (z[0] + z[1]) / 2.0),
        ("halves", [0.5, 0.0], |z| z[0] / 2.0 + z[1] / 2.0),
        ("thirds", [0.0, 1.0 / 3.0], |z| z[0] / 3.0 - z[1] / 3.0),
        ("multiply and add", [0.0, -1.0], |z| z[0].mul_add(Var::from(-1.0), z[1])),
        ("halves by mul_add", [0.0, 0.5], |z| z[0].mul_add(Var::from(0.5), z[1] * -0.5)),
    ];
    for (name, [sum, factor], returned) in programs {
        let run = move |x: &[Var], data: &[Var]| returned(levelled(x, || data[0], 60));
        let x = [1.2, 0.4];
        let kernel = compiled(run, &x, &[0.3]);
        for rate in [0.3, 0.45, 0.1] {
            let slopes = kernel.grad(&x, &[rate]).unwrap();
            let power = factor * (1.0 - 2.0 * rate).powi(60);
            match factor {
                0.0 => assert_eq!(slopes, [sum; 2], "{name}"),
                _ => assert_near(name, &slopes, &[power, -power], 60.0),
            }
        }
        assert_eq!(kernel.report().kernel_calls, 4, "{name}: {}", kernel.report());
    }
}

#[test]
fn inputs_that_a_sum_does_without_still_count() {
    let run: Run = |x, data| {
        let [a, b] = levelled(x, || data[0], 120);
        a + b
    };
    let tape = Tape::builder().hot_threshold(u32::MAX).background(false).record_with(run);
    let kernel = compiled(run, &[1.2, 0.4], &[0.3]);
    for rate in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e10, -1e300] {
        let x = [1.2, 0.4];
        let [value, expected] =
            [kernel.eval(&x, &[rate]), tape.eval(&x, &[rate])].map(Result::unwrap);
        assert_eq!(value.to_bits(), expected.to_bits(), "{rate}: {value} for {expected}");
        let slopes = [kernel.grad(&x, &[rate]), tape.grad(&x, &[rate])].map(Result::unwrap);
        let [slopes, expected] = slopes.map(|all| all.iter().map(|x| x.to_bits()).collect());
        let (slopes, expected): (Vec<u64>, Vec<u64>) = (slopes, expected);
        assert_eq!(slopes, expected, "{rate}");
    }
}

#[test]
fn other_sums_are_computed_of_the_numbers() {
    // Neither a - 2·b nor, with two rates, a - b is multiplied by one number in each step.
    let programs: [Run; 2] = [
        |x, data| {
            let [a, b] = levelled(x, || data[0], 60);
            a - 2.0 * b
        },
        |x, data| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..60 {
                let way = data[0] * a - data[1] * b;
                (a, b) = (a - way, b + way);
            }
            a - b
        },
    ];
    for (number, run) in programs.into_iter().enumerate() {
        let tape = Tape::builder().hot_threshold(u32::MAX).background(false).record_with(run);
        let kernel = compiled(run, &[1.2, 0.4], &[0.3, 0.1]);
        for data in [[0.3, 0.1], [0.05, 0.2], [0.01, 0.01]] {
            let slopes = kernel.grad(&[1.2, 0.4], &data).unwrap();
            let expected = tape.grad(&[1.2, 0.4], &data).unwrap();
            for (slope, expected) in slopes.iter().zip(&expected) {
                let most = 16.0 * f64::EPSILON;
                assert!((slope - expected).abs() <= most, "{number}: {slopes:?} for {expected}");
            }
        }
        assert!(kernel.report().kernel_calls >= 4, "{number}: {}", kernel.report());
    }
}
