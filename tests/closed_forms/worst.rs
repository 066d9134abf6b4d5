//! The worst error of sums in closed form against the loop, with a double-double reference.

use std::panic::Location;

use crate::common::double_double::DoubleDouble;
use crate::common::double_double_graphs::evaluate_block;
use crate::common::ulp::ulp;
use phigrad::Var;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::entity::PrimaryMap;
use phigrad::internals::loops::{RerollLimits, reroll};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::op::Op;
use phigrad::internals::phi::{CloseLimits, Rule, close};
use phigrad::internals::ssa::{Def, End, Folding, Graph, Node, Outcome, interpret, simplify};
use phigrad::internals::trace::{Inputs, Tracer};

fn recorded(point: &[f64], f: impl Fn(&[Var]) -> Var) -> Graph {
    let inputs = Inputs { active: point, inactive: &[] };
    let mut traces = MergedTraces::new(point.len(), 0);
    let mut tracer = Tracer::default();
    let trace = tracer.run(|x, _| f(x), inputs, 1 << 24, Location::caller()).unwrap();
    traces.merge(&trace, MergeLimits { paths: usize::MAX, nodes: 1 << 24 }).unwrap();
    Graph::clone(traces.graph())
}

/// The graph with an inactive input for each constant, and these constants.
fn with_inputs_for_constants(graph: &Graph) -> (Graph, Vec<f64>) {
    let exponents: Vec<Node> = graph
        .nodes
        .values()
        .filter_map(|data| match data.def {
            Def::Apply(Op::Powi, args) => Some(args[1]),
            _ => None,
        })
        .collect();
    let constants = graph.nodes.keys().filter(|node| !exponents.contains(node));
    let constants: Vec<Node> = constants.filter(|&node| graph.constant(node).is_some()).collect();
    let numbers = constants.iter().filter_map(|&node| graph.constant(node)).collect();
    let mut new = Graph::new(graph.active, constants.len());
    let root = new.root();
    let mut copies: PrimaryMap<Node, Option<Node>> = PrimaryMap::filled(None, graph.nodes.len());
    for (number, &node) in constants.iter().enumerate() {
        copies[node] = Some(new.input(graph.active + number));
    }
    for (node, data) in graph.nodes.iter() {
        if copies[node].is_none() {
            copies[node] = Some(match data.def {
                Def::Input(number) => new.input(number as usize),
                Def::Const(bits) => new.push_const(bits),
                Def::Apply(op, _) => {
                    let args: Vec<Node> = data.args().iter().map(|&a| copies[a].unwrap()).collect();
                    new.push_apply(root, op, &args, None)
                }
                _ => unreachable!(),
            });
        }
    }
    let End::Return(outputs) = &graph.blocks[graph.root()].end else { panic!("branches") };
    new.blocks[root].end = End::Return(outputs.iter().map(|&o| copies[o].unwrap()).collect());
    (new, numbers)
}

/// The error of an output against the reference.
fn error(found: f64, reference: DoubleDouble) -> f64 {
    let difference = DoubleDouble::from(found) - reference;
    (difference.0 + difference.1).abs()
}

/// The largest ratio of the form's error to four times the loop's plus four
/// ulps, over the points and points near them; `None` if a loop is left.
pub(crate) fn worst(f: impl Fn(&[Var]) -> Var, points: &[Vec<f64>]) -> Option<f64> {
    let straight = recorded(&points[0], &f);
    let rolled = simplify(&reroll(&straight, RerollLimits::default()), Folding::Real);
    let closed = close(&rolled, CloseLimits { always: true, ..CloseLimits::DEFAULT });
    if !closed.applied.iter().any(|applied| matches!(applied.rule, Rule::C7 | Rule::C8)) {
        println!("{:?}", closed.open);
        return None;
    }
    let gradient = |graph: &Graph| reverse(graph, Wanted::GradientAndValue, Folding::Exact);
    let (tape, form) = (gradient(&straight), gradient(&closed.graph));
    // As inactive inputs, constants are not folded with rounding errors.
    let (unfolded, constants) = with_inputs_for_constants(&straight);
    let exact = gradient(&unfolded);
    let (mut worst, mut compared): (f64, bool) = (0.0, false);
    for point in points {
        // The loop may happen to be exact at a point: its error is the largest at nearby points.
        let near = |k: i32| point.iter().map(move |x| x * (1.0 + f64::from(k) * 7e-15));
        let near = (-5..5).map(|k| near(k).collect::<Vec<f64>>());
        let mut sums: Vec<(f64, f64, f64)> = Vec::new();
        let mut count = 0.0;
        for point in near {
            let (Outcome::Values(a), Outcome::Values(b)) =
                (interpret(&tape, &point), interpret(&form, &point))
            else {
                continue;
            };
            if a.iter().any(|a| !a.is_finite()) {
                continue;
            }
            assert!(b.iter().all(|b| b.is_finite()), "{b:?} for {a:?} at {point:?}");
            count += 1.0;
            let reference = evaluate_block(&exact, &[&point, &constants[..]].concat());
            sums.resize(a.len(), (0.0, 0.0, 0.0));
            for (sum, ((a, b), reference)) in sums.iter_mut().zip(a.iter().zip(&b).zip(reference)) {
                sum.0 += error(*a, reference).powi(2);
                sum.1 += error(*b, reference).powi(2);
                sum.2 += ulp(reference.0).powi(2);
            }
        }
        compared |= count > 0.0;
        // The effect of a relative change of an input by 2^-75 is the floor of the contract.
        let value = sums.last().map_or(0.0, |sum| (sum.2 / count).sqrt() / f64::EPSILON);
        for (number, (tape, form, ulp)) in sums.into_iter().enumerate() {
            let [tape, form, ulp] = [tape, form, ulp].map(|sum: f64| (sum / count).sqrt());
            let by = point.get(number);
            let by = by.map_or(1.0, |x| x.abs().max(2f64.powi(-40) * value.max(1.0)));
            let floor = 2f64.powi(-75) * value / by + 1e-285;
            let ratio = form / (4.0 * tape + 4.0 * ulp + floor);
            if ratio > worst {
                println!("{number} at {point:?}: tape {tape:e} form {form:e} ulp {ulp:e}");
            }
            worst = worst.max(ratio);
        }
    }
    assert!(compared, "nothing is finite");
    Some(worst)
}

/// Points of this many numbers of all sizes, and near `centre`.
pub(crate) fn points(centre: &[f64]) -> Vec<Vec<f64>> {
    let mut random = Random::new(1);
    let mut all = vec![centre.to_vec()];
    for exponent in -5..=3 {
        for _ in 0..3 {
            let size = 10f64.powf(3.3 * f64::from(exponent));
            all.push(centre.iter().map(|c| c + size * random.uniform(-1.0, 1.0)).collect());
            all.push(centre.iter().map(|_| size * random.uniform(-1.0, 1.0)).collect());
        }
    }
    all
}

/// Data x and y ~ slope · x + level, with noise.
pub(crate) fn data(count: usize, mean: f64, slope: f64, level: f64, noise: f64) -> Vec<(f64, f64)> {
    let mut random = Random::new(7);
    let mut datum = || {
        let x = mean + random.uniform(-1.0, 1.0);
        (x, slope * x + level + noise * random.uniform(-1.0, 1.0))
    };
    (0..count).map(|_| datum()).collect()
}

pub(crate) fn assert_accurate(name: &str, f: impl Fn(&[Var]) -> Var, points: &[Vec<f64>]) {
    let worst = worst(f, points).unwrap_or_else(|| panic!("{name} has no form"));
    println!("{name}: {worst}");
    assert!(worst <= 1.0, "{name}: {worst}");
}

/// The same, if there is a form at all.
pub(crate) fn assert_if_any(name: &str, f: impl Fn(&[Var]) -> Var, points: &[Vec<f64>]) {
    let worst = worst(f, points);
    println!("{name}: {worst:?}");
    assert!(worst.is_none_or(|worst| worst <= 1.0), "{name}: {worst:?}");
}
