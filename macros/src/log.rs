//! The log of a function: the uses of its variables in text order, and the variables carried to
//! each point where paths join.

use core::ops::Range;

use proc_macro2::Ident;
use syn::Member;

use crate::binding::Binding;
use crate::captures::{LongBorrow, Mention};
use crate::flow_graph::{FlowGraph, Location};
use crate::uniform::{LoopText, Update};

/// A variable: its index in [`Log::bindings`].
pub type Variable = usize;

/// Code that may not run, such as an arm of an `if` or `match`, or the body of a loop or closure.
/// If nothing jumps, it runs as a whole. Its index in [`Log::branches`]; 0 is the function.
pub type Branch = usize;

/// A projection of a variable: a field path, or an element of it.
#[derive(Clone, Default, PartialEq)]
pub struct Projection {
    pub fields: Vec<Member>,
    pub element: Option<Element>,
}

/// An index that does not change.
#[derive(Clone, PartialEq)]
pub enum Element {
    Variable(Variable),
    Number(usize),
}

impl Projection {
    /// Tests whether it is the whole variable.
    pub fn is_whole(&self) -> bool {
        self.fields.is_empty() && self.element.is_none()
    }

    /// Tests whether `inner` lies in this projection.
    pub fn covers(&self, part: &Projection) -> bool {
        self == part || (self.element.is_none() && part.fields.starts_with(&self.fields))
    }
}

/// A use of a variable, or an event that concerns none.
#[derive(PartialEq)]
pub enum Kind {
    /// A region may begin.
    Start,
    /// Its value is read.
    Read,
    /// Its projection is accessible; unless its type is known to be plain, something may change
    /// through it.
    Mention(Projection),
    /// A new value is assigned to the whole.
    Assign,
    /// This projection, or something behind it, may change; with `true`, a reference in it may also
    /// get another target.
    Change(bool, Projection),
    /// Passed to code that may change what is behind it, if it or one of these fields is a mutable
    /// reference.
    Lend(Vec<Member>),
    /// A reference into it is stored in this variable.
    Alias(Variable),
    /// Method call number `n` on it or a projection, with the name of a method that changes
    /// nothing.
    Method(usize),
    /// A jump.
    Jump,
    /// An observation of state that is not handed over, such as an address.
    Unseen,
    /// Something may change through a variable of which nothing is known: its index in
    /// [`Log::unknown`].
    Unknown(usize),
}

/// The target of a jump.
#[derive(Clone, Copy, PartialEq)]
pub enum JumpTarget {
    /// The end of the loop with this number.
    Loop(usize),
    /// The end of the function.
    Function,
    /// The next iteration of the loop with this number.
    Next(usize),
    /// Not known.
    Unknown,
}

pub struct Entry {
    /// The variable that is used.
    pub variable: Option<Variable>,
    pub kind: Kind,
    /// The innermost branch around it.
    pub branch: Branch,
}

/// The role of a point.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Join,
    Head,
    /// The end of the function, or a `return`.
    Exit,
}

/// A point where paths join.
pub struct Point {
    pub role: Role,
    /// The range of the log with the region's code.
    pub start: usize,
    pub end: usize,
    /// The positions in the log where enclosing loops begin.
    pub loops: Vec<usize>,
    pub branch: Branch,
    /// The variables in scope, in order of declaration.
    pub visible: Vec<Variable>,
    /// Its location.
    pub location: Location,
    /// True if the region's value is carried.
    pub value: bool,
    /// The local that keeps the state of the items of a loop.
    pub memory: Option<Ident>,
    /// The variables that the region's value may borrow from.
    pub lent: Vec<Variable>,
    /// The point whose mutators apply, by index.
    pub mutators_of: usize,
    /// The tracked variable to which the region's value is assigned.
    pub target: Option<Variable>,
}

/// A carried variable.
pub struct Carried {
    pub variable: Variable,
    /// The projection that may have changed.
    pub projection: Projection,
    pub assigned: bool,
    /// Not readable: only its name is handed over.
    pub opaque: bool,
}

/// Adds a changed projection to a set of disjoint ones; with each, whether it was assigned.
pub fn add_change(
    changes: &mut Vec<(Projection, bool)>,
    projection: Projection,
    mut assigned: bool,
) {
    if let Some((_, known)) = changes.iter_mut().find(|(whole, _)| whole.covers(&projection)) {
        *known |= assigned;
        return;
    }
    changes.retain(|(part, part_assigned)| {
        let is_part = projection.covers(part);
        assigned |= is_part && *part_assigned;
        !is_part
    });
    changes.push((projection, assigned));
}

/// Replaces an element and a field of one projection by the whole projection: only its type knows
/// how they overlap.
pub fn join_overlapping(changes: &mut Vec<(Projection, bool)>) {
    let is_inside = |part: &Projection, whole: &Projection| {
        part.fields.len() > whole.fields.len() && part.fields.starts_with(&whole.fields)
    };
    let mixed = changes.iter().find(|(projection, _)| {
        projection.element.is_some() && changes.iter().any(|(part, _)| is_inside(part, projection))
    });
    if let Some(fields) = mixed.map(|(projection, _)| projection.fields.clone()) {
        add_change(changes, Projection { fields, element: None }, false);
        join_overlapping(changes);
    }
}

#[derive(Default)]
pub struct Log {
    pub bindings: Vec<Binding>,
    pub entries: Vec<Entry>,
    /// The positions where regions may begin, in order, with their locations.
    pub starts: Vec<(usize, Location)>,
    pub flow: FlowGraph,
    pub points: Vec<Point>,
    /// The parent of each branch but the function.
    pub branches: Vec<Branch>,
    /// The closures: the variable, and the range of the log with the closure's code.
    pub closures: Vec<(Variable, usize, usize)>,
    /// The number of [`Kind::Method`]s.
    pub methods: usize,
    pub mentions: Vec<Mention>,
    pub long_borrows: Vec<LongBorrow>,
    /// Names of variables that macros may have declared, with the positions in the log.
    pub unknown: Vec<(Ident, usize)>,
    /// The jumps, with their positions in the log.
    pub jumps: Vec<(usize, JumpTarget)>,
    /// For each loop the point at its end, once known.
    pub loops: Vec<Option<usize>>,
    /// The text of each loop.
    pub loop_texts: Vec<LoopText>,
    /// The changes of tracked variables.
    pub updates: Vec<Update>,
    /// True if macros are defined inside, which may contain any code.
    pub has_macros: bool,
    /// True if the function may return references to its arguments.
    pub lends_out: bool,
    index: Index,
}

/// An index of a complete log, in order.
#[derive(Default)]
struct Index {
    /// For each variable its positions in [`Log::entries`].
    entries: Vec<Vec<usize>>,
    /// For each variable its positions in [`Log::mentions`].
    mentions: Vec<Vec<usize>>,
    /// The positions of jumps in [`Log::entries`].
    jumps: Vec<usize>,
}

impl Log {
    /// Completes the log: makes the index.
    pub fn complete(&mut self) {
        let empty = vec![Vec::new(); self.bindings.len()];
        let mut index = Index { entries: empty.clone(), mentions: empty, jumps: Vec::new() };
        for (at, entry) in self.entries.iter().enumerate() {
            match entry.variable {
                Some(variable) => index.entries[variable].push(at),
                None if entry.kind == Kind::Jump => index.jumps.push(at),
                None => {}
            }
        }
        for (at, mention) in self.mentions.iter().enumerate() {
            index.mentions[mention.variable].push(at);
        }
        self.index = index;
    }

    /// The entries of `variable` in this range of the log.
    pub fn entries_in(
        &self,
        range: Range<usize>,
        variable: Variable,
    ) -> impl Iterator<Item = &Entry> {
        self.positions_in(range, variable).map(|at| &self.entries[at])
    }

    /// The positions of these entries.
    pub fn positions_in(
        &self,
        range: Range<usize>,
        variable: Variable,
    ) -> impl Iterator<Item = usize> {
        let of = &self.index.entries[variable];
        let from = of.partition_point(|&at| at < range.start);
        of[from..].iter().copied().take_while(move |&at| at < range.end)
    }

    /// The mentions of `variable`, in text order.
    pub fn mentions_of(&self, variable: Variable) -> impl Iterator<Item = &Mention> {
        self.index.mentions[variable].iter().map(|&at| &self.mentions[at])
    }

    /// The variables carried to `point`, in order of declaration.
    pub fn carried(&self, point: &Point) -> Vec<Carried> {
        let mut carried = Vec::new();
        for variable in 0..self.bindings.len() {
            let binding = &self.bindings[variable];
            if !self.is_outside(point, variable) {
                continue;
            }
            let (mut changes, mut alias) = (Vec::new(), false);
            for entry in self.entries_of(point, variable) {
                match &entry.kind {
                    Kind::Change(assigned, projection) => {
                        let mut projection = projection.clone();
                        projection.element =
                            projection.element.filter(|index| self.is_fixed(point, index));
                        add_change(&mut changes, projection, *assigned);
                    }
                    Kind::Assign => add_change(&mut changes, Projection::default(), true),
                    Kind::Lend(fields) if binding.is_reference() => {
                        let projection = Projection { fields: fields.clone(), element: None };
                        add_change(&mut changes, projection, false);
                    }
                    // No holder that is declared in the region is alive any more.
                    Kind::Alias(holder) => alias |= self.bindings[*holder].at < point.start,
                    Kind::Lend(_)
                    | Kind::Start
                    | Kind::Read
                    | Kind::Mention(_)
                    | Kind::Method(_)
                    | Kind::Unseen
                    | Kind::Unknown(_)
                    | Kind::Jump => {}
                }
            }
            // Disjoint projections, of which only live ones are carried.
            join_overlapping(&mut changes);
            self.join_moved(point, variable, &mut changes);
            // Something else may refer to its target.
            let no_access = !binding.mutable && !binding.is_deferred() && !binding.is_reference();
            let mut uncertain = false;
            if !changes.is_empty() && !no_access {
                match self.is_needed(point, variable) {
                    true => uncertain = self.retain_used(point, variable, &mut changes),
                    false => changes.clear(),
                }
            }
            if !changes.is_empty() {
                let hidden = !point.visible.contains(&variable);
                let kept = point.role == Role::Exit && self.lends_out;
                let lent = kept || point.lent.contains(&variable);
                let unknown = binding.opaque || binding.is_closure() || alias || uncertain;
                let opaque = unknown || hidden || lent || no_access;
                if opaque {
                    let assigned = changes.iter().any(|(_, assigned)| *assigned);
                    changes = vec![(Projection::default(), assigned)];
                }
                carried.extend(changes.into_iter().map(|(projection, assigned)| Carried {
                    variable,
                    projection,
                    assigned,
                    opaque,
                }));
            }
        }
        carried
    }

    /// Merges a projection that may have been moved out before the region of `point` into an
    /// enclosing one that the region names: the enclosing one cannot be borrowed where the region
    /// is entered.
    fn join_moved(&self, point: &Point, variable: Variable, changes: &mut Vec<(Projection, bool)>) {
        if self.bindings[variable].is_reference() {
            return;
        }
        for entry in self.entries_of(point, variable) {
            let Kind::Mention(Projection { fields, .. }) = &entry.kind else { continue };
            let is_moved = |(part, assigned): &(Projection, bool)| {
                *assigned
                    && part.fields.len() > fields.len()
                    && part.fields.starts_with(fields)
                    && !self.keeps_value(point, variable, &part.fields)
            };
            if changes.iter().any(is_moved) {
                add_change(changes, Projection { fields: fields.clone(), element: None }, false);
            }
        }
    }

    /// Tests whether an index can be named at `point` with the value that it has in the region.
    pub fn is_fixed(&self, point: &Point, index: &Element) -> bool {
        let Element::Variable(variable) = *index else { return true };
        let binding = &self.bindings[variable];
        match point.role {
            // All exits have to carry the same.
            Role::Exit => {
                let same = |other: &&Binding| other.name == binding.name;
                binding.is_parameter() && self.bindings.iter().filter(same).count() == 1
            }
            Role::Join | Role::Head => {
                binding.at < point.start && point.visible.contains(&variable)
            }
        }
    }

    /// Tests whether a jump may leave a region inside the one that ends at `point`.
    pub fn jumps(&self, point: &Point) -> bool {
        match point.role {
            Role::Exit => self.has_jump(0..self.entries.len()),
            Role::Join | Role::Head => self.has_jump(point.start..point.end.max(point.start)),
        }
    }

    /// The variables of unknown type, declared before the region of `point`, through which
    /// something may change in it; each once.
    pub fn unknown(&self, point: &Point) -> Vec<&Ident> {
        let mut names = Vec::new();
        // At its end a function has its parameters only, which are known.
        let range = if point.role == Role::Exit { 0..0 } else { point.start..point.end };
        for entry in &self.entries[range] {
            let Kind::Unknown(index) = entry.kind else { continue };
            let (name, at) = &self.unknown[index];
            if *at < point.start && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Tests whether there is a jump in this range of the log.
    pub fn has_jump(&self, range: Range<usize>) -> bool {
        {
            let from = self.index.jumps.partition_point(|&at| at < range.start);
            self.index.jumps.get(from).is_some_and(|&at| at < range.end)
        }
    }

    /// Tests whether `inner` lies in `outer`. If so, code of `outer` that follows in the text runs
    /// after `inner`, unless something jumps.
    pub fn encloses(&self, outer: Branch, inner: Branch) -> bool {
        let mut branch = inner;
        while branch > outer {
            branch = self.branches.get(branch - 1).copied().unwrap_or_default();
        }
        branch == outer
    }

    /// Tests whether the use at `at` in `branch` comes before all other uses of its variable in the
    /// region of `point`.
    pub fn comes_first(&self, point: &Point, at: usize, branch: Branch) -> bool {
        self.encloses(branch, point.branch) && !self.has_jump(point.start..at)
    }

    pub fn entries_of(&self, point: &Point, variable: Variable) -> impl Iterator<Item = &Entry> {
        self.entries_in(point.start..point.end, variable)
    }

    /// Tests whether `variable` was declared before the region of `point`.
    pub fn is_outside(&self, point: &Point, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        match point.role {
            Role::Exit => binding.is_parameter(),
            Role::Join | Role::Head => {
                binding.at < point.start
                    && (binding.opaque
                        || binding.is_parameter()
                        || point.visible.contains(&variable))
            }
        }
    }
}
