//! Ranges of inputs without nodes, whose derivatives are arrays of outputs: the size of kernels
//! does not depend on the number of inputs.

use crate::common::outcomes::{assert_as_interpreted, values};
use phigrad::internals::diff::{Wanted, reverse};
use phigrad::internals::entity::Entity;
use phigrad::internals::explain::dot;
use phigrad::internals::jit::compile;
use phigrad::internals::ssa::{
    Array, ArrayData, Block, End, Folding, Graph, Item, eliminate_dead_code, parse, simplify,
    verify,
};
use phigrad::report::KernelReport;
use phigrad::{Numerics, Tape, Var};

/// x₀ · (x₁ + Σ of the active inputs from x₃ on, each times the inactive input of its index).
const SUM: &str = "graph active 7 inactive 5 sparse
v0 = input 0
v1 = input 1
v2 = const 3.0
v4 = iteration r0
a0 = inputs 3 count 4
a1 = inputs 8 count 4
i0 = a0 base 0 r0*1
i1 = a1 base 3 r0*-1
b0:
  v10 = region r0 b1 bound 4 entries v3=v1
  v11 = mul v0 v10
  return v11
b1:
  v5 = element i0
  v6 = element i1
  v7 = mul v5 v6
  v8 = add v3 v7
  v9 = lt v4 v2
  return v9 v8 v8
";

/// The inputs of [`SUM`], active before inactive.
const POINT: [f64; 12] = [2.0, 1.0, 9.0, 3.0, 4.0, 5.0, 6.0, 9.0, 10.0, 11.0, 12.0, 13.0];

fn run(graph: &Graph, inputs: &[f64]) -> Vec<f64> {
    assert_eq!(verify(graph), Ok(()), "{graph}");
    assert!(assert_as_interpreted(graph, &compile(graph).unwrap(), inputs), "{graph} stops");
    values(graph, inputs)
}

#[test]
fn inputs_without_uses_are_no_nodes() {
    let graph = parse(SUM).unwrap();
    assert_eq!(graph.to_string(), SUM);
    // 3·13 + 4·12 + 5·11 + 6·10 + 1
    assert_eq!(run(&graph, &POINT), [2.0 * 203.0]);
    let picture = dot(&graph);
    assert!(picture.contains("inputs 3 count 4") && !picture.contains("input 4"), "{picture}");
}

#[test]
fn derivatives_of_a_range_of_inputs_are_an_array_of_outputs() {
    let graph = parse(SUM).unwrap();
    for folding in [Folding::Exact, Folding::Real] {
        let gradient = reverse(&graph, Wanted::GradientAndValue, folding);
        let expected = [203.0, 2.0, 0.0, 26.0, 24.0, 22.0, 20.0, 406.0];
        for gradient in [
            simplify(&gradient, folding),
            eliminate_dead_code(&gradient),
            parse(&gradient.to_string()).unwrap(),
            gradient,
        ] {
            assert_eq!(run(&gradient, &POINT), expected, "{gradient}");
            let arrays = gradient.arrays.values();
            let arrays =
                arrays.filter(|array| matches!(array, ArrayData::Outputs { first: 3, count: 4 }));
            assert_eq!(arrays.count(), 1, "{gradient}");
        }
    }
}

#[test]
fn an_input_of_a_range_that_is_also_a_node_has_one_derivative() {
    // x₄ · the sum, + x₄
    let text = SUM.replace("v0 = input 0", "v0 = input 4").replace(
        "  v11 = mul v0 v10\n  return v11\n",
        "  v11 = mul v0 v10\n  v12 = add v11 v0\n  return v12\n",
    );
    let graph = parse(&text).unwrap();
    for folding in [Folding::Exact, Folding::Real] {
        let gradient = reverse(&graph, Wanted::Gradient, folding);
        assert_eq!(run(&gradient, &POINT), [0.0, 4.0, 0.0, 52.0, 204.0 + 48.0, 44.0, 40.0]);
    }
}

#[test]
fn a_result_that_is_an_input_of_a_range_has_its_derivative_in_the_array() {
    let text = SUM.replace("v1 = input 1", "v1 = input 5").replace("return v11", "return v1");
    let graph = parse(&text).unwrap();
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Exact);
    assert_eq!(run(&gradient, &POINT), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn each_path_has_all_output_arrays() {
    // The sum where x₀ is positive, or else x₅ · x₀.
    let text = "graph active 7 inactive 5 sparse\nv0 = input 0\nv1 = input 5\nv2 = const 3.0\n\
                v3 = const 0.0\nv6 = iteration r0\na0 = inputs 3 count 4\ni0 = a0 base 0 r0*1\nb0:\n  \
                v4 = gt v0 v3\n  branch v4 b1 b2\nb1:\n  v10 = region r0 b3 bound 4 entries v5=v3\n  \
                return v10\nb2:\n  v11 = mul v0 v1\n  return v11\nb3:\n  v7 = element i0\n  \
                v8 = add v5 v7\n  v9 = lt v6 v2\n  return v9 v8 v8\n";
    let graph = parse(text).unwrap();
    let gradient = reverse(&graph, Wanted::Gradient, Folding::Real);
    let simple = simplify(&gradient, Folding::Real);
    for gradient in [gradient, simple] {
        assert_eq!(run(&gradient, &POINT), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let mut point = POINT;
        point[0] = -2.0;
        assert_eq!(run(&gradient, &point), [5.0, 0.0, 0.0, 0.0, 0.0, -2.0, 0.0]);
    }
}

/// The verifier's error for the gradient of [`SUM`] after `broken`.
fn refused(text: &str, broken: impl FnOnce(&mut Graph)) -> String {
    let mut graph = parse(text).unwrap();
    broken(&mut graph);
    verify(&graph).unwrap_err().what
}

#[test]
fn planted_errors_in_output_arrays_are_found() {
    let text = reverse(&parse(SUM).unwrap(), Wanted::Gradient, Folding::Exact).to_string();
    let array = |index| Array::from_index(index);
    let root = |graph: &mut Graph| core::mem::take(&mut graph.blocks[Block::from_index(0)].items);
    let no_inputs = "array a0 has inputs out of range, or both active and inactive ones";
    for (first, count) in [(3, 5), (8, 5), (13, 1), (u32::MAX, u32::MAX)] {
        let what = refused(SUM, |g| g.arrays[array(0)] = ArrayData::Inputs { first, count });
        assert_eq!(what, no_inputs);
    }
    let what = refused(SUM, |g| g.arrays[array(0)] = ArrayData::Inputs { first: 3, count: 3 });
    assert_eq!(what, "access i0 may be outside of its array");

    let gradient = parse(&text).unwrap();
    let mut arrays = gradient.arrays.iter();
    let is_output = |array: &(Array, &ArrayData)| matches!(array.1, ArrayData::Outputs { .. });
    let array = arrays.find(is_output).unwrap().0;
    let what = refused(&text, |g| _ = g.arrays.push(ArrayData::Outputs { first: 6, count: 2 }));
    assert!(what.ends_with("has outputs of another array"), "{what}");
    let what = refused(&text, |g| g.arrays[array] = ArrayData::Outputs { first: 4, count: 4 });
    assert_eq!(what, format!("array {array} begins after outputs that no path returns"));
    let what = refused(&text, |g| {
        let mut items = root(g);
        items.retain(|item| *item != Item::Fill(array));
        g.blocks[Block::from_index(0)].items = items;
    });
    assert!(what.ends_with(&format!("writes {array}, not filled here")), "{what}");
    let what = refused(&text, |g| {
        let mut items = root(g);
        items.push(Item::Fill(array));
        g.blocks[Block::from_index(0)].items = items;
    });
    assert_eq!(what, format!("block b0 fills {array}, as another step does"));
    let what = refused(&text, |g| g.blocks[Block::from_index(1)].items.push(Item::Fill(array)));
    assert_eq!(what, format!("block b1 fills {array}, an array of outputs, in a region"));
    let what = refused("graph active 1 inactive 0\nb0:\n  return v0\n", |g| {
        g.arrays.push(ArrayData::Outputs { first: 0, count: 2 });
    });
    assert_eq!(what, "block b0 returns without filling a0, an array of outputs");
    let what = refused("graph active 1 inactive 0\nb0:\n  return v0\n", |g| {
        g.blocks[Block::from_index(0)].end = End::Open;
    });
    assert_eq!(what, "block b0 is open");
}

/// The kernel for gradients of `f` at `x` and `data`, after a comparison with the tape.
fn kernel(
    numerics: Numerics,
    x: &[f64],
    data: &[f64],
    f: impl Fn(&[Var], &[Var]) -> Var,
) -> KernelReport {
    let builder = Tape::builder().hot_threshold(u32::MAX).background(false).numerics(numerics);
    let recorded = builder.record_with(&f);
    let on_tape = recorded.grad(x, data).unwrap();
    recorded.compile().unwrap();
    let in_kernel = recorded.grad(x, data).unwrap();
    let report = recorded.report();
    assert_eq!((report.kernel_calls, report.fallbacks), (1, 0));
    for (a, b) in on_tape.iter().zip(&in_kernel) {
        match numerics {
            Numerics::Exact => assert_eq!(a.to_bits(), b.to_bits()),
            _ => assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a} {b}"),
        }
    }
    report.kernels[report.kernels.len() - 1].clone()
}

fn numbers(count: usize) -> Vec<f64> {
    (0..count).map(|index| (index as f64 * 0.61).sin()).collect()
}

/// Asserts that 1,000 and 100,000 elements give the same number of nodes and bytes of code.
fn same_size(size: impl Fn(usize) -> KernelReport) {
    let [few, many] = [1_000, 100_000].map(size);
    assert_eq!((few.nodes, few.code_bytes), (many.nodes, many.code_bytes));
    assert!(many.nodes < 60, "{many:?}");
}

#[test]
fn a_kernel_does_not_grow_with_active_inputs() {
    same_size(|count| {
        kernel(Numerics::Real, &numbers(count), &[], |x, _| {
            x.iter().fold(Var::from(0.3), |state, &term| (state * 0.7 + term).cos())
        })
    });
    // With stride two, and with other parameters.
    same_size(|count| {
        kernel(Numerics::Real, &numbers(2 * count + 2), &[], |x, _| {
            let pairs = x[2..].chunks(2);
            pairs.fold(x[0], |state, pair| (state * x[1] + pair[0] * pair[1].sin()).cos())
        })
    });
}

#[test]
fn a_kernel_does_not_grow_with_unused_inputs() {
    same_size(|count| kernel(Numerics::Real, &numbers(count), &numbers(count), |x, d| x[7] * d[9]));
}

#[test]
fn a_kernel_does_not_grow_with_data_beside_active_inputs() {
    same_size(|count| {
        kernel(Numerics::Real, &numbers(count), &numbers(count), |x, data| {
            let pairs = x.iter().zip(data);
            pairs.fold(Var::from(0.0), |sum, (&x, &y)| sum + ((x - y) * 0.5).sin())
        })
    });
}
