//! Emission: makes the graph of the merged traces.
//!
//! Each value becomes a node, in order, nothing shared or folded. A region with one exit becomes a
//! region of the graph whose φs are the carried values. If it has several, its first φ is the
//! number of the exit and is followed by branches on it; the other φs serve all exits.
//!
//! A loop in the tree becomes a loop of the graph (`emit_loops`).

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::emit_loops::Loops;
use super::place;
use super::tree::{Applied, BasicBlock, End, Instance, Origin, Step, Tree, Value};
use super::values;
use crate::custom::{Custom, CustomFunction, CustomRoutine};
use crate::entity::Entity;
use crate::numeric::Routine;
use crate::op::Op;
use crate::ssa::{self, Appender, Block, Graph, Item, Node, PlaceId, Region, inputs_first};
use crate::trace::{OutputWord, Site};

/// The work list, innermost last.
enum Task {
    /// Fills `block` with the basic block, which is inside this instance.
    Fill(BasicBlock, Block, Option<Instance>),
    /// The region has been filled; continues with its tails.
    GoOn {
        region: Region,
        instance: Instance,
        tails: SmallVec<[BasicBlock; 1]>,
        after: Block,
        inside: Option<Instance>,
    },
}

/// The graph of `tree`, which calls `customs`, by their numbers. Every walked block has an end.
pub(super) fn emit(tree: &Tree, customs: &HashMap<u64, Custom>) -> Graph {
    let mut graph = Appender::new(Graph::without_nodes(tree.active, tree.inactive));
    for (number, is_used) in (0..).zip(used_inputs(tree)) {
        if is_used {
            graph.intern_input(number);
        }
    }
    let mut tasks = vec![Task::Fill(tree.root(), graph.root(), None)];
    let mut emitter = Emitter {
        tree,
        graph,
        nodes: vec![None; tree.values.origins().len()],
        loops: Loops::of(tree),
        places: HashMap::new(),
        customs,
        calls: HashMap::new(),
    };
    while let Some(task) = tasks.pop() {
        match task {
            Task::Fill(basic_block, block, inside) => {
                emitter.fill(basic_block, block, inside, &mut tasks);
            }
            Task::GoOn { region, instance, tails, after, inside } => {
                // It was shared, and no exit of it is known.
                if tails.is_empty() {
                    emitter.never(after, inside);
                    continue;
                }
                let blocks = emitter.after_region(region, instance, after, tails.len());
                let fills = tails.iter().zip(blocks);
                let fills = fills.map(|(&tail, block)| Task::Fill(tail, block, inside));
                tasks.extend(fills.rev());
            }
        }
    }
    inputs_first(emitter.graph.into_graph())
}

/// For each input whether a step reads it.
fn used_inputs(tree: &Tree) -> Vec<bool> {
    let mut used = vec![false; tree.active + tree.inactive];
    for origin in tree.values.origins() {
        let Origin::Apply(_, args, _) = origin else { continue };
        // The inputs are the first values.
        for arg in args {
            if let Some(used) = used.get_mut(arg.index()) {
                *used = true;
            }
        }
    }
    used
}

pub(super) struct Emitter<'a> {
    pub(super) tree: &'a Tree,
    pub(super) graph: Appender,
    /// The node of each value, by the index of its origin.
    nodes: Vec<Option<Node>>,
    pub(super) loops: Loops,
    places: HashMap<Site, PlaceId>,
    customs: &'a HashMap<u64, Custom>,
    /// The calls of custom operations, by their last arguments.
    calls: HashMap<Value, Node>,
}

impl Emitter<'_> {
    fn fill(
        &mut self,
        basic_block: BasicBlock,
        block: Block,
        inside: Option<Instance>,
        tasks: &mut Vec<Task>,
    ) {
        let data = &self.tree.basic_blocks[basic_block];
        for &step in &data.steps {
            match step {
                Step::Value(value) => self.compute(value, block),
                Step::Guard { condition, expect } => {
                    let condition = self.node(condition, block);
                    self.graph.blocks[block].items.push(Item::Guard { condition, expect });
                }
                Step::Loop(trace_loop) => self.emit_loop(trace_loop, block),
            }
        }
        match &data.end {
            End::Return(output) => {
                let output = self.node(*output, block);
                self.graph.blocks[block].end = ssa::End::Return([output].into_iter().collect());
            }
            End::Branch { condition, then, otherwise } => {
                let condition = self.node(*condition, block);
                let (first, second) = self.branch(block, condition);
                tasks.push(Task::Fill(*otherwise, second, inside));
                tasks.push(Task::Fill(*then, first, inside));
            }
            End::Region { instance, tails } => {
                let place = self.place(self.tree.instances[*instance].site);
                let region = self.graph.push_region(block, None, Some(place));
                let (instance, tails) = (*instance, tails.clone());
                tasks.push(Task::GoOn { region, instance, tails, after: block, inside });
                let root = self.graph.regions[region].root;
                tasks.push(Task::Fill(self.tree.instances[instance].root, root, Some(instance)));
            }
            End::Exit { exit, values } => {
                let layout = inside.map_or(Layout { selected: false, carried: 0 }, |instance| {
                    Layout::of(self.tree, instance)
                });
                let number = layout.selected.then(|| self.constant(*exit as f64));
                let values = values.iter().map(|&value| self.node(value, block));
                let mut all: SmallVec<[Node; 2]> = number.into_iter().collect();
                for value in values.collect::<Vec<_>>() {
                    all.push(value);
                }
                let count = layout.count();
                while all.len() < count {
                    let nothing = self.constant(0.0);
                    all.push(nothing);
                }
                self.graph.blocks[block].end = ssa::End::Return(all);
            }
            // A path that was shared up to here only.
            End::Open => self.never(block, inside),
        }
    }

    /// Ends `block`, which is inside this instance, with a guard that always fails.
    fn never(&mut self, block: Block, inside: Option<Instance>) {
        let never = self.constant(0.0);
        let never_holds = Item::Guard { condition: never, expect: true };
        let count = inside.map_or(1, |instance| Layout::of(self.tree, instance).count());
        let data = &mut self.graph.blocks[block];
        data.items.push(never_holds);
        data.end = ssa::End::Return(core::iter::repeat_n(never, count).collect());
    }

    /// Defines the φs of `region`, which is complete, as the values carried by each exit. Returns
    /// the block after each exit, in order.
    fn after_region(
        &mut self,
        region: Region,
        instance: Instance,
        after: Block,
        tails: usize,
    ) -> Vec<Block> {
        let layout = Layout::of(self.tree, instance);
        let phis: Vec<Node> = (0..layout.count()).map(|_| self.graph.push_phi(region)).collect();
        for exit in &self.tree.instances[instance].exits {
            for (&value, &phi) in exit.carried.iter().zip(&phis[usize::from(layout.selected)..]) {
                self.set(value, phi);
            }
        }
        let (mut blocks, mut block) = (Vec::with_capacity(tails), after);
        for exit in 1..tails {
            let number = self.constant((exit - 1) as f64);
            let place = self.graph.regions[region].place;
            let taken = self.graph.push_apply(block, Op::Eq, &[phis[0], number], place);
            let (this, others) = self.branch(block, taken);
            blocks.push(this);
            block = others;
        }
        blocks.push(block);
        blocks
    }

    fn branch(&mut self, block: Block, condition: Node) -> (Block, Block) {
        let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
        self.graph.blocks[block].end = ssa::End::Branch { condition, then, otherwise };
        (then, otherwise)
    }

    fn compute(&mut self, value: Value, block: Block) {
        let Origin::Apply(applied, args, site) = self.tree.values[value] else { return };
        let place = self.place(site);
        let node = match applied {
            // A call takes all arguments at its first output.
            Applied::Argument => return,
            Applied::Output => self.output(args, block, place),
            Applied::Primitive(op) => {
                let args = args.map(|arg| self.node(arg, block));
                self.graph.push_apply(block, op, &args[..op.arity()], Some(place))
            }
        };
        self.set(value, node);
    }

    /// The output of a custom operation, which is called first for its first output. A call that is
    /// not accepted is a side exit.
    fn output(&mut self, [last, word, ..]: [Value; 3], block: Block, place: PlaceId) -> Node {
        let Origin::Const(bits) = self.tree.values[word] else { return self.graph.poison() };
        let OutputWord { operation, number } = OutputWord::decode(f64::from_bits(bits));
        let Some(custom) = self.customs.get(&operation) else { return self.graph.poison() };
        let call = match self.calls.get(&last) {
            Some(&call) => call,
            None => {
                let custom = custom.clone();
                let routine = CustomRoutine { custom, function: CustomFunction::Eval };
                let args = self.arguments(last).into_iter().map(|arg| self.node(arg, block));
                let args = args.collect();
                let routine = Arc::new(Routine::Custom(routine));
                let call = self.graph.push_call(block, routine, args, Some(place));
                let guard = Item::Guard { condition: call, expect: true };
                self.graph.blocks[block].items.push(guard);
                self.calls.insert(last, call);
                call
            }
        };
        self.graph.push_result(block, call, number + 1)
    }

    /// The values passed as arguments, up to the argument `last`.
    fn arguments(&self, mut last: Value) -> Vec<Value> {
        let mut arguments = Vec::new();
        while let Origin::Apply(Applied::Argument, [passed, before, ..], _) = self.tree.values[last]
        {
            arguments.push(passed);
            if before == passed {
                break;
            }
            last = before;
        }
        arguments.reverse();
        arguments
    }

    fn set(&mut self, value: Value, node: Node) {
        if let values::Place::Origin(index) = self.tree.values.place(value) {
            self.nodes[index] = Some(node);
        }
    }

    /// The node of `value`, at the current end of `block`.
    pub(super) fn node(&mut self, value: Value, block: Block) -> Node {
        let index = match self.tree.values.place(value) {
            values::Place::Origin(index) => index,
            values::Place::Loop(trace_loop) => return self.loop_value(trace_loop, value, block),
        };
        if let Some(node) = self.nodes[index] {
            return node;
        }
        let node = match self.tree.values[value] {
            Origin::Input(number) => self.graph.intern_input(number),
            Origin::Const(bits) => self.constant(f64::from_bits(bits)),
            // The walk rejects values that are not visible.
            Origin::Apply(..) | Origin::Carried | Origin::InLoop => self.graph.poison(),
        };
        self.nodes[index] = Some(node);
        node
    }

    pub(super) fn constant(&mut self, value: f64) -> Node {
        self.graph.intern_const(value.to_bits())
    }

    pub(super) fn place(&mut self, site: Site) -> PlaceId {
        let graph = &mut self.graph;
        *self.places.entry(site).or_insert_with(|| graph.places.push(place(site)))
    }
}

/// The results of a region.
struct Layout {
    /// True if the number of the exit comes first.
    selected: bool,
    /// The largest number of values carried by an exit.
    carried: usize,
}

impl Layout {
    fn of(tree: &Tree, instance: Instance) -> Layout {
        let exits = &tree.instances[instance].exits;
        let carried = exits.iter().map(|exit| exit.carried.len()).max();
        Layout { selected: exits.len() > 1, carried: carried.unwrap_or(0) }
    }

    fn count(&self) -> usize {
        usize::from(self.selected) + self.carried
    }
}
