//! Ordinary Rust: loops. All kinds of iterators, values of `break`, stacks, and
//! grids.

ordinary! {
    enumerate_rev_step: inputs(6),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = Var::from(0.0);
            for (i, v) in x.iter().enumerate().rev().step_by(2) {
                if *v > 0.0 {
                    y += *v * i as f64;
                } else if i % 2 == 0 {
                    y -= *v;
                }
            }
            y
        }
    }
    stack: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut stack: Vec<Var> = x.to_vec();
            let mut y = Var::from(0.0);
            let mut count = 0u32;
            while let Some(v) = stack.pop() {
                count += 1;
                if v > 0.5 && count < 8 {
                    stack.push(v * 0.5);
                    stack.push(v - 1.0);
                    continue;
                }
                y += v;
            }
            y + count as f64
        }
    }
    loop_with_value: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut t = x[0];
            let mut n = 0;
            let (root, steps) = loop {
                let next = 0.5 * (t + 2.0 / (t.abs() + 0.5));
                n += 1;
                if (next - t).abs() < 1e-3 || n == 6 {
                    break (next, n);
                }
                t = next;
            };
            root * x[1] + steps as f64 * x[2]
        }
    }
    labelled_value: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let v = 'a: {
                if x[0] > 1.0 { break 'a x[0] }
                let w = 'b: {
                    if x[1] > 0.0 { break 'b x[1] * 2.0 }
                    if x[2] > 0.0 { break 'a x[2] }
                    x[0]
                };
                w + 1.0
            };
            let n = 'outer: loop {
                for (i, a) in x.iter().enumerate() {
                    for b in &x[i + 1..] {
                        if *a + *b > 1.0 {
                            break 'outer i as f64 + 1.0;
                        }
                    }
                }
                break 0.0;
            };
            v * n + x[1]
        }
    }
    own_macros_break: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            macro_rules! stop { () => { break } }
            macro_rules! skip { ($c:expr) => { if $c { continue; } } }
            let mut v = x.to_vec();
            for a in v.iter_mut() {
                skip!(*a < -1.0);
                *a *= 2.0;
                if *a > 2.0 { stop!() }
            }
            for a in &mut v {
                *a += 1.0;
                if *a > 3.0 { stop!(); }
            }
            let mut y = Var::from(0.0);
            for a in v {
                skip!(a > 3.5);
                if a < -2.0 { stop!() }
                y += a;
            }
            y
        }
    }
    outer_macros_break: inputs(4),
    plain {
        macro_rules! stop_if { ($c:expr) => { if $c { break; } } }
        macro_rules! skip_if { ($c:expr) => { if $c { continue } } }
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            let mut n = 0;
            for (i, a) in v.iter_mut().enumerate() {
                skip_if!(i == 2);
                if *a > 1.5 { continue; }
                *a *= *a;
                n += 1;
                stop_if!(*a > 2.0);
            }
            'rows: for a in v.iter_mut() {
                for b in x {
                    if *b > 1.8 { continue 'rows; }
                    if *b < -1.8 { break 'rows; }
                    skip_if!(*b < 0.0);
                    *a += *b;
                }
                stop_if!(*a > 4.0);
            }
            let mut y = Var::from(n as f64);
            for a in &v { y += *a; }
            y
        }
    }
    grid: inputs(5),
    traced {
        #[allow(clippy::needless_range_loop)]
        pub fn run(x: &[Var]) -> Var {
            let (n, m) = (4, 3);
            let mut u = vec![vec![Var::from(0.0); n]; m];
            for j in 0..n {
                u[0][j] = x[j];
            }
            for i in 1..m {
                for j in 0..n {
                    let left = if j == 0 { x[4] } else { u[i - 1][j - 1] };
                    let d = left - u[i - 1][j];
                    let old = u[i - 1][j];
                    u[i][j] += old + d * 0.25;
                    if u[i][j] > 1.0 {
                        u[i][j] = Var::from(1.0);
                    }
                }
            }
            u.iter().flatten().copied().sum()
        }
    }
    array_of_arrays: inputs(4),
    traced {
        fn det(m: &[[Var; 2]; 2]) -> Var {
            m[0][0] * m[1][1] - m[0][1] * m[1][0]
        }
        pub fn run(x: &[Var]) -> Var {
            let mut m = [[x[0], x[1]], [x[2], x[3]]];
            if m[0][0].abs() < m[1][0].abs() {
                m.swap(0, 1);
            }
            for row in m.iter_mut() {
                for e in row.iter_mut() {
                    if *e < 0.0 { *e *= 0.5; }
                }
            }
            for (i, row) in m.iter_mut().enumerate() {
                row[i] += 1.0;
                if row[i] > 2.0 { break; }
            }
            det(&m)
        }
    }
    windows_chunks_zip: inputs(6),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = Var::from(0.0);
            for w in x.windows(3) {
                let [a, b, c] = w else { continue };
                if *b > *a && *b > *c { y += *b; }
            }
            for (c, s) in x.chunks(4).zip([1.0, -1.0]) {
                match c {
                    [a, b, ..] if *a > *b => y += *a * s,
                    [_, rest @ ..] => y += rest.iter().copied().sum::<Var>() * s,
                    [] => {}
                }
            }
            for (a, b) in x.iter().zip(x.iter().skip(1)).take_while(|(a, _)| **a < 1.5) {
                if a > b { y += *a * *b; }
            }
            y
        }
    }
    ranges: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut y = x[0];
            for i in (0..x.len()).rev() {
                if x[i] > 0.0 { y += x[i]; }
            }
            for i in (1..=3).step_by(2) {
                y = if y > x[i] { y - x[i] } else { y * 0.5 };
            }
            for i in [2usize, 0, 1] {
                if x[i] < y { y = x[i] + 1.0; }
            }
            for _ in 0..2 { if y > 1.0 { y = y.sqrt(); } }
            for c in "abca".chars() {
                match c {
                    'a' if y > 0.5 => y += 1.0,
                    'a'..='b' => y *= 0.9,
                    _ => {}
                }
            }
            y
        }
    }
    while_with_state: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let (mut lo, mut hi) = (Var::from(-3.0), Var::from(3.0));
            let target = x[0] + x[1] * 0.1;
            let mut iter: u8 = 0;
            while hi - lo > 0.5 && iter < u8::MAX {
                let mid = (lo + hi) / 2.0;
                if mid * mid * mid < target { lo = mid; } else { hi = mid; }
                iter = iter.saturating_add(1);
            }
            let mid = (lo + hi) * 0.5;
            mid - (mid * mid * mid - target) / (3.0 * mid * mid + 0.1) + f64::from(iter) * x[2]
        }
    }
    euler: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let dt = 0.25;
            let (mut p, mut v) = (x[0], x[1]);
            let mut t = 0.0_f64;
            let mut bounces: i64 = 0;
            while t < 2.0 {
                let a = if p > 0.0 { -x[2].abs() } else { x[3].abs() };
                v += a * dt;
                p += v * dt;
                if p < -1.0 {
                    p = -2.0 - p;
                    v = -v * 0.8;
                    bounces -= 1;
                }
                t += dt;
            }
            p * p + v * v + bounces as f64
        }
    }
    iterator_by_hand: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut it = x.iter();
            let mut y = Var::from(0.0);
            while let Some(a) = it.next() {
                if *a > 0.0 {
                    if let Some(b) = it.next() {
                        y += *a * *b;
                    }
                } else {
                    y -= *a;
                }
            }
            let mut peek = x.iter().peekable();
            while let Some(a) = peek.next() {
                if let Some(&&b) = peek.peek() && b > *a {
                    y += 0.5;
                }
            }
            y
        }
    }
    drain_and_retain: inputs(5),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v = x.to_vec();
            v.retain(|a| *a > -0.5);
            v.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
            let mut y = Var::from(v.len() as f64);
            for (i, a) in v.drain(..).enumerate() {
                if a > 0.5 { y += a * i as f64; } else { y -= a; }
            }
            if v.is_empty() { y } else { y * 2.0 }
        }
    }
    nested_continue_with_items: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut cells = [(x[0], 0u32), (x[1], 0), (x[2], 0)];
            for (v, n) in cells.iter_mut() {
                if *v < 0.0 {
                    *n += 1;
                    continue;
                }
                for w in x {
                    if *w > *v { *n += 2; break; }
                    if *w < 0.0 { continue; }
                    *v *= 0.9;
                }
                *v += x[3];
            }
            let mut y = Var::from(0.0);
            for (v, n) in &cells {
                if n % 2 == 0 { y += *v; } else { y -= *v * *n as f64; }
            }
            y
        }
    }
    map_tables: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            use std::collections::{BTreeMap, HashMap, VecDeque};
            let mut sums: BTreeMap<i32, Var> = BTreeMap::new();
            for v in x {
                let key = if *v > 1.0 { 2 } else if *v > 0.0 { 1 } else { 0 };
                *sums.entry(key).or_insert(Var::from(0.0)) += *v;
            }
            let mut best: HashMap<&str, Var> = HashMap::new();
            best.insert("a", x[0]);
            if let Some(old) = best.get_mut("a") && *old < x[1] { *old = x[1]; }
            let mut queue: VecDeque<Var> = x.iter().copied().collect();
            let mut y = best["a"];
            while let Some(v) = queue.pop_front() {
                if v < -1.0 && v > -9.0 && queue.len() < 3 { queue.push_back(v + 1.5); }
                y += v;
            }
            for (k, v) in &sums {
                if *v > 0.5 { y += *v * *k as f64; }
            }
            y
        }
    }
}
