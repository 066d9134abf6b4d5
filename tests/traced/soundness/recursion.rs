//! Recursion: by a counter and by traced comparisons.

programs! {
    to_a_depth: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { down(x[0], x[1], 4) + x[2] }
        fn down<S: Num>(a: S, b: S, depth: usize) -> S {
            if depth == 0 { return a; }
            let c = if a > b { a * 0.75 - b } else { b * 0.5 + a * a * 0.25 };
            down(c, a, depth - 1) + c
        }
    }
    while_large: inputs(2).between(0.0, 6.0), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { shrink(x[0]) * shrink(x[1]) }
        fn shrink<S: Num>(a: S) -> S {
            if a > 1.0 && a < 50.0 { shrink(a * 0.6) * 1.5 } else { a.sin() }
        }
    }
    mutual: inputs(3), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { even(x, 0, x[0]) }
        fn even<S: Num>(x: &[S], depth: usize, a: S) -> S {
            if depth > 5 { return a; }
            if a > x[1] { odd(x, depth + 1, a - 0.7) } else { odd(x, depth + 2, a * a) }
        }
        fn odd<S: Num>(x: &[S], depth: usize, a: S) -> S {
            if depth > 5 { return -a; }
            if a > x[2] { even(x, depth + 1, a * 0.5) } else { even(x, depth + 1, a + 0.6) + a }
        }
    }
    counts_its_calls: inputs(2).between(0.0, 5.0), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut calls = 0;
            let y = halve(x[0], &mut calls) + halve(x[1], &mut calls);
            if calls % 2 == 0 { y } else { y * y }
        }
        fn halve<S: Num>(a: S, calls: &mut u32) -> S {
            *calls += 1;
            if a > 1.0 && a < 50.0 { halve(a * 0.5, calls) } else { a }
        }
    }
    tree: inputs(3).between(0.0, 2.0), Splits(0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { area(x[0], x[0] + 0.5, x[1], 3) }
        fn area<S: Num>(low: S, high: S, k: S, depth: u32) -> S {
            let middle = (low + high) * 0.5;
            let coarse = (high - low) * (middle * k).sin();
            if depth == 0 || coarse.abs() < 0.05 { return coarse; }
            area(low, middle, k, depth - 1) + area(middle, high, k, depth - 1)
        }
    }
    over_slices: inputs(6), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { fold(x) }
        fn fold<S: Num>(x: &[S]) -> S {
            match x {
                [] => S::from(0.0),
                [only] => *only,
                _ => {
                    let (left, right) = x.split_at(x.len() / 2);
                    let (a, b) = (fold(left), fold(right));
                    if a > b { a - b * 0.5 } else { b * a }
                }
            }
        }
    }
    into_a_vector: inputs(3).between(0.0, 3.0), Splits(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut out = Vec::new();
            for &v in x { digits(v, &mut out); }
            let mut y = S::from(0.0);
            for (i, v) in out.iter().enumerate() { y = y + *v * (i as f64 + 1.0); }
            y
        }
        fn digits<S: Num>(v: S, out: &mut Vec<S>) {
            if v > 1.0 && v < 50.0 && out.len() < 9 { digits(v - 1.0, out); out.push(v * 0.5); } else { out.push(v); }
        }
    }
    euclid: inputs(2).between(0.5, 4.0), Splits(0.35),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { divisor(x[0], x[1]) }
        fn divisor<S: Num>(a: S, b: S) -> S {
            if !(a > 0.3) || !(b > 0.3) || !(a + b < 9.0) { return a + b; }
            if a > b { divisor(a - b, b) } else { divisor(a, b - a * 0.75) }
        }
    }
}
