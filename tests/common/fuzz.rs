//! The bodies of the fuzz targets: each takes any bytes and panics if the library is wrong.
//!
//! The test suite runs them for a few seconds on seeded bytes (`tests/executors/fuzz.rs`), the
//! targets in `fuzz/` on bytes from libFuzzer.

use super::outcomes::{agree, assert_as_interpreted};
use super::random_programs::{Program, Recipe};
use phigrad::check::same;
use phigrad::explain::Notation;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::jit::compile;
use phigrad::internals::numeric::Routine;
use phigrad::internals::ssa::{Folding, Graph, most_steps, parse, simplify, verify};
use phigrad::{Numerics, RecordedWith, Tape, Var};

/// The limit on steps, over all iterations, of graphs that are run; larger ones are only parsed.
const MOST_STEPS: u64 = 1 << 14;
/// The limit on inputs of graphs that are run.
const MOST_INPUTS: usize = 32;

/// Parses a graph. A parsed graph is valid, round-trips, keeps its outcomes when simplified, and
/// runs natively with the interpreter's bits; so does its gradient.
pub fn graph_text(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let Ok(graph) = parse(text) else { return };
    assert_eq!(verify(&graph), Ok(()), "{text}");
    let printed = graph.to_string();
    assert_eq!(parse(&printed).map(|graph| graph.to_string()), Ok(printed));
    let inputs = graph.active.saturating_add(graph.inactive);
    if inputs > MOST_INPUTS || most_steps(&graph, |_| 1) > MOST_STEPS {
        return;
    }
    let points = points(bytes, inputs);
    assert_native(&graph, &points);
    let simple = simplify(&graph, Folding::Exact);
    assert_eq!(verify(&simple), Ok(()), "{text}");
    for point in &points {
        agree(&graph, &simple, point, same);
    }
    if graph.outputs() == 1 && graph.regions.values().all(|data| data.replays.is_none()) {
        let gradient = reverse(&graph, Wanted::GradientAndValue, Folding::Exact);
        assert_eq!(verify(&gradient), Ok(()), "{text}");
        assert_native(&gradient, &points);
    }
}

/// Parses a routine. A parsed routine round-trips and runs.
pub fn routine_text(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else { return };
    let Ok(routine) = text.parse::<Routine>() else { return };
    assert_eq!(routine.to_string().parse(), Ok(routine.clone()), "{text}");
    if routine.inputs() > MOST_INPUTS {
        return;
    }
    let mut results = vec![0.0; routine.results()];
    for point in points(bytes, routine.inputs()) {
        routine.run(&point, true, &mut results);
        let values = results.clone();
        routine.run(&point, false, &mut results);
        // The value alone is that beside the partials, where both are accepted.
        let accepted = values[0] != 0.0 && results[0] != 0.0;
        for output in 0..routine.outputs() {
            let at = routine.value_index(output);
            assert!(!accepted || same(values[at], results[at]), "{point:?}\n{text}");
        }
    }
}

/// Writes any text in LaTeX, with braces that match.
pub fn notation(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace(['{', '}', '\\'], "");
    let latex = Notation::formula(text).latex;
    let depth = latex.chars().try_fold(0usize, |depth, character| match character {
        '{' => Some(depth + 1),
        '}' => depth.checked_sub(1),
        _ => Some(depth),
    });
    assert_eq!(depth, Some(0), "{latex}");
}

/// Makes a program of the bytes, records it at some points, and compares its exact kernel with
/// the tape, and the tape with plain numbers, at others.
pub fn program(bytes: &[u8]) {
    let random = &mut Random::from_choices(bytes);
    let recipe = Recipe {
        wild: random.chance(0.5),
        guards: random.uniform(0.0, 0.3),
        loops: random.uniform(0.0, 0.2),
        annotated: random.chance(0.5),
        counters: random.below(3),
        jumps: random.uniform(0.0, 0.2),
        statements: 1 + random.below(24),
        ..Recipe::default()
    };
    let program = recipe.program(random);
    let f = record(&program, u32::MAX);
    let on_tape = record(&program, u32::MAX);
    for round in 0..2 {
        for _ in 0..4 {
            let (x, data) = recipe.inputs(random);
            let (value, gradient) = f.value_and_grad(&x, &data).unwrap();
            let expected = on_tape.value_and_grad(&x, &data).unwrap();
            assert!(same(value, program.eval(&x, &data)), "{x:?} {data:?}\n{program}");
            let agrees = gradient.iter().zip(&expected.1).all(|(&a, &b)| same(a, b));
            assert!(same(value, expected.0) && agrees, "{round} {x:?} {data:?}\n{program}");
        }
        f.compile().unwrap();
    }
}

fn record(
    program: &Program,
    hot_threshold: u32,
) -> RecordedWith<impl Fn(&[Var], &[Var]) -> Var + use<>> {
    let program = program.clone();
    let builder = Tape::builder().numerics(Numerics::Exact).background(false);
    builder.hot_threshold(hot_threshold).record_with(move |x, data| program.eval(x, data))
}

/// Points that the bytes determine.
fn points(bytes: &[u8], inputs: usize) -> Vec<Vec<f64>> {
    let seed = bytes.iter().fold(0u64, |seed, &byte| seed.rotate_left(5) ^ u64::from(byte));
    let mut random = Random::new(seed);
    (0..3).map(|_| (0..inputs).map(|_| random.uniform(-2.0, 2.0)).collect()).collect()
}

fn assert_native(graph: &Graph, points: &[Vec<f64>]) {
    let Ok(kernel) = compile(graph) else { return };
    for point in points {
        assert_as_interpreted(graph, &kernel, point);
    }
}
