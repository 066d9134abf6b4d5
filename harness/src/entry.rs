//! One line of the list of programs: what the commands can do with a program,
//! whatever its type.

use phigrad::internals::ssa::Graph;

use crate::commands::batch::{self, BatchRow};
use crate::commands::simplify::traced;
use crate::error::Error;
use crate::measure::{self, Row};
use crate::programs::Program;
use crate::timing::{Plan, RoundDone};
use crate::vectors::Case;
use crate::verify::{self, LibraryDeviations, PlainDeviations};

/// A program with its type erased. Function pointers keep the loops that are
/// timed compiled for the program's own type, without a virtual call in them.
pub struct Entry {
    /// Name of the program.
    pub name: &'static str,
    /// Number of its configurations.
    pub configs: usize,
    /// Verifies what does not need the library: primals and gradient by hand.
    pub verify_plain: fn(&Case) -> Result<PlainDeviations, Error>,
    /// Verifies what the library answers.
    pub verify_library: fn(&Case) -> Result<LibraryDeviations, Error>,
    /// Verifies all, then measures it.
    pub measure: fn(&Case, &Plan, RoundDone) -> Result<Row, Error>,
    /// Measures batches.
    pub batch: fn(&Case) -> Result<BatchRow, Error>,
    /// The graph of the objective, as recorded at the point of the case.
    pub graph: fn(&Case) -> Result<Graph, Error>,
}

impl Entry {
    /// The entry of the program `P`.
    pub const fn of<P: Program>() -> Entry {
        Entry {
            name: P::NAME,
            configs: P::CONFIGS.len(),
            verify_plain: verify::verify_plain::<P>,
            verify_library: verify::verify_library::<P>,
            measure: measure::measure::<P>,
            batch: batch::measure::<P>,
            graph: graph::<P>,
        }
    }
}

fn graph<P: Program>(case: &Case) -> Result<Graph, Error> {
    let program = case.program::<P>()?;
    traced(&case.subject(), |x| program.objective(x), &case.input)
}
