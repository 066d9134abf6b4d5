//! Sharing: which meetings give each other their sides.
//!
//! Where a function calls itself, meetings share only with those that as many
//! calls surround: otherwise what is outside would be copied to the inside, and
//! be new to the outside again.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::graft::graft;
use super::tree::{Meeting, Origin, Tree, Value};
use crate::trace::Site;

/// Meetings that run the same code on the same state, oldest first.
type Group = Vec<Meeting>;

/// What meetings have to share, after those in `grew` have grown: each with the
/// others of its group.
pub(super) fn plan(
    tree: &Tree,
    grew: &[Meeting],
    apart: &HashSet<Site>,
) -> Vec<(Meeting, Rc<Group>)> {
    type Key = (Site, u32, Option<Meeting>, SmallVec<[u64; 4]>, Vec<Option<Value>>);
    let key = |meeting: Meeting| -> Option<Key> {
        let (given, data) = (tree.given(meeting)?, &tree.meetings[meeting]);
        if apart.contains(&data.site) {
            return None;
        }
        // What is computed of constants leaves no trace, so they must be the same.
        let is_constant = |&value: &Value| matches!(tree.values[value], Origin::Const(_));
        let constants = given.captured.iter().map(|value| Some(*value).filter(is_constant));
        Some((data.site, data.recursion, given.of, given.state.clone(), constants.collect()))
    };
    // Inner regions are younger: what they learn, outer ones need not.
    let mut grew: Vec<Meeting> = grew.to_vec();
    grew.sort_unstable();
    grew.dedup();
    let mut groups: HashMap<Key, Group> = HashMap::new();
    for key in grew.iter().filter_map(|&meeting| key(meeting)) {
        groups.entry(key).or_default();
    }
    let sites: HashSet<Site> = groups.keys().map(|key| key.0).collect();
    for meeting in tree.meetings.keys().filter(|&m| sites.contains(&tree.meetings[m].site)) {
        if let Some(group) = key(meeting).and_then(|key| groups.get_mut(&key)) {
            group.push(meeting);
        }
    }
    let groups: HashMap<Key, Rc<Group>> =
        groups.into_iter().map(|(key, group)| (key, Rc::new(group))).collect();
    let planned = grew.iter().rev().filter_map(|&meeting| {
        let group = groups.get(&key(meeting)?)?;
        (group.len() > 1).then(|| (meeting, Rc::clone(group)))
    });
    planned.collect()
}

/// Shares sides as planned, as long as no more than `budget` steps are copied.
/// Returns whether that was enough.
pub(super) fn share(tree: &mut Tree, plan: &[(Meeting, Rc<Group>)], mut budget: usize) -> bool {
    for (meeting, group) in plan {
        // All sides come together in the oldest and go out from there.
        let (meeting, first) = (*meeting, group[0]);
        if graft(tree, meeting, first, &mut budget) || meeting == first {
            for &other in &group[1..] {
                graft(tree, first, other, &mut budget);
            }
        } else {
            graft(tree, first, meeting, &mut budget);
        }
    }
    budget > 0
}
