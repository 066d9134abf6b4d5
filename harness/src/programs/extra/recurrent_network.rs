//! RecurrentNetwork: the squared error of a network with one recurrent layer that
//! follows a signal; the inputs are its weights and biases.

use super::super::data::{GOLDEN, SILVER, weyl};
use super::super::{Program, Scalar};
use super::Extra;

const UNITS: usize = 32;
/// The weights of a unit: those of all units, of the signal, the bias, and of the output.
const WEIGHTS: usize = UNITS * (UNITS + 3);

/// The signal at a time, and one step later.
fn signal(time: usize) -> f64 {
    (0.1 * time as f64).sin() + 0.5 * (0.037 * time as f64).cos()
}

/// A network that runs for that many steps.
pub struct RecurrentNetwork {
    signal: Vec<f64>,
}

/// The states after each step, from the start; and vectors of their length.
pub struct Work {
    states: Vec<[f64; UNITS]>,
    adjoints: [f64; UNITS],
    inner: [f64; UNITS],
}

/// The weights by their use.
struct Weights<'a, T> {
    recurrent: &'a [T],
    signal: &'a [T],
    bias: &'a [T],
    output: &'a [T],
}

fn weights<T>(x: &[T]) -> Weights<'_, T> {
    let (recurrent, others) = x.split_at(UNITS * UNITS);
    let (signal, others) = others.split_at(UNITS);
    let (bias, output) = others.split_at(UNITS);
    Weights { recurrent, signal, bias, output }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl RecurrentNetwork {
    fn steps(&self) -> usize {
        self.signal.len() - 1
    }

    /// Runs the network; returns the sum of its squared errors.
    fn run(&self, x: &[f64], states: &mut [[f64; UNITS]]) -> f64 {
        let Weights { recurrent, signal, bias, output } = weights(x);
        let rows = recurrent.as_chunks::<UNITS>().0;
        states[0] = [0.0; UNITS];
        let mut total = 0.0;
        for time in 0..self.steps() {
            let before = states[time];
            for (unit, state) in states[time + 1].iter_mut().enumerate() {
                let drive = bias[unit] + signal[unit] * self.signal[time];
                *state = (drive + dot(&rows[unit], &before)).tanh();
            }
            let error = dot(output, &states[time + 1]) - self.signal[time + 1];
            total += error * error;
        }
        total / self.steps() as f64
    }
}

impl Program for RecurrentNetwork {
    const NAME: &'static str = "RecurrentNetwork";
    type Config = usize;
    const CONFIGS: &'static [usize] = &[1000];
    type Work = Work;

    fn new(steps: usize) -> Self {
        RecurrentNetwork { signal: (0..=steps).map(signal).collect() }
    }

    fn work(&self) -> Work {
        let zeros = [0.0; UNITS];
        Work { states: vec![zeros; self.signal.len()], adjoints: zeros, inner: zeros }
    }

    fn objective<T: Scalar>(&self, x: &[T]) -> T {
        let weights = weights(x);
        let mut state = vec![T::zero(); UNITS];
        let mut next = state.clone();
        let mut total = T::zero();
        for time in 0..self.steps() {
            for (unit, next) in next.iter_mut().enumerate() {
                let mut sum = weights.bias[unit] + weights.signal[unit] * self.signal[time];
                for (other, &state) in state.iter().enumerate() {
                    sum = sum + weights.recurrent[unit * UNITS + other] * state;
                }
                *next = sum.tanh();
            }
            core::mem::swap(&mut state, &mut next);
            let mut answer = T::zero();
            for (&weight, &state) in weights.output.iter().zip(&state) {
                answer = answer + weight * state;
            }
            let error = answer - self.signal[time + 1];
            total = total + error * error;
        }
        total / self.steps() as f64
    }

    fn primal(&self, x: &[f64], work: &mut Work) -> f64 {
        self.run(x, &mut work.states)
    }

    fn hand_gradient(&self, x: &[f64], gradient: &mut [f64], work: &mut Work) {
        self.run(x, &mut work.states);
        let Work { states, adjoints, inner } = work;
        let Weights { recurrent, output, .. } = weights(x);
        let rows = recurrent.as_chunks::<UNITS>().0;
        gradient.fill(0.0);
        let (by_recurrent, others) = gradient.split_at_mut(UNITS * UNITS);
        let (by_signal, others) = others.split_at_mut(UNITS);
        let (by_bias, by_output) = others.split_at_mut(UNITS);
        let by_rows = by_recurrent.as_chunks_mut::<UNITS>().0;
        adjoints.fill(0.0);
        for time in (0..self.steps()).rev() {
            let (before, after) = (&states[time], &states[time + 1]);
            let error = dot(output, after) - self.signal[time + 1];
            let factor = 2.0 * error / self.steps() as f64;
            for unit in 0..UNITS {
                by_output[unit] += factor * after[unit];
                let adjoint = adjoints[unit] + factor * output[unit];
                inner[unit] = adjoint * (1.0 - after[unit] * after[unit]);
            }
            adjoints.fill(0.0);
            for unit in 0..UNITS {
                by_bias[unit] += inner[unit];
                by_signal[unit] += inner[unit] * self.signal[time];
                for other in 0..UNITS {
                    by_rows[unit][other] += inner[unit] * before[other];
                    adjoints[other] += inner[unit] * rows[unit][other];
                }
            }
        }
    }
}

impl Extra for RecurrentNetwork {
    /// Small weights, so that errors do not grow from step to step.
    fn point(&self) -> Vec<f64> {
        let spread = |i: usize| weyl(i, GOLDEN) + weyl(i * i, SILVER) - 1.0;
        (0..WEIGHTS).map(|i| 0.2 * spread(i)).collect()
    }
}
