//! The report explains control flow: decisions with margins, loops with their
//! iterations, and where calls left a kernel.

use phigrad::op::Op;
use phigrad::{Tape, Var};

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
}

#[test]
fn comparisons_with_nan_have_no_margin() {
    let f = Tape::builder().hot_threshold(u32::MAX).record(|x: &[Var]| choose(x[0], x[1]));
    f.grad(&[f64::NAN, 1.0]).unwrap();
    assert_eq!(f.report().decisions[0].decision.margin, f64::INFINITY);
}
