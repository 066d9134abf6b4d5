//! Systems that have settled at a known point: what is left of the way there, and of derivatives by
//! what does not move the point, has all of its digits however little it is.
#![allow(clippy::unwrap_used)] // Tests fail like this.

use phigrad::phi::Rule;
use phigrad::{Recorded, Tape, Var};

type Run = fn(&[Var]) -> Var;

/// A program, on the tape and with closed forms.
fn recorded(run: Run) -> [Recorded<Run>; 2] {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(run), builder().record(run));
    kernel.value_and_grad(&[0.5, 0.9, 0.25]).unwrap();
    kernel.compile().unwrap();
    [tape, kernel]
}

/// What both come to at `x`; the second by its closed form.
fn answers([tape, kernel]: &[Recorded<Run>; 2], x: &[f64]) -> [(f64, Vec<f64>); 2] {
    let before = kernel.report();
    let answers = [tape, kernel].map(|recorded| recorded.value_and_grad(x).unwrap());
    let report = kernel.report();
    assert_eq!(report.kernel_calls, before.kernel_calls + 1, "{x:?}: {report}");
    assert_eq!(report.reserve_calls, 0, "{x:?}: {report}");
    answers
}

/// `x[2]` on its way to `target` at the rate `x[0]`, and the moving average of that from `x[1]` on.
fn average(x: &[Var], target: Var, times: usize) -> [Var; 2] {
    let (mut w, mut v) = (x[2], x[1]);
    for _ in 0..times {
        w -= x[0] * (w - target);
        v = v * 0.9 + w * 0.1;
    }
    [w, v]
}

/// The derivative of that average by the rate, if numbers are so `far` from where they come to.
fn of_average(rate: f64, far: [f64; 2], times: usize) -> f64 {
    let ([mut w, mut v], [mut dw, mut dv]) = (far, [0.0; 2]);
    for _ in 0..times {
        (w, dw) = ((1.0 - rate) * w, (1.0 - rate) * dw - w);
        (v, dv) = (0.9 * v + 0.1 * w, 0.9 * dv + 0.1 * dw);
    }
    dv
}

/// What pushes, 2.1 times, what loses a tenth in each step.
fn pushed(x: &[Var]) -> Var {
    let (mut a, mut b) = (x[1] * 2.0, x[1] * 2.0);
    for _ in 0..400 {
        a = (a + 2.1 * b) * 0.9;
        b -= x[0] * (b - -0.7);
    }
    a * 2.0 + b
}

fn of_pushed(rate: f64, far: f64) -> f64 {
    let (mut b, mut da, mut db) = (far, 0.0, 0.0);
    for _ in 0..400 {
        da = 0.9 * da + 1.89 * db;
        (b, db) = ((1.0 - rate) * b, (1.0 - rate) * db - b);
    }
    2.0 * da + db
}

/// The second number, driven to `x[1]` with what is left of each step.
fn momentum(x: &[Var]) -> Var {
    let (mut w, mut speed) = (x[2], x[2] * 0.0);
    for _ in 0..2000 {
        speed = speed * 0.9 - x[0] * 0.1 * (w - x[1]);
        w += speed;
    }
    w
}

fn of_momentum(rate: f64, far: f64) -> f64 {
    let ([mut w, mut speed], [mut dw, mut ds]) = ([far, 0.0], [0.0; 2]);
    for _ in 0..2000 {
        ds = 0.9 * ds - 0.1 * (w + rate * dw);
        speed = 0.9 * speed - 0.1 * rate * w;
        (w, dw) = (w + speed, dw + ds);
    }
    dw
}

#[test]
fn derivatives_by_a_rate_vanish_with_all_digits() {
    /// A program, and its derivative by the first input.
    type Program = (&'static str, Run, fn([f64; 3]) -> f64);
    let programs: [Program; 6] = [
        ("average", |x| average(x, x[1], 400)[1], |[r, t, s]| of_average(r, [s - t, 0.0], 400)),
        (
            "average at last",
            |x| average(x, x[1], 2000)[1],
            |[r, t, s]| of_average(r, [s - t, 0.0], 2000),
        ),
        (
            "of a number",
            |x| average(x, Var::from(0.3), 400)[1],
            |[r, t, s]| of_average(r, [s - 0.3, t - 0.3], 400),
        ),
        (
            "of two",
            |x| average(x, x[1] * x[2], 400)[1],
            |[r, t, s]| of_average(r, [s - t * s, t - t * s], 400),
        ),
        ("pushed", pushed, |[r, t, _]| of_pushed(r, 2.0 * t + 0.7)),
        ("momentum", momentum, |[r, t, s]| of_momentum(r, s - t)),
    ];
    for (name, program, derivative) in programs {
        let recorded = recorded(program);
        for rate in [0.1, 0.45, 0.9, 0.999_999, 1.0, 1.01, 1.3, 1.7] {
            for [first, second] in [[0.9, 0.25], [0.0, 0.25], [-3.0, 1e3], [0.75, 0.75]] {
                let x = [rate, first, second];
                let [(value, _), (closed, slopes)] = answers(&recorded, &x);
                assert!((closed - value).abs() <= 1e-13 * value.abs() + 1e-30, "{name} {x:?}");
                let (slope, wanted) = (slopes[0], derivative(x));
                let most = 1e-11 * wanted.abs() + f64::MIN_POSITIVE;
                assert!((slope - wanted).abs() <= most, "{name} {x:?}: {slope:e} for {wanted:e}");
            }
        }
    }
}

#[test]
fn a_point_that_is_far_away_takes_no_digits() {
    let program: Run = |x| average(x, x[1], 100)[0] + average(x, x[1], 100)[1] * 0.0;
    let recorded = recorded(program);
    for size in [1.0, 1e6, 1e9, 1e12, 1e20, 1e30] {
        // Each step adds about one.
        let x = [1.0 / size, size, 0.25];
        let [(value, wanted), (closed, slopes)] = answers(&recorded, &x);
        assert!((closed - value).abs() <= 1e-13 * value.abs(), "{x:?}: {closed} {value}");
        for (slope, wanted) in slopes.iter().zip(&wanted) {
            assert!((slope - wanted).abs() <= 1e-13 * wanted.abs(), "{x:?}: {slope} {wanted}");
        }
    }
}

/// The moving average, of what starts at `x[1]` and goes to 0.9 until it is `x[3]`.
#[phigrad::traced]
fn until(x: &[Var]) -> Var {
    let (mut w, mut v) = (x[1], x[2]);
    while w < x[3] {
        v = v * 0.95 + w * 0.07;
        w -= x[0] * (w - 0.9);
    }
    v
}

#[test]
fn what_has_not_come_to_a_number_yet_is_no_rounding_error() {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(until as Run), builder().record(until as Run));
    // So many iterations that a closed form pays.
    kernel.value_and_grad(&[0.000_1, 0.0, 0.25, 0.89]).unwrap();
    for limit in [0.0, 0.05, 0.1, 0.5, 0.89] {
        kernel.value_and_grad(&[0.1, 0.0, 0.25, limit]).unwrap();
    }
    kernel.compile().unwrap();
    assert!(
        kernel.report().closed.iter().any(|applied| applied.rule == Rule::C6),
        "{}",
        kernel.report()
    );
    // None, one, two and more iterations.
    for limit in [0.0, 0.05, 0.1, 0.2, 0.5, 0.89, 0.899_999] {
        for start in [0.0, 1e-40, 1e-32, 0.25, -3.0] {
            let x = [0.1, 0.0, start, limit];
            let [(value, wanted), (closed, slopes)] =
                [&tape, &kernel].map(|recorded| recorded.value_and_grad(&x).unwrap());
            assert!((closed - value).abs() <= 1e-14 * value.abs(), "{x:?}: {closed:e} {value:e}");
            for (slope, wanted) in slopes.iter().zip(&wanted) {
                assert!((slope - wanted).abs() <= 1e-12 * wanted.abs(), "{x:?}: {slope} {wanted}");
            }
        }
    }
    assert_eq!(kernel.report().kernel_calls, 35, "{}", kernel.report());
}

#[test]
fn at_a_point_that_is_a_product_numbers_rest() {
    let program: Run = |x| {
        let target = x[1] * x[2];
        let (mut w, mut v) = (target, target);
        for _ in 0..60 {
            w -= x[0] * (w - target);
            v = v * 0.75 + w * 0.25;
        }
        w + v
    };
    let recorded = recorded(program);
    // Where powers grow the derivatives by the product cancel, and have no digits on the tape.
    for rate in [0.3, 1.0, 1.9, 1.99, 2.5, 3.0] {
        for [first, second] in [[0.1, 0.3], [1.1, -0.7], [1.0 / 3.0, 1e10]] {
            let x = [rate, first, second];
            let [(value, _), (closed, slopes)] = match rate < 2.0 {
                true => answers(&recorded, &x),
                false => recorded.each_ref().map(|recorded| recorded.value_and_grad(&x).unwrap()),
            };
            assert_eq!(closed, value, "{x:?}");
            assert_eq!(slopes[0], 0.0, "{x:?}");
            let wanted = [2.0 * second, 2.0 * first];
            for (slope, wanted) in slopes[1..].iter().zip(wanted).filter(|_| rate < 2.0) {
                assert!((slope - wanted).abs() <= 1e-14 * wanted.abs(), "{x:?}: {slope}");
            }
        }
    }
}

/// `x[0]` on its way to `target` at a constant rate, and what follows it to there.
fn leveled(x: &[Var], target: Var) -> [Var; 2] {
    let (mut a, mut c) = (x[0], x[2]);
    for _ in 0..200 {
        a -= (a - target) * 0.125;
        c -= (c - a) * 0.25;
    }
    [a, c]
}

/// What is left of a way at a constant rate passes on to its start what the target loses: the rest
/// of that is taken away again by who measures from the target.
#[test]
fn what_levels_out_at_a_constant_rate_leaves_little_to_its_target() {
    let programs: [(&str, Run, [f64; 2]); 9] = [
        ("scaled", |x| (leveled(x, x[1])[0] - x[1]) * x[2], [1.0, -1.0]),
        ("by a constant", |x| (leveled(x, x[1])[0] - x[1]) * 0.25, [1.0, -1.0]),
        ("a function", |x| ((leveled(x, x[1])[0] - x[1]) * x[2]).sin(), [1.0, -1.0]),
        (
            "of what is computed",
            |x| {
                let target = x[1] * 2.0;
                (leveled(x, target)[0] - target) * x[2]
            },
            [1.0, -2.0],
        ),
        (
            "to its negative",
            |x| {
                let target = -x[1];
                (leveled(x, target)[0] - target) * x[2]
            },
            [1.0, 1.0],
        ),
        (
            "by weights",
            |x| ((0..200).fold(x[0], |a, _| 0.875 * a + 0.125 * x[1]) - x[1]) * x[2],
            [1.0, -1.0],
        ),
        (
            "by weights, to a product",
            |x| {
                let target = x[1] * x[2];
                (0..200).fold(x[0], |a, _| 0.875 * a + 0.125 * target) - target
            },
            [1.0, -1.0],
        ),
        (
            "from what is made of the target",
            |x| {
                let mut a = x[1] * 3.0;
                for _ in 0..200 {
                    a -= (a - x[1]) * 0.125;
                }
                (a - x[1]) * x[2] + x[0] * 0.0
            },
            [0.0, 2.0],
        ),
        (
            "of two, both measured",
            |x| {
                let [a, c] = leveled(x, x[1]);
                (a + c - x[1] * 2.0) * x[2]
            },
            // The second one is left with 0.25·0.875·Σ 0.875^k·0.75^(199 - k), which is 1.75 times the
            // power but for 4e-14 of it.
            [2.75, -2.75],
        ),
    ];
    let power = 0.875f64.powi(200);
    for (name, run, [by_start, by_target]) in programs {
        let both = recorded(run);
        let report = both[1].report();
        assert!(!report.closed.is_empty() && report.open.is_empty(), "{name}: {report}");
        for x in [[0.7, 0.4, 0.9], [3.0, -2.0, 1.5], [-0.1, 0.3, 1e3], [0.5, 1e-3, -1e-6]] {
            let factor = if name == "by a constant" { 0.25 } else { x[2] };
            let is_product = name == "by weights, to a product";
            // Where two numbers are measured the tape rounds what each of them leaves.
            let most = [if name.starts_with("of two") { 1e-3 } else { 1e-12 }, 1e-12];
            for ((_, slopes), most) in answers(&both, &x).into_iter().zip(most) {
                for (slope, expected) in slopes.into_iter().zip([by_start, by_target]) {
                    let factor = if is_product && expected > 0.0 { 1.0 } else { factor };
                    let expected = expected * power * factor;
                    let off = (slope - expected).abs();
                    assert!(off <= most * expected.abs(), "{name} {x:?}: {slope:e} {expected:e}");
                }
            }
        }
    }
}

/// `x[0]` after so many steps to `x[1]`, measured from there.
fn way_left(x: &[Var], steps: u32, step: impl Fn(Var) -> Var) -> Var {
    ((0..steps).fold(x[0], |a, _| a - step(a - x[1])) - x[1]) * x[2]
}

/// Rates that are made of several constants have no last digit, as no number is 0.01/0.3.
#[test]
fn rates_of_several_constants_leave_little_to_a_target() {
    const STEPS: u32 = 900;
    let programs: [(&str, Run, f64); 5] = [
        ("one constant", |x| way_left(x, STEPS, |way| way * 0.1), 0.1),
        ("a quotient", |x| way_left(x, STEPS, |way| way * 0.01 / 0.3), 0.01 / 0.3),
        ("a product", |x| way_left(x, STEPS, |way| way * 0.1 * 0.3), 0.1 * 0.3),
        (
            "a product with a quotient",
            |x| way_left(x, STEPS, |way| 0.7 * way * (2.0 / 49.0)),
            0.7 * (2.0 / 49.0),
        ),
        ("a third", |x| way_left(x, STEPS, |way| way / 3.0 * 0.1), 0.1 / 3.0),
    ];
    for (name, run, rate) in programs {
        let both = recorded(run);
        let report = both[1].report();
        assert!(!report.closed.is_empty() && report.open.is_empty(), "{name}: {report}");
        let power = (1.0 - rate).powf(f64::from(STEPS));
        for x in [[0.7, 0.4, 0.9], [3.0, -2.0, 1.5], [0.5, 1e-3, -1e-6]] {
            for (_, slopes) in answers(&both, &x) {
                for (slope, expected) in slopes.into_iter().zip([power * x[2], -power * x[2]]) {
                    let off = (slope - expected).abs();
                    assert!(off <= 1e-12 * expected.abs(), "{name} {x:?}: {slope:e} {expected:e}");
                }
            }
        }
    }
}

/// With momentum, too.
#[test]
fn momentum_leaves_little_to_a_target() {
    let run: Run = |x| {
        let (mut a, mut m) = (x[0], Var::from(0.0));
        for _ in 0..600 {
            m = m * 0.9 + (a - x[1]) * 0.1 / 3.0;
            a -= 0.3 * m;
        }
        (a - x[1]) * x[2]
    };
    let both = recorded(run);
    let report = both[1].report();
    assert!(!report.closed.is_empty() && report.open.is_empty(), "{report}");
    let mut left = (1.0, 0.0);
    for _ in 0..600 {
        left.1 = left.1 * 0.9 + left.0 * 0.1 / 3.0;
        left.0 -= 0.3 * left.1;
    }
    for x in [[0.7, 0.4, 0.9], [3.0, -2.0, 1.5]] {
        for (_, slopes) in answers(&both, &x) {
            for (slope, expected) in slopes.into_iter().zip([left.0 * x[2], -left.0 * x[2]]) {
                let off = (slope - expected).abs();
                assert!(off <= 1e-12 * expected.abs(), "{x:?}: {slope:e} {expected:e}");
            }
        }
    }
}

/// What a loop that stays has come to.
fn carried(first: Var, by: Var) -> Var {
    (0..40).fold(first, |z, _| (z * by).sin() + 0.3 * z)
}

/// A loop of many steps to `target`, by `rate`, that adds `more` in each.
fn toward(first: Var, target: Var, rate: f64, more: Var) -> Var {
    (0..200).fold(first, |a, _| a - (a - target) * rate + more)
}

/// Starts and what else is added may be what a loop has carried, and be made of the target: all
/// derivatives are told, and none twice.
#[test]
fn what_else_steps_to_a_level_are_made_of_has_its_derivatives() {
    let programs: [(&str, Run); 11] = [
        ("a start that is added as well", |x| {
            let z = carried(x[0], x[2]);
            toward(z, x[1], 0.125, (z - x[2]) * 0.1) * x[2]
        }),
        ("one that is multiplied", |x| {
            let z = carried(x[0], x[2]);
            (0..200).fold(z, |a, _| a - (a - x[1]) * 0.125 + z * 0.1) - x[1]
        }),
        ("starts of two that are made of each other and the target", |x| {
            let z = carried(x[0], x[2]);
            let (mut a, mut c) = (z, z + x[1]);
            for _ in 0..20 {
                a -= (a - x[1]) * 0.125;
                c -= (c - a) * 0.25;
            }
            (a - x[1]) * (c - x[1]) + a * x[2]
        }),
        ("a loop around", |x| {
            let mut z = x[0];
            for _ in 0..6 {
                z = toward(z, x[1], 0.1, z * 0.01).sin() * x[2];
            }
            z
        }),
        ("a loop around, to what it carries", |x| {
            let (mut z, mut t) = (x[0], x[1]);
            for _ in 0..6 {
                z = toward(z, t, 0.1, Var::from(0.0));
                t = (t * z).sin() + x[2];
            }
            z - t
        }),
        ("powers that change their sign", |x| {
            toward(x[0], x[1], 1.5, Var::from(0.0)) - x[1] * x[2]
        }),
        ("powers that grow", |x| toward(x[0], x[1], -0.01, Var::from(0.0)) - x[1] * x[2]),
        ("powers that stay near 1", |x| (toward(x[0], x[1], 1e-5, Var::from(0.0)) - x[0]) * x[2]),
        ("a mean", |x| {
            let mean = |a, i| a - (a - x[1]) / f64::from(i + 2);
            ((0..200).fold(x[0], mean) - x[1]) * x[2]
        }),
        ("rounded weights", |x| ((0..20).fold(x[0], |a, _| a * 0.9 + x[1] * 0.1) - x[1]) * x[2]),
        ("one that ends at the target and one at zero", |x| {
            let (mut w, mut m) = (x[0], x[2]);
            for _ in 0..50 {
                m = m * 0.5 - (w - x[1]) * 0.01;
                w += m;
            }
            (w - x[1]) * x[2] + m * 3.0
        }),
    ];
    for (name, run) in programs {
        let both = recorded(run);
        let report = both[1].report();
        assert!(report.closed.iter().any(|formula| formula.rule >= Rule::C5), "{name}: {report}");
        for x in [[0.7, 0.4, 0.9], [0.5, -1.1, 0.3], [1.3, 0.2, -0.6]] {
            let [(value, slopes), (closed, found)] = answers(&both, &x);
            assert!((value - closed).abs() <= 1e-13 * (1.0 + value.abs()), "{name}: {closed}");
            let largest = slopes.iter().fold(0.0f64, |most, slope| most.max(slope.abs()));
            for (slope, found) in slopes.into_iter().zip(found) {
                let off = (slope - found).abs();
                assert!(off <= 1e-11 * largest, "{name} {x:?}: {found:e} for {slope:e}");
            }
        }
    }
}

/// What comes of data alone has no derivative, whatever it is taken to: of a loop that has a form,
/// and of one that stays.
#[test]
fn a_start_that_loops_made_of_data_is_no_number_to_tell() {
    assert_no_start(|data| (0..50).fold(data[0], |z, _| z * data[1] + 0.5), 0);
    assert_no_start(|data| carried(data[0], data[1]), 1);
}

/// The same of a number that begins as `start` of data, of whose loops so many stay.
fn assert_no_start(start: fn(&[Var]) -> Var, open: usize) {
    let run = |x: &[Var], data: &[Var]| {
        let start = start(data);
        let step = |a: Var, _| a - (a - x[0]) * (x[1] * 0.1);
        ((0..200).fold(start, step) - x[0]) * x[2]
    };
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record_with(run), builder().record_with(run));
    kernel.value_and_grad(&[0.5, 0.9, 0.25], &[0.3, 0.8]).unwrap();
    kernel.compile().unwrap();
    for (x, data) in [([0.7, 0.4, 0.9], [0.2, 0.7]), ([-2.0, 0.9, 1.5], [1.3, -0.5])] {
        let [(value, slopes), (closed, found)] =
            [&tape, &kernel].map(|recorded| recorded.value_and_grad(&x, &data).unwrap());
        assert!((value - closed).abs() <= 4.0 * f64::EPSILON * x[0].abs(), "{x:?}: {closed:e}");
        let expected = -x[2] * (1.0 - x[1] * 0.1).powi(200);
        for slope in [slopes[0], found[0]] {
            assert!((slope - expected).abs() <= 1e-12 * expected.abs(), "{x:?}: {slope:e}");
        }
        assert!((slopes[1] - found[1]).abs() <= 1e-7 * slopes[1].abs(), "{x:?}: {found:?}");
        assert!(
            (slopes[2] - found[2]).abs() <= 4.0 * f64::EPSILON * x[0].abs(),
            "{x:?}: {found:?}"
        );
    }
    let report = kernel.report();
    assert_eq!((report.open.len(), report.kernel_calls), (open, 2), "{report}");
}
