//! `check`: verifies the selected programs, a line for each configuration.

use std::io::Write;

use crate::cli::Selection;
use crate::error::Error;
use crate::vectors;

/// Verifies, reports every configuration, and fails if any is wrong.
pub fn check(selection: &Selection, out: &mut dyn Write) -> Result<(), Error> {
    let selected = selection.resolve()?;
    let cases = vectors::load()?;
    let mut failed = 0;
    for &(entry, config) in &selected {
        let case = vectors::find(&cases, entry.name, config)?;
        let plain = (entry.verify_plain)(case)?;
        write!(out, "{:<16} {config}  objective {:.0e}  ", entry.name, plain.generic)?;
        write!(out, "primal {:.0e}  hand {:.0e}  ", plain.primal, plain.hand)?;
        out.flush()?;
        let mut findings = plain.findings();
        // One failure must not hide the state of the others.
        match (entry.verify_library)(case) {
            Ok(library) => {
                write!(
                    out,
                    "tape {:.0e}  interpreter {:.0e}  ",
                    library.tape, library.interpreter
                )?;
                write!(out, "kernel real {:.0e}  ", library.kernel_real)?;
                write!(out, "exact {:.0e}  ", library.kernel_exact)?;
                findings.extend(library.findings());
            }
            Err(error) => findings.push(error.to_string()),
        }
        if findings.is_empty() {
            writeln!(out, "ok")?;
        } else {
            failed += 1;
            writeln!(out, "FAILED: {}", findings.join(", "))?;
        }
    }
    writeln!(out, "{} passed, {failed} failed", selected.len() - failed)?;
    match failed {
        0 => Ok(()),
        _ => Err(Error::ConfigurationsFailed { failed, total: selected.len() }),
    }
}
