//! Recurrences whose steps add up inactive data: sums in pairs of numbers are read as such.
#![allow(clippy::unwrap_used)] // Tests fail like this.

#[path = "support/bound.rs"]
mod bound;
#[path = "support/precise.rs"]
mod precise;

use bound::ulp;
use phigrad::Tape;
use precise::{Dual, Number};

/// Twenty steps of descent toward the mean of `d`, at a rate of a tenth of input 1.
fn descent<N: Number>(x: &[N], d: &[N]) -> N {
    let mut a = x[0];
    for _ in 0..20 {
        let mut slope = N::from(0.0);
        for &d in d {
            slope = slope + (a - d);
        }
        a = a - N::from(0.1) * x[1] * slope;
    }
    a
}

/// The same where each of them has a weight, the number next to it.
fn weighted<N: Number>(x: &[N], d: &[N]) -> N {
    let mut a = x[0];
    for _ in 0..20 {
        let mut slope = N::from(0.0);
        for i in 0..d.len() / 2 {
            slope = slope + (a - d[2 * i]) * d[2 * i + 1];
        }
        a = a - N::from(0.1) * x[1] * slope;
    }
    a
}

/// Data near 3 that are spread over about `spread`, each followed by a weight if `weights`.
fn data(spread: f64, weights: bool) -> Vec<f64> {
    let numbers = (0..20).map(|i| 3.0 + spread * (f64::from(i * 7 % 20) - 8.0) / 16.0);
    let weight = |i: usize| weights.then_some(0.5 + i as f64 / 16.0);
    numbers.enumerate().flat_map(|(i, number)| [Some(number), weight(i)]).flatten().collect()
}

#[test]
fn sums_of_differences_keep_what_data_differ_by() {
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    for spread in [1e-3, 1e-7, 1e-13] {
        for weights in [false, true] {
            let (tape_run, wide) = match weights {
                false => (descent as fn(&[_], &[_]) -> _, descent as fn(&[Dual], &[Dual]) -> Dual),
                true => (weighted as fn(&[_], &[_]) -> _, weighted as fn(&[Dual], &[Dual]) -> Dual),
            };
            let d = data(spread, weights);
            let (tape, kernel) = (builder().record_with(tape_run), builder().record_with(tape_run));
            kernel.value_and_grad(&[2.0, 0.01], &d).unwrap();
            kernel.compile().unwrap();
            let report = kernel.report();
            assert!(report.closed.iter().any(|form| form.rule.to_string() == "C6"), "{report}");
            for x in [[3.0, 0.0], [3.0, 0.01], [3.0, 2.0], [3.0, 50.0], [3.0, 20000.0], [2.5, 0.3]]
            {
                let inputs: Vec<Dual> = (0..2).map(|i| Dual::input(x[i], i)).collect();
                let given: Vec<Dual> = d.iter().map(|&d| Dual::from(d)).collect();
                let truth = wide(&inputs, &given);
                let truth = [truth.value(), truth.slope(0), truth.slope(1)];
                let [known, found] = [&tape, &kernel].map(|recorded| {
                    let (value, slopes) = recorded.value_and_grad(&x, &d).unwrap();
                    [value, slopes[0], slopes[1]]
                });
                for ((truth, known), found) in truth.into_iter().zip(known).zip(found) {
                    let most = 4.0 * (known - truth).abs() + 4.0 * ulp(truth);
                    assert!(
                        (found - truth).abs() <= most,
                        "{spread:e} {weights} {x:?}: {found:e} for {truth:e}, tape {known:e}"
                    );
                }
            }
        }
    }
}
