//! Emission of the loops in the tree.
//!
//! Values of the last iteration that are used after the loop become φs, those of other iterations
//! are elements of saved arrays.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::emit::Emitter;
use super::trace_loop::{LoopStep, OperandRule, TraceLoop, TraceLoopId};
use super::tree::{End, Origin, Tree, Value};
use super::values::Place;
use crate::entity::{Entity, PrimaryMap};
use crate::op::Op;
use crate::ssa::{self, AccessData, Array, ArrayData, Block, Item, Node, Table};

/// The loops of the graph under construction.
pub(super) struct Loops {
    /// For each step of each loop whether its last value is used after the loop.
    lasts: PrimaryMap<TraceLoopId, Vec<bool>>,
    made: HashMap<TraceLoopId, Made>,
    /// The elements already read, by block and value.
    elements: HashMap<(Block, Value), Node>,
}

/// An emitted loop, step by step.
struct Made {
    nodes: Vec<Node>,
    /// The values after the loop: φs, or the node itself for unused ones.
    lasts: Vec<Node>,
}

/// An operand of a step of a loop.
enum Operand {
    Own(usize),
    Entry(usize),
    Node(Node),
    Element(Array, u32, i32),
}

/// The next value of an entry φ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Own(usize),
    Entry(usize),
}

impl Loops {
    pub(super) fn of(tree: &Tree) -> Self {
        let lasts =
            tree.loops.values().map(|trace_loop| vec![false; trace_loop.body.len()]).collect();
        let mut loops = Loops { lasts, made: HashMap::new(), elements: HashMap::new() };
        if !tree.has_loops() {
            return loops;
        }
        for origin in tree.values.origins() {
            if let Origin::Apply(op, args, _) = origin {
                args[..op.arity()].iter().for_each(|&arg| loops.note(tree, arg));
            }
        }
        for data in tree.basic_blocks.values() {
            match &data.end {
                End::Return(value) | End::Branch { condition: value, .. } => {
                    loops.note(tree, *value);
                }
                End::Exit { values, .. } => values.iter().for_each(|&v| loops.note(tree, v)),
                End::Open | End::Region { .. } => {}
            }
        }
        for operand_rule in tree.loops.values().flat_map(TraceLoop::operand_rules) {
            match operand_rule {
                OperandRule::Value { first, stride: 0 } => loops.note(tree, *first),
                OperandRule::Value { .. } | OperandRule::Table(_) => {}
                OperandRule::Body { initial, .. } => {
                    initial.iter().for_each(|&v| loops.note(tree, v))
                }
            }
        }
        loops
    }

    /// Notes a use of `value`.
    fn note(&mut self, tree: &Tree, value: Value) {
        if let Place::Loop(id) = tree.values.place(value) {
            let (step, iteration) = tree.loops[id].position_of(value);
            if iteration + 1 == tree.loops[id].times {
                self.lasts[id][step] = true;
            }
        }
    }
}

impl Emitter<'_> {
    /// Appends a loop to `block`.
    pub(super) fn emit_loop(&mut self, id: TraceLoopId, block: Block) {
        let trace_loop = &self.tree.loops[id];
        let sites = trace_loop.body.iter().find_map(|step| match step {
            LoopStep::Apply { site, .. } => Some(*site),
            LoopStep::NoStep => None,
        });
        let place = sites.map(|site| self.place(site));
        let (mut operands, mut nexts, mut initial) = (Vec::new(), Vec::new(), Vec::new());
        for operand_rule in trace_loop.operand_rules() {
            operands.push(self.loop_operand(operand_rule, block, &mut nexts, &mut initial));
        }
        // The loop with its entry φs.
        let region = self.graph.push_region(block, None, place);
        let last = u32::try_from(trace_loop.times - 1).unwrap_or(u32::MAX);
        let entries = self.graph.make_loop(region, last.saturating_add(1), &initial);
        let number = self.graph.intern_iteration(region);
        let body = self.graph.regions[region].root;
        let mut operands = operands.into_iter();
        let mut nodes = Vec::with_capacity(trace_loop.body.len());
        for step in &trace_loop.body {
            let LoopStep::Apply { op, operand_rules, outcome, site } = step else {
                nodes.push(number);
                continue;
            };
            let place = self.place(site);
            let mut args: SmallVec<[Node; 3]> = SmallVec::new();
            for operand in operands.by_ref().take(operand_rules.len()) {
                args.push(match operand {
                    Operand::Own(step) => nodes[step],
                    Operand::Entry(entry) => entries[entry],
                    Operand::Node(node) => node,
                    Operand::Element(array, base, stride) => {
                        let strides = SmallVec::from_slice(&[(region, stride)]);
                        let access =
                            AccessData { array, base, strides, changes: Default::default() };
                        let access = self.graph.intern_access(access);
                        self.graph.push_element(body, access, Some(place))
                    }
                });
            }
            let node = self.graph.push_apply(body, *op, &args, Some(place));
            nodes.push(node);
            if let &Some(expect) = outcome {
                self.graph.blocks[body].items.push(Item::Guard { condition: node, expect });
            }
        }
        // The condition, the next values of the entry φs, and the results.
        let most = self.constant(f64::from(last));
        let again = self.graph.push_apply(body, Op::Lt, &[number, most], place);
        let mut passed: SmallVec<[Node; 2]> = SmallVec::from_slice(&[again]);
        passed.extend(nexts.iter().map(|next| match *next {
            Next::Own(step) => nodes[step],
            Next::Entry(entry) => entries[entry],
        }));
        let used_steps = || (0..nodes.len()).filter(|&step| self.loops.lasts[id][step]);
        passed.extend(used_steps().map(|step| nodes[step]));
        self.graph.blocks[body].end = ssa::End::Return(passed);
        let mut lasts = nodes.clone();
        for step in used_steps() {
            lasts[step] = self.graph.push_phi(region);
        }
        self.loops.made.insert(id, Made { nodes, lasts });
    }

    /// The operand by `rule` for a loop at the end of `block`. It may need entry φs, with next
    /// values `nexts` and first values `all_initial`.
    fn loop_operand(
        &mut self,
        operand_rule: &OperandRule,
        block: Block,
        nexts: &mut Vec<Next>,
        all_initial: &mut Vec<Node>,
    ) -> Operand {
        match operand_rule {
            OperandRule::Value { first, stride: 0 } => Operand::Node(self.node(*first, block)),
            OperandRule::Value { first, stride } => self.row(*first, *stride),
            OperandRule::Table(numbers) => {
                let numbers = Table::from(Arc::clone(numbers));
                let array = self.graph.intern_array(ArrayData::Constants(numbers));
                Operand::Element(array, 0, 1)
            }
            OperandRule::Body { at, distance: 0, .. } => Operand::Own(*at),
            OperandRule::Body { at, initial, .. } => {
                let (mut next, mut entry) = (Next::Own(*at), 0);
                for &first in initial.iter().rev() {
                    let first = self.node(first, block);
                    let mut known = nexts.iter().zip(&*all_initial);
                    let same = known.position(|known| known == (&next, &first));
                    entry = same.unwrap_or_else(|| {
                        nexts.push(next);
                        all_initial.push(first);
                        nexts.len() - 1
                    });
                    next = Next::Entry(entry);
                }
                Operand::Entry(entry)
            }
        }
    }

    /// The values `first + stride · iteration`: inputs, or values of an earlier loop.
    fn row(&mut self, first: Value, stride: i64) -> Operand {
        let (index, tree) = (first.index(), self.tree);
        let (array, base, stride) = match tree.values.place(first) {
            Place::Origin(_) => {
                let is_active = index < tree.active;
                let row = if is_active { 0..tree.active } else { tree.active..tree.inputs() };
                let (first, count) = (row.start as u32, row.len() as u32);
                let array = self.graph.intern_array(ArrayData::Inputs { first, count });
                (array, index - row.start, stride)
            }
            Place::Loop(id) => {
                let (step, iteration) = tree.loops[id].position_of(first);
                let node = self.loops.made.get(&id).map(|made| made.nodes[step]);
                // Visible values have been emitted.
                let Some(node) = node else { return Operand::Node(self.graph.poison()) };
                (
                    self.graph.intern_array(ArrayData::Saved(node)),
                    iteration,
                    stride / tree.loops[id].body.len() as i64,
                )
            }
        };
        // Both fit, as there are fewer events than indices.
        Operand::Element(array, base as u32, stride as i32)
    }

    /// The node of `value`, which was computed in a loop, at the current end of `block`.
    pub(super) fn loop_value(&mut self, id: TraceLoopId, value: Value, block: Block) -> Node {
        let trace_loop = &self.tree.loops[id];
        let (step, iteration) = trace_loop.position_of(value);
        let Some(made) = self.loops.made.get(&id) else { return self.graph.poison() };
        if iteration + 1 == trace_loop.times {
            return made.lasts[step];
        }
        if let Some(&element) = self.loops.elements.get(&(block, value)) {
            return element;
        }
        let (node, place) = (made.nodes[step], self.graph.nodes[made.nodes[step]].place);
        let array = self.graph.intern_array(ArrayData::Saved(node));
        let data = AccessData {
            array,
            base: iteration as u32,
            strides: SmallVec::new(),
            changes: Default::default(),
        };
        let access = self.graph.intern_access(data);
        let element = self.graph.push_element(block, access, place);
        self.loops.elements.insert((block, value), element);
        element
    }
}
