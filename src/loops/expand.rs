//! Full unrolling of loops with constant trip counts.
//!
//! Like [`reroll`](super::reroll()) it neither shares nor folds: each operation of each iteration
//! becomes a node, in execution order. An element whose index is now constant becomes its node,
//! constant or input.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{
    Access, AccessData, Appender, Array, ArrayData, Block, CallData, Def, End, Graph, Item, Nest,
    Node, Passed, PlaceId, Region,
};

/// `graph` with each of `loops` unrolled; other loops stay. `None` if one of `loops` may end
/// before its last iteration, if the graph has accumulators, or if a region replays another one.
///
/// # Examples
///
/// ```
/// use phigrad::internals::loops::expand;
/// use phigrad::internals::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nv1 = const 1.0\nv3 = iteration r0\nb0:\n  \
///             v6 = region r0 b1 bound 2 entries v2=v0\n  return v6\nb1:\n  v4 = sin v2\n  \
///             v5 = lt v3 v1\n  return v5 v4 v4\n";
/// let graph = parse(text)?;
/// let loops: Vec<_> = graph.regions.keys().collect();
/// let straight = expand(&graph, &loops).expect("it ends after two iterations");
/// let expected = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = sin v1\n  return v2\n";
/// assert_eq!(straight.to_string(), expected);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn expand(graph: &Graph, loops: &[Region]) -> Option<Graph> {
    let mut counters = PrimaryMap::filled(None, graph.regions.len());
    for &region in loops {
        counters[region] = Some(counter(graph, region)?);
    }
    if graph.arrays.values().any(ArrayData::is_written)
        || graph.regions.values().any(|region| region.replays.is_some())
    {
        return None;
    }
    let mut expand = Expand {
        old: graph,
        nest: Nest::of(graph),
        copies: PrimaryMap::filled(None, graph.nodes.len()),
        regions: PrimaryMap::filled(None, graph.regions.len()),
        iterations: PrimaryMap::filled(0, graph.regions.len()),
        saved_nodes: PrimaryMap::filled(Vec::new(), graph.regions.len()),
        saved: HashMap::new(),
        invariant_arrays: HashMap::new(),
        counters,
        tasks: Vec::new(),
        new: Appender::like(graph),
    };
    expand.find_saved();
    let root = graph.root();
    expand.tasks.push(Task::Steps { block: root, from: 0, to: expand.new.root(), ends: true });
    while let Some(task) = expand.tasks.pop() {
        expand.run(task);
    }
    Some(expand.new.into_graph())
}

/// Tests whether [`expand`] can unroll `region`, a loop: it ends after its last iteration only.
pub(crate) fn can_expand(graph: &Graph, region: Region) -> bool {
    counter(graph, region).is_some()
}

/// The condition for another iteration of `region`, if the trip count is always the bound and the
/// body is one block.
fn counter(graph: &Graph, region: Region) -> Option<Node> {
    let data = &graph.regions[region];
    let again = graph.passed(region, data.root)?.again;
    let again = again.filter(|&again| graph.constant(again).is_none())?;
    let count = trip_count(graph, region, again)?;
    (count == u64::from(data.cycle.as_ref()?.bound)).then_some(again)
}

/// The trip count of `region` if it is constant: if `again` compares the iteration number with a
/// constant.
pub(crate) fn trip_count(graph: &Graph, region: Region, again: Node) -> Option<u64> {
    let bound = graph.regions[region].cycle.as_ref()?.bound;
    if let Some(again) = graph.constant(again) {
        return (again == 0.0).then_some(1);
    }
    let Def::Apply(Op::Lt, [number, last, _]) = graph.nodes[again].def else { return None };
    let last = graph.constant(last).filter(|last| last.fract() == 0.0 && *last >= 0.0)?;
    let counts = graph.nodes[number].def == Def::Iteration(region) && last < f64::from(bound);
    counts.then_some(last as u64 + 1)
}

/// A task of the work stack.
enum Task {
    /// Copy the steps of a block, from this number on, to a new block; with `ends` its
    /// terminator, too.
    Steps { block: Block, from: usize, to: Block, ends: bool },
    /// Copy the next iteration of an unrolled loop to this block.
    Iterate(Region, Block),
    /// Make the φs of a kept region, after its blocks have been copied.
    Join(Region, Region),
}

/// The state of the unrolling copy.
struct Expand<'a> {
    old: &'a Graph,
    new: Appender,
    nest: Nest,
    /// The condition for another iteration of each unrolled loop.
    counters: PrimaryMap<Region, Option<Node>>,
    /// The current copy of each node.
    copies: PrimaryMap<Node, Option<Node>>,
    /// The latest copy of each kept region.
    regions: PrimaryMap<Region, Option<Region>>,
    /// The number of iterations of each unrolled loop that have begun.
    iterations: PrimaryMap<Region, u32>,
    /// The nodes of each unrolled loop whose saved values are read.
    saved_nodes: PrimaryMap<Region, Vec<Node>>,
    /// The copies of these nodes in the iterations so far.
    saved: HashMap<Node, Vec<Node>>,
    /// The copies of arrays that are the same everywhere.
    invariant_arrays: HashMap<Array, Array>,
    tasks: Vec<Task>,
}

impl Expand<'_> {
    /// Finds the nodes of unrolled loops whose saved values are read.
    fn find_saved(&mut self) {
        for array in self.old.arrays.values() {
            if let &ArrayData::Saved(node) = array
                && let Some(region) = self.expanded_loop(node)
                && self.saved.insert(node, Vec::new()).is_none()
            {
                self.saved_nodes[region].push(node);
            }
        }
    }

    /// The loop of `node`, if it is unrolled.
    fn expanded_loop(&self, node: Node) -> Option<Region> {
        self.nest.node_loop(node).filter(|&region| self.counters[region].is_some())
    }

    fn run(&mut self, task: Task) {
        match task {
            Task::Steps { block, from, to, ends } => self.steps(block, from, to, ends),
            Task::Iterate(region, to) => self.iterate(region, to),
            Task::Join(region, copy) => {
                for &phi in &self.old.regions[region].phis {
                    self.copies[phi] = Some(self.new.push_phi(copy));
                }
            }
        }
    }

    fn steps(&mut self, block: Block, from: usize, to: Block, ends: bool) {
        let old = self.old;
        for (index, &item) in old.blocks[block].items.iter().enumerate().skip(from) {
            match item {
                Item::Node(node) => self.node(node, to),
                Item::Guard { condition, expect } => {
                    let condition = self.copied(condition);
                    self.new.blocks[to].items.push(Item::Guard { condition, expect });
                }
                Item::Region(region) => {
                    self.tasks.push(Task::Steps { block, from: index + 1, to, ends });
                    self.region(region, to);
                    return;
                }
                // A graph with accumulators is not expanded.
                Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
        if !ends {
            return;
        }
        match &old.blocks[block].end {
            End::Return(values) => {
                let values = values.iter().map(|&value| self.copied(value)).collect();
                self.new.blocks[to].end = End::Return(values);
            }
            &End::Branch { condition, then, otherwise } => {
                let condition = self.copied(condition);
                let arms = [self.new.new_block(), self.new.new_block()];
                self.new.blocks[to].end =
                    End::Branch { condition, then: arms[0], otherwise: arms[1] };
                for (block, to) in [then, otherwise].into_iter().zip(arms).rev() {
                    self.tasks.push(Task::Steps { block, from: 0, to, ends: true });
                }
            }
            End::Open => {}
        }
    }

    fn region(&mut self, region: Region, to: Block) {
        let old = self.old;
        let data = &old.regions[region];
        if self.counters[region].is_some() {
            self.iterations[region] = 0;
            self.tasks.push(Task::Iterate(region, to));
            return;
        }
        let firsts: Vec<Node> =
            old.entries(region).iter().map(|entry| self.copied(entry.first)).collect();
        let copy = self.new.push_region(to, None, data.place);
        if let Some(cycle) = &data.cycle {
            let phis = self.new.make_loop(copy, cycle.bound, &firsts);
            for (entry, phi) in cycle.entries.iter().zip(phis) {
                self.copies[entry.phi] = Some(phi);
            }
        }
        self.regions[region] = Some(copy);
        let to = self.new.regions[copy].root;
        self.tasks.push(Task::Join(region, copy));
        self.tasks.push(Task::Steps { block: data.root, from: 0, to, ends: true });
    }

    /// Ends the iteration of `region` that has been copied, and begins the next one, if there is
    /// one.
    fn iterate(&mut self, region: Region, to: Block) {
        let old = self.old;
        let data = &old.regions[region];
        let entries = old.entries(region);
        let Some(Passed { nexts, values, .. }) = old.passed(region, data.root) else { return };
        let begun = self.iterations[region];
        self.save_iteration(region);
        let heads: Vec<Node> = match begun {
            0 => entries.iter().map(|entry| self.copied(entry.first)).collect(),
            _ => nexts.iter().map(|&next| self.copied(next)).collect(),
        };
        if data.cycle.as_ref().is_none_or(|cycle| begun == cycle.bound) {
            for (&phi, &value) in data.phis.iter().zip(values) {
                self.copies[phi] = Some(self.copied(value));
            }
            return;
        }
        for (entry, head) in entries.iter().zip(heads) {
            self.copies[entry.phi] = Some(head);
        }
        self.iterations[region] = begun + 1;
        self.tasks.push(Task::Iterate(region, to));
        self.tasks.push(Task::Steps { block: data.root, from: 0, to, ends: false });
    }

    /// Records the saved values of the iteration of `region` that has been copied.
    fn save_iteration(&mut self, region: Region) {
        let begun = self.iterations[region];
        for index in 0..self.saved_nodes[region].len() {
            let node = self.saved_nodes[region][index];
            let copy = (begun > 0).then(|| self.copied(node));
            let values = self.saved.entry(node).or_default();
            match copy {
                Some(copy) => values.push(copy),
                None => values.clear(),
            }
        }
    }

    fn node(&mut self, node: Node, to: Block) {
        let data = &self.old.nodes[node];
        let copy = match data.def {
            // The exit condition of an unrolled loop is dropped.
            Def::Apply(..) if self.is_counter(node) => return,
            Def::Apply(op, args) => {
                let args = args.map(|arg| self.copied(arg));
                self.new.push_apply(to, op, &args[..op.arity()], data.place)
            }
            Def::Element(access) => self.element(access, to, data.place),
            Def::Call(call) => {
                let CallData { routine, args } = &self.old.calls[call];
                let args = args.iter().map(|&arg| self.copied(arg)).collect();
                self.new.push_call(to, routine.clone(), args, data.place)
            }
            Def::Result(call, number) => {
                let call = self.copied(call);
                self.new.push_result(to, call, number)
            }
            _ => return,
        };
        self.copies[node] = Some(copy);
    }

    fn is_counter(&self, node: Node) -> bool {
        self.expanded_loop(node).is_some_and(|region| self.counters[region] == Some(node))
    }

    /// The current copy of `node`.
    fn copied(&mut self, node: Node) -> Node {
        match self.old.nodes[node].def {
            Def::Input(number) => self.new.intern_input(number),
            Def::Const(bits) => self.new.intern_const(bits),
            Def::Iteration(region) => match (self.counters[region], self.regions[region]) {
                (Some(_), _) => self.new.intern_const(f64::from(self.current(region)).to_bits()),
                (None, Some(copy)) => self.new.intern_iteration(copy),
                (None, None) => self.new.poison(),
            },
            _ => match (self.copies[node], self.expanded_loop(node)) {
                (_, Some(region)) if self.counters[region] == Some(node) => {
                    let last = self.old.regions[region].cycle.as_ref().map_or(0, |c| c.bound - 1);
                    let again = self.current(region) < last;
                    self.new.intern_const(f64::from(u8::from(again)).to_bits())
                }
                (Some(copy), _) => copy,
                (None, _) => self.new.poison(),
            },
        }
    }

    /// The current iteration number of `region`, an unrolled loop.
    fn current(&self, region: Region) -> u32 {
        self.iterations[region].saturating_sub(1)
    }

    /// The element at `access`, appended to the block `to`.
    fn element(&mut self, access: Access, to: Block, place: Option<PlaceId>) -> Node {
        let old = self.old;
        let data = &old.accesses[access];
        let mut base = i64::from(data.base);
        let mut unrolled: SmallVec<[Region; 2]> =
            data.loops().filter(|&region| self.counters[region].is_some()).collect();
        unrolled.sort_unstable();
        unrolled.dedup();
        for region in unrolled {
            base += data.part(region, self.current(region));
        }
        let array = self.copied_array(data.array);
        let kept =
            |region: Region| self.regions[region].filter(|_| self.counters[region].is_none());
        let copied = data.with_loops(array, kept);
        let at = usize::try_from(base).unwrap_or(0);
        if copied.is_fixed() {
            let only = match &old.arrays[data.array] {
                ArrayData::Constants(numbers) => {
                    numbers.get(at).map(|&bits| self.new.intern_const(bits))
                }
                &ArrayData::Inputs { first, .. } => Some(self.new.intern_input(first + at as u32)),
                ArrayData::Nodes(nodes) => nodes.get(at).map(|&node| self.copied(node)),
                ArrayData::Saved(node) => {
                    self.saved.get(node).and_then(|values| values.get(at)).copied()
                }
                ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => None,
            };
            if let Some(only) = only {
                return only;
            }
        }
        let data = AccessData { base: u32::try_from(base).unwrap_or(0), ..copied };
        let access = self.new.intern_access(data);
        self.new.push_element(to, access, place)
    }

    /// The current copy of `array`.
    fn copied_array(&mut self, array: Array) -> Array {
        if let Some(&invariant) = self.invariant_arrays.get(&array) {
            return invariant;
        }
        let old = self.old;
        let (copy, is_invariant) = match &old.arrays[array] {
            ArrayData::Saved(node) => match self.saved.get(node) {
                Some(values) => (ArrayData::Nodes(values.clone()), false),
                None => (ArrayData::Saved(self.copied(*node)), false),
            },
            ArrayData::Nodes(nodes) => {
                let is_leaf =
                    |&node: &Node| matches!(old.nodes[node].def, Def::Input(_) | Def::Const(_));
                let is_invariant = nodes.iter().all(is_leaf);
                (
                    ArrayData::Nodes(nodes.iter().map(|&node| self.copied(node)).collect()),
                    is_invariant,
                )
            }
            other => (other.clone(), true),
        };
        let copy = self.new.intern_array(copy);
        if is_invariant {
            self.invariant_arrays.insert(array, copy);
        }
        copy
    }
}
