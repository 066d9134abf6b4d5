//! `scaling`: what compiling costs on straight-line programs, where every
//! operation is an instruction of its own.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use phigrad::{Numerics, Recorded, Var};
use serde::Serialize;

use crate::accuracy::deviation;
use crate::cli::ScalingArgs;
use crate::commands::run::calls;
use crate::compiled::{
    break_even, failed, gradient_kernel, record, record_first_tier, require_kernel_calls,
};

use crate::error::Error;
use crate::json::JsonFile;
use crate::progress;
use crate::straight_line::{StraightLine, base_point};
use crate::table::{number, time, write_table};
use crate::timing::{Contender, Plan, RoundDone, interleave, median};
use crate::verify::TOLERANCE;

/// Lengths of the programs.
const OPERATIONS: [usize; 3] = [1_000, 10_000, 100_000];
/// Compiling may cost that many tape calls, so that it soon pays.
const MOST_TAPE_CALLS: f64 = 1000.0;
const PLAN: Plan = Plan { rounds: 11, sample: Duration::from_millis(5), fresh: 3 };

/// A measurement; the field names are the keys of the JSON file.
#[derive(Clone, Debug, Serialize)]
struct Row {
    operations: usize,
    events: usize,
    tape_ns: f64,
    kernel_ns: f64,
    compile_ns: f64,
    compile_ns_per_event: f64,
    compile_per_tape: f64,
    kernel_bytes: usize,
    /// The kernel of the first tier.
    first_tier_ns: f64,
    first_tier_compile_ns: f64,
    break_even_calls: Option<f64>,
    optimised_break_even_calls: Option<f64>,
}

/// Measures all lengths; fails if compiling costs too many tape calls.
pub fn scaling(args: &ScalingArgs, out: &mut dyn Write) -> Result<(), Error> {
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let bar = progress::bar(OPERATIONS.len() as u64 * u64::from(PLAN.rounds));
    let mut rows = Vec::with_capacity(OPERATIONS.len());
    for operations in OPERATIONS {
        bar.set_message(format!("{operations} operations"));
        rows.push(measure(operations, &|| bar.inc(1))?);
    }
    bar.finish_and_clear();
    if let Some(json) = json {
        json.write(&rows)?;
    }
    write_rows(out, &rows)?;
    match rows.iter().find(|row| row.compile_per_tape > MOST_TAPE_CALLS) {
        None => Ok(()),
        Some(row) => Err(Error::CompileTooSlow {
            events: row.events,
            ratio: row.compile_per_tape,
            limit: MOST_TAPE_CALLS,
        }),
    }
}

fn measure(operations: usize, round_done: RoundDone) -> Result<Row, Error> {
    let subject = format!("{operations} operations");
    let program = Arc::new(StraightLine::new(operations));
    let x = base_point();
    let fresh = || {
        let program = Arc::clone(&program);
        record(move |x| program.objective(x), Numerics::default())
    };
    let on_tape = fresh();
    let expected = on_tape.grad(&x).map_err(failed(&subject, "run the tape"))?;

    let fresh_first = || {
        let program = Arc::clone(&program);
        record_first_tier(move |x| program.objective(x))
    };
    let (in_kernel, compile_ns) = compiled(fresh, &x, &subject)?;
    let (in_first, first_tier_compile_ns) = compiled(fresh_first, &x, &subject)?;
    let before = in_kernel.report();
    let kernel_bytes = gradient_kernel(&before, &subject)?.bytes;
    let got = in_kernel.grad(&x).map_err(failed(&subject, "run the kernel"))?;
    let off = deviation(&got, &expected);
    if off > TOLERANCE {
        let finding = format!("the kernel deviates from the tape by {off:.1e}");
        return Err(Error::Inaccurate { subject, finding });
    }

    let zeros = || vec![0.0; x.len()];
    let (mut tape_out, mut kernel_out, mut first_out) = (zeros(), zeros(), zeros());
    let mut tape = Contender::new(&x, |x| on_tape.grad_into(x, black_box(&mut tape_out)));
    let mut kernel = Contender::new(&x, |x| in_kernel.grad_into(x, black_box(&mut kernel_out)));
    let mut first = Contender::new(&x, |x| in_first.grad_into(x, black_box(&mut first_out)));
    interleave(&mut [&mut tape, &mut kernel, &mut first], &PLAN, round_done)
        .map_err(failed(&subject, "run while measured"))?;
    let after = in_kernel.report();
    require_kernel_calls(&subject, kernel.calls() + 1, &before, &after)?;

    let (events, tape_ns, kernel_ns) = (after.trace_events, tape.median_ns(), kernel.median_ns());
    let first_tier_ns = first.median_ns();
    Ok(Row {
        operations,
        events,
        tape_ns,
        kernel_ns,
        compile_ns,
        compile_ns_per_event: compile_ns / events.max(1) as f64,
        compile_per_tape: compile_ns / tape_ns,
        kernel_bytes,
        first_tier_ns,
        first_tier_compile_ns,
        break_even_calls: break_even(first_tier_compile_ns, tape_ns, first_tier_ns),
        optimised_break_even_calls: break_even(compile_ns, tape_ns, kernel_ns),
    })
}

/// A recording with kernels, and the median of the times to compile a fresh one.
fn compiled<F>(
    fresh: impl Fn() -> Recorded<F>,
    x: &[f64],
    subject: &str,
) -> Result<(Recorded<F>, f64), Error>
where
    F: Fn(&[Var]) -> Var + Send + Sync + 'static,
{
    let (mut compile, mut newest) = (Vec::new(), None);
    for _ in 0..PLAN.fresh {
        let recorded = fresh();
        recorded.grad(x).map_err(failed(subject, "run the tape"))?;
        recorded.compile().map_err(failed(subject, "compile"))?;
        compile
            .push(gradient_kernel(&recorded.report(), subject)?.compile_time.as_secs_f64() * 1e9);
        newest = Some(recorded);
    }
    let newest = newest.ok_or_else(|| Error::NoKernel { subject: subject.to_owned() })?;
    Ok((newest, median(&compile)))
}

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    let header = [
        "operations",
        "events",
        "tape",
        "kernel",
        "compile",
        "compile/event",
        "compile/tape",
        "break-even",
        "first tier",
        "compile",
        "break-even",
        "bytes",
    ];
    let cells = |row: &Row| {
        vec![
            row.operations.to_string(),
            row.events.to_string(),
            time(row.tape_ns),
            time(row.kernel_ns),
            time(row.compile_ns),
            time(row.compile_ns_per_event),
            number(row.compile_per_tape),
            calls(row.optimised_break_even_calls),
            time(row.first_tier_ns),
            time(row.first_tier_compile_ns),
            calls(row.break_even_calls),
            row.kernel_bytes.to_string(),
        ]
    };
    write_table(out, &header, &rows.iter().map(cells).collect::<Vec<_>>())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_length() {
        let row = Row {
            operations: 1000,
            events: 1001,
            tape_ns: 5000.0,
            kernel_ns: 1000.0,
            compile_ns: 2_500_000.0,
            compile_ns_per_event: 2500.0,
            compile_per_tape: 500.0,
            kernel_bytes: 12_345,
            first_tier_ns: 2000.0,
            first_tier_compile_ns: 1_500_000.0,
            break_even_calls: Some(500.0),
            optimised_break_even_calls: None,
        };
        let mut out = Vec::new();
        write_rows(&mut out, &[row.clone(), row]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.contains("2.50 us") && text.contains("500") && text.contains("12345"),
            "{text}"
        );
    }
}
