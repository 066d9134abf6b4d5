//! `soi`: what the limit of segments, the units of compilation, does to kernels and
//! to compiling, where code is cut with regard to reuse and where it is not.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use phigrad::internals::Tuning;
use phigrad::{Recorded, Tape, Var};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::SoiArgs;
use crate::compiled::{failed, gradient_kernel, require_kernel_calls};
use crate::error::Error;
use crate::json::JsonFile;
use crate::output::OutputFile;
use crate::plot::{Curve, Panel, svg};
use crate::programs::Program;
use crate::programs::qwop::Qwop;
use crate::progress;
use crate::straight_line::{StraightLine, base_point};
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave};
use crate::vectors;
use crate::verify::TOLERANCE;

/// The subject of a measurement.
struct Sweep {
    /// Limits of segments, in steps.
    limits: &'static [usize],
    /// Lengths of straight-line programs.
    operations: &'static [usize],
    /// The configuration of QWOP, if any.
    qwop: Option<usize>,
    plan: Plan,
}

const FULL: Sweep = Sweep {
    limits: &[64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
    operations: &[1_000, 10_000, 50_000],
    qwop: Some(3),
    plan: Plan { rounds: 21, sample: Duration::from_millis(3), fresh: 3 },
};
const QUICK: Sweep = Sweep {
    limits: &[64, 512, 2048],
    operations: &[1_000, 5_000],
    qwop: None,
    plan: Plan { rounds: 3, sample: Duration::from_micros(300), fresh: 1 },
};

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    program: String,
    /// Operations of the trace.
    operations: usize,
    /// Nodes of the gradient graph.
    nodes: usize,
    limit: usize,
    reuse_aware: bool,
    kernel_ns: f64,
    compile_ns: f64,
    compile_ns_per_operation: f64,
    segments: usize,
    /// Words that segments hand over to one another.
    crossing: usize,
    code_bytes: usize,
}

/// Measures all programs within all limits.
pub fn soi(args: &SoiArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let drawing = args.svg.as_deref().map(|path| OutputFile::open(path, "SVG")).transpose()?;
    let sweep = if args.quick { QUICK } else { FULL };
    let programs = sweep.operations.len() + usize::from(sweep.qwop.is_some());
    let bar = progress::bar((programs * sweep.limits.len()) as u64);
    let mut rows = Vec::new();
    for &operations in sweep.operations {
        let program = Arc::new(StraightLine::new(operations));
        let name = format!("{operations} operations");
        for &limit in sweep.limits {
            bar.set_message(format!("{name}, {limit}"));
            let program = Arc::clone(&program);
            let objective = move |x: &[Var]| program.objective(x);
            rows.extend(measure(&name, objective, &base_point(), limit, &sweep.plan)?);
            bar.inc(1);
        }
    }
    if let Some(config) = sweep.qwop {
        let cases = vectors::load()?;
        let case = vectors::find(&cases, Qwop::NAME, config)?;
        let (program, name) = (Arc::new(case.program::<Qwop>()?), case.subject());
        for &limit in sweep.limits {
            bar.set_message(format!("{name}, {limit}"));
            let program = Arc::clone(&program);
            let objective = move |x: &[Var]| program.objective(x);
            rows.extend(measure(&name, objective, &case.input, limit, &sweep.plan)?);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    if let Some(drawing) = drawing {
        drawing.write(svg(&panels(&rows))?.as_bytes())?;
    }
    write_rows(out, &rows)
}

/// Measures a program within one limit: with regard to reuse, then without.
fn measure<F>(
    name: &str,
    objective: F,
    x: &[f64],
    limit: usize,
    plan: &Plan,
) -> Result<[Row; 2], Error>
where
    F: Fn(&[Var]) -> Var + Clone + Send + Sync + 'static,
{
    let subject = format!("{name}, segments of {limit}");
    let fresh = |reuse_aware| {
        let builder = Tape::builder().hot_threshold(u32::MAX).background(false);
        let tuning = Tuning { segment: limit, reuse_aware, ..Tuning::default() };
        builder.tuning(tuning).record(objective.clone())
    };
    let (aware, even) = (compiled(fresh(true), x, &subject)?, compiled(fresh(false), x, &subject)?);
    let (mut aware_out, mut even_out) = (vec![0.0; x.len()], vec![0.0; x.len()]);
    let (aware_before, even_before) = (aware.report(), even.report());
    let mut contenders = [
        Contender::new(x, |x| aware.grad_into(x, black_box(&mut aware_out))),
        Contender::new(x, |x| even.grad_into(x, black_box(&mut even_out))),
    ];
    interleave(&mut contenders.iter_mut().collect::<Vec<_>>(), plan, &|| {})
        .map_err(failed(&subject, "run while measured"))?;
    let [aware_calls, even_calls] = contenders.each_ref().map(Contender::calls);
    let [aware_ns, even_ns] = contenders.each_ref().map(Contender::median_ns);
    require_kernel_calls(&subject, aware_calls, &aware_before, &aware.report())?;
    require_kernel_calls(&subject, even_calls, &even_before, &even.report())?;
    let row = |reuse_aware, recorded: &Recorded<F>, kernel_ns| {
        let report = recorded.report();
        let kernel = gradient_kernel(&report, &subject)?;
        // The fastest: whatever else the machine does only adds.
        let mut compile = kernel.compile_time;
        for _ in 1..plan.fresh {
            let again = compiled(fresh(reuse_aware), x, &subject)?.report();
            compile = compile.min(gradient_kernel(&again, &subject)?.compile_time);
        }
        let (compile_ns, operations) = (compile.as_secs_f64() * 1e9, report.trace_events);
        Ok::<_, Error>(Row {
            program: name.to_owned(),
            operations,
            nodes: kernel.nodes,
            limit,
            reuse_aware,
            kernel_ns,
            compile_ns,
            compile_ns_per_operation: compile_ns / operations.max(1) as f64,
            segments: kernel.segments,
            crossing: kernel.crossing,
            code_bytes: kernel.code_bytes,
        })
    };
    Ok([row(true, &aware, aware_ns)?, row(false, &even, even_ns)?])
}

/// The recording with its kernel, which agrees with the tape.
fn compiled<F>(recorded: Recorded<F>, x: &[f64], subject: &str) -> Result<Recorded<F>, Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let expected = recorded.grad(x).map_err(failed(subject, "run the tape"))?;
    recorded.compile().map_err(failed(subject, "compile"))?;
    let found = recorded.grad(x).map_err(failed(subject, "run the kernel"))?;
    let off = deviation(&found, &expected);
    if off > TOLERANCE {
        let finding = format!("the kernel deviates from the tape by {off:.1e}");
        return Err(Error::Inaccurate { subject: subject.to_owned(), finding });
    }
    Ok(recorded)
}

/// The curves over the limit: kernel time, compile time and words that cross, each
/// for one operation. Dashed is what is cut without regard to reuse.
fn panels(rows: &[Row]) -> Vec<Panel> {
    let mut programs: Vec<&str> = Vec::new();
    for row in rows {
        if programs.last() != Some(&row.program.as_str()) {
            programs.push(&row.program);
        }
    }
    let panel = |title: &str, y, value: fn(&Row) -> f64| {
        let mut curves = Vec::new();
        for (color, &program) in programs.iter().enumerate() {
            for reuse_aware in [true, false] {
                let of_curve =
                    |row: &&Row| row.program == program && row.reuse_aware == reuse_aware;
                let point = |row: &Row| (row.limit as f64, value(row) / row.operations as f64);
                // A logarithm has no place for what is 0.
                let is_shown = |point: &(f64, f64)| point.1 > 0.0;
                let points = rows.iter().filter(of_curve).map(point).filter(is_shown).collect();
                let cut = if reuse_aware { "" } else { ", even" };
                let label = format!("{program}{cut}");
                curves.push(Curve { label, color, dashed: !reuse_aware, points });
            }
        }
        Panel { title: title.to_owned(), x: "largest segment in steps", y, curves }
    };
    vec![
        panel("Kernel time", "ns per operation", |row| row.kernel_ns),
        panel("Compile time", "us per operation", |row| row.compile_ns / 1e3),
        panel("What segments hand over", "words per operation", |row| row.crossing as f64),
    ]
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "program",
        "limit",
        "cut",
        "kernel",
        "compile",
        "compile/op",
        "segments",
        "crossing",
        "nodes",
        "code",
    ];
    let cells = |row: &Row| {
        vec![
            row.program.clone(),
            row.limit.to_string(),
            if row.reuse_aware { "aware" } else { "even" }.to_owned(),
            time(row.kernel_ns),
            time(row.compile_ns),
            time(row.compile_ns_per_operation),
            row.segments.to_string(),
            row.crossing.to_string(),
            row.nodes.to_string(),
            number(row.code_bytes as f64),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}
