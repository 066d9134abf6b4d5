//! Closed forms of numbers so large or small that only the loop gets through: such calls
//! are the tape's, or as good.

#[path = "support/extremes.rs"]
mod extremes;

use extremes::compare;
use phigrad::{Tape, Var};

fn data() -> Vec<f64> {
    (0..1000).map(|i| 0.8 + 1e-3 * (f64::from(i * 7 % 13) - 6.0)).collect()
}

#[test]
fn products_that_begin_with_almost_nothing() {
    let product = || {
        let data = data();
        Tape::builder().background(false).record(move |x: &[Var]| {
            let product = data.iter().fold(x[1] * 1e-240, |p, &d| p * (x[0] * d));
            (product * 1e40).max(Var::from(1e-3)) * x[1]
        })
    };
    compare(product, &[&[1.2, 1.0], &[2.0, 1e-9]], &[2.0, 1.0]).unwrap();
    let branch = || {
        let data = data();
        Tape::builder().background(false).record(move |x: &[Var]| {
            let product = data.iter().fold(x[1] * 1e-280, |p, &d| p * (x[0] * d));
            if product * 1e76 > 0.5 { x[0] * 3.0 } else { x[0] * 5.0 }
        })
    };
    compare(branch, &[&[2.0, 1.0], &[2.0, 1e-9]], &[2.0, 1.0]).unwrap();
}

#[test]
fn products_of_one_factor_that_occurs_very_often() {
    let product = || {
        let data: Vec<f64> = (0..1000).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        Tape::builder().background(false).record(move |x: &[Var]| {
            data.iter().fold(x[1], |product, &d| {
                let factor = (0..40).fold(x[0] * d, |factor, _| factor * factor);
                product * factor
            })
        })
    };
    compare(product, &[&[1.0, 1.0]], &[1.0, 0.5]).unwrap();
}

#[test]
fn systems_that_begin_with_very_much() {
    let system = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut a, mut b) = (x[4] * 1e200, x[5] * 1e200);
            for _ in 0..1000 {
                (a, b) = (x[0] * a + x[1] * b, x[2] * a + x[3] * b);
            }
            (a + b) * 1e198
        })
    };
    compare(system, &[&[0.4, 1e-3, 1e-3, 0.3, 1e-190, 1e-190]], &[0.4, 1e-3, 1e-3, 0.3, 1.0, 2.0])
        .unwrap();
}

#[test]
fn systems_that_grow_or_vanish_up_to_the_ends_of_the_range() {
    for steps in [255, 256, 383, 384, 511, 1000] {
        let spiral = move || {
            Tape::builder().background(false).record(move |x: &[Var]| {
                let (mut a, mut b) = (x[2], x[3]);
                for _ in 0..steps {
                    (a, b) = (x[0] * a - x[1] * b, x[1] * a + x[0] * b);
                }
                a
            })
        };
        for exponent in [-300.0, -290.0, -140.0, 140.0, 290.0, 300.0_f64] {
            let radius = (exponent / f64::from(steps)).exp2().powf(10f64.log2());
            let at = [radius * 0.3f64.cos(), radius * 0.3f64.sin(), 0.7, 0.4];
            let served = compare(spiral, &[&at], &at).unwrap();
            assert!(served, "{steps} steps to 1e{exponent}");
        }
    }
}

#[test]
fn quotients_by_what_has_no_inverse() {
    let quotient = || {
        let data = data();
        Tape::builder().background(false).record(move |x: &[Var]| {
            let sum = data.iter().fold(x[1], |sum, &d| sum + (x[0] * d) / x[2]);
            if sum < 1e4 { x[1] * 2.0 } else { x[1] * 5.0 }
        })
    };
    let lessons: [&[f64]; 2] = [&[1.0, 3.0, 1.0], &[1e5, 3.0, 1.0]];
    compare(quotient, &lessons, &[1e-310, 3.0, 1e-310]).unwrap();
}

#[test]
fn products_of_exponentials_that_begin_with_very_much() {
    let product = |data: f64| {
        move || {
            Tape::builder().background(false).record(move |x: &[Var]| {
                (0..100)
                    .map(|i| data + 0.01 * f64::from(i))
                    .fold(x[0], |p, d| p * (-x[1] * d).exp())
            })
        }
    };
    let lesson: &[f64] = &[2.0, 0.1];
    for x in [[1e300, 5.0], [1e30, 4.9], [1e300, 2.0], [3.0, 1.0], [1e-300, -4.5]] {
        compare(product(1.0), &[lesson], &x).unwrap();
    }
    let bells = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let numbers = (0..100).map(|i| 1.0 + 0.01 * f64::from(i));
            numbers.fold(Var::from(1e200), |p, d| p * (-0.5 * (x[0] - d) * (x[0] - d)).exp())
        })
    };
    for x in [5.5, 2.0] {
        compare(bells, &[&[1.5]], &[x]).unwrap();
    }
}

#[test]
fn logarithms_of_products_whose_data_keeps_them_large() {
    let sum = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let numbers = (0..100).map(|i| 1e90 * (1.0 + 0.01 * f64::from(i)));
            numbers.fold(x[2], |sum, d| sum + (x[0] * d * x[1]).ln())
        })
    };
    for x in [[1e-160, 1e-160, 0.0], [3e-155, 1e-155, 1.0], [2.0, 0.1, 0.5]] {
        compare(sum, &[&[1.0, 2.0, 0.0]], &x).unwrap();
    }
    let more = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let numbers = (0..100).map(|i| 1e90 * (1.0 + 0.01 * f64::from(i)));
            numbers.fold(x[3], |sum, d| sum + (x[0] * d * x[1] * x[2]).ln())
        })
    };
    for x in [[1e-160, 1e-160, 1e200, 0.0], [1e200, 1e-160, 1e-160, 0.0]] {
        compare(more, &[&[1.0, 2.0, 1.0, 0.0]], &x).unwrap();
    }
}

#[test]
fn single_numbers_that_begin_with_very_much() {
    let affine = || {
        let affine = |x: &[Var]| (0..1000).fold(x[0], |y, _| y * x[1] + x[2]);
        Tape::builder().background(false).record(affine)
    };
    compare(affine, &[&[1.0, 0.5, 0.1]], &[1e300, 0.25, 0.0]).unwrap();
    compare(affine, &[&[1.0, 0.5, 0.1]], &[1e308, 0.485, 1e-300]).unwrap();
}

#[test]
fn what_cancels_in_coefficients_must_be_a_number() {
    let rate = |x: &[Var]| {
        let (part, less) = (x[1] / x[2], x[3] - x[3]);
        let rate = part * x[2] + less;
        (0..1000).fold(x[0], |y, _| y - rate * (y - 3.0))
    };
    let taught = Tape::builder().background(false).record(rate);
    taught.grad(&[1.0, 0.01, 2.0, 1.0]).unwrap();
    taught.compile().unwrap();
    assert!(taught.eval(&[1.0, 0.01, 3.0, 1.0]).unwrap().is_finite());
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for [a, b] in [[0.0, 1.0], [inf, 1.0], [nan, 1.0], [2.0, inf], [2.0, nan]] {
        let (value, _) = taught.value_and_grad(&[1.0, 0.01, a, b]).unwrap();
        assert!(value.is_nan(), "{value} at {a}, {b}");
    }
}

#[test]
fn powers_that_vanish_leave_the_derivative_of_what_is_added() -> Result<(), phigrad::Error> {
    for count in [1000, 1100, 4096] {
        let half = || {
            Tape::builder()
                .hot_threshold(u32::MAX)
                .record(move |x: &[Var]| (0..count).fold(x[1], |y, _| y * 0.5 + x[0] * x[0]))
        };
        let rate = || {
            Tape::builder()
                .hot_threshold(u32::MAX)
                .record(move |x: &[Var]| (0..count).fold(x[1], |y, _| y - 0.75 * (y + x[0] * 3.0)))
        };
        compare(half, &[&[0.8, 0.3]], &[0.7, 0.2])?;
        compare(rate, &[&[0.8, 0.3]], &[0.7, 0.2])?;
    }
    Ok(())
}

#[test]
fn quotients_by_what_has_no_square() -> Result<(), phigrad::Error> {
    let nest = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let mut s = Var::from(1.0);
            for _ in 0..40 {
                for _ in 0..35 {
                    s = x[0] * s + x[0];
                }
                s = x[1] * s / x[1];
            }
            s * x[1]
        })
    };
    let moderate = [[0.1, 1e70], [0.1, 1e-70]];
    let others = [[0.1, 1e150], [0.1, 1e160], [0.1, 1e170], [1e-9, 1e200], [0.1, 1e-170]];
    for x in moderate.into_iter().chain(others) {
        compare(nest, &[&[0.5, 0.6]], &x)?;
    }
    Ok(())
}

#[test]
fn what_is_almost_zero() {
    let affine = |factor: f64, added: f64, by: f64| {
        move || {
            Tape::builder().background(false).record(move |x: &[Var]| {
                let step = |s: Var, _| if by == 1.0 { s * factor } else { s / by };
                let s = (0..33).fold(x[1], |s, i| step(s, i) + x[0] * added);
                s * s * x[2]
            })
        }
    };
    let lesson: &[f64] = &[2.0, 3.0, 1.0];
    for (factor, added, by) in [(10.0, 3.0, 1.0), (1.0, 1.0, 0.1), (-12.5, 0.75, 1.0)] {
        for x in [5e-324, -5e-324, 3e-310, 1e-300, 0.0] {
            for first in [0.0, 5e-324, 1e-309] {
                assert!(compare(affine(factor, added, by), &[lesson], &[x, first, 1e300]).unwrap());
            }
        }
    }
    // With factors that are inputs, and next to 1.
    let inputs = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let s = (0..300).fold(x[1], |s, _| s * x[2] + x[0] * x[3]);
            s * 1e5
        })
    };
    let lesson: &[f64] = &[2.0, 3.0, 0.9, 1.5];
    for x in [5e-324, 3e-318, 1e-290, 0.0] {
        for factor in [10.0, 1.0 + 1e-12, 1.0, 0.9, 0.0] {
            for scale in [1.0, 1e-30, 0.25, 5e-324] {
                assert!(compare(inputs, &[lesson], &[x, 0.0, factor, scale]).unwrap());
                assert!(compare(inputs, &[lesson], &[x, x, factor, scale]).unwrap());
            }
        }
    }
    // Of a number that is only multiplied, and comes to almost nothing.
    let product = || {
        Tape::builder()
            .background(false)
            .record(|x: &[Var]| (0..64).fold(x[1], |s, _| s * x[0]) * 1e290)
    };
    for (factor, first) in [(0.5, 1e-300), (0.9, 1e-310), (0.7, 1e-310), (1.5, 1e-310)] {
        for sign in [1.0, -1.0] {
            assert!(compare(product, &[&[1.5, 0.99]], &[sign * factor, first]).unwrap());
        }
    }
    // First values that are multiples of each other.
    let multiples = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut a, mut b) = (x[0] * 1.3e36, x[0]);
            for _ in 0..300 {
                (a, b) = (x[1] * a + b, x[1] * b);
            }
            (a + b) * 1e30
        })
    };
    for x in [1e-305, 5e-324, 1e-250] {
        assert!(compare(multiples, &[&[1.0, 0.5]], &[x, 1.5]).unwrap());
    }
    // Of several numbers that depend on each other.
    let system = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..300 {
                (a, b) = (x[2] * a + b + x[3], x[2] * b + a);
            }
            (a + b) * 1e100
        })
    };
    let lesson: &[f64] = &[2.0, 3.0, 0.5, 1.5];
    for x in [5e-324, 3e-318, 1e-290, 0.0] {
        for (factor, added) in [(3.0, 0.0), (3.0, 1e-312), (0.0, x), (2.0, 1e-200)] {
            assert!(compare(system, &[lesson], &[x, 2.0 * x, factor, added]).unwrap());
        }
    }
}

#[test]
fn what_is_almost_zero_and_changes_with_the_iteration() {
    let indexed = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let step = |s: Var, i| s * x[2] + x[1] * f64::from(i) * x[3];
            (0..100).fold(x[0], step) * 1e200
        })
    };
    let lesson: &[f64] = &[1.0, 2.0, 0.5, 1.5];
    for added in [5e-324, 3e-320, 1e-280, 0.0] {
        for factor in [0.5, 0.9, 1.0 + 1e-13, 1.25] {
            for (first, scale) in [(0.0, 1e-20), (0.0, 0.3), (1e-300, 1.0), (5e-324, 0.3)] {
                assert!(compare(indexed, &[lesson], &[first, added, factor, scale]).unwrap());
            }
        }
    }
}

#[test]
fn what_is_almost_zero_in_loops_in_loops() {
    let nest = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let outer = (0..30).fold(x[0], |s, _| {
                let inner = (0..33).fold(s * 0.5, |g, _| g * x[2] + x[1] * x[3]);
                s * 0.25 + inner
            });
            outer * 1e100
        })
    };
    let begun_anew = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            (0..30).fold(x[0], |s, _| {
                let inner = (0..33).fold(x[0] * 1e-10, |g, _| g * x[2] + x[1] * x[3]);
                s * 0.25 + inner * 1e180
            })
        })
    };
    let lesson: &[f64] = &[1.0, 2.0, 0.5, 1.5];
    for added in [5e-324, 3e-320, 1e-280, 0.0] {
        for factor in [0.5, 0.9, 1.0 + 1e-13, 1.25] {
            for (first, scale) in [(0.0, 1e-20), (0.0, 0.3), (1e-300, 1.0), (5e-324, 0.3)] {
                assert!(compare(nest, &[lesson], &[first, added, factor, scale]).unwrap());
                assert!(compare(begun_anew, &[lesson], &[first, added, factor, scale]).unwrap());
            }
        }
    }
}

#[test]
fn what_small_and_large_factors_come_to() {
    // The first two alone come to zero.
    let small = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut a, mut b) = (x[0], x[1]);
            for _ in 0..50 {
                (a, b) = (a + b * (x[2] * x[4] * x[3]), b + a * 0.0);
            }
            a
        })
    };
    let lesson: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0];
    for (a, b, c) in [(1e-170, 1e-160, 1e70), (1e-160, 1e-157, 1e75), (1e-30, 1e-20, 1e40)] {
        assert!(compare(small, &[lesson], &[0.0, 1e38, a, b, c]).unwrap());
        assert!(compare(small, &[lesson], &[0.0, 1e38, c, a, b]).unwrap());
        assert!(compare(small, &[lesson], &[1.0, 1e38, a, b, c]).unwrap());
    }
}
