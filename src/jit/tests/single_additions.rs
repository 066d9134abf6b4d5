//! Sums whose elements get one addition each, in memory that had other numbers before.

use super::{LIMITS, assert_native};
use crate::jit::plan::{REGISTERS, Step, plan};
use crate::jit::schedule;
use crate::op::Op;
use crate::ssa::{AccessData, ArrayData, End, Graph, Item, Node, verify};

const LEN: u32 = 20;

/// A loop that adds `times` inputs to sums, in order or in reverse order, and an output for each
/// sum.
fn sums(trips: u32, stride: i32, times: usize) -> Graph {
    let mut graph = Graph::new(LEN as usize, 0);
    let root = graph.root();
    let inputs = graph.arrays.push(ArrayData::Inputs { first: 0, count: LEN });
    let sums = graph.arrays.push(ArrayData::Sums(vec![None; LEN as usize]));
    graph.blocks[root].items.push(Item::Fill(sums));
    let region = graph.push_region(root, None, None);
    graph.make_loop(region, LEN, &[]);
    let body = graph.regions[region].root;
    let number = graph.push_iteration(region);
    let last = graph.push_const(f64::from(trips - 1).to_bits());
    let base = if stride < 0 { trips - 1 } else { 0 };
    let mut access = |array, base, stride| {
        let strides = (stride != 0).then_some((region, stride)).into_iter().collect();
        graph.accesses.push(AccessData { array, base, strides, changes: Default::default() })
    };
    let (read, added) = (access(inputs, 0, 1), access(sums, base, stride));
    let elements: Vec<_> = (0..LEN).map(|base| access(sums, base, 0)).collect();
    for _ in 0..times {
        let node = graph.push_element(body, read, None);
        graph.blocks[body].items.push(Item::Accumulate(added, node));
    }
    let again = graph.push_apply(body, Op::Lt, &[number, last], None);
    graph.blocks[body].end = End::Return([again].into_iter().collect());
    let outputs: Vec<Node> =
        elements.into_iter().map(|access| graph.push_element(root, access, None)).collect();
    graph.blocks[root].end = End::Return(outputs.into_iter().collect());
    verify(&graph).unwrap();
    graph
}

#[test]
fn only_sums_with_several_additions_or_none_need_zeros() {
    // A sum of zero and -0 is zero.
    let point: Vec<f64> =
        (0..LEN).map(|i| if i == 3 { -0.0 } else { f64::from(i) - 5.5 }).collect();
    let cases = [
        (LEN, 1, 1, false),
        (LEN, -1, 1, false),
        (LEN - 1, 1, 1, true),
        (LEN - 1, -1, 1, true),
        (LEN, 1, 2, true),
        (LEN, 0, 1, true),
    ];
    for (trips, stride, times, has_zeros) in cases {
        let graph = sums(trips, stride, times);
        let plan = plan(&schedule(&graph).unwrap(), &[], REGISTERS);
        let mut steps = plan.blocks.iter().flat_map(|block| &block.steps);
        let found = steps.any(|step| matches!(step, Step::Zero(..)));
        assert_eq!(found, has_zeros, "{graph}");
        for limits in LIMITS {
            assert_eq!(assert_native(&graph, limits, &[point.clone(), point.clone()]), 2);
        }
    }
}
