//! What a function does to its variables, in the order of its text, and what
//! follows from it for a point where ways meet.

use core::ops::Range;

use proc_macro2::Ident;
use syn::Member;

use crate::captures::{Keep, Mention};
use crate::ways::{Place, Ways};

/// A variable: its index in [`Log::bindings`].
pub type Variable = usize;

/// Code that runs or does not, as a whole as far as nothing jumps out of it: a
/// side of an `if`, an arm, the body of a loop or of a closure. Its index in
/// [`Log::branches`]; 0 is the function.
pub type Branch = usize;

/// How a variable was bound.
pub struct Binding {
    pub name: Ident,
    /// Declared with `mut`.
    pub mutable: bool,
    /// Known to be a mutable reference.
    pub reference: bool,
    /// Known not to be one.
    pub plain: bool,
    /// Declared without a value.
    pub deferred: bool,
    /// Named in the attribute's `opaque`.
    pub opaque: bool,
    /// A parameter.
    pub parameter: bool,
    /// Bound by the pattern of the `for` loop whose region ends at this point.
    pub item: bool,
    /// Holds a closure.
    pub closure: bool,
    /// Its type is known where it is declared.
    pub known: bool,
    /// Its value is copied when it is used.
    pub copied: bool,
    /// It surely holds a reference.
    pub holder: bool,
    /// It is surely a number.
    pub number: bool,
    /// The variables that it may have borrowed from, as far as the text shows.
    pub lenders: Vec<Variable>,
    /// The position in the log.
    pub at: usize,
}

/// A part of a variable: an element of a field, or all of the field.
#[derive(Clone, Default, PartialEq)]
pub struct Way {
    pub fields: Vec<Member>,
    pub element: Option<Element>,
}

/// An index that does not change.
#[derive(Clone, PartialEq)]
pub enum Element {
    Variable(Variable),
    Number(usize),
}

impl Way {
    /// Whether it is all of the variable.
    pub fn is_whole(&self) -> bool {
        self.fields.is_empty() && self.element.is_none()
    }

    /// Whether `part` is part of this.
    pub fn covers(&self, part: &Way) -> bool {
        self == part || (self.element.is_none() && part.fields.starts_with(&self.fields))
    }
}

/// What happens to a variable.
#[derive(PartialEq)]
pub enum Kind {
    /// Its value is needed.
    Read,
    /// It, or the part of it on this way, is at hand: if its type does not say
    /// that it is plain, anything may have changed.
    Mention(Way),
    /// It gets a new value as a whole.
    Assign,
    /// Something in it or behind it may change, in this part of it; with `true`,
    /// also where a reference in it leads.
    Change(bool, Way),
    /// If it, or one of its fields on this way, is a mutable reference, what is
    /// behind may change.
    Lend(Vec<Member>),
    /// A reference into it is kept in this variable.
    Alias(Variable),
    /// A method of this number is called on it, or on a part, whose name is that
    /// of one that changes nothing.
    Method(usize),
    /// Control may go elsewhere.
    Jump,
    /// Something matters that is not handed over.
    Unseen,
    /// By a variable of which nothing is known something may change: its index in
    /// [`Log::unknown`].
    Unknown(usize),
}

/// Where a jump leads.
#[derive(Clone, Copy, PartialEq)]
pub enum Goal {
    /// To the end of the loop with this number.
    Loop(usize),
    /// To the end of the function.
    Function,
    /// To the next iteration of the loop with this number.
    Next(usize),
    /// That is not known.
    Elsewhere,
}

pub struct Entry {
    pub variable: Variable,
    pub kind: Kind,
    /// The innermost branch that it is in.
    pub branch: Branch,
}

/// Which point of a region something is carried to.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Join,
    Head,
    /// The end of the function, or a `return`.
    Exit,
}

/// A point where ways meet.
pub struct Point {
    pub role: Role,
    /// The part of the log whose changes count.
    pub start: usize,
    pub end: usize,
    /// Where enclosing loops begin.
    pub loops: Vec<usize>,
    pub branch: Branch,
    /// The variables that can be named, in order of declaration.
    pub visible: Vec<Variable>,
    /// Where control is there.
    pub place: Place,
    /// Whether the region's value is carried.
    pub value: bool,
    /// Where what the items of a loop hold is remembered.
    pub memory: Option<Ident>,
    /// The variables that the region's value may borrow from.
    pub lent: Vec<Variable>,
    /// The point of which the suspects are, by index.
    pub suspects_of: usize,
}

/// A variable that is carried.
pub struct Carried {
    pub variable: Variable,
    /// What of it may have changed.
    pub way: Way,
    pub assigned: bool,
    /// It is only named.
    pub opaque: bool,
}

/// Adds a change to others, of which none is part of another; with each,
/// whether something was assigned.
pub fn add_change(changes: &mut Vec<(Way, bool)>, way: Way, mut assigned: bool) {
    if let Some((_, known)) = changes.iter_mut().find(|(whole, _)| whole.covers(&way)) {
        *known |= assigned;
        return;
    }
    changes.retain(|(part, part_assigned)| {
        let is_part = way.covers(part);
        assigned |= is_part && *part_assigned;
        !is_part
    });
    changes.push((way, assigned));
}

/// Puts an element and a field of one place together: how they are related is
/// known to its type alone.
pub fn join_parts(changes: &mut Vec<(Way, bool)>) {
    let is_inside = |part: &Way, whole: &Way| {
        part.fields.len() > whole.fields.len() && part.fields.starts_with(&whole.fields)
    };
    let mixed = changes.iter().find(|(way, _)| {
        way.element.is_some() && changes.iter().any(|(part, _)| is_inside(part, way))
    });
    if let Some(fields) = mixed.map(|(way, _)| way.fields.clone()) {
        add_change(changes, Way { fields, element: None }, false);
        join_parts(changes);
    }
}

#[derive(Default)]
pub struct Log {
    pub bindings: Vec<Binding>,
    pub entries: Vec<Entry>,
    /// Where regions may begin, in order: the position in the log, and where control is.
    pub starts: Vec<(usize, Place)>,
    pub ways: Ways,
    pub points: Vec<Point>,
    /// For each branch but the function the one that it is in.
    pub branches: Vec<Branch>,
    /// The closures: the variable, and the part of the log that is inside.
    pub closures: Vec<(Variable, usize, usize)>,
    /// The number of [`Kind::Method`]s.
    pub methods: usize,
    pub mentions: Vec<Mention>,
    pub keeps: Vec<Keep>,
    /// Names of variables that macros may have declared, and the positions in the
    /// log where.
    pub unknown: Vec<(Ident, usize)>,
    /// The jumps, with their positions in the log.
    pub jumps: Vec<(usize, Goal)>,
    /// For each loop the point at which it ends, once that is known.
    pub loops: Vec<Option<usize>>,
    /// Whether macros are defined inside, which may do anything.
    pub has_macros: bool,
    /// Whether the function may return references to what it was given.
    pub lends_out: bool,
    index: Index,
}

/// Where things are in a complete log, in order.
#[derive(Default)]
struct Index {
    /// For each variable, in [`Log::entries`].
    entries: Vec<Vec<usize>>,
    /// For each variable, in [`Log::mentions`].
    mentions: Vec<Vec<usize>>,
    /// The jumps, in [`Log::entries`].
    jumps: Vec<usize>,
}

impl Log {
    /// The log is complete: what was found can be asked for.
    pub fn complete(&mut self) {
        let empty = vec![Vec::new(); self.bindings.len()];
        let mut index = Index { entries: empty.clone(), mentions: empty, jumps: Vec::new() };
        for (at, entry) in self.entries.iter().enumerate() {
            match index.entries.get_mut(entry.variable) {
                Some(entries) => entries.push(at),
                None if entry.kind == Kind::Jump => index.jumps.push(at),
                None => {}
            }
        }
        for (at, mention) in self.mentions.iter().enumerate() {
            index.mentions[mention.variable].push(at);
        }
        self.index = index;
    }

    /// The entries of `variable` in this part of the log.
    pub fn entries_in(
        &self,
        range: Range<usize>,
        variable: Variable,
    ) -> impl Iterator<Item = &Entry> {
        self.positions_in(range, variable).map(|at| &self.entries[at])
    }

    /// Their positions.
    pub fn positions_in(
        &self,
        range: Range<usize>,
        variable: Variable,
    ) -> impl Iterator<Item = usize> {
        let of = &self.index.entries[variable];
        let from = of.partition_point(|&at| at < range.start);
        of[from..].iter().copied().take_while(move |&at| at < range.end)
    }

    /// Where `variable` is named, in the order of the text.
    pub fn mentions_of(&self, variable: Variable) -> impl Iterator<Item = &Mention> {
        self.index.mentions[variable].iter().map(|&at| &self.mentions[at])
    }

    /// What is carried to `point`, in order of declaration.
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
                    Kind::Change(assigned, way) => {
                        let mut way = way.clone();
                        way.element = way.element.filter(|index| self.is_fixed(point, index));
                        add_change(&mut changes, way, *assigned);
                    }
                    Kind::Assign => add_change(&mut changes, Way::default(), true),
                    Kind::Lend(fields) if binding.reference => {
                        let way = Way { fields: fields.clone(), element: None };
                        add_change(&mut changes, way, false);
                    }
                    // Nothing that is declared in the region has it any more.
                    Kind::Alias(holder) => alias |= self.bindings[*holder].at < point.start,
                    Kind::Lend(_)
                    | Kind::Read
                    | Kind::Mention(_)
                    | Kind::Method(_)
                    | Kind::Unseen
                    | Kind::Unknown(_)
                    | Kind::Jump => {}
                }
            }
            join_parts(&mut changes);
            self.join_moved(point, variable, &mut changes);
            // What it leads to may be in use when it is not itself.
            let no_access = !binding.mutable && !binding.deferred && !binding.reference;
            let mut doubtful = false;
            if !changes.is_empty() && !no_access {
                match self.is_needed(point, variable) {
                    true => doubtful = self.leave_used(point, variable, &mut changes),
                    false => changes.clear(),
                }
            }
            if !changes.is_empty() {
                let hidden = !point.visible.contains(&variable);
                let kept = point.role == Role::Exit && self.lends_out;
                let lent = kept || point.lent.contains(&variable);
                let unknown = binding.opaque || binding.closure || alias || doubtful;
                let opaque = unknown || hidden || lent || no_access;
                if opaque {
                    let assigned = changes.iter().any(|(_, assigned)| *assigned);
                    changes = vec![(Way::default(), assigned)];
                }
                carried.extend(changes.into_iter().map(|(way, assigned)| Carried {
                    variable,
                    way,
                    assigned,
                    opaque,
                }));
            }
        }
        carried
    }

    /// Puts a part that may have no value before the region of `point` together
    /// with what it is part of and is named there: the whole cannot be looked at
    /// where the region is entered.
    fn join_moved(&self, point: &Point, variable: Variable, changes: &mut Vec<(Way, bool)>) {
        if self.bindings[variable].reference {
            return;
        }
        for entry in self.entries_of(point, variable) {
            let Kind::Mention(Way { fields, .. }) = &entry.kind else { continue };
            let is_moved = |(part, assigned): &(Way, bool)| {
                *assigned
                    && part.fields.len() > fields.len()
                    && part.fields.starts_with(fields)
                    && !self.stays(point, variable, &part.fields)
            };
            if changes.iter().any(is_moved) {
                add_change(changes, Way { fields: fields.clone(), element: None }, false);
            }
        }
    }

    /// Whether an index can be named at `point`, and says the same as in its region.
    pub fn is_fixed(&self, point: &Point, index: &Element) -> bool {
        let Element::Variable(variable) = *index else { return true };
        let binding = &self.bindings[variable];
        match point.role {
            // At every exit the same has to be carried.
            Role::Exit => {
                let same = |other: &&Binding| other.name == binding.name;
                binding.parameter && self.bindings.iter().filter(same).count() == 1
            }
            Role::Join | Role::Head => {
                binding.at < point.start && point.visible.contains(&variable)
            }
        }
    }

    /// Whether a jump may leave something inside the region that ends at `point`.
    pub fn jumps(&self, point: &Point) -> bool {
        match point.role {
            Role::Exit => self.has_jump(0..self.entries.len()),
            Role::Join | Role::Head => self.has_jump(point.start..point.end.max(point.start)),
        }
    }

    /// The variables declared before the region of `point` of which nothing is known
    /// and by which something may change there, each once.
    pub fn unknown(&self, point: &Point) -> Vec<&Ident> {
        let mut names = Vec::new();
        // What a function leaves are its parameters, which are known.
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

    /// Whether there is a jump in this part of the log.
    pub fn has_jump(&self, range: Range<usize>) -> bool {
        {
            let from = self.index.jumps.partition_point(|&at| at < range.start);
            self.index.jumps.get(from).is_some_and(|&at| at < range.end)
        }
    }

    /// Whether `inner` is `outer` or inside. If it is, what comes later in the text
    /// of `outer` itself surely runs after `inner` if nothing jumps.
    pub fn encloses(&self, outer: Branch, inner: Branch) -> bool {
        let mut branch = inner;
        while branch > outer {
            branch = self.branches.get(branch - 1).copied().unwrap_or_default();
        }
        branch == outer
    }

    /// Whether what happens at `at` in `branch` surely comes before all else that
    /// is done to its variable in the region of `point`.
    pub fn comes_first(&self, point: &Point, at: usize, branch: Branch) -> bool {
        self.encloses(branch, point.branch) && !self.has_jump(point.start..at)
    }

    pub fn entries_of(&self, point: &Point, variable: Variable) -> impl Iterator<Item = &Entry> {
        self.entries_in(point.start..point.end, variable)
    }

    /// Whether `variable` was declared before the region of `point`.
    pub fn is_outside(&self, point: &Point, variable: Variable) -> bool {
        let binding = &self.bindings[variable];
        match point.role {
            Role::Exit => binding.parameter,
            Role::Join | Role::Head => {
                binding.at < point.start
                    && (binding.opaque || binding.parameter || point.visible.contains(&variable))
            }
        }
    }
}
