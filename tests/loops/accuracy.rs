//! Open loops are as accurate as the tape: rounding errors that cancel on the tape cancel in
//! kernels.

use crate::common::double_double::DoubleDouble;
use crate::common::numbers::{Dual, Number};
use phigrad::internals::Random;
use phigrad::{Numerics, Tape, Var};

/// A Markov chain of three states, whose columns of probabilities sum to 1.
fn markov<T: Number + From<f64>>(x: &[T]) -> T {
    let c = |value: f64| T::from(value);
    let m = [
        [c(1.0) - x[0] - x[1], x[2], x[3]],
        [x[0], c(1.0) - x[2] - x[4], x[5]],
        [x[1], x[4], c(1.0) - x[3] - x[5]],
    ];
    let mut p = [c(1.0), c(0.0), c(0.0)];
    for _ in 0..400 {
        let row = |row: [T; 3]| c(0.0) + row[0] * p[0] + row[1] * p[1] + row[2] * p[2];
        p = [row(m[0]), row(m[1]), row(m[2])];
    }
    p[0] + c(2.0) * p[1] + c(5.0) * p[2]
}

/// The error of each derivative, then that of the value.
fn errors(exact: &[DoubleDouble], (value, mut all): (f64, Vec<f64>)) -> Vec<f64> {
    all.push(value);
    exact.iter().zip(all).map(|(exact, x)| ((exact.0 - x) + exact.1).abs()).collect()
}

#[test]
fn markov_chains_converge_as_on_the_tape() {
    const INPUTS: usize = 6;
    let builder = || Tape::builder().hot_threshold(u32::MAX).background(false);
    let run = |x: &[Var]| markov(x);
    let tape = builder().numerics(Numerics::Exact).record(run);
    let kernel = builder().record(run);
    kernel.value_and_grad(&[0.3; INPUTS]).unwrap();
    kernel.compile().unwrap();
    let mut random = Random::new(7);
    for _ in 0..12 {
        let x: Vec<f64> = (0..INPUTS).map(|_| random.uniform(0.0, 0.5)).collect();
        let (mut on_tape, mut in_kernel) = ([0.0f64; INPUTS + 1], [0.0f64; INPUTS + 1]);
        let mut ulps = [0.0f64; INPUTS + 1];
        for step in [0.0, -1e-13, 2e-13, 3e-13] {
            let near: Vec<f64> = x.iter().map(|x| x * (1.0 + step)).collect();
            let inputs: Vec<Dual> =
                near.iter().enumerate().map(|(number, &x)| Dual::input(x, number)).collect();
            let exact = markov(&inputs);
            let parts = (0..INPUTS).map(|number| exact.partial_words(number));
            let exact: Vec<DoubleDouble> = parts.chain([exact.value_words()]).collect();
            let taped = errors(&exact, tape.value_and_grad(&near).unwrap());
            let got = errors(&exact, kernel.value_and_grad(&near).unwrap());
            for part in 0..=INPUTS {
                on_tape[part] = on_tape[part].max(taped[part]);
                in_kernel[part] = in_kernel[part].max(got[part]);
                let size = exact[part].0.abs();
                ulps[part] = ulps[part].max(size.next_up() - size);
            }
        }
        for part in 0..=INPUTS {
            let bound = 4.0 * on_tape[part] + 4.0 * ulps[part];
            assert!(in_kernel[part] <= bound, "{x:?} {part}: {in_kernel:?}, tape {on_tape:?}");
        }
    }
    assert!(kernel.report().kernel_calls > 0);
}
