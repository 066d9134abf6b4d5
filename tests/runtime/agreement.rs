//! All derivatives of one corpus of programs: by tape, interpreter and kernels they agree, with
//! each other and with a reference.

use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse, tangent};
use phigrad::internals::merge::{MergeLimits, MergedTraces};
use phigrad::internals::ssa::{Folding, Graph, Outcome, interpret};
use phigrad::internals::trace::{Inputs, Tracer};
use phigrad::{Numerics, Recorded, Tape, Var};

use crate::common::numbers::Dual;
use crate::common::served::{NUMERICS, manual};
use crate::common::vector_programs::{VectorProgram, vector_programs};

const INPUTS: usize = 4;

/// All results at one point.
struct Results {
    outputs: Vec<f64>,
    along: Vec<f64>,
    product: Vec<f64>,
    jacobian: Vec<f64>,
    hessian: Vec<f64>,
}

fn vector(random: &mut Random, length: usize, (low, high): (f64, f64)) -> Vec<f64> {
    (0..length).map(|_| random.uniform(low, high)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of the outputs, each times its weight.
fn weighted(outputs: &[Var], weights: &[f64]) -> Var {
    outputs.iter().zip(weights).map(|(&output, &weight)| output * weight).sum()
}

#[track_caller]
fn assert_near(name: &str, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}: {what}");
    let largest = expected.iter().fold(1.0f64, |most, number| most.max(number.abs()));
    for (one, other) in found.iter().zip(expected) {
        let is_near = (one - other).abs() <= tolerance * largest;
        assert!(is_near, "{name}: {what}: {found:?}, expected {expected:?}");
    }
}

/// The results of `f`, and the Hessian of `sum`, its weighted sum.
fn results<F, S>(f: &Recorded<F>, sum: &Recorded<S>, x: &[f64], (v, w): (&[f64], &[f64])) -> Results
where
    F: Fn(&[Var]) -> Vec<Var>,
    S: Fn(&[Var]) -> Var,
{
    Results {
        outputs: f.eval(x).unwrap(),
        along: f.jvp(x, v).unwrap(),
        product: f.vjp(x, w).unwrap(),
        jacobian: f.jacobian(x).unwrap(),
        hessian: sum.hessian(x).unwrap(),
    }
}

/// The identities between the results.
fn check_identities(name: &str, results: &Results, (v, w): (&[f64], &[f64])) {
    let Results { along, product, jacobian, hessian, .. } = results;
    let pair = ([dot(along, w)], [dot(product, v)]);
    assert_near(name, "<Jv, w> = <v, wJ>", &pair.0, &pair.1, 1e-11);
    let rows: Vec<f64> = jacobian.chunks(INPUTS).map(|row| dot(row, v)).collect();
    assert_near(name, "Jv by the Jacobian", along, &rows, 1e-11);
    let transposed: Vec<f64> =
        (0..INPUTS).flat_map(|i| (0..INPUTS).map(move |j| hessian[INPUTS * j + i])).collect();
    assert_near(name, "symmetry", hessian, &transposed, 1e-9);
}

/// The graph of the weighted sum: active inputs, then weights.
fn weighted_graph(program: &VectorProgram, points: &[Vec<f64>], outputs: usize) -> Graph {
    let limits = MergeLimits { paths: 64, nodes: 1 << 20 };
    let mut traces = MergedTraces::new(INPUTS, outputs);
    let weights = vec![0.0; outputs];
    for x in points {
        let mut tracer = Tracer::default();
        let inputs = Inputs { active: x, inactive: &weights };
        let sum = |x: &[Var], w: &[Var]| {
            (program.run)(x).iter().zip(w).map(|(&output, &weight)| output * weight).sum::<Var>()
        };
        let trace = tracer.run(sum, inputs, 1 << 20, std::panic::Location::caller()).unwrap();
        traces.merge(&trace, limits).unwrap();
    }
    (**traces.graph()).clone()
}

fn interpreted(graph: &Graph, inputs: &[&[f64]]) -> Option<Vec<f64>> {
    match interpret(graph, &inputs.concat()) {
        Outcome::Values(values) => Some(values),
        _ => None,
    }
}

/// The same results by the interpreter of graphs.
fn check_interpreter(
    program: &VectorProgram,
    graph: &Graph,
    x: &[f64],
    (v, w): (&[f64], &[f64]),
    expected: &Results,
) {
    let name = program.name;
    let count = w.len() as u32;
    let by_weights = INPUTS as u32..INPUTS as u32 + count;
    let gradient = |graph: &Graph| reverse(graph, Wanted::Gradient, Folding::Real);
    let outputs = gradient(&graph.with_active(by_weights.clone()));
    let zeros = vec![0.0; w.len()];
    if let Some(found) = interpreted(&outputs, &[&zeros, x]) {
        assert_near(name, "interpreted outputs", &found, &expected.outputs, 1e-12);
    }
    if let Some(found) = interpreted(&gradient(graph), &[x, w]) {
        assert_near(name, "interpreted wJ", &found, &expected.product, 1e-11);
    }
    let directional = tangent(graph).unwrap();
    let along = gradient(&directional.with_active(by_weights));
    if let Some(found) = interpreted(&along, &[&zeros, x, v]) {
        assert_near(name, "interpreted Jv", &found, &expected.along, 1e-11);
    }
    let hessian = gradient(&directional);
    let product: Vec<f64> = expected.hessian.chunks(INPUTS).map(|row| dot(row, v)).collect();
    if let Some(found) = interpreted(&hessian, &[x, w, v]) {
        assert_near(name, "interpreted Hv", &found, &product, 1e-9);
    }
}

/// The outputs, the Jacobian and the Hessian in double-double.
fn check_reference(program: &VectorProgram, x: &[f64], w: &[f64], found: &Results) {
    let Some(reference) = program.reference else { return };
    let at = |x: &[f64]| -> Vec<Dual> {
        let inputs: Vec<Dual> = x.iter().enumerate().map(|(i, &x)| Dual::input(x, i)).collect();
        reference(&inputs)
    };
    let here = at(x);
    let outputs: Vec<f64> = here.iter().map(|output| output.value()).collect();
    assert_near(program.name, "outputs", &found.outputs, &outputs, 1e-12);
    let row = |output: &Dual| (0..INPUTS).map(|i| output.partial(i)).collect::<Vec<_>>();
    let jacobian: Vec<f64> = here.iter().flat_map(row).collect();
    assert_near(program.name, "Jacobian", &found.jacobian, &jacobian, 1e-11);
    // A central difference of partials with thirty digits.
    let step = 0.5f64.powi(24);
    let mut hessian = Vec::new();
    for i in 0..INPUTS {
        let [above, below] = [step, -step].map(|step| {
            let mut x = x.to_vec();
            x[i] += step;
            at(&x)
        });
        for j in 0..INPUTS {
            let terms = above.iter().zip(&below).zip(w).map(|((above, below), w)| {
                let difference = above.partial_words(j) + -below.partial_words(j);
                w * difference.0 / (2.0 * step)
            });
            hessian.push(terms.sum());
        }
    }
    assert_near(program.name, "Hessian", &found.hessian, &hessian, 1e-9);
}

#[test]
fn all_derivatives_agree_by_all_executors() {
    let programs = vector_programs();
    assert!(programs.len() >= 60, "{}", programs.len());
    for program in &programs {
        let name = program.name;
        let mut random = Random::new(5);
        let points: Vec<Vec<f64>> =
            (0..24).map(|_| vector(&mut random, INPUTS, program.domain)).collect();
        let outputs = Tape::record(program.run).eval(&points[0]).unwrap().len();
        let (v, w) =
            (vector(&mut random, INPUTS, (-1.0, 1.0)), vector(&mut random, outputs, (-1.0, 1.0)));
        let weights = w.clone();
        let sum = |x: &[Var]| weighted(&(program.run)(x), &weights);
        let on_tape = (
            Tape::builder().tape_only().record(program.run),
            Tape::builder().tape_only().record(&sum),
        );
        let expected: Vec<Results> =
            points.iter().map(|x| results(&on_tape.0, &on_tape.1, x, (&v, &w))).collect();
        let graph = weighted_graph(program, &points[..12], outputs);
        for (x, expected) in points.iter().zip(&expected) {
            check_identities(name, expected, (&v, &w));
            check_reference(program, x, &w, expected);
            check_interpreter(program, &graph, x, (&v, &w), expected);
        }
        for numerics in NUMERICS {
            let f = manual(numerics).record(program.run);
            let summed = manual(numerics).record(&sum);
            let exact = (
                Tape::builder().tape_only().numerics(numerics).record(program.run),
                Tape::builder().tape_only().numerics(numerics).record(&sum),
            );
            for x in &points[..12] {
                results(&f, &summed, x, (&v, &w));
            }
            f.compile().unwrap();
            summed.compile().unwrap();
            for (x, expected) in points.iter().zip(&expected) {
                let found = results(&f, &summed, x, (&v, &w));
                check_identities(name, &found, (&v, &w));
                assert_near(name, "outputs", &found.outputs, &expected.outputs, 1e-12);
                assert_near(name, "Jv", &found.along, &expected.along, 1e-11);
                assert_near(name, "wJ", &found.product, &expected.product, 1e-11);
                assert_near(name, "Jacobian", &found.jacobian, &expected.jacobian, 1e-11);
                assert_near(name, "Hessian", &found.hessian, &expected.hessian, 1e-9);
                if numerics == Numerics::Exact {
                    let bits = results(&exact.0, &exact.1, x, (&v, &w));
                    assert_eq!(found.outputs, bits.outputs, "{name}");
                    assert_eq!(found.product, bits.product, "{name}");
                }
            }
            let served = f.report().kernel_calls;
            assert!(served >= 48, "{name} {numerics:?}: {served}\n{}", f.report());
        }
    }
}
