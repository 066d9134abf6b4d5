//! Small programs that branch as users' programs do, for counting how fast
//! kernels serve them.
#![allow(clippy::needless_range_loop, reason = "they are written as users write them")]

use phigrad::internals::Random;
use phigrad::{Var, traced};

/// The function of a program.
pub type Function = dyn Fn(&[Var]) -> Var + Send + Sync;

/// A program with the point around which it is called and how far from it.
pub struct Typical {
    /// Its function.
    pub name: &'static str,
    /// The point.
    pub center: Vec<f64>,
    /// The distance of each input from it, at most.
    pub radius: f64,
    /// The program.
    pub function: Box<Function>,
}

/// All of them, always with the same data.
pub fn programs() -> Vec<Typical> {
    let random = &mut Random::new(1 << 40);
    let mut table = |rows: usize, columns: usize| -> Vec<Vec<f64>> {
        (0..rows).map(|_| (0..columns).map(|_| random.uniform(0.0, 1.0)).collect()).collect()
    };
    let (draws, houses, loads) = (table(20, 12), table(40, 2), table(1, 30));
    let (gaps, curves, points) = (table(25, 2), table(2, 12), table(30, 2));
    let of = |name, center: &[f64], radius, function| Typical {
        name,
        center: center.to_vec(),
        radius,
        function,
    };
    vec![
        of("barrier option", &[1.0, 0.4, 0.05, 1.0, 1.3], 0.1, {
            Box::new(move |x| barrier_option(x, &draws))
        }),
        of("decision tree", &[0.4, 0.6, 0.3, 1.0, 2.0, 3.0, 4.0], 0.2, {
            Box::new(move |x| decision_tree(x, &houses))
        }),
        of("colliding balls", &[0.2, 0.5, 0.8, 0.6, -0.3, -0.5], 0.15, Box::new(balls)),
        of("adaptive step size", &[1.0, 0.2, 2.0], 0.3, Box::new(adaptive_steps)),
        of("Newton's method", &[1.5, 0.5, 2.5, 1.0], 0.4, Box::new(newton)),
        of("tariff", &[0.2, 0.5, 0.8, 1.0, 2.0, 4.0], 0.15, {
            Box::new(move |x| tariff(x, &loads[0]))
        }),
        of("queue", &[0.5, 0.9, 1.1], 0.2, Box::new(move |x| queue(x, &gaps))),
        of("time warping", &[1.0, 0.1, 0.3], 0.3, {
            Box::new(move |x| time_warping(x, &curves[0], &curves[1]))
        }),
        of("k-means", &[0.2, 0.2, 0.8, 0.3, 0.5, 0.8], 0.2, Box::new(move |x| k_means(x, &points))),
        of("grades", &[0.1, 0.3, 0.5, 0.7, 0.9], 0.3, Box::new(grades)),
    ]
}

/// The price of a barrier option, with fixed draws.
#[traced]
fn barrier_option(x: &[Var], draws: &[Vec<f64>]) -> Var {
    let [spot, volatility, rate, strike, barrier] = [x[0], x[1], x[2], x[3], x[4]];
    let step = 1.0 / 12.0;
    let drift = (rate - volatility * volatility * 0.5) * step;
    let mut sum = Var::from(0.0);
    for path in draws {
        let mut price = spot;
        let mut alive = true;
        for &draw in path {
            let shock = (draw - 0.5) * 12f64.sqrt() * f64::sqrt(step);
            price *= (drift + volatility * shock).exp();
            if price > barrier {
                alive = false;
                break;
            }
        }
        if alive && price > strike {
            sum += price - strike;
        }
    }
    sum * (-rate).exp() / draws.len() as f64
}

/// The error of a tree of two levels whose thresholds and leaves are fitted.
#[traced]
fn decision_tree(x: &[Var], houses: &[Vec<f64>]) -> Var {
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

/// Three balls on a line between walls; they change their speeds when they meet.
#[traced]
fn balls(x: &[Var]) -> Var {
    let mut place = [x[0], x[1], x[2]];
    let mut speed = [x[3], x[4], x[5]];
    for _ in 0..40 {
        for ball in 0..3 {
            place[ball] += speed[ball] * 0.02;
            let leaves = place[ball] < 0.0 && speed[ball] < 0.0;
            if leaves || place[ball] > 1.0 && speed[ball] > 0.0 {
                speed[ball] = -speed[ball] * 0.9;
            }
        }
        for one in 0..3 {
            for other in one + 1..3 {
                let (apart, closing) = (place[other] - place[one], speed[other] - speed[one]);
                if apart.abs() < 0.1 && apart * closing < 0.0 {
                    (speed[one], speed[other]) = (speed[other], speed[one]);
                }
            }
        }
    }
    place[0] * place[1] + place[2]
}

/// y' = -k y + sin t from 0 to an end, by Euler and Heun's methods; the difference
/// decides about the step.
#[traced]
fn adaptive_steps(x: &[Var]) -> Var {
    let (mut y, stiffness, end) = (x[0], x[1] + 2.0, x[2]);
    let (mut t, mut step) = (Var::from(0.0), Var::from(0.1));
    while t < end {
        if t + step > end {
            step = end - t;
        }
        let slope = t.sin() - stiffness * y;
        let euler = y + step * slope;
        let heun = y + step * (slope + (t + step).sin() - stiffness * euler) * 0.5;
        let error = (heun - euler).abs();
        if error < 0.02 {
            y = heun;
            t += step;
            if error < 0.005 {
                step *= 1.5;
            }
        } else {
            step *= 0.5;
        }
    }
    y
}

/// Cube roots by Newton's method, each until it moves no more.
#[traced]
fn newton(x: &[Var]) -> Var {
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

/// The cost of a year of consumption: three prices by level.
#[traced]
fn tariff(x: &[Var], loads: &[f64]) -> Var {
    let levels = [x[0], x[1], x[2]];
    let prices = [x[3], x[4], x[5]];
    let mut cost = Var::from(0.0);
    for &load in loads {
        let mut rest = Var::from(load);
        let mut below = Var::from(0.0);
        for level in 0..3 {
            let width = levels[level] - below;
            if rest <= width {
                cost += rest * prices[level];
                rest = Var::from(0.0);
                break;
            }
            cost += width * prices[level];
            rest -= width;
            below = levels[level];
        }
        cost += rest * 8.0;
    }
    cost
}

/// The waiting time of customers at three servers; each takes the first that is free.
#[traced]
fn queue(x: &[Var], gaps: &[Vec<f64>]) -> Var {
    let mut free = [Var::from(0.0); 3];
    let (mut now, mut waited) = (Var::from(0.0), Var::from(0.0));
    for customer in gaps {
        now += x[0] * customer[0];
        let mut first = 0;
        for server in 1..3 {
            if free[server] < free[first] {
                first = server;
            }
        }
        let start = if free[first] > now { free[first] } else { now };
        waited += start - now;
        free[first] = start + x[1] * customer[1] + x[2] * 0.1;
    }
    waited
}

/// The cost of the best match of two curves, the first of them scaled and moved.
#[traced]
fn time_warping(x: &[Var], one: &[f64], other: &[f64]) -> Var {
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
fn k_means(x: &[Var], points: &[Vec<f64>]) -> Var {
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

/// A mark for each of the inputs, by thresholds.
#[traced]
fn grades(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for (i, &mark) in x.iter().enumerate() {
        let points = if mark < 0.0 {
            mark * 0.1
        } else if mark < 0.2 {
            mark
        } else if mark < 0.4 {
            mark * 2.0 - 0.2
        } else if mark < 0.6 {
            mark * mark + 0.4
        } else if mark < 0.8 {
            mark * 3.0 - 1.0
        } else {
            mark.sqrt() + 0.5
        };
        sum += points * (1.0 + i as f64 * 0.1);
    }
    sum
}
