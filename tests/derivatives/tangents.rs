//! Forward mode on graphs: agrees with forward mode by interpretation, and its gradient with the
//! derivative of the gradient along the direction.

use crate::common::corpus::cases;
use crate::common::graphs::GraphRecipe;
use phigrad::internals::Random;
use phigrad::internals::diff::{Directions, Wanted, directional, reverse, tangent, tangents};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Def, Folding, Graph, Outcome, eliminate_dead_code, interpret, verify,
};

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

/// Compares the Jacobians of `graph` along all axes at once, and along as many given directions,
/// with interpretation; returns the number of finite numbers compared.
fn check_several(name: &str, graph: &Graph, inputs: &[f64]) -> usize {
    let columns = graph.active;
    let along_axes = tangents(graph, Directions::Axes);
    let along_inputs = tangents(graph, Directions::Inputs(columns));
    let (Some(along_axes), Some(along_inputs)) = (along_axes, along_inputs) else { return 0 };
    let mut units = Vec::new();
    let mut expected = Vec::new();
    for axis in 0..columns {
        let direction: Vec<f64> = (0..columns).map(|i| f64::from(u8::from(i == axis))).collect();
        let Ok((_, column)) = directional(graph, inputs, &direction) else { return 0 };
        expected.extend(column);
        units.extend(direction);
    }
    let mut compared = 0;
    for (derivatives, at) in
        [(&along_axes, inputs.to_vec()), (&along_inputs, [inputs, &units].concat())]
    {
        assert_eq!(verify(derivatives), Ok(()), "{name}\n{graph}\n{derivatives}");
        let live = eliminate_dead_code(derivatives);
        assert_eq!(verify(&live), Ok(()), "{name}\n{derivatives}\n{live}");
        let Outcome::Values(found) = interpret(&live, &at) else { panic!("{name}: stops") };
        assert_eq!(found.len(), expected.len(), "{name}\n{live}");
        for (found, expected) in found.iter().zip(&expected) {
            if expected.is_finite() && expected.abs() < 1e100 && found.is_finite() {
                let near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                assert!(near, "{name}: {found:e} {expected:e}\n{graph}\n{derivatives}");
                compared += 1;
            }
        }
    }
    compared
}

#[test]
fn several_directions_of_graphs_and_their_gradients() {
    let mut random = Random::new(12);
    let (mut graphs, mut gradients, mut sums) = (0, 0, 0);
    for round in 0..400 {
        let recipe = GraphRecipe {
            outputs: 1 + round % 2,
            replays: 0.0,
            regions: 0.3,
            loops: 0.6,
            elements: [0.0, 0.3, 0.6][round % 3],
            ..GraphRecipe::default()
        };
        let graph = recipe.graph(&mut random);
        let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
        let has_sums = gradient.arrays.values().any(|array| array.is_sums());
        for _ in 0..2 {
            let inputs = recipe.inputs(&mut random);
            let name = format!("round {round}");
            graphs += check_several(&name, &graph, &inputs);
            let compared = check_several(&name, &gradient, &inputs);
            gradients += compared;
            sums += if has_sums { compared } else { 0 };
        }
    }
    for case in cases() {
        for (at, _) in &case.runs {
            graphs += check_several(&case.name, &case.graph, at);
            let gradient = reverse(&case.graph, Wanted::Gradient, Folding::Real);
            gradients += check_several(&case.name, &gradient, at);
        }
    }
    assert!(graphs > 3000 && gradients > 3000 && sums > 300, "{graphs} {gradients} {sums}");
}
