//! Proofs of closed forms by certificates: at once, or when it is known that the forms are used.
//!
//! A certificate goes through a loop many times, and takes most of the time in which forms are
//! found. Many a form saves nothing in the end, and is never used.

use super::replacement::Replacement;
use crate::certificate::{agree, agree_at_ends, disproved};
use crate::ssa::{Block, Graph, Region};

/// When forms are compared with their loops.
pub(super) enum Proofs {
    /// Before anything is made of them.
    AtOnce,
    /// They are taken for right, and this is to be proven.
    Later(Vec<Proof>),
}

/// Whether something holds.
type Proof = Box<dyn FnOnce() -> bool>;

impl Proofs {
    /// The loops whose forms in `new` come to something else than in `before`, as far as that is
    /// asked at once. See [`disproved`].
    pub(super) fn disproved(
        &mut self,
        (before, new): (&Graph, &Replacement),
        stays: bool,
        rules: impl Fn(&Graph) -> Option<Graph> + 'static,
    ) -> Vec<Region> {
        let Proofs::Later(proofs) = self else {
            return disproved(&new.claim(before), stays, &rules);
        };
        let (before, new) = (before.clone(), new.clone());
        let proof = move || disproved(&new.claim(&before), stays, &rules).is_empty();
        proofs.push(Box::new(proof));
        Vec::new()
    }

    /// Whether forms behind the loop `region` come to what it comes to at its `ends`. See
    /// [`agree_at_ends`].
    pub(super) fn agree_at_ends(
        &mut self,
        (before, new): (&Graph, &Replacement),
        region: Region,
        ends: &[Block],
    ) -> bool {
        let Proofs::Later(proofs) = self else {
            return agree_at_ends(&new.claim(before), region, ends);
        };
        let (before, new, ends) = (before.clone(), new.clone(), ends.to_vec());
        proofs.push(Box::new(move || agree_at_ends(&new.claim(&before), region, &ends)));
        true
    }

    /// Whether both graphs come to the same. See [`agree`].
    pub(super) fn agree(&mut self, before: &Graph, after: &Graph) -> bool {
        let Proofs::Later(proofs) = self else { return agree(before, after) };
        let (before, after) = (before.clone(), after.clone());
        proofs.push(Box::new(move || agree(&before, &after)));
        true
    }

    /// Whether all holds that was taken for right.
    pub(super) fn hold(self) -> bool {
        match self {
            Proofs::AtOnce => true,
            Proofs::Later(proofs) => proofs.into_iter().all(|proof| proof()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_has_to_hold() {
        let later = |all: &[bool]| {
            let proof = |&holds: &bool| Box::new(move || holds) as Proof;
            Proofs::Later(all.iter().map(proof).collect())
        };
        assert!(Proofs::AtOnce.hold() && later(&[]).hold() && later(&[true, true]).hold());
        assert!(!later(&[true, false]).hold() && !later(&[false, true]).hold());
    }
}
