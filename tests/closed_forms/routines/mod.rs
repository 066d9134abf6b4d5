//! The routines of `numeric` against multiple precision: bounds hold, accepted results are
//! accurate, and planted errors are caught.

mod acceptance;
mod accuracy;
mod exact;
mod families;
mod random;
mod text;

use exact::Exact;
use phigrad::internals::Random;
use phigrad::internals::numeric::acceptance::{EFFECT_BOUND, NEGLIGIBLE, accepts};
use phigrad::internals::numeric::double_double::{Bounded, power_of_two};
use phigrad::internals::numeric::{AffinePower, Routine};

fn sign(random: &mut Random) -> f64 {
    random.pick(&[-1.0, 1.0])
}

/// 10 to the power of a uniform exponent.
fn power_of_ten(random: &mut Random, low: f64, high: f64) -> f64 {
    10f64.powf(random.uniform(low, high))
}

/// The routine of a text.
fn routine(text: &str) -> AffinePower {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The violation of a result, if any: its bound does not hold, or it is accepted although it is
/// neither within 4 ulp nor below the floor.
fn violation(result: Bounded, scale: f64, exact: &Exact) -> Option<String> {
    let [error, error_of_hi] = exact.errors(result);
    // The bounds hold to first order.
    let holds = error <= result.bound * (1.0 + power_of_two(-20));
    if !holds {
        return Some(format!("{error:e} off, {result:?}"));
    }
    let value = exact.to_f64().abs();
    let ulp = value.next_up() - value;
    let floor = EFFECT_BOUND * scale + 0.5 * ulp;
    let accurate = error_of_hi <= 4.0 * ulp || error_of_hi <= floor || error_of_hi <= NEGLIGIBLE;
    if accepts(result, scale) && !accurate {
        return Some(format!("{error_of_hi:e} off but accepted, {result:?}, scale {scale:e}"));
    }
    None
}

/// True if [`AffinePower::run`] accepts the call.
fn is_accepted(power: &AffinePower, inputs: &[f64]) -> bool {
    let mut results = vec![0.0; power.value_index(power.outputs().len())];
    power.run(inputs, true, &mut results);
    results[0] == 1.0
}

#[test]
fn routines_report_their_sizes() {
    let text = "affine_power inputs 2 wrt x0 x1 : t0 = x0 | t1 = x1 | \
                advance 3 states 2 matrix t0 - t1 t0 offset - t1 start t1 t0 outputs 1 0";
    let power = routine(text);
    assert_eq!((power.value_index(0), power.value_index(1)), (1, 4));
    let routine = Routine::AffinePower(power);
    assert_eq!((routine.name(), routine.inputs(), routine.results()), ("affine_power", 2, 7));
    assert_eq!(text.parse(), Ok(routine));
}

#[test]
fn results_are_complete_or_rejected() {
    let power = routine(
        "affine_power inputs 3 wrt x1 x0 : t0 = x0 | t1 = x1 | \
         advance x2 states 1 matrix t0 offset t1 start t1 outputs 0",
    );
    let run = |inputs: &[f64], with_partials| {
        let mut results = [7.0; 4];
        power.run(inputs, with_partials, &mut results);
        results
    };
    // y = 8 · 3 + 7 · 3, by x1: 8 + 7, by x0: 12 · 3 + 3 (1 + 2 · 2).
    assert_eq!(run(&[2.0, 3.0, 3.0], true), [1.0, 45.0, 15.0, 51.0]);
    assert_eq!(run(&[2.0, 3.0, 0.0], true), [1.0, 3.0, 1.0, 0.0]);
    assert_eq!(run(&[2.0, 3.0, 1.0], true), [1.0, 9.0, 3.0, 3.0]);
    let value_only = run(&[2.0, 3.0, 3.0], false);
    assert_eq!(value_only[..2], [1.0, 45.0]);
    assert!(value_only[2..].iter().all(|partial| partial.is_nan()));
    for trips in [-1.0, 0.5, f64::NAN, f64::INFINITY, 1e16] {
        assert_eq!(run(&[0.5, 3.0, trips], true)[0], 0.0, "{trips}");
    }
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        assert_eq!(run(&[bad, 3.0, 5.0], true)[0], 0.0);
        assert_eq!(run(&[0.5, bad, 5.0], true)[0], 0.0);
    }
    assert_eq!(run(&[2.0, 3.0, 600.0], false)[0], 0.0);
    assert_eq!(run(&[0.5, 3.0], true)[0], 0.0);
    let mut few = [7.0; 3];
    power.run(&[0.5, 3.0, 3.0], true, &mut few);
    assert_eq!(few[0], 0.0);
    power.run(&[0.5, 3.0, 3.0], true, &mut []);
}
