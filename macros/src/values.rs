//! Values: which variables that were declared without one have it where the walk is,
//! as far as the compiler may know.
//!
//! What has no value on some way that surely leads here is not in use: otherwise the
//! program would be an error. So nothing of it can be carried, nor has to be. A call
//! may never return, which is not seen; ways with calls count only if there is no
//! other, and then a variable may be taken for one that has a value: the compiler
//! refuses the function (E0381), and to give the variable a value at once helps. Back to the head of a loop leads no way: what has no value in the first
//! iteration has none that may be used in others.

use syn::Lifetime;

use crate::log::Variable;

/// The variables that have a value; `None` where control does not get.
pub type Assigned = Option<Vec<Variable>>;

/// One way or several ways that have met.
#[derive(Clone, Default)]
pub struct Way {
    assigned: Vec<Variable>,
    /// Whether control surely comes this way, if it came where the way parted.
    certain: bool,
}

/// A loop or a block with a label around the expression at hand.
#[derive(Default)]
pub struct Exit {
    label: Option<Lifetime>,
    is_loop: bool,
    /// How `break` leaves it, on any way.
    pub left: Option<Way>,
    /// How `continue` goes on, on any way.
    pub next: Option<Way>,
}

pub struct Values {
    here: Option<Way>,
    exits: Vec<Exit>,
}

impl Default for Values {
    fn default() -> Self {
        Values { here: Some(Way { certain: true, ..Way::default() }), exits: Vec::new() }
    }
}

/// What there is where two ways meet.
fn meet(to: &mut Option<Way>, from: Option<Way>) {
    let Some(from) = from else { return };
    let Some(way) = to else {
        *to = Some(from);
        return;
    };
    match (way.certain, from.certain) {
        (true, true) => way.assigned.retain(|variable| from.assigned.contains(variable)),
        (true, false) => {}
        (false, true) => *way = from,
        (false, false) => add(&mut way.assigned, from.assigned),
    }
}

fn add(to: &mut Vec<Variable>, from: Vec<Variable>) {
    for variable in from {
        if !to.contains(&variable) {
            to.push(variable);
        }
    }
}

impl Values {
    pub fn here(&self) -> Option<Way> {
        self.here.clone()
    }

    pub fn assigned(&self) -> Assigned {
        self.here.as_ref().map(|way| way.assigned.clone())
    }

    /// Ways part here: each of them is this one at first.
    pub fn part(&self) -> Option<Way> {
        self.here.clone().map(|way| Way { certain: true, ..way })
    }

    /// Ways that have parted at `fork` have met.
    pub fn rejoin(&mut self, fork: Option<&Way>) {
        if let Some(here) = &mut self.here {
            here.certain &= fork.is_none_or(|fork| fork.certain);
        }
    }

    /// Control may not get past what is here.
    pub fn doubt(&mut self) {
        if let Some(here) = &mut self.here {
            here.certain = false;
        }
    }

    /// What was walked through since `before` may have run or not.
    pub fn may_have_run(&mut self, before: Option<Way>) {
        let inside = self.go(before);
        if let (Some(here), Some(inside)) = (&mut self.here, inside) {
            add(&mut here.assigned, inside.assigned);
        }
        self.doubt();
    }

    /// `variable` gets a value.
    pub fn assign(&mut self, variable: Variable) {
        if let Some(here) = &mut self.here {
            add(&mut here.assigned, vec![variable]);
        }
    }

    /// The walk goes on elsewhere. Returns what there was before.
    pub fn go(&mut self, to: Option<Way>) -> Option<Way> {
        core::mem::replace(&mut self.here, to)
    }

    /// Another way leads here.
    pub fn meet(&mut self, way: Option<Way>) {
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
        // Where it comes from is not known there.
        self.doubt();
        let here = self.go(None);
        if let Some(exit) = self.target(label) {
            meet(&mut exit.left, here);
        }
    }

    /// `continue`.
    pub fn repeat(&mut self, label: Option<&Lifetime>) {
        // Where it comes from is not known there.
        self.doubt();
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
