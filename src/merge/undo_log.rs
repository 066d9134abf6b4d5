//! Undo logs: lists whose changes can be rolled back. Adding a trace then costs time in proportion
//! to what is new, and a failed one leaves the tree as it was.

use core::ops::{Deref, Index, IndexMut};

use hashbrown::HashSet;

use crate::entity::{Entity, PrimaryMap};

/// A growing list. Between [`UndoLog::begin`] and [`UndoLog::commit`] or [`UndoLog::roll_back`] the
/// former values of changed items are kept.
#[derive(Clone, Debug)]
pub(super) struct UndoLog<K, V> {
    items: PrimaryMap<K, V>,
    before: Option<Before<K, V>>,
}

/// The state at `begin`.
#[derive(Clone, Debug)]
struct Before<K, V> {
    /// The number of items.
    len: usize,
    /// The items that have changed since, with their former values.
    changed: Vec<(K, V)>,
    known: HashSet<K>,
}

impl<K: Entity, V: Clone> UndoLog<K, V> {
    /// An empty list.
    pub(super) fn new() -> Self {
        UndoLog { items: PrimaryMap::new(), before: None }
    }

    /// Appends an item.
    pub(super) fn push(&mut self, item: V) -> K {
        self.items.push(item)
    }

    /// Begins a transaction.
    pub(super) fn begin(&mut self) {
        let (len, changed, known) = (self.items.len(), Vec::new(), HashSet::new());
        self.before = Some(Before { len, changed, known });
    }

    /// Keeps the changes.
    pub(super) fn commit(&mut self) {
        self.before = None;
    }

    /// Undoes the changes.
    pub(super) fn roll_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.items.truncate(before.len);
        for (key, item) in before.changed {
            self.items[key] = item;
        }
    }
}

impl<K, V> Deref for UndoLog<K, V> {
    type Target = PrimaryMap<K, V>;

    fn deref(&self) -> &PrimaryMap<K, V> {
        &self.items
    }
}

impl<K: Entity, V> Index<K> for UndoLog<K, V> {
    type Output = V;

    fn index(&self, key: K) -> &V {
        &self.items[key]
    }
}

impl<K: Entity, V: Clone> IndexMut<K> for UndoLog<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        let item = &mut self.items[key];
        if let Some(before) = &mut self.before
            && key.index() < before.len
            && before.known.insert(key)
        {
            before.changed.push((key, item.clone()));
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Value;
    use super::*;

    #[test]
    fn changes_are_committed_or_rolled_back() {
        let mut undo_log: UndoLog<Value, u32> = UndoLog::new();
        let (first, second) = (undo_log.push(1), undo_log.push(2));
        undo_log.begin();
        undo_log[second] = 3;
        undo_log[second] += 1;
        let third = undo_log.push(5);
        undo_log[third] = 6;
        let all = |undo_log: &UndoLog<Value, u32>| undo_log.values().copied().collect::<Vec<_>>();
        assert_eq!(all(&undo_log), [1, 4, 6]);
        undo_log.roll_back();
        assert_eq!(all(&undo_log), [1, 2]);
        undo_log.begin();
        undo_log[first] = 7;
        undo_log.commit();
        undo_log.roll_back();
        undo_log[second] = 8;
        assert_eq!(all(&undo_log), [7, 8]);
    }
}
