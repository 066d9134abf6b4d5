//! Values of branches in a loop: what is chosen, and by which conditions.

use crate::phi::draft::Draft;
use crate::ssa::{Block, Def, End, Node, Region};

/// So many blocks a choice may have.
const BLOCKS: usize = 15;

/// A step of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// What a side comes to.
    Value(Node),
    /// One of the two before it: the first if the condition holds.
    Choose(Node),
}

/// A value of a branch, as steps of which each side's come before those that choose.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) parts: Vec<Part>,
}

impl Choice {
    /// The conditions and what the sides come to.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Node> {
        self.parts.iter().map(|part| match *part {
            Part::Value(node) | Part::Choose(node) => node,
        })
    }
}

/// What `node` chooses from, if it is a value of a branch in `region` of which all sides are
/// known.
pub(super) fn of(draft: &Draft, region: Region, node: Node) -> Option<Choice> {
    let Def::Phi(branch, number) = draft.graph.nodes[node].def else { return None };
    let data = &draft.graph.regions[branch];
    if data.cycle.is_some() || data.replays.is_some() || !draft.is_inside(node, region) {
        return None;
    }
    let (mut parts, mut blocks) = (Vec::new(), BLOCKS);
    side(draft, data.root, number as usize, &mut parts, &mut blocks)?;
    Some(Choice { parts })
}

fn side(
    draft: &Draft,
    block: Block,
    number: usize,
    parts: &mut Vec<Part>,
    blocks: &mut usize,
) -> Option<()> {
    *blocks = blocks.checked_sub(1)?;
    match &draft.graph.blocks[block].end {
        End::Return(values) => parts.push(Part::Value(draft.resolve(*values.get(number)?))),
        &End::Branch { condition, then, otherwise } => {
            side(draft, then, number, parts, blocks)?;
            side(draft, otherwise, number, parts, blocks)?;
            parts.push(Part::Choose(draft.resolve(condition)));
        }
        End::Open => return None,
    }
    Some(())
}
