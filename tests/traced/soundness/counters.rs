//! Hidden counters and flags: state that is not traced decides what comes later.

programs! {
    // How many inputs are positive decides what is done with the sum.
    counter_decides_later: inputs(6), Splits(0.45),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut positive = 0;
            let mut sum = S::from(0.5);
            for &v in x {
                if v > 0.0 { positive += 1; sum = sum + v * v; } else { sum = sum - v.sin(); }
            }
            if positive == 3 { sum.exp() } else { sum * 2.0 }
        }
    }
    // The same, but the counter decides only in the loop.
    counter_breaks: inputs(8), Splits(0.65),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut hits = 0;
            let mut sum = S::from(1.0);
            for &v in x {
                if v > 0.5 { hits += 1; }
                if hits == 2 { break; }
                sum = sum * v.sin() + 1.0;
            }
            sum
        }
    }
    flag_toggles: inputs(7), Splits(0.20),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut up = true;
            let mut sum = S::from(0.0);
            for &v in x {
                if v < -0.25 { up = !up; }
                sum = if up { sum + v } else { sum - v * v };
            }
            sum
        }
    }
    // The flag is set on one path only and read in another iteration.
    flag_set_once: inputs(6), Merges(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut seen = false;
            let mut y = S::from(1.0);
            for &v in x {
                if seen && v > 0.0 { y = y * v; }
                if v > 1.0 { seen = true; }
                y = y + v * 0.5;
            }
            if seen { y } else { -y }
        }
    }
    counter_used_after: inputs(3).between(0.1, 30.0), Splits(0.50),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut total = S::from(0.0);
            let mut halvings = 0u32;
            for &v in x {
                let mut y = v;
                while y > 1.0 && halvings < 30 { y = y * 0.5; halvings += 1; }
                total = total + y;
            }
            total * f64::from(halvings)
        }
    }
    // Equal up to a dead counter: the paths join.
    counter_dead_after: inputs(7), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut sum = S::from(0.0);
            let mut steps = 0;
            for &v in x {
                let mut y = v;
                while y > 0.5 { y = y - 0.75; steps += 1; if steps > 100 { break; } }
                steps = 0;
                sum = sum + y.sin();
            }
            sum
        }
    }
    // A plain number is halved on some paths and is a factor later.
    hidden_weight: inputs(5), Splits(0.70),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut weight = 1.0;
            let mut sum = S::from(0.0);
            for &v in x {
                if v > 0.0 { weight *= 0.5; }
                sum = sum + v * weight;
            }
            sum
        }
    }
    // Only the sign of a zero differs.
    hidden_sign_of_zero: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut zero = 0.0f64;
            if x[0] > 0.0 { zero = -zero; }
            let y = if x[1] > 0.0 { x[1] } else { x[2] };
            if 1.0 / zero > 0.0 { y.sin() } else { y * y }
        }
    }
    hidden_nan: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut scale = 2.0f64;
            if x[0] > 0.5 { scale = f64::NAN; }
            let mut y = x[1];
            if x[2] < 0.0 { y = y * x[2]; }
            if scale.is_nan() { y } else { y * scale }
        }
    }
    index_of_largest: inputs(5), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut best = 0;
            for i in 1..x.len() { if x[i] > x[best] { best = i; } }
            x[best].sin() + x[(best + 1) % x.len()]
        }
    }
    // The same counts, exchanged.
    two_counters: inputs(5), Splits(0.10),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (0u64, 0u64);
            let mut y = S::from(1.0);
            for &v in x {
                if v > 0.7 { a += 1; } else if v < -0.7 { b += 1; } else { y = y + v; }
            }
            if a > b { y * 2.0 } else if a == b { y.sin() } else { y - x[0] * b as f64 }
        }
    }
    counter_wraps: inputs(8), Splits(0.10),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 250u8;
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.0 { n = n.wrapping_add(3); }
                if n < 100 { y = y + v; } else { y = y - v * 0.5; }
            }
            y
        }
    }
    wide_counter: inputs(4), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 1u128;
            let mut y = S::from(0.25);
            for &v in x {
                if v > 0.0 { n <<= 40; }
                y = y * v + 1.0;
            }
            if n > 1 << 70 { y.sin() } else if n == 1 << 40 { -y } else { y }
        }
    }
    // An automaton that only looks at the outcomes of comparisons.
    automaton: inputs(7), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut state = 1u32;
            let mut y = S::from(0.0);
            for &v in x {
                state = (state * 3 + u32::from(v > 0.0)) % 5;
                match state {
                    0 => y = y + v,
                    1 => y = y - v * v,
                    4 => break,
                    _ => y = y * 0.5,
                }
            }
            y + f64::from(state)
        }
    }
    counter_in_tuple: inputs(5), Splits(0.75),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut pair = (S::from(0.0), 0usize);
            for &v in x {
                if v > 0.0 { pair.0 = pair.0 + v; pair.1 += 1; } else { pair = (pair.0 - v, pair.1); }
            }
            pair.0 * x[pair.1 % x.len()]
        }
    }
    text_as_state: inputs(4), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut word = String::new();
            let mut y = S::from(0.0);
            for &v in x {
                if v > 0.0 { word.push('p'); } else { word.push('n'); }
                y = y + v;
            }
            match word.as_str() {
                "pppp" => y.sin(),
                "pnpn" => y * y,
                w if w.starts_with("np") => -y,
                _ => y,
            }
        }
    }
    option_as_state: inputs(5), Merges(0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut first: Option<usize> = None;
            let mut y = S::from(0.0);
            for (i, &v) in x.iter().enumerate() {
                if v > 1.0 && first.is_none() { first = Some(i); }
                y = y + v.sin();
            }
            match first { Some(i) => x[i] * y, None => y * 3.0 }
        }
    }
    // Read from the trace on one path, and decides without a guard later.
    outcome_as_number: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let sign = if x[0] > x[1] { 1.0 } else { -1.0 };
            let other = f64::from(x[2] > 0.0) - 0.5;
            let y = if x[3] > 0.0 { x[3] * sign } else { x[2] };
            y * other + x[0] * sign
        }
    }
}
