//! Suspects: by what something else may change in a region, which is asked of
//! their types.

use syn::Member;

use crate::log::{Carried, Entry, Kind, Log, Point, Role, Variable};
use crate::needs::Birth;

/// What is asked of the type of a suspect.
#[derive(Clone, Copy, PartialEq)]
pub enum Ask {
    /// Whether it is a mutable reference.
    Reaches,
    /// Whether it may hold one, or a cell.
    Holds,
    /// The same of what is behind it.
    HoldsBehind,
    /// What was found out where the closure was made.
    Captured,
    /// Nothing: it surely changes something else.
    Always,
}

/// A variable, or a field of it, by which something else may change.
#[derive(PartialEq)]
pub struct Suspect {
    pub variable: Variable,
    pub fields: Vec<Member>,
    pub ask: Ask,
    /// It may have no value where it is asked, so only its type can be looked at.
    pub missing: bool,
}

/// What is known of a variable where a region is entered.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// It has a value.
    Used,
    /// It has a value or not.
    Missing,
    /// It surely gets another value before it is used.
    Unused,
}

impl Suspect {
    fn new(variable: Variable, fields: &[Member], ask: Ask) -> Self {
        Suspect { variable, fields: fields.to_vec(), ask, missing: false }
    }

    /// The same where the variable may have no value, and its type is `known` or
    /// not.
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
    /// The methods in the region of `point` that may be the user's.
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

    /// By what something else may change in the region of `point`.
    pub fn suspects(&self, point: &Point) -> Vec<Suspect> {
        let mut suspects = Vec::new();
        let carried = self.carried(point);
        for variable in 0..self.bindings.len() {
            let binding = &self.bindings[variable];
            self.add_mentions(point, variable, &carried, &mut suspects);
            if !self.is_outside(point, variable)
                || binding.reference
                || binding.plain
                || binding.opaque
                || binding.deferred
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
                Role::Exit => binding.mutable && binding.parameter,
                Role::Join => binding.mutable,
                Role::Head => false,
            };
            if may_hold
                && !self.is_needed(point, variable)
                && self.entries_of(point, variable).any(changes)
            {
                let suspect = Suspect::new(variable, &[], Ask::Holds);
                suspects.push(suspect.with(value, binding.known));
                continue;
            }
            for entry in self.entries_of(point, variable) {
                let Kind::Lend(fields) = &entry.kind else { continue };
                for length in 0..=fields.len() {
                    let suspect = Suspect::new(variable, &fields[..length], Ask::Reaches);
                    add(&mut suspects, suspect.with(value, binding.known));
                }
            }
        }
        suspects
    }

    /// Where the region of `point` does something to `variable` first.
    fn first_in(&self, point: &Point, variable: Variable) -> Option<usize> {
        self.positions_in(point.start..point.end, variable).next()
    }

    /// What of `variable` is at hand in the region of `point`, and is not carried.
    /// A part that is carried says nothing of other parts.
    fn add_mentions(
        &self,
        point: &Point,
        variable: Variable,
        carried: &[Carried],
        suspects: &mut Vec<Suspect>,
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
            let Kind::Mention(way) = &entry.kind else { continue };
            let covers = |c: &Carried| c.variable == variable && c.way.covers(way);
            if carried.iter().any(covers) {
                continue;
            }
            let mut suspect = self.mention(variable, &way.fields);
            // What is borrowed cannot be looked at where the region is entered.
            if suspect.ask != Ask::Captured && self.is_kept(point, variable, &way.fields) {
                suspect.ask = Ask::Always;
            }
            add(suspects, suspect.with(value, binding.known));
        }
    }

    /// Whether the value that `variable` has before the region of `point` may be
    /// used inside.
    fn value_before(&self, point: &Point, variable: Variable) -> Before {
        let Some(first) = self.first_in(point, variable) else { return Before::Unused };
        match self.birth(point, variable) {
            Birth::Unborn => return Before::Unused,
            Birth::Unknown => return Before::Missing,
            Birth::Born => {}
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

    fn mention(&self, variable: Variable, fields: &[Member]) -> Suspect {
        let binding = &self.bindings[variable];
        if binding.closure {
            return Suspect::new(variable, &[], Ask::Captured);
        }
        let ask = match binding.reference && fields.is_empty() {
            true => Ask::HoldsBehind,
            false => Ask::Holds,
        };
        Suspect::new(variable, fields, ask)
    }

    /// By what a closure, which is inside this part of the log, may change
    /// something.
    pub fn captured(&self, start: usize, end: usize) -> Vec<Suspect> {
        let mut suspects = Vec::new();
        for entry in &self.entries[start..end] {
            let variable = entry.variable;
            if self.bindings.get(variable).is_none_or(|binding| binding.at >= start) {
                continue;
            }
            let always = Suspect::new(variable, &[], Ask::Always);
            match &entry.kind {
                Kind::Assign | Kind::Change(..) | Kind::Alias(_) => add(&mut suspects, always),
                Kind::Lend(_) if self.bindings[variable].reference => add(&mut suspects, always),
                Kind::Lend(fields) => {
                    for length in 0..=fields.len() {
                        let suspect = Suspect::new(variable, &fields[..length], Ask::Reaches);
                        add(&mut suspects, suspect);
                    }
                }
                Kind::Mention(way) => add(&mut suspects, self.mention(variable, &way.fields)),
                Kind::Read | Kind::Method(_) | Kind::Jump | Kind::Unseen | Kind::Unknown(_) => {}
            }
        }
        // What gets a value inside may have none before.
        match suspects.iter().position(|suspect| suspect.ask == Ask::Always) {
            Some(index) => vec![suspects.swap_remove(index)],
            None => suspects,
        }
    }
}

fn add(suspects: &mut Vec<Suspect>, suspect: Suspect) {
    if !suspects.contains(&suspect) {
        suspects.push(suspect);
    }
}
