//! Sums that overflow: what is decided by them goes as it does in the program, though their
//! closed forms are not infinite in the same way.
#![allow(clippy::unwrap_used)] // A failing helper fails its test.

use phigrad::{Tape, Var};

type Program = fn(&[Var]) -> Var;

fn squares(w: Var, y: Var) -> Var {
    (0..64).fold(Var::from(0.0), |s, i| {
        let r = w * f64::from(i) - y;
        s + r * r
    })
}

/// Whether `program` does at `points` as on the tape, with kernels that were taught `lessons`.
fn assert_same(name: &str, program: Program, lessons: &[[f64; 2]], points: &[[f64; 2]]) {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let (tape, kernel) = (builder().record(program), builder().record(program));
    for lesson in lessons {
        kernel.value_and_grad(lesson).unwrap();
    }
    kernel.compile().unwrap();
    assert!(!kernel.report().closed.is_empty(), "{name}: {}", kernel.report());
    let all = |(value, gradient): (f64, Vec<f64>)| [gradient, vec![value]].concat();
    for x in points {
        let expected = all(tape.value_and_grad(x).unwrap());
        // Of numbers that are finite on the tape the digits are not meant here.
        let is_like = |(a, b): (&f64, &f64)| {
            a.to_bits() == b.to_bits()
                || (a.is_nan() && b.is_nan())
                || (a - b).abs() <= 1e-12 * b.abs().max(1.0)
        };
        let apart = (kernel.eval(x).unwrap(), kernel.grad(x).unwrap());
        for got in [all(kernel.value_and_grad(x).unwrap()), all(apart)] {
            let is_same = got.iter().zip(&expected).all(is_like);
            assert!(is_same, "{name} at {x:?}: {got:?} for {expected:?}");
        }
    }
    // Where the sizes are ordinary a closed form serves.
    let served = || kernel.report().kernel_calls - kernel.report().reserve_calls;
    let before = served();
    kernel.value_and_grad(&lessons[0]).unwrap();
    assert_eq!(served(), before + 1, "{name}: {}", kernel.report());
}

/// All pairs of `sizes`.
fn pairs<const N: usize>(sizes: [f64; N]) -> Vec<[f64; 2]> {
    sizes.map(|a| sizes.map(|b| [a, b])).as_flattened().to_vec()
}

#[test]
fn sums_that_overflow_decide_nothing() {
    fn sum(x: &[Var]) -> Var {
        (0..64).fold(Var::from(0.0), |s, i| s + x[0] * f64::from(i) - x[1])
    }
    let programs: [(&str, Program); 11] = [
        ("shown in the value", |x| {
            let s = squares(x[0], x[1]);
            (if s > 1.0 { x[0] * 2.0 } else { x[1] * 3.0 }) + s * 1e-300
        }),
        ("linear", |x| if sum(x) > 1.0 { x[0] } else { x[1] * 2.0 }),
        ("squares", |x| if squares(x[0], x[1]) > 1.0 { x[0] } else { x[1] * 2.0 }),
        ("times", |x| {
            let (mut w, mut n) = (x[0], 0);
            while n < 3 && squares(w, x[1]) > 1.0 {
                (w, n) = (w * 0.5, n + 1);
            }
            w
        }),
        ("many times", |x| {
            let (mut w, mut n) = (x[0], 0);
            while n < 40 && squares(w, x[1]) > 1.0 {
                (w, n) = (w * 0.5 + 1e-3, n + 1);
            }
            w
        }),
        ("descent", |x| {
            let mut w = x[0];
            for _ in 0..40 {
                let error = squares(w, x[1]);
                if error.abs() < 1.0 {
                    break;
                }
                w = w * 0.5 + error * 1e-9;
            }
            w
        }),
        ("near zero", |x| if sum(x).abs() < 1.0 { x[0] } else { x[1] * 2.0 }),
        ("maximum", |x| squares(x[0], x[1]).max(3.0)),
        ("inverse", |x| 1.0 / sum(x) + x[1]),
        ("tangent", |x| sum(x).tanh() + x[1]),
        ("squared", |x| {
            let w = x[0] * x[0];
            1.0 / (0..64).fold(x[0], |s, i| s + w * f64::from(i)) + x[1]
        }),
    ];
    let mut points =
        pairs([0.0, 1.0, 1e155, 1e160, 1e200, 1e305, -1e306, 1e307, 1e308, f64::INFINITY]);
    // The form is no number, and the sum is zero.
    let large = f64::from_bits(0x7F50_0000_0000_0000);
    points.push([large, large * 31.5]);
    for (name, program) in programs {
        assert_same(name, program, &[[2.0, 1.0], [0.0, 0.01]], &points);
    }
}

#[test]
fn loops_end_where_they_did_though_sums_in_them_overflow() {
    // The sum is infinite in the midst of the loop only.
    #[phigrad::traced]
    fn program(x: &[Var]) -> Var {
        let (mut w, mut v, mut u) = (x[0], x[0], x[1]);
        let mut n = 0;
        loop {
            w = w * 0.5 + v;
            v = v * 0.5 + u;
            u *= 0.5;
            n += 1;
            let goes_on = squares(w, v) > 1e300;
            if n == 4000 || !goes_on {
                break;
            }
        }
        w
    }
    let large = (-12..20).map(|k| [f64::from(k).exp2() * 1e148, 1e147]);
    let lessons: Vec<[f64; 2]> = core::iter::once([1e130, 1e129]).chain(large).collect();
    let points = pairs([1e140, 1e149, 1e155, -1e156, 3e157, 1e158, -1e160, 1e160, 1e200]);
    assert_same("damped", program, &lessons, &points);
}

#[test]
fn loops_around_sums_are_closed_though_something_is_decided_behind_them() {
    fn descended(x: &[Var]) -> Var {
        (0..100).fold(x[0], |w, _| {
            let slope = (0..64).fold(Var::from(0.0), |s, i| {
                let by = 0.1 + f64::from(i % 7);
                s + (w * by - 1.5) * by
            });
            w - slope * x[1]
        })
    }
    let program: Program = |x| {
        let w = descended(x);
        if w > 1.0 { w * 2.0 } else { w.tanh() }
    };
    let f = Tape::builder().background(false).record(program);
    f.value_and_grad(&[1.0, 1e-3]).unwrap();
    f.compile().unwrap();
    assert!(f.report().open.is_empty(), "{}", f.report());
    let points = pairs([0.0, 1e-3, -2.0, 1e150, -1e305, 1e308, f64::INFINITY, f64::NAN]);
    assert_same("behind", program, &[[1.0, 1e-3], [0.1, 1e-3]], &points);
}

#[test]
fn what_overflows_on_the_way_decides_nothing() {
    fn driven(x: &[Var]) -> Var {
        let by = [4.0, -4.0];
        (0..101).fold(Var::from(0.0), |s, i| s * 0.5 + x[0] * by[i % 2])
    }
    fn sum(term: impl Fn(f64) -> Var) -> Var {
        (0..64).fold(Var::from(0.0), |s, i| s + term(f64::from(i)))
    }
    fn decided(s: Var, x: &[Var]) -> Var {
        if s.abs() < 1e300 { x[1] * 2.0 } else { x[1] * 3.0 }
    }
    fn remembered(x: &[Var]) -> Var {
        let by = [4.0, -4.0];
        let mut all = vec![Var::from(0.0)];
        (0..101).for_each(|i| all.push(all[i] * 0.5 + x[0] * by[i % 2]));
        all[81]
    }
    let programs: [(&str, Program); 9] = [
        ("remembered", |x| remembered(x).max(1.0).min(2.0) * x[1]),
        ("driven", |x| if driven(x) > 0.1 { x[1] * 3.0 } else { x[1] * 5.0 }),
        ("limited", |x| driven(x).max(1.0).min(2.0) * x[1]),
        ("difference", |x| if driven(&[x[0] - x[1]]) > 0.1 { x[1] * 3.0 } else { x[1] * 5.0 }),
        ("running sum", |x| {
            let s = sum(|i| x[0] * (i - 31.0));
            if s > 1.0 { x[1] } else { x[1] * 2.0 }
        }),
        ("nothing", |x| decided(sum(|i| x[0] * x[1] * (i - 31.5)), x)),
        ("powers", |x| decided(sum(|i| x[0].powi(3) * (i - 31.0)), x)),
        ("cancels", |x| decided(sum(|i| x[0] * x[1] * i - x[1] * x[0] * i + x[0] + x[1]), x)),
        ("squares", |x| decided(sum(|i| x[0] * x[0] * (i - 31.0) - x[1] * x[1]), x)),
    ];
    let lessons = [[0.5, 1.0], [-0.5, 1.0], [0.2, 1.0]];
    let large = [1.0, 1e102, 3e102, 1e153, 5e153, 1e250, 1e306, 1e307, 6e307, 1e308, f64::MAX];
    let points = [pairs(large), pairs(large.map(|x| -x))].concat();
    for (name, program) in programs {
        assert_same(name, program, &lessons, &points);
    }
}

#[test]
fn what_functions_make_large_decides_nothing() {
    fn centred(term: Var, middle: f64) -> Var {
        (0..64).fold(Var::from(0.0), |s, i| s + term * (f64::from(i) - middle))
    }
    fn each(term: impl Fn() -> Var) -> Var {
        (0..64).fold(Var::from(0.0), |s, i| s + term() * (f64::from(i) - 31.5))
    }
    fn decided(s: Var, x: &[Var]) -> Var {
        if s.abs() < 1e300 { x[1] * 2.0 } else { x[1] * 3.0 }
    }
    let programs: [(&str, Program); 8] = [
        ("exponential", |x| decided(each(|| x[0].exp()), x)),
        ("before", |x| decided(centred(x[0].exp(), 31.5), x)),
        ("integer power", |x| decided(each(|| x[0].powi(102)), x)),
        ("power", |x| decided(each(|| x[0].powf(102.0)), x)),
        ("hyperbolic", |x| decided(each(|| x[0].cosh()), x)),
        ("inverse", |x| decided(each(|| 1.0 / x[0]), x)),
        ("quotient", |x| decided(each(|| x[1] / x[0]), x)),
        ("constant", |x| decided(each(|| x[0] * 1e250), x)),
    ];
    let sizes =
        [0.5, 700.0, 705.0, 709.0, 710.0, 1e3, 1e18, 1e57, 1e60, 1e-300, 1e-307, 3e-308, 1e-310];
    let points: Vec<[f64; 2]> = sizes.into_iter().flat_map(|x| [[x, 0.5], [-x, 2.0]]).collect();
    for (name, program) in programs {
        assert_same(name, program, &[[0.5, 1.0], [-0.5, 1.0]], &points);
    }
}
