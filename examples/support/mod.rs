//! What the examples share: reading a table, standardising it, measuring.

use std::error::Error;
use std::time::{Duration, Instant};

use phigrad::{Purpose, Report};

/// Reads the rows after the header line; each must have `C` numbers.
pub fn read_rows<const C: usize>(text: &str) -> Result<Vec<[f64; C]>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let mut row = [0.0; C];
        let mut cells = line.split(',');
        for number in &mut row {
            let cell = cells.next().ok_or(format!("line {}: too few numbers", index + 1))?;
            *number = cell.trim().parse()?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Shifts and scales `column` so that its first `known` rows have mean 0 and
/// variance 1. The other rows must not have a say: they stand for the future.
pub fn standardise<const C: usize>(rows: &mut [[f64; C]], column: usize, known: usize) {
    let mean = rows[..known].iter().map(|row| row[column]).sum::<f64>() / known as f64;
    let squares = rows[..known].iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>();
    let deviation = (squares / known as f64).sqrt();
    for row in rows {
        row[column] = (row[column] - mean) / deviation;
    }
}

/// The time of one call, averaged over about a tenth of a second.
pub fn time_of<E>(mut call: impl FnMut() -> Result<(), E>) -> Result<Duration, E> {
    let (start, mut calls) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_millis(100) {
        call()?;
        calls += 1;
    }
    Ok(start.elapsed() / calls)
}

/// Prints what a gradient costs on the tape and in the kernel, and after how
/// many calls the kernel has earned the time that it took to compile it.
pub fn print_times(tape: Duration, kernel: Duration, report: &Report, purpose: Purpose) {
    let ratio = tape.as_secs_f64() / kernel.as_secs_f64();
    println!(
        "a gradient takes {tape:.1?} on the tape, {kernel:.1?} in the kernel: {ratio:.1} times"
    );
    if let Some(found) = report.kernels.iter().find(|found| found.purpose == purpose) {
        let compile = found.compile_time;
        let saved = tape.saturating_sub(kernel).as_secs_f64();
        let calls = compile.as_secs_f64() / saved;
        println!("compiling it took {compile:.1?}, which {calls:.0} calls make up for");
    }
}
