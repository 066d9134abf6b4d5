//! Matching: where patterns of rules occur, in e-graphs and in graphs.
//!
//! Most patterns do not occur in most places, so what counts is to see that soon: each
//! value says by what primitives it is computed, and its operands.

use egg::{Id, Language};
use smallvec::SmallVec;

use super::facts::Terms;
use super::language::Term;
use super::pattern::{CONSTANT, Tree, bit};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{Def, Graph, Node};

/// What the letters of a pattern stand for.
pub(super) type Letters<I> = SmallVec<[(char, I); 4]>;

/// Where patterns are looked for.
pub(super) trait Place {
    /// A value: two that are equal have the same.
    type Value: Copy + PartialEq;

    /// The primitives that `value` is a result of, one bit each, and [`CONSTANT`].
    fn has(&self, value: Self::Value) -> u64;

    /// What the operands of `value` have, together.
    fn has_below(&self, value: Self::Value) -> u64;

    fn constant(&self, value: Self::Value) -> Option<f64>;

    /// Calls `each` with the operands of each application of `op` that gives `value`.
    fn applications(&self, value: Self::Value, op: Op, each: &mut impl FnMut(&[Self::Value]));
}

/// The classes of an e-graph that has been rebuilt, by their numbers: egg looks each up
/// in a map.
pub(super) struct Classes<'a>(Vec<Class<'a>>);

#[derive(Clone, Copy, Default)]
struct Class<'a> {
    terms: &'a [Term],
    constant: Option<u64>,
    has: u64,
    has_below: u64,
}

impl<'a> Classes<'a> {
    pub(super) fn of(terms: &'a Terms) -> Classes<'a> {
        let count = terms.classes().map(|class| usize::from(class.id) + 1).max().unwrap_or(0);
        let mut classes = vec![Class::default(); count];
        for class in terms.classes() {
            let constant = class.data.constant;
            let has = class.data.ops | if constant.is_some() { CONSTANT } else { 0 };
            let terms = &class.nodes[..];
            classes[usize::from(class.id)] = Class { terms, constant, has, has_below: 0 };
        }
        for class in terms.classes() {
            let operands = class.nodes.iter().flat_map(|term| term.children());
            let has_below = operands.fold(0, |all, &id| all | classes[usize::from(id)].has);
            classes[usize::from(class.id)].has_below = has_below;
        }
        Classes(classes)
    }
}

impl Place for Classes<'_> {
    type Value = Id;

    fn has(&self, value: Id) -> u64 {
        self.0[usize::from(value)].has
    }

    fn has_below(&self, value: Id) -> u64 {
        self.0[usize::from(value)].has_below
    }

    fn constant(&self, value: Id) -> Option<f64> {
        self.0[usize::from(value)].constant.map(f64::from_bits)
    }

    fn applications(&self, value: Id, op: Op, each: &mut impl FnMut(&[Id])) {
        for term in self.0[usize::from(value)].terms {
            if let Term::Apply(same, operands) = term
                && *same == op
            {
                each(&operands[..op.arity()]);
            }
        }
    }
}

impl Place for Graph {
    type Value = Node;

    fn has(&self, value: Node) -> u64 {
        match self.nodes[value].def {
            Def::Apply(op, _) => bit(op),
            Def::Const(_) => CONSTANT,
            _ => 0,
        }
    }

    fn has_below(&self, value: Node) -> u64 {
        self.nodes[value].args().iter().fold(0, |all, &arg| all | self.has(arg))
    }

    fn constant(&self, value: Node) -> Option<f64> {
        self.constant(value)
    }

    fn applications(&self, value: Node, op: Op, each: &mut impl FnMut(&[Node])) {
        if let Def::Apply(same, operands) = self.nodes[value].def
            && same == op
        {
            each(&operands[..op.arity()]);
        }
    }
}

/// An application, and what its operands are.
pub(super) struct Application<'a, P: Place> {
    place: &'a P,
    operands: &'a [P::Value],
    has: [u64; MAX_ARITY],
}

impl<'a, P: Place> Application<'a, P> {
    pub(super) fn new(place: &'a P, operands: &'a [P::Value]) -> Self {
        let has = |i| operands.get(i).map_or(0, |&operand| place.has(operand));
        Application { place, operands, has: core::array::from_fn(has) }
    }

    /// Calls `found` for each way in which it is an instance of `pattern`, which has
    /// the same primitive, with what the letters stand for. Operands of sums and
    /// products are tried in both orders.
    pub(super) fn search(&self, pattern: &Tree, found: &mut impl FnMut(&Letters<P::Value>)) {
        let Tree::Apply { operands, swaps, .. } = pattern else { return };
        let fits = |pattern: usize, i: usize| {
            let pattern = &operands[pattern];
            let below = pattern.needs_below();
            pattern.needs() & !self.has[i] == 0
                && (below == 0 || below & !self.place.has_below(self.operands[i]) == 0)
        };
        let in_order = (0..operands.len()).all(|i| fits(i, i));
        // Most patterns end here.
        if in_order || (*swaps && fits(0, 1) && fits(1, 0)) {
            let (goals, letters) = (SmallVec::new(), SmallVec::new());
            Search { place: self.place, goals, letters, found }.operands(
                operands,
                *swaps,
                self.operands,
            );
        }
    }
}

/// A search on its way.
struct Search<'a, P: Place, F> {
    place: &'a P,
    /// What is still to be matched.
    goals: SmallVec<[(&'a Tree, P::Value); 8]>,
    letters: Letters<P::Value>,
    found: &'a mut F,
}

impl<'a, P: Place, F: FnMut(&Letters<P::Value>)> Search<'a, P, F> {
    fn operands(&mut self, operands: &'a [Tree], swaps: bool, values: &[P::Value]) {
        self.in_order(operands, values.iter().copied());
        if swaps && values[0] != values[1] {
            self.in_order(operands, values.iter().rev().copied());
        }
    }

    fn in_order(
        &mut self,
        operands: &'a [Tree],
        values: impl DoubleEndedIterator<Item = P::Value> + ExactSizeIterator + Clone,
    ) {
        let pairs = operands.iter().zip(values);
        if !pairs.clone().all(|(operand, value)| self.may_be(operand, value)) {
            return;
        }
        let (goals, letters) = (self.goals.len(), self.letters.len());
        if pairs.clone().all(|(operand, value)| self.may_stand_for(operand, value)) {
            // The first one is matched first.
            for (operand, value) in pairs.rev() {
                if matches!(operand, Tree::Apply { .. }) {
                    self.goals.push((operand, value));
                }
            }
            self.run();
        }
        self.goals.truncate(goals);
        self.letters.truncate(letters);
    }

    /// Whether `tree` is no letter, or one that may stand for `value`, and does from here on.
    fn may_stand_for(&mut self, tree: &Tree, value: P::Value) -> bool {
        let Tree::Variable(name) = tree else { return true };
        match self.letters.iter().find(|(letter, _)| letter == name) {
            Some(&(_, same)) => same == value,
            None => {
                self.letters.push((*name, value));
                true
            }
        }
    }

    fn may_be(&self, tree: &Tree, value: P::Value) -> bool {
        match tree {
            Tree::Variable(_) => tree.needs() & !self.place.has(value) == 0,
            Tree::Number(number) => {
                self.place.constant(value).map(f64::to_bits) == Some(number.to_bits())
            }
            Tree::Apply { op, below, .. } => {
                bit(*op) & !self.place.has(value) == 0
                    && (*below == 0 || below & !self.place.has_below(value) == 0)
            }
        }
    }

    /// Matches the goals, which are applications, and leaves them as they were.
    fn run(&mut self) {
        let Some((tree, value)) = self.goals.pop() else {
            (self.found)(&self.letters);
            return;
        };
        if let Tree::Apply { op, operands, swaps, .. } = tree {
            let place = self.place;
            place.applications(value, *op, &mut |values| self.operands(operands, *swaps, values));
        }
        self.goals.push((tree, value));
    }
}
