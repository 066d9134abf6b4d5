//! State in cells, which no attribute sees to be changed. Whether it was changed
//! shows only on one side of a later comparison.

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
}
