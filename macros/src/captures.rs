//! Captures: the live-in places of a region, if all of them can be borrowed where it is entered.
//!
//! If one of them may have no value there, or may be borrowed by something that is still in use,
//! nothing is captured.

use core::ops::Range;

use syn::Member;

use crate::liveness::EntryValue;
use crate::log::{
    Branch, Element, Entry, JumpTarget, Kind, Log, Point, Projection, Role, Variable, add_change,
    join_overlapping,
};

/// A mention of a variable in the text.
pub struct Mention {
    pub variable: Variable,
    /// The projection that is meant.
    pub projection: Projection,
    /// Its position in the log.
    pub at: usize,
    /// The innermost branch around it.
    pub branch: Branch,
    pub access: Access,
    /// The element, if the mention is nothing but its index.
    pub index_of: Option<(Variable, Projection)>,
}

/// The kind of a mention.
#[derive(Clone, Copy, PartialEq)]
pub enum Access {
    /// Reads or borrows its value.
    Use,
    /// May move its value away.
    Move,
    /// Assigns a value.
    Assign,
    /// A word in a macro, which may refer to something else.
    Word,
}

/// A mutable borrow that may live longer than the expression.
pub struct LongBorrow {
    pub variable: Variable,
    pub fields: Vec<Member>,
    pub at: usize,
    /// The position in the log at which it has certainly ended; `None` if not known.
    pub until: Option<usize>,
    /// The variables that may hold it; `None` if not known.
    pub holders: Option<Range<Variable>>,
}

/// The live-in values of a region.
#[derive(Default)]
pub struct LiveIns {
    /// Variables, or projections of them.
    pub places: Vec<(Variable, Projection)>,
    /// Pairs of indices into one collection, which may be equal.
    pub pairs: Vec<(Element, Element)>,
}

/// Tests whether one of two field paths contains the other.
pub fn overlap(a: &[Member], b: &[Member]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

impl Log {
    /// The live-in values of the region that ends at `point`, in order of declaration; `None` if
    /// not all can be captured.
    pub fn live_ins(&self, point: &Point) -> Option<LiveIns> {
        self.live_ins_with(point, &[])
    }

    /// The live-in values of that region together with those carried to the targets of jumps out of
    /// it, and the targets: points, by index. `None` if nothing jumps out, if a target is unknown,
    /// or if not all can be captured.
    pub fn jump_live_ins(&self, point: &Point) -> Option<(Vec<usize>, LiveIns)> {
        let mut targets = Vec::new();
        for (at, jump) in &self.jumps {
            if point.role != Role::Join || !(point.start..point.end).contains(at) {
                continue;
            }
            let target = match *jump {
                JumpTarget::Loop(number) | JumpTarget::Next(number) => {
                    let end = self.loops[number]?;
                    if self.points[end].start >= point.start {
                        continue;
                    }
                    end
                }
                JumpTarget::Function => 0,
                JumpTarget::Unknown => return None,
            };
            // The next iteration depends on the items, too.
            if matches!(jump, JumpTarget::Next(_)) {
                return None;
            }
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        let mut carried = Vec::new();
        for &target in &targets {
            for carry in self.carried(&self.points[target]) {
                let is_named = |element: &Element| match element {
                    Element::Variable(index) => point.visible.contains(index),
                    Element::Number(_) => true,
                };
                if carry.opaque || !carry.projection.element.as_ref().is_none_or(is_named) {
                    return None;
                }
                carried.push((carry.variable, carry.projection));
            }
        }
        let live_ins = self.live_ins_with(point, &carried)?;
        (!targets.is_empty()).then_some((targets, live_ins))
    }

    /// The live-in values of that region, as if it named the places `more`, too.
    fn live_ins_with(&self, point: &Point, more: &[(Variable, Projection)]) -> Option<LiveIns> {
        let is_unseen = |entry: &Entry| matches!(entry.kind, Kind::Unseen | Kind::Unknown(_));
        if self.has_macros || self.entries[point.start..point.end].iter().any(is_unseen) {
            return None;
        }
        // The named projections of each variable from outside.
        let mut mentioned: Vec<(Variable, Vec<Projection>)> = Vec::new();
        for variable in 0..self.bindings.len() {
            let mentions: Vec<&Mention> = self.mentions_in(point, variable).collect();
            let is_outside = match point.role {
                Role::Exit => self.bindings[variable].is_parameter(),
                Role::Join | Role::Head => self.bindings[variable].at < point.start,
            };
            let mut projections = Vec::new();
            for (_, projection) in more.iter().filter(|(carried, _)| *carried == variable) {
                add_change(&mut projections, projection.clone(), false);
            }
            let is_meant = !mentions.is_empty() || !projections.is_empty();
            let is_replaced = mentions.first().is_some_and(|first| self.is_replaced(point, first));
            let is_live_in = is_outside && is_meant && !is_replaced;
            if !is_live_in || self.entry_value(point, variable) == EntryValue::Dead {
                continue;
            }
            for mention in &mentions {
                let mut projection = mention.projection.clone();
                projection.element = projection.element.filter(|index| self.is_fixed(point, index));
                add_change(&mut projections, projection, false);
            }
            join_overlapping(&mut projections);
            mentioned.push((
                variable,
                projections.into_iter().map(|(projection, _)| projection).collect(),
            ));
        }
        // Each projection must be readable where the region begins.
        let mut live_ins = LiveIns::default();
        for (variable, projections) in &mentioned {
            let mentions: Vec<&Mention> = self.mentions_in(point, *variable).collect();
            // The captured element replaces its index.
            let is_index = |mention: &&Mention| {
                mention.index_of.as_ref().is_some_and(|(of, element)| {
                    mentioned
                        .iter()
                        .any(|(other, projections)| other == of && projections.contains(element))
                })
            };
            let is_carried = more.iter().any(|(carried, _)| carried == variable);
            if !is_carried && mentions.iter().all(is_index) {
                continue;
            }
            let binding = &self.bindings[*variable];
            let is_known = binding.known || binding.tracked;
            let is_unknown = binding.opaque || binding.is_closure() || !is_known;
            if is_unknown || !point.visible.contains(variable) {
                return None;
            }
            for projection in projections {
                if self.is_borrowed(point, *variable, &projection.fields)
                    || !(has_value(&mentions, projection)
                        || self.keeps_value(point, *variable, &projection.fields))
                {
                    return None;
                }
                live_ins.places.push((*variable, projection.clone()));
            }
            live_ins.pairs.extend(pairs(projections));
        }
        Some(live_ins)
    }

    fn mentions_in(&self, point: &Point, variable: Variable) -> impl Iterator<Item = &Mention> {
        let range = point.start..point.end;
        self.mentions_of(variable).filter(move |mention| range.contains(&mention.at))
    }

    /// The position in the log of the outermost loop around `point` that does not declare
    /// `variable`.
    fn loop_start(&self, point: &Point, variable: Variable) -> Option<usize> {
        let at = self.bindings[variable].at;
        point.loops.iter().copied().filter(|&start| start > at && start < point.start).min()
    }

    /// Tests whether the region certainly assigns the variable before any other use.
    fn is_replaced(&self, point: &Point, first: &Mention) -> bool {
        first.access == Access::Assign
            && first.projection == Projection::default()
            && self.comes_first(point, first.at, first.branch)
    }

    /// Tests whether the variable got a value with its declaration and was certainly not moved
    /// since.
    pub fn keeps_value(&self, point: &Point, variable: Variable, place: &[Member]) -> bool {
        let binding = &self.bindings[variable];
        // What a loop does after the region happens before it, too.
        let repeats = self.loop_start(point, variable).is_some();
        let leaves = |mention: &Mention| {
            (repeats || mention.at < point.start)
                && matches!(mention.access, Access::Move | Access::Word)
                && overlap(&mention.projection.fields, place)
        };
        !binding.is_deferred() && (binding.copied || !self.mentions_of(variable).any(leaves))
    }

    /// Tests whether a borrow of the place may still be in use.
    pub fn is_borrowed(&self, point: &Point, variable: Variable, place: &[Member]) -> bool {
        let is_same =
            |borrow: &&LongBorrow| borrow.variable == variable && overlap(&borrow.fields, place);
        self.long_borrows.iter().filter(is_same).any(|borrow| {
            let is_over = borrow.until.is_some_and(|until| until <= point.start);
            let before = borrow.at < point.start && !is_over;
            let repeats = self.loop_start(point, variable).is_some_and(|from| borrow.at >= from);
            let held = borrow.holders.as_ref().is_none_or(|holders| {
                holders.clone().any(|holder| {
                    let from = self.loop_start(point, holder).unwrap_or(point.start);
                    self.mentions_of(holder).any(|mention| mention.at >= from)
                })
            });
            let still = before || (repeats && borrow.holders.is_none() && borrow.until.is_none());
            still && held
        })
    }
}

/// The pairs of indices of elements in one place, unless both are literals.
fn pairs(projections: &[Projection]) -> Vec<(Element, Element)> {
    let mut pairs = Vec::new();
    for (number, projection) in projections.iter().enumerate() {
        for other in
            projections[number + 1..].iter().filter(|other| other.fields == projection.fields)
        {
            // Two literals are known to differ.
            let is_number =
                |projection: &Projection| matches!(projection.element, Some(Element::Number(_)));
            if !is_number(projection) || !is_number(other) {
                pairs.extend(projection.element.clone().zip(other.element.clone()));
            }
        }
    }
    pairs
}

/// Tests whether the place certainly has a value before all of `mentions`.
fn has_value(mentions: &[&Mention], place: &Projection) -> bool {
    let before = mentions.iter().take_while(|mention| {
        mention.access != Access::Assign || !overlap(&mention.projection.fields, &place.fields)
    });
    let needs = |mention: &&&Mention| {
        matches!(mention.access, Access::Use | Access::Move) && mention.projection == *place
    };
    before.filter(needs).count() > 0
}
