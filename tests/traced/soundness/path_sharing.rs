//! Paths are shared among instances that run the same code with equal live-in
//! state and equal escaped numbers, and among no others.

programs! {
    escapes_in_a_helper: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            let n = v.floor().value();
            if y > 0.0 { y * n } else { y - n }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(x[2], x[3]) }
    }
    escapes_in_a_region: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            if y > 0.0 {
                let n = v.floor().value();
                if v * y > 0.5 { y * n } else { y - n }
            } else { y + 1.0 }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(x[2], x[3]) }
    }
    escapes_in_iterations: inputs(2).between(0.0, 4.0), Splits(0.1),
    traced {
        pub fn run<S: Num>(x: &[S]) -> S {
            let (mut y, v) = (x[0], x[1]);
            while y < 10.0 && y > -9.0 {
                let k = y.floor().value();
                if v > y { y = y + k + 1.0; } else { y = y + 2.0; }
            }
            y
        }
    }
    // The number does nothing but choose what comes next.
    escapes_decide: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            if y > -1.0 {
                let n = v.floor().value();
                let z = if n > 0.0 { y * y } else { y * v };
                if z > 0.5 { z - v } else { z + y }
            } else { y }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(x[2], x[3]) }
    }
    escapes_behind_a_branch: inputs(4), Merges(0.5),
    traced {
        fn step<S: Num>(y: S, v: S) -> S {
            if y > 0.0 {
                let z = if v > 0.0 { y + v } else { y - v };
                z * z.floor().value()
            } else { y * 2.0 }
        }
        pub fn run<S: Num>(x: &[S]) -> S { step(x[0], x[1]) * step(x[2], x[3]) + step(x[1], x[2]) }
    }
    types_of_one_name: inputs(3), Merges(0.9),
    plain { pub trait Rate { const R: f64; } }
    traced {
        fn grow<S: Num, K: Rate>(y: S, v: S) -> S { if v > 0.0 { y * K::R } else { y - K::R } }
        pub fn run<S: Num>(x: &[S]) -> S {
            let a = { struct K; impl Rate for K { const R: f64 = 2.0; } grow::<S, K>(x[0], x[1]) };
            let b = { struct K; impl Rate for K { const R: f64 = 3.0; } grow::<S, K>(x[0], x[2]) };
            a * b
        }
    }
    closures_of_one_function: inputs(3), Keeps("f", 0.1),
    traced {
        fn apply<S: Num, F: Fn(S) -> S>(f: F, y: S, v: S) -> S {
            if v > 0.0 { f(y) } else { f(y * 0.5) - y }
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            apply(|y| y * 2.0, x[0], x[1]) * apply(|y| y + 1.0, x[0], x[2])
        }
    }
    closures_in_closures: inputs(3), Keeps("f", 0.1),
    traced {
        fn twice<S: Num, F: Fn(S) -> S>(f: &F, y: S, v: S) -> S {
            let g = |z: S| if v > 0.0 { f(z) } else { z };
            g(y) + g(v)
        }
        pub fn run<S: Num>(x: &[S]) -> S {
            twice(&|y| y * 2.0, x[0], x[1]) * twice(&|y| y + 1.0, x[0], x[2])
        }
    }
    methods_of_one_name: inputs(3), Merges(0.9),
    plain {
        pub trait Rate { const R: f64; }
        pub struct Of<T>(pub T);
    }
    traced {
        fn grow<S: Num, K: Rate>(y: S, v: S, times: u32) -> S {
            let mut y = y;
            for _ in 0..times { if v > 0.0 { y = y * K::R; } else { y = y - K::R; } }
            y
        }
        fn first<S: Num>(y: S, v: S) -> S { struct K; impl Rate for K { const R: f64 = 2.0; } grow::<S, K>(y, v, 2) }
        fn second<S: Num>(y: S, v: S) -> S {
            let a = { struct K; impl Rate for Of<K> { const R: f64 = 3.0; } grow::<S, Of<K>>(y, v, 2) };
            let b = { struct K; impl Rate for Of<K> { const R: f64 = 0.5; } grow::<S, Of<K>>(y, v, 2) };
            a - b
        }
        pub fn run<S: Num>(x: &[S]) -> S { first(x[0], x[1]) * second(x[0], x[2]) }
    }
}

/// State that no attribute can see: a thread-local, behind a function.
mod unseen {
    use std::cell::Cell;
    use std::panic::Location;

    use phigrad::internals::merge::{MergeLimits, MergeOutcome, MergedTraces};
    use phigrad::internals::ssa::{Outcome, interpret};
    use phigrad::internals::trace::{Detail, Inputs, Tracer};
    use phigrad::{Var, traced};

    thread_local! {
        static DOUBLES: Cell<bool> = const { Cell::new(false) };
        static FACTOR: Cell<f64> = const { Cell::new(2.0) };
    }

    fn doubles() -> bool {
        DOUBLES.get()
    }

    #[traced]
    fn step(y: Var, v: Var) -> Var {
        if v > 0.0 { if doubles() { y * 2.0 } else { y + 1.0 } } else { -y * y }
    }

    fn doubling(x: &[Var], _: &[Var]) -> Var {
        DOUBLES.set(false);
        let a = step(x[0], x[1]);
        DOUBLES.set(true);
        a * step(x[0], x[2])
    }

    #[traced]
    fn scale(y: Var, v: Var, factor: f64) -> Var {
        if v > 0.0 { y * factor } else { -y }
    }

    fn scaling(x: &[Var], _: &[Var]) -> Var {
        scale(x[0], x[1], 2.0) * scale(x[0], x[2], FACTOR.get())
    }

    fn profile(traces: &mut MergedTraces, x: &[f64], nodes: usize) -> MergeOutcome {
        profile_at(doubling, traces, x, nodes)
    }

    fn profile_at(
        run: fn(&[Var], &[Var]) -> Var,
        traces: &mut MergedTraces,
        x: &[f64],
        nodes: usize,
    ) -> MergeOutcome {
        let mut tracer = Tracer::default();
        tracer.detail(Detail::Captures);
        let inputs = Inputs { active: x, inactive: &[] };
        let trace = tracer.run(run, inputs, 100, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: 10, nodes }).unwrap()
    }

    fn value(traces: &mut MergedTraces, x: &[f64]) -> Option<f64> {
        match interpret(traces.graph(), x) {
            Outcome::Values(values) => Some(values[0]),
            _ => None,
        }
    }

    #[test]
    fn a_contradicted_path_is_cleared_and_not_shared_again() {
        let mut traces = MergedTraces::new(3, 0);
        profile(&mut traces, &[3.0, 1.0, -1.0], 1000);
        profile(&mut traces, &[3.0, -1.0, -1.0], 1000);
        assert_eq!(traces.generation(), 0);
        let seen = profile(&mut traces, &[3.0, 1.0, 1.0], 1000);
        assert!(matches!(seen, MergeOutcome::New { .. }));
        assert_eq!(traces.generation(), 1, "the path of the other instance was not cleared");
        for x in [[3.0, -1.0, 1.0], [3.0, 1.0, -1.0], [3.0, -1.0, -1.0]] {
            profile(&mut traces, &x, 1000);
        }
        assert_eq!(traces.generation(), 1);
        assert_eq!(value(&mut traces, &[3.0, 1.0, 1.0]), Some(24.0));
        assert_eq!(value(&mut traces, &[3.0, -1.0, 1.0]), Some(-54.0));
    }

    #[test]
    fn paths_shared_on_varying_state_are_cleared() {
        let mut traces = MergedTraces::new(3, 0);
        profile_at(scaling, &mut traces, &[3.0, 1.0, -1.0], 1000);
        assert_eq!(value(&mut traces, &[3.0, 1.0, 1.0]), Some(36.0), "nothing was shared");
        FACTOR.set(5.0);
        profile_at(scaling, &mut traces, &[3.0, 1.0, -1.0], 1000);
        assert_eq!(traces.generation(), 1);
        assert_eq!(value(&mut traces, &[3.0, 1.0, 1.0]), None);
        assert_eq!(value(&mut traces, &[3.0, 1.0, -1.0]), Some(-18.0));
        profile_at(scaling, &mut traces, &[3.0, -1.0, 1.0], 1000);
        assert_eq!(value(&mut traces, &[3.0, 1.0, 1.0]), Some(90.0));
    }

    #[test]
    fn copied_steps_do_not_count_as_events() {
        let mut traces = MergedTraces::new(3, 0);
        profile(&mut traces, &[3.0, 1.0, -1.0], 1000);
        let one = traces.events();
        assert!(traces.steps() + 3 > one, "nothing was copied");
    }

    #[test]
    fn shared_paths_are_known_without_asking_for_the_graph() {
        let mut traces = MergedTraces::new(3, 0);
        profile(&mut traces, &[3.0, 1.0, -1.0], 1000);
        let version = traces.version();
        for x in [[3.0, -1.0, -1.0], [3.0, 1.0, -1.0]] {
            assert_eq!(profile(&mut traces, &x, 1000), MergeOutcome::Known);
        }
        assert_eq!((traces.version(), traces.generation()), (version, 0));
    }

    #[test]
    fn sharing_stays_within_the_limits() {
        let (mut small, mut large) = (MergedTraces::new(3, 0), MergedTraces::new(3, 0));
        profile(&mut large, &[3.0, 1.0, -1.0], 1000);
        let walked = large.events() - 3;
        assert_eq!(profile(&mut small, &[3.0, 1.0, -1.0], walked), MergeOutcome::First);
        assert_eq!(small.steps(), walked);
        assert_eq!(value(&mut small, &[3.0, -1.0, -1.0]), None);
        assert!(value(&mut large, &[3.0, -1.0, -1.0]).is_some());
        assert_eq!(profile(&mut small, &[3.0, 1.0, -1.0], walked), MergeOutcome::Known);
    }
}
