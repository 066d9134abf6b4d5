//! Captures: what regions were given, in a table beside the events.

use super::Operand;

/// What was captured in one run, by the events that enter the regions.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// In the order of the events.
    heads: Vec<Head>,
    operands: Vec<Operand>,
}

/// One capture; its operands end where the next one's begin.
#[derive(Debug)]
struct Head {
    event: u32,
    key: u64,
    first: usize,
}

impl Captures {
    pub(super) const fn new() -> Self {
        Captures { heads: Vec::new(), operands: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.operands.clear();
    }

    /// Adds what the region was given that the latest event enters.
    pub(super) fn push(&mut self, event: u32, key: u64, operands: &[Operand]) {
        if self.heads.last().is_none_or(|last| last.event < event) {
            self.heads.push(Head { event, key, first: self.operands.len() });
            self.operands.extend_from_slice(operands);
        }
    }

    pub(super) fn get(&self, event: usize) -> Option<(u64, &[Operand])> {
        let index = self.heads.binary_search_by(|head| (head.event as usize).cmp(&event)).ok()?;
        let head = self.heads.get(index)?;
        let end = self.heads.get(index + 1).map_or(self.operands.len(), |next| next.first);
        Some((head.key, self.operands.get(head.first..end)?))
    }
}
