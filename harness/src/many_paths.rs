//! Small programs whose paths are many, for measuring what profiling costs: state that decisions
//! change, orders, signs.

use phigrad::{Carry, Var, traced};

use crate::typical::Typical;

/// All of them.
pub fn programs() -> Vec<Typical> {
    let of = Typical::new;
    vec![
        of("thermostat", &[1.0, 0.5, 1.5], 0.5, Box::new(thermostat)),
        of("mean above", &[0.5; 3], 0.5, Box::new(mean_above)),
        of("least", &[0.5; 20], 0.5, Box::new(least)),
        of("gaits", &[0.5; 3], 0.5, Box::new(gaits)),
        of("middle", &[0.5; 15], 0.5, Box::new(middle)),
        of("signs", &[0.0; 12], 1.0, Box::new(signs)),
        of("largest", &[0.5; 2000], 0.5, Box::new(largest)),
        of("counted loop", &[1.0, 1.1], 0.09, Box::new(counted_loop)),
        of("masked root", &[0.0, 1.0], 1.0, Box::new(masked_root)),
        of("steps", &[3.0, 4.0], 2.0, Box::new(steps)),
    ]
}

/// A thermostat with hysteresis.
#[traced]
fn thermostat(p: &[Var]) -> Var {
    let (mut x, mut on, mut cost) = (p[0], false, Var::from(0.0));
    for k in 0..90 {
        if on && x > p[2] {
            on = false;
        } else if !on && x < p[1] {
            on = true;
        }
        x = x * 0.9 + (f64::from(k) * 0.2).sin() * 0.1;
        if on {
            x += 0.3;
        }
        cost += x * x;
    }
    cost
}

/// The mean of the numbers above a threshold.
#[traced]
fn mean_above(p: &[Var]) -> Var {
    let (mut count, mut sum) = (0, Var::from(0.0));
    for k in 0..60 {
        let y = p[0] * (f64::from(k) * 0.7).sin() + p[1] * (f64::from(k) * 0.31).cos();
        if y > p[2] {
            count += 1;
            sum += y;
        }
    }
    sum / (f64::from(count) + 1.0)
}

/// The least input, weighted by its index.
#[traced]
fn least(p: &[Var]) -> Var {
    let mut at = 0;
    for i in 1..p.len() {
        if p[i] < p[at] {
            at = i;
        }
    }
    p[at] * (at as f64 + 1.0)
}

#[derive(Clone, Copy, PartialEq, Carry)]
enum Gait {
    Walk,
    Run,
    Rest,
}

/// A walk in three modes.
#[traced]
fn gaits(p: &[Var]) -> Var {
    let (mut gait, mut energy, mut distance) = (Gait::Walk, p[0], Var::from(0.0));
    for _ in 0..60 {
        gait = match gait {
            Gait::Walk if energy > p[1] => Gait::Run,
            Gait::Run if energy < p[2] => Gait::Rest,
            Gait::Rest if energy > 0.6 => Gait::Walk,
            same => same,
        };
        match gait {
            Gait::Walk => (energy, distance) = (energy * 1.01, distance + 0.1),
            Gait::Run => (energy, distance) = (energy * 0.9, distance + 0.3 * energy),
            Gait::Rest => energy += 0.05,
        }
    }
    distance + energy
}

/// The least input and the median, by sorting: as many paths as orders.
#[traced]
fn middle(p: &[Var]) -> Var {
    let mut sorted = p.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(core::cmp::Ordering::Equal));
    sorted[0] + 2.0 * sorted[sorted.len() / 2]
}

/// The signs of eight sums: 256 paths.
fn signs(p: &[Var]) -> Var {
    let sum = |k: usize| -> Var {
        p.iter().enumerate().map(|(i, &x)| x * ((i * 7 + k * 3) as f64).sin()).sum()
    };
    (0..8).map(sum).map(|s| if s > 0.0 { s * s } else { -s }).sum()
}

/// The largest input.
#[traced]
fn largest(x: &[Var]) -> Var {
    let mut most = x[0];
    for &v in x {
        if v > most {
            most = v;
        }
    }
    most
}

/// A trip count that the inputs decide, with a limit.
#[traced]
fn counted_loop(p: &[Var]) -> Var {
    let (mut y, mut n) = (p[0], 0);
    while y < 100.0 && n < 1000 {
        y = y * p[1] + 0.01;
        n += 1;
    }
    y
}

/// A root whose NaN is not chosen.
#[traced]
fn masked_root(p: &[Var]) -> Var {
    p[0].less_than(0.0).select(p[1], p[0].sqrt()) * p[1]
}

/// Halvings until a number is small, without the attribute: a path for each number of them.
fn steps(p: &[Var]) -> Var {
    let mut y = p[0] * 1000.0;
    while y > p[1] {
        y *= 0.9;
    }
    y * p[1]
}
