//! Ordinary Rust: generic functions, traits, closures, and all kinds of parameters.

ordinary! {
    trait_with_bounds: inputs(3),
    plain {
        struct Spring {
            k: Var,
        }
        struct Wall;
    }
    traced {
        trait Potential {
            const STIFFNESS: f64;
            type State: Copy;
            fn energy(&self, state: Self::State) -> Var;
            fn clamped(&self, state: Self::State, limit: f64) -> Var {
                let e = self.energy(state);
                if e > limit { Var::from(limit) + (e - limit) * Self::STIFFNESS } else { e }
            }
        }
        impl Potential for Spring {
            const STIFFNESS: f64 = 0.25;
            type State = Var;
            fn energy(&self, state: Var) -> Var {
                if state > 0.0 { self.k * state * state } else { state.abs() }
            }
        }
        impl Potential for Wall {
            const STIFFNESS: f64 = 0.5;
            type State = (Var, f64);
            fn energy(&self, (x, at): (Var, f64)) -> Var {
                if x > at { x - at } else { Var::from(0.0) }
            }
        }
        fn total<P: Potential + ?Sized, const N: usize>(p: &P, states: [P::State; N]) -> Var
        where
            P::State: Copy,
        {
            let mut sum = Var::from(0.0);
            for s in states {
                let e = p.clamped(s, 1.0);
                if e < 0.5 {
                    continue;
                }
                sum += e;
            }
            sum * N as f64
        }
        pub fn run(x: &[Var]) -> Var {
            total(&Spring { k: x[0] }, [x[1], x[2]]) + total(&Wall, [(x[0], 0.5); 3])
        }
    }
    generic_scalar: inputs(2),
    plain {
        use std::ops::{Add, Mul, Neg, Sub};
    }
    traced {
        trait Scalar: Copy + Add<Output = Self> + Mul<Output = Self> + Sub<Output = Self> + Neg<Output = Self> + PartialOrd + From<f64> {}
        impl<T> Scalar for T where T: Copy + Add<Output = T> + Mul<Output = T> + Sub<Output = T> + Neg<Output = T> + PartialOrd + From<f64> {}
        fn horner<T: Scalar>(coefficients: &[T], t: T) -> T {
            let mut iter = coefficients.iter().rev();
            let Some(&first) = iter.next() else { return T::from(0.0) };
            let mut sum = first;
            for &c in iter {
                sum = sum * t + if c > T::from(0.0) { c } else { -c };
            }
            sum
        }
        fn largest<T, I>(items: I) -> Option<T>
        where
            T: PartialOrd + Copy + Carry,
            I: IntoIterator<Item = T>,
        {
            let mut best = None;
            for item in items {
                match best {
                    Some(b) if b >= item => {}
                    _ => best = Some(item),
                }
            }
            best
        }
        pub fn run(x: &[Var]) -> Var {
            let a = horner(&[x[0], x[1], x[0] * x[1]], x[1]);
            let b = horner(&[1.0, -2.0], 0.5);
            a * b + largest(x.iter().copied()).unwrap_or(a)
        }
    }
    closures_by_move: inputs(3),
    traced {
        fn adder(by: Var) -> impl Fn(Var) -> Var {
            move |x| if x > by { x + by } else { by - x }
        }
        fn boxed(kind: u8, p: Var) -> Box<dyn FnMut(Var) -> Var> {
            match kind {
                0 => Box::new(move |x| x * p),
                1 => {
                    let mut last = p;
                    Box::new(move |x| {
                        let old = std::mem::replace(&mut last, x);
                        if old > x { old } else { x * 0.5 }
                    })
                }
                _ => Box::new(adder(p)),
            }
        }
        fn apply<F: FnOnce(Var) -> R, R>(f: F, x: Var) -> R {
            f(x)
        }
        pub fn run(x: &[Var]) -> Var {
            let kind = if x[0] > 1.0 { 0 } else if x[0] > 0.0 { 1 } else { 2 };
            let mut f = boxed(kind, x[1]);
            let mut sum = Var::from(0.0);
            for &v in x {
                sum += f(v);
            }
            let owned = vec![x[2], sum];
            let pair = apply(move |y| (owned[0] * y, owned.len()), sum);
            if pair.1 == 2 { pair.0 } else { sum }
        }
    }
    iterator_chains: inputs(4),
    plain {
        struct Pairs<'a> {
            x: &'a [Var],
            at: usize,
        }
    }
    traced {
        impl<'a> Iterator for Pairs<'a> {
            type Item = (Var, &'a Var);
            fn next(&mut self) -> Option<Self::Item> {
                let b = self.x.get(self.at + 1)?;
                let a = self.x[self.at];
                self.at += if a > *b { 2 } else { 1 };
                Some((a, b))
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut sum = Var::from(0.0);
            for (a, b) in (Pairs { x, at: 0 }) {
                sum += a * *b;
            }
            let positive: Vec<Var> = x.iter().copied().filter(|v| *v > 0.0).collect();
            let (low, high): (Vec<Var>, Vec<Var>) = positive.iter().partition(|v| **v < 1.0);
            let scan: Vec<Var> = x
                .iter()
                .scan(Var::from(0.0), |s, v| {
                    *s += *v;
                    if *s > 3.0 { None } else { Some(*s) }
                })
                .collect();
            let best = scan.iter().copied().reduce(|a, b| if a > b { a } else { b });
            sum += low.into_iter().zip(&high).map(|(a, b)| a * *b).sum::<Var>();
            sum += x.chunks(2).map(|c| c[0] - c[c.len() - 1]).fold(x[0], |a, b| a * b);
            for (i, w) in x.windows(2).enumerate().filter(|(i, _)| i % 2 == 0) {
                if w[0] > w[1] {
                    sum += w[0] * i as f64;
                }
            }
            sum + best.unwrap_or_default() + high.len() as f64
        }
    }
    methods_of_all_kinds: inputs(3),
    plain {
        #[derive(Clone, Debug, Carry)]
        pub struct Account {
            balance: Var,
            history: Vec<Var>,
            open: bool,
        }
        #[derive(Debug)]
        enum Trouble {
            Closed,
            Short { by: Var },
        }
    }
    traced {
        impl From<Trouble> for Var {
            fn from(trouble: Trouble) -> Var {
                match trouble {
                    Trouble::Closed => Var::from(-1.0),
                    Trouble::Short { by } => by * 0.1,
                }
            }
        }
        impl Account {
            pub const FEE: f64 = 0.25;
            pub fn new(balance: Var) -> Self {
                Self { balance, history: Vec::with_capacity(2), open: true }
            }
            fn withdraw(&mut self, amount: Var) -> Result<&mut Self, Trouble> {
                if !self.open {
                    return Err(Trouble::Closed);
                }
                let after = self.balance - amount - Self::FEE;
                if after < -2.0 {
                    self.open = false;
                    return Err(Trouble::Short { by: -after });
                }
                self.balance = after;
                self.history.push(amount);
                Ok(self)
            }
            fn transfer(&mut self, other: &mut Account, amount: Var) -> Result<(), Trouble> {
                self.withdraw(amount)?.history.push(other.balance);
                other.balance += amount;
                Ok(())
            }
            fn close(mut self) -> Var {
                self.open = false;
                let Self { balance, history, .. } = self;
                match history.as_slice() {
                    [] => balance,
                    [.., last] if *last > balance => *last,
                    all => balance + all[0],
                }
            }
            fn reset(&mut self) -> &mut Var {
                self.history.clear();
                &mut self.balance
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut a = Account::new(x[0]);
            let mut b = Account::new(x[1]);
            let mut penalty = Var::from(0.0);
            for (i, amount) in [x[2], x[0], x[1]].into_iter().enumerate() {
                let result = if i % 2 == 0 { a.transfer(&mut b, amount) } else { b.transfer(&mut a, amount) };
                if let Err(trouble) = result {
                    penalty += Var::from(trouble);
                    *a.reset() += 1.0;
                }
            }
            a.clone().close() + b.close() * 2.0 + penalty
        }
    }
    operators_of_own_types: inputs(4),
    plain {
        use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Neg};
        #[derive(Clone, Copy, Debug, PartialEq, Carry)]
        struct V2 {
            x: Var,
            y: Var,
        }
    }
    traced {
        impl Add for V2 {
            type Output = V2;
            fn add(self, o: V2) -> V2 {
                V2 { x: self.x + o.x, y: self.y + o.y }
            }
        }
        impl Mul<Var> for V2 {
            type Output = V2;
            fn mul(self, s: Var) -> V2 {
                if s == 1.0 { self } else { V2 { x: self.x * s, y: self.y * s } }
            }
        }
        impl Neg for V2 {
            type Output = V2;
            fn neg(self) -> V2 {
                V2 { x: -self.x, y: -self.y }
            }
        }
        impl AddAssign for V2 {
            fn add_assign(&mut self, o: V2) {
                *self = *self + o;
            }
        }
        impl Index<usize> for V2 {
            type Output = Var;
            fn index(&self, i: usize) -> &Var {
                match i {
                    0 => &self.x,
                    1 => &self.y,
                    _ => panic!("no axis {i}"),
                }
            }
        }
        impl IndexMut<usize> for V2 {
            fn index_mut(&mut self, i: usize) -> &mut Var {
                if i == 0 { &mut self.x } else { &mut self.y }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut p = V2 { x: x[0], y: x[1] };
            let mut v = V2 { x: x[2], y: x[3] };
            for _ in 0..3 {
                p += v * Var::from(0.5);
                for axis in 0..2 {
                    if p[axis] > 1.0 {
                        v[axis] = -v[axis];
                    } else if p[axis] < -1.0 {
                        v[axis] *= 0.5;
                        p[axis] = Var::from(-1.0);
                    }
                }
            }
            if p == -v { p.x } else { p.x * p.y + v[1] }
        }
    }
    parameters_of_all_kinds: inputs(4),
    traced {
        fn patterns(
            &[a, b]: &[Var; 2],
            (mut c, ref d): (Var, Var),
            out: &mut impl Extend<Var>,
            f: &mut dyn FnMut(&Var) -> bool,
            names: impl Iterator<Item = &'static str> + Clone,
        ) -> usize {
            if f(&a) {
                c += b;
            }
            for name in names.clone() {
                if name.len() > 2 && f(d) {
                    out.extend([c]);
                } else {
                    c *= 2.0;
                }
            }
            out.extend([c, *d]);
            names.count()
        }
        fn pick<'a, 'b: 'a>(a: &'a Var, b: &'b Var, first: bool) -> &'a Var {
            if first { a } else { b }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut out: Vec<Var> = Vec::new();
            let mut calls = 0;
            let mut test = |v: &Var| {
                calls += 1;
                *v > 0.0
            };
            let n = patterns(&[x[0], x[1]], (x[2], x[3]), &mut out, &mut test, ["a", "abc"].into_iter());
            let chosen = pick(&out[0], &out[1], x[3] > x[2]);
            *chosen * (n + calls) as f64
        }
    }
    matrix_of_constants: inputs(4),
    plain {
        #[derive(Clone, Copy, Carry)]
        struct Matrix<const R: usize, const C: usize>([[Var; C]; R]);
    }
    traced {
        impl<const R: usize, const C: usize> Matrix<R, C> {
            const CELLS: usize = R * C;
            fn zero() -> Self {
                Matrix([[Var::from(0.0); C]; R])
            }
            fn times<const K: usize>(&self, other: &Matrix<C, K>) -> Matrix<R, K> {
                let mut out = Matrix::<R, K>::zero();
                for i in 0..R {
                    for j in 0..K {
                        for k in 0..C {
                            if self.0[i][k] == 0.0 {
                                continue;
                            }
                            out.0[i][j] += self.0[i][k] * other.0[k][j];
                        }
                    }
                }
                out
            }
            fn norm(self) -> Var {
                let mut best = Var::from(0.0);
                for row in &self.0 {
                    let sum = row.iter().fold(Var::from(0.0), |s, v| s + v.abs());
                    if sum > best {
                        best = sum;
                    }
                }
                best / Self::CELLS as f64
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let a = Matrix([[x[0], x[1]], [x[2], x[3]]]);
            let mut power = a;
            let mut n = 0;
            while power.norm() < 2.0 && n < 3 {
                power = power.times(&a);
                n += 1;
            }
            power.norm() + power.0[0][1] * n as f64
        }
    }
    recursion_with_memory: inputs(2),
    plain {
        use std::collections::HashMap;
    }
    traced {
        fn value(n: u32, x: Var, memory: &mut HashMap<u32, Var>) -> Var {
            if let Some(&known) = memory.get(&n) {
                return known;
            }
            let result = match n {
                0 => x,
                1 => x * x,
                n => {
                    let a = value(n - 1, x, memory);
                    let b = value(n - 2, x, memory);
                    if a > b { a - b * 0.5 } else { a + b }
                }
            };
            memory.insert(n, result);
            result
        }
        pub fn run(x: &[Var]) -> Var {
            let mut memory = HashMap::new();
            let a = value(4, x[0], &mut memory);
            a * x[1] + memory[&2]
        }
    }
}
