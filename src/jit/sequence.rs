//! The schedule as others see it who decide where to cut it.

use smallvec::SmallVec;

use super::Schedule;
use super::schedule::Inst;
use super::uses::computed;
use crate::ssa::{Lifetime, Sequence};

/// The lines of `schedule` as steps. What is in a buffer wherever the code is cut is
/// not among the values: inputs, constants, and what has a home.
pub(super) fn sequence(schedule: &Schedule<'_>) -> Sequence {
    let Schedule { graph, layout, insts, uses, .. } = schedule;
    let mut regions = Vec::new();
    for (inst, position) in insts.iter().zip(0..) {
        match *inst {
            Inst::Enter { end, .. } => regions.push(position..end + 1),
            Inst::Branch { otherwise, end, .. } => {
                regions.extend([position + 1..otherwise, otherwise..end]);
            }
            _ => {}
        }
    }
    // The other side of a branch comes after all that is in the first one.
    regions.sort_by_key(|region| (region.start, core::cmp::Reverse(region.end)));
    regions.retain(|region| !region.is_empty());
    let mut values = Vec::new();
    for (node, &begin) in computed(graph, insts).iter() {
        let used = uses.of_node(node);
        if begin != u32::MAX && !used.is_empty() && layout.trajectory(node).is_none() {
            // Entry φs begin with the loop, which uses their first values there.
            values.push(Lifetime { begin, uses: SmallVec::from_slice(used) });
        }
    }
    Sequence { steps: insts.len() as u32, regions, values }
}
