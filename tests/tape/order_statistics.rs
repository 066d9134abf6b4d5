//! `Var::sort`, `Var::median` and `Var::quantile`: the numbers of sorted `f64`s, their derivatives,
//! and one path for every order.

use std::cell::Cell;

use crate::common::served::{NUMERICS, Pair, Served, manual};
use phigrad::check::GradientCheck;
use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// A sum of the sorted numbers with the weights 1, 2, 3, …
fn weighted(x: &[Var]) -> Var {
    let mut sorted = x.to_vec();
    Var::sort(&mut sorted);
    let weighted = sorted.iter().zip(1..).map(|(x, weight)| x * f64::from(weight));
    weighted.sum()
}

const PROGRAMS: [fn(&[Var]) -> Var; 3] = [weighted, Var::median, |x| Var::quantile(x, 0.9)];

/// Numbers of which some are equal, none a negative zero.
fn numbers(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| (random.uniform(-1.0, 1.0) * 64.0).round() / 64.0 + 0.0).collect()
}

/// The definition of type 7 of Hyndman and Fan.
fn quantile(x: &[f64], q: f64) -> f64 {
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (x.len() - 1) as f64 * q;
    let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    low + rank.fract() * (high - low)
}

/// The numbers of sorted constants, which are read out without a guard.
fn sorted(x: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<Var> = x.iter().map(|&x| Var::from(x)).collect();
    Var::sort(&mut sorted);
    sorted.iter().map(|x| x.value()).collect()
}

#[test]
fn sorted_numbers_are_those_of_the_standard_library() {
    let mut random = Random::new(1);
    for count in 0..70 {
        let x = numbers(&mut random, count);
        let mut expected = x.clone();
        expected.sort_by(f64::total_cmp);
        assert_eq!(sorted(&x), expected);
    }
    assert_eq!(sorted(&[INF, 1.0, -INF, 2.0]), [-INF, 1.0, 2.0, INF]);
}

#[test]
fn nan_comes_last_and_no_number_is_lost() {
    let mut random = Random::new(2);
    for count in 1..20 {
        let mut x = numbers(&mut random, count);
        for _ in 0..count / 2 + 1 {
            x[random.below(count)] = NAN;
        }
        let found = sorted(&x);
        let mut expected = x.clone();
        expected.sort_by(f64::total_cmp);
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found == expected || (found.is_nan() && expected.is_nan()), "{x:?}");
        }
    }
}

#[test]
fn the_derivative_of_sorting_is_a_permutation_also_at_ties() {
    let mut random = Random::new(3);
    for count in [1, 2, 5, 16, 33] {
        let f = manual(Numerics::Real).record(weighted);
        for _ in 0..20 {
            let x = numbers(&mut random, count);
            let gradient = f.grad(&x).unwrap();
            // The weight of a number is a rank that it has.
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by(|&i, &j| x[i].total_cmp(&x[j]).then(gradient[i].total_cmp(&gradient[j])));
            for (rank, i) in order.into_iter().enumerate() {
                assert_eq!(gradient[i], (rank + 1) as f64, "{x:?}: {gradient:?}");
            }
        }
        assert_eq!(f.report().paths, 1);
    }
    let f = Tape::record(weighted);
    assert_eq!(f.grad(&[NAN, 2.0, NAN, 1.0]).unwrap()[1..2], [2.0]);
    assert_eq!(f.grad(&[0.0, -0.0, 0.0]).unwrap().iter().sum::<f64>(), 6.0);
}

#[test]
fn the_gradient_agrees_with_differences() {
    for count in [2, 5, 16] {
        let x: Vec<f64> = (0..count).map(|i| f64::from(i * 7 % count)).collect();
        for f in PROGRAMS {
            let f = Tape::record(move |x: &[Var]| f(x).sin());
            GradientCheck::default().recorded(&f, &x).unwrap();
        }
    }
}

#[test]
fn quantiles_interpolate_between_ranks() {
    let mut random = Random::new(5);
    for count in 1..40 {
        let x = numbers(&mut random, count);
        for q in [0.0, 0.1, 0.25, 0.5, 0.7, 0.99, 1.0] {
            let f = Tape::record(|x: &[Var]| Var::quantile(x, q));
            let (value, gradient) = f.value_and_grad(&x).unwrap();
            assert!((value - quantile(&x, q)).abs() < 1e-15, "{q} of {x:?}");
            assert!((gradient.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            let near = |other: f64| (0.0..=1.0).contains(&other);
            assert!(gradient.iter().copied().all(near), "{gradient:?}");
            assert!(gradient.iter().filter(|partial| **partial != 0.0).count() <= 2);
        }
    }
    let median = Tape::record(Var::median);
    assert_eq!(
        median.value_and_grad(&[4.0, 8.0, 1.0, 2.0]).unwrap(),
        (3.0, vec![0.5, 0.0, 0.0, 0.5])
    );
    assert_eq!(median.value_and_grad(&[7.0, 7.0]).unwrap(), (7.0, vec![0.5, 0.5]));
    assert_eq!(median.eval(&[-INF, 1.0, INF]).unwrap(), 1.0);
}

#[test]
fn quantiles_of_nothing_and_of_nan_are_nan() {
    let q = Cell::new(0.5);
    let f = Tape::record(|x: &[Var]| Var::quantile(x, q.get()));
    assert!(f.eval(&[]).unwrap().is_nan());
    for at in 0..5 {
        let mut x = [3.0, 1.0, 2.0, 5.0, 4.0];
        x[at] = NAN;
        let (value, gradient) = f.value_and_grad(&x).unwrap();
        assert!(value.is_nan());
        assert_eq!(gradient, [0.0; 5]);
    }
    for outside in [-0.1, 1.1, NAN] {
        q.set(outside);
        assert!(Tape::record(|x: &[Var]| Var::quantile(x, q.get())).eval(&[1.0]).unwrap().is_nan());
    }
}

#[test]
fn a_kernel_serves_every_order() {
    let mut random = Random::new(6);
    for (count, all) in [(5, &NUMERICS[..]), (16, &NUMERICS[..]), (100, &NUMERICS[1..])] {
        for &numerics in all {
            for f in PROGRAMS {
                let pair = Pair::new(numerics, f);
                pair.profile(&[numbers(&mut random, count)]);
                for _ in 0..20 {
                    assert_eq!(pair.check(&numbers(&mut random, count)), Served::Kernel);
                }
                assert_eq!(pair.kernel.report().paths, 1);
                let mut x = numbers(&mut random, count);
                x[count / 3] = NAN;
                assert_eq!(pair.check(&x), Served::NonFinite);
            }
        }
    }
}
