//! Numbers that a loop does nothing with but give them to a loop in it, and take what that
//! makes of them into its next iteration.
//!
//! The closed form of the inner loop knows its end with twice the digits. Near a fixed
//! point the digits that rounding would take are all that is left of the way to it, and
//! derivatives by coefficients are made of that. So the outer loop carries them, too: as a
//! second part of the number, from zero on. It has no derivative.

use super::body::Body;
use super::edit::Edit;
use super::emit::Emitter;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Block, Def, End, Entry, Graph, Node, NodeData, Region};

/// The number of an entry φ that no loop has yet.
const NONE: u32 = u32::MAX;
const NOTHING: Def = Def::Const(0.0f64.to_bits());

/// A number that is given on.
#[derive(Clone, Copy)]
pub(super) struct Given {
    outer: Region,
    /// The entry φ of the outer loop, and what comes out of the inner one.
    first: Node,
    phi: Node,
    /// The entry φ of the second part, and what that is in the next iteration.
    rest: Node,
    next: Node,
}

/// Whether `node` is an entry φ of a second part that its loop does not have yet.
pub(super) fn is_rest(graph: &Graph, node: Node) -> bool {
    matches!(graph.nodes[node].def, Def::Entry(_, NONE))
}

/// What the loop around `body` gives on in `graph`, the one of `edit`.
pub(super) fn given(edit: &Edit, graph: &mut Graph, body: &Body) -> Vec<Given> {
    let Some(outer) = edit.around(body.region) else { return Vec::new() };
    if graph.regions[outer].cycle.is_none() || graph.regions[outer].replays.is_some() {
        return Vec::new();
    }
    let mut all = Vec::new();
    let phis = graph.regions[body.region].phis.clone();
    for (&(_, first), &next) in body.entries.iter().zip(&body.nexts) {
        let Def::Entry(region, number) = graph.nodes[first].def else { continue };
        let value = body.values.iter().position(|&value| value == next);
        let Some(&phi) = value.and_then(|value| phis.get(value)) else { continue };
        let mut nexts = leaves(graph, outer).into_iter().filter_map(|leaf| {
            let End::Return(passed) = &graph.blocks[leaf].end else { return None };
            passed.get(1 + number as usize).copied()
        });
        if region == outer && nexts.any(|next| edit.resolved(next) == phi) {
            let place = graph.nodes[first].place;
            let rest = graph.nodes.push(NodeData { def: Def::Entry(outer, NONE), place });
            all.push(Given { outer, first, phi, rest, next: rest });
        }
    }
    all
}

/// Lets `emitter` compute with the second parts of `all`.
pub(super) fn known(emitter: &mut Emitter<'_>, all: &[Given]) {
    let pair = |this: &Given| (this.first, Pair { high: this.first, low: Some(this.rest) });
    emitter.numbers.extend(all.iter().map(pair));
}

/// Makes the next second parts of `all`, where `nodes` have taken the place of others. What
/// has none stays zero, and is left out.
pub(super) fn continued(
    emitter: &mut Emitter<'_>,
    all: &[Given],
    nodes: &[(Node, Node)],
) -> Vec<Given> {
    let next = |given: &Given| {
        let &(_, node) = nodes.iter().find(|&&(phi, _)| phi == given.phi)?;
        let whole: Pair = *emitter.numbers.get(&node)?;
        let low = emitter.normal(whole).low?;
        Some(Given { next: emitter.held(low), ..*given })
    };
    let nexts: Vec<Option<Given>> = all.iter().map(next).collect();
    for (given, next) in all.iter().zip(&nexts) {
        if next.is_none() {
            emitter.graph.nodes[given.rest].def = NOTHING;
        }
    }
    nexts.into_iter().flatten().collect()
}

/// Lets the loops of `all` carry the second parts, but those that are gone.
pub(super) fn carry(edit: &mut Edit, all: &[Given]) {
    let zero = edit.graph.push_const(0.0f64.to_bits());
    for given in all {
        let resolves = |next: Node| edit.resolved(next) == edit.resolved(given.phi);
        let entries = edit.graph.entries(given.outer);
        let number = entries.len();
        let first = entries.iter().position(|entry| entry.phi == given.first);
        let (Some(first), false) = (first, edit.is_gone(given.outer)) else {
            edit.graph.nodes[given.rest].def = NOTHING;
            continue;
        };
        let mut ends = Vec::new();
        for leaf in leaves(&edit.graph, given.outer) {
            let End::Return(passed) = &edit.graph.blocks[leaf].end else { continue };
            let mut passed = passed.clone();
            let is_end = passed.get(1 + first).is_some_and(|&next| resolves(next));
            passed.insert(1 + number, if is_end { given.next } else { zero });
            ends.push((leaf, passed));
        }
        for (leaf, passed) in ends {
            edit.graph.blocks[leaf].end = End::Return(passed);
        }
        edit.graph.nodes[given.rest].def = Def::Entry(given.outer, number as u32);
        if let Some(cycle) = &mut edit.graph.regions[given.outer].cycle {
            cycle.entries.push(Entry { phi: given.rest, first: zero });
        }
    }
}

/// The blocks in which an iteration of `region` ends.
fn leaves(graph: &Graph, region: Region) -> Vec<Block> {
    let (mut leaves, mut pending) = (Vec::new(), vec![graph.regions[region].root]);
    while let Some(block) = pending.pop() {
        match graph.blocks[block].end {
            End::Branch { then, otherwise, .. } => pending.extend([otherwise, then]),
            End::Return(_) => leaves.push(block),
            End::Open => {}
        }
    }
    leaves
}
