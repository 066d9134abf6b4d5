//! Powers that are less than any number where the loop is not, since it multiplies by something huge
//! before or in between.
#![allow(clippy::unwrap_used)] // Helpers of tests may fail like tests.

#[path = "support/extremes.rs"]
mod extremes;

use extremes::compare;
use phigrad::{Recorded, Tape, Var};

const LESSON: [f64; 5] = [0.9, 0.99, 0.5, 0.3, 0.1];

/// `x` to the power of 200 times `first`: at 0.02 the power is 1.6e-340.
fn powered(first: Var, x: Var) -> Var {
    (0..200).fold(first, |power, _| power * x)
}

fn recorded<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(f: F) -> Recorded<F> {
    Tape::builder().background(false).record(f)
}

/// Compares `f` at `points`, of which those that are usual are the kernel's.
fn assert_good<F>(f: F, points: &[[f64; 5]])
where
    F: Fn(&[Var]) -> Var + Copy + Send + Sync + 'static,
{
    for x in points {
        assert!(compare(|| recorded(f), &[&LESSON], x).unwrap(), "{x:?}");
    }
}

/// Whether the closed form serves `x` once `f` is compiled.
fn serves<F>(f: F, x: &[f64; 5]) -> bool
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let f = recorded(f);
    f.grad(&LESSON).unwrap();
    f.compile().unwrap();
    let served = || f.report().kernel_calls - f.report().reserve_calls;
    let before = served();
    f.grad(x).unwrap();
    served() > before
}

#[test]
fn before_adjoints_that_are_huge() {
    let multiplied = |x: &[Var]| powered(x[0], x[1]) * x[2];
    let points = [0.02, 0.0245, 0.5].map(|factor| [1.0, factor, 1e300, 0.0, 0.0]);
    assert_good(multiplied, &points);
    assert!(serves(multiplied, &points[2]));
    assert!(serves(multiplied, &[1.0, 0.02, 1e30, 0.0, 0.0]));

    let grown = |x: &[Var]| (0..1000).fold(powered(x[0], x[1]), |power, _| power * x[2]);
    assert_good(grown, &[[1.0, 0.02, 1.9, 0.0, 0.0]]);
    let affine = |x: &[Var]| (0..200).fold(x[0], |level, _| level * x[1] + x[3]) * x[2];
    assert_good(affine, &[[1.0, 0.02, 1e300, 0.5, 0.0]]);
    let constant = |x: &[Var]| (0..200).fold(x[0], |power, _| power * 0.02) * x[1];
    assert_good(constant, &[[1.0, 1e300, 0.0, 0.0, 0.0]]);
    assert!(serves(constant, &[1.0, 2.0, 0.0, 0.0, 0.0]));
    let two = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| [a * x[1], b * 0.03 + a];
        let [a, b] = (0..200).fold([x[0], x[3]], step);
        (a + b) * x[2]
    };
    assert_good(two, &[[1.0, 0.02, 1e300, 0.5, 0.0], [1.0, 0.9, 1e300, 0.5, 0.0]]);
}

#[test]
fn where_loops_take_numbers_to_a_point() {
    let taken = |x: &[Var]| {
        let z = (0..200).fold(x[0], |z, _| z * x[4]);
        (0..600).fold(z, |z, _| z + x[1] * (x[3] - z)) * x[2]
    };
    assert_good(taken, &[[1.0, 0.75, 1e300, 0.5, 1.0]]);
    assert!(serves(taken, &[1.0, 0.75, 2.0, 0.5, 1.0]));
}

#[test]
fn where_the_start_has_a_factor() {
    let scaled = |x: &[Var]| powered(x[0] * 1e250, x[1]) * x[2];
    let product = |x: &[Var]| powered(x[0] * x[3], x[1]) * x[2];
    let points = [[1e-200, 0.025, 1e30, 1e250, 0.0], [1e-200, 0.02, 1e30, 1e250, 0.0]];
    assert_good(product, &points);
    assert!(serves(product, &[1e-20, 0.5, 1e30, 1e20, 0.0]));
    for x in points {
        compare(|| recorded(scaled), &[&LESSON], &x).unwrap();
    }
}

#[test]
fn in_what_a_loop_around_multiplies_by() {
    let own = |x: &[Var]| (0..100).fold(x[4], |z, _| z * powered(x[3], x[1]) * x[2]);
    assert_good(own, &[[1.0, 0.02, 1e40, 1e300, 1.0], [1.0, 0.0201, 1e40, 1e300, 1.0]]);
    let diagonal = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| {
            let power = powered(x[3], x[1]);
            [a * power * x[2] + b, b * 0.5]
        };
        let [a, b] = (0..100).fold([x[4], x[0]], step);
        a + b
    };
    assert_good(diagonal, &[[1.0, 0.02, 1e40, 1e300, 1.0]]);
}

#[test]
fn beside_a_term_that_is_nothing() {
    let coupled = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| {
            let coupling = powered(x[3], x[1]) + x[4];
            [x[0] * a + coupling * b, x[0] * b]
        };
        (0..1000).fold([Var::from(0.0), x[2]], step)[0]
    };
    let points = [0.0, 1e-290, 1.0].map(|added| [2.0, 0.02, 1.0, 1e100, added]);
    assert_good(coupled, &points);
    assert!(serves(coupled, &[0.99, 0.02, 1.0, 1.0, 1.0]));
    let same =
        |x: &[Var]| (0..30).fold(Var::from(1.0), |z, _| z * 0.5 + (powered(x[3], x[1]) + x[3]));
    assert_good(same, &[[1.0, 0.02, 1.0, 1e300, 0.0], [1.0, 0.02, 1.0, 1.0, 0.0]]);
    assert!(serves(same, &[1.0, 0.02, 1.0, 1.0, 0.0]));
    let nested = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| {
            let both = powered(x[3], x[1]) + powered(x[3], 0.5 * x[1]);
            [x[0] * a + (both * x[2] + powered(x[2], x[1])) * b, x[0] * b]
        };
        (0..1000).fold([Var::from(0.0), Var::from(1.0)], step)[0]
    };
    assert_good(nested, &[[2.0, 0.02, 1.0, 1e100, 0.0]]);
}

#[test]
fn products_of_small_couplings() {
    let coupled = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| [x[0] * a + 3.0 * (x[1] * (x[2] * b)), x[0] * b];
        (0..1000).fold([Var::from(0.0), x[3]], step)[0]
    };
    assert_good(coupled, &[[2.0, 1e-170, 1e-170, 1.0, 0.0], [2.0, 1e-100, 1e-150, 1.0, 0.0]]);
    assert!(serves(coupled, &[2.0, 1e-70, 1e-70, 1.0, 0.0]));
    assert!(serves(coupled, &[0.9, 1e8, 0.0, 1.0, 0.0]));
    let of_three = |x: &[Var]| {
        let step = |[a, b]: [Var; 2], _| [x[0] * a + 3.0 * (x[1] * (x[2] * (x[3] * b))), x[0] * b];
        (0..900).fold([Var::from(0.0), Var::from(1.0)], step)[0]
    };
    assert_good(of_three, &[[2.0, 1e8, 1e-160, 1e-170, 0.0], [2.0, 1e30, 1e-180, 1e-180, 0.0]]);
    assert!(serves(of_three, &[0.9, 1e8, 1e-3, 2.0, 0.0]));
}

#[test]
fn in_inner_loops_of_two_numbers() {
    let inner = |x: &[Var]| {
        let outer = |[a, b]: [Var; 2], _| {
            let step = |[a, b]: [Var; 2], _| [x[1] * a + x[3] * b, x[1] * b];
            let [a, b] = (0..200).fold([a, b], step);
            [x[2] * a, x[2] * b + x[4]]
        };
        let [a, b] = (0..10).fold([x[0], Var::from(1.0)], outer);
        a + b
    };
    assert_good(
        inner,
        &[[1.0, 0.02, 1e300, 0.01, 1.0], [1.0, 0.03, 1e300, 0.5, 1.0], [1.0, 0.9, 2.0, 0.5, 0.1]],
    );
}

#[test]
fn where_the_number_of_steps_is_found() {
    let found = |x: &[Var]| {
        let (mut power, mut level, mut steps) = (x[0], x[4], Var::from(0.0));
        while steps < 200.0 + x[3] {
            power *= x[1];
            level = level * 0.5 + x[3];
            steps += 1.0;
        }
        power * x[2] + level
    };
    assert_good(found, &[[1.0, 0.02, 1e300, 0.3, 0.1], [1.0, 0.9, 2.0, 0.3, 0.1]]);
}
