//! Command line: the arguments, and which programs they select.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::entry::Entry;
use crate::error::Error;
use crate::programs::PROGRAMS;
use crate::programs::extra::ExtraEntry;

/// Verifies and measures phigrad on programs with known gradients.
#[derive(Debug, Parser)]
#[command(name = "phigrad-bench", version)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Verify, then measure tape and kernels against hand-written code.
    Run(RunArgs),
    /// Only verify values and gradients; exit code 1 if any is wrong.
    Check(Selection),
    /// Measure batches of gradients against single calls.
    Batch(BatchArgs),
    /// Measure kernels with closed forms against kernels without.
    Benefit(BenefitArgs),
    /// Measure short loops in the form that the cost model chooses, and in the others.
    Choices(ChoicesArgs),
    /// Measure closed forms of linear loops against loops by hand.
    Closed(ClosedArgs),
    /// Count how many calls at perturbed points a kernel knows after a few profiling runs.
    Coverage(CoverageArgs),
    /// Measure calls against untracked runs of the tape while paths are merged.
    Learning(LearningArgs),
    /// Measure what compiling costs on straight-line programs of growing length.
    Scaling(ScalingArgs),
    /// Measure what simplification costs, and what formulas gain by it.
    Simplify(SimplifyArgs),
    /// Measure kernels and compiling as segments grow, cut with and without regard to reuse.
    Soi(SoiArgs),
    /// Measure what compiling costs on loops of growing trip counts.
    Trips(TripsArgs),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The programs to run.
    #[command(flatten)]
    pub selection: Selection,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Far fewer repetitions: a look, not a measurement.
    #[arg(long)]
    pub quick: bool,
    /// Measure programs of about a thousand inputs instead, with what compiling them costs. The memory
    /// is that of the process, so that of the profile is right with one configuration alone.
    #[arg(long)]
    pub extra: bool,
}

/// Arguments of `batch`.
#[derive(Debug, Args)]
pub struct BatchArgs {
    /// The programs to run.
    #[command(flatten)]
    pub selection: Selection,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `benefit`.
#[derive(Debug, Args)]
pub struct BenefitArgs {
    /// Only programs whose names start so.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `learning`.
#[derive(Debug, Args)]
pub struct LearningArgs {
    /// Only programs whose names start so.
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// The number of calls of each program.
    #[arg(long, default_value_t = 5000)]
    pub calls: usize,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `choices`.
#[derive(Debug, Args)]
pub struct ChoicesArgs {
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `closed`.
#[derive(Debug, Args)]
pub struct ClosedArgs {
    /// The number of iterations of each loop.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub steps: usize,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `coverage`.
#[derive(Debug, Args)]
pub struct CoverageArgs {
    /// Only programs whose names start so (upper or lower case).
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// With how many sets of points to count.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seeds: u64,
    /// Also list the comparisons at which calls left the kernels.
    #[arg(long)]
    pub side_exits: bool,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `scaling`.
#[derive(Debug, Args)]
pub struct ScalingArgs {
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `simplify`.
#[derive(Debug, Args)]
pub struct SimplifyArgs {
    /// Only formulas and programs whose names start so (upper or lower case).
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `soi`.
#[derive(Debug, Args)]
pub struct SoiArgs {
    /// Draw the curves to this file.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// A few limits, short programs: a look, not a measurement.
    #[arg(long)]
    pub quick: bool,
}

/// Arguments of `trips`.
#[derive(Debug, Args)]
pub struct TripsArgs {
    /// Also write the rows to this file as a JSON array.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Leave out larger numbers of iterations than this.
    #[arg(long, value_name = "N", default_value_t = usize::MAX)]
    pub most: usize,
}

/// The programs and configurations to treat; all without arguments.
#[derive(Debug, Default, Args)]
pub struct Selection {
    /// Only the program of this name (upper or lower case).
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Only the configuration of this number, counted from 1.
    #[arg(long, value_name = "N")]
    pub config: Option<usize>,
}

impl Selection {
    /// The selected programs, each with the number of one configuration.
    pub fn resolve(&self) -> Result<Vec<(&'static Entry, usize)>, Error> {
        self.resolve_among(PROGRAMS)
    }

    /// The same among `programs`.
    pub fn resolve_among<E: Selectable>(
        &self,
        programs: &'static [E],
    ) -> Result<Vec<(&'static E, usize)>, Error> {
        let named = |entry: &&E| match &self.only {
            Some(name) => entry.name().eq_ignore_ascii_case(name),
            None => true,
        };
        let entries: Vec<&'static E> = programs.iter().filter(named).collect();
        if let (Some(name), true) = (&self.only, entries.is_empty()) {
            let known = programs.iter().map(E::name).collect();
            return Err(Error::UnknownProgram { name: name.clone(), known });
        }
        let Some(config) = self.config else {
            let configs = |entry: &'static E| (1..=entry.configs()).map(move |c| (entry, c));
            return Ok(entries.into_iter().flat_map(configs).collect());
        };
        let check = |entry: &'static E| {
            if (1..=entry.configs()).contains(&config) {
                return Ok((entry, config));
            }
            let known = programs.iter().map(|entry| (entry.name(), entry.configs())).collect();
            Err(Error::UnknownConfig { config, program: entry.name(), known })
        };
        entries.into_iter().map(check).collect()
    }
}

/// A program that the arguments may select.
pub trait Selectable {
    /// Its name.
    fn name(&self) -> &'static str;
    /// The number of its configurations.
    fn configs(&self) -> usize;
}

impl Selectable for Entry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn configs(&self) -> usize {
        self.configs
    }
}

impl Selectable for ExtraEntry {
    fn name(&self) -> &'static str {
        self.name
    }

    fn configs(&self) -> usize {
        self.configs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::extra::EXTRA;

    fn select(
        only: Option<&str>,
        config: Option<usize>,
    ) -> Result<Vec<(&'static str, usize)>, Error> {
        let selection = Selection { only: only.map(str::to_owned), config };
        let names = |(entry, config): (&'static Entry, usize)| (entry.name, config);
        selection.resolve().map(|selected| selected.into_iter().map(names).collect())
    }

    #[test]
    fn without_arguments_everything_is_selected() {
        let all: usize = PROGRAMS.iter().map(|entry| entry.configs).sum();
        assert_eq!(select(None, None).unwrap().len(), all);
    }

    #[test]
    fn name_and_configuration_narrow_the_selection() {
        assert_eq!(select(Some("hmc"), Some(2)).unwrap(), [("HMC", 2)]);
        assert_eq!(select(Some("HMC"), None).unwrap(), [("HMC", 1), ("HMC", 2), ("HMC", 3)]);
        assert_eq!(select(None, Some(1)).unwrap().len(), PROGRAMS.len());
    }

    #[test]
    fn an_unknown_name_is_an_argument_error_that_lists_the_names() {
        let error = select(Some("Pendulum"), None).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let message = error.to_string();
        assert!(message.contains("'Pendulum'"), "{message}");
        assert!(PROGRAMS.iter().all(|entry| message.contains(entry.name)), "{message}");
    }

    #[test]
    fn a_configuration_out_of_range_is_an_argument_error_that_lists_the_ranges() {
        for config in [0, 99] {
            let error = select(Some("HookeanSpring"), Some(config)).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            let message = error.to_string();
            assert!(
                message.contains(&format!("configuration {config} of HookeanSpring")),
                "{message}"
            );
            assert!(message.contains("HMC 1 to 3"), "{message}");
        }
    }

    #[test]
    fn extra_programs_are_selected_among_themselves() {
        let selection = Selection { only: Some("heat".to_owned()), config: None };
        let selected = selection.resolve_among(EXTRA).unwrap();
        assert_eq!((selected[0].0.name, selected.len()), ("Heat", 1));
        let selection = Selection { only: Some("HMC".to_owned()), config: None };
        let error = selection.resolve_among(EXTRA).err().unwrap();
        assert!(error.to_string().contains("Pairs"), "{error}");
    }

    #[test]
    fn malformed_arguments_are_refused_by_the_parser() {
        for arguments in [
            &["phigrad-bench"][..],
            &["phigrad-bench", "fly"],
            &["phigrad-bench", "run", "--config", "two"],
            &["phigrad-bench", "run", "--json"],
            &["phigrad-bench", "check", "--quick"],
        ] {
            let error = Cli::try_parse_from(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn run_takes_all_its_options() {
        let line = "phigrad-bench run --only HMC --config 2 --json rows.json --quick";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::Run(args) = cli.command else { panic!("not run: {:?}", cli.command) };
        assert!(args.quick);
        assert_eq!(args.json, Some(PathBuf::from("rows.json")));
        assert_eq!((args.selection.only.as_deref(), args.selection.config), (Some("HMC"), Some(2)));
    }
}
