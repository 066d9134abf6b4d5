//! The three executors of a program: the tape, a kernel with closed forms, a kernel without.

use std::panic::Location;

use phigrad::internals::loops::{RerollLimits, fuse, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::numeric::Routine;
use phigrad::internals::phi::{Applied, CloseLimits, Rule, close};
use phigrad::internals::ssa::{Folding, Graph, accepts_calls, simplify};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Numerics, RecordedWith, Tape, TapeBuilder, Var};

/// One program and trip count, recorded for each executor.
pub struct Server<F> {
    inputs: usize,
    tape: RecordedWith<F>,
    kernels: Option<Kernels<F>>,
}

struct Kernels<F> {
    closed: RecordedWith<F>,
    loops: RecordedWith<F>,
    /// The graph with closed forms, before the choice of the other loops' form.
    graph: Graph,
}

/// Partials, and at last the value, from each executor.
pub struct Results {
    pub tape: Vec<f64>,
    pub kernel: Vec<f64>,
    pub loops: Vec<f64>,
}

/// A builder of functions that are compiled only when asked.
fn manual() -> TapeBuilder {
    Tape::builder().hot_threshold(u32::MAX).background(false)
}

fn call<F: Fn(&[Var], &[Var]) -> Var>(
    function: &RecordedWith<F>,
    inputs: usize,
    point: &[f64],
) -> Vec<f64> {
    let (x, data) = point.split_at(inputs);
    let (value, mut all) = function.value_and_grad(x, data).unwrap();
    all.push(value);
    all
}

impl<F: Fn(&[Var], &[Var]) -> Var + Copy> Server<F> {
    /// The tape alone.
    pub fn new(program: F, inputs: usize) -> Self {
        // One order of operations in all calls.
        let tape = manual().numerics(Numerics::Exact).record_with(program);
        Server { inputs, tape, kernels: None }
    }

    /// Profiles `program` over `points` and compiles it.
    pub fn compiled(program: F, inputs: usize, points: &[Vec<f64>]) -> Self {
        let closed = manual().record_with(program);
        let loops = manual().phi_calculus(false).record_with(program);
        for function in [&closed, &loops] {
            for point in points {
                call(function, inputs, point);
            }
            function.compile().unwrap();
        }
        let graph = closed_graph(program, inputs, points);
        Server { kernels: Some(Kernels { closed, loops, graph }), ..Server::new(program, inputs) }
    }

    /// If there is no kernel, the tape computes the result.
    pub fn call(&self, point: &[f64]) -> Results {
        let tape = self.on_tape(point);
        let [kernel, loops] = match &self.kernels {
            Some(Kernels { closed, loops, .. }) => {
                [closed, loops].map(|function| call(function, self.inputs, point))
            }
            None => [tape.clone(), tape.clone()],
        };
        Results { tape, kernel, loops }
    }

    pub fn on_tape(&self, point: &[f64]) -> Vec<f64> {
        call(&self.tape, self.inputs, point)
    }

    /// The number of calls that the kernel with closed forms has served.
    pub fn kernel_calls(&self) -> u64 {
        self.kernels.as_ref().map_or(0, |kernels| kernels.closed.report().kernel_calls)
    }

    /// True if some of the closed forms are sums in working precision, without a routine.
    pub fn has_sums_without_bound(&self) -> bool {
        let is_of_loop =
            |formula: &&Applied| matches!(formula.rule, Rule::C6 | Rule::C7 | Rule::C8 | Rule::C9);
        self.kernels.as_ref().is_some_and(|Kernels { closed, graph, .. }| {
            let routines = graph.calls.values().map(|call| &call.routine);
            let routines = routines.filter(|routine| !matches!(***routine, Routine::Moments(_)));
            let outputs: usize = routines.map(|routine| routine.outputs()).sum();
            closed.report().closed_forms.iter().filter(is_of_loop).count() > outputs
        })
    }

    /// True if the routines accept the call at a point; `None` without routines.
    pub fn accepts(&self, point: &[f64]) -> Option<bool> {
        let graph = &self.kernels.as_ref()?.graph;
        if graph.calls.is_empty() || self.formulas() == 0 {
            None
        } else {
            accepts_calls(graph, point)
        }
    }

    /// The number of closed forms.
    pub fn formulas(&self) -> usize {
        self.kernels.as_ref().map_or(0, |kernels| kernels.closed.report().closed_forms.len())
    }
}

/// The runs of `program` at these points, merged, with closed forms.
fn closed_graph<F: Fn(&[Var], &[Var]) -> Var>(
    program: F,
    inputs: usize,
    points: &[Vec<f64>],
) -> Graph {
    let mut tracer = Tracer::default();
    let mut traces = MergedTraces::new(inputs, points[0].len() - inputs);
    for point in points {
        let (active, inactive) = point.split_at(inputs);
        let inputs = Inputs { active, inactive };
        let trace = tracer.run(&program, inputs, 1 << 24, Location::caller()).unwrap();
        traces.merge(&trace, MergeLimits { paths: 1 << 10, nodes: 1 << 24 }).unwrap();
    }
    let rolled = simplify(&reroll(traces.graph(), RerollLimits::default()), Folding::Real);
    close(&fuse(&rolled).unwrap_or(rolled), CloseLimits::default()).graph
}
