//! Values: which variables that were declared without one may have got it, on any
//! way to where the walk is.
//!
//! What no way has given a value has none, so it is not in use there, and nothing
//! of it can be carried. Back to the head of a loop leads no way: what has no value
//! in the first iteration has surely none that may be used in others.

use syn::Lifetime;

use crate::log::Variable;

/// The variables that may have got a value; `None` where control does not get.
pub type Assigned = Option<Vec<Variable>>;

/// A loop or a block with a label around the expression at hand.
#[derive(Default)]
pub struct Exit {
    label: Option<Lifetime>,
    is_loop: bool,
    /// How `break` leaves it, on any way.
    pub left: Assigned,
    /// How `continue` goes on, on any way.
    pub next: Assigned,
}

pub struct Values {
    here: Assigned,
    exits: Vec<Exit>,
}

impl Default for Values {
    fn default() -> Self {
        Values { here: Some(Vec::new()), exits: Vec::new() }
    }
}

/// What there is where two ways meet.
fn meet(to: &mut Assigned, from: Assigned) {
    match (to.as_mut(), from) {
        (Some(to), Some(from)) => {
            for variable in from {
                if !to.contains(&variable) {
                    to.push(variable);
                }
            }
        }
        (None, from) => *to = from,
        (Some(_), None) => {}
    }
}

impl Values {
    pub fn here(&self) -> Assigned {
        self.here.clone()
    }

    /// `variable` gets a value.
    pub fn assign(&mut self, variable: Variable) {
        if let Some(here) = &mut self.here
            && !here.contains(&variable)
        {
            here.push(variable);
        }
    }

    /// The walk goes on elsewhere. Returns what there was before.
    pub fn go(&mut self, to: Assigned) -> Assigned {
        core::mem::replace(&mut self.here, to)
    }

    /// Another way leads here.
    pub fn meet(&mut self, way: Assigned) {
        meet(&mut self.here, way);
    }

    /// A loop begins, or a block with a label.
    pub fn enter(&mut self, label: Option<Lifetime>, is_loop: bool) {
        self.exits.push(Exit { label, is_loop, ..Exit::default() });
    }

    /// Its text ends.
    pub fn leave(&mut self) -> Exit {
        self.exits.pop().unwrap_or_default()
    }

    /// What `continue` has jumped over in the innermost loop meets what comes next.
    pub fn goes_on(&mut self) {
        let next = self.exits.last_mut().and_then(|exit| exit.next.take());
        self.meet(next);
    }

    /// `break`.
    pub fn break_out(&mut self, label: Option<&Lifetime>) {
        let here = self.go(None);
        if let Some(exit) = self.target(label) {
            meet(&mut exit.left, here);
        }
    }

    /// `continue`.
    pub fn repeat(&mut self, label: Option<&Lifetime>) {
        let here = self.go(None);
        if let Some(exit) = self.target(label) {
            meet(&mut exit.next, here);
        }
    }

    fn target(&mut self, label: Option<&Lifetime>) -> Option<&mut Exit> {
        self.exits.iter_mut().rev().find(|exit| match label {
            Some(label) => exit.label.as_ref() == Some(label),
            None => exit.is_loop,
        })
    }
}
