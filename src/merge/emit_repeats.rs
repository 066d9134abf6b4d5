//! Emission of the loops in the tree.
//!
//! Values of the last iteration that are used after the loop become φs, those of other iterations
//! are elements of saved arrays.

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::emit::Emitter;
use super::repeat::{Part, Repeat, RepeatId, Slot};
use super::tree::{End, Origin, Tree, Value};
use super::values::Place;
use crate::entity::{Entity, PrimaryMap};
use crate::op::Op;
use crate::ssa::{self, AccessData, Array, ArrayData, Block, Item, Node, Table};

/// The loops of the graph under construction.
pub(super) struct Loops {
    /// For each step of each loop whether its last value is used after the loop.
    lasts: PrimaryMap<RepeatId, Vec<bool>>,
    made: HashMap<RepeatId, Made>,
    /// The arrays of active and of inactive inputs.
    rows: [Option<Array>; 2],
    histories: HashMap<Node, Array>,
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
        let lasts = tree.repeats.values().map(|repeat| vec![false; repeat.body.len()]).collect();
        let (made, rows, histories) = (HashMap::new(), [None; 2], HashMap::new());
        let mut loops = Loops { lasts, made, rows, histories, elements: HashMap::new() };
        if !tree.has_repeats() {
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
        for slot in tree.repeats.values().flat_map(Repeat::slots) {
            match slot {
                Slot::Value { first, by: 0 } => loops.note(tree, *first),
                Slot::Value { .. } | Slot::Table(_) => {}
                Slot::Inside { firsts, .. } => firsts.iter().for_each(|&v| loops.note(tree, v)),
            }
        }
        loops
    }

    /// Notes a use of `value`.
    fn note(&mut self, tree: &Tree, value: Value) {
        if let Place::Repeat(id) = tree.values.place(value) {
            let (part, iteration) = tree.repeats[id].part(value);
            if iteration + 1 == tree.repeats[id].times {
                self.lasts[id][part] = true;
            }
        }
    }
}

impl Emitter<'_> {
    /// Appends a loop to `block`.
    pub(super) fn repeat(&mut self, id: RepeatId, block: Block) {
        let repeat = &self.tree.repeats[id];
        let sites = repeat.body.iter().find_map(|part| match part {
            Part::Apply { site, .. } => Some(*site),
            Part::Nothing => None,
        });
        let place = sites.map(|site| self.place(site));
        let (mut operands, mut nexts, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for slot in repeat.slots() {
            operands.push(self.slot(slot, block, &mut nexts, &mut firsts));
        }
        let region = self.graph.push_region(block, None, place);
        let last = u32::try_from(repeat.times - 1).unwrap_or(u32::MAX);
        let entries = self.graph.make_loop(region, last.saturating_add(1), &firsts);
        let number = self.graph.push_iteration(region);
        let body = self.graph.regions[region].root;
        let mut operands = operands.into_iter();
        let mut nodes = Vec::with_capacity(repeat.body.len());
        for part in &repeat.body {
            let Part::Apply { op, slots, outcome, site } = part else {
                nodes.push(number);
                continue;
            };
            let place = self.place(site);
            let mut args: SmallVec<[Node; 3]> = SmallVec::new();
            for operand in operands.by_ref().take(slots.len()) {
                args.push(match operand {
                    Operand::Own(part) => nodes[part],
                    Operand::Entry(entry) => entries[entry],
                    Operand::Node(node) => node,
                    Operand::Element(array, base, stride) => {
                        let strides = SmallVec::from_slice(&[(region, stride)]);
                        let access = AccessData { array, base, strides };
                        let access = self.graph.accesses.push(access);
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
        let most = self.constant(f64::from(last));
        let again = self.graph.push_apply(body, Op::Lt, &[number, most], place);
        let mut passed: SmallVec<[Node; 2]> = SmallVec::from_slice(&[again]);
        passed.extend(nexts.iter().map(|next| match *next {
            Next::Own(part) => nodes[part],
            Next::Entry(entry) => entries[entry],
        }));
        let parts = || (0..nodes.len()).filter(|&part| self.loops.lasts[id][part]);
        passed.extend(parts().map(|part| nodes[part]));
        self.graph.blocks[body].end = ssa::End::Return(passed);
        let mut lasts = nodes.clone();
        for part in parts() {
            lasts[part] = self.graph.push_phi(region);
        }
        self.loops.made.insert(id, Made { nodes, lasts });
    }

    /// The operand by `rule` for a loop at the end of `block`. It may need entry φs, with next
    /// values `nexts` and first values `all_firsts`.
    fn slot(
        &mut self,
        slot: &Slot,
        block: Block,
        nexts: &mut Vec<Next>,
        all_firsts: &mut Vec<Node>,
    ) -> Operand {
        match slot {
            Slot::Value { first, by: 0 } => Operand::Node(self.node(*first, block)),
            Slot::Value { first, by } => self.row(*first, *by),
            Slot::Table(numbers) => {
                let numbers = Table::from(Arc::clone(numbers));
                let array = self.graph.arrays.push(ArrayData::Constants(numbers));
                Operand::Element(array, 0, 1)
            }
            Slot::Inside { at, distance: 0, .. } => Operand::Own(*at),
            Slot::Inside { at, firsts, .. } => {
                let (mut next, mut entry) = (Next::Own(*at), 0);
                for &first in firsts.iter().rev() {
                    let first = self.node(first, block);
                    let mut known = nexts.iter().zip(&*all_firsts);
                    let same = known.position(|known| known == (&next, &first));
                    entry = same.unwrap_or_else(|| {
                        nexts.push(next);
                        all_firsts.push(first);
                        nexts.len() - 1
                    });
                    next = Next::Entry(entry);
                }
                Operand::Entry(entry)
            }
        }
    }

    /// The values `first + stride · iteration`: inputs, or values of an earlier loop.
    fn row(&mut self, first: Value, by: i64) -> Operand {
        let (index, tree) = (first.index(), self.tree);
        let (array, base, stride) = match tree.values.place(first) {
            Place::Origin(_) => {
                let is_active = index < tree.active;
                let row = if is_active { 0..tree.active } else { tree.active..tree.inputs() };
                let graph = &mut self.graph;
                let array = *self.loops.rows[usize::from(!is_active)].get_or_insert_with(|| {
                    let (first, count) = (row.start as u32, row.len() as u32);
                    graph.arrays.push(ArrayData::Inputs { first, count })
                });
                (array, index - row.start, by)
            }
            Place::Repeat(id) => {
                let (part, iteration) = tree.repeats[id].part(first);
                let node = self.loops.made.get(&id).map(|made| made.nodes[part]);
                // Visible values have been emitted.
                let Some(node) = node else { return Operand::Node(self.constant(f64::NAN)) };
                (self.saved(node), iteration, by / tree.repeats[id].body.len() as i64)
            }
        };
        // Both fit, as there are fewer events than indices.
        Operand::Element(array, base as u32, stride as i32)
    }

    fn saved(&mut self, node: Node) -> Array {
        let array = &mut self.graph.arrays;
        *self.loops.histories.entry(node).or_insert_with(|| array.push(ArrayData::Saved(node)))
    }

    /// The node of `value`, which was computed in a loop, at the current end of `block`.
    pub(super) fn repeated(&mut self, id: RepeatId, value: Value, block: Block) -> Node {
        let repeat = &self.tree.repeats[id];
        let (part, iteration) = repeat.part(value);
        let Some(made) = self.loops.made.get(&id) else { return self.constant(f64::NAN) };
        if iteration + 1 == repeat.times {
            return made.lasts[part];
        }
        if let Some(&element) = self.loops.elements.get(&(block, value)) {
            return element;
        }
        let (node, place) = (made.nodes[part], self.graph.nodes[made.nodes[part]].place);
        let array = self.saved(node);
        let data = AccessData { array, base: iteration as u32, strides: SmallVec::new() };
        let access = self.graph.accesses.push(data);
        let element = self.graph.push_element(block, access, place);
        self.loops.elements.insert((block, value), element);
        element
    }
}
