//! Ordinary Rust: numerical code, as in textbooks.

ordinary! {
    newton_with_bisection: inputs(3),
    traced {
        fn solve<F>(f: F, mut low: Var, mut high: Var) -> Result<Var, &'static str>
        where
            F: Fn(Var) -> (Var, Var),
        {
            let (f_low, _) = f(low);
            if f_low == 0.0 {
                return Ok(low);
            }
            if f_low > 0.0 {
                (low, high) = (high, low);
            }
            let mut root = (low + high) * 0.5;
            for _ in 0..6 {
                let (value, slope) = f(root);
                if value.abs() < 1e-3 {
                    break;
                }
                if value < 0.0 {
                    low = root;
                } else {
                    high = root;
                }
                let newton = root - value / slope;
                root = if (newton - low) * (newton - high) < 0.0 {
                    newton
                } else {
                    (low + high) * 0.5
                };
            }
            if root.value().is_nan() { Err("no root") } else { Ok(root) }
        }
        pub fn run(x: &[Var]) -> Var {
            let (a, b) = (x[0].abs() + 0.1, x[1]);
            match solve(|t| (t * t * t * a + t + b, t * t * a * 3.0 + 1.0), x[2] - 3.0, x[2] + 3.0) {
                Ok(root) => root * x[2],
                Err(_) => x[0],
            }
        }
    }
    cubic_spline: inputs(5),
    traced {
        fn moments(y: &[Var]) -> Vec<Var> {
            let n = y.len();
            let mut c = vec![0.0; n];
            let mut d = vec![Var::from(0.0); n];
            for i in 1..n - 1 {
                let rhs = (y[i + 1] - y[i] * 2.0 + y[i - 1]) * 6.0;
                let pivot = 4.0 - c[i - 1];
                c[i] = 1.0 / pivot;
                d[i] = (rhs - d[i - 1]) / pivot;
            }
            let mut m = vec![Var::from(0.0); n];
            for i in (1..n - 1).rev() {
                m[i] = d[i] - m[i + 1] * c[i];
            }
            m
        }
        fn evaluate(y: &[Var], m: &[Var], t: Var) -> Var {
            let last = y.len() - 2;
            let mut k = 0;
            while k < last && t >= (k + 1) as f64 {
                k += 1;
            }
            let (b, a) = (t - k as f64, (k + 1) as f64 - t);
            y[k] * a + y[k + 1] * b + ((a * a * a - a) * m[k] + (b * b * b - b) * m[k + 1]) / 6.0
        }
        pub fn run(x: &[Var]) -> Var {
            let (t, y) = x.split_first().unwrap();
            let m = moments(y);
            evaluate(y, &m, *t + 1.5)
        }
    }
    runge_kutta: inputs(3),
    traced {
        fn rhs(t: f64, y: &[Var; 2], p: Var) -> [Var; 2] {
            let force = if t < 0.5 { p } else { -p };
            let wall = if y[0] < 0.0 { y[0] * 4.0 } else { Var::from(0.0) };
            [y[1], force - y[0] - wall]
        }
        fn step(t: f64, y: &[Var; 2], h: f64, p: Var) -> ([Var; 2], Var) {
            let k1 = rhs(t, y, p);
            let mid: [Var; 2] = std::array::from_fn(|i| y[i] + k1[i] * (h / 2.0));
            let k2 = rhs(t + h / 2.0, &mid, p);
            let mut next = *y;
            let mut error = Var::from(0.0);
            for ((n, k), first) in next.iter_mut().zip(&k2).zip(k1) {
                *n += *k * h;
                error = error.max((*k - first).abs() * h);
            }
            (next, error)
        }
        pub fn run(x: &[Var]) -> Var {
            let mut y = [x[0], x[1]];
            let (mut t, mut h) = (0.0, 0.25);
            let mut rejected = 0;
            while t < 1.0 {
                let (next, error) = step(t, &y, h, x[2]);
                if error > 0.4 && rejected < 3 {
                    h *= 0.5;
                    rejected += 1;
                    continue;
                }
                t += h;
                y = next;
                if error < 0.1 {
                    h = (h * 2.0).min(0.5);
                }
            }
            y[0] * y[0] + y[1]
        }
    }
    lattice_option: inputs(3),
    plain {
        #[derive(Clone, Copy, PartialEq, Eq, Carry)]
        enum Right {
            Call,
            Put,
        }
    }
    traced {
        impl Right {
            fn payoff(self, spot: Var, strike: Var) -> Var {
                let gain = match self {
                    Right::Call => spot - strike,
                    Self::Put => strike - spot,
                };
                if gain > 0.0 { gain } else { Var::from(0.0) }
            }
        }
        fn price(right: Right, spot: Var, strike: Var, vol: Var) -> Var {
            const STEPS: usize = 4;
            let up = (vol * 0.5).exp();
            let down = up.recip();
            let p = (Var::from(1.01) - down) / (up - down);
            let mut values: Vec<Var> = (0..=STEPS)
                .map(|i| right.payoff(spot * up.powi(i as i32) * down.powi((STEPS - i) as i32), strike))
                .collect();
            for step in (0..STEPS).rev() {
                for i in 0..=step {
                    let hold = (values[i + 1] * p + values[i] * (1.0 - p)) / 1.01;
                    let exercise = right.payoff(spot * up.powi(2 * i as i32 - step as i32), strike);
                    values[i] = if exercise > hold { exercise } else { hold };
                }
                values.pop();
            }
            values[0]
        }
        pub fn run(x: &[Var]) -> Var {
            let (spot, strike, vol) = (x[0].abs() + 1.0, x[1].abs() + 1.0, x[2].abs() * 0.2 + 0.2);
            let right = if x[2] > 0.0 { Right::Call } else { Right::Put };
            price(right, spot, strike, vol)
        }
    }
    gauss_with_pivots: inputs(6),
    traced {
        fn solve(mut a: [[Var; 2]; 2], mut b: [Var; 2]) -> Option<[Var; 2]> {
            for k in 0..2 {
                let mut pivot = k;
                for i in k + 1..2 {
                    if a[i][k].abs() > a[pivot][k].abs() {
                        pivot = i;
                    }
                }
                if a[pivot][k].abs() < 0.1 {
                    return None;
                }
                if pivot != k {
                    a.swap(k, pivot);
                    b.swap(k, pivot);
                }
                for i in k + 1..2 {
                    let factor = a[i][k] / a[k][k];
                    let row = a[k];
                    for (target, source) in a[i].iter_mut().zip(row).skip(k) {
                        *target -= factor * source;
                    }
                    b[i] -= factor * b[k];
                }
            }
            let mut x = [Var::from(0.0); 2];
            for i in (0..2).rev() {
                let mut rest = b[i];
                for j in i + 1..2 {
                    rest -= a[i][j] * x[j];
                }
                x[i] = rest / a[i][i];
            }
            Some(x)
        }
        pub fn run(x: &[Var]) -> Var {
            let Some([p, q]) = solve([[x[0], x[1]], [x[2], x[3]]], [x[4], x[5]]) else {
                return x[0] - x[3];
            };
            p * 2.0 + q
        }
    }
    dynamic_programming: inputs(5),
    traced {
        fn distance(a: &[Var], b: &[Var]) -> Var {
            let far = Var::from(1e3);
            let mut table = vec![vec![far; b.len() + 1]; a.len() + 1];
            table[0][0] = Var::from(0.0);
            for i in 1..=a.len() {
                for j in 1..=b.len() {
                    let cost = (a[i - 1] - b[j - 1]).abs();
                    let mut best = table[i - 1][j - 1];
                    if table[i - 1][j] < best {
                        best = table[i - 1][j];
                    }
                    if table[i][j - 1] < best {
                        best = table[i][j - 1];
                    }
                    table[i][j] = best + cost;
                }
            }
            table[a.len()][b.len()]
        }
        pub fn run(x: &[Var]) -> Var {
            let (a, b) = x.split_at(2);
            distance(a, b)
        }
    }
    golden_section: inputs(3),
    traced {
        fn minimum(f: impl Fn(Var) -> Var, (mut a, mut b): (Var, Var), rounds: usize) -> (Var, Var) {
            const RATIO: f64 = 0.618_033_988_749_895;
            let mut c = b - (b - a) * RATIO;
            let mut d = a + (b - a) * RATIO;
            let (mut fc, mut fd) = (f(c), f(d));
            for _ in 0..rounds {
                if fc < fd {
                    b = d;
                    d = c;
                    fd = fc;
                    c = b - (b - a) * RATIO;
                    fc = f(c);
                } else {
                    a = c;
                    (c, fc) = (d, fd);
                    d = a + (b - a) * RATIO;
                    fd = f(d);
                }
            }
            if fc < fd { (c, fc) } else { (d, fd) }
        }
        pub fn run(x: &[Var]) -> Var {
            let (at, value) = minimum(|t| (t - x[0]) * (t - x[0]) * x[1] + t * x[2], (x[0] - 1.0, x[0] + 2.0), 3);
            at + value
        }
    }
    table_lookup: inputs(2),
    plain {
        static GRID: &[(f64, f64)] = &[(-1.0, 0.2), (0.0, 1.0), (0.5, 1.5), (1.0, -0.5)];
    }
    traced {
        fn interpolate(t: Var) -> Var {
            match GRID.iter().position(|&(at, _)| t < at) {
                None => Var::from(GRID[GRID.len() - 1].1),
                Some(0) => Var::from(GRID[0].1),
                Some(i) => {
                    let ((a, u), (b, v)) = (GRID[i - 1], GRID[i]);
                    let w = (t - a) / (b - a);
                    w * v + (1.0 - w) * u
                }
            }
        }
        fn bilinear(s: Var, t: Var) -> Var {
            let cell = GRID.windows(2).find(|pair| s >= pair[0].0 && s < pair[1].0);
            if let Some(&[(a, _), (b, v)]) = cell {
                interpolate(t) * ((s - a) / (b - a)) + v
            } else {
                interpolate(t)
            }
        }
        pub fn run(x: &[Var]) -> Var {
            bilinear(x[0], x[1]) * x[0]
        }
    }
    monte_carlo_path: inputs(3),
    plain {
        struct Generator(u64);
    }
    traced {
        impl Generator {
            fn next(&mut self) -> f64 {
                self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (self.0 >> 11) as f64 / (1u64 << 53) as f64
            }
        }
        fn path(generator: &mut Generator, spot: Var, vol: Var, barrier: Var) -> Option<Var> {
            let mut s = spot;
            for _ in 0..3 {
                s *= (vol * (generator.next() - 0.5)).exp();
                if s > barrier {
                    return None;
                }
            }
            Some(s)
        }
        pub fn run(x: &[Var]) -> Var {
            let mut generator = Generator(7);
            let mut total = Var::from(0.0);
            let mut alive = 0;
            for _ in 0..4 {
                if let Some(s) = path(&mut generator, x[0].abs() + 0.5, x[1], x[2].abs() + 1.0) {
                    total += (s - 1.0).max(Var::from(0.0));
                    alive += 1;
                }
            }
            if alive == 0 { x[2] } else { total / alive as f64 }
        }
    }
    levenberg_step: inputs(4),
    plain {
        #[derive(Clone, Debug, Default, Carry)]
        struct Fit {
            a: Var,
            b: Var,
            damping: f64,
            rounds: usize,
        }
    }
    traced {
        fn residuals(fit: &Fit, data: &[(f64, Var)]) -> Var {
            data.iter().map(|&(t, y)| { let r = fit.a * (fit.b * t).exp() - y; r * r }).sum()
        }
        fn improve(fit: Fit, data: &[(f64, Var)]) -> Fit {
            let old = residuals(&fit, data);
            let mut gradient = (Var::from(0.0), Var::from(0.0));
            for &(t, y) in data {
                let e = (fit.b * t).exp();
                let r = fit.a * e - y;
                gradient.0 += r * e;
                gradient.1 += r * e * fit.a * t;
            }
            let trial = Fit {
                a: fit.a - gradient.0 * fit.damping,
                b: fit.b - gradient.1 * fit.damping,
                ..fit
            };
            if residuals(&trial, data) < old {
                Fit { damping: fit.damping * 1.5, rounds: fit.rounds + 1, ..trial }
            } else {
                Fit { damping: fit.damping * 0.25, ..fit }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let data = [(0.0, x[0]), (0.5, x[1]), (1.0, x[2])];
            let mut fit = Fit { a: x[3], damping: 0.1, ..Fit::default() };
            while fit.rounds < 2 && fit.damping > 0.01 {
                fit = improve(fit, &data);
            }
            fit.a + fit.b
        }
    }
}
