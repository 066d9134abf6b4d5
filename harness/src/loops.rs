//! Programs with loops as users write them, for measuring what closed forms gain and cost.
#![allow(clippy::needless_range_loop, reason = "they are written as users write them")]

use phigrad::Var;
use phigrad::internals::Random;

/// The function of a program.
pub type Function = dyn Fn(&[Var]) -> Var + Send + Sync;

/// A program with the point at which it is measured.
pub struct Program {
    /// Its function.
    pub name: &'static str,
    /// The point.
    pub at: Vec<f64>,
    /// The program.
    pub function: Box<Function>,
}

/// So many data.
const DATA: usize = 200;

/// All of them, always with the same data.
pub fn programs() -> Vec<Program> {
    let random = &mut Random::new(7 << 40);
    let mut draw =
        |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform(0.0, 1.0) - 0.5).collect() };
    let (u, v, w, noise) = (draw(DATA), draw(DATA), draw(DATA), draw(DATA));
    let (inner, means, outer) = (draw(5 * (64 + 64 * 63 / 2)), draw(6), draw(16));
    let labels: Vec<f64> = u.iter().map(|u| f64::from(u8::from(*u > 0.1))).collect();
    let of = |name, at: &[f64], function| Program { name, at: at.to_vec(), function };
    let table = || (u.clone(), v.clone(), w.clone());
    vec![
        of("triangular products, 64 columns", &inner, Box::new(|x| triangular(x, 64, DATA))),
        of("triangular products, 8 columns", &inner[..180], Box::new(|x| triangular(x, 8, DATA))),
        of("loan", &[1e5, 0.004, 600.0], Box::new(loan)),
        of("bond", &[100.0, 0.05, 0.03], Box::new(bond)),
        of("damped spring", &[1.0, 0.0, 2.0, 0.3], Box::new(|x| spring(x, 1_000))),
        of("short springs from many places", &[2.0, 0.3], {
            let (places, ..) = table();
            Box::new(move |x| {
                places.iter().map(|&p| spring(&[p.into(), x[0], x[0], x[1]], 20)).sum()
            })
        }),
        of("autoregression", &[0.4, 0.3, 0.1], {
            let (series, ..) = table();
            Box::new(move |x| autoregression(x, &series))
        }),
        of("exponential smoothing", &[0.3, 0.1], {
            let (series, ..) = table();
            Box::new(move |x| smoothing(x, &series))
        }),
        of("plane through data", &[0.3, -0.2, 0.1], {
            let (u, v, w) = table();
            Box::new(move |x| plane(x, &u, &v, &w))
        }),
        of("quartic through data", &[0.1, 0.2, 0.3, 0.4, 0.5], {
            let (u, v, _) = table();
            Box::new(move |x| quartic(x, &u, &v))
        }),
        of("descent with momentum", &[0.1, 0.9, 0.0, 0.5], {
            let (u, v, _) = table();
            Box::new(move |x| momentum(x, &u, &v))
        }),
        of("logistic regression", &[0.2, -0.4, 0.1], {
            let (u, v, _) = table();
            Box::new(move |x| logistic(x, &u, &v, &labels))
        }),
        of("Poisson regression", &[0.2, -0.4], {
            let (u, v, _) = table();
            Box::new(move |x| poisson(x, &u, &v))
        }),
        of("normal likelihood", &[0.1, 0.8], {
            let (u, ..) = table();
            Box::new(move |x| normal(x, &u))
        }),
        of("moment generating function", &[0.7, 0.1], {
            let (u, v, _) = table();
            Box::new(move |x| {
                u.iter().zip(&v).map(|(&u, &v)| v * (x[0] + u).exp()).sum::<Var>() * x[1]
            })
        }),
        of("polynomial at many points", &means, {
            let (u, ..) = table();
            Box::new(move |x| {
                u.iter().map(|&u| x.iter().fold(Var::from(0.0), |p, &c| p * u + c).sin()).sum()
            })
        }),
        of("rotations of many vectors", &[0.3, 0.4, 0.5], {
            let (u, v, w) = table();
            Box::new(move |x| rotations(x, &u, &v, &w))
        }),
        of("scalar filter", &[0.9, 0.1, 0.2], {
            let (series, ..) = table();
            Box::new(move |x| filter(x, &series))
        }),
        of("recurrent network", &outer, {
            let (series, ..) = table();
            Box::new(move |x| network(x, &series))
        }),
        of("heat equation", &outer, Box::new(|x| heat(x, 200))),
        of("control of a tank", &[0.8, 0.1, 0.05, 1.0], Box::new(control)),
        of("pairwise energies", &inner[..60], Box::new(pairs)),
        of("geometric average of prices", &[1.0, 0.2, 0.05], {
            Box::new(move |x| prices(x, &noise))
        }),
        of("payments that grow", &[0.9, 0.5], Box::new(payments)),
        of("chain of three states", &[0.1, 0.2, 0.3], Box::new(|x| chain(x, 500))),
        of("savings until a goal", &[1.0, 0.02, 100.0], Box::new(savings)),
        of("monthly interest", &[1.0, 0.01, 0.1], Box::new(interest)),
        of("circle through points", &[0.1, 0.2, 0.3], {
            let (u, v, _) = table();
            Box::new(move |x| circle(x, &u, &v))
        }),
        of("fixed point", &[0.5, 1.0], Box::new(fixed_point)),
        of("powers of a matrix", &[0.5, 0.2, 0.1, 0.6], Box::new(|x| matrix(x, 40))),
    ]
}

/// Logarithms of sums of five exponentials of quadratic forms, with triangular factors.
fn triangular(x: &[Var], columns: usize, points: usize) -> Var {
    let term = |x: &[Var], point: usize| {
        let (mean, lower) = x.split_at(columns);
        let datum = |i: usize| ((point * 31 + i * 17) % 101) as f64 * 0.01;
        let centred: Vec<Var> = (0..columns).map(|i| datum(i) - mean[i]).collect();
        let mut product: Vec<Var> = (0..columns).map(|i| mean[i] * centred[i]).collect();
        let mut at = 0;
        for i in 0..columns {
            for j in i + 1..columns {
                product[j] += lower[at] * centred[i];
                at += 1;
            }
        }
        (-0.5 * product.iter().map(|&q| q * q).sum::<Var>()).exp()
    };
    let block = columns + columns * (columns - 1) / 2;
    (0..points).map(|p| x.chunks(block).map(|x| term(x, p)).sum::<Var>().ln()).sum()
}

fn loan(x: &[Var]) -> Var {
    let (mut debt, mut paid) = (x[0], Var::from(0.0));
    for _ in 0..360 {
        let interest = debt * x[1];
        debt += interest - x[2];
        paid += interest;
    }
    debt * debt * 1e-6 + paid
}

fn bond(x: &[Var]) -> Var {
    let mut price = Var::from(0.0);
    let mut discount = Var::from(1.0);
    for _ in 0..120 {
        discount /= x[2] + 1.0;
        price += x[0] * x[1] * discount;
    }
    price + x[0] * discount
}

fn spring(x: &[Var], steps: usize) -> Var {
    let (mut place, mut speed) = (x[0], x[1]);
    for _ in 0..steps {
        speed -= (x[2] * place + x[3] * speed) * 0.01;
        place += speed * 0.01;
    }
    place * place + speed
}

fn autoregression(x: &[Var], series: &[f64]) -> Var {
    let residual = |at: &[f64]| x[0] * at[1] + x[1] * at[0] + x[2] - at[2];
    series.windows(3).map(|at| residual(at) * residual(at)).sum()
}

fn smoothing(x: &[Var], series: &[f64]) -> Var {
    let (mut level, mut loss) = (x[1], Var::from(0.0));
    for &value in series {
        let error = value - level;
        loss += error * error;
        level += x[0] * error;
    }
    loss
}

fn plane(x: &[Var], u: &[f64], v: &[f64], w: &[f64]) -> Var {
    let mut loss = Var::from(0.0);
    for i in 0..u.len() {
        let residual = x[0] * u[i] + x[1] * v[i] + x[2] - w[i];
        loss += residual * residual;
    }
    loss / u.len() as f64
}

fn quartic(x: &[Var], u: &[f64], v: &[f64]) -> Var {
    let mut loss = Var::from(0.0);
    for (&u, &v) in u.iter().zip(v) {
        let residual = x.iter().fold(Var::from(0.0), |sum, &c| sum * u + c) - v;
        loss += residual * residual;
    }
    loss
}

/// The loss after steps of gradient descent, by the rate and the momentum.
fn momentum(x: &[Var], u: &[f64], v: &[f64]) -> Var {
    let (mut weight, mut speed) = (x[2], Var::from(0.0));
    for _ in 0..50 {
        let slope: Var = u.iter().zip(v).map(|(&u, &v)| (weight * u - v) * u).sum();
        speed = x[1] * speed - x[0] * slope / u.len() as f64;
        weight += speed;
    }
    weight * x[3]
}

fn logistic(x: &[Var], u: &[f64], v: &[f64], labels: &[f64]) -> Var {
    let mut loss = Var::from(0.0);
    for i in 0..u.len() {
        let score = x[0] * u[i] + x[1] * v[i] + x[2];
        loss += (score.exp() + 1.0).ln() - score * labels[i];
    }
    loss
}

fn poisson(x: &[Var], u: &[f64], v: &[f64]) -> Var {
    let mut likelihood = Var::from(0.0);
    for (&u, &v) in u.iter().zip(v) {
        let rate = x[0] * u + x[1];
        likelihood += rate * (v * 10.0).floor().abs() - rate.exp();
    }
    likelihood
}

fn normal(x: &[Var], data: &[f64]) -> Var {
    let mut likelihood = Var::from(0.0);
    for &datum in data {
        let score = (datum - x[0]) / x[1];
        likelihood -= score * score * 0.5 + x[1].ln();
    }
    likelihood
}

fn rotations(x: &[Var], u: &[f64], v: &[f64], w: &[f64]) -> Var {
    let (sin, cos) = (x[0].sin(), x[0].cos());
    let turn = [[cos, -sin, x[1]], [sin, cos, x[2]], [x[2], x[1], Var::from(1.0)]];
    let mut sum = Var::from(0.0);
    for i in 0..u.len() {
        let vector = [u[i], v[i], w[i]];
        let mut length = Var::from(0.0);
        for row in &turn {
            let mut product = Var::from(0.0);
            for k in 0..3 {
                product += row[k] * vector[k];
            }
            length += product * product;
        }
        sum += length.sqrt();
    }
    sum
}

/// The likelihood of a random walk that is observed with noise.
fn filter(x: &[Var], series: &[f64]) -> Var {
    let (mut mean, mut variance) = (Var::from(0.0), Var::from(1.0));
    let mut likelihood = Var::from(0.0);
    for &value in series {
        (mean, variance) = (x[0] * mean, x[0] * x[0] * variance + x[1]);
        let total = variance + x[2];
        let (error, gain) = (value - mean, variance / total);
        likelihood += total.ln() + error * error / total;
        mean += gain * error;
        variance -= gain * variance;
    }
    likelihood
}

fn network(x: &[Var], series: &[f64]) -> Var {
    let mut hidden = [Var::from(0.0); 3];
    let mut loss = Var::from(0.0);
    for pair in series.windows(2) {
        let unit = |i: usize| {
            let sum: Var = (0..3).map(|j| x[3 * i + j] * hidden[j]).sum();
            (sum + x[9 + i] * pair[0]).tanh()
        };
        hidden = [unit(0), unit(1), unit(2)];
        let output: Var = (0..3).map(|j| x[12 + j] * hidden[j]).sum();
        let error = output + x[15] - pair[1];
        loss += error * error;
    }
    loss
}

fn heat(x: &[Var], steps: usize) -> Var {
    let mut cells = x.to_vec();
    for _ in 0..steps {
        let before = cells.clone();
        for i in 1..cells.len() - 1 {
            cells[i] += (before[i - 1] - before[i] * 2.0 + before[i + 1]) * 0.2;
        }
    }
    cells.iter().map(|&cell| cell * cell).sum()
}

fn control(x: &[Var]) -> Var {
    let (mut level, mut integral, mut loss) = (Var::from(0.0), Var::from(0.0), Var::from(0.0));
    let mut before = x[3];
    for _ in 0..300 {
        let error = x[3] - level;
        integral += error * 0.1;
        let inflow = x[0] * error + x[1] * integral + x[2] * (error - before) * 10.0;
        before = error;
        level += (inflow - level * 0.3) * 0.1;
        loss += error * error * 0.1;
    }
    loss
}

fn pairs(x: &[Var]) -> Var {
    let mut energy = Var::from(0.0);
    for i in 0..x.len() {
        for j in 0..i {
            let apart = x[i] - x[j];
            energy += 1.0 / (apart * apart + 0.1);
        }
    }
    energy
}

fn prices(x: &[Var], noise: &[f64]) -> Var {
    let (mut price, mut sum) = (x[0], Var::from(0.0));
    for &noise in noise {
        price *= ((x[2] - x[1] * x[1] * 0.5) * 0.01 + x[1] * noise * 0.1).exp();
        sum += price.ln();
    }
    (sum / noise.len() as f64).exp()
}

fn payments(x: &[Var]) -> Var {
    let (mut factor, mut sum) = (x[1], Var::from(0.0));
    for i in 0..600 {
        sum += factor * f64::from(i);
        factor *= x[0];
    }
    sum
}

fn chain(x: &[Var], steps: usize) -> Var {
    let mut p = [Var::from(1.0), Var::from(0.0), Var::from(0.0)];
    for _ in 0..steps {
        p = [
            p[0] * (1.0 - x[0]) + p[2] * x[2],
            p[0] * x[0] + p[1] * (1.0 - x[1]),
            p[1] * x[1] + p[2] * (1.0 - x[2]),
        ];
    }
    p[1] + 2.0 * p[2]
}

fn savings(x: &[Var]) -> Var {
    let (mut saved, mut months) = (x[0], 0.0);
    while saved < x[2] {
        saved += saved * x[1] + 0.01;
        months += 1.0;
    }
    saved * months
}

fn interest(x: &[Var]) -> Var {
    let mut saved = x[0];
    for _ in 0..40 {
        for _ in 0..12 {
            saved += saved * x[1];
        }
        saved -= x[2];
    }
    saved
}

fn circle(x: &[Var], u: &[f64], v: &[f64]) -> Var {
    let mut loss = Var::from(0.0);
    for (&u, &v) in u.iter().zip(v) {
        let (across, up) = (u - x[0], v - x[1]);
        let apart = across * across + up * up - x[2] * x[2];
        loss += apart * apart;
    }
    loss
}

fn fixed_point(x: &[Var]) -> Var {
    let mut value = x[1];
    loop {
        let next = (value * 0.5 + x[0]).cos();
        let moved = (next - value).abs();
        value = next;
        if moved < 1e-12 {
            return value;
        }
    }
}

fn matrix(x: &[Var], power: usize) -> Var {
    let mut product = [Var::from(1.0), Var::from(0.0), Var::from(0.0), Var::from(1.0)];
    for _ in 0..power {
        let [a, b, c, d] = product;
        product =
            [a * x[0] + b * x[2], a * x[1] + b * x[3], c * x[0] + d * x[2], c * x[1] + d * x[3]];
    }
    product[0] + product[1] * product[2] - product[3]
}
