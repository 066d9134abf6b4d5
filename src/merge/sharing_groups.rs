//! Groups of instances that share paths: those that run the same code on the same static state with
//! equal constants.
//!
//! They are kept from plan to plan: only instances whose live-in values have changed are grouped
//! anew.

use hashbrown::{HashMap, HashSet};

use super::specialisation::constants;
use super::tree::{Instance, State, Tree, Value};
use crate::entity::{PrimaryMap, entity};
use crate::trace::Site;

entity!(
    /// A group.
    Group,
    "g"
);

entity!(
    /// Code with its static state.
    Code,
    "c"
);

/// The captured constants, by position. Operations on constants are not in the trace, so the
/// constants of instances that share must be equal.
pub(super) type Constants = Vec<Option<Value>>;

/// A region, its recursion depth, the loop that it is an iteration of, and its static state.
type CodeKey = (Site, u32, Option<Instance>, State);

/// All groups of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct SharingGroups {
    groups: PrimaryMap<Group, GroupData>,
    /// The groups of each code by their constants.
    codes: PrimaryMap<Code, HashMap<Constants, Group>>,
    codes_by_key: HashMap<CodeKey, Code>,
    /// The group of each instance.
    of: PrimaryMap<Instance, Option<Group>>,
    /// The instances whose live-in values have changed since the latest update.
    changed: Vec<Instance>,
    /// True if changes were undone.
    is_stale: bool,
}

/// A group.
#[derive(Clone, Debug)]
pub(super) struct GroupData {
    pub(super) code: Code,
    /// Its instances, oldest first.
    pub(super) members: Vec<Instance>,
}

impl SharingGroups {
    /// Notes that the live-in values of `instance` have changed.
    pub(super) fn note_change(&mut self, instance: Instance) {
        self.changed.push(instance);
    }

    /// Notes that changes were undone.
    pub(super) fn note_roll_back(&mut self) {
        self.is_stale = true;
    }

    /// The group of `instance`.
    pub(super) fn of(&self, instance: Instance) -> Option<Group> {
        self.of.get(instance).copied().flatten()
    }

    pub(super) fn group(&self, group: Group) -> &GroupData {
        &self.groups[group]
    }

    /// The groups of `code` that have members, by their constants.
    pub(super) fn groups_of(&self, code: Code) -> impl Iterator<Item = (&Constants, Group)> {
        let groups = self.codes[code].iter().map(|(constants, &group)| (constants, group));
        groups.filter(|&(_, group)| !self.groups[group].members.is_empty())
    }

    /// The group of `code` with these constants.
    pub(super) fn find(&self, code: Code, constants: &Constants) -> Option<Group> {
        let group = self.codes[code].get(constants).copied();
        group.filter(|&group| !self.groups[group].members.is_empty())
    }

    /// Groups all instances of `tree` whose live-in values have changed. Regions at the sites
    /// `excluded` share nothing.
    pub(super) fn update(&mut self, tree: &Tree, excluded: &HashSet<Site>) {
        if self.is_stale {
            *self =
                SharingGroups { changed: tree.instances.keys().collect(), ..Default::default() };
        }
        while self.of.len() < tree.instances.len() {
            self.of.push(None);
        }
        let mut changed = core::mem::take(&mut self.changed);
        for instance in changed.drain(..) {
            if let Some(before) = self.of[instance].take() {
                self.groups[before].members.retain(|&member| member != instance);
            }
            self.of[instance] = self.add(tree, instance, excluded);
        }
        self.changed = changed;
    }

    /// Adds `instance` to its group.
    fn add(&mut self, tree: &Tree, instance: Instance, excluded: &HashSet<Site>) -> Option<Group> {
        let (live_in, data) = (tree.live_in(instance)?, &tree.instances[instance]);
        if excluded.contains(&data.site) {
            return None;
        }
        let key = (data.site, data.recursion, live_in.of, live_in.state.clone());
        let codes = &mut self.codes;
        let code = *self.codes_by_key.entry(key).or_insert_with(|| codes.push(HashMap::new()));
        let constants = constants(tree, live_in);
        let group = match self.codes[code].get(&constants) {
            Some(&group) => group,
            None => {
                let group = self.groups.push(GroupData { code, members: Vec::new() });
                self.codes[code].insert(constants, group);
                group
            }
        };
        let members = &mut self.groups[group].members;
        let at = members.partition_point(|&member| member < instance);
        members.insert(at, instance);
        Some(group)
    }
}
