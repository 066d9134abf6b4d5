//! State that is changed through aliases: a value that holds a reference, an
//! iterator, a method, or shared cells. The change shows only on one branch of a
//! later comparison.

programs! {
    // Advancing is not only `next`.
    advanced_by_any: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut numbers = 1..5;
            if x[0] > 0.0 { if numbers.any(|n| n == 2) {} }
            if x[1] > 0.0 { x[2] * f64::from(numbers.start) } else { x[3] }
        }
    }
    advanced_by_all: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut items = [3.0, 4.0, 5.0].iter();
            let mut y = x[2];
            if x[0] > 0.0 { let _ = items.all(|n| *n < 4.0); }
            if x[1] > 0.0 { y = y * *items.next().unwrap_or(&9.0); }
            y
        }
    }
    held_by_a_struct: inputs(4), Sound,
    plain { pub struct Out<'a> { pub n: &'a mut u32 } }
    traced {
        fn bump<S: Num>(out: Out<'_>, v: S) { if v > 0.0 { *out.n += 1; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1;
            bump(Out { n: &mut n }, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    // The lifetime is not written.
    held_by_a_struct_elided: inputs(4), Sound,
    plain {
        #[allow(elided_lifetimes_in_paths)]
        pub struct Out<'a> { pub n: &'a mut u32 }
        pub type Other<'a> = &'a mut u32;
    }
    traced {
        #[allow(elided_lifetimes_in_paths)]
        fn bump<S: Num>(out: Out, v: S) { if v > 0.0 { *out.n += 1; } }
        fn bump_other<S: Num>(n: Other, v: S) { if v > 1.0 { *n += 1; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1;
            bump(Out { n: &mut n }, x[0]);
            bump_other(&mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    held_by_a_tuple: inputs(4), Sound,
    traced {
        fn bump<S: Num>(pair: (&mut u32, S)) { if pair.1 > 0.0 { *pair.0 += 1; } }
        fn taken_apart<S: Num>((n, v): (&mut u32, S)) { if v > 1.0 { *n += 5; } }
        fn by_default<S: Num>([n, _]: &mut [u32; 2], v: S) { if v > 0.5 { *n += 9; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut m) = (1, [0, 0]);
            bump((&mut n, x[0]));
            taken_apart((&mut n, x[0]));
            by_default(&mut m, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n + m[0]) } else { x[3] }
        }
    }
    held_by_a_box: inputs(4), Sound,
    traced {
        fn bump<S: Num>(n: Box<&mut u32>, v: S) { if v > 0.0 { **n += 1; } }
        fn call<S: Num>(mut f: Box<dyn FnMut() + '_>, v: S) { if v > 1.0 { f(); } }
        fn call_it<S: Num>(f: &mut dyn FnMut(), v: S) { if v > 0.5 { f(); } }
        fn twice<S: Num>(n: &mut &mut u32, v: S) { if v > -1.0 { **n += 2; } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1;
            bump(Box::new(&mut n), x[0]);
            call(Box::new(|| n += 5), x[0]);
            call_it(&mut || n += 9, x[0]);
            twice(&mut &mut n, x[0]);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    behind_a_default_binding: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut pair = (1u32, Some(2u32));
            { let (n, m) = &mut pair; if x[0] > 0.0 { *n += 1; } if let Some(m) = m { if x[0] > 1.0 { *m += 1; } } }
            match &mut pair { (n, Some(m)) if x[3] > 0.0 => { core::mem::swap(n, m); } _ => {} }
            if let (_, Some(m)) = &mut pair && x[3] > 1.0 { *m += 4; }
            if let Some(m) = pair.1.as_mut() { if x[3] < -1.0 { *m += 8; } }
            if x[1] > 0.0 { x[2] * f64::from(pair.0) + f64::from(pair.1.unwrap_or(0)) } else { x[3] }
        }
    }
    reassigned_reference: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut m) = (1u32, 2u32);
            let r;
            if x[0] > 0.0 { r = &mut n; } else { r = &mut m; }
            *r += 1;
            let mut s = &mut n;
            if x[3] > 0.0 { s = &mut m; }
            *s += 3;
            if x[1] > 0.0 { x[2] * f64::from(n) + f64::from(m) } else { x[3] }
        }
    }
    by_a_user_macro: inputs(4), Sound,
    plain {
        macro_rules! bump { ($n:ident) => { $n += 1 }; ($n:ident if $c:expr) => { if $c { $n += 2; } }; }
        pub(crate) use bump;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            if x[0] > 0.0 { bump!(n); }
            bump!(n if x[3] > 0.0);
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    // Operators of the user's types.
    by_an_operator: inputs(4), Sound,
    plain {
        pub struct Tally<'a>(pub &'a mut u32);
        impl core::ops::AddAssign<u32> for Tally<'_> { fn add_assign(&mut self, n: u32) { *self.0 += n; } }
        impl core::ops::Shl<u32> for &mut Tally<'_> { type Output = u32; fn shl(self, n: u32) -> u32 { *self.0 += n; n } }
        impl core::ops::Index<usize> for Tally<'_> { type Output = u32; fn index(&self, _: usize) -> &u32 { self.0 } }
        impl core::ops::IndexMut<usize> for Tally<'_> { fn index_mut(&mut self, _: usize) -> &mut u32 { self.0 } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1;
            { let mut tally = Tally(&mut n); if x[0] > 0.0 { tally += 2; } if x[0] > 1.0 { tally[0] = 9; } }
            { let mut tally = Tally(&mut n); if x[3] > 0.0 { let _ = &mut tally << 3; } }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    by_a_captured_reference: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u32;
            let r = &mut n;
            let mut bump = || { *r += 1; };
            if x[0] > 0.0 { bump(); }
            let twice = &mut bump;
            if x[3] > 0.0 { twice(); }
            if x[3] > 1.0 { (0..2).for_each(|_| twice()); }
            if x[1] > 0.0 { x[2] * f64::from(n) } else { x[3] }
        }
    }
    // A stored reference: its target changes through another variable.
    by_a_stored_reference: inputs(4), Sound,
    plain {
        pub struct Holder<'a> { pub slot: Option<&'a mut u32> }
        impl<'a> Holder<'a> { pub fn keep(&mut self, n: &'a mut u32) { self.slot = Some(n); } pub fn poke(&mut self) { if let Some(n) = &mut self.slot { **n += 1; } } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut m) = (1u32, 3u32);
            {
                let mut holder = Holder { slot: None };
                holder.keep(&mut n); if x[0] > 1.0 { holder.poke(); } holder.keep(&mut m);
                if x[0] > 0.0 { holder.poke(); }
                if x[3] > 0.0 { holder.poke(); }
            }
            if x[1] > 0.0 { x[2] * f64::from(n) + f64::from(m) } else { x[3] }
        }
    }
}
