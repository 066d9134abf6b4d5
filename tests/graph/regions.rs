//! The invariants of regions, each violated in turn, malformed text of regions, and pictures.

use phigrad::internals::entity::Entity;
use phigrad::internals::explain::dot;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Block, Def, End, Graph, Item, Node, NodeData, ParseError, PlaceId, Region, parse, verify,
};

/// x·|x|, twice: after the region, and in a region that replays it.
const REPLAYED: &str = include_str!("../corpus/replayed_region.graph");

fn valid() -> Graph {
    parse(REPLAYED).unwrap_or_else(|error| panic!("{error}"))
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

/// The number of the invariant, a change that violates it, and the message of the verifier.
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
    (
        3,
        |g| g.regions[region(0)].phis.push(node(8)),
        "region r0 has v8 as φ, which is not defined as that",
    ),
    (
        3,
        |g| g.regions[region(0)].phis.push(node(0)),
        "region r0 has v0 as φ, which is not defined as that",
    ),
    (
        3,
        |g| g.regions[region(0)].phis.push(node(99)),
        "region r0 has v99 as φ, which is not defined as that",
    ),
    (3, |g| g.nodes[node(8)].place = None, "node v8 comes from another place than its region"),
    (
        3,
        |g| g.regions[region(1)].place = Some(PlaceId::from_index(5)),
        "region r1 comes from an unknown place",
    ),
    (
        3,
        |g| g.blocks[block(4)].items.push(Item::Node(node(8))),
        "block b4 has a step for a node that is not computed by steps",
    ),
    (4, |g| g.nodes[node(9)].def = apply(Op::Mul, [4, 0, 4]), "node v9 uses v4, not visible here"),
    (4, |g| g.nodes[node(9)].def = apply(Op::Mul, [6, 0, 6]), "node v9 uses v6, not visible here"),
    (4, |g| g.nodes[node(10)].def = apply(Op::Neg, [4; 3]), "node v10 uses v4, not visible here"),
    (4, |g| g.nodes[node(11)].def = apply(Op::Neg, [4; 3]), "node v11 uses v4, not visible here"),
    (4, |g| g.nodes[node(12)].def = apply(Op::Neg, [5; 3]), "node v12 uses v5, not visible here"),
    (
        4,
        |g| g.nodes[node(15)].def = apply(Op::Add, [9, 4, 9]),
        "node v15 uses v4, not visible here",
    ),
    (
        4,
        |g| g.nodes[node(15)].def = apply(Op::Add, [9, 6, 9]),
        "node v15 uses v6, not visible here",
    ),
    (4, |g| g.regions[region(1)].replays = None, "node v12 uses v4, not visible here"),
    (4, |g| swap_arms(g), "node v12 uses v4, not visible here"),
    (4, |g| change_condition(g), "node v12 uses v4, not visible here"),
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
        "block b3 has a step for a region that does not exist",
    ),
    (5, |g| g.regions[region(2)].root = block(77), "region r2 has a root that is no block"),
    (
        5,
        |g| g.regions[region(2)].root = block(0),
        "block b0 is the root of a region and has another predecessor",
    ),
    (
        5,
        |g| g.regions[region(2)].root = block(4),
        "block b4 is the root of a region and has another predecessor",
    ),
    (
        5,
        |g| g.regions[region(2)].root = block(5),
        "block b5 is the root of a region and has another predecessor",
    ),
    (5, |g| move_into_itself(g), "block b1 is not below the root"),
    (6, |g| g.blocks[block(7)].end = End::Open, "block b7 is open"),
    (
        6,
        |g| g.blocks[block(2)].end = returns(&[0]),
        "block b2 passes on another number of values than r0 takes",
    ),
    (
        6,
        |g| g.blocks[block(7)].end = returns(&[5, 5]),
        "block b7 passes on another number of values than r2 takes",
    ),
    (
        8,
        |g| g.regions[region(1)].replays = Some(region(9)),
        "region r1 replays a region that does not exist",
    ),
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
    (8, |g| replay_twice(g, 0, Some(region(0))), "region r4 replays a region that replays another"),
    (8, replay_arms, "region r4 replays a region that replays another"),
];

/// Appends regions to block `at`: `r3`, which may replay one, and `r4` that replays `r3`.
fn replay_twice(graph: &mut Graph, at: usize, replays: Option<Region>) {
    let at = block(at);
    let first = graph.push_region(at, replays, None);
    let second = graph.push_region(at, Some(first), None);
    for region in [first, second] {
        let root = graph.regions[region].root;
        graph.blocks[root].end = returns(&[]);
    }
}

/// Adds regions to the replaying one: `r3`, whose arms have forward blocks, and `r4` that replays
/// `r3`.
fn replay_arms(graph: &mut Graph) {
    replay_twice(graph, 4, None);
    let (then, otherwise) = (graph.new_block(), graph.new_block());
    let root = graph.regions[region(3)].root;
    graph.blocks[root].end = End::Branch { condition: node(2), then, otherwise };
    [then, otherwise].into_iter().for_each(|arm| graph.blocks[arm].end = returns(&[]));
}

/// Adds a node with a large id to a block of a region.
fn push_late(graph: &mut Graph, index: usize) {
    let late = graph.nodes.push(NodeData { def: apply(Op::Sin, [0; 3]), place: None });
    graph.blocks[block(index)].items.push(Item::Node(late));
}

fn swap_arms(graph: &mut Graph) {
    graph.blocks[block(4)].end =
        End::Branch { condition: node(2), then: block(6), otherwise: block(5) };
}

fn change_condition(graph: &mut Graph) {
    graph.blocks[block(4)].end =
        End::Branch { condition: node(0), then: block(5), otherwise: block(6) };
}

/// Moves a region into itself, unreachable from the root.
fn move_into_itself(graph: &mut Graph) {
    let items = &mut graph.blocks[block(0)].items;
    let at = items.iter().position(|item| *item == Item::Region(region(0))).unwrap();
    let item = items.remove(at);
    graph.blocks[block(7)].items.push(item);
}

#[test]
fn each_violated_invariant_of_regions_is_found() {
    let graph = valid();
    assert_eq!((verify(&graph), graph.conditions(), graph.paths()), (Ok(()), 2, 1));
    let mut replayed_outside = valid();
    replay_twice(&mut replayed_outside, 3, None);
    assert_eq!(verify(&replayed_outside), Ok(()));
    // Here both have the same forward block.
    for at in [4, 6] {
        let mut replayed_inside = valid();
        replay_twice(&mut replayed_inside, at, None);
        assert_eq!(verify(&replayed_inside), Ok(()));
    }
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
}

/// The text, the line of the error, and the message.
const MALFORMED: &[(&str, usize, &str)] = &[
    ("region r0 b1", 2, "expected a block first"),
    ("b0:\nregion r0", 3, "expected `region r0 b0`, then"),
    ("b0:\nregion r0 b1 again r0", 3, "expected `region r0 b0`, then"),
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
fn malformed_regions_are_rejected_with_their_line() {
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

#[test]
fn pictures_show_the_sources_of_phis() {
    let picture = dot(&valid());
    for arrow in ["v3 -> v8 [label=b2]", "v0 -> v8 [label=b3]", "v5 -> v6 [label=b7]"] {
        assert!(picture.contains(arrow), "{picture}");
    }
    let (_, inner) = picture.split_once("cluster_b3 {").unwrap();
    let (inner, _) = inner.split_once("cluster_b4 {").unwrap();
    assert!(inner.contains("cluster_r2 {") && inner.contains("v5 [label="), "{picture}");
}
