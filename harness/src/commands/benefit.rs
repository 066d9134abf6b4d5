//! `benefit`: what closed forms gain, and what they cost: kernels with them and without.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use phigrad::{Recorded, Tape, Var};
use serde::Serialize;

use crate::cli::BenefitArgs;
use crate::compiled::failed;
use crate::error::Error;
use crate::json::JsonFile;
use crate::loops::{Function, Program, programs};
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave};

const PLAN: Plan = Plan { rounds: 25, sample: Duration::from_millis(2), fresh: 3 };

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    with_ns: f64,
    without_ns: f64,
    kernel_ratio: f64,
    compile_with_ns: f64,
    compile_without_ns: f64,
    /// The rules of φ-calculus that were applied.
    rules: String,
}

/// Measures all programs.
pub fn benefit(args: &BenefitArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let is_selected =
        |program: &Program| args.only.as_ref().is_none_or(|only| program.name.starts_with(only));
    let all: Vec<Program> = programs().into_iter().filter(is_selected).collect();
    let bar = progress::bar(all.len() as u64);
    let mut rows = Vec::new();
    for program in all {
        bar.set_message(program.name);
        rows.push(measure(program)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)
}

/// A recording with kernels, and how long they took to make.
struct Compiled<F> {
    recorded: Recorded<F>,
    taken_ns: f64,
}

fn compiled<'a>(
    program: &'a Program,
    phi_calculus: bool,
) -> Result<Compiled<impl Fn(&[Var]) -> Var + use<'a>>, Error> {
    let function: &'a Function = &*program.function;
    let mut best: Option<Compiled<_>> = None;
    for _ in 0..PLAN.fresh {
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
        let recorded = builder.phi_calculus(phi_calculus).record(move |x: &[Var]| function(x));
        recorded.grad(&program.at).map_err(failed(program.name, "run the tape"))?;
        let start = Instant::now();
        recorded.compile().map_err(failed(program.name, "compile"))?;
        let taken_ns = start.elapsed().as_secs_f64() * 1e9;
        if best.as_ref().is_none_or(|best| taken_ns < best.taken_ns) {
            best = Some(Compiled { recorded, taken_ns });
        }
    }
    best.ok_or_else(|| Error::NoKernel { subject: program.name.to_owned() })
}

fn measure(program: Program) -> Result<Row, Error> {
    let (with, without) = (compiled(&program, true)?, compiled(&program, false)?);
    let mut gradients = [(); 2].map(|()| vec![0.0; program.at.len()]);
    let [first, second] = &mut gradients;
    let mut contenders = [
        Contender::new(&program.at, |x| with.recorded.grad_into(x, black_box(&mut first[..]))),
        Contender::new(&program.at, |x| without.recorded.grad_into(x, black_box(&mut second[..]))),
    ];
    let mut all: Vec<&mut Contender<'_>> = contenders.iter_mut().collect();
    interleave(&mut all, &PLAN, &|| ()).map_err(failed(program.name, "run while measured"))?;
    let [with_ns, without_ns] = [0, 1].map(|at: usize| contenders[at].best_ns());
    drop(contenders);
    let mut rules: Vec<String> =
        with.recorded.report().closed_forms.iter().map(|of| of.rule.to_string()).collect();
    rules.sort();
    rules.dedup();
    Ok(Row {
        name: program.name,
        with_ns,
        without_ns,
        kernel_ratio: with_ns / without_ns,
        compile_with_ns: with.taken_ns,
        compile_without_ns: without.taken_ns,
        rules: rules.join(" "),
    })
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "program",
        "with φ",
        "without",
        "with / without",
        "compile with",
        "compile without",
        "rules",
    ];
    let cells = |row: &Row| {
        vec![
            row.name.to_owned(),
            time(row.with_ns),
            time(row.without_ns),
            number(row.kernel_ratio),
            time(row.compile_with_ns),
            time(row.compile_without_ns),
            row.rules.clone(),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
