//! Shapes: what steps are, but for the values that they use.
//!
//! Steps with equal shapes do the same to other operands. A step that has steps
//! inside (a region, a loop) has a shape that says for each operand inside
//! whether it comes from inside or is one of the operands of the whole step. So
//! whatever a step is, it has a list of operands and a list of outputs, and as
//! many of them as each other step of its shape.

use std::rc::Rc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::ready::Param;
use crate::entity::{PrimaryMap, entity};
use crate::op::Op;
use crate::ssa::{Node, PlaceId};

entity!(
    /// What a step is, but for its operands; equal shapes have equal ids.
    ShapeId,
    "s"
);

/// What a step does.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// Computes a node. The exponent of `powi` must stay a constant.
    Apply { op: Op, exponent: Option<u64>, place: Option<PlaceId> },
    /// A guard on its operand.
    Guard { expect: bool },
    /// A region with that many φs, its outputs.
    Region { scope: Scope, phis: u32, place: Option<PlaceId> },
    /// These steps so many times. The outputs are those of all iterations.
    Loop { times: u32, steps: Vec<Inner>, place: Option<PlaceId> },
    /// A loop that lifting has made. Its operands are the first values of its entry φs,
    /// then one for each parameter that is none of these. Its outputs are the values
    /// that are read later, each of all iterations, and its φs.
    Ready {
        times: u32,
        /// One block, which returns what its entry φs get next, what its φs are, and
        /// what is kept of each iteration.
        scope: Scope,
        /// What the operands of the scope are.
        params: Vec<Param>,
        entries: u32,
        kept: u32,
        phis: u32,
        place: Option<PlaceId>,
    },
    /// What an earlier loop, its operand, has computed in this iteration.
    Past { iteration: u32, place: Option<PlaceId> },
    /// These steps until one of the exits is taken, so many times at most.
    While {
        times: u32,
        steps: Vec<Inner>,
        /// In the order of the steps.
        exits: Vec<Exit>,
        /// The outputs where it ends after the last iteration, if it may.
        last: Option<Vec<Option<Ref>>>,
        /// Whether the first output says if it has ended there.
        tells: bool,
        place: Option<PlaceId>,
    },
}

/// A guard among the steps of a loop; where it fails the loop ends.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Exit {
    /// Which step is the guard.
    pub(super) at: usize,
    /// For each iteration whether it may end the loop there; where it may not, a
    /// guard that fails stops the graph.
    pub(super) seen: Vec<bool>,
    /// The outputs of the loop; none for one that is not used then.
    pub(super) values: Vec<Option<Ref>>,
}

/// A tree of blocks, each before those below it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) blocks: Vec<ScopeBlock>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeBlock {
    pub(super) steps: Vec<Inner>,
    pub(super) end: ScopeEnd,
}

/// How a block ends; others are known by their places in the scope.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum ScopeEnd {
    Return(Vec<Ref>),
    Branch { condition: Ref, then: usize, otherwise: usize },
}

/// A step inside another.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Inner {
    pub(super) shape: ShapeId,
    pub(super) operands: Vec<Ref>,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ref {
    /// The output with this number of the steps inside, in a loop of the same
    /// iteration.
    Own(u32),
    /// In a region: this operand of the whole. In a loop: this one in the first
    /// iteration, the next one in the second, and so on.
    Outer(u32),
    /// The output with this number in the iteration so far back. In the first
    /// iterations, as many as the distance, as for `Outer`.
    Carried { value: u32, distance: u32, outer: u32 },
}

/// A step: a shape with its operands and outputs, nodes of the old graph.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) shape: ShapeId,
    pub(super) operands: SmallVec<[Node; 3]>,
    pub(super) outputs: SmallVec<[Node; 1]>,
}

struct Known {
    shape: Rc<Shape>,
    outputs: usize,
    weight: u64,
}

/// All shapes.
#[derive(Default)]
pub(super) struct Shapes {
    shapes: PrimaryMap<ShapeId, Known>,
    ids: HashMap<Rc<Shape>, ShapeId>,
}

impl Shapes {
    /// The id of `shape`, whose steps have so many outputs, and stand for so many
    /// steps of the old graph.
    pub(super) fn intern(&mut self, shape: Shape, outputs: usize, weight: u64) -> ShapeId {
        if let Some(&id) = self.ids.get(&shape) {
            return id;
        }
        let shape = Rc::new(shape);
        let id = self.shapes.push(Known { shape: Rc::clone(&shape), outputs, weight });
        self.ids.insert(shape, id);
        id
    }

    pub(super) fn get(&self, id: ShapeId) -> &Shape {
        &self.shapes[id].shape
    }

    /// How many outputs steps of this shape have.
    pub(super) fn outputs(&self, id: ShapeId) -> usize {
        self.shapes[id].outputs
    }

    /// How many steps of the old graph each step of this shape stands for.
    pub(super) fn weight(&self, id: ShapeId) -> u64 {
        self.shapes[id].weight
    }

    /// How many outputs one iteration has, if `id` is a loop.
    pub(super) fn outputs_of_iteration(&self, id: ShapeId) -> Option<usize> {
        match self.get(id) {
            Shape::Loop { times, .. } => Some(self.outputs(id) / (*times as usize).max(1)),
            _ => None,
        }
    }

    /// Where the user's code asked for such a step, or the first one in it.
    pub(super) fn place(&self, id: ShapeId) -> Option<PlaceId> {
        match self.get(id) {
            Shape::Apply { place, .. } | Shape::Region { place, .. } => *place,
            Shape::Loop { place, .. } | Shape::While { place, .. } => *place,
            Shape::Ready { place, .. } | Shape::Past { place, .. } => *place,
            Shape::Guard { .. } => None,
        }
    }
}
