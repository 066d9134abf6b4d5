//! The contract between the library and operations: what they are asked, for which inputs they are
//! called, and what is in their buffers.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use phigrad::{CustomOperation, Limits, Numerics, Operation, Recorded, Rows, Tape, Var};

use crate::common::served::{NUMERICS, limits, manual};

/// (r·cos φ, r·sin φ), with the saved cosine. It adds to what is in its buffers, skips numbers that
/// are zero, and counts how often it is asked for lengths.
#[derive(Default)]
struct Polar {
    asked: Arc<AtomicUsize>,
}

impl Polar {
    fn asked(&self) -> usize {
        self.asked.fetch_add(1, Ordering::Relaxed)
    }
}

impl Operation for Polar {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        self.asked();
        2
    }

    fn outputs(&self) -> usize {
        self.asked();
        2
    }

    fn saved(&self) -> usize {
        self.asked();
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], saved: &mut [f64]) -> Result<(), Infallible> {
        saved[0] += x[1].cos();
        y[0] += x[0] * x[1].cos();
        y[1] += x[0] * x[1].sin();
        Ok(())
    }

    fn vjp(&self, x: &[f64], _: &[f64], saved: &[f64], w: &[f64], out: &mut [f64]) {
        for (output, w) in w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            let [value, slope] = [[saved[0], -x[1].sin()], [x[1].sin(), saved[0]]][output];
            out[0] += w * value;
            out[1] += w * x[0] * slope;
        }
    }

    fn is_twice_differentiable(&self) -> bool {
        true
    }

    fn vjp_tangent(
        &self,
        x: &[f64],
        _: &[f64],
        saved: &[f64],
        (w, v): (&[f64], &[f64]),
        out: &mut [f64],
    ) {
        for (output, w) in w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            let [value, slope] = [[saved[0], -x[1].sin()], [x[1].sin(), saved[0]]][output];
            out[0] += w * slope * v[1];
            out[1] += w * (slope * v[0] - x[0] * value * v[1]);
        }
    }
}

fn polar() -> CustomOperation<Polar> {
    CustomOperation::new(Polar::default())
}

fn call(polar: &CustomOperation<Polar>, r: Var, phi: Var) -> [Var; 2] {
    let Ok(y) = polar.call(&[r, phi]);
    [y[0], y[1]]
}

fn by_primitives(r: Var, phi: Var) -> [Var; 2] {
    [r * phi.cos(), r * phi.sin()]
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= 1e-12 * other.abs().max(1.0), "{found:?} {expected:?}");
    }
}

#[test]
fn sparse_products_of_rows_pass_through_calls() {
    let x = [1.5, 0.4];
    let operation = polar();
    let f = Tape::builder().tape_only().record(move |x: &[Var]| call(&operation, x[0], x[1])[0]);
    assert_near(&f.sparse_jacobian(&x).unwrap().to_dense(), &f.grad(&x).unwrap());
    // Few rows, several of which are one product.
    let operation = polar();
    let f = Tape::builder().tape_only().record(move |x: &[Var]| {
        let pairs = x.chunks(4).map(|x| call(&operation, x[0] * x[1], x[2] + x[3])[0]);
        pairs.collect::<Vec<Var>>()
    });
    let x: Vec<f64> = (0..12).map(|i| 0.3 + 0.1 * f64::from(i)).collect();
    assert_near(&f.sparse_jacobian(&x).unwrap().to_dense(), &f.jacobian(&x).unwrap());
    let inner = Tape::record(|x: &[Var]| [x[0] * x[1], x[0].sin()]);
    let f = Tape::builder().tape_only().record(move |x: &[Var]| inner.call(x).unwrap()[0]);
    assert_eq!(f.sparse_jacobian(&[2.0, 3.0]).unwrap().to_dense(), [3.0, 2.0]);
}

#[test]
fn an_operation_is_asked_once_for_its_lengths() {
    let asked = Arc::new(AtomicUsize::new(0));
    let operation = CustomOperation::new(Polar { asked: Arc::clone(&asked) });
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let [a, b] = call(&operation, x[0], x[1]);
        a * b
    });
    for _ in 0..3 {
        f.value_and_grad(&[1.0, 2.0]).unwrap();
        f.hvp(&[1.0, 2.0], &[1.0, 0.0]).unwrap();
        f.compile().unwrap();
    }
    assert_eq!((asked.load(Ordering::Relaxed), f.report().kernel_calls), (3, 4));
}

#[test]
fn a_long_run_may_return_an_output_before_others() {
    for number in [0, 1] {
        for whole in [1, 2, 3, 5, 8, 100, 130] {
            let operation = polar();
            let program = move |x: &[Var]| {
                let mut r = x[0];
                for _ in 0..60 {
                    r = call(&operation, r.sin() + 1.0, x[1])[1];
                }
                call(&operation, r, x[1])[number]
            };
            let limits = limits(|limits| limits.trace_events = whole);
            let f = manual(Numerics::Real).limits(limits).record(program.clone());
            let all = manual(Numerics::Real).record(program);
            let x = [0.3, 0.4];
            assert_eq!(f.value_and_grad(&x).unwrap(), all.value_and_grad(&x).unwrap());
        }
    }
}

#[test]
fn a_call_without_outputs_is_not_recorded() {
    let nothing = manual(Numerics::Real).record(|_: &[Var]| Vec::<Var>::new());
    let operation = polar();
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        assert!(nothing.call(x).unwrap().is_empty());
        let [a, b] = call(&operation, x[0], x[1]);
        assert!(nothing.call(&[a]).unwrap().is_empty());
        a * a + b
    });
    let expected = Tape::builder().tape_only().record(|x: &[Var]| {
        let [a, b] = by_primitives(x[0], x[1]);
        a * a + b
    });
    let (x, v) = ([1.5, 0.4], [1.0, -2.0]);
    for _ in 0..2 {
        assert_near(&f.grad(&x).unwrap(), &expected.grad(&x).unwrap());
        assert_near(&[f.jvp(&x, &v).unwrap()], &[expected.jvp(&x, &v).unwrap()]);
        assert_near(&f.hvp(&x, &v).unwrap(), &expected.hvp(&x, &v).unwrap());
        f.compile().unwrap();
    }
    assert_eq!(f.report().kernel_calls, 3);
}

/// The logarithm of a positive number, otherwise an error. It notes the inputs of all calls.
#[derive(Default)]
struct Log {
    seen: Arc<Mutex<Vec<f64>>>,
}

impl Log {
    fn note(&self, x: &[f64]) {
        self.seen.lock().unwrap().push(x[0]);
    }
}

impl Operation for Log {
    type Error = &'static str;

    fn inputs(&self) -> usize {
        1
    }

    fn outputs(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), &'static str> {
        self.note(x);
        y[0] = x[0].ln();
        if x[0] > 0.0 { Ok(()) } else { Err("not positive") }
    }

    fn vjp(&self, x: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        self.note(x);
        assert!(y[0].is_finite());
        out[0] = w[0] / x[0];
    }
}

/// An operation, and the inputs that it has seen since.
fn log() -> (CustomOperation<Log>, impl Fn() -> Vec<f64>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let operation = CustomOperation::new(Log { seen: Arc::clone(&seen) });
    (operation, move || std::mem::take(&mut *seen.lock().unwrap()))
}

#[test]
fn an_operation_is_not_called_behind_a_failed_guard() {
    for numerics in NUMERICS {
        let (operation, seen) = log();
        let f = manual(numerics).record(move |x: &[Var]| {
            let mut sum = x[1] * x[1];
            if x[0] > 0.0 {
                sum += operation.call(&[x[0]]).unwrap()[0];
            }
            if sum > 100.0 {
                sum *= operation.call(&[sum]).unwrap()[0];
            }
            sum
        });
        f.grad(&[2.0, 20.0]).unwrap();
        f.compile().unwrap();
        seen();
        assert_eq!(f.grad(&[2.0, 20.0]).unwrap().len(), 2);
        assert!(!seen().is_empty());
        assert_eq!(f.grad(&[-1.0, 3.0]).unwrap(), [0.0, 6.0]);
        assert!(seen().is_empty(), "the function calls it for neither");
        let _ = f.eval(&[-1.0, 3.0]).unwrap();
        assert!(seen().is_empty());
        assert_eq!((f.report().kernel_calls, f.report().fallbacks), (1, 2));
    }
}

#[test]
fn derivatives_are_not_asked_for_where_there_are_no_outputs() {
    let (operation, seen) = log();
    let f = manual(Numerics::Real)
        .record(move |x: &[Var]| operation.call(&[x[0]]).map(|y| y[0] * x[0]));
    f.grad(&[2.0]).unwrap().unwrap();
    f.compile().unwrap();
    seen();
    assert_eq!(f.grad(&[-1.0]).unwrap(), Err("not positive"));
    // By the kernel and on the tape.
    assert_eq!(seen(), [-1.0, -1.0]);
}

#[test]
fn shared_work_of_a_batch_is_done_behind_the_guards() {
    let (operation, seen) = log();
    let f = manual(Numerics::Real).audit(0).record_with(move |x: &[Var], data: &[Var]| {
        let mut scale = data[0].sin() + data[0].exp();
        if data[0] > 0.0 {
            scale = operation.call(&[data[0]]).unwrap()[0] + scale;
        }
        (x[0] * scale).sin()
    });
    f.grad(&[1.0], &[2.0]).unwrap();
    f.compile().unwrap();
    let (xs, mut gradients) = (vec![0.5; 6001], vec![0.0; 6001]);
    for _ in 0..3 {
        f.grad_batch_into(&xs, Rows::Shared(&[2.0]), xs.len(), &mut gradients).unwrap();
    }
    seen();
    f.grad_batch_into(&xs[..9], Rows::Shared(&[-1.0]), 9, &mut gradients[..9]).unwrap();
    assert!(seen().is_empty());
    assert_near(&gradients[..1], &f.grad(&[0.5], &[-1.0]).unwrap());
}

#[test]
fn buffers_for_results_are_zero_at_first() {
    let operation = polar();
    let program = |x: &[Var], of: &dyn Fn(Var, Var) -> [Var; 2]| {
        let [a, b] = of(x[0], x[1]);
        let [c, _] = of(b, a);
        (a * c, b)
    };
    let expected = Tape::builder().tape_only().record(move |x: &[Var]| {
        let (a, b) = program(x, &by_primitives);
        a * b
    });
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let (a, b) = program(x, &|r, phi| call(&operation, r, phi));
        a * b
    });
    for round in 0..6 {
        let (x, v) = ([1.5 + 0.1 * f64::from(round), 0.4], [1.0, -2.0]);
        let (value, gradient) = f.value_and_grad(&x).unwrap();
        let (other, other_gradient) = expected.value_and_grad(&x).unwrap();
        assert_near(&[value], &[other]);
        assert_near(&gradient, &other_gradient);
        assert_near(&[f.jvp(&x, &v).unwrap()], &[expected.jvp(&x, &v).unwrap()]);
        assert_near(&f.hvp(&x, &v).unwrap(), &expected.hvp(&x, &v).unwrap());
        if round == 2 {
            f.compile().unwrap();
        }
    }
    assert_eq!(f.report().kernel_calls, 9);
}

#[test]
fn second_derivatives_along_zero_are_zero() {
    /// The exponential, whose second derivatives are NaN.
    struct Exp;

    impl Operation for Exp {
        type Error = Infallible;

        fn inputs(&self) -> usize {
            1
        }

        fn outputs(&self) -> usize {
            1
        }

        fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
            y[0] = x[0].exp();
            Ok(())
        }

        fn vjp(&self, _: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
            out[0] = w[0] * y[0];
        }

        fn is_twice_differentiable(&self) -> bool {
            true
        }
    }

    let operation = CustomOperation::new(Exp);
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let Ok(y) = operation.call(&x[..1]);
        y[0] + x[1] * x[1]
    });
    for _ in 0..2 {
        assert_eq!(f.hvp(&[1.0, 3.0], &[0.0, 1.0]).unwrap(), [0.0, 2.0]);
        f.compile().unwrap();
    }
}

/// The scalar product of a loop over many lengths, each a call of another shape.
fn nested_sum(inner: &Recorded<impl Fn(&[Var]) -> Var + Send + Sync + 'static>, x: &[Var]) -> Var {
    (1..=x.len()).map(|count| inner.call(&x[..count]).unwrap()).sum()
}

#[test]
fn a_function_may_be_called_with_many_shapes() {
    let inner = manual(Numerics::Real)
        .limits(limits(|limits: &mut Limits| limits.specialisations = 100))
        .record(|x: &[Var]| x.iter().map(|&x| x * x).sum::<Var>());
    let f = manual(Numerics::Real).record(move |x: &[Var]| nested_sum(&inner, x));
    let x: Vec<f64> = (0..90).map(|i| 0.01 * f64::from(i)).collect();
    let first = f.grad(&x).unwrap();
    assert_near(&f.grad(&x).unwrap(), &first);
    f.compile().unwrap();
    assert_near(&f.grad(&x).unwrap(), &first);
    let report = f.report();
    assert_eq!((report.paths, report.kernel_calls), (1, 1), "{report}");
    assert!(report.refusals.is_empty(), "{report}");
}

#[test]
fn a_weight_of_zero_gives_zero() {
    let root = Tape::record(|x: &[Var]| x[0].sqrt());
    assert_eq!(root.vjp(&[0.0], &[0.0]).unwrap(), [0.0]);
    assert_eq!(root.vjp(&[0.0], &[1.0]).unwrap(), [f64::INFINITY]);
    let mut product = [7.0];
    root.vjp_into(&[0.0], &[0.0], &mut product).unwrap();
    assert_eq!(product, [0.0]);
    // The kernel asks the inner function also for products with a weight of zero.
    let f = manual(Numerics::Real).record(move |x: &[Var]| {
        let y = root.call(&x[..1]).unwrap();
        (1.0 + y) * x[1] * x[1]
    });
    for _ in 0..2 {
        assert_eq!(f.hvp(&[0.0, 0.0], &[0.0, 1.0]).unwrap(), [0.0, 2.0]);
        f.compile().unwrap();
    }
    assert_eq!((f.report().kernel_calls, f.report().non_finite), (1, 0));
}
