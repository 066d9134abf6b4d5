//! Parts of a function's text that are easily overlooked: assignments on one
//! branch only, names in capitals, and observations of state that is not handed
//! over.

programs! {
    assigned_in_the_branch_beside: inputs(3), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            let first = x.len() > 2;
            if first { if x[0] > 0.0 { n = 1; } } else { n = 2; }
            let mut y = x[1];
            if x[2] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    assigned_in_the_arm_beside: inputs(3), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            match x.len() {
                3 => { if x[0] > 0.0 { n = 1; } }
                _ => n = 2,
            }
            let mut y = x[1];
            if x[2] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    assigned_after_a_condition: inputs(3), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            let never = x.len() > 9;
            if { if x[0] > 0.0 { n = 1; } never } { n = 2; }
            let mut y = x[1];
            if x[2] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    assigned_after_a_guard: inputs(3), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            match x.len() {
                k if { if x[0] > 0.0 { n = 1; } k > 9 } => n = 2,
                _ => {}
            }
            let mut y = x[1];
            if x[2] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    assigned_by_a_later_closure: inputs(3), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            if x[0] > 0.0 { n = 1; }
            let mut f = || n = 2;
            if x.len() > 9 { f(); }
            let mut y = x[1];
            if x[2] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    capitals_in_let: inputs(4), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut N = 0.0;
            for &v in x { if v > 0.0 { N += 1.0; } }
            if x[0] > 0.5 { x[1] * N } else { x[2] }
        }
    }
    capitals_in_parameters: inputs(4), Merges(0.9),
    traced {
        fn turn<S: Num>(y: S, v: S, K: f64) -> S { if v > 0.0 { y * K } else { y } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, k as f64 + 0.5); }
            y
        }
    }
    capitals_in_for: inputs(4), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for K in 0..4 { if x[K] > 0.0 { y = y * (K as f64 + 0.5); } }
            for (K, V) in [0.5, 1.5, 2.5].into_iter().enumerate() { if x[K] > 0.5 { y = y + x[K] * V; } }
            y
        }
    }
    capitals_in_closures: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let scale = |Y: S, K: f64| if Y > 0.0 { Y * K } else { Y };
            let mut F = 1.0;
            let mut bump = |D: f64| F += D;
            for &v in x { if v > 0.0 { bump(1.0); } }
            let mut y = x[0];
            if x[1] > 0.0 { y = scale(y, F); }
            y
        }
    }
    capitals_in_options: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S, by: Option<f64>) -> S {
            match by {
                Some(K) => { if v > 0.0 { y * K } else { y } }
                None => y,
            }
        }
        fn bump<S: Num>(n: Option<&mut u32>, v: S) {
            if let Some(N) = n { if v > 0.0 { *N += 1; } }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, mut n) = (x[0], 1u32);
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, Some(k as f64 + 0.5)); }
            bump(Some(&mut n), x[0]);
            let Some(R) = Some(&mut n) else { return y };
            if x[2] > 0.0 { *R += 1; }
            if x[1] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    capitals_with_mut_and_at: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            match Some(1.0) {
                Some(mut K) => {
                    for &v in x { if v > 0.0 { K += 1.0; } }
                    if x[1] > 0.5 { y = y * K; }
                }
                None => {}
            }
            for k in 0..4usize {
                match k {
                    I @ 0..=1 => { if x[I] > 0.0 { y = y * (I as f64 + 0.5); } }
                    J @ _ => { if x[J] > 0.0 { y = y + x[J] * J as f64; } }
                }
            }
            let mut all = [1.0, 2.0];
            if let [ref mut A, ..] = all { if x[2] > 0.0 { *A += 1.0; } }
            if x[3] > 0.0 { y = y * all[0]; }
            y
        }
    }
    capitals_in_structs: inputs(4), Splits(0.9),
    plain {
        pub struct Pair { pub a: f64, pub b: f64 }
    }
    traced {
        fn turn<S: Num>(y: S, v: S, Pair { a: A, b: B }: Pair) -> S {
            if v > 0.0 { y * A } else { y + B }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, Pair { a: k as f64 + 0.5, b: 1.0 - k as f64 }); }
            let (mut P, [Q, ..]) = (1.0, [2.0, 3.0]);
            if x[1] > 0.0 { P = Q; }
            if x[2] > 0.0 { y = y * P; }
            y
        }
    }
    // True constants are what they were.
    constants_in_patterns: inputs(4), Merges(0.9),
    plain {
        pub const LOW: usize = 1;
        #[derive(Clone, Copy, PartialEq)]
        pub enum Turn { Up, Down }
    }
    traced {
        fn turn<S: Num>(y: S, v: S, k: usize) -> S {
            use Turn::*;
            let way = match k { LOW => Up, _ => Down };
            match way {
                Up => if v > 0.0 { y + 2.0 } else { y - LOW as f64 },
                Down => if v > 0.5 { y * 0.5 } else { y },
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, k); }
            y
        }
    }
    emptied_on_one_branch: inputs(3), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[2];
            let mut n = 1u32;
            let mut h = Some(&mut n);
            if x[0] > 0.0 { h = None; } else if let Some(r) = h.take() { *r = 3; }
            if x[1] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    cell_on_one_branch: inputs(3), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[2];
            let n = std::cell::Cell::new(1u32);
            let mut h = Some(&n);
            if x[0] > 0.0 { h = None; } else if let Some(r) = h { r.set(3); }
            if x[1] > 0.0 { y = y * f64::from(n.get()); }
            y
        }
    }
    moved_and_given_a_value_on_one_branch: inputs(3), Merges(0.9),
    traced {
        fn last<S: Num>(v: Vec<S>) -> S { v[v.len() - 1] }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut v = vec![x[0], x[1]];
            let mut y = last(v);
            if x[2] > 0.0 { v = vec![x[0]]; v.push(y); } else { v = vec![x[2], y]; y = y * v[0]; }
            let mut t = S::from(0.5);
            y = y + t;
            if x[1] > 0.0 { t = x[1] * 2.0; y = y * t; }
            let h;
            if x[0] > 0.0 { h = x[1]; y = y + h; } else { h = x[2]; y = y - h; }
            y
        }
    }
    same_place: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S, a: &f64, b: &f64) -> S {
            if v > 0.0 { if std::ptr::eq(a, b) { y * 2.0 } else { y + 1.0 } } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (one, other) = (0.5, 0.5);
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() {
                y = turn(y, v, &one, if k % 2 == 0 { &one } else { &other });
            }
            y
        }
    }
    room: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S, a: &Vec<f64>) -> S {
            if v > 0.0 { if a.capacity() > 5 { y * 2.0 } else { y + 1.0 } } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, &Vec::with_capacity(9 * (k % 2))); }
            y
        }
    }
    counted_owners: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S, a: &std::rc::Rc<f64>) -> S {
            if v > 0.0 { y * std::rc::Rc::strong_count(a) as f64 } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, one) = (x[0], std::rc::Rc::new(0.5));
            let mut all = Vec::new();
            for &v in x { y = turn(y, v, &one); all.push(one.clone()); }
            y
        }
    }
    provided_methods_of_traits: inputs(4), Sound,
    traced {
        pub trait Scale<S: Num> {
            const BY: f64;
            fn turn(y: S, v: S) -> S { if v > 0.0 { y * Self::BY } else { y - 1.0 } }
            fn weigh(&self, y: S, v: S) -> S { if v > 0.5 { y + Self::BY } else { y } }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            struct Half;
            struct Double;
            impl<S: Num> Scale<S> for Half { const BY: f64 = 0.5; }
            impl<S: Num> Scale<S> for Double { const BY: f64 = 2.0; }
            let mut y = x[0];
            for &v in x {
                y = <Half as Scale<S>>::turn(y, v);
                y = <Double as Scale<S>>::turn(y, v);
                y = Double.weigh(Half.weigh(y, v), v);
            }
            y
        }
    }
    helper_that_lets_a_number_out: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S) -> S {
            if v > 0.0 { y * (v.floor().value() + 1.5) } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S { turn(turn(x[0], x[1]), x[2]) + turn(x[3], x[1]) }
    }
    jump_before_the_next_value: inputs(4), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut y) = (0, x[1]);
            let early = x.len() > 2;
            'out: {
                if x[0] > 0.0 { n = 1; }
                if early { break 'out; }
                n = 2;
            }
            if x[2] > 0.0 { y = y * f64::from(n); }
            let mut m = 0;
            'out: {
                let (Some(k), true) = (Some(1), { if x[3] > 0.0 { m = 1; } early }) else { m = 2; break 'out };
                if k > 1 { m = 3; }
            }
            if x[1] > 0.0 { y = y * f64::from(m); }
            y
        }
    }
    emptied_in_a_loop: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, n) = (x[2], std::cell::Cell::new(1u32));
            let mut h;
            for &v in x {
                h = Some(&n);
                if v > 0.0 { h = None; }
                else { if v > -1.0 { h = Some(&n); } if let Some(r) = h { r.set(r.get() + 1); } }
            }
            if x[1] > 0.0 { y = y * f64::from(n.get()); }
            y
        }
    }
    same_place_in_a_closure: inputs(4), Sound,
    traced {
        fn turn<S: Num>(y: S, v: S, all: &[&f64], b: &f64) -> S {
            if v > 0.0 && all.iter().any(|&a| core::ptr::eq(a, b)) { y * 2.0 } else { y }
        }
        fn twist<S: Num>(y: S, v: S, a: &f64, b: &f64) -> S {
            if v > 0.5 { if a as *const f64 == b as *const f64 { y - 3.0 } else { y + 1.0 } } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (one, other) = (0.5, 0.5);
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() {
                let b = if k % 2 == 0 { &one } else { &other };
                y = turn(y, v, &[&one], b);
                y = twist(y, v, &one, b);
            }
            y
        }
    }
}
