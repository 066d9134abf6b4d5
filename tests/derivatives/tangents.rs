//! Forward mode on graphs: agrees with forward mode by interpretation, and its gradient with the
//! derivative of the gradient along the direction.

use crate::common::corpus::cases;
use crate::common::graphs::GraphRecipe;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, directional, reverse, tangent};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{Def, Folding, Graph, Outcome, interpret, verify};

/// Compares both; returns true if there was a finite number to compare.
fn check(name: &str, graph: &Graph, inputs: &[f64], random: &mut Random) -> bool {
    let direction: Vec<f64> = (0..graph.active).map(|_| random.uniform(-1.0, 1.0)).collect();
    let Some(derivative) = tangent(graph) else { return false };
    assert_eq!(verify(&derivative), Ok(()), "{name}\n{graph}\n{derivative}");
    let all = [inputs, &direction].concat();
    let agree = |found: Outcome, expected: &[f64], what: &str| {
        let Outcome::Values(found) = found else { panic!("{name}: {what} stops") };
        let mut compared = false;
        for (found, expected) in found.iter().zip(expected) {
            if expected.is_finite() && expected.abs() < 1e100 && found.is_finite() {
                let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                assert!(near, "{name} {what}: {found:e} {expected:e}\n{graph}\n{derivative}");
                compared = true;
            }
        }
        compared
    };
    let Ok((_, expected)) = directional(graph, inputs, &direction) else {
        assert!(matches!(interpret(&derivative, &all), Outcome::Unseen(_)), "{name}\n{derivative}");
        return false;
    };
    let compared = agree(interpret(&derivative, &all), &expected, "tangent");
    // An attached partial derivative need not be that of any function, so that the order matters.
    let is_attached = graph.nodes.values().any(|n| matches!(n.def, Def::Apply(Op::Attach, _)));
    if is_attached {
        return compared;
    }
    let gradient = reverse(graph, Wanted::Gradient, Folding::Real);
    if let (Ok((_, products)), true) = (directional(&gradient, inputs, &direction), compared) {
        let second = reverse(&derivative, Wanted::Gradient, Folding::Real);
        let found = interpret(&second, &all);
        assert!(matches!(found, Outcome::Values(_)), "{name}\n{graph}\n{derivative}\n{second}");
        agree(found, &products, "Hessian");
    }
    compared
}

#[test]
fn tangents_of_the_corpus_agree_with_interpretation() {
    let mut random = Random::new(5);
    let mut compared = 0;
    for case in cases() {
        let inputs = case.runs.iter().map(|(at, _)| at).chain(case.gradients.iter().map(|g| &g.0));
        for at in inputs {
            compared += usize::from(check(&case.name, &case.graph, at, &mut random));
        }
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn tangents_of_random_graphs_agree_with_interpretation() {
    let mut random = Random::new(11);
    let mut compared = 0;
    for round in 0..600 {
        let recipe = GraphRecipe {
            outputs: 1 + round % 2,
            replays: 0.0,
            regions: 0.3,
            loops: 0.6,
            elements: [0.0, 0.15, 0.3][round % 3],
            ..GraphRecipe::default()
        };
        let graph = recipe.graph(&mut random);
        for _ in 0..3 {
            let inputs = recipe.inputs(&mut random);
            let name = format!("round {round}");
            compared += usize::from(check(&name, &graph, &inputs, &mut random));
        }
    }
    assert!(compared > 600, "{compared}");
}
