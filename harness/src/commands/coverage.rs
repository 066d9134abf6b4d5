//! `coverage`: which share of calls at perturbed points a kernel knows, after it
//! was profiled by a few; with several sets of points, because few profiling runs are a small
//! sample.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use phigrad::internals::Random;
use phigrad::report::DecisionReport;
use phigrad::{Numerics, Recorded, Report, Var, traced};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::CoverageArgs;
use crate::compiled::{failed, gradient_kernel, record};
use crate::error::Error;
use crate::json::JsonFile;
use crate::programs::{Program, Scalar, cart_pole, hmc, qwop};
use crate::progress;
use crate::table::{number, write_table};
use crate::typical::{self, Function};
use crate::vectors;

/// Profiling calls, all of them on the tape.
const PROFILED: usize = 50;
/// Calls after that.
const CALLS: usize = 1000;
/// So large a share of them should run in the kernel, for the programs of the benchmarks;
/// that of the typical ones is only shown.
const SHARE: f64 = 0.95;
/// Kernels may differ from the tape by so much at any rate,
const TOLERANCE: f64 = 1e-10;
/// and by so many times what the last digit of an input does: both round in each of
/// hundreds of thousands of steps, which grows as that does.
const ROUNDINGS: f64 = 64.0;
/// Rows of data whose branches flip independently of one another.
const ROWS: usize = 100;

/// The counts; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: String,
    radius: f64,
    required: f64,
    profiled: usize,
    calls: usize,
    /// With the seed for which they are fewest.
    kernel_calls: u64,
    median_kernel_calls: u64,
    /// Of the first seed, where only calls that the kernel does not know are recorded.
    adaptive_kernel_calls: u64,
    /// Of the first seed.
    paths: usize,
    compile_ns: f64,
    kernel_bytes: usize,
    max_rel_err: f64,
    /// The comparisons at which calls left the kernels, of all seeds.
    side_exits: Vec<SideExitCount>,
}

/// A comparison at which calls left the kernels.
#[derive(Clone, Debug, Serialize)]
struct SideExitCount {
    at: String,
    op: &'static str,
    calls: u64,
    /// Those of them with a seed whose profiling runs had only one outcome there, so that
    /// nothing could be known of the other.
    one_sided: u64,
}

/// The counts of one seed.
struct Count {
    /// After the profiling runs and after the calls.
    profiled: Report,
    report: Report,
    kernel_calls: u64,
    max_rel_err: f64,
}

/// A program under test, at the point around which it is called.
struct Subject {
    name: String,
    center: Vec<f64>,
    radius: f64,
    /// The share of calls that must run in the kernel.
    required: f64,
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
        rows.push(row(subject, args.seeds)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)?;
    if args.side_exits {
        write_side_exits(out, &rows)?;
    }
    match rows.iter().find(|row| (row.kernel_calls as f64) < row.required * row.calls as f64) {
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
    subjects.extend(typical::programs().into_iter().map(|program| Subject {
        name: program.name.to_owned(),
        center: program.center,
        radius: program.radius,
        required: 0.0,
        function: Arc::from(program.function),
    }));
    Ok(subjects)
}

fn of<P: Program>(cases: &[vectors::Case], config: usize) -> Result<Subject, Error> {
    let case = vectors::find(cases, P::NAME, config)?;
    let program: P = case.program()?;
    Ok(Subject {
        name: case.subject(),
        center: case.input.clone(),
        radius: 0.3,
        required: SHARE,
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
    let mut random = Random::new(1);
    let x: Vec<f64> = (0..2 * ROWS).map(|_| 100.0 * random.uniform(0.0, 1.0) - 20.0).collect();
    let y: Vec<f64> = (0..ROWS).map(|row| (row % 2) as f64).collect();
    let function = move |beta: &[Var]| hmc::log_posterior(beta, &x, &y, log_sum);
    let (center, radius) = (vec![-0.8, -0.5], 0.5);
    let (name, function) = ("HMC, flipping rows".into(), Arc::new(function));
    Subject { name, center, radius, required: SHARE, function }
}

/// Counts with each of the seeds, of which there is at least one.
fn row(subject: &Subject, seeds: u64) -> Result<Row, Error> {
    let counts: Result<Vec<Count>, Error> =
        (0..seeds.max(1)).map(|seed| count(subject, seed)).collect();
    let counts = counts?;
    let mut kernel_calls: Vec<u64> = counts.iter().map(|count| count.kernel_calls).collect();
    kernel_calls.sort_unstable();
    let first = &counts[0].report;
    let kernel = gradient_kernel(first, &subject.name)?;
    Ok(Row {
        program: subject.name.clone(),
        radius: subject.radius,
        required: subject.required,
        profiled: PROFILED,
        calls: CALLS,
        kernel_calls: kernel_calls[0],
        median_kernel_calls: kernel_calls[kernel_calls.len() / 2],
        adaptive_kernel_calls: adaptive(subject)?,
        paths: first.paths,
        compile_ns: kernel.compile_time.as_secs_f64() * 1e9,
        kernel_bytes: kernel.bytes,
        max_rel_err: counts.iter().map(|count| count.max_rel_err).fold(0.0, f64::max),
        side_exits: side_exits(&counts),
    })
}

/// The comparisons at which calls left the kernels, by place.
fn side_exits(counts: &[Count]) -> Vec<SideExitCount> {
    let mut side_exits: BTreeMap<(String, &'static str), [u64; 2]> = BTreeMap::new();
    for count in counts {
        for DecisionReport { decision, side_exits: calls, .. } in &count.report.decisions {
            let is_same = |profiled: &&DecisionReport| {
                profiled.decision.at == decision.at && profiled.decision.op == decision.op
            };
            let profiled = count.profiled.decisions.iter().find(is_same).map(|one| &one.decision);
            let is_one_sided =
                profiled.is_none_or(|profiled| profiled.held == 0 || profiled.failed == 0);
            let [all, one_sided] =
                side_exits.entry((decision.at.to_string(), decision.op.name())).or_default();
            *all += calls;
            *one_sided += if is_one_sided { *calls } else { 0 };
        }
    }
    let side_exits = side_exits.into_iter().filter(|(_, [calls, _])| *calls > 0);
    side_exits
        .map(|((at, op), [calls, one_sided])| SideExitCount { at, op, calls, one_sided })
        .collect()
}

/// Points around that of a subject.
fn points(subject: &Subject, seed: u64) -> impl FnMut() -> Vec<f64> {
    // Seeds that are close make numbers that have nothing to do with one another.
    let mut random = Random::new(2 + seed);
    move || {
        let moved = |x: &f64| x + subject.radius * (2.0 * random.uniform(0.0, 1.0) - 1.0);
        subject.center.iter().map(moved).collect()
    }
}

fn fresh(subject: &Subject) -> Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static> {
    let function = Arc::clone(&subject.function);
    record(move |x| function(x), Numerics::default())
}

fn count(subject: &Subject, seed: u64) -> Result<Count, Error> {
    let name = &subject.name;
    let mut point = points(subject, seed);
    let profiled = fresh(subject);
    for _ in 0..PROFILED {
        profiled.grad(&point()).map_err(failed(name, "run the tape"))?;
    }
    profiled.compile().map_err(failed(name, "compile"))?;
    let tape = fresh(subject);
    let (mut out, mut expected) = (vec![0.0; subject.center.len()], subject.center.clone());
    let (before, mut off) = (profiled.report(), 0.0f64);
    for _ in 0..CALLS {
        let x = point();
        profiled.grad_into(&x, &mut out).map_err(failed(name, "run the kernel"))?;
        tape.grad_into(&x, &mut expected).map_err(failed(name, "run the tape"))?;
        let this = deviation(&out, &expected);
        off = off.max(this);
        if this > TOLERANCE {
            let rounding =
                sensitivity(&tape, &x, &expected).map_err(failed(name, "run the tape"))?;
            if this > TOLERANCE.max(ROUNDINGS * rounding) {
                let finding = format!(
                    "the kernel deviates from the tape by {this:.1e}, where inputs that are \
                     rounded move it by {rounding:.1e}"
                );
                return Err(Error::Inaccurate { subject: name.clone(), finding });
            }
        }
    }
    let report = profiled.report();
    let kernel_calls = report.kernel_calls - before.kernel_calls;
    Ok(Count { profiled: before, report, kernel_calls, max_rel_err: off })
}

/// The change of the tape's gradient from `gradient` if one of the inputs or all of
/// them are the next number: no rounding in it does less.
fn sensitivity(
    tape: &Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static>,
    x: &[f64],
    gradient: &[f64],
) -> Result<f64, phigrad::Error> {
    let (mut moved, mut most) = (vec![0.0; x.len()], 0.0f64);
    for changed in 0..=x.len() {
        let next = |(at, &value): (usize, &f64)| {
            if at == changed || changed == x.len() { value.next_up() } else { value }
        };
        let near: Vec<f64> = x.iter().enumerate().map(next).collect();
        tape.grad_into(&near, &mut moved)?;
        most = most.max(deviation(&moved, gradient));
    }
    Ok(most)
}

/// The number of calls that a kernel serves after as many profiling runs, each of them a call that
/// the kernel before did not know.
fn adaptive(subject: &Subject) -> Result<u64, Error> {
    let (name, recorded, mut point) = (&subject.name, fresh(subject), points(subject, 0));
    let mut profiled = 0;
    for _ in 0..20 * PROFILED {
        let before = recorded.report().tape_calls;
        recorded.grad(&point()).map_err(failed(name, "run"))?;
        if recorded.report().tape_calls > before {
            profiled += 1;
            recorded.compile().map_err(failed(name, "compile"))?;
        }
        if profiled == PROFILED {
            break;
        }
    }
    let before = recorded.report().kernel_calls;
    for _ in 0..CALLS {
        recorded.grad(&point()).map_err(failed(name, "run"))?;
    }
    Ok(recorded.report().kernel_calls - before)
}

fn write_side_exits(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = ["program", "side exit at", "comparison", "calls", "one-sided"];
    let cells = rows.iter().flat_map(|row| {
        let cells = |side_exits: &SideExitCount| {
            let (program, at) = (row.program.clone(), side_exits.at.clone());
            let (calls, one_sided) =
                (side_exits.calls.to_string(), side_exits.one_sided.to_string());
            vec![program, at, side_exits.op.to_owned(), calls, one_sided]
        };
        row.side_exits.iter().map(cells)
    });
    write_table(out, &header, &cells.collect::<Vec<_>>())?;
    Ok(())
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = ["program", "radius", "fewest", "median", "adaptive", "paths", "compile", "bytes"];
    let share = |calls: u64, row: &Row| format!("{:.1} %", 100.0 * calls as f64 / row.calls as f64);
    let cells = |row: &Row| {
        vec![
            row.program.clone(),
            number(row.radius),
            share(row.kernel_calls, row),
            share(row.median_kernel_calls, row),
            share(row.adaptive_kernel_calls, row),
            row.paths.to_string(),
            crate::table::time(row.compile_ns),
            row.kernel_bytes.to_string(),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
