//! `run`: verifies and measures the selected programs and shows a table.

use std::io::Write;

use crate::cli::RunArgs;
use crate::error::Error;
use crate::json::JsonFile;
use crate::measure::Row;
use crate::progress;
use crate::table::{geometric_mean, number, time, write_table};
use crate::timing::Plan;
use crate::vectors;

/// Measures all that is selected, then writes the table and the JSON file.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    let selected = args.selection.resolve()?;
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let cases = vectors::load()?;
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };

    let bar = progress::bar(selected.len() as u64 * u64::from(plan.rounds));
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for &(entry, config) in &selected {
        bar.set_message(format!("{} {config}", entry.name));
        let case = vectors::find(&cases, entry.name, config)?;
        // One failure must not hide the times of the others.
        match (entry.measure)(case, &plan, &|| bar.inc(1)) {
            Ok(row) => rows.push(row),
            Err(failure) => failures.push(failure),
        }
    }
    bar.finish_and_clear();

    // The file first: it must not be lost because nobody reads the table.
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

fn write_rows(out: &mut dyn Write, rows: &[Row]) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let header = [
        "program",
        "config",
        "inputs",
        "events",
        "primal",
        "hand",
        "tape",
        "kernel",
        "no phi",
        "and value",
        "tape/primal",
        "tape/kernel",
        "kernel/hand",
        "first call",
        "compile",
        "break-even",
        "first tier",
        "compile",
        "break-even",
        "bytes",
        "deviation",
    ];
    let cells = |row: &Row| {
        vec![
            row.benchmark.clone(),
            row.config.to_string(),
            row.inputs.to_string(),
            row.trace_events.to_string(),
            time(row.primal_ns),
            time(row.hand_ns),
            time(row.tape_ns),
            time(row.kernel_ns),
            time(row.kernel_no_phi_ns),
            time(row.kernel_value_ns),
            number(row.tape_ns / row.primal_ns),
            number(row.tape_ns / row.kernel_ns),
            number(row.kernel_ns / row.hand_ns),
            time(row.first_call_ns),
            time(row.compile_ns),
            calls(row.optimised_break_even_calls),
            time(row.first_tier_ns),
            time(row.first_tier_compile_ns),
            calls(row.break_even_calls),
            row.kernel_bytes.to_string(),
            format!("{:.0e}", row.max_rel_err),
        ]
    };
    let lines: Vec<Vec<String>> = rows.iter().map(cells).collect();
    write_table(out, &header, &lines)?;
    let mean = |ratio: fn(&Row) -> f64| number(geometric_mean(rows.iter().map(ratio)));
    writeln!(
        out,
        "geometric means: tape/primal {}, tape/kernel {}, kernel/hand {}",
        mean(|row| row.tape_ns / row.primal_ns),
        mean(|row| row.tape_ns / row.kernel_ns),
        mean(|row| row.kernel_ns / row.hand_ns),
    )?;
    // Kernels use what the processor has; primal and hand the features that rustc was given.
    writeln!(out, "primal and hand are compiled for {}", compiled_features())?;
    Ok(())
}

/// A number of calls, if there is one.
pub fn calls(calls: Option<f64>) -> String {
    calls.map_or("never".to_owned(), |calls| format!("{calls:.0}"))
}

/// The widest vectors that the compiler was allowed to use.
fn compiled_features() -> &'static str {
    if cfg!(target_feature = "avx512f") {
        "AVX-512"
    } else if cfg!(target_feature = "avx2") {
        "AVX2"
    } else {
        "the baseline of the target; RUSTFLAGS='-C target-cpu=native' lets them use this processor"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::sample_row;

    #[test]
    fn the_table_shows_ratios_and_break_even() {
        let mut out = Vec::new();
        let never = Row { break_even_calls: None, ..sample_row() };
        write_rows(&mut out, &[sample_row(), never]).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("program") && lines[0].contains("kernel/hand"), "{text}");
        let cells: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(cells[..4], ["HMC", "2", "3", "4000"]);
        assert!(
            cells.contains(&"14.0") && cells.contains(&"10.0") && cells.contains(&"1.17"),
            "{text}"
        );
        assert!(cells.contains(&"1587") && cells.contains(&"500"), "{text}");
        assert!(lines[2].contains("never"), "{text}");
        assert!(lines[3].contains("tape/kernel 10.0"), "{text}");
    }
}
