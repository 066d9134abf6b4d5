//! Relays: nodes whose adjoint is not collected but passed on at once.
//!
//! Where the program computes 2·x or 1 - x in each of its steps, it is computed once in the
//! graph. If the steps use x as well, what they pass on to both may cancel: on the tape in
//! each step, and all digits are kept; but not in the two sums over all steps. So what is
//! added to 2·x is doubled and added to x at once.

use hashbrown::{HashMap, HashSet};
use smallvec::{SmallVec, smallvec};

use super::activity::Activity;
use super::underflow::LEAST_TOLD;
use crate::entity::Array;
use crate::op::{Op, contribution};
use crate::ssa::{Builder, Def, Folding, Graph, Node, Region, tangent_of, tangent_sum};

/// What a relay passes on to, the first if it is one; of what is no relay nothing.
pub(super) type Passed = [Option<Node>; 2];

/// A number that comes from more is no relay.
const MOST_ROOTS: usize = 2;

/// Relays of relays: what goes through a chain is multiplied again for each of them.
const LONGEST_CHAIN: u8 = 4;

/// A node that may be a relay.
struct Member {
    node: Node,
    /// What it is computed from, both if it is a sum of two.
    of: SmallVec<[Node; 2]>,
    /// What that is computed from in the end.
    roots: SmallVec<[Node; 2]>,
    /// Whether each step of a program may have computed it again: the other operand, if there is
    /// one, is given, or computed from what is.
    may_be_shared: bool,
}

/// What uses a node.
#[derive(Default)]
struct Uses {
    all: SmallVec<[Node; 4]>,
    /// Those that are not in a loop that the node is not in.
    straight: SmallVec<[Node; 4]>,
    /// The loops in which it is used again and again.
    loops: HashSet<Region>,
}

/// For each node that is a relay the nodes that it passes on to. Only for
/// [`Folding::Real`]: otherwise the order of additions is that of the tape anyway.
///
/// A relay is what is used again and again in a loop where a number that comes from the same one
/// is used, too, or that one itself. In code that is no more often gone through than it is
/// computed it is what is used before and after such a use, if the program may have computed it in
/// both places; then a sum of two numbers passes on to both. Elsewhere a sum of its own is as good,
/// and takes fewer steps in a loop; in straight code it is that of the tape.
///
/// Tangents are relays, but for those that are [gathered](super::gathered): they tell derivatives
/// of what the loop passes on otherwise, too. A relay has no name of its own in [`Folding::Real`],
/// so nothing has to be added to what it stands for.
pub(super) fn relays(activity: &Activity<'_>, folding: Folding) -> Array<Node, Passed> {
    let mut relays = Array::filled([None; 2], activity.graph.nodes.len());
    if folding == Folding::Exact {
        return relays;
    }
    let graph = activity.graph;
    for node in graph.nodes.keys().filter(|&node| activity.active[node]) {
        let Some(sum) = tangent_sum(graph, node) else { continue };
        relays[node] = [Some(sum), None];
        relays[sum] = [tangent_of(graph, node), None];
    }
    let mut members = members(activity);
    retain_families(activity, &mut members);
    relay(activity, &members, &mut relays);
    relays
}

/// Says of `members` which are relays.
fn relay(activity: &Activity<'_>, members: &[Member], relays: &mut Array<Node, Passed>) {
    if members.is_empty() {
        return;
    }
    let uses = uses(activity, members);
    // How many of a family each loop uses, and of each member and those made of it.
    let mut whole: HashMap<(Node, Region), u32> = HashMap::new();
    let mut below: HashMap<Node, HashMap<Region, u32>> = HashMap::new();
    let roots: HashSet<Node> = members.iter().flat_map(|member| member.roots.clone()).collect();
    let of: HashMap<Node, &Member> = members.iter().map(|member| (member.node, member)).collect();
    let families = Families::of(members, &of, &uses);
    for root in roots {
        uses[&root].loops.iter().for_each(|&region| *whole.entry((root, region)).or_default() += 1);
    }
    for member in members {
        for &region in &uses[&member.node].loops {
            for &root in &member.roots {
                *whole.entry((root, region)).or_default() += 1;
            }
            for member in chain(member, &of) {
                *below.entry(member.node).or_default().entry(region).or_default() += 1;
            }
        }
    }
    // What a relay passes on is added where it is used, so what is made of a member comes first.
    let mut spans: HashMap<Node, (Node, Node)> = HashMap::new();
    for member in members.iter().rev() {
        let users = uses[&member.node].straight.iter().map(|&user| (user, user));
        let span = users.chain(spans.get(&member.node).copied()).reduce(joined);
        let span = span.filter(|_| member.may_be_shared);
        let is_used_with = span.is_some_and(|span| families.come_between(member, span));
        let mut loops = below.get(&member.node).into_iter().flatten();
        let meets_others = loops
            .any(|(&region, &own)| member.roots.iter().any(|&root| own < whole[&(root, region)]));
        // Where it is used again and again, that would be two sums for one.
        if is_used_with || (meets_others && member.of.len() == 1) {
            relays[member.node] = [0, 1].map(|number| member.of.get(number).copied());
            for &of in span.iter().flat_map(|_| &member.of) {
                let whole = spans.get(&of).copied().into_iter().chain(span).reduce(joined);
                spans.extend(whole.map(|whole| (of, whole)));
            }
        }
    }
}

/// If `node` is a relay, what it passes on to, and what of `passed`.
pub(super) fn shares(
    graph: &Graph,
    builder: &mut Builder,
    (node, relay): (Node, Passed),
    passed: Node,
) -> SmallVec<[(Node, Node); 2]> {
    let mut shares = SmallVec::new();
    let Def::Apply(op, args) = graph.nodes[node].def else { return shares };
    for of in relay.into_iter().flatten() {
        // Of the operands no more is needed than a factor.
        let x = args.map(|arg| graph.constant(arg).map_or(passed, |x| builder.constant(x)));
        let operand = args.iter().position(|&arg| arg == of);
        let share =
            operand.and_then(|operand| contribution(builder, op, operand, x, passed, passed));
        shares.extend(share.map(|share| (of, share)));
    }
    shares
}

/// From the first to the last of two spans.
fn joined(a: (Node, Node), b: (Node, Node)) -> (Node, Node) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// A member, and those that it is made of.
fn chain<'a>(member: &'a Member, of: &HashMap<Node, &'a Member>) -> SmallVec<[&'a Member; 4]> {
    let mut all: SmallVec<[&Member; 4]> = smallvec![member];
    let mut at = 0;
    while let Some(&member) = all.get(at) {
        at += 1;
        for &member in member.of.iter().filter_map(|node| of.get(node)) {
            if all.iter().all(|known| known.node != member.node) {
                all.push(member);
            }
        }
    }
    all
}

/// What uses numbers that come from the same one, in the order of the program.
#[derive(Default)]
struct Families {
    /// By the root.
    whole: HashMap<Node, SmallVec<[Node; 4]>>,
    /// By a member, what uses it or those made of it.
    below: HashMap<Node, SmallVec<[Node; 4]>>,
}

impl Families {
    fn of(members: &[Member], of: &HashMap<Node, &Member>, uses: &HashMap<Node, Uses>) -> Families {
        let mut families = Families::default();
        for member in members {
            let users = &uses[&member.node].all;
            for &root in &member.roots {
                let whole = families.whole.entry(root);
                whole.or_insert_with(|| uses[&root].all.clone()).extend_from_slice(users);
            }
            for member in chain(member, of) {
                families.below.entry(member.node).or_default().extend_from_slice(users);
            }
        }
        let all = families.whole.values_mut().chain(families.below.values_mut());
        all.for_each(|users| users.sort_unstable());
        families
    }

    /// Whether others of the family are used between the first and the last of those that use
    /// `member`, or what passes on to that at once.
    fn come_between(&self, member: &Member, (first, last): (Node, Node)) -> bool {
        let count = |users: &[Node]| {
            let after_first = &users[users.partition_point(|&user| user <= first)..];
            after_first.partition_point(|&user| user < last)
        };
        let own = count(&self.below[&member.node]);
        member.roots.iter().any(|root| count(&self.whole[root]) > own)
    }
}

/// The nodes that may be relays, operands first.
fn members(activity: &Activity<'_>) -> Vec<Member> {
    let mut known: HashMap<Node, (u8, SmallVec<[Node; 2]>)> = HashMap::new();
    let nodes = activity.graph.nodes.keys().filter_map(|node| {
        let of = linear(activity, node)?;
        let (mut length, mut roots) = (1, SmallVec::new());
        for &of in &of {
            let (before, from) = known.get(&of).cloned().unwrap_or_else(|| (0, smallvec![of]));
            length = length.max(before + 1);
            roots.extend(from);
        }
        roots.sort_unstable();
        roots.dedup();
        if length > LONGEST_CHAIN || roots.len() > MOST_ROOTS {
            return None;
        }
        known.insert(node, (length, roots.clone()));
        let may_be_shared = {
            let args = activity.graph.nodes[node].args();
            args.iter().all(|&arg| arg == of[0] || is_recomputed(activity.graph, arg))
        };
        Some(Member { node, of, roots, may_be_shared })
    });
    nodes.collect()
}

/// What uses `members`, and what they are computed from.
fn uses(activity: &Activity<'_>, members: &[Member]) -> HashMap<Node, Uses> {
    let nodes = members.iter().flat_map(|Member { node, of, roots, .. }| {
        core::iter::once(node).chain(of).chain(roots).copied()
    });
    let mut uses: HashMap<Node, Uses> = nodes.map(|node| (node, Uses::default())).collect();
    // Elements of series have sums of their own.
    let is_element = |node: Node| matches!(activity.graph.nodes[node].def, Def::Element(_));
    let users = activity.graph.nodes.keys().filter(|&node| activity.active[node]);
    for user in users.filter(|&node| !is_element(node)) {
        let innermost = activity.nest.node_loop(user);
        for target in activity.targets(user) {
            let Some(found) = uses.get_mut(&target) else { continue };
            let around =
                core::iter::successors(innermost, |&loop_| activity.nest.loop_around(loop_));
            let mut loops =
                around.take_while(|&loop_| !activity.is_inside(target, loop_)).peekable();
            found.all.push(user);
            if loops.peek().is_none() {
                found.straight.push(user);
            }
            found.loops.extend(loops);
        }
    }
    uses
}

/// Takes out of `members` what decides nothing. In code without loops a member is a relay only if
/// it, or what is made of it, has several uses; so families without such a member have no relay.
fn retain_families(activity: &Activity<'_>, members: &mut Vec<Member>) {
    if members.is_empty() {
        return;
    }
    if activity.graph.regions.values().any(|data| data.cycle.is_some()) {
        return;
    }
    let mut spans: Array<Node, Option<(Node, Node)>> =
        Array::filled(None, activity.graph.nodes.len());
    for user in activity.graph.nodes.keys().filter(|&node| activity.active[node]) {
        for target in activity.targets(user) {
            spans[target] = Some(spans[target].map_or((user, user), |(first, _)| (first, user)));
        }
    }
    let mut roots: HashSet<Node> = HashSet::new();
    for member in members.iter().rev() {
        let Some(span) = spans[member.node] else { continue };
        for &of in &member.of {
            spans[of] = Some(spans[of].map_or(span, |known| joined(known, span)));
        }
        if span.0 != span.1 {
            roots.extend(&member.roots);
        }
    }
    members.retain(|member| member.roots.iter().any(|root| roots.contains(root)));
}

/// Whether a program may have computed `node` again: it is given, or computed from what is.
fn is_recomputed(graph: &Graph, node: Node) -> bool {
    let is_given = |node: &Node| matches!(graph.nodes[*node].def, Def::Const(_) | Def::Input(_));
    match graph.nodes[node].def {
        Def::Apply(..) => graph.nodes[node].args().iter().all(is_given),
        _ => is_given(&node),
    }
}

/// The active number that `node` is computed from, if it is its multiple, or differs from that by
/// what has no derivative; both, if it is a sum of two of which a program may have computed one
/// again.
fn linear(activity: &Activity<'_>, node: Node) -> Option<SmallVec<[Node; 2]>> {
    if !activity.active[node] {
        return None;
    }
    let graph = activity.graph;
    let Def::Apply(op, [a, b, _]) = graph.nodes[node].def else { return None };
    // What has almost vanished may be a derivative that is not passed on at once.
    let is_constant = |node| graph.constant(node).is_some_and(|factor| factor.abs() >= LEAST_TOLD);
    let of: SmallVec<[Node; 2]> = match op {
        Op::Neg => smallvec![a],
        Op::Add if a == b => return None,
        // That is what a program begins a sum with.
        Op::Add if [a, b].iter().any(|&of| graph.constant(of) == Some(0.0)) => {
            return None;
        }
        Op::Add | Op::Sub if !activity.active[b] => smallvec![a],
        Op::Add | Op::Sub if !activity.active[a] => smallvec![b],
        Op::Add | Op::Sub if a != b && is_recomputed(graph, b) => smallvec![a, b],
        Op::Add | Op::Sub if a != b && is_recomputed(graph, a) => smallvec![b, a],
        Op::Mul if is_constant(b) => smallvec![a],
        Op::Mul if is_constant(a) => smallvec![b],
        _ => return None,
    };
    let targets = activity.targets(node);
    of.iter().all(|of| targets.contains(of)).then_some(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::End;

    /// Straight code of which much is linear.
    fn random_graph(state: &mut u64) -> Graph {
        let mut below = |count: usize| {
            // A multiplicative generator; its upper bits are good enough.
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (*state >> 33) as usize % count
        };
        let mut graph = Graph::new(3, 0);
        let root = graph.root();
        let mut nodes: Vec<Node> = (0..3).map(|i| graph.input(i)).collect();
        let factor = graph.push_const(1.5f64.to_bits());
        for _ in 0..20 {
            let [a, b] = [nodes[below(nodes.len())], nodes[below(nodes.len())]];
            let input = nodes[below(3)];
            let (op, args) = match below(6) {
                0 => (Op::Neg, vec![a]),
                1 => (Op::Sub, vec![a, input]),
                2 => (Op::Add, vec![factor, a]),
                3 => (Op::Mul, vec![a, factor]),
                4 => (Op::Mul, vec![a, b]),
                _ => (Op::Add, vec![a, b]),
            };
            nodes.push(graph.push_apply(root, op, &args, None));
        }
        graph.blocks[root].end = End::Return(nodes[20..].iter().copied().collect());
        graph
    }

    #[test]
    fn families_that_are_not_looked_at_have_no_relays() {
        let (mut state, mut found, mut fewer) = (7, 0, 0);
        for _ in 0..400 {
            let graph = random_graph(&mut state);
            let activity = Activity::of(&graph, Folding::Real);
            let relays_of = |members: &[Member]| {
                let mut relays = Array::filled([None; 2], graph.nodes.len());
                relay(&activity, members, &mut relays);
                relays.values().copied().collect::<Vec<Passed>>()
            };
            let mut members = members(&activity);
            let (all, count) = (relays_of(&members), members.len());
            retain_families(&activity, &mut members);
            assert_eq!(relays_of(&members), all, "{graph}");
            found += all.iter().filter(|passed| passed[0].is_some()).count();
            fewer += count - members.len();
        }
        assert!(found > 100 && fewer > 100, "{found} relays, {fewer} fewer members");
    }
}
