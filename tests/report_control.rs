//! The report explains control flow: decisions with margins, loops with their
//! iterations, and where calls left a kernel.

use phigrad::op::Op;
use phigrad::{Limits, Purpose, Recorded, Refusal, Report, Tape, Var, Wait};

#[phigrad::traced]
fn root(x: Var) -> Var {
    let mut guess = x;
    while guess * guess - x > 0.01 {
        guess = (guess + x / guess) * 0.5;
    }
    guess
}

#[phigrad::traced]
fn choose(x: Var, y: Var) -> Var {
    if x < y { x * 2.0 } else { y * 3.0 }
}

#[test]
fn loops_tell_their_iterations() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| root(x[0]));
    for x in [0.5, 2.0, 1000.0] {
        f.grad(&[x]).unwrap();
    }
    let report = f.report();
    let [trips] = &report.loops[..] else { panic!("{report}") };
    assert_eq!((trips.entered, trips.at.line), (3, 10), "{report}");
    // Heads passed, also that at which the condition fails.
    assert_eq!(trips.fewest, 1, "{report}");
    assert!(trips.most > 5, "{report}");
    assert!(report.to_string().contains("report_control.rs:10:5: entered 3 times"), "{report}");
}

#[test]
fn decisions_tell_sides_margins_and_departures() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| choose(x[0], x[1]));
    f.grad(&[1.0, 1.5]).unwrap();
    f.compile().unwrap();
    f.grad(&[1.0, 2.0]).unwrap();
    assert_eq!(f.grad(&[3.0, 2.0]).unwrap(), [0.0, 3.0]);
    let report = f.report();
    let [decision] = &report.decisions[..] else { panic!("{report}") };
    assert_eq!(decision.left, 1);
    let decision = &decision.decision;
    assert_eq!((decision.op, decision.at.line), (Op::Lt, 18));
    // The kernel served the second call, which is not looked at.
    assert_eq!((decision.held, decision.failed, decision.margin), (1, 1, 0.5));
    let text = report.to_string();
    assert!(
        text.contains("held 1 time, failed 1 time, margin 5.000e-1, 1 call left a kernel here")
    );
    let last = report.last_departure.unwrap();
    assert_eq!((last.op, last.held, last.at.line), (Op::Lt, false, 18));
    assert!(text.contains("a call last left a kernel because lt failed at tests/report"), "{text}");
}

/// How many calls left kernels, by line relative to `first`.
fn left(report: &Report, first: u32) -> Vec<(u32, u64)> {
    let decisions = report.decisions.iter();
    decisions.map(|d| (d.decision.at.line - first, d.left)).collect()
}

#[test]
fn departures_are_those_of_the_kernel_and_not_of_the_graph() {
    let first = line!();
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| {
        let y = if x[0] > 0.0 { x[0] * 2.0 } else { x[0] * 3.0 };
        let z = if x[1] > 0.0 { y * x[1] } else { y - x[1] };
        if x[2] > 0.0 { z } else { z * x[2] }
    });
    f.grad(&[1.0, 1.0, 1.0]).unwrap();
    f.compile().unwrap();
    // The graph learns the sides at once, the kernel does not.
    for _ in 0..5 {
        f.grad(&[1.0, -1.0, -1.0]).unwrap();
    }
    f.grad(&[-1.0, -1.0, -1.0]).unwrap();
    assert_eq!(left(&f.report(), first), [(2, 1), (3, 5), (4, 0)], "{}", f.report());
    assert_eq!(f.report().last_departure.unwrap().at.line, first + 2);
    f.compile().unwrap();
    // What a newer kernel does not know comes later on the way.
    f.grad(&[1.0, -1.0, 1.0]).unwrap();
    assert_eq!(left(&f.report(), first), [(2, 1), (3, 5), (4, 1)], "{}", f.report());
    let fallbacks = f.report().fallbacks;
    assert_eq!(fallbacks, 7);
}

#[test]
fn departures_behind_regions_that_share_are_noted() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| root(x[0]));
    f.grad(&[2.0]).unwrap();
    f.compile().unwrap();
    for _ in 0..3 {
        f.grad(&[1e6]).unwrap();
    }
    let report = f.report();
    let [decision] = &report.decisions[..] else { panic!("{report}") };
    assert_eq!((decision.left, report.fallbacks), (3, 3), "{report}");
    let last = report.last_departure.unwrap();
    assert_eq!((last.op, last.held, last.at.line), (Op::Gt, true, 10));
}

#[test]
fn closed_forms_that_are_not_finite_are_no_unknown_paths() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| {
        let y = (0..1000).fold(x[0], |y, _| y * x[1] + 1.0);
        (y + 1.0).recip()
    });
    f.grad(&[1.0, 1.001]).unwrap();
    f.compile().unwrap();
    f.grad(&[1.0, 1.002]).unwrap();
    assert_eq!((f.report().kernel_calls, f.report().in_closed_forms), (1, 0), "{}", f.report());
    for _ in 0..3 {
        assert_eq!(f.eval(&[1.0, 10.0]).unwrap(), 0.0);
    }
    let report = f.report();
    assert_eq!((report.fallbacks, report.in_closed_forms), (3, 3), "{report}");
    assert_eq!(report.last_departure, None);
    let text = report.to_string();
    assert!(text.contains("(0 on an unknown path, 0 not finite)"), "{text}");
    assert!(text.contains("3 calls left a kernel because a closed form was not finite"), "{text}");
}

/// Beyond a rate of 2.03 the power of it is not finite; the result and its derivatives may
/// be.
fn grown(x: &[Var]) -> Var {
    let y = (0..1000).fold(x[0], |y, _| y * x[1]) * 1e-200;
    if x[2] > 1.0 { y * x[2] } else { y }
}

#[test]
fn where_closed_forms_do_not_serve_a_kernel_in_reserve_does() {
    let f = Tape::builder().hot_threshold(20).background(false).record(grown);
    let tape = Tape::builder().hot_threshold(u32::MAX).record(grown);
    for i in 0..30 {
        f.grad(&[1.0, 1.001 + f64::from(i) * 1e-4, 0.5]).unwrap();
    }
    let report = f.report();
    let [kernel] = &report.kernels[..] else { panic!("{report}") };
    assert!(!kernel.reserve && report.waiting.is_empty(), "{report}");
    let call = |x: &[f64], served_by_reserve: u64| {
        let before = f.report().reserve_calls;
        for (got, expected) in f.grad(x).unwrap().iter().zip(tape.grad(x).unwrap()) {
            assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{x:?} {got} {expected}");
        }
        let report = f.report();
        assert_eq!(report.reserve_calls - before, served_by_reserve, "{x:?} {report}");
    };
    let rates = |from: i32| (from..from + 30).map(|i| 2.1 + f64::from(i) * 0.005);
    let mut left = rates(0);
    while f.report().kernels.len() < 2 {
        call(&[1e-100, left.next().unwrap(), 0.5], 0);
    }
    let report = f.report();
    let fallbacks = report.fallbacks;
    let text = report.to_string();
    let [_, reserve] = &report.kernels[..] else { panic!("{report}") };
    assert!(reserve.reserve && report.waiting.is_empty(), "{report}");
    assert!(text.contains("kernel Gradient in reserve for 3+0 inputs: 1 path, "), "{text}");
    // What closed forms there are, the first kernel has.
    assert!(!report.closed.is_empty() && report.in_closed_forms == fallbacks, "{report}");
    rates(20).for_each(|rate| call(&[1e-100, rate, 0.5], 1));
    assert_eq!(f.report().fallbacks, fallbacks);
    let text = f.report().to_string();
    let line = "30 calls by kernels in reserve, where closed forms did not serve";
    assert!(text.contains(line), "{text}");
    // Neither kernel knows this way; the next ones do.
    let paths = || f.report().kernels.iter().map(|kernel| kernel.paths).collect::<Vec<_>>();
    let mut left = rates(0).chain(rates(0));
    while paths() == [1, 1] {
        call(&[1e-100, left.next().unwrap(), 1.5], 0);
    }
    assert_eq!(paths(), [2, 2]);
    rates(20).for_each(|rate| call(&[1e-100, rate, 1.5], 1));
    // Where the first kernel serves, the other one is not asked.
    let by_kernels = f.report().kernel_calls;
    call(&[6.0, 1.001, 1.5], 0);
    assert_eq!(f.report().kernel_calls, by_kernels + 1);
}

#[test]
fn a_kernel_in_reserve_is_compiled_with_the_others() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(grown);
    f.grad(&[1.0, 1.001, 0.5]).unwrap();
    f.compile().unwrap();
    assert_eq!(f.report().kernels.len(), 3);
    f.grad(&[1e-100, 2.2, 0.5]).unwrap();
    let report = f.report();
    let [waiting] = &report.waiting[..] else { panic!("{report}") };
    assert!(waiting.reserve && !waiting.replaces && waiting.wait == Wait::Compile);
    let line = "a kernel Gradient in reserve for 3+0 inputs waits for `compile`";
    assert!(report.to_string().contains(line), "{report}");
    f.compile().unwrap();
    let kernels = f.report().kernels;
    let reserves: Vec<bool> = kernels.iter().map(|kernel| kernel.reserve).collect();
    assert_eq!(reserves, [false, false, false, true, true, true]);
    let expected = grown(&[1e-100, 2.2, 0.5].map(Var::from)).value();
    for value in
        [f.value_and_grad(&[1e-100, 2.2, 0.5]).unwrap().0, f.eval(&[1e-100, 2.2, 0.5]).unwrap()]
    {
        assert!((value - expected).abs() <= 1e-12 * expected, "{value} {expected}");
    }
    // The value alone needs no power that is not finite.
    assert_eq!(f.report().reserve_calls, 1, "{}", f.report());
}

fn waits(f: &Recorded<impl Fn(&[Var]) -> Var>) -> Vec<(Purpose, bool, Wait)> {
    let waiting = f.report().waiting;
    waiting.iter().map(|waiting| (waiting.purpose, waiting.replaces, waiting.wait)).collect()
}

#[test]
fn kernels_that_are_waited_for_are_told() {
    let f = Tape::builder()
        .hot_threshold(3)
        .background(false)
        .record(|x: &[Var]| if x[0] > 1.0 { x[0] } else { -x[0] });
    f.grad(&[2.0]).unwrap();
    let cold = |recorded, needed| Wait::Cold { recorded, needed };
    assert_eq!(waits(&f), [(Purpose::Gradient, false, cold(2, 9))]);
    let text = f.report().to_string();
    let line = "a kernel Gradient for 1+0 inputs waits for 9 recorded events, 2 so far";
    assert!(text.contains(line), "{text}");
    for _ in 0..4 {
        f.grad(&[2.0]).unwrap();
    }
    assert_eq!(waits(&f), [], "{}", f.report());
    f.grad(&[-2.0]).unwrap();
    assert_eq!(waits(&f), [(Purpose::Gradient, true, cold(3, 15))]);
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| x[0].sin());
    f.grad(&[2.0]).unwrap();
    assert_eq!(waits(&f), [(Purpose::Gradient, false, Wait::Compile)]);
}

#[test]
fn sides_too_many_to_share_are_told() {
    #[phigrad::traced]
    fn clipped(x: &[Var]) -> Var {
        let mut sum = x[0];
        for x in x {
            sum += if *x > 0.0 { x.exp() * x.sin() } else { x.cos() * x.sqrt() + *x };
        }
        sum
    }
    let run = |nodes| {
        let mut limits = Limits::default();
        limits.nodes = nodes;
        let builder = Tape::builder().hot_threshold(u32::MAX).limits(limits);
        let f = builder.record(clipped);
        f.grad(&[1.0; 10]).unwrap();
        let mut x = [1.0; 10];
        x[3] = -1.0;
        f.grad(&x).unwrap();
        f.report()
    };
    assert_eq!(run(10_000).refusals, []);
    let report = run(70);
    assert_eq!(report.refusals, [Refusal::TooManyToShare { limit: 70 }], "{report}");
    assert!(report.to_string().contains("learn each way one by one"), "{report}");
}

#[test]
fn comparisons_with_nan_have_no_margin() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| choose(x[0], x[1]));
    f.grad(&[f64::NAN, 1.0]).unwrap();
    assert_eq!(f.report().decisions[0].decision.margin, f64::INFINITY);
}

/// Lets closed forms overflow until there is a kernel in reserve.
fn with_reserve(f: &Recorded<impl Fn(&[Var]) -> Var>) {
    for i in 0..200 {
        for x in [[1.0, 1.001 + f64::from(i) * 1e-4, 0.5], [1e-100, 2.1 + f64::from(i) * 1e-3, 0.5]]
        {
            let result = f.grad(&x);
            assert!(result.is_ok(), "{result:?}");
        }
    }
    let kernels = f.report().kernels;
    assert_eq!(kernels.iter().map(|kernel| kernel.reserve).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_first_kernel_that_never_serves_is_not_tried_in_each_call() {
    let f = Tape::builder().hot_threshold(20).background(false).record(grown);
    let tape = Tape::builder().hot_threshold(u32::MAX).record(grown);
    with_reserve(&f);
    let before = f.report();
    let x = [1e-100, 2.2, 0.5];
    let expected = tape.grad(&x).unwrap();
    for _ in 0..3000 {
        let got = f.grad(&x).unwrap();
        assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs()));
    }
    let report = f.report();
    assert_eq!(report.reserve_calls - before.reserve_calls, 3000);
    assert_eq!(report.tape_calls, before.tape_calls);
    // It pauses, and once it serves again it does so in each call.
    for _ in 0..100 {
        f.grad(&[1.0, 1.001, 0.5]).unwrap();
    }
    let asked = f.report().reserve_calls - report.reserve_calls;
    assert!((1..=64).contains(&asked), "{asked}");
    let before = f.report();
    for _ in 0..50 {
        f.grad(&[1.0, 1.001, 0.5]).unwrap();
    }
    let report = f.report();
    assert_eq!(report.kernel_calls - before.kernel_calls, 50, "{report}");
    assert_eq!(report.reserve_calls, before.reserve_calls, "{report}");
}

#[test]
fn a_kernel_without_a_finite_result_is_tried_less_and_less() {
    /// The derivative by the root is 0·∞ in kernels, and 0 on the tape.
    #[phigrad::traced]
    fn root(x: &[Var]) -> Var {
        let (mut a, mut b) = (x[0], x[1]);
        if x[0] > 0.0 {
            a = b;
            b = -a;
        }
        x[0].sqrt() * x[1] + (a + b) * (a + b)
    }
    let f = Tape::builder().hot_threshold(20).background(false).record(root);
    for at in [0.0, 1.0].repeat(50) {
        f.grad(&[at, at]).unwrap();
    }
    let before = f.report().non_finite;
    for _ in 0..5000 {
        assert_eq!(f.grad(&[0.0, 0.0]).unwrap(), [0.0, 0.0]);
    }
    let report = f.report();
    assert!((1000..1300).contains(&(report.non_finite - before)), "{report}");
    // No loop has a closed form in it, so a kernel in reserve would be the same.
    assert_eq!(report.kernels.len(), 1, "{report}");
    assert!(report.waiting.is_empty() && !report.closed.is_empty(), "{report}");
}

#[test]
fn threads_share_a_kernel_in_reserve() {
    let f = Tape::builder().hot_threshold(20).record(grown);
    let tape = Tape::builder().hot_threshold(u32::MAX).record(grown);
    let points: Vec<[f64; 3]> = (0..400)
        .map(|i| match i % 3 {
            0 => [1.0, 1.001 + f64::from(i) * 1e-4, 0.5],
            1 => [1e-100, 2.1 + f64::from(i) * 1e-4, 0.5],
            _ => [1e-100, 2.1 + f64::from(i) * 1e-4, 1.5],
        })
        .collect();
    let expected: Vec<Vec<f64>> = points.iter().map(|x| tape.grad(x).unwrap()).collect();
    let run = || {
        for (x, expected) in points.iter().zip(&expected) {
            let got = f.grad(x).unwrap();
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs();
            assert!(got.iter().zip(expected).all(near), "{x:?} {got:?} {expected:?}");
        }
    };
    let rounds = (0..1000).take_while(|_| {
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(run)));
        let kernels = f.report().kernels;
        !kernels.iter().any(|kernel| kernel.reserve && kernel.paths == 2)
    });
    assert!(rounds.count() < 1000, "{}", f.report());
    let before = f.report().reserve_calls;
    run();
    assert!(f.report().reserve_calls > before, "{}", f.report());
}

#[test]
fn a_kernel_in_reserve_that_is_refused_is_reported() {
    let mut limits = Limits::default();
    limits.compiled = 5000;
    // Each power is another operation on the tape, so without closed forms it is no loop.
    let powers = |x: &[Var]| {
        let sum: Var = (0..6000).map(|i| x[2].powi(i) * f64::from(i)).sum();
        grown(&[x[0], x[1], 0.5.into()]) + sum
    };
    let f = Tape::builder().hot_threshold(20).background(false).limits(limits).record(powers);
    for i in 0..100 {
        let small = f64::from(i) * 1e-4;
        f.grad(&[1.0, 1.001 + small, 0.5]).unwrap();
        f.grad(&[1e-100, 2.1 + small, 0.5 + small]).unwrap();
    }
    let report = f.report();
    assert_eq!(report.kernels.len(), 1, "{report}");
    let [Refusal::Reserve(refusal)] = &report.refusals[..] else { panic!("{report}") };
    assert!(matches!(**refusal, Refusal::TooManyToCompile { limit: 5000, .. }), "{report}");
    assert!(report.to_string().contains("no kernel in reserve was made for"), "{report}");
    assert!(f.compile().is_ok());
}

#[test]
fn a_kernel_in_reserve_goes_when_runs_differ() {
    let hidden = std::cell::Cell::new(3.0);
    let f = Tape::builder()
        .hot_threshold(20)
        .background(false)
        .record(|x: &[Var]| grown(&[x[0] * hidden.get(), x[1], x[2]]));
    with_reserve(&f);
    hidden.set(2.0);
    // No kernel knows this way, so the tape is asked.
    f.grad(&[1e-100, 2.2, 1.5]).unwrap();
    let report = f.report();
    assert!(matches!(report.refusals[..], [Refusal::Path(_)]), "{report}");
    let x = [1e-100, 2.2, 0.5];
    let gradient = f.grad(&x).unwrap();
    assert_eq!(f.report().tape_calls, report.tape_calls + 1);
    let tape = Tape::builder().hot_threshold(u32::MAX);
    let tape = tape.record(|x: &[Var]| grown(&[x[0] * 2.0, x[1], x[2]]));
    assert_eq!(gradient, tape.grad(&x).unwrap());
}
