//! Kernels that leave where what must be finite is not.

use super::random::{Random, Shape, graph};
use super::*;
use crate::entity::{Array, Entity};
use crate::ssa::{Def, Item, NodeData};

/// What the kernel of `graph` comes to at `point`, if these nodes must be finite.
fn result(
    graph: &Graph,
    finite: &[Node],
    limits: Limits,
    point: &[f64],
) -> Result<Vec<f64>, RunError> {
    let schedule = schedule(graph).unwrap().in_range(finite.to_vec());
    let kernel = schedule.compile_with(&limits.cuts(&schedule), limits.registers).unwrap();
    let mut found = vec![0.0; kernel.outputs()];
    let (active, inactive) = point.split_at(graph.active);
    kernel.run(active, inactive, &mut vec![f64::NAN; 3], &mut found).map(|()| found)
}

/// The squares of `graph`: never negative.
fn squares(graph: &Graph) -> Vec<Node> {
    let is_square = |def| {
        matches!(def, Def::Apply(Op::Mul, [a, b, _]) if a == b)
            || matches!(def, Def::Apply(Op::Abs, _))
    };
    graph.nodes.iter().filter(|(_, data)| is_square(data.def)).map(|(node, _)| node).collect()
}

/// A square before a branch, one on each side of it, and one in a loop behind it.
const SQUARES: &str = "graph active 5 inactive 0\nv5 = const 0\nv6 = const 2\nv17 = iteration r1\nb0:\n  \
    v7 = mul v0 v0\n  v8 = recip v7\n  v9 = gt v1 v5\n  v14 = region r0 b1\n  v15 = add v8 v14\n  \
    v22 = region r1 b4 bound 3 entries v16=v15\n  guard v9\n  return v22\nb1:\n  branch v9 b2 b3\n\
    b2:\n  v10 = mul v2 v2\n  v11 = recip v10\n  return v11\nb3:\n  v12 = mul v3 v3\n  \
    v13 = recip v12\n  return v13\nb4:\n  v18 = mul v4 v4\n  v19 = recip v18\n  \
    v20 = add v16 v19\n  v21 = lt v17 v6\n  return v21 v20 v20\n";

#[test]
fn kernels_leave_where_a_square_overflows_if_it_is_computed() {
    let graph = parse(SQUARES).unwrap();
    let finite = squares(&graph);
    assert_eq!(finite.len(), 4);
    for limits in LIMITS {
        let usual = [1.0, 1.0, 2.0, 4.0, 0.5];
        let at = |input: usize, number: f64| {
            let mut point = usual;
            point[input] = number;
            result(&graph, &finite, limits, &point)
        };
        assert_eq!(at(0, 1.0), Ok(vec![1.0 + 0.25 + 12.0]), "{limits:?}");
        for number in [1e200, -1e170, f64::INFINITY, f64::NAN] {
            for input in [0, 2, 4] {
                let found = at(input, number);
                assert_eq!(found, Err(RunError::OutOfRange), "{limits:?} {input} {number}");
            }
            // It is not on the way that is taken.
            assert_eq!(at(3, number), Ok(vec![13.25]), "{limits:?} {number}");
        }
        assert_eq!(at(1, -1.0), Err(RunError::Unseen), "{limits:?}");
        // Who has not asked for it gets the number.
        let infinite = result(&graph, &[], limits, &[1e200, 1.0, 2.0, 4.0, 0.5]);
        assert_eq!(infinite, Ok(vec![12.25]), "{limits:?}");
    }
}

/// The graph without its guards, and with one behind each of `nodes` that it is finite.
fn guarded(graph: &Graph, nodes: &[Node]) -> Graph {
    let mut guarded = graph.clone();
    let largest = guarded.push_const(f64::MAX.to_bits());
    for (block, data) in graph.blocks.iter() {
        let mut items = Vec::new();
        for &item in &data.items {
            match item {
                Item::Guard { .. } => {}
                Item::Node(node) if nodes.contains(&node) => {
                    let def = Def::Apply(Op::Le, [node, largest, node]);
                    let condition = guarded.nodes.push(NodeData { def, place: None });
                    let guard = Item::Guard { condition, expect: true };
                    items.extend([item, Item::Node(condition), guard]);
                }
                _ => items.push(item),
            }
        }
        guarded.blocks[block].items = items;
    }
    guarded
}

/// The graph where what uses one of `nodes` uses something unknown if it is not finite.
fn spread(graph: &Graph, nodes: &[Node]) -> Graph {
    let mut spread = graph.clone();
    let [largest, unknown] = [f64::MAX, f64::NAN].map(|number| spread.push_const(number.to_bits()));
    let mut instead: Array<Node, Option<Node>> = Array::filled(None, graph.nodes.len());
    for &node in nodes {
        let mut apply =
            |op, args| spread.nodes.push(NodeData { def: Def::Apply(op, args), place: None });
        let finite = apply(Op::Le, [node, largest, node]);
        instead[node] = Some(apply(Op::Select, [finite, node, unknown]));
    }
    let used = |node: &mut Node| *node = instead[*node].unwrap_or(*node);
    for node in graph.nodes.keys() {
        if let Def::Apply(_, args) = &mut spread.nodes[node].def {
            args.iter_mut().for_each(used);
        }
    }
    for (block, data) in graph.blocks.iter() {
        let mut items = Vec::new();
        for &item in &data.items {
            items.push(item);
            if let Item::Node(node) = item
                && let Some(select) = instead[node]
            {
                // Just before it.
                let comparison = Node::from_index(select.index() - 1);
                items.extend([Item::Node(comparison), Item::Node(select)]);
            }
        }
        let spread = &mut spread.blocks[block];
        spread.items = items;
        if let End::Return(values) = &mut spread.end {
            values.iter_mut().for_each(used);
        }
    }
    spread
}

#[test]
fn random_graphs_leave_where_something_is_not_finite_and_nowhere_else() {
    let shape = Shape { inputs: 3, items: 8, depth: 3, regions: 12, guards: 1, phis: 3 };
    let (mut random, mut left, mut served) = (Random(11), 0, 0);
    let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
    for _ in 0..120 {
        let graph = graph(shape, &mut random);
        let finite = squares(&graph);
        let (guarded, spread) = (guarded(&graph, &finite), spread(&graph, &finite));
        for _ in 0..6 {
            let huge = |number: f64| if number.abs() > 1.0 { number * 1e160 } else { number };
            let point: Vec<f64> = (0..=shape.inputs).map(|_| huge(random.number())).collect();
            for limits in [LIMITS[0], LIMITS[3], LIMITS[5]] {
                match result(&graph, &finite, limits, &point) {
                    Ok(found) => {
                        for graph in [&graph, &spread] {
                            let values = interpret(graph, &point);
                            let Outcome::Values(values) = values else { panic!("{graph}") };
                            let all = found.iter().zip(&values).all(same);
                            assert!(all, "{found:?} {values:?} at {point:?}\n{graph}");
                        }
                        served += 1;
                    }
                    Err(RunError::OutOfRange) => {
                        assert!(matches!(interpret(&guarded, &point), Outcome::Unseen(_)));
                        left += 1;
                    }
                    // One that fails is all that is told if both do.
                    Err(error) => {
                        assert_eq!(error, RunError::Unseen);
                        assert!(matches!(interpret(&graph, &point), Outcome::Unseen(_)));
                    }
                }
            }
        }
    }
    assert!(left > 100 && served > 100, "{left} {served}");
}
