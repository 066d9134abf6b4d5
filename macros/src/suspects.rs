//! Suspects: by what something else may change in a region, which is asked of
//! their types.

use syn::Member;

use crate::log::{Carried, Entry, Kind, Log, Point, Role, Variable};

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
            // Before the region it may have no value.
            if self.entries_of(point, variable).next().is_some_and(|e| e.kind == Kind::Assign) {
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
                suspects.push(Suspect { variable, fields: Vec::new(), ask: Ask::Holds });
                continue;
            }
            for entry in self.entries_of(point, variable) {
                let Kind::Lend(fields) = &entry.kind else { continue };
                for length in 0..=fields.len() {
                    let suspect =
                        Suspect { variable, fields: fields[..length].to_vec(), ask: Ask::Reaches };
                    add(&mut suspects, suspect);
                }
            }
        }
        suspects
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
        // If it gets a value first it may have none before the region.
        if self.entries_of(point, variable).next().is_some_and(|e| e.kind == Kind::Assign) {
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
            add(suspects, suspect);
        }
    }

    fn mention(&self, variable: Variable, fields: &[Member]) -> Suspect {
        let binding = &self.bindings[variable];
        if binding.closure {
            return Suspect { variable, fields: Vec::new(), ask: Ask::Captured };
        }
        let ask = match binding.reference && fields.is_empty() {
            true => Ask::HoldsBehind,
            false => Ask::Holds,
        };
        Suspect { variable, fields: fields.to_vec(), ask }
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
            let always = Suspect { variable, fields: Vec::new(), ask: Ask::Always };
            match &entry.kind {
                Kind::Assign | Kind::Change(..) | Kind::Alias => add(&mut suspects, always),
                Kind::Lend(_) if self.bindings[variable].reference => add(&mut suspects, always),
                Kind::Lend(fields) => {
                    for length in 0..=fields.len() {
                        let fields = fields[..length].to_vec();
                        add(&mut suspects, Suspect { variable, fields, ask: Ask::Reaches });
                    }
                }
                Kind::Mention(way) => add(&mut suspects, self.mention(variable, &way.fields)),
                Kind::Read | Kind::Method(_) | Kind::Jump => {}
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
