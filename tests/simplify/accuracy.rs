//! Formulas of user programs: over wide ranges of inputs kernels are no less accurate than the
//! tape, against a double-double reference, for values alone and with gradients.

use crate::common::double_double::DoubleDouble;
use crate::common::functions::Real;
use crate::common::numbers::Dual;
use crate::common::ulp::{neighbours, ulp};
use phigrad::internals::Random;
use phigrad::{Numerics, Recorded, Tape, Var};

/// A formula, an equal form that does not cancel, and the points at which it is tested.
struct Formula {
    name: &'static str,
    run: fn(&[Var]) -> Var,
    exact: fn(&[Dual]) -> Dual,
    points: fn() -> Vec<Vec<f64>>,
}

macro_rules! formulas {
    ($list:ident: $($name:ident $points:ident $run:expr, |$x:ident| $exact:expr;)*) => {
        const $list: &[Formula] = &[$({
            fn run(x: &[Var]) -> Var { let f: fn(&[Var]) -> Var = $run; f(x) }
            fn exact($x: &[Dual]) -> Dual { $exact }
            Formula { name: stringify!($name), run, exact, points: $points }
        }),*];
    };
}

fn c(x: f64) -> Dual {
    Dual::from(x)
}

fn lines() -> Vec<Vec<f64>> {
    let sizes = [
        0.0, 1e-300, 1e-160, 1e-30, 1e-17, 1e-12, 1e-9, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1,
        0.2, 0.3, 0.5, 0.69, 0.7, 0.9, 0.999, 1.0, 1.000001, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0,
        18.0, 20.0, 30.0, 36.0, 37.0, 38.0, 60.0, 100.0, 200.0, 300.0, 350.0, 355.0, 360.0, 500.0,
        690.0, 700.0, 705.0, 708.0, 709.0, 709.5, 710.0, 720.0, 740.0, 745.0, 750.0, 800.0, 1000.0,
        2000.0,
    ];
    sizes.iter().flat_map(|&x| [vec![x], vec![-x]]).collect()
}

fn positive() -> Vec<Vec<f64>> {
    lines().into_iter().filter(|x| x[0] > 0.0).collect()
}

fn below_1() -> Vec<Vec<f64>> {
    lines().into_iter().filter(|x| x[0].abs() < 1.0).collect()
}

fn above_minus_1() -> Vec<Vec<f64>> {
    lines().into_iter().filter(|x| x[0] > -1.0).collect()
}

fn unit() -> Vec<Vec<f64>> {
    let mut all = positive();
    all.retain(|x| x[0] < 1.0);
    let high: Vec<Vec<f64>> = all.iter().map(|x| vec![1.0 - x[0]]).filter(|x| x[0] < 1.0).collect();
    all.into_iter().chain(high).collect()
}

fn mixed(count: usize) -> Vec<Vec<f64>> {
    let sizes =
        [0.0, 1e-9, 0.1, 0.3, 1.0, 1.0 + 1e-9, 3.0, 30.0, 300.0, 690.0, 709.0, 800.0, 2000.0];
    let mut random = Random::new(12345);
    let mut all = Vec::new();
    for _ in 0..150 {
        all.push(
            (0..count)
                .map(|_| {
                    let size = random.pick(&sizes);
                    if random.chance(0.5) { size } else { -size }
                })
                .collect::<Vec<f64>>(),
        );
    }
    // Close to each other, at all sizes.
    for &size in &sizes {
        for sign in [1.0, -1.0] {
            all.push((0..count).map(|i| sign * size + 1e-3 * (i as f64).sin()).collect());
            all.push((0..count).map(|i| sign * size + (1.7 * i as f64).sin()).collect());
            all.push(vec![sign * size; count]);
        }
    }
    all
}

fn pairs() -> Vec<Vec<f64>> {
    mixed(2)
}

fn triples() -> Vec<Vec<f64>> {
    mixed(3)
}

fn fives() -> Vec<Vec<f64>> {
    mixed(5)
}

fn softplus(x: Dual) -> Dual {
    if x.value() > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// 1/(1 + e^-x) as a quotient of what is at most 1.
fn logistic(x: Dual) -> Dual {
    if x.value() > 0.0 { c(1.0) / (c(1.0) + (-x).exp()) } else { x.exp() / (c(1.0) + x.exp()) }
}

fn two(x: Dual) -> Dual {
    x + x
}

/// The logarithm of the sum of exponentials of all but the first given, less that one.
fn log_sum_exp(x: &[Dual], less: Dual) -> Dual {
    let at = (0..x.len()).reduce(|a, b| if x[a].value() >= x[b].value() { a } else { b }).unwrap();
    let largest = x[at];
    let others = x.iter().enumerate().filter(|&(i, _)| i != at);
    let others = others.map(|(_, &x)| (x - largest).exp()).fold(c(0.0), |a, b| a + b);
    others.ln_1p() + (largest - less)
}

fn sinh(x: Dual) -> Dual {
    let (grows, falls) = (x.exp_m1(), (-x).exp_m1());
    (grows - falls) / c(2.0)
}

fn norm(x: &[Dual]) -> Dual {
    let largest = x.iter().map(|x| x.abs()).reduce(Dual::max).unwrap();
    if largest.value() == 0.0 {
        return x.iter().map(|x| x.powi(2)).reduce(|a, b| a + b).unwrap().sqrt();
    }
    x.iter().map(|x| x.powi(2)).reduce(|a, b| a + b).unwrap().sqrt()
}

/// Enough for a loop.
const ROW_COUNT: usize = 300;

/// Data, and a class, of a row.
fn row(number: usize) -> (f64, f64) {
    let x = (number as f64 * 0.61803398875).fract() * 4.0 - 2.0;
    (x, f64::from(!number.is_multiple_of(3)))
}

formulas! {
    ONE_INPUT:
    softplus_1 lines |x| (x[0].exp() + 1.0).ln(), |x| softplus(x[0]);
    softplus_2 lines |x| (1.0 + x[0].exp()).ln(), |x| softplus(x[0]);
    softplus_3 lines |x| x[0].exp().ln_1p(), |x| softplus(x[0]);
    softplus_4 lines |x| (1.0 + (x[0] * 2.0).exp()).ln() / 2.0, |x| softplus(two(x[0])) / c(2.0);
    softplus_5 lines |x| (1.0 + (-x[0]).exp()).ln(), |x| softplus(-x[0]);
    softplus_6 lines |x| x[0] + (1.0 + (-x[0]).exp()).ln(), |x| softplus(x[0]);
    logistic_1 lines |x| 1.0 / (1.0 + (-x[0]).exp()), |x| logistic(x[0]);
    logistic_2 lines |x| x[0].exp() / (1.0 + x[0].exp()), |x| logistic(x[0]);
    logistic_3 lines |x| 1.0 - 1.0 / (1.0 + x[0].exp()), |x| logistic(x[0]);
    logistic_4 lines |x| { let e = x[0].exp(); e / (e + 1.0) }, |x| logistic(x[0]);
    logistic_5 lines |x| (1.0 + (-x[0]).exp()).recip(), |x| logistic(x[0]);
    logistic_6 lines |x| 0.5 * (1.0 + (0.5 * x[0]).tanh()), |x| logistic(x[0]);
    logistic_7 lines |x| (1.0 + (-x[0]).exp()).powi(-1), |x| logistic(x[0]);
    logistic_8 lines |x| (1.0 + (-x[0]).exp()).powf(-1.0), |x| logistic(x[0]);
    logistic_9 lines |x| 3.0 / (1.0 + (-x[0]).exp()) - 1.0, |x| c(3.0) * logistic(x[0]) - c(1.0);
    richards lines |x| 1.0 / (1.0 + (-x[0]).exp()).powf(0.5), |x| (-(softplus(-x[0])) / c(2.0)).exp();
    product lines |x| { let s = 1.0 / (1.0 + (-x[0]).exp()); s * (1.0 - s) }, |x| logistic(x[0]) * logistic(-x[0]);
    swish lines |x| x[0] / (1.0 + (-x[0]).exp()), |x| x[0] * logistic(x[0]);
    swish_2 lines |x| x[0] * (1.0 / (1.0 + (-x[0]).exp())), |x| x[0] * logistic(x[0]);
    mish lines |x| x[0] * (1.0 + x[0].exp()).ln().tanh(), |x| x[0] * softplus(x[0]).tanh();
    log_logistic_1 lines |x| (1.0 / (1.0 + (-x[0]).exp())).ln(), |x| -softplus(-x[0]);
    log_logistic_2 lines |x| -(1.0 + (-x[0]).exp()).ln(), |x| -softplus(-x[0]);
    log_logistic_3 lines |x| (1.0 - 1.0 / (1.0 + (-x[0]).exp())).ln(), |x| -softplus(x[0]);
    log_logistic_4 lines |x| (x[0].exp() / (1.0 + x[0].exp())).ln(), |x| -softplus(-x[0]);
    cross_entropy lines |x| { let s = 1.0 / (1.0 + (-x[0]).exp()); -(0.25 * s.ln() + 0.75 * (1.0 - s).ln()) },
        |x| c(0.25) * softplus(-x[0]) + c(0.75) * softplus(x[0]);
    cross_entropy_1 lines |x| { let s = 1.0 / (1.0 + (-x[0]).exp()); -s.ln() }, |x| softplus(-x[0]);
    margin lines |x| (1.0 + x[0].exp()).ln() - 0.3 * x[0], |x| softplus(x[0]) - c(0.3) * x[0];
    tanh_1 lines |x| (x[0].exp() - (-x[0]).exp()) / (x[0].exp() + (-x[0]).exp()), |x| x[0].tanh();
    tanh_2 lines |x| ((2.0 * x[0]).exp() - 1.0) / ((2.0 * x[0]).exp() + 1.0), |x| x[0].tanh();
    tanh_3 lines |x| 1.0 - 2.0 / (1.0 + (2.0 * x[0]).exp()), |x| x[0].tanh();
    tanh_4 lines |x| (1.0 - (-2.0 * x[0]).exp()) / (1.0 + (-2.0 * x[0]).exp()), |x| x[0].tanh();
    tanh_5 lines |x| 2.0 / (1.0 + (-2.0 * x[0]).exp()) - 1.0, |x| x[0].tanh();
    sinh_1 lines |x| (x[0].exp() - (-x[0]).exp()) / 2.0, |x| sinh(x[0]);
    sinh_2 lines |x| 0.5 * (x[0].exp() - 1.0 / x[0].exp()), |x| sinh(x[0]);
    cosh_1 lines |x| (x[0].exp() + (-x[0]).exp()) / 2.0, |x| (x[0].exp() + (-x[0]).exp()) / c(2.0);
    ln_cosh lines |x| ((x[0].exp() + (-x[0]).exp()) / 2.0).ln(), |x| {
        let size = x[0].abs();
        let half = (-size).exp_m1();
        // 1 + (1 - e^-|x|)²/(2e^-|x|) = cosh x
        if size.value() < 1.0 { (half * half / (c(2.0) * (-size).exp())).ln_1p() }
        else { size + (-two(size)).exp().ln_1p() - c(2.0).ln() } };
    ln_cosh_2 lines |x| x[0].cosh().ln(), |x| {
        let size = x[0].abs();
        let half = (-size).exp_m1();
        if size.value() < 1.0 { (half * half / (c(2.0) * (-size).exp())).ln_1p() }
        else { size + (-two(size)).exp().ln_1p() - c(2.0).ln() } };
    exp_m1_1 lines |x| x[0].exp() - 1.0, |x| x[0].exp_m1();
    exp_m1_2 lines |x| (x[0].exp() - 1.0) / x[0], |x| x[0].exp_m1() / x[0];
    exp_m1_3 lines |x| 1.0 - (-x[0]).exp(), |x| -(-x[0]).exp_m1();
    exp_m1_4 lines |x| 1.0 / (x[0].exp() - 1.0), |x| c(1.0) / x[0].exp_m1();
    exp_m1_5 lines |x| x[0] / (x[0].exp() - 1.0), |x| x[0] / x[0].exp_m1();
    exp_m1_6 lines |x| x[0] / (1.0 - (-x[0]).exp()), |x| -x[0] / (-x[0]).exp_m1();
    exp_m1_7 lines |x| x[0].exp() - x[0] - 1.0, |x| {
        if x[0].value().abs() > 0.5 { x[0].exp() - x[0] - c(1.0) } else {
            (2..40).fold((c(0.0), x[0]), |(sum, term), i| { let term = term * x[0] / c(f64::from(i)); (sum + term, term) }).0 } };
    ln_1p_1 above_minus_1 |x| (1.0 + x[0]).ln(), |x| x[0].ln_1p();
    ln_1p_2 above_minus_1 |x| (1.0 + x[0]).ln() / x[0], |x| x[0].ln_1p() / x[0];
    ln_1p_3 below_1 |x| (1.0 - x[0]).ln(), |x| (-x[0]).ln_1p();
    ln_1p_4 lines |x| (1.0 + x[0] * x[0]).ln(), |x| (x[0] * x[0]).ln_1p();
    ln_1p_5 below_1 |x| ((1.0 + x[0]) / (1.0 - x[0])).ln() / 2.0, |x| (x[0].ln_1p() - (-x[0]).ln_1p()) / c(2.0);
    ln_1p_6 below_1 |x| 0.5 * ((1.0 + x[0]).ln() - (1.0 - x[0]).ln()), |x| (x[0].ln_1p() - (-x[0]).ln_1p()) / c(2.0);
    ln_1m_exp positive |x| (1.0 - (-x[0]).exp()).ln(), |x| if x[0].value() < 0.7 { (-((-x[0]).exp_m1())).ln() } else { (-((-x[0]).exp())).ln_1p() };
    ln_exp_m1 positive |x| (x[0].exp() - 1.0).ln(), |x| x[0] + if x[0].value() < 0.7 { (-((-x[0]).exp_m1())).ln() } else { (-((-x[0]).exp())).ln_1p() };
    logit_1 unit |x| (x[0] / (1.0 - x[0])).ln(), |x| (x[0] / (c(1.0) - x[0])).ln();
    logit_2 unit |x| x[0].ln() - (1.0 - x[0]).ln(), |x| x[0].ln() - (-x[0]).ln_1p();
    entropy unit |x| -x[0] * x[0].ln() - (1.0 - x[0]) * (1.0 - x[0]).ln(), |x| -x[0] * x[0].ln() - (c(1.0) - x[0]) * (-x[0]).ln_1p();
    x_ln_x positive |x| x[0] * x[0].ln(), |x| x[0] * x[0].ln();
    root_m1 above_minus_1 |x| (1.0 + x[0]).sqrt() - 1.0, |x| x[0] / ((c(1.0) + x[0]).sqrt() + c(1.0));
    root_m1_2 lines |x| (1.0 + x[0] * x[0]).sqrt() - 1.0, |x| x[0] * x[0] / ((c(1.0) + x[0] * x[0]).sqrt() + c(1.0));
    root_less lines |x| (1.0 + x[0] * x[0]).sqrt() - x[0], |x| { let root = (c(1.0) + x[0] * x[0]).sqrt(); if x[0].value() > 0.0 { c(1.0) / (root + x[0]) } else { root - x[0] } };
    asinh lines |x| (x[0] + (1.0 + x[0] * x[0]).sqrt()).ln(), |x| { let root = (c(1.0) + x[0] * x[0]).sqrt(); let size = x[0].abs();
        let all = (size + x[0] * x[0] / (root + c(1.0))).ln_1p(); if x[0].value() < 0.0 { -all } else { all } };
    cos_m1 lines |x| 1.0 - x[0].cos(), |x| { let s = (x[0] / c(2.0)).sin(); two(s * s) };
    cos_m1_2 lines |x| (1.0 - x[0].cos()) / (x[0] * x[0]), |x| { let s = (x[0] / c(2.0)).sin(); two(s * s) / (x[0] * x[0]) };
    power_m1 above_minus_1 |x| (1.0 + x[0]).powi(5) - 1.0, |x| x[0] * (c(5.0) + x[0] * (c(10.0) + x[0] * (c(10.0) + x[0] * (c(5.0) + x[0]))));
    power_m1_2 above_minus_1 |x| (1.0 + x[0]).powf(2.5) - 1.0, |x| (c(2.5) * x[0].ln_1p()).exp_m1();
    annuity above_minus_1 |x| x[0] / (1.0 - (1.0 + x[0]).powi(-30)), |x| -x[0] / (c(-30.0) * x[0].ln_1p()).exp_m1();
    gauss lines |x| (-0.5 * x[0] * x[0]).exp(), |x| (c(-0.5) * x[0] * x[0]).exp();
    kahan_1 lines |x| { let u = 1.0 + x[0]; if u == 1.0 { x[0] } else { u.ln() * x[0] / (u - 1.0) } }, |x| x[0].ln_1p();
    kahan_2 lines |x| { let u = x[0].exp(); if u == 1.0 { x[0] } else { (u - 1.0) * x[0] / u.ln() } }, |x| x[0].exp_m1();
    kahan_3 lines |x| { let u = x[0].exp(); (u - 1.0) / u.ln() }, |x| x[0].exp_m1() / x[0];
}

formulas! {
    SEVERAL_INPUTS:
    norm_2 pairs |x| (x[0] * x[0] + x[1] * x[1]).sqrt(), |x| norm(x);
    norm_2b pairs |x| (x[0].powi(2) + x[1].powi(2)).sqrt(), |x| norm(x);
    norm_3 triples |x| (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt(), |x| norm(x);
    unit_2 pairs |x| x[0] / (x[0] * x[0] + x[1] * x[1]).sqrt(), |x| x[0] / norm(x);
    unit_3 triples |x| { let n = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt(); x[0] / n + 2.0 * (x[1] / n) }, |x| (x[0] + two(x[1])) / norm(x);
    unit_5 fives |x| { let n = x.iter().map(|&x| x * x).sum::<Var>().sqrt(); x[1] / n }, |x| x[1] / norm(x);
    cosine pairs |x| (x[0] * 3.0 + x[1] * 4.0) / (x[0] * x[0] + x[1] * x[1]).sqrt(), |x| (x[0] * c(3.0) + x[1] * c(4.0)) / norm(x);
    squares pairs |x| x[0] * x[0] - x[1] * x[1], |x| (x[0] - x[1]) * (x[0] + x[1]);
    squares_2 pairs |x| x[0].powi(2) - x[1].powi(2), |x| (x[0] - x[1]) * (x[0] + x[1]);
    squares_3 pairs |x| (x[0] * x[0] - x[1] * x[1]) / (x[0] - x[1]), |x| x[0] + x[1];
    squares_4 lines |x| 1.0 - x[0] * x[0], |x| (c(1.0) - x[0]) * (c(1.0) + x[0]);
    squares_5 below_1 |x| (1.0 - x[0] * x[0]).sqrt(), |x| ((c(1.0) - x[0]) * (c(1.0) + x[0])).sqrt();
    cubes pairs |x| x[0].powi(3) - x[1].powi(3), |x| (x[0] - x[1]) * (x[0] * x[0] + x[0] * x[1] + x[1] * x[1]);
    roots pairs |x| (1.0 + x[0] * x[0]).sqrt() - (1.0 + x[1] * x[1]).sqrt(), |x| (x[0] - x[1]) * (x[0] + x[1]) / ((c(1.0) + x[0] * x[0]).sqrt() + (c(1.0) + x[1] * x[1]).sqrt());
    ratio pairs |x| (x[0] - x[1]) / (x[0] + x[1]), |x| (x[0] - x[1]) / (x[0] + x[1]);
    ratio_2 pairs |x| x[0] / (x[0] + x[1]), |x| x[0] / (x[0] + x[1]);
    lse_2 pairs |x| (x[0].exp() + x[1].exp()).ln(), |x| log_sum_exp(x, c(0.0));
    lse_3 triples |x| (x[0].exp() + x[1].exp() + x[2].exp()).ln(), |x| log_sum_exp(x, c(0.0));
    lse_5 fives |x| x.iter().map(|&x| x.exp()).sum::<Var>().ln(), |x| log_sum_exp(x, c(0.0));
    lse_max fives |x| { let m = x.iter().copied().reduce(|a, b| a.max(b)).unwrap(); x.iter().map(|&x| (x - m).exp()).sum::<Var>().ln() + m }, |x| log_sum_exp(x, c(0.0));
    lse_mean fives |x| (x.iter().map(|&x| x.exp()).sum::<Var>() / 5.0).ln(), |x| log_sum_exp(x, c(5.0).ln());
    lse_one triples |x| (1.0 + x[0].exp() + x[1].exp()).ln() , |x| log_sum_exp(&[x[0], x[1], c(0.0)], c(0.0));
    lse_less pairs |x| (x[0].exp() + x[1].exp()).ln() - x[0], |x| softplus(x[1] - x[0]);
    mixture pairs |x| (0.3 * x[0].exp() + 0.7 * x[1].exp()).ln(), |x| log_sum_exp(&[x[0] + c(0.3).ln(), x[1] + c(0.7).ln()], c(0.0));
    softmax_2 pairs |x| x[0].exp() / (x[0].exp() + x[1].exp()), |x| logistic(x[0] - x[1]);
    softmax_3 triples |x| x[0].exp() / (x[0].exp() + x[1].exp() + x[2].exp()), |x| c(1.0) / x.iter().map(|&b| (b - x[0]).exp()).reduce(|a, b| a + b).unwrap();
    softmax_5 fives |x| { let m = x.iter().copied().reduce(|a, b| a.max(b)).unwrap(); (x[0] - m).exp() / x.iter().map(|&x| (x - m).exp()).sum::<Var>() }, |x| c(1.0) / x.iter().map(|&b| (b - x[0]).exp()).reduce(|a, b| a + b).unwrap();
    cross_2 pairs |x| -(x[0].exp() / (x[0].exp() + x[1].exp())).ln(), |x| softplus(x[1] - x[0]);
    cross_3 triples |x| -(x[1].exp() / (x[0].exp() + x[1].exp() + x[2].exp())).ln(), |x| log_sum_exp(x, x[1]);
    cross_5 fives |x| x.iter().map(|&x| x.exp()).sum::<Var>().ln() - x[2], |x| log_sum_exp(x, x[2]);
    attention triples |x| { let e: Vec<Var> = x.iter().map(|x| x.exp()).collect(); (e[0] * 0.7 + e[1] * 2.3 + e[2] * 4.9) / (e[0] + e[1] + e[2]) },
        |x| { let m = x.iter().copied().reduce(Dual::max).unwrap(); let e: Vec<Dual> = x.iter().map(|&x| (x - m).exp()).collect(); (c(0.7) * e[0] + c(2.3) * e[1] + c(4.9) * e[2]) / (e[0] + e[1] + e[2]) };
    bce pairs |x| { let p = 1.0 / (1.0 + (-(x[0] * x[1])).exp()); -p.ln() }, |x| softplus(-(x[0] * x[1]));
    bce_0 pairs |x| { let p = 1.0 / (1.0 + (-(x[0] + x[1])).exp()); -(1.0 - p).ln() }, |x| softplus(x[0] + x[1]);
    fermi pairs |x| 1.0 / (((x[0] - x[1]) / 0.5).exp() + 1.0), |x| logistic(-(x[0] - x[1]) / c(0.5));
    stable_bce pairs |x| x[0].max(0.0) - x[0] * 1.0 + (1.0 + (-x[0].abs()).exp()).ln() + 0.0 * x[1], |x| softplus(-x[0]);
    branch pairs |x| if x[0] > x[1] { (1.0 + (x[0] - x[1]).exp()).ln() } else { (1.0 / (1.0 + (x[1] * 2.0).exp())).ln() },
        |x| if x[0].value() > x[1].value() { softplus(x[0] - x[1]) } else { -softplus(two(x[1])) };
    bose pairs |x| 1.0 / (((x[0] - x[1]) / 0.5).exp() - 1.0), |x| c(1.0) / ((x[0] - x[1]) / c(0.5)).exp_m1();
}

formulas! {
    ROWS:
    loop_softplus triples |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); (1.0 + (x[0] + x[1] * a - x[2] * y).exp()).ln() }).sum(),
        |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); softplus(x[0] + x[1] * c(a) - x[2] * c(y)) }).reduce(|a, b| a + b).unwrap();
    loop_logistic triples |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); let p = 1.0 / (1.0 + (-(x[0] + x[1] * a)).exp()); -(y * p.ln() + (1.0 - y) * (1.0 - p).ln()) }).sum::<Var>() + x[2],
        |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); let z = x[0] + x[1] * c(a); c(y) * softplus(-z) + (c(1.0) - c(y)) * softplus(z) }).reduce(|a, b| a + b).unwrap() + x[2];
    loop_margin triples |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); (1.0 + (-(2.0 * y - 1.0) * (x[0] + x[1] * a)).exp()).ln() }).sum::<Var>() + x[2],
        |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); softplus(-(c(2.0 * y - 1.0) * (x[0] + x[1] * c(a)))) }).reduce(|a, b| a + b).unwrap() + x[2];
    loop_logistic_sum pairs |x| (0..ROW_COUNT).map(|i| { let (a, _) = row(i); 1.0 / (1.0 + (-(x[0] + x[1] * a)).exp()) }).sum::<Var>(),
        |x| (0..ROW_COUNT).map(|i| { let (a, _) = row(i); logistic(x[0] + x[1] * c(a)) }).reduce(|a, b| a + b).unwrap();
    loop_norm pairs |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); let d = x[0] - a; let e = x[1] - y; (d * d + e * e).sqrt() }).sum::<Var>(),
        |x| (0..ROW_COUNT).map(|i| { let (a, y) = row(i); norm(&[x[0] - c(a), x[1] - c(y)]) }).reduce(|a, b| a + b).unwrap();
    loop_lse pairs |x| (0..ROW_COUNT).map(|i| { let (a, _) = row(i); (x[0] * a + x[1]).exp() }).sum::<Var>().ln(),
        |x| { let all: Vec<Dual> = (0..ROW_COUNT).map(|i| x[0] * c(row(i).0) + x[1]).collect(); log_sum_exp(&all, c(0.0)) };
    loop_lse_max pairs |x| { let all: Vec<Var> = (0..ROW_COUNT).map(|i| x[0] * row(i).0 + x[1]).collect();
            let m = all.iter().copied().reduce(|a, b| a.max(b)).unwrap(); all.iter().map(|&z| (z - m).exp()).sum::<Var>().ln() + m },
        |x| { let all: Vec<Dual> = (0..ROW_COUNT).map(|i| x[0] * c(row(i).0) + x[1]).collect(); log_sum_exp(&all, c(0.0)) };
    loop_tanh pairs |x| (0..ROW_COUNT).map(|i| { let (a, _) = row(i); (x[0] + x[1] * a).tanh() }).sum::<Var>(),
        |x| (0..ROW_COUNT).map(|i| { let (a, _) = row(i); (x[0] + x[1] * c(a)).tanh() }).reduce(|a, b| a + b).unwrap();
}

fn compiled(run: fn(&[Var]) -> Var, at: &[f64], all: &[Vec<f64>]) -> Recorded<fn(&[Var]) -> Var> {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(run);
    for x in all.iter().step_by(5).take(20) {
        f.value_and_grad(x).unwrap();
    }
    for _ in 0..2 {
        f.eval(at).unwrap();
        f.grad(at).unwrap();
        f.value_and_grad(at).unwrap();
        f.compile().unwrap();
    }
    f
}

/// The derivatives and the value, each with its low-order word.
fn parts(exact: Dual, inputs: usize) -> Vec<DoubleDouble> {
    (0..inputs).map(|i| exact.partial_words(i)).chain([exact.value_words()]).collect()
}

/// Smaller numbers may have lost digits to underflow.
const TINY: f64 = f64::MIN_POSITIVE;

fn check(formula: &Formula) -> Vec<String> {
    let Formula { name, run, exact, points } = formula;
    let points = points();
    let start: Vec<f64> = (0..points[0].len()).map(|i| 0.3 + 0.1 * i as f64).collect();
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    // By event tapes in all calls: Jacobian tapes are more accurate where sums cancel.
    let tape = builder.numerics(Numerics::Exact).record(*run);
    let kernel = compiled(*run, &start, &points);
    let error = |exact: DoubleDouble, x: f64| ((exact.0 - x) + exact.1).abs();
    let truth = |x: &[f64]| {
        let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
        parts(exact(&inputs), x.len())
    };
    let flat = |(value, mut slopes): (f64, Vec<f64>)| {
        slopes.push(value);
        slopes
    };
    let mut failures = Vec::new();
    for x in &points {
        let (exact, taped) = (truth(x), flat(tape.value_and_grad(x).unwrap()));
        let size = exact
            .iter()
            .map(|part| part.0)
            .chain(x.iter().copied())
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        let both = flat(kernel.value_and_grad(x).unwrap());
        let alone = flat((kernel.eval(x).unwrap(), kernel.grad(x).unwrap()));
        for got in [both, alone] {
            for (part, ((&exact, &taped), &got)) in exact.iter().zip(&taped).zip(&got).enumerate() {
                // The exact value is out of range, or the result is right although the tape is not.
                let bound = match (exact.0.is_finite(), taped.is_finite()) {
                    (false, _) => continue,
                    (true, false) if !got.is_finite() => continue,
                    (true, false) => 1e-12 * exact.0.abs() + 1e-15 * size,
                    (true, true) => 4.0 * error(exact, taped) + 4.0 * ulp(exact.0).max(TINY),
                };
                if error(exact, got) <= bound {
                    continue;
                }
                let worst = neighbours(x)
                    .iter()
                    .map(|x| error(truth(x)[part], flat(tape.value_and_grad(x).unwrap())[part]))
                    .fold(0.0, f64::max);
                if !taped.is_finite()
                    || error(exact, got) > 4.0 * worst + 4.0 * ulp(exact.0).max(TINY)
                {
                    failures.push(format!(
                        "{name} {part} {x:?}: {got:e} in the kernel, {taped:e} on the tape, {:e}",
                        exact.0
                    ));
                }
            }
        }
    }
    failures
}

fn check_all(formulas: &[Formula]) {
    let failures: Vec<String> = formulas.iter().flat_map(check).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn kernels_of_one_input_are_no_less_accurate_than_the_tape() {
    check_all(ONE_INPUT);
}

#[test]
fn kernels_of_several_inputs_are_no_less_accurate_than_the_tape() {
    check_all(SEVERAL_INPUTS);
}

#[test]
fn kernels_of_sums_over_rows_are_no_less_accurate_than_the_tape() {
    check_all(ROWS);
}
