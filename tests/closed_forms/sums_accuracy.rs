//! Sums in closed form are as accurate as the loops over wide ranges of inputs: values and
//! gradients are compared with a double-double reference.

use crate::worst::{assert_accurate, assert_if_any, data, points, worst};
use phigrad::Var;
use phigrad::internals::Random;

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
fn forms_whose_monomials_cancel_are_accurate() {
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

/// Terms that depend on a difference of inputs alone: the inputs may be large, the terms are not.
#[test]
fn cancellation_within_terms_is_accurate() {
    for (mean, noise) in [(0.2, 0.1), (1e3, 0.1), (0.5, 0.0)] {
        let data = data(40, mean, 0.7, 0.3, noise);
        let both = || data.iter().copied();
        let at = |name: &str| format!("{name} {mean} {noise}");
        // The mean of shifted data, as a multiple and as a quotient.
        let deviations = |x: &[Var], per: f64, by: f64, term: fn(Var) -> Var| {
            let numbers = || both().map(|(a, _)| x[0] + a * x[1]);
            let mean = numbers().sum::<Var>() * per / by;
            numbers().map(|number| term(number - mean)).sum::<Var>()
        };
        let variance = |x: &[Var]| deviations(x, 1.0 / 64.0, 0.625, |e| e * e);
        let spread = |x: &[Var]| deviations(x, 1.0, 40.0, |e| e * e).sqrt();
        let fourth = |x: &[Var]| deviations(x, 1.0, 40.0, |e| e.powi(4));
        // Two offsets that occur as a sum only.
        let levels = |x: &[Var], term: fn(Var) -> Var| {
            both().map(|(a, b)| term(x[0] + x[2] + a * x[1] - b)).sum::<Var>()
        };
        let line = |x: &[Var]| levels(x, |e| e * e);
        let power = |x: &[Var]| levels(x, |e| e.powi(4));
        let plain = |x: &[Var]| levels(x, |e| e);
        // They are the same for each datum; for large ones the loop has no rounding errors.
        let groups = |x: &[Var]| {
            let in_group = |i: usize| f64::from(u8::from(i < 13));
            let term = |(i, (_, b)): (usize, (f64, f64))| {
                let level = in_group(i) * x[0] + (1.0 - in_group(i)) * x[1] - x[2] - b;
                level * level
            };
            both().enumerate().map(term).sum::<Var>()
        };
        for shift in [0.7, 1e3, -1e6, 1e9] {
            let apart = [[shift, 0.3, -shift], [shift, 0.7, 0.3 - shift]].map(Vec::from);
            assert_accurate(&at("line"), line, &apart);
            assert_accurate(&at("plain"), plain, &apart);
            assert_if_any(&at("power"), power, &apart);
            // For squares of 1e9 a double-double reference is no more accurate than the loop, or
            // than its derivative by the shift, which is exactly zero.
            if shift < 1e9 {
                let shifted = [[shift, 0.3], [shift, 2.5e-3], [shift, 1e3]].map(Vec::from);
                assert_accurate(&at("variance"), variance, &shifted);
                assert_accurate(&at("spread"), spread, &shifted);
                assert_if_any(&at("fourth"), fourth, &shifted);
                let levels = [shift, shift + 0.7, shift - 0.3].to_vec();
                assert_accurate(&at("groups"), groups, &[levels]);
            }
        }
    }
}

/// A few data close to each other: there is no form, or one that is as accurate as the loop near
/// their mean.
#[test]
fn deviations_from_a_mean_are_accurate() {
    for (mean, count) in [(3.0, 6), (10.0, 6), (10.0, 12), (1e3, 8), (1e3, 40)] {
        let data = data(count, mean, 0.7, 0.3, 0.1);
        let deviations = |x: &[Var], term: fn(Var) -> Var| {
            let numbers = || data.iter().map(|&(a, _)| x[0] * a);
            let mean = numbers().sum::<Var>() / count as f64;
            numbers().map(|number| term(number - mean)).sum::<Var>()
        };
        let squares = |x: &[Var]| deviations(x, |e| e * e);
        let from = |x: &[Var]| data.iter().map(|&(a, _)| (x[0] * a - x[1]).powi(2)).sum::<Var>();
        let scales: Vec<Vec<f64>> = (-3..=3).map(|k| vec![1.3 * 10f64.powi(k)]).collect();
        let near = |scale: &Vec<f64>| vec![scale[0], scale[0] * (mean + 0.1)];
        let near: Vec<Vec<f64>> = scales.iter().map(near).collect();
        for (name, worst) in
            [("squares", worst(squares, &scales)), ("from near", worst(from, &near))]
        {
            println!("{name} {mean} {count}: {worst:?}");
            assert!(worst.is_none_or(|worst| worst <= 1.0), "{name} {mean} {count}: {worst:?}");
        }
    }
}

/// Terms that are all small at a point far from zero: there is a form only if it is accurate there.
#[test]
fn terms_that_vanish_far_from_zero_are_accurate() {
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
    assert_if_any("ln of a product", product, &near[0]);
    let quotient = |w: &[Var]| both().map(|(x, y)| (x / (w[0] * y)).ln()).sum::<Var>();
    assert_if_any("ln of a quotient", quotient, &near[0]);
    let negative = |w: &[Var]| both().fold(w[0], |s, (x, _)| s - (-x * (-w[0])).ln());
    assert_if_any("less ln", negative, &near[0]);
    let exponentials = |w: &[Var]| both().map(|(x, _)| (-w[0] * x).exp()).product::<Var>();
    assert_if_any("exponentials", exponentials, &near[1]);
    let normal =
        |m: &[Var]| both().map(|(x, _)| (-0.02 * (x - m[0]).powi(2)).exp()).product::<Var>();
    assert_if_any("normal", normal, &near[0]);
    let divided = |w: &[Var]| both().fold(w[0], |p, (x, _)| p / (w[0] * x).exp());
    assert_if_any("divided", divided, &near[1]);
    // The logarithm of data of both signs is NaN, and the logarithm of a sum is no sum.
    let signs = |w: &[Var]| both().map(|(x, _)| (w[0] * (x - 3.0)).ln()).sum::<Var>();
    assert!(worst(signs, &near[0]).is_none());
    let sum = |w: &[Var]| both().map(|(x, _)| (w[0] + x).ln()).sum::<Var>();
    assert!(worst(sum, &near[0]).is_none());
}

#[test]
fn likelihoods_are_accurate_at_their_maximum() {
    for (mean, noise) in [(3.0, 0.5), (1e3, 1.0), (1e9, 1.0)] {
        let data: Vec<f64> = (0..200).map(|i| mean + noise * (f64::from(i) * 0.7).sin()).collect();
        // The partials by u and ln(u), which the tape adds up term by term, cancel.
        let steps = [-0.5, -1e-3, 1e-6, 0.1, 3.0];
        let near = |at: f64| steps.map(|step| vec![at * (1.0 + step)]).to_vec();
        let name = format!("poisson {mean}");
        assert_if_any(
            &name,
            |x| data.iter().map(|&k| x[0].ln() * k - x[0]).sum(),
            &near(data.iter().sum::<f64>() / 200.0),
        );
        let name = format!("exponential {mean}");
        assert_if_any(
            &name,
            |x| data.iter().map(|&t| x[0].ln() - x[0] * t).sum(),
            &near(200.0 / data.iter().sum::<f64>()),
        );
        let name = format!("of two rates {mean}");
        let rates = near(mean).into_iter().map(|x| vec![x[0], 0.5 / x[0]]).collect::<Vec<_>>();
        assert_if_any(
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
        assert_if_any(&name, |x| data.iter().map(|&k| term(x[0], k)).sum(), &squares);
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
    assert_if_any("several", several, &points);
    let divided = |w: &[Var]| both().map(|(x, _)| x / (x - w[0]).exp()).sum::<Var>();
    assert_accurate("divided", divided, &points);
    // Data that are multiplied by an input are in no sum of exponentials.
    let products = |w: &[Var]| both().map(|(x, _)| (w[0] * x).exp()).sum::<Var>();
    assert!(worst(products, &points).is_none());
    // A datum of weight zero is so large that the others are negligible beside it.
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
    // A common factor is zero where its variable is, so there is a form.
    let scaled = |w: &[Var]| both().map(|(x, _)| w[1] * (w[0] - x).powi(2)).sum::<Var>();
    assert_accurate("scaled", scaled, &points);
}
