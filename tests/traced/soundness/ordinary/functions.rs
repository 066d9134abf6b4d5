//! Ordinary Rust: functions and errors. `?`, closures, inner items, patterns,
//! attributes on statements, and macros of the user.

ordinary! {
    results: inputs(3),
    plain {
        #[derive(Debug)]
        enum Failure { Negative(usize), TooLarge { by: f64 }, Text(String) }
        impl From<String> for Failure { fn from(s: String) -> Self { Failure::Text(s) } }
        impl std::fmt::Display for Failure {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    Failure::Negative(i) => write!(f, "negative at {i}"),
                    Failure::TooLarge { by } => write!(f, "too large by {by}"),
                    Failure::Text(s) => f.write_str(s),
                }
            }
        }
        impl std::error::Error for Failure {}
    }
    traced {
        fn root(v: Var) -> Result<Var, String> {
            if v < 0.0 { Err(format!("root of {:?}", v))? }
            Ok(v.sqrt())
        }
        fn check(x: &[Var]) -> Result<Var, Failure> {
            let mut y = Var::from(0.0);
            for (i, v) in x.iter().enumerate() {
                if *v < -1.5 { return Err(Failure::Negative(i))?; }
                if *v > 1.5 { return Err(Failure::TooLarge { by: 0.5 }); }
                y += root(v.abs() - 0.1)?;
            }
            Ok(y)
        }
        fn boxed(x: &[Var]) -> Result<Var, Box<dyn std::error::Error>> {
            let y = check(x)?;
            let n: i32 = "12".parse()?;
            if y > 2.0 { return Err("large".into()); }
            Ok(y * n as f64)
        }
        pub fn run(x: &[Var]) -> Var {
            match boxed(x) {
                Ok(y) => y,
                Err(e) if e.to_string().starts_with("large") => x[0],
                Err(e) => match e.downcast::<Failure>().map(|f| *f) {
                    Ok(Failure::Negative(i)) => x[i] * 2.0,
                    Ok(Failure::TooLarge { by }) => x[1] * by,
                    Ok(Failure::Text(t)) => x[2] * t.len().min(1) as f64,
                    Err(_) => x[2],
                },
            }
        }
    }
    chained_results: inputs(3),
    traced {
        fn half(v: Var) -> Option<Var> { if v > -1.0 { Some(v * 0.5) } else { None } }
        fn all(x: &[Var]) -> Option<Var> {
            let v: Vec<Var> = x.iter().map(|v| half(*v)).collect::<Option<_>>()?;
            let first = v.first()?;
            let best = v.iter().copied().max_by(|a, b| a.partial_cmp(b).unwrap())?;
            Some(half(*first)? + half(best).or_else(|| half(x[2]))?)
        }
        pub fn run(x: &[Var]) -> Var {
            let a = all(x).unwrap_or_else(|| x[0] * x[1]);
            let b = half(x[1]).map_or(Var::from(2.0), |v| v * v);
            let c = half(x[2]).ok_or("none").and_then(|v| if v > 0.0 { Ok(v) } else { Err("neg") });
            match c {
                Ok(c) => a + b * c,
                Err("none") => a,
                Err(_) => b,
            }
        }
    }
    iterator_chains: inputs(5),
    traced {
        fn check(v: &Var) -> Result<Var, usize> { if *v > 1.8 { Err(3) } else { Ok(*v) } }
        fn sum(x: &[Var]) -> Result<Var, usize> {
            let v = x.iter().map(check).collect::<Result<Vec<_>, _>>()?;
            let mut y = Var::from(0.0);
            for a in v.iter().filter(|a| **a > 0.0).map(|a| *a * 2.0) { if a > y { y = a; } }
            Ok(y)
        }
        pub fn run(x: &[Var]) -> Var {
            let y = sum(x).unwrap_or_else(|n| x[n]);
            let product: Var = x.iter().filter(|v| **v > 0.5).copied().product();
            let small = x.iter().copied().min_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Less));
            let folded = x.iter().fold(Var::from(0.0), |acc, v| if *v > acc { *v } else { acc + *v * 0.1 });
            let n = x.iter().scan(Var::from(0.0), |s, v| { *s += *v; Some(*s) }).filter(|s| *s > 0.0).count();
            if n > 2 { y * product } else { folded + small.unwrap() }
        }
    }
    closures: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut count = 0;
            let mut total = Var::from(0.0);
            let mut add = |v: Var| { count += 1; if v > 0.0 { total += v; } };
            for v in x { if *v > -1.0 { add(*v); } }
            add(x[0]);
            let scale = |v: Var| -> Var {
                if v > 1.0 { return v; }
                for k in 0..3 { if v > k as f64 { break; } if k == 2 { return -v; } }
                v * 2.0
            };
            let table: [fn(Var) -> Var; 2] = [Var::sin, |v| v * v];
            let y = if x[1] > 0.0 { scale(x[1]) } else { table[1](x[2]) };
            let mut hist = vec![];
            let mut push = |v| hist.push(v);
            if y > 0.5 { push(y); }
            push(x[2]);
            total * count as f64 + table[0](y) + hist[0]
        }
    }
    inner_items: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            use std::f64::consts::PI as PI2;
            const LIMIT: f64 = 0.5;
            static NAMES: [&str; 2] = ["a", "bb"];
            struct Pair { a: Var, b: Var }
            impl Pair { fn sum(&self) -> Var { if self.a > LIMIT { self.a } else { self.a + self.b } } }
            enum Kind { Low, High }
            use Kind::*;
            fn kind(v: Var) -> Kind { if v > LIMIT { High } else { Low } }
            type Number = Var;
            /// A doc comment inside.
            fn inner(v: Number) -> Number { if v > 0.0 { return v * PI2; } v }
            let p = Pair { a: x[0], b: x[1] };
            let y = match kind(x[2]) {
                Low => p.sum() * NAMES[0].len() as f64,
                High => inner(p.sum()),
            };
            {
                fn inner(v: Var) -> Var { v + 1.0 }
                if y > LIMIT { inner(y) } else { y }
            }
        }
    }
    attributes: inputs(3),
    traced {
        /// Docs of a function.
        #[inline]
        #[must_use]
        pub fn run(x: &[Var]) -> Var {
            #[allow(unused_variables)]
            let unused = 5;
            #[cfg(any())]
            let y = not_there();
            #[cfg(not(any()))]
            let mut y = x[0];
            #[allow(clippy::collapsible_if)]
            if x[1] > 0.0 { if x[2] > 0.0 { y += x[1]; } }
            #[cfg(any())]
            { y = nonsense; }
            #[rustfmt::skip]
            let k = if x[2] > 1.0 { 2.0 } else { 3.0 };
            for v in x { if *v > 0.5 { y += *v; } }
            match x[1] > x[2] {
                #[cfg(any())]
                true => nothing(),
                #[allow(clippy::needless_return)]
                true => { return y; }
                #[cfg(not(any()))]
                false => y *= 2.0,
            }
            #[allow(clippy::let_and_return)]
            let z = { y + k };
            #[cfg(any())]
            if x[0] > 0.0 { return nothing(); }
            #[cfg(any())]
            for q in nothing() { break; }
            #[cfg(any())]
            while nothing() { continue; }
            #[allow(unused_labels)]
            'a: while y > 100.0 { y = -y; }
            // A comment.
            /* Another. */
            z
        }
    }
    own_macros: inputs(3),
    plain {
        macro_rules! square { ($e:expr) => { { let t = $e; t * t } } }
        macro_rules! either { ($c:expr, $a:expr, $b:expr) => { if $c { $a } else { $b } } }
        macro_rules! bump { ($v:ident, $by:expr) => { $v += $by; } }
        macro_rules! small { () => { 0 | 1 } }
        macro_rules! declare { ($n:ident = $e:expr) => { let $n = $e; } }
        macro_rules! ensure { ($c:expr, $e:expr) => { if !$c { return Err($e); } } }
        macro_rules! number { () => { f64 } }
    }
    traced {
        fn checked(v: Var) -> Result<Var, i32> {
            ensure!(v < 1.5, 7);
            ensure!(v > -1.5, -7);
            Ok(v)
        }
        pub fn run(x: &[Var]) -> Var {
            let mut y = square!(x[0]);
            let k: number!() = 2.0;
            declare!(w = x[1] * k);
            if w > y { bump!(y, w); }
            let n = x.iter().filter(|v| **v > 0.0).count();
            match n { small!() => y += 1.0, _ => y -= 1.0 }
            y = either!(y > 0.0, y, -y);
            let e = either!(x[2] > 0.0, 1, 2);
            let v = vec![x[0], x[1], ];
            let parts = vec![y; e];
            if matches!(checked(x[2]), Ok(a) if a > 0.0) { y += v[0]; }
            match checked(x[1]) { Ok(a) => y + a, Err(c) => y * c as f64 + parts[0] }
        }
    }
    printing: inputs(2),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut log = String::new();
            let mut y = x[0];
            for (step, v) in x.iter().enumerate() {
                if *v > 0.0 {
                    log += &format!("{step}: up {:>8.3}; ", v.value().signum());
                    y += *v;
                } else {
                    use std::fmt::Write;
                    let _ = write!(log, "{}: down; ", step);
                    y -= 0.5;
                }
                if log.len() > 1000 { eprintln!("{log}"); }
            }
            if log.contains("up") { y * 2.0 } else { y }
        }
    }
    reference_patterns: inputs(4),
    plain {
        #[derive(Carry)]
        struct Pair { a: Var, b: (Var, u8) }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut p = Pair { a: x[0], b: (x[1], 0) };
            let Pair { ref mut a, b: (ref mut b, ref mut n) } = p;
            if *a > *b { std::mem::swap(a, b); *n += 1; }
            if *b > 1.0 { *b *= 0.5; }
            let mut o = Some(x[2]);
            if let Some(ref mut v) = o { *v += 1.0; if *v > 2.0 { *v = x[3]; } }
            match o { Some(ref v) if *v > 0.0 => p.a += *v, Some(ref mut v) => *v -= 1.0, None => {} }
            match &mut p { Pair { a, b: (b, 0) } => { *a += *b; } Pair { a, .. } => *a -= 1.0 }
            let &[first, ref rest @ ..] = x else { return p.a };
            let mut both = (first, [p.a, p.b.0]);
            let (u, [v, w]) = &mut both;
            for r in rest { if r > u { *v += *r; } else { *w -= *r; } }
            both.1[0] * both.1[1] + o.unwrap_or_default()
        }
    }
    shadowing: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y = x[0];
            let y = if y > 0.0 { let y = y * 2.0; y + 1.0 } else { y };
            let x: Vec<Var> = x.iter().map(|x| *x + y).collect();
            let mut y = Some(y);
            for x in &x {
                let Some(old) = y else { break };
                let x = if *x > 1.0 { *x } else { old };
                y = if x > 3.0 { None } else { Some(x) };
            }
            let x = match y { Some(y) => y, None => { let x = x[1]; x * 2.0 } };
            x
        }
    }
    mut_parameters: inputs(3),
    traced {
        fn step(mut v: Var, (mut lo, hi): (f64, f64), &[a, ref b]: &[Var; 2]) -> Var {
            while v > hi && lo < 4.0 { v -= 1.0; lo += 1.0; }
            if v < *b { v += a; }
            v + lo
        }
        fn fill(out: &mut [Var], x: &[Var], _: usize) -> usize {
            let mut n = 0;
            for (o, v) in out.iter_mut().zip(x) {
                if *v < 0.0 { continue; }
                *o = *v;
                n += 1;
            }
            n
        }
        fn inc(n: &mut usize, y: &mut Var, v: Var) -> bool {
            if v > *y { *n += 1; *y = v; return true; }
            false
        }
        pub fn run(x: &[Var]) -> Var {
            let mut out = [Var::from(1.0); 3];
            let mut n = fill(&mut out, x, 0);
            let mut y = step(x[0], (0.0, 0.5), &[x[1], x[2]]);
            for v in out { if inc(&mut n, &mut y, v) { y += 0.25; } }
            y * n as f64
        }
    }
    integers: inputs(4),
    traced {
        fn digits(mut n: u64) -> u32 {
            let mut sum = 0u32;
            while n > 0 { sum = sum.wrapping_add((n % 10) as u32); n /= 10; }
            sum
        }
        pub fn run(x: &[Var]) -> Var {
            let mut bits: u8 = 0;
            for (i, v) in x.iter().enumerate() { if *v > 0.0 { bits |= 1 << i; } }
            let ones = bits.count_ones() as usize;
            let letter = if bits & 1 != 0 { 'a' } else { 'z' };
            let signed = -(bits as i64) + 3;
            let y = match (ones, letter, signed) {
                (0, ..) => x[0],
                (_, 'a', s) if s < 0 => x[1] * s as f64,
                (1 | 2, c, _) if c.is_alphabetic() => x[2],
                (_, _, i64::MIN..=-1) => x[3],
                (k, _, _) => x[3] * k as f64,
            };
            y + f64::from(digits(u64::from(bits) * 37))
        }
    }
}
