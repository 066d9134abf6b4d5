//! Closed forms of systems whose numbers hardly take part in each other: their products in powers
//! of the map are almost zero, and the powers that they meet are not.
#![allow(clippy::unwrap_used)] // Helpers of tests may fail like tests.

#[path = "support/extremes.rs"]
mod extremes;

use extremes::compare;
use phigrad::{Recorded, Tape, Var};

/// Compares at couplings that are almost zero; at `usual` ones the kernel serves. Points are made
/// of a growth and a coupling.
fn compare_coupled<F>(
    make: impl Fn() -> Recorded<F>,
    at: impl Fn(f64, f64) -> Vec<f64>,
    growth: f64,
    usual: &[f64],
) where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let lesson = at(0.9, 0.05);
    let at = |coupling| at(growth, coupling);
    for &coupling in usual {
        assert!(compare(&make, &[&lesson, &at(coupling)], &at(coupling)).unwrap());
        let taught = make();
        taught.grad(&lesson).unwrap();
        taught.compile().unwrap();
        taught.grad(&at(coupling)).unwrap();
        assert_eq!(taught.report().kernel_calls, 1, "{coupling}: {}", taught.report());
    }
    let tiny = [1e-60, 1e-80, 1e-100, 1e-120, -1.071_519_305_237_606_3e-160, 1e-161, 1e-162];
    for coupling in tiny.into_iter().chain([1e-165, 1e-180, 1e-250, 1e-300, 1e-310, 5e-324, 0.0]) {
        assert!(compare(&make, &[&lesson], &at(coupling)).unwrap());
    }
}

#[test]
fn systems_that_are_hardly_coupled() {
    let usual = [1e-3, 1e-20, 1e-60, 0.0];
    for growth in [1.071_519_305_237_606_4, -1.9, 0.999] {
        let chain = || {
            Tape::builder().background(false).record(|x: &[Var]| {
                let mut z = [x[2], x[3], x[4]];
                for _ in 0..1000 {
                    z = [x[0] * z[0] + x[1] * z[1], x[0] * z[1] + x[1] * z[2], x[0] * z[2]];
                }
                z[0]
            })
        };
        let point = |growth: f64, coupling| vec![growth, coupling, 1.0, -0.62, 1.0];
        compare_coupled(chain, point, growth, &usual);
        let line = || {
            Tape::builder().background(false).record(|x: &[Var]| {
                let mut z = [x[2], x[3], x[4]];
                for _ in 0..1000 {
                    z = [
                        x[0] * z[0] + x[1] * z[1],
                        x[0] * z[1] + x[1] * z[2] + x[1] * z[0],
                        x[0] * z[2] + x[1] * z[1],
                    ];
                }
                z[0]
            })
        };
        compare_coupled(line, point, growth, &usual[..3]);
        let both = || {
            Tape::builder().background(false).record(|x: &[Var]| {
                let (mut a, mut b) = (x[2], x[3]);
                for _ in 0..1000 {
                    (a, b) = (x[0] * a + x[1] * b, x[1] * a + x[4] * b);
                }
                a
            })
        };
        let point = |growth, coupling| vec![growth, coupling, 1.0, 0.0, growth];
        compare_coupled(both, point, growth, &usual);
        let counted = || {
            Tape::builder().background(false).record(|x: &[Var]| {
                let (mut a, mut b) = (x[2], x[3]);
                for i in 0..1000 {
                    (a, b) = (x[0] * a + x[1] * b, x[0] * b + x[1] * f64::from(i));
                }
                a
            })
        };
        compare_coupled(
            counted,
            |growth, coupling| vec![growth, coupling, 1.0, 0.5],
            growth,
            &usual,
        );
    }
}

#[test]
fn systems_whose_length_is_found_are_hardly_coupled() {
    let both = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut a, mut b, mut time) = (x[2], x[3], 0.0);
            while x[5] > time {
                (a, b) = (x[0] * a + x[1] * b, x[1] * a + x[4] * b);
                time += 1.0;
            }
            a
        })
    };
    let point = |growth, coupling| vec![growth, coupling, 1.0, 0.0, growth, 999.5];
    compare_coupled(both, point, 1.9, &[1e-20, 1e-60, 0.0]);
}

#[test]
fn systems_that_a_loop_around_couples_less_and_less() {
    let chain = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let (mut z, mut coupling) = ([x[2]; 3], x[3]);
            for _ in 0..12 {
                coupling *= x[1];
                z = [Var::from(0.0), Var::from(0.0), x[2]];
                for _ in 0..200 {
                    z = [x[0] * z[0] + coupling * z[1], x[0] * z[1] + coupling * z[2], x[0] * z[2]];
                }
            }
            z[0]
        })
    };
    let lesson = [0.9, 0.8, 0.5, 0.3];
    for factor in [1e-5, 1e-8, 4e-14, 1e-20, 0.0] {
        assert!(compare(chain, &[&lesson], &[1.5, factor, 1.0, 1.0]).unwrap());
    }
}

#[test]
fn systems_that_a_loop_inside_couples() {
    let chain = || {
        Tape::builder().background(false).record(|x: &[Var]| {
            let mut z = [Var::from(0.0), Var::from(0.0), x[2]];
            for _ in 0..300 {
                let mut coupling = x[3];
                for _ in 0..100 {
                    coupling *= x[1];
                }
                z = [x[0] * z[0] + coupling * z[1], x[0] * z[1] + coupling * z[2], x[0] * z[2]];
            }
            z[0]
        })
    };
    let lesson = [0.9, 0.8, 0.5, 0.3];
    for factor in [0.3, 0.1, 0.0316, 0.0245, 0.02, 0.0] {
        assert!(compare(chain, &[&lesson], &[1.5, factor, 1.0, 1.0]).unwrap());
    }
}

#[test]
fn powers_that_vanish_before_they_are_multiplied() {
    let points = [
        [2.0, 0.02, 1.0, 1e100],
        [2.0, 0.02, 1.0, 1e17],
        [1.0, 0.02, 1.0, 1e300],
        [1.0, 0.0245, 1.0, 1e100],
    ];
    let powered = |x: &[Var]| (0..200).fold(x[3], |power, _| power * x[1]);
    let coupled = || {
        Tape::builder().background(false).record(move |x: &[Var]| {
            let mut z = [Var::from(0.0), x[2]];
            for _ in 0..1000 {
                let coupling = powered(x);
                z = [x[0] * z[0] + coupling * z[1], x[0] * z[1]];
            }
            z[0]
        })
    };
    let added = || {
        Tape::builder().background(false).record(move |x: &[Var]| {
            let mut z = Var::from(0.0);
            for _ in 0..1000 {
                z = x[0] * z + powered(x) * x[2];
            }
            z
        })
    };
    let ring = || {
        Tape::builder().background(false).record(move |x: &[Var]| {
            let mut z = [x[2], Var::from(0.5)];
            for _ in 0..1000 {
                let coupling = powered(x);
                z = [x[0] * z[0] + coupling * z[1], z[1] * 0.5 + coupling * z[0]];
            }
            z[1]
        })
    };
    let summed = || {
        Tape::builder().background(false).record(move |x: &[Var]| {
            let mut z = [Var::from(0.0), x[2]];
            for _ in 0..1000 {
                let other = (0..180).fold(x[3] * 0.5, |power, _| power * x[1]);
                let coupling = powered(x) + 3.0 * other;
                z = [x[0] * z[0] + coupling * z[1], x[0] * z[1]];
            }
            z[0]
        })
    };
    let lesson = [0.9, 0.99, 0.5, 0.3];
    for x in points {
        assert!(compare(summed, &[&lesson], &x).unwrap());
        assert!(compare(coupled, &[&lesson], &x).unwrap());
        assert!(compare(added, &[&lesson], &x).unwrap());
        assert!(compare(ring, &[&lesson], &x).unwrap());
    }
}
