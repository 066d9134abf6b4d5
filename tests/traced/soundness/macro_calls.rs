//! Macros that declare, change and jump, and formats with arguments.

programs! {
    macro_that_changes: inputs(4), Splits(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            macro_rules! tick { () => { n += 1 } }
            for &v in x { if v > 0.0 { tick!(); } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    // The macro means the outer one.
    macro_that_changes_what_is_hidden: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            macro_rules! tick { () => { n += 1 } }
            for &v in x { let n = v; if n > 0.0 { tick!(); } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    macro_that_declares: inputs(4), Sound,
    plain {
        macro_rules! var { ($n:ident, $v:expr) => { let mut $n = $v; } }
        pub(crate) use var;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            var!(n, 0);
            for &v in x { if v > 0.0 { n += 1; } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    macro_that_declares_what_is_lent: inputs(4), Sound,
    plain {
        macro_rules! var { ($n:ident, $v:expr) => { let mut $n = $v; } }
        pub(crate) use var;
        pub fn add(n: &mut u32) { *n += 1; }
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut m = 1u32;
            var!(r, &mut m);
            for &v in x { if v > 0.0 { add(r); } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(m); }
            var!(all, vec![1.0]);
            if x[1] > 0.0 { all.push(2.0); }
            if x[2] > 0.0 { y = y * all.len() as f64; }
            y
        }
    }
    macro_that_declares_what_is_read: inputs(4), Sound,
    plain {
        macro_rules! var { ($n:ident, $v:expr) => { let $n = $v; } }
        pub(crate) use var;
    }
    traced {
        fn turn<S: Num>(y: S, v: S, k: usize) -> S {
            var!(by, k as f64 + 0.5);
            if v > 0.0 { y * by } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            for (k, &v) in x.iter().enumerate() { y = turn(y, v, k); }
            y
        }
    }
    macro_that_leaves_a_loop: inputs(4), Sound,
    plain {
        macro_rules! stop_if { ($c:expr) => { if $c { break } } }
        pub(crate) use stop_if;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut k, mut n) = (0, 0);
            while k < 9 {
                if x[k] > 0.0 { n = 1; }
                k += 1;
                stop_if!(k == 2);
                n = 0;
            }
            let mut y = x[2];
            if x[3] > 0.0 { y = y * f64::from(n); }
            y
        }
    }
    macro_that_leaves_an_endless_loop: inputs(4), Sound,
    plain {
        macro_rules! stop_if { ($c:expr) => { if $c { break } } }
        macro_rules! give_if { ($c:expr, $v:expr) => { if $c { return $v; } } }
        pub(crate) use {give_if, stop_if};
    }
    traced {
        fn given<S: Num>(x: &[S], mut y: S) -> S {
            let mut k = 0;
            loop {
                give_if!(k == 3, y);
                if x[k] > 0.0 { y = y * 2.0; }
                k += 1;
            }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut k, mut n, mut y) = (0, 1, x[0]);
            loop {
                if x[k] > 0.0 { n += 1; y = y * x[k]; }
                k += 1;
                stop_if!(k == 3);
            }
            if x[3] > 0.0 { y = y * f64::from(n); }
            given(x, y)
        }
    }
    // What the macros of the language do is known.
    macros_of_the_language: inputs(3), Merges(0.9),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut y = x[0];
            let mut seen = Some(x.len());
            for (k, &v) in x.iter().enumerate() {
                assert!(k < 3, "{k}");
                if v > 0.0 { y = y * v; debug_assert!(matches!(seen, Some(n) if n > k)); }
                if matches!(seen, Some(3)) && v > 0.5 { y = y + 1.0; }
            }
            y
        }
    }
    format_with_arguments: inputs(3), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut prec, mut wide, mut y) = (1, 1, x[2]);
            if x[0] > 0.0 { prec = 3; } else { wide = 9; }
            if x[1] > 0.0 { y = y * format!("{:.prec$}", 0.5).len() as f64; }
            if x[2] > 0.0 { y = y * format!("{:>wide$}", 5).len() as f64; }
            y
        }
    }
    hidden_by_a_block: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            macro_rules! assert { ($e:expr) => { n += $e } }
            {
                let n = x[0];
                if x[3] > 0.0 { assert!(1); }
                if n > 0.0 { assert!(2); }
            }
            let mut y = x[1];
            if x[2] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    macro_that_declares_a_closure: inputs(4), Sound,
    plain {
        macro_rules! count { ($f:ident, $n:ident) => { let mut $f = || $n += 1; } }
        pub(crate) use count;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let mut n = 0;
            count!(f, n);
            for &v in x { if v > 0.0 { f(); } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    closure_over_what_a_macro_declares: inputs(4), Sound,
    plain {
        macro_rules! var { ($n:ident, $v:expr) => { let mut $n = $v; } }
        pub(crate) use var;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            var!(n, 0);
            let mut f = || n += 1;
            for &v in x { if v > 0.0 { f(); } }
            let mut y = x[1];
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    macro_in_an_expression: inputs(4), Sound,
    plain {
        macro_rules! next { ($n:ident) => {{ $n += 1; $n }} }
        pub(crate) use next;
    }
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut y) = (0, x[1]);
            for &v in x { if v > 0.0 && next!(n) > 1 { y = y + v; } }
            if x[0] > 0.5 { y = y * f64::from(n); }
            y
        }
    }
    changed_in_a_question: inputs(4), Sound,
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut n, mut y) = (Some(0), x[1]);
            for &v in x { if v > 0.0 && matches!({ if let Some(k) = n.as_mut() { *k += 1; } n }, Some(k) if k > 1) { y = y + v; } }
            if x[0] > 0.5 { y = y * f64::from(n.unwrap_or(0)); }
            y
        }
    }
}
