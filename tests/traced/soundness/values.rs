//! Unusual numbers: ties, zeros with signs, NaN; constants and captured data;
//! and numbers that are the same or no longer needed.

programs! {
    nan_takes_the_other_side: inputs(3), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            if x[0] < 0.5 { y = y + x[0]; } else if x[0] >= 0.5 { y = y - x[0]; } else { y = S::from(-7.0); }
            if !(x[1] > 0.0) { y = y * 2.0; }
            if x[2] != x[2] { y = y + 100.0; }
            if x[1] == x[2] { y = y * 5.0; }
            y
        }
    }
    ties: inputs(4), Splits(0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for i in 0..4 { for j in 0..i {
                if x[i] == x[j] { y = y + x[i] * 3.0; } else if x[i] >= x[j] { y = y + x[j]; }
                if x[i] <= x[j] { y = y * 0.5; }
            } }
            y.larger(x[0]) + x[1].larger(x[2])
        }
    }
    signs_of_zero: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut zero = S::from(0.0);
            if x[0] > 0.0 { zero = -zero; }
            if x[1] > 0.0 { zero = zero * x[1]; }
            let y = if x[2] > 0.0 { x[2] } else { zero };
            y + zero * x[0] + S::from(1.0) / (x[1] * x[1] + 0.5)
        }
    }
    // Both paths carry constants, or one of them an input.
    constants_carried: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = if x[0] > 0.0 { S::from(2.0) } else { S::from(3.0) };
            let b = if x[1] > 0.0 { x[1] } else { S::from(0.5) };
            let c = if x[2] > 0.0 { a } else { b };
            let mut d = c;
            if x[3] > 0.0 { d = S::from(1.0); }
            if d == 1.0 { a * b } else { c * d + a }
        }
    }
    // A traced constant and an untraced one of the same value.
    constants_decide: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut c = S::from(1.0);
            if x[0] > 0.0 { c = S::from(2.0); }
            let y = if c > 1.5 { x[1] } else { x[2] };
            let z = if c == S::from(2.0) { y.sin() } else { y };
            z * c
        }
    }
    captured_data: inputs(4), Merges(0.95),
    plain { pub static TABLE: [f64; 5] = [0.5, -1.0, 2.0, 0.25, -0.75]; }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for (i, limit) in TABLE.iter().enumerate() {
                let v = x[i % 4];
                if v > *limit { y = y + v * *limit; } else if *limit > 0.0 { y = y - v; }
            }
            y
        }
    }
    not_needed_later: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x[0];
            let mut b = x[1];
            if x[2] > 0.0 { a = a * 2.0; b = a; } else { b = b * 3.0; }
            b = x[3];
            if x[3] > 0.0 { b = b + a; }
            b
        }
    }
    // One branch is empty, and NaN decides everything.
    empty_sides: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            if x[1] > 0.0 {} else if x[2] > 0.0 { y = y + x[2]; } else {}
            if x[3] > 0.0 { let _ = y * 3.0; }
            match x[1] > x[2] { true => {} false => {} }
            y * x[3]
        }
    }
    infinite_sides: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = if x[0] > 0.0 { x[0].sqrt() } else { S::from(1.0) / (x[0] - x[0]) };
            if y > 10.0 { y = S::from(10.0); }
            let z = if x[1] > 0.0 { (x[1] * 400.0).exp() } else { x[1] };
            if z < 1e100 { y + z } else { y * x[2] }
        }
    }
    expressions_inside: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let y = { let t = if x[0] > 0.0 { x[0] } else { x[1] }; t * t } + (if x[1] > 0.5 { x[1] } else { x[2] }) * match x[3] > 0.0 { true => 2.0, false => -1.0 };
            let pair = (if y > 1.0 { y } else { x[0] }, [if y > 2.0 { x[3] } else { y }; 2]);
            pair.0 * pair.1[1] - larger_of(if x[2] > 0.0 { x[2] } else { y }, { let mut k = y; if k > 0.0 { k = -k; } k })
        }
        fn larger_of<S: Num>(a: S, b: S) -> S { if a > b { a } else { b } }
    }
}
