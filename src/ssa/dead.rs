//! Dead-code elimination, and the liveness analysis for it.

use super::analysis::Nest;
use super::analysis::{Flow, is_value_used};
use super::arrays::{Access, Array};
use super::graph::{Block, Def, End, Graph, Item, Node, Region};
use super::retain::retain;
use crate::entity::PrimaryMap;
use crate::op::eval;

/// The graph without dead nodes: those that no output, guard or branch depends on.
///
/// A region stays if it contains, at any depth, a guard or a live node, or has a live φ. Inside
/// it the branches stay that lead to a live node or choose the value of a live φ. Dead φs are
/// removed together with the values that leaves pass on for them. The branches of the graph's own
/// tree all stay.
///
/// A loop also stays if it may exceed its bound and stop the graph. It keeps its exit conditions
/// and its live entry φs. An array of accumulators keeps all that is added to it if any element
/// is live, or if it is an output.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{eliminate_dead_code, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = exp v0\n  v2 = sin v0\n  return v2\n";
/// let small = eliminate_dead_code(&parse(text)?);
/// assert_eq!(small.to_string(), "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n");
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn eliminate_dead_code(graph: &Graph) -> Graph {
    retain(graph, &Live::of(graph))
}

/// The live nodes: those that an output, guard or branch depends on.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{live_nodes, parse};
///
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = cos v0\n  return v2\n";
/// let live = live_nodes(&parse(text)?);
/// assert_eq!(live.values().copied().collect::<Vec<_>>(), [true, false, true]);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn live_nodes(graph: &Graph) -> PrimaryMap<Node, bool> {
    Live::of(graph).nodes
}

/// The live parts of a graph.
pub(super) struct Live {
    pub(super) nodes: PrimaryMap<Node, bool>,
    pub(super) regions: PrimaryMap<Region, bool>,
    /// True for blocks whose branch is live. If it is dead, both arms are equivalent.
    pub(super) branches: PrimaryMap<Block, bool>,
    pub(super) arrays: PrimaryMap<Array, bool>,
    pub(super) accesses: PrimaryMap<Access, bool>,
}

impl Live {
    /// Liveness by marking: starts from guards and from the outputs and branches of the graph's
    /// own tree, and follows operands and control dependence.
    pub(super) fn of(graph: &Graph) -> Live {
        let mut marking = Marking::new(graph);
        for block in graph.preorder() {
            let data = &graph.blocks[block];
            let in_region = marking.nest.block_region(block).is_some();
            for item in &data.items {
                if let Item::Guard { condition, .. } = *item {
                    marking.mark(condition);
                    marking.mark_block(block);
                }
                if let Item::Region(region) = *item
                    && may_exceed_bound(&marking.flow, region)
                {
                    marking.mark_block(graph.regions[region].root);
                }
            }
            match &data.end {
                End::Return(outputs) if !in_region => {
                    outputs.iter().for_each(|&output| marking.mark(output));
                }
                End::Branch { .. } if !in_region => marking.mark_branch(block),
                End::Return(_) | End::Branch { .. } | End::Open => {}
            }
        }
        for (array, _, _) in graph.output_arrays() {
            marking.live.arrays[array] = true;
            marking.mark_writes(array);
        }
        while let Some(next) = marking.pending.pop() {
            match next {
                Pending::Node(node) => marking.visit(node),
                Pending::Loop(region) => marking.visit_loop(region),
            }
        }
        marking.live
    }

    /// Everything but regions that are no step of a block.
    pub(super) fn reachable(graph: &Graph) -> Live {
        let mut regions = PrimaryMap::filled(false, graph.regions.len());
        for block in graph.preorder() {
            graph.regions_of(block).for_each(|region| regions[region] = true);
        }
        let nodes = PrimaryMap::filled(true, graph.nodes.len());
        Live {
            nodes,
            regions,
            branches: PrimaryMap::filled(true, graph.blocks.len()),
            arrays: PrimaryMap::filled(true, graph.arrays.len()),
            accesses: PrimaryMap::filled(true, graph.accesses.len()),
        }
    }
}

/// A live node or loop whose dependences have not been marked yet.
enum Pending {
    Node(Node),
    Loop(Region),
}

/// The mark phase.
struct Marking<'a> {
    graph: &'a Graph,
    flow: Flow<'a>,
    nest: Nest,
    live: Live,
    pending: Vec<Pending>,
    /// The blocks that contain something live, or are above one that does.
    on_path: PrimaryMap<Block, bool>,
    parents: PrimaryMap<Block, Option<Block>>,
    /// The blocks of each region's tree, parents first.
    blocks: PrimaryMap<Region, Vec<Block>>,
    /// The steps that write each array.
    writes: PrimaryMap<Array, Vec<(Block, Item)>>,
    /// The value that all leaves below a block pass on for the current φ, if it is the same.
    uniform: PrimaryMap<Block, Option<Node>>,
}

impl<'a> Marking<'a> {
    fn new(graph: &'a Graph) -> Self {
        let nest = Nest::of(graph);
        let mut blocks = PrimaryMap::filled(Vec::new(), graph.regions.len());
        let mut writes = PrimaryMap::filled(Vec::new(), graph.arrays.len());
        for block in graph.preorder() {
            if let Some(region) = nest.block_region(block) {
                blocks[region].push(block);
            }
            for &item in &graph.blocks[block].items {
                match item {
                    Item::Fill(array) => writes[array].push((block, item)),
                    Item::Accumulate(access, _) | Item::Store(access, _) => {
                        writes[graph.accesses[access].array].push((block, item));
                    }
                    Item::Node(_) | Item::Guard { .. } | Item::Region(_) => {}
                }
            }
        }
        let live = Live {
            nodes: PrimaryMap::filled(false, graph.nodes.len()),
            regions: PrimaryMap::filled(false, graph.regions.len()),
            branches: PrimaryMap::filled(false, graph.blocks.len()),
            arrays: PrimaryMap::filled(false, graph.arrays.len()),
            accesses: PrimaryMap::filled(false, graph.accesses.len()),
        };
        let on_path = PrimaryMap::filled(false, graph.blocks.len());
        let uniform = PrimaryMap::filled(None, graph.blocks.len());
        let (pending, parents, flow) = (Vec::new(), graph.parents(), Flow::of(graph));
        Marking { graph, flow, nest, live, pending, on_path, parents, blocks, writes, uniform }
    }

    fn mark(&mut self, node: Node) {
        if !self.live.nodes[node] {
            self.live.nodes[node] = true;
            self.pending.push(Pending::Node(node));
        }
    }

    fn mark_branch(&mut self, block: Block) {
        self.live.branches[block] = true;
        if let End::Branch { condition, .. } = self.graph.blocks[block].end {
            self.mark(condition);
        }
    }

    /// Marks the path to `block`: the branches and regions around it.
    fn mark_block(&mut self, block: Block) {
        let mut next = Some(block);
        while let Some(block) = next.filter(|&block| !self.on_path[block]) {
            self.on_path[block] = true;
            next = self.parents[block];
            let tree = self.nest.block_region(block);
            match (next, tree) {
                (Some(above), tree) if self.nest.block_region(above) == tree => {
                    self.mark_branch(above);
                }
                (_, Some(region)) => {
                    self.live.regions[region] = true;
                    if self.graph.regions[region].cycle.is_some() {
                        self.pending.push(Pending::Loop(region));
                    }
                }
                (_, None) => {}
            }
        }
    }

    fn visit(&mut self, node: Node) {
        let data = &self.graph.nodes[node];
        self.graph.operands(node).iter().for_each(|&arg| self.mark(arg));
        if let Some(block) = self.nest.node_block(node) {
            self.mark_block(block);
        }
        match data.def {
            Def::Phi(region, number) => {
                let (conditions, nexts) = self.graph.passed_before_phis(region);
                self.mark_passed(region, conditions + nexts + number as usize);
            }
            Def::Entry(region, number) => {
                self.mark(self.graph.entries(region)[number as usize].first);
                let (conditions, _) = self.graph.passed_before_phis(region);
                self.mark_passed(region, conditions + number as usize);
            }
            Def::Element(access) => self.mark_access(access),
            Def::Input(_)
            | Def::Const(_)
            | Def::Apply(..)
            | Def::Iteration(_)
            | Def::Call(_)
            | Def::Result(..) => {}
        }
    }

    /// Marks the exit conditions of a loop.
    fn visit_loop(&mut self, region: Region) {
        match self.graph.regions[region].replays {
            Some(replayed) => self.mark_block(self.graph.regions[replayed].root),
            None => self.mark_passed(region, 0),
        }
    }

    fn mark_access(&mut self, access: Access) {
        if core::mem::replace(&mut self.live.accesses[access], true) {
            return;
        }
        let array = self.graph.accesses[access].array;
        if core::mem::replace(&mut self.live.arrays[array], true) {
            return;
        }
        let data = &self.graph.arrays[array];
        data.nodes().for_each(|node| self.mark(node));
        if data.is_written() {
            self.mark_writes(array);
        }
    }

    /// Marks all that is written to `array`.
    fn mark_writes(&mut self, array: Array) {
        for (block, item) in core::mem::take(&mut self.writes[array]) {
            self.mark_block(block);
            if let Item::Accumulate(access, node) | Item::Store(access, node) = item {
                self.mark_access(access);
                self.mark(node);
            }
        }
    }

    /// Marks value number `number` of each leaf of `region` that uses it, and the branches that
    /// choose between different values.
    fn mark_passed(&mut self, region: Region, number: usize) {
        self.mark_block(self.graph.regions[region].root);
        for index in (0..self.blocks[region].len()).rev() {
            let block = self.blocks[region][index];
            self.uniform[block] = match &self.graph.blocks[block].end {
                End::Return(values) => {
                    let is_value_used = is_value_used(self.graph, region, values, number);
                    // `retain` replaces an unused value by `again`.
                    let value = values.get(if is_value_used { number } else { 0 }).copied();
                    value.into_iter().for_each(|value| self.mark(value));
                    value
                }
                &End::Branch { then, otherwise, .. } => {
                    let same = self.uniform[then]
                        .filter(|_| self.uniform[then] == self.uniform[otherwise]);
                    if same.is_none() {
                        self.mark_branch(block);
                    }
                    same
                }
                End::Open => None,
            };
        }
    }
}

/// Tests whether `region` is a loop that may exceed its bound.
fn may_exceed_bound(flow: &Flow<'_>, region: Region) -> bool {
    let graph = flow.graph();
    let data = &graph.regions[region];
    let (Some(cycle), None) = (&data.cycle, data.replays) else { return false };
    let last = f64::from(cycle.bound - 1);
    // The value of a node in the last iteration, if it is a constant or the iteration number.
    let known = |node: Node| match graph.nodes[node].def {
        Def::Const(bits) => Some(f64::from_bits(bits)),
        Def::Iteration(counted) if counted == region => Some(last),
        _ => None,
    };
    let goes_on = |again: Node| match graph.nodes[again].def {
        Def::Apply(op, args) => {
            let args = args.map(known);
            !args.iter().all(Option::is_some)
                || eval(op, args.map(Option::unwrap_or_default)) != 0.0
        }
        _ => known(again) != Some(0.0),
    };
    flow.passed(region, 0).any(goes_on)
}
