//! State that is changed through references: each program has another kind of
//! holder, iterator or method. The change shows only on one branch of a later
//! comparison.

programs! {
    trait_dynamic: inputs(4), Sound,
    plain {
        pub trait Sink { fn put(&mut self); }
        impl Sink for u32 { fn put(&mut self) { *self += 1; } }
        impl Sink for &mut u32 { fn put(&mut self) { **self += 3; } }
    }
    traced {
        fn dynamic<S: Num>(sink: &mut dyn Sink, v: S) { if v > 0.0 { sink.put(); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            dynamic(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    trait_generic_by_value: inputs(4), Sound,
    plain {
        pub trait Sink { fn put(&mut self); }
        impl Sink for u32 { fn put(&mut self) { *self += 1; } }
        impl Sink for &mut u32 { fn put(&mut self) { **self += 3; } }
    }
    traced {
        fn generic<T: Sink, S: Num>(mut sink: T, v: S) { if v > 0.0 { sink.put(); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            generic(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    trait_generic_by_reference: inputs(4), Sound,
    plain {
        pub trait Sink { fn put(&mut self); }
        impl Sink for u32 { fn put(&mut self) { *self += 1; } }
        impl Sink for &mut u32 { fn put(&mut self) { **self += 3; } }
    }
    traced {
        fn byref<T: Sink, S: Num>(sink: &mut T, v: S) { if v > 0.0 { sink.put(); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            byref(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    trait_impl: inputs(4), Sound,
    plain {
        pub trait Sink { fn put(&mut self); }
        impl Sink for u32 { fn put(&mut self) { *self += 1; } }
        impl Sink for &mut u32 { fn put(&mut self) { **self += 3; } }
    }
    traced {
        fn byimpl<S: Num>(mut sink: impl Sink, v: S) { if v > 0.0 { sink.put(); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            byimpl(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    array_of_references: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let all = [&mut n]; if x[0] > 0.0 { *all[0] += 1; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    array_of_references_mut: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let mut all = [&mut n]; if x[0] > 0.0 { *all[0] += 1; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    vec_of_references: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let all = vec![&mut n]; if x[0] > 0.0 { for r in all { *r += 1; } } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    vec_of_references_mut: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let mut all = vec![&mut n]; if x[0] > 0.0 { *all[0] += 1; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    items_of_array: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            for r in [&mut n] { if x[0] > 0.0 { *r += 1; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    items_of_vec: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            let all = vec![&mut n]; for r in all { if x[0] > 0.0 { *r += 1; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    option_if_let: inputs(4), Sound,
    traced {
        fn bump<S: Num>(n: Option<&mut u32>, v: S) { if let Some(n) = n { if v > 0.0 { *n += 1; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            bump(Some(&mut n), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    option_guard_first: inputs(4), Sound,
    traced {
        fn bump<S: Num>(n: Option<&mut u32>, v: S) { if v > 0.0 { if let Some(n) = n { *n += 1; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            bump(Some(&mut n), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    option_mut: inputs(4), Sound,
    traced {
        fn bump<S: Num>(mut n: Option<&mut u32>, v: S) { if v > 0.0 && let Some(n) = n.as_deref_mut() { *n += 1; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            bump(Some(&mut n), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    option_let_else: inputs(4), Sound,
    traced {
        fn bump<S: Num>(n: Option<&mut u32>, v: S) { let Some(n) = n else { return }; if v > 0.0 { *n += 1; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            bump(Some(&mut n), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    option_map: inputs(4), Sound,
    traced {
        fn bump<S: Num>(n: Option<&mut u32>, v: S) { if v > 0.0 { n.map(|n| *n += 1); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            bump(Some(&mut n), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    local_option: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let o = Some(&mut n); if x[0] > 0.0 { if let Some(n) = o { *n += 1; } } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    iter_next: inputs(4), Sound,
    traced {
        fn first<S: Num>(mut items: std::slice::IterMut<'_, u32>, v: S) { if v > 0.0 { if let Some(n) = items.next() { *n += 1; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [1u32];
            first(n.iter_mut(), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n[0]) } else { x[3] }
        }
    }
    iter_for: inputs(4), Sound,
    traced {
        fn all<S: Num>(items: std::slice::IterMut<u32>, v: S) { for n in items { if v > 0.0 { *n += 7; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [1u32];
            all(n.iter_mut(), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n[0]) } else { x[3] }
        }
    }
    iter_for_inside: inputs(4), Sound,
    traced {
        fn all<S: Num>(items: std::slice::IterMut<u32>, v: S) { if v > 0.0 { for n in items { *n += 7; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [1u32];
            all(n.iter_mut(), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n[0]) } else { x[3] }
        }
    }
    iter_impl: inputs(4), Sound,
    traced {
        fn any<'a, S: Num>(items: impl Iterator<Item = &'a mut u32>, v: S) { for n in items { if v > 0.0 { *n += 3; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [1u32];
            any(n.iter_mut(), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n[0]) } else { x[3] }
        }
    }
    iter_generic: inputs(4), Sound,
    traced {
        fn any<'a, S: Num, I: Iterator<Item = &'a mut u32>>(items: I, v: S) { if v > 0.0 { for n in items { *n += 3; } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [1u32];
            any(n.iter_mut(), x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n[0]) } else { x[3] }
        }
    }
    drop_outer: inputs(4), Sound,
    plain {
        pub struct Guard<'a>(pub &'a mut u32, pub u32);
        impl Drop for Guard<'_> { fn drop(&mut self) { *self.0 += self.1; } }
    }
    traced {
        fn scoped<S: Num>(n: &mut u32, v: S) { let mut guard = Guard(n, 0); if v > 0.0 { guard.1 = 1; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            scoped(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    drop_inner: inputs(4), Sound,
    plain {
        pub struct Guard<'a>(pub &'a mut u32, pub u32);
        impl Drop for Guard<'_> { fn drop(&mut self) { *self.0 += self.1; } }
    }
    traced {
        fn early<S: Num>(n: &mut u32, v: S) { if v > 0.0 { let guard = Guard(n, 5); drop(guard); } else { let _guard = Guard(n, 7); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            early(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    drop_forgotten: inputs(4), Sound,
    plain {
        pub struct Guard<'a>(pub &'a mut u32, pub u32);
        impl Drop for Guard<'_> { fn drop(&mut self) { *self.0 += self.1; } }
    }
    traced {
        fn leaked<S: Num>(n: &mut u32, v: S) { let guard = Guard(n, 9); if v > 0.0 { core::mem::forget(guard); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            leaked(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    drop_local: inputs(4), Sound,
    plain {
        pub struct Guard<'a>(pub &'a mut u32, pub u32);
        impl Drop for Guard<'_> { fn drop(&mut self) { *self.0 += self.1; } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            { let guard = Guard(&mut n, 9); if x[0] > 0.0 { drop(guard); } else { core::mem::forget(guard); } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    method_named_get: inputs(4), Sound,
    plain {
        #[derive(phigrad::Carry)]
        pub struct Counter { pub n: u32 }
        impl Counter { pub fn get(&mut self) -> u32 { self.n += 1; self.n } pub fn bump(&mut self) { self.n += 1; } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = Counter { n: 1 };
            if x[0] > 0.0 { n.get(); }
            if x[1] > 0.0 { x[2] * f64::from(n.n) } else { x[3] }
        }
    }
    method_named_bump: inputs(4), Sound,
    plain {
        #[derive(phigrad::Carry)]
        pub struct Counter { pub n: u32 }
        impl Counter { pub fn get(&mut self) -> u32 { self.n += 1; self.n } pub fn bump(&mut self) { self.n += 1; } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = Counter { n: 1 };
            if x[0] > 0.0 { n.bump(); }
            if x[1] > 0.0 { x[2] * f64::from(n.n) } else { x[3] }
        }
    }
    iterator_any: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1..5u32;
            if x[0] > 0.0 { let _ = n.any(|n| n == 2); }
            if x[1] > 0.0 { x[2] * f64::from(n.start) } else { x[3] }
        }
    }
    iterator_all: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1..5u32;
            if x[0] > 0.0 { let _ = n.all(|n| n < 3); }
            if x[1] > 0.0 { x[2] * f64::from(n.start) } else { x[3] }
        }
    }
    iterator_all_slice: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = [3u32, 4, 5].iter();
            if x[0] > 0.0 { let _ = n.all(|n| *n < 4); }
            if x[1] > 0.0 { x[2] * f64::from(*n.next().unwrap_or(&9)) } else { x[3] }
        }
    }
    method_named_get_of_an_element: inputs(4), Sound,
    plain {
        #[derive(phigrad::Carry)]
        pub struct Counter { pub n: u32 }
        impl Counter { pub fn get(&mut self) -> u32 { self.n += 1; self.n } }
    }
    traced {
        fn bump<S: Num>(all: &mut [Counter], v: S) { if v > 0.0 { all[all.len() - 1].get(); } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = vec![Counter { n: 1 }];
            if x[0] > 0.0 { n[0].get(); }
            bump(&mut n, x[3]);
            if x[1] > 0.0 { x[2] * f64::from(n[0].n) } else { x[3] }
        }
    }
}
