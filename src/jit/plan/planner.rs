//! The planner: walks along the schedule and makes the plan of straight code.

use super::regions::Structure;
use super::{Chunk, Limits, Next, Plan, Source, Step};
use crate::entity::Array;
use crate::jit::math::is_call;
use crate::jit::schedule::Line;
use crate::jit::slots::Slots;
use crate::jit::uses::{Scope, Uses};
use crate::ssa::{Def, Graph, Node};

/// Plans the registers, chunks and functions of `graph` in this order.
pub(in crate::jit) fn plan(graph: &Graph, lines: &[Line], limits: Limits) -> Plan {
    let mut planner = Planner::new(graph, lines, limits);
    for (&line, position) in lines.iter().zip(0..) {
        planner.position = position;
        planner.line(line);
    }
    let Planner { chunks, functions, constants, slots, .. } = planner;
    Plan { chunks, functions, constants, slots: slots.len() }
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) limits: Limits,
    /// All positions at which each node is used, and the next of them.
    pub(super) uses: Uses,
    pub(super) position: u32,
    pub(super) scope: Scope,
    /// The regions and branches around the current position.
    pub(super) structure: Structure,
    /// What registers hold.
    pub(super) resident: Vec<Node>,
    pub(super) slots: Slots,
    constants: Vec<f64>,
    constant_index: Array<Node, Option<u32>>,
    /// The chunk that is being planned.
    pub(super) after: Option<usize>,
    pub(super) parameters: Vec<Node>,
    pub(super) steps: Vec<Step>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) functions: Vec<usize>,
    /// How many steps the finished chunks of this function have.
    pub(super) function_steps: usize,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, lines: &[Line], limits: Limits) -> Self {
        Planner {
            graph,
            limits,
            uses: Uses::of(graph, lines),
            position: 0,
            scope: Scope::up_to(u32::MAX),
            structure: Structure::default(),
            resident: Vec::with_capacity(limits.registers + 4),
            slots: Slots::new(graph.nodes.len()),
            constants: Vec::new(),
            constant_index: Array::filled(None, graph.nodes.len()),
            after: None,
            parameters: Vec::new(),
            steps: Vec::new(),
            chunks: Vec::new(),
            functions: vec![0],
            function_steps: 0,
        }
    }

    fn line(&mut self, line: Line) {
        match line {
            Line::Node(node) => {
                self.cut_if_full();
                self.compute(node);
            }
            Line::Guard(condition, expect) => {
                self.cut_if_full();
                self.bring(&[condition]);
                self.steps.push(Step::Guard(condition, expect));
                self.used(&[condition]);
                self.spill_down_to(self.limits.registers);
            }
            Line::Pass(index, value) => {
                self.cut_if_full();
                self.pass(index, value);
            }
            Line::End => self.end(),
            Line::Enter { region, end } => self.enter(region, end),
            Line::Leave => self.leave(),
            Line::Branch { condition, otherwise, end } => {
                self.cut_if_full();
                self.branch(condition, otherwise, end);
            }
            Line::Otherwise => self.otherwise(),
            Line::Close => self.close(),
        }
    }

    fn compute(&mut self, node: Node) {
        let data = &self.graph.nodes[node];
        let Def::Apply(op, _) = data.def else { return };
        let args = data.args();
        self.bring(args);
        let calls = is_call(op);
        self.used(args);
        if calls {
            // A call may change every register.
            self.store_residents();
            self.structure.evicted(&self.resident);
            self.resident.clear();
        }
        self.steps.push(Step::Compute(node));
        if self.next_use(node).is_some() {
            self.resident.push(node);
        }
        self.spill_down_to(self.limits.registers);
    }

    /// Brings all of `nodes` into registers.
    pub(super) fn bring(&mut self, nodes: &[Node]) {
        for &node in nodes {
            if self.resident.contains(&node) {
                continue;
            }
            let source = match self.graph.nodes[node].def {
                Def::Input(i) if (i as usize) < self.graph.active => Source::Active(i),
                Def::Input(i) => Source::Inactive(i - self.graph.active as u32),
                Def::Const(bits) => Source::Const(self.constant(node, bits)),
                Def::Apply(..) | Def::Phi(..) => match self.slots.get(node) {
                    Some(slot) => Source::Slot(slot),
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

    /// Notes that `nodes` were used at the current position, and goes on to the
    /// next position.
    pub(super) fn used(&mut self, nodes: &[Node]) {
        self.position += 1;
        for &node in nodes {
            self.uses.advance(node, self.position);
            if self.next_use(node).is_none() {
                self.resident.retain(|&resident| resident != node);
                self.slots.release(node);
            }
        }
    }

    /// The next use of `node` on the paths from the current position on.
    pub(super) fn next_use(&self, node: Node) -> Option<u32> {
        self.uses.next_in(node, self.scope)
    }

    pub(super) fn spill_down_to(&mut self, limit: usize) {
        while self.resident.len() > limit {
            let farthest = self
                .resident
                .iter()
                .enumerate()
                .max_by_key(|(_, node)| self.next_use(**node).unwrap_or(u32::MAX));
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

    /// Makes sure that `node`, if it is used again, is found outside registers.
    pub(super) fn store(&mut self, node: Node) {
        let given = matches!(self.graph.nodes[node].def, Def::Input(_) | Def::Const(_));
        if given || self.slots.get(node).is_some() || self.next_use(node).is_none() {
            return;
        }
        let slot = self.slots.take(node);
        self.steps.push(Step::Store(node, slot));
    }

    fn constant(&mut self, node: Node, bits: u64) -> u32 {
        let constants = &mut self.constants;
        *self.constant_index[node].get_or_insert_with(|| {
            constants.push(f64::from_bits(bits));
            constants.len() as u32 - 1
        })
    }

    fn cut_if_full(&mut self) {
        let steps = self.function_steps + self.steps.len();
        if steps >= self.limits.steps && !self.structure.is_uncut() {
            self.cut();
        }
    }

    /// Goes on in a new function.
    pub(super) fn cut(&mut self) {
        self.store_residents();
        self.resident.clear();
        if !self.steps.is_empty() || !self.parameters.is_empty() {
            let next = self.chunks.len() + 1;
            self.finish_chunk(Next::Chunk(next, Vec::new()));
        }
        // What is left is a chunk without steps, which may as well begin here.
        self.after = None;
        if self.functions.last() != Some(&self.chunks.len()) {
            self.functions.push(self.chunks.len());
        }
        self.function_steps = 0;
    }

    pub(super) fn finish_chunk(&mut self, next: Next) {
        let steps = core::mem::take(&mut self.steps);
        let parameters = core::mem::take(&mut self.parameters);
        // A chunk without steps is code, too.
        self.function_steps += steps.len().max(1);
        self.chunks.push(Chunk { after: self.after.take(), parameters, steps, next });
    }
}
