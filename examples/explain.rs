//! Shows what the library makes of four programs: their loops in closed form, the
//! rules that led there, and the formulas of their gradients.
//!
//! The first three are the worked examples of the paper: branches whose factors
//! cancel, a loop that adds up, and gradient descent, whose inner loop over the
//! data leaves the outer one. The fourth differentiates the whole of such a
//! descent by its learning rate. All data are made up.
//!
//! Run it with `cargo run --release --example explain`; with `latex` or `dot` as
//! an argument it writes for those.

use std::error::Error;

use phigrad::{Explanation, Var, traced};

/// So many numbers are fitted.
const DATA: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let form = std::env::args().nth(1).unwrap_or_default();
    let (x, y) = data();

    let f = phigrad::Tape::record_with(branches);
    for (p, side) in [(0.3, 1.0), (-1.3, 1.0), (0.3, -1.0)] {
        f.grad(&[p, 0.7, 1.1], &[side])?;
    }
    show("(I) branches", &f.explain()?, &form);

    let f = phigrad::Tape::record(additions);
    f.grad(&[0.5, 0.25])?;
    show("(II) additions", &f.explain()?, &form);

    let f = phigrad::Tape::record(|w: &[Var]| descent(w[0], Var::from(0.05), &x, &y));
    f.grad(&[0.1])?;
    show("(III) gradient descent, by where it starts", &f.explain()?, &form);

    let f = phigrad::Tape::record(|rate: &[Var]| descent(Var::from(0.0), rate[0], &x, &y));
    f.grad(&[0.05])?;
    show("(IV) gradient descent, by its rate", &f.explain()?, &form);
    Ok(())
}

fn show(title: &str, explanation: &Explanation, form: &str) {
    match form {
        "latex" => println!("\\section*{{{title}}}\n{}", explanation.latex()),
        "dot" => println!("{}{}", explanation.dot_before(), explanation.dot_after()),
        _ => println!("== {title}\n{explanation}"),
    }
}

/// Numbers near a line through the origin.
fn data() -> (Vec<f64>, Vec<f64>) {
    let x: Vec<f64> = (0..DATA).map(|i| (0.7 * i as f64).sin()).collect();
    let y = x.iter().enumerate().map(|(i, x)| 0.7 * x + 0.1 * ((i * i) as f64).cos()).collect();
    (x, y)
}

/// A choice of three, times a factor that two of them can cancel.
#[traced]
fn branches(x: &[Var], side: &[Var]) -> Var {
    let (p, q) = (x[0], x[1]);
    let y = p + q * x[2];
    let mut z = Var::from(0.0);
    if side[0] > 0.0 {
        if y > 0.0 {
            z = y.powf(1.5) / y;
        } else {
            z = (y.exp() + 1.0).ln();
        }
    } else {
        z = q * y;
    }
    z * (y.exp() + 1.0)
}

/// The second input, a hundred times, on top of the first.
#[traced]
fn additions(x: &[Var]) -> Var {
    let mut sum = x[0];
    for _ in 0..100 {
        sum += x[1];
    }
    sum
}

/// The error of a fit by gradient descent from `w`.
#[traced]
fn descent(mut w: Var, rate: Var, x: &[f64], y: &[f64]) -> Var {
    let n = x.len() as f64;
    let mut iteration = 0;
    while iteration < 40 {
        let mut slope = Var::from(0.0);
        for (&x, &y) in x.iter().zip(y) {
            slope += (w * x - y) * x;
        }
        slope *= 2.0 / n;
        if slope.abs() < 1e-4 {
            break;
        } else {
            w -= rate * slope;
        }
        iteration += 1;
    }
    let mut error = Var::from(0.0);
    for (&x, &y) in x.iter().zip(y) {
        let residual = y - w * x;
        error += residual * residual;
    }
    error / n
}
