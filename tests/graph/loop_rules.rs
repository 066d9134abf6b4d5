//! The invariants of loops and arrays, each violated in turn, and malformed text of loops.

use phigrad::internals::entity::Entity;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    Access, AccessData, Array, ArrayData, Block, Def, End, Entry, Graph, Item, Loop, Node,
    NodeData, Outcome, ParseError, PlaceId, Region, interpret, parse, verify,
};

/// y := x; three times y := y² + 1, with a loop in each iteration; then a replaying loop adds up
/// saved values, and a region reads the sums.
const VALID: &str = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v4 = iteration r0
v9 = iteration r1
a0 = saved v5
a1 = nodes v0 v1 v2
a2 = sums _ v1 _
a3 = constants 1.0 2.0
i0 = a0 base 2 r0*-1
i1 = a1 base 0 r0*1
i2 = a2 base 0 r0*1
i3 = a2 base 1
i4 = a3 base 0 r1*1
b0:
  v14 = region r0 b1 bound 3 entries v3=v0 @ a.rs:1:1
  fill a2
  v20 = region r2 b3 bound 3 entries v15=v1 replays r0
  v21 = element i3
  v22 = region r3 b4
  return v14 v20 v22
b1:
  v5 = mul v3 v3
  v6 = add v5 v1
  v12 = region r1 b2 bound 2 entries v7=v6
  v13 = lt v4 v2
  return v13 v12 v12
b2:
  v8 = element i4
  v10 = mul v7 v8
  v11 = lt v9 v1
  return v11 v10 v10
b3:
  v16 = element i0
  v17 = element i1
  v18 = mul v16 v17
  v19 = add v18 v3
  accumulate i2 v19
  return v19 v15
b4:
  branch v21 b5 b6
b5:
  return v21
b6:
  return v1
";

fn valid() -> Graph {
    parse(VALID).unwrap_or_else(|error| panic!("{error}"))
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

fn array(index: usize) -> Array {
    Array::from_index(index)
}

fn access(index: usize) -> Access {
    Access::from_index(index)
}

fn returns(nodes: &[usize]) -> End {
    End::Return(nodes.iter().map(|&index| node(index)).collect())
}

fn cycle(graph: &mut Graph, index: usize) -> &mut Loop {
    graph.regions[region(index)].cycle.as_mut().unwrap()
}

fn items(graph: &mut Graph, index: usize) -> &mut Vec<Item> {
    &mut graph.blocks[block(index)].items
}

fn push(graph: &mut Graph, def: Def) -> Node {
    graph.nodes.push(NodeData { def, place: None })
}

#[test]
fn the_graph_is_valid() {
    let graph = valid();
    assert_eq!(graph.to_string(), VALID);
    let y = |x: f64| (x * x + 1.0) * 2.0;
    let (y0, y1, y2) = (2.0, y(2.0), y(y(2.0)));
    let last = |past: f64, factor: f64, y: f64| past * past * factor + y;
    // Iterations 2, 1, 0 with the squares of iterations 0, 1, 2 and 2, 1, x.
    let terms = [last(y0, 2.0, y2), last(y1, 1.0, y1), last(y2, 2.0, y0)];
    let sum = 1.0 + terms[1];
    assert_eq!(interpret(&graph, &[2.0]), Outcome::Values(vec![y(y2), terms[1], sum]));
}

type Breakage = (usize, fn(&mut Graph), &'static str);

const OUT_OF_PLACE: &str = "node v3 is not in its place among the entry φs of its loop";
const COUNT: &str = "block b1 passes on another number of values than r0 takes";

/// The number of the invariant, a change that violates it, and the message of the verifier.
const BREAKAGES: &[Breakage] = &[
    (
        2,
        |g| cycle(g, 1).entries[0].first = node(11),
        "node v7 has no larger id than its first value",
    ),
    (2, |g| late_entry(g), "region r1 has a φ with a smaller id than it needs"),
    (6, |g| g.blocks[block(1)].end = returns(&[12, 12]), COUNT),
    (6, |g| g.blocks[block(1)].end = returns(&[13, 12, 12, 12]), COUNT),
    (
        6,
        |g| g.blocks[block(3)].end = returns(&[1, 19, 15]),
        "block b3 passes on another number of values than r2 takes",
    ),
    (4, |g| g.blocks[block(1)].end = returns(&[11, 12, 12]), "block b1 uses v11, not visible here"),
    (4, |g| g.blocks[block(0)].end = returns(&[3, 3, 3]), "block b0 uses v3, not visible here"),
    (4, |g| g.blocks[block(0)].end = returns(&[4, 4, 4]), "block b0 uses v4, not visible here"),
    (4, |g| g.blocks[block(1)].end = returns(&[9, 3, 3]), "block b1 uses v9, not visible here"),
    (4, |g| g.blocks[block(5)].end = returns(&[15]), "block b5 uses v15, not visible here"),
    (9, |g| cycle(g, 1).bound = 0, "region r1 has bound 0"),
    (9, |g| cycle(g, 2).bound = 2, "region r2 has another bound than the loop that it replays"),
    (
        9,
        |g| g.regions[region(3)].replays = Some(region(0)),
        "region r3 replays a loop but is no loop",
    ),
    (
        9,
        |g| g.regions[region(2)].replays = Some(region(3)),
        "region r2 is a loop but replays a region that is none",
    ),
    (9, |g| replays_a_replay(g), "region r3 replays a loop that replays another"),
    (9, |g| replays_inside(g), "region r4 replays a loop that is being replayed"),
    (
        8,
        |g| g.regions[region(0)].replays = Some(region(2)),
        "node v4 counts no loop, or one that replays another",
    ),
    (9, |g| g.nodes[node(3)].def = Def::Entry(region(0), 1), OUT_OF_PLACE),
    (9, |g| g.nodes[node(3)].def = Def::Entry(region(3), 0), OUT_OF_PLACE),
    (9, |g| g.nodes[node(3)].def = Def::Entry(region(9), 0), OUT_OF_PLACE),
    (9, |g| cycle(g, 0).entries.clear(), OUT_OF_PLACE),
    (9, |g| extra_entry(g, 3), "region r0 has v3 as entry φ, which is not defined as that"),
    (9, |g| extra_entry(g, 99), "region r0 has v99 as entry φ, which is not defined as that"),
    (9, |g| g.nodes[node(3)].place = None, "node v3 comes from another place than its loop"),
    (9, |g| outer_first(g), "region r0 begins with v5, not visible here"),
    (
        9,
        |g| _ = push(g, Def::Iteration(region(0))),
        "node v23 is a second iteration number of its loop",
    ),
    (
        9,
        |g| g.nodes[node(4)].def = Def::Iteration(region(3)),
        "node v4 counts no loop, or one that replays another",
    ),
    (
        9,
        |g| g.nodes[node(4)].def = Def::Iteration(region(7)),
        "node v4 counts no loop, or one that replays another",
    ),
    (
        3,
        |g| items(g, 1).push(Item::Node(node(4))),
        "block b1 has a step for a node that is not computed by steps",
    ),
    (
        3,
        |g| items(g, 1).push(Item::Node(node(3))),
        "block b1 has a step for a node that is not computed by steps",
    ),
    (3, |g| _ = items(g, 2).remove(0), "node v10 uses v8, not visible here"),
    (3, |g| _ = items(g, 0).remove(3), "block b4 uses v21, not visible here"),
    (10, |g| saved(g, 99), "array a0 refers to v99, which is no node"),
    (10, |g| saved(g, 0), "array a0 is of v0, not computed in the root of a loop"),
    (10, |g| saved(g, 1), "array a0 is of v1, not computed in the root of a loop"),
    (10, |g| saved(g, 4), "array a0 is of v4, not computed in the root of a loop"),
    (10, |g| saved(g, 14), "array a0 is of v14, not computed in the root of a loop"),
    (10, |g| saved(g, 18), "array a0 is of v18, not computed in the root of a loop"),
    (
        10,
        |g| g.arrays[array(1)] = ArrayData::Nodes(vec![node(77)]),
        "array a1 refers to v77, which is no node",
    ),
    (
        10,
        |g| g.arrays[array(2)] = ArrayData::Sums(vec![Some(node(77))]),
        "array a2 refers to v77, which is no node",
    ),
    (
        11,
        |g| g.accesses[access(0)].array = array(8),
        "access i0 is to an array that does not exist",
    ),
    (11, |g| g.accesses[access(0)].base = 1, "access i0 may be outside of its array"),
    (11, |g| g.accesses[access(0)].base = 3, "access i0 may be outside of its array"),
    (11, |g| stride(g, 1, 0, 2), "access i1 has two strides by r0"),
    (11, |g| open_bound(g), "access i4 may be outside of its array"),
    (
        11,
        |g| g.arrays[array(3)] = ArrayData::Constants(vec![].into()),
        "access i4 may be outside of its array",
    ),
    (
        11,
        |g| stride(g, 1, 2, 0),
        "access i1 has a stride by r2, which is no loop with an iteration number",
    ),
    (
        11,
        |g| stride(g, 1, 3, 0),
        "access i1 has a stride by r3, which is no loop with an iteration number",
    ),
    (
        11,
        |g| stride(g, 1, 9, 0),
        "access i1 has a stride by r9, which is no loop with an iteration number",
    ),
    (12, |g| stride(g, 1, 1, 0), "node v17 needs the iteration of r1, not known here"),
    (
        12,
        |g| g.nodes[node(21)].def = Def::Element(access(9)),
        "node v21 reads at an access that does not exist",
    ),
    (
        12,
        |g| g.nodes[node(21)].def = Def::Element(access(1)),
        "node v21 needs the iteration of r0, not known here",
    ),
    (12, |g| read_saved_inside(g), "node v6 reads a0, of a loop that is not visible here"),
    (
        12,
        |g| g.arrays[array(1)] = ArrayData::Nodes(vec![node(0), node(8), node(0)]),
        "node v17 uses v8 in a1, not visible here",
    ),
    (
        12,
        |g| g.arrays[array(1)] = ArrayData::Nodes(vec![node(0), node(16), late(g)]),
        "node v17 has no larger id than v23 in a1",
    ),
    (12, |g| _ = items(g, 0).remove(1), "block b3 writes a2, not filled here"),
    (12, |g| items(g, 0).swap(1, 2), "block b3 writes a2, not filled here"),
    (
        12,
        |g| _ = g.blocks[block(3)].items.pop().map(|_| items(g, 0).remove(1)),
        "node v21 reads a2, not filled here",
    ),
    (12, |g| fill_in_an_arm(g), "block b3 writes a2, not filled here"),
    (13, |g| items(g, 0).push(Item::Fill(array(2))), "block b0 fills a2, as another step does"),
    (13, |g| items(g, 0).push(Item::Fill(array(1))), "block b0 fills a1, which no step writes"),
    (13, |g| items(g, 0).push(Item::Fill(array(9))), "block b0 fills a9, which no step writes"),
    (
        12,
        |g| g.arrays[array(2)] = ArrayData::Sums(vec![Some(node(5)), None, None]),
        "block b0 uses v5, not visible here",
    ),
    (13, |g| add(g, 3, 1, 0), "block b3 writes a1 as it cannot be written"),
    (13, |g| store(g, 3, 3, 0), "block b3 writes a2 as it cannot be written"),
    (13, |g| add(g, 3, 9, 0), "block b3 writes at i9, which is no access"),
    (13, |g| add(g, 3, 2, 11), "block b3 uses v11, not visible here"),
    (13, |g| add(g, 0, 2, 0), "block b0 needs the iteration of r0, not known here"),
    (
        3,
        |g| g.regions[region(0)].place = Some(PlaceId::from_index(9)),
        "region r0 comes from an unknown place",
    ),
];

/// Adds a node with the largest id to the block of the first one.
fn late(graph: &mut Graph) -> Node {
    let (root, x) = (graph.root(), graph.input(0));
    let node = graph.push_apply(root, Op::Sin, &[x], None);
    let items = &mut graph.blocks[root].items;
    items.rotate_right(1);
    node
}

fn replays_a_replay(graph: &mut Graph) {
    graph.regions[region(3)].cycle = Some(Loop { bound: 3, entries: vec![] });
    graph.regions[region(3)].replays = Some(region(2));
}

fn replays_inside(graph: &mut Graph) {
    let region = graph.push_region(block(3), Some(region(0)), None);
    graph.make_loop(region, 3, &[]);
    let root = graph.regions[region].root;
    graph.blocks[root].end = returns(&[]);
}

fn extra_entry(graph: &mut Graph, index: usize) {
    cycle(graph, 0).entries.push(Entry { phi: node(index), first: node(0) });
}

/// Makes a node of a loop an initial value of the loop.
fn outer_first(graph: &mut Graph) {
    let place = graph.nodes[node(3)].place;
    let phi = graph.nodes.push(NodeData { def: Def::Entry(region(0), 1), place });
    cycle(graph, 0).entries.push(Entry { phi, first: node(5) });
    // It must have no φ, whose id would have to be larger than the entry's.
    graph.regions[region(0)].phis.clear();
    graph.nodes[node(14)].def = Def::Const(0);
    graph.blocks[block(1)].end = returns(&[13, 12, 12]);
}

fn saved(graph: &mut Graph, index: usize) {
    graph.arrays[array(0)] = ArrayData::Saved(node(index));
}

fn stride(graph: &mut Graph, index: usize, by: usize, stride: i32) {
    let strides = &mut graph.accesses[access(index)].strides;
    let by = region(by);
    if by != region(0) {
        strides.clear();
    }
    strides.push((by, stride));
}

/// A larger bound of the inner loop, whose last iteration then depends on the input.
fn open_bound(graph: &mut Graph) {
    cycle(graph, 1).bound = 3;
    graph.nodes[node(11)].def = Def::Apply(Op::Lt, [node(9), node(0), node(9)]);
}

/// Reads the saved values inside their loop.
fn read_saved_inside(graph: &mut Graph) {
    graph.nodes[node(6)].def = Def::Element(access(0));
}

fn late_entry(graph: &mut Graph) {
    let phi = push(graph, Def::Entry(region(1), 1));
    cycle(graph, 1).entries.push(Entry { phi, first: node(0) });
}

fn fill_in_an_arm(graph: &mut Graph) {
    let item = items(graph, 0).remove(1);
    let region = graph.push_region(block(0), None, None);
    let root = graph.regions[region].root;
    graph.blocks[root] =
        phigrad::internals::ssa::BlockData { items: vec![item], end: returns(&[]) };
    let last = items(graph, 0).pop().unwrap();
    items(graph, 0).insert(1, last);
}

fn add(graph: &mut Graph, index: usize, at: usize, value: usize) {
    items(graph, index).push(Item::Accumulate(access(at), node(value)));
}

fn store(graph: &mut Graph, index: usize, at: usize, value: usize) {
    items(graph, index).push(Item::Store(access(at), node(value)));
}

#[test]
fn each_violated_invariant_of_loops_is_found() {
    assert_eq!(verify(&valid()), Ok(()));
    let mut wrong = Vec::new();
    for &(invariant, damage, what) in BREAKAGES {
        let mut graph = valid();
        damage(&mut graph);
        let Err(error) = verify(&graph) else {
            wrong.push(format!("{invariant}: {what}: not found"));
            continue;
        };
        if error.what != what {
            wrong.push(format!("{invariant}: {what}: {}", error.what));
            continue;
        }
        let text = error.to_string();
        let shown: Vec<&str> = text.lines().collect();
        let subject = what.split(' ').nth(1).unwrap();
        assert!(shown.len() == 3 && shown[1].trim().starts_with(subject), "{text}");
        assert_eq!(shown[2].trim(), "^", "{text}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn borderline_graphs_are_valid() {
    let allowed: [fn(&mut Graph); 5] = [
        // A positive and a negative stride over the whole array.
        |g| {
            let strides = [(region(0), -1)].into_iter().collect();
            g.accesses[access(1)] =
                AccessData { array: array(1), base: 2, strides, changes: Default::default() };
        },
        // Saved values of an entry φ, and of the φ of an inner loop.
        |g| saved(g, 3),
        |g| saved(g, 12),
        // Adding in one arm and reading in the other.
        |g| {
            items(g, 0).remove(3);
            g.blocks[block(5)].items.push(Item::Node(node(21)));
            g.blocks[block(4)].end =
                End::Branch { condition: node(0), then: block(5), otherwise: block(6) };
            add(g, 6, 3, 0);
        },
        // Reading again after the loop.
        |g| _ = g.push_element(block(0), access(3), None),
    ];
    for (index, change) in allowed.into_iter().enumerate() {
        let mut graph = valid();
        change(&mut graph);
        assert_eq!(verify(&graph), Ok(()), "{index}\n{graph}");
        assert!(matches!(interpret(&graph, &[1.5]), Outcome::Values(_)), "{index}");
    }
}

/// The text, the line of the error, and the message.
const MALFORMED: &[(&str, usize, &str)] = &[
    ("b0:\nregion r0 b1 bound", 3, "expected `region r0 b0`, then for a loop"),
    ("b0:\nregion r0 b1 bound 2 entries", 3, "expected `region r0 b0`, then for a loop"),
    ("b0:\nregion r0 b1 entries v1=v0", 3, "expected `region r0 b0`, then for a loop"),
    ("b0:\nregion r0 b1 replays r1 bound 2", 3, "expected `region r0 b0`, then for a loop"),
    ("b0:\nregion r0 b1 bound -2", 3, "expected an integer, found `-2`"),
    ("b0:\nregion r0 b1 bound 4294967296", 3, "expected an integer, found `4294967296`"),
    ("b0:\nregion r0 b1 bound 2 entries v1", 3, "expected `v1=v0`, found `v1`"),
    ("b0:\nregion r0 b1 bound 2 entries v0=v0", 3, "v0 is defined twice"),
    ("b0:\nregion r0 b1 bound 2 entries v1=w0", 3, "expected an id like `v0`, found `w0`"),
    ("b0:\nv1 = region r0 b1 bound 2 entries v1=v0", 3, "v1 is defined twice"),
    ("v1 = iteration v0", 2, "expected an id like `r0`, found `v0`"),
    ("a1 = constants 1.0", 2, "expected array a0"),
    ("a0 = constants one", 2, "expected a number, found `one`"),
    ("a0 = nodes 1.0", 2, "expected an id like `v0`, found `1.0`"),
    ("a0 = nodes _", 2, "expected an id like `v0`, found `_`"),
    ("a0 = sums 1.0", 2, "expected an id like `v0`, found `1.0`"),
    ("a0 = saved", 2, "expected one node"),
    ("a0 = saved v0 v0", 2, "expected one node"),
    ("v1 = constants 1.0", 2, "expected an id like `a0`, found `v1`"),
    ("i1 = a0 base 0", 2, "expected access i0"),
    ("i0 = v0 base 0", 2, "expected an id like `a0`, found `v0`"),
    ("i0 = a0 base -1", 2, "expected an integer, found `-1`"),
    ("i0 = a0 base 0 r0", 2, "expected `r0*1`, found `r0`"),
    ("i0 = a0 base 0 r0*x", 2, "expected an integer, found `x`"),
    ("b0:\nv1 = element a0", 3, "expected an id like `i0`, found `a0`"),
    ("fill a0", 2, "expected a block first"),
    ("b0:\nfill i0", 3, "expected an id like `a0`, found `i0`"),
    ("b0:\naccumulate i0", 3, "expected a block, a node, a guard, a region"),
    ("b0:\naccumulate i0 r0", 3, "expected an id like `v0`, found `r0`"),
];

#[test]
fn malformed_loops_are_rejected_with_their_line() {
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
