//! Patterns: matches with guards, enums and options with traced numbers inside.

programs! {
    guards_on_traced: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for (i, &v) in x.iter().enumerate() {
                y = y + match i % 3 {
                    0 if v > 0.5 => v,
                    0 | 1 if v > 0.0 => v * v,
                    1 => { y = y * 0.5; v }
                    _ if v < -1.0 || y > 1.0 => -v,
                    _ => S::from(0.25),
                };
            }
            y
        }
    }
    nested_options: inputs(4), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = if x[0] > 0.0 { Some(if x[1] > 0.0 { Some(x[1]) } else { None }) } else { None };
            let mut b = if x[2] > 0.0 { Ok(x[2]) } else { Err(1) };
            if x[3] > 1.0 { b = Err(2); }
            match (a, b) {
                (Some(Some(v)), Ok(w)) if v > w => v - w,
                (Some(Some(v)), _) => v,
                (Some(None), Ok(w)) => w * 3.0,
                (None, Ok(_)) | (Some(None), Err(_)) if x[3] < 0.0 => x[3],
                (_, Err(n)) => x[0] * f64::from(n),
                _ => x[1],
            }
        }
    }
    enums: inputs(5), DependsOnContext(0.80),
    plain {
        #[derive(Clone, Copy, phigrad::Carry)]
        pub enum Shape<S> { Point, Circle(S), Box { w: S, h: S, n: u8 } }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut shape = Shape::Point;
            let mut y = S::from(0.0);
            for &v in x {
                shape = match shape {
                    Shape::Point if v > 0.0 => Shape::Circle(v),
                    Shape::Point => Shape::Box { w: v, h: y, n: 1 },
                    Shape::Circle(r) if r > v => Shape::Box { w: r, h: v, n: 2 },
                    Shape::Circle(r) => Shape::Circle(r + v),
                    Shape::Box { w, h, n } if n < 3 && w > h => Shape::Box { w: h, h: v, n: n + 1 },
                    Shape::Box { .. } => Shape::Point,
                };
                y = y + size(&shape);
            }
            y
        }
        fn size<S: Num>(shape: &Shape<S>) -> S {
            match shape {
                Shape::Point => S::from(0.5),
                Shape::Circle(r) => *r * *r,
                Shape::Box { w, h, .. } if *w > 1.0 => *w * *h,
                Shape::Box { w, n, .. } => *w * f64::from(*n),
            }
        }
    }
    references_in_patterns: inputs(4), Splits(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut pair = (x[0], Some(x[1]));
            match &mut pair {
                (a, Some(b)) if *a > *b => { *a = *b; *b = x[2]; }
                (a, b) => { if *a > 0.0 { *b = None; } *a = x[3]; }
            }
            if let (ref mut a, Some(ref mut b)) = pair { if *a > 0.5 { *a = *a + *b; } else { core::mem::swap(a, b); } }
            pair.0 * 2.0 + pair.1.unwrap_or(x[3])
        }
    }
    chains_of_let: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(0.0);
            for pair in x.windows(2) {
                if let Some(a) = root(pair[0]) && a > 0.5 && let Some(b) = root(pair[1] - a) { y = y + a * b; }
                else if let Some(b) = root(pair[1]) { y = y - b; }
            }
            y
        }
        fn root<S: Num>(v: S) -> Option<S> { (v > 0.0).then(|| (v + 0.5).sqrt()) }
    }
    bound_with_at: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let count = usize::from(x[0] > 0.0) + usize::from(x[1] > 0.0) * 2;
            let mut y = match count { n @ 1..=2 if x[2] > 0.0 => x[2] * n as f64, n @ (0 | 3) => x[0] + n as f64, n => x[1] * n as f64 };
            if matches!(count, 1 | 3) && y > 0.0 { y = y * y; }
            y
        }
    }
    slice_patterns: inputs(5), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let kept = if x[0] > 0.0 { &x[1..] } else { &x[2..4] };
            match kept {
                [a, b] if a > b => *a,
                [_, b] => *b * *b,
                [first, .., last] if *first > 0.0 => *first * *last,
                [_, middle @ .., _] => { let mut y = x[0]; for v in middle { if *v > 0.5 { y = y + *v; } } y }
                _ => S::from(0.0),
            }
        }
    }
    orderings: inputs(4), Splits(0.85),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            use std::cmp::Ordering::*;
            let mut y = x[0];
            for v in &x[1..] {
                y = match y.partial_cmp(v) { Some(Less) => y + *v, Some(Equal) => y * 3.0, Some(Greater) => *v - y, None => S::from(0.5) };
            }
            y
        }
    }
    option_changed_inside: inputs(4), Splits(0.75),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut best: Option<(usize, S)> = None;
            for (i, &v) in x.iter().enumerate() {
                match &mut best {
                    Some((_, old)) if v > *old + 1.0 => { *old = v; }
                    Some((at, _)) if v < -1.0 => { *at = i; }
                    None if v > 0.0 => best = Some((i, v)),
                    _ => {}
                }
            }
            best.map_or(x[0], |(i, v)| v * x[i])
        }
    }
}
