//! Ordinary Rust: signatures, methods, and items, attributes and comments in
//! functions.

ordinary! {
    self_kinds: inputs(3),
    plain {
        use std::rc::Rc;
        #[derive(Clone, Carry)]
        struct Filter { gain: Var, state: Var, count: u32 }
    }
    traced {
        impl Filter {
            fn new(gain: Var) -> Self { Self { gain, state: Var::from(0.0), count: 0 } }
            fn push(&mut self, v: Var) -> Var {
                let Self { gain, state, .. } = self;
                if v > *state { *state += *gain * (v - *state); } else { *state *= 0.9; }
                self.count += 1;
                self.state
            }
            fn with(mut self, v: Var) -> Self { if v > 0.0 { self.push(v); self.count += 1; } self }
            fn shared(self: Rc<Self>) -> Var { if self.count > 2 { self.state } else { self.gain } }
            fn boxed(self: Box<Self>, v: Var) -> Var { if v > 0.0 { self.state } else { v } }
            fn get(&self) -> Option<&Var> { if self.count == 0 { None } else { Some(&self.state) } }
            fn get_mut(&mut self) -> &mut Var { if self.count & 1 == 0 { &mut self.state } else { &mut self.gain } }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut f = Filter::new(x[0]);
            for v in x { f.push(*v); }
            let mut f = f.with(x[1]).with(x[2]);
            *f.get_mut() += 1.0;
            let y = match f.get() { Some(s) if *s > 0.0 => *s, Some(_) => x[0], None => x[1] };
            y + Rc::new(f.clone()).shared() * Box::new(f).boxed(x[2])
        }
    }
    const_generics: inputs(4),
    plain {
        #[derive(Clone, Copy, Carry)]
        struct Matrix<const R: usize, const C: usize> { m: [[Var; C]; R] }
    }
    traced {
        impl<const R: usize, const C: usize> Matrix<R, C> {
            const SIZE: usize = R * C;
            fn zero() -> Self { Matrix { m: [[Var::from(0.0); C]; R] } }
            fn times<const K: usize>(&self, o: &Matrix<C, K>) -> Matrix<R, K> {
                let mut out = Matrix::<R, K>::zero();
                for i in 0..R { for j in 0..K { for k in 0..C {
                    let p = self.m[i][k] * o.m[k][j];
                    if p > 0.0 { out.m[i][j] += p; } else { out.m[i][j] += p * 0.5; }
                } } }
                out
            }
            fn transposed(self) -> Matrix<C, R> {
                let mut out = Matrix { m: [[Var::from(0.0); R]; C] };
                for (i, row) in self.m.iter().enumerate() { for (j, v) in row.iter().enumerate() { out.m[j][i] = *v; } }
                out
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let a = Matrix::<1, 4> { m: [[x[0], x[1], x[2], x[3]]] };
            let b = a.times(&a.transposed());
            if b.m[0][0] > 1.0 { b.m[0][0].sqrt() * Matrix::<2, 3>::SIZE as f64 } else { b.m[0][0] }
        }
    }
    bounds: inputs(3),
    plain {
        use std::fmt::Debug;
        use std::ops::{Add, Mul};
    }
    traced {
        fn dot<'a, T, I>(a: I, b: I) -> T
        where
            T: 'a + Copy + Default + Add<Output = T> + Mul<Output = T> + Debug,
            I: IntoIterator<Item = &'a T>,
            I::IntoIter: Clone,
        {
            let mut sum = T::default();
            for (a, b) in a.into_iter().zip(b) { sum = sum + *a * *b; }
            sum
        }
        fn best_by<T: Copy, K: PartialOrd + Copy>(items: &[T], mut key: impl FnMut(T) -> K) -> Option<T> {
            let mut best: Option<(T, K)> = None;
            for &item in items {
                let k = key(item);
                if best.is_none() || best.is_some_and(|(_, b)| k > b) { best = Some((item, k)); }
            }
            best.map(|(item, _)| item)
        }
        fn apply_n<F>(n: usize, f: F, mut v: Var) -> Var where F: Fn(Var) -> Var {
            for _ in 0..n { if v > 2.0 { break; } v = f(v); }
            v
        }
        pub fn run(x: &[Var]) -> Var {
            let d: Var = dot(x, x);
            let mut calls = 0;
            let b = best_by(x, |v| { calls += 1; v * v }).unwrap();
            if d > 1.0 { apply_n(3, |v| v * v + b, x[0]) } else { d + calls as f64 }
        }
    }
    dyn_arguments: inputs(3),
    traced {
        fn newton(f: &dyn Fn(Var) -> (Var, Var), mut t: Var, trace: Option<&mut Vec<Var>>) -> Var {
            let mut log = trace;
            for _ in 0..4 {
                let (v, d) = f(t);
                if v.abs() < 0.01 || d.abs() < 0.1 { break; }
                t -= v / d;
                if let Some(log) = log.as_mut() { log.push(t); }
                if let Some(ref mut log) = log { log.push(v); }
            }
            t
        }
        fn each(v: &mut [Var], f: &mut dyn FnMut(&mut Var) -> bool) -> usize {
            let mut n = 0;
            for a in v { if f(a) { n += 1; } }
            n
        }
        pub fn run(x: &[Var]) -> Var {
            let mut log = vec![];
            let t = newton(&|t| (t * t - x[0], 2.0 * t), x[1], Some(&mut log));
            let mut v = x.to_vec();
            let n = each(&mut v, &mut |a| if *a > 0.0 { *a *= 2.0; true } else { false });
            newton(&|t| (t - 1.0, t), t, None) + v[n.min(2)] + log.len() as f64
        }
    }
    mutual_recursion: inputs(3),
    traced {
        fn even(x: &[Var], y: Var) -> Var { match x { [] => y, [a, rest @ ..] => if *a > y { odd(rest, y + *a) } else { odd(rest, y) } } }
        fn odd(x: &[Var], y: Var) -> Var { if let [a, rest @ ..] = x { if *a > 0.0 { return even(rest, y * *a); } even(rest, -y) } else { y } }
        pub fn run(x: &[Var]) -> Var { even(x, x[1]) }
    }
    tree: inputs(4),
    plain {
        #[derive(Default)]
        struct Node { key: Var, left: Option<Box<Node>>, right: Option<Box<Node>> }
    }
    traced {
        impl Node {
            fn insert(&mut self, key: Var) {
                let side = if key < self.key { &mut self.left } else { &mut self.right };
                match side {
                    Some(node) => node.insert(key),
                    None => *side = Some(Box::new(Node { key, ..Default::default() })),
                }
            }
            fn fold(&self, depth: usize) -> Var {
                let mut y = self.key * (depth + 1) as f64;
                if let Some(left) = &self.left { y += left.fold(depth + 1); }
                if let Some(ref right) = self.right { y -= right.fold(depth + 1); }
                y
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut root = Node { key: x[0], ..Node::default() };
            for v in &x[1..] { root.insert(*v); }
            let mut node = &root;
            let mut n = 0;
            while let Some(left) = &node.left { node = left; n += 1; }
            root.fold(0) + node.key * n as f64
        }
    }
    list_cursor: inputs(4),
    plain {
        enum List { Cons(Var, Box<List>), Nil }
        use List::{Cons, Nil};
    }
    traced {
        fn push(list: &mut List, v: Var) {
            let mut at = list;
            while let Cons(_, next) = at { at = next; }
            *at = Cons(v, Box::new(Nil));
        }
        fn sum(list: &List) -> Var {
            let (mut at, mut y) = (list, Var::from(0.0));
            loop {
                match at {
                    Cons(v, next) => { if *v > 0.0 { y += *v; } at = next; }
                    Nil => break y,
                }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut list = Nil;
            for v in x { if *v > -1.0 { push(&mut list, *v); } }
            sum(&list) * x[0]
        }
    }
    raw_names: inputs(2),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let r#type = x[0];
            let mut r#match = x[1];
            if r#type > 0.0 { r#match += r#type; }
            let größe = if r#match > 1.0 { r#match } else { r#type };
            let _unused = 3;
            let __phigrad_value = 2.0;
            let __phigrad_to = if größe > 0.0 { 1.0 } else { __phigrad_value };
            größe * __phigrad_to
        }
    }
    inner_functions_with_control: inputs(3),
    traced {
        pub fn run(x: &[Var]) -> Var {
            fn clip<T: PartialOrd>(v: T, low: T, high: T) -> T { if v < low { return low; } if v > high { high } else { v } }
            const fn twice(n: usize) -> usize { let mut i = 0; let mut s = 0; while i < n { s += 2; i += 1; } s }
            mod deep { pub fn half(v: phigrad::Var) -> phigrad::Var { if v > 0.0 { v * 0.5 } else { v } } }
            trait Twice { fn twice(self) -> Self; }
            impl Twice for Var { fn twice(self) -> Self { if self > 0.0 { self * 2.0 } else { self } } }
            let mut y = clip(x[0], x[1], x[1] + 1.0);
            const N: usize = twice(2);
            for _ in 0..N { if y > 0.1 { y = deep::half(y); } else { y = y.twice() + 0.3; } }
            y * x[2]
        }
    }
    closures_with_control: inputs(4),
    traced {
        fn solve(x: &[Var]) -> Result<Var, String> {
            let at = |i: usize| -> Option<Var> { let v = x.get(i)?; if *v > 1.5 { return None; } Some(*v) };
            let parse = |s: &str| -> Result<f64, std::num::ParseFloatError> { let v: f64 = s.parse()?; Ok(v * 2.0) };
            let k = parse("1.5").map_err(|e| e.to_string())?;
            let mut acc = vec![];
            x.iter().for_each(|v| { for i in 0..3 { if *v < i as f64 { continue; } acc.push(*v); break; } });
            let a = at(0).ok_or_else(|| String::from("none"))?;
            let first = acc.first().copied().unwrap_or_default();
            Ok(a * k + if acc.len() > 1 { first } else { x[1] })
        }
        pub fn run(x: &[Var]) -> Var {
            let fallback = move || x[1] * x[2];
            match solve(x) { Ok(v) => v, Err(_) => fallback() }
        }
    }
    sorting: inputs(4),
    traced {
        pub fn run(x: &[Var]) -> Var {
            let mut v: [Var; 4] = [x[0], x[1], x[2], x[3]];
            for i in 1..v.len() {
                let mut j = i;
                while j > 0 && v[j - 1] > v[j] { v.swap(j - 1, j); j -= 1; }
            }
            for i in 0..3 { for j in 0..3 - i { if v[j] < v[j + 1] { (v[j], v[j + 1]) = (v[j + 1], v[j]); } } }
            let mut order: Vec<usize> = (0..4).collect();
            order.sort_by(|&a, &b| x[a].partial_cmp(&x[b]).unwrap_or(std::cmp::Ordering::Equal));
            v[0] * 2.0 + v[3] + x[order[1]]
        }
    }
    fields_of_fields: inputs(4),
    plain {
        #[derive(Clone, Default, Carry)]
        struct Particle { at: [Var; 2], speed: (Var, Var), alive: bool, hits: u8 }
        #[derive(Carry)]
        struct World { particles: Vec<Particle>, grid: Vec<Vec<Var>>, time: f64, total: Option<Var> }
    }
    traced {
        impl World {
            fn step(&mut self, dt: f64) -> usize {
                self.time += dt;
                let mut alive = 0;
                for p in self.particles.iter_mut().filter(|p| p.alive) {
                    p.at[0] += p.speed.0 * dt;
                    p.at[1] += p.speed.1 * dt;
                    for (k, c) in p.at.iter_mut().enumerate() {
                        if *c > 1.0 { *c = 2.0 - *c; if k == 0 { p.speed.0 *= -0.5; } else { p.speed.1 *= -0.5; } p.hits += 1; }
                    }
                    if p.hits > 1 { p.alive = false; continue; }
                    let (i, j) = (usize::from(p.at[0] > 0.0), usize::from(p.at[1] > 0.0));
                    self.grid[i][j] += p.at[0] * p.at[1];
                    alive += 1;
                }
                if let Some(t) = &mut self.total { *t += self.grid[0][0]; } else { self.total = Some(self.grid[1][1]); }
                alive
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let p = Particle { at: [x[0], x[1]], speed: (x[2], x[3]), alive: true, ..Particle::default() };
            let q = Particle { at: [x[1], x[0]], hits: 1, ..p.clone() };
            let mut w = World { particles: vec![p, q], grid: vec![vec![Var::from(0.0); 2]; 2], time: 0.0, total: None };
            while w.time < 1.0 && w.step(0.5) > 0 {}
            w.grid.iter().flatten().fold(w.total.unwrap_or(x[0]), |a, b| if a > *b { a } else { *b }) + w.particles[0].at[0]
        }
    }
}
