//! Code that is called with traced numbers in one place and constants in another:
//! operations on constants are not in the trace.

programs! {
    of_one_operand: inputs(4), Merges(0.9),
    traced {
        fn step<S: Num>(y: S, v: S) -> S { if v > 0.5 { y * v + y * y } else { v - y } }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(0.75), x[2]) + step(S::from(-2.0), x[3]) }
    }
    that_choose_a_factor: inputs(3), Merges(0.9),
    traced {
        fn pull<S: Num>(a: S, b: S, rest: S, slack: f64) -> S {
            let apart = (a - b) * (a - b) + 1.0;
            let stretch = apart - rest;
            let factor = if stretch > 0.0 { 3.0 } else { slack };
            stretch * factor + (a * b) / apart
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut a, mut b) = (S::from(1.0), S::from(0.5));
            for k in 0..4 {
                let f = pull(a, b, x[k % 3] + 1.0, 0.25);
                (a, b) = (a + f * 0.1, b - f * 0.1);
            }
            a * b
        }
    }
    that_are_compared: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let z = y * y - 1.0;
            if v > 0.0 { if z > 0.5 { z * v } else { z - v } } else if y > -0.25 { v } else { v * y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            step(x[0], x[1]) * step(S::from(0.75), x[2]) + step(S::from(-2.0), x[3]) - step(S::from(1.5), x[0])
        }
    }
    that_decide_about_one_way: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let mut z = v;
            if v > 0.0 {
                if y > 0.3 { z = z * y; } else { z = z + y; }
                if z > 0.5 { z = z - y; }
            } else {
                if y > 0.3 && v > -1.0 { z = z * 0.5; }
                z = z - v * y;
            }
            z * y
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(0.75), x[2]) + step(S::from(0.1), x[3]) }
    }
    that_escape: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            if v > 0.0 { let n = y.floor().value(); v * n + y } else { v - y }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(1.75), x[2]) + step(S::from(-2.5), x[3]) }
    }
    that_choose_an_element: inputs(4), Splits(0.3),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let table = [0.5, 2.0, -1.0];
            if v > 0.0 { v * table[(y.abs().floor().value() as usize).min(2)] } else { y + v }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(1.75), x[2]) + step(S::from(-2.5), x[3]) }
    }
    that_count_iterations: inputs(4), Splits(0.1),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let (mut y, mut n) = (y, 0);
            while y < 3.0 && n < 4 { y = y + v * v + 0.5; n += 1; }
            if v > 0.0 { y * v } else { y - n as f64 }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(1.75), x[2]) + step(S::from(4.0), x[3]) }
    }
    that_bound_a_loop: inputs(3), Splits(0.3),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            if v > 0.0 {
                let (mut z, mut y) = (v, y);
                while y > 0.5 && y < 9.0 { y = y - 1.0; z = z * 0.5 + y; }
                z
            } else { v * y }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(2.75), x[2]) + step(S::from(0.25), x[0]) }
    }
    that_lead_out: inputs(4), Splits(0.3),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let mut sum = y;
            for k in 0..3 {
                sum = sum * 0.5 + v;
                if sum > 1.5 { return sum * y; }
                if y > 1.0 { break; }
                if v < -1.0 { sum = sum - y; continue; }
                sum = sum + k as f64;
            }
            sum - y
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(1.75), x[2]) + step(S::from(0.5), x[3]) }
    }
    that_are_equal_elsewhere: inputs(3), Merges(0.9),
    traced {
        fn step<S: Num>(a: S, b: S, v: S) -> S { if v > 0.0 { a * v - b } else { b * b + v * a } }
        pub fn run<S: Num>(x: &[S]) -> S {
            step(x[0], x[0], x[1]) * step(S::from(0.75), S::from(-1.5), x[2]) + step(S::from(0.5), x[1], x[0])
        }
    }
    that_are_in_the_text: inputs(3), Merges(0.9),
    traced {
        fn step<S: Num>(a: S, v: S) -> S { if v > 0.0 { a * 0.75 - v * 2.0 } else { v * 0.75 + a * 2.0 } }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(0.75), x[2]) + step(S::from(2.0), x[0]) }
    }
    some_traced_and_some_not: inputs(3), Merges(0.9),
    traced {
        fn step<S: Num>(a: S, b: S, c: S, v: S) -> S {
            let d = a * b + c;
            if v > 0.0 { d * v + a * c } else { v - (b + c) * a }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            let k = [S::from(0.5), S::from(-1.5), S::from(3.0)];
            step(x[0], k[0], x[1], x[2]) + step(k[1], k[0], x[1], x[2]) + step(k[1], k[0], k[2], x[0])
                - step(x[0], x[1], x[2], x[1]) + step(k[0], k[1], x[2], x[1]) * step(x[1], k[1], k[2], x[0])
        }
    }
    without_a_number: inputs(3), Merges(0.5),
    traced {
        fn step<S: Num>(a: S, v: S) -> S {
            let b = a / a;
            if v > 0.0 { v + b.abs() } else { v * 2.0 - b }
        }
        fn guarded<S: Num>(a: S, v: S) -> S {
            let y = step(a, v);
            if y == y { y } else { v }
        }
        pub fn run<S: Num>(x: &[S]) -> S { guarded(x[0], x[1]) * guarded(S::from(0.0), x[2]) + guarded(S::from(-0.0), x[0]) }
    }
    with_both_zeros: inputs(3), Merges(0.9),
    traced {
        fn step<S: Num>(a: S, v: S) -> S { if v > 0.0 { v * a } else { (v * v + 1.0) / (a * a * a + v * v + 0.5) } }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) + step(S::from(0.0), x[2]) - step(S::from(-0.0), x[0]) }
    }
    in_nested_helpers: inputs(3), Merges(0.5),
    traced {
        fn inner<S: Num>(a: S, v: S) -> S { if a * v > 0.25 { a - v } else { a * v } }
        fn outer<S: Num>(a: S, v: S) -> S {
            let b = inner(a, S::from(0.5));
            if v > 0.0 { inner(b, v) } else { inner(v, b) + inner(b, a) }
        }
        pub fn run<S: Num>(x: &[S]) -> S { outer(x[0], x[1]) * outer(S::from(0.75), x[2]) + outer(S::from(-3.0), x[0]) }
    }
    behind_shared_references: inputs(3), Sound,
    traced {
        fn step<S: Num>(a: S, v: S) -> S {
            let mut kept = std::rc::Rc::new(a);
            if v > 0.0 { kept = std::rc::Rc::new(a * 2.0); }
            *kept * v
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(S::from(0.75), x[2]) + step(S::from(-3.0), x[0]) }
    }
}

/// Paths of an instance with traced numbers are copied to one with constants, and
/// not the other way round.
mod specialisation {
    use std::panic::Location;

    use phigrad::internals::merge::{MergeLimits, MergedTraces};
    use phigrad::internals::ssa::{Outcome, interpret};
    use phigrad::internals::trace::{Detail, Inputs, Tracer};
    use phigrad::{Var, traced};

    #[traced]
    fn scale(y: Var, v: Var) -> Var {
        let z = y * y + 1.0;
        if v > 0.0 { z * v } else { v - z }
    }

    #[traced]
    fn compare(y: Var, v: Var) -> Var {
        if v > 0.0 { if y > 1.0 { y * v } else { v } } else { v - y }
    }

    fn profile(run: fn(&[Var], &[Var]) -> Var, points: &[[f64; 3]]) -> MergedTraces {
        let mut traces = MergedTraces::new(3, 0);
        for x in points {
            let mut tracer = Tracer::default();
            tracer.detail(Detail::Captures);
            let inputs = Inputs { active: x, inactive: &[] };
            let trace = tracer.run(run, inputs, 100, Location::caller()).unwrap();
            traces.merge(&trace, MergeLimits { paths: 10, nodes: 1000 }).unwrap();
        }
        assert_eq!(traces.generation(), 0);
        traces
    }

    fn value(traces: &mut MergedTraces, x: [f64; 3]) -> Option<f64> {
        match interpret(traces.graph(), &x) {
            Outcome::Values(values) => Some(values[0]),
            _ => None,
        }
    }

    #[test]
    fn paths_are_copied_to_constants_and_not_back() {
        let traced_first = |x: &[Var], _: &[Var]| scale(x[0], x[1]) + scale(2.0.into(), x[2]);
        let mut traces = profile(traced_first, &[[3.0, 1.0, 1.0], [3.0, -1.0, 1.0]]);
        assert_eq!(value(&mut traces, [3.0, -1.0, -1.0]), Some(-11.0 - 6.0));
        assert_eq!(value(&mut traces, [3.0, 1.0, -1.0]), Some(10.0 - 6.0));
        // The product of constants is not in the trace.
        let mut traces = profile(traced_first, &[[3.0, 1.0, 1.0], [3.0, 1.0, -1.0]]);
        assert_eq!(value(&mut traces, [3.0, -1.0, 1.0]), None);
    }

    #[test]
    fn instances_with_different_constants_do_not_share() {
        let run = |x: &[Var], _: &[Var]| scale(4.0.into(), x[1]) + scale(2.0.into(), x[2]);
        let mut traces = profile(run, &[[3.0, 1.0, 1.0], [3.0, -1.0, 1.0]]);
        assert_eq!(value(&mut traces, [3.0, 1.0, -1.0]), None);
    }

    #[test]
    fn paths_through_comparisons_of_constants_are_not_copied() {
        let run = |x: &[Var], _: &[Var]| compare(x[0], x[1]) + compare(2.0.into(), x[2]);
        let points = [[3.0, -1.0, -1.0], [3.0, 1.0, -1.0], [0.5, 1.0, -1.0]];
        let mut traces = profile(run, &points);
        assert_eq!(value(&mut traces, [3.0, 1.0, 1.0]), None);
        let mut traces = profile(run, &[[3.0, -1.0, 1.0], [3.0, 1.0, 1.0]]);
        assert_eq!(value(&mut traces, [3.0, -1.0, -1.0]), Some(-4.0 - 3.0));
    }
}
