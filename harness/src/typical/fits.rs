//! Programs that fit models to data.
#![allow(clippy::needless_range_loop, reason = "they are written as users write them")]

use phigrad::{Var, traced};

/// The error of a tree of two levels whose thresholds and leaves are fitted.
#[traced]
pub fn decision_tree(x: &[Var], houses: &[Vec<f64>]) -> Var {
    let mut error = Var::from(0.0);
    for house in houses {
        let (size, age) = (house[0], house[1]);
        let leaf = if x[0] > size {
            if x[1] > age { x[3] } else { x[4] }
        } else if x[2] > age {
            x[5]
        } else {
            x[6]
        };
        let miss = leaf - (size * 4.0 - age);
        error += miss * miss;
    }
    error
}

/// Cube roots by Newton's method, each until it moves no more.
#[traced]
pub fn newton(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for &a in x {
        let mut root = Var::from(1.0);
        let mut steps = 0;
        loop {
            let moved = (root * root * root - a) / (root * root * 3.0);
            root -= moved;
            steps += 1;
            if moved.abs() < 1e-10 || steps > 50 {
                break;
            }
        }
        sum += root * a;
    }
    sum
}

/// The cost of the best match of two curves, the first of them scaled and moved.
#[traced]
pub fn time_warping(x: &[Var], one: &[f64], other: &[f64]) -> Var {
    let mut row = vec![Var::from(0.0); other.len()];
    for (i, &a) in one.iter().enumerate() {
        let mut corner = Var::from(0.0);
        for (j, &b) in other.iter().enumerate() {
            let apart = x[0] * a + x[1] - b;
            let cost = apart * apart;
            let above = row[j];
            let mut best = above;
            if i == 0 {
                best = if j == 0 { Var::from(0.0) } else { row[j - 1] + x[2] * 0.01 };
            } else if j > 0 {
                if corner < best {
                    best = corner;
                }
                if row[j - 1] + x[2] * 0.01 < best {
                    best = row[j - 1] + x[2] * 0.01;
                }
            }
            corner = above;
            row[j] = cost + best;
        }
    }
    row[other.len() - 1]
}

/// The distance of points from the centres after a step of the k-means method.
#[traced]
pub fn k_means(x: &[Var], points: &[Vec<f64>]) -> Var {
    let mut sums = [[Var::from(0.0); 2]; 3];
    let mut counts = [Var::from(0.0); 3];
    let mut spread = Var::from(0.0);
    for point in points {
        let mut best = 0;
        let mut nearest = Var::from(f64::INFINITY);
        for centre in 0..3 {
            let (dx, dy) = (x[2 * centre] - point[0], x[2 * centre + 1] - point[1]);
            let distance = dx * dx + dy * dy;
            if distance < nearest {
                best = centre;
                nearest = distance;
            }
        }
        spread += nearest;
        sums[best][0] += nearest * point[0];
        sums[best][1] += nearest * point[1];
        counts[best] += nearest;
    }
    for centre in 0..3 {
        if counts[centre] > 0.0 {
            let (mx, my) = (sums[centre][0] / counts[centre], sums[centre][1] / counts[centre]);
            spread += mx * my;
        }
    }
    spread
}

/// The log-likelihood of measurements by a Kalman filter that ignores outliers.
#[traced]
pub fn kalman(x: &[Var], measured: &[f64]) -> Var {
    let (noise, drift, error) = (x[0], x[1], x[2]);
    let (mut mean, mut variance) = (Var::from(0.5), Var::from(1.0));
    let mut likelihood = Var::from(0.0);
    for &y in measured {
        variance += drift * drift;
        let expected = variance + noise * noise;
        let residual = y - mean;
        if residual * residual > error * expected {
            likelihood -= 1.0;
            continue;
        }
        let gain = variance / expected;
        mean += gain * residual;
        variance *= 1.0 - gain;
        likelihood -= (expected.ln() + residual * residual / expected) * 0.5;
    }
    likelihood
}

/// A line through points by Huber's loss.
#[traced]
pub fn huber(x: &[Var], points: &[Vec<f64>]) -> Var {
    let mut loss = Var::from(0.0);
    for point in points {
        let residual = x[0] * point[0] + x[1] - point[1];
        loss += if residual.abs() < x[2] {
            residual * residual * 0.5
        } else {
            x[2] * (residual.abs() - x[2] * 0.5)
        };
    }
    loss
}

/// The log-likelihood of observations of a hidden Markov chain of two states.
#[traced]
pub fn hidden_states(x: &[Var], observed: &[f64]) -> Var {
    let sum = |a: Var, b: Var| {
        let (most, least) = if a > b { (a, b) } else { (b, a) };
        most + (least - most).exp().ln_1p()
    };
    let stay = [x[0].ln(), x[1].ln()];
    let leave = [(1.0 - x[0]).ln(), (1.0 - x[1]).ln()];
    let (mut one, mut two) = (Var::from(0.5f64.ln()), Var::from(0.5f64.ln()));
    for &y in observed {
        let (to_one, to_two) = (y - x[2], y - x[3]);
        let next = sum(one + stay[0], two + leave[1]) - to_one * to_one * 2.0;
        two = sum(two + stay[1], one + leave[0]) - to_two * to_two * 2.0;
        one = next;
    }
    sum(one, two)
}
