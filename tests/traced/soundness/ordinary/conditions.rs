//! Ordinary Rust: conditions. `if let`, chains of `let`, `let` with `else`, and
//! variables that get their value later.

ordinary! {
    let_else: inputs(3),
    traced {
        fn first_over(x: &[Var], limit: f64) -> Option<(usize, Var)> {
            for (i, &v) in x.iter().enumerate() {
                if v > limit {
                    return Some((i, v));
                }
            }
            None
        }
        pub fn run(x: &[Var]) -> Var {
            let Some((i, v)) = first_over(x, 0.5) else {
                return x[0] * x[1];
            };
            let [a, .., c] = x else { unreachable!() };
            if i == 0 { v * *a } else { v + *c }
        }
    }
    let_chain: inputs(3),
    traced {
        fn pick(x: &[Var], i: usize) -> Option<Var> {
            x.get(i).copied()
        }
        pub fn run(x: &[Var]) -> Var {
            if let Some(a) = pick(x, 0) && a > 0.0 && let Some(b) = pick(x, 1) && b < a {
                a * b
            } else if let Some(c) = x.last() && (*c > 1.0 || x[1] > 1.5) {
                x[2].sin()
            } else {
                x[0] - x[1]
            }
        }
    }
    deferred_in_loop: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y;
            let mut i = 0;
            loop {
                if x[i] > 0.0 || i == 2 {
                    y = x[i] * 2.0;
                    break;
                }
                i += 1;
            }
            y + x[0]
        }
    }
    deferred_in_branches: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y;
            if x[0] > x[1] {
                y = x[0] * x[1];
            } else if x[1] > 1.0 {
                y = x[1].exp();
            } else {
                y = x[2];
            }
            let (a, b);
            match x[2] > 0.0 {
                true => (a, b) = (y, 1.0),
                false => {
                    a = -y;
                    b = 2.0;
                }
            }
            a * b
        }
    }
    deferred_with_return: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let scale: Var;
            let shift: f64;
            if x[0] > 1.0 {
                return x[1] * 3.0;
            } else if x[0] > 0.0 {
                scale = x[1];
                shift = 0.25;
            } else {
                if x[2] < -1.0 {
                    return x[2];
                }
                scale = x[2] + x[0];
                shift = -0.5;
            }
            scale * scale + shift
        }
    }
    deferred_in_while: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut i = 0;
            let found;
            while i < x.len() && x[i] < 0.5 {
                i += 1;
            }
            if i < x.len() {
                found = x[i];
            } else {
                found = Var::from(1.0);
            }
            let best;
            'search: {
                for v in x {
                    if *v > 1.0 {
                        best = *v;
                        break 'search;
                    }
                }
                best = x[3] * x[3];
            }
            found * best
        }
    }
    deferred_in_inner_loop: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut sum = Var::from(0.0);
            for i in 0..x.len() {
                let term;
                let mut k = i;
                loop {
                    if x[k] > 0.0 {
                        if x[i] > 1.0 {
                            term = x[k] * x[i];
                            break;
                        }
                        k += 1;
                        if k < x.len() {
                            continue;
                        }
                    }
                    term = x[i].abs();
                    break;
                }
                sum += term;
            }
            sum
        }
    }
    deferred_vec: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let steps: Vec<Var>;
            let name;
            if x[0] > 0.0 {
                steps = x.iter().map(|v| *v * 2.0).collect();
                name = "up".to_string();
            } else {
                steps = vec![x[1]; 2];
                name = String::from("down");
            }
            let mut y = Var::from(name.len() as f64);
            for s in steps {
                if s > 0.5 {
                    y += s;
                }
            }
            y
        }
    }
    deferred_mut: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y;
            if x[0] > 0.0 {
                y = x[0];
                y *= x[1];
            } else {
                y = x[2];
            }
            if x[1] > 0.5 {
                y += 1.0;
            }
            y
        }
    }
    if_let_else: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let m = x.iter().copied().reduce(|a, b| if a > b { a } else { b });
            let low = if let Some(m) = m { m } else { return Var::from(0.0) };
            let t = match x.iter().position(|v| *v < 0.0) {
                Some(0) => low * 2.0,
                Some(i @ 1..=5) => low + x[i],
                Some(_) => unreachable!("at most three"),
                None => low,
            };
            if t > 2.0 { t } else { t * t }
        }
    }
    guards_with_bindings: inputs(3),
    traced {
        fn bucket(v: Var) -> usize {
            let mut n = 0;
            while n < 6 && v > n as f64 * 0.5 - 1.5 {
                n += 1;
            }
            n
        }
        pub fn run(x: &[Var]) -> Var {
            let mut y = Var::from(0.0);
            for v in x.iter() {
                y += match (bucket(*v), *v) {
                    (0, _) => Var::from(-1.0),
                    (n @ 1..=3, v) if v < y => v * n as f64,
                    (n @ (4 | 5), w) if n == 4 || w > 1.2 => w.sqrt(),
                    (_, w) => w + 0.5,
                };
            }
            y
        }
    }
    matches_in_conditions: inputs(3),
    plain {
        #[derive(Clone, Copy, PartialEq, Debug)]
        enum Side { Long, Short, Flat }
    }
    traced {
        fn side(v: Var) -> Side {
            if v > 0.5 { Side::Long } else if v < -0.5 { Side::Short } else { Side::Flat }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut pnl = Var::from(0.0);
            let mut last = Side::Flat;
            for w in x.windows(2) {
                let now = side(w[0]);
                if matches!(now, Side::Long | Side::Short) && now != last {
                    pnl -= 0.01;
                }
                pnl += match now {
                    Side::Long => w[1] - w[0],
                    Side::Short => w[0] - w[1],
                    Side::Flat if matches!(last, Side::Long) => w[1] * 0.1,
                    Side::Flat => Var::from(0.0),
                };
                last = now;
            }
            pnl
        }
    }
    nested_conditions: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y = if x[0] > 0.0 {
                let t = if x[1] > 0.0 { x[1] } else { -x[1] };
                t + 1.0
            } else {
                match x[2] > x[3] {
                    true if x[2] > 1.0 => x[2],
                    true => { let z = x[3]; z * z }
                    false => x[0],
                }
            };
            let z = { let y = y * 2.0; if y > 1.0 { y } else { y.exp() } };
            !(x[0] > 0.0 && !(x[1] < z)) as i32 as f64 * z + y
        }
    }
    unit_conditions: inputs(2),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = x[0];
            if y > 0.0 { y = -y };
            if x[1] > 0.0 { y += x[1] } else { y -= 1.0 }
            let () = if x[0] > 1.0 { y *= 2.0 };
            match x[1] > 0.5 { true => y += 0.5, _ => () }
            let _ = if y > 0.0 { 1 } else { 2 };
            #[allow(clippy::needless_return)]
            return if y > 1.0 { y } else { x[1] * y };
        }
    }
    diverging_arms: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let n = if x[0] > 0.0 { 1 } else if x[1] > 0.0 { 2 } else { 3 };
            let y = match n {
                1 => x[0],
                2 => x[1].exp(),
                3 => return x[2],
                _ => panic!("no such case: {n}"),
            };
            assert!(n < 3, "n is {n}");
            debug_assert!(y.value().is_finite() || y.value().is_nan() || y.value() > 0.0, "{y:?}");
            let k: usize = match n {
                1 => 4,
                2 => 5,
                _ => unreachable!(),
            };
            y * k as f64
        }
    }
    bool_logic: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let up = x[0] > 0.0;
            let wide = (x[1] - x[2]).abs() > 1.0;
            let both = up && wide || !up && x[3] > 0.0;
            let odd = up ^ wide;
            let mut flags = [up, wide, both];
            flags[0] &= x[3] < 1.0;
            flags[1] |= odd;
            let n = flags.iter().filter(|f| **f).count();
            let mut y = x[0] * n as f64;
            if both && flags[0] || odd && !flags[1] {
                y += x[1];
            }
            y
        }
    }
}
