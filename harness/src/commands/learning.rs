//! `learning`: the mean time of a call in windows of 1,000 calls, against an untracked run of the
//! tape on the same inputs. Both take turns, so that noise of the machine hits them alike.

use std::hint::black_box;
use std::io::Write;
use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phigrad::internals::Random;
use phigrad::internals::trace::{Adjoints, Detail, Inputs, Tracer, sweep};
use phigrad::{Report, Tape, Var};
use serde::Serialize;

use crate::cli::LearningArgs;
use crate::compiled::failed;
use crate::error::Error;
use crate::json::JsonFile;
use crate::many_paths;
use crate::progress;
use crate::table::{number, write_table};
use crate::typical::{self, Typical};

/// The number of calls that are timed together.
const BLOCK: usize = 10;
/// The number of blocks in a window.
const WINDOW: usize = 1000 / BLOCK;
/// The number of blocks before the first window.
const FIRST: usize = 100 / BLOCK;
/// The number of times that a program is measured; the median counts. A window of a small program
/// takes a fifth of a millisecond, so one interruption by the system doubles it.
const REPETITIONS: usize = 3;

/// The results for one program; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: &'static str,
    /// The mean time of an untracked run of the tape.
    tape_ns: f64,
    /// The largest mean time of a call in a window, divided by that of an untracked run.
    worst: f64,
    /// The same ratio in the last window.
    last: f64,
    /// The share of calls 1,000 to 2,000 that kernels served.
    kernel_share: f64,
    /// The share in the last window.
    last_kernel_share: f64,
    paths: usize,
    refusals: Vec<String>,
}

/// Measures all programs whose names start as asked.
pub fn learning(args: &LearningArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let is_named = |program: &Typical| match &args.only {
        Some(name) => program.name.to_lowercase().starts_with(&name.to_lowercase()),
        None => true,
    };
    let all = many_paths::programs().into_iter().chain(typical::programs());
    let programs: Vec<Typical> = all.filter(is_named).collect();
    let bar = progress::bar(programs.len() as u64);
    let mut rows = Vec::with_capacity(programs.len());
    for program in programs {
        bar.set_message(program.name);
        rows.push(row(program, args.calls)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    let header =
        ["program", "tape ns", "worst / tape", "last / tape", "kernel %", "last kernel %", "paths"];
    let cells = rows.iter().map(|row| {
        vec![
            row.program.to_owned(),
            number(row.tape_ns),
            format!("{:.2}", row.worst),
            format!("{:.2}", row.last),
            format!("{:.1}", 100.0 * row.kernel_share),
            format!("{:.1}", 100.0 * row.last_kernel_share),
            row.paths.to_string(),
        ]
    });
    write_table(out, &header, &cells.collect::<Vec<_>>())?;
    Ok(())
}

/// The repetition with the median of the largest mean time.
fn row(program: Typical, calls: usize) -> Result<Row, Error> {
    let Typical { name, center, radius, function } = program;
    let function: Arc<typical::Function> = Arc::from(function);
    let measured = |_| measure(name, (&center, radius), Arc::clone(&function), calls);
    let mut rows = (0..REPETITIONS).map(measured).collect::<Result<Vec<Row>, Error>>()?;
    rows.sort_by(|one, other| one.worst.total_cmp(&other.worst));
    Ok(rows.swap_remove(REPETITIONS / 2))
}

fn measure(
    name: &'static str,
    (center, radius): (&[f64], f64),
    function: Arc<typical::Function>,
    calls: usize,
) -> Result<Row, Error> {
    let recorded = {
        let function = Arc::clone(&function);
        Tape::record(move |x: &[Var]| function(x))
    };
    let mut tape = UntrackedTape::default();
    let mut random = Random::new(7);
    let mut point =
        || -> Vec<f64> { center.iter().map(|x| x + radius * random.uniform(-1.0, 1.0)).collect() };
    let mut gradient = vec![0.0; center.len()];
    // The times of calls and of untracked runs.
    let (mut blocks, count) = (Vec::new(), (calls / BLOCK).max(2 * WINDOW));
    // A report shares pending paths, so it is taken where it is needed only.
    let ends = [WINDOW, 2 * WINDOW, count - WINDOW, count];
    let mut served = ends.map(|_| 0);
    for block in 1..=count {
        let points: Vec<Vec<f64>> = (0..BLOCK).map(|_| point()).collect();
        let start = Instant::now();
        for x in &points {
            let result = recorded.grad_into(black_box(x), &mut gradient);
            result.map_err(failed(name, "run"))?;
        }
        let called = start.elapsed();
        let start = Instant::now();
        points.iter().for_each(|x| tape.run(&*function, black_box(x)));
        blocks.push((called, start.elapsed()));
        for (end, served) in ends.iter().zip(&mut served) {
            if *end == block {
                *served = recorded.report().kernel_calls;
            }
        }
    }
    let times = |window: &[(Duration, Duration)]| {
        window.iter().fold((0.0, 0.0), |(calls, runs), block| {
            (calls + block.0.as_secs_f64(), runs + block.1.as_secs_f64())
        })
    };
    let ratio = |window: &[(Duration, Duration)]| {
        let (calls, runs) = times(window);
        calls / runs
    };
    let share = |from: u64, to: u64| (to - from) as f64 / (WINDOW * BLOCK) as f64;
    let worst = blocks[FIRST..].windows(WINDOW).map(ratio).fold(0.0, f64::max);
    let report: Report = recorded.report();
    Ok(Row {
        program: name,
        tape_ns: times(&blocks).1 / (blocks.len() * BLOCK) as f64 * 1e9,
        worst,
        last: ratio(&blocks[count - WINDOW..]),
        kernel_share: share(served[0], served[1]),
        last_kernel_share: share(served[2], served[3]),
        paths: report.paths,
        refusals: report.refusals.iter().map(ToString::to_string).collect(),
    })
}

/// Runs of the tape that are not merged.
#[derive(Default)]
struct UntrackedTape {
    tracer: Tracer,
    adjoints: Adjoints,
}

impl UntrackedTape {
    fn run(&mut self, function: &typical::Function, x: &[f64]) {
        self.tracer.detail(Detail::Untracked);
        let inputs = Inputs { active: x, inactive: &[] };
        let trace = self.tracer.run(|x, _| function(x), inputs, 1 << 24, Location::caller());
        if let Ok(trace) = trace {
            black_box(sweep(&trace, &mut self.adjoints));
        }
    }
}
