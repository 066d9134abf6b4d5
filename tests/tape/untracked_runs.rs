//! Untracked runs of the tape: they record operations and guards alone, because
//! no new paths are expected.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

use phigrad::internals::op::Op;
use phigrad::internals::trace::{Adjoints, Detail, Inputs, Role, Tracer, sweep};
use phigrad::{Numerics, Recorded, Tape, Var};

/// The number of calls without a new path after which runs are untracked.
const KNOWN_CALLS: usize = 200;

#[phigrad::traced]
fn branches(x: &[Var]) -> Var {
    let mut y = x[0] * x[1];
    for i in 0..4 {
        if y > 1.0 {
            y = y.sqrt() + x[0] * f64::from(i);
        } else {
            y = y * x[1] + x[0];
        }
    }
    y
}

fn recorded_untracked<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(f: F) -> Recorded<F> {
    let recorded = Tape::builder().hot_threshold(u32::MAX).record(f);
    for _ in 0..KNOWN_CALLS {
        recorded.grad(&[2.0, 3.0]).unwrap();
    }
    recorded
}

#[test]
fn an_untracked_run_has_the_operations_and_guards_of_a_marked_one() {
    let inputs = Inputs { active: &[2.0, 3.0], inactive: &[] };
    let mut tracer = Tracer::default();
    let mut record = |detail| {
        tracer.detail(detail);
        let trace = tracer.run(|x, _| branches(x), inputs, 1000, Location::caller()).unwrap();
        assert_eq!(trace.is_untracked(), detail == Detail::Untracked);
        let steps: Vec<(Role, Op, u64)> = trace
            .events
            .iter()
            .filter(|event| matches!(event.role(), Role::Apply | Role::Guard))
            .map(|event| (event.role(), event.op(), event.value().to_bits()))
            .collect();
        let gradient = sweep(&trace, &mut Adjoints::default()).to_vec();
        (trace.events.len(), steps, trace.value(), gradient)
    };
    let (untracked, marked) = (record(Detail::Untracked), record(Detail::Marks));
    assert_eq!(untracked.0, untracked.1.len() + 2, "nothing but inputs, operations and guards");
    assert!(untracked.0 < marked.0);
    assert_eq!((&untracked.1, untracked.2), (&marked.1, marked.2));
    for (untracked, marked) in untracked.3.iter().zip(&marked.3) {
        assert!((untracked - marked).abs() <= 1e-14 * marked.abs());
    }
}

#[test]
fn all_events_of_an_untracked_run_have_the_site_of_the_recorded_function() {
    let made = Location::caller();
    for active in [&[][..], &[1.5]] {
        let mut tracer = Tracer::default();
        tracer.detail(Detail::Untracked);
        let inputs = Inputs { active, inactive: &[2.5] };
        let trace = tracer.run(|_, y| y[0].sin() * y[0], inputs, 100, made).unwrap();
        assert_eq!(trace.events.len(), active.len() + 3);
        assert!(trace.events.iter().all(|event| event.site() == made));
    }
    let mut tracer = Tracer::default();
    tracer.detail(Detail::Untracked);
    let inputs = Inputs { active: &[], inactive: &[] };
    let trace = tracer.run(|_, _| 3.0.into(), inputs, 100, made).unwrap();
    assert!(trace.events.is_empty() && trace.value() == 3.0);
}

#[test]
fn a_path_that_an_untracked_run_takes_is_recorded_from_the_next_run() {
    let recorded = recorded_untracked(|x| if x[0] > 0.0 { x[0] * x[1] } else { x[0] - x[1] });
    assert_eq!(recorded.report().paths, 1);
    assert_eq!(recorded.grad(&[-2.0, 3.0]).unwrap(), [1.0, -1.0]);
    assert_eq!(recorded.report().paths, 1, "the run was untracked");
    assert_eq!(recorded.grad(&[-2.0, 3.0]).unwrap(), [1.0, -1.0]);
    assert_eq!(recorded.report().paths, 2);
    recorded.compile().unwrap();
    assert_eq!(recorded.grad(&[-2.0, 3.0]).unwrap(), [1.0, -1.0]);
    assert_eq!(recorded.grad(&[2.0, 3.0]).unwrap(), [3.0, 2.0]);
    assert_eq!(recorded.report().kernel_calls, 2);
}

#[test]
fn exact_numerics_add_up_in_the_same_order_in_all_runs() {
    // The copy is used between uses of the carried variable.
    #[phigrad::traced]
    fn f(x: &[Var]) -> Var {
        let copy = x[0];
        let mut y = x[0];
        if y > 100.0 {
            y = -y;
        }
        (y * 0.1 + copy * 0.7) + y * x[1]
    }
    let builder = Tape::builder().hot_threshold(u32::MAX).numerics(Numerics::Exact);
    let recorded = builder.record(f);
    let gradients: Vec<Vec<f64>> =
        (0..KNOWN_CALLS).map(|_| recorded.grad(&[0.3, 1.1]).unwrap()).collect();
    assert!(gradients.iter().all(|gradient| *gradient == gradients[0]));
    recorded.compile().unwrap();
    assert_eq!(recorded.grad(&[0.3, 1.1]).unwrap(), gradients[0]);
    assert_eq!(recorded.report().kernel_calls, 1);
}

#[test]
fn hidden_state_is_noticed_between_untracked_runs() {
    static SWITCH: AtomicBool = AtomicBool::new(false);
    let recorded =
        recorded_untracked(
            |x| if SWITCH.load(Ordering::Relaxed) { x[0] * x[1] } else { x[0] + x[1] },
        );
    SWITCH.store(true, Ordering::Relaxed);
    for _ in 0..KNOWN_CALLS {
        assert_eq!(recorded.grad(&[2.0, 3.0]).unwrap(), [3.0, 2.0]);
    }
    assert!(!recorded.report().refusals.is_empty());
    assert!(recorded.compile().is_err());
}
