//! State in cells, whose changes the attribute cannot see. They show only on one
//! branch of a later comparison.

programs! {
    cell: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let n = Cell::new(1u32);
            if x[0] > 0.0 { n.set(2); }
            if x[1] > 0.0 { x[2] * f64::from(n.get()) } else { x[3] }
        }
    }
    cell_helper: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        fn bump<S: Num>(n: &Cell<u32>, v: S) { if v > 0.0 { n.set(2); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let n = Cell::new(1u32);
            bump(&n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n.get()) } else { x[3] }
        }
    }
    cell_mut: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = Cell::new(1u32);
            if x[0] > 0.0 { n.set(2); }
            if x[1] > 0.0 { x[2] * f64::from(n.get()) } else { x[3] }
        }
    }
    cell_mutably_borrowed_param: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        fn bump<S: Num>(n: &mut Cell<u32>, v: S) { if v > 0.0 { n.set(2); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = Cell::new(1u32);
            bump(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n.get()) } else { x[3] }
        }
    }
    refcell_of_inputs: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let n = RefCell::new(vec![x[2]]);
            if x[0] > 0.0 { n.borrow_mut().push(x[3]); }
            if x[1] > 0.0 { x[2] * f64::from(n.borrow().len() as u32) } else { x[3] }
        }
    }
    atomic: inputs(4), Sound,
    plain { pub use std::sync::atomic::{AtomicU32, Ordering}; }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let n = AtomicU32::new(1);
            if x[0] > 0.0 { n.fetch_add(1, Ordering::Relaxed); }
            if x[1] > 0.0 { x[2] * f64::from(n.load(Ordering::Relaxed)) } else { x[3] }
        }
    }
    captured_by_a_closure: inputs(4), Sound,
    plain {
        pub use std::cell::{Cell, RefCell};
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let n = Cell::new(1u32);
            let bump = || n.set(n.get() + 1);
            if x[0] > 0.0 { bump(); }
            let r = &n;
            if x[3] > 0.0 { (0..2).for_each(|_| (&*r).set(5)); }
            if x[1] > 0.0 { x[2] * f64::from(n.get()) } else { x[3] }
        }
    }
    // What is plain stays so: fields by themselves, closures that only read, and
    // iterators that are kept.
    plain_parts: inputs(4), Merges(0.9),
    plain { pub struct Rates { pub fast: f64, pub slow: [f64; 2], pub uses: std::cell::Cell<u32> } }
    traced {
        fn step<S: Num>(slow: &[f64], v: S) -> S { if v > 0.0 { v * slow[0] } else { v + slow[1] } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let rates = Rates { fast: 0.5, slow: [1.0, 2.0], uses: Default::default() };
            let mut pair = (x[0], 2.0);
            let half = |v: S| v * rates.slow[0] * 0.5;
            { let first = &mut pair.0; if *first > 0.0 { *first += pair.1; } }
            let rest = x.iter().enumerate().skip(1);
            let mut y = pair.0;
            for (_, &v) in rest { if v > 0.5 { y = y + half(v); } else { y = y - step(&rates.slow, v) * rates.fast; } }
            y
        }
    }
}
