//! Collects the steps of each block in a list; a region, with its tree of blocks, becomes one
//! step.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::RerollLimits;
use super::roll::{roll, roll_repeatedly};
use super::search::Definitions;
use super::template::{Inner, Ref, Scope, ScopeBlock, ScopeEnd, Step, Template, Templates};
use super::trace_loops::{saved_element, trace_loop};
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{ArrayData, Block, Def, End, Graph, Item, Node, Region};

/// A rolled graph as one scope.
pub(super) struct Collected {
    pub(super) scope: Scope,
    /// Its operands: inputs and constants.
    pub(super) operands: SmallVec<[Node; 3]>,
    /// The number of loops.
    pub(super) loops: usize,
    /// The number of loops with exits.
    pub(super) chains: usize,
}

/// Collects the steps of `graph` and rolls each block; `None` if it has replays, or loops that
/// are no trace loops.
pub(super) fn collect(
    graph: &Graph,
    templates: &mut Templates,
    limits: &RerollLimits,
) -> Option<Collected> {
    let is_plain = |region: Region| {
        let data = &graph.regions[region];
        data.replays.is_none() && (data.cycle.is_none() || trace_loop(graph, region).is_some())
    };
    if !graph.regions.keys().all(is_plain) {
        return None;
    }
    let saved = graph.arrays.values().filter_map(|array| match array {
        ArrayData::Saved(node) => Some(*node),
        _ => None,
    });
    // Each exit chain removes at least one block.
    let room = graph.blocks.len();
    let tree = Tree {
        lists: PrimaryMap::filled(Vec::new(), graph.blocks.len()),
        ends: graph.blocks.values().map(|block| block.end.clone()).collect(),
        numbers: Definitions::new(graph).with_room(room),
    };
    let mut collect = Collect {
        graph,
        templates,
        limits,
        definitions: Definitions::new(graph).with_room(room),
        tree,
        weights: PrimaryMap::filled(0, graph.blocks.len()),
        next: graph.nodes.len(),
        loops: 0,
        chains: 0,
        saved: saved.collect(),
    };
    // Regions before the blocks around them.
    for block in graph.preorder().into_iter().rev() {
        let mut steps = Vec::with_capacity(graph.blocks[block].items.len());
        for &item in &graph.blocks[block].items {
            steps.extend(collect.step(item)?);
        }
        collect.tree.lists[block] = steps;
    }
    let (scope, operands) = collect.scope(graph.root());
    let Collect { loops, chains, .. } = collect;
    Some(Collected { scope, operands, loops: loops + chains, chains })
}

/// The collector: a graph on its way to templates.
pub(super) struct Collect<'a> {
    pub(super) graph: &'a Graph,
    pub(super) templates: &'a mut Templates,
    pub(super) limits: &'a RerollLimits,
    pub(super) definitions: Definitions<'a>,
    pub(super) tree: Tree<'a>,
    /// The weight of each block of the current tree and the blocks below it.
    pub(super) weights: PrimaryMap<Block, u64>,
    /// The id of the next additional node.
    pub(super) next: usize,
    loops: usize,
    pub(super) chains: usize,
    /// The nodes whose saved values are read.
    pub(super) saved: HashSet<Node>,
}

/// The blocks of a graph as lists of steps.
pub(super) struct Tree<'a> {
    pub(super) lists: PrimaryMap<Block, Vec<Step>>,
    pub(super) ends: PrimaryMap<Block, End>,
    /// The numbers of the outputs in the current scope.
    numbers: Definitions<'a>,
}

impl Collect<'_> {
    /// The step of `item`, or `Some(None)` if it becomes part of another step; `None` if trace
    /// loops have no such items.
    fn step(&mut self, item: Item) -> Option<Option<Step>> {
        Some(Some(match item {
            Item::Node(node) => {
                let data = &self.graph.nodes[node];
                let Def::Apply(op, args) = data.def else { return self.element(node) };
                // The exit condition follows from the trip count.
                if op == Op::Lt && matches!(self.graph.nodes[args[0]].def, Def::Iteration(_)) {
                    return Some(None);
                }
                let exponent = match self.graph.nodes[args[1]].def {
                    Def::Const(bits) if op == Op::Powi => Some(bits),
                    _ => None,
                };
                let template = Template::Apply { op, exponent, place: data.place };
                let template = self.templates.intern(template, 1, 1);
                let operands = SmallVec::from_slice(&args[..op.arity()]);
                Step { template, operands, outputs: SmallVec::from_slice(&[node]) }
            }
            Item::Guard { condition, expect } => {
                let template = self.templates.intern(Template::Guard { expect }, 0, 1);
                let operands = SmallVec::from_slice(&[condition]);
                Step { template, operands, outputs: SmallVec::new() }
            }
            Item::Region(region) if self.graph.regions[region].cycle.is_some() => {
                self.trace_loop_step(region)?
            }
            Item::Region(region) => {
                let data = &self.graph.regions[region];
                let (scope, operands) = self.scope(data.root);
                let inside = scope.blocks.iter().flat_map(|block| &block.steps);
                let inside: u64 = inside.map(|step| self.templates.weight(step.template)).sum();
                let template =
                    Template::Region { scope, phis: data.phis.len() as u32, place: data.place };
                let template = self.templates.intern(template, data.phis.len(), 1 + inside);
                let outputs = SmallVec::from_slice(&data.phis);
                Step { template, operands, outputs }
            }
            Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => return None,
        }))
    }

    /// The step of an element: a saved value of an earlier loop. Elements that vary in a loop are
    /// operands, not steps.
    fn element(&mut self, node: Node) -> Option<Option<Step>> {
        let data = &self.graph.nodes[node];
        let Def::Element(access) = data.def else { return None };
        if !self.graph.accesses[access].strides.is_empty() {
            return Some(None);
        }
        let (of, iteration) = saved_element(self.graph, node)?;
        let template =
            self.templates.intern(Template::Saved { iteration, place: data.place }, 1, 0);
        let (operands, outputs) = (SmallVec::from_slice(&[of]), SmallVec::from_slice(&[node]));
        Some(Some(Step { template, operands, outputs }))
    }

    /// Rolls the tree of `root`, whose lists are complete, and returns it with its operands from
    /// outside.
    pub(super) fn scope(&mut self, root: Block) -> (Scope, SmallVec<[Node; 3]>) {
        self.roll_between_guards(root);
        self.roll_exit_chains(root);
        let order = self.tree.order(root);
        for &(block, _) in &order {
            let list = &mut self.tree.lists[block];
            self.loops += roll(list, self.templates, &mut self.definitions, self.limits);
        }
        let scope = self.tree.view(root, 0);
        for &(block, _) in &order {
            self.tree.lists[block] = Vec::new();
        }
        scope
    }
}

impl Collect<'_> {
    /// Rolls guard-free code in the tree of `root`, if it branches: in an exit chain such loops
    /// are steps, while repetition with guards may be the iterations of the chain itself.
    fn roll_between_guards(&mut self, root: Block) {
        let order = self.tree.order(root);
        if order.len() == 1 {
            return;
        }
        for (block, _) in order {
            let list = core::mem::take(&mut self.tree.lists[block]);
            let mut rolled = Vec::with_capacity(list.len());
            let is_guard = |step: &Step, templates: &Templates| {
                matches!(templates.get(step.template), Template::Guard { .. })
            };
            let mut steps = list.into_iter().peekable();
            while steps.peek().is_some() {
                let mut between: Vec<Step> = Vec::new();
                while let Some(step) = steps.next_if(|step| !is_guard(step, self.templates)) {
                    between.push(step);
                }
                roll_repeatedly(&mut between, self.templates, &mut self.definitions, self.limits);
                rolled.append(&mut between);
                rolled.extend(steps.next_if(|step| is_guard(step, self.templates)));
            }
            self.tree.lists[block] = rolled;
        }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn graph(&self) -> &'a Graph {
        self.numbers.graph()
    }

    /// The tree of `root`, without the first steps of `root`, and its operands from outside.
    pub(super) fn view(&mut self, root: Block, first: usize) -> (Scope, SmallVec<[Node; 3]>) {
        let order = self.order(root);
        self.numbers.begin();
        let mut operands = SmallVec::new();
        let mut number = 0;
        let mut blocks = Vec::with_capacity(order.len());
        for &(block, arms) in &order {
            let list = &self.lists[block][if block == root { first } else { 0 }..];
            let mut steps = Vec::with_capacity(list.len());
            for step in list {
                let refs = step.operands.iter().map(|&node| self.reference(node, &mut operands));
                steps.push(Inner { template: step.template, operands: refs.collect() });
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
                    let [then, otherwise] = arms;
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

    /// The blocks of the tree of `root`, first arms first, with the indices of their arms in this
    /// order.
    pub(super) fn order(&self, root: Block) -> Vec<(Block, [usize; 2])> {
        let mut order: Vec<(Block, [usize; 2])> = Vec::new();
        // With the index of the block above, and the number of the arm.
        let mut pending = vec![(root, 0, 0)];
        while let Some((block, above, arm)) = pending.pop() {
            let here = order.len();
            order.push((block, [0; 2]));
            if here > 0 {
                order[above].1[arm] = here;
            }
            if let End::Branch { then, otherwise, .. } = self.ends[block] {
                pending.extend([(otherwise, here, 1), (then, here, 0)]);
            }
        }
        order
    }
}
