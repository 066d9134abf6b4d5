//! Ordinary Rust: functions with macros and items inside.

ordinary! {
    break_in_a_macro: inputs(3),
    plain {
        macro_rules! leave_if {
            ($condition:expr) => {
                if $condition {
                    break;
                }
            };
        }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            let mut count = 0;
            for y in v.iter_mut() {
                leave_if!(*y > 1.0);
                *y *= 2.0;
                count += 1;
            }
            for (i, y) in v.iter_mut().enumerate() {
                if i > 0 {
                    leave_if!(*y < 0.0);
                }
                if *y > 0.5 {
                    *y += 1.0;
                    continue;
                }
                *y -= 1.0;
            }
            v[0] * v[1] + v[2] * count as f64
        }
    }
    break_in_an_own_macro: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            macro_rules! stop {
                ($y:ident) => {
                    if *$y > 1.0 {
                        break;
                    } else if *$y < -1.5 {
                        continue;
                    }
                };
            }
            let mut v = x.to_vec();
            for y in v.iter_mut() {
                stop!(y);
                *y = y.sin();
            }
            for y in &mut v {
                if *y > 0.0 {
                    stop!(y);
                } else {
                    *y = *y * *y;
                }
            }
            'outer: for i in 0..2 {
                for y in v.iter_mut().skip(i) {
                    if *y > 0.9 {
                        break 'outer;
                    }
                    stop!(y);
                    *y += 0.25;
                }
            }
            v[0] + v[1] * v[2]
        }
    }
    break_in_an_expression: inputs(3),
    plain {
        macro_rules! some_or_break {
            ($option:expr) => {
                match $option {
                    Some(value) => value,
                    None => break,
                }
            };
        }
        macro_rules! positive_or {
            ($value:expr, $jump:expr) => {
                if $value > 0.0 { $value } else { $jump }
            };
        }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            let others = [x[1], x[2]];
            let mut others = others.iter();
            for y in v.iter_mut() {
                let other = some_or_break!(others.next());
                *y += positive_or!(*other, continue);
                *y *= 1.5;
            }
            for y in v.iter_mut() {
                *y = positive_or!(*y, break) + 1.0;
            }
            let total = loop {
                let a = positive_or!(v[0] - x[0], break x[1]);
                break a + x[2];
            };
            total * v[2] + v[1]
        }
    }
    macro_that_returns: inputs(3),
    plain {
        macro_rules! bail {
            ($value:expr) => {
                return $value
            };
        }
        macro_rules! check {
            ($condition:expr, $value:expr) => {
                if !$condition {
                    return Err($value);
                }
            };
        }
    }
    traced {
        fn checked(x: &[Var]) -> Result<Var, usize> {
            let mut sum = Var::from(0.0);
            for (i, &v) in x.iter().enumerate() {
                check!(v < 1.5, i);
                sum += v;
            }
            check!(sum > -2.0, x.len());
            Ok(sum)
        }
        pub fn run(x: &[Var]) -> Var {
            let scale;
            match checked(x) {
                Ok(sum) if sum > 1.0 => bail!(sum * x[0]),
                Ok(sum) => scale = sum,
                Err(3) => bail!(x[1]),
                Err(i) => {
                    if x[i] > 1.8 {
                        bail!(x[2]);
                    }
                    scale = x[i] * 2.0;
                }
            }
            scale * x[1]
        }
    }
    items_inside: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            const LIMIT: f64 = 0.5;
            static STEPS: [f64; 3] = [1.0, 0.5, 0.25];
            use std::collections::BTreeMap;
            #[derive(Clone, Copy, PartialEq)]
            enum Side {
                Left,
                Right,
            }
            struct Wall {
                side: Side,
                at: f64,
            }
            impl Wall {
                fn push(&self, v: Var) -> Var {
                    match self.side {
                        Side::Left if v < self.at => v + 1.0,
                        Side::Right if v > self.at => v - 1.0,
                        Side::Left | Side::Right => v,
                    }
                }
            }
            fn helper(v: Var) -> Var {
                if v > LIMIT { v * v } else { v }
            }
            type Pairs = BTreeMap<usize, Var>;
            let mut pairs = Pairs::new();
            for (i, (&v, step)) in x.iter().zip(STEPS).enumerate() {
                let side = if v > 0.0 { Side::Right } else { Side::Left };
                let wall = Wall { side, at: step };
                let pushed = wall.push(helper(v));
                if wall.side == Side::Left {
                    pairs.insert(i, pushed);
                }
            }
            let mut sum = x[0];
            for (i, v) in &pairs {
                sum += *v * (*i as f64 + 1.0);
            }
            sum
        }
    }
    attributes_inside: inputs(2),
    traced {
        /// Has a text.
        #[inline]
        #[must_use]
        #[allow(clippy::needless_return)]
        pub(crate) fn helper(x: Var, #[allow(unused_variables)] spare: f64) -> Var {
            #[cfg(any())]
            {
                return x * 1000.0;
            }
            #[cfg(not(any()))]
            let y = x * 2.0;
            #[allow(clippy::if_same_then_else)]
            if y > 1.0 {
                return y;
            } else if y < -1.0 {
                return y;
            }
            #[rustfmt::skip]
            let z = match y > 0.0 {
                #[cfg(any())]
                true => 5.0,
                #[cfg(not(any()))]
                true => 1.0,
                false => -1.0,
            };
            #[cfg(any())]
            let z = 100.0;
            y * z
        }
        pub fn run(x: &[Var]) -> Var {
            #[allow(unused_mut)]
            let mut v = vec![
                helper(x[0], 0.0),
                #[cfg(any())]
                helper(x[1], 1.0),
            ];
            #[cfg(any())]
            for y in v.iter_mut() {
                *y += 1.0;
            }
            #[allow(clippy::needless_range_loop)]
            for i in 0..v.len() {
                if v[i] > 0.5 {
                    return v[i] * x[1];
                }
            }
            v[0] + x[1]
        }
    }
    formats_and_asserts: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            use std::fmt::Write as _;
            let mut text = String::new();
            let mut sum = x[0];
            for i in 0..3 {
                if x[i] > 0.0 {
                    write!(text, "{i}-").unwrap_or_default();
                    sum += x[i];
                } else {
                    text.push_str(&format!("{:>width$}", i, width = i + 1));
                }
                assert!(text.len() < 20, "{text} is too long at {i}");
                debug_assert_ne!(i, 5, "{}", text);
            }
            let name = match text.as_str() {
                "0-1-2-" => "all",
                t if t.starts_with("0-") => "first",
                t if t.contains(' ') => "space",
                _ => "other",
            };
            sum * name.len() as f64 + if matches!(name, "all" | "other") { x[1] } else { x[2] }
        }
    }
    macro_that_assigns: inputs(3),
    plain {
        macro_rules! set {
            ($place:ident = $value:expr) => {
                $place = $value
            };
        }
    }
    traced {
        fn double(x: Var) -> Var {
            x * 2.0
        }
        pub fn run(x: &[Var]) -> Var {
            let y;
            let mut z;
            if x[0] > 0.0 {
                set!(y = double(x[1]));
                z = y;
                z += 1.0;
            } else {
                y = double(x[2]);
                set!(z = y * x[0]);
            }
            if y > z {
                set!(z = y);
            }
            z * y
        }
    }
}
