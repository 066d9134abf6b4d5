//! Jump threading through regions: a region that only chooses where its block continues is
//! dissolved, and its leaves continue there directly.
//!
//! Merging makes a region of each iteration of an annotated loop. If the loop has several exits,
//! the first φ of the region is the number of the exit, followed by branches that compare it with
//! constants. After threading, the iterations form one tree with the exits as arms, as they do
//! without annotations, so `exit_chain` can roll them.

use std::rc::Rc;

use hashbrown::HashMap;

use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{Block, Def, End, Graph, Item, Node, Region, uses};

/// The graph with jumps threaded; `None` unless a path has at least `least` decisions, as many as a
/// chain of so many exits needs. Unreachable blocks, regions and nodes are still listed, and ids
/// are out of order.
pub(super) fn thread_jumps(graph: &Graph, least: usize) -> Option<Graph> {
    let is_plain = |region: Region| {
        let data = &graph.regions[region];
        data.cycle.is_none() && data.replays.is_none()
    };
    if graph.regions.is_empty() || !graph.regions.keys().all(is_plain) {
        return None;
    }
    let root = graph.root();
    let mut threading = Threading {
        old: graph,
        new: graph.clone(),
        uses: uses(graph),
        values: graph.nodes.keys().collect(),
        destinations: PrimaryMap::filled(Destination::Several, graph.blocks.len()),
        most_decisions: 0,
        tasks: vec![Task { out: root, block: root, dissolved: None, decisions: 0 }],
    };
    while let Some(task) = threading.tasks.pop() {
        threading.run(task);
    }
    (threading.most_decisions >= least.max(1)).then_some(threading.new)
}

/// Tests whether a branch compares the first φ of a region, the number of an exit.
pub(super) fn has_selectors(graph: &Graph) -> bool {
    graph.blocks.values().any(|block| {
        let End::Branch { condition, .. } = block.end else { return false };
        let data = &graph.nodes[condition];
        matches!(data.def, Def::Apply(Op::Eq, _))
            && data.args().iter().any(|&arg| matches!(graph.nodes[arg].def, Def::Phi(_, 0)))
    })
}

/// The state of threading: a copy along all paths.
struct Threading<'a> {
    old: &'a Graph,
    new: Graph,
    /// The number of users of each node of the old graph.
    uses: PrimaryMap<Node, u32>,
    /// The value of each node of the old graph on the current path.
    values: PrimaryMap<Node, Node>,
    /// The continuation below each block of a dissolved region.
    destinations: PrimaryMap<Block, Destination>,
    /// The largest number of decisions on a path through a tree of blocks: of regions that chose
    /// where their blocks continue.
    most_decisions: usize,
    tasks: Vec<Task>,
}

/// A task: copy a block of the old graph, and what follows it, to a block of the new graph.
struct Task {
    out: Block,
    block: Block,
    dissolved: Option<Rc<Dissolved>>,
    /// The number of decisions above in the tree.
    decisions: usize,
}

/// The innermost dissolved region around, with its continuation.
struct Dissolved {
    region: Region,
    then: Continuation,
    around: Option<Rc<Dissolved>>,
}

/// The continuation after a region.
#[derive(Clone, Copy)]
enum Continuation {
    /// The rest of this block, from this step on.
    Step(Block, usize),
    /// The block that the number of the exit selects.
    Target,
    /// The φs of a region of the new graph, without the number of the exit.
    Phis,
}

/// The block where the leaves below a block continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// A single leaf continues there, with this number of the exit.
    Single(Block, Node),
    /// Several leaves continue there, with this number of the exit.
    Shared(Block, Node),
    /// The leaves continue in different blocks.
    Several,
}

impl Threading<'_> {
    fn run(&mut self, task: Task) {
        let (mut items, mut regions) = (Vec::new(), Vec::new());
        let out = task.out;
        let end = self.fill(task, &mut items, &mut regions);
        self.new.blocks[out].items = items;
        self.new.blocks[out].end = end;
        // Before the blocks that follow, which may overwrite `values`.
        self.tasks.extend(regions.into_iter().rev());
    }

    /// Appends the items of the block of `task` and what follows it; returns the terminator.
    fn fill(&mut self, task: Task, items: &mut Vec<Item>, regions: &mut Vec<Task>) -> End {
        let Task { mut block, mut dissolved, mut decisions, .. } = task;
        let mut next = 0;
        loop {
            if next == 0
                && let Some(now) = dissolved.clone()
                && let (Continuation::Target, Destination::Shared(target, number)) =
                    (now.then, self.destinations[block])
            {
                // The remainder of the region passes on no number.
                let root = self.new.new_block();
                let rest = Dissolved { region: now.region, then: Continuation::Phis, around: None };
                let dissolved_rest = Some(Rc::new(rest));
                regions.push(Task { out: root, block, dissolved: dissolved_rest, decisions: 0 });
                items.push(Item::Region(now.region));
                self.shorten(now.region, root);
                let phis = &self.old.regions[now.region].phis;
                phis.iter().for_each(|&phi| self.values[phi] = phi);
                self.values[phis[0]] = number;
                (block, dissolved) = (target, now.around.clone());
                continue;
            }
            if let Some(&item) = self.old.blocks[block].items.get(next) {
                next += 1;
                let Item::Region(region) = item else {
                    self.item(item, items);
                    continue;
                };
                let root = self.old.regions[region].root;
                let is_one = matches!(self.old.blocks[root].end, End::Return(_));
                // Otherwise the code after the enclosing region would be duplicated.
                let is_free =
                    dissolved.as_ref().is_none_or(|now| matches!(now.then, Continuation::Phis));
                let then = if is_one || is_free && self.ends_block(region, block, next) {
                    Continuation::Step(block, next)
                } else if self.is_selection(region, block, next, dissolved.as_deref()) {
                    Continuation::Target
                } else {
                    items.push(item);
                    regions.push(Task { out: root, block: root, dissolved: None, decisions: 0 });
                    continue;
                };
                decisions += usize::from(matches!(then, Continuation::Target));
                self.most_decisions = self.most_decisions.max(decisions);
                dissolved = Some(Rc::new(Dissolved { region, then, around: dissolved }));
                (block, next) = (root, 0);
                continue;
            }
            let values = match &self.old.blocks[block].end {
                End::Return(values) => values,
                &End::Branch { condition, then, otherwise } => {
                    // A block may be on several paths, and is copied for each.
                    let outs = [self.new.new_block(), self.new.new_block()];
                    for (out, block) in outs.into_iter().zip([then, otherwise]).rev() {
                        let dissolved = dissolved.clone();
                        self.tasks.push(Task { out, block, dissolved, decisions });
                    }
                    let [then, otherwise] = outs;
                    return End::Branch { condition: self.values[condition], then, otherwise };
                }
                End::Open => return End::Open,
            };
            let Some(now) = dissolved.clone() else {
                return End::Return(values.iter().map(|&value| self.values[value]).collect());
            };
            match (now.then, self.destinations[block]) {
                (Continuation::Step(outer, step), _) => {
                    self.assign(now.region, block);
                    (block, next) = (outer, step);
                }
                (Continuation::Target, Destination::Single(target, _)) => {
                    self.assign(now.region, block);
                    (block, next) = (target, 0);
                }
                _ => {
                    let passed = values.iter().skip(1).map(|&value| self.values[value]);
                    return End::Return(passed.collect());
                }
            }
            dissolved = now.around.clone();
        }
    }

    fn item(&mut self, item: Item, items: &mut Vec<Item>) {
        items.push(match item {
            Item::Node(node) => {
                let mut data = self.old.nodes[node];
                if let Def::Apply(_, args) = &mut data.def {
                    *args = args.map(|arg| self.values[arg]);
                }
                self.new.nodes[node] = data;
                item
            }
            Item::Guard { condition, expect } => {
                Item::Guard { condition: self.values[condition], expect }
            }
            other => other,
        });
    }

    /// Assigns to the φs of `region` the values that its leaf `leaf` passes on.
    fn assign(&mut self, region: Region, leaf: Block) {
        let End::Return(values) = &self.old.blocks[leaf].end else { return };
        for (&phi, &value) in self.old.regions[region].phis.iter().zip(values) {
            self.values[phi] = self.values[value];
        }
    }

    /// Removes the first φ of `region`, and sets its root.
    fn shorten(&mut self, region: Region, root: Block) {
        let data = &mut self.new.regions[region];
        data.root = root;
        data.phis.remove(0);
        for (number, &phi) in (0..).zip(&data.phis) {
            self.new.nodes[phi].def = Def::Phi(region, number);
        }
    }

    /// Tests whether all leaves of `region` pass on the same values and `block` has no steps
    /// after it, from `next` on: then the leaves can return on their own. The last iteration of a
    /// loop is such a region, if all its paths end the loop.
    fn ends_block(&self, region: Region, block: Block, next: usize) -> bool {
        let graph = self.old;
        let ends = |block: Block| match &graph.blocks[block].end {
            End::Return(values) => Some(values),
            End::Branch { .. } | End::Open => None,
        };
        if graph.blocks[block].items.len() > next || ends(block).is_none() {
            return false;
        }
        let leaves = graph.leaves(graph.regions[region].root);
        let first = ends(leaves[0]);
        leaves.iter().all(|&leaf| ends(leaf) == first)
    }

    /// Tests whether `block`, from step `next` on, only branches on the first value that the
    /// leaves of `region` pass on. If so, `destinations` has the continuations.
    fn is_selection(
        &mut self,
        region: Region,
        block: Block,
        next: usize,
        dissolved: Option<&Dissolved>,
    ) -> bool {
        let graph = self.old;
        let Some(&selector) = graph.regions[region].phis.first() else { return false };
        let Some(first) = self.selector_branch(selector, block, next) else { return false };
        let mut order = vec![graph.regions[region].root];
        let mut seen = 0;
        while let Some(&here) = order.get(seen) {
            seen += 1;
            if let End::Branch { then, otherwise, .. } = graph.blocks[here].end {
                order.extend([then, otherwise]);
            }
        }
        // An enclosing region has counted the code after such a block as one path, which would
        // not be taken.
        let is_counted = |this: &Self, decision: Block| {
            dissolved.is_some_and(|now| matches!(now.then, Continuation::Target))
                && this.destinations[decision] != Destination::Several
        };
        // The number of subtrees of the region that continue in each block after it.
        let mut subtrees: HashMap<Block, usize> = HashMap::new();
        let mut remainders = 0;
        for &here in order.iter().rev() {
            self.destinations[here] = match &graph.blocks[here].end {
                End::Return(values) => {
                    let Some(number) = values.first().and_then(|&v| graph.constant(v)) else {
                        return false;
                    };
                    let mut decision = Some(first);
                    let mut target = block;
                    while let Some((of, then, otherwise)) = decision {
                        target = if number == of { then } else { otherwise };
                        decision = self.selector_branch(selector, target, 0);
                        if decision.is_some() && is_counted(self, target) {
                            return false;
                        }
                    }
                    *subtrees.entry(target).or_insert(0) += 1;
                    Destination::Single(target, values[0])
                }
                End::Branch { then, otherwise, .. } => {
                    let arms = [self.destinations[*then], self.destinations[*otherwise]];
                    let of = |destination: Destination| match destination {
                        Destination::Single(target, number)
                        | Destination::Shared(target, number) => {
                            Some((target, number, graph.constant(number)))
                        }
                        Destination::Several => None,
                    };
                    match arms.map(of) {
                        [Some(a), Some(b)] if (a.0, a.2) == (b.0, b.2) => {
                            let were = arms.iter().filter(|destination| {
                                matches!(destination, Destination::Shared(..))
                            });
                            remainders = remainders + 1 - were.count();
                            *subtrees.entry(a.0).or_insert(1) -= 1;
                            Destination::Shared(a.0, a.1)
                        }
                        _ => Destination::Several,
                    }
                }
                End::Open => return false,
            };
        }
        remainders <= 1
            && self.destinations[graph.regions[region].root] == Destination::Several
            && subtrees
                .iter()
                .all(|(&target, &count)| count <= 1 || self.is_empty(target, dissolved))
    }

    /// Tests whether the path from `block` to its end has no steps, so that it may be duplicated.
    fn is_empty(&self, mut block: Block, mut dissolved: Option<&Dissolved>) -> bool {
        let mut next = 0;
        loop {
            let data = &self.old.blocks[block];
            if data.items.len() > next || !matches!(data.end, End::Return(_)) {
                return false;
            }
            let Some(now) = dissolved else { return true };
            (block, next) = match (now.then, self.destinations[block]) {
                (Continuation::Step(outer, step), _) => (outer, step),
                (Continuation::Target, Destination::Single(target, _)) => (target, 0),
                _ => return true,
            };
            dissolved = now.around.as_deref();
        }
    }

    /// Matches a `block` that, from step `next` on, only branches on a comparison of `selector`
    /// with a constant: returns the constant, and the blocks for equal and unequal.
    fn selector_branch(
        &self,
        selector: Node,
        block: Block,
        next: usize,
    ) -> Option<(f64, Block, Block)> {
        let graph = self.old;
        let data = &graph.blocks[block];
        let (&[Item::Node(test)], &End::Branch { condition, then, otherwise }) =
            (data.items.get(next..)?, &data.end)
        else {
            return None;
        };
        let Def::Apply(Op::Eq, args) = graph.nodes[test].def else { return None };
        let is_it = args[0] == selector && condition == test && self.uses[test] == 1;
        is_it.then_some((graph.constant(args[1])?, then, otherwise))
    }
}
