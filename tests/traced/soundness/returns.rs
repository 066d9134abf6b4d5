//! Early returns, and `?`, in helpers and in loops.

programs! {
    return_in_loop: inputs(6), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for k in 0..3 { y = y + first_above(x, 1.5 - k as f64) * (k as f64 + 1.0); }
            y
        }
        fn first_above<S: Num>(x: &[S], limit: f64) -> S {
            let mut sum = S::from(0.0);
            for &v in x {
                if v > limit { return v + sum; }
                sum = sum + v * 0.5;
            }
            sum
        }
    }
    return_index: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let i = position(x);
            match i { Some(i) => x[i] * (i as f64), None => x[0] + x[1] }
        }
        fn position<S: Num>(x: &[S]) -> Option<usize> {
            for i in 0..x.len() { if x[i] > 1.0 { return Some(i); } }
            None
        }
    }
    // The `match` has several paths, whichever returned.
    return_an_option: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            match chosen(x) { Some(v) => v, None => x[0] * 2.0 }
        }
        fn chosen<S: Num>(x: &[S]) -> Option<S> {
            if x[0] < 0.5 { return Some(x[0]); }
            Some(x[2])
        }
    }
    return_an_option_in_a_loop: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for pair in x.windows(2) {
                if let Some(v) = chosen(pair) { y = y * 0.5 + v; }
                y = y + match chosen(&[y, pair[1]]) { Some(v) => v * v, None => y };
            }
            y
        }
        fn chosen<S: Num>(x: &[S]) -> Option<S> {
            if x[0] < 0.5 { return Some(x[0]); }
            if x[1] < 0.5 { return Some(x[1] * 2.0); }
            Some(x[0] * x[1])
        }
    }
    question_on_option: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for pair in x.windows(2) {
                match quotient(pair[0], pair[1]) { Some(q) => y = y + q, None => y = y - 1.0 }
            }
            y
        }
        fn quotient<S: Num>(a: S, b: S) -> Option<S> {
            let root = root(a)?;
            let other = root_of_sum(b, root)?;
            if other > 1.0 { return Some(root); }
            Some(root / (other + 1.0))
        }
        fn root_of_sum<S: Num>(a: S, b: S) -> Option<S> { let r = root(a + b)?; Some(r * 2.0) }
        fn root<S: Num>(a: S) -> Option<S> { if a < 0.0 { None } else { Some((a + 0.1).sqrt()) } }
    }
    // The error has a traced number.
    question_on_result: inputs(4), Keeps("the error", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for &v in x {
                y = y + match checked(v) { Ok(good) => good, Err((bad, code)) => bad * f64::from(code) };
            }
            y
        }
        fn checked<S: Num>(v: S) -> Result<S, (S, i32)> {
            let low = not_below(v)?;
            let high = not_above(low * 1.5)?;
            Ok(high.sin())
        }
        fn not_below<S: Num>(v: S) -> Result<S, (S, i32)> { if v < -1.0 { Err((v * v, 1)) } else { Ok(v) } }
        fn not_above<S: Num>(v: S) -> Result<S, (S, i32)> { if v > 1.0 { Err((v, 2)) } else { Ok(v) } }
    }
    // Only the converted error tells where it failed.
    question_converts: inputs(3), Keeps("the value of the expression", 0.95),
    plain {
        pub struct Why(i32);
        impl From<u8> for Why { fn from(n: u8) -> Why { Why(i32::from(n)) } }
        impl From<bool> for Why { fn from(b: bool) -> Why { Why(if b { 10 } else { 20 }) } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            match all(x) { Ok(y) => y, Err(Why(n)) => x[0] * f64::from(n) }
        }
        fn all<S: Num>(x: &[S]) -> Result<S, Why> {
            let a = small(x[0])?;
            let b = large(x[1])?;
            Ok(a * b + x[2])
        }
        fn small<S: Num>(v: S) -> Result<S, u8> { if v > 1.0 { Err(3) } else { Ok(v) } }
        fn large<S: Num>(v: S) -> Result<S, bool> { if v < -1.0 { Err(v < -1.5) } else { Ok(v) } }
    }
    return_from_match_in_loop: inputs(5), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { search(x, 0.5) + search(&x[1..], -0.5) * 2.0 }
        fn search<S: Num>(x: &[S], at: f64) -> S {
            let mut best = S::from(-1.0);
            for &v in x {
                match v.partial_cmp(&S::from(at)) {
                    Some(std::cmp::Ordering::Less) => {}
                    Some(_) if v > best + 1.5 => return v,
                    Some(_) => best = best + v * 0.25,
                    None => return S::from(7.0),
                }
            }
            best
        }
    }
    return_from_nested_loops: inputs(5), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (a, b) = pair(x);
            a * b + a
        }
        fn pair<S: Num>(x: &[S]) -> (S, S) {
            let mut last = x[0];
            for i in 0..x.len() {
                for j in i + 1..x.len() {
                    if x[i] * x[j] > 2.0 { return (x[i], x[j]); }
                    last = if x[j] > 0.0 { last + x[j] } else { last };
                }
                if last > 4.0 { return (last, x[i]); }
            }
            (last, S::from(1.0))
        }
    }
    let_else: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S { x.iter().fold(S::from(0.0), |y, v| y + one(*v)) }
        fn one<S: Num>(v: S) -> S {
            let Some(w) = positive(v) else { return v * v };
            let (Some(z), true) = (positive(w - 1.0), w > 0.5) else { return w };
            z * 3.0
        }
        fn positive<S: Num>(v: S) -> Option<S> { if v > 0.0 { Some(v) } else { None } }
    }
    // Two returns hand back the same number, and the function changes state of
    // its caller before.
    return_after_effects: inputs(5), Splits(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut count, mut sum) = (0, S::from(0.0));
            let mut y = S::from(0.0);
            for &v in x { y = y + step(v, &mut count, &mut sum); }
            y * f64::from(count) + sum
        }
        fn step<S: Num>(v: S, count: &mut i32, sum: &mut S) -> S {
            if v > 1.0 { *count += 1; return v; }
            if v > 0.0 { *sum = *sum + v; return v; }
            *sum = *sum - 1.0;
            v * v
        }
    }
    return_unit: inputs(4), UntrackedUse(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut all = [x[0], x[1], x[2]];
            change(&mut all, x[3]);
            change(&mut all, -x[3]);
            all[0] * all[1] - all[2]
        }
        fn change<S: Num>(all: &mut [S; 3], by: S) {
            if by > 1.0 { return; }
            for v in all.iter_mut() { if *v > 0.0 { *v = *v * by; } else if *v < -1.5 { return; } }
            all[0] = all[2];
        }
    }
}
