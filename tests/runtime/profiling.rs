//! The share of calls that kernels serve after few runs.

use phigrad::check::{Tolerance, close};
use phigrad::internals::Random;
use phigrad::{Tape, Var};

/// Iterates z² + c until it is large; trip counts are spread evenly.
#[phigrad::traced]
fn escape_of_for(x: &[Var]) -> Var {
    let c = x[0] * x[0] + 0.2501;
    let mut z = Var::from(0.0);
    for _ in 0..30 {
        z = z * z + c;
        if z * z > 4.0 {
            break;
        }
    }
    z
}

#[phigrad::traced]
fn escape_of_while(x: &[Var]) -> Var {
    let c = x[0] * x[0] + 0.2501;
    let (mut z, mut left) = (Var::from(0.0), 30);
    while left > 0 {
        z = z * z + c;
        if z > 2.0 {
            break;
        }
        left -= 1;
    }
    z
}

#[phigrad::traced]
fn escape_by_return(x: &[Var]) -> Var {
    let c = x[0] * x[0] + 0.2501;
    let mut z = Var::from(0.0);
    for i in 0..30 {
        z = z * z + c + f64::from(i) * 1e-6;
        if z > 2.0 {
            return z * c;
        }
    }
    z
}

/// An input for which the loops exit in any iteration with equal probability.
fn input(random: &mut Random) -> [f64; 1] {
    [core::f64::consts::PI / random.uniform(2.0, 33.0)]
}

fn kernels_serve_most(f: fn(&[Var]) -> Var) {
    let random = &mut Random::new(7);
    let recorded = Tape::builder().hot_threshold(u32::MAX).record(f);
    for _ in 0..50 {
        recorded.grad(&input(random)).unwrap();
    }
    recorded.compile().unwrap();
    let tape = Tape::builder().hot_threshold(u32::MAX).record(f);
    for _ in 0..1000 {
        let x = input(random);
        let (found, expected) = (recorded.grad(&x).unwrap()[0], tape.grad(&x).unwrap()[0]);
        assert!(close(found, expected, Tolerance::new(1e-9, 1e-9)), "{x:?}: {found} {expected}");
    }
    let report = recorded.report();
    assert!(report.kernel_calls >= 950, "{report}");
}

#[test]
fn loops_over_items_with_exits() {
    kernels_serve_most(escape_of_for);
}

#[test]
fn counted_loops_with_exits() {
    kernels_serve_most(escape_of_while);
}

#[test]
fn functions_that_return_in_loops() {
    kernels_serve_most(escape_by_return);
}

#[phigrad::traced]
fn pull(place: Var, speed: Var, rest: Var) -> Var {
    let offset = place * place - rest;
    let stiffness = if offset > 0.0 { 3.0 } else { 0.5 };
    offset * -stiffness - speed * place * 0.2
}

/// In the first step all but the command is constant.
#[phigrad::traced]
fn swing(commands: &[Var]) -> Var {
    let (mut place, mut speed) = (Var::from(1.0), Var::from(0.25));
    for &command in commands {
        speed += pull(place, speed, command) * 0.3;
        place += speed * 0.3;
    }
    place * place + speed
}

#[test]
fn a_first_step_from_constants_shares_the_paths_of_later_steps() {
    let random = &mut Random::new(3);
    let recorded = Tape::builder().hot_threshold(u32::MAX).record(swing);
    let later =
        |random: &mut Random| -> [f64; 3] { core::array::from_fn(|_| random.uniform(-1.0, 3.0)) };
    for _ in 0..50 {
        let [b, c, d] = later(random);
        recorded.grad(&[random.uniform(0.0, 0.9), b, c, d]).unwrap();
    }
    recorded.compile().unwrap();
    let tape = Tape::builder().hot_threshold(u32::MAX).record(swing);
    for _ in 0..200 {
        let [b, c, d] = later(random);
        let x = [random.uniform(1.1, 2.0), b, c, d];
        let (found, expected) = (recorded.grad(&x).unwrap(), tape.grad(&x).unwrap());
        let is_close = |(a, b): (&f64, &f64)| close(*a, *b, Tolerance::new(1e-9, 1e-9));
        assert!(found.iter().zip(&expected).all(is_close), "{x:?}: {found:?} {expected:?}");
    }
    assert_eq!(recorded.report().kernel_calls, 200, "{}", recorded.report());
}
