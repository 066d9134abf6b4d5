//! `choices`: what the cost model chooses for short loops, against the alternatives.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use phigrad::internals::{LoopForm, Tuning};
use phigrad::{Recorded, Tape, Var};
use serde::Serialize;

use crate::cli::ChoicesArgs;
use crate::compiled::failed;
use crate::error::Error;
use crate::json::JsonFile;
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave};

const PLAN: Plan = Plan { rounds: 25, sample: Duration::from_millis(1), fresh: 1 };
/// The trip counts.
const TRIPS: [usize; 15] = [2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64];

/// A loop of a few steps.
struct Short {
    name: &'static str,
    at: &'static [f64],
    run: fn(&[Var], usize) -> Var,
}

const LOOPS: [Short; 6] = [
    Short {
        name: "x ← a·x + b",
        at: &[0.3, 0.97, 0.01],
        run: |x, trips| (0..trips).fold(x[0], |y, _| y * x[1] + x[2]),
    },
    Short {
        name: "sum over data",
        at: &[0.7],
        run: |x, trips| {
            let term = |i: usize| {
                let residual = x[0] * ((i * 37 % 101) as f64 * 0.02) - (i * 13 % 7) as f64 * 0.3;
                residual * residual
            };
            (0..trips).map(term).sum()
        },
    },
    Short {
        name: "line through data",
        at: &[0.7, 0.2],
        run: |x, trips| {
            let term = |i: usize| {
                let at = (i * 37 % 101) as f64 * 0.02 - 1.0;
                let residual = x[0] * at + x[1] - (i * 13 % 7) as f64 * 0.3;
                residual * residual
            };
            (0..trips).map(term).sum()
        },
    },
    Short {
        name: "spring",
        at: &[1.0, 0.1, 2.0, 0.3],
        run: |x, trips| {
            let (mut place, mut speed) = (x[0], x[1]);
            for _ in 0..trips {
                speed -= (place * x[2] + speed * x[3]) * 0.01;
                place += speed * 0.01;
            }
            place
        },
    },
    Short {
        name: "scalar product",
        at: &[0.3; 64],
        run: |x, trips| (0..trips).map(|i| x[i] * ((i * 37 % 101) as f64 * 0.02 - 1.0)).sum(),
    },
    Short {
        name: "scalar products",
        at: &[0.3; 64],
        run: |x, trips| {
            let score = |row: usize| -> Var {
                (0..trips).map(|i| x[i] * (((i + row) * 37 % 101) as f64 * 0.02 - 1.0)).sum()
            };
            (0..100).map(|row| score(row).sin()).sum()
        },
    },
];

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    trips: usize,
    chosen_ns: f64,
    closed_ns: f64,
    rolled_ns: f64,
    unrolled_ns: f64,
    over_best: f64,
}

/// Measures all loops in all forms.
pub fn choices(args: &ChoicesArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let bar = progress::bar((LOOPS.len() * TRIPS.len()) as u64);
    let mut rows = Vec::new();
    for short in &LOOPS {
        bar.set_message(short.name);
        for trips in TRIPS {
            rows.push(measure(short, trips)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

fn compiled(
    short: &Short,
    trips: usize,
    form: Option<LoopForm>,
) -> Result<Recorded<impl Fn(&[Var]) -> Var + use<>>, Error> {
    let run = short.run;
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
    let builder = match form {
        Some(form) => builder.tuning(Tuning::with_loops(form)),
        None => builder,
    };
    let recorded = builder.record(move |x: &[Var]| run(x, trips));
    recorded.grad(short.at).map_err(failed(short.name, "run the tape"))?;
    recorded.compile().map_err(failed(short.name, "compile"))?;
    Ok(recorded)
}

fn measure(short: &Short, trips: usize) -> Result<Row, Error> {
    use LoopForm::{Closed, Rolled, Unrolled};
    let kernels =
        [None, Some(Closed), Some(Rolled), Some(Unrolled)].map(|form| compiled(short, trips, form));
    let [chosen, closed, rolled, unrolled] = kernels;
    let kernels = [chosen?, closed?, rolled?, unrolled?];
    let mut gradients = [(); 4].map(|()| vec![0.0; short.at.len()]);
    let mut contenders: Vec<Contender<'_>> = kernels
        .iter()
        .zip(&mut gradients)
        .map(|(kernel, gradient)| {
            Contender::new(short.at, move |x| kernel.grad_into(x, black_box(&mut gradient[..])))
        })
        .collect();
    let mut all: Vec<&mut Contender<'_>> = contenders.iter_mut().collect();
    interleave(&mut all, &PLAN, &|| ()).map_err(failed(short.name, "run while measured"))?;
    let best: Vec<f64> = contenders.iter().map(Contender::best_ns).collect();
    let alternative = best[1..].iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Row {
        name: short.name,
        trips,
        chosen_ns: best[0],
        closed_ns: best[1],
        rolled_ns: best[2],
        unrolled_ns: best[3],
        over_best: best[0] / alternative,
    })
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = ["loop", "trips", "chosen", "closed", "rolled", "unrolled", "chosen / best"];
    let cells = |row: &Row| {
        vec![
            row.name.to_owned(),
            row.trips.to_string(),
            time(row.chosen_ns),
            time(row.closed_ns),
            time(row.rolled_ns),
            time(row.unrolled_ns),
            number(row.over_best),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
