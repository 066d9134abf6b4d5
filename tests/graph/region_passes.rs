//! Simplification and dead-code elimination of regions, on examples.

use crate::common::outcomes::assert_agree;
use phigrad::check::same;
use phigrad::internals::explain::dot;
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{End, Folding, Graph, eliminate_dead_code, parse, simplify};

fn exact(text: &str) -> String {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    simplify(&graph, Folding::Exact).to_string()
}

#[test]
fn a_phi_of_one_value_is_that_value() {
    let text = "graph active 2 inactive 0\nv2 = const 1.5\nv3 = const 1.5\nb0:\n  v6 v7 v8 v9 v10 = \
                region r0 b1\n  return v6 v7 v8 v9 v10\nb1:\n  v4 = sin v0\n  branch v1 b2 b3\nb2:\n  \
                return v0 v2 v4 v1 v1\nb3:\n  v5 = cos v0\n  return v0 v3 v4 v5 v5\n";
    // A node computed inside is not visible after the region, but its φ is.
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
fn a_region_without_branches_is_inlined() {
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
fn branches_with_known_outcome_are_removed() {
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
fn a_replaying_region_keeps_the_branches_of_the_replayed_one() {
    // The guard is between the two regions, so only the branch of the second is redundant.
    let text = "graph active 1 inactive 0\nb0:\n  v2 = region r0 b1\n  guard v0\n  v4 = region r1 b4 \
                replays r0\n  v5 = add v2 v4\n  return v5\nb1:\n  branch v0 b2 b3\nb2:\n  v1 = sin \
                v0\n  return v1\nb3:\n  return v0\nb4:\n  branch v0 b5 b6\nb5:\n  v3 = cos v1\n  \
                return v3\nb6:\n  return v0\n";
    assert_eq!(exact(text), text);
    // Before the first region it makes both redundant.
    let first = "b0:\n  v2 = region r0 b1\n  guard v0\n";
    let small = "graph active 1 inactive 0\nb0:\n  guard v0\n  v1 = sin v0\n  v2 = cos v1\n  v3 = add \
                 v1 v2\n  return v3\n";
    assert_eq!(exact(&text.replace(first, "b0:\n  guard v0\n  v2 = region r0 b1\n")), small);
}

#[test]
fn equal_conditions_of_replayed_regions_are_merged() {
    // r1 takes the path of r0 only where it branches on v1 again; v5 is another node until it is
    // merged with v1.
    let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v4 = region r0 b1\n  v5 = sin \
                v0\n  v10 = region r1 b4 replays r0\n  v11 = add v4 v10\n  return v11\nb1:\n  branch v1 \
                b2 b3\nb2:\n  v2 = cos v0\n  return v2\nb3:\n  v3 = exp v0\n  return v3\nb4:\n  \
                branch v5 b5 b6\nb5:\n  branch v1 b7 b8\nb6:\n  branch v1 b9 b10\nb7:\n  v6 = neg \
                v2\n  return v6\nb8:\n  v7 = neg v3\n  return v7\nb9:\n  v8 = neg v2\n  return \
                v8\nb10:\n  v9 = neg v3\n  return v9\n";
    let graph = parse(text).unwrap();
    let small = simplify(&graph, Folding::Exact);
    assert_agree(&graph, &small, &[vec![1.0], vec![0.0], vec![-1.0]], same);
    assert_eq!(small.conditions(), 2, "{small}");
}

#[test]
fn branches_with_equal_arms_are_removed() {
    let text = "graph active 2 inactive 0\nb0:\n  v2 = sin v0\n  v5 = region r0 b1\n  return v5\nb1:\n  \
                branch v1 b2 b3\nb2:\n  branch v2 b4 b5\nb3:\n  v3 = cos v0\n  return v3\nb4:\n  v4 = \
                exp v0\n  return v0\nb5:\n  return v0\n";
    let small = "graph active 2 inactive 0\nb0:\n  v3 = region r0 b1\n  return v3\nb1:\n  branch v1 b2 \
                 b3\nb2:\n  return v0\nb3:\n  v2 = cos v0\n  return v2\n";
    let graph = parse(text).unwrap();
    assert_eq!(eliminate_dead_code(&graph).to_string(), small);
    assert_eq!(exact(text), small);
    // A node in one arm is live if a replaying region uses it.
    let replayed = text
        .replace("  return v5\nb1", "  v6 = region r1 b6 replays r0\n  return v6\nb1")
        + "b6:\n  branch v1 b7 b8\nb7:\n  branch v2 b9 b10\nb8:\n  return v0\nb9:\n  return \
           v4\nb10:\n  return v0\n";
    let graph = parse(&replayed).unwrap();
    assert_eq!(eliminate_dead_code(&graph).conditions(), 4);
    let inputs = [vec![1.0, 1.0], vec![-1.0, 1.0], vec![1.0, 0.0]];
    assert_agree(&graph, &simplify(&graph, Folding::Exact), &inputs, same);
}

#[test]
fn dead_regions_are_removed_with_their_operands() {
    let eliminated = |text: &str| eliminate_dead_code(&parse(text).unwrap()).to_string();
    let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v4 v5 = region r0 b1\n  v6 = region \
                r1 b4 replays r0\n  v7 = region r2 b5 replays r0\n  return v0\nb1:\n  branch v1 b2 \
                b3\nb2:\n  v2 = cos v0\n  return v2 v1\nb3:\n  v3 = exp v0\n  return v3 v3\nb4:\n  \
                return v1\nb5:\n  return v0\n";
    assert_eq!(eliminated(text), "graph active 1 inactive 0\nb0:\n  return v0\n");
    // The other φ is removed, with its sources.
    let second = text.replace("replays r0\n  return v0", "replays r0\n  return v5");
    let expected = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v3 = region r0 b1\n  return \
                    v3\nb1:\n  branch v1 b2 b3\nb2:\n  return v1\nb3:\n  v2 = exp v0\n  return v2\n";
    assert_eq!(eliminated(&second), expected);
    // A removed region is not replayed.
    let last = text.replace("replays r0\n  return v0", "replays r0\n  return v7");
    let expected =
        "graph active 1 inactive 0\nb0:\n  v1 = region r0 b1\n  return v1\nb1:\n  return v0\n";
    assert_eq!(eliminated(&last), expected);
    // A region without φs may be live because of its nodes.
    let replayed = text.replace("b4:\n  return v1", "b4:\n  branch v1 b6 b7");
    let replayed = format!("{replayed}b6:\n  return v2\nb7:\n  return v0\n")
        .replace("replays r0\n  return v0", "replays r0\n  return v6");
    let kept = eliminated(&replayed);
    assert!(kept.contains("  region r0 b1\n  v3 = region r1 b4 replays r0\n"), "{kept}");
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
        graph.blocks[otherwise].end = End::Return([x].into_iter().collect());
        blocks.push((at, region));
        at = then;
    }
    graph.blocks[at].end = End::Return([x].into_iter().collect());
    for (block, region) in blocks.into_iter().rev() {
        let phi = graph.push_phi(region);
        let cosine = graph.push_apply(block, Op::Cos, &[phi], None);
        graph.blocks[block].end = End::Return([cosine].into_iter().collect());
    }
    let small = std::thread::Builder::new().stack_size(1 << 18);
    let thread = small.spawn(move || {
        assert_eq!(parse(&graph.to_string()).unwrap(), graph);
        let simplified = simplify(&graph, Folding::Real);
        for other in [simplified, eliminate_dead_code(&graph)] {
            assert_agree(&graph, &other, &[vec![0.5], vec![0.0]], same);
        }
        assert!(dot(&graph).contains("cluster_r4999"));
    });
    thread.unwrap().join().unwrap();
}
