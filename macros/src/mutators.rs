//! Mutators: variables through which something else may change in a region. Generated code asks
//! their types.

use syn::Member;

use crate::binding::Reference;
use crate::liveness::EntryValue;
use crate::log::{Carried, Entry, Kind, Log, Point, Role, Variable};

/// The question about the type of a mutator.
#[derive(Clone, Copy, PartialEq)]
pub enum Ask {
    /// Is it a mutable reference?
    Reaches,
    /// May it hold one, or a cell?
    Holds,
    /// May its target hold one?
    HoldsBehind,
    /// The answer found where the closure was created.
    Captured,
    /// None: something else certainly changes.
    Always,
}

/// A variable, or a field of it, through which something else may change.
#[derive(PartialEq)]
pub struct Mutator {
    pub variable: Variable,
    pub fields: Vec<Member>,
    pub ask: Ask,
    /// It may have no value where its type is asked.
    pub missing: bool,
}

/// The value of a variable where a region begins.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// It has a value, which is used.
    Used,
    /// It may have no value.
    Missing,
    /// It is certainly assigned before it is used.
    Unused,
}

impl Mutator {
    fn new(variable: Variable, fields: &[Member], ask: Ask) -> Self {
        Mutator { variable, fields: fields.to_vec(), ask, missing: false }
    }

    /// Sets how the type is asked if the variable may have no value; `known` tells that its type is
    /// known.
    fn with(mut self, value: Before, known: bool) -> Self {
        if value == Before::Missing && self.ask != Ask::Captured {
            self.missing = true;
            if !known {
                self.ask = Ask::Always;
            }
        }
        self
    }
}

impl Log {
    /// The method calls in the region of `point` that may be user code.
    pub fn methods(&self, point: &Point) -> Vec<(Variable, usize)> {
        let mut methods = Vec::new();
        for variable in (0..self.bindings.len()).filter(|&v| self.is_outside(point, v)) {
            methods.extend(self.entries_of(point, variable).filter_map(|e| match e.kind {
                Kind::Method(number) => Some((variable, number)),
                _ => None,
            }));
        }
        methods
    }

    /// The mutators of the region of `point`.
    pub fn mutators(&self, point: &Point) -> Vec<Mutator> {
        let mut mutators = Vec::new();
        let carried = self.carried(point);
        for variable in 0..self.bindings.len() {
            let binding = &self.bindings[variable];
            self.add_mentions(point, variable, &carried, &mut mutators);
            if !self.is_outside(point, variable)
                || binding.reference != Reference::Unknown
                || binding.opaque
                || binding.is_deferred()
                || (point.role != Role::Exit && !point.visible.contains(&variable))
            {
                continue;
            }
            let value = self.value_before(point, variable);
            if value == Before::Unused {
                continue;
            }
            let changes = |entry: &Entry| matches!(entry.kind, Kind::Change(..));
            let may_hold = match point.role {
                Role::Exit => binding.mutable && binding.is_parameter(),
                Role::Join => binding.mutable,
                Role::Head => false,
            };
            if may_hold
                && !self.is_needed(point, variable)
                && self.entries_of(point, variable).any(changes)
            {
                let mutator = Mutator::new(variable, &[], Ask::Holds);
                mutators.push(mutator.with(value, binding.known));
                continue;
            }
            for entry in self.entries_of(point, variable) {
                let Kind::Lend(fields) = &entry.kind else { continue };
                for length in 0..=fields.len() {
                    let mutator = Mutator::new(variable, &fields[..length], Ask::Reaches);
                    add(&mut mutators, mutator.with(value, binding.known));
                }
            }
        }
        mutators
    }

    /// The position of the first use of `variable` in the region of `point`.
    fn first_in(&self, point: &Point, variable: Variable) -> Option<usize> {
        self.positions_in(point.start..point.end, variable).next()
    }

    /// Adds what the region of `point` mentions of `variable` and does not carry. A carried
    /// projection says nothing about others.
    fn add_mentions(
        &self,
        point: &Point,
        variable: Variable,
        carried: &[Carried],
        mutators: &mut Vec<Mutator>,
    ) {
        let binding = &self.bindings[variable];
        let visible = point.role == Role::Exit || point.visible.contains(&variable);
        if !self.is_outside(point, variable) || binding.opaque || !visible {
            return;
        }
        let value = self.value_before(point, variable);
        if value == Before::Unused {
            return;
        }
        for entry in self.entries_of(point, variable) {
            let Kind::Mention(projection) = &entry.kind else { continue };
            let covers = |c: &Carried| c.variable == variable && c.projection.covers(projection);
            if carried.iter().any(covers) {
                continue;
            }
            let mut mutator = self.mention(variable, &projection.fields);
            // A borrowed place cannot be borrowed again where the region begins.
            if mutator.ask != Ask::Captured && self.is_borrowed(point, variable, &projection.fields)
            {
                mutator.ask = Ask::Always;
            }
            add(mutators, mutator.with(value, binding.known));
        }
    }

    /// The value that `variable` has before the region of `point`.
    fn value_before(&self, point: &Point, variable: Variable) -> Before {
        let Some(first) = self.first_in(point, variable) else { return Before::Unused };
        match self.entry_value(point, variable) {
            EntryValue::Dead => return Before::Unused,
            EntryValue::Unknown => return Before::Missing,
            EntryValue::Present => {}
        }
        let entry = &self.entries[first];
        if entry.kind != Kind::Assign {
            return Before::Used;
        }
        match self.comes_first(point, first, entry.branch) {
            true => Before::Unused,
            false => Before::Missing,
        }
    }

    fn mention(&self, variable: Variable, fields: &[Member]) -> Mutator {
        let binding = &self.bindings[variable];
        if binding.is_closure() {
            return Mutator::new(variable, &[], Ask::Captured);
        }
        let ask = match binding.is_reference() && fields.is_empty() {
            true => Ask::HoldsBehind,
            false => Ask::Holds,
        };
        Mutator::new(variable, fields, ask)
    }

    /// The mutators of a closure with the code in this range of the log.
    pub fn captured(&self, start: usize, end: usize) -> Vec<Mutator> {
        let mut mutators = Vec::new();
        for entry in &self.entries[start..end] {
            let is_outside = |&variable: &Variable| self.bindings[variable].at < start;
            let Some(variable) = entry.variable.filter(is_outside) else { continue };
            let always = Mutator::new(variable, &[], Ask::Always);
            match &entry.kind {
                Kind::Assign | Kind::Change(..) | Kind::Alias(_) => add(&mut mutators, always),
                Kind::Lend(_) if self.bindings[variable].is_reference() => {
                    add(&mut mutators, always)
                }
                Kind::Lend(fields) => {
                    for length in 0..=fields.len() {
                        let mutator = Mutator::new(variable, &fields[..length], Ask::Reaches);
                        add(&mut mutators, mutator);
                    }
                }
                Kind::Mention(projection) => {
                    add(&mut mutators, self.mention(variable, &projection.fields))
                }
                Kind::Start
                | Kind::Read
                | Kind::Method(_)
                | Kind::Jump
                | Kind::Unseen
                | Kind::Unknown(_) => {}
            }
        }
        // A variable assigned in the closure may have no value before it.
        match mutators.iter().position(|mutator| mutator.ask == Ask::Always) {
            Some(index) => vec![mutators.swap_remove(index)],
            None => mutators,
        }
    }
}

fn add(mutators: &mut Vec<Mutator>, mutator: Mutator) {
    if !mutators.contains(&mutator) {
        mutators.push(mutator);
    }
}
