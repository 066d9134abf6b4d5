//! No allocation in the long loop: after the first calls `grad_into` and
//! `value_and_grad_into` allocate nothing, on the tape, in the kernel, and when
//! the kernel falls back to the tape.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::served::{NUMERICS, limits, manual};
use phigrad::{Numerics, Recorded, RecordedWith, Var};

/// The system's allocator, counting the calls of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends allocates after its storage is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of this thread in `work`.
fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Two paths; long enough to fill the recorder's first buffer many times.
fn function(x: &[Var]) -> Var {
    let start = if x[0] > 0.0 { x[0] * x[1] } else { x[1].exp() };
    (0..500).fold(start, |v, i| (v + x[i % 2]).sin())
}

fn data_function(x: &[Var], data: &[Var]) -> Var {
    data.iter().map(|&d| (d - x[0]).powi(2) * x[1]).sum()
}

/// The number of calls on one path before counting.
const WARM_UP: usize = 76;
/// The number of calls that are counted: too few for the sum to reach the next power of two,
/// at which the runtime compares a tape call with the graph.
const COUNTED: usize = 48;

/// Makes `count` calls on the path of `sign`.
fn calls<F: Fn(&[Var]) -> Var>(f: &Recorded<F>, sign: f64, count: usize) {
    let mut gradient = [0.0; 2];
    for i in 0..count {
        let x = [sign * (1.0 + i as f64), 0.5];
        match i % 3 {
            0 => f.grad_into(&x, &mut gradient).unwrap(),
            1 => drop(f.value_and_grad_into(&x, &mut gradient).unwrap()),
            _ => drop(f.eval(&x).unwrap()),
        }
    }
}

fn calls_with<F: Fn(&[Var], &[Var]) -> Var>(f: &RecordedWith<F>, count: usize) {
    let mut gradient = [0.0; 2];
    for i in 0..count {
        let (x, data) = ([i as f64, 0.5], [i as f64; 40]);
        match i % 2 {
            0 => f.grad_into(&x, &data, &mut gradient).unwrap(),
            _ => drop(f.value_and_grad_into(&x, &data, &mut gradient).unwrap()),
        }
    }
}

/// Asserts that `calls` allocates nothing after the first calls.
fn assert_none(what: &str, calls: impl Fn(usize)) {
    calls(WARM_UP);
    assert_eq!(allocations(|| calls(COUNTED)), 0, "{what}");
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(vec![0.0; 10])), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn calls_allocate_nothing_after_the_first_ones() {
    let all = (WARM_UP + COUNTED) as u64;
    for numerics in NUMERICS {
        let f = manual(numerics).record(function);
        assert_none("on the tape", |count| calls(&f, 1.0, count));
        assert_eq!(f.report().kernel_calls, 0);
        f.compile().unwrap();
        assert_none("in the kernel", |count| calls(&f, 1.0, count));
        assert_eq!(f.report().kernel_calls, all);
        assert_none("on the fallback path", |count| calls(&f, -1.0, count));
        assert_eq!(f.report().fallbacks, all);
        f.compile().unwrap();
        assert_none("in the kernel of both paths", |count| calls(&f, -1.0, count));
        assert_eq!(f.report().kernel_calls, 2 * all);
    }
}

#[test]
fn calls_with_data_allocate_nothing_after_the_first_ones() {
    for numerics in NUMERICS {
        let f = manual(numerics).record_with(data_function);
        assert_none("on the tape", |count| calls_with(&f, count));
        f.compile().unwrap();
        assert_none("in the kernel", |count| calls_with(&f, count));
        assert_eq!(f.report().kernel_calls, (WARM_UP + COUNTED) as u64);
    }
}

#[test]
fn batches_allocate_nothing_after_the_first_ones() {
    let f = manual(Numerics::Real).audit(0).record(function);
    let batch = |count: usize| {
        let (xs, mut gradients, mut values) = ([0.5; 8], [0.0; 8], [0.0; 4]);
        for _ in 0..count {
            f.grad_batch_into(&xs, 4, &mut gradients).unwrap();
            f.value_and_grad_batch_into(&xs, 4, &mut values, &mut gradients).unwrap();
        }
    };
    f.grad(&[1.0, 0.5]).unwrap();
    f.compile().unwrap();
    assert_none("in the kernel", batch);
    // Code for two elements at once has been made.
    batch(500);
    assert_none("two elements at once", batch);
    assert_eq!(f.report().tape_calls, 1);
}

#[test]
fn sparse_calls_allocate_nothing_in_kernels() {
    let f = manual(Numerics::Real).audit(0).record(|x: &[Var]| {
        (x[..99].iter().zip(&x[1..])).map(|(a, b)| (*b - *a * *a).powi(2)).collect::<Vec<_>>()
    });
    let g = manual(Numerics::Real)
        .audit(0)
        .record(|x: &[Var]| x.windows(2).map(|x| (x[1] - x[0] * x[0]).powi(2)).sum::<Var>());
    let (jacobian, hessian) = (Cell::default(), Cell::default());
    let calls = |count: usize| {
        let (mut j, mut h) = (jacobian.take(), hessian.take());
        for i in 0..count {
            f.sparse_jacobian_into(&[i as f64; 100], &mut j).unwrap();
            g.sparse_hessian_into(&[i as f64; 100], &mut h).unwrap();
        }
        jacobian.set(j);
        hessian.set(h);
    };
    calls(1);
    f.compile().unwrap();
    g.compile().unwrap();
    assert_none("sparse", calls);
    let all = (WARM_UP + COUNTED) as u64;
    assert_eq!((f.report().kernel_calls, g.report().kernel_calls), (all, all));
}

#[test]
fn results_that_are_not_finite_allocate_nothing() {
    let f = manual(Numerics::Real).record(|x: &[Var]| x[0].ln());
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    assert_none("not finite", |count| {
        (0..count).for_each(|_| f.grad_into(&[0.0], &mut [0.0]).unwrap());
    });
    assert_eq!(f.report().non_finite, (WARM_UP + COUNTED) as u64);
}

/// Loops over items, a branch in each iteration, and a jump.
#[phigrad::traced]
fn annotated(x: &[Var]) -> Var {
    let (mut a, mut b, mut c, mut d, mut e) = (x[0], x[1], x[0], x[1], x[0]);
    for i in 0..30 {
        if a > 0.0 {
            (a, b, c, d, e) = (b.sin() + 1.0, c * 0.5, d + e, e.cos(), a * 0.25);
        } else {
            a += b;
        }
        if c > 1e9 + f64::from(i) {
            break;
        }
    }
    a + b + c + d + e
}

#[test]
fn many_calls_on_the_tape_allocate_nothing() {
    // After the first untracked run some are tracked; after 512 and 1,024 others a run is
    // compared with the graph.
    for numerics in NUMERICS {
        for f in [function, annotated] {
            let f = manual(numerics).record(f);
            calls(&f, 1.0, 3 * WARM_UP);
            assert_eq!(allocations(|| calls(&f, 1.0, 1000)), 0, "{numerics:?}");
            assert_eq!(allocations(|| calls(&f, 1.0, 7000)), 0, "{numerics:?}");
        }
    }
}

#[test]
fn paths_beyond_the_limit_allocate_nothing() {
    let f = manual(Numerics::Real).limits(limits(|l| l.paths = 1)).record(function);
    calls(&f, 1.0, 1);
    f.compile().unwrap();
    assert_none("beyond the limit", |count| calls(&f, -1.0, count));
}
