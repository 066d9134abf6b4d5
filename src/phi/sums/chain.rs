//! Sums of a loop: entry φs to which each iteration adds something.

use crate::op::Op;
use crate::phi::draft::Draft;
use crate::ssa::{Def, End, Node, Region};

/// An entry φ whose next value is itself plus something.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The φs that have the sum.
    pub(super) phis: Vec<Node>,
    /// What the sum begins with.
    pub(super) first: Node,
    /// What is added in each iteration, and subtracted where the sign is negative.
    pub(super) added: Vec<(f64, Node)>,
    /// The number of iterations.
    pub(super) count: u32,
}

/// The sums of `region`, a loop, or for each entry φ that has an end value why it is none.
pub(super) fn chains(draft: &Draft, region: Region) -> Result<Vec<Result<Chain, String>>, String> {
    let data = &draft.graph.regions[region];
    let End::Return(values) = &draft.graph.blocks[data.root].end else {
        return Err("it has several ends".to_owned());
    };
    let values: Vec<Node> = values.iter().map(|&value| draft.resolve(value)).collect();
    let count = draft
        .trips(region, values[0])
        .ok_or("its number of iterations is not known before it begins")?;
    let (decides, nexts) = draft.graph.passed_before_phis(region);
    let mut chains = Vec::new();
    for (entry, &next) in draft.graph.entries(region).iter().zip(&values[decides..]) {
        let ends = data.phis.iter().zip(&values[decides + nexts..]);
        let ends = ends.filter(|&(&phi, &value)| value == next && draft.resolve(phi) == phi);
        let phis: Vec<Node> = ends.map(|(&phi, _)| phi).collect();
        if phis.is_empty() {
            continue;
        }
        let first = draft.resolve(entry.first);
        let passed = values.iter().filter(|&&value| value == next).count() as u32;
        let added = added(draft, entry.phi, next, passed);
        chains.push(added.map(|added| Chain { phis, first, added, count }));
    }
    Ok(chains)
}

/// What is added on the way from `entry` to `next`, which `passed` ends pass on.
fn added(draft: &Draft, entry: Node, next: Node, passed: u32) -> Result<Vec<(f64, Node)>, String> {
    let mut added = Vec::new();
    let mut sum = entry;
    while sum != next {
        let user = draft
            .only_user(sum)
            .ok_or("an iteration does more with what it carries than to add to it")?;
        let args: Vec<Node> = draft.args(user).collect();
        let Def::Apply(op, _) = draft.graph.nodes[user].def else {
            return Err("what it carries is not only added to".to_owned());
        };
        match (op, args.as_slice()) {
            (Op::Add, &[a, b]) => added.push((1.0, if a == sum { b } else { a })),
            (Op::Sub, &[a, b]) if a == sum => added.push((-1.0, b)),
            _ => return Err("what it carries is not only added to".to_owned()),
        }
        sum = user;
    }
    if added.is_empty() || draft.uses(next) != passed {
        return Err("an iteration does more with what it carries than to add to it".to_owned());
    }
    Ok(added)
}
