//! Programs in which inputs decide: prices, tariffs and thresholds.
#![allow(clippy::needless_range_loop, reason = "they are written as users write them")]

use phigrad::{Var, traced};

/// The price of a barrier option, with fixed draws.
#[traced]
pub fn barrier_option(x: &[Var], draws: &[Vec<f64>]) -> Var {
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

/// The price of an American put on a binomial tree: exercised as soon as that is worth more.
#[traced]
pub fn american_option(x: &[Var]) -> Var {
    let [spot, volatility, rate, strike] = [x[0], x[1], x[2], x[3]];
    let steps = 12;
    let step = 1.0 / f64::from(steps);
    let up = (volatility * f64::sqrt(step)).exp();
    let down = 1.0 / up;
    let growth = (rate * step).exp();
    let rise = (growth - down) / (up - down);
    let mut prices: Vec<Var> = (0..=steps).map(|i| spot * up.powi(2 * i - steps)).collect();
    let mut values: Vec<Var> = prices.iter().map(|&price| (strike - price).max(0.0)).collect();
    for step in (0..steps as usize).rev() {
        for i in 0..=step {
            prices[i] *= up;
            let held = (rise * values[i + 1] + (1.0 - rise) * values[i]) / growth;
            let exercised = strike - prices[i];
            values[i] = if exercised > held { exercised } else { held };
        }
    }
    values[0]
}

/// The cost of a year of consumption: three prices by level.
#[traced]
pub fn tariff(x: &[Var], loads: &[f64]) -> Var {
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

/// A mark for each of the inputs, by thresholds.
#[traced]
pub fn grades(x: &[Var]) -> Var {
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

/// The cost of a stock that is filled up when it falls below a level.
#[traced]
pub fn stock(x: &[Var], demands: &[f64]) -> Var {
    let (level, full) = (x[0] * 2.0, x[1] * 6.0);
    let (mut stock, mut ordered, mut orders) = (full, Var::from(0.0), 0);
    let mut cost = Var::from(0.0);
    for &demand in demands {
        stock += ordered;
        ordered = Var::from(0.0);
        stock -= x[2] * demand;
        if stock < 0.0 {
            cost -= stock * 5.0;
            stock = Var::from(0.0);
        }
        cost += stock * 0.1;
        if stock < level {
            ordered = full - stock;
            orders += 1;
        }
    }
    cost + f64::from(orders) * 0.3
}

/// The rate of return of payments, by bisection and a last Newton step.
#[traced]
pub fn bisection(x: &[Var]) -> Var {
    let value = |rate: Var| {
        let (mut sum, mut factor) = (-x[0] * 3.0, Var::from(1.0));
        for payment in &x[1..] {
            factor /= 1.0 + rate;
            sum += *payment * factor;
        }
        sum
    };
    let (mut low, mut high) = (Var::from(-0.5), Var::from(2.0));
    for _ in 0..20 {
        let middle = (low + high) * 0.5;
        if value(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let rate = (low + high) * 0.5;
    let step = 1e-4;
    let slope = (value(rate + step) - value(rate - step)) / (2.0 * step);
    rate - value(rate) / slope
}
