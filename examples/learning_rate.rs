//! Finds the learning rate of a gradient descent by gradient descent on the rate.
//!
//! The recorded function is a whole training run, written as ordinary Rust: a
//! linear regression that takes forty steps on small batches of the data, and
//! returns the loss on rows that it was not trained on. Its derivative with
//! respect to the learning rate (a hyper-gradient) goes through all the steps.
//!
//! Run it with `cargo run --release --example learning_rate`.

mod support;

use std::error::Error;

use phigrad::{Purpose, Tape, Var};

use support::{print_times, read_rows, standardise, time_of};

const DATA: &str = include_str!("../data/diabetes.csv");

/// Explaining columns; the column after them is to be explained.
const COLUMNS: usize = 10;
/// The first rows are for training, the others for validation.
const TRAINING: usize = 320;
const STEPS: usize = 40;
const BATCH: usize = 64;

/// The start of the search, far too careful.
const FIRST_RATE: f64 = 0.001;
const SEARCH_STEPS: usize = 40;

/// A patient: the explaining columns, then the one to be explained.
type Row = [f64; COLUMNS + 1];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows: Vec<Row> = read_rows(DATA)?;
    for column in 0..=COLUMNS {
        standardise(&mut rows, column, TRAINING);
    }
    let (training, validation) = rows.split_at(TRAINING);

    // The rows are captured: they are constants of the kernel. The input is the
    // logarithm of the rate, because rates differ by factors.
    let loss = |x: &[Var]| loss_after_training(x[0].exp(), training, validation);
    let f = Tape::record(loss);

    println!(" step        rate        loss  derivative");
    let mut log_rate = FIRST_RATE.ln();
    for step in 0..=SEARCH_STEPS {
        let (value, gradient) = f.value_and_grad(&[log_rate])?;
        if step == 0 {
            // By itself a function is compiled after several hundred calls; this
            // search has fewer, and the measurement below wants a kernel.
            f.compile()?;
        }
        if step % 4 == 0 {
            println!("{step:5} {:11.6} {value:11.8} {:11.2e}", log_rate.exp(), gradient[0]);
        }
        // The loss explodes where training is unstable, so long steps are cut.
        log_rate -= (4.0 * gradient[0]).clamp(-0.5, 0.5);
    }
    let found = f.eval(&[log_rate])?;

    // The same by brute force: 400 rates from 0.001 to 1.
    let mut best = (f64::INFINITY, 0.0);
    for i in 0..=400 {
        let log_rate = (0.001f64).ln() * (1.0 - f64::from(i) / 400.0);
        let value = f.eval(&[log_rate])?;
        if value < best.0 {
            best = (value, log_rate.exp());
        }
    }
    println!("descent found rate {:.6} with loss {found:.8}", log_rate.exp());
    println!("a scan's best is   {:.6} with loss {:.8}", best.1, best.0);
    if found > best.0 {
        return Err("the search ended at a worse rate than the scan".into());
    }

    let on_tape = Tape::builder().hot_threshold(u32::MAX).record(loss);
    let tape = time_of(|| on_tape.value_and_grad(&[log_rate]).map(drop))?;
    let kernel = time_of(|| f.value_and_grad(&[log_rate]).map(drop))?;
    println!();
    print_times(tape, kernel, &f.report(), Purpose::ValueAndGradient);
    println!("\n{}", f.report());
    Ok(())
}

/// The loss on `validation` after [`STEPS`] steps of gradient descent with `rate`.
fn loss_after_training(rate: Var, training: &[Row], validation: &[Row]) -> Var {
    let mut weights = [Var::default(); COLUMNS];
    let mut rows = training.iter().cycle();
    for _ in 0..STEPS {
        let mut gradient = [Var::default(); COLUMNS];
        for row in rows.by_ref().take(BATCH) {
            let error = error(&weights, row);
            for (sum, x) in gradient.iter_mut().zip(row) {
                *sum += error * x;
            }
        }
        for (weight, sum) in weights.iter_mut().zip(gradient) {
            *weight -= rate * sum * (2.0 / BATCH as f64);
        }
    }
    let squares: Var = validation.iter().map(|row| error(&weights, row).powi(2)).sum();
    squares / validation.len() as f64
}

/// Prediction minus truth for one row.
fn error(weights: &[Var; COLUMNS], row: &Row) -> Var {
    let prediction: Var = weights.iter().zip(row).map(|(weight, x)| weight * x).sum();
    prediction - row[COLUMNS]
}
