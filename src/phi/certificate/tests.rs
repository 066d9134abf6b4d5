//! Wrong forms where whole graphs show nothing of them.

use hashbrown::HashMap;

use super::*;
use crate::ssa::parse;

/// `graph` with its node `phi` replaced by the product of input 0 and `factor`, which is
/// computed at the beginning.
fn planted(graph: &Graph, phi: usize, factor: f64) -> Replacement {
    let mut graph = graph.clone();
    let (root, x) = (graph.root(), graph.input(0));
    let factor = graph.push_const(factor.to_bits());
    let form = graph.push_apply(root, Op::Mul, &[factor, x], None);
    let item = graph.blocks[root].items.pop();
    graph.blocks[root].items.splice(0..0, item);
    let phi = graph.nodes.keys().find(|node| node.to_string() == format!("v{phi}"));
    Replacement::new(graph, phi.into_iter().map(|phi| (phi, form)).collect::<HashMap<_, _>>())
}

/// What `graph`, in which φ `phi` is ten times input 0, says of that and of a wrong form.
fn checked(text: &str, phi: usize) {
    let graph = parse(text).unwrap();
    let right = planted(&graph, phi, 10.0);
    assert_eq!(disproved(&graph, &right, false), None);
    for factor in [9.0, 10.001, 0.0, -10.0] {
        let wrong = planted(&graph, phi, factor);
        // The whole graph does not tell.
        assert!(agree(&graph, &wrong.ordered().unwrap()), "{factor}");
        assert!(disproved(&graph, &wrong, false).is_some(), "{factor}");
    }
}

#[test]
fn a_wrong_form_behind_a_rare_branch_is_found() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 1e300\nv3 = const 9.0\n\
                v6 = iteration r1\n\
                b0:\n  v4 = gt v0 v2\n  v10 = region r0 b1\n  return v10\n\
                b1:\n  branch v4 b2 b3\n\
                b2:\n  v9 = region r1 b4 bound 10 entries v5=v1\n  return v9\n\
                b3:\n  return v0\n\
                b4:\n  v7 = add v5 v0\n  v8 = lt v6 v3\n  return v8 v7 v7\n";
    checked(text, 9);
}

#[test]
fn a_wrong_form_that_is_multiplied_by_zero_or_not_chosen_is_found() {
    let looped = |end: &str| {
        format!(
            "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
             b0:\n  v7 = region r0 b1 bound 10 entries v3=v1\n  v8 = {end}\n  return v8\n\
             b1:\n  v5 = add v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n"
        )
    };
    checked(&looped("mul v7 v1"), 7);
    checked(&looped("select v1 v7 v0"), 7);
}

#[test]
fn a_wrong_form_that_is_hidden_in_a_loop_around_is_found() {
    // What the inner loop comes to is thrown away in all iterations but one that is not
    // gone through.
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const 9.0\nv4 = iteration r0\n\
                v6 = iteration r1\n\
                b0:\n  v14 = region r0 b1 bound 10 entries v3=v1\n  return v14\n\
                b1:\n  v9 = region r1 b2 bound 10 entries v5=v1\n  v10 = gt v4 v2\n  \
                v11 = select v10 v9 v0\n  v12 = add v3 v11\n  v13 = lt v4 v2\n  return v13 v12 v12\n\
                b2:\n  v7 = add v5 v0\n  v8 = lt v6 v2\n  return v8 v7 v7\n";
    checked(text, 9);
}

#[test]
fn a_wrong_power_of_a_long_loop_is_found() {
    // Of other numbers than those near one such powers vanish or overflow.
    for count in [1000u32, 20_000, 1 << 20] {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const {}.0\nv4 = iteration r0\n\
             b0:\n  v7 = region r0 b1 bound {count} entries v3=v1\n  return v7\n\
             b1:\n  v5 = mul v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n",
            count - 1
        );
        let graph = parse(&text).unwrap();
        let power = |exponent: f64| {
            let mut graph = graph.clone();
            let (root, x) = (graph.root(), graph.input(0));
            let exponent = graph.push_const(exponent.to_bits());
            let form = graph.push_apply(root, Op::Powf, &[x, exponent], None);
            let item = graph.blocks[root].items.pop();
            graph.blocks[root].items.splice(0..0, item);
            let phi = graph.nodes.keys().find(|node| node.to_string() == "v7");
            Replacement::new(graph, phi.into_iter().map(|phi| (phi, form)).collect())
        };
        assert_eq!(disproved(&graph, &power(f64::from(count)), false), None);
        for wrong in [0.5, 0.99, 2.0] {
            let wrong = power(wrong * f64::from(count));
            assert!(disproved(&graph, &wrong, false).is_some(), "{count}");
        }
    }
}
