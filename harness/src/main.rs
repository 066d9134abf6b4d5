//! phigrad-bench: verifies phigrad on programs with known gradients and
//! measures its tape and its kernels against hand-written code.
//!
//! `cli` reads the arguments, `commands` carries them out; `programs` holds the
//! programs, `verify` and `measure` treat one of them, `straight_line` makes
//! programs of any length for the commands `scaling` and `soi`, and `typical` programs
//! that branch for `coverage`, `many_paths` those with many paths for
//! `learning`.

mod accuracy;
mod cli;
mod commands;
mod compiled;
mod entry;
mod error;
mod json;
mod loops;
mod many_paths;
mod measure;
mod output;
mod plot;
mod programs;
mod progress;
mod straight_line;
mod table;
mod timing;
mod typical;
mod vectors;
mod verify;

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match commands::execute(&cli, &mut stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even the message cannot be written only the code is left.
            if !error.is_broken_pipe() {
                let _ = writeln!(stderr(), "phigrad-bench: {error}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}
