//! Register planning: which values are in registers when, and how the code is
//! cut into chunks.
//!
//! The register allocator below us is quadratic in the length of a block and
//! weak where many long live ranges cross. So the plan keeps the number of live
//! values below the number of registers itself, by Belady's rule: when there is
//! no room, the value whose next use is farthest goes to the scratch buffer.
//! Code is cut into chunks of bounded size, and every value that crosses a cut
//! is in the scratch buffer. What the allocator sees is short and easy, compile
//! time is linear, and the code is better than what it makes of long blocks.

use super::math::is_call;
use super::schedule::Scheduled;
use crate::entity::{Array, Entity};
use crate::ssa::{Def, End, Graph, Item, Node};

/// How many steps a chunk holds at most. Found by experiment: from 300 to 2000
/// steps, compile time and speed differ by less than a tenth.
pub(super) const CHUNK_STEPS: usize = 1000;

/// How many values are kept in registers: three or four less than there are,
/// for operands beyond the limit and temporaries of the lowering.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 28 } else { 13 };

/// One step of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Brings a value into a register: an input, a constant, or from the slot.
    Load(Node, Source),
    /// Copies a value from its register into a slot of the scratch buffer.
    Store(Node, u32),
    /// Computes a node from values in registers.
    Compute(Node),
    /// Notes a failure unless the condition is as expected.
    Guard(Node, bool),
    /// Writes an output.
    Output(u32, Node),
}

/// Where a value is found that is not in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Active(u32),
    Inactive(u32),
    Const(u32),
    Slot(u32),
}

/// Where to go after a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Chunk(usize),
    Branch { condition: Node, then: usize, otherwise: usize },
    Done,
}

/// A stretch of code that becomes one native function.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) steps: Vec<Step>,
    pub(super) next: Next,
}

/// The whole plan.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) chunks: Vec<Chunk>,
    pub(super) constants: Vec<f64>,
    pub(super) slots: usize,
}

/// Plans the registers and chunks of `graph` in this order.
pub(super) fn plan(graph: &Graph, schedule: &[Scheduled]) -> Plan {
    let mut planner = Planner::new(graph, schedule);
    let mut states: Vec<Option<State>> = vec![None; schedule.len()];
    // The chunk that each block begins with, and the branches to fill in.
    let mut first_chunk = vec![0; schedule.len()];
    let mut branches = Vec::new();
    for (index, scheduled) in schedule.iter().enumerate() {
        if let Some(state) = states[index].take() {
            planner.state = state;
        }
        first_chunk[index] = planner.chunks.len();
        planner.block(scheduled);
        match &graph.blocks[scheduled.block].end {
            End::Return(outputs) => {
                for (i, &output) in outputs.iter().enumerate() {
                    planner.cut_if_full();
                    planner.bring(&[output]);
                    planner.steps.push(Step::Output(i as u32, output));
                    planner.used(&[output]);
                    planner.spill_down_to(REGISTERS);
                }
                planner.finish_chunk(Next::Done);
            }
            End::Branch { condition, .. } => {
                planner.bring(&[*condition]);
                planner.used(&[*condition]);
                // The first side follows directly, the other after its subtree.
                let then = index + 1;
                let otherwise = schedule[then].subtree_end;
                branches.push((planner.chunks.len(), then, otherwise));
                let condition = *condition;
                planner.finish_chunk(Next::Branch { condition, then: 0, otherwise: 0 });
                states[then] = Some(planner.state.clone());
                states[otherwise] = Some(planner.state.clone());
            }
            End::Open => planner.finish_chunk(Next::Done),
        }
    }
    for (chunk, then_block, otherwise_block) in branches {
        if let Next::Branch { then, otherwise, .. } = &mut planner.chunks[chunk].next {
            *then = first_chunk[then_block];
            *otherwise = first_chunk[otherwise_block];
        }
    }
    Plan { chunks: planner.chunks, constants: planner.constants, slots: planner.slots }
}

/// Which slots hold which values; differs from one side of a branch to the other.
#[derive(Clone)]
struct State {
    slot: hashbrown::HashMap<Node, u32>,
    free: Vec<u32>,
}

struct Planner<'a> {
    graph: &'a Graph,
    /// All positions at which each node is used, and the next of them.
    uses: Uses,
    /// The current position and the end of the subtree of the current block.
    position: u32,
    horizon: u32,
    /// The position at which each block ends.
    ends: Vec<u32>,
    resident: Vec<Node>,
    state: State,
    slots: usize,
    constants: Vec<f64>,
    constant_index: Array<Node, Option<u32>>,
    steps: Vec<Step>,
    chunks: Vec<Chunk>,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, schedule: &[Scheduled]) -> Self {
        let (uses, ends) = Uses::of(graph, schedule);
        Planner {
            graph,
            uses,
            position: 0,
            horizon: 0,
            ends,
            resident: Vec::with_capacity(REGISTERS + 4),
            state: State { slot: hashbrown::HashMap::new(), free: Vec::new() },
            slots: 0,
            constants: Vec::new(),
            constant_index: Array::filled(None, graph.nodes.len()),
            steps: Vec::new(),
            chunks: Vec::new(),
        }
    }

    fn block(&mut self, scheduled: &Scheduled) {
        self.horizon = self.ends[scheduled.subtree_end - 1];
        for &item in &scheduled.items {
            self.cut_if_full();
            match item {
                Item::Node(node) => self.compute(node),
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
                Item::Guard { condition, expect } => {
                    self.bring(&[condition]);
                    self.steps.push(Step::Guard(condition, expect));
                    self.used(&[condition]);
                    self.spill_down_to(REGISTERS);
                }
            }
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
            self.resident.clear();
        }
        self.steps.push(Step::Compute(node));
        if self.next_use(node).is_some() {
            self.resident.push(node);
        }
        self.spill_down_to(REGISTERS);
    }

    /// Brings all of `nodes` into registers.
    fn bring(&mut self, nodes: &[Node]) {
        for &node in nodes {
            if self.resident.contains(&node) {
                continue;
            }
            let source = match self.graph.nodes[node].def {
                Def::Input(i) if (i as usize) < self.graph.active => Source::Active(i),
                Def::Input(i) => Source::Inactive(i - self.graph.active as u32),
                Def::Const(bits) => Source::Const(self.constant(node, bits)),
                Def::Apply(..)
                | Def::Phi(..)
                | Def::Entry(..)
                | Def::Iteration(_)
                | Def::Element(_) => match self.state.slot.get(&node) {
                    Some(&slot) => Source::Slot(slot),
                    // The cut stores every value that is used again.
                    None => Source::Const(self.constant(node, f64::NAN.to_bits())),
                },
            };
            self.steps.push(Step::Load(node, source));
            self.resident.push(node);
        }
    }

    /// Notes that `nodes` were used at the current position, and goes on to the
    /// next position.
    fn used(&mut self, nodes: &[Node]) {
        self.position += 1;
        for &node in nodes {
            self.uses.advance(node, self.position);
            if self.next_use(node).is_none() {
                self.resident.retain(|&resident| resident != node);
                if let Some(slot) = self.state.slot.remove(&node) {
                    self.state.free.push(slot);
                }
            }
        }
    }

    /// The next use of `node` on the paths through the current block.
    fn next_use(&self, node: Node) -> Option<u32> {
        self.uses.next(node).filter(|&next| next < self.horizon)
    }

    fn spill_down_to(&mut self, limit: usize) {
        while self.resident.len() > limit {
            let farthest = self
                .resident
                .iter()
                .enumerate()
                .max_by_key(|(_, node)| self.next_use(**node).unwrap_or(u32::MAX));
            let Some((index, &node)) = farthest else { return };
            self.store(node);
            self.resident.swap_remove(index);
        }
    }

    fn store_residents(&mut self) {
        for index in 0..self.resident.len() {
            self.store(self.resident[index]);
        }
    }

    /// Makes sure that `node`, if it is used again, is found outside registers.
    fn store(&mut self, node: Node) {
        let computed = matches!(self.graph.nodes[node].def, Def::Apply(..));
        if !computed || self.state.slot.contains_key(&node) || self.next_use(node).is_none() {
            return;
        }
        let slot = self.state.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots as u32 - 1
        });
        self.state.slot.insert(node, slot);
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
        if self.steps.len() >= CHUNK_STEPS {
            let next = self.chunks.len() + 1;
            self.finish_chunk(Next::Chunk(next));
        }
    }

    fn finish_chunk(&mut self, next: Next) {
        self.store_residents();
        self.resident.clear();
        self.chunks.push(Chunk { steps: core::mem::take(&mut self.steps), next });
    }
}

/// The positions at which nodes are used, in the order of the schedule.
struct Uses {
    /// For each node, the range of its uses in `positions`; the start moves on.
    ranges: Array<Node, (u32, u32)>,
    positions: Vec<u32>,
}

impl Uses {
    /// The uses, and the position after each block. Each item and each output
    /// is one position.
    fn of(graph: &Graph, schedule: &[Scheduled]) -> (Uses, Vec<u32>) {
        let mut all: Vec<(Node, u32)> = Vec::new();
        let mut ends = Vec::with_capacity(schedule.len());
        let mut position = 0;
        for scheduled in schedule {
            for item in &scheduled.items {
                match item {
                    Item::Node(node) => {
                        let args = graph.nodes[*node].args();
                        all.extend(args.iter().map(|&arg| (arg, position)));
                    }
                    Item::Guard { condition, .. } => all.push((*condition, position)),
                    Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
                }
                position += 1;
            }
            match &graph.blocks[scheduled.block].end {
                End::Return(outputs) => {
                    for &output in outputs {
                        all.push((output, position));
                        position += 1;
                    }
                }
                End::Branch { condition, .. } => {
                    all.push((*condition, position));
                    position += 1;
                }
                End::Open => {}
            }
            ends.push(position);
        }
        // A counting sort by node; positions stay in order.
        let mut counts = vec![0u32; graph.nodes.len() + 1];
        for (node, _) in &all {
            counts[node.index() + 1] += 1;
        }
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        let ranges = graph.nodes.keys().map(|n| (counts[n.index()], counts[n.index() + 1]));
        let ranges = ranges.collect();
        let mut positions = vec![0; all.len()];
        for (node, position) in all {
            let place = &mut counts[node.index()];
            positions[*place as usize] = position;
            *place += 1;
        }
        (Uses { ranges, positions }, ends)
    }

    fn next(&self, node: Node) -> Option<u32> {
        let (start, end) = self.ranges[node];
        (start < end).then(|| self.positions[start as usize])
    }

    /// Drops the uses of `node` before `position`.
    fn advance(&mut self, node: Node, position: u32) {
        let (start, end) = &mut self.ranges[node];
        while *start < *end && self.positions[*start as usize] < position {
            *start += 1;
        }
    }
}
