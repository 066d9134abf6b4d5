//! The text form of graphs round-trips, malformed text is rejected with its line, the verifier
//! finds each violated invariant, and pictures are complete.

use crate::common::programs::{points, reversed, traces};
use crate::common::random_programs::Recipe;
use phigrad::internals::Random;
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::entity::Entity;
use phigrad::internals::explain::dot;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Block, Def, End, Folding, Graph, Item, Node, NodeData, ParseError, parse, simplify, verify,
};

/// Graphs of random programs after all stages.
fn graphs() -> Vec<Graph> {
    let tame = Recipe { reads: 0.05, ..Recipe::default() };
    let mut random = Random::new(1);
    let mut graphs = Vec::new();
    for recipe in [tame, Recipe { wild: true, ..tame }] {
        for _ in 0..25 {
            let program = recipe.program(&mut random);
            let primal = traces(&program, &points(&recipe, &mut random, 5));
            let gradient = reversed(&primal, Folding::Exact);
            let small = simplify(&reversed(&primal, Folding::Real), Folding::Real);
            graphs.extend([small, gradient, primal]);
        }
    }
    graphs
}

#[test]
fn the_text_form_round_trips() {
    for graph in graphs() {
        let text = graph.to_string();
        let read = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(read.to_string(), text);
        assert_eq!(read.blocks, graph.blocks);
        assert_eq!((read.active, read.inactive), (graph.active, graph.inactive));
        for (node, data) in graph.nodes.iter() {
            assert_eq!(read.nodes[node].def, data.def, "{node}\n{text}");
            let place = |graph: &Graph| graph.nodes[node].place.map(|p| graph.places[p].clone());
            assert_eq!(place(&read), place(&graph), "{node}\n{text}");
        }
    }
}

#[test]
fn numbers_round_trip_bit_for_bit() {
    let mut random = Random::new(2);
    let special =
        [0.0, -0.0, 5e-324, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
    let any: Vec<f64> = (0..1000).map(|_| f64::from_bits(random.bits())).collect();
    for number in special.into_iter().chain(nans).chain(any) {
        let mut graph = Graph::new(0, 0);
        let node = graph.push_const(number.to_bits());
        let root = graph.root();
        graph.blocks[root].end = End::Return([node].into_iter().collect());
        let read = parse(&graph.to_string()).unwrap();
        assert_eq!(read.nodes[node].def, Def::Const(number.to_bits()), "{graph}");
    }
}

#[test]
fn comments_blank_lines_and_spacing_do_not_matter() {
    let plain = "graph active 1 inactive 0\nb0:\n  v1 = sin v0 @ a b.rs:3:4\n  return v1\n";
    let dressed = "\n; a comment\n graph  active 1 inactive 0 ; two inputs\n\n\tb0:\n\
                   v1   =  sin v0   @ a b.rs:3:4 ; here\nreturn v1 ;\n\n";
    assert_eq!(parse(dressed).unwrap().to_string(), plain);
    assert_eq!(parse(plain).unwrap().to_string(), plain);
}

/// The text, the line of the error, and the message.
const MALFORMED: &[(&str, usize, &str)] = &[
    ("", 0, "expected `graph active N inactive N`"),
    ("; nothing", 1, "expected `graph active N inactive N`"),
    ("b0:", 1, "expected `graph active N inactive N` first"),
    ("graph active 1", 1, "expected `graph active N inactive N` first"),
    ("graph active -1 inactive 0", 1, "expected a number, found `-1`"),
    ("graph active 1 inactive x", 1, "expected a number, found `x`"),
    ("graph active 99999999999999999999 inactive 0", 1, "expected a number, found `99999999999"),
    ("graph active 4194304 inactive 4194304", 1, "too many inputs"),
    ("G\nG", 2, "expected a block, a node, a guard, a region, a branch or a return"),
    ("G", 1, "expected a block"),
    ("G\nb1:", 2, "expected block b0"),
    ("G\nb0:\nreturn v0\nb2:", 4, "expected block b1"),
    ("G\nx0:", 2, "expected an id like `b0`, found `x0`"),
    ("G\nb0:\nfrobnicate", 3, "expected a block, a node, a guard, a region, a branch or a return"),
    ("G\nb0:\nv1 = frobnicate v0", 3, "unknown primitive `frobnicate`"),
    ("G\nb0:\nv1 = ", 3, "expected a block, a node, a guard, a region, a branch or a return"),
    ("G\nb0:\nv1 = sin", 3, "sin takes 1 operands"),
    ("G\nb0:\nv1 = add v0", 3, "add takes 2 operands"),
    ("G\nb0:\nv1 = add v0 v0 v0", 3, "add takes 2 operands"),
    ("G\nb0:\nv1 = sin w0", 3, "expected an id like `v0`, found `w0`"),
    ("G\nb0:\nw1 = sin v0", 3, "expected an id like `v0`, found `w1`"),
    ("G\nb0:\nv1 = sin v99999999", 3, "expected an id like `v0`, found `v99999999`"),
    ("G\nb0:\nv0 = sin v0", 3, "v0 is defined twice"),
    ("G\nv1 = const 1\nv1 = const 1", 3, "v1 is defined twice"),
    ("G\nv1 = const one", 2, "expected a number, found `one`"),
    ("G\nv1 = const nan:xyz", 2, "expected a number, found `nan:xyz`"),
    ("G\nv1 = const 1 2", 2, "unknown primitive `const`"),
    ("G\nv1 = sin v0", 2, "expected a block first"),
    ("G\nguard v0", 2, "expected a block first"),
    ("G\nreturn v0", 2, "expected a block first"),
    ("G\nb0:\nreturn v0\nv1 = sin v0", 4, "expected a block first"),
    ("G\nb0:\nreturn v0\nreturn v0", 4, "expected a block first"),
    ("G\nb0:\nreturn v0\nguard v0", 4, "expected a block first"),
    ("G\nb0:\nguard not", 3, "expected an id like `v0`, found `not`"),
    (
        "G\nb0:\nguard yes v0",
        3,
        "expected a block, a node, a guard, a region, a branch or a return",
    ),
    (
        "G\nb0:\nbranch v0 b1",
        3,
        "expected a block, a node, a guard, a region, a branch or a return",
    ),
    ("G\nb0:\nbranch v0 b1 c2", 3, "expected an id like `b0`, found `c2`"),
    ("G\nb0:\nv1 = sin v0 @ nowhere", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:x:1", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:1:5#", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:1:5#x", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:1:5#0", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:1:5#1", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv1 = sin v0 @ a.rs:1:5#4294967297", 3, "expected `@ file:line:column`"),
    ("G\nb0:\nv2 = sin v0\nreturn v2", 4, "v1 is missing"),
    ("G\nb0:\nv1 = sin v5\nreturn v1", 4, "an operand of v1 is not defined"),
];

#[test]
fn malformed_text_is_rejected_with_its_line() {
    for &(text, line, what) in MALFORMED {
        let text = text.replacen("G", "graph active 1 inactive 0", 2);
        match parse(&text) {
            Err(ParseError::Syntax { line: found, what: reason }) => {
                assert!(found == line && reason.starts_with(what), "{found}: {reason}\n{text}");
            }
            other => panic!("{other:?}\n{text}"),
        }
    }
}

#[test]
fn damaged_text_never_panics_and_parsed_graphs_are_valid() {
    let mut random = Random::new(3);
    let graphs = graphs();
    let fragments =
        ["v1", "b0:", " ", "\n", "return", "guard not ", "9", "const", "=", "powi", "-"];
    for graph in graphs.iter().step_by(4) {
        let text: Vec<char> = graph.to_string().chars().collect();
        for _ in 0..10 {
            let (at, length) = (random.below(text.len()), random.below(4));
            let end = (at + length).min(text.len());
            let fragment = random.pick(&fragments);
            let damaged: String = text[..at]
                .iter()
                .copied()
                .chain(fragment.chars())
                .chain(text[end..].iter().copied())
                .collect();
            if let Ok(read) = parse(&damaged) {
                assert_eq!(verify(&read), Ok(()), "{damaged}");
                assert_eq!(parse(&read.to_string()).unwrap().to_string(), read.to_string());
            }
        }
    }
}

fn node(index: usize) -> Node {
    Node::from_index(index)
}

fn block(index: usize) -> Block {
    Block::from_index(index)
}

/// A valid graph: v0 active, v1 inactive, v2 = 0, v3 = 2; b0 computes the condition v4 and
/// branches to b1 (v5) and b2 (v6).
fn valid() -> Graph {
    let text = "graph active 1 inactive 1\nv2 = const 0\nv3 = const 2\n\
                b0:\n  v4 = gt v0 v2\n  branch v4 b1 b2\n\
                b1:\n  v5 = powi v0 v3\n  return v5\n\
                b2:\n  v6 = sin v1\n  guard v6\n  return v6\n";
    parse(text).unwrap()
}

fn apply(op: Op, args: [usize; 3]) -> NodeData {
    NodeData { def: Def::Apply(op, args.map(node)), place: None }
}

fn returns(nodes: &[usize]) -> End {
    End::Return(nodes.iter().map(|&index| node(index)).collect())
}

/// The number of the invariant, a change that violates it, and the message of the verifier.
type Breakage = (u32, fn(&mut Graph), &'static str);

const BREAKAGES: &[Breakage] = &[
    (1, |g| g.nodes[node(1)].def = Def::Input(0), "node v1 has the input number of another node"),
    (
        1,
        |g| g.nodes[node(1)].def = Def::Input(2),
        "node v1 has an input number that the graph does not have",
    ),
    (1, |g| g.active = 0, "node v1 has an input number that the graph does not have"),
    (
        2,
        |g| g.nodes[node(4)] = apply(Op::Gt, [0, 6, 0]),
        "node v4 uses an operand with a larger id",
    ),
    (
        2,
        |g| g.nodes[node(4)] = apply(Op::Gt, [4, 0, 4]),
        "node v4 uses an operand with a larger id",
    ),
    (
        2,
        |g| g.nodes[node(4)] = apply(Op::Gt, [0, 700, 0]),
        "node v4 uses an operand with a larger id",
    ),
    (3, |g| g.blocks[block(2)].items.insert(0, Item::Node(node(4))), "node v4 is computed twice"),
    (3, |g| g.blocks[block(2)].items.push(Item::Node(node(5))), "node v5 is computed twice"),
    (3, |g| _ = g.nodes.push(apply(Op::Sin, [0; 3])), "node v7 is a step of no block"),
    (
        3,
        |g| g.blocks[block(1)].items.push(Item::Node(node(2))),
        "block b1 has a step for a node that is not computed by steps",
    ),
    (
        3,
        |g| g.blocks[block(1)].items.push(Item::Node(node(0))),
        "block b1 has a step for a node that is not computed by steps",
    ),
    (
        3,
        |g| g.blocks[block(1)].items.push(Item::Node(node(99))),
        "block b1 has a step for a node that is not computed by steps",
    ),
    (4, |g| g.nodes[node(6)] = apply(Op::Sin, [5; 3]), "node v6 uses v5, not visible here"),
    (4, |g| g.blocks[block(2)].end = returns(&[5]), "block b2 uses v5, not visible here"),
    (4, |g| g.blocks[block(2)].end = returns(&[99]), "block b2 uses v99, not visible here"),
    (4, |g| g.blocks[block(2)].items.reverse(), "block b2 uses v6, not visible here"),
    (4, |g| branch(g, 6, 1, 2), "block b0 uses v6, not visible here"),
    (5, |g| branch(g, 4, 1, 1), "block b1 is not the target of exactly one branch"),
    (5, |g| branch(g, 4, 0, 1), "block b0 is not the target of exactly one branch"),
    (5, |g| branch(g, 4, 1, 7), "block b0 branches to a block that does not exist"),
    (
        5,
        |g| g.blocks[block(0)].end = returns(&[0]),
        "block b1 is not the target of exactly one branch",
    ),
    (5, detached, "block b3 is not below the root"),
    (6, |g| g.blocks[block(2)].end = End::Open, "block b2 is open"),
    (
        6,
        |g| g.blocks[block(2)].end = returns(&[6, 6]),
        "block b2 returns another number of outputs",
    ),
    (6, |g| g.blocks[block(1)].end = returns(&[]), "block b2 returns another number of outputs"),
    (7, |g| exponent(g, 0.5), "node v5 has an exponent that is no constant i32"),
    (7, |g| exponent(g, f64::NAN), "node v5 has an exponent that is no constant i32"),
    (7, |g| exponent(g, 2147483648.0), "node v5 has an exponent that is no constant i32"),
    (
        7,
        |g| g.nodes[node(5)] = apply(Op::Powi, [0, 1, 0]),
        "node v5 has an exponent that is no constant i32",
    ),
];

fn branch(graph: &mut Graph, condition: usize, then: usize, otherwise: usize) {
    let (condition, then, otherwise) = (node(condition), block(then), block(otherwise));
    graph.blocks[block(0)].end = End::Branch { condition, then, otherwise };
}

fn exponent(graph: &mut Graph, value: f64) {
    graph.nodes[node(3)].def = Def::Const(value.to_bits());
}

/// Adds a cycle of blocks that is not reachable.
fn detached(graph: &mut Graph) {
    let (b3, b4) = (graph.new_block(), graph.new_block());
    graph.blocks[b3].end = End::Branch { condition: node(0), then: b3, otherwise: b4 };
    graph.blocks[b4].end = returns(&[0]);
}

#[test]
fn each_violated_invariant_is_found() {
    assert_eq!(verify(&valid()), Ok(()));
    for &(invariant, damage, what) in BREAKAGES {
        let mut graph = valid();
        damage(&mut graph);
        let error = verify(&graph).expect_err(what);
        assert_eq!(error.what, what, "invariant {invariant}");
        let text = error.to_string();
        let shown: Vec<&str> = text.lines().collect();
        let subject = what.split(' ').nth(1).unwrap();
        assert!(shown.len() == 3 && shown[1].trim().starts_with(subject), "{text}");
        assert_eq!(shown[2].trim(), "^", "{text}");
    }
    for invariant in 1..=7 {
        assert!(BREAKAGES.iter().any(|breakage| breakage.0 == invariant), "{invariant}");
    }
}

#[test]
fn parsed_graphs_are_verified() {
    let text = "graph active 1 inactive 0\nb0:\n  v1 = powi v0 v0\n  return v1\n";
    assert!(matches!(parse(text), Err(ParseError::Invalid(_))));
    assert!(matches!(parse("graph active 0 inactive 0\nb0:"), Err(ParseError::Invalid(_))));
}

#[test]
fn blocks_may_stand_in_any_order() {
    let text = "graph active 1 inactive 0\nb0:\n  branch v0 b3 b4\nb1:\n  return v0\nb2:\n  \
                return v0\nb3:\n  branch v0 b2 b1\nb4:\n  return v0\n";
    assert_eq!(parse(text).unwrap().to_string(), text);
}

#[test]
fn pictures_show_every_node_block_and_condition() {
    for graph in graphs() {
        let picture = dot(&graph);
        for node in graph.nodes.keys() {
            assert!(picture.contains(&format!(" {node} [label=")), "{node}\n{picture}");
        }
        for (block, data) in graph.blocks.iter() {
            assert!(picture.contains(&format!("subgraph cluster_{block} ")), "{block}");
            if let End::Branch { then, otherwise, .. } = data.end {
                assert!(picture.contains(&format!("{block} -> {then} [style=dashed, label=yes]")));
                let no = format!("{block} -> {otherwise} [style=dashed, label=no]");
                assert!(picture.contains(&no));
            }
        }
        let conditions =
            picture.matches("shape=diamond").count() + picture.matches("label=yes").count();
        assert_eq!(conditions, graph.conditions());
        let arrows = graph.nodes.values().map(|data| data.args().len()).sum::<usize>();
        assert!(picture.matches(" -> ").count() >= arrows);
        assert_eq!(picture.matches('{').count(), picture.matches('}').count());
    }
}

#[test]
fn a_gradient_without_folding_is_valid() {
    let gradient = reverse(&valid(), Wanted::Gradient, Folding::Exact);
    assert_eq!(verify(&gradient), Ok(()));
}

#[test]
fn operands_beyond_the_arity_are_checked_or_ignored() {
    let mut graph = valid();
    graph.nodes[node(6)] = apply(Op::Sin, [1, 99, 99]);
    let _ = verify(&graph);
}
