//! Captures: which places a region is given, and whether they can be looked at
//! where it is entered.
//!
//! What may have no value there, or may be borrowed by something that is still
//! in use, is left out, and then nothing is captured.

use core::ops::Range;

use syn::Member;

use crate::log::{
    Branch, Element, Entry, Goal, Kind, Log, Point, Role, Variable, Way, add_change, join_parts,
};
use crate::needs::Birth;

/// A place in the text where a variable is named.
pub struct Mention {
    pub variable: Variable,
    /// What of it is meant.
    pub way: Way,
    /// The position in the log.
    pub at: usize,
    /// The innermost branch that it is in.
    pub branch: Branch,
    pub how: How,
    /// The element that is all it says: it is the index there.
    pub index_of: Option<(Variable, Way)>,
}

/// How a variable is named.
#[derive(Clone, Copy, PartialEq)]
pub enum How {
    /// It has a value, and keeps it.
    Use,
    /// It has a value, which may be moved away.
    Move,
    /// It gets a value.
    Assign,
    /// It may be something else of the same name.
    Word,
}

/// A mutable borrow that may be kept for longer than the expression.
pub struct Keep {
    pub variable: Variable,
    pub fields: Vec<Member>,
    pub at: usize,
    /// Where nothing has it any more.
    pub until: usize,
    /// The variables that may have it; `None` if that is not known.
    pub holders: Option<Range<Variable>>,
}

/// What a region is given.
#[derive(Default)]
pub struct Given {
    /// Variables, or parts of them.
    pub places: Vec<(Variable, Way)>,
    /// Indices of which it matters whether they are equal: they are of elements of
    /// one collection.
    pub pairs: Vec<(Element, Element)>,
}

/// Whether one of two places is part of the other.
pub fn overlap(a: &[Member], b: &[Member]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

impl Log {
    /// What the region that ends at `point` is given, in order of declaration;
    /// `None` if not all of it can be captured.
    pub fn given(&self, point: &Point) -> Option<Given> {
        self.given_with(point, &[])
    }

    /// What the region that ends at `point` is given together with what is carried
    /// to where jumps lead out of it: the points there, by index. `None` if nothing
    /// jumps out, if it is not known to where, or if not all can be captured.
    pub fn given_to_jumps(&self, point: &Point) -> Option<(Vec<usize>, Given)> {
        let mut goals = Vec::new();
        for (at, jump) in &self.jumps {
            if point.role != Role::Join || !(point.start..point.end).contains(at) {
                continue;
            }
            let goal = match *jump {
                Goal::Loop(number) | Goal::Next(number) => {
                    let end = self.loops[number]?;
                    if self.points[end].start >= point.start {
                        continue;
                    }
                    end
                }
                Goal::Function => 0,
                Goal::Elsewhere => return None,
            };
            // How a loop goes on depends on its items, too.
            if matches!(jump, Goal::Next(_)) {
                return None;
            }
            if !goals.contains(&goal) {
                goals.push(goal);
            }
        }
        let mut carried = Vec::new();
        for &goal in &goals {
            for carry in self.carried(&self.points[goal]) {
                let is_named = |element: &Element| match element {
                    Element::Variable(index) => point.visible.contains(index),
                    Element::Number(_) => true,
                };
                if carry.opaque || !carry.way.element.as_ref().is_none_or(is_named) {
                    return None;
                }
                carried.push((carry.variable, carry.way));
            }
        }
        let given = self.given_with(point, &carried)?;
        (!goals.is_empty()).then_some((goals, given))
    }

    /// What the region that ends at `point` is given, with these places as if they
    /// were mentioned in it.
    fn given_with(&self, point: &Point, more: &[(Variable, Way)]) -> Option<Given> {
        let is_unseen = |entry: &Entry| matches!(entry.kind, Kind::Unseen | Kind::Unknown(_));
        if self.has_macros || self.entries[point.start..point.end].iter().any(is_unseen) {
            return None;
        }
        let mut mentioned: Vec<(Variable, Vec<Way>)> = Vec::new();
        for variable in 0..self.bindings.len() {
            let mentions: Vec<&Mention> = self.mentions_in(point, variable).collect();
            let is_outside = match point.role {
                Role::Exit => self.bindings[variable].parameter,
                Role::Join | Role::Head => self.bindings[variable].at < point.start,
            };
            let mut ways = Vec::new();
            for (_, way) in more.iter().filter(|(carried, _)| *carried == variable) {
                add_change(&mut ways, way.clone(), false);
            }
            let is_meant = !mentions.is_empty() || !ways.is_empty();
            let is_replaced = mentions.first().is_some_and(|first| self.is_replaced(point, first));
            let is_given = is_outside && is_meant && !is_replaced;
            if !is_given || self.birth(point, variable) == Birth::Unborn {
                continue;
            }
            for mention in &mentions {
                let mut way = mention.way.clone();
                way.element = way.element.filter(|index| self.is_fixed(point, index));
                add_change(&mut ways, way, false);
            }
            join_parts(&mut ways);
            mentioned.push((variable, ways.into_iter().map(|(way, _)| way).collect()));
        }
        let mut given = Given::default();
        for (variable, ways) in &mentioned {
            let mentions: Vec<&Mention> = self.mentions_in(point, *variable).collect();
            // The element that an index leads to says enough.
            let is_index = |mention: &&Mention| {
                mention.index_of.as_ref().is_some_and(|(of, element)| {
                    mentioned.iter().any(|(other, ways)| other == of && ways.contains(element))
                })
            };
            let is_carried = more.iter().any(|(carried, _)| carried == variable);
            if !is_carried && mentions.iter().all(is_index) {
                continue;
            }
            let binding = &self.bindings[*variable];
            let is_unknown = binding.opaque || binding.closure || !binding.known;
            if is_unknown || !point.visible.contains(variable) {
                return None;
            }
            for way in ways {
                if self.is_kept(point, *variable, &way.fields)
                    || !(has_value(&mentions, way) || self.stays(point, *variable, &way.fields))
                {
                    return None;
                }
                given.places.push((*variable, way.clone()));
            }
            given.pairs.extend(pairs(ways));
        }
        Some(given)
    }

    fn mentions_in(&self, point: &Point, variable: Variable) -> impl Iterator<Item = &Mention> {
        let range = point.start..point.end;
        self.mentions_of(variable).filter(move |mention| range.contains(&mention.at))
    }

    /// Where the outermost loop around `point` begins that does not declare
    /// `variable`.
    fn repeats_from(&self, point: &Point, variable: Variable) -> Option<usize> {
        let at = self.bindings[variable].at;
        point.loops.iter().copied().filter(|&start| start > at && start < point.start).min()
    }

    /// Whether the region surely gives the variable a new value first.
    fn is_replaced(&self, point: &Point, first: &Mention) -> bool {
        first.how == How::Assign
            && first.way == Way::default()
            && self.comes_first(point, first.at, first.branch)
    }

    /// Whether the variable got a value with its declaration and it was surely not
    /// moved away.
    pub fn stays(&self, point: &Point, variable: Variable, place: &[Member]) -> bool {
        let binding = &self.bindings[variable];
        let end = match self.repeats_from(point, variable) {
            Some(_) => usize::MAX,
            None => point.start,
        };
        let leaves = |mention: &Mention| {
            mention.at < end
                && matches!(mention.how, How::Move | How::Word)
                && overlap(&mention.way.fields, place)
        };
        !binding.deferred && (binding.copied || !self.mentions_of(variable).any(leaves))
    }

    /// Whether something that is in use may have borrowed the place.
    pub fn is_kept(&self, point: &Point, variable: Variable, place: &[Member]) -> bool {
        let is_same = |keep: &&Keep| keep.variable == variable && overlap(&keep.fields, place);
        self.keeps.iter().filter(is_same).any(|keep| {
            let before = keep.at < point.start && point.start < keep.until;
            let repeats = self.repeats_from(point, variable).is_some_and(|from| keep.at >= from);
            let held = keep.holders.as_ref().is_none_or(|holders| {
                holders.clone().any(|holder| {
                    let from = self.repeats_from(point, holder).unwrap_or(point.start);
                    self.mentions_of(holder).any(|mention| mention.at >= from)
                })
            });
            let still = before || (repeats && keep.holders.is_none() && keep.until == usize::MAX);
            still && held
        })
    }
}

/// The pairs of indices of elements in the same place.
fn pairs(ways: &[Way]) -> Vec<(Element, Element)> {
    let mut pairs = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        for other in ways[number + 1..].iter().filter(|other| other.fields == way.fields) {
            // Two numbers are known to differ.
            let is_number = |way: &Way| matches!(way.element, Some(Element::Number(_)));
            if !is_number(way) || !is_number(other) {
                pairs.extend(way.element.clone().zip(other.element.clone()));
            }
        }
    }
    pairs
}

/// Whether the place surely has a value before all of `mentions`.
fn has_value(mentions: &[&Mention], place: &Way) -> bool {
    let before = mentions.iter().take_while(|mention| {
        mention.how != How::Assign || !overlap(&mention.way.fields, &place.fields)
    });
    let needs =
        |mention: &&&Mention| matches!(mention.how, How::Use | How::Move) && mention.way == *place;
    before.filter(needs).count() > 0
}
