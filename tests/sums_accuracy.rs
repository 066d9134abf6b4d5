//! Sums in closed form are as accurate as the loops, over wide ranges of inputs:
//! compared with a reference of twice the digits, values and gradients.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

#[path = "support/bound.rs"]
mod bound;
#[path = "common/precise.rs"]
mod precise;

use std::panic::Location;

use bound::ulp;
use phigrad::Var;
use phigrad::check::Random;
use phigrad::diff::{Wanted, reverse};
use phigrad::entity::Array;
use phigrad::op::Op;
use phigrad::phi::{CloseLimits, close};
use phigrad::ssa::{
    Def, End, Folding, Graph, Lifted, Node, Outcome, Paths, RerollLimits, interpret, reroll,
    simplify,
};
use phigrad::trace::{Inputs, Tracer};
use precise::{Pair, precisely, sub};

fn recorded(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Graph {
    let inputs = Inputs { active: point, inactive: &[] };
    let mut lifted = Lifted::new(point.len(), 0);
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    lifted.merge(&trace, Paths { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    Graph::clone(lifted.graph())
}

/// The graph with an inactive input for each constant, and these constants.
fn with_inputs_for_constants(graph: &Graph) -> (Graph, Vec<f64>) {
    let exponents: Vec<Node> = graph
        .nodes
        .values()
        .filter_map(|data| match data.def {
            Def::Apply(Op::Powi, args) => Some(args[1]),
            _ => None,
        })
        .collect();
    let constants = graph.nodes.keys().filter(|node| !exponents.contains(node));
    let constants: Vec<Node> = constants.filter(|&node| graph.constant(node).is_some()).collect();
    let numbers = constants.iter().filter_map(|&node| graph.constant(node)).collect();
    let mut new = Graph::new(graph.active, constants.len());
    let root = new.root();
    let mut copies: Array<Node, Option<Node>> = Array::filled(None, graph.nodes.len());
    for (number, &node) in constants.iter().enumerate() {
        copies[node] = Some(new.input(graph.active + number));
    }
    for (node, data) in graph.nodes.iter() {
        if copies[node].is_none() {
            copies[node] = Some(match data.def {
                Def::Input(number) => new.input(number as usize),
                Def::Const(bits) => new.push_const(bits),
                Def::Apply(op, _) => {
                    let args: Vec<Node> = data.args().iter().map(|&a| copies[a].unwrap()).collect();
                    new.push_apply(root, op, &args, None)
                }
                _ => unreachable!(),
            });
        }
    }
    let End::Return(outputs) = &graph.blocks[graph.root()].end else { panic!("branches") };
    new.blocks[root].end = End::Return(outputs.iter().map(|&o| copies[o].unwrap()).collect());
    (new, numbers)
}

/// How far an output is from the reference.
fn error(found: f64, reference: Pair) -> f64 {
    let difference = sub((found, 0.0), reference);
    (difference.0 + difference.1).abs()
}

/// The largest ratio of the form's error to four times the loop's plus four
/// ulps, over the points and points near them; whether there is a form.
fn worst(f: impl Fn(&[Var]) -> Var, points: &[Vec<f64>]) -> Option<f64> {
    let straight = recorded(&points[0], &f);
    let rolled = simplify(&reroll(&straight, RerollLimits::default()), Folding::Real);
    let closed = close(&rolled, CloseLimits::default());
    if closed.applied.is_empty() {
        println!("{:?}", closed.refused);
        return None;
    }
    let gradient = |graph: &Graph| reverse(graph, Wanted::GradientAndValue, Folding::Exact);
    let (tape, form) = (gradient(&straight), gradient(&closed.graph));
    // Constants would be folded with errors.
    let (unfolded, constants) = with_inputs_for_constants(&straight);
    let exact = gradient(&unfolded);
    let mut worst: f64 = 0.0;
    for point in points {
        // The loop may be right by chance: its error is that of points around.
        let near = |k: i32| point.iter().map(move |x| x * (1.0 + f64::from(k) * 7e-15));
        let near = (-5..5).map(|k| near(k).collect::<Vec<f64>>());
        let mut sums: Vec<(f64, f64, f64)> = Vec::new();
        let mut count = 0.0;
        for point in near {
            let (Outcome::Values(a), Outcome::Values(b)) =
                (interpret(&tape, &point), interpret(&form, &point))
            else {
                continue;
            };
            if a.iter().any(|a| !a.is_finite()) {
                continue;
            }
            count += 1.0;
            let reference = precisely(&exact, &[&point, &constants[..]].concat());
            sums.resize(a.len(), (0.0, 0.0, 0.0));
            for (sum, ((a, b), reference)) in sums.iter_mut().zip(a.iter().zip(&b).zip(reference)) {
                sum.0 += error(*a, reference).powi(2);
                sum.1 += error(*b, reference).powi(2);
                sum.2 += ulp(reference.0).powi(2);
            }
        }
        for (number, (tape, form, ulp)) in sums.into_iter().enumerate() {
            let [tape, form, ulp] = [tape, form, ulp].map(|sum: f64| (sum / count).sqrt());
            let ratio = form / (4.0 * tape + 4.0 * ulp);
            if ratio > worst {
                println!("{number} at {point:?}: tape {tape:e} form {form:e} ulp {ulp:e}");
            }
            worst = worst.max(ratio);
        }
    }
    Some(worst)
}

/// Points of this many numbers of all sizes, and near `centre`.
fn points(centre: &[f64]) -> Vec<Vec<f64>> {
    let mut random = Random::new(1);
    let mut all = vec![centre.to_vec()];
    for exponent in -5..=3 {
        for _ in 0..3 {
            let size = 10f64.powf(3.3 * f64::from(exponent));
            all.push(centre.iter().map(|c| c + size * random.uniform(-1.0, 1.0)).collect());
            all.push(centre.iter().map(|_| size * random.uniform(-1.0, 1.0)).collect());
        }
    }
    all
}

/// Data x and y ~ slope · x + level, with noise.
fn data(count: usize, mean: f64, slope: f64, level: f64, noise: f64) -> Vec<(f64, f64)> {
    let mut random = Random::new(7);
    let mut datum = || {
        let x = mean + random.uniform(-1.0, 1.0);
        (x, slope * x + level + noise * random.uniform(-1.0, 1.0))
    };
    (0..count).map(|_| datum()).collect()
}

fn assert_accurate(name: &str, f: impl Fn(&[Var]) -> Var, points: &[Vec<f64>]) {
    let worst = worst(f, points).unwrap_or_else(|| panic!("{name} has no form"));
    println!("{name}: {worst}");
    assert!(worst <= 1.0, "{name}: {worst}");
}

#[test]
fn slopes_are_accurate() {
    for (mean, noise) in [(0.0, 0.1), (0.0, 0.0), (0.0, 1e-9), (3.0, 0.1), (1e6, 0.1), (1e6, 0.0)] {
        for count in [40, 400] {
            let data = data(count, mean, 0.7, 0.0, noise);
            let slope = |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y) * x).sum::<Var>();
            assert_accurate(&format!("slope {mean} {noise}"), slope, &points(&[0.7]));
        }
    }
}

#[test]
fn squared_residuals_are_accurate() {
    for (mean, noise) in [(0.0, 0.1), (0.0, 0.0), (0.0, 1e-9), (3.0, 0.1), (1e6, 0.1), (1e6, 0.0)] {
        for count in [40, 400] {
            let data = data(count, mean, 0.7, 0.0, noise);
            let error =
                |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y) * (w[0] * x - y)).sum::<Var>();
            assert_accurate(&format!("squares {mean} {noise}"), error, &points(&[0.7]));
        }
    }
}

#[test]
fn variances_are_accurate() {
    for mean in [0.0, 1.0, 1e3, 1e6, 1e9] {
        let data = data(300, mean, 1.0, 0.0, 0.0);
        let variance = |m: &[Var]| data.iter().map(|&(x, _)| (m[0] - x).powi(2)).sum::<Var>();
        assert_accurate(&format!("variance {mean}"), variance, &points(&[mean]));
    }
}

#[test]
fn lines_through_points_are_accurate() {
    let all = [(1e6, false), (1.7, true), (0.0, false), (0.5, false), (1.0, false), (10.0, false)];
    for (mean, sorted) in all {
        for noise in [0.1, 0.0] {
            let mut data = data(300, mean, 0.7, 0.3, noise);
            if sorted {
                data.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
            let error =
                |p: &[Var]| data.iter().map(|&(x, y)| (p[0] * x + p[1] - y).powi(2)).sum::<Var>();
            match worst(error, &points(&[0.7, 0.3])) {
                Some(worst) => {
                    println!("line {mean} {noise}: {worst}");
                    assert!(worst <= 1.0, "{mean} {noise}: {worst}");
                }
                None => panic!("{mean} {sorted}"),
            }
        }
    }
}

#[test]
fn forms_of_many_kinds_are_accurate() {
    let data = data(200, 0.2, 0.7, 0.1, 0.3);
    let cubic = |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y).powi(3)).sum::<Var>();
    let indefinite =
        |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y) * (w[0] * y + x)).sum::<Var>();
    let fourth = |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y).powi(4)).sum::<Var>();
    let begun = |w: &[Var]| data.iter().fold(w[0] * w[0], |s, &(x, y)| s - (w[0] * x - y) * y);
    let plane = |w: &[Var]| data.iter().map(|&(x, y)| w[0] * x + w[1] * y - x * y).sum::<Var>();
    let quotient = |w: &[Var]| data.iter().map(|&(x, y)| (w[0] * x - y) / w[1]).sum::<Var>();
    let product = |w: &[Var]| data.iter().fold(w[1], |p, &(x, y)| p * (w[0] * (x * x + y)) / 0.7);
    for (name, worst) in [
        ("quotient", worst(quotient, &points(&[0.7, 0.3]))),
        ("product", worst(product, &points(&[0.7, 0.3]))),
        ("cubic", worst(cubic, &points(&[0.7]))),
        ("indefinite", worst(indefinite, &points(&[0.7]))),
        ("fourth", worst(fourth, &points(&[0.7]))),
        ("begun", worst(begun, &points(&[0.7]))),
        ("plane", worst(plane, &points(&[0.7, 0.3]))),
    ] {
        println!("{name}: {worst:?}");
        assert!(worst.is_none_or(|worst| worst <= 1.0), "{name}: {worst:?}");
    }
}

#[test]
fn forms_whose_parts_cancel_are_accurate() {
    let all = [(1e3, 0.1), (0.0, 0.1), (0.5, 0.0), (1e6, 0.1)];
    for (mean, noise) in all {
        let data = data(60, mean, 0.7, 0.3, noise);
        let both = || data.iter().copied();
        let at = |name: &str| format!("{name} {mean} {noise}");
        let parabola = |w: &[Var]| {
            both().map(|(x, y)| ((w[0] * x + w[1]) * x + w[2] - y).powi(2)).sum::<Var>()
        };
        assert_accurate(&at("parabola"), parabola, &points(&[0.1, 0.7, 0.3]));
        let covariance = |m: &[Var]| both().map(|(x, y)| (x - m[0]) * (y - m[1])).sum::<Var>();
        assert_accurate(&at("covariance"), covariance, &points(&[mean, 0.7 * mean]));
        let scaled = |w: &[Var]| {
            let mean = both().map(|(x, _)| w[0] * x).sum::<Var>() / 60.0;
            both().map(|(x, _)| (w[0] * x - mean).powi(2)).sum::<Var>()
        };
        assert_accurate(&at("variance"), scaled, &points(&[1.3]));
        let likelihood = |p: &[Var]| {
            let term = |(x, _)| {
                let z = (x - p[0]) / p[1];
                0.5 * z * z + p[2]
            };
            both().map(term).sum::<Var>()
        };
        assert_accurate(&at("likelihood"), likelihood, &points(&[mean, 0.9, 0.1]));
        let regression = |p: &[Var]| {
            let term = |(x, y): (f64, f64)| ((y - p[0] * x - p[1]) / p[2]).powi(2);
            both().map(term).sum::<Var>()
        };
        assert_accurate(&at("regression"), regression, &points(&[0.7, 0.3, 0.9]));
    }
}

/// Terms that are all small somewhere, far from zero: there is a form only if it keeps its
/// digits there.
#[test]
fn what_is_small_far_from_zero_is_accurate() {
    let all = [1e3, 0.0, 1e6, 1e9];
    for offset in all {
        let numbers: Vec<(f64, f64)> =
            (0..50).map(|i| (offset + f64::from(i).sin(), offset + f64::from(i).cos())).collect();
        let both = || numbers.iter().copied();
        let squares = |x: &[Var]| {
            let square = |(a, _): (f64, f64)| ((a - x[0]).powi(2) - x[1]).powi(2);
            both().map(square).sum::<Var>()
        };
        let circle = |x: &[Var]| {
            let distance = |(a, b): (f64, f64)| {
                (x[0] - a) * (x[0] - a) + (x[1] - b) * (x[1] - b) - x[2] * x[2]
            };
            both().map(|point| distance(point).powi(2)).sum::<Var>()
        };
        let difference = |x: &[Var]| both().map(|(a, b)| x[0] * a - x[1] * b).sum::<Var>();
        let differences =
            |x: &[Var]| both().map(|(a, b)| (x[0] * a - x[1] * b).powi(2)).sum::<Var>();
        let mut random = Random::new(5);
        let mut near = || offset + random.uniform(-1.0, 1.0);
        let pairs: Vec<(f64, f64)> = (0..300).map(|_| (near(), near())).collect();
        let pairs =
            |x: &[Var]| pairs.iter().map(|&(a, b)| (x[0] * a - x[1] * b).powi(2)).sum::<Var>();
        let gap = |x: &[Var]| both().map(|(a, _)| x[0] + a - x[1]).sum::<Var>();
        for (name, worst) in [
            ("squares", worst(squares, &points(&[offset, 1.0]))),
            ("circle", worst(circle, &points(&[offset + 1e-6, offset - 1e-6, 1.0]))),
            ("difference", worst(difference, &points(&[1.0, 1.0]))),
            ("differences", worst(differences, &points(&[1.0, 1.0]))),
            ("differences, large", worst(differences, &points(&[1e9 + 0.5, 1e9 - 0.5]))),
            ("pairs", worst(pairs, &points(&[1e9 + 0.5, 1e9 - 0.5]))),
            ("gap", worst(gap, &points(&[offset, 2.0 * offset]))),
        ] {
            println!("{name} {offset}: {worst:?}");
            assert!(worst.is_none_or(|worst| worst <= 1.0), "{name} {offset}: {worst:?}");
        }
    }
}

#[test]
fn logarithms_and_exponentials_are_accurate() {
    let data = data(100, 3.0, 0.7, 0.3, 0.1);
    let both = || data.iter().copied();
    let near = |centre: f64| (-8..=8).map(move |k| vec![centre * 2f64.powi(k)]).collect();
    let near: [Vec<Vec<f64>>; 2] = [near(0.3), near(1e-3)];
    let product = |w: &[Var]| both().map(|(x, _)| (w[0] * x).ln()).sum::<Var>();
    assert_accurate("ln of a product", product, &near[0]);
    let quotient = |w: &[Var]| both().map(|(x, y)| (x / (w[0] * y)).ln()).sum::<Var>();
    assert_accurate("ln of a quotient", quotient, &near[0]);
    let negative = |w: &[Var]| both().fold(w[0], |s, (x, _)| s - (-x * (-w[0])).ln());
    assert_accurate("less ln", negative, &near[0]);
    let exponentials = |w: &[Var]| both().map(|(x, _)| (-w[0] * x).exp()).product::<Var>();
    assert_accurate("exponentials", exponentials, &near[1]);
    let normal =
        |m: &[Var]| both().map(|(x, _)| (-0.02 * (x - m[0]).powi(2)).exp()).product::<Var>();
    assert_accurate("normal", normal, &near[0]);
    let divided = |w: &[Var]| both().fold(w[0], |p, (x, _)| p / (w[0] * x).exp());
    assert_accurate("divided", divided, &near[1]);
    // The logarithm of data of both signs is never a number, and one of a sum is no sum.
    let signs = |w: &[Var]| both().map(|(x, _)| (w[0] * (x - 3.0)).ln()).sum::<Var>();
    assert!(worst(signs, &near[0]).is_none());
    let sum = |w: &[Var]| both().map(|(x, _)| (w[0] + x).ln()).sum::<Var>();
    assert!(worst(sum, &near[0]).is_none());
}

#[test]
fn likelihoods_are_accurate_at_their_maximum() {
    for (mean, noise) in [(3.0, 0.5), (1e3, 1.0), (1e9, 1.0)] {
        let data: Vec<f64> = (0..200).map(|i| mean + noise * (f64::from(i) * 0.7).sin()).collect();
        let steps = [0.0, 1e-12, -1e-9, 1e-6, -1e-3, 0.1, 3.0];
        let near = |at: f64| steps.map(|step| vec![at * (1.0 + step)]).to_vec();
        let name = format!("poisson {mean}");
        assert_accurate(
            &name,
            |x| data.iter().map(|&k| x[0].ln() * k - x[0]).sum(),
            &near(data.iter().sum::<f64>() / 200.0),
        );
        let name = format!("exponential {mean}");
        assert_accurate(
            &name,
            |x| data.iter().map(|&t| x[0].ln() - x[0] * t).sum(),
            &near(200.0 / data.iter().sum::<f64>()),
        );
        let name = format!("of two rates {mean}");
        let rates = near(mean).into_iter().map(|x| vec![x[0], 0.5 / x[0]]).collect::<Vec<_>>();
        assert_accurate(
            &name,
            |x| data.iter().map(|&t| x[0].ln() * t - x[0] + 0.5 * x[1].ln() - x[1] * t).sum(),
            &rates,
        );
        let name = format!("of a rate that is computed {mean}");
        let squares = near(mean).into_iter().map(|x| vec![x[0] * x[0]]).collect::<Vec<_>>();
        let term = |x: Var, k: f64| {
            let rate = x.sqrt();
            (3.0 * rate).ln() * k - rate
        };
        assert_accurate(&name, |x| data.iter().map(|&k| term(x[0], k)).sum(), &squares);
    }
}

#[test]
fn sums_of_exponentials_are_accurate() {
    let data = data(100, 3.0, 0.7, 0.3, 0.1);
    let both = || data.iter().copied();
    let points: Vec<Vec<f64>> = [0.0, 1e-9, 0.7, -3.3, 35.1, -200.0, 640.7, -705.0, 701.2]
        .iter()
        .flat_map(|&w| [vec![w, 1.0 - w], vec![w, 0.001]])
        .collect();
    let shifted = |w: &[Var]| both().map(|(x, _)| (w[0] + x).exp()).sum::<Var>();
    assert_accurate("shifted", shifted, &points);
    let weighted = |w: &[Var]| both().fold(w[1], |s, (x, y)| s - (x - 3.0) * (y - w[0]).exp());
    assert_accurate("weighted", weighted, &points);
    let several =
        |w: &[Var]| both().map(|(x, y)| w[1] * (w[0] - x + w[1] - y).exp() / x).sum::<Var>();
    assert_accurate("several", several, &points);
    let divided = |w: &[Var]| both().map(|(x, _)| x / (x - w[0]).exp()).sum::<Var>();
    assert_accurate("divided", divided, &points);
    // Data that are multiplied by an input are in no sum of exponentials.
    let products = |w: &[Var]| both().map(|(x, _)| (w[0] * x).exp()).sum::<Var>();
    assert!(worst(products, &points).is_none());
    // One that counts for nothing is so large that the others are nothing beside it.
    let far = [1000.0, 1.0, -1000.0];
    let far = |w: &[Var]| {
        let term =
            |i: usize| if i.is_multiple_of(3) { 0.0 } else { 1.5 } * (w[0] + far[i % 3]).exp();
        (0..120).map(term).sum::<Var>()
    };
    assert!(worst(far, &points).is_none());
}

#[test]
fn double_sums_are_accurate() {
    let data = data(40, 2.0, 0.7, 0.3, 0.1);
    let points = points(&[0.7, 0.3]);
    let all = |w: &[Var]| {
        let mut sum = Var::from(0.0);
        for &(x, _) in &data {
            for &(_, y) in &data {
                sum += (w[0] * x - w[1] * y).powi(2);
            }
        }
        sum
    };
    assert_accurate("all pairs", all, &points);
    let triangle = |w: &[Var]| {
        let mut sum = Var::from(0.0);
        for (i, &(x, _)) in data.iter().enumerate() {
            for &(y, _) in &data[..i] {
                sum += (w[0] * x - w[1] * y).powi(2);
            }
        }
        sum
    };
    assert_accurate("triangle", triangle, &points);
}

/// A random polynomial in three numbers, of a degree up to four, and two data.
fn random_term(random: &mut Random, w: &[usize]) -> impl Fn(&[Var], f64, f64) -> Var + use<> {
    let (first, second, third) = (random.pick(w), random.pick(w), random.pick(w));
    let (kind, weight) = (random.below(6), random.uniform(-2.0, 2.0));
    move |w: &[Var], x: f64, y: f64| {
        let (u, v, s) = (w[first], w[second], w[third]);
        match kind {
            0 => (u * x + v - y).powi(2),
            1 => (u - x) * (v - y) * weight,
            2 => (u * x - y) * (v * y + s) * x,
            3 => ((u - x) * s).powi(2) + v * weight,
            4 => (u * x * x + v * x + s - y).powi(2),
            _ => (u - x).powi(4) + (v * weight - y).powi(3),
        }
    }
}

#[test]
fn random_polynomials_are_accurate() {
    let mut random = Random::new(11);
    // It takes a second for each.
    let is_long = std::env::var_os("PHIGRAD_LONG_TESTS").is_some_and(|value| value == "1");
    let cases = if is_long { 1200 } else { 200 };
    let (mut forms, mut all) = (0, Vec::new());
    for case in 0..cases {
        let variables: Vec<usize> = (0..1 + random.below(3)).collect();
        let term = random_term(&mut random, &variables);
        let offset = 10f64.powf(random.uniform(-1.0, 6.0));
        let count = 50 + random.below(60);
        let data = data(count, offset, random.uniform(-1.0, 1.0), 0.3, 0.1);
        let f = |w: &[Var]| data.iter().map(|&(x, y)| term(w, x, y)).sum::<Var>();
        let centre: Vec<f64> = variables.iter().map(|_| random.uniform(-1.0, 1.0)).collect();
        let mut points = points(&centre);
        points.extend((0..4).map(|_| centre.iter().map(|c| offset + c).collect::<Vec<f64>>()));
        if let Some(worst) = worst(f, &points) {
            forms += 1;
            if worst > 1.0 {
                all.push((case, worst));
            }
        }
    }
    println!("{forms} of {cases} have forms");
    assert!(all.is_empty(), "{all:?}");
    assert!(2 * forms >= cases, "{forms}");
}

#[test]
fn sums_are_zero_where_factors_without_data_are() {
    let data = data(60, 3e4, 0.7, 0.3, 0.1);
    let both = || data.iter().copied();
    let sizes = [0.0, 1e-300, 1e-17, -3e-9, 1e-4];
    let points: Vec<Vec<f64>> =
        sizes.iter().flat_map(|&u| [vec![u, 0.0], vec![u, 1e-17], vec![u, 0.7]]).collect();
    let well = |w: &[Var]| both().map(|(x, _)| ((w[0] - x) * w[0]).powi(2)).sum::<Var>();
    let crossed =
        |w: &[Var]| both().map(|(x, y)| (w[0] * x - y) * (w[1] * y + w[0]) * x).sum::<Var>();
    for (name, worst) in [("well", worst(well, &points)), ("crossed", worst(crossed, &points))] {
        assert!(worst.is_none_or(|worst| worst <= 1.0), "{name}: {worst:?}");
    }
    // What is a factor alone is where its variable is zero, so there is a form.
    let scaled = |w: &[Var]| both().map(|(x, _)| w[1] * (w[0] - x).powi(2)).sum::<Var>();
    assert_accurate("scaled", scaled, &points);
}
