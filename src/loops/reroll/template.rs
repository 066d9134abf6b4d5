//! Templates: steps without their operands.
//!
//! Steps with equal templates do the same with other operands (SLP vectorisers call such
//! statements isomorphic). A step with steps inside (a region, a loop) has a template that says
//! for each operand inside whether it is an output of a step inside or an operand of the whole.
//! So every step has a list of operands and a list of outputs, whose lengths depend on its
//! template only.

use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::non_rectangular::{Trips, without_trips};
use super::trace_loops::Param;
use crate::entity::{PrimaryMap, entity};
use crate::op::Op;
use crate::ssa::{Node, PlaceId};

entity!(
    /// A template; equal templates have equal ids.
    TemplateId,
    "s"
);

/// A step without its operands.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Template {
    /// An application. The exponent of `powi` is part of it, because it must stay a constant.
    Apply { op: Op, exponent: Option<u64>, place: Option<PlaceId> },
    /// A guard on the operand.
    Guard { expect: bool },
    /// A region with so many φs, its outputs.
    Region { scope: Scope, phis: u32, place: Option<PlaceId> },
    /// These steps `times` times. The outputs are those of all iterations.
    Loop { times: u32, steps: Vec<Inner>, place: Option<PlaceId> },
    /// These steps as often as `trips` tells, inside a loop. Its operands are rows, each of which
    /// counts as one operand, and initial values. The outputs are those of the last iteration.
    AffineLoop { trips: Trips, steps: Vec<Inner>, place: Option<PlaceId> },
    /// A trace loop. Its operands are the initial values of its entry φs, then one for each
    /// parameter that is no entry φ. Its outputs are its saved nodes, each for all iterations,
    /// and its φs.
    TraceLoop {
        times: u32,
        /// One block, which returns the next values of the entry φs, the values of the φs, and
        /// the saved nodes.
        scope: Scope,
        /// The parameters of the scope.
        params: Vec<Param>,
        entries: u32,
        saved: u32,
        phis: u32,
        place: Option<PlaceId>,
    },
    /// The value that an earlier loop, its operand, saved in this iteration.
    Saved { iteration: u32, place: Option<PlaceId> },
    /// These steps until an exit is taken, `times` times at most.
    While {
        times: u32,
        steps: Vec<Inner>,
        /// In the order of the steps.
        exits: Vec<Exit>,
        /// The outputs after the last iteration, if the loop may end there without an exit.
        last: Option<Vec<Option<Ref>>>,
        /// True if the first output is a flag: 1 if the loop ended after its last iteration
        /// without an exit, otherwise 0.
        has_flag: bool,
        place: Option<PlaceId>,
    },
}

/// An exit: a guard among the steps of a loop that ends the loop if it fails.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Exit {
    /// The number of the step.
    pub(super) at: usize,
    /// True for iterations in which the exit was seen; in others a failing guard stops the graph.
    pub(super) seen: Vec<bool>,
    /// The outputs of the loop after this exit; `None` for one that is not used.
    pub(super) values: Vec<Option<Ref>>,
}

/// A tree of blocks, parents first.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) blocks: Vec<ScopeBlock>,
}

/// A block of a scope.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeBlock {
    pub(super) steps: Vec<Inner>,
    pub(super) end: ScopeEnd,
}

/// The terminator of a block; targets are indices in the scope.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum ScopeEnd {
    Return(Vec<Ref>),
    Branch { condition: Ref, then: usize, otherwise: usize },
}

/// A step inside a region or loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inner {
    pub(super) template: TemplateId,
    pub(super) operands: SmallVec<[Ref; 3]>,
}

/// The source of an operand of a step inside a region or loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ref {
    /// This output of the steps inside, in a loop of the same iteration.
    Own(u32),
    /// In a region: this operand of the whole. In a loop: this operand in the first iteration,
    /// the next one in the second, and so on.
    Outer(u32),
    /// In a loop: the operands from this one on, a row for each iteration, as long as the trip count of
    /// the inner loop that reads it.
    Rows { outer: u32, trips: Trips },
    /// This output, `distance` iterations back. In the first `distance` iterations like `Outer`.
    Carried { value: u32, distance: u32, outer: u32 },
}

/// A step: a template with operands and outputs, nodes of the old graph.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) template: TemplateId,
    pub(super) operands: SmallVec<[Node; 3]>,
    pub(super) outputs: SmallVec<[Node; 1]>,
}

/// An interned template.
struct Known {
    template: Rc<Template>,
    outputs: usize,
    weight: u64,
    /// The first template of the same shape: for loops the same but for the trip count.
    shape: TemplateId,
}

/// All templates, interned.
#[derive(Default)]
pub(super) struct Templates {
    templates: PrimaryMap<TemplateId, Known>,
    ids: HashMap<Rc<Template>, TemplateId>,
    /// The loops of each shape, by their bodies.
    shapes: HashMap<(Vec<Inner>, Option<PlaceId>), TemplateId>,
}

impl Templates {
    /// The id of `template`, with so many outputs, for so many steps of the old graph.
    pub(super) fn intern(&mut self, template: Template, outputs: usize, weight: u64) -> TemplateId {
        if let Some(&id) = self.ids.get(&template) {
            return id;
        }
        let next = self.templates.next_key();
        let shape = match &template {
            Template::Loop { steps, place, .. } => match without_trips(steps) {
                Some(steps) => *self.shapes.entry((steps, *place)).or_insert(next),
                None => next,
            },
            _ => next,
        };
        let template = Rc::new(template);
        let known = Known { template: Rc::clone(&template), outputs, weight, shape };
        let id = self.templates.push(known);
        self.ids.insert(template, id);
        id
    }

    /// The first template of the same shape.
    pub(super) fn shape(&self, id: TemplateId) -> TemplateId {
        self.templates[id].shape
    }

    /// Tests whether `id` is a loop with a constant number of operands for each iteration.
    pub(super) fn is_rectangular_loop(&self, id: TemplateId) -> bool {
        let is_row = |operand: &Ref| matches!(operand, Ref::Rows { .. });
        match self.get(id) {
            Template::Loop { steps, .. } => {
                !steps.iter().flat_map(|step| &step.operands).any(is_row)
            }
            _ => false,
        }
    }

    pub(super) fn get(&self, id: TemplateId) -> &Template {
        &self.templates[id].template
    }

    /// The number of outputs.
    pub(super) fn outputs(&self, id: TemplateId) -> usize {
        self.templates[id].outputs
    }

    /// The number of steps of the old graph that a step stands for.
    pub(super) fn weight(&self, id: TemplateId) -> u64 {
        self.templates[id].weight
    }

    /// The number of outputs of one iteration, if `id` is a loop.
    pub(super) fn outputs_of_iteration(&self, id: TemplateId) -> Option<usize> {
        match self.get(id) {
            Template::Loop { times, .. } => Some(self.outputs(id) / (*times as usize).max(1)),
            _ => None,
        }
    }

    /// The place of the step in the user's source, or of the first step inside.
    pub(super) fn place(&self, id: TemplateId) -> Option<PlaceId> {
        match self.get(id) {
            Template::Apply { place, .. } | Template::Region { place, .. } => *place,
            Template::Loop { place, .. } | Template::While { place, .. } => *place,
            Template::AffineLoop { place, .. } => *place,
            Template::TraceLoop { place, .. } | Template::Saved { place, .. } => *place,
            Template::Guard { .. } => None,
        }
    }
}
