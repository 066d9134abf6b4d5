//! Strip mining: a loop becomes a nest of two.
//!
//! A loop of at most n iterations is cut into ⌊√n⌋ strips. The outer loop has one iteration
//! for each strip. The inner loop is the original one; its first values are the entry φs of
//! the outer loop, and it ends with its strip. The last strip also takes the remainder of the
//! division, so no index exceeds its range, and a loop that would run more than n iterations
//! stops as before.

use smallvec::SmallVec;

use crate::op::Op;
use crate::ssa::{
    ArrayData, Block, Def, Editor, End, Graph, Item, Loop, Nest, Node, NodeData, Passed, Region,
    RegionData,
};

/// The strips of a loop of at most `bound` iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strips {
    pub(super) count: u32,
    /// The number of iterations of each strip but the last.
    pub(super) length: u32,
    /// The largest number of iterations of the last strip.
    pub(super) longest: u32,
}

impl Strips {
    /// `None` if the loop is too short to be cut.
    pub(super) fn of(bound: u32) -> Option<Strips> {
        let count = bound.isqrt();
        let length = bound.checked_div(count)?;
        (count > 1).then(|| Strips { count, length, longest: bound - length * (count - 1) })
    }
}

/// The strips of `region` for [`split`], if it is long enough, replays no other loop and uses no
/// cells, no access reads a trajectory of it, which has a single stride, and none has a
/// stride that it changes.
pub(super) fn strips(graph: &Graph, nest: &Nest, region: Region) -> Option<Strips> {
    let data = &graph.regions[region];
    let strips = Strips::of(data.cycle.as_ref()?.bound).filter(|_| data.replays.is_none())?;
    let is_read = graph.arrays.values().any(|array| match array {
        ArrayData::Saved(node) => nest.node_loop(*node) == Some(region),
        _ => false,
    });
    let changes = graph.accesses.values().flat_map(|access| &access.changes);
    let is_even = changes.into_iter().all(|change| change.0 != region);
    let mut strides = graph.accesses.values().flat_map(|access| &access.strides);
    let fits = |&(other, stride): &(Region, i32)| {
        other != region || i64::from(stride).abs() * i64::from(strips.length) <= i32::MAX.into()
    };
    (!is_read && is_even && !graph.uses_cells(region) && strides.all(fits)).then_some(strips)
}

/// `graph` with `region`, a loop that has [`strips`], as a nest of two; returns it with the
/// outer loop. The inner loop keeps the id.
pub(super) fn split(graph: &Graph, nest: &Nest, region: Region) -> Option<(Graph, Region)> {
    let Loop { bound, entries } = graph.regions[region].cycle.clone()?;
    let strips = Strips::of(bound)?;
    let mut new = Editor::of(graph);
    let RegionData { root: body, phis, place, .. } = graph.regions[region].clone();

    let root = new.new_block();
    let outer = new.regions.push(RegionData { root, phis, replays: None, cycle: None, place });
    if let Some(around) = nest.region_block(region) {
        new.replace_region(around, region, outer);
    }
    for (&phi, number) in graph.regions[region].phis.iter().zip(0..) {
        new.nodes[phi].def = Def::Phi(outer, number);
    }
    let firsts: Vec<Node> = entries.iter().map(|entry| entry.first).collect();
    let firsts = new.make_loop(outer, strips.count, &firsts);
    if let Some(cycle) = &mut new.regions[region].cycle {
        cycle.bound = strips.longest;
        cycle.entries.iter_mut().zip(firsts).for_each(|(entry, first)| entry.first = first);
    }

    // Before a strip: its first iteration and the number of its last one.
    let strip = new.push_iteration(outer);
    let number = |number: u32| f64::from(number).to_bits();
    let [last, length] = [strips.count - 1, strips.length].map(|n| new.push_const(number(n)));
    let [short, long] = [strips.length, strips.longest].map(|n| new.push_const(number(n - 1)));
    let more = new.push_apply(root, Op::Lt, &[strip, last], None);
    let end = new.push_apply(root, Op::Select, &[more, short, long], None);
    let begin = new.push_apply(root, Op::Mul, &[strip, length], None);
    new.blocks[root].items.push(Item::Region(region));

    // At the head of the body: the original iteration number, and the condition for another
    // iteration of the strip.
    let old_number = graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
    let within = new.push_iteration(region);
    let mut begins: Vec<Item> = Vec::new();
    if let Some((old, _)) = old_number {
        new.nodes[old].def = Def::Apply(Op::Add, [begin, within, begin]);
        begins.push(Item::Node(old));
    }
    let goes_on = Def::Apply(Op::Lt, [within, end, within]);
    let goes_on = new.nodes.push(NodeData { def: goes_on, place: None });
    begins.push(Item::Node(goes_on));
    new.blocks[body].items.splice(0..0, begins);

    // True for `i < bound - 1`, the condition of a loop that only counts.
    let counts = |again: Node| match graph.nodes[again].def {
        Def::Apply(Op::Lt, [number, most, _]) => {
            graph.nodes[number].def == Def::Iteration(region)
                && graph.constant(most) == Some(f64::from(bound - 1))
        }
        _ => false,
    };
    let ends = Ends { goes_on, more, zero: new.push_const(0) };
    for leaf in graph.leaves(body) {
        end_strip(&mut new, region, leaf, &ends, counts);
    }
    new.regions[region].phis.clear();
    let count = 1 + entries.len() + new.regions[outer].phis.len();
    let passed = (0..count).map(|_| new.push_phi(region)).collect();
    new.blocks[root].end = End::Return(passed);

    for access in graph.accesses.keys() {
        let access = &mut new.accesses[access];
        let stride = access.strides.iter().find(|&&(other, _)| other == region);
        if let Some(&(_, stride)) = stride {
            let length = i32::try_from(strips.length).ok()?;
            access.strides.push((outer, stride.checked_mul(length)?));
        }
    }
    Some((new.finish()?, outer))
}

/// The conditions for another iteration.
struct Ends {
    /// True unless this is the last iteration of the strip.
    goes_on: Node,
    /// True unless this is the last strip.
    more: Node,
    zero: Node,
}

/// Rewrites `leaf`, an end of the loop `region`: the operands of its φs become all operands of
/// the outer loop, and another iteration follows only within the strip. `counts` tests whether
/// a condition only counts up to the bound.
fn end_strip(
    graph: &mut Graph,
    region: Region,
    leaf: Block,
    ends: &Ends,
    counts: impl Fn(Node) -> bool,
) {
    let Some(Passed { again: Some(again), nexts, values }) = graph.passed(region, leaf) else {
        return;
    };
    let (nexts, values) = (nexts.to_vec(), values.to_vec());
    let entries: Vec<Node> = graph.entries(region).iter().map(|entry| entry.phi).collect();
    // The operands for the inner loop, then for the outer one. Operands that are never used
    // are nodes without an adjoint, or with one in any case.
    let (inner_again, outer_again, outer_nexts, outer_values) = match graph.constant(again) {
        Some(0.0) => (again, again, entries, values),
        Some(_) => (ends.goes_on, again, nexts.clone(), vec![again; values.len()]),
        None if counts(again) => (ends.goes_on, ends.more, nexts.clone(), values),
        None => {
            let operands = [ends.goes_on, again, ends.zero];
            let both = graph.push_apply(leaf, Op::Select, &operands, None);
            (both, again, nexts.clone(), values)
        }
    };
    let mut all: SmallVec<[Node; 2]> = SmallVec::new();
    all.push(inner_again);
    all.extend(nexts);
    all.push(outer_again);
    all.extend(outer_nexts);
    all.extend(outer_values);
    graph.blocks[leaf].end = End::Return(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_each_iteration_once() {
        for bound in (0..3000).chain([1 << 20, u32::MAX - 1, u32::MAX]) {
            let Some(Strips { count, length, longest }) = Strips::of(bound) else {
                assert!(bound < 4, "{bound}");
                continue;
            };
            assert_eq!((count - 1) * length + longest, bound);
            assert!(longest >= length && longest < length + count, "{bound}");
            assert!(u64::from(count + longest) <= 3 * u64::from(bound.isqrt()) + 2, "{bound}");
        }
    }
}
