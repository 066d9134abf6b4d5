//! The report explains control flow: decisions with margins, loops with trip counts, and side
//! exits of kernels.

use phigrad::report::{Op, Wait};
use phigrad::{Limits, Purpose, Recorded, Refusal, Report, Tape, Var};

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
fn the_report_has_trip_counts_of_loops() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| root(x[0]));
    for x in [0.5, 2.0, 1000.0] {
        f.grad(&[x]).unwrap();
    }
    let report = f.report();
    let [trips] = &report.loops[..] else { panic!("{report}") };
    assert_eq!((trips.entered, trips.at.line), (3, 10), "{report}");
    // The number of times that the head was run, with the failing condition included.
    assert_eq!(trips.fewest, 1, "{report}");
    assert!(trips.most > 5, "{report}");
    assert!(report.to_string().contains("control.rs:10:5: entered 3 times"), "{report}");
}

#[test]
fn the_report_has_outcomes_margins_and_side_exits_of_decisions() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| choose(x[0], x[1]));
    f.grad(&[1.0, 1.5]).unwrap();
    f.compile().unwrap();
    f.grad(&[1.0, 2.0]).unwrap();
    assert_eq!(f.grad(&[3.0, 2.0]).unwrap(), [0.0, 3.0]);
    let report = f.report();
    let [decision] = &report.decisions[..] else { panic!("{report}") };
    assert_eq!(decision.side_exits, 1);
    let decision = &decision.decision;
    assert_eq!((decision.op, decision.at.line), (Op::Lt, 18));
    // The kernel served the second call, which is not counted.
    assert_eq!((decision.held, decision.failed, decision.margin), (1, 1, 0.5));
    let text = report.to_string();
    assert!(text.contains("held 1 time, failed 1 time, margin 5.000e-1, 1 side exit of a kernel"));
    let last = report.last_side_exit.unwrap();
    assert_eq!((last.op, last.held, last.at.line), (Op::Lt, false, 18));
    assert!(text.contains("last side exit of a kernel: lt failed at tests/runtime"), "{text}");
}

/// The number of side exits of kernels, by line relative to `first`.
fn side_exits_by_line(report: &Report, first: u32) -> Vec<(u32, u64)> {
    let decisions = report.decisions.iter();
    decisions.map(|d| (d.decision.at.line - first, d.side_exits)).collect()
}

#[test]
fn side_exits_are_those_of_the_kernel_and_not_of_the_graph() {
    let first = line!();
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| {
        let y = if x[0] > 0.0 { x[0] * 2.0 } else { x[0] * 3.0 };
        let z = if x[1] > 0.0 { y * x[1] } else { y - x[1] };
        if x[2] > 0.0 { z } else { z * x[2] }
    });
    f.grad(&[1.0, 1.0, 1.0]).unwrap();
    f.compile().unwrap();
    // The graph records the arms at once, the kernel does not have them.
    for _ in 0..5 {
        f.grad(&[1.0, -1.0, -1.0]).unwrap();
    }
    f.grad(&[-1.0, -1.0, -1.0]).unwrap();
    assert_eq!(side_exits_by_line(&f.report(), first), [(2, 1), (3, 5), (4, 0)], "{}", f.report());
    assert_eq!(f.report().last_side_exit.unwrap().at.line, first + 2);
    f.compile().unwrap();
    // A newer kernel takes its side exit later on the path.
    f.grad(&[1.0, -1.0, 1.0]).unwrap();
    assert_eq!(side_exits_by_line(&f.report(), first), [(2, 1), (3, 5), (4, 1)], "{}", f.report());
    let fallbacks = f.report().fallbacks;
    assert_eq!(fallbacks, 7);
}

#[test]
fn side_exits_behind_regions_with_shared_paths_are_reported() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| root(x[0]));
    f.grad(&[2.0]).unwrap();
    f.compile().unwrap();
    for _ in 0..3 {
        f.grad(&[1e6]).unwrap();
    }
    let report = f.report();
    let [decision] = &report.decisions[..] else { panic!("{report}") };
    assert_eq!((decision.side_exits, report.fallbacks), (3, 3), "{report}");
    let last = report.last_side_exit.unwrap();
    assert_eq!((last.op, last.held, last.at.line), (Op::Gt, true, 10));
}

fn waits(f: &Recorded<impl Fn(&[Var]) -> Var>) -> Vec<(Purpose, bool, Wait)> {
    let waiting = f.report().waiting;
    waiting.iter().map(|waiting| (waiting.purpose, waiting.replaces, waiting.wait)).collect()
}

#[test]
fn the_report_has_kernels_that_are_due() {
    let f = Tape::builder()
        .hot_threshold(3)
        .background(false)
        .record(|x: &[Var]| if x[0] > 1.0 { x[0] } else { -x[0] });
    f.grad(&[2.0]).unwrap();
    let cold = |recorded, needed| Wait::Cold { recorded, needed };
    assert_eq!(waits(&f), [(Purpose::Gradient, false, cold(2, 9))]);
    let text = f.report().to_string();
    let line = "a kernel for the gradient of 1+0 inputs waits for 9 recorded events, 2 so far";
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
fn too_many_paths_to_share_are_reported() {
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
    assert!(report.to_string().contains("do not share their paths"), "{report}");
}

#[test]
fn comparisons_with_nan_have_no_margin() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| choose(x[0], x[1]));
    f.grad(&[f64::NAN, 1.0]).unwrap();
    assert_eq!(f.report().decisions[0].decision.margin, f64::INFINITY);
}

#[test]
fn a_kernel_without_finite_results_backs_off() {
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
    assert_eq!(report.kernels.len(), 1, "{report}");
    assert!(report.waiting.is_empty() && !report.closed_forms.is_empty(), "{report}");
}
