//! Copies a graph through the folding builder, with a rewrite for single nodes.

use super::analysis::Nest;
use super::arrays::Array;
use super::build::Builder;
use super::dead::Live;
use super::fold::Folding;
use super::graph::{Block, CallData, Def, End, Graph, Item, Node, Region};
use super::retain::passed_on;
use crate::entity::{Entity, PrimaryMap};

/// Copies the live nodes of `graph`. `rewrite` may return a replacement for a node, built from
/// the copies of the nodes before it.
///
/// A branch whose outcome is known is not copied; its block continues with the steps of the arm
/// that is taken.
pub(crate) fn rebuild(
    graph: &Graph,
    folding: Folding,
    mut rewrite: impl FnMut(&mut Rebuild<'_>, Node) -> Option<Node>,
) -> Graph {
    let mut live = Live::of(graph);
    let mut rebuild = Rebuild::new(graph, folding);
    rebuild.replace_invariant_entries(&mut live);
    rebuild.open.push(Open {
        block: graph.root(),
        next: 0,
        tree: None,
        forward: None,
        new_forward: None,
        ends: Ends::Graph,
    });
    while let Some(here) = rebuild.open.last_mut() {
        let data = &graph.blocks[here.block];
        let next = here.next;
        here.next += 1;
        let here = *here;
        match (data.items.get(next), &data.end) {
            (Some(&Item::Node(node)), _) if live.nodes[node] => {
                rebuild.builder.set_place(graph.nodes[node].place);
                match rewrite(&mut rebuild, node) {
                    Some(rewritten) => rebuild.copies[node] = Some(rewritten),
                    None => rebuild.copy_node(node),
                }
            }
            (Some(&Item::Guard { condition, expect }), _) => {
                let condition = rebuild.copied(condition);
                rebuild.builder.guard(condition, expect);
            }
            (Some(&Item::Region(region)), _) if live.regions[region] => {
                rebuild.begin(here, region, &live);
            }
            (Some(&Item::Fill(array)), _) if live.arrays[array] => {
                let array = rebuild.array(array);
                rebuild.builder.fill(array);
            }
            (Some(&Item::Accumulate(access, node)), _) if live.accesses[access] => {
                let (access, node) = (rebuild.access(access), rebuild.copied(node));
                rebuild.builder.accumulate(access, node);
            }
            (Some(&Item::Store(access, node)), _) if live.accesses[access] => {
                let (access, node) = (rebuild.access(access), rebuild.copied(node));
                rebuild.builder.store(access, node);
            }
            (
                Some(
                    Item::Node(_)
                    | Item::Region(_)
                    | Item::Fill(_)
                    | Item::Accumulate(..)
                    | Item::Store(..),
                ),
                _,
            ) => {}
            (None, End::Return(values)) => {
                let values = match here.tree {
                    Some(region) => passed_on(graph, &live, region, values),
                    None => values.to_vec(),
                };
                let values: Vec<Node> =
                    values.into_iter().map(|value| rebuild.copied(value)).collect();
                rebuild.builder.finish_block(&values);
                rebuild.leave(&live);
            }
            (None, &End::Branch { then, .. }) if !live.branches[here.block] => {
                // A dead branch: nothing is live below, and both arms pass on the same values.
                if let Some(open) = rebuild.open.last_mut() {
                    *open = Open { block: then, next: 0, forward: None, ..here };
                }
            }
            (None, End::Branch { .. }) if next == data.items.len() => rebuild.branch(here),
            (None, End::Branch { .. }) if next == data.items.len() + 1 => {
                rebuild.enter(here, false);
            }
            (None, End::Branch { .. } | End::Open) => rebuild.leave(&live),
        }
    }
    rebuild.builder.into_graph()
}

/// The state of a rebuild: the old graph and the builder of the new one.
pub(crate) struct Rebuild<'a> {
    pub(super) graph: &'a Graph,
    pub(crate) builder: Builder,
    pub(super) nest: Nest,
    /// The copy of each node of the old graph.
    pub(super) copies: PrimaryMap<Node, Option<Node>>,
    /// Entry φs that keep their initial value in all iterations, and are replaced by it.
    pub(super) invariant_entries: PrimaryMap<Node, bool>,
    pub(super) regions: PrimaryMap<Region, Option<Region>>,
    /// The copy of each array of accumulators or cells.
    pub(super) written: PrimaryMap<Array, Option<Array>>,
    /// The copied terminator of each block of the old graph.
    branches: PrimaryMap<Block, Option<Branch>>,
    /// The blocks of the old graph from the root to here.
    open: Vec<Open>,
    /// For each block of the new graph the number of open blocks with it as their forward block.
    forward_counts: Vec<u32>,
}

/// The copy of a branch.
#[derive(Clone, Copy)]
enum Branch {
    /// Removed, because it always has this outcome.
    Folded(bool),
    /// Kept, with these new targets.
    Kept(Block, Block),
}

/// A block that is being copied. For forward blocks see `verify`.
#[derive(Clone, Copy)]
struct Open {
    block: Block,
    /// The number of the next item, then the branch, its second arm, the end.
    next: usize,
    /// The region whose tree contains the block.
    tree: Option<Region>,
    /// The forward block (see `verify`) in the old graph.
    forward: Option<Block>,
    /// The forward block of the copy in the new graph.
    new_forward: Option<Block>,
    /// The scope that ends with the block.
    ends: Ends,
}

/// The scope that ends with a block.
#[derive(Clone, Copy)]
enum Ends {
    Graph,
    Arm,
    Region(Region),
}

impl<'a> Rebuild<'a> {
    fn new(graph: &'a Graph, folding: Folding) -> Self {
        Rebuild {
            graph,
            builder: Builder::of(graph, folding),
            nest: Nest::of(graph),
            copies: PrimaryMap::filled(None, graph.nodes.len()),
            invariant_entries: PrimaryMap::filled(false, graph.nodes.len()),
            regions: PrimaryMap::filled(None, graph.regions.len()),
            written: PrimaryMap::filled(None, graph.arrays.len()),
            branches: PrimaryMap::filled(None, graph.blocks.len()),
            open: Vec::new(),
            forward_counts: Vec::new(),
        }
    }

    /// The old graph.
    pub(crate) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The copy of `node`, a leaf or a node that has been copied.
    pub(crate) fn copied(&mut self, node: Node) -> Node {
        if let Some(copy) = self.copies[node] {
            return copy;
        }
        let copy = match self.graph.nodes[node].def {
            Def::Input(i) => self.builder.input(i as usize),
            Def::Const(bits) => self.builder.constant(f64::from_bits(bits)),
            // Used only inside the loop or a replay of it, whose region has been copied.
            Def::Iteration(region) => match self.regions[region] {
                Some(region) => self.builder.iteration(region),
                None => self.builder.poison(),
            },
            Def::Entry(region, number) if self.invariant_entries[node] => {
                self.copied(self.graph.entries(region)[number as usize].first)
            }
            // A verified graph computes operands before their uses.
            Def::Apply(..)
            | Def::Phi(..)
            | Def::Entry(..)
            | Def::Element(_)
            | Def::Call(_)
            | Def::Result(..) => self.builder.poison(),
        };
        self.copies[node] = Some(copy);
        copy
    }

    /// Tests whether `node` is a leaf or has been copied.
    pub(crate) fn is_copied(&self, node: Node) -> bool {
        let is_leaf = matches!(self.graph.nodes[node].def, Def::Input(_) | Def::Const(_));
        is_leaf || self.copies[node].is_some()
    }

    fn copy_node(&mut self, node: Node) {
        match self.graph.nodes[node].def {
            Def::Apply(op, args) => {
                let args = args.map(|arg| self.copied(arg));
                self.copies[node] = Some(self.builder.apply(op, &args[..op.arity()]));
            }
            Def::Element(access) => self.copies[node] = Some(self.copy_element(access)),
            Def::Call(call) => {
                let CallData { routine, args } = &self.graph.calls[call];
                let args = args.iter().map(|&arg| self.copied(arg)).collect();
                self.copies[node] = Some(self.builder.call(routine, args));
            }
            Def::Result(call, number) => {
                let call = self.copied(call);
                self.copies[node] = Some(self.builder.result(call, number));
            }
            _ => {}
        }
    }

    fn begin(&mut self, here: Open, region: Region, live: &Live) {
        let data = &self.graph.regions[region];
        self.builder.set_place(data.place);
        let replays = data.replays.and_then(|replayed| self.regions[replayed]);
        let new = match &data.cycle {
            None => self.builder.begin_region(replays),
            Some(cycle) => self.begin_loop(cycle, replays, live),
        };
        self.regions[region] = Some(new);
        let regions = &self.builder.graph().regions;
        let new_replayed = regions[new].replays.map(|replayed| regions[replayed].root);
        let replayed = data.replays.map(|replayed| self.graph.regions[replayed].root);
        self.push(Open {
            block: data.root,
            next: 0,
            tree: Some(region),
            forward: replayed.or(here.forward),
            new_forward: new_replayed.or(here.new_forward),
            ends: Ends::Region(region),
        });
    }

    /// Continues after the branch at the end of the block here: in its first arm, or, if the
    /// outcome is known, in the arm that is taken.
    fn branch(&mut self, here: Open) {
        let End::Branch { condition, then, otherwise } = self.graph.blocks[here.block].end else {
            return;
        };
        let copy = self.copied(condition);
        if let Some(holds) = self.folded_outcome(here, condition, copy) {
            self.branches[here.block] = Some(Branch::Folded(holds));
            let forward = self.forward_arm(here, condition, holds);
            if let Some(open) = self.open.last_mut() {
                open.block = if holds { then } else { otherwise };
                open.next = 0;
                open.forward = forward;
            }
            return;
        }
        let (new_then, new_otherwise) = self.builder.branch(copy);
        self.branches[here.block] = Some(Branch::Kept(new_then, new_otherwise));
        self.enter(here, true);
    }

    /// The outcome of a branch on `condition` (in the new graph `copy`), if it is known.
    ///
    /// A replaying region must branch as the replayed one does, or the nodes of an arm are not
    /// visible in it. So where the replayed branch was folded, this one is folded as well; where
    /// it was kept, this one is kept, unless an enclosing block has made the arm visible already.
    fn folded_outcome(&self, here: Open, condition: Node, copy: Node) -> Option<bool> {
        let forward = here.forward.filter(|&forward| branches_on(self.graph, forward, condition));
        let is_visible =
            |block: Block| self.forward_counts.get(block.index()).is_some_and(|&count| count > 0);
        match forward.and_then(|forward| self.branches[forward]) {
            Some(Branch::Folded(holds)) => Some(holds),
            Some(Branch::Kept(then, _)) if is_visible(then) => Some(true),
            Some(Branch::Kept(_, otherwise)) if is_visible(otherwise) => Some(false),
            Some(Branch::Kept(..)) => None,
            None => self.builder.known_outcome(copy),
        }
    }

    /// The forward block, in the old graph, of an arm of the block here.
    fn forward_arm(&self, here: Open, condition: Node, holds: bool) -> Option<Block> {
        let forward = here.forward?;
        match self.graph.blocks[forward].end {
            End::Branch { condition: same, then, otherwise } if same == condition => {
                Some(if holds { then } else { otherwise })
            }
            _ => Some(forward),
        }
    }

    /// Enters an arm of the block here, whose branch is kept in the new graph.
    fn enter(&mut self, here: Open, holds: bool) {
        let End::Branch { condition, then, otherwise } = self.graph.blocks[here.block].end else {
            return;
        };
        let Some(Branch::Kept(new_then, new_otherwise)) = self.branches[here.block] else { return };
        let copy = self.copied(condition);
        let new_forward =
            here.new_forward.map(|forward| match self.builder.graph().blocks[forward].end {
                End::Branch { condition, then, otherwise } if condition == copy => {
                    if holds {
                        then
                    } else {
                        otherwise
                    }
                }
                _ => forward,
            });
        self.builder.enter(if holds { new_then } else { new_otherwise });
        self.push(Open {
            block: if holds { then } else { otherwise },
            next: 0,
            tree: here.tree,
            forward: self.forward_arm(here, condition, holds),
            new_forward,
            ends: Ends::Arm,
        });
    }

    fn push(&mut self, open: Open) {
        if let Some(forward) = open.new_forward {
            let length = self.forward_counts.len().max(forward.index() + 1);
            self.forward_counts.resize(length, 0);
            self.forward_counts[forward.index()] += 1;
        }
        self.open.push(open);
    }

    fn leave(&mut self, live: &Live) {
        let Some(open) = self.open.pop() else { return };
        if let Some(forward) = open.new_forward {
            self.forward_counts[forward.index()] -= 1;
        }
        match open.ends {
            Ends::Graph => {}
            Ends::Arm => self.builder.leave(),
            Ends::Region(region) => {
                let Some(new) = self.regions[region] else { return };
                let phis = self.graph.regions[region].phis.iter();
                let phis: Vec<Node> = phis.copied().filter(|&phi| live.nodes[phi]).collect();
                let values = match self.graph.regions[region].cycle {
                    None => self.builder.end_region(new, phis.len()),
                    Some(_) => self.builder.end_loop(new, phis.len()),
                };
                for (phi, value) in phis.into_iter().zip(values) {
                    self.copies[phi] = Some(value);
                }
            }
        }
    }
}

/// Tests whether `block` ends in a branch on `condition`.
fn branches_on(graph: &Graph, block: Block, condition: Node) -> bool {
    matches!(graph.blocks[block].end, End::Branch { condition: same, .. } if same == condition)
}
