//! Planning of path sharing: which instances copy paths to which.
//!
//! In recursive functions instances share only at equal recursion depth: otherwise outer code would
//! be copied to an inner instance, and be new to the outer one again.

use core::cmp::Reverse;

use hashbrown::{HashMap, HashSet};

use super::path_sharing::share_paths;
use super::sharing_groups::{Code, Constants, Group, SharingGroups};
use super::specialisation::generalised;
use super::tree::{Instance, Tree};

/// The groups of instances that share paths.
#[derive(Default)]
pub(super) struct Plan {
    /// For each group its extended members, youngest first, and the group. Groups with older
    /// members come later, so that inner regions have shared when outer ones do.
    within: Vec<(Vec<Instance>, Group)>,
    /// An instance, and the group of instances with more constants that get its paths.
    specialised: Vec<(Instance, Group)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.within.is_empty() && self.specialised.is_empty()
    }

    /// All instances of the plan.
    pub(super) fn instances(&self, groups: &SharingGroups) -> impl Iterator<Item = Instance> {
        let all = self.within.iter().map(|(_, group)| *group);
        let all = all.chain(self.specialised.iter().map(|(_, group)| *group));
        let general = self.specialised.iter().map(|(from, _)| *from);
        all.flat_map(|group| groups.group(group).members.iter().copied()).chain(general)
    }
}

/// Plans path sharing after the instances `extended` were extended: each shares with its group, and
/// with groups that have constants in the place of its traced values.
pub(super) fn plan(groups: &SharingGroups, extended: &[Instance]) -> Plan {
    // Inner instances are younger; the order spares outer ones steps that inner ones share.
    let mut extended: Vec<(Instance, Group)> = extended
        .iter()
        .filter_map(|&instance| groups.of(instance).map(|group| (instance, group)))
        .collect();
    extended.sort_unstable_by_key(|&(instance, _)| Reverse(instance));
    extended.dedup();
    // The extended members of each group.
    let mut within: Vec<(Vec<Instance>, Group)> = Vec::new();
    let mut indices: HashMap<Group, usize> = HashMap::new();
    for &(instance, group) in &extended {
        if groups.group(group).members.len() > 1 {
            let index = *indices.entry(group).or_insert_with(|| {
                within.push((Vec::new(), group));
                within.len() - 1
            });
            within[index].0.push(instance);
        }
    }
    within.sort_unstable_by_key(|(extended, _)| Reverse(extended.last().copied()));
    Plan { within, specialised: specialised(groups, &extended) }
}

/// The pairs of an instance with few constants and a group with more.
fn specialised(groups: &SharingGroups, extended: &[(Instance, Group)]) -> Vec<(Instance, Group)> {
    let is_extended: HashSet<Group> = extended.iter().map(|&(_, group)| group).collect();
    let mut planned: Vec<(Instance, Group)> = Vec::new();
    let mut seen: HashSet<Code> = HashSet::new();
    for &(_, group) in extended {
        let code = groups.group(group).code;
        if !seen.insert(code) || groups.groups_of(code).nth(1).is_none() {
            continue;
        }
        // One group for each set of positions that are constants.
        let mut kinds: HashMap<Vec<bool>, &Constants> = HashMap::new();
        for (constants, _) in groups.groups_of(code) {
            let kind = constants.iter().map(Option::is_some).collect();
            kinds.entry(kind).or_insert(constants);
        }
        if kinds.len() < 2 {
            continue;
        }
        let mut pairs: Vec<(Instance, Group)> = Vec::new();
        for (constants, group) in groups.groups_of(code) {
            for general in kinds.values() {
                if let Some(fewer) = generalised(constants, general)
                    && let Some(other) = groups.find(code, &fewer)
                    && (is_extended.contains(&group) || is_extended.contains(&other))
                {
                    pairs.push((groups.group(other).members[0], group));
                }
            }
        }
        // In an order that does not depend on hashes.
        pairs.sort_unstable_by_key(|&(from, group)| (groups.group(group).members[0], from));
        planned.append(&mut pairs);
    }
    planned
}

/// Shares paths as planned, copying at most `budget` steps. Returns whether the budget sufficed.
pub(super) fn share(
    tree: &mut Tree,
    groups: &SharingGroups,
    plan: &Plan,
    mut budget: usize,
) -> bool {
    for (extended, group) in &plan.within {
        // All paths are collected in the oldest instance and copied from there.
        let members = &groups.group(*group).members;
        let first = members[0];
        let mut is_new = false;
        for &instance in extended {
            is_new |= instance == first || share_paths(tree, instance, first, &mut budget);
        }
        for &other in if is_new { &members[1..] } else { extended } {
            share_paths(tree, first, other, &mut budget);
        }
    }
    for &(from, group) in &plan.specialised {
        let members = &groups.group(group).members;
        if share_paths(tree, from, members[0], &mut budget) {
            for &other in &members[1..] {
                share_paths(tree, members[0], other, &mut budget);
            }
        }
    }
    budget > 0
}
