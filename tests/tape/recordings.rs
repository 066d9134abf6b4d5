//! Recordings inside recordings, a `Var` that outlives its own, and functions
//! that panic: typed errors with both places, and a thread that stays usable.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::common::served::{NUMERICS, Pair, Served, manual};
use phigrad::{Error, Numerics, Var};

/// Asserts that `error` is about a foreign `Var` used on line `used` of this
/// file, and names the line `made` where its function was recorded.
fn assert_foreign(error: &Error, used: u32, made: u32) {
    assert!(error.is_foreign_var() && !error.is_too_long() && !error.is_shape(), "{error}");
    let place = error.place().unwrap();
    assert!(place.file.ends_with("recordings.rs"), "{place:?}");
    assert_eq!(place.line, used, "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("used at {}:{used}:", place.file)), "{text}");
    assert!(text.contains(&format!("recorded at {}:{made}:", place.file)), "{text}");
}

#[test]
fn a_recording_inside_another_is_a_constant_to_it() {
    let inner = manual(Numerics::Exact).record(|y: &[Var]| y[0] * y[0] * y[0]);
    for numerics in NUMERICS {
        let outer = |x: &[Var]| {
            let slope = inner.grad(&[2.0]).unwrap()[0];
            let mut sum = x[0] * slope;
            // Also at every size of the outer trace.
            for _ in 0..300 {
                sum += x[0];
                sum *= inner.eval(&[1.0]).unwrap();
            }
            sum
        };
        let outer = &outer;
        let pair = Pair::new(numerics, move |x: &[Var]| outer(x));
        pair.profile(&[[3.0]]);
        assert_eq!(pair.check(&[5.0]), Served::Kernel);
        assert_eq!(pair.kernel.grad(&[5.0]).unwrap(), [312.0]);
        inner.compile().unwrap();
        assert_eq!(pair.check(&[6.0]), Served::Kernel, "the inner one by its kernel");
    }
}

#[test]
fn an_inner_recording_at_a_value_of_the_outer_one_is_guarded() {
    // The value leaves the outer recording, so the kernel serves only there.
    let inner = manual(Numerics::Exact).record(|y: &[Var]| y[0] * y[0]);
    let outer =
        manual(Numerics::Exact).record(|x: &[Var]| x[0] * inner.grad(&[x[0].value()]).unwrap()[0]);
    assert_eq!(outer.grad(&[3.0]).unwrap(), [6.0]);
    outer.compile().unwrap();
    assert_eq!(outer.grad(&[3.0]).unwrap(), [6.0]);
    assert_eq!(outer.grad(&[4.0]).unwrap(), [8.0]);
    let report = outer.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (1, 1));
}

#[test]
fn a_function_may_call_itself() {
    use std::sync::OnceLock;
    type Factorial = phigrad::Recorded<fn(&[Var]) -> Var>;
    static SELF: OnceLock<Factorial> = OnceLock::new();
    fn power(x: &[Var]) -> Var {
        let n = x[1].value();
        if n < 1.0 {
            return x[0] * 0.0 + 1.0;
        }
        let below = SELF.get().unwrap().eval(&[x[0].value(), n - 1.0]).unwrap();
        x[0] * below
    }
    let f = SELF.get_or_init(|| manual(Numerics::Exact).record(power as fn(&[Var]) -> Var));
    assert_eq!(f.value_and_grad(&[2.0, 5.0]).unwrap(), (32.0, vec![16.0, 0.0]));
    f.compile().unwrap();
    assert_eq!(f.value_and_grad(&[2.0, 5.0]).unwrap(), (32.0, vec![16.0, 0.0]));
    assert_eq!(f.value_and_grad(&[3.0, 3.0]).unwrap(), (27.0, vec![9.0, 0.0]));
}

#[test]
fn a_var_of_an_earlier_call_is_an_error_with_both_places() {
    let kept = Cell::new(None);
    let made = line!() + 1;
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let earlier = kept.replace(Some(x[0])).unwrap_or(x[0]);
        x[0] * earlier
    });
    let used = made + 2;
    assert_eq!(f.grad(&[3.0]).unwrap(), [6.0]);
    let mut gradient = [7.0];
    assert_foreign(&f.grad_into(&[3.0], &mut gradient).unwrap_err(), used, made);
    assert_eq!(gradient, [7.0], "unchanged");
    kept.set(None);
    assert_eq!(f.grad(&[4.0]).unwrap(), [8.0], "the function stays usable");
}

/// Uses a `Var` of an earlier call in `misuse`; returns the error, and the line
/// on which the function was recorded.
fn misused(misuse: impl Fn(Var, Var) -> Var) -> (Error, u32) {
    let kept = Cell::new(None);
    let made = line!() + 1;
    let f = manual(Numerics::Real).record(|x: &[Var]| match kept.replace(Some(x[0])) {
        Some(earlier) => misuse(earlier, x[0]),
        None => x[0],
    });
    f.grad(&[0.5]).unwrap();
    (f.grad(&[0.5]).unwrap_err(), made)
}

#[test]
fn every_use_of_a_foreign_var_is_noticed() {
    let first = line!() + 2;
    let uses: [fn(Var, Var) -> Var; 11] = [
        |old, new| old + new,
        |old, new| new - old,
        |old, new| new * (old * 2.0),
        |old, new| new / old.sin(),
        |old, new| new.mul_add(old, new),
        |old, new| new.less_than(0.0).select(old, new),
        |old, new| if old < new { new } else { new * 2.0 },
        |old, new| if old == 0.5 { new } else { new * 2.0 },
        |old, new| new * old.value(),
        |old, new| old.clamp(new, 1.0),
        |old, new| -old * new.floor(),
    ];
    for (line, misuse) in (first..).zip(uses) {
        let (error, made) = misused(misuse);
        assert_foreign(&error, line, made);
    }
}

#[test]
fn a_foreign_var_in_a_sum_or_a_text_is_noticed() {
    // The place is in the library: `Iterator::sum` and `format!` do not pass on
    // their callers.
    for misuse in [(|old, new| [new, old].iter().sum()) as fn(Var, Var) -> Var, |old, new| {
        [new, old].into_iter().product()
    }] {
        let (error, made) = misused(misuse);
        assert!(error.is_foreign_var() && error.place().is_some());
        assert!(error.to_string().contains(&format!("recordings.rs:{made}:")), "{error}");
    }
}

#[test]
fn returning_a_foreign_var_is_an_error_at_the_recorded_function() {
    let kept = Cell::new(None);
    let made = line!() + 1;
    let f = manual(Numerics::Real).record(|x: &[Var]| kept.replace(Some(x[0])).unwrap_or(x[0]));
    f.grad(&[1.0]).unwrap();
    assert_foreign(&f.grad(&[1.0]).unwrap_err(), made, made);
}

#[test]
fn a_var_of_the_outer_recording_is_foreign_to_the_inner_one() {
    let outer_var = Cell::new(None);
    let inner_made = line!() + 1;
    let inner = manual(Numerics::Real).record(|y: &[Var]| y[0] * outer_var.get().unwrap_or(y[0]));
    let seen = Cell::new(false);
    let outer_made = line!() + 1;
    let outer = manual(Numerics::Real).record(|x: &[Var]| {
        outer_var.set(Some(x[0]));
        assert_foreign(&inner.grad(&[2.0]).unwrap_err(), inner_made, outer_made);
        seen.set(true);
        x[0] * 3.0
    });
    // The outer recording continues unchanged.
    assert_eq!(outer.grad(&[1.0]).unwrap(), [3.0]);
    assert!(seen.get());
    outer_var.set(None);
    assert_eq!(inner.grad(&[2.0]).unwrap(), [4.0]);
}

#[test]
fn a_var_of_an_inner_recording_is_foreign_to_the_outer_one() {
    let inner_var = Cell::new(None);
    let inner_made = line!() + 1;
    let inner = manual(Numerics::Real).record(|y: &[Var]| {
        inner_var.set(Some(y[0]));
        y[0]
    });
    let outer = manual(Numerics::Real).record(|x: &[Var]| {
        inner.eval(&[2.0]).unwrap();
        x[0] + inner_var.get().unwrap()
    });
    assert_foreign(&outer.grad(&[1.0]).unwrap_err(), line!() - 2, inner_made);
}

#[test]
fn a_var_used_outside_every_recording_is_an_ordinary_number_there() {
    let kept = Cell::new(None);
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        kept.set(Some(x[0]));
        x[0]
    });
    f.grad(&[4.0]).unwrap();
    let outside = kept.get().unwrap() * 2.0 + 1.0;
    assert_eq!(outside.value(), 9.0);
    assert!(outside > 8.0);
    assert_eq!(outside.to_string(), "9");
    // What was computed from it is foreign to later recordings.
    let g = manual(Numerics::Real).record(|x: &[Var]| x[0] * outside);
    assert!(g.grad(&[1.0]).unwrap_err().is_foreign_var());
    assert_eq!(f.grad(&[4.0]).unwrap(), [1.0]);
}

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

#[test]
fn a_panic_inside_the_function_leaves_it_usable() {
    let f = manual(Numerics::Real).record(|x: &[Var]| {
        let shifted = x[0] + 1.0;
        assert!(shifted > 0.0, "only positive inputs");
        shifted.ln()
    });
    assert!(panics(|| f.grad(&[-1.0])));
    assert_eq!(f.grad(&[1.0]).unwrap(), [0.5]);
    f.compile().unwrap();
    // The kernel does not know the path, so the tape runs the function.
    assert!(panics(|| f.grad(&[-1.0])));
    assert_eq!(f.grad(&[1.0]).unwrap(), [0.5]);
    assert_eq!(f.report().paths, 1);
}

#[test]
fn a_panic_in_an_inner_recording_leaves_the_outer_one_complete() {
    let inner = manual(Numerics::Real).record(|y: &[Var]| {
        let root = y[0].sqrt();
        assert!(root < 10.0, "too large");
        root
    });
    let outer = manual(Numerics::Real).record(|x: &[Var]| {
        let before = x[0] * 2.0;
        let panicked = panics(|| inner.grad(&[1e4]));
        before * x[0] + if panicked { 1.0 } else { 0.0 }
    });
    assert_eq!(outer.value_and_grad(&[3.0]).unwrap(), (19.0, vec![12.0]));
    // Uncaught, it ends both.
    let uncaught = manual(Numerics::Real).record(|x: &[Var]| x[0] * inner.eval(&[1e4]).unwrap());
    assert!(panics(|| uncaught.grad(&[1.0])));
    assert_eq!(inner.grad(&[4.0]).unwrap(), [0.25]);
    assert_eq!(outer.value_and_grad(&[3.0]).unwrap(), (19.0, vec![12.0]));
}

#[test]
fn an_inner_recording_that_is_too_long_leaves_the_outer_one_complete() {
    let inner = manual(Numerics::Real)
        .limits(crate::common::served::limits(|limits| limits.call_events = 10))
        .record(|y: &[Var]| (0..1000).fold(y[0], |v, _| v.sin()));
    let outer = manual(Numerics::Real).record(|x: &[Var]| {
        let before = x[0].exp();
        assert!(inner.grad(&[1.0]).unwrap_err().is_too_long());
        before * x[0]
    });
    assert_eq!(outer.grad(&[0.0]).unwrap(), [1.0]);
}

#[test]
fn buffers_that_functions_of_other_lengths_have_used_are_clean() {
    let f = manual(Numerics::Exact).record(|x: &[Var]| x.iter().map(|v| v * v * v).sum::<Var>());
    for length in [9, 2, 30, 1, 0, 7, 2] {
        let gradient = f.grad(&vec![2.0; length]).unwrap();
        assert_eq!(gradient, vec![12.0; length]);
    }
}
