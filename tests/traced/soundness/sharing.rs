//! Paths of one instance are used in another only if all live-in state
//! corresponds: indices, constants, static state, jumps to the outside.

programs! {
    other_elements: inputs(5), Merges(0.95),
    traced {
        fn bump<S: Num>(a: &mut [S], i: usize, j: usize, v: S) {
            if v > 0.0 { a[i] = a[i] + v; } else if a[j] > 0.5 { a[j] = a[i] * v; }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1], x[2]];
            for (k, &v) in x.iter().enumerate() { bump(&mut a, k % 3, (k + 1) % 3, v); }
            a[0] - a[1] * a[2]
        }
    }
    // Some of the pairs are one element twice.
    equal_indices: inputs(6), Merges(0.95),
    traced {
        fn mix<S: Num>(a: &mut [S; 3], i: usize, j: usize, v: S) {
            if v > 0.0 {
                a[i] = a[i] + v;
                a[j] = a[j] * a[i];
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = [x[0], x[1], x[2]];
            for (k, &v) in x.iter().enumerate() { mix(&mut a, k % 3, (k * k) % 3, v); }
            a[0] - a[1] * a[2]
        }
    }
    // The index is more than an index.
    index_that_counts: inputs(5), Splits(0.5),
    traced {
        fn weigh<S: Num>(a: &mut [S], i: usize) {
            if a[i] > 0.0 { a[i] = a[i] * i as f64; } else if i > 2 { a[i] = a[0]; }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut a = x.to_vec();
            for i in 0..x.len() { weigh(&mut a, i); }
            a.iter().fold(S::from(0.0), |sum, &v| sum * 0.5 + v)
        }
    }
    // Constants leave no trace of what is computed of them.
    constants_in_some_places: inputs(5), Merges(0.9),
    traced {
        fn grow<S: Num>(y: S, v: S) -> S { if v > 0.0 { y * 2.0 - 1.0 } else { y * y + 3.0 } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, mut z) = (S::from(2.0), S::from(-1.0));
            for &v in x {
                y = grow(y, v);
                z = grow(S::from(0.5), v) + grow(z, S::from(1.0));
                if v > 1.0 { y = S::from(2.0); }
            }
            y * z + x[0]
        }
    }
    // A count that the branch does not name is in the state where it jumps to.
    returns_past_a_count: inputs(5), Keeps("count", 0.3),
    traced {
        fn step<S: Num>(count: &mut u32, y: S, v: S) -> S {
            *count += 1;
            if v > 1.0 { return y + v; }
            if v < -1.0 { return y - v; }
            *count += 1;
            y * v
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut count, mut y) = (0, x[0]);
            for &v in x { y = step(&mut count, y, v); }
            y * f64::from(count)
        }
    }
    breaks_past_a_count: inputs(5), Splits(0.3),
    traced {
        fn sum<S: Num>(x: &[S], mut n: i32) -> S {
            let mut y = S::from(1.0);
            for &v in x {
                if v > 1.0 { break; }
                n += 1;
                if v < -1.0 { continue; }
                y = y + v * f64::from(n);
            }
            y * f64::from(n)
        }
        pub fn run<S: Num>(x: &[S]) -> S { sum(x, 0) + sum(&x[1..], 1) * sum(x, 2) - sum(&x[2..], 0) }
    }
    static_arguments: inputs(4), Merges(0.9),
    traced {
        fn turn<S: Num>(y: S, v: S, up: bool, by: f64) -> S {
            if v > 0.0 { if up { y + by } else { y - by } } else { y * by }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() {
                y = turn(y, v, k % 2 == 0, 1.5);
                y = turn(y, v - 0.5, k % 3 == 0, k as f64);
            }
            y
        }
    }
    const_generics_differ: inputs(4), Merges(0.9),
    traced {
        fn fold<S: Num, const N: usize>(y: S, v: S) -> S {
            if v > 0.0 { y * N as f64 } else { y - N as f64 }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for &v in x { y = fold::<S, 2>(y, v); y = fold::<S, 3>(y, v); }
            y
        }
    }
    closures_remember: inputs(4), Keeps("f", 0.1),
    traced {
        fn apply<S: Num>(y: S, v: S, f: &mut dyn FnMut(S) -> S) -> S { if v > 0.0 { f(y) } else { y } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut calls = 0;
            let mut f = |y: S| { calls += 1; y * f64::from(calls) };
            let mut y = x[0];
            for &v in x { y = apply(y, v, &mut f); }
            y
        }
    }
    recursion_by_value: inputs(3), Merges(0.6),
    traced {
        fn halve<S: Num>(y: S, left: u32) -> S {
            if y > 0.25 && left > 0 { halve(y * 0.5, left - 1) * 2.0 } else { y - 1.0 }
        }
        fn shrink<S: Num>(y: S) -> S { if y > 0.25 && y < 64.0 { shrink(y * 0.5) + 1.0 } else { y } }
        pub fn run<S: Num>(x: &[S]) -> S { halve(x[0], 3) + shrink(x[1]) * shrink(x[2]) + halve(x[1], 2) }
    }
    tables_of_constants: inputs(5), Merges(0.9),
    traced {
        fn price<S: Num>(v: S, table: &[f64; 3], rows: &[(f64, S)]) -> S {
            let mut y = v * table[1];
            for row in rows { if v > row.0 { y = y + row.1 * table[2]; } }
            y
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let rows = [(0.0, x[0]), (1.0, x[1]), (-1.0, S::from(0.5))];
            let mut y = S::from(0.0);
            for (k, &v) in x.iter().enumerate() { y = y + price(v, &[1.0, 2.0, k as f64], &rows[k % 2..]); }
            y
        }
    }
}
