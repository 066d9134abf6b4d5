//! Captures: the live-in places of a region, if all of them can be borrowed where it is entered.
//!
//! If one of them may have no value there, or may be borrowed by something that is still in use,
//! nothing is captured.

use core::ops::Range;

use syn::Member;

use crate::log::{
    Branch, Element, Entry, Goal, Kind, Log, Point, Role, Variable, Way, add_change, join_parts,
};
use crate::needs::Birth;

/// A mention of a variable in the text.
pub struct Mention {
    pub variable: Variable,
    /// The projection that is meant.
    pub way: Way,
    /// Its position in the log.
    pub at: usize,
    /// The innermost branch around it.
    pub branch: Branch,
    pub how: How,
    /// The element, if the mention is nothing but its index.
    pub index_of: Option<(Variable, Way)>,
}

/// The kind of a mention.
#[derive(Clone, Copy, PartialEq)]
pub enum How {
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
pub struct Keep {
    pub variable: Variable,
    pub fields: Vec<Member>,
    pub at: usize,
    /// The position in the log at which it has certainly ended.
    pub until: usize,
    /// The variables that may hold it; `None` if not known.
    pub holders: Option<Range<Variable>>,
}

/// The live-in values of a region.
#[derive(Default)]
pub struct Given {
    /// Variables, or projections of them.
    pub places: Vec<(Variable, Way)>,
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
    pub fn given(&self, point: &Point) -> Option<Given> {
        self.given_with(point, &[])
    }

    /// The live-in values of that region together with those carried to the targets of jumps out of
    /// it, and the targets: points, by index. `None` if nothing jumps out, if a target is unknown,
    /// or if not all can be captured.
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
            // The next iteration depends on the items, too.
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

    /// The live-in values of that region, as if it named the places `more`, too.
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
            // The captured element replaces its index.
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

    /// The position in the log of the outermost loop around `point` that does not declare
    /// `variable`.
    fn repeats_from(&self, point: &Point, variable: Variable) -> Option<usize> {
        let at = self.bindings[variable].at;
        point.loops.iter().copied().filter(|&start| start > at && start < point.start).min()
    }

    /// Tests whether the region certainly assigns the variable before any other use.
    fn is_replaced(&self, point: &Point, first: &Mention) -> bool {
        first.how == How::Assign
            && first.way == Way::default()
            && self.comes_first(point, first.at, first.branch)
    }

    /// Tests whether the variable got a value with its declaration and was certainly not moved
    /// since.
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

    /// Tests whether a borrow of the place may still be in use.
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

/// The pairs of indices of elements in one place, unless both are literals.
fn pairs(ways: &[Way]) -> Vec<(Element, Element)> {
    let mut pairs = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        for other in ways[number + 1..].iter().filter(|other| other.fields == way.fields) {
            // Two literals are known to differ.
            let is_number = |way: &Way| matches!(way.element, Some(Element::Number(_)));
            if !is_number(way) || !is_number(other) {
                pairs.extend(way.element.clone().zip(other.element.clone()));
            }
        }
    }
    pairs
}

/// Tests whether the place certainly has a value before all of `mentions`.
fn has_value(mentions: &[&Mention], place: &Way) -> bool {
    let before = mentions.iter().take_while(|mention| {
        mention.how != How::Assign || !overlap(&mention.way.fields, &place.fields)
    });
    let needs =
        |mention: &&&Mention| matches!(mention.how, How::Use | How::Move) && mention.way == *place;
    before.filter(needs).count() > 0
}
