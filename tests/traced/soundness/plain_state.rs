//! Tracked plain variables: each way in which one may reach a decision or a constant.

programs! {
    copied_in_a_region: inputs(5), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut now, mut before) = (0, 0);
            let mut y = S::from(0.5);
            for i in 0..x.len() {
                before = if x[i] > 0.0 { now } else { before };
                if x[i] > x[now] { now = i; }
                let kept = if x[i] < -0.5 { before } else { 0 };
                y = y + x[kept] * 0.5;
            }
            y * x[before].sin() + x[now]
        }
    }
    swapped: inputs(6), Merges(0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (0, x.len() - 1);
            for &v in x {
                if v > 0.5 { (a, b) = (b, a); } else if v < -0.5 { a = (a + 1) % x.len(); }
                if v > 1.0 { core::mem::swap(&mut a, &mut b); }
            }
            x[a] - x[b] * 2.0
        }
    }
    exchanged: inputs(6), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut left, mut right) = (true, false);
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.3 { (left, right) = (right, !left); }
                if left ^ right { y = y + v; }
                if left & right { y = y * 0.5; } else if !(left | right) { y = y - v.sin(); }
            }
            y
        }
    }
    matched_with_bindings: inputs(6), Merges(0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 3i64;
            let mut y = S::from(1.0);
            for &v in x {
                n = match n {
                    k if v > 0.7 => k + 1,
                    k @ 3..=4 if v < -0.7 => k - 2,
                    0 | 1 => 5,
                    other => other,
                };
                match n { m @ (..=1 | 5) => y = y * (m as f64 * 0.1 + 1.0), _ => y = y + v }
            }
            y
        }
    }
    ranges_and_slices: inputs(6), Merges(0.60),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut low, mut high) = (0usize, x.len());
            for &v in x {
                if v > 1.0 && high > low + 1 { high -= 1; } else if v < -1.0 && low + 1 < high { low += 1; }
            }
            let mut y = S::from(0.0);
            for v in &x[low..high] { y = y + *v; }
            for i in low..high { y = y * 0.9 + x[i] * i as f64; }
            for v in x.iter().take(high).skip(low) { if *v > 0.0 { y = y + v.sin(); } }
            y
        }
    }
    named_in_macros: inputs(5), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut on) = (0u8, false);
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.0 { n += 1; on = !on; }
                assert!(n < 200, "{n} {}", on);
                if matches!(n, 2 | 3) { y = y + v; }
                y = y + vec![1.0, 2.0, n as f64][usize::from(on)];
                if format!("{n:>2}{on}").contains("4") { y = -y; }
            }
            y * x[0]
        }
    }
    methods_and_references: inputs(5), Sound,
    plain {
        #[derive(Clone, Copy, PartialEq, phigrad::Carry)]
        pub enum Turn { Left, Right, Back }
        impl Turn {
            pub fn turn(&mut self) { *self = match self { Turn::Left => Turn::Back, Turn::Back => Turn::Right, Turn::Right => Turn::Left }; }
            pub fn sign(self) -> f64 { match self { Turn::Left => 1.0, Turn::Right => -1.0, Turn::Back => 0.25 } }
            pub fn is_back(&self) -> bool { matches!(self, Turn::Back) }
        }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut turn = Turn::Left;
            let mut n = 0i32;
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.4 { turn.turn(); n = n.max(2) + 1; }
                if v < -1.2 && !turn.is_back() { turn = Turn::Back; }
                if (1..4).contains(&n) { y = y + 0.5; }
                if let Turn::Right = turn { y = y * 0.75; }
                y = y + v * turn.sign() + S::from(f64::from(n.pow(2)));
            }
            y
        }
    }
    compared_from_both_sides: inputs(7), Merges(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b, limit) = (0i32, 2i32, 3);
            let mut y = S::from(0.25);
            for (i, &v) in x.iter().enumerate() {
                if v > 0.5 { a += 1; } else if v < -0.5 { b -= 1; }
                if a < b { y = y + v; }
                if limit > a && b != a + 1 { y = y * 0.9; }
                if i as i32 == a { y = y - 1.0; }
                if !(a >= limit) && b <= 0 { y = -y; }
            }
            y
        }
    }
    values_of_loops_and_blocks: inputs(6), Merges(0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut at = 0;
            let mut y = S::from(0.0);
            for round in 0..3 {
                at = loop {
                    if x[at] > 0.0 { break (at + 1) % x.len(); }
                    if at + 1 == x.len() { break round; }
                    at += 1;
                };
                at = 'b: {
                    if x[at] < -1.0 { break 'b 0; }
                    y = y + x[at];
                    if x[at] > 1.0 { at } else { x.len() - 1 - at }
                };
            }
            y * x[at]
        }
    }
    wraps_and_limits: inputs(6), Splits(0.40),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut small, mut seed, mut far, mut down) = (253u8, 12345u64, i64::MIN, u32::MAX);
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.2 { small = small.wrapping_add(2); } else { seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1); }
                if v > 1.0 { far = far.max(-3) + 1; down = down.wrapping_add(1); }
                if small < 4 { y = y + v; }
                if seed % 3 == 1 { y = y * 0.5; }
                if far > i64::MIN { y = y - 1.0; }
                if down < 2 { y = y + v * v; }
            }
            y
        }
    }
    deferred_and_shadowed: inputs(5), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for &v in x {
                let sign;
                if v > 0.0 { sign = 1; } else { sign = -1; }
                let mut n = sign * 2;
                if y > 1.0 { n = 0; }
                { let mut n = n + 1; if v > 1.0 { n = 7; } y = y + f64::from(n) * 0.1; }
                y = y + v * f64::from(n);
            }
            y
        }
    }
    parameters_and_results: inputs(5), Merges(0.80),
    traced {
        fn counted<S: Num>(x: &[S], mut n: usize, mut up: bool) -> (usize, bool) {
            for &v in x { if v > 0.0 { n += 1; } if n > 3 { up = !up; n = 0; } }
            (n, up)
        }
        fn first<S: Num>(x: &[S]) -> Option<usize> {
            let mut at = 0;
            while x[at] < 0.5 { at += 1; if at == x.len() { return None; } }
            Some(at)
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (n, up) = counted(x, 2, false);
            let at = first(x).unwrap_or(n);
            let mut y = x[at] * if up { 2.0 } else { -1.0 };
            if n == 2 { y = y * y; }
            y
        }
    }
    closures_and_questions: inputs(5), Sound,
    traced {
        fn search<S: Num>(x: &[S]) -> Option<S> {
            let (mut seen, mut hits) = (0, 0);
            let mut y = S::from(1.0);
            for &v in x {
                if v > 0.6 { hits += 1; }
                let mut note = || seen += 1;
                if v < 0.0 { note(); }
                y = y + (hits < 3).then(|| v)? * f64::from(seen);
            }
            (hits > 0).then_some(y)
        }
        pub fn run<S: Num>(x: &[S]) -> S { search(x).unwrap_or(x[0] * x[1]) }
    }
    structs_and_tuples: inputs(5), Splits(0.25),
    plain {
        #[derive(Clone, Copy, phigrad::Carry)]
        pub struct Mark { pub n: usize, pub on: bool }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut on) = (0, true);
            let mut mark = Mark { n: 0, on: false };
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.0 { n += 1; on = v > 1.0; }
                if v < -1.0 { mark = Mark { n, on }; }
                let pair = (n, on);
                if pair == (2, true) { y = y + 1.0; }
                y = y + v * [n, mark.n][usize::from(mark.on)] as f64;
            }
            y
        }
    }
    conditions_of_plain_and_traced: inputs(7), Merges(0.75),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut on, mut quiet, mut n) = (false, 0u32, 0);
            let mut y = x[0];
            while n < 14 && !(quiet > 3 && y < 0.0) {
                let v = x[n % x.len()];
                n += 1;
                if v < 0.0 && !on { quiet += 1; continue; }
                on = on && v < 0.8 || y > 1.0;
                quiet = quiet.saturating_sub(1);
                y = y * 0.8 + if on { v } else { v * 0.5 };
            }
            if on || quiet == 0 { y } else { y * y }
        }
    }
}
