//! Verifies one configuration: every way to get a value or a gradient against
//! the expected ones.

use std::panic::Location;
use std::sync::Arc;

use phigrad::Numerics;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Outcome, interpret, simplify};
use phigrad::internals::trace::{Inputs, Tracer};

use crate::accuracy::{deviation, same_bits};
use crate::compiled::{failed, record, require_kernel_calls};
use crate::error::Error;
use crate::programs::Program;
use crate::vectors::Case;

/// The largest deviation that passes.
pub const TOLERANCE: f64 = 1e-10;

/// Deviations of what does not need the library.
#[derive(Clone, Copy, Debug)]
pub struct PlainDeviations {
    /// The objective written for every kind of number, run on `f64`.
    pub generic: f64,
    /// The objective by hand.
    pub primal: f64,
    /// The gradient by hand.
    pub hand: f64,
}

/// Deviations of what the library answers; of value or gradient, whichever is
/// larger.
#[derive(Clone, Copy, Debug)]
pub struct LibraryDeviations {
    /// The tape.
    pub tape: f64,
    /// The interpreter, on the derivative of the graph with loops.
    pub interpreter: f64,
    /// Kernels with real-number rewrites, the default.
    pub kernel_real: f64,
    /// Kernels that must repeat the tape bit for bit.
    pub kernel_exact: f64,
    /// True if they did.
    pub same_bits: bool,
}

impl PlainDeviations {
    /// The violations; empty if there are none.
    pub fn findings(&self) -> Vec<String> {
        too_large(&[
            ("objective on f64", self.generic),
            ("primal by hand", self.primal),
            ("gradient by hand", self.hand),
        ])
    }
}

impl LibraryDeviations {
    /// The violations; empty if there are none.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = too_large(&[
            ("tape", self.tape),
            ("interpreter", self.interpreter),
            ("kernel (real)", self.kernel_real),
            ("kernel (exact)", self.kernel_exact),
        ]);
        if !self.same_bits {
            findings.push("kernel (exact) differs from the tape in some bits".to_owned());
        }
        findings
    }
}

fn too_large(deviations: &[(&str, f64)]) -> Vec<String> {
    deviations
        .iter()
        .filter(|(_, deviation)| *deviation > TOLERANCE)
        .map(|(what, deviation)| format!("{what} is off by {deviation:.1e}"))
        .collect()
}

/// Verifies what does not need the library.
pub fn verify_plain<P: Program>(case: &Case) -> Result<PlainDeviations, Error> {
    let program: P = case.program()?;
    let mut work = program.work();
    let mut gradient = vec![0.0; case.input.len()];
    program.hand_gradient(&case.input, &mut gradient, &mut work);
    Ok(PlainDeviations {
        generic: deviation(&[program.objective(&case.input)], &[case.value]),
        primal: deviation(&[program.primal(&case.input, &mut work)], &[case.value]),
        hand: deviation(&gradient, &case.grad),
    })
}

/// Verifies what the library answers.
pub fn verify_library<P: Program>(case: &Case) -> Result<LibraryDeviations, Error> {
    let program: Arc<P> = Arc::new(case.program()?);
    let (tape_real, kernel_real) = answers(Arc::clone(&program), case, Numerics::Real)?;
    let (tape_exact, kernel_exact) = answers(Arc::clone(&program), case, Numerics::Exact)?;
    Ok(LibraryDeviations {
        tape: tape_real.deviation(case).max(tape_exact.deviation(case)),
        interpreter: interpreted(&*program, case)?,
        kernel_real: kernel_real.deviation(case),
        kernel_exact: kernel_exact.deviation(case),
        same_bits: kernel_exact.same_bits(&tape_exact),
    })
}

/// The deviation of the interpreter, stage by stage instead of in a recording.
fn interpreted<P: Program>(program: &P, case: &Case) -> Result<f64, Error> {
    let unfit = |finding: String| Error::Inaccurate { subject: case.subject(), finding };
    let (mut tracer, mut traces) = (Tracer::default(), MergedTraces::new(case.input.len(), 0));
    let inputs = Inputs { active: &case.input, inactive: &[] };
    let run = |x: &[_], _: &[_]| program.objective(x);
    let trace = tracer.run(run, inputs, 1 << 24, Location::caller());
    let trace = trace.map_err(|error| unfit(error.to_string()))?;
    let limits = MergeLimits { paths: 1, nodes: usize::MAX };
    traces.merge(&trace, limits).map_err(|error| unfit(error.to_string()))?;
    let primal = simplify(&reroll(traces.graph(), RerollLimits::default()), Folding::Real);
    let gradient = reverse(&primal, Wanted::GradientAndValue, Folding::Real);
    match interpret(&gradient, &case.input) {
        Outcome::Values(found) => {
            let expected = [case.grad.as_slice(), &[case.value]].concat();
            Ok(deviation(&found, &expected))
        }
        Outcome::Unseen(_) => Err(unfit("the interpreter does not know the path".to_owned())),
    }
}

/// Fails unless everything is right.
pub fn require_right<P: Program>(case: &Case) -> Result<LibraryDeviations, Error> {
    let plain = verify_plain::<P>(case)?;
    let library = verify_library::<P>(case)?;
    let findings = [plain.findings(), library.findings()].concat();
    if findings.is_empty() {
        return Ok(library);
    }
    Err(Error::Inaccurate { subject: case.subject(), finding: findings.join(", ") })
}

/// The answers of a recording at one point, by all three calls.
struct Answers {
    /// From `eval` and from `value_and_grad`.
    values: [f64; 2],
    /// From `grad` and from `value_and_grad`.
    gradients: [Vec<f64>; 2],
}

impl Answers {
    fn deviation(&self, case: &Case) -> f64 {
        let values = self.values.iter().map(|value| deviation(&[*value], &[case.value]));
        let gradients = self.gradients.iter().map(|gradient| deviation(gradient, &case.grad));
        values.chain(gradients).fold(0.0, f64::max)
    }

    fn same_bits(&self, other: &Answers) -> bool {
        let mut gradients = self.gradients.iter().zip(&other.gradients);
        same_bits(&self.values, &other.values) && gradients.all(|(a, b)| same_bits(a, b))
    }
}

/// The answers of the tape, and after compiling those of the kernels.
fn answers<P: Program>(
    program: Arc<P>,
    case: &Case,
    numerics: Numerics,
) -> Result<(Answers, Answers), Error> {
    let subject = case.subject();
    let recorded = record(move |x| program.objective(x), numerics);
    let ask = || {
        let value = recorded.eval(&case.input)?;
        let gradient = recorded.grad(&case.input)?;
        let (value_too, gradient_too) = recorded.value_and_grad(&case.input)?;
        Ok(Answers { values: [value, value_too], gradients: [gradient, gradient_too] })
    };
    let tape = ask().map_err(failed(&subject, "run the tape"))?;
    recorded.compile().map_err(failed(&subject, "compile"))?;
    let before = recorded.report();
    let kernel = ask().map_err(failed(&subject, "run a kernel"))?;
    require_kernel_calls(&subject, 3, &before, &recorded.report())?;
    Ok((tape, kernel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::PROGRAMS;
    use crate::vectors;

    const RIGHT: LibraryDeviations = LibraryDeviations {
        tape: 0.0,
        interpreter: 0.0,
        kernel_real: 1e-13,
        kernel_exact: 0.0,
        same_bits: true,
    };

    fn plain_deviations() -> Vec<(String, PlainDeviations)> {
        let cases = vectors::load().unwrap();
        let entry = |case: &Case| {
            PROGRAMS.iter().find(|entry| entry.name == case.benchmark).expect("a program")
        };
        let plain = |case| (entry(case).verify_plain)(case).unwrap();
        cases.iter().map(|case| (case.subject(), plain(case))).collect()
    }

    #[test]
    fn the_objective_on_f64_gives_the_expected_values() {
        for (subject, plain) in plain_deviations() {
            assert!(plain.generic <= 1e-15, "{subject}: {:e}", plain.generic);
            assert!(plain.primal <= 1e-15, "{subject}: {:e}", plain.primal);
        }
    }

    #[test]
    fn the_gradients_by_hand_are_the_expected_ones() {
        for (subject, plain) in plain_deviations() {
            assert!(plain.hand <= 1e-12, "{subject}: {:e}", plain.hand);
        }
    }

    #[test]
    fn right_answers_have_no_findings() {
        assert!(RIGHT.findings().is_empty());
        assert!(PlainDeviations { generic: 0.0, primal: 0.0, hand: 1e-11 }.findings().is_empty());
    }

    #[test]
    fn findings_name_what_is_wrong() {
        let findings =
            LibraryDeviations { kernel_real: 2e-10, same_bits: false, ..RIGHT }.findings();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert_eq!(findings[0], "kernel (real) is off by 2.0e-10");
        assert!(findings[1].contains("differs from the tape"), "{findings:?}");
        let infinite = LibraryDeviations { tape: f64::INFINITY, ..RIGHT };
        assert_eq!(infinite.findings(), ["tape is off by inf"]);
        let plain = PlainDeviations { generic: 0.0, primal: 0.0, hand: 1e-9 };
        assert_eq!(plain.findings(), ["gradient by hand is off by 1.0e-9"]);
    }
}
