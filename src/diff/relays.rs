//! Relays: nodes whose adjoint is not collected but passed on at once.
//!
//! Where the program computes 2·x or 1 - x in each of its steps, it is computed once in the
//! graph. If the steps use x as well, what they pass on to both may cancel: on the tape in
//! each step, and all digits are kept; but not in the two sums over all steps. So what is
//! added to 2·x is doubled and added to x at once.

use hashbrown::{HashMap, HashSet};

use super::activity::Activity;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{Def, Folding, Node, Region};

/// Relays of relays: what goes through a chain is multiplied again for each of them.
const LONGEST_CHAIN: u8 = 4;

/// For each node that is a relay the node that it passes on to. Only for
/// [`Folding::Real`]: otherwise the order of additions is that of the tape anyway.
pub(super) fn relays(activity: &Activity<'_>, folding: Folding) -> Array<Node, Option<Node>> {
    let mut relays = Array::filled(None, activity.graph.nodes.len());
    if folding == Folding::Exact {
        return relays;
    }
    let candidates: Vec<(Node, Node)> = activity
        .graph
        .nodes
        .keys()
        .filter_map(|node| Some((node, of_one_number(activity, node)?)))
        .collect();
    if candidates.is_empty() {
        return relays;
    }
    let mut uses: HashMap<Node, Uses> = HashMap::new();
    for &(node, of) in &candidates {
        uses.insert(node, Uses::default());
        uses.insert(of, Uses::default());
    }
    // Elements of series have sums of their own.
    let is_element = |node: Node| matches!(activity.graph.nodes[node].def, Def::Element(_));
    let users = activity.graph.nodes.keys().filter(|&node| activity.active[node]);
    for user in users.filter(|&node| !is_element(node)) {
        let innermost = activity.nest.node_loop(user);
        for target in activity.targets(user) {
            let Some(found) = uses.get_mut(&target) else { continue };
            let around =
                core::iter::successors(innermost, |&loop_| activity.nest.loop_around(loop_));
            found.count += 1;
            found.loops.extend(around.take_while(|&loop_| !activity.is_inside(target, loop_)));
        }
    }
    let mut lengths: HashMap<Node, u8> = HashMap::new();
    // Operands come first.
    for (node, of) in candidates {
        let length = lengths.get(&of).map_or(1, |length| length + 1);
        let [own, others] = [&uses[&node], &uses[&of]];
        let is_relay = match own.loops.is_empty() {
            true => own.count > 1 && others.count > 1,
            false => !own.loops.is_disjoint(&others.loops),
        };
        if is_relay && length <= LONGEST_CHAIN {
            relays[node] = Some(of);
            lengths.insert(node, length);
        }
    }
    relays
}

/// What uses a node.
#[derive(Default)]
struct Uses {
    count: u32,
    /// The loops in which it is used again and again.
    loops: HashSet<Region>,
}

/// The one active number that `node` is computed from, if it is its multiple, or differs
/// from that by what has no derivative.
fn of_one_number(activity: &Activity<'_>, node: Node) -> Option<Node> {
    if !activity.active[node] {
        return None;
    }
    let Def::Apply(op, [a, b, _]) = activity.graph.nodes[node].def else { return None };
    let is_constant = |node: Node| activity.graph.constant(node).is_some();
    let of = match op {
        Op::Neg => a,
        Op::Add if a == b => return None,
        Op::Add | Op::Sub if activity.active[a] && !activity.active[b] => a,
        Op::Add | Op::Sub if activity.active[b] && !activity.active[a] => b,
        Op::Mul if is_constant(b) => a,
        Op::Mul if is_constant(a) => b,
        _ => return None,
    };
    activity.targets(node).contains(&of).then_some(of)
}
