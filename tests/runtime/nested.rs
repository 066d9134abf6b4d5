//! Recorded functions inside others: values, derivatives, and who serves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use phigrad::{CustomOperation, Numerics, Recorded, Tape, Var, traced};

use crate::common::served::{NUMERICS, manual};

fn assert_near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        let scale = tolerance * other.abs().max(1.0);
        assert!((one - other).abs() <= scale, "{found:?} {expected:?}");
    }
}

/// A function with a branch.
fn inner(x: &[Var]) -> Var {
    if x[0] > x[1] { x[0] * x[1].sin() } else { (x[0] * x[1]).exp() }
}

fn pair(x: &[Var]) -> Vec<Var> {
    vec![inner(x), x[0] / (2.0 + x[1].cos())]
}

/// Calls of `inner` and `pair` in straight-line code, an arm of a branch and a loop.
#[traced]
fn outer(x: &[Var], inner: impl Fn(&[Var]) -> Var, pair: impl Fn(&[Var]) -> Vec<Var>) -> Var {
    let mut sum = inner(x) * x[0];
    for k in 0..3 {
        let y = pair(&[sum * 0.1, x[1] + f64::from(k)]);
        sum += if sum > 0.5 { inner(&[y[0], y[1]]) } else { y[1] * y[1] };
    }
    sum
}

#[test]
fn a_call_has_the_derivatives_of_the_code_inside() {
    for numerics in NUMERICS {
        let (one, two) = (manual(numerics).record(inner), manual(numerics).record(pair));
        let f = manual(numerics)
            .record(move |x: &[Var]| outer(x, |x| one.call(x).unwrap(), |x| two.call(x).unwrap()));
        let expected = Tape::builder().tape_only().record(|x: &[Var]| outer(x, inner, pair));
        let v = [0.7, -0.4];
        for round in 0..40 {
            let t = f64::from(round % 20);
            let x = [0.5 + t.sin(), 0.8 * (1.7 * t).cos()];
            let (value, gradient) = f.value_and_grad(&x).unwrap();
            let (other, other_gradient) = expected.value_and_grad(&x).unwrap();
            assert_near(&[value], &[other], 1e-12);
            assert_near(&gradient, &other_gradient, 1e-12);
            assert_near(&[f.jvp(&x, &v).unwrap()], &[expected.jvp(&x, &v).unwrap()], 1e-12);
            assert_near(&f.hvp(&x, &v).unwrap(), &expected.hvp(&x, &v).unwrap(), 1e-11);
            if round == 19 {
                f.compile().unwrap();
            }
        }
        assert_eq!(f.report().kernel_calls, 60, "{}", f.report());
    }
}

#[test]
fn the_inner_function_has_its_own_kernels_and_fallback() {
    let one = manual(Numerics::Real).record(inner);
    one.value_and_grad(&[1.0, 0.5]).unwrap();
    one.compile().unwrap();
    let one = Arc::new(one);
    let shared = Arc::clone(&one);
    let f = manual(Numerics::Real).record(move |x: &[Var]| shared.call(x).unwrap() * 2.0);
    f.grad(&[1.0, 0.5]).unwrap();
    f.compile().unwrap();
    let before = (one.report().kernel_calls, one.report().tape_calls);
    f.grad(&[1.2, 0.5]).unwrap();
    let after = one.report();
    // Value and gradient by the kernel.
    assert_eq!((after.kernel_calls - before.0, after.tape_calls), (2, before.1));
    // Another path of the inner function is none of the outer one.
    let x = [0.1, 0.5];
    let expected: Vec<f64> = one.grad(&x).unwrap().iter().map(|partial| 2.0 * partial).collect();
    assert_eq!(f.grad(&x).unwrap(), expected);
    assert_eq!((f.report().kernel_calls, f.report().paths), (2, 1));
}

/// Gradient descent of 20 steps on `energy`, whose minimum depends on the parameter `x[0]`.
fn minimiser(energy: &Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static>, a: Var) -> Var {
    (0..20).fold(Var::from(0.5), |y, _| y - 0.2 * energy.call_grad(&[y, a]).unwrap()[0])
}

/// The same with the slope by hand.
fn minimiser_by_hand(a: Var) -> Var {
    (0..20).fold(Var::from(0.5), |y, _| y - 0.2 * (2.0 * (y - a.sin()) + 0.4 * y.powi(3)))
}

#[test]
fn a_minimiser_in_an_objective_is_differentiated() {
    let energy =
        manual(Numerics::Real).record(|x: &[Var]| (x[0] - x[1].sin()).powi(2) + 0.1 * x[0].powi(4));
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let y = minimiser(&energy, x[0]);
        y * y + x[0]
    });
    let expected = Tape::record(|x: &[Var]| {
        let y = minimiser_by_hand(x[0]);
        y * y + x[0]
    });
    for a in [0.3, 0.8, 1.1] {
        for _ in 0..2 {
            let (value, gradient) = f.value_and_grad(&[a]).unwrap();
            let (other, other_gradient) = expected.value_and_grad(&[a]).unwrap();
            assert_near(&[value], &[other], 1e-13);
            assert_near(&gradient, &other_gradient, 1e-12);
            f.compile().unwrap();
        }
    }
    assert!(f.report().kernel_calls >= 5, "{}", f.report());
}

#[test]
fn the_gradient_of_a_gradient_is_a_hessian_product() {
    let f = manual(Numerics::Real).record(|x: &[Var]| (x[0] * x[1]).sin() + x[1].powi(3));
    let hessian = f.hessian(&[0.4, 0.9]).unwrap();
    let g = manual(Numerics::Real).record(move |x: &[Var]| f.call_grad(x).unwrap());
    for _ in 0..2 {
        assert_near(&g.jacobian(&[0.4, 0.9]).unwrap(), &hessian, 1e-14);
        assert_near(&g.jvp(&[0.4, 0.9], &[1.0, 0.0]).unwrap(), &hessian[..2], 1e-14);
        g.compile().unwrap();
    }
}

#[test]
fn errors_of_the_inner_function_are_returned() {
    let root = manual(Numerics::Real)
        .record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) });
    let f = manual(Numerics::Real).record(move |x: &[Var]| root.call(&[x[0] - 1.0]).unwrap());
    for _ in 0..2 {
        assert_eq!(f.grad(&[5.0]).unwrap(), Ok(vec![0.25]));
        assert_eq!(f.grad(&[0.5]).unwrap(), Err("negative"));
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 1);
}

#[test]
fn errors_that_the_outer_function_handles_are_decided_by_the_tape() {
    let root = manual(Numerics::Real)
        .record(|x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) });
    let f = manual(Numerics::Real).record(move |x: &[Var]| match root.call(x).unwrap() {
        Ok(y) => y * 4.0,
        Err(_) => x[0] * 2.0,
    });
    for _ in 0..3 {
        assert_eq!(f.grad(&[-1.0]).unwrap(), [2.0]);
        assert_eq!(f.grad(&[4.0]).unwrap(), [1.0]);
        f.compile().unwrap();
    }
    assert_eq!((f.report().kernel_calls, f.report().paths), (2, 1));
}

#[test]
fn outputs_of_another_shape_are_another_operation() {
    let split = manual(Numerics::Real).record(|x: &[Var]| match x[0] > 0.0 {
        true => (vec![x[0], x[1]], vec![x[2]]),
        false => (vec![x[0]], vec![x[1], x[2]]),
    });
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let (first, second) = split.call(x).unwrap();
        first.iter().sum::<Var>() + 10.0 * second.iter().sum::<Var>()
    });
    for _ in 0..3 {
        assert_eq!(f.grad(&[1.0, 2.0, 3.0]).unwrap(), [1.0, 1.0, 10.0]);
        f.compile().unwrap();
    }
    for _ in 0..3 {
        assert_eq!(f.grad(&[-1.0, 2.0, 3.0]).unwrap(), [1.0, 10.0, 10.0]);
    }
}

#[test]
fn a_dropped_function_frees_the_ones_inside() {
    struct Noted {
        _alive: Arc<()>,
    }
    impl phigrad::Operation for Noted {
        type Error = core::convert::Infallible;
        fn inputs(&self) -> usize {
            1
        }
        fn outputs(&self) -> usize {
            1
        }
        fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Self::Error> {
            y[0] = x[0];
            Ok(())
        }
        fn vjp(&self, _: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
            out[0] = w[0];
        }
    }
    let alive = Arc::new(());
    let noted = CustomOperation::new(Noted { _alive: Arc::clone(&alive) });
    let one = manual(Numerics::Real).record(move |x: &[Var]| {
        let Ok(y) = noted.call(x);
        y[0]
    });
    let f = manual(Numerics::Real).record(move |x: &[Var]| one.call(x).unwrap());
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    f.grad(&[1.0]).unwrap();
    drop(f);
    assert_eq!(Arc::strong_count(&alive), 1);
}

type Boxed = Box<dyn Fn(&[Var]) -> Var + Send + Sync>;

/// A tower of recorded functions, each of which calls the one below, down to a square root that
/// counts its runs.
fn tower(depth: usize, runs: &Arc<AtomicUsize>) -> Arc<Recorded<Boxed>> {
    let builder = || Tape::builder().compile_at_first_call();
    let runs = Arc::clone(runs);
    let bottom: Boxed = Box::new(move |x| {
        runs.fetch_add(1, Ordering::Relaxed);
        x[0].sqrt()
    });
    (0..depth).fold(Arc::new(builder().record(bottom)), |below, _| {
        let level: Boxed = Box::new(move |x| below.call(x).unwrap() * 1.01 + x[0]);
        Arc::new(builder().record(level))
    })
}

/// The tape does not run once more for each level below a kernel without a result.
#[test]
fn the_time_of_an_exit_does_not_double_with_each_level() {
    for depth in [3, 6, 12] {
        let runs = Arc::new(AtomicUsize::new(0));
        let f = tower(depth, &runs);
        for i in 0..30 {
            f.grad(&[1.0 + f64::from(i)]).unwrap();
        }
        for _ in 0..5 {
            runs.store(0, Ordering::Relaxed);
            assert!(f.grad(&[-1.0]).unwrap()[0].is_nan());
            let runs = runs.load(Ordering::Relaxed);
            assert!(runs <= 4 * (depth + 1), "{runs} runs of the bottom at depth {depth}");
        }
        let slope = f.grad(&[4.0]).unwrap()[0];
        let expected = (0..depth).fold(0.25, |slope, _| slope * 1.01 + 1.0);
        assert!((slope - expected).abs() < 1e-12, "{slope} {expected}");
    }
}

#[test]
fn a_function_that_calls_itself_is_not_repeated_at_each_level() {
    let itself = Arc::new(OnceLock::<Recorded<Boxed>>::new());
    let (runs, weak) = (Arc::new(AtomicUsize::new(0)), Arc::downgrade(&itself));
    let counted = Arc::clone(&runs);
    let body: Boxed = Box::new(move |x| {
        counted.fetch_add(1, Ordering::Relaxed);
        if x[1] <= 0.0 {
            return x[0];
        }
        let itself = weak.upgrade().unwrap();
        itself.get().unwrap().call(&[x[0], x[1] - 1.0]).unwrap().sin() * x[0]
    });
    let f = Tape::builder().background(false).hot_threshold(3).record(body);
    assert!(itself.set(f).is_ok());
    let f = itself.get().unwrap();
    let depth = 12;
    let by_hand = (0..depth)
        .fold((0.7f64, 1.0), |(y, slope), _| (y.sin() * 0.7, y.cos() * slope * 0.7 + y.sin()));
    for call in 0..20 {
        runs.store(0, Ordering::Relaxed);
        let gradient = f.grad(&[0.7, f64::from(depth)]).unwrap();
        assert!((gradient[0] - by_hand.1).abs() < 1e-12, "{gradient:?} {by_hand:?}");
        // The forward pass of each level is one run for each level above.
        let runs = runs.load(Ordering::Relaxed);
        assert!(runs < 8 * (depth * depth) as usize, "call {call}: {runs} runs");
    }
}
