//! Programs with several outputs, small and of many kinds: those over any numbers have a reference
//! in double-double.

use phigrad::{Var, traced};

use super::functions::Real;
use super::numbers::Dual;

/// A program over dual numbers.
pub type Reference = fn(&[Dual]) -> Vec<Dual>;

/// A program of four inputs.
#[derive(Clone, Copy)]
pub struct VectorProgram {
    pub name: &'static str,
    pub run: fn(&[Var]) -> Vec<Var>,
    /// The same over dual numbers in double-double, where there is no branch.
    pub reference: Option<Reference>,
    /// The interval that its inputs are from.
    pub domain: (f64, f64),
}

macro_rules! generic {
    ($($name:ident in $low:literal $high:literal: |$x:ident| $outputs:expr;)*) => {
        $(fn $name<R: Real>($x: &[R]) -> Vec<R> {
            $outputs
        })*

        const GENERIC: &[VectorProgram] = &[$(VectorProgram {
            name: stringify!($name),
            run: $name,
            reference: Some($name),
            domain: ($low, $high),
        }),*];
    };
}

/// A number.
fn c<R: Real>(value: f64) -> R {
    R::from(value)
}

fn sum<R: Real>(terms: impl Iterator<Item = R>) -> R {
    terms.fold(c(0.0), |sum, term| sum + term)
}

generic! {
    identity in -1.0 1.0: |x| x.to_vec();
    swapped in -1.0 1.0: |x| vec![x[3], x[1], x[0], x[2], x[0]];
    constants in -1.0 1.0: |x| vec![c(1.5), x[0], c(0.0)];
    linear in -1.0 1.0: |x| vec![x[0] + c::<R>(2.0) * x[1] - x[3], x[2] - x[1], -x[0]];
    bilinear in -1.0 1.0: |x| vec![x[0] * x[1], x[1] * x[2], x[2] * x[3], x[3] * x[0]];
    product in -1.0 1.0: |x| vec![x[0] * x[1] * x[2] * x[3]];
    squares in -1.0 1.0: |x| x.iter().map(|&x| x * x).collect();
    cubic in -1.0 1.0: |x| vec![x[0].powi(3) + x[1].powi(2) * x[2], x[3].powi(4)];
    rational in 0.5 2.0: |x| vec![x[0] / (x[1] + x[2]), c::<R>(1.0) / x[3], (x[0] - x[1]) / x[2]];
    inverse_powers in 0.5 2.0: |x| vec![x[0].powi(-2) * x[1], x[2].powi(-1) + x[3].powi(-3)];
    roots in 0.5 2.0: |x| vec![x[0].sqrt() * x[1], (x[2] * x[3]).sqrt()];
    exponentials in -1.0 1.0: |x| vec![(x[0] * x[1]).exp(), x[2].exp_m1() * x[3], (-x[0]).exp()];
    logarithms in 0.5 2.0: |x| vec![(x[0] * x[1]).ln(), x[2].ln_1p() / x[3]];
    waves in -1.0 1.0: |x| vec![x[0].sin() * x[1].cos(), (x[2] * x[3]).sin(), (x[0] + x[3]).cos()];
    hyperbolic in -1.0 1.0: |x| vec![(x[0] + x[1]).tanh(), x[2].tanh() * x[3]];
    powers in 0.5 2.0: |x| vec![x[0].powf(1.5) * x[1], (x[2] + x[3]).powf(-0.75)];
    rosenbrock in -1.0 1.0: |x| {
        vec![sum(x.windows(2).map(|w| {
            (c::<R>(1.0) - w[0]).powi(2) + c::<R>(100.0) * (w[1] - w[0] * w[0]).powi(2)
        }))]
    };
    residuals in -1.0 1.0: |x| {
        (0..12).map(|i| {
            let t = c::<R>(f64::from(i) * 0.25);
            x[0] * (x[1] * t).exp() + x[2] * t + x[3] - t * t
        }).collect()
    };
    polar in 0.5 2.0: |x| vec![x[0] * x[1].cos(), x[0] * x[1].sin(), x[2] * x[3]];
    arm in -1.0 1.0: |x| {
        let (mut angle, mut at, mut joints) = (c::<R>(0.0), (c::<R>(0.0), c::<R>(0.0)), vec![]);
        for &turn in x {
            angle = angle + turn;
            at = (at.0 + angle.cos(), at.1 + angle.sin());
            joints.extend([at.0, at.1]);
        }
        joints
    };
    two_bodies in 0.5 2.0: |x| {
        let distance = (x[0] * x[0] + x[1] * x[1]).sqrt();
        let cubed = distance * distance * distance;
        vec![x[2], x[3], -x[0] / cubed, -x[1] / cubed]
    };
    spring in -1.0 1.0: |x| {
        let mut state = (x[0], x[1]);
        for _ in 0..20 {
            let force = -x[2] * state.0 - c::<R>(0.1) * state.1;
            state = (state.0 + c::<R>(0.05) * state.1, state.1 + c::<R>(0.05) * force);
        }
        vec![state.0, state.1]
    };
    loan in 0.01 0.5: |x| vec![(0..200).fold(x[0], |due, _| due * (c::<R>(1.0) + c::<R>(0.01) * x[1]) - c::<R>(0.001) * x[2])];
    geometric in 0.1 0.9: |x| vec![(0..100).fold(c::<R>(0.0), |s, _| s * x[0] + x[1]), x[2] * x[3]];
    coupled in -0.5 0.5: |x| {
        let mut s = (x[0], x[1]);
        for _ in 0..64 {
            s = (c::<R>(0.9) * s.0 + c::<R>(0.1) * x[2] * s.1, c::<R>(0.8) * s.1 + x[3]);
        }
        vec![s.0, s.1]
    };
    data_sum in -1.0 1.0: |x| {
        let at = |i: i32| c::<R>((f64::from(i) * 0.7).sin());
        vec![
            sum((0..100).map(|i| (x[0] * at(i) + x[1] - at(i + 3)).powi(2))),
            sum((0..100).map(|i| x[2] * at(i) * x[3])),
        ]
    };
    exponential_sum in -1.0 1.0: |x| {
        vec![sum((0..64).map(|i| (x[0] * c::<R>((f64::from(i)).cos())).exp())) * x[1], x[2] - x[3]]
    };
    horner in -1.0 1.0: |x| vec![(0..30).fold(c::<R>(0.0), |y, k| y * x[0] + x[(k % 3) + 1])];
    newton in 0.5 2.0: |x| {
        vec![(0..6).fold(x[1], |y, _| c::<R>(0.5) * (y + x[0] / y)), x[2] * x[3]]
    };
    pendulum in -1.0 1.0: |x| {
        let mut s = (x[0], x[1]);
        for _ in 0..40 {
            let speed = s.1 - c::<R>(0.05) * x[2] * s.0.sin();
            s = (s.0 + c::<R>(0.05) * speed, speed);
        }
        vec![s.0, s.1 * x[3]]
    };
    network in -1.0 1.0: |x| {
        let hidden: Vec<R> = (0..5).map(|j| {
            let weight = |i: i32| c::<R>((f64::from(3 * j + i)).sin());
            (0..4).fold(c::<R>(0.1), |s, i| s + weight(i) * x[i as usize]).tanh()
        }).collect();
        (0..3).map(|k| sum(hidden.iter().enumerate().map(|(j, &h)| h * c::<R>((j + k) as f64 * 0.3)))).collect()
    };
    softmax in -1.0 1.0: |x| {
        let all = sum(x.iter().map(|x| x.exp()));
        x.iter().map(|x| x.exp() / all).collect()
    };
    matrix_product in -1.0 1.0: |x| {
        let (a, b) = ([[x[0], x[1]], [x[2], x[3]]], [[x[3], x[0]], [x[1], x[2]]]);
        let entry = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j];
        vec![entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)]
    };
    determinant in -1.0 1.0: |x| vec![x[0] * x[3] - x[1] * x[2], x[0] + x[3]];
    linear_solve in 0.5 2.0: |x| {
        let (a, d) = (x[0] + c(3.0), x[3] + c(4.0));
        let det = a * d - x[1] * x[2];
        vec![(d - x[1]) / det, (a - x[2]) / det]
    };
    cholesky in 0.5 2.0: |x| {
        let (a, b, d) = (x[0] + c(2.0), x[1], x[2] + c(3.0));
        let l00 = a.sqrt();
        let l10 = b / l00;
        vec![l00, l10, (d - l10 * l10).sqrt() * x[3]]
    };
    heat in -1.0 1.0: |x| {
        let mut u: Vec<R> = (0..10).map(|i| x[i % 4] * c((i as f64).cos())).collect();
        for _ in 0..8 {
            let old = u.clone();
            for i in 1..9 {
                u[i] = old[i] + x[0] * c(0.1) * (old[i + 1] - c::<R>(2.0) * old[i] + old[i - 1]);
            }
        }
        u
    };
    neighbours in -1.0 1.0: |x| (0..40).map(|i| (x[i % 4] - x[(i + 1) % 4]).powi(2) * c(i as f64)).collect();
    moments in 0.5 2.0: |x| {
        let mean = sum(x.iter().copied()) / c(4.0);
        let variance = sum(x.iter().map(|&x| (x - mean).powi(2)));
        vec![mean, variance, (variance + c(0.1)).sqrt()]
    };
    nested_loops in -1.0 1.0: |x| {
        vec![(0..6).fold(x[0], |y, k| {
            let inner = (0..5).fold(x[1], |z, j| z * x[2] + c(f64::from(k * j)));
            y * c(0.5) + inner * x[3]
        })]
    };
}

macro_rules! branching {
    ($($name:ident in $low:literal $high:literal: |$x:ident| $outputs:expr;)*) => {
        $(#[traced]
        fn $name($x: &[Var]) -> Vec<Var> {
            $outputs
        })*

        const BRANCHING: &[VectorProgram] = &[$(VectorProgram {
            name: stringify!($name),
            run: $name,
            reference: None,
            domain: ($low, $high),
        }),*];
    };
}

branching! {
    relu in -1.0 1.0: |x| x.iter().map(|&x| if x > 0.0 { x * x } else { 0.1 * x }).collect();
    huber in -1.0 1.0: |x| {
        let loss = |e: Var| if e.abs() < 0.5 { 0.5 * e * e } else { 0.5 * (e.abs() - 0.25) };
        vec![loss(x[0] - x[1]), loss(x[2] * x[3]), loss(x[0])]
    };
    clamped in -1.0 1.0: |x| {
        let mut outputs = Vec::new();
        for i in 0..4 {
            let y = x[i] * x[(i + 1) % 4] * 3.0;
            outputs.push(if y > 1.0 { 1.0 + 0.1 * y } else if y < -1.0 { y - 2.0 } else { y.sin() });
        }
        outputs
    };
    two_phases in -1.0 1.0: |x| {
        let (mut y, mut fuel) = (x[0], 1.0 + x[1] * x[1]);
        for _ in 0..20 {
            if fuel > 0.5 {
                y += x[2] * 0.1;
                fuel -= 0.05 + 0.05 * x[3] * x[3];
            } else {
                y -= 0.1 * y;
            }
        }
        vec![y, fuel]
    };
    bounce in -1.0 1.0: |x| {
        let (mut height, mut speed) = (1.0 + x[0] * 0.1, x[1]);
        for _ in 0..30 {
            speed -= 0.05 * (9.0 + x[2]);
            height += 0.05 * speed;
            if height < 0.0 {
                height = -height;
                speed = -0.8 * speed;
            }
        }
        vec![height, speed * x[3]]
    };
    root_finding in 0.5 2.0: |x| {
        let mut y = 1.0 + x[1] * x[1];
        while (y * y * y - x[0] - 2.0).abs() > 1e-9 {
            y -= (y * y * y - x[0] - 2.0) / (3.0 * y * y);
        }
        vec![y * x[2], x[3]]
    };
    early_exit in -1.0 1.0: |x| {
        let mut y = x[0];
        for k in 0..40 {
            y = y * 1.2 + 0.1 + x[1] * x[1];
            if y > 5.0 {
                y += f64::from(k) * x[2];
                break;
            }
        }
        vec![y, x[3] * y]
    };
    sorted in -1.0 1.0: |x| {
        let mut y = x.to_vec();
        Var::sort(&mut y);
        y.iter().zip(1..).map(|(&y, k)| y * y * f64::from(k)).collect()
    };
    chosen in -1.0 1.0: |x| {
        let mut state = 0;
        let mut sum = Var::from(0.0);
        for i in 0..8 {
            state = if x[i % 4] > 0.1 { (state + 1) % 3 } else { 0 };
            sum += x[(i + 1) % 4] * f64::from(state + 1);
        }
        vec![sum * sum, sum]
    };
    selected in -1.0 1.0: |x| {
        vec![Var::select(x[0].less_than(x[1]), x[2].sin(), x[3].exp()), x[0].max(x[1]), x[2].min(x[3])]
    };
    simplex in -1.0 1.0: |x| {
        let largest = x.iter().fold(x[0], |most, &x| if x > most { x } else { most });
        let all = x.iter().map(|&x| (x - largest).exp()).sum::<Var>();
        vec![largest + all.ln(), all]
    };
    angles in 0.5 2.0: |x| vec![x[0].atan2(x[1]), x[2].hypot(x[3]), (x[0] / 3.0).asin(), x[1].atan()];
    rounded in -1.0 1.0: |x| vec![(x[0] * 3.0).floor() * x[1], x[2].abs() * x[3], x[0].copysign(x[1])];
    hyperbolic_inverses in 0.5 2.0: |x| vec![x[0].asinh() * x[1], (x[1] + 1.0).acosh(), (x[2] * 0.3).atanh(), x[3].sinh() * x[0].cosh()];
    error_functions in -1.0 1.0: |x| vec![x[0].erf() * x[1], (x[2] * x[3]).erfc()];
    gamma_functions in 0.5 2.0: |x| vec![x[0].ln_gamma() * x[1], x[2].ln_gamma() - x[3]];
    logs_of_bases in 0.5 2.0: |x| vec![x[0].log2() * x[1], x[2].log10(), x[3].exp2(), x[0].cbrt()];
    powers_of_variables in 0.5 2.0: |x| vec![x[0].powf(x[1]), (x[2] * x[3]).powf(x[0] - 1.0)];
    remainders in 0.5 2.0: |x| vec![x[0] % 0.7 * x[1], x[2] - (x[2] * 2.0).fract() * x[3]];
    fused in -1.0 1.0: |x| vec![x[0].mul_add(x[1], x[2]), x[3].mul_add(x[3], x[0] * x[1])];
    tangents in -1.0 1.0: |x| vec![x[0].tan() * x[1], (x[2] * 0.5).acos() + x[3]];
    probabilities in -1.0 1.0: |x| vec![x[0].normal_cdf() * x[1], x[2].sigmoid(), (x[3] * x[0]).softplus(), x[1].log_add_exp(x[2])];
    quantiles in 0.1 0.9: |x| vec![x[0].normal_quantile() * x[1], x[2].logit(), x[3].erf_inv() - x[0]];
    bessel_functions in 0.5 2.0: |x| vec![x[0].bessel_j(0) * x[1], x[2].bessel_j(3), x[3].bessel_i(1) * x[0]];
    incomplete_gamma in 0.5 2.0: |x| vec![x[0].gamma_p(x[1]), x[2].ln_beta(x[3]), x[1].digamma() * x[2]];
    attached in -1.0 1.0: |x| vec![x[0].with_derivative(x[0].sin(), x[0].cos()) * x[1], x[2].detach() * x[3]];
    slices in -1.0 1.0: |x| {
        let mut outputs = phigrad::linalg::softmax(x);
        outputs.extend([phigrad::linalg::log_sum_exp(x), phigrad::linalg::norm(x), phigrad::linalg::dot(&x[..2], &x[2..])]);
        outputs
    };
    means in -1.0 1.0: |x| vec![Var::median(x), Var::quantile(x, 0.3)];
}

/// All programs.
pub fn vector_programs() -> Vec<VectorProgram> {
    [GENERIC, BRANCHING].concat()
}
