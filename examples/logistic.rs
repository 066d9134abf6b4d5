//! Tells malignant from benign samples of breast tissue by logistic regression.
//!
//! The recorded function is the loss over all rows for training, written as
//! ordinary Rust; gradient descent on it finds the weights. The function is hot
//! after some hundred steps: from then on a kernel serves, and nothing in the
//! code says so.
//!
//! Run it with `cargo run --release --example logistic`.

mod support;

use std::error::Error;
use std::iter::Sum;
use std::ops::{Add, Mul};

use phigrad::{Purpose, Tape, Var};

use support::{print_times, read_rows, standardise, time_of};

const DATA: &str = include_str!("../data/breast_cancer.csv");

/// Explaining columns; the column after them is the class, 1 for benign.
const COLUMNS: usize = 30;
/// A weight for each column, then the intercept.
const WEIGHTS: usize = COLUMNS + 1;
/// The first rows are for training, the others are held out.
const TRAINING: usize = 400;

/// The penalty on the squares of the weights (not of the intercept).
const RIDGE: f64 = 0.001;
const RATE: f64 = 0.5;
const STEPS: usize = 2000;

/// A sample: the explaining columns, then the class.
type Row = [f64; COLUMNS + 1];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows: Vec<Row> = read_rows(DATA)?;
    for column in 0..COLUMNS {
        standardise(&mut rows, column, TRAINING);
    }
    let (training, held_out) = rows.split_at(TRAINING);

    // The rows are captured: they are constants of the kernel.
    let loss = |weights: &[Var]| loss(weights, training);
    let f = Tape::record(loss);

    println!(" step        loss    gradient  right on held-out rows");
    let mut weights = [0.0; WEIGHTS];
    let mut gradient = [0.0; WEIGHTS];
    for step in 0..=STEPS {
        let value = f.value_and_grad_into(&weights, &mut gradient)?;
        if step % 200 == 0 {
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            println!("{step:5} {value:11.8} {norm:11.2e} {:11.4}", accuracy(&weights, held_out));
        }
        for (weight, slope) in weights.iter_mut().zip(gradient) {
            *weight -= RATE * slope;
        }
    }

    let right = accuracy(&weights, held_out);
    let guess = held_out.iter().filter(|row| row[COLUMNS] == 1.0).count();
    let guess = guess as f64 / held_out.len() as f64;
    println!(
        "right on {:.1} % of the held-out rows; always saying benign: {:.1} %",
        100.0 * right,
        100.0 * guess
    );
    if right <= guess {
        return Err("the fit is no better than always saying benign".into());
    }

    f.value_and_grad_into(&weights, &mut gradient)?;
    let by_hand = gradient_by_hand(&weights, training);
    let difference = gradient.iter().zip(by_hand).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("largest difference from the gradient by hand: {difference:.1e}");
    if difference > 1e-12 {
        return Err("the gradient is not the one derived by hand".into());
    }

    // The kernel was made in the background; the measurement must not begin
    // before it is there.
    f.compile()?;
    let on_tape = Tape::builder().hot_threshold(u32::MAX).record(loss);
    let tape = time_of(|| on_tape.value_and_grad_into(&weights, &mut gradient).map(drop))?;
    let kernel = time_of(|| f.value_and_grad_into(&weights, &mut gradient).map(drop))?;
    println!();
    print_times(tape, kernel, &f.report(), Purpose::ValueAndGradient);
    println!("\n{}", f.report());
    Ok(())
}

/// The mean logistic loss over `rows`, and the ridge.
fn loss(weights: &[Var], rows: &[Row]) -> Var {
    let losses: Var = rows
        .iter()
        .map(|row| {
            // How far the score is on the wrong side. It stays far below 709,
            // where the exponential overflows. The usual cure, taking out
            // max(wrong, 0) and |wrong|, would be worse here: both have the
            // subgradient 0 at 0, and the descent would not leave its start.
            let wrong = score(weights, row) * -sign(row);
            wrong.exp().ln_1p()
        })
        .sum();
    let squares: Var = weights[..COLUMNS].iter().map(|weight| weight * weight).sum();
    losses / rows.len() as f64 + RIDGE * squares
}

/// The score of one row, positive for benign. Of traced weights it is traced,
/// of numbers it is a number.
fn score<T: Copy + Add<Output = T> + Mul<f64, Output = T> + Sum>(weights: &[T], row: &Row) -> T {
    let (slopes, intercept) = (&weights[..COLUMNS], weights[COLUMNS]);
    intercept + slopes.iter().zip(row).map(|(&slope, &x)| slope * x).sum()
}

/// The class of one row as a sign: 1 for benign, -1 for malignant.
fn sign(row: &Row) -> f64 {
    2.0 * row[COLUMNS] - 1.0
}

/// The share of `rows` whose score has the right sign.
fn accuracy(weights: &[f64], rows: &[Row]) -> f64 {
    let right = rows.iter().filter(|row| score(weights, row) * sign(row) > 0.0).count();
    right as f64 / rows.len() as f64
}

/// The gradient of [`loss`], derived on paper.
fn gradient_by_hand(weights: &[f64], rows: &[Row]) -> [f64; WEIGHTS] {
    let mut gradient = [0.0; WEIGHTS];
    for row in rows {
        let wrong = score(weights, row) * -sign(row);
        let slope = -sign(row) / (1.0 + (-wrong).exp()) / rows.len() as f64;
        for (sum, x) in gradient.iter_mut().zip(&row[..COLUMNS]) {
            *sum += slope * x;
        }
        gradient[COLUMNS] += slope;
    }
    for (sum, weight) in gradient.iter_mut().zip(&weights[..COLUMNS]) {
        *sum += 2.0 * RIDGE * weight;
    }
    gradient
}
