//! Ordinary Rust: variables without a value at first, or no more; values of blocks,
//! and jumps out of odd places.

ordinary! {
    deferred_twice: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y;
            if x[0] > 0.0 { y = x[0]; if y > 1.0 { return y; } }
            if x[1] > 0.0 { y = x[1]; } else { y = x[2]; }
            if y > 0.5 { y *= 2.0; }
            y
        }
    }
    deferred_typed_pair: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let (a, (b, c)): (Var, (usize, Option<Var>));
            let [d, e]: [Var; 2];
            if x[0] > 0.0 {
                (a, (b, c)) = (x[0], (1, None));
                [d, e] = [x[1], x[2]];
            } else {
                a = x[1];
                (b, c) = match x[2] > 0.0 { true => (2, Some(x[2])), false => (3, None) };
                (d, e) = (a, a);
            }
            let k = if let Some(c) = c { c } else { d * e };
            a * b as f64 + k
        }
    }
    deferred_reference: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let (mut a, mut b) = (x[0], x[1]);
            let target: &mut Var;
            if x[2] > 0.0 { target = &mut a; } else { target = &mut b; }
            if *target > 0.5 { *target *= 3.0; }
            *target += 1.0;
            a * b
        }
    }
    deferred_shared_reference: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let owned;
            let data: &[Var] = if x[0] > 0.0 { owned = vec![x[1], x[2]]; &owned } else { x };
            let mut y = Var::from(0.0);
            for v in data { if *v > 0.0 { y += *v; } }
            y
        }
    }
    deferred_in_match_in_loop: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = Var::from(0.0);
            for (i, v) in x.iter().enumerate() {
                let weight;
                match i {
                    0 => weight = 1.0,
                    _ if *v > 1.0 => continue,
                    1 | 2 => { if *v < -1.0 { break; } weight = 0.5 }
                    _ => weight = if *v > 0.0 { 2.0 } else { 3.0 },
                }
                y += *v * weight;
            }
            y
        }
    }
    deferred_by_panic: inputs(2),
    plain {
        fn fail() -> ! { panic!("never") }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y;
            match x.len() {
                2 if x[0] > 0.0 => y = x[0],
                2 => y = x[1] * 2.0,
                3 => fail(),
                _ => unreachable!(),
            }
            let z: Var;
            if x[1] > 0.0 { z = y } else if x.is_empty() { fail() } else { z = -y }
            z * y
        }
    }
    deferred_in_let_else: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y;
            'a: {
                let Some(i) = x.iter().position(|v| *v > 1.0) else { y = x[0]; break 'a; };
                y = x[i] * 2.0;
            }
            let z;
            loop {
                let Some(v) = x.iter().find(|v| **v < y) else { z = y; break };
                z = *v;
                break;
            }
            y * z
        }
    }
    deferred_in_while_body: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut last;
            let mut i = 0;
            let mut y = Var::from(0.0);
            while i < x.len() {
                last = x[i];
                if last > 0.0 { last += 1.0; y += last; }
                i += 1;
            }
            last = y;
            if last > 1.0 { last *= 0.5; }
            last
        }
    }
    moved_away: inputs(3),
    traced {
        fn total(v: Vec<Var>) -> Var { v.into_iter().sum() }
        pub fn run(x: &[Var]) -> Var {
            let mut v = vec![x[0]];
            if x[1] > 0.0 { v.push(x[1]); }
            let y = if x[2] > 0.0 { v.push(x[2]); total(v) } else { let w = v; w[0] };
            v = vec![y];
            loop {
                if y > 1.0 { v.push(y); break total(v); }
                v.push(x[0]);
                if v.len() > 3 { break total(v) * 2.0; }
            }
        }
    }
    moved_in_loop: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut groups: Vec<Vec<Var>> = Vec::new();
            let mut group = Vec::new();
            for v in x {
                if *v > 0.5 {
                    if !group.is_empty() { groups.push(group); }
                    group = Vec::new();
                }
                group.push(*v);
            }
            groups.push(group);
            let mut y = Var::from(groups.len() as f64);
            for g in groups { let s: Var = g.iter().copied().sum(); if s > 0.0 { y += s; } else { y -= 1.0; } }
            y
        }
    }
    option_state: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut best: Option<(usize, Var)> = None;
            for (i, &v) in x.iter().enumerate() {
                match best {
                    Some((_, b)) if b >= v => {}
                    Some((ref mut j, ref mut b)) => { *j = i; *b = v; }
                    None => best = Some((i, v)),
                }
            }
            let mut prev = None::<Var>;
            for &v in x {
                if prev.is_none_or(|p| p < v) { prev = Some(v); } else if let Some(p) = &mut prev { *p *= 0.5; }
            }
            best.map(|(i, v)| v * i as f64).unwrap_or_default() + prev.unwrap()
        }
    }
    values_of_blocks: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let y = { let t = x[0]; if t > 0.0 { t } else { -t } } * { x[1] };
            let z = [if x[1] > 0.0 { x[1] } else { x[2] }, match x[2] > 0.0 { true => y, false => x[0] }];
            let t = (if y > 1.0 { 1 } else { 2 }, z[if x[0] > 0.0 { 0 } else { 1 }]);
            let s = (if x[0] > x[1] { Var::sin } else { Var::cos })(x[2]);
            f64::from(t.0) * t.1 + s + -(if y > 0.0 { y } else { x[0] })
        }
    }
    jumps_in_expressions: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = Var::from(0.0);
            for v in x {
                y += if *v > 1.5 { break } else if *v < -1.5 { continue } else { *v };
                let w = match *v > 0.0 { true => *v, false => continue };
                y = y * (if w > 1.0 { return y } else { w + 1.0 });
            }
            let z = x[0] > 0.0 && return y * 2.0;
            let _ = z || { y += 1.0; true };
            y
        }
    }
    unit_loops: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = x[0];
            for _ in 0..3 { if y > 1.0 { break } y += x[1] }
            loop { if !(y >= 5.0) || y > 1e9 { break } else { y *= 0.5 } }
            let mut n = 0;
            while { n += 1; n < 4 } { if y > x[2] { y -= 0.5 } }
            while let (true, k @ 0..=5) = (y < 1.0, n) { n += 1; y += k as f64 * 0.1 }
            for i in 0.. { if i > 2 || y > 4.0 { break; } y += 0.3 }
            y
        }
    }
    early_returns_of_unit: inputs(3),
    traced {
        fn bump(y: &mut Var, v: Var) {
            if v < 0.0 { return; }
            *y += v;
            if *y > 2.0 { *y = Var::from(2.0); return }
            *y *= 1.5
        }
        fn maybe(y: &mut [Var], i: usize) -> Option<()> {
            let v = y.get_mut(i)?;
            if *v > 1.0 { *v = -*v; return Some(()); }
            *v += 0.5;
            None
        }
        pub fn run(x: &[Var]) -> Var {
            let mut y = [x[0], x[1]];
            bump(&mut y[0], x[2]);
            let mut n = 0;
            while let Some(()) = maybe(&mut y, n) { n += 1; }
            if maybe(&mut y, 5).is_some() { unreachable!() }
            y[0] * y[1] + n as f64
        }
    }
    never_functions: inputs(2),
    traced {
        #[allow(dead_code)]
        fn fail(what: &str) -> ! { if what.len() > 3 { panic!("{what}") } else { panic!() } }
        pub fn run(x: &[Var]) -> Var {
            if x.len() > 2 { fail("long") }
            let y = if x[0] > 0.0 { x[0] } else if x[0] <= 0.0 { x[1] } else { return x[1] + x[0] };
            let k: f64 = if x.len() == 2 { 1.0 } else { fail("?") };
            return y * k;
        }
    }
    endless: inputs(2),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = x[0];
            let mut n = 0;
            loop {
                n += 1;
                if y > 1.0 { return y; }
                if n > 4 { return x[1] * y }
                y += 0.7;
            }
        }
    }
}
