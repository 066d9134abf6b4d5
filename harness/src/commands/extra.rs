//! `run --extra`: what programs of about a thousand inputs cost, in time and memory.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use phigrad::Numerics;
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::RunArgs;
use crate::compiled::{failed, gradient_kernel, record, require_kernel_calls};
use crate::error::Error;
use crate::json::JsonFile;
use crate::programs::extra::{EXTRA, Extra};
use crate::progress;
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, interleave};
use crate::verify::TOLERANCE;

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct ExtraRow {
    /// Name of the program.
    pub program: String,
    /// Number of the configuration.
    pub config: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Events of the trace; 0 if it is too long to be kept.
    pub trace_events: usize,
    /// The gradient by hand.
    pub hand_ns: f64,
    /// The first gradient on the tape.
    pub tape_ns: f64,
    /// Compiling, or finding out that this is refused.
    pub compile_ns: f64,
    /// Memory of the process that the profiling run has added.
    pub profile_bytes: u64,
    /// The kernel, unless it is refused.
    pub kernel: Option<KernelCosts>,
    /// The reason why it is refused.
    pub refusal: Option<String>,
    /// Largest memory of the process.
    pub peak_bytes: u64,
    /// Largest deviation of tape and kernel from the gradient by hand.
    pub deviation: f64,
}

/// The costs of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelCosts {
    /// The gradient by the kernel.
    pub kernel_ns: f64,
    /// Nodes of its graph.
    pub nodes: usize,
    /// Size of code and constants.
    pub bytes: usize,
    /// Values that its loops save for the reverse sweep.
    pub saved_values: u64,
}

/// Measures the extra programs, then writes the table and the JSON file.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    let selected = args.selection.resolve_among(EXTRA)?;
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let bar = progress::bar(selected.len() as u64);
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for &(entry, config) in &selected {
        bar.set_message(format!("{} {config}", entry.name));
        match (entry.measure)(config, &plan) {
            Ok(row) => rows.push(row),
            Err(failure) => failures.push(failure),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)?;
    for failure in &failures {
        writeln!(out, "FAILED: {failure}")?;
    }
    match failures.len() {
        0 => Ok(()),
        failed => Err(Error::ConfigurationsFailed { failed, total: selected.len() }),
    }
}

fn write_rows(out: &mut dyn Write, rows: &[ExtraRow]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let header = [
        "program",
        "config",
        "inputs",
        "events",
        "hand",
        "tape",
        "kernel",
        "kernel/hand",
        "compile",
        "nodes",
        "bytes",
        "saved",
        "profile",
        "peak",
        "deviation",
    ];
    let megabytes = |bytes: u64| format!("{} MB", number(bytes as f64 / 1e6));
    let cells = |row: &ExtraRow| {
        let [kernel, ratio, nodes, bytes, saved] = match &row.kernel {
            Some(kernel) => [
                time(kernel.kernel_ns),
                number(kernel.kernel_ns / row.hand_ns),
                kernel.nodes.to_string(),
                kernel.bytes.to_string(),
                kernel.saved_values.to_string(),
            ],
            None => std::array::from_fn(|_| "-".to_owned()),
        };
        vec![
            row.program.clone(),
            row.config.to_string(),
            row.inputs.to_string(),
            row.trace_events.to_string(),
            time(row.hand_ns),
            time(row.tape_ns),
            kernel,
            ratio,
            time(row.compile_ns),
            nodes,
            bytes,
            saved,
            megabytes(row.profile_bytes),
            megabytes(row.peak_bytes),
            format!("{:.0e}", row.deviation),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    write_table(out, &header, &lines)?;
    for row in rows {
        if let Some(refusal) = &row.refusal {
            writeln!(out, "{} {}: {refusal}", row.program, row.config)?;
        }
    }
    Ok(())
}

/// Checks the program `P` against its gradient by hand, and measures it.
pub fn measure<P: Extra>(config: usize, plan: &Plan) -> Result<ExtraRow, Error> {
    let program = Arc::new(P::new(P::CONFIGS[config - 1]));
    let (subject, x) = (format!("{} {config}", P::NAME), program.point());
    let (mut work, mut expected) = (program.work(), vec![0.0; x.len()]);
    program.hand_gradient(&x, &mut expected, &mut work);
    let mut got = vec![0.0; x.len()];

    memory::forget_peak();
    let before = memory::resident();
    let recorded = {
        let program = Arc::clone(&program);
        record(move |x| program.objective(x), Numerics::default())
    };
    let start = Instant::now();
    recorded.grad_into(&x, &mut got).map_err(failed(&subject, "run the tape"))?;
    let tape_ns = start.elapsed().as_secs_f64() * 1e9;
    let profile_bytes = memory::resident().saturating_sub(before);
    let mut found = deviation(&got, &expected);

    let start = Instant::now();
    let compiled = recorded.compile();
    let compile_ns = start.elapsed().as_secs_f64() * 1e9;
    let refusal = match compiled {
        Ok(()) => recorded.report().refusals.first().map(|refusal| refusal.to_string()),
        Err(error) => Some(error.to_string()),
    };

    let before = recorded.report();
    let mut hand = Contender::new(&x, {
        let (mut gradient, program) = (expected.clone(), &program);
        move |x| {
            black_box(&**program).hand_gradient(x, black_box(&mut gradient), &mut work);
            Ok(())
        }
    });
    let kernel = match gradient_kernel(&before, &subject) {
        Ok(report) => {
            recorded.grad_into(&x, &mut got).map_err(failed(&subject, "run a kernel"))?;
            found = found.max(deviation(&got, &expected));
            let mut kernel = Contender::new(&x, |x| recorded.grad_into(x, black_box(&mut got)));
            interleave(&mut [&mut hand, &mut kernel], plan, &|| ())
                .map_err(failed(&subject, "run while measured"))?;
            require_kernel_calls(&subject, kernel.calls() + 1, &before, &recorded.report())?;
            Some(KernelCosts {
                kernel_ns: kernel.median_ns(),
                nodes: report.nodes,
                bytes: report.bytes,
                saved_values: report.saved_values,
            })
        }
        Err(_) => {
            interleave(&mut [&mut hand], plan, &|| ()).map_err(failed(&subject, "run"))?;
            None
        }
    };
    if found > TOLERANCE {
        let finding = format!("tape or kernel is off by {found:.1e}");
        return Err(Error::Inaccurate { subject, finding });
    }
    Ok(ExtraRow {
        program: P::NAME.to_owned(),
        config,
        inputs: x.len(),
        trace_events: before.trace_events,
        hand_ns: hand.median_ns(),
        tape_ns,
        compile_ns,
        kernel,
        refusal,
        profile_bytes,
        peak_bytes: memory::peak(),
        deviation: found,
    })
}

/// The memory of this process in bytes, where the system has `/proc`; otherwise 0.
mod memory {
    use std::fs;

    /// The memory that is in use.
    pub fn resident() -> u64 {
        status("VmRSS:")
    }

    /// The largest memory that was in use since [`forget_peak`].
    pub fn peak() -> u64 {
        status("VmHWM:")
    }

    /// Begins anew.
    pub fn forget_peak() {
        // Where this is not allowed the peak is that of the whole process.
        let _ = fs::write("/proc/self/clear_refs", "5");
    }

    fn status(field: &str) -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) * 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_costs_or_the_reason_why_there_is_no_kernel() {
        let kernel = KernelCosts { kernel_ns: 3e6, nodes: 1234, bytes: 5_678, saved_values: 77 };
        let row = ExtraRow {
            program: "Heat".to_owned(),
            config: 1,
            inputs: 1001,
            trace_events: 1_000_000,
            hand_ns: 1e6,
            tape_ns: 2e7,
            compile_ns: 3e9,
            kernel: Some(kernel),
            refusal: None,
            profile_bytes: 24_000_000,
            peak_bytes: 100_000_000,
            deviation: 1e-14,
        };
        let refusal = Some("too large".to_owned());
        let refused = ExtraRow { kernel: None, refusal, ..row.clone() };
        let mut out = Vec::new();
        write_rows(&mut out, &[row, refused]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for cell in ["3.00 ms", "3.00 s", "1234", "5678", "77", "24.0 MB", "100 MB"] {
            assert!(lines[1].contains(cell), "{cell}: {text}");
        }
        assert_eq!(lines[3], "Heat 1: too large");
    }
}
