//! Full unrolling of trace loops.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::trace_loops::{TraceLoop, trace_loop};
use crate::entity::PrimaryMap;
use crate::ssa::{Access, ArrayData, Block, Def, End, Graph, Item, Node, Region};

/// The graph with all loops unrolled, which are trace loops.
pub(super) fn unroll_trace_loops(graph: &Graph) -> Graph {
    let new = graph.emptied();
    let inputs = new.input_nodes().map(|(node, number)| (number, node)).collect();
    let nodes = PrimaryMap::filled(None, graph.nodes.len());
    let (constants, saved) = (HashMap::new(), HashMap::new());
    let mut unroll = Unroll { old: graph, new, nodes, inputs, constants, saved };
    for array in graph.arrays.values() {
        if let ArrayData::Saved(node) = array {
            unroll.saved.insert(*node, Vec::new());
        }
    }
    let root = unroll.new.root();
    let mut tasks = vec![Task { old: graph.root(), new: root, after: None }];
    while let Some(task) = tasks.pop() {
        unroll.fill(task, &mut tasks);
    }
    unroll.new
}

struct Unroll<'a> {
    old: &'a Graph,
    new: Graph,
    /// The copy of each node, if known.
    nodes: PrimaryMap<Node, Option<Node>>,
    inputs: HashMap<u32, Node>,
    constants: HashMap<u64, Node>,
    /// The saved values of nodes.
    saved: HashMap<Node, Vec<Node>>,
}

/// A task: copy a block of the old graph to one of the new graph, or the steps after a region,
/// item number `.0`, which has been copied to another region.
struct Task {
    old: Block,
    new: Block,
    after: Option<(usize, Region, Region)>,
}

impl Unroll<'_> {
    fn fill(&mut self, Task { old, new, after }: Task, tasks: &mut Vec<Task>) {
        let data = &self.old.blocks[old];
        if let Some((_, region, made)) = after {
            for &phi in &self.old.regions[region].phis {
                self.nodes[phi] = Some(self.new.push_phi(made));
            }
        }
        let from = after.map_or(0, |(at, ..)| at + 1);
        for (at, &item) in data.items.iter().enumerate().skip(from) {
            match item {
                Item::Node(node) => self.compute(node, new),
                Item::Guard { condition, expect } => {
                    let condition = self.node(condition);
                    self.new.blocks[new].items.push(Item::Guard { condition, expect });
                }
                Item::Region(region) => match trace_loop(self.old, region) {
                    Some(trace_loop) => self.append_iterations(region, &trace_loop, new),
                    None => {
                        let root = self.old.regions[region].root;
                        let made = self.new.push_region(new, None, self.old.regions[region].place);
                        tasks.push(Task { old, new, after: Some((at, region, made)) });
                        let inside = self.new.regions[made].root;
                        tasks.push(Task { old: root, new: inside, after: None });
                        return;
                    }
                },
                // Recorded graphs have no accumulators.
                Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        self.new.blocks[new].end = match &data.end {
            End::Open => End::Open,
            End::Return(values) => {
                End::Return(values.iter().map(|&value| self.node(value)).collect())
            }
            &End::Branch { condition, then, otherwise } => {
                let condition = self.node(condition);
                let (first, second) = (self.new.new_block(), self.new.new_block());
                tasks.push(Task { old: otherwise, new: second, after: None });
                tasks.push(Task { old: then, new: first, after: None });
                End::Branch { condition, then: first, otherwise: second }
            }
        };
    }

    /// Appends all iterations of a loop to `block`.
    fn append_iterations(&mut self, region: Region, trace_loop: &TraceLoop, block: Block) {
        let entries = self.old.entries(region);
        let mut values: Vec<Node> = entries.iter().map(|entry| self.node(entry.first)).collect();
        let items = &self.old.blocks[trace_loop.body].items;
        for iteration in 0..trace_loop.times {
            for (entry, &value) in entries.iter().zip(&values) {
                self.nodes[entry.phi] = Some(value);
            }
            for &item in items {
                match item {
                    Item::Node(node) if node == trace_loop.again => {}
                    Item::Node(node) => {
                        match self.old.nodes[node].def {
                            Def::Element(access) => {
                                self.nodes[node] = Some(self.element(access, iteration));
                            }
                            _ => self.compute(node, block),
                        }
                        let now = self.node(node);
                        if let Some(history) = self.saved.get_mut(&node) {
                            history.push(now);
                        }
                    }
                    Item::Guard { condition, expect } => {
                        let condition = self.node(condition);
                        self.new.blocks[block].items.push(Item::Guard { condition, expect });
                    }
                    Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
                }
            }
            let nexts = trace_loop.passed[..entries.len()].iter();
            values = nexts.map(|&next| self.node(next)).collect();
        }
        let lasts = &trace_loop.passed[entries.len()..];
        for (&phi, &last) in self.old.regions[region].phis.iter().zip(lasts) {
            self.nodes[phi] = Some(self.node(last));
        }
    }

    /// The element at `access` in this iteration of its loop.
    fn element(&mut self, access: Access, iteration: u32) -> Node {
        let index = self.old.index_at(access, |_| iteration);
        let found = match &self.old.arrays[self.old.accesses[access].array] {
            ArrayData::Constants(numbers) => {
                numbers.get(index).copied().map(|bits| self.constant(bits))
            }
            &ArrayData::Inputs { first, .. } => Some(self.input(first + index as u32)),
            ArrayData::Nodes(nodes) => nodes.get(index).copied().map(|node| self.node(node)),
            ArrayData::Saved(node) => {
                self.saved.get(node).and_then(|history| history.get(index)).copied()
            }
            ArrayData::Sums(_) | ArrayData::Outputs { .. } => None,
        };
        // The verifier has checked that it exists.
        found.unwrap_or_else(|| self.constant(f64::NAN.to_bits()))
    }

    fn compute(&mut self, node: Node, block: Block) {
        let data = self.old.nodes[node];
        self.nodes[node] = Some(match data.def {
            Def::Apply(op, _) => {
                let args: SmallVec<[Node; 3]> =
                    data.args().iter().map(|&arg| self.node(arg)).collect();
                self.new.push_apply(block, op, &args, data.place)
            }
            Def::Element(access) => self.element(access, 0),
            _ => return,
        });
    }

    fn node(&mut self, node: Node) -> Node {
        match (self.nodes[node], self.old.nodes[node].def) {
            (Some(known), _) => known,
            (None, Def::Const(bits)) => self.constant(bits),
            (None, Def::Input(number)) => self.input(number),
            // The verifier has checked that operands are computed before.
            (None, _) => self.constant(f64::NAN.to_bits()),
        }
    }

    fn input(&mut self, number: u32) -> Node {
        let new = &mut self.new;
        *self.inputs.entry(number).or_insert_with(|| new.push_input(number))
    }

    fn constant(&mut self, bits: u64) -> Node {
        let new = &mut self.new;
        *self.constants.entry(bits).or_insert_with(|| new.push_const(bits))
    }
}
