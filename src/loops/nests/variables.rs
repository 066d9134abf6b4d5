//! SSA construction: which value a variable has at each point of the tree of loops.

use hashbrown::HashSet;

use super::operands::{InitialValue, Leaf, Variable};
use super::tree::{Part, Tree};

/// The value of a variable at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Statement(usize),
    /// That at the beginning of an iteration of this loop: an entry φ.
    Entry(usize),
    /// That after this loop: a φ.
    Exit(usize),
    /// That before all assignments.
    First(Option<Leaf>),
    /// This value on entry to a loop.
    Initial(usize),
}

/// The variables that need φs, by their numbers.
pub(super) struct Phis {
    /// For each loop those with an entry φ.
    pub(super) entries: Vec<Vec<usize>>,
    /// For each loop those with a φ after it.
    pub(super) exits: Vec<Vec<usize>>,
    known: HashSet<(usize, usize, bool)>,
}

/// The variables of a tree.
pub(super) struct Variables<'a> {
    pub(super) tree: &'a Tree,
    pub(super) variables: &'a [Variable],
    pub(super) initials: &'a [InitialValue],
}

impl Phis {
    /// No φs of so many loops.
    pub(super) fn of(loops: usize) -> Self {
        let none = || vec![Vec::new(); loops];
        Phis { entries: none(), exits: none(), known: HashSet::new() }
    }
}

impl Variables<'_> {
    /// The value of variable `number` before part `end` of the body of `parent`, or of the root.
    pub(super) fn before(&self, number: usize, parent: Option<usize>, end: usize) -> Value {
        for part in self.tree.body(parent)[..end].iter().rev() {
            match *part {
                Part::Statement(statement) => {
                    if self.variables[number].statements.binary_search(&statement).is_ok() {
                        return Value::Statement(statement);
                    }
                }
                Part::Loop(inner) if self.is_assigned_in(number, inner) => {
                    return Value::Exit(inner);
                }
                Part::Loop(_) => {}
            }
        }
        match parent {
            Some(parent) if self.is_assigned_in(number, parent) => Value::Entry(parent),
            Some(parent) => self.before_loop(number, parent),
            None => Value::First(self.variables[number].first),
        }
    }

    /// The value of variable `number` before the loop `at`.
    pub(super) fn before_loop(&self, number: usize, at: usize) -> Value {
        let initial = self.variables[number].initial;
        if let Some(initial) = initial.filter(|&initial| self.initials[initial].entered == at) {
            return Value::Initial(initial);
        }
        let data = &self.tree.loops[at];
        self.before(number, data.around.last().copied(), data.position)
    }

    /// The value of variable `number` at the end of an iteration of `at`.
    pub(super) fn after_iteration(&self, number: usize, at: usize) -> Value {
        self.before(number, Some(at), self.tree.loops[at].body.len())
    }

    fn is_assigned_in(&self, number: usize, at: usize) -> bool {
        let statements = &self.variables[number].statements;
        statements.iter().any(|&statement| self.tree.statements[statement].loops.contains(&at))
    }

    /// Adds the φs for variable `number` if it has this value somewhere.
    pub(super) fn add_phis(&self, phis: &mut Phis, number: usize, value: Value) {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            let (at, is_entry) = match value {
                Value::Entry(at) => (at, true),
                Value::Exit(at) => (at, false),
                Value::Statement(_) | Value::First(_) | Value::Initial(_) => continue,
            };
            if !phis.known.insert((number, at, is_entry)) {
                continue;
            }
            if is_entry {
                phis.entries[at].push(number);
                pending.push(self.before_loop(number, at));
            } else {
                phis.exits[at].push(number);
            }
            pending.push(self.after_iteration(number, at));
        }
    }
}
