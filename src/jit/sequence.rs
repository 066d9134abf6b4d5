//! The schedule as a [`Sequence`] of steps and lifetimes, for the choice of cuts.

use smallvec::SmallVec;

use super::Schedule;
use super::schedule::Inst;
use super::uses::computed;
use crate::ssa::{Lifetime, Sequence};

/// The instructions of `schedule` as steps. Inputs, constants and nodes with a trajectory are in
/// a buffer at every cut and so have no lifetime.
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
    // The second arm of a branch follows all regions in the first one.
    regions.sort_by_key(|region| (region.start, core::cmp::Reverse(region.end)));
    regions.retain(|region| !region.is_empty());
    let mut values = Vec::new();
    for (node, &begin) in computed(graph, insts).iter() {
        let used = uses.of_node(node);
        if let Some(begin) = begin
            && !used.is_empty()
            && layout.trajectory(node).is_none()
        {
            // Entry φs begin with the loop, where their first values are used.
            values.push(Lifetime { begin, uses: SmallVec::from_slice(used) });
        }
    }
    Sequence { steps: insts.len() as u32, regions, values }
}
