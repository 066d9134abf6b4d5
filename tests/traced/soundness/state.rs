//! State in structs: traced and untraced fields, changed by methods.

programs! {
    filter: inputs(5), Splits(0.75),
    plain {
        #[derive(Clone, phigrad::Carry)]
        pub struct Filter<S> { pub mean: S, pub seen: usize, pub gain: f64 }
    }
    traced {
        impl<S: Num> Filter<S> {
            fn feed(&mut self, v: S) -> S {
                if v > self.mean { self.mean = self.mean + (v - self.mean) * self.gain; self.seen += 1; }
                else { self.mean = self.mean * 0.75; self.gain *= 0.5; }
                if self.seen > 2 { self.mean } else { v }
            }
            fn calm(mut self) -> Self { if self.mean > 1.0 { self.mean = S::from(1.0); } self }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut filter = Filter { mean: S::from(0.0), seen: 0, gain: 1.0 };
            let mut y = S::from(0.0);
            for &v in x { y = y + filter.feed(v); }
            let filter = filter.calm();
            y * filter.mean + filter.gain
        }
    }
    merges_with_same_state: inputs(6), Merges(0.95),
    plain {
        #[derive(phigrad::Carry)]
        pub struct Body<S> { pub at: [S; 2], pub speed: S, pub bounces: u32 }
    }
    traced {
        impl<S: Num> Body<S> {
            fn step(&mut self, push: S) {
                self.speed += push * 0.5;
                self.at[0] += self.speed;
                if self.at[0] > 1.0 { self.at[0] = S::from(1.0); self.speed = -self.speed; }
                else if self.at[0] < -1.0 { self.at[0] = S::from(-1.0); self.speed = -self.speed; }
                self.at[1] = if self.speed > 0.0 { self.at[0] } else { self.at[1] * 0.9 };
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut body = Body { at: [x[0], x[1]], speed: S::from(0.0), bounces: 7 };
            for &push in x { body.step(push); }
            body.at[0] * body.at[1] + body.speed * f64::from(body.bounces)
        }
    }
    called_in_one_branch: inputs(4), Splits(0.95),
    plain {
        #[derive(phigrad::Carry)]
        pub struct Account<S> { pub sum: S, pub count: usize }
    }
    traced {
        impl<S: Num> Account<S> {
            fn add(&mut self, v: S) -> &mut Self { self.sum = self.sum + v; self.count += 1; self }
            fn reset(&mut self) { self.count = 0; }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut account = Account { sum: x[0], count: 0 };
            if x[1] > 0.0 { account.add(x[1]).add(x[2]); }
            if x[2] > 1.0 { account.reset(); } else if x[3] > 0.0 { account.add(x[3]); }
            account.sum * account.count as f64 + x[account.count % 4]
        }
    }
    reference_in_a_struct: inputs(4), Keeps("writer", 0.45),
    plain { pub struct Writer<'a, S> { pub to: &'a mut S, pub other: &'a mut [S], pub n: usize } }
    traced {
        impl<S: Num> Writer<'_, S> {
            fn write(&mut self, v: S) {
                if v > 0.0 { *self.to = *self.to + v; } else { self.other[self.n % 2] = v; }
                self.n += 1;
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut total = S::from(1.0);
            let mut rest = [x[0], x[1]];
            let mut writer = Writer { to: &mut total, other: &mut rest, n: 0 };
            for &v in x { if v < 1.0 { writer.write(v); } }
            let n = writer.n;
            total * rest[0] + rest[1] * n as f64
        }
    }
    nested_structs: inputs(4), Splits(0.20),
    plain {
        #[derive(Clone, Default, phigrad::Carry)]
        pub struct Inner<S> { pub v: S, pub on: bool }
        #[derive(Clone, Default, phigrad::Carry)]
        pub struct Outer<S> { pub parts: [Inner<S>; 2], pub at: usize, pub extra: Option<Inner<S>> }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut o: Outer<S> = Outer { at: 0, ..Outer::default() };
            for &v in x {
                let at = o.at;
                { let part = &mut o.parts[at]; if v > 0.0 { part.v = part.v + v; } else { part.on = !part.on; } }
                if v < -1.0 { o.at = 1 - at; }
                if v > 1.5 { o.extra = Some(o.parts[o.at].clone()); }
            }
            let base = if o.parts[0].on { o.parts[0].v } else { o.parts[1].v * 2.0 };
            match o.extra { Some(Inner { v, on: true }) => base * v, Some(i) => base + i.v, None => base }
        }
    }
    // The struct has no `Carry`: its variable is named as the reason.
    // Its fields are carried by themselves.
    fields_without_carry: inputs(4), Splits(0.85),
    plain { pub struct Plain<S> { pub v: S, pub n: u32 } }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut plain = Plain { v: S::from(0.0), n: 0 };
            for &v in x { if v > 0.0 { plain.v = plain.v + v; } else { plain.n += 1; } }
            plain.v * f64::from(plain.n) + x[0]
        }
    }
    without_carry: inputs(4), Keeps("plain", 0.85),
    plain { pub struct Plain<S> { pub v: S, pub n: u32 } }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut plain = Plain { v: S::from(0.0), n: 0 };
            for &v in x {
                if v > 0.0 { plain = Plain { v: plain.v + v, n: plain.n }; } else { plain.n += 1; }
            }
            plain.v * f64::from(plain.n) + x[0]
        }
    }
    moved_and_returned: inputs(3), Splits(0.85),
    plain {
        #[derive(Clone, Copy, phigrad::Carry)]
        pub struct Pair<S>(pub S, pub S, pub i8);
    }
    traced {
        fn turn<S: Num>(p: Pair<S>, v: S) -> Pair<S> {
            if v > 1.0 { Pair(p.1, p.0, p.2 + 1) } else if v > 0.0 { { let q = p_with(p); Pair(v, q.1, q.2) } } else { p }
        }
        fn p_with<S: Num>(p: Pair<S>) -> Pair<S> { if p.0 > p.1 { Pair(p.0, p.0, -p.2) } else { p } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut p = Pair(x[0], x[1] * 2.0, 1);
            for &v in x { p = turn(p, v); }
            p.0 - p.1 * f64::from(p.2)
        }
    }
}
