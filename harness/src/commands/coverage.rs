//! `coverage`: which share of calls at perturbed points a kernel knows, after it
//! was taught by a few.

use std::io::Write;
use std::sync::Arc;

use phigrad::{Numerics, Recorded, Var, traced};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::CoverageArgs;
use crate::compiled::{failed, gradient_kernel, record};
use crate::error::Error;
use crate::json::JsonFile;
use crate::programs::{Program, Scalar, cart_pole, hmc, qwop};
use crate::progress;
use crate::straight_line::Random;
use crate::table::{number, write_table};
use crate::vectors;
use crate::verify::TOLERANCE;

/// Calls that teach, all of them on the tape.
const LESSONS: usize = 50;
/// Calls after that.
const CALLS: usize = 1000;
/// So large a share of them should run in the kernel.
const SHARE: f64 = 0.95;
/// Rows of data whose branches flip independently of one another.
const ROWS: usize = 100;

/// What was counted; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: String,
    radius: f64,
    lessons: usize,
    calls: usize,
    kernel_calls: u64,
    /// The same where only calls that the kernel does not know teach it.
    adaptive_kernel_calls: u64,
    paths: usize,
    compile_ns: f64,
    kernel_bytes: usize,
    max_rel_err: f64,
}

type Function = dyn Fn(&[Var]) -> Var + Send + Sync;

/// A program under test, at the point around which it is called.
struct Subject {
    name: String,
    center: Vec<f64>,
    radius: f64,
    function: Arc<Function>,
}

/// Counts for all programs that branch; fails if a kernel knows too little.
pub fn coverage(args: &CoverageArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let subjects = subjects()?;
    let named = |subject: &&Subject| match &args.only {
        Some(name) => subject.name.to_lowercase().starts_with(&name.to_lowercase()),
        None => true,
    };
    let subjects: Vec<&Subject> = subjects.iter().filter(named).collect();
    let bar = progress::bar(subjects.len() as u64);
    let mut rows = Vec::with_capacity(subjects.len());
    for subject in subjects {
        bar.set_message(subject.name.clone());
        rows.push(count(subject)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)?;
    match rows.iter().find(|row| (row.kernel_calls as f64) < SHARE * row.calls as f64) {
        None => Ok(()),
        Some(row) => Err(Error::NotInKernel {
            subject: row.program.clone(),
            calls: row.calls as u64,
            kernel_calls: row.kernel_calls,
            fallbacks: row.calls as u64 - row.kernel_calls,
        }),
    }
}

fn subjects() -> Result<Vec<Subject>, Error> {
    let cases = vectors::load()?;
    let mut subjects = vec![flipping_rows()];
    for config in 1..=cart_pole::CartPole::CONFIGS.len() {
        subjects.push(of::<cart_pole::CartPole>(&cases, config)?);
    }
    for config in 1..=qwop::Qwop::CONFIGS.len() {
        subjects.push(of::<qwop::Qwop>(&cases, config)?);
    }
    Ok(subjects)
}

fn of<P: Program>(cases: &[vectors::Case], config: usize) -> Result<Subject, Error> {
    let case = vectors::find(cases, P::NAME, config)?;
    let program: P = case.program()?;
    Ok(Subject {
        name: case.subject(),
        center: case.input.clone(),
        radius: 0.3,
        function: Arc::new(move |x: &[Var]| program.objective(x)),
    })
}

/// log(1 + exp(m)), which is m to the last bit where m is large.
#[traced]
fn log_sum<T: Scalar>(m: T) -> T {
    if m > hmc::MAX_EXPONENT { m } else { (m.exp() + 1.0).ln() }
}

/// The posterior of HMC on data that reach beyond its overflow branch.
fn flipping_rows() -> Subject {
    let mut random = Random(1);
    let x: Vec<f64> = (0..2 * ROWS).map(|_| 100.0 * random.unit() - 20.0).collect();
    let y: Vec<f64> = (0..ROWS).map(|row| (row % 2) as f64).collect();
    let function = move |beta: &[Var]| hmc::log_posterior(beta, &x, &y, log_sum);
    let (center, radius) = (vec![-0.8, -0.5], 0.5);
    Subject { name: "HMC, flipping rows".into(), center, radius, function: Arc::new(function) }
}

fn count(subject: &Subject) -> Result<Row, Error> {
    let name = &subject.name;
    let mut random = Random(2);
    let mut point = || -> Vec<f64> {
        let moved = |x: &f64| x + subject.radius * (2.0 * random.unit() - 1.0);
        subject.center.iter().map(moved).collect()
    };
    let lessons: Vec<Vec<f64>> = (0..LESSONS).map(|_| point()).collect();
    let calls: Vec<Vec<f64>> = (0..CALLS).map(|_| point()).collect();
    let fresh = || {
        let function = Arc::clone(&subject.function);
        record(move |x| function(x), Numerics::default())
    };
    let taught = fresh();
    for x in &lessons {
        taught.grad(x).map_err(failed(name, "run the tape"))?;
    }
    taught.compile().map_err(failed(name, "compile"))?;
    let tape = fresh();
    let (mut out, mut expected) = (vec![0.0; subject.center.len()], subject.center.clone());
    let (before, mut off) = (taught.report(), 0.0f64);
    for x in &calls {
        taught.grad_into(x, &mut out).map_err(failed(name, "run the kernel"))?;
        tape.grad_into(x, &mut expected).map_err(failed(name, "run the tape"))?;
        off = off.max(deviation(&out, &expected));
    }
    if off > TOLERANCE {
        let finding = format!("the kernel deviates from the tape by {off:.1e}");
        return Err(Error::Inaccurate { subject: name.clone(), finding });
    }
    let report = taught.report();
    let kernel = gradient_kernel(&report, name)?;
    Ok(Row {
        program: name.clone(),
        radius: subject.radius,
        lessons: LESSONS,
        calls: CALLS,
        kernel_calls: report.kernel_calls - before.kernel_calls,
        adaptive_kernel_calls: adaptive(subject, &fresh(), &mut point, &calls)?,
        paths: report.paths,
        compile_ns: kernel.compile_time.as_secs_f64() * 1e9,
        kernel_bytes: kernel.bytes,
        max_rel_err: off,
    })
}

/// How many of `calls` the kernel knows after as many lessons, each of them a
/// call that the kernel before did not know.
fn adaptive<F>(
    subject: &Subject,
    recorded: &Recorded<F>,
    point: &mut dyn FnMut() -> Vec<f64>,
    calls: &[Vec<f64>],
) -> Result<u64, Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let name = &subject.name;
    let mut taught = 0;
    for _ in 0..20 * LESSONS {
        let before = recorded.report().tape_calls;
        recorded.grad(&point()).map_err(failed(name, "run"))?;
        if recorded.report().tape_calls > before {
            taught += 1;
            recorded.compile().map_err(failed(name, "compile"))?;
        }
        if taught == LESSONS {
            break;
        }
    }
    let before = recorded.report().kernel_calls;
    for x in calls {
        recorded.grad(x).map_err(failed(name, "run"))?;
    }
    Ok(recorded.report().kernel_calls - before)
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header =
        ["program", "radius", "lessons", "in kernel", "adaptive", "paths", "compile", "bytes"];
    let share = |calls: u64, row: &Row| format!("{:.1} %", 100.0 * calls as f64 / row.calls as f64);
    let cells = |row: &Row| {
        vec![
            row.program.clone(),
            number(row.radius),
            row.lessons.to_string(),
            share(row.kernel_calls, row),
            share(row.adaptive_kernel_calls, row),
            row.paths.to_string(),
            crate::table::time(row.compile_ns),
            row.kernel_bytes.to_string(),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
