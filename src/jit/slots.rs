//! Spill slots in the scratch buffer: the values that they hold at each point of the code.
//! Changes are logged and undone for the second arm of a branch.

use crate::entity::PrimaryMap;
use crate::ssa::Node;

/// The slot of each value.
pub(super) struct Slots {
    of: PrimaryMap<Node, Option<u32>>,
    /// The number of values in each slot; more than one if the arms of a branch, of which
    /// one runs, have put a value each into it.
    holders: Vec<u32>,
    /// All empty slots, the latest last, and some that are in use.
    free: Vec<u32>,
    log: Vec<Change>,
}

/// A change that was made or undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The value got this slot.
    Held(Node, u32),
    /// The value released this slot.
    Released(Node, u32),
}

impl Slots {
    /// Makes an empty map for this many nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Slots { of: PrimaryMap::filled(None, nodes), holders: vec![], free: vec![], log: vec![] }
    }

    /// The number of slots.
    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    pub(super) fn get(&self, node: Node) -> Option<u32> {
        self.of[node]
    }

    /// Gives `node` a slot of its own: the one that was released last, or a new one.
    pub(super) fn take(&mut self, node: Node) -> u32 {
        let slot = self.find_free();
        self.hold(node, slot);
        slot
    }

    fn find_free(&mut self) -> u32 {
        loop {
            match self.free.pop() {
                Some(slot) if self.holders[slot as usize] > 0 => {}
                Some(slot) => return slot,
                None => {
                    self.holders.push(0);
                    return self.holders.len() as u32 - 1;
                }
            }
        }
    }

    /// Gives `node`, which has none, this slot.
    pub(super) fn hold(&mut self, node: Node, slot: u32) {
        self.log.push(Change::Held(node, slot));
        self.enter(node, slot);
    }

    /// Releases the slot of `node`, if it has one.
    pub(super) fn release(&mut self, node: Node) {
        if let Some(slot) = self.of[node] {
            self.log.push(Change::Released(node, slot));
            self.remove(node, slot);
        }
    }

    /// A slot for a temporary, to be returned before control flow branches or joins.
    pub(super) fn borrow(&mut self) -> u32 {
        let slot = self.find_free();
        self.holders[slot as usize] += 1;
        slot
    }

    /// Ends a [`Slots::borrow`].
    pub(super) fn return_slot(&mut self, slot: u32) {
        self.drop_holder(slot);
    }

    /// The current position in the log, for [`Slots::undo`].
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Undoes and returns the last change after `mark`, if there is one.
    pub(super) fn undo(&mut self, mark: usize) -> Option<Change> {
        if self.log.len() <= mark {
            return None;
        }
        let change = self.log.pop()?;
        match change {
            Change::Held(node, slot) => self.remove(node, slot),
            Change::Released(node, slot) => self.enter(node, slot),
        }
        Some(change)
    }

    fn enter(&mut self, node: Node, slot: u32) {
        self.of[node] = Some(slot);
        self.holders[slot as usize] += 1;
    }

    fn remove(&mut self, node: Node, slot: u32) {
        self.of[node] = None;
        self.drop_holder(slot);
    }

    fn drop_holder(&mut self, slot: u32) {
        let holders = &mut self.holders[slot as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;

    #[test]
    fn a_slot_released_in_one_arm_is_held_again_in_the_other() {
        let mut slots = Slots::new(4);
        let [a, b, c, d] = core::array::from_fn(Node::from_index);
        let first = slots.take(a);
        let mark = slots.mark();
        slots.release(a);
        assert_eq!(slots.take(b), first);
        let fresh = slots.take(c);
        assert_eq!(slots.undo(mark), Some(Change::Held(c, fresh)));
        assert_eq!(slots.undo(mark), Some(Change::Held(b, first)));
        assert_eq!(slots.undo(mark), Some(Change::Released(a, first)));
        assert_eq!(slots.undo(mark), None);
        assert_eq!((slots.get(a), slots.get(b), slots.get(c)), (Some(first), None, None));
        // `first` may be listed as empty, but is in use.
        assert_eq!(slots.take(d), fresh);
        assert_eq!((slots.take(b), slots.len()), (2, 3));
    }

    #[test]
    fn a_slot_of_two_values_is_free_when_both_are_gone() {
        let mut slots = Slots::new(3);
        let [a, b, c] = core::array::from_fn(Node::from_index);
        let slot = slots.take(a);
        slots.hold(b, slot);
        slots.release(a);
        assert_ne!(slots.take(c), slot);
        slots.release(c);
        slots.release(b);
        assert_eq!(slots.take(a), slot);
    }
}
