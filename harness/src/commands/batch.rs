//! `batch`: gradients of many inputs by one call against as many single calls.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::BatchArgs;
use crate::compiled::{failed, record, require_kernel_calls};
use crate::error::Error;
use crate::json::JsonFile;
use crate::programs::Program;
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave};
use crate::vectors::{self, Case};
use crate::verify::TOLERANCE;

/// The number of elements of a batch.
const ELEMENTS: usize = 10_000;
const PLAN: Plan = Plan { rounds: 51, sample: Duration::from_millis(1), fresh: 1 };

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct BatchRow {
    benchmark: String,
    config: usize,
    inputs: usize,
    /// The shortest time of a single call.
    single_ns: f64,
    /// The shortest time of a batch for each element.
    element_ns: f64,
    ratio: f64,
}

/// Measures all that is selected.
pub fn batch(args: &BatchArgs, out: &mut dyn Write) -> Result<(), Error> {
    let selected = args.selection.resolve()?;
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let cases = vectors::load()?;
    let bar = progress::bar(selected.len() as u64);
    let mut rows = Vec::new();
    for (entry, config) in selected {
        bar.set_message(format!("{} {config}", entry.name));
        rows.push((entry.batch)(vectors::find(&cases, entry.name, config)?)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

/// Measures the program `P` at points near that of the case.
pub fn measure<P: Program>(case: &Case) -> Result<BatchRow, Error> {
    let (subject, length) = (case.subject(), case.input.len());
    let program: P = case.program()?;
    let f = record(move |x| program.objective(x), Default::default());
    let mut xs = Vec::with_capacity(ELEMENTS * length);
    for element in 0..ELEMENTS {
        let factor = 1.0 + 1e-9 * element as f64;
        xs.extend(case.input.iter().map(|x| x * factor));
    }
    let mut expected = vec![0.0; xs.len()];
    let mut gradients = vec![0.0; xs.len()];
    f.grad(&case.input).map_err(failed(&subject, "run the tape"))?;
    f.compile().map_err(failed(&subject, "compile"))?;
    let before = f.report();
    let run = |_: &[f64], gradients: &mut [f64]| {
        f.grad_batch_into(black_box(&xs), ELEMENTS, black_box(gradients)).map_err(From::from)
    };
    let mut single = Contender::new(&[], |_| {
        for (x, gradient) in xs.chunks_exact(length).zip(expected.chunks_exact_mut(length)) {
            f.grad_into(black_box(x), black_box(gradient))?;
        }
        Ok(())
    });
    let mut batch = Contender::new(&[], |x| run(x, &mut gradients));
    let contenders = &mut [&mut single, &mut batch];
    interleave(contenders, &PLAN, &|| ()).map_err(failed(&subject, "run while measured"))?;
    let calls = ELEMENTS as u64 * (single.calls() + batch.calls());
    require_kernel_calls(&subject, calls, &before, &f.report())?;
    let [single_ns, element_ns] = [&single, &batch].map(|one| one.best_ns() / ELEMENTS as f64);
    drop((single, batch));
    // Not bit for bit: the tape repeats some calls, and its results count.
    if deviation(&gradients, &expected) > TOLERANCE {
        return Err(Error::BatchDiffers { subject });
    }
    Ok(BatchRow {
        benchmark: case.benchmark.clone(),
        config: case.config,
        inputs: length,
        single_ns,
        element_ns,
        ratio: single_ns / element_ns,
    })
}

fn write_rows(out: &mut dyn Write, rows: &[BatchRow]) -> Result<(), Error> {
    let header = ["program", "config", "inputs", "single call", "element", "single / element"];
    let cells = |row: &BatchRow| {
        vec![
            row.benchmark.clone(),
            row.config.to_string(),
            row.inputs.to_string(),
            time(row.single_ns),
            time(row.element_ns),
            number(row.ratio),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
