//! Ordinary Rust: forms that are rarer.

ordinary! {
    never_and_units: inputs(2),
    traced {
        fn unit(x: Var, out: &mut Vec<Var>) {
            if x > 0.0 {
                return out.push(x);
            }
            match x < -1.0 {
                true => (),
                false => out.push(-x),
            };
        }
        fn stop(x: Var) -> ! {
            panic!("{}", x.value())
        }
        pub fn run(x: &[Var]) -> Var {
            let mut out = vec![];
            unit(x[0], &mut out);
            unit(x[1], &mut out);
            let () = if out.len() > 5 { stop(x[0]) };
            let v: Var = match out.first() {
                Some(v) => *v,
                None if x[0] > 100.0 => stop(x[1]),
                None => return x[0],
            };
            v * out.len() as f64
        }
    }
    values_of_loops: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut i = 0;
            let a = loop {
                i += 1;
                let b = loop {
                    if x[i - 1] > 0.0 {
                        break x[i - 1];
                    }
                    break -x[i - 1] * 0.5;
                };
                if b > 0.75 || i == 3 {
                    break b * i as f64;
                }
            };
            let [p, q] = loop {
                break [a, x[0]];
            };
            let r = { loop { if p > q { break p } else { break q } } };
            let s = if let 1..=2 = i { while i < 2 { i += 1; } p } else { r };
            s + r
        }
    }
    assignments_as_expressions: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let (mut a, mut b, mut c) = (x[0], x[1], 0);
            if x[2] > 0.0 { a = b } else { b = a };
            match c { 0 if a > 1.0 => c += 1, 0 => c = 5, _ => unreachable!() }
            [a, b] = [b + 1.0, a * 2.0];
            (a, _) = (a * b, 3);
            (c, ..) = (c + 1, 2, 3);
            let v = &mut [a, b, x[2]][..];
            let [first, .., last] = v else { return a };
            if *first > *last { *last += *first; }
            for v in v.iter_mut() { *v = if *v > 1.0 { *v * 0.5 } else { *v } }
            v[0] + v[1] * v[2] * c as f64
        }
    }
    nested_functions_and_blocks: inputs(2),
    traced {
        pub fn run(x: &[Var]) -> Var {
            fn inner(x: Var) -> Var {
                for i in 0..3 {
                    if x > i as f64 {
                        continue;
                    }
                    return x + i as f64;
                }
                x
            }
            let f = |v: Var| -> Var {
                let mut v = v;
                while v > 1.0 && v < 100.0 {
                    v *= 0.5;
                    if v < 0.75 { return v }
                }
                v
            };
            let g = |v: Option<Var>| -> Option<Var> { let v = v?; if v > 0.0 { Some(f(v)) } else { None } };
            let a = { let t = inner(x[0]); if t > 0.0 { f(t) } else { t } };
            let b = const { 2.0 + 1.0 } * x[1];
            a * b + g(Some(x[1])).or_else(|| g(Some(x[0]))).unwrap_or(b)
        }
    }
    conditions_of_all_kinds: inputs(4),
    traced {
        fn is_big(x: Var) -> bool {
            x > 1.0 && { let y = x * 0.5; y < 0.9 } || x < -1.5
        }
        pub fn run(x: &[Var]) -> Var {
            let mut i = 0;
            let mut sum = Var::from(0.0);
            while { sum += x[i] * 0.5; i += 1; i < x.len() && !is_big(sum) } {
                if !(x[i] > 0.0) ^ (sum < 0.5) & (i != 2) | is_big(x[i]) {
                    sum -= 0.25;
                }
            }
            if if x[0] > x[1] { x[2] > 0.0 } else { x[3] > 0.0 } { sum *= 2.0 }
            if match i { 1 => x[0] > 0.5, 2 | 3 => true, _ => false } { sum += x[1] }
            if let (true, v, _) | (false, _, v @ 0..=2) = (x[0] > 0.0, i, i + 1) { sum += v as f64 }
            if matches!(x.get(i), Some(v) if *v > 0.0) || i == 4 && sum > 0.0 { sum } else { -sum }
        }
    }
    struct_parts: inputs(3),
    plain {
        #[derive(Clone, Debug, Default, Carry)]
        struct Body {
            at: [Var; 2],
            speed: (Var, Var),
            tag: Tag,
        }
        #[derive(Clone, Debug, Default, PartialEq, Carry)]
        enum Tag {
            #[default]
            Free,
            Held { by: usize },
            Lost(String),
        }
    }
    traced {
        fn advance(Body { at, speed: (u, v), tag, .. }: &mut Body, x: &[Var]) {
            at[0] += *u;
            at[1] += *v;
            *tag = match std::mem::take(tag) {
                Tag::Free if at[0] > 1.0 => Tag::Held { by: 1 },
                Tag::Free => Tag::Free,
                Tag::Held { by: n @ 0..2 } => Tag::Held { by: n + 1 },
                Tag::Held { by } => Tag::Lost(by.to_string()),
                lost @ Tag::Lost(_) => lost,
            };
            if let Tag::Held { by } = tag {
                *u = x[*by % x.len()];
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let base = Body { at: [x[0], x[1]], speed: (x[2], x[0]), ..Default::default() };
            let mut bodies = vec![base.clone(), Body { at: [x[1]; 2], ..base }];
            for _ in 0..3 {
                for body in &mut bodies {
                    advance(body, x);
                }
                bodies.retain(|b| b.tag != Tag::Free || b.at[0] > -2.0);
            }
            let mut sum = x[0];
            for Body { at: [a, b], tag, .. } in bodies {
                sum += match tag {
                    Tag::Lost(text) => a * text.len() as f64,
                    _ => a - b,
                };
            }
            sum
        }
    }
    two_regions_in_one_line: inputs(3),
    traced {
        fn max(a: Var, b: Var) -> Var { if a > b { a } else { b } }
        fn min(a: Var, b: Var) -> Var { match a < b { true => a, false => b } }
        pub fn run(x: &[Var]) -> Var {
            let a = max(if x[0] > 0.0 { x[1] } else { x[2] }, match x[1] > 0.0 { true => x[0], _ => x[2] });
            let b = [min(x[0], x[1]), if a > 1.0 { a } else { -a }][usize::from(x[2] > 0.0)];
            let c = (if a > b { 1.0 } else { 2.0 }) * (if b > 0.0 { x[0] } else { x[1] });
            a + b * c + x[if x[0] > x[1] { 0 } else { 1 }]
        }
    }
    raw_names: inputs(2),
    traced {
        fn r#loop(r#type: Var, r#match: &mut Var) -> Var {
            let mut r#if = r#type;
            'r#for: while r#if > 0.25 && r#if < 100.0 {
                r#if *= 0.5;
                *r#match += r#if;
                if *r#match > 2.0 { break 'r#for }
            }
            r#if
        }
        pub fn run(x: &[Var]) -> Var {
            let mut größe = x[1];
            let _unused @ wert = r#loop(x[0], &mut größe);
            if größe > wert { größe } else { wert * größe }
        }
    }
    results_through_boxes: inputs(3),
    plain {
        use std::error::Error;
        use std::fmt;
        #[derive(Debug)]
        struct TooBig(f64);
        impl fmt::Display for TooBig {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{} is too big", self.0) }
        }
        impl Error for TooBig {}
    }
    traced {
        fn parse(text: &str, x: Var) -> Result<Var, Box<dyn Error + Send + Sync>> {
            let n: f64 = text.trim().parse()?;
            if x > n {
                return Err(Box::new(TooBig(n)));
            }
            let parts = text.split('.').map(|part| part.trim().parse::<u32>()).collect::<Result<Vec<_>, _>>()?;
            if x < -1.0 { Err("too small")? }
            Ok(x * parts[0] as f64)
        }
        pub fn run(x: &[Var]) -> Var {
            let mut sum = Var::from(0.0);
            for (text, v) in ["1.5", " 2", "x"].iter().zip(x) {
                match parse(text, *v) {
                    Ok(v) => sum += v,
                    Err(error) if error.is::<TooBig>() => sum -= 1.0,
                    Err(error) => sum += *v * error.to_string().len() as f64,
                }
            }
            sum
        }
    }
    control_flow_values: inputs(3),
    plain {
        use std::ops::ControlFlow::{self, Break, Continue};
    }
    traced {
        fn step(sum: Var, v: &Var) -> ControlFlow<Var, Var> {
            let next = sum + *v;
            if next > 1.5 { Break(next) } else { Continue(next * 0.5) }
        }
        fn pairs(x: &[Var]) -> ControlFlow<(usize, Var)> {
            for (i, v) in x.iter().enumerate() {
                if let Break(b) = step(x[0], v) {
                    Break((i, b))?
                }
            }
            Continue(())
        }
        pub fn run(x: &[Var]) -> Var {
            let folded = match x.iter().try_fold(Var::from(0.1), step) {
                Break(v) => v * 2.0,
                Continue(v) => v,
            };
            if let Break((i, b)) = pairs(x) { folded * b + i as f64 } else { folded }
        }
    }
}
