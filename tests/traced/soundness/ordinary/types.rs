//! Ordinary Rust: types. Structs with operators, traits, generics, enums as state
//! machines, and shared cells.

ordinary! {
    vec3: inputs(6),
    plain {
        use std::ops::{Add, AddAssign, Index, IndexMut, Mul, Neg, Sub};
        #[derive(Clone, Copy, Debug, Carry)]
        struct Vec3 { x: Var, y: Var, z: Var }
        impl Vec3 {
            fn new(x: Var, y: Var, z: Var) -> Self { Vec3 { x, y, z } }
        }
        impl AddAssign for Vec3 {
            fn add_assign(&mut self, o: Vec3) { *self = *self + o; }
        }
        impl Index<usize> for Vec3 {
            type Output = Var;
            fn index(&self, i: usize) -> &Var {
                match i { 0 => &self.x, 1 => &self.y, _ => &self.z }
            }
        }
        impl IndexMut<usize> for Vec3 {
            fn index_mut(&mut self, i: usize) -> &mut Var {
                match i { 0 => &mut self.x, 1 => &mut self.y, _ => &mut self.z }
            }
        }
    }
    traced {
        impl Add for Vec3 {
            type Output = Vec3;
            fn add(self, o: Vec3) -> Vec3 { Vec3::new(self.x + o.x, self.y + o.y, self.z + o.z) }
        }
        impl Sub for Vec3 {
            type Output = Vec3;
            fn sub(self, o: Vec3) -> Vec3 { Vec3 { x: self.x - o.x, ..self + -o } }
        }
        impl Neg for Vec3 {
            type Output = Vec3;
            fn neg(self) -> Vec3 { self * -1.0 }
        }
        impl Mul<f64> for Vec3 {
            type Output = Vec3;
            fn mul(self, s: f64) -> Vec3 { Vec3::new(self.x * s, self.y * s, self.z * s) }
        }
        impl Vec3 {
            const AXES: usize = 3;
            fn dot(self, o: Self) -> Var { self.x * o.x + self.y * o.y + self.z * o.z }
            fn limit(&mut self, most: f64) -> &mut Self {
                for i in 0..Self::AXES {
                    if self[i] > most { self[i] = Var::from(most); }
                }
                self
            }
            fn unit(self) -> Option<Self> {
                let n = self.dot(self);
                (n > 0.01).then(|| { let s = n.sqrt(); Vec3::new(self.x / s, self.y / s, self.z / s) })
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut a = Vec3::new(x[0], x[1], x[2]);
            let b = Vec3::new(x[3], x[4], x[5]);
            a.limit(1.0).limit(0.9);
            if a.dot(b) < 0.0 { a += b; } else { a = a - b; }
            if let Some(u) = a.unit() { u.dot(b) } else { b.dot(b) }
        }
    }
    trait_objects: inputs(3),
    plain {
        trait Payoff {
            fn strike(&self) -> f64;
            fn at(&self, s: Var) -> Var;
            fn capped(&self, s: Var, cap: f64) -> Var {
                let p = self.at(s);
                if p > cap { Var::from(cap) } else { p }
            }
        }
        struct Call(f64);
        struct Put { strike: f64 }
    }
    traced {
        impl Payoff for Call {
            fn strike(&self) -> f64 { self.0 }
            fn at(&self, s: Var) -> Var { if s > self.0 { s - self.0 } else { Var::from(0.0) } }
        }
        impl Payoff for Put {
            fn strike(&self) -> f64 { self.strike }
            fn at(&self, s: Var) -> Var {
                let Put { strike: k } = self;
                if s < *k { *k - s } else { s * 0.0 }
            }
        }
        fn book() -> Vec<Box<dyn Payoff>> {
            let mut all: Vec<Box<dyn Payoff>> = vec![Box::new(Call(0.5))];
            all.push(Box::new(Put { strike: -0.5 }));
            all
        }
        pub fn run(x: &[Var]) -> Var {
            let mut value = Var::from(0.0);
            for payoff in book().iter() {
                for s in x {
                    value += if *s > 1.5 * payoff.strike().abs() { payoff.capped(*s, 1.0) } else { payoff.at(*s) };
                }
            }
            value
        }
    }
    traits_with_defaults: inputs(3),
    plain {
        struct Linear { w: Var, b: Var }
        struct Relu;
    }
    traced {
        trait Layer {
            const LEAK: f64 = 0.1;
            fn forward(&self, x: Var) -> Var;
            fn twice(&self, x: Var) -> Var {
                let y = self.forward(x);
                if y < 0.0 { return y * Self::LEAK; }
                self.forward(y)
            }
        }
        impl Layer for Linear {
            fn forward(&self, x: Var) -> Var { self.w * x + self.b }
        }
        impl Layer for Relu {
            const LEAK: f64 = 0.5;
            fn forward(&self, x: Var) -> Var { if x > 0.0 { x } else { Self::LEAK * x } }
        }
        fn apply<L: Layer>(layer: &L, x: Var) -> Var where L: Layer {
            if x > 1.0 { layer.twice(x) } else { layer.forward(x) }
        }
        pub fn run(x: &[Var]) -> Var {
            let l = Linear { w: x[0], b: x[1] };
            let h = apply(&l, x[2]);
            apply(&Relu, h) + <Relu as Layer>::LEAK
        }
    }
    generic_floats: inputs(3),
    plain {
        use num_traits::Float;
    }
    traced {
        fn huber<T: Float>(r: T, delta: T) -> T {
            let half = T::from(0.5).unwrap();
            if r.abs() <= delta { half * r * r } else { delta * (r.abs() - half * delta) }
        }
        fn norm<T>(v: &[T]) -> T where T: Float {
            let mut best = T::zero();
            for &a in v {
                if a.abs() > best { best = a.abs(); }
            }
            if best == T::zero() {
                return best;
            }
            v.iter().fold(T::zero(), |s, &a| s + (a / best) * (a / best)).sqrt() * best
        }
        fn poly<T: Float, const N: usize>(c: [T; N], x: T) -> T {
            let mut y = T::zero();
            for i in (0..N).rev() {
                y = y * x + c[i];
                if y > T::one() + T::one() { y = y / (T::one() + T::one()); }
            }
            y
        }
        pub fn run(x: &[Var]) -> Var {
            let k = huber(1.5_f64, 1.0) + norm(&[3.0, 4.0]) + poly([1.0, 2.0, 3.0], 0.5);
            huber(x[0], x[1].abs()) + norm(x) * k + poly([x[0], x[1], x[2]], x[1])
        }
    }
    impl_arguments: inputs(3),
    traced {
        fn total(items: impl IntoIterator<Item = Var>, keep: impl Fn(Var) -> bool) -> Var {
            let mut sum = Var::from(0.0);
            for v in items {
                if keep(v) { sum += v; }
            }
            sum
        }
        fn scaled(by: f64) -> impl Fn(Var) -> Var {
            if by > 1.0 { println!("") }
            move |v| if v > 0.0 { v * by } else { v }
        }
        fn boxed(x: &[Var]) -> Box<dyn Fn(Var) -> Var + '_> {
            if x[0] > 0.0 { Box::new(|v| v * x[0]) } else { Box::new(move |v| v + x[1]) }
        }
        fn positive(x: &[Var]) -> impl Iterator<Item = Var> + '_ {
            x.iter().copied().filter(|v| *v > 0.0)
        }
        pub fn run(x: &[Var]) -> Var {
            let f = scaled(0.5);
            let g: &dyn Fn(Var) -> Var = &boxed(x);
            let mut y = total(x.iter().map(|v| f(*v)), |v| v < 0.5);
            y += total(positive(x), |_| true);
            if y > 0.0 { g(y) } else { f(y) }
        }
    }
    state_machine: inputs(6),
    plain {
        #[derive(Clone, Carry)]
        enum State {
            Idle,
            Running { since: usize, speed: Var },
            Done(Var, bool),
        }
    }
    traced {
        impl State {
            fn next(self, t: usize, v: Var) -> State {
                match self {
                    State::Idle if v > 0.0 => State::Running { since: t, speed: v },
                    State::Idle => Self::Idle,
                    State::Running { since, .. } if t - since > 2 => State::Done(v, true),
                    State::Running { since, speed } => {
                        let speed = if v > speed { v } else { speed * 0.5 };
                        if speed < 0.1 { return State::Done(speed, false) }
                        State::Running { since, speed }
                    }
                    done @ State::Done(..) => done,
                }
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut state = State::Idle;
            for (t, v) in x.iter().enumerate() {
                state = state.next(t, *v);
                if let State::Done(_, false) = state { break; }
            }
            match state {
                State::Idle => x[0],
                State::Running { speed, .. } => speed * 2.0,
                State::Done(v, true) => v,
                State::Done(v, false) => -v,
            }
        }
    }
    replace_take_swap: inputs(4),
    plain {
        use std::mem;
    }
    traced {
        pub fn run(x: &[Var]) -> Var {
            let (mut a, mut b) = (x[0], x[1]);
            if a > b { mem::swap(&mut a, &mut b); }
            let mut held = Some(x[2]);
            let mut buffer = vec![a, b];
            for v in x {
                if *v > 0.5 {
                    let old = mem::replace(&mut a, *v);
                    b += old;
                } else if let Some(h) = held.take() {
                    buffer.push(h);
                } else {
                    held.replace(*v * 2.0);
                }
            }
            let all = mem::take(&mut buffer);
            let mut y = a - b + held.map_or(Var::from(0.0), |h| h * h);
            for v in &all { if *v > 0.0 { y += *v; } }
            y * (1 + buffer.len()) as f64
        }
    }
    rc_refcell: inputs(3),
    plain {
        use std::cell::{Cell, RefCell};
        use std::rc::Rc;
        struct Account { balance: Var, history: Vec<Var> }
    }
    traced {
        impl Account {
            fn add(&mut self, v: Var) -> Result<(), String> {
                if v < -1.5 { return Err(format!("too much: {v:?}")); }
                self.balance += v;
                self.history.push(v);
                Ok(())
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let shared = Rc::new(RefCell::new(Account { balance: x[0], history: vec![] }));
            let other = Rc::clone(&shared);
            let refused = Cell::new(0);
            for v in x {
                if shared.borrow_mut().add(*v).is_err() { refused.set(refused.get() + 1); }
                if other.borrow().balance > 2.0 { other.borrow_mut().balance *= 0.5; }
            }
            let y = shared.borrow().balance;
            if shared.borrow().history.len() > 2 { y } else { y - refused.get() as f64 }
        }
    }
    cows: inputs(3),
    plain {
        use std::borrow::Cow;
    }
    traced {
        fn clipped<'a>(x: &'a [Var]) -> Cow<'a, [Var]> {
            if x.iter().any(|v| *v > 1.0) {
                Cow::Owned(x.iter().map(|v| if *v > 1.0 { Var::from(1.0) } else { *v }).collect())
            } else {
                Cow::Borrowed(x)
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut c = clipped(x);
            if c[0] < 0.0 { c.to_mut()[0] = x[1] * x[2]; }
            let name: Cow<'static, str> = if c[0] > 0.5 { "high".into() } else { format!("{}", 10).into() };
            c.iter().copied().sum::<Var>() * name.len() as f64
        }
    }
    tuple_structs: inputs(4),
    plain {
        #[derive(Clone, Copy, Carry, Default)]
        struct Price(Var);
        #[derive(Clone, Carry, Default)]
        struct Book { bids: [Price; 3], asks: Vec<Price>, depth: (usize, i8) }
    }
    traced {
        fn fill(book: &mut Book, x: &[Var]) {
            for (i, v) in x.iter().enumerate().take(3) {
                book.bids[i].0 += *v;
                if book.bids[i].0 > 1.0 { book.depth.1 -= 1; book.depth.0 = i; }
                book.asks[i % 2].0 -= *v * 0.5;
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let mut book = Book { asks: vec![Price(x[3]); 2], ..Default::default() };
            fill(&mut book, x);
            let Book { bids: [Price(a), .., Price(c)], ref asks, .. } = book;
            let Price(ask) = asks[0];
            let mut y = a * ask;
            if c > ask { y += c; }
            y + book.depth.1 as f64 + book.depth.0 as f64
        }
    }
    lifetimes: inputs(4),
    plain {
        struct View<'a> { data: &'a [Var], at: usize }
    }
    traced {
        impl<'a> View<'a> {
            fn advance(&mut self) -> Option<&'a Var> {
                let v = self.data.get(self.at)?;
                self.at += 1;
                if *v < -1.0 { self.advance() } else { Some(v) }
            }
        }
        impl<'a> Iterator for View<'a> {
            type Item = &'a Var;
            fn next(&mut self) -> Option<Self::Item> { self.advance() }
        }
        fn longest<'a, 'b: 'a>(a: &'a [Var], b: &'b [Var]) -> &'a [Var] {
            if a.len() >= b.len() && a[0] > b[0] { a } else { b }
        }
        fn largest<'a>(x: &'a [Var]) -> &'a Var {
            let mut best = &x[0];
            for v in x { if v > best { best = v; } }
            best
        }
        pub fn run(x: &[Var]) -> Var {
            let view = View { data: x, at: 0 };
            let mut y = Var::from(0.0);
            for v in view { if *v > 0.0 { y += *v; } }
            y + longest(&x[..2], &x[2..])[1] * *largest(x)
        }
    }
    recursion: inputs(3),
    plain {
        #[derive(Clone)]
        enum Expr { Leaf(Var), Add(Box<Expr>, Box<Expr>), If(Box<Expr>, Box<(Expr, Expr)>) }
    }
    traced {
        fn eval(e: &Expr) -> Var {
            match e {
                Expr::Leaf(v) => *v,
                Expr::Add(a, b) => eval(a) + eval(b),
                Expr::If(c, ab) => if eval(c) > 0.0 { eval(&ab.0) } else { eval(&ab.1) },
            }
        }
        fn power(x: Var, n: u32) -> Var {
            match n {
                0 => Var::from(1.0),
                n if n % 2 == 0 => { let h = power(x, n / 2); if h > 10.0 { Var::from(10.0) } else { h * h } }
                n => x * power(x, n - 1),
            }
        }
        pub fn run(x: &[Var]) -> Var {
            let leaf = |i: usize| Box::new(Expr::Leaf(x[i]));
            let e = Expr::If(leaf(0), Box::new((Expr::Add(leaf(1), leaf(2)), Expr::Leaf(x[1] * x[2]))));
            eval(&e) + power(x[2], 5)
        }
    }
}
