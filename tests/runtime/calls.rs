//! The runtime as users see it: hotness, shapes, edge cases of inputs, reports.

use std::time::{Duration, Instant};

use crate::common::served::{NUMERICS, Pair, Served, agrees, manual};
use phigrad::{Numerics, Purpose, Recorded, RecordedWith, Report, Tape, Var};

fn rosenbrock(x: &[Var]) -> Var {
    x.windows(2).map(|w| (1.0 - w[0]).powi(2) + 100.0 * (w[1] - w[0] * w[0]).powi(2)).sum()
}

/// The gradient of [`rosenbrock`] of two inputs, by hand.
fn rosenbrock_gradient(x: &[f64]) -> [f64; 2] {
    let residual = x[1] - x[0] * x[0];
    [2.0 * (x[0] - 1.0) - 400.0 * x[0] * residual, 200.0 * residual]
}

/// A point that differs from call to call.
fn point(i: u32) -> [f64; 2] {
    [f64::from(i).sin(), 0.5 * f64::from(i).cos()]
}

fn assert_near(expected: &[f64], found: &[f64]) {
    let near = expected.iter().zip(found).all(|(&e, &f)| (e - f).abs() <= 1e-10 * e.abs().max(1.0));
    assert!(near && expected.len() == found.len(), "expected {expected:?}, found {found:?}");
}

#[test]
fn a_hot_function_is_compiled_by_the_call_that_finds_it_hot() {
    for numerics in NUMERICS {
        let builder = Tape::builder().hot_threshold(10).background(false).numerics(numerics);
        let f = builder.record(rosenbrock);
        for i in 0..100 {
            let x = point(i);
            assert_near(&rosenbrock_gradient(&x), &f.grad(&x).unwrap());
        }
        let report = f.report();
        assert!(report.kernel_calls >= 85, "{report}");
        assert_eq!(report.kernel_calls + report.tape_calls, 100);
        let purposes: Vec<_> = report.kernels.iter().map(|kernel| kernel.purpose).collect();
        assert_eq!(purposes, [Purpose::Gradient], "only what was called is compiled");
        assert_eq!(report.kernels[0].active, 2);
    }
}

#[test]
fn a_hot_function_is_compiled_in_the_background_while_the_tape_serves() {
    // Long enough that compile time is many times that of a call, and without repetition that
    // would become a short loop.
    fn long(x: &[Var]) -> Var {
        (0..3000u64).fold(x[0], |v, i| match i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 {
            0 => (v * x[1]).sin(),
            1 => v + x[0],
            2 => (v - x[1]).cos(),
            _ => v * 0.5,
        })
    }
    let f = Tape::builder().hot_threshold(5).record(long);
    let tape = manual(Numerics::Real).record(long);
    let start = Instant::now();
    let mut during = 0;
    for i in 0.. {
        let x = point(i);
        let found = f.grad(&x).unwrap();
        assert_near(&tape.grad(&x).unwrap(), &found);
        let report = f.report();
        if report.kernel_calls > 20 {
            break;
        }
        during += u64::from(report.kernel_calls == 0 && report.tape_calls > 10);
        assert!(start.elapsed() < Duration::from_secs(60), "no kernel: {report}");
    }
    assert!(during > 0, "some calls were served while the kernel was made");
    assert_eq!(f.report().refusals, []);
}

#[test]
fn a_new_path_that_is_hot_joins_the_kernel_by_itself() {
    fn f(x: &[Var]) -> Var {
        if x[0] > 0.0 { x[0].exp() } else { x[0] * x[0] }
    }
    let pair = Pair::with(
        Tape::builder().hot_threshold(10).background(false).numerics(Numerics::Exact),
        Numerics::Exact,
        f,
    );
    for _ in 0..30 {
        pair.kernel.value_and_grad(&[1.0]).unwrap();
        pair.kernel.eval(&[1.0]).unwrap();
        pair.kernel.grad(&[1.0]).unwrap();
    }
    assert_eq!(pair.check(&[2.0]), Served::Kernel);
    for _ in 0..100 {
        pair.kernel.value_and_grad(&[-1.0]).unwrap();
        pair.kernel.eval(&[-1.0]).unwrap();
        pair.kernel.grad(&[-1.0]).unwrap();
    }
    assert_eq!(pair.check(&[-2.0]), Served::Kernel);
    assert_eq!(pair.check(&[2.0]), Served::Kernel);
    let place = pair.kernel.report().last_new_path.unwrap();
    assert!(place.file.ends_with("calls.rs"), "{place:?}");
}

#[test]
fn the_largest_threshold_never_compiles() {
    let f = Tape::builder().hot_threshold(u32::MAX).background(false).record(rosenbrock);
    for i in 0..2000 {
        f.eval(&point(i)).unwrap();
    }
    let report = f.report();
    assert_eq!((report.tape_calls, report.kernel_calls, report.kernels.len()), (2000, 0, 0));
}

#[test]
fn ten_threads_share_one_function_while_it_is_compiled() {
    fn paths(x: &[Var]) -> Var {
        let turned = if x[0] < x[1] { x[0] - x[1] } else { x[0] * x[1] };
        (0..50).fold(turned, |v, i| (v + x[i % 2]).sin())
    }
    for background in [true, false] {
        let f = Tape::builder()
            .hot_threshold(20)
            .background(background)
            .numerics(Numerics::Exact)
            .record(paths);
        let tape = manual(Numerics::Exact).record(paths);
        std::thread::scope(|scope| {
            for thread in 0..10 {
                let (f, tape) = (&f, &tape);
                scope.spawn(move || {
                    for i in 0..200 {
                        let x = point(i * 10 + thread);
                        let (value, gradient) = tape.value_and_grad(&x).unwrap();
                        let (found, both) = f.value_and_grad(&x).unwrap();
                        assert_eq!(value.to_bits(), found.to_bits());
                        assert_eq!(gradient, both);
                        assert_eq!(gradient, f.grad(&x).unwrap());
                    }
                });
            }
        });
        f.compile().unwrap();
        f.grad(&[0.1, 0.2]).unwrap();
        let report = f.report();
        assert_eq!((report.paths, report.refusals.len()), (2, 0), "{report}");
        assert!(report.kernel_calls > 0, "{report}");
        assert_eq!(report.kernel_calls + report.tape_calls, 4001);
    }
}

#[test]
fn public_values_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<Recorded<fn(&[Var]) -> Var>>();
    shared::<RecordedWith<fn(&[Var], &[Var]) -> Var>>();
    shared::<(phigrad::Error, Report, phigrad::TapeBuilder, phigrad::Refusal)>();
    shared::<(
        phigrad::internals::jit::Kernel,
        phigrad::internals::ssa::Graph,
        phigrad::internals::merge::MergedTraces,
    )>();
    // Also after calls, and to a thread that ends before this one.
    let f = manual(Numerics::Exact).record(rosenbrock);
    f.grad(&[0.0, 0.0]).unwrap();
    let f = std::thread::spawn(move || {
        f.compile().unwrap();
        assert_eq!(f.grad(&[0.0, 0.0]).unwrap(), [-2.0, 0.0]);
        f
    });
    assert_eq!(f.join().unwrap().grad(&[0.0, 0.0]).unwrap(), [-2.0, 0.0]);
}

#[test]
fn an_empty_input_has_an_empty_gradient() {
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, |_: &[Var]| Var::from(3.0) * 2.0);
        pair.profile(&[[0.0; 0]]);
        assert_eq!(pair.check(&[]), Served::Kernel);
        assert_eq!(pair.kernel.value_and_grad(&[]).unwrap(), (6.0, vec![]));
        let empty_sum = Pair::new(numerics, |x: &[Var]| x.iter().sum());
        empty_sum.profile(&[[0.0; 0]]);
        assert_eq!(empty_sum.check(&[]), Served::Kernel);
    }
}

#[test]
fn each_length_of_input_is_recorded_on_its_own() {
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, rosenbrock);
        pair.profile(&[vec![0.5; 2], vec![0.5; 3], vec![0.5; 7]]);
        for (length, served) in
            [(2, Served::Kernel), (7, Served::Kernel), (3, Served::Kernel), (4, Served::Tape)]
        {
            let x: Vec<f64> = (0..length).map(|i| 0.1 * f64::from(i)).collect();
            assert_eq!(pair.check(&x), served, "{length}");
        }
        let report = pair.kernel.report();
        assert_eq!((report.paths, report.kernels.len()), (4, 9));
    }
}

#[test]
fn a_gradient_slice_of_another_length_is_an_error_and_stays_unchanged() {
    let f = manual(Numerics::Real).record(rosenbrock);
    for round in 0..2 {
        for length in [0, 1, 3, 100] {
            let mut gradient = vec![7.0; length];
            let error = f.grad_into(&[1.0, 2.0], &mut gradient).unwrap_err();
            assert!(error.is_shape() && !error.is_refused() && error.place().is_none());
            assert!(error.to_string().contains(&length.to_string()), "{error}");
            let error = f.value_and_grad_into(&[1.0, 2.0], &mut gradient).unwrap_err();
            assert!(error.is_shape());
            assert_eq!(gradient, vec![7.0; length]);
        }
        let mut gradient = [0.0; 2];
        f.grad_into(&[1.0, 2.0], &mut gradient).unwrap();
        assert_near(&rosenbrock_gradient(&[1.0, 2.0]), &gradient);
        if round == 0 {
            f.compile().unwrap();
        }
    }
    assert!(f.report().kernel_calls > 0);
}

#[test]
fn non_finite_inputs_give_the_result_of_the_tape() {
    fn f(x: &[Var]) -> Var {
        (x[0] / x[1]).sqrt() * x[2] + x[1].ln() - x[2].recip() + (x[0] - x[0]) * 0.0
    }
    let edges = [0.0, -0.0, 1.0, -1.0, 1e308, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, f);
        pair.profile(&[[1.0, 2.0, 3.0]]);
        assert_eq!(pair.check(&[1.5, 2.5, 3.5]), Served::Kernel);
        let mut not_finite = 0;
        for a in edges {
            for b in edges {
                for c in edges {
                    let served = pair.check(&[a, b, c]);
                    // The reciprocal of such a divisor overflows.
                    let is_tiny = numerics == Numerics::Real && [b, c].contains(&5e-324);
                    let expected = match served {
                        Served::FallbackOrNonFinite => is_tiny,
                        served => matches!(served, Served::Kernel | Served::NonFinite),
                    };
                    assert!(expected, "{served:?} at {:?}", [a, b, c]);
                    not_finite += u64::from(served != Served::Kernel);
                }
            }
        }
        assert!(not_finite > 300, "{not_finite}");
        assert!(pair.kernel.report().non_finite >= not_finite);
    }
}

#[test]
fn the_value_may_be_asked_for_before_the_gradient() {
    let f = manual(Numerics::Exact).record(rosenbrock);
    assert_eq!(f.eval(&[0.0, 0.0]).unwrap(), 1.0);
    f.compile().unwrap();
    assert_eq!(f.grad(&[0.0, 0.0]).unwrap(), [-2.0, 0.0]);
    assert_eq!(f.value_and_grad(&[0.0, 0.0]).unwrap(), (1.0, vec![-2.0, 0.0]));
    assert_eq!((f.report().tape_calls, f.report().kernel_calls), (1, 2));
}

#[test]
fn compiling_before_any_call_is_an_error() {
    let error = Tape::record(rosenbrock).compile().unwrap_err();
    assert!(error.is_refused());
    assert!(error.to_string().contains("nothing has been recorded"), "{error}");
}

#[test]
fn compiling_after_a_failed_call_only_is_an_error() {
    let builder =
        manual(Numerics::Real).limits(crate::common::served::limits(|l| l.call_events = 1));
    let f = builder.record(rosenbrock);
    assert!(f.grad(&[1.0, 2.0]).unwrap_err().is_too_long());
    assert!(f.compile().unwrap_err().is_refused());
}

#[test]
fn results_need_no_operation() {
    // A constant, an input itself, one input of several, the same input twice.
    let functions: [fn(&[Var]) -> Var; 5] =
        [|_| Var::from(5.0), |x| x[0], |x| x[1], |x| x[0] * x[0], |x| x[0] + x[0] - x[0] * x[1]];
    let gradients = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [6.0, 0.0], [-2.0, -3.0]];
    for numerics in NUMERICS {
        for (f, gradient) in functions.into_iter().zip(gradients) {
            let pair = Pair::new(numerics, f);
            pair.profile(&[[1.0, 2.0]]);
            assert_eq!(pair.check(&[3.0, 4.0]), Served::Kernel);
            assert_eq!(pair.kernel.grad(&[3.0, 4.0]).unwrap(), gradient);
        }
    }
}

#[test]
fn one_value_may_be_used_any_number_of_times() {
    fn f(x: &[Var]) -> Var {
        let shared = x[0].exp();
        (0..40).map(|i| shared * f64::from(i) + shared).sum::<Var>() * shared
    }
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, f);
        pair.profile(&[[0.5]]);
        assert_eq!(pair.check(&[0.25]), Served::Kernel);
        let exact = 2.0 * 820.0 * 0.5f64.exp();
        assert_near(&[exact], &pair.kernel.grad(&[0.25]).unwrap());
    }
}

#[test]
fn inactive_inputs_change_from_call_to_call() {
    fn squares(w: &[Var], data: &[Var]) -> Var {
        data.iter().map(|&d| if d > 0.0 { (d - w[0]).powi(2) } else { d * w[1] }).sum()
    }
    for numerics in NUMERICS {
        let f = manual(numerics).record_with(squares);
        let tape = manual(numerics).record_with(squares);
        let data = |i: u32| [0, 1, 2].map(|k| f64::from(i * 7 + k * 5).sin());
        for round in 0..2 {
            for i in 0..40 {
                let (w, data) = (point(i), data(i));
                let expected = tape.value_and_grad(&w, &data).unwrap();
                let found = f.value_and_grad(&w, &data).unwrap();
                assert!(agrees(numerics, expected.0, found.0));
                for (&e, &g) in expected.1.iter().zip(&found.1) {
                    assert!(agrees(numerics, e, g), "{e} {g}");
                }
                assert_eq!(found.1.len(), 2, "no gradient of the data");
            }
            if round == 0 {
                f.compile().unwrap();
            }
        }
        assert_eq!(f.report().kernel_calls, 40, "{}", f.report());
        // Other numbers of data are other specialisations.
        assert_eq!(f.grad(&[1.0, 1.0], &[2.0]).unwrap(), [-2.0, 0.0]);
        assert_eq!(f.eval(&[1.0, 1.0], &[]).unwrap(), 0.0);
        let mut gradient = [0.0; 3];
        assert!(f.grad_into(&[1.0, 1.0], &[2.0], &mut gradient).unwrap_err().is_shape());
    }
}

#[test]
fn a_huge_trace_is_served_by_the_tape_and_then_compiled_in_segments() {
    // More events than fit any buffer of the recorder, in odd numbers.
    let f = manual(Numerics::Exact)
        .record(|x: &[Var]| (0..20_001).fold(x[0], |v, i| v * 0.5 + x[(i % 3) as usize]));
    let expected = f.value_and_grad(&[1.0, 2.0, 3.0]).unwrap();
    // Geometric array of ratio 1/8 for each input.
    assert_near(&[2.0 / 7.0, 4.0 / 7.0, 8.0 / 7.0], &expected.1);
    f.compile().unwrap();
    assert_eq!(f.value_and_grad(&[1.0, 2.0, 3.0]).unwrap(), expected);
    assert_eq!(f.report().kernel_calls, 1);
    assert_eq!(f.report().trace_events, 3 + 2 * 20_001);
}

#[test]
fn everything_public_has_a_debug_form() {
    let f = Tape::record(rosenbrock);
    f.grad(&[1.0, 2.0]).unwrap();
    f.compile().unwrap();
    let with = Tape::record_with(|w: &[Var], d: &[Var]| w[0] * d[0]);
    let error = f.grad_into(&[1.0], &mut []).unwrap_err();
    let graph =
        phigrad::internals::ssa::parse("graph active 1 inactive 0\nb0:\n  return v0\n").unwrap();
    let forms: Vec<(String, &str)> = vec![
        (format!("{f:?}"), "Recorded { report: Report {"),
        (format!("{with:?}"), "RecordedWith { report: Report {"),
        (format!("{:?}", Tape), "Tape"),
        (format!("{:?}", Tape::builder()), "TapeBuilder {"),
        (format!("{:?}", phigrad::Limits::default()), "Limits { trace_events:"),
        (format!("{:?}", Numerics::Real), "Real"),
        (format!("{:?}", Purpose::Value), "Value"),
        (format!("{error:?}"), "Error(Shape {"),
        (format!("{:?}", f.report().kernels[0]), "KernelReport {"),
        (format!("{:?}", Var::from(1.5)), "1.5"),
        (format!("{:?}", phigrad::internals::jit::compile(&graph).unwrap()), "Kernel {"),
        (format!("{:?}", phigrad::internals::merge::MergedTraces::new(1, 0)), "MergedTraces {"),
        (format!("{:?}", phigrad::internals::ssa::Folding::Real), "Real"),
        (format!("{graph:?}"), "Graph"),
    ];
    for (form, start) in forms {
        assert!(form.starts_with(start), "{form}");
    }
    let report = f.report().to_string();
    assert!(report.contains("kernel for the gradient of 2+0 inputs: 1 path,"), "{report}");
}
