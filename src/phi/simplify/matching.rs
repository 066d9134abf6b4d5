//! Matching: where patterns of rules occur, in e-graphs and in graphs.

use egg::Id;
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

    fn constant(&self, value: Self::Value) -> Option<f64>;

    /// Calls `each` with the operands of each application of `op` that gives `value`.
    fn applications(&self, value: Self::Value, op: Op, each: &mut impl FnMut(&[Self::Value]));
}

impl Place for Terms {
    type Value = Id;

    fn has(&self, value: Id) -> u64 {
        let facts = &self[value].data;
        facts.ops | if facts.constant.is_some() { CONSTANT } else { 0 }
    }

    fn constant(&self, value: Id) -> Option<f64> {
        self[value].data.constant.map(f64::from_bits)
    }

    fn applications(&self, value: Id, op: Op, each: &mut impl FnMut(&[Id])) {
        for term in &self[value].nodes {
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
        let fits = |i: usize, has: u64| operands[i].needs() & !has == 0;
        let in_order = (0..operands.len()).all(|i| fits(i, self.has[i]));
        // Most patterns end here.
        if in_order || (*swaps && fits(0, self.has[1]) && fits(1, self.has[0])) {
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

    fn in_order(&mut self, operands: &'a [Tree], values: impl Iterator<Item = P::Value> + Clone) {
        let pairs = operands.iter().zip(values);
        if pairs.clone().all(|(operand, value)| self.may_be(operand, value)) {
            let before = self.goals.len();
            // The first one is matched first.
            self.goals.extend(pairs);
            self.goals[before..].reverse();
            self.run();
            self.goals.truncate(before);
        }
    }

    fn may_be(&self, tree: &Tree, value: P::Value) -> bool {
        match tree {
            Tree::Variable(_) => true,
            Tree::Number(number) => {
                self.place.constant(value).map(f64::to_bits) == Some(number.to_bits())
            }
            Tree::Apply { .. } => tree.needs() & !self.place.has(value) == 0,
        }
    }

    /// Matches the goals, and leaves them as they were.
    fn run(&mut self) {
        let Some((tree, value)) = self.goals.pop() else {
            (self.found)(&self.letters);
            return;
        };
        match tree {
            Tree::Variable(name) => match self.letters.iter().find(|(letter, _)| letter == name) {
                Some(&(_, same)) if same != value => {}
                Some(_) => self.run(),
                None => {
                    self.letters.push((*name, value));
                    self.run();
                    self.letters.pop();
                }
            },
            // Compared before it became a goal.
            Tree::Number(_) => self.run(),
            Tree::Apply { op, operands, swaps } => {
                let place = self.place;
                place.applications(value, *op, &mut |values| {
                    self.operands(operands, *swaps, values);
                });
            }
        }
        self.goals.push((tree, value));
    }
}
