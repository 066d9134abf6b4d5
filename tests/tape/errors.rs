//! Every error and refusal of every stage: each is provoked if a test can do so,
//! and has a message that names the place and the limit.

use core::convert::Infallible;
use std::cell::Cell;
use std::error::Error;
use std::panic::Location;

use phigrad::internals::entity::Entity;
use phigrad::internals::jit::{CompileError, Kernel, RunError, compile};
use phigrad::internals::merge::{MergeError, MergeLimits, MergeOutcome, MergedTraces};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Def, End, Graph, Node, ParseError, Place, VerifyError, parse, verify,
};
use phigrad::internals::trace::{Adjoints, Inputs, Run, RunLimits, TraceError, Tracer};
use phigrad::{CustomOperation, Operation, Refusal, Var, linalg};

/// The error of a run of `f` on one input.
fn trace_error(f: impl FnOnce(Var) -> Var, limit: usize) -> TraceError {
    let mut tracer = Tracer::default();
    let inputs = Inputs { active: &[1.0], inactive: &[] };
    tracer.run(|x, _| f(x[0]), inputs, limit, Location::caller()).unwrap_err()
}

#[test]
fn recording_errors_have_the_place() {
    let line = line!() + 1;
    match trace_error(|x| x.sin().cos().exp(), 2) {
        // The limit counts the operations, not the inputs.
        TraceError::TooLong { limit, name, at } => {
            assert_eq!((limit, name, at.line()), (2, "call_events", line));
        }
        error => panic!("{error}"),
    }
    let mut kept = None;
    let (made, inputs) = (Location::caller(), Inputs { active: &[1.0], inactive: &[] });
    let keep = |x: &[Var], _: &[Var]| {
        kept = Some(x[0]);
        x[0]
    };
    Tracer::default().run(keep, inputs, 10, made).unwrap();
    let (kept, line) = (kept.unwrap(), line!() + 1);
    match trace_error(|x| x * kept, 10) {
        TraceError::ForeignVar { used, made: owner } => {
            assert_eq!(used.line(), line);
            assert_eq!(owner, Some(made));
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_wrong_number_of_arguments_is_an_error_with_the_place() {
    let line = line!() + 1;
    match trace_error(|x| Root::call(&[x, x]), 10) {
        TraceError::Arguments { found, expected, at } => {
            assert_eq!((found, expected, at.line()), (2, 1, line));
        }
        error => panic!("{error}"),
    }
}

#[test]
fn too_many_outputs_are_an_error_with_the_place() {
    struct Copies(usize);

    impl Operation for Copies {
        type Error = Infallible;

        fn inputs(&self) -> usize {
            1
        }

        fn outputs(&self) -> usize {
            self.0
        }

        fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
            y.fill(x[0]);
            Ok(())
        }

        fn vjp(&self, _: &[f64], _: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
            out[0] = w.iter().sum();
        }
    }

    let call = |x: Var, count: usize| {
        let Ok(y) = CustomOperation::new(Copies(count)).call(&[x]);
        y[0]
    };
    let line = line!() - 3;
    match trace_error(|x| call(x, (1 << 20) + 1), 10) {
        TraceError::TooManyOutputs { found, limit, at } => {
            assert_eq!((found, limit, at.line()), ((1 << 20) + 1, 1 << 20, line));
        }
        error => panic!("{error}"),
    }
    assert!(matches!(trace_error(|x| call(x, 1 << 20), 10), TraceError::TooLong { .. }));
}

#[test]
fn a_wrong_shape_is_an_error_with_the_place() {
    let line = line!() + 1;
    match trace_error(|x| linalg::dot(&[x, x], &[x]), 10) {
        TraceError::Shape { quantity, found, expected, at } => {
            assert!(quantity.ends_with("`linalg::dot`"));
            assert_eq!((found, expected, at.line()), (1, 2, line));
        }
        error => panic!("{error}"),
    }
}

/// A square root.
struct Root;

impl Root {
    #[track_caller]
    fn call(x: &[Var]) -> Var {
        let Ok(y) = CustomOperation::new(Root).call(x);
        y[0]
    }
}

impl Operation for Root {
    type Error = Infallible;

    fn inputs(&self) -> usize {
        1
    }

    fn outputs(&self) -> usize {
        1
    }

    fn eval(&self, x: &[f64], y: &mut [f64], _: &mut [f64]) -> Result<(), Infallible> {
        y[0] = x[0].sqrt();
        Ok(())
    }

    fn vjp(&self, _: &[f64], y: &[f64], _: &[f64], w: &[f64], out: &mut [f64]) {
        out[0] = w[0] / (2.0 * y[0]);
    }
}

#[test]
fn a_run_that_is_not_repeated_is_an_error_with_the_place() {
    let runs = Cell::new(0.0);
    let line = line!() + 2;
    let f = |x: &[Var], _: &[Var]| {
        let y = x[0] * runs.replace(runs.get() + 1.0);
        y.sin().cos().exp()
    };
    let inputs = Inputs { active: &[1.0], inactive: &[] };
    let limits = RunLimits { whole: 2, call: 10, has_reverse_sweep: true };
    let mut tracer = Tracer::default();
    let run = tracer.run_within(f, inputs, limits, Location::caller()).unwrap();
    let Run::Long(mut run) = run else { panic!("{run:?}") };
    assert_eq!((run.events(), run.beyond().line()), (5, line + 1));
    let mut adjoints = Adjoints::default();
    match run.sweep(&f, &mut adjoints).unwrap_err() {
        TraceError::NotRepeatable { at } => assert_eq!(at.line(), line),
        error => panic!("{error}"),
    }
    // The adjoints of the sweep that failed have no effect on a later one.
    let Ok(Run::Long(mut run)) =
        tracer.run_within(eighth_power, inputs, limits, Location::caller())
    else {
        panic!("three operations are more than two");
    };
    assert_eq!(run.sweep(&eighth_power, &mut adjoints).unwrap(), [8.0]);
}

/// The eighth power, by squaring.
fn eighth_power(x: &[Var], _: &[Var]) -> Var {
    let y = x[0] * x[0];
    let z = y * y;
    z * z
}

/// Merges runs of `functions` on one input; returns the last outcome.
fn merged(functions: &[fn(Var) -> Var], limits: MergeLimits) -> Result<MergeOutcome, MergeError> {
    let mut traces = MergedTraces::new(1, 0);
    let mut last = None;
    for f in functions {
        let mut tracer = Tracer::default();
        let inputs = Inputs { active: &[1.0], inactive: &[] };
        let trace = tracer.run(|x, _| f(x[0]), inputs, 100, Location::caller()).unwrap();
        let before = traces.graph().to_string();
        last = Some(traces.merge(&trace, limits));
        assert!(traces.paths() == 0 || verify(traces.graph()).is_ok());
        if matches!(last, Some(Err(_))) {
            assert_eq!(traces.graph().to_string(), before, "the graph is unchanged");
        }
    }
    last.unwrap()
}

#[test]
fn a_merge_error_leaves_the_graph_unchanged() {
    let wide = MergeLimits { paths: 9, nodes: 99 };
    let sides: [fn(Var) -> Var; 2] =
        [|x| if x > 0.0 { x.exp() } else { x }, |x| if x + 0.0 > 2.0 { x } else { x.sin() }];
    assert_eq!(merged(&[sides[0], sides[0]], wide), Ok(MergeOutcome::Known));
    assert!(matches!(merged(&sides, wide), Err(MergeError::Divergent { at }) if at.line > 0));
    assert_eq!(merged(&sides[..1], wide), Ok(MergeOutcome::First));
    let none = MergeLimits { paths: 0, ..wide };
    assert_eq!(merged(&sides[..1], none), Err(MergeError::TooManyPaths { limit: 0 }));
    let small = MergeLimits { nodes: 1, ..wide };
    assert_eq!(merged(&sides[..1], small), Err(MergeError::TooManyNodes { limit: 1 }));
}

#[test]
fn parsing_tells_bad_grammar_from_bad_graphs() {
    let error = parse("graph active 1 inactive 0\nb0:\n  v1 = frobnicate v0\n").unwrap_err();
    assert!(matches!(error, ParseError::Syntax { line: 3, .. }), "{error}");
    let error = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v1\n  return v1\n").unwrap_err();
    assert!(matches!(error, ParseError::Invalid(_)), "{error}");
    let error: VerifyError = verify(&Graph::new(2, 1)).unwrap_err();
    assert!(error.to_string().contains('^'), "a caret under the line: {error}");
}

#[test]
fn kernels_decline_unseen_paths_and_other_shapes() {
    let text = "graph active 1 inactive 1\nb0:\n  v2 = lt v0 v1\n  guard v2\n  return v0\n";
    let kernel: Kernel = compile(&parse(text).unwrap()).unwrap();
    let mut scratch = Vec::new();
    let mut run = |active: &[f64], inactive: &[f64], outputs: &mut [f64]| {
        kernel.run(active, inactive, &mut scratch, outputs)
    };
    assert_eq!(run(&[1.0], &[2.0], &mut [0.0]), Ok(()));
    for inactive in [1.0, 0.5, f64::NAN] {
        assert_eq!(run(&[1.0], &[inactive], &mut [0.0]), Err(RunError::SideExit));
    }
    for (active, inactive, outputs) in [(0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0)] {
        let (x, y, mut out) = (vec![0.0; active], vec![1.0; inactive], vec![0.0; outputs]);
        assert_eq!(run(&x, &y, &mut out), Err(RunError::Shape));
    }
}

#[test]
fn a_graph_that_is_not_sound_is_not_compiled() {
    let sound = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n").unwrap();
    // Inputs that no buffer has, a path without an end, an operand from nowhere.
    let (input, root) = (sound.input(0), sound.root());
    let mut far = sound.clone();
    far.nodes[input].def = Def::Input(100_000_000);
    let mut open = sound.clone();
    open.blocks[root].end = End::Open;
    let mut lost = sound.clone();
    let nowhere = Node::from_index(99);
    lost.nodes[Node::from_index(1)].def = Def::Apply(Op::Sin, [input, nowhere, nowhere]);
    for graph in [far, open, lost] {
        assert!(matches!(compile(&graph).unwrap_err(), CompileError::Graph(_)), "{graph:?}");
    }
}

#[test]
fn a_loop_with_too_many_saved_values_is_not_compiled() {
    // A later read needs the values of `v3` in up to 4·10⁹ iterations.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\na0 = saved v3\ni0 = a0 base 5\n\
                b0:\n  v4 = region r0 b1 bound 4000000000 entries v2=v0\n  v5 = element i0\n  return v5\n\
                b1:\n  v3 = mul v2 v2\n  return v1 v3 v3\n";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        matches!(compile(&graph), Err(CompileError::Scratch { words }) if words >= 4_000_000_000)
    );
}

#[test]
fn every_refusal_has_its_message() {
    let reason = || "the reason".to_owned();
    let at = Place::new("model.rs", 3, 5);
    let refusals: [(Refusal, &str); 11] = [
        (Refusal::Path(MergeError::Divergent { at }), "model.rs:3:5"),
        (Refusal::Path(MergeError::TooManyPaths { limit: 7 }), "more than 7 paths (Limits::paths)"),
        (Refusal::Path(MergeError::TooManyNodes { limit: 7 }), "more than 7 steps (Limits::nodes)"),
        (Refusal::Compile(CompileError::Host { reason: reason() }), "the tape serves: the reason"),
        (
            Refusal::Compile(CompileError::Generator { reason: reason() }),
            "please report this: the reason",
        ),
        (Refusal::Compile(CompileError::TooLarge { size: 7 }), "7 nodes or outputs"),
        (Refusal::Compile(CompileError::Scratch { words: 7 }), "save 7 numbers"),
        (Refusal::Panicked, "please report this"),
        (
            Refusal::Thread { reason: reason() },
            "no thread could be started to compile on: the reason",
        ),
        (Refusal::TooManyLengths { limit: 7 }, "more than 7 lengths of inputs and outputs"),
        (Refusal::TooDense { limit: 7 }, "sparsity pattern of all paths has more than 7 entries"),
    ];
    for (refusal, part) in refusals {
        assert!(refusal.to_string().contains(part), "{refusal}");
        assert_eq!(refusal, refusal.clone());
    }
    let many = TraceError::TooManyOperations { limit: 7, at: Location::caller() };
    assert!(many.to_string().contains("after 7 others"), "{many}");
    let errors: [&dyn Error; 2] = [&RunError::SideExit, &RunError::Shape];
    assert!(errors.iter().all(|error| error.to_string().starts_with("the ")));
}
