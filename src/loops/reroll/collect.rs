//! The way in: makes a list of steps of each block, and of a tree of blocks one
//! step, or the whole.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::RerollLimits;
use super::ready::{past, ready};
use super::roll::{pass, roll};
use super::search::Homes;
use super::shape::{Inner, Ref, Scope, ScopeBlock, ScopeEnd, Shape, Shapes, Step};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Graph, Item, Node, Region};

/// A graph as one scope.
pub(super) struct Whole {
    pub(super) scope: Scope,
    /// Its operands: inputs and constants.
    pub(super) operands: SmallVec<[Node; 3]>,
    /// How many loops it has.
    pub(super) loops: usize,
    /// How many of them may end in each iteration.
    pub(super) chains: usize,
}

/// Takes `graph` apart and rolls each block; none if it has loops that lifting does not
/// make, or replays.
pub(super) fn collect(graph: &Graph, shapes: &mut Shapes, limits: &RerollLimits) -> Option<Whole> {
    let is_plain = |region: Region| {
        let data = &graph.regions[region];
        data.replays.is_none() && (data.cycle.is_none() || ready(graph, region).is_some())
    };
    if !graph.regions.keys().all(is_plain) {
        return None;
    }
    let saved = graph.arrays.values().filter_map(|array| match array {
        ArrayData::Saved(node) => Some(*node),
        _ => None,
    });
    // Each chain ends at least one block.
    let room = graph.blocks.len();
    let tree = Tree {
        lists: PrimaryMap::filled(Vec::new(), graph.blocks.len()),
        ends: graph.blocks.values().map(|block| block.end.clone()).collect(),
        numbers: Homes::new(graph).with_room(room),
    };
    let mut collect = Collect {
        graph,
        shapes,
        limits,
        homes: Homes::new(graph).with_room(room),
        tree,
        weights: PrimaryMap::filled(0, graph.blocks.len()),
        next: graph.nodes.len(),
        loops: 0,
        chains: 0,
        saved: saved.collect(),
    };
    // So that what is inside comes before what it is inside of.
    for block in graph.preorder().into_iter().rev() {
        let mut steps = Vec::with_capacity(graph.blocks[block].items.len());
        for &item in &graph.blocks[block].items {
            steps.extend(collect.step(item)?);
        }
        collect.tree.lists[block] = steps;
    }
    let (scope, operands) = collect.scope(graph.root());
    let Collect { loops, chains, .. } = collect;
    Some(Whole { scope, operands, loops: loops + chains, chains })
}

pub(super) struct Collect<'a> {
    pub(super) graph: &'a Graph,
    pub(super) shapes: &'a mut Shapes,
    pub(super) limits: &'a RerollLimits,
    pub(super) homes: Homes<'a>,
    pub(super) tree: Tree<'a>,
    /// For blocks of the tree at hand how much there is in them and below.
    pub(super) weights: PrimaryMap<Block, u64>,
    /// The next node that the graph does not have.
    pub(super) next: usize,
    loops: usize,
    pub(super) chains: usize,
    /// What is read of earlier iterations.
    pub(super) saved: HashSet<Node>,
}

/// The blocks of a graph as lists of steps.
pub(super) struct Tree<'a> {
    pub(super) lists: PrimaryMap<Block, Vec<Step>>,
    pub(super) ends: PrimaryMap<Block, End>,
    /// The outputs of the steps of what is being looked at, numbered.
    numbers: Homes<'a>,
}

impl Collect<'_> {
    /// The step that `item` is, if it is one of its own; none if it is something that
    /// lifting does not make.
    fn step(&mut self, item: Item) -> Option<Option<Step>> {
        Some(Some(match item {
            Item::Node(node) => {
                let data = &self.graph.nodes[node];
                let Def::Apply(op, args) = data.def else { return self.element(node) };
                // Whether there is another iteration is told by their number.
                if op == Op::Lt && matches!(self.graph.nodes[args[0]].def, Def::Iteration(_)) {
                    return Some(None);
                }
                let exponent = match self.graph.nodes[args[1]].def {
                    Def::Const(bits) if op == Op::Powi => Some(bits),
                    _ => None,
                };
                let shape = Shape::Apply { op, exponent, place: data.place };
                let shape = self.shapes.intern(shape, 1, 1);
                let operands = SmallVec::from_slice(&args[..op.arity()]);
                Step { shape, operands, outputs: SmallVec::from_slice(&[node]) }
            }
            Item::Guard { condition, expect } => {
                let shape = self.shapes.intern(Shape::Guard { expect }, 0, 1);
                let operands = SmallVec::from_slice(&[condition]);
                Step { shape, operands, outputs: SmallVec::new() }
            }
            Item::Region(region) if self.graph.regions[region].cycle.is_some() => {
                self.ready(region)?
            }
            Item::Region(region) => {
                let data = &self.graph.regions[region];
                let (scope, operands) = self.scope(data.root);
                let inside = scope.blocks.iter().flat_map(|block| &block.steps);
                let inside: u64 = inside.map(|step| self.shapes.weight(step.shape)).sum();
                let shape =
                    Shape::Region { scope, phis: data.phis.len() as u32, place: data.place };
                let shape = self.shapes.intern(shape, data.phis.len(), 1 + inside);
                let outputs = SmallVec::from_slice(&data.phis);
                Step { shape, operands, outputs }
            }
            Item::Fill(_) | Item::Accumulate(..) => return None,
        }))
    }

    /// The step of an element: to read what an earlier loop has computed. In a loop others
    /// are no steps, but what operands are.
    fn element(&mut self, node: Node) -> Option<Option<Step>> {
        let data = &self.graph.nodes[node];
        let Def::Element(access) = data.def else { return None };
        if !self.graph.accesses[access].strides.is_empty() {
            return Some(None);
        }
        let (of, iteration) = past(self.graph, node)?;
        let shape = self.shapes.intern(Shape::Past { iteration, place: data.place }, 1, 0);
        let (operands, outputs) = (SmallVec::from_slice(&[of]), SmallVec::from_slice(&[node]));
        Some(Some(Step { shape, operands, outputs }))
    }

    /// The tree of `root`, whose lists are complete, rolled, and the operands that
    /// come from outside.
    pub(super) fn scope(&mut self, root: Block) -> (Scope, SmallVec<[Node; 3]>) {
        self.roll_between_guards(root);
        self.roll_chains(root);
        let order = self.tree.order(root);
        for &(block, _) in &order {
            let list = &mut self.tree.lists[block];
            self.loops += roll(list, self.shapes, &mut self.homes, self.limits);
        }
        let scope = self.tree.view(root, 0);
        for &(block, _) in &order {
            self.tree.lists[block] = Vec::new();
        }
        scope
    }
}

impl Collect<'_> {
    /// Makes loops in the tree of `root`, if it branches, of what has no guards in it:
    /// to a chain these are steps. With guards in them they may be its iterations.
    fn roll_between_guards(&mut self, root: Block) {
        let order = self.tree.order(root);
        if order.len() == 1 {
            return;
        }
        for (block, _) in order {
            let list = core::mem::take(&mut self.tree.lists[block]);
            let mut rolled = Vec::with_capacity(list.len());
            let is_guard = |step: &Step, shapes: &Shapes| {
                matches!(shapes.get(step.shape), Shape::Guard { .. })
            };
            let mut steps = list.into_iter().peekable();
            while steps.peek().is_some() {
                let mut part: Vec<Step> = Vec::new();
                while let Some(step) = steps.next_if(|step| !is_guard(step, self.shapes)) {
                    part.push(step);
                }
                pass(&mut part, self.shapes, &mut self.homes, self.limits);
                rolled.append(&mut part);
                rolled.extend(steps.next_if(|step| is_guard(step, self.shapes)));
            }
            self.tree.lists[block] = rolled;
        }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn graph(&self) -> &'a Graph {
        self.numbers.graph()
    }

    /// The tree of `root`, without the first steps of that, and the operands that
    /// come from outside.
    pub(super) fn view(&mut self, root: Block, first: usize) -> (Scope, SmallVec<[Node; 3]>) {
        let order = self.order(root);
        self.numbers.begin();
        let mut operands = SmallVec::new();
        let mut number = 0;
        let mut blocks = Vec::with_capacity(order.len());
        for &(block, sides) in &order {
            let list = &self.lists[block][if block == root { first } else { 0 }..];
            let mut steps = Vec::with_capacity(list.len());
            for step in list {
                let refs = step.operands.iter().map(|&node| self.reference(node, &mut operands));
                steps.push(Inner { shape: step.shape, operands: refs.collect() });
                for &output in &step.outputs {
                    self.numbers.set(output, 0, number);
                    number += 1;
                }
            }
            let end = match &self.ends[block] {
                End::Return(values) => ScopeEnd::Return(
                    values.iter().map(|&node| self.reference(node, &mut operands)).collect(),
                ),
                &End::Branch { condition, .. } => {
                    let [then, otherwise] = sides;
                    let condition = self.reference(condition, &mut operands);
                    ScopeEnd::Branch { condition, then, otherwise }
                }
                End::Open => ScopeEnd::Return(Vec::new()),
            };
            blocks.push(ScopeBlock { steps, end });
        }
        (Scope { blocks }, operands)
    }

    fn reference(&self, node: Node, operands: &mut SmallVec<[Node; 3]>) -> Ref {
        match self.numbers.get(node) {
            Some((_, number)) => Ref::Own(number as u32),
            None => {
                operands.push(node);
                Ref::Outer(operands.len() as u32 - 1)
            }
        }
    }

    /// The blocks of the tree of `root`, first sides first, with the places of
    /// their sides in this order.
    pub(super) fn order(&self, root: Block) -> Vec<(Block, [usize; 2])> {
        let mut order: Vec<(Block, [usize; 2])> = Vec::new();
        // With the place of the block above, and which side of it this is.
        let mut pending = vec![(root, 0, 0)];
        while let Some((block, above, side)) = pending.pop() {
            let here = order.len();
            order.push((block, [0; 2]));
            if here > 0 {
                order[above].1[side] = here;
            }
            if let End::Branch { then, otherwise, .. } = self.ends[block] {
                pending.extend([(otherwise, here, 1), (then, here, 0)]);
            }
        }
        order
    }
}
