//! Helpers: called from many places, annotated or not, with references, as
//! methods, and nested.

programs! {
    many_places: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = soft(x[0], 0.5);
            let b = soft(x[1], 0.25) + soft(a, 1.0);
            let mut y = soft(soft(b, 0.1), 0.2);
            for i in 2..x.len() { y = y + soft(x[i], i as f64 * 0.2) * soft(y, 0.7); }
            y
        }
        fn soft<S: Num>(v: S, at: f64) -> S {
            if v > at { v - at } else if v < -at { v + at } else { S::from(0.0) }
        }
    }
    unannotated_helper: inputs(4), Merges(0.85),
    plain {
        pub fn bent<S: Num>(v: S) -> S {
            let mut y = v;
            let mut n = 0;
            while y > 0.5 && n < 4 { y = y * 0.6; n += 1; }
            if n == 2 { y * 3.0 } else { y }
        }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            for &v in x { if v < -1.0 { y = y - v; } else { y = y + bent(v); } }
            if bent(y) > 0.4 { y = bent(y * 0.5); }
            y
        }
    }
    annotated_called_by_unannotated: inputs(4), Splits(0.75),
    plain {
        pub fn around<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for &v in x { if v > 1.4 { y = y + 1.0; } y = y + inner(v); }
            y
        }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { let y = around(x); if y > 2.0 { y.sin() } else { y } }
        fn inner<S: Num>(v: S) -> S { if v > 0.0 { v * v } else { v.sin() } }
    }
    through_references: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (x[0], x[1]);
            order(&mut a, &mut b);
            let mut c = [x[2], x[3], a];
            clip(&mut c[1]);
            clip_all(&mut c);
            if b > 0.0 { clip(&mut b); }
            a * c[0] + b * c[1] - c[2]
        }
        fn order<S: Num>(a: &mut S, b: &mut S) { if *a > *b { core::mem::swap(a, b); } }
        fn clip<S: Num>(a: &mut S) { if *a > 1.0 { *a = S::from(1.0); } else if *a < -1.0 { *a = *a * 0.5; } }
        fn clip_all<S: Num>(all: &mut [S]) { for a in all { if *a > 0.75 { clip(a); *a = *a * 2.0; } } }
    }
    // A reference to one of two places comes back out of a helper.
    returned_reference: inputs(4), Keeps("the value of the expression", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (x[0], x[1]);
            *smaller(&mut a, &mut b) = x[2] * 2.0;
            let y = if x[3] > 0.0 { a } else { x[3] };
            y * b - a
        }
        fn smaller<'a, S: Num>(a: &'a mut S, b: &'a mut S) -> &'a mut S { if *a < *b { a } else { b } }
    }
    nested_functions: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            fn part<S: Num>(v: S) -> S {
                fn inner<S: Num>(v: S) -> S { if v > 0.5 { v.sin() } else { v } }
                if v > 0.0 { inner(v) * 2.0 } else { inner(-v) }
            }
            const FACTOR: f64 = 1.5;
            let mut y = S::from(0.0);
            for &v in x { if v > 1.0 { y = y + v * FACTOR; } y = y - part(v); }
            y
        }
    }
    function_pointers: inputs(4), Keeps("f", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut f: fn(S) -> S = square;
            if x[0] > 0.0 { f = root; }
            let mut y = x[1];
            if x[2] > 0.0 { y = y + x[2]; }
            let z = f(y);
            apply(f, z) + x[3]
        }
        fn square<S: Num>(v: S) -> S { v * v }
        fn root<S: Num>(v: S) -> S { if v > 0.0 { v.sqrt() } else { v } }
        fn apply<S: Num>(f: fn(S) -> S, v: S) -> S { if v > 1.0 { f(v) } else { v } }
    }
    // What a method does that takes `&self` is not known of a type that is not.
    trait_methods: inputs(4), Keeps("self", 0.6),
    plain {
        pub struct Linear(pub f64);
        pub struct Hinge(pub f64);
        impl<S: Num> Loss<S> for Linear { fn at(&self, v: S) -> S { v * self.0 } }
    }
    traced {
        pub trait Loss<S: Num> {
            fn at(&self, v: S) -> S;
            fn total(&self, all: &[S]) -> S {
                let mut y = S::from(0.0);
                for &v in all { if v > -1.0 { y = y + self.at(v); } else { y = y - v; } }
                y
            }
        }
        impl<S: Num> Loss<S> for Hinge { fn at(&self, v: S) -> S { if v > self.0 { v - self.0 } else { S::from(0.0) } } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let losses: [&dyn Loss<S>; 2] = [&Linear(0.5), &Hinge(0.3)];
            let mut y = S::from(1.0);
            for loss in losses { y = y + loss.total(x); if y > 2.0 { y = y * 0.5; } }
            y
        }
    }
    tuples_back: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut low, mut high) = bounds(x[0], x[1]);
            let (l, h) = bounds(x[2], x[3]);
            if l < low { low = l; }
            if h > high { high = h; }
            (high - low) * (high + low + l)
        }
        fn bounds<S: Num>(a: S, b: S) -> (S, S) { if a < b { (a, b) } else { (b, a) } }
    }
    with_state_behind: inputs(5), Splits(0.60),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut seed = 1u64;
            let mut y = S::from(0.0);
            for &v in x { y = y + v * f64::from(draw(&mut seed, v > 0.0)); }
            y
        }
        fn draw(seed: &mut u64, twice: bool) -> u8 {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            if twice { *seed = seed.wrapping_mul(31); }
            (*seed >> 60) as u8
        }
    }
}
