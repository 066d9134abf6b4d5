//! Loops with a data-dependent exit: annotated, so that one kernel serves many trip counts.

use phigrad::internals::Random;
use phigrad::{Var, traced};

use super::super::number::Number;
use super::{Family, table};

table![Converging, Growing, Paid, Damped];

/// A loop that ends at the first state with a negative margin.
trait Exit: Family {
    /// The difference whose sign decides, in units of the limit.
    fn margin(&self, x: &[f64], state: &[f64]) -> f64;

    /// The trip count; `None` if rounding may decide one of the comparisons.
    fn count(&self, bound: usize, x: &[f64]) -> Option<usize> {
        let mut state = self.start(x);
        for count in 0..bound {
            let margin = self.margin(x, &state);
            if margin.abs() < 1e-7 {
                return None;
            }
            if margin < 0.0 {
                return Some(count);
            }
            state = self.step(x, &state, count);
        }
        Some(bound)
    }
}

/// Descends until the slope is small.
#[traced]
fn converge(mut w: Var, rate: Var, curvature: Var, intercept: Var, bound: usize) -> Var {
    let mut count = 0;
    while count < bound {
        let slope = curvature * w - intercept;
        if slope.abs() < 1e-6 {
            break;
        } else {
            w -= rate * slope;
        }
        count += 1;
    }
    w
}

struct Converging;

impl Exit for Converging {
    fn margin(&self, x: &[f64], w: &[f64]) -> f64 {
        (x[2] * w[0] - x[3]).abs() / 1e-6 - 1.0
    }
}

impl Family for Converging {
    fn name(&self) -> String {
        "exit, slope is small".into()
    }

    fn inputs(&self) -> usize {
        4
    }

    fn trips(&self) -> &'static [usize] {
        &[500]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], w: &[T], _: usize) -> Vec<T> {
        vec![w[0] - x[1] * (x[2] * w[0] - x[3])]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let (start, rate) = (random.uniform(0.5, 3.0), random.uniform(0.02, 0.6));
        vec![start, rate, random.uniform(0.8, 1.6), random.uniform(0.2, 0.8)]
    }

    fn run(&self, trips: usize, x: &[Var]) -> Var {
        converge(x[0], x[1], x[2], x[3], trips)
    }

    fn steps(&self, trips: usize, point: &[f64]) -> Option<usize> {
        self.count(trips, point)
    }

    fn profiled(&self) -> usize {
        80
    }
}

/// Saves until there is enough.
#[traced]
fn grow(mut sum: Var, rate: Var, payment: Var) -> Var {
    while sum < 1000.0 {
        sum = sum * (rate + 1.0) + payment;
    }
    sum
}

struct Growing;

impl Exit for Growing {
    fn margin(&self, _: &[f64], sum: &[f64]) -> f64 {
        1.0 - sum[0] / 1000.0
    }
}

impl Family for Growing {
    fn name(&self) -> String {
        "exit, grown to a limit".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[5000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], sum: &[T], _: usize) -> Vec<T> {
        vec![sum[0] * (x[1] + T::from(1.0)) + x[2]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let rate = random.pick(&[1e-9, 1e-3, 0.01, 0.05]) * random.uniform(0.5, 1.0);
        vec![random.uniform(0.0, 50.0), rate, random.uniform(2.0, 20.0)]
    }

    fn run(&self, _: usize, x: &[Var]) -> Var {
        grow(x[0], x[1], x[2])
    }

    fn steps(&self, trips: usize, point: &[f64]) -> Option<usize> {
        self.count(trips, point)
    }

    fn profiled(&self) -> usize {
        80
    }
}

/// Pays a debt back.
#[traced]
fn pay(mut debt: Var, rate: Var, payment: Var) -> Var {
    while debt > 0.0 {
        debt = debt * (1.0 + rate) - payment;
    }
    debt
}

struct Paid;

impl Exit for Paid {
    fn margin(&self, x: &[f64], debt: &[f64]) -> f64 {
        debt[0] / x[2]
    }
}

impl Family for Paid {
    fn name(&self) -> String {
        "exit, debt paid back".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[5000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![x[0]]
    }

    fn step<T: Number>(&self, x: &[T], debt: &[T], _: usize) -> Vec<T> {
        vec![debt[0] * (T::from(1.0) + x[1]) - x[2]]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let (rate, payment) = (random.uniform(1e-6, 5e-3), random.uniform(5.0, 10.0));
        vec![payment * random.uniform(1.0, 150.0), rate, payment]
    }

    fn run(&self, _: usize, x: &[Var]) -> Var {
        pay(x[0], x[1], x[2])
    }

    fn steps(&self, trips: usize, point: &[f64]) -> Option<usize> {
        self.count(trips, point)
    }

    fn profiled(&self) -> usize {
        80
    }
}

/// Two states: an error that is averaged, until the average is small.
#[traced]
fn damp(start: Var, rate: Var, kept: Var) -> Var {
    let (mut error, mut average) = (start, Var::from(1.0));
    while average > 1e-3 {
        let less = error * (1.0 - rate);
        average = average * kept + less * 0.01;
        error = less;
    }
    average
}

struct Damped;

impl Exit for Damped {
    fn margin(&self, _: &[f64], state: &[f64]) -> f64 {
        state[0] / 1e-3 - 1.0
    }
}

impl Family for Damped {
    fn name(&self) -> String {
        "exit, average is small".into()
    }

    fn inputs(&self) -> usize {
        3
    }

    fn trips(&self) -> &'static [usize] {
        &[5000]
    }

    fn start<T: Number>(&self, x: &[T]) -> Vec<T> {
        vec![T::from(1.0), x[0]]
    }

    fn step<T: Number>(&self, x: &[T], state: &[T], _: usize) -> Vec<T> {
        let less = state[1] * (T::from(1.0) - x[1]);
        vec![state[0] * x[2] + less * T::from(0.01), less]
    }

    fn point(&self, _: usize, random: &mut Random) -> Vec<f64> {
        let (rate, kept) = (random.uniform(0.05, 0.5), random.uniform(0.5, 0.95));
        vec![random.uniform(0.1, 2.0), rate, kept]
    }

    fn run(&self, _: usize, x: &[Var]) -> Var {
        damp(x[0], x[1], x[2])
    }

    fn steps(&self, trips: usize, point: &[f64]) -> Option<usize> {
        self.count(trips, point)
    }

    fn profiled(&self) -> usize {
        80
    }
}
