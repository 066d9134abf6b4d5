//! Extraction: chooses a term of each class by DAG cost, common subterms counted once.
//!
//! The greedy DAG algorithm: each class keeps the set of classes that its choice needs, itself
//! included, and their total cost. A class takes a cheaper term if there is one; then the classes
//! that use it are examined again.

use std::collections::VecDeque;

use egg::{Id, Language};

use super::egraph::{Term, Terms};
use super::loops::{ALL, LoopSet, cost};
use crate::ssa::Node;

/// The choice of a class.
#[derive(Clone, Copy)]
enum Choice {
    /// No computable term yet.
    None,
    /// An existing node computes the value.
    Pinned,
    Term(Term),
}

/// A class whose value an existing node computes.
#[derive(Clone, Copy)]
pub(super) struct Pinned {
    pub(super) class: Id,
    pub(super) node: Node,
    /// The cost to use it in the segment.
    pub(super) use_cost: u64,
    /// The enclosing loops in which it changes.
    pub(super) changes: LoopSet,
}

/// The terms that were chosen, by class.
pub(super) struct Choices {
    choices: Vec<Choice>,
    /// The cost of the choice of each class by itself.
    costs: Vec<u64>,
    /// The cost of the choice with all classes that it needs.
    totals: Vec<u64>,
    /// The enclosing loops in which the choice changes.
    changes: Vec<LoopSet>,
    /// The classes that each class needs, one bit each, in `words` words for each class.
    needs: Vec<u64>,
    words: usize,
}

impl Choices {
    /// The best terms of a rebuilt e-graph. Classes in `pinned` are computed by existing nodes, at
    /// the cost to use these.
    pub(super) fn best(terms: &Terms, pinned: &[Pinned]) -> Choices {
        let mut classes: Vec<Id> = terms.classes().map(|class| class.id).collect();
        classes.sort_unstable();
        let canonical = |term: &Term| term.map_children(|id| terms.find(id));
        let mut superseded: Vec<Term> = terms.analysis.superseded.iter().map(canonical).collect();
        superseded.sort_unstable();
        let is_superseded = |term: &Term| superseded.binary_search(term).is_ok();
        let count = classes.last().map_or(0, |&last| usize::from(last) + 1);
        let words = count.div_ceil(64);
        let mut best = Choices {
            choices: vec![Choice::None; count],
            costs: vec![0; count],
            totals: vec![0; count],
            changes: vec![ALL; count],
            needs: vec![0; count * words],
            words,
        };
        for &Pinned { class, use_cost, changes, .. } in pinned {
            let index = usize::from(class);
            // The first of several nodes is used.
            if matches!(best.choices[index], Choice::None) {
                best.choose(index, Choice::Pinned, use_cost, use_cost);
                best.changes[index] = changes;
            }
        }
        classes.retain(|&class| matches!(best.choices[usize::from(class)], Choice::None));
        let mut is_pending = vec![false; count];
        classes.iter().for_each(|&class| is_pending[usize::from(class)] = true);
        let mut pending: VecDeque<Id> = classes.into();
        let mut all = vec![0; words];
        while let Some(class) = pending.pop_front() {
            let index = usize::from(class);
            is_pending[index] = false;
            let class = &terms[class];
            // Superseded terms are used only if there are no others.
            let is_stuck = class.iter().all(is_superseded);
            let mut improved = false;
            for term in class.iter().filter(|term| is_stuck || !is_superseded(term)) {
                improved |= best.offer(index, term, terms, &mut all);
            }
            if improved {
                for parent in class.parents() {
                    let parent = terms.find(parent);
                    let index = usize::from(parent);
                    let is_pinned = matches!(best.choices[index], Choice::Pinned);
                    if !is_pinned && !core::mem::replace(&mut is_pending[index], true) {
                        pending.push_back(parent);
                    }
                }
            }
        }
        best
    }

    /// Takes `term` for the class with this index if it is cheaper. Returns true if so. `all` is
    /// scratch memory for the classes that the term needs.
    fn offer(&mut self, index: usize, term: &Term, terms: &Terms, all: &mut [u64]) -> bool {
        all.fill(0);
        let mut changes = match *term {
            Term::Leaf(number) => terms.analysis.leaf(number).changes,
            Term::Const(_) | Term::Apply(..) => 0,
        };
        for &operand in term.children() {
            match self.choices.get(usize::from(operand)) {
                None | Some(Choice::None) => return false,
                Some(Choice::Pinned | Choice::Term(_)) => {
                    self.add_needs(operand, all);
                    changes |= self.changes[usize::from(operand)];
                }
            }
        }
        if all[index / 64] & (1 << (index % 64)) != 0 {
            return false;
        }
        let own = cost(term, changes, &terms.analysis.enclosing);
        let total = own + self.cost_of(all);
        if matches!(self.choices[index], Choice::Term(_)) && self.totals[index] <= total {
            return false;
        }
        self.needs[index * self.words..][..self.words].copy_from_slice(all);
        self.choose(index, Choice::Term(*term), own, total);
        self.changes[index] = changes;
        true
    }

    /// Sets the choice of a class, which needs itself.
    fn choose(&mut self, index: usize, choice: Choice, own: u64, total: u64) {
        self.needs[index * self.words + index / 64] |= 1 << (index % 64);
        self.costs[index] = own;
        self.totals[index] = total;
        self.choices[index] = choice;
    }

    fn add_needs(&self, class: Id, all: &mut [u64]) {
        let needs = self.needs.iter().skip(usize::from(class) * self.words);
        all.iter_mut().zip(needs).for_each(|(all, more)| *all |= more);
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

    /// The total cost of `classes`, common subterms counted once.
    pub(super) fn cost(&self, classes: &[Id]) -> u64 {
        let mut all = vec![0u64; self.words];
        classes.iter().for_each(|&class| self.add_needs(class, &mut all));
        self.cost_of(&all)
    }

    /// The chosen term of `class`; `None` if an existing node computes its value.
    pub(super) fn term(&self, class: Id) -> Option<&Term> {
        match self.choices.get(usize::from(class))? {
            Choice::Term(term) => Some(term),
            Choice::None | Choice::Pinned => None,
        }
    }
}
