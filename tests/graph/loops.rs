//! Loops: semantics, text form, and invariants.

use phigrad::internals::ssa::{Graph, Outcome, interpret, parse};

/// Parses a graph and checks that its text form is `text`.
fn read(text: &str) -> Graph {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(graph.to_string(), text);
    graph
}

fn values(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    match interpret(graph, inputs) {
        Outcome::Values(values) => values,
        Outcome::Unseen(node) => panic!("stopped at {node}\n{graph}"),
    }
}

fn stops(graph: &Graph, inputs: &[f64]) -> bool {
    matches!(interpret(graph, inputs), Outcome::Unseen(_))
}

/// Sum of four constants times x.
const SUM: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 3.0
v4 = iteration r0
a0 = constants 1.0 2.0 3.5 4.0
i0 = a0 base 0 r0*1
b0:
  v9 = region r0 b1 bound 4 entries v3=v1 @ a.rs:1:2
  return v9
b1:
  v5 = element i0 @ a.rs:2:2
  v6 = mul v5 v0
  v7 = add v3 v6
  v8 = lt v4 v2
  return v8 v7 v7
";

#[test]
fn a_loop_adds_up_constants() {
    assert_eq!(values(&read(SUM), &[2.0]), [21.0]);
    let backwards = SUM.replace("base 0 r0*1", "base 3 r0*-1");
    assert_eq!(values(&read(&backwards), &[2.0]), [21.0]);
    // One iteration more than the bound.
    assert!(stops(&read(&SUM.replace("const 3.0", "const 4.0")), &[2.0]));
    assert_eq!(values(&read(&SUM.replace("const 3.0", "const 1.0")), &[2.0]), [6.0]);
}

#[test]
fn entry_phis_are_assigned_in_parallel() {
    let text = "\
graph active 2 inactive 0
v2 = const 8.0
v5 = iteration r0
b0:
  v8 v9 = region r0 b1 bound 9 entries v3=v0 v4=v1
  return v8 v9
b1:
  v6 = add v3 v4
  v7 = lt v5 v2
  return v7 v4 v6 v3 v6
";
    assert_eq!(values(&read(text), &[0.0, 1.0]), [21.0, 55.0]);
}

/// Doubles x until it is at least 100.
const WHILE: &str = "\
graph active 1 inactive 0
v1 = const 100.0
b0:
  v5 = region r0 b1 bound 4 entries v2=v0
  return v5
b1:
  v3 = add v2 v2
  v4 = lt v3 v1
  return v4 v3 v3
";

#[test]
fn a_loop_that_exceeds_its_bound_stops_the_graph() {
    let graph = read(WHILE);
    assert_eq!(values(&graph, &[60.0]), [120.0]);
    assert_eq!(values(&graph, &[7.0]), [112.0]);
    assert_eq!(interpret(&graph, &[6.0]), Outcome::Unseen(graph.nodes.keys().nth(4).unwrap()));
    assert!(stops(&graph, &[-1.0]) && !stops(&graph, &[f64::NAN]));
}

#[test]
fn a_loop_without_entries_runs() {
    let text = "\
graph active 0 inactive 0
v0 = const 2.0
v1 = iteration r0
b0:
  v3 = region r0 b1 bound 3
  return v3
b1:
  v2 = lt v1 v0
  return v2 v1
";
    assert_eq!(values(&read(text), &[]), [2.0]);
}

/// Σ over i < 4 of Σ over j <= i of x·(10·i + j); the inner bound is carried.
const TRIANGLE: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 1.0
v3 = const 10.0
v4 = const 4.0
v7 = iteration r1
b0:
  v16 = region r0 b1 bound 4 entries v5=v1 v6=v1
  return v16
b1:
  v14 = region r1 b2 bound 4 entries v8=v6
  v15 = add v5 v2
  v17 = lt v15 v4
  return v17 v15 v14 v14
b2:
  v9 = mul v5 v3
  v10 = add v9 v7
  v11 = mul v10 v0
  v12 = add v8 v11
  v13 = lt v7 v5
  return v13 v12 v12
";

#[test]
fn inner_bounds_may_be_carried() {
    let text = TRIANGLE.replace("v16", "v99").replace("v17", "v16").replace("v99", "v17");
    let graph = read(&text);
    let pairs = (0..4).flat_map(|i| (0..=i).map(move |j| f64::from(10 * i + j)));
    assert_eq!(values(&graph, &[0.5]), [pairs.sum::<f64>() * 0.5]);
}

/// y := x; three times y := y·y - 1; then a replaying loop collects the values of y before each
/// step, last first, as digits, and the saved squares.
const REPLAY: &str = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v3 = const 0.0
v4 = const 100.0
v6 = iteration r0
a0 = saved v7
i0 = a0 base 0 r0*1
i1 = a0 base 2 r0*-1
b0:
  v10 = region r0 b1 bound 3 entries v5=v0
  v20 v21 = region r1 b2 bound 3 entries v11=v3 v12=v3 replays r0
  return v10 v20 v21
b1:
  v7 = mul v5 v5
  v8 = sub v7 v1
  v9 = lt v6 v2
  return v9 v8 v8
b2:
  v13 = mul v11 v4
  v14 = add v13 v5
  v15 = mul v12 v4
  v16 = element i0
  v17 = sub v16 v7
  v18 = element i1
  v19 = add v15 v18
  v22 = add v19 v17
  return v14 v22 v14 v22
";

#[test]
fn a_replaying_loop_runs_backwards() {
    let text = REPLAY.replace("v22 =", "v20 =").replace("v22 v14 v22", "v20 v14 v20");
    let text = text.replace("v20 v21 = region", "v21 v22 = region");
    let graph = read(&text.replace("return v10 v20 v21", "return v10 v21 v22"));
    // y: 2, 3, 8, 63; squares 4, 9, 64.
    assert_eq!(values(&graph, &[2.0]), [63.0, 80302.0, 40964.0]);
}

/// The inner loop has one more iteration than the outer one has had. Then both are replayed: they
/// collect the inner values as digits, with a branch as in the inner loop, and the results of the
/// inner loop in accumulators.
const NESTED: &str = "\
graph active 1 inactive 0
v1 = const 1.0
v2 = const 2.0
v3 = const 0.0
v4 = const 100.0
v6 = iteration r0
v8 = iteration r1
a0 = sums _ _ _ _ _ _ _ _ _
a1 = saved v14
i0 = a0 base 0 r0*3 r1*1
i1 = a0 base 7
i2 = a1 base 2 r0*-1
b0:
  v17 = region r0 b1 bound 3 entries v5=v3
  fill a0
  v30 v31 = region r3 b5 bound 3 entries v18=v3 v19=v3 replays r0
  v32 = element i1
  return v17 v30 v31 v32
b1:
  v14 = region r1 b2 bound 3 entries v7=v5
  v15 = add v14 v1
  v16 = lt v6 v2
  return v16 v14 v15
b2:
  v9 = mul v8 v0
  v12 = region r2 b3
  v13 = lt v8 v6
  return v13 v12 v12
b3:
  branch v9 b4 b7
b4:
  v10 = add v9 v7
  return v10
b5:
  v26 = region r4 b6 bound 3 entries v20=v18 replays r1
  v27 = element i2
  v28 = mul v19 v4
  v29 = add v28 v27
  return v26 v29 v26 v29
b6:
  v25 = region r5 b8 replays r2
  accumulate i0 v25
  return v25 v25
b7:
  v11 = neg v1
  return v11
b8:
  branch v9 b9 b10
b9:
  v21 = mul v20 v4
  v22 = add v21 v10
  return v22
b10:
  v23 = mul v20 v4
  v24 = add v23 v11
  return v24
";

#[test]
fn nested_loops_are_replayed_backwards() {
    let graph = read(NESTED);
    // With x = 3 the inner values are [-1], [-1, 2], [-1, 2, 8]: the branch adds 0 for -1.
    let digits = [8.0, 2.0, -1.0, 2.0, -1.0, -1.0];
    let number = |digits: &[f64]| digits.iter().fold(0.0, |number, digit| number * 100.0 + digit);
    // The saved results of the inner loop, first to last.
    let past = number(&[-1.0, 2.0, 8.0]);
    // The accumulator of outer iteration 2, inner iteration 1.
    let sum = number(&digits[..2]);
    assert_eq!(values(&graph, &[3.0]), [9.0, number(&digits), past, sum]);
}
