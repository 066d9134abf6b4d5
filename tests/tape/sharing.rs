//! A recorded function is shared between threads.

use std::thread;

use phigrad::{Recorded, RecordedWith, Tape, Var};

fn program(x: &[Var]) -> Var {
    let product = x[0] * x[1];
    if product > 1.0 { product.sin() + x[0] } else { (x[1] - 2.0 * x[0]).exp() }
}

fn is_shared<T: Send + Sync>(_: &T) {}

#[test]
fn recorded_functions_are_send_and_sync() {
    let f: Recorded<_> = Tape::record(program);
    let g: RecordedWith<_> = Tape::record_with(|x: &[Var], data: &[Var]| x[0] * data[0]);
    is_shared(&f);
    is_shared(&g);
}

#[test]
fn many_threads_call_one_function_while_it_is_recorded_and_compiled() {
    let f = Tape::builder().hot_threshold(20).record(program);
    thread::scope(|scope| {
        for thread in 0..4 {
            let f = &f;
            scope.spawn(move || {
                let alone = Tape::builder().hot_threshold(u32::MAX).record(program);
                for i in 0..200 {
                    let x = [0.01 * f64::from(thread * 200 + i) - 4.0, 0.75];
                    let (shared, alone) = (f.grad(&x).unwrap(), alone.grad(&x).unwrap());
                    for (a, b) in shared.iter().zip(alone) {
                        assert!((a - b).abs() <= 1e-12 * b.abs(), "{x:?}: {a} {b}");
                    }
                }
            });
        }
    });
    let report = f.report();
    assert_eq!(report.tape_calls + report.kernel_calls, 800);
}

#[test]
fn a_function_recorded_on_one_thread_goes_on_on_another() {
    let f = Tape::record(program);
    let here = f.grad(&[2.0, 1.5]).unwrap();
    let (f, there) = thread::spawn(move || {
        let there = f.grad(&[2.0, 1.5]).unwrap();
        (f, there)
    })
    .join()
    .unwrap();
    assert_eq!(here, there);
    assert_eq!(f.report().paths, 1);
}
