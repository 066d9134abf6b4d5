//! Sums over inactive inputs, hoisted out of the loops around: as accurate as the loops for data of
//! all kinds, compared with a double-double reference, and kernels agree with the tape.

mod chosen;

use std::panic::Location;

use crate::common::double_double::DoubleDouble;
use crate::common::double_double_graphs::evaluate_block;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::phi::{Applied, CloseLimits, Closed, Rule, close};
use phigrad::internals::ssa::{Folding, Graph, Nest, Outcome, interpret, simplify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Tape, Var, traced};

/// The number of fitted points.
const DATA: usize = 30;

type Program = fn(&[Var], &[Var]) -> Var;

fn recorded(point: &[f64], data: &[f64], f: Program) -> Graph {
    let inputs = Inputs { active: point, inactive: data };
    let mut traces = MergedTraces::new(point.len(), data.len());
    let mut tracer = Tracer::default();
    let trace = tracer.run(f, inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    Graph::clone(traces.graph())
}

fn closed(straight: &Graph) -> Closed {
    let rolled = simplify(&reroll(straight, RerollLimits::default()), Folding::Real);
    close(&rolled, CloseLimits { always: true, ..CloseLimits::DEFAULT })
}

/// The number of loops inside other loops.
fn nested(graph: &Graph) -> usize {
    let nest = Nest::of(graph);
    let regions = graph.regions.iter().filter(|(_, data)| data.cycle.is_some());
    regions.filter(|&(region, _)| nest.loop_around(region).is_some()).count()
}

fn error(found: f64, reference: DoubleDouble) -> f64 {
    let difference = DoubleDouble::from(found) - reference;
    (difference.0 + difference.1).abs()
}

/// The largest ratio of the form's error to four times the loop's plus four ulps,
/// over the points and points near them.
fn worst(f: Program, points: &[Vec<f64>], data: &[f64]) -> f64 {
    let straight = recorded(&points[0], data, f);
    let closed = closed(&straight);
    let gradient = |graph: &Graph| reverse(graph, Wanted::GradientAndValue, Folding::Exact);
    let (tape, form) = (gradient(&straight), gradient(&closed.graph));
    let mut worst: f64 = 0.0;
    for point in points {
        // The loop may happen to be exact at a point: its error is the largest at nearby points.
        let near = |k: i32| point.iter().map(move |x| x * (1.0 + f64::from(k) * 7e-15));
        let mut sums: Vec<[f64; 3]> = Vec::new();
        for k in -2..2 {
            let inputs: Vec<f64> = near(k).chain(data.iter().copied()).collect();
            let (Outcome::Values(a), Outcome::Values(b)) =
                (interpret(&tape, &inputs), interpret(&form, &inputs))
            else {
                panic!("it stops");
            };
            let reference = evaluate_block(&tape, &inputs);
            sums.resize(a.len(), [0.0; 3]);
            for (sum, ((a, b), reference)) in sums.iter_mut().zip(a.iter().zip(&b).zip(reference)) {
                sum[0] += error(*a, reference).powi(2);
                sum[1] += error(*b, reference).powi(2);
                sum[2] += (reference.0 * f64::EPSILON).powi(2);
            }
        }
        for (number, sum) in sums.into_iter().enumerate() {
            let [tape, form, ulp] = sum.map(|sum| (sum / 4.0).sqrt());
            let ratio = form / (4.0 * tape + 4.0 * ulp + f64::MIN_POSITIVE);
            if ratio > worst {
                println!("{number} at {point:?}: tape {tape:e} form {form:e} ulp {ulp:e}");
            }
            worst = worst.max(ratio);
        }
    }
    worst
}

/// Points of random numbers of all sizes, and points near `centre`.
fn points(centre: &[f64]) -> Vec<Vec<f64>> {
    let mut random = Random::new(1);
    let mut all = vec![centre.to_vec()];
    for exponent in [-12.0, -6.0, -2.0, 0.0, 5.0] {
        let size = 10f64.powf(exponent);
        all.push(centre.iter().map(|c| c + size * random.uniform(-1.0, 1.0)).collect());
        all.push(centre.iter().map(|_| size * random.uniform(-1.0, 1.0)).collect());
    }
    all
}

/// Numbers around `middle`, up to `width` away, and a line through them with noise.
fn data(middle: f64, width: f64, noise: f64) -> Vec<f64> {
    data_of(DATA, middle, width, noise)
}

/// The same for `count` points.
fn data_of(count: usize, middle: f64, width: f64, noise: f64) -> Vec<f64> {
    let mut random = Random::new(7);
    let x: Vec<f64> = (0..count).map(|_| middle + width * random.uniform(-1.0, 1.0)).collect();
    let y = x.iter().map(|x| 0.7 * x + 0.3 + noise * random.uniform(-1.0, 1.0));
    let y: Vec<f64> = y.collect();
    [x, y].concat()
}

/// Sums of squares at 20 points on a line, the last of them the one that counts most.
fn squares(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..20 {
        let mut sum = Var::from(0.0);
        for i in 0..DATA {
            let residual = a * d[i] + b - d[DATA + i];
            sum += residual * residual;
        }
        all = all * 0.5 + sum;
        (a, b) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25);
    }
    all
}

/// The slopes of such a sum.
fn lines(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..20 {
        let (mut by_a, mut by_b) = (Var::from(0.0), Var::from(0.0));
        for i in 0..DATA {
            let residual = a * d[i] + b - d[DATA + i];
            by_a += residual * d[i];
            by_b += residual;
        }
        all = all * 0.5 + by_a + by_b;
        (a, b) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25);
    }
    all
}

/// Halved squares of the residuals of a parabola.
fn parabolas(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let (mut a, mut b, mut c) = (x[0], x[1], x[2]);
    for _ in 0..28 {
        let mut sum = Var::from(0.0);
        for i in 0..DATA {
            let residual = a * d[i] * d[i] + b * d[i] + c - d[DATA + i];
            sum += 0.5 * residual * residual;
        }
        all = all * 0.5 + sum;
        (a, b, c) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25, c * 0.75 + x[2] * 0.25);
    }
    all
}

/// Fourth powers, about.
fn fourths(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let mut a = x[0];
    for _ in 0..20 {
        let mut sum = Var::from(0.0);
        for i in 0..DATA {
            let square = (a - d[i]) * (a - d[i]) - d[DATA + i];
            sum += square * square;
        }
        all = all * 0.5 + sum;
        a = a * 0.75 + x[1] * 0.25;
    }
    all
}

/// Weighted exponentials.
fn powers(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let mut a = x[0];
    for _ in 0..20 {
        let sum: Var = (0..DATA).map(|i| d[DATA + i] * (a + d[i]).exp()).sum();
        all = all * 0.5 + sum * x[1];
        a *= 0.75;
    }
    all
}

/// A line in one variable, and a weighted square.
fn centred(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let mut a = x[0];
    for _ in 0..20 {
        let line: Var = (0..DATA).map(|i| a * d[i] - d[DATA + i]).sum();
        let weighted: Var = (0..DATA).map(|i| d[i] * (a - d[DATA + i]) * (a - d[DATA + i])).sum();
        all = all * 0.5 + line + weighted;
        a = a * 0.75 + x[1] * 0.25;
    }
    all
}

/// A variable that is a common factor, and occurs in other factors as well.
fn factored(x: &[Var], d: &[Var]) -> Var {
    let mut all = Var::from(0.0);
    let (mut a, mut b) = (x[0], x[1]);
    for _ in 0..20 {
        let inactive: Var = (0..DATA).map(|i| (a - d[i]) * a * b).sum();
        let captured: Var = (0..DATA).map(|i| (a - (i as f64).sin()) * a * b).sum();
        all = all * 0.5 + inactive + captured;
        (a, b) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25);
    }
    all
}

#[test]
fn cancelling_slopes_and_common_factors_are_accurate() {
    // Centred data: the sums of slopes and weights are rounding errors.
    let mut data = data(0.0, 1.0, 0.1);
    for _ in 0..2 {
        let mean = data[..DATA].iter().sum::<f64>() / DATA as f64;
        data[..DATA].iter_mut().for_each(|x| *x -= mean);
    }
    for (name, f) in [("centred", centred as Program), ("factored", factored)] {
        let ratio = worst(f, &points(&[0.7, 0.3]), &data);
        assert!(ratio <= 1.0, "{name}: {ratio}");
    }
}

/// Asserts that sums of `f` over its inactive inputs have closed forms.
#[track_caller]
fn assert_closes(f: Program, point: &[f64], data: &[f64]) {
    let closed = closed(&recorded(point, data, f));
    let is_sum = |applied: &Applied| applied.rule == Rule::C7;
    assert!(closed.applied.iter().any(is_sum), "{:?}", closed.open);
}

#[test]
fn sums_of_several_variables_are_as_accurate_as_loops() {
    for (middle, noise) in [(0.0, 1.0), (3.0, 1e-3), (1000.0, 1e-3), (1000.0, 1.0), (-1e5, 1e-3)] {
        let data = data(middle, 1.0, noise);
        let points = points(&[0.7, 0.3]);
        for (name, f) in [("squares", squares as Program), ("lines", lines)] {
            let ratio = worst(f, &points, &data);
            assert!(ratio <= 1.0, "{name} around {middle}, noise {noise}: {ratio}");
            assert_closes(f, &points[0], &data);
        }
        let ratio = worst(fourths, &self::points(&[middle, 0.3]), &data);
        assert!(ratio <= 1.0, "fourth powers around {middle}, noise {noise}: {ratio}");
        assert_closes(fourths, &[middle, 0.3], &data);
        let data: Vec<f64> = data.iter().map(|x| x / middle.abs().max(1.0)).collect();
        let ratio = worst(powers, &self::points(&[0.1, 0.3]), &data);
        assert!(ratio <= 1.0, "powers around {middle}, noise {noise}: {ratio}");
        assert_closes(powers, &[0.1, 0.3], &data);
        let ratio = worst(parabolas, &self::points(&[0.01, 0.7, 0.3]), &data);
        assert!(ratio <= 1.0, "parabolas around {middle}, noise {noise}: {ratio}");
    }
}

#[test]
fn collinear_data_are_accurate() {
    // All the same, all zero, and all but one the same.
    let y = |i: usize| (i as f64).sin();
    for x in [vec![1.5; DATA], vec![0.0; DATA], [vec![2.0; DATA - 1], vec![2.0 + 1e-9]].concat()] {
        let data: Vec<f64> = x.into_iter().chain((0..DATA).map(y)).collect();
        for f in [squares as Program, lines] {
            let ratio = worst(f, &points(&[0.7, 0.3]), &data);
            assert!(ratio <= 1.0, "{ratio}");
        }
    }
}

/// The sum of `term` of a number and three data after 120 numbers, the last of which dominates.
fn followed(x: &[Var], d: &[Var], term: impl Fn(Var, Var, Var) -> Var) -> Var {
    let (mut all, mut w) = (Var::from(0.0), x[0]);
    for _ in 0..120 {
        let sum = (0..DATA).map(|i| term(w, d[i], d[DATA + i])).sum::<Var>();
        all = all * 0.5 + sum;
        w = w * 0.75 + x[1];
    }
    all
}

fn weighted_squares(x: &[Var], d: &[Var]) -> Var {
    followed(x, d, |w, x, y| (x - y) * (w * x - y) * (w * x - y))
}

fn cubes(x: &[Var], d: &[Var]) -> Var {
    followed(x, d, |w, x, y| (w * x - y).powi(3))
}

fn fourth_powers(x: &[Var], d: &[Var]) -> Var {
    followed(x, d, |m, x, _| (x - m) * (x - m) * (x - m) * (x - m) * 0.5)
}

fn curved(x: &[Var], d: &[Var]) -> Var {
    followed(x, d, |w, x, y| (w * w * x - y) * w * x)
}

/// Steps up the likelihood of a normal distribution.
fn likelihood(x: &[Var], d: &[Var]) -> Var {
    let (mut m, mut s) = (x[0], x[1]);
    for _ in 0..200 {
        let (mut by_m, mut by_s) = (Var::from(0.0), Var::from(0.0));
        for &x in &d[..DATA] {
            let z = (x - m) / s;
            by_m += z / s;
            by_s += (z * z - 1.0) / s;
        }
        m += 1e-4 * by_m;
        s += 1e-4 * by_s;
    }
    m + 3.0 * s
}

/// Steps down the cubes of residuals of a line.
fn cubes_of_lines(x: &[Var], d: &[Var]) -> Var {
    let (mut a, mut b) = (x[0], x[1]);
    let mut all = Var::from(0.0);
    let count = d.len() / 2;
    for _ in 0..130 {
        let mut sum = Var::from(0.0);
        for i in 0..count {
            let residual = a * d[i] + b - d[count + i];
            sum += residual * residual * residual;
        }
        all = all * 0.5 + sum;
        (a, b) = (a * 0.75 + x[0] * 0.25, b * 0.75 + x[1] * 0.25);
    }
    all
}

#[test]
fn sums_of_higher_degree_are_as_accurate_as_loops() {
    for (middle, noise) in [(0.0, 0.1), (1e6, 0.1), (1e9, 1.0)] {
        let data = data(middle, 1.0, noise);
        let near = |centre: &[f64]| {
            let sizes = [0.0, 1e-3, 0.3, 20.0];
            let moved = |size: f64| {
                let moved = |(i, c): (usize, &f64)| c + if i % 2 == 0 { size } else { -size };
                centre.iter().enumerate().map(moved).collect()
            };
            sizes.map(moved).to_vec()
        };
        let lines = near(&[0.7, 0.175]);
        let both = vec![vec![middle, 0.8], vec![middle + 0.3, 1.3], vec![middle - 2.0, 3.0]];
        for (name, f, points) in [
            ("weighted squares", weighted_squares as Program, &lines),
            ("cubes", cubes, &lines),
            ("curved", curved, &lines),
            ("fourth powers", fourth_powers, &near(&[middle, 0.25 * middle])),
            ("likelihood", likelihood, &both),
        ] {
            let ratio = worst(f, points, &data);
            // A mean of the errors at four points varies by as much.
            assert!(ratio <= 1.5, "{name} around {middle}, noise {noise}: {ratio}");
        }
        let ratio =
            worst(cubes_of_lines, &near(&[0.7, 0.3])[1..], &data_of(120, middle, 1.0, noise));
        assert!(ratio <= 1.0, "cubes of lines around {middle}, noise {noise}: {ratio}");
    }
}

/// The error of a line fitted by gradient descent.
#[traced]
fn descent(rate: &[Var], d: &[Var]) -> Var {
    let (x, y) = d.split_at(d.len() / 2);
    let (mut a, mut b) = (Var::from(0.0), Var::from(0.0));
    for _ in 0..50 {
        let (mut by_a, mut by_b) = (Var::from(0.0), Var::from(0.0));
        for (&x, &y) in x.iter().zip(y) {
            let residual = a * x + b - y;
            by_a += residual * x;
            by_b += residual;
        }
        a -= rate[0] * by_a;
        b -= rate[1] * by_b;
    }
    let mut error = Var::from(0.0);
    for (&x, &y) in x.iter().zip(y) {
        let residual = a * x + b - y;
        error += residual * residual;
    }
    error
}

#[test]
fn descents_of_two_variables_equal_the_tape_for_other_data() {
    let f = Tape::record_with(descent);
    let rates = [0.01, 0.02];
    let first = data(0.5, 1.0, 0.1);
    let on_tape = f.value_and_grad(&rates, &first).unwrap();
    f.compile().unwrap();
    for data in [first, data(-2.0, 0.5, 1.0)] {
        let plain = Tape::builder().hot_threshold(u32::MAX).record_with(descent);
        let expected = plain.value_and_grad(&rates, &data).unwrap();
        let found = f.value_and_grad(&rates, &data).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs().max(1e-3);
        assert!(near(found.0, expected.0), "{} {}", found.0, expected.0);
        assert!(
            found.1.iter().zip(&expected.1).all(|(a, b)| near(*a, *b)),
            "{found:?} {expected:?}"
        );
    }
    assert_eq!(f.report().kernel_calls, 2);
    assert!(on_tape.0.is_finite());
}

#[test]
fn lines_and_squares_of_one_variable_are_hoisted() {
    let slopes: Program = |x, d| followed(x, d, |w, x, y| (w * x - y) * x);
    let squares: Program = |x, d| followed(x, d, |w, x, y| 0.5 * (w * x - y) * (w * x - y));
    let scaled: Program = |x, d| followed(x, d, |w, x, y| w * x * y);
    for f in [slopes, squares, scaled] {
        for (middle, noise) in [(0.3, 0.1), (1e3, 0.1), (1e6, 1e-3)] {
            let data = data(middle, 1.0, noise);
            let closed = closed(&recorded(&[0.7, 0.1], &data, f));
            assert!(closed.applied.iter().any(|applied| applied.rule == Rule::C7));
            assert_eq!(nested(&closed.graph), 0, "{:?}", closed.open);
            let ratio = worst(f, &points(&[0.7, 0.175]), &data);
            assert!(ratio <= 1.0, "around {middle}: {ratio}");
        }
    }
}
