//! The order in which the nodes of a basic block are computed.
//!
//! Nodes are computed when they are used. Of several operands the one that needs most registers
//! is computed first (Sethi and Ullman, "The Generation of Optimal Code for Arithmetic
//! Expressions", 1970), so that the others do not occupy registers meanwhile.

use core::cmp::Reverse;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::layout::{ArraySource, Layout};
use super::operands::operands;
use super::schedule::Inst;
use crate::entity::PrimaryMap;
use crate::op::MAX_ARITY;
use crate::ssa::{Array, ArrayData, Def, Graph, Node};

/// The schedule as it is built.
pub(super) struct Order<'a> {
    graph: &'a Graph,
    layout: &'a Layout,
    needs: PrimaryMap<Node, Need>,
    done: PrimaryMap<Node, bool>,
    /// The instructions so far.
    pub(super) insts: Vec<Inst>,
    /// For each node the guards that are checked as soon as it is computed.
    waiting: HashMap<Node, SmallVec<[Guard; 1]>>,
}

/// A condition and its expected outcome.
#[derive(Clone, Copy)]
struct Guard {
    condition: Node,
    expect: bool,
}

/// A unit of work; the worklist is a stack.
enum Task {
    /// Compute this node after its operands, starting at this operand.
    Compute(Node, usize),
    /// Check this guard, whose condition has been computed.
    Check(Guard),
}

impl<'a> Order<'a> {
    pub(super) fn new(graph: &'a Graph, layout: &'a Layout) -> Self {
        let is_step =
            |def| matches!(def, Def::Apply(..) | Def::Element(_) | Def::Call(_) | Def::Result(..));
        let done = graph.nodes.values().map(|data| !is_step(data.def)).collect();
        let (needs, waiting) = (register_needs(graph), HashMap::new());
        Order { graph, layout, needs, done, insts: Vec::new(), waiting }
    }

    /// Schedules a guard right after the last operand of its condition, when both operands are
    /// likely to be in registers.
    pub(super) fn await_guard(&mut self, condition: Node, expect: bool) {
        let guard = Guard { condition, expect };
        let pending = |&&node: &&Node| !self.done[node];
        let args = self.graph.nodes[condition].args();
        match args.iter().filter(pending).max() {
            Some(&last) if !self.done[condition] => {
                self.waiting.entry(last).or_default().push(guard);
            }
            _ => self.run(smallvec![Task::Check(guard), Task::Compute(condition, 0)]),
        }
    }

    /// Schedules `node` after its operands, unless it has been computed.
    pub(super) fn demand(&mut self, node: Node) {
        self.run(smallvec![Task::Compute(node, 0)]);
    }

    /// Sets sums to their first values.
    pub(super) fn fill(&mut self, array: Array) {
        let firsts = match &self.graph.arrays[array] {
            ArrayData::Sums(_) if self.layout.single_additions[array] => return,
            ArrayData::Sums(firsts) => firsts,
            &ArrayData::Outputs { first, count } => {
                self.insts.push(Inst::ZeroOutputs { first, count });
                return;
            }
            _ => return,
        };
        firsts.iter().flatten().for_each(|&first| self.demand(first));
        let ArraySource::Scratch(start) = self.layout.arrays[array] else { return };
        for (&first, word) in firsts.iter().zip(start..) {
            match (first, self.insts.last_mut()) {
                (Some(node), _) => self.insts.push(Inst::Write { word, node }),
                (None, Some(Inst::Zero { word: zero, len })) if *zero + *len == word => *len += 1,
                (None, _) => self.insts.push(Inst::Zero { word, len: 1 }),
            }
        }
    }

    /// Copies the nodes of `array`, which have been computed, to memory.
    pub(super) fn gather(&mut self, array: Array) {
        let ArrayData::Nodes(nodes) = &self.graph.arrays[array] else { return };
        if let ArraySource::Scratch(start) = self.layout.arrays[array] {
            let copied = nodes.iter().zip(start..);
            self.insts.extend(copied.map(|(&node, word)| Inst::Write { word, node }));
        }
    }

    /// Works off `tasks`.
    fn run(&mut self, mut tasks: SmallVec<[Task; 32]>) {
        while let Some(task) = tasks.pop() {
            match task {
                Task::Check(guard) => {
                    self.insts.push(Inst::Guard(guard.condition, guard.expect));
                }
                Task::Compute(node, _) if self.done[node] => {}
                Task::Compute(node, 0) if is_in_memory(self.graph, node) => {
                    tasks.push(Task::Compute(node, 1));
                    let operands = operands(self.graph, node).iter().rev();
                    tasks.extend(operands.map(|&operand| Task::Compute(operand, 0)));
                }
                Task::Compute(node, next) => match self.operand(node, next) {
                    Some(arg) => {
                        tasks.push(Task::Compute(node, next + 1));
                        tasks.push(Task::Compute(arg, 0));
                    }
                    None => {
                        self.done[node] = true;
                        if let Def::Element(access) = self.graph.nodes[node].def
                            && self.layout.gathers.binary_search(&node).is_ok()
                        {
                            self.gather(self.graph.accesses[access].array);
                        }
                        if let Def::Call(call) = self.graph.nodes[node].def {
                            let args = self.graph.calls[call].args.iter();
                            let words = args.zip(self.layout.calls[call].args..);
                            let copied = words.map(|(&node, word)| Inst::Write { word, node });
                            self.insts.extend(copied);
                        }
                        self.insts.push(Inst::Node(node));
                        for guard in self.waiting.remove(&node).unwrap_or_default() {
                            let condition = Task::Compute(guard.condition, 0);
                            tasks.extend([Task::Check(guard), condition]);
                        }
                    }
                },
            }
        }
    }

    /// The operand of `node` that is computed as number `index`.
    fn operand(&self, node: Node, index: usize) -> Option<Node> {
        match *self.graph.nodes[node].args() {
            [arg] => (index == 0).then_some(arg),
            [a, b] => {
                let in_order = if self.needs[a] < self.needs[b] { [b, a] } else { [a, b] };
                in_order.get(index).copied()
            }
            ref args => {
                let mut args: SmallVec<[Node; MAX_ARITY]> = SmallVec::from_slice(args);
                args.sort_by_key(|&arg| Reverse(self.needs[arg]));
                args.get(index).copied()
            }
        }
    }
}

/// True if the operands of `node` are in memory when it is computed.
fn is_in_memory(graph: &Graph, node: Node) -> bool {
    matches!(graph.nodes[node].def, Def::Element(_) | Def::Call(_))
}

/// The cost of computing a node and its operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    /// The number of registers (Ershov number), as if no value were used twice.
    registers: u32,
    /// The length of the longest path to a leaf.
    depth: u32,
}

fn register_needs(graph: &Graph) -> PrimaryMap<Node, Need> {
    let mut needs = PrimaryMap::filled(Need { registers: 1, depth: 0 }, graph.nodes.len());
    // Operands have smaller ids than their users.
    for (node, data) in graph.nodes.iter() {
        let mut args: SmallVec<[Need; MAX_ARITY]> =
            data.args().iter().map(|&arg| needs[arg]).collect();
        args.sort_by_key(|&need| Reverse(need));
        // While an operand is computed, each operand before it occupies a register.
        let registers = args.iter().zip(0..).map(|(need, waiting)| need.registers + waiting);
        let depth = args.iter().map(|need| need.depth + 1);
        needs[node] =
            Need { registers: registers.max().unwrap_or(1), depth: depth.max().unwrap_or(0) };
    }
    needs
}
