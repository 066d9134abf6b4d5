//! Extraction: of the equal terms in each class the one with which everything
//! together costs least, shared terms counted once.
//!
//! The greedy algorithm on sets: each class keeps the set of classes that its
//! choice needs, itself included, and what they cost together. A class takes
//! another term if that costs less; then those that use the class are looked at
//! again.

use std::collections::VecDeque;

use egg::{Id, Language};
use hashbrown::HashSet;

use super::cost::cost;
use super::facts::Terms;
use super::language::Term;
use crate::ssa::Node;

/// The choice of a class.
struct Choice {
    /// None if the value is there anyway.
    term: Option<Term>,
    total: u64,
    /// The classes that it needs, one bit each.
    needs: Vec<u64>,
}

/// The terms that were chosen, by class.
pub(super) struct Choices {
    choices: Vec<Option<Choice>>,
    costs: Vec<u64>,
}

impl Choices {
    /// The best terms. Classes in `pinned` have values that are there anyway, for
    /// what it costs to use them.
    pub(super) fn best(terms: &Terms, pinned: &[(Id, Node, u64)]) -> Choices {
        let mut classes: Vec<Id> = terms.classes().map(|class| class.id).collect();
        classes.sort();
        let canonical = |term: &Term| term.clone().map_children(|id| terms.find(id));
        let superseded: HashSet<Term> = terms.analysis.superseded.iter().map(canonical).collect();
        let count = classes.last().map_or(0, |&last| usize::from(last) + 1);
        let choices = (0..count).map(|_| None).collect();
        let mut best = Choices { choices, costs: vec![0; count] };
        let words = count.div_ceil(64);
        for &(class, _, fee) in pinned {
            let index = usize::from(class);
            // The first of several nodes is used.
            if best.choices[index].is_none() {
                let mut needs = vec![0; words];
                needs[index / 64] |= 1 << (index % 64);
                best.costs[index] = fee;
                best.choices[index] = Some(Choice { term: None, total: fee, needs });
            }
        }
        classes.retain(|&class| best.choices[usize::from(class)].is_none());
        let mut is_pending = vec![false; count];
        classes.iter().for_each(|&class| is_pending[usize::from(class)] = true);
        let mut pending: VecDeque<Id> = classes.into();
        while let Some(class) = pending.pop_front() {
            is_pending[usize::from(class)] = false;
            let mut candidates: Vec<Term> = terms[class].iter().map(canonical).collect();
            if candidates.iter().any(|term| !superseded.contains(term)) {
                candidates.retain(|term| !superseded.contains(term));
            }
            let mut improved = false;
            for term in candidates {
                improved |= best.offer(class, term, words);
            }
            if improved {
                for parent in terms[class].parents() {
                    let parent = terms.find(parent);
                    let index = usize::from(parent);
                    let is_pinned =
                        best.choices[index].as_ref().is_some_and(|choice| choice.term.is_none());
                    if !is_pinned && !core::mem::replace(&mut is_pending[index], true) {
                        pending.push_back(parent);
                    }
                }
            }
        }
        best
    }

    /// Takes `term` for `class` if that costs less. Returns whether it does.
    fn offer(&mut self, class: Id, term: Term, words: usize) -> bool {
        let index = usize::from(class);
        let mut needs = vec![0u64; words];
        for &operand in term.children() {
            let Some(Some(choice)) = self.choices.get(usize::from(operand)) else { return false };
            needs.iter_mut().zip(&choice.needs).for_each(|(all, more)| *all |= more);
        }
        if has(&needs, index) {
            return false;
        }
        let own = cost(&term);
        let total = own + self.cost_of(&needs);
        if self.choices[index].as_ref().is_some_and(|choice| choice.total <= total) {
            return false;
        }
        needs[index / 64] |= 1 << (index % 64);
        self.costs[index] = own;
        self.choices[index] = Some(Choice { term: Some(term), total, needs });
        true
    }

    fn cost_of(&self, needs: &[u64]) -> u64 {
        let mut total = 0;
        for (word, &bits) in needs.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                total += self.costs[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
        }
        total
    }

    /// What `classes` cost together.
    pub(super) fn cost(&self, classes: &[Id]) -> u64 {
        let mut all = vec![0u64; self.costs.len().div_ceil(64)];
        for &class in classes {
            if let Some(Some(choice)) = self.choices.get(usize::from(class)) {
                all.iter_mut().zip(&choice.needs).for_each(|(all, more)| *all |= more);
            }
        }
        self.cost_of(&all)
    }

    /// The term of `class`; none if its value is there anyway.
    pub(super) fn term(&self, class: Id) -> Option<&Term> {
        self.choices.get(usize::from(class))?.as_ref()?.term.as_ref()
    }
}

fn has(needs: &[u64], index: usize) -> bool {
    needs[index / 64] & (1 << (index % 64)) != 0
}
