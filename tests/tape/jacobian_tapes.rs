//! Jacobian tapes: value, gradient and errors are those of event tapes.

use std::cell::Cell;
use std::panic::Location;

use phigrad::internals::Random;
use phigrad::internals::trace::{Adjoints, Inputs, Tracer, sweep};
use phigrad::{CustomOperation, Numerics, Operation, Recorded, Special, Tape, Var};

use crate::common::random_programs::{Program, Recipe};
use crate::common::served::limits;

/// Value and gradient by an event tape and by a Jacobian tape, and the number of entries.
fn by_both(
    f: impl Fn(&[Var], &[Var]) -> Var,
    x: &[f64],
    data: &[f64],
) -> ([(f64, Vec<f64>); 2], usize) {
    let (mut tracer, mut adjoints) = (Tracer::default(), Adjoints::default());
    let inputs = Inputs { active: x, inactive: data };
    let trace = tracer.run(&f, inputs, 1 << 24, Location::caller()).unwrap();
    let by_events = (trace.value(), sweep(&trace, &mut adjoints).to_vec());
    let run = tracer.run_jacobian(&f, inputs, 1 << 24, Location::caller()).unwrap().unwrap();
    let by_jacobian = (run.value(), run.sweep(&mut adjoints).to_vec());
    ([by_events, by_jacobian], run.entries())
}

/// A recording that the tape alone serves, by Jacobian tapes.
fn on_tape<F: Fn(&[Var]) -> Var>(f: F) -> Recorded<F> {
    Tape::builder().tape_only().record(f)
}

/// The same by event tapes.
fn on_events<F: Fn(&[Var]) -> Var>(f: F) -> Recorded<F> {
    Tape::builder().tape_only().numerics(Numerics::Exact).record(f)
}

fn is_near(found: f64, expected: f64, largest: f64) -> bool {
    (found - expected).abs() <= 1e-9 * largest.max(expected.abs())
}

#[track_caller]
fn assert_same_gradient(name: &str, f: impl Fn(&[Var]) -> Var + Copy, x: &[f64]) {
    let (value, expected) = on_events(f).value_and_grad(x).unwrap();
    let (found_value, found) = on_tape(f).value_and_grad(x).unwrap();
    assert!(phigrad::check::same(value, found_value), "{name}: {value} {found_value}");
    for (found, expected) in found.iter().zip(&expected) {
        let is_same = phigrad::check::same(*found, *expected);
        let ulps = 8.0 * f64::EPSILON * expected.abs() + 4.0 * f64::from_bits(1);
        assert!(is_same || (found - expected).abs() <= ulps, "{name}: {found:e} {expected:e}");
    }
}

#[test]
fn random_programs_have_the_gradients_of_event_tapes() {
    let tame = Recipe { active: 4, inactive: 2, statements: 20, ..Recipe::default() };
    let arithmetic = Recipe { variety: 0.1, statements: 40, ..tame };
    let annotated = Recipe { annotated: true, guards: 0.3, loops: 0.2, ..tame };
    for (number, recipe) in [tame, arithmetic, annotated].iter().enumerate() {
        let mut random = Random::new(7 + number as u64);
        for _ in 0..400 {
            let program = recipe.program(&mut random);
            for _ in 0..4 {
                let (x, data) = recipe.inputs(&mut random);
                let run = |x: &[Var], data: &[Var]| program.eval(x, data);
                let ([events, jacobian], _) = by_both(run, &x, &data);
                assert!(phigrad::check::same(events.0, jacobian.0), "{program:?} at {x:?}");
                let largest = events.1.iter().fold(1.0f64, |most, one| most.max(one.abs()));
                for (&expected, &found) in events.1.iter().zip(&jacobian.1) {
                    let agrees = !expected.is_finite() && !found.is_finite()
                        || is_near(found, expected, largest);
                    assert!(agrees, "{program:?} at {x:?}, {data:?}: {events:?} {jacobian:?}");
                }
            }
        }
    }
}

#[test]
fn wild_programs_have_the_gradients_of_event_tapes() {
    let recipe = Recipe { active: 3, inactive: 1, wild: true, ..Recipe::default() };
    let mut random = Random::new(3);
    let (mut finite, mut lost) = (0, 0);
    for _ in 0..2000 {
        let program: Program = recipe.program(&mut random);
        let (x, data) = recipe.inputs(&mut random);
        let run = |x: &[Var], data: &[Var]| program.eval(x, data);
        let ([events, jacobian], _) = by_both(run, &x, &data);
        assert!(phigrad::check::same(events.0, jacobian.0), "{program:?} at {x:?}");
        let largest = events
            .1
            .iter()
            .filter(|one| one.is_finite())
            .fold(1e-3f64, |most, one| most.max(one.abs()));
        // A gradient that is not finite is computed again, by an event tape.
        if jacobian.1.iter().all(|partial| partial.is_finite()) {
            for (&expected, &found) in events.1.iter().zip(&jacobian.1) {
                // Adjoints on the event tape may overflow on the way.
                assert!(
                    !expected.is_finite() || is_near(found, expected, largest),
                    "{program:?} at {x:?}, {data:?}: {events:?} {jacobian:?}"
                );
            }
            finite += 1;
        } else if events.1.iter().all(|partial| partial.is_finite()) {
            lost += 1;
        }
    }
    assert!(finite > 500 && lost < finite / 50, "{finite} {lost}");
}

#[test]
fn products_of_partials_neither_overflow_nor_underflow() {
    type Function = fn(&[Var]) -> Var;
    let functions: &[(&str, Function)] = &[
        ("chain of exponentials", |x| (x[0] * 400.0).exp() * (x[0] * -800.0).exp()),
        ("scaled down and up", |x| x[0] * 1e-200 * 1e-200 * 1e250 * 1e100),
        ("scaled up and down", |x| x[0] * 1e200 * 1e100 * 1e-250 * 1e-50),
        ("scaled product", |x| (x[0] * 1e-200) * (x[1] * 1e-150) * 1e300),
        ("scaled sum", |x| (x[0] * 1e-300 + x[1] * 1e-290) * 1e295),
        ("inverse of a large number", |x| (x[0] * 1e170).recip() * 1e200),
        ("quotient by a large number", |x| x[1] / (x[0] * 1e170) * 1e170),
        ("quotient with a small value", |x| (x[1] * 1e-170) / (x[0] * 1e170) * 1e300),
        ("inverse of a small number", |x| 1e-200 / (x[0] * 1e-160)),
        ("subnormal partial", |x| (x[0] * -720.0).exp() * 1e300),
        ("powers", |x| (x[0] * 1e-100).powi(3) * 1e290),
        ("square root", |x| (x[0] * 1e-300).sqrt() * 1e150 + (x[1] * 1e300).sqrt() * 1e-150),
        ("hypotenuse", |x| (x[0] * 1e-200).hypot(x[1] * 1e-200) * 1e200),
    ];
    for (name, f) in functions {
        assert_same_gradient(name, f, &[1.0, 1.5]);
        assert_same_gradient(name, f, &[0.75, -2.5]);
    }
}

#[test]
fn an_infinite_partial_has_no_effect_where_the_adjoint_is_zero() {
    type Function = fn(&[Var]) -> Var;
    let functions: &[(&str, Function)] = &[
        ("masked root", |x| (x[0].sqrt() * 0.0) + x[1]),
        ("selected away", |x| x[0].greater_than(0.0).select(x[0].sqrt(), x[1] * 2.0)),
        ("root of a product with zero", |x| (x[0] * x[1]).sqrt()),
        ("larger of root and number", |x| x[0].sqrt().max(x[1])),
        ("logarithm", |x| x[0].ln() * 0.0 + x[1]),
        ("division", |x| x[1] / x[0]),
        ("difference of equal numbers", |x| (x[0] - x[0]).sqrt() + x[1]),
        ("zero coefficient", |x| (x[1] * 0.0).sqrt() * x[1]),
        ("floor", |x| x[0].floor().sqrt() + x[1]),
        ("detached", |x| x[0].detach().sqrt() * x[1]),
        ("infinite value", |x| (x[1] * 1e300 * 1e300).exp() * x[0]),
        ("power", |x| x[0].powf(x[1]) + x[0].powf(0.5)),
    ];
    for (name, f) in functions {
        for x in [[0.0, 1.5], [-0.0, 2.0], [0.0, 0.0], [2.0, 0.5], [f64::NAN, 1.0]] {
            assert_same_gradient(name, f, &x);
        }
    }
}

#[test]
fn functions_of_one_number_record_nothing() {
    let chain = |x: &[Var], _: &[Var]| ((x[0] * 2.0 + 1.0).sin() * 3.0 - x[0]).exp() / 7.0;
    let ([events, jacobian], entries) = by_both(chain, &[0.3], &[]);
    assert_eq!((entries, events.0), (0, jacobian.0));
    assert!(is_near(jacobian.1[0], events.1[0], 0.0));
    let two = |x: &[Var], _: &[Var]| x[0].sin() * x[1].cos() + 2.0 * x[0] * x[1];
    // Two products and their sum.
    assert_eq!(by_both(two, &[0.3, 0.7], &[]).1, 3);
    let rectified = |x: &[Var], _: &[Var]| x.iter().map(|x| x.max(0.0) * 2.0).sum::<Var>();
    assert_eq!(by_both(rectified, &[-0.3, 0.7, -1.0], &[]).1, 2);
}

#[test]
fn operations_with_three_operands_take_two_entries_at_most() {
    let f = |x: &[Var], y: &[Var]| x[0].mul_add(x[1], x[2]) + y[0].mul_add(2.0, x[0]);
    let ([events, jacobian], entries) = by_both(f, &[0.3, 0.7, -1.0], &[5.0]);
    assert_eq!((entries, events), (4, jacobian));
    let beta = |x: &[Var], _: &[Var]| x[0].beta_inc(2.0, 3.0) + x[1].gamma_p(x[0]);
    let ([events, jacobian], _) = by_both(beta, &[0.3, 0.7], &[]);
    assert!(is_near(jacobian.1[0], events.1[0], 0.0) && is_near(jacobian.1[1], events.1[1], 0.0));
}

/// The product and the quotient of two numbers, with the quotient saved.
struct ProductAndQuotient;

impl Operation for ProductAndQuotient {
    type Error = ();

    fn inputs(&self) -> usize {
        2
    }

    fn outputs(&self) -> usize {
        2
    }

    fn saved(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), ()> {
        (y[0], y[1]) = (x[0] * x[1], x[0] / x[1]);
        saved[0] = y[1];
        if x[1] == 0.0 { Err(()) } else { Ok(()) }
    }

    fn vjp(&self, x: &[f64], y: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        assert_eq!((y[0], y[1]), (x[0] * x[1], saved[0]));
        out[0] = w[0] * x[1] + w[1] / x[1];
        out[1] = w[0] * x[0] - w[1] * saved[0] / x[1];
    }
}

#[test]
fn custom_operations_and_recorded_functions_are_nodes() {
    let operation = CustomOperation::new(ProductAndQuotient);
    let inner = Tape::record(|x: &[Var]| [x[0].sin() * x[1], x[0] / x[1]]);
    let f = |x: &[Var]| {
        let mut sum = x[0] * x[1];
        for i in 0..5 {
            let y = operation.call(&[sum * 0.5, (x[1] + f64::from(i)).sqrt()]).unwrap();
            let constant = operation.call(&[y[0], 2.0.into()]).unwrap();
            let [a, b] = inner.call(&[y[0] * y[1], constant[1]]).unwrap();
            sum = a + b * y[1] + constant[0];
        }
        sum
    };
    let (x, expected) = ([0.7, 1.3], on_events(&f).grad(&[0.7, 1.3]).unwrap());
    let found = on_tape(&f).grad(&x).unwrap();
    for (found, expected) in found.iter().zip(&expected) {
        assert!(is_near(*found, *expected, 0.0), "{found} {expected}");
    }
}

#[test]
fn a_var_of_another_recording_is_told() {
    thread_local! {
        static KEPT: Cell<Option<Var>> = const { Cell::new(None) };
    }
    type Use = fn(Var, Var) -> Var;
    let uses: &[Use] = &[
        |kept, x| kept + x,
        |kept, x| x * (kept * 2.0).sin(),
        |kept, _| kept,
        |kept, _| kept * kept,
        |kept, x| kept.mul_add(x, 1.0),
        |kept, x| if kept > 0.5 { x } else { -x },
        |kept, x| if kept.sin() > x { x } else { -x },
        |kept, x| x + kept.value(),
        |kept, x| x.powf(kept),
    ];
    for (number, with_kept) in uses.iter().enumerate() {
        for keep_on_events in [false, true] {
            let keep = move |x: &[Var]| {
                let kept = x[0].exp();
                KEPT.set(Some(kept));
                kept * x[0]
            };
            let kept = if keep_on_events {
                on_events(keep).grad(&[0.5])
            } else {
                on_tape(keep).grad(&[0.5])
            };
            kept.unwrap();
            let f = |x: &[Var]| with_kept(KEPT.get().unwrap(), x[0]);
            assert!(on_tape(f).grad(&[0.25]).unwrap_err().is_foreign_var(), "{number}");
            assert!(on_events(f).grad(&[0.25]).unwrap_err().is_foreign_var(), "{number}");
            // In a recording inside.
            let nested = on_tape(|x: &[Var]| {
                let outer = x[0].exp();
                let inner = on_tape(|y: &[Var]| with_kept(outer, y[0])).grad(&[0.25]);
                assert!(inner.unwrap_err().is_foreign_var(), "{number}");
                outer * x[1]
            });
            assert_eq!(nested.grad(&[0.0, 3.0]).unwrap(), [3.0, 1.0], "{number}");
        }
    }
}

#[test]
fn a_run_with_more_entries_than_events_may_be_kept_is_served() {
    let few = limits(|limits| limits.trace_events = 300);
    let product = |x: &[Var]| (0..1000).fold(x[0], |y, i| y * 0.5 + x[1] * f64::from(i % 3));
    let f = Tape::builder().tape_only().limits(few).record(product);
    let expected = on_events(product).grad(&[1.5, 2.0]).unwrap();
    for (found, expected) in f.grad(&[1.5, 2.0]).unwrap().iter().zip(expected) {
        assert!(is_near(*found, expected, 1.0));
    }
    let most = limits(|limits| (limits.trace_events, limits.call_events) = (300, 800));
    let f = Tape::builder().tape_only().limits(most).record(product);
    assert!(f.grad(&[1.5, 2.0]).unwrap_err().is_too_long());
}

#[test]
fn a_panic_leaves_the_thread_usable() {
    let f = on_tape(|x: &[Var]| {
        let product = x[0] * x[1];
        assert!(product < 5.0, "it is too large");
        product
    });
    assert_eq!(f.grad(&[1.0, 3.0]).unwrap(), [3.0, 1.0]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.grad(&[2.0, 3.0])));
    assert!(panicked.is_err());
    assert_eq!(f.grad(&[1.0, 4.0]).unwrap(), [4.0, 1.0]);
}

#[test]
fn runs_of_any_length_fill_the_ring() {
    let f = |x: &[Var], _: &[Var]| {
        let mut y = x[1];
        for _ in 0..x.len() + 150 {
            y = y * x[0] + x[1];
        }
        y
    };
    for inputs in [2, 3, 100, 127, 128, 129, 200, 255, 256, 257, 300] {
        let x: Vec<f64> = (0..inputs).map(|i| 0.9 + 0.001 * i as f64).collect();
        let ([events, jacobian], entries) = by_both(f, &x, &[]);
        assert_eq!((entries, events.0), (2 * (inputs + 150), jacobian.0));
        assert_eq!(events.1, jacobian.1);
    }
}

#[test]
fn generic_code_with_constants_has_the_gradient_of_the_event_tape() {
    fn loss<T: Special>(x: &[T]) -> T {
        let constant = |number: f64| T::from(number).unwrap();
        let mut sum = T::zero();
        for &x in x {
            sum = sum + (x * constant(2.0) - T::one()).softplus() / (constant(3.0) + x * x);
        }
        sum * constant(0.5) + constant(2.0).sqrt()
    }
    assert_same_gradient("generic", loss, &[0.3, -0.7, 2.0]);
}
