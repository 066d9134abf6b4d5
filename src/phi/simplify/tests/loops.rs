//! In which loops terms change, and what becomes of those that are free of one.

use egg::Id;

use super::super::cost::cost;
use super::super::extract::Choices;
use super::super::facts::{Knowledge, Terms};
use super::super::language::Term;
use super::super::loops::Loops;
use super::super::{SimplifyLimits, Stage, simplify_segments};
use crate::op::Op;
use crate::op::latency;
use crate::ssa::{Def, Graph, Item, Node, Outcome, Segments, hoist, interpret, parse, verify};

/// An e-graph with three leaves in two loops, of 10 and 1000 iterations: the first changes
/// in the outer one, the second in the inner one, the third in none.
fn leaves() -> (Terms, [Id; 3]) {
    let mut terms = Terms::new(Knowledge::within(vec![(0b10, 1000), (0b01, 10)]));
    terms.analysis.changes = vec![0b01, 0b10, 0];
    let leaves = [0, 1, 2].map(|number| terms.add(Term::Leaf(number)));
    (terms, leaves)
}

#[test]
fn a_term_changes_where_its_operands_do() {
    let (mut terms, [outer, inner, fixed]) = leaves();
    let cases = [
        (Op::Mul, vec![outer, inner], 0b11, false),
        (Op::Add, vec![outer, fixed], 0b01, true),
        (Op::Sin, vec![fixed], 0, true),
        (Op::Mul, vec![inner, fixed], 0b10, false),
    ];
    for (op, operands, changes, is_free) in cases {
        let id = terms.add(Term::apply(op, &operands));
        let facts = terms[id].data;
        assert_eq!((facts.changes, terms.analysis.is_free(&facts)), (changes, is_free), "{op}");
    }
    let constant = terms.add(Term::constant(2.0));
    assert_eq!(terms[constant].data.changes, 0);
    // Of a leaf that nothing is told of.
    let unknown = terms.add(Term::Leaf(3));
    assert!(!terms.analysis.is_free(&terms[unknown].data));
}

#[test]
fn equal_terms_change_where_all_of_them_do() {
    let (mut terms, [outer, inner, fixed]) = leaves();
    let both = terms.add(Term::apply(Op::Mul, &[outer, inner]));
    let above = terms.add(Term::apply(Op::Sin, &[both]));
    let one = terms.add(Term::apply(Op::Add, &[outer, fixed]));
    assert_eq!(terms[above].data.changes, 0b11);
    terms.union(both, one);
    terms.rebuild();
    assert_eq!(terms[both].data.changes, 0b01);
    // And what is computed from them.
    assert_eq!(terms[above].data.changes, 0b01);
}

#[test]
fn what_is_computed_before_a_loop_costs_less_in_it() {
    let (mut terms, [outer, inner, fixed]) = leaves();
    // The same in fewer steps, but in each iteration.
    let (sine, root) =
        (terms.add(Term::apply(Op::Sin, &[fixed])), terms.add(Term::apply(Op::Sqrt, &[inner])));
    terms.union(sine, root);
    terms.rebuild();
    let choices = Choices::best(&terms, &[]);
    let class = terms.find(sine);
    assert_eq!(choices.term(class).copied(), Some(Term::apply(Op::Sin, &[fixed])));
    assert_eq!(choices.cost(&[class]), 1);
    // In one loop of two.
    let term = Term::apply(Op::Asinh, &[outer]);
    let ways = &terms.analysis.ways;
    assert_eq!(cost(&term, 0b01, ways), 1);
    assert_eq!(cost(&term, 0b01, &[(0b10, 7), (0b01, 10)]), latency(Op::Asinh) / 7);
    assert_eq!(cost(&term, 0b10, ways), latency(Op::Asinh));
    assert_eq!(cost(&term, 0, &[]), latency(Op::Asinh));
}

/// The sum of sin(v0·d + v1·d) for numbers d between -1 and 1, and the like. Where these
/// are data, v0 + v1 may overflow where the products do not.
fn sum(op: &str, factor: &str) -> String {
    format!(
        "graph active 2 inactive 0\nv2 = const 99.0\nv3 = iteration r0\nv4 = const 0.0\na0 = \
         constants {}\ni0 = a0 base 0 r0*1\nb0:\n  v13 = region r0 b1 bound 100 entries \
         v5=v4\n  return v13\nb1:\n  v6 = lt v3 v2\n  v7 = element i0\n  v8 = mul v0 v7\n  v9 = \
         mul {factor} v7\n  v10 = {op} v8 v9\n  v11 = sin v10\n  v12 = add v5 v11\n  return v6 \
         v12 v12\n",
        (0..100u8)
            .map(|i| format!("{:?}", f64::from(i) / 64.0 - 0.75))
            .collect::<Vec<_>>()
            .join(" ")
    )
}

/// What simplification makes of it, hoisted.
fn simplified(text: &str, stage: Stage) -> (Graph, Graph) {
    let graph = parse(text).expect(text);
    let steps = |block: &crate::ssa::BlockData| {
        let nodes = block.items.iter().filter_map(|item| match *item {
            Item::Node(node) if matches!(graph.nodes[node].def, Def::Apply(..)) => Some(node),
            _ => None,
        });
        nodes.collect()
    };
    let segments = Segments::new(&graph, graph.blocks.values().map(steps).collect());
    let simple = simplify_segments(&graph, &segments, stage, SimplifyLimits::DEFAULT).graph;
    let simple = hoist(&simple);
    assert_eq!(verify(&simple), Ok(()), "{simple}");
    (graph, simple)
}

fn count(graph: &Graph, node: Node, op: Op) -> usize {
    usize::from(matches!(graph.nodes[node].def, Def::Apply(same, _) if same == op))
}

/// How often the blocks of `graph` compute `op`.
fn counts(graph: &Graph, op: Op) -> Vec<usize> {
    let count = |item: &Item| match *item {
        Item::Node(node) => count(graph, node, op),
        _ => 0,
    };
    graph.blocks.values().map(|block| block.items.iter().map(count).sum()).collect()
}

#[test]
fn a_common_factor_in_a_loop_is_computed_before_it() {
    for (op, same) in [("add", Op::Add), ("sub", Op::Sub)] {
        let (graph, simple) = simplified(&sum(op, "v1"), Stage::Final);
        assert_eq!(counts(&simple, Op::Mul), [0, 1], "{simple}");
        let in_loop = usize::from(same == Op::Add);
        assert_eq!(counts(&simple, same), [1, in_loop], "{simple}");
        for x in [[0.5, 2.0], [1e-300, -3.0], [1e9, 1.0]] {
            match (interpret(&graph, &x), interpret(&simple, &x)) {
                (Outcome::Values(a), Outcome::Values(b)) => {
                    assert!((a[0] - b[0]).abs() <= 1e-15 * x[0].max(100.0), "{a:?} {b:?}");
                }
                other => panic!("{other:?}"),
            }
        }
        // It overflows where the products need not: the loop is not begun.
        let x = if op == "add" { [1.5e308, 1.5e308] } else { [1.5e308, -1.5e308] };
        assert!(matches!(interpret(&simple, &x), Outcome::Unseen(_)), "{simple}");
    }
}

#[test]
fn a_common_factor_that_changes_stays() {
    // Carried from iteration to iteration, or the iteration number.
    for factor in ["v5", "v3"] {
        let (graph, simple) = simplified(&sum("add", factor), Stage::Final);
        assert_eq!(simple.to_string(), graph.to_string());
    }
    // Nor before it is differentiated, or where people read it.
    for stage in [Stage::Primal, Stage::Shown] {
        let (graph, simple) = simplified(&sum("add", "v1"), stage);
        assert_eq!(simple.to_string(), graph.to_string());
    }
}

#[test]
fn nodes_change_in_the_loops_that_they_depend_on() {
    let text = "graph active 2 inactive 0\nv2 = const 9.0\nv3 = const 3.0\nv4 = iteration r0\nv5 = \
                iteration r1\na0 = constants 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0\ni0 = a0 base 0 \
                r0*1\nb0:\n  v17 = region r0 b1 bound 10 entries v6=v0\n  return v17\nb1:\n  v7 = lt v4 \
                v2\n  v16 = region r1 b2 bound 4 entries v8=v6\n  return v7 v16 v16\nb2:\n  v9 = lt v5 \
                v3\n  v10 = element i0\n  v11 = mul v10 v0\n  v12 = mul v5 v0\n  v13 = mul v0 v1\n  v14 = \
                add v11 v12\n  v15 = add v8 v14\n  return v9 v15 v15\n";
    let graph = parse(text).expect(text);
    let loops = Loops::of(&graph);
    let inner = graph.blocks.keys().nth(2).expect("a block");
    let changes = |index: usize| {
        let node = graph.nodes.keys().nth(index).expect("a node");
        loops.changes(node, inner)
    };
    let expected = [(0, 0), (2, 0), (6, 0b1), (8, 0b11), (10, 0b1), (11, 0b1), (12, 0b10), (13, 0)];
    for (index, expected) in expected {
        assert_eq!(changes(index), expected, "v{index}");
    }
    assert_eq!((changes(14), changes(15)), (0b11, 0b11));
    assert_eq!(loops.ways(inner), [(0b10, 4), (0b01, 10)]);
    assert_eq!(loops.ways(graph.root()), []);
}
