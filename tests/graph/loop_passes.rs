//! Simplification, dead-code elimination and hoisting of loops, on examples.

use phigrad::internals::explain::dot;
use phigrad::internals::loops::hoist;
use phigrad::internals::ssa::{
    Def, Folding, Item, Outcome, eliminate_dead_code, interpret, parse, simplify, verify,
};

fn exact(text: &str) -> String {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    simplify(&graph, Folding::Exact).to_string()
}

/// A loop of four iterations with these entry φs; each leaf passes on `nexts`, then `values`.
fn counted(entries: &str, body: &str, passed: &str, phis: &str, outputs: &str) -> String {
    format!(
        "graph active 2 inactive 0\nv2 = const 3.0\nv9 = iteration r0\na0 = constants 1.0 2.0 3.0 \
         4.0\na1 = sums _ v0\ni0 = a0 base 0 r0*1\ni1 = a1 base 1\nb0:\n  fill a1\n  {phis} = region r0 \
         b1 bound 4 entries {entries}\n  return {outputs}\nb1:\n  v10 = lt v9 v2\n  {body}\n  return v10 \
         {passed}\n"
    )
}

#[test]
fn invariant_entry_phis_are_replaced() {
    let body = "v11 = add v3 v4\n  v12 = mul v5 v6\n  v13 = sub v11 v12\n  v14 = add v7 v13\n  v15 = add v8 v2";
    // v3 is invariant, v4 gets its initial value again, v5 and v6 get that of v3 through each
    // other; v7 sums, v8 is dead.
    let text = counted(
        "v3=v0 v4=v1 v5=v0 v6=v0 v7=v0 v8=v2",
        body,
        "v3 v1 v3 v5 v14 v15 v14 v3 v15",
        "v16 v17 v18",
        "v16 v17",
    );
    let small = "graph active 2 inactive 0\nv3 = iteration r0\nv4 = const 3.0\nb0:\n  v10 = region r0 \
                 b1 bound 4 entries v2=v0\n  return v10 v0\nb1:\n  v5 = lt v3 v4\n  v6 = add v0 v1\n  \
                 v7 = mul v0 v0\n  v8 = sub v6 v7\n  v9 = add v2 v8\n  return v5 v9 v9\n";
    assert_eq!(exact(&text), small);
}

#[test]
fn entry_phis_are_folded_until_none_is_invariant() {
    // v6 is 1 in all iterations, by an equal constant; so v5 is, v7 is v0, and the adjoint v13 is 1.
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const 3.0\nv3 = const 1.0\nv4 = \
                iteration r0\nb0:\n  v11 = region r0 b1 bound 4 entries v5=v1 v6=v1 v7=v0\n  v15 = \
                region r1 b2 bound 4 entries v12=v1 replays r0\n  return v11 v15\nb1:\n  v8 = mul v5 \
                v6\n  v9 = mul v7 v8\n  v10 = lt v4 v2\n  return v10 v8 v3 v9 v9\nb2:\n  v13 = mul v12 \
                v6\n  v14 = mul v13 v5\n  return v14 v14\n";
    let small = "graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  return v0 v1\n";
    assert_eq!(exact(text), small);
}

#[test]
fn swapped_entry_phis_stay() {
    let text = counted(
        "v3=v0 v4=v1 v5=v0 v6=v0 v7=v0 v8=v2",
        "v11 = neg v0\n  v12 = neg v0\n  v13 = neg v0\n  v14 = neg v0\n  v15 = neg v0",
        "v4 v3 v5 v6 v7 v8 v3 v15 v11",
        "v16 v17 v18",
        "v16 v17",
    );
    let small = exact(&text);
    assert!(small.contains("bound 4 entries v2=v0 v3=v1\n"), "{small}");
    // Equal nodes are merged, and φs with equal sources.
    assert_eq!(small.matches("neg").count(), 1, "{small}");
    let graph = parse(&small).unwrap();
    // Three swaps.
    assert_eq!(interpret(&graph, &[1.0, 2.0]), Outcome::Values(vec![2.0, -1.0]));
}

#[test]
fn a_dead_loop_stays_only_if_it_may_exceed_its_bound() {
    let text = counted(
        "v3=v0 v4=v1 v5=v0 v6=v0 v7=v0 v8=v2",
        "v11 = element i0\n  accumulate i1 v11\n  v12 = neg v3\n  v13 = neg v3\n  v14 = neg v3\n  \
         v15 = neg v3",
        "v15 v3 v5 v6 v7 v8 v3 v15 v11",
        "v16 v17 v18",
        "v0",
    );
    let gone = "graph active 2 inactive 0\nb0:\n  return v0\n";
    assert_eq!(eliminate_dead_code(&parse(&text).unwrap()).to_string(), gone);
    // One iteration more than the bound.
    let text = text.replace("const 3.0", "const 4.0");
    let kept = "graph active 2 inactive 0\nv2 = const 4.0\nv3 = iteration r0\nb0:\n  region r0 b1 bound \
                4\n  return v0\nb1:\n  v4 = lt v3 v2\n  return v4\n";
    assert_eq!(eliminate_dead_code(&parse(&text).unwrap()).to_string(), kept);
    assert!(matches!(interpret(&parse(kept).unwrap(), &[1.0, 1.0]), Outcome::Unseen(_)));
}

#[test]
fn accumulators_are_live_if_one_is_read() {
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = iteration r0\na0 = sums _ v0\na1 = sums \
                v0\ni0 = a0 base 0 r0*1\ni1 = a0 base 1\ni2 = a1 base 0\nb0:\n  fill a1\n  fill a0\n  \
                region r0 b1 bound 2\n  v5 = element i1\n  v6 = element i2\n  return v5\nb1:\n  v3 = lt \
                v2 v1\n  v4 = sin v0\n  accumulate i0 v4\n  accumulate i2 v4\n  return v3\n";
    let small = eliminate_dead_code(&parse(text).unwrap());
    let expected = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = iteration r0\na0 = sums _ v0\ni0 = a0 \
                    base 0 r0*1\ni1 = a0 base 1\nb0:\n  fill a0\n  region r0 b1 bound 2\n  v5 = element \
                    i1\n  return v5\nb1:\n  v3 = lt v2 v1\n  v4 = sin v0\n  accumulate i0 v4\n  return \
                    v3\n";
    assert_eq!(small.to_string(), expected);
    assert_eq!(interpret(&small, &[0.5]), Outcome::Values(vec![0.5 + 0.5f64.sin()]));
}

#[test]
fn constant_elements_become_nodes() {
    let text = "graph active 2 inactive 0\nv2 = const 1.0\nv4 = iteration r0\na0 = constants 1.5 2.5\na1 = \
                nodes v0 v1\na2 = saved v5\na3 = saved v6\na4 = saved v7\na5 = saved v3\ni0 = a0 \
                base 1\ni1 = a1 base 1 r0*0\ni2 = a2 base 1 r0*-1\ni3 = a3 base 0\ni4 = a4 base 1 r0*-1\ni5 \
                = a5 base 1 r0*-1\nb0:\n  region r0 b1 bound 2 entries v3=v0\n  v19 v20 = region r1 b2 bound 2 \
                replays r0\n  return v19 v20\nb1:\n  v5 = mul v4 v2\n  v6 = mul v0 v1\n  v7 = add v3 v4\n  \
                v8 = lt v4 v2\n  return v8 v3\nb2:\n  v9 = element i0\n  v10 = element i1\n  v11 = element \
                i2\n  v12 = element i3\n  v13 = element i4\n  v14 = element i5\n  v15 = add v9 v10\n  v16 = \
                add v11 v12\n  v17 = add v13 v14\n  v18 = add v15 v16\n  return v17 v18\n";
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let small = simplify(&graph, Folding::Exact);
    // The remaining arrays are of nodes that the loop computes.
    assert_eq!(small.arrays.len(), 2, "{small}");
    assert_eq!(small.to_string().matches("element").count(), 2, "{small}");
    let x = [0.7, -0.2];
    assert_eq!(interpret(&graph, &x), interpret(&small, &x), "{small}");
}

#[test]
fn accumulators_are_read_again_after_a_fill() {
    let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = iteration r0\na0 = sums v0\na1 = saved v4\ni0 = a0 \
                base 0\ni1 = a1 base 0\nb0:\n  v7 = region r0 b1 bound 2\n  v8 = element i1\n  return v7 \
                v8\nb1:\n  fill a0\n  accumulate i0 v2\n  v4 = element i0\n  v5 = element i0\n  v6 = lt v2 \
                v1\n  return v6 v5\n";
    let text = text.replace("v4", "v3").replace("v5", "v4").replace("v6", "v5").replace("v7", "v6");
    let graph = parse(&text.replace("v8", "v7")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(interpret(&graph, &[0.5]), Outcome::Values(vec![1.5, 0.5]));
    let small = simplify(&graph, Folding::Exact);
    assert_eq!(interpret(&small, &[0.5]), Outcome::Values(vec![1.5, 0.5]));
    assert_eq!(small.to_string().matches("element i0").count(), 2, "{small}");
}

/// A loop in a loop in a loop …
#[test]
fn deep_nests_of_loops_need_no_deep_stack() {
    let mut builder = phigrad::internals::ssa::Builder::new(1, 0, Folding::Exact);
    let (x, never) = (builder.input(0), builder.constant(0.0));
    let mut regions = Vec::new();
    let mut value = x;
    for _ in 0..3000 {
        let (region, entries) = builder.begin_loop(2, &[value], None);
        value = builder.apply(phigrad::internals::op::Op::Sin, &[entries[0]]);
        regions.push(region);
    }
    for region in regions.into_iter().rev() {
        builder.finish_block(&[never, value, value]);
        value = builder.end_loop(region, 1)[0];
    }
    builder.finish_block(&[value]);
    let graph = builder.into_graph();
    assert_eq!(verify(&graph), Ok(()));
    assert_eq!(parse(&graph.to_string()).unwrap(), graph);
    let expected = (0..3000).fold(0.5f64, |value, _| value.sin());
    for graph in [simplify(&graph, Folding::Real), graph] {
        assert_eq!(interpret(&graph, &[0.5]), Outcome::Values(vec![expected]));
        assert!(dot(&graph).contains("cluster_r2999"));
    }
}

/// Nested loops of ten and four iterations; the outer one adds up the results of the inner one,
/// which sums the last node of `body`; v10 to this number.
fn nested(body: &str, last: usize) -> String {
    let [sum, inner, outer] = [1, 2, 3].map(|more| format!("v{}", last + more));
    format!(
        "graph active 2 inactive 0\nv2 = const 9.0\nv3 = const 3.0\nv4 = iteration r0\nv5 = iteration \
         r1\na0 = constants 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0\ni0 = a0 base 0 r0*1\ni1 = a0 base \
         0 r1*1\nb0:\n  {outer} = region r0 b1 bound 10 entries v6=v0\n  return {outer}\nb1:\n  v7 = lt \
         v4 v2\n  {inner} = region r1 b2 bound 4 entries v8=v6\n  return v7 {inner} {inner}\nb2:\n  v9 \
         = lt v5 v3\n  {body}\n  {sum} = add v8 v{last}\n  return v9 {sum} {sum}\n"
    )
}

/// The primitives and elements of each block of the hoisted graph.
fn steps_of_hoisted(text: &str) -> Vec<Vec<String>> {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let hoisted = hoist(&graph);
    for x in [[0.5, 2.0], [-1.0, 0.25]] {
        assert_eq!(interpret(&graph, &x), interpret(&hoisted, &x), "{hoisted}");
    }
    let steps = |block: &phigrad::internals::ssa::BlockData| {
        let step = |item: &Item| match *item {
            Item::Node(node) => match hoisted.nodes[node].def {
                Def::Apply(op, _) => op.to_string(),
                _ => "element".to_string(),
            },
            Item::Guard { .. } => "guard".to_string(),
            Item::Region(_) => "region".to_string(),
            Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => "sum".to_string(),
        };
        block.items.iter().map(step).collect()
    };
    hoisted.blocks.values().map(steps).collect()
}

#[test]
fn invariant_steps_move_before_the_loops() {
    // sin(v0 + v1) before both loops, the cosine of an element of the outer loop inside that.
    let body = "v10 = add v0 v1\n  v11 = sin v10\n  v12 = element i0\n  v13 = cos v12\n  v14 = element \
                i1\n  v15 = mul v11 v13\n  v16 = mul v15 v14\n  guard v11";
    let steps = steps_of_hoisted(&nested(body, 16));
    assert_eq!(steps[0], ["add", "sin", "guard", "region"]);
    assert_eq!(steps[1], ["lt", "element", "cos", "mul", "region"]);
    assert_eq!(steps[2], ["lt", "element", "mul", "add"]);
}

#[test]
fn varying_cheap_and_conditional_steps_stay() {
    // Uses of the iteration number and of carried values, and a step that is cheaper than a
    // reload.
    let body = "v10 = mul v5 v0\n  v11 = mul v8 v1\n  v12 = neg v0\n  v13 = add v10 v11\n  v14 = add v13 v12";
    let steps = steps_of_hoisted(&nested(body, 14));
    assert_eq!(steps[0], ["region"]);
    assert_eq!(steps[1], ["lt", "region"]);
    assert_eq!(steps[2], ["lt", "mul", "mul", "neg", "add", "add", "add"]);
    // An arm of a branch.
    let text = "graph active 2 inactive 0\nv2 = const 9.0\nv3 = iteration r0\nb0:\n  v10 = region r0 b1 \
                bound 10 entries v4=v0\n  return v10\nb1:\n  v5 = lt v3 v2\n  v6 = gt v4 v1\n  v9 = \
                region r1 b2\n  return v5 v9 v9\nb2:\n  branch v6 b3 b4\nb3:\n  v7 = exp v0\n  return \
                v7\nb4:\n  v8 = sin v1\n  return v8\n";
    assert_eq!(hoist(&parse(text).unwrap()), parse(text).unwrap());
}

#[test]
fn invariant_steps_of_replayed_loops_move() {
    // sin(exp(v0)·v1) is used in the replaying loop, exp(v0) in both.
    let text = "graph active 2 inactive 0\nv2 = const 9.0\nv3 = iteration r0\nb0:\n  v8 = region r0 \
                b1 bound 10 entries v4=v0\n  v13 = region r1 b2 bound 10 entries v9=v8 replays r0\n  \
                return v13\nb1:\n  v5 = exp v0\n  v6 = add v4 v5\n  v7 = lt v3 v2\n  return v7 v6 \
                v6\nb2:\n  v10 = mul v5 v1\n  v11 = sin v10\n  v12 = add v9 v11\n  return v12 v12\n";
    let steps = steps_of_hoisted(text);
    assert_eq!(steps[0], ["exp", "region", "mul", "sin", "region"]);
    assert_eq!(steps[1..], [vec!["add", "lt"], vec!["add"]]);
}

#[test]
fn saved_nodes_stay_in_their_loop() {
    let text = "graph active 2 inactive 0\nv2 = const 9.0\nv3 = iteration r0\nv4 = iteration r1\na0 = \
                saved v7\ni0 = a0 base 9 r1*-1\nb0:\n  v9 = region r0 b1 bound 10 entries v5=v0\n  v14 \
                = region r1 b2 bound 10 entries v10=v9\n  return v14\nb1:\n  v6 = lt v3 v2\n  v7 = sin \
                v1\n  v8 = add v5 v7\n  return v6 v8 v8\nb2:\n  v11 = lt v4 v2\n  v12 = element \
                i0\n  v13 = add v10 v12\n  return v11 v13 v13\n";
    assert_eq!(hoist(&parse(text).unwrap()), parse(text).unwrap());
}
