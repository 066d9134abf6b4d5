//! Regions: their meaning, their text form, and the rules of the verifier.

#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests may fail like tests.

use phigrad::check::{GraphRecipe, Random, Tolerance, close, same};
use phigrad::entity::Entity;
use phigrad::op::Op;
use phigrad::ssa::{
    Block, Def, End, Folding, Graph, Item, Node, NodeData, Outcome, ParseError, PlaceId, Region,
    dot, eliminate_dead_code, fuse, interpret, parse, simplify, verify,
};

/// x · |x|, twice: after the region, and in another that replays it.
const REPLAYED: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v3 = const -1.0
b0:
  v2 = gt v0 v1
  v7 v8 = region r0 b1 @ a.rs:1:2
  v9 = mul v7 v0
  v14 = region r1 b4 replays r0
  v15 = add v9 v14
  return v15
b1:
  branch v2 b2 b3
b2:
  return v0 v3
b3:
  v4 = mul v0 v3
  v6 = region r2 b7
  return v6 v0
b4:
  v10 = neg v0
  branch v2 b5 b6
b5:
  v11 = neg v10
  return v9
b6:
  v12 = mul v4 v0
  v13 = mul v6 v0
  return v13
b7:
  v5 = abs v4
  return v5
";

fn sound() -> Graph {
    parse(REPLAYED).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn regions_read_back_as_they_are_printed() {
    let graph = sound();
    assert_eq!(graph.to_string(), REPLAYED);
    assert_eq!(graph.conditions(), 2);
    assert_eq!(graph.paths(), 1);
}

#[test]
fn a_region_passes_on_the_values_of_the_end_that_was_reached() {
    for x in [2.0, -3.0, 0.0, -0.0, f64::INFINITY] {
        let expected = x * f64::abs(x) * 2.0;
        let Outcome::Values(found) = interpret(&sound(), &[x]) else { panic!("{x}") };
        assert_eq!(found, [expected], "{x}");
    }
}

#[test]
fn the_values_of_an_end_are_passed_on_at_once() {
    let text = "graph active 2 inactive 0\nb0:\n  v2 v3 = region r0 b1\n  v4 v5 = region r1 b2\n  \
                return v4 v5\nb1:\n  return v1 v0\nb2:\n  return v3 v2\n";
    let graph = parse(text).unwrap();
    assert_eq!(interpret(&graph, &[1.0, 2.0]), Outcome::Values(vec![1.0, 2.0]));
}

#[test]
fn a_guard_in_a_region_stops_everything() {
    let text = "graph active 1 inactive 0\nb0:\n  region r0 b1\n  return v0\nb1:\n  guard v0\n  \
                return\n";
    let graph = parse(text).unwrap();
    assert_eq!(interpret(&graph, &[0.0]), Outcome::Unseen(graph.input(0)));
    assert_eq!(interpret(&graph, &[1.0]), Outcome::Values(vec![1.0]));
}

fn node(index: usize) -> Node {
    Node::from_index(index)
}

fn block(index: usize) -> Block {
    Block::from_index(index)
}

fn region(index: usize) -> Region {
    Region::from_index(index)
}

fn apply(op: Op, args: [usize; 3]) -> Def {
    Def::Apply(op, args.map(node))
}

fn returns(nodes: &[usize]) -> End {
    End::Return(nodes.iter().map(|&index| node(index)).collect())
}

type Breakage = (usize, fn(&mut Graph), &'static str);

/// The number of the invariant, a damage, and what the verifier says.
const BREAKAGES: &[Breakage] = &[
    (2, |g| push_late(g, 1), "region r0 has a φ with a smaller id than it needs"),
    (2, |g| push_late(g, 7), "region r2 has a φ with a smaller id than it needs"),
    (
        2,
        |g| g.blocks[block(2)].end = returns(&[9, 3]),
        "region r0 has a φ with a smaller id than it needs",
    ),
    (
        2,
        |g| g.blocks[block(2)].end = returns(&[7, 3]),
        "region r0 has a φ with a smaller id than it needs",
    ),
    (
        3,
        |g| g.nodes[node(8)].def = Def::Phi(region(0), 0),
        "node v8 is not in its place among the φs of its region",
    ),
    (
        3,
        |g| g.nodes[node(8)].def = Def::Phi(region(0), 2),
        "node v8 is not in its place among the φs of its region",
    ),
    (
        3,
        |g| g.nodes[node(8)].def = Def::Phi(region(9), 1),
        "node v8 is not in its place among the φs of its region",
    ),
    (
        3,
        |g| _ = g.regions[region(0)].phis.pop(),
        "node v8 is not in its place among the φs of its region",
    ),
    (3, |g| g.regions[region(0)].phis.push(node(8)), "region r0 has v8 as φ, which is none"),
    (3, |g| g.regions[region(0)].phis.push(node(0)), "region r0 has v0 as φ, which is none"),
    (3, |g| g.regions[region(0)].phis.push(node(99)), "region r0 has v99 as φ, which is none"),
    (3, |g| g.nodes[node(8)].place = None, "node v8 comes from another place than its region"),
    (
        3,
        |g| g.regions[region(1)].place = Some(PlaceId::from_index(5)),
        "region r1 comes from an unknown place",
    ),
    (
        3,
        |g| g.blocks[block(4)].items.push(Item::Node(node(8))),
        "block b4 computes what is no applied node",
    ),
    (4, |g| g.nodes[node(9)].def = apply(Op::Mul, [4, 0, 4]), "node v9 uses v4, not visible here"),
    (4, |g| g.nodes[node(9)].def = apply(Op::Mul, [6, 0, 6]), "node v9 uses v6, not visible here"),
    (4, |g| g.nodes[node(10)].def = apply(Op::Neg, [4; 3]), "node v10 uses v4, not visible here"),
    (4, |g| g.nodes[node(11)].def = apply(Op::Neg, [4; 3]), "node v11 uses v4, not visible here"),
    (4, |g| g.nodes[node(12)].def = apply(Op::Neg, [5; 3]), "node v12 uses v5, not visible here"),
    (4, |g| g.regions[region(1)].replays = None, "node v12 uses v4, not visible here"),
    (4, |g| sides_swapped(g), "node v12 uses v4, not visible here"),
    (4, |g| another_condition(g), "node v12 uses v4, not visible here"),
    (4, |g| g.blocks[block(0)].items.swap(1, 2), "node v9 uses v7, not visible here"),
    (4, |g| g.blocks[block(0)].end = returns(&[13]), "block b0 uses v13, not visible here"),
    (4, |g| g.blocks[block(5)].end = returns(&[13]), "block b5 uses v13, not visible here"),
    (
        5,
        |g| g.blocks[block(0)].items.push(Item::Region(region(1))),
        "region r1 is not a step of exactly one block",
    ),
    (
        5,
        |g| g.blocks[block(3)].items.push(Item::Region(region(0))),
        "region r0 is not a step of exactly one block",
    ),
    (5, |g| _ = g.blocks[block(3)].items.pop(), "region r2 is not a step of exactly one block"),
    (
        5,
        |g| g.blocks[block(3)].items.push(Item::Region(region(7))),
        "block b3 goes through no region",
    ),
    (5, |g| g.regions[region(2)].root = block(77), "region r2 begins in no block"),
    (
        5,
        |g| g.regions[region(2)].root = block(0),
        "block b0 begins a region and can be reached otherwise",
    ),
    (
        5,
        |g| g.regions[region(2)].root = block(4),
        "block b4 begins a region and can be reached otherwise",
    ),
    (
        5,
        |g| g.regions[region(2)].root = block(5),
        "block b5 begins a region and can be reached otherwise",
    ),
    (5, |g| inside_itself(g), "block b1 is not below the root"),
    (6, |g| g.blocks[block(7)].end = End::Open, "block b7 is open"),
    (
        6,
        |g| g.blocks[block(2)].end = returns(&[0]),
        "block b2 passes on another number of values than r0 has φs",
    ),
    (
        6,
        |g| g.blocks[block(7)].end = returns(&[5, 5]),
        "block b7 passes on another number of values than r2 has φs",
    ),
    (8, |g| g.regions[region(1)].replays = Some(region(9)), "region r1 replays no region"),
    (
        8,
        |g| g.regions[region(1)].replays = Some(region(1)),
        "region r1 replays a region that is not visible here",
    ),
    (
        8,
        |g| g.regions[region(1)].replays = Some(region(2)),
        "region r1 replays a region that is not visible here",
    ),
    (
        8,
        |g| g.regions[region(0)].replays = Some(region(1)),
        "region r0 replays a region that is not visible here",
    ),
    (
        8,
        |g| g.regions[region(2)].replays = Some(region(0)),
        "region r2 replays a region that is not visible here",
    ),
];

/// Computes a node with a large id in a block of a region.
fn push_late(graph: &mut Graph, index: usize) {
    let late = graph.nodes.push(NodeData { def: apply(Op::Sin, [0; 3]), place: None });
    graph.blocks[block(index)].items.push(Item::Node(late));
}

fn sides_swapped(graph: &mut Graph) {
    graph.blocks[block(4)].end =
        End::Branch { condition: node(2), then: block(6), otherwise: block(5) };
}

fn another_condition(graph: &mut Graph) {
    graph.blocks[block(4)].end =
        End::Branch { condition: node(0), then: block(5), otherwise: block(6) };
}

/// Moves a region into itself, where the walk from the root finds nothing.
fn inside_itself(graph: &mut Graph) {
    let items = &mut graph.blocks[block(0)].items;
    let at = items.iter().position(|item| *item == Item::Region(region(0))).unwrap();
    let item = items.remove(at);
    graph.blocks[block(7)].items.push(item);
}

#[test]
fn each_broken_invariant_of_regions_is_found() {
    assert_eq!(verify(&sound()), Ok(()));
    for &(invariant, damage, what) in BREAKAGES {
        let mut graph = sound();
        damage(&mut graph);
        let error = verify(&graph).expect_err(what);
        assert_eq!(error.what, what, "invariant {invariant}");
        let text = error.to_string();
        let shown: Vec<&str> = text.lines().collect();
        let subject = what.split(' ').nth(1).unwrap();
        assert!(shown.len() == 3 && shown[1].trim().starts_with(subject), "{text}");
        assert_eq!(shown[2].trim(), "^", "{text}");
    }
}

/// Text, the line of the error, and what it says.
const MALFORMED: &[(&str, usize, &str)] = &[
    ("region r0 b1", 2, "expected a block first"),
    ("b0:\nregion r0", 3, "expected `region r0 b0` or `region r0 b0 replays r1`"),
    ("b0:\nregion r0 b1 again r0", 3, "expected `region r0 b0` or"),
    ("b0:\nregion b1 r0", 3, "expected an id like `r0`, found `b1`"),
    ("b0:\nregion r0 r1", 3, "expected an id like `b0`, found `r1`"),
    ("b0:\nregion r0 b1 replays b1", 3, "expected an id like `r0`, found `b1`"),
    ("b0:\n= region r0 b1", 3, "expected a block, a node, a guard, a region"),
    ("b0:\nv0 = region r0 b1", 3, "v0 is defined twice"),
    ("b0:\nv1 v1 = region r0 b1", 3, "v1 is defined twice"),
    ("b0:\nregion r0 b1\nregion r0 b1", 4, "r0 is defined twice"),
    ("b0:\nregion r1 b1\nreturn v0", 4, "r0 is missing"),
];

#[test]
fn malformed_regions_are_refused_with_their_line() {
    for &(text, line, what) in MALFORMED {
        let text = format!("graph active 1 inactive 0\n{text}");
        match parse(&text) {
            Err(ParseError::Syntax { line: found, what: reason }) => {
                assert!(found == line && reason.starts_with(what), "{found}: {reason}\n{text}");
            }
            other => panic!("{other:?}\n{text}"),
        }
    }
}

/// Random graphs of several kinds with inputs for them.
fn random_graphs(seed: u64, count: usize) -> Vec<(Graph, Vec<Vec<f64>>)> {
    let mut random = Random::new(seed);
    let usual = GraphRecipe::default();
    let recipes = [
        usual,
        GraphRecipe { replays: 0.8, branches: 0.8, steps: 60, ..usual },
        GraphRecipe { guards: 0.0, regions: 0.4, depth: 6, ..usual },
        GraphRecipe { replays: 0.9, regions: 0.3, branches: 0.7, steps: 100, ..usual },
    ];
    let mut graphs = Vec::new();
    for recipe in recipes {
        for _ in 0..count {
            let graph = recipe.graph(&mut random);
            let inputs = (0..8).map(|_| recipe.inputs(&mut random)).collect();
            graphs.push((graph, inputs));
        }
    }
    graphs
}

/// Asserts that `after` is sound and comes to what `before` does.
fn assert_agree(before: &Graph, after: &Graph, inputs: &[Vec<f64>], agree: fn(f64, f64) -> bool) {
    assert_eq!(verify(after), Ok(()), "{before}\n{after}");
    for x in inputs {
        match (interpret(before, x), interpret(after, x)) {
            (Outcome::Values(a), Outcome::Values(b)) => {
                let all = a.len() == b.len() && a.iter().zip(&b).all(|(&a, &b)| agree(a, b));
                assert!(all, "{x:?}: {a:?} {b:?}\n{before}\n{after}");
            }
            (Outcome::Unseen(_), Outcome::Unseen(_)) => {}
            (a, b) => panic!("{x:?}: {a:?} {b:?}\n{before}\n{after}"),
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    close(a, b, Tolerance::new(1e-9, 1e-12))
}

#[test]
fn random_graphs_read_back_as_they_are() {
    for (graph, _) in random_graphs(1, 100) {
        assert_eq!(verify(&graph), Ok(()));
        assert_eq!(parse(&graph.to_string()).unwrap(), graph);
    }
}

#[test]
fn dead_code_elimination_keeps_every_outcome_and_is_done_after_once() {
    for (graph, inputs) in random_graphs(2, 300) {
        let small = eliminate_dead_code(&graph);
        assert_agree(&graph, &small, &inputs, same);
        assert_eq!(eliminate_dead_code(&small), small, "{graph}\n{small}");
    }
}

#[test]
fn exact_simplification_keeps_every_bit() {
    for (graph, inputs) in random_graphs(3, 500) {
        let small = simplify(&graph, Folding::Exact);
        assert_agree(&graph, &small, &inputs, |a, b| a.to_bits() == b.to_bits());
        let again = simplify(&small, Folding::Exact);
        assert_agree(&small, &again, &inputs, |a, b| a.to_bits() == b.to_bits());
    }
}

#[test]
fn real_simplification_and_fusion_stay_near() {
    for (graph, inputs) in random_graphs(4, 500) {
        let small = simplify(&graph, Folding::Real);
        assert_agree(&graph, &small, &inputs, near);
        assert_agree(&graph, &fuse(&small), &inputs, near);
    }
}

#[test]
fn pictures_show_regions_in_their_blocks() {
    for (graph, _) in random_graphs(5, 30) {
        let picture = dot(&graph);
        for node in graph.nodes.keys() {
            assert_eq!(picture.matches(&format!(" {node} [label=\"")).count(), 1, "{picture}");
        }
        for block in graph.blocks.keys() {
            let cluster = format!("subgraph cluster_{block} {{");
            assert_eq!(picture.matches(&cluster).count(), 1, "{picture}");
        }
        for (region, data) in graph.regions.iter() {
            let (_, rest) = picture.split_once(&format!("subgraph cluster_{region} {{")).unwrap();
            assert!(rest.contains(&format!("cluster_{} {{", data.root)), "{picture}");
        }
        assert_eq!(picture.matches('{').count(), picture.matches('}').count());
    }
    let picture = dot(&sound());
    for arrow in ["v3 -> v8 [label=b2]", "v0 -> v8 [label=b3]", "v5 -> v6 [label=b7]"] {
        assert!(picture.contains(arrow), "{picture}");
    }
    let (_, inner) = picture.split_once("cluster_b3 {").unwrap();
    let (inner, _) = inner.split_once("cluster_b4 {").unwrap();
    assert!(inner.contains("cluster_r2 {") && inner.contains("v5 [label="), "{picture}");
}

fn exact(text: &str) -> String {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    simplify(&graph, Folding::Exact).to_string()
}

#[test]
fn a_phi_of_one_value_is_that_value() {
    let text = "graph active 2 inactive 0\nv2 = const 1.5\nv3 = const 1.5\nb0:\n  v6 v7 v8 v9 v10 = \
                region r0 b1\n  return v6 v7 v8 v9 v10\nb1:\n  v4 = sin v0\n  branch v1 b2 b3\nb2:\n  \
                return v0 v2 v4 v1 v1\nb3:\n  v5 = cos v0\n  return v0 v3 v4 v5 v5\n";
    // What is computed inside is not visible after the region, but it has a φ.
    let small = "graph active 2 inactive 0\nv3 = const 1.5\nb0:\n  v5 v6 = region r0 b1\n  \
                 return v0 v3 v5 v6 v6\nb1:\n  v2 = sin v0\n  branch v1 b2 b3\nb2:\n  return v2 \
                 v1\nb3:\n  v4 = cos v0\n  return v2 v4\n";
    assert_eq!(exact(text), small);
    // The zeros differ.
    let zeros = "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const -0.0\nb0:\n  v3 = region r0 \
                 b1\n  return v3\nb1:\n  branch v0 b2 b3\nb2:\n  return v1\nb3:\n  return v2\n";
    assert_eq!(exact(zeros), zeros);
}

#[test]
fn a_region_without_branches_becomes_a_part_of_its_block() {
    let text = "graph active 1 inactive 0\nb0:\n  v4 = region r0 b1\n  v5 = sin v0\n  v6 = region \
                r1 b3 replays r0\n  v8 = add v4 v6\n  v9 = add v8 v5\n  return v9\nb1:\n  v1 = sin \
                v0\n  guard v1\n  v3 = region r2 b2\n  return v3\nb2:\n  v2 = exp v1\n  return \
                v2\nb3:\n  return v1\n";
    let text = text.replace("v8", "v7").replace("v9", "v8");
    let small = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  guard v1\n  v2 = exp v1\n  v3 = add \
                 v2 v1\n  v4 = add v3 v1\n  return v4\n";
    assert_eq!(exact(&text), small);
}

#[test]
fn branches_whose_way_is_known_go() {
    let text = |outer: &str, inner: &str| {
        format!(
            "graph active 2 inactive 0\nv2 = const 2.0\nb0:\n{outer}  v3 = region r0 b1\n  return \
             v3\nb1:\n  branch {inner} b2 b3\nb2:\n  return v0\nb3:\n  return v1\n"
        )
    };
    let plain = "graph active 2 inactive 0\nb0:\n  return v0\n";
    assert_eq!(exact(&text("", "v2")), plain);
    assert!(exact(&text("", "v0")).contains("branch v0"));
    assert_eq!(exact(&text("  guard v0\n", "v0")), plain.replace("b0:", "b0:\n  guard v0"));
    let negative = plain.replace("b0:", "b0:\n  guard not v0").replace("return v0", "return v1");
    assert_eq!(exact(&text("  guard not v0\n", "v0")), negative);
    // Within one tree.
    let twice = "graph active 2 inactive 0\nb0:\n  branch v0 b1 b2\nb1:\n  branch v0 b3 b4\nb2:\n  \
                 return v1\nb3:\n  return v0\nb4:\n  return v1\n";
    let once =
        "graph active 2 inactive 0\nb0:\n  branch v0 b1 b2\nb1:\n  return v0\nb2:\n  return v1\n";
    assert_eq!(exact(twice), once);
}

#[test]
fn a_region_keeps_the_branches_that_the_one_it_replays_has() {
    // The guard comes between the two, so only the second could do without.
    let text = "graph active 1 inactive 0\nb0:\n  v2 = region r0 b1\n  guard v0\n  v4 = region r1 b4 \
                replays r0\n  v5 = add v2 v4\n  return v5\nb1:\n  branch v0 b2 b3\nb2:\n  v1 = sin \
                v0\n  return v1\nb3:\n  return v0\nb4:\n  branch v0 b5 b6\nb5:\n  v3 = cos v1\n  \
                return v3\nb6:\n  return v0\n";
    assert_eq!(exact(text), text);
    // Before the first, it serves both.
    let first = "b0:\n  v2 = region r0 b1\n  guard v0\n";
    let small = "graph active 1 inactive 0\nb0:\n  guard v0\n  v1 = sin v0\n  v2 = cos v1\n  v3 = add \
                 v1 v2\n  return v3\n";
    assert_eq!(exact(&text.replace(first, "b0:\n  guard v0\n  v2 = region r0 b1\n")), small);
}

#[test]
fn regions_without_use_go_and_with_them_what_only_they_use() {
    let eliminated = |text: &str| eliminate_dead_code(&parse(text).unwrap()).to_string();
    let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v4 v5 = region r0 b1\n  v6 = region \
                r1 b4 replays r0\n  v7 = region r2 b5 replays r1\n  return v0\nb1:\n  branch v1 b2 \
                b3\nb2:\n  v2 = cos v0\n  return v2 v1\nb3:\n  v3 = exp v0\n  return v3 v3\nb4:\n  \
                return v1\nb5:\n  return v0\n";
    assert_eq!(eliminated(text), "graph active 1 inactive 0\nb0:\n  return v0\n");
    // The other φ goes, and what it would be.
    let second = text.replace("replays r1\n  return v0", "replays r1\n  return v5");
    let expected = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v3 = region r0 b1\n  return \
                    v3\nb1:\n  branch v1 b2 b3\nb2:\n  return v1\nb3:\n  v2 = exp v0\n  return v2\n";
    assert_eq!(eliminated(&second), expected);
    // A link to a region that goes is none.
    let last = text.replace("replays r1\n  return v0", "replays r1\n  return v7");
    let expected =
        "graph active 1 inactive 0\nb0:\n  v1 = region r0 b1\n  return v1\nb1:\n  return v0\n";
    assert_eq!(eliminated(&last), expected);
    // Of a region without φs a value may be used all the same.
    let replayed = text.replace("b4:\n  return v1", "b4:\n  branch v1 b6 b7");
    let replayed = format!("{replayed}b6:\n  return v2\nb7:\n  return v0\n")
        .replace("replays r1\n  return v0", "replays r1\n  return v6");
    let kept = eliminated(&replayed);
    assert!(kept.contains("  region r0 b1\n  v3 = region r1 b4 replays r0\n"), "{kept}");
}

#[test]
fn what_decides_through_a_phi_is_not_fused() {
    let text = |end: &str| {
        format!(
            "graph active 3 inactive 0\nb0:\n  v5 = region r0 b1\n{end}b1:\n  branch v2 b2 b3\nb2:\n  \
             v3 = mul v0 v1\n  v4 = add v3 v2\n  return v4\nb3:\n  return v0\n"
        )
    };
    let fused = |end| fuse(&parse(&text(end)).unwrap()).to_string();
    assert!(fused("  return v5\n").contains("mul_add"));
    assert!(!fused("  guard v5\n  return v5\n").contains("mul_add"));
    assert!(!fused("  v6 = sqrt v5\n  return v6\n").contains("mul_add"));
    // A product may cancel one that comes through a φ.
    let cancelling = "graph active 3 inactive 0\nb0:\n  v4 = region r0 b1\n  v5 = mul v0 v1\n  v6 = sub \
                      v5 v4\n  return v6\nb1:\n  branch v2 b2 b3\nb2:\n  v3 = mul v0 v1\n  return \
                      v3\nb3:\n  return v0\n";
    assert!(!fuse(&parse(cancelling).unwrap()).to_string().contains("mul_add"));
}

#[test]
fn deep_nesting_needs_no_deep_stack() {
    const DEPTH: usize = 5000;
    let mut graph = Graph::new(1, 0);
    let (x, mut at) = (graph.input(0), graph.root());
    let mut blocks = Vec::new();
    for _ in 0..DEPTH {
        let sine = graph.push_apply(at, Op::Sin, &[x], None);
        let region = graph.push_region(at, None, None);
        let (then, otherwise) = (graph.new_block(), graph.new_block());
        let root = graph.regions[region].root;
        graph.blocks[root].end = End::Branch { condition: sine, then, otherwise };
        graph.blocks[otherwise].end = returns(&[0]);
        blocks.push((at, region));
        at = then;
    }
    graph.blocks[at].end = returns(&[0]);
    for (block, region) in blocks.into_iter().rev() {
        let phi = graph.push_phi(region);
        let cosine = graph.push_apply(block, Op::Cos, &[phi], None);
        graph.blocks[block].end = End::Return([cosine].into_iter().collect());
    }
    let small = std::thread::Builder::new().stack_size(1 << 18);
    let thread = small.spawn(move || {
        assert_eq!(parse(&graph.to_string()).unwrap(), graph);
        let simplified = simplify(&graph, Folding::Real);
        for other in [simplified, fuse(&graph), eliminate_dead_code(&graph)] {
            assert_agree(&graph, &other, &[vec![0.5], vec![0.0]], near);
        }
        assert!(dot(&graph).contains("cluster_r4999"));
    });
    thread.unwrap().join().unwrap();
}
