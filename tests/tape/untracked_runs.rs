//! Runs of the tape that record operations and guards alone, because there is
//! nothing new on them.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

use phigrad::internals::op::Op;
use phigrad::internals::trace::{Adjoints, Detail, Inputs, Role, Tracer, sweep};
use phigrad::{Numerics, Recorded, Tape, Var};

/// So many calls that bring nothing new are enough for the next runs to be untracked.
const CALM: usize = 200;

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

fn calm<F: Fn(&[Var]) -> Var + Send + Sync + 'static>(f: F) -> Recorded<F> {
    let recorded = Tape::builder().hot_threshold(u32::MAX).record(f);
    for _ in 0..CALM {
        recorded.grad(&[2.0, 3.0]).unwrap();
    }
    recorded
}

#[test]
fn a_bare_run_has_the_operations_and_guards_of_a_marked_one() {
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
fn all_of_a_bare_run_is_said_to_be_from_where_the_function_was_recorded() {
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
    let recorded = calm(|x| if x[0] > 0.0 { x[0] * x[1] } else { x[0] - x[1] });
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
    // The copy is used between uses of what the region carries.
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
    let gradients: Vec<Vec<f64>> = (0..CALM).map(|_| recorded.grad(&[0.3, 1.1]).unwrap()).collect();
    assert!(gradients.iter().all(|gradient| *gradient == gradients[0]));
    recorded.compile().unwrap();
    assert_eq!(recorded.grad(&[0.3, 1.1]).unwrap(), gradients[0]);
    assert_eq!(recorded.report().kernel_calls, 1);
}

#[test]
fn hidden_state_is_noticed_between_bare_runs() {
    static SWITCH: AtomicBool = AtomicBool::new(false);
    let recorded = calm(|x| if SWITCH.load(Ordering::Relaxed) { x[0] * x[1] } else { x[0] + x[1] });
    SWITCH.store(true, Ordering::Relaxed);
    for _ in 0..CALM {
        assert_eq!(recorded.grad(&[2.0, 3.0]).unwrap(), [3.0, 2.0]);
    }
    assert!(!recorded.report().refusals.is_empty());
    assert!(recorded.compile().is_err());
}
