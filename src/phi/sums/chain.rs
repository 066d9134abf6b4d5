//! Sums of a loop: entry φs to which each iteration adds something.

use crate::op::Op;
use crate::phi::draft::Draft;
use crate::ssa::{Block, Def, End, Node, Region};

/// What is added in each iteration.
#[derive(Clone, Debug)]
pub(super) enum Added {
    /// A node, with its sign.
    Term(f64, Node),
    /// One thing or another, as a condition holds or not.
    Choice { condition: Node, then: Vec<Added>, otherwise: Vec<Added> },
}

/// So many additions are followed back at most.
const LONGEST: usize = 8;

/// An entry φ whose next value is itself plus something.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The φs that have the sum.
    pub(super) phis: Vec<Node>,
    /// What the sum begins with.
    pub(super) first: Node,
    pub(super) added: Vec<Added>,
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
        let added = added(draft, entry.phi, next, passed)
            .or_else(|why| chosen(draft, region, entry.phi, next, passed).ok_or(why));
        chains.push(added.map(|added| Chain { phis, first, added, count }));
    }
    Ok(chains)
}

/// What is added on the way from `entry` to `next`, which `passed` ends pass on.
fn added(draft: &Draft, entry: Node, next: Node, passed: u32) -> Result<Vec<Added>, String> {
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
            (Op::Add, &[a, b]) => added.push(Added::Term(1.0, if a == sum { b } else { a })),
            (Op::Sub, &[a, b]) if a == sum => added.push(Added::Term(-1.0, b)),
            _ => return Err("what it carries is not only added to".to_owned()),
        }
        sum = user;
    }
    if added.is_empty() || draft.uses(next) != passed {
        return Err("an iteration does more with what it carries than to add to it".to_owned());
    }
    Ok(added)
}

/// The same where branches choose what is added.
fn chosen(
    draft: &Draft,
    region: Region,
    entry: Node,
    next: Node,
    passed: u32,
) -> Option<Vec<Added>> {
    let mut walk = Walk { draft, region, entry, found: 0 };
    let added = walk.back(next, LONGEST)?;
    (walk.found == draft.uses(entry) && draft.uses(next) == passed && !added.is_empty())
        .then_some(added)
}

struct Walk<'a> {
    draft: &'a Draft,
    region: Region,
    entry: Node,
    /// How many ways have led to the entry φ.
    found: u32,
}

impl Walk<'_> {
    /// What is added on the way from the entry φ to `node`, if that is all there is.
    fn back(&mut self, node: Node, steps: usize) -> Option<Vec<Added>> {
        let (node, steps) = (self.draft.resolve(node), steps.checked_sub(1)?);
        if node == self.entry {
            self.found += 1;
            return Some(Vec::new());
        }
        match self.draft.graph.nodes[node].def {
            Def::Apply(Op::Add, [a, b, _]) => {
                let found = self.found;
                let (mut added, other) = match self.back(a, steps) {
                    Some(added) => (added, b),
                    None => {
                        self.found = found;
                        (self.back(b, steps)?, a)
                    }
                };
                added.push(Added::Term(1.0, self.draft.resolve(other)));
                Some(added)
            }
            Def::Apply(Op::Sub, [a, b, _]) => {
                let mut added = self.back(a, steps)?;
                added.push(Added::Term(-1.0, self.draft.resolve(b)));
                Some(added)
            }
            Def::Phi(branch, number) if self.draft.is_inside(node, self.region) => {
                let data = &self.draft.graph.regions[branch];
                if data.cycle.is_some() {
                    return None;
                }
                self.side(data.root, number as usize, steps)
            }
            _ => None,
        }
    }

    /// What is added below `block`, where value number `number` is passed on.
    fn side(&mut self, block: Block, number: usize, steps: usize) -> Option<Vec<Added>> {
        match &self.draft.graph.blocks[block].end {
            End::Return(values) => self.back(*values.get(number)?, steps),
            &End::Branch { condition, then, otherwise } => {
                let steps = steps.checked_sub(1)?;
                let condition = self.draft.resolve(condition);
                let then = self.side(then, number, steps)?;
                let otherwise = self.side(otherwise, number, steps)?;
                Some(vec![Added::Choice { condition, then, otherwise }])
            }
            End::Open => None,
        }
    }
}
