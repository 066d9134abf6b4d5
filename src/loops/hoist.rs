//! Loop-invariant code motion.

use hashbrown::HashMap;

use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{
    Access, ArrayData, Block, Def, Editor, Folding, Graph, Item, Nest, Node, Region, simplify,
    verify,
};

/// The graph with loop-invariant steps moved before their loops, as far out as their operands
/// allow, and guards on invariant conditions with them.
///
/// Only steps of the root of a loop are moved, which run in each iteration: a loop has at least
/// one iteration, so no step is executed in vain except where a guard stops the graph anyway. A
/// moved value lives longer, so a step that is cheaper than a reload stays, unless a moved step
/// uses it. Values keep their bits.
///
/// # Examples
///
/// ```
/// use phigrad::internals::loops::hoist;
/// use phigrad::internals::ssa::parse;
///
/// // The sine of v0 is the same in all iterations.
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\nb0:\n  \
///             v7 = region r0 b1 bound 10 entries v2=v0\n  return v7\nb1:\n  v4 = sin v0\n  \
///             v5 = mul v2 v4\n  v6 = lt v3 v1\n  return v6 v5 v5\n";
/// let hoisted = hoist(&parse(text)?).to_string();
/// let (sine, begin) = (hoisted.find("sin v0"), hoisted.find("region"));
/// assert!(sine < begin && sine.is_some(), "{hoisted}");
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn hoist(graph: &Graph) -> Graph {
    if !has_loops(graph) {
        return graph.clone();
    }
    let mut hoister = Hoister::new(graph);
    let possible = hoister.possible();
    let targets = hoister.select(&possible);
    hoister.moved(&targets)
}

/// The graph with elements of active inputs that are the same in all iterations read before the loop:
/// its sweep adds up their adjoints in registers, and adds the sums to memory once.
///
/// # Examples
///
/// ```
/// use phigrad::internals::loops::hoist_inputs;
/// use phigrad::internals::ssa::parse;
///
/// let text = "graph active 2 inactive 0\nv2 = const 9.0\nv4 = iteration r0\na0 = inputs 0 count 2\n\
///             i0 = a0 base 1\nb0:\n  v8 = region r0 b1 bound 10 entries v3=v0\n  return v8\n\
///             b1:\n  v5 = element i0\n  v6 = mul v3 v5\n  v7 = lt v4 v2\n  return v7 v6 v6\n";
/// let hoisted = hoist_inputs(&parse(text)?).to_string();
/// assert!(hoisted.find("element") < hoisted.find("region"), "{hoisted}");
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn hoist_inputs(graph: &Graph) -> Graph {
    if !has_loops(graph) {
        return graph.clone();
    }
    let mut hoister = Hoister::new(graph);
    let possible = hoister.possible();
    let targets = hoister.inputs(&possible);
    hoister.moved(&targets)
}

/// The targets of nodes.
type Targets = PrimaryMap<Node, Option<Target>>;

fn has_loops(graph: &Graph) -> bool {
    graph.regions.values().any(|data| data.cycle.is_some())
}

/// The place to which a step moves: before the region `before`, which is a step of the block
/// `to`.
#[derive(Clone, Copy)]
struct Target {
    before: Region,
    to: Block,
}

/// Finds the steps to move, and their targets.
struct Hoister<'a> {
    graph: &'a Graph,
    nest: Nest,
    /// The depth of each block in the tree, regions included.
    depths: PrimaryMap<Block, u32>,
    parents: PrimaryMap<Block, Option<Block>>,
    /// The outermost block in which each node can be computed.
    defined_in: PrimaryMap<Node, Option<Block>>,
    /// The targets of moved guards, by block and number of the item.
    guards: HashMap<(Block, usize), Target>,
}

impl<'a> Hoister<'a> {
    fn new(graph: &'a Graph) -> Self {
        let (nest, parents) = (Nest::of(graph), graph.parents());
        let mut depths = PrimaryMap::filled(0, graph.blocks.len());
        for block in graph.preorder() {
            depths[block] = parents[block].map_or(0, |above| depths[above] + 1);
        }
        let defined_in = graph.nodes.keys().map(|node| nest.node_block(node)).collect();
        Hoister { graph, nest, depths, parents, defined_in, guards: HashMap::new() }
    }

    /// The graph with moved nodes and guards.
    fn moved(&self, targets: &Targets) -> Graph {
        let graph = self.graph;
        if targets.values().all(Option::is_none) && self.guards.is_empty() {
            return graph.clone();
        }
        let moved = moved(graph, targets, &self.guards);
        let moved = moved.finish().filter(|moved| {
            let verified = verify(moved);
            debug_assert!(verified.is_ok(), "{verified:?}\n{graph}");
            verified.is_ok()
        });
        // Equal steps of several loops may now be in one block.
        moved.map_or_else(|| graph.clone(), |moved| simplify(&moved, Folding::Real))
    }

    /// The targets of all nodes that may move.
    fn possible(&mut self) -> Targets {
        let graph = self.graph;
        let mut targets = PrimaryMap::filled(None, graph.nodes.len());
        let mut kept = PrimaryMap::filled(false, graph.nodes.len());
        for array in graph.arrays.values() {
            // Saved nodes must stay in their loop.
            if let ArrayData::Saved(node) = *array {
                kept[node] = true;
            }
        }
        for (node, data) in graph.nodes.iter() {
            let is_step = matches!(data.def, Def::Apply(..) | Def::Element(_));
            let Some(block) = self.defined_in[node].filter(|_| is_step && !kept[node]) else {
                continue;
            };
            targets[node] = self.outermost(block, |hoister, loop_root, above| match data.def {
                Def::Element(access) => hoister.is_fixed(access, loop_root),
                _ => data.args().iter().all(|&arg| hoister.is_above(arg, above)),
            });
            if let Some(Target { to, .. }) = targets[node] {
                self.defined_in[node] = Some(to);
            }
        }
        targets
    }

    /// The moves of elements of active inputs.
    fn inputs(&self, possible: &Targets) -> Targets {
        let graph = self.graph;
        let is_active = |node: Node| match graph.nodes[node].def {
            Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
                ArrayData::Inputs { first, .. } => (first as usize) < graph.active,
                _ => false,
            },
            _ => false,
        };
        graph.nodes.keys().map(|node| possible[node].filter(|_| is_active(node))).collect()
    }

    /// The outermost target for a step of `block`, if it is a step of a loop: `may_move` tests
    /// whether it can move from the root of a loop to the block above.
    fn outermost(
        &self,
        mut block: Block,
        may_move: impl Fn(&Self, Region, Block) -> bool,
    ) -> Option<Target> {
        let mut target = None;
        while let Some(region) = self.nest.block_region(block)
            && let data = &self.graph.regions[region]
            && data.root == block
            && data.cycle.is_some()
            && let Some(above) = self.nest.region_block(region)
            && may_move(self, region, above)
        {
            target = Some(Target { before: region, to: above });
            block = above;
        }
        target
    }

    /// Tests whether `node` is computed in `block` or above; visibility by replaying does not
    /// count.
    fn is_above(&self, node: Node, block: Block) -> bool {
        let Some(defined) = self.defined_in[node] else {
            return matches!(self.graph.nodes[node].def, Def::Input(_) | Def::Const(_));
        };
        defined == block || self.is_below(block, defined)
    }

    /// Tests whether `block` is in the tree below `above`, regions included.
    fn is_below(&self, block: Block, above: Block) -> bool {
        let mut here = Some(block);
        while let Some(next) = here.filter(|&here| self.depths[here] > self.depths[above]) {
            here = self.parents[next];
        }
        here == Some(above) && block != above
    }

    /// Tests whether the element at `access`, of constants or inputs, is the same in all
    /// iterations of `region`.
    fn is_fixed(&self, access: Access, region: Region) -> bool {
        let data = &self.graph.accesses[access];
        let is_data = matches!(
            self.graph.arrays[data.array],
            ArrayData::Constants(_) | ArrayData::Inputs { .. }
        );
        let counted = self.graph.regions[region].replays.unwrap_or(region);
        // The number of a replayed loop is visible only in the loop that replays it.
        let is_around = |of: Region| {
            let around = core::iter::successors(self.nest.loop_around(region), |&around| {
                self.nest.loop_around(around)
            });
            around
                .map(|around| self.graph.regions[around].replays.unwrap_or(around))
                .any(|around| around == of)
        };
        is_data && data.loops().all(|of| of != counted && is_around(of))
    }

    /// Selects the moves that pay off, with the operands that they need, and the guards.
    fn select(&mut self, possible: &Targets) -> Targets {
        let graph = self.graph;
        let mut targets: Targets = PrimaryMap::filled(None, graph.nodes.len());
        for (block, data) in graph.blocks.iter() {
            for (index, item) in data.items.iter().enumerate() {
                let Item::Guard { condition, .. } = *item else { continue };
                let target =
                    self.outermost(block, |hoister, _, above| hoister.is_above(condition, above));
                if let Some(target) = target {
                    self.guards.insert((block, index), target);
                    self.require(condition, target, possible, &mut targets);
                }
            }
        }
        for (node, data) in graph.nodes.iter().rev() {
            if let (Def::Apply(op, _), Some(target)) = (data.def, possible[node])
                && is_worth_it(op)
            {
                self.move_out(target, &mut targets[node]);
            }
            let Some(target) = targets[node] else { continue };
            data.args().iter().for_each(|&arg| self.require(arg, target, possible, &mut targets));
        }
        targets
    }

    /// Moves `node` to a target where a moved step uses it.
    fn require(&self, node: Node, target: Target, possible: &Targets, targets: &mut Targets) {
        let (Some(possible), Some(own)) = (possible[node], self.nest.node_block(node)) else {
            return;
        };
        let root = self.graph.regions[target.before].root;
        if own == root || self.is_below(own, root) {
            self.move_out(target, &mut targets[node]);
        } else if !self.is_below(target.to, own) && target.to != own {
            // It was visible by replaying only.
            self.move_out(possible, &mut targets[node]);
        }
    }

    /// The outermost of several targets wins.
    fn move_out(&self, target: Target, to: &mut Option<Target>) {
        if to.is_none_or(|before| self.depths[target.to] < self.depths[before.to]) {
            *to = Some(target);
        }
    }
}

/// Tests whether `op` costs at least as much as a reload of its result.
fn is_worth_it(op: Op) -> bool {
    !(op.is_comparison() || matches!(op, Op::Neg | Op::Abs | Op::CopySign))
}

/// All moves, in execution order.
fn moved(graph: &Graph, targets: &Targets, guards: &HashMap<(Block, usize), Target>) -> Editor {
    let mut editor = Editor::of(graph);
    for block in graph.preorder() {
        for (position, item) in graph.blocks[block].items.iter().enumerate() {
            let target = match *item {
                Item::Node(node) => targets[node],
                Item::Guard { .. } => guards.get(&(block, position)).copied(),
                Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => None,
            };
            if let Some(Target { before, .. }) = target {
                editor.move_before((block, position), before);
            }
        }
    }
    editor
}
