//! The commands of the binary.

pub mod batch;
mod benefit;
mod check;
mod choices;
mod closed;
mod coverage;
pub mod extra;
mod learning;
mod run;
mod scaling;
pub mod simplify;
mod soi;
mod trips;

use std::io::Write;

use crate::cli::{Cli, Command};
use crate::error::Error;

/// Carries out what the arguments ask for.
pub fn execute(cli: &Cli, out: &mut dyn Write) -> Result<(), Error> {
    match &cli.command {
        Command::Run(args) if args.extra => extra::run(args, out),
        Command::Run(args) => run::run(args, out),
        Command::Check(selection) => check::check(selection, out),
        Command::Batch(args) => batch::batch(args, out),
        Command::Benefit(args) => benefit::benefit(args, out),
        Command::Choices(args) => choices::choices(args, out),
        Command::Closed(args) => closed::closed(args, out),
        Command::Coverage(args) => coverage::coverage(args, out),
        Command::Learning(args) => learning::learning(args, out),
        Command::Scaling(args) => scaling::scaling(args, out),
        Command::Simplify(args) => simplify::simplification(args, out),
        Command::Soi(args) => soi::soi(args, out),
        Command::Trips(args) => trips::trips(args, out),
    }
}
