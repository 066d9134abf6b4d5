//! Derivatives of loops that were worked out by hand, and the shape of their gradient graphs.

use crate::common::outcomes::outputs;
use crate::oracle::{check, check_checkpoints};
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{
    AccessData, Array, ArrayData, Builder, Folding, Graph, Item, Node, Outcome, Region, interpret,
    parse, verify,
};

const BREAK: &str = include_str!("../corpus/break_in_region.graph");

/// The gradient of `graph`, which agrees with the oracles bit for bit.
fn gradient(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    assert!(check(graph, inputs, true));
    check_checkpoints(graph, inputs);
    outputs(&reverse(graph, Wanted::Gradient, Folding::Exact), inputs).unwrap()
}

/// A loop of `count` iterations; `body` makes the next values of its entry φs, which are also
/// its results.
fn times(
    b: &mut Builder,
    count: u32,
    firsts: &[Node],
    body: impl FnOnce(&mut Builder, Region, &[Node]) -> Vec<Node>,
) -> (Region, Vec<Node>) {
    let (region, entries) = b.begin_loop(count, firsts, None);
    let nexts = body(b, region, &entries);
    let (number, last) = (b.iteration(region), b.constant(f64::from(count - 1)));
    let again = b.apply(Op::Lt, &[number, last]);
    b.finish_block(&[&[again], &nexts[..], &nexts[..]].concat());
    (region, b.end_loop(region, nexts.len()))
}

fn at(array: Array, base: u32, strides: &[(Region, i32)]) -> AccessData {
    AccessData {
        array,
        base,
        strides: strides.iter().copied().collect(),
        changes: Default::default(),
    }
}

/// The array of some inputs.
fn inputs(b: &mut Builder, which: impl IntoIterator<Item = usize>) -> Array {
    let nodes = which.into_iter().map(|i| b.input(i)).collect();
    b.array(ArrayData::Nodes(nodes))
}

/// A graph of `active` active inputs.
fn graph(active: usize, output: impl FnOnce(&mut Builder) -> Node) -> Graph {
    let mut builder = Builder::new(active, 0, Folding::Exact);
    let output = output(&mut builder);
    builder.finish_block(&[output]);
    builder.into_graph()
}

fn sums(graph: &Graph) -> usize {
    graph.arrays.values().filter(|array| matches!(array, ArrayData::Sums(_))).count()
}

/// The number of entry φs of each loop that replays another.
fn entries(graph: &Graph) -> Vec<usize> {
    let replays = graph.regions.keys().filter(|&region| graph.regions[region].replays.is_some());
    replays.map(|region| graph.entries(region).len()).collect()
}

#[test]
fn geometric_sum() {
    // 1 + x + x² + x³ + x⁴
    let graph = graph(1, |b| {
        let (x, one) = (b.input(0), b.constant(1.0));
        let (_, last) = times(b, 4, &[one, one], |b, _, e| {
            let power = b.apply(Op::Mul, &[e[0], x]);
            vec![power, b.apply(Op::Add, &[e[1], power])]
        });
        last[1]
    });
    assert_eq!(gradient(&graph, &[2.0]), [49.0]);
    // Of the power, of the sum, which shares the adjoint of the φ, and of x.
    assert_eq!(entries(&reverse(&graph, Wanted::Gradient, Folding::Exact)), [3]);
}

#[test]
fn horner_with_coefficients_in_an_array() {
    // 3x³ + 4x² + 5x + 6, by the coefficients and by x
    let graph = graph(5, |b| {
        let (x, zero) = (b.input(4), b.constant(0.0));
        let coefficients = inputs(b, 0..4);
        let (_, last) = times(b, 4, &[zero], |b, region, e| {
            let c = b.element(at(coefficients, 0, &[(region, 1)]));
            let shifted = b.apply(Op::Mul, &[e[0], x]);
            vec![b.apply(Op::Add, &[shifted, c])]
        });
        last[0]
    });
    assert_eq!(gradient(&graph, &[3.0, 4.0, 5.0, 6.0, 2.0]), [8.0, 4.0, 2.0, 1.0, 57.0]);
}

#[test]
fn fibonacci_of_two_entries() {
    // Operands of entry φs are entry φs and outer nodes.
    let graph = graph(2, |b| {
        let firsts = [b.input(0), b.input(1)];
        let (_, last) = times(b, 7, &firsts, |b, _, e| vec![e[1], b.apply(Op::Add, &[e[0], e[1]])]);
        b.apply(Op::Mul, &[last[0], last[1]])
    });
    // (8x + 13y)·(13x + 21y)
    assert_eq!(
        gradient(&graph, &[1.0, 1.0]),
        [8.0 * 34.0 + 13.0 * 21.0, 13.0 * 34.0 + 21.0 * 21.0]
    );
}

#[test]
fn dot_product_of_two_arrays() {
    let graph = graph(6, |b| {
        let zero = b.constant(0.0);
        let (left, right) = (inputs(b, 0..3), inputs(b, 3..6));
        let (_, last) = times(b, 3, &[zero], |b, region, e| {
            let x = b.element(at(left, 0, &[(region, 1)]));
            let y = b.element(at(right, 2, &[(region, -1)]));
            let product = b.apply(Op::Mul, &[x, y]);
            vec![b.apply(Op::Add, &[e[0], product])]
        });
        last[0]
    });
    let point = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    assert_eq!(gradient(&graph, &point), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!((entries(&gradient), sums(&gradient)), (vec![1], 2), "{gradient}");
}

#[test]
fn loops_that_nest_in_a_triangle() {
    // Σ over i < 3 and j ≤ i of x·y_j², with a loop-carried inner bound
    let graph = graph(4, |b| {
        let (x, zero, one) = (b.input(0), b.constant(0.0), b.constant(1.0));
        let ys = inputs(b, 1..4);
        let (_, last) = times(b, 3, &[zero, zero], |b, _, outer| {
            let (inner, entries) = b.begin_loop(3, &[outer[1]], None);
            let y = b.element(at(ys, 0, &[(inner, 1)]));
            let square = b.apply(Op::Mul, &[y, y]);
            let sum = b.apply(Op::MulAdd, &[square, x, entries[0]]);
            let number = b.iteration(inner);
            let again = b.apply(Op::Lt, &[number, outer[0]]);
            b.finish_block(&[again, sum, sum]);
            let sum = b.end_loop(inner, 1)[0];
            vec![b.apply(Op::Add, &[outer[0], one]), sum]
        });
        last[1]
    });
    let point = [2.0, 3.0, 5.0, 7.0];
    assert_eq!(gradient(&graph, &point), [126.0, 36.0, 40.0, 28.0]);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    // One array for both loops, filled once.
    assert_eq!(sums(&gradient), 1, "{gradient}");
}

#[test]
fn an_entry_phi_and_a_phi_share_an_adjoint() {
    // At each end a constant decides if an iteration follows, so the entry φ and the φ share an
    // adjoint; the others are of the inputs.
    let graph = parse(BREAK).unwrap();
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!(entries(&gradient), [3, 0], "{gradient}");
}

#[test]
fn a_trajectory_that_a_second_loop_reads_backwards() {
    // y_0 = x², y_k+1 = y_k²; Σ over k < 3 of w_k · y_2-k, and y_1 again
    let graph = graph(4, |b| {
        let (x, zero) = (b.input(3), b.constant(0.0));
        let weights = inputs(b, 0..3);
        let mut inner = None;
        let (first, last) = times(b, 3, &[x], |b, _, e| {
            inner = Some(b.apply(Op::Mul, &[e[0], e[0]]));
            inner.into_iter().collect()
        });
        let square = inner.unwrap();
        let trajectory = b.array(ArrayData::Saved(square));
        let (_, sum) = times(b, 3, &[zero], |b, second, e| {
            let w = b.element(at(weights, 0, &[(second, 1)]));
            let y = b.element(at(trajectory, 2, &[(second, -1)]));
            vec![b.apply(Op::MulAdd, &[w, y, e[0]])]
        });
        let again = b.saved(first, square, 1, &[]);
        let sum = b.apply(Op::Add, &[sum[0], again]);
        b.apply(Op::Add, &[sum, last[0]])
    });
    // w0·x⁸ + w1·x⁴ + w2·x² + x⁴ + x⁸
    assert_eq!(gradient(&graph, &[3.0, 5.0, 7.0, 2.0]), [256.0, 16.0, 4.0, 4316.0]);
}

#[test]
fn trajectories_in_an_outer_loop() {
    // Twice: (y, y², y⁴ by a loop; then Σ of them backwards) is the next y.
    let graph = graph(1, |b| {
        let (x, zero) = (b.input(0), b.constant(0.0));
        let (_, last) = times(b, 2, &[x], |b, _, outer| {
            let mut entry = None;
            let (first, _) = times(b, 3, &[outer[0]], |b, _, e| {
                entry = Some(e[0]);
                vec![b.apply(Op::Mul, &[e[0], e[0]])]
            });
            let trajectory = b.array(ArrayData::Saved(entry.unwrap()));
            assert_eq!(b.graph().regions[first].replays, None);
            let (_, sum) = times(b, 3, &[zero], |b, second, e| {
                let y = b.element(at(trajectory, 2, &[(second, -1)]));
                vec![b.apply(Op::Add, &[e[0], y])]
            });
            sum
        });
        last[0]
    });
    // f(y) = y + y² + y⁴: f(1) = 3, f'(1) = 7, f'(3) = 1 + 6 + 108
    assert_eq!(gradient(&graph, &[1.0]), [7.0 * 115.0]);
}

#[test]
fn parts_of_one_array_share_their_sums() {
    // Σ of x_i+1 · x_i, of x_4-i · x_2i (i < 3), and x_3 directly
    let graph = graph(6, |b| {
        let zero = b.constant(0.0);
        let (low, high) = (inputs(b, 0..5), inputs(b, 1..6));
        let (back, even) = (inputs(b, [4, 3, 2]), inputs(b, [0, 2, 4]));
        let x3 = b.input(3);
        let (_, sum) = times(b, 5, &[zero], |b, region, e| {
            let x = b.element(at(low, 0, &[(region, 1)]));
            let y = b.element(at(high, 0, &[(region, 1)]));
            let sum = b.apply(Op::MulAdd, &[x, y, e[0]]);
            let (_, sum) = times(b, 3, &[sum], |b, inner, e| {
                let x = b.element(at(back, 0, &[(inner, 1)]));
                let y = b.element(at(even, 0, &[(inner, 1)]));
                vec![b.apply(Op::MulAdd, &[x, y, e[0]])]
            });
            vec![b.apply(Op::Add, &[sum[0], x3])]
        });
        sum[0]
    });
    let point = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    // Neighbours, then 5 times x4·x0 + x3·x2 + x2·x4, and 5.
    assert_eq!(gradient(&graph, &point), [27.0, 4.0, 51.0, 28.0, 30.0, 5.0]);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!((sums(&gradient), entries(&gradient)), (1, vec![1, 1]), "{gradient}");
    // In the order of the tape.
    let point = [0.1, 0.2, 0.3, 0.7, 1e10, 1e-10];
    assert!(check(&graph, &point, true));
}

#[test]
fn a_node_may_be_in_several_arrays_and_indices() {
    // No array holds both without a node twice.
    let graph = graph(3, |b| {
        let zero = b.constant(0.0);
        let (twice, other) = (inputs(b, [0, 1, 0, 2]), inputs(b, [1, 0, 0, 1]));
        let (_, sum) = times(b, 4, &[zero], |b, region, e| {
            let x = b.element(at(twice, 0, &[(region, 1)]));
            let y = b.element(at(other, 0, &[(region, 1)]));
            vec![b.apply(Op::MulAdd, &[x, y, e[0]])]
        });
        sum[0]
    });
    // x·y + y·x + x·x + z·y
    for folding in [Folding::Exact, Folding::Real] {
        let gradient = reverse(&graph, Wanted::Gradient, folding);
        assert_eq!(outputs(&gradient, &[2.0, 3.0, 5.0]), Some(vec![10.0, 9.0, 3.0]), "{gradient}");
    }
    assert!(check(&graph, &[0.1, 0.2, 0.3], false));
}

#[test]
fn elements_that_are_nodes_of_the_same_iteration() {
    // The element is one of two nodes of the same iteration.
    let graph = graph(2, |b| {
        let (x, y) = (b.input(0), b.input(1));
        let (_, last) = times(b, 4, &[x], |b, region, e| {
            let square = b.apply(Op::Mul, &[e[0], e[0]]);
            let product = b.apply(Op::Mul, &[e[0], y]);
            let nodes = [square, product, x, e[0]].to_vec();
            let array = b.array(ArrayData::Nodes(nodes));
            let picked = b.element(at(array, 0, &[(region, 1)]));
            vec![b.apply(Op::Add, &[picked, product])]
        });
        last[0]
    });
    // x² + xy; its double times y; x + y times that; 1 + y times that
    let (x, y) = (2.0, 3.0);
    let (a, da, db) = (x * x + x * y, 2.0 * x + y, x);
    let (b, ea, eb) = (a * y * 2.0, da * y * 2.0, db * y * 2.0 + a * 2.0);
    let (c, fa, fb) = (x + b * y, 1.0 + ea * y, eb * y + b);
    assert_eq!(gradient(&graph, &[x, y]), [fa * (1.0 + y), fb * (1.0 + y) + c]);
}

/// v = x·(1 - number) + e0/10 + e1·2/10 + e2·3/10 is the next value of all three
/// entry φs.
const COPIES: &str = "\
graph active 1 inactive 0
v1 = const 0.0
v2 = const 1.0
v3 = const 0.1
v4 = const 0.2
v5 = const 0.3
v9 = iteration r0
b0:
  v16 v17 v18 = region r0 b1 bound 2 entries v6=v1 v7=v1 v8=v1
  v19 = mul_add v16 v3 v1
  v20 = mul_add v17 v4 v19
  v21 = mul_add v18 v5 v20
  return v21
b1:
  v10 = sub v2 v9
  v11 = mul v10 v0
  v12 = mul_add v6 v3 v11
  v13 = mul_add v7 v4 v12
  v14 = mul_add v8 v5 v13
  v15 = lt v9 v2
  return v15 v14 v14 v14 v14 v14 v14
";

#[test]
fn adjoints_of_one_node_are_added_from_the_last_copy_on() {
    let backwards = |s: f64| (0.3 * s + 0.2 * s) + 0.1 * s;
    for other in [(0.1 + 0.2) + 0.3, (0.1 + 0.3) + 0.2] {
        assert_ne!(backwards(1.0), other);
    }
    let three = parse(COPIES).unwrap();
    let sum = backwards(1.0);
    assert_eq!(gradient(&three, &[1.0]), [backwards(sum)]);
    // With a single φ, which cannot share the adjoint of an entry φ.
    let start = COPIES.find("  v19").unwrap();
    let end = COPIES.find("b1:").unwrap();
    let text = format!("{}  return v16\n{}", &COPIES[..start], &COPIES[end..]);
    let text = text
        .replace("v16 v17 v18 =", "v16 =")
        .replace("v14 v14 v14 v14 v14 v14", "v14 v14 v14 v14");
    assert_eq!(gradient(&parse(&text).unwrap(), &[1.0]), [backwards(1.0)]);
}

#[test]
fn nodes_without_an_adjoint_have_no_accumulator() {
    // Σ of x_i·c_i, where the second array has a constant in the middle
    let graph = graph(3, |b| {
        let (zero, seven) = (b.constant(0.0), b.constant(7.0));
        let x_array = inputs(b, 0..3);
        let nodes = [b.input(0), seven, b.input(2)].to_vec();
        let holed = b.array(ArrayData::Nodes(nodes));
        let (_, sum) = times(b, 3, &[zero], |b, region, e| {
            let x = b.element(at(x_array, 0, &[(region, 1)]));
            let y = b.element(at(holed, 0, &[(region, 1)]));
            vec![b.apply(Op::MulAdd, &[x, y, e[0]])]
        });
        sum[0]
    });
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!(outputs(&gradient, &[2.0, 3.0, 5.0]), Some(vec![4.0, 7.0, 10.0]), "{gradient}");
}

#[test]
fn adjoints_of_many_outer_nodes_are_in_sums() {
    // Five times the sum of i·x_i, i < 40.
    let graph = graph(40, |b| {
        let zero = b.constant(0.0);
        let (_, last) = times(b, 5, &[zero], |b, _, e| {
            let terms = (0..40).fold(e[0], |sum, i| {
                let (x, factor) = (b.input(i), b.constant(i as f64));
                b.apply(Op::MulAdd, &[x, factor, sum])
            });
            vec![terms]
        });
        last[0]
    });
    let point: Vec<f64> = (0..40).map(f64::from).collect();
    let expected: Vec<f64> = (0..40).map(|i| f64::from(5 * i)).collect();
    assert_eq!(gradient(&graph, &point), expected);
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!((entries(&gradient), sums(&gradient)), (vec![1], 1));
}

#[test]
fn a_loop_above_a_branch_is_swept_for_each_leaf() {
    let text = "graph active 2 inactive 0\nv2 = const 0.0\nv3 = const 2.0\nv5 = iteration r0\n\
                b0:\n  v8 = region r0 b1 bound 3 entries v4=v0\n  v9 = gt v1 v2\n  branch v9 b2 b3\n\
                b1:\n  v6 = mul v4 v4\n  v7 = lt v5 v3\n  return v7 v6 v6\n\
                b2:\n  v10 = mul v8 v1\n  return v10\n\
                b3:\n  return v1\n";
    let graph = parse(text).unwrap();
    assert_eq!(gradient(&graph, &[2.0, 1.0]), [1024.0, 256.0]);
    assert_eq!(gradient(&graph, &[2.0, -1.0]), [0.0, 1.0]);
    // The arm without an active value does not replay it.
    assert_eq!(entries(&reverse(&graph, Wanted::Gradient, Folding::Exact)), [1]);
}

#[test]
fn the_size_of_a_gradient_does_not_depend_on_the_bound() {
    let graph = |bound: u32| {
        graph(1, |b| {
            let x = b.input(0);
            let (_, last) = times(b, bound, &[x], |b, _, e| vec![b.apply(Op::Sin, &[e[0]])]);
            last[0]
        })
    };
    let size = |bound| {
        let gradient = reverse(&graph(bound), Wanted::Gradient, Folding::Exact);
        gradient.nodes.len() + gradient.blocks.len()
    };
    assert_eq!(size(10), size(100_000));
    assert!(check(&graph(10_000), &[1.0], true));
}

#[test]
fn graphs_that_replay_or_accumulate_have_gradients_that_stop() {
    let replays = reverse(&parse(BREAK).unwrap(), Wanted::Gradient, Folding::Exact);
    let adds = parse(
        "graph active 1 inactive 0\na0 = sums v0\ni0 = a0 base 0\nb0:\n  fill a0\n  \
         accumulate i0 v0\n  v1 = element i0\n  return v1\n",
    );
    for (graph, point) in [(replays, &[2.0, 3.0][..]), (adds.unwrap(), &[2.0])] {
        let second = reverse(&graph, Wanted::GradientAndValue, Folding::Exact);
        assert_eq!(verify(&second), Ok(()));
        assert!(matches!(interpret(&second, point), Outcome::Unseen(_)));
    }
}

#[test]
fn steps_of_a_sweep_keep_the_place_of_their_loop() {
    let text = "graph active 1 inactive 0\nv1 = const 0.0\nb0:\n  \
                v4 = region r0 b1 bound 2 entries v2=v0 @ a.rs:1:2\n  return v4\n\
                b1:\n  v3 = sin v2 @ a.rs:3:4\n  return v1 v3 v3\n";
    let gradient = reverse(&parse(text).unwrap(), Wanted::Gradient, Folding::Exact);
    let text = gradient.to_string();
    assert!(text.contains(" replays r0 @ a.rs:1:2"), "{text}");
    assert!(text.contains("= cos v") && text.matches("@ a.rs:3:4").count() > 1, "{text}");
    let fills = |item: &&Item| matches!(item, Item::Fill(_));
    assert_eq!(gradient.blocks.values().flat_map(|data| &data.items).filter(fills).count(), 0);
}
