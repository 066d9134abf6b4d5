//! The checks of a program, and the macro that makes a test of it.

use std::fmt;
use std::panic::Location;

use phigrad::check::{Tolerance, close, same};
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::merge::{MergeError, MergeLimits, MergedTraces, UnmergedReason};
use phigrad::internals::ssa::{Folding, Graph, Outcome, interpret, simplify, verify};
use phigrad::internals::trace::{Adjoints, Detail, Inputs, Tracer, sweep};
use phigrad::{Numerics, Refusal, Tape, Var};

/// The expected state of a program's graph after its runs.
#[derive(Clone, Copy)]
pub enum Expect {
    /// All its regions merge, and this share of inputs is known.
    Merges(f64),
    /// All its regions merge, but paths that differ in live static state do not
    /// join, so that less is known.
    Splits(f64),
    /// A region does not merge, because of the variable of this name, and this
    /// share of inputs is known nevertheless.
    Keeps(&'static str, f64),
    /// A region does not merge, because a number is used after it without being
    /// carried.
    UntrackedUse(f64),
    /// A region does not merge, because it has one path or several, depending on
    /// the path that leads to it.
    DependsOnContext(f64),
    /// No more than soundness.
    Sound,
}

/// The inputs that a program is run on.
#[derive(Clone, Copy)]
pub struct Domain {
    /// Their number.
    pub inputs: usize,
    pub low: f64,
    pub high: f64,
    /// The order of the profiling runs.
    pub order: Order,
    /// The number of profiling runs.
    pub runs: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Random,
    /// By the first input.
    Ascending,
    Descending,
}

/// `count` inputs between -2 and 2, and 50 profiling runs.
pub const fn inputs(count: usize) -> Domain {
    Domain { inputs: count, low: -2.0, high: 2.0, order: Order::Random, runs: 50 }
}

impl Domain {
    pub const fn between(self, low: f64, high: f64) -> Domain {
        Domain { low, high, ..self }
    }

    pub const fn order(self, order: Order) -> Domain {
        Domain { order, ..self }
    }

    /// Any numbers; on some points ties, and on few what is not ordinary.
    fn point(self, random: &mut Random) -> Vec<f64> {
        const ODD: [f64; 8] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1e-310, -1e-310, 40.0];
        let ties = random.chance(0.15);
        let odd = random.chance(0.05);
        let number = |random: &mut Random| {
            if odd && random.chance(0.4) {
                return random.pick(&ODD);
            }
            let any = random.uniform(self.low, self.high);
            if ties { (any * 2.0).round() * 0.5 } else { any }
        };
        (0..self.inputs).map(|_| number(random)).collect()
    }

    fn points(self, random: &mut Random, count: usize) -> Vec<Vec<f64>> {
        (0..count).map(|_| self.point(random)).collect()
    }

    /// The points of the profiling runs, in order; none is odd.
    fn profiled(self, random: &mut Random, count: usize) -> Vec<Vec<f64>> {
        let number = |random: &mut Random| random.uniform(self.low, self.high);
        let mut points: Vec<Vec<f64>> =
            (0..count).map(|_| (0..self.inputs).map(|_| number(random)).collect()).collect();
        match self.order {
            Order::Random => {}
            Order::Ascending => points.sort_by(|a, b| a[0].total_cmp(&b[0])),
            Order::Descending => points.sort_by(|a, b| b[0].total_cmp(&a[0])),
        }
        points
    }
}

/// Value and gradient.
#[derive(Debug)]
struct Answer {
    value: f64,
    gradient: Vec<f64>,
}

/// A program in its three forms.
///
/// Of one type, so that the checks are compiled once and not for each program.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    pub name: &'static str,
    pub annotated: fn(&[Var]) -> Var,
    pub unannotated: fn(&[Var]) -> Var,
    pub plain: &'a dyn Fn(&[f64]) -> f64,
}

impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const LIMIT: usize = 1 << 20;

fn taped(tracer: &mut Tracer, run: fn(&[Var]) -> Var, x: &[f64]) -> Answer {
    let inputs = Inputs { active: x, inactive: &[] };
    let trace = tracer.run(|x, _| run(x), inputs, LIMIT, Location::caller()).unwrap();
    let gradient = sweep(&trace, &mut Adjoints::default()).to_vec();
    Answer { value: trace.value(), gradient }
}

impl Program<'_> {
    /// Checks everything.
    pub fn check(&self, domain: Domain, expect: Expect) {
        // A stream for each step, so that none depends on how long another is.
        let name: u64 = self.name.bytes().map(u64::from).sum();
        let random = |step: u64| Random::new(name << 8 | step);
        self.agree(&domain.points(&mut random(0), 300));
        let few = &mut random(1);
        // Most is claimed wrongly where little has been seen.
        for runs in (1..8).flat_map(|runs| [runs; 4]).chain([9, 15, 20]) {
            let profiled = domain.profiled(few, runs);
            let mut traces = self.profile(&profiled, expect);
            let points = domain.points(few, 40);
            self.graphs(&mut traces, &profiled, &points);
        }
        let profiled = domain.profiled(&mut random(2), domain.runs);
        let mut traces = self.profile(&profiled, expect);
        let points = domain.points(&mut random(3), 1000);
        let known = self.graphs(&mut traces, &profiled, &points);
        let known = known as f64 / points.len() as f64;
        if std::env::var_os("SHARES").is_some() {
            self.show(&profiled, &points, known);
        }
        self.expected(&traces, expect);
        match expect {
            Expect::Merges(least)
            | Expect::Splits(least)
            | Expect::Keeps(_, least)
            | Expect::UntrackedUse(least)
            | Expect::DependsOnContext(least) => {
                assert!(known >= least, "{self}: {known} of the inputs are known");
            }
            Expect::Sound => {}
        }
        let points = domain.points(&mut random(4), 500);
        self.served(Numerics::Exact, true, &points, expect);
        self.served(Numerics::Real, true, &points, expect);
        self.served(Numerics::Real, false, &points, expect);
    }

    /// Checks that nothing is wrong, on fewer inputs.
    pub fn check_lightly(&self, domain: Domain) {
        let name: u64 = self.name.bytes().map(u64::from).sum();
        let random = |step: u64| Random::new(name << 8 | step);
        self.agree(&domain.points(&mut random(0), 100));
        let few = &mut random(1);
        for runs in [1, 3, 8, 20] {
            let profiled = domain.profiled(few, runs);
            let mut traces = self.profile(&profiled, Expect::Splits(0.0));
            let known = self.graphs(&mut traces, &profiled, &domain.points(few, 50));
            if std::env::var_os("SHARES").is_some() && runs == 20 {
                let unmerged = traces.unmerged();
                println!("SHARE {self}: {known} of 50, not merged: {unmerged:?}");
            }
        }
        let points = domain.points(&mut random(2), 150);
        self.served(Numerics::Exact, true, &points, Expect::Splits(0.0));
        self.served(Numerics::Real, true, &points, Expect::Splits(0.0));
        self.served(Numerics::Real, false, &points, Expect::Splits(0.0));
    }

    /// The attribute changes nothing.
    fn agree(&self, points: &[Vec<f64>]) {
        let mut tracer = Tracer::default();
        for x in points {
            let annotated = taped(&mut tracer, self.annotated, x);
            let unannotated = taped(&mut tracer, self.unannotated, x);
            let plain = (self.plain)(x);
            assert!(same(annotated.value, unannotated.value), "{self} at {x:?}");
            assert!(same(annotated.value, plain), "{self} at {x:?}: {annotated:?} {plain}");
            // Joins change the order in which adjoints are summed.
            self.assert_close(x, &annotated, &unannotated);
        }
    }

    fn profile(&self, profiled: &[Vec<f64>], expect: Expect) -> MergedTraces {
        let mut tracer = Tracer::default();
        tracer.detail(Detail::Captures);
        let mut traces = MergedTraces::new(profiled[0].len(), 0);
        for x in profiled {
            let inputs = Inputs { active: x, inactive: &[] };
            let run = |x: &[Var], _: &[Var]| (self.annotated)(x);
            let trace = tracer.run(run, inputs, LIMIT, Location::caller()).unwrap();
            let limits = MergeLimits { paths: usize::MAX, nodes: 1 << 22 };
            match (traces.merge(&trace, limits), expect) {
                (Ok(_), _) | (Err(MergeError::Divergent { .. }), Expect::Sound) => {}
                (Err(error), _) => panic!("{self}: {error}"),
            }
        }
        traces
    }

    fn expected(&self, traces: &MergedTraces, expect: Expect) {
        if let Expect::Sound = expect {
            return;
        }
        let unmerged = traces.unmerged();
        let found = unmerged.iter().any(|region| match (expect, &region.reason) {
            (Expect::Keeps(expected, _), UnmergedReason::Opaque { name }) => *name == expected,
            (Expect::UntrackedUse(_), UnmergedReason::UntrackedUse { .. })
            | (Expect::DependsOnContext(_), UnmergedReason::DependsOnContext) => true,
            _ => false,
        });
        let wanted = matches!(
            expect,
            Expect::Keeps(..) | Expect::UntrackedUse(_) | Expect::DependsOnContext(_)
        );
        let merges = matches!(expect, Expect::Merges(_) | Expect::Splits(_));
        assert!(found == wanted, "{self}: {unmerged:?}");
        assert!(!merges || unmerged.is_empty(), "{self}: {unmerged:?}");
    }

    /// Checks the graph and those of its gradient; returns how many of the points
    /// they know.
    fn graphs(
        &self,
        traces: &mut MergedTraces,
        profiled: &[Vec<f64>],
        points: &[Vec<f64>],
    ) -> usize {
        let graph = traces.graph();
        verify(graph).unwrap_or_else(|error| panic!("{self}: {error}\n{graph}"));
        let gradient = reverse(graph, Wanted::GradientAndValue, Folding::Exact);
        verify(&gradient).unwrap_or_else(|error| panic!("{self}: {error}\n{gradient}"));
        let small = simplify(&gradient, Folding::Exact);
        verify(&small).unwrap_or_else(|error| panic!("{self}: {error}\n{small}"));
        let (mut tracer, mut known) = (Tracer::default(), 0);
        for (index, x) in profiled.iter().chain(points).enumerate() {
            let Outcome::Values(values) = interpret(graph, x) else { continue };
            known += usize::from(index >= profiled.len());
            let answer = taped(&mut tracer, self.annotated, x);
            assert!(
                values.len() == 1 && same(values[0], answer.value),
                "{self} at {x:?}: the graph has {values:?}, the tape {answer:?}\n{graph}"
            );
            // Either of the two on each point.
            self.derived(if index % 2 == 0 { &gradient } else { &small }, x, &answer);
        }
        known
    }

    fn derived(&self, gradient: &Graph, x: &[f64], answer: &Answer) {
        let Outcome::Values(found) = interpret(gradient, x) else {
            panic!("{self} at {x:?}: the gradient knows less than the value\n{gradient}");
        };
        // What is not finite the tape decides.
        if found.iter().all(|number| number.is_finite()) {
            let expected = answer.gradient.iter().chain([&answer.value]);
            assert!(
                found.iter().zip(expected).all(|(&a, &b)| same(a, b)),
                "{self} at {x:?}: {found:?} is not {answer:?}\n{gradient}"
            );
        }
    }

    /// Kernels, with closed forms and without, agree with the tape.
    fn served(&self, numerics: Numerics, closes: bool, points: &[Vec<f64>], expect: Expect) {
        let builder = Tape::builder().numerics(numerics).phi_calculus(closes);
        let builder = builder.background(false).hot_threshold(30);
        let recorded = builder.record(self.annotated);
        let mut tracer = Tracer::default();
        for (index, x) in points.iter().enumerate() {
            let expected = taped(&mut tracer, self.annotated, x);
            let (value, gradient) = recorded.value_and_grad(x).unwrap();
            let found = Answer { value, gradient };
            match numerics {
                Numerics::Exact => self.assert_same(x, &found, &expected),
                _ => self.assert_close(x, &found, &expected),
            }
            if index % 16 == 0 {
                let found = Answer {
                    value: recorded.eval(x).unwrap(),
                    gradient: recorded.grad(x).unwrap(),
                };
                match numerics {
                    Numerics::Exact => self.assert_same(x, &found, &expected),
                    _ => self.assert_close(x, &found, &expected),
                }
            }
        }
        let report = recorded.report();
        if std::env::var_os("SHARES").is_some() {
            println!("REPORT {self} {}: {:?}", report.kernel_calls, report.refusals);
        }
        let diverged = report
            .refusals
            .iter()
            .any(|refusal| matches!(refusal, Refusal::Path(MergeError::Divergent { .. })));
        assert!(!diverged || matches!(expect, Expect::Sound), "{self}: {report}");
        if let Expect::Merges(_) = expect {
            assert!(report.kernel_calls as usize > points.len() / 4, "{self}: {report}");
        }
    }

    fn assert_same(&self, x: &[f64], found: &Answer, expected: &Answer) {
        let equal = same(found.value, expected.value)
            && found.gradient.iter().zip(&expected.gradient).all(|(&a, &b)| same(a, b));
        assert!(equal, "{self} at {x:?}: {found:?} is not {expected:?}");
    }

    fn assert_close(&self, x: &[f64], found: &Answer, expected: &Answer) {
        let largest = expected.gradient.iter().copied().chain([expected.value]);
        let largest = largest.filter(|number| number.is_finite()).map(f64::abs).fold(1.0, f64::max);
        let tolerance = Tolerance::new(1e-10, 1e-10 * largest);
        // Where the tape says infinite or NaN, the order of the sums may decide.
        let near = |a: f64, b: f64| !b.is_finite() || close(a, b, tolerance);
        let equal = near(found.value, expected.value)
            && found.gradient.iter().zip(&expected.gradient).all(|(&a, &b)| near(a, b));
        assert!(equal, "{self} at {x:?}: {found:?} is not close to {expected:?}");
    }

    /// Prints how much is known with and without regions.
    fn show(&self, profiled: &[Vec<f64>], points: &[Vec<f64>], known: f64) {
        let without = Program { annotated: self.unannotated, ..*self };
        let mut traces = without.profile(profiled, Expect::Sound);
        let graph = traces.graph();
        let is_known = |x: &&Vec<f64>| matches!(interpret(graph, x), Outcome::Values(_));
        let few = points.iter().filter(is_known).count() as f64 / points.len() as f64;
        println!("SHARE {self}: {known:.3} with regions, {few:.3} without");
    }
}

/// The value of a program that is written for traced numbers alone.
pub fn value_of(run: fn(&[Var]) -> Var) -> impl Fn(&[f64]) -> f64 {
    move |x| taped(&mut Tracer::default(), run, x).value
}

/// Tests of programs: name, domain, expectation, and items. Those in `traced`
/// are annotated in one of two copies; among them is `run`, generic over `Num`.
macro_rules! programs {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $domain:expr, $expect:expr,
        $(plain { $($plain:item)* })?
        traced { $($traced:item)* }
    )*) => {
        $(
            mod $name {
                #[allow(warnings, clippy::all)]
                mod unannotated {
                    use crate::soundness::num::Num;
                    $($($plain)*)?
                    $($traced)*
                }

                #[allow(warnings, clippy::all)]
                mod annotated {
                    use crate::soundness::num::Num;
                    $($($plain)*)?
                    $(#[phigrad::traced] $traced)*
                }

                $(#[$attribute])*
                #[test]
                fn is_sound() {
                    #[allow(unused_imports)]
                    use crate::soundness::check::{Expect::*, Order::*, inputs};
                    let name = module_path!().trim_start_matches("traced::");
                    let program = crate::soundness::check::Program {
                        name,
                        annotated: annotated::run::<phigrad::Var>,
                        unannotated: unannotated::run::<phigrad::Var>,
                        plain: &unannotated::run::<f64>,
                    };
                    program.check($domain, $expect);
                }
            }
        )*
    };
}

/// The same of programs on `Var` itself, whose annotated copy must compile without
/// a warning.
macro_rules! ordinary {
    ($(
        $(#[$attribute:meta])*
        $name:ident: $domain:expr,
        $(plain { $($plain:item)* })?
        traced { $($traced:item)* }
    )*) => {
        $(
            mod $name {
                #[allow(warnings, clippy::all)]
                mod unannotated {
                    use phigrad::{Carry, Var};
                    $($($plain)*)?
                    $($traced)*
                }

                #[deny(warnings)]
                // What clippy says of the code as it is written.
                #[allow(dead_code, unused_imports, clippy::restriction, clippy::style)]
                #[allow(clippy::boxed_local, clippy::neg_cmp_op_on_partial_ord)]
                #[allow(clippy::multiple_bound_locations, clippy::possible_missing_else)]
                mod annotated {
                    use phigrad::{Carry, Var};
                    $($($plain)*)?
                    $(#[phigrad::traced] $traced)*
                }

                $(#[$attribute])*
                #[test]
                fn is_sound() {
                    use crate::soundness::check::{inputs, value_of};
                    let program = crate::soundness::check::Program {
                        name: module_path!().trim_start_matches("traced::"),
                        annotated: annotated::run,
                        unannotated: unannotated::run,
                        plain: &value_of(unannotated::run),
                    };
                    program.check_lightly($domain);
                }
            }
        )*
    };
}
