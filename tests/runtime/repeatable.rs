//! Compilation is deterministic: the same program gives the same graph and code size.

use std::collections::BTreeSet;

use phigrad::{Tape, Var};

/// The number of compilations of each program.
const TIMES: usize = 8;

/// The explanation of `f`, and the size of its code.
fn compiled(f: fn(&[Var]) -> Var, x: &[f64]) -> String {
    let f = Tape::builder().hot_threshold(2).background(false).record(f);
    for _ in 0..4 {
        f.grad(x).unwrap();
    }
    let report = f.report();
    assert!(report.kernel_calls > 0, "{report}");
    let sizes: Vec<_> = report
        .kernels
        .iter()
        .map(|kernel| (kernel.nodes, kernel.bytes, kernel.code_bytes))
        .collect();
    let explanation = f.explain().unwrap();
    format!("{explanation}\n{}\n{sizes:?}", explanation.dot_after())
}

/// Sums in a loop that runs backwards over its data, with weights of their own.
fn powers(x: &[Var]) -> Var {
    let mut sums = [Var::from(0.0); 4];
    for i in 0..2000 {
        let power = x[0].powf(f64::from(1999 - i));
        for (k, sum) in sums.iter_mut().enumerate() {
            let weight = i as usize * (k + 1) + 3 + k;
            *sum += power * x[k + 1] * weight as f64;
        }
    }
    sums.into_iter().fold(Var::from(1.0), |product, sum| product * sum)
}

/// Numbers that depend on each other, with coefficients of several inputs.
fn coupled(x: &[Var]) -> Var {
    let mut state = [x[0], x[1], x[2], x[3], x[4]];
    for i in 0..3000 {
        let sum: Var = state.iter().copied().sum();
        for (k, number) in state.iter_mut().enumerate() {
            *number = *number * x[4 - k] * 0.1 + x[k] * 0.01 - sum * 0.05 + f64::from(i) * 1e-4;
        }
    }
    state.into_iter().sum()
}

/// Sums over data in a descent.
fn descent(x: &[Var]) -> Var {
    let data = |i: usize| (i as f64 * 0.37).sin();
    let mut weights = [x[0], x[1], x[2]];
    for _ in 0..50 {
        let mut gradient = [Var::from(0.0); 3];
        for i in 0..100 {
            let off = weights[0] + weights[1] * data(i) + weights[2] * data(i * i) - data(i + 1);
            for (k, partial) in gradient.iter_mut().enumerate() {
                *partial += off * data(i).powi(k as i32);
            }
        }
        for (weight, partial) in weights.iter_mut().zip(gradient) {
            *weight -= partial * x[3] * 0.001;
        }
    }
    weights.into_iter().map(|weight| weight * weight).sum()
}

/// Branches, exponentials and logarithms in straight-line code.
fn choices(x: &[Var]) -> Var {
    let mut total = Var::from(0.0);
    for (k, &number) in x.iter().enumerate() {
        let part = if number > 0.5 { number.exp() } else { number * number };
        total += (part.exp() + 1.0).ln() * (k as f64 + 1.0) + (part * x[0] + x[1]).sqrt();
    }
    total / x.iter().map(|number| number.exp()).sum::<Var>().ln()
}

#[test]
fn compilation_is_deterministic() {
    let x = [0.999, 0.7, 0.4, 0.9, 0.3];
    for (name, f) in [
        ("powers", powers as fn(&[Var]) -> Var),
        ("coupled", coupled),
        ("descent", descent),
        ("choices", choices),
    ] {
        let all: BTreeSet<String> = (0..TIMES).map(|_| compiled(f, &x)).collect();
        assert_eq!(all.len(), 1, "{name}");
    }
}
