//! Quotients by what is invariant in a loop: products with an inverse that is computed
//! once, before it.

use hashbrown::{HashMap, HashSet};

use super::chain::{Added, Chain};
use super::form::moved_out;
use crate::op::Op;
use crate::phi::draft::Draft;
use crate::ssa::{Def, Node, Region};

/// The inverses of what terms of `chain` in `region` are divided by, if that is invariant
/// there and no data.
pub(super) fn inverses(draft: &mut Draft, region: Region, chain: &Chain) -> HashMap<Node, Node> {
    let (mut divisors, mut known) = (Vec::new(), HashSet::new());
    let mut pending = Vec::new();
    nodes(&chain.added, &mut pending);
    while let Some(node) = pending.pop() {
        let node = draft.resolve(node);
        if !draft.is_inside(node, region) || !known.insert(node) {
            continue;
        }
        let args: Vec<Node> = draft.args(node).collect();
        if let (Def::Apply(Op::Div, _), [dividend, divisor]) =
            (draft.graph.nodes[node].def, args.as_slice())
            && !draft.folds(*divisor)
            && is_invariant(draft, region, *divisor)
            && !is_invariant(draft, region, *dividend)
            && !divisors.contains(divisor)
        {
            divisors.push(*divisor);
        }
        pending.extend(args);
    }
    let inverse = |divisor: Node| {
        let moved = moved_out(draft, region, divisor);
        (divisor, draft.apply(region, Op::Recip, &[moved]))
    };
    divisors.into_iter().map(inverse).collect()
}

/// Stops the graph where quotients may be good and products with inverses are not: what
/// comes of an infinite one must decide nothing.
pub(super) fn require(draft: &mut Draft, region: Region, inverses: &HashMap<Node, Node>) {
    let mut inverses: Vec<Node> = inverses.values().copied().collect();
    inverses.sort_unstable();
    for inverse in inverses {
        draft.require_size(region, inverse, 1e-300, 1e300);
    }
}

/// The nodes that are added, or decide what is.
fn nodes(added: &[Added], all: &mut Vec<Node>) {
    for added in added {
        match added {
            Added::Term(_, node) => all.push(*node),
            Added::Choice { condition, then, otherwise } => {
                all.push(*condition);
                nodes(then, all);
                nodes(otherwise, all);
            }
        }
    }
}

/// Whether `node` is the same in each iteration of `region`, as its operands show.
pub(super) fn is_invariant(draft: &Draft, region: Region, node: Node) -> bool {
    let (mut pending, mut known) = (vec![node], HashSet::new());
    while let Some(node) = pending.pop() {
        let node = draft.resolve(node);
        if !draft.is_inside(node, region) || !known.insert(node) {
            continue;
        }
        match draft.graph.nodes[node].def {
            Def::Apply(..) => pending.extend(draft.args(node)),
            Def::Const(_) | Def::Input(_) => {}
            _ => return false,
        }
    }
    true
}
