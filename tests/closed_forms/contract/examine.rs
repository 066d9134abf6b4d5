//! Examination of one family: its points, the executors that compute results, and their verdicts.

use std::time::Instant;

use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::numeric::double_double::Bounded;

use super::arithmetic::{Arithmetic, Multi, set_precision};
use super::bounded::error;
use super::families::{Family, Reference};
use super::judge::{Component, Measured, Verdict, is_accepted, judge, ulp};
use super::reference::{exact, output_at_start};
use super::served::{Results, Server};
use super::summary::Summary;

/// The reference is confirmed by a second computation at one of this many points.
const CONFIRMED: usize = 100;

/// The results that are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Results of kernels with closed forms.
    Kernel,
    /// Results of kernels with a planted error: each partial is that of another input.
    WrongPartials,
    /// Results that the contract accepts from binary powering in double-double arithmetic.
    Prototype(Bound),
}

/// The error bounds of the prototype, times a factor that is wrong unless it is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The running bound.
    Running(f64),
    /// The error itself.
    Tight(f64),
}

/// A family in the table.
pub trait Examined: Sync {
    fn title(&self) -> String;

    /// True if its loop is a power of an affine map.
    fn is_affine(&self) -> bool;

    /// Judges about `points` points.
    fn examine(&self, points: usize, source: Source) -> Summary;
}

impl<F: Family> Examined for F {
    fn title(&self) -> String {
        self.name()
    }

    fn is_affine(&self) -> bool {
        self.reference() == Reference::Powers
    }

    fn examine(&self, points: usize, source: Source) -> Summary {
        let begin = Instant::now();
        let mut summary = Summary { name: self.name(), ..Summary::default() };
        // Long loops cost the tape more: they have an eighth of the points.
        let share = |trips: usize| if trips > 5000 { 1 } else { 8 };
        let all: usize = self.trips().iter().map(|&trips| share(trips)).sum();
        for &trips in self.trips() {
            let points = (points * share(trips)).div_ceil(all);
            examine_trips(self, trips, points, source, &mut summary);
        }
        summary.time = begin.elapsed();
        summary
    }
}

/// A generator of random numbers, seeded by the name of the family and the trip count.
fn seeded(family: &impl Family, trips: usize) -> Random {
    let seed = family
        .name()
        .bytes()
        .fold(trips as u64, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    Random::new(seed)
}

/// A point whose trip count does not depend on rounding, and the trip count.
fn draw(family: &impl Family, trips: usize, random: &mut Random) -> (Vec<f64>, usize) {
    loop {
        let point = family.point(trips, random);
        if let Some(steps) = family.steps(trips, &point) {
            return (point, steps);
        }
    }
}

/// The error that is always allowed, for each partial and the value.
fn floors(family: &impl Family, trips: usize, point: &[f64], value: &Multi) -> Vec<f64> {
    let effect = value.rounded().abs().max(output_at_start(family, trips, point).abs());
    let partials = point[..family.inputs()].iter().map(|&input| Component::Partial { input });
    partials.chain([Component::Value]).map(|component| component.floor(effect)).collect()
}

/// Values and partials of the prototype, if the contract accepts all of them.
fn prototype(
    family: &impl Family,
    (trips, steps): (usize, usize),
    point: &[f64],
    (truth, floors): (&[Multi], &[f64]),
    bound: Bound,
) -> Option<Vec<f64>> {
    let all: Vec<Bounded> = exact(family, Reference::Powers, (trips, steps), point);
    let is_accepted = |((found, truth), &floor): ((&Bounded, &Multi), &f64)| {
        let bound = match bound {
            Bound::Running(factor) => factor * found.bound,
            Bound::Tight(factor) => factor * error(*found, truth),
        };
        is_accepted(found.hi, bound, floor)
    };
    let accepted = all.iter().zip(truth).zip(floors).all(is_accepted);
    accepted.then(|| all.iter().map(|found| found.hi).collect())
}

fn examine_trips(
    family: &impl Family,
    trips: usize,
    points: usize,
    source: Source,
    summary: &mut Summary,
) {
    set_precision(family.bits());
    let captured = family.captured(trips);
    let program = |x: &[Var], data: &[Var]| {
        let captured = captured.iter().map(|&datum| Var::from(datum));
        let all: Vec<Var> = x.iter().chain(data).copied().chain(captured).collect();
        family.run(trips, &all)
    };
    let mut random = seeded(family, trips);
    let points: Vec<_> = (0..points).map(|_| draw(family, trips, &mut random)).collect();
    let profiled: Vec<Vec<f64>> =
        points.iter().take(family.profiled()).map(|(point, _)| point.clone()).collect();
    let begin = Instant::now();
    let server = match source {
        Source::Prototype(_) => Server::new(&program, family.inputs()),
        _ => Server::compiled(&program, family.inputs(), &profiled),
    };
    summary.compilation += begin.elapsed();
    summary.formulas += server.formulas();
    for (number, (point, steps)) in points.iter().enumerate() {
        let truth: Vec<Multi> = exact(family, family.reference(), (trips, *steps), point);
        let floors = floors(family, trips, point, &truth[family.inputs()]);
        if number % CONFIRMED == 0 {
            confirm(family, (trips, *steps), point, &floors);
        }
        let mut results = server.call(point);
        let before = summary.violations;
        let mut accepted = server.accepts(point);
        match source {
            Source::Kernel => {}
            Source::WrongPartials => {
                // The sign of one partial is wrong.
                let partials = &mut results.kernel[..family.inputs()];
                partials.rotate_left(1);
                partials[0] = -partials[0];
                accepted = Some(true);
            }
            Source::Prototype(bound) => {
                let known = (&truth[..], &floors[..]);
                let found = prototype(family, (trips, *steps), point, known, bound);
                accepted = Some(found.is_some());
                results.kernel = found.unwrap_or_else(|| results.loops.clone());
            }
        }
        summary.rejected += usize::from(accepted == Some(false));
        judge_point(summary, &results, &truth, &floors, accepted, |component| {
            format!("n = {trips}, {} steps, component {component} at {point:?}", steps)
        });
        // Sums in working precision and fallback loops have no error bound: they are as accurate as
        // the tape, but for points at which the tape happens to be exact.
        let has_bound = !server.has_sums_without_bound() && accepted != Some(false);
        if summary.violations > before && source == Source::Kernel && !has_bound {
            let on_tape = |point: &[f64]| server.on_tape(point);
            let allowed = allowed_nearby(family, (trips, *steps), point, &on_tape);
            let errors = results.kernel.iter().zip(&truth).map(|(&x, truth)| truth.distance(x));
            if errors.zip(allowed).all(|(error, allowed)| error <= allowed) {
                summary.by_chance += summary.violations - before;
                summary.violations = before;
            }
        }
    }
    summary.points += points.len();
    summary.kernel_calls += server.kernel_calls();
}

/// Judges the results at a point.
fn judge_point(
    summary: &mut Summary,
    results: &Results,
    truth: &[Multi],
    floors: &[f64],
    accepted: Option<bool>,
    at: impl Fn(usize) -> String,
) {
    for (component, (truth, &floor)) in truth.iter().zip(floors).enumerate() {
        let tape = results.tape[component];
        let (exact, tape_error) = (truth.rounded(), truth.distance(tape));
        let of = |found: f64| {
            let error = truth.distance(found);
            Measured { exact, found, error, tape, tape_error, floor }
        };
        let [found, by_loop] = [results.kernel[component], results.loops[component]];
        summary.loop_worse += usize::from(matches!(judge(of(by_loop)), Verdict::Violated(_)));
        let measured = of(found);
        let verdict = judge(measured);
        // A rejected call returns the loop's result, which is right by definition.
        let is_loops = accepted != Some(true) && found.to_bits() == by_loop.to_bits();
        summary.count(verdict, is_loops, || {
            let Measured { exact, error, tape_error, floor, .. } = measured;
            format!(
                "{}: {exact:e}, found {found:e}, off by {error:e}, tape by {tape_error:e}, \
                 floor {floor:e}",
                at(component)
            )
        });
    }
}

/// Asserts that the reference is the same with twice the bits, for short loops step by step.
fn confirm(family: &impl Family, (trips, steps): (usize, usize), point: &[f64], floors: &[f64]) {
    let here: Vec<Multi> = exact(family, family.reference(), (trips, steps), point);
    set_precision(2 * family.bits());
    let how = if steps <= 300 { Reference::Steps } else { family.reference() };
    let there: Vec<Multi> = exact(family, how, (trips, steps), point);
    for (component, ((a, b), floor)) in here.iter().zip(&there).zip(floors).enumerate() {
        if !b.rounded().is_finite() {
            continue;
        }
        let apart = a.sub(b).rounded().abs();
        let allowed = 2f64.powi(-20) * (ulp(b.rounded()) + floor);
        let name = family.name();
        assert!(apart <= allowed, "{name}, {trips}, {component} at {point:?}: {a:?} {b:?}");
    }
    set_precision(family.bits());
}

/// The error that four times the tape's largest error at nearby points allows for each component.
/// A tape that happens to be exact at one point is not so at the others.
fn allowed_nearby(
    family: &impl Family,
    (trips, steps): (usize, usize),
    point: &[f64],
    on_tape: &dyn Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let truth = |point: &[f64]| exact(family, family.reference(), (trips, steps), point);
    let here: Vec<Multi> = truth(point);
    let floors = floors(family, trips, point, &here[family.inputs()]);
    let at_least = |(truth, floor): (&Multi, f64)| 4.0 * ulp(truth.rounded()) + floor;
    let mut allowed: Vec<f64> = here.iter().zip(floors).map(at_least).collect();
    let ulps = allowed.clone();
    for input in 0..family.inputs() {
        for step in [0.0, -1e-9, 3e-12, -1e-15] {
            let mut near = point.to_vec();
            near[input] += step * near[input].abs().max(1e-6);
            let (tape, truth) = (on_tape(&near), truth(&near));
            for (i, (&x, truth)) in tape.iter().zip(&truth).enumerate() {
                allowed[i] = allowed[i].max(4.0 * truth.distance(x) + ulps[i]);
            }
        }
    }
    allowed
}
