//! The planner: walks along the schedule and assigns registers and spill slots.

use super::regions::Structure;
use super::{BasicBlock, Next, Plan, Source, Step};
use crate::entity::PrimaryMap;
use crate::jit::Schedule;
use crate::jit::layout::Layout;
use crate::jit::math::is_call;
use crate::jit::operands::{in_registers, known_element};
use crate::jit::schedule::Inst;
use crate::jit::slots::Slots;
use crate::jit::uses::{Scope, Uses};
use crate::ssa::{Def, Graph, Node};

/// Plans registers, basic blocks and functions for a schedule. A new function begins at each of
/// the positions `cuts`, which ascend.
pub(in crate::jit) fn plan(schedule: &Schedule<'_>, cuts: &[u32], registers: usize) -> Plan {
    let mut planner = Planner::new(schedule, cuts, registers);
    for (&inst, position) in schedule.insts.iter().zip(0..) {
        planner.position = position;
        planner.inst(inst);
    }
    let Planner { blocks, functions, constants, slots, .. } = planner;
    Plan { blocks, functions, constants, slots: slots.len() }
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) layout: &'a Layout,
    /// The number of values in registers.
    pub(super) registers: usize,
    /// The positions of cuts, and the number of the next one.
    cuts: &'a [u32],
    next_cut: usize,
    /// True if a cut is due at the next instruction that allows it.
    due: bool,
    /// The remaining uses of each node.
    pub(super) uses: Uses,
    pub(super) position: u32,
    pub(super) scope: Scope,
    /// The regions and branches around the current position.
    pub(super) structure: Structure,
    /// The values in registers.
    pub(super) resident: Vec<Node>,
    pub(super) slots: Slots,
    /// True for entry φs that have slots for the whole of their loop.
    pub(super) pinned: PrimaryMap<Node, bool>,
    constants: Vec<f64>,
    constant_index: PrimaryMap<Node, Option<u32>>,
    /// The block that is being planned.
    pub(super) after: Option<usize>,
    pub(super) parameters: Vec<Node>,
    pub(super) steps: Vec<Step>,
    pub(super) blocks: Vec<BasicBlock>,
    pub(super) functions: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn new(schedule: &'a Schedule<'_>, cuts: &'a [u32], registers: usize) -> Self {
        let (graph, layout) = (schedule.graph, &schedule.layout);
        Planner {
            graph,
            layout,
            registers,
            cuts,
            next_cut: 0,
            due: false,
            uses: schedule.uses.clone(),
            position: 0,
            scope: Scope::up_to(schedule.insts.len() as u32),
            structure: Structure::default(),
            resident: Vec::with_capacity(registers + 4),
            slots: Slots::new(graph.nodes.len()),
            pinned: PrimaryMap::filled(false, graph.nodes.len()),
            constants: layout.constants.clone(),
            constant_index: PrimaryMap::filled(None, graph.nodes.len()),
            after: None,
            parameters: Vec::new(),
            steps: Vec::new(),
            blocks: Vec::new(),
            functions: vec![0],
        }
    }

    fn inst(&mut self, inst: Inst) {
        while self.cuts.get(self.next_cut).is_some_and(|&cut| cut <= self.position) {
            self.next_cut += 1;
            self.due = true;
        }
        match inst {
            Inst::Node(node) => {
                self.cut_if_due();
                self.compute(node);
            }
            Inst::Guard(condition, expect) => {
                self.cut_if_due();
                self.bring(&[condition]);
                self.steps.push(Step::Guard(condition, expect));
                self.used(&[condition]);
                self.spill_down_to(self.registers);
            }
            Inst::Return(index, value) => {
                self.cut_if_due();
                self.return_value(index, value);
            }
            Inst::End => self.end(),
            Inst::Enter { region, end } => self.enter(region, end),
            Inst::Join => self.join(),
            Inst::Branch { test, hot, otherwise, end } => {
                self.cut_if_due();
                self.branch(test, hot, otherwise, end);
            }
            Inst::Otherwise => self.otherwise(),
            Inst::Close => self.close(),
            Inst::Write { word, node } => self.step_with(node, Step::Write(node, word)),
            Inst::Zero { word, len } => {
                self.cut_if_due();
                self.steps.push(Step::Zero(word, len));
            }
            Inst::ZeroOutputs { first, count } => {
                self.cut_if_due();
                self.steps.push(Step::ZeroOutputs(first, count));
            }
            Inst::Accumulate(access, node) => self.step_with(node, Step::Accumulate(access, node)),
            Inst::Store(access, node) => self.step_with(node, Step::Store(access, node)),
            Inst::Hold(number, value) => self.hold(number, value),
            Inst::Next(number, value) => {
                self.cut_if_due();
                self.next(number, value);
            }
            Inst::BackEdge => self.back_edge(),
        }
    }

    /// Plans a step that has `node` in a register.
    fn step_with(&mut self, node: Node, step: Step) {
        self.cut_if_due();
        self.bring(&[node]);
        self.steps.push(step);
        self.used(&[node]);
        self.spill_down_to(self.registers);
    }

    fn compute(&mut self, node: Node) {
        let data = &self.graph.nodes[node];
        let source = known_element(self.graph, node);
        let args = source.as_ref().map_or(in_registers(self.graph, node), core::slice::from_ref);
        self.bring(args);
        let calls = match data.def {
            Def::Apply(op, _) => is_call(op),
            def => matches!(def, Def::Call(_)),
        };
        self.used(args);
        if calls {
            // A call clobbers all registers.
            self.store_residents();
            self.structure.evicted(&self.resident);
            self.resident.clear();
        }
        self.steps.push(Step::Compute(node));
        if self.layout.trajectory(node).is_some() {
            self.steps.push(Step::Save(node, node));
        }
        if self.next_use(node).is_some() {
            self.resident.push(node);
        }
        self.spill_down_to(self.registers);
    }

    /// Loads those of `nodes` that are not in registers.
    pub(super) fn bring(&mut self, nodes: &[Node]) {
        for &node in nodes {
            if self.resident.contains(&node) {
                continue;
            }
            let source = match self.graph.nodes[node].def {
                Def::Input(i) if (i as usize) < self.graph.active => Source::Active(i),
                Def::Input(i) => Source::Inactive(i - self.graph.active as u32),
                Def::Const(bits) => Source::Const(self.constant(node, bits)),
                Def::Iteration(region) => Source::Iteration(region),
                Def::Apply(..)
                | Def::Phi(..)
                | Def::Entry(..)
                | Def::Element(_)
                | Def::Call(_)
                | Def::Result(..) => match self.slots.get(node) {
                    Some(slot) => Source::Slot(slot),
                    None if self.layout.trajectory(node).is_some() => Source::Saved,
                    None => {
                        debug_assert!(false, "{node} was not stored");
                        Source::Const(self.constant(node, f64::NAN.to_bits()))
                    }
                },
            };
            self.steps.push(Step::Load(node, source));
            self.resident.push(node);
        }
    }

    /// Ends the current instruction, which uses `nodes`, and releases values without further uses.
    pub(super) fn used(&mut self, nodes: &[Node]) {
        self.position += 1;
        for &node in nodes {
            self.uses.advance(node, self.position);
            if self.next_use(node).is_none() {
                self.resident.retain(|&resident| resident != node);
                if !self.pinned[node] {
                    self.slots.release(node);
                }
            }
        }
    }

    /// The next use of `node` on the paths from the current position.
    pub(super) fn next_use(&self, node: Node) -> Option<u32> {
        self.uses.next_in(node, self.scope)
    }

    pub(super) fn spill_down_to(&mut self, limit: usize) {
        while self.resident.len() > limit {
            let farthest = self.resident.iter().enumerate().max_by_key(|(_, node)| {
                let next = self.next_use(**node);
                (next.is_none(), next)
            });
            let Some((index, &node)) = farthest else { return };
            self.store(node);
            self.structure.evicted(&[node]);
            self.resident.swap_remove(index);
        }
    }

    pub(super) fn store_residents(&mut self) {
        for index in 0..self.resident.len() {
            self.store(self.resident[index]);
        }
    }

    /// Stores `node` to a spill slot if it is used again and not in memory yet.
    pub(super) fn store(&mut self, node: Node) {
        let def = self.graph.nodes[node].def;
        let given = matches!(def, Def::Input(_) | Def::Const(_) | Def::Iteration(_));
        if given
            || self.layout.trajectory(node).is_some()
            || self.slots.get(node).is_some()
            || self.next_use(node).is_none()
        {
            return;
        }
        let slot = self.slots.take(node);
        self.steps.push(Step::Spill(node, slot));
    }

    fn constant(&mut self, node: Node, bits: u64) -> u32 {
        let constants = &mut self.constants;
        *self.constant_index[node].get_or_insert_with(|| {
            constants.push(f64::from_bits(bits));
            constants.len() as u32 - 1
        })
    }

    /// True if there is a cut after this instruction and before `end`.
    pub(super) fn is_cut_before(&self, end: u32) -> bool {
        self.cuts.get(self.next_cut).is_some_and(|&cut| cut < end)
    }

    /// Begins a new function if a cut is due.
    pub(super) fn cut_if_due(&mut self) {
        if !core::mem::take(&mut self.due) {
            return;
        }
        debug_assert!(!self.structure.is_uncut(), "a region without a cut has no cut due");
        self.store_residents();
        self.resident.clear();
        if !self.steps.is_empty() || !self.parameters.is_empty() {
            let next = self.blocks.len() + 1;
            self.finish_block(Next::Jump(next, Vec::new()));
        }
        // If there is a block without steps, the new function begins with it.
        self.after = None;
        if self.functions.last() != Some(&self.blocks.len()) {
            self.functions.push(self.blocks.len());
        }
    }

    pub(super) fn finish_block(&mut self, next: Next) {
        let steps = core::mem::take(&mut self.steps);
        let parameters = core::mem::take(&mut self.parameters);
        let (after, is_cold) = (self.after.take(), self.structure.is_cold);
        self.blocks.push(BasicBlock { after, parameters, steps, next, is_cold });
    }
}
