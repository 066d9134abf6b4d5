//! Closures: they capture variables, change them, and are arguments of functions.

programs! {
    changes_what_it_captured: inputs(4), Keeps("add", 0.50),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut total = S::from(0.0);
            let mut count = 0;
            let mut add = |v: S| { if v > 0.0 { total = total + v; count += 1; } else { total = total - v * v; } };
            for &v in x { if v > -1.0 { add(v); } else { add(v * 0.5); } }
            total * f64::from(count)
        }
    }
    reads_what_it_captured: inputs(4), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let scale = if x[0] > 0.0 { x[0] } else { x[1] };
            let bent = |v: S| if v > scale { v - scale } else { v * scale };
            let mut y = S::from(0.0);
            for &v in x { if v > 0.5 { y = y + bent(v); } else { y = y - bent(-v) * 0.5; } }
            bent(y)
        }
    }
    moved_in: inputs(3), Merges(0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut kept = x[0];
            if x[1] > 0.0 { kept = kept * x[1]; }
            let mut next = move |v: S| { if v > kept { kept = v; } kept };
            let a = next(x[1]);
            let b = next(x[2]);
            kept = kept + 1.0;
            if a > 0.5 { kept = kept * b; }
            kept + a
        }
    }
    given_to_a_helper: inputs(4), Keeps("f", 0.65),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut last, mut calls) = (x[0], 0);
            let y = each(x, |v| { calls += 1; if v > last { last = v; } last * v });
            if calls == 3 { y } else { y + last }
        }
        fn each<S: Num>(x: &[S], mut f: impl FnMut(S) -> S) -> S {
            let mut y = S::from(0.0);
            for &v in x { if v > -0.5 { y = y + f(v); } }
            y
        }
    }
    folds: inputs(5), Splits(0.00),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let y = x.iter().fold(S::from(0.0), |y, &v| if v > y { v } else { y * 0.5 });
            let z: Vec<S> = x.iter().map(|&v| if v > 0.0 { v } else { -v }).collect();
            let any = x.iter().any(|&v| v > 1.8);
            let mut w = if any { z[0] } else { z[1] * y };
            if x.iter().all(|v| *v < 1.0) { w = w + y; }
            if let Some(i) = z.iter().position(|v| *v > 1.5) { w = w * z[i]; }
            w
        }
    }
    scans: inputs(5), Keeps("iterator of the loop", 0.55),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = S::from(1.0);
            let mut seen = 0;
            for v in x.iter().map(|v| { if *v > 0.0 { seen += 1; } *v * seen as f64 }) {
                if v > 1.0 { y = y + v; } else { y = y - v; }
            }
            y
        }
    }
    chosen: inputs(4), Keeps("the value of the expression", 0.95),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let k = x[0];
            let double = move |v: S| v * k;
            let square = move |v: S| v * v + k;
            let f: &dyn Fn(S) -> S = if x[1] > 0.0 { &double } else { &square };
            let mut y = x[2];
            if x[3] > 0.0 { y = y + 1.0; }
            f(y) + f(x[3])
        }
    }
    in_a_box: inputs(4), Keeps("steps", 0.80),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut steps: Vec<Box<dyn Fn(S) -> S>> = Vec::new();
            for i in 0..3 {
                let v = x[i];
                if v > 0.0 { steps.push(Box::new(move |y| y * v)); } else { steps.push(Box::new(move |y| y + v)); }
            }
            let mut y = x[3];
            for f in &steps { y = f(y); if y > 1.0 { y = y - 1.0; } }
            y
        }
    }
    changes_a_flag: inputs(4), Keeps("mark", 0.90),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut flag = false;
            let mut mark = |v: S| { if v > 1.0 { flag = true; } v * 0.5 };
            let y = mark(x[0]);
            let z = if x[1] > 0.0 { mark(x[2]) } else { x[3] };
            if flag { y + z } else { y * z }
        }
    }
    // A closure that was lent to another closure.
    nested_closures: inputs(4), Keeps("outer", 0.65),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            let mut inner = |v: S| { n += 1; if v > 0.0 { v } else { -v } };
            let mut outer = |v: S| if v > 1.0 { inner(v) * 2.0 } else { v };
            let mut y = outer(x[0]);
            for &v in &x[1..] { if v > 0.0 { y = y + outer(v * 1.5); } }
            if n > 1 { y.sin() } else { y }
        }
    }
}
