//! Patterns of rules, and the search for their instances in e-graphs and in graphs.
//!
//! A pattern is a primitive by its name, a variable of one letter, or a number, such as
//! `(mul ?a 2)`. The variables k and m match constants only.
//!
//! Most patterns have no instance at most values. So each value has the set of the primitives that
//! compute it, and of those that compute its operands, as filters. (egg's own matcher took most of
//! the time.)

use egg::{Id, Language};
use smallvec::SmallVec;

use super::egraph::{OpSet, Term, Terms, bit};
use crate::op::{MAX_ARITY, Op};
use crate::ssa::{Def, Graph, Node};

/// The bit of constants, beside those of primitives.
pub(super) const CONSTANT: OpSet = 1 << (OpSet::BITS - 1);

/// A pattern, as a tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pattern {
    Variable(char),
    Number(f64),
    Apply {
        op: Op,
        operands: Vec<Pattern>,
        /// True if the pattern is also matched with swapped operands. Constants are second in
        /// graphs and in patterns, so these are not swapped.
        swaps: bool,
        /// The union of [`Pattern::required`] of the operands.
        operand_ops: OpSet,
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
            let operand_ops = operands.iter().fold(0, |all, operand| all | operand.required());
            let pattern = Pattern::Apply { op, operands, swaps, operand_ops };
            return (words.next() == Some(")")).then_some(pattern);
        }
        match word.strip_prefix('?') {
            Some(name) => name.chars().next().map(Pattern::Variable),
            None => word.parse().ok().map(Pattern::Number),
        }
    }

    /// The bit that an instance must have: that of the primitive at the root, or [`CONSTANT`].
    fn required(&self) -> OpSet {
        match self {
            Pattern::Variable('k' | 'm') | Pattern::Number(_) => CONSTANT,
            Pattern::Variable(_) => 0,
            Pattern::Apply { op, .. } => bit(*op),
        }
    }

    /// The bits that the operands of an instance must have, in any order.
    fn required_below(&self) -> OpSet {
        match self {
            Pattern::Variable(_) | Pattern::Number(_) => 0,
            Pattern::Apply { operand_ops, .. } => *operand_ops,
        }
    }

    /// The primitives in the pattern, one bit each.
    pub(super) fn ops(&self) -> OpSet {
        match self {
            Pattern::Variable(_) | Pattern::Number(_) => 0,
            Pattern::Apply { op, operands, .. } => {
                operands.iter().fold(bit(*op), |ops, operand| ops | operand.ops())
            }
        }
    }

    /// Adds the instance for `substitution`. Returns its class; `None` if a variable has none.
    pub(super) fn instantiate(
        &self,
        terms: &mut Terms,
        substitution: &Substitution<Id>,
    ) -> Option<Id> {
        match self {
            Pattern::Variable(name) => {
                let id = substitution.iter().find(|(letter, _)| letter == name)?.1;
                Some(terms.find(id))
            }
            Pattern::Number(value) => Some(terms.add(Term::constant(*value))),
            Pattern::Apply { op, operands, .. } => {
                let mut ids = [Id::from(0); MAX_ARITY];
                for (id, operand) in ids.iter_mut().zip(operands) {
                    *id = operand.instantiate(terms, substitution)?;
                }
                // The last addition may have united classes.
                let ids = ids.map(|id| terms.find(id));
                Some(terms.add(Term::apply(*op, &ids[..op.arity()])))
            }
        }
    }
}

/// The values of the variables of a pattern.
pub(super) type Substitution<V> = SmallVec<[(char, V); 4]>;

/// A set of values in which patterns are searched.
pub(super) trait TermSource {
    /// A value; equal values have the same id.
    type Value: Copy + PartialEq;

    /// The primitives that `value` is a result of, one bit each, and [`CONSTANT`].
    fn has(&self, value: Self::Value) -> OpSet;

    /// The union of [`has`](Self::has) of all operands of `value`.
    fn has_below(&self, value: Self::Value) -> OpSet;

    fn constant(&self, value: Self::Value) -> Option<f64>;

    /// Calls `each` with the operands of each application of `op` that gives `value`.
    fn applications(&self, value: Self::Value, op: Op, each: &mut impl FnMut(&[Self::Value]));
}

/// The classes of a rebuilt e-graph by index, since egg looks each up in a map.
pub(super) struct Classes<'a>(Vec<Class<'a>>);

#[derive(Clone, Copy, Default)]
struct Class<'a> {
    terms: &'a [Term],
    constant: Option<u64>,
    has: OpSet,
    has_below: OpSet,
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

impl TermSource for Classes<'_> {
    type Value = Id;

    fn has(&self, value: Id) -> OpSet {
        self.0[usize::from(value)].has
    }

    fn has_below(&self, value: Id) -> OpSet {
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

impl TermSource for Graph {
    type Value = Node;

    fn has(&self, value: Node) -> OpSet {
        match self.nodes[value].def {
            Def::Apply(op, _) => bit(op),
            Def::Const(_) => CONSTANT,
            _ => 0,
        }
    }

    fn has_below(&self, value: Node) -> OpSet {
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

/// Calls `on_match` for each substitution by which the root primitive of `pattern`, applied to
/// `operands`, is an instance of it. Operands of sums and products are tried in both orders.
pub(super) fn search<P: TermSource>(
    source: &P,
    operands: &[P::Value],
    pattern: &Pattern,
    on_match: &mut impl FnMut(&Substitution<P::Value>),
) {
    let Pattern::Apply { operands: patterns, swaps, .. } = pattern else { return };
    let (goals, substitution) = (SmallVec::new(), SmallVec::new());
    Search { source, goals, substitution, on_match }.operands(patterns, *swaps, operands);
}

/// A search in progress.
struct Search<'a, P: TermSource, F> {
    source: &'a P,
    /// The pairs that are to be matched yet.
    goals: SmallVec<[(&'a Pattern, P::Value); 8]>,
    substitution: Substitution<P::Value>,
    on_match: &'a mut F,
}

impl<'a, P: TermSource, F: FnMut(&Substitution<P::Value>)> Search<'a, P, F> {
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
        // The filters end most searches here.
        if !all.clone().all(|(operand, value)| self.may_match(operand, value)) {
            return;
        }
        let (goals, substitution) = (self.goals.len(), self.substitution.len());
        if all.clone().all(|(operand, value)| self.bind(operand, value)) {
            // A stack, so that the first operand is matched first.
            for (operand, value) in all.rev() {
                if matches!(operand, Pattern::Apply { .. }) {
                    self.goals.push((operand, value));
                }
            }
            self.run();
        }
        self.goals.truncate(goals);
        self.substitution.truncate(substitution);
    }

    /// Binds `pattern` to `value` if it is a variable. Returns false if it is bound to another
    /// value.
    fn bind(&mut self, pattern: &Pattern, value: P::Value) -> bool {
        let Pattern::Variable(name) = pattern else { return true };
        match self.substitution.iter().find(|(letter, _)| letter == name) {
            Some(&(_, same)) => same == value,
            None => {
                self.substitution.push((*name, value));
                true
            }
        }
    }

    fn may_match(&self, pattern: &Pattern, value: P::Value) -> bool {
        if let Pattern::Number(number) = pattern {
            return self.source.constant(value).map(f64::to_bits) == Some(number.to_bits());
        }
        let operand_ops = pattern.required_below();
        pattern.required() & !self.source.has(value) == 0
            && (operand_ops == 0 || operand_ops & !self.source.has_below(value) == 0)
    }

    /// Matches the goals, which are applications, and restores them.
    fn run(&mut self) {
        let Some((pattern, value)) = self.goals.pop() else {
            (self.on_match)(&self.substitution);
            return;
        };
        if let Pattern::Apply { op, operands, swaps, .. } = pattern {
            let source = self.source;
            source.applications(value, *op, &mut |values| self.operands(operands, *swaps, values));
        }
        self.goals.push((pattern, value));
    }
}
