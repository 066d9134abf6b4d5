//! Sharing: which meetings give each other their sides.
//!
//! Where a function calls itself, meetings share only with those that as many
//! calls surround: otherwise what is outside would be copied to the inside, and
//! be new to the outside again.

use core::cmp::Reverse;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::graft::graft;
use super::special::{constants, generalised};
use super::tree::{Meeting, Tree, Value};
use crate::trace::Site;

/// Meetings that run the same code on the same state, oldest first.
type Group = Vec<Meeting>;

/// Code, and the static state that it is given.
type Code = (Site, u32, Option<Meeting>, SmallVec<[u64; 4]>);

/// The constants that it is given, by position: what is computed of constants leaves
/// no trace, so they must be the same.
type Constants = Vec<Option<Value>>;

/// What meetings have to share.
#[derive(Default)]
pub(super) struct Plan {
    /// Those of a group that grew, youngest first, and the group. Groups whose oldest
    /// is older come later: what inner regions know is there when outer ones share.
    within: Vec<(Vec<Meeting>, Rc<Group>)>,
    /// Meetings, and the group of others that were given more constants.
    special: Vec<(Meeting, Rc<Group>)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.within.is_empty() && self.special.is_empty()
    }

    /// All meetings that it is about.
    pub(super) fn meetings(&self) -> impl Iterator<Item = Meeting> {
        let groups = self.within.iter().map(|(_, group)| group);
        let groups = groups.chain(self.special.iter().map(|(_, group)| group));
        let general = self.special.iter().map(|(from, _)| *from);
        groups.flat_map(|group| group.iter().copied()).chain(general)
    }
}

/// What meetings have to share, after those in `grew` have grown: each with the
/// others of its group, and with those that were given constants where it was given
/// traced values.
pub(super) fn plan(tree: &Tree, grew: &[Meeting], apart: &HashSet<Site>) -> Plan {
    let key = |meeting: Meeting| -> Option<(Code, Constants)> {
        let (given, data) = (tree.given(meeting)?, &tree.meetings[meeting]);
        if apart.contains(&data.site) {
            return None;
        }
        let code = (data.site, data.recursion, given.of, given.state.clone());
        Some((code, constants(tree, given)))
    };
    // Inner regions are younger: what they learn, outer ones need not.
    let mut grew: Vec<Meeting> = grew.to_vec();
    grew.sort_unstable();
    grew.dedup();
    let grown: Vec<(Meeting, Code, Constants)> = grew
        .iter()
        .rev()
        .filter_map(|&meeting| key(meeting).map(|(code, constants)| (meeting, code, constants)))
        .collect();
    let mut groups: HashMap<Code, HashMap<Constants, Group>> = HashMap::new();
    let mut sites: HashSet<Site> = HashSet::new();
    for (_, code, _) in &grown {
        sites.insert(code.0);
        groups.entry(code.clone()).or_default();
    }
    for meeting in tree.meetings.keys().filter(|&m| sites.contains(&tree.meetings[m].site)) {
        if let Some((code, constants)) = key(meeting)
            && let Some(groups) = groups.get_mut(&code)
        {
            groups.entry(constants).or_default().push(meeting);
        }
    }
    let groups: HashMap<Code, HashMap<Constants, Rc<Group>>> = groups
        .into_iter()
        .map(|(code, all)| {
            (code, all.into_iter().map(|(key, group)| (key, Rc::new(group))).collect())
        })
        .collect();
    let mut within: HashMap<Meeting, (Vec<Meeting>, Rc<Group>)> = HashMap::new();
    for (meeting, code, constants) in &grown {
        let group = groups.get(code).and_then(|all| all.get(constants));
        if let Some(group) = group.filter(|group| group.len() > 1) {
            let all = within.entry(group[0]).or_insert_with(|| (Vec::new(), Rc::clone(group)));
            all.0.push(*meeting);
        }
    }
    let mut within: Vec<_> = within.into_values().collect();
    within.sort_unstable_by_key(|(grew, _)| Reverse(grew.last().copied()));
    Plan { within, special: special(&groups, &grown) }
}

/// Which groups are given what was seen with fewer constants.
fn special(
    groups: &HashMap<Code, HashMap<Constants, Rc<Group>>>,
    grown: &[(Meeting, Code, Constants)],
) -> Vec<(Meeting, Rc<Group>)> {
    let grew: HashSet<(&Code, &Constants)> =
        grown.iter().map(|(_, code, constants)| (code, constants)).collect();
    let mut planned: Vec<(Meeting, Rc<Group>)> = Vec::new();
    let mut seen: HashSet<&Code> = HashSet::new();
    for (_, code, _) in grown {
        let Some(all) = groups.get(code).filter(|all| all.len() > 1 && seen.insert(code)) else {
            continue;
        };
        // One of each kind: those in which the same positions are constants.
        let mut kinds: HashMap<Vec<bool>, &Constants> = HashMap::new();
        for constants in all.keys() {
            let kind = constants.iter().map(Option::is_some).collect();
            kinds.entry(kind).or_insert(constants);
        }
        if kinds.len() < 2 {
            continue;
        }
        let mut pairs: Vec<(Meeting, Rc<Group>)> = Vec::new();
        for (constants, group) in all {
            for general in kinds.values() {
                if let Some(fewer) = generalised(constants, general)
                    && let Some(other) = all.get(&fewer)
                    && (grew.contains(&(code, constants)) || grew.contains(&(code, &fewer)))
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

/// Shares sides as planned, as long as no more than `budget` steps are copied.
/// Returns whether that was enough.
pub(super) fn share(tree: &mut Tree, plan: &Plan, mut budget: usize) -> bool {
    for (grew, group) in &plan.within {
        // All sides come together in the oldest and, when all are there, go out from it.
        let first = group[0];
        let mut is_new = false;
        for &meeting in grew {
            is_new |= meeting == first || graft(tree, meeting, first, &mut budget);
        }
        for &other in if is_new { &group[1..] } else { grew } {
            graft(tree, first, other, &mut budget);
        }
    }
    for (from, group) in &plan.special {
        if graft(tree, *from, group[0], &mut budget) {
            for &other in &group[1..] {
                graft(tree, group[0], other, &mut budget);
            }
        }
    }
    budget > 0
}
