//! All executors agree on random programs: plain numbers, the tape, the
//! interpreter on the graph after each stage, native code and whole kernels.
//!
//! Where an adjoint is zero, the tape makes no contribution, and a gradient graph adds zero
//! times the partial derivative, which is NaN if that is not finite. So the outputs of a graph
//! count if all of them are finite; the runtime has the same rule.

use crate::common::programs::{
    Point, all_same, interpreted, outputs, points, record, reversed, taped, traces,
};
use crate::common::random_programs::{Program, Recipe};
use phigrad::check::{GradientCheck, GradientError, Tolerance, close, same};
use phigrad::internals::jit::{RunError, compile};
use phigrad::internals::ssa::{Folding, Graph, simplify, verify};
use phigrad::internals::{Random, Tier};
use phigrad::{Numerics, Tape, Var};

/// Kinds of programs for every test: small ones with different features.
fn recipes() -> [Recipe; 4] {
    let tame = Recipe::default();
    [
        tame,
        Recipe { reads: 0.08, guards: 0.25, statements: 16, ..tame },
        Recipe { wild: true, ..tame },
        Recipe { wild: true, reads: 0.08, guards: 0.25, active: 2, inactive: 2, ..tame },
    ]
}

/// Calls `check` with programs of all kinds, points to profile at and points to run at.
fn for_programs(count: usize, seed: u64, check: impl Fn(&Recipe, &Program, &[Point], &[Point])) {
    for recipe in recipes() {
        let mut random = Random::new(seed);
        for _ in 0..count {
            let program = recipe.program(&mut random);
            let recorded = points(&recipe, &mut random, 6);
            let mut run = points(&recipe, &mut random, 10);
            run.extend(recorded.iter().cloned());
            check(&recipe, &program, &recorded, &run);
        }
    }
}

fn assert_same(found: &[f64], expected: &[f64], program: &Program, point: &Point) {
    assert!(
        all_same(found, expected),
        "found {found:?}\nexpected {expected:?}\nat {point:?}\n{program}"
    );
}

fn all_finite(numbers: &[f64]) -> bool {
    numbers.iter().all(|number| number.is_finite())
}

/// Checks outputs of a gradient graph that was made without real-only rules.
fn assert_exact(found: &[f64], expected: &[f64], program: &Program, point: &Point) {
    if all_finite(found) {
        assert_same(found, expected, program, point);
    } else {
        // If the tape has a number, the graph has it or NaN; and if the tape has none, the
        // graph has none.
        for (&found, &expected) in found.iter().zip(expected) {
            let explained = same(found, expected) || found.is_nan();
            assert!(explained, "{found} for {expected} at {point:?}\n{program}");
        }
    }
}

/// Asserts that real-only rules change nothing but rounding.
fn assert_close(found: &[f64], expected: &[f64], program: &Program, point: &Point) {
    if !all_finite(found) || !all_finite(expected) {
        return;
    }
    let size = expected.iter().fold(1.0f64, |size, number| size.max(number.abs()));
    let tolerance = Tolerance::new(1e-9, 1e-10 * size);
    for (&a, &b) in found.iter().zip(expected) {
        assert!(close(a, b, tolerance), "{found:?} {expected:?} at {point:?}\n{program}");
    }
}

#[test]
fn tape_and_plain_numbers_give_the_same_value() {
    for_programs(150, 1, |_, program, _, run| {
        for point in run {
            let plain = program.eval(&point.0, &point.1);
            assert_same(&[taped(program, point).0], &[plain], program, point);
        }
    });
}

#[test]
fn gradients_of_the_tape_agree_with_differences_of_plain_numbers() {
    let recipe = Recipe::default();
    let mut random = Random::new(2);
    let (mut confirmed, total) = (0, 300);
    for _ in 0..total {
        let program = recipe.program(&mut random);
        // Not at numbers that programs compare with, where a path may be a single point.
        let mut point = recipe.inputs(&mut random);
        point.0.iter_mut().for_each(|x| *x += random.uniform(-0.1, 0.1));
        let (_, gradient) = taped(&program, &point);
        let value = |x: &[f64]| Ok(program.eval(x, &point.1));
        let mut check = GradientCheck::default();
        (check.step, check.directions) = (1e-3, 2);
        match check.gradient(value, &point.0, &gradient) {
            Ok(()) => confirmed += 1,
            Err(GradientError::Rough { .. }) => {}
            Err(error) => panic!("{error}\nat {point:?}\n{program}"),
        }
    }
    assert!(confirmed > total * 2 / 3, "{confirmed}");
}

#[test]
fn the_merged_graph_computes_the_program() {
    for_programs(100, 3, |_, program, recorded, run| {
        let graph = traces(program, recorded);
        verify(&graph).unwrap();
        for point in run {
            match interpreted(&graph, point) {
                Some(found) => assert_same(&found, &[taped(program, point).0], program, point),
                None => {
                    assert!(!recorded.contains(point) || has_nan(point), "{point:?}\n{program}")
                }
            }
        }
    });
}

/// `contains` and equality are no tests for points with NaN.
fn has_nan((x, data): &Point) -> bool {
    x.iter().chain(data).any(|number| number.is_nan())
}

#[test]
fn the_exact_gradient_graph_has_the_bits_of_the_tape() {
    for_programs(100, 4, |_, program, recorded, run| {
        let gradient = reversed(&traces(program, recorded), Folding::Exact);
        let small = simplify(&gradient, Folding::Exact);
        verify(&gradient).unwrap();
        verify(&small).unwrap();
        for point in run {
            let expected = outputs(&taped(program, point));
            let found = interpreted(&gradient, point);
            if let Some(found) = &found {
                assert_exact(found, &expected, program, point);
            }
            let smaller = interpreted(&small, point);
            assert_eq!(found.is_some(), smaller.is_some(), "{point:?}\n{program}");
            assert_same(&smaller.unwrap_or_default(), &found.unwrap_or_default(), program, point);
        }
    });
}

#[test]
fn real_only_passes_change_rounding_alone() {
    for_programs(60, 5, |recipe, program, recorded, run| {
        if recipe.wild {
            return;
        }
        let primal = simplify(&traces(program, recorded), Folding::Real);
        let gradient = reversed(&primal, Folding::Real);
        let small = simplify(&gradient, Folding::Real);
        for graph in [&gradient, &small] {
            verify(graph).unwrap();
        }
        for point in run {
            let expected = outputs(&taped(program, point));
            for graph in [&gradient, &small] {
                if let Some(found) = interpreted(graph, point) {
                    assert_close(&found, &expected, program, point);
                }
            }
        }
    });
}

/// Asserts that native code of `graph` computes the interpreter's bits.
fn assert_native(graph: &Graph, program: &Program, run: &[Point]) {
    let kernel = compile(graph).unwrap();
    let text = program.to_string();
    let reads_nan = text.starts_with("wild") && text.contains(" = read ");
    let mut scratch = Vec::new();
    let mut found = vec![0.0; kernel.outputs()];
    for point in run {
        let result = kernel.run(&point.0, &point.1, &mut scratch, &mut found);
        match interpreted(graph, point) {
            // The bits of a NaN may differ where it is read out.
            Some(_) if reads_nan && result == Err(RunError::SideExit) => {}
            Some(expected) => {
                assert_eq!(result, Ok(()), "{point:?}\n{program}");
                assert_same(&found, &expected, program, point);
            }
            None => assert_eq!(result, Err(RunError::SideExit), "{point:?}\n{program}"),
        }
    }
}

#[test]
fn native_code_computes_the_bits_of_the_interpreter() {
    for_programs(40, 6, |_, program, recorded, run| {
        let primal = traces(program, recorded);
        let gradient = reversed(&primal, Folding::Exact);
        assert_native(&primal, program, run);
        assert_native(&gradient, program, run);
        assert_native(&simplify(&gradient, Folding::Real), program, run);
    });
}

/// Compiles the recorded paths in each tier and compares all calls at `run`. Returns the number of
/// calls that the optimised kernels served.
fn assert_kernel(
    program: &Program,
    numerics: Numerics,
    recorded: &[Point],
    run: &[Point],
    agree: fn(&[f64], &[f64], &Program, &Point),
) -> u64 {
    assert_tier(program, numerics, Tier::First, recorded, run, agree);
    assert_tier(program, numerics, Tier::Optimised, recorded, run, agree)
}

fn assert_tier(
    program: &Program,
    numerics: Numerics,
    tier: Tier,
    recorded: &[Point],
    run: &[Point],
    agree: fn(&[f64], &[f64], &Program, &Point),
) -> u64 {
    let f = record(program, numerics, tier);
    recorded.iter().for_each(|(x, data)| drop(f.grad(x, data).unwrap()));
    f.compile().unwrap();
    for point in run {
        let (x, data) = point;
        let expected = taped(program, point);
        agree(&outputs(&f.value_and_grad(x, data).unwrap()), &outputs(&expected), program, point);
        agree(&f.grad(x, data).unwrap(), &expected.1, program, point);
        agree(&[f.eval(x, data).unwrap()], &[expected.0], program, point);
    }
    let report = f.report();
    assert!(report.refusals.is_empty(), "{report}\n{program}");
    report.kernel_calls
}

#[test]
fn exact_kernels_equal_the_tape_bit_for_bit() {
    let served = std::cell::Cell::new(0);
    for_programs(30, 7, |_, program, recorded, run| {
        let calls = assert_kernel(program, Numerics::Exact, recorded, run, assert_same);
        served.set(served.get() + calls);
    });
    // Most of 4 kinds of 30 programs with 16 points and 3 kinds of calls.
    assert!(served.get() > 4 * 30 * 16 * 3 / 2, "{}", served.get());
}

#[test]
fn real_kernels_are_close_to_the_tape() {
    for_programs(25, 8, |recipe, program, recorded, run| {
        if !recipe.wild {
            assert_kernel(program, Numerics::Real, recorded, run, assert_close);
        }
    });
}

/// Programs of several functions, with more live values than registers.
fn large(statements: usize, locals: usize, variety: f64, wild: bool) -> Recipe {
    let (guards, loops) = (0.005, 0.005);
    Recipe { statements, locals, variety, wild, guards, loops, active: 8, ..Recipe::default() }
}

#[test]
fn large_programs_agree_across_functions_and_with_many_live_values() {
    for recipe in
        [large(400, 48, 0.1, false), large(500, 40, 0.7, false), large(900, 64, 0.0, true)]
    {
        let mut random = Random::new(9);
        let program = recipe.program(&mut random);
        let (recorded, mut run) =
            (points(&recipe, &mut random, 3), points(&recipe, &mut random, 5));
        run.extend(recorded.iter().cloned());
        let primal = traces(&program, &recorded);
        let gradient = reversed(&primal, Folding::Exact);
        assert!(gradient.nodes.len() > 2500, "{}", gradient.nodes.len());
        let kernel = compile(&gradient).unwrap();
        assert!(kernel.scratch_len() > 30, "{}", kernel.scratch_len());
        assert_native(&gradient, &program, &run);
        let served = assert_kernel(&program, Numerics::Exact, &recorded, &run, assert_same);
        assert!(recipe.wild || served >= 9, "{served}");
        if !recipe.wild {
            assert_kernel(&program, Numerics::Real, &recorded, &run, assert_close);
        }
    }
}

#[test]
fn real_kernels_keep_observable_signs_of_zeros() {
    type Function = fn(Var) -> Var;
    let functions: [(Function, f64); 4] = [
        (|x| (0.0 - x).signum(), 0.0),
        (|x| (0.0 - x).atan2(-1.0), 0.0),
        (|x| Var::from(1.0).copysign(x + 0.0), -0.0),
        (|x| if Var::from(1.0).copysign(0.0 - x) > 0.0 { x + 1.0 } else { x - 1.0 }, 0.0),
    ];
    for (index, (function, tie)) in functions.into_iter().enumerate() {
        let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| function(x[0]));
        let recorded = [1.5, -1.5, tie].map(|x| f.value_and_grad(&[x]).unwrap());
        f.compile().unwrap();
        assert_eq!(f.value_and_grad(&[tie]).unwrap(), recorded[2], "{index}");
    }
}

#[test]
fn exact_kernels_equal_the_tape_where_the_sign_of_nan_is_observable() {
    // The compiler may choose the sign of a NaN that is multiplied by a known -1.
    let f = Tape::builder()
        .hot_threshold(u32::MAX)
        .numerics(Numerics::Exact)
        .record(|x: &[Var]| Var::from(1.0).copysign(x[0] * std::hint::black_box(-1.0)));
    let taped = f.eval(&[f64::NAN]).unwrap();
    f.compile().unwrap();
    assert_eq!(f.eval(&[f64::NAN]).unwrap(), taped);
}
