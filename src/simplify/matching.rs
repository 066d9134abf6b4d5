//! Patterns of rules, and where they occur in e-graphs and in graphs.
//!
//! `(mul ?a 2)` is a primitive by its name, a variable of one letter, a number. The letters k
//! and m stand for constants. Most patterns do not occur in most places, so each value says
//! by which primitives it is computed, and by which its operands are: egg's own matcher
//! took most of the time.

use egg::{Id, Language};
use smallvec::SmallVec;

use super::egraph::{Term, Terms, bit};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{Def, Graph, Node};

/// The bit of constants, beside those of primitives.
pub(super) const CONSTANT: u64 = 1 << 63;

/// A pattern, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    Variable(char),
    Number(f64),
    Apply {
        op: Op,
        operands: Vec<Pattern>,
        /// Whether the operands in the other order are another pattern of the same
        /// value. Constants come second in graphs, so they do in patterns.
        swaps: bool,
        /// What the operands need, see [`Pattern::needs`].
        below: u64,
    },
}

impl Pattern {
    /// Reads `text`; `None` if it is no pattern.
    pub(super) fn parse(text: &str) -> Option<Pattern> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace();
        let pattern = Pattern::read(&mut words)?;
        words.next().is_none().then_some(pattern)
    }

    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Pattern> {
        let word = words.next()?;
        if word == "(" {
            let op = Op::from_name(words.next()?)?;
            let operands: Option<Vec<Pattern>> =
                (0..op.arity()).map(|_| Pattern::read(words)).collect();
            let operands = operands?;
            let swaps = matches!(op, Op::Add | Op::Mul)
                && operands[0] != operands[1]
                && !matches!(operands[1], Pattern::Number(_));
            let below = operands.iter().fold(0, |all, operand| all | operand.needs());
            let pattern = Pattern::Apply { op, operands, swaps, below };
            return (words.next() == Some(")")).then_some(pattern);
        }
        match word.strip_prefix('?') {
            Some(name) => name.chars().next().map(Pattern::Variable),
            None => word.parse().ok().map(Pattern::Number),
        }
    }

    /// What a value must have to be an instance: the primitive at the root, or
    /// [`CONSTANT`].
    fn needs(&self) -> u64 {
        match self {
            Pattern::Variable('k' | 'm') | Pattern::Number(_) => CONSTANT,
            Pattern::Variable(_) => 0,
            Pattern::Apply { op, .. } => bit(*op),
        }
    }

    /// What the operands of a value must have for it to be an instance, in any order.
    fn needs_below(&self) -> u64 {
        match self {
            Pattern::Variable(_) | Pattern::Number(_) => 0,
            Pattern::Apply { below, .. } => *below,
        }
    }

    /// The primitives in it, one bit each.
    pub(super) fn ops(&self) -> u64 {
        match self {
            Pattern::Variable(_) | Pattern::Number(_) => 0,
            Pattern::Apply { op, operands, .. } => {
                operands.iter().fold(bit(*op), |ops, operand| ops | operand.ops())
            }
        }
    }

    /// Adds the instance in which letters stand for these classes. Returns its class;
    /// none if a letter is missing.
    pub(super) fn instantiate(&self, terms: &mut Terms, letters: &Letters<Id>) -> Option<Id> {
        match self {
            Pattern::Variable(name) => {
                let id = letters.iter().find(|(letter, _)| letter == name)?.1;
                Some(terms.find(id))
            }
            Pattern::Number(value) => Some(terms.add(Term::constant(*value))),
            Pattern::Apply { op, operands, .. } => {
                let mut ids = [Id::from(0); MAX_ARITY];
                for (id, operand) in ids.iter_mut().zip(operands) {
                    *id = operand.instantiate(terms, letters)?;
                }
                // The last addition may have united classes.
                let ids = ids.map(|id| terms.find(id));
                Some(terms.add(Term::apply(*op, &ids[..op.arity()])))
            }
        }
    }
}

/// What the letters of a pattern stand for.
pub(super) type Letters<V> = SmallVec<[(char, V); 4]>;

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

/// Calls `found` with what the letters stand for, each time that an application of a primitive
/// to these operands is an instance of `pattern`, which has the same primitive. Operands of
/// sums and products are tried in both orders.
pub(super) fn search<P: Place>(
    place: &P,
    operands: &[P::Value],
    pattern: &Pattern,
    found: &mut impl FnMut(&Letters<P::Value>),
) {
    let Pattern::Apply { operands: patterns, swaps, .. } = pattern else { return };
    let (goals, letters) = (SmallVec::new(), SmallVec::new());
    Search { place, goals, letters, found }.operands(patterns, *swaps, operands);
}

/// A search in progress.
struct Search<'a, P: Place, F> {
    place: &'a P,
    /// What is to be matched yet.
    goals: SmallVec<[(&'a Pattern, P::Value); 8]>,
    letters: Letters<P::Value>,
    found: &'a mut F,
}

impl<'a, P: Place, F: FnMut(&Letters<P::Value>)> Search<'a, P, F> {
    fn operands(&mut self, operands: &'a [Pattern], swaps: bool, values: &[P::Value]) {
        self.in_order(operands, values.iter().copied());
        if swaps && values[0] != values[1] {
            self.in_order(operands, values.iter().rev().copied());
        }
    }

    fn in_order(
        &mut self,
        operands: &'a [Pattern],
        values: impl DoubleEndedIterator<Item = P::Value> + ExactSizeIterator + Clone,
    ) {
        let all = operands.iter().zip(values);
        // Most searches end here.
        if !all.clone().all(|(operand, value)| self.may_be(operand, value)) {
            return;
        }
        let (goals, letters) = (self.goals.len(), self.letters.len());
        if all.clone().all(|(operand, value)| self.may_stand_for(operand, value)) {
            // The first one is matched first.
            for (operand, value) in all.rev() {
                if matches!(operand, Pattern::Apply { .. }) {
                    self.goals.push((operand, value));
                }
            }
            self.run();
        }
        self.goals.truncate(goals);
        self.letters.truncate(letters);
    }

    /// Whether `pattern` is no letter, or one that may stand for `value`, and does from here
    /// on.
    fn may_stand_for(&mut self, pattern: &Pattern, value: P::Value) -> bool {
        let Pattern::Variable(name) = pattern else { return true };
        match self.letters.iter().find(|(letter, _)| letter == name) {
            Some(&(_, same)) => same == value,
            None => {
                self.letters.push((*name, value));
                true
            }
        }
    }

    fn may_be(&self, pattern: &Pattern, value: P::Value) -> bool {
        if let Pattern::Number(number) = pattern {
            return self.place.constant(value).map(f64::to_bits) == Some(number.to_bits());
        }
        let below = pattern.needs_below();
        pattern.needs() & !self.place.has(value) == 0
            && (below == 0 || below & !self.place.has_below(value) == 0)
    }

    /// Matches the goals, which are applications, and leaves them as they were.
    fn run(&mut self) {
        let Some((pattern, value)) = self.goals.pop() else {
            (self.found)(&self.letters);
            return;
        };
        if let Pattern::Apply { op, operands, swaps, .. } = pattern {
            let place = self.place;
            place.applications(value, *op, &mut |values| self.operands(operands, *swaps, values));
        }
        self.goals.push((pattern, value));
    }
}
