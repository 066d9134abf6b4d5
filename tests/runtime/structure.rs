//! Programs whose structure is hard on the stages: guards on values of
//! comparisons, long chains of guards, many long paths, products that cancel.

use phigrad::{Limits, Numerics, Refusal, Tape, Var};

use crate::common::served::{NUMERICS, Pair};

#[test]
fn a_guard_on_the_value_of_a_comparison_is_checked_beside_a_guard_on_the_comparison() {
    fn f(x: &[Var]) -> Var {
        let less = x[0].less_than(x[1]);
        let chosen = if less > x[2] { x[0] * 2.0 } else { x[0] * 3.0 };
        if x[0] < x[1] { chosen } else { -chosen }
    }
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, f);
        pair.profile(&[[0.0, 1.0, 0.5]]);
        pair.check(&[0.5, 1.0, 2.0]);
        pair.check(&[0.5, 1.0, 0.25]);
        pair.check(&[2.0, 1.0, 0.25]);
    }
}

#[test]
fn a_long_chain_of_guards_needs_no_deep_stack() {
    fn f(x: &[Var]) -> Var {
        let mut previous = x[0];
        for i in 0..6000 {
            let (a, b) = (previous.sin(), x[1] * f64::from(i));
            previous = if a < b { b } else { b + 1.0 };
        }
        previous.sin()
    }
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(|| {
        let pair = Pair::new(Numerics::Real, f);
        pair.profile(&[[0.5, 0.25]]);
        pair.check(&[0.5, 0.26]);
        pair.check(&[0.5, -0.26]);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn what_paths_share_counts_for_each_of_them() {
    let limits = crate::common::served::limits(|limits: &mut Limits| limits.nodes = 2500);
    // A long prefix, then one of many arms.
    let f = Tape::builder().hot_threshold(u32::MAX).limits(limits).record(|x: &[Var]| {
        let long = (0..1000).fold(x[0], |sum, _| sum.sin());
        let arm = (0..20).take_while(|&i| x[0] > f64::from(i)).count();
        long * arm as f64
    });
    for i in 0..20 {
        f.grad(&[0.5 + f64::from(i)]).unwrap();
    }
    f.compile().unwrap();
    let report = f.report();
    assert_eq!(report.paths, 2);
    assert!(report.kernels.iter().all(|kernel| kernel.nodes < 6000), "{report}");
    assert!(matches!(report.refusals[..], [Refusal::Path(_)]), "{report}");
}

#[test]
fn equal_products_cancel_in_every_executor() {
    fn f(x: &[Var]) -> Var {
        let difference = x[0] * x[1] - x[2] * x[3];
        difference / (difference * difference + 1e-40)
    }
    for numerics in NUMERICS {
        let pair = Pair::new(numerics, f);
        pair.profile(&[[1.0, 2.0, 3.0, 4.0]]);
        pair.check(&[0.1, 0.3, 0.3, 0.1]);
        pair.check(&[0.1, 0.3, 0.1, 0.3]);
    }
}

#[test]
fn roots_of_what_cancels_are_those_of_the_tape() {
    fn squares(x: &[Var]) -> Var {
        (x[0] * x[0] - x[1] * x[1]).sqrt()
    }
    fn deviation(x: &[Var]) -> Var {
        let mean = (x[0] + x[1]) / 2.0;
        ((x[0] * x[0] + x[1] * x[1]) / 2.0 - mean * mean).sqrt()
    }
    fn scaled(x: &[Var]) -> Var {
        let v = x[0] * x[0] - x[1] * x[1];
        v / (v * v + 1e-40).sqrt()
    }
    for numerics in NUMERICS {
        for f in [squares, deviation, scaled] {
            let pair = Pair::new(numerics, f);
            pair.profile(&[[2.0, 1.0]]);
            for i in 1..20 {
                pair.check(&[0.1 * f64::from(i), 0.1 * f64::from(i)]);
            }
        }
    }
}

#[test]
fn a_kernel_that_meets_new_paths_only_is_tried_less_often() {
    let pair = Pair::new(Numerics::Exact, |x: &[Var]| x[0] * x[0].value());
    pair.profile(&[[0.5]]);
    for i in 0..4000 {
        assert_eq!(pair.kernel.grad(&[f64::from(i)]).unwrap(), [f64::from(i)]);
    }
    let fallbacks = pair.kernel.report().fallbacks;
    assert!((1000..1200).contains(&fallbacks), "{fallbacks}");
    // The known path is served again, if not at once.
    for _ in 0..100 {
        pair.kernel.grad(&[0.5]).unwrap();
    }
    assert!(pair.kernel.report().kernel_calls > 20);
}

#[test]
fn one_length_that_cannot_be_compiled_does_not_stop_the_others() {
    let limits = crate::common::served::limits(|limits: &mut Limits| limits.nodes = 10);
    let f = Tape::builder()
        .hot_threshold(u32::MAX)
        .limits(limits)
        .record(|x: &[Var]| x.iter().map(|v| v.sin()).sum::<Var>());
    f.grad(&[0.0; 20]).unwrap();
    f.grad(&[0.0; 2]).unwrap();
    assert!(f.compile().unwrap_err().is_refused());
    f.grad(&[0.0; 2]).unwrap();
    assert_eq!(f.report().kernel_calls, 1);
}
