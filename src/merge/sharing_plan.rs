//! Planning of path sharing: which instances copy paths to which.
//!
//! In recursive functions instances share only at equal recursion depth: otherwise outer code would
//! be copied to an inner instance, and be new to the outer one again.

use core::cmp::Reverse;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::path_sharing::share_paths;
use super::specialisation::{constants, generalised};
use super::tree::{Instance, State, Tree, Value};
use crate::trace::Site;

/// Instances that run the same code on the same static state, oldest first.
type Group = Vec<Instance>;

/// A region, its recursion depth, the loop that it is an iteration of, and its static state.
type Code = (Site, u32, Option<Instance>, State);

/// The captured constants, by position. Operations on constants are not in the trace, so the
/// constants of instances that share must be equal.
type Constants = Vec<Option<Value>>;

/// The groups of instances that share paths.
#[derive(Default)]
pub(super) struct Plan {
    /// For each group its extended members, youngest first, and the group. Groups with older
    /// members come later, so that inner regions have shared when outer ones do.
    within: Vec<(Vec<Instance>, Rc<Group>)>,
    /// An instance, and the group of instances with more constants that get its paths.
    specialised: Vec<(Instance, Rc<Group>)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.within.is_empty() && self.specialised.is_empty()
    }

    /// All instances of the plan.
    pub(super) fn instances(&self) -> impl Iterator<Item = Instance> {
        let groups = self.within.iter().map(|(_, group)| group);
        let groups = groups.chain(self.specialised.iter().map(|(_, group)| group));
        let general = self.specialised.iter().map(|(from, _)| *from);
        groups.flat_map(|group| group.iter().copied()).chain(general)
    }
}

/// Plans path sharing after the instances `extended` were extended: each shares with its group, and
/// with groups that have constants in the place of its traced values.
pub(super) fn plan(tree: &Tree, extended: &[Instance], excluded: &HashSet<Site>) -> Plan {
    let key = |instance: Instance| -> Option<(Code, Constants)> {
        let (live_in, data) = (tree.live_in(instance)?, &tree.instances[instance]);
        if excluded.contains(&data.site) {
            return None;
        }
        let code = (data.site, data.recursion, live_in.of, live_in.state.clone());
        Some((code, constants(tree, live_in)))
    };
    // Inner instances are younger; the order spares outer ones steps that inner ones share.
    let mut extended: Vec<Instance> = extended.to_vec();
    extended.sort_unstable();
    extended.dedup();
    let keyed: Vec<(Instance, Code, Constants)> = extended
        .iter()
        .rev()
        .filter_map(|&instance| key(instance).map(|(code, constants)| (instance, code, constants)))
        .collect();
    // All instances with the code of an extended one, by their constants.
    let mut groups: HashMap<Code, HashMap<Constants, Group>> = HashMap::new();
    let mut sites: HashSet<Site> = HashSet::new();
    for (_, code, _) in &keyed {
        sites.insert(code.0);
        groups.entry(code.clone()).or_default();
    }
    for instance in tree.instances.keys().filter(|&m| sites.contains(&tree.instances[m].site)) {
        if let Some((code, constants)) = key(instance)
            && let Some(groups) = groups.get_mut(&code)
        {
            groups.entry(constants).or_default().push(instance);
        }
    }
    let groups: HashMap<Code, HashMap<Constants, Rc<Group>>> = groups
        .into_iter()
        .map(|(code, all)| {
            (code, all.into_iter().map(|(key, group)| (key, Rc::new(group))).collect())
        })
        .collect();
    // The extended members of each group, by its oldest one.
    let mut within: HashMap<Instance, (Vec<Instance>, Rc<Group>)> = HashMap::new();
    for (instance, code, constants) in &keyed {
        let group = groups.get(code).and_then(|all| all.get(constants));
        if let Some(group) = group.filter(|group| group.len() > 1) {
            let all = within.entry(group[0]).or_insert_with(|| (Vec::new(), Rc::clone(group)));
            all.0.push(*instance);
        }
    }
    let mut within: Vec<_> = within.into_values().collect();
    within.sort_unstable_by_key(|(extended, _)| Reverse(extended.last().copied()));
    Plan { within, specialised: specialised(&groups, &keyed) }
}

/// The pairs of an instance with few constants and a group with more.
fn specialised(
    groups: &HashMap<Code, HashMap<Constants, Rc<Group>>>,
    keyed: &[(Instance, Code, Constants)],
) -> Vec<(Instance, Rc<Group>)> {
    let extended: HashSet<(&Code, &Constants)> =
        keyed.iter().map(|(_, code, constants)| (code, constants)).collect();
    let mut planned: Vec<(Instance, Rc<Group>)> = Vec::new();
    let mut seen: HashSet<&Code> = HashSet::new();
    for (_, code, _) in keyed {
        let Some(all) = groups.get(code).filter(|all| all.len() > 1 && seen.insert(code)) else {
            continue;
        };
        // One group for each set of positions that are constants.
        let mut kinds: HashMap<Vec<bool>, &Constants> = HashMap::new();
        for constants in all.keys() {
            let kind = constants.iter().map(Option::is_some).collect();
            kinds.entry(kind).or_insert(constants);
        }
        if kinds.len() < 2 {
            continue;
        }
        let mut pairs: Vec<(Instance, Rc<Group>)> = Vec::new();
        for (constants, group) in all {
            for general in kinds.values() {
                if let Some(fewer) = generalised(constants, general)
                    && let Some(other) = all.get(&fewer)
                    && (extended.contains(&(code, constants)) || extended.contains(&(code, &fewer)))
                {
                    pairs.push((other[0], Rc::clone(group)));
                }
            }
        }
        // In an order that does not depend on hashes.
        pairs.sort_unstable_by_key(|(from, group)| (group[0], *from));
        planned.append(&mut pairs);
    }
    planned
}

/// Shares paths as planned, copying at most `budget` steps. Returns whether the budget sufficed.
pub(super) fn share(tree: &mut Tree, plan: &Plan, mut budget: usize) -> bool {
    for (extended, group) in &plan.within {
        // All paths are collected in the oldest instance and copied from there.
        let first = group[0];
        let mut is_new = false;
        for &instance in extended {
            is_new |= instance == first || share_paths(tree, instance, first, &mut budget);
        }
        for &other in if is_new { &group[1..] } else { extended } {
            share_paths(tree, first, other, &mut budget);
        }
    }
    for (from, group) in &plan.specialised {
        if share_paths(tree, *from, group[0], &mut budget) {
            for &other in &group[1..] {
                share_paths(tree, group[0], other, &mut budget);
            }
        }
    }
    budget > 0
}
