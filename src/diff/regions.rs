//! The reverse sweep of a region.
//!
//! For each region on a path the gradient graph has a region that replays it: it takes the
//! same path, in which the values computed there are visible, and its φs are the adjoints
//! that it changes. A block that ends in a branch is swept from its end: first a nested region
//! that branches on the same condition, with the sweep of one arm in each block, then the
//! items of the block backwards. So paths have joined before each item, and each block of the
//! region is swept once, however many paths contain it.
//!
//! The tape has one accumulator for each adjoint, to which it adds in the reverse order of
//! the events. For the same bits a region starts from the adjoint before it,
//! `before + c₁ + c₂`, instead of returning `c₁ + c₂`. On the tape a φ is an event that copies
//! its operand, after those of the region and in order, so at an end the adjoints of the φs
//! are added to those of their operands with the last φ first.
//!
//! An arm that does not change an adjoint that the other arm changes returns the adjoint from
//! before, or 0 if there was none. The tape begins with 0 too; the graph, outside regions, with
//! the first contribution. The two can differ only in the sign of a zero: a sum that began with
//! 0 is never -0.0, contributions of a zero adjoint are zeros, adding a zero to a nonzero number
//! changes nothing, and zero derivatives become positive at the end of the leaf.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::adjoints::Changed;
use super::loops::Carried;
use super::reverse::Reverse;
use super::sums::Opened;
use crate::ssa::{Block, End, Item, Node, Region};

/// A unit of work of the sweep. The worklist replaces recursion, so the thread's stack does not
/// grow with the nesting of regions and branches.
pub(super) enum Task {
    /// A region, in the current block.
    Region(Region),
    /// A block and all below it, in the current block.
    Block(Block),
    /// The first items of a block, by their number.
    Steps(Block, usize),
    /// A block and all below it, in a new block on the same arm of a branch.
    Arm(Block, Block),
    /// The end of an arm of a new branch, whose adjoints are recorded.
    Close(Block),
    /// The join of the two arms of a branch, in a new region that replays none.
    Join(Region),
    /// The end of the sweep of the innermost region, which becomes this new region.
    Exit(Region),
}

/// The state of the sweep of a region on a path.
#[derive(Default)]
pub(super) struct Sweep {
    pub(super) tasks: Vec<Task>,
    /// The regions being swept, outermost first.
    pub(super) frames: Vec<Frame>,
    /// The arms of new branches that are not joined yet, with their adjoints.
    ends: Vec<(Block, Changed)>,
}

/// A region that is being swept.
pub(super) struct Frame {
    pub(super) region: Region,
    /// The blocks to sweep, on paths to ends with an adjoint.
    pub(super) active_blocks: HashSet<Block>,
    /// The sums that close when the region has been swept.
    pub(super) opened: Opened,
    /// The loop-carried adjoints, if it is a loop.
    pub(super) carried: Carried,
}

impl Sweep {
    fn region(&self) -> Option<Region> {
        self.frames.last().map(|frame| frame.region)
    }

    fn is_active_block(&self, block: Block) -> bool {
        self.frames.last().is_some_and(|frame| frame.active_blocks.contains(&block))
    }
}

impl Reverse<'_> {
    /// Appends the sweep of `region` to the current block.
    pub(super) fn sweep_region(&mut self, region: Region) {
        let mut sweep = Sweep { tasks: vec![Task::Region(region)], ..Sweep::default() };
        while let Some(task) = sweep.tasks.pop() {
            match task {
                Task::Region(region) => self.enter_region(region, &mut sweep),
                Task::Block(block) => self.sweep_end(block, &mut sweep),
                Task::Steps(block, count) => self.sweep_steps(block, count, &mut sweep),
                Task::Arm(block, new_block) => {
                    self.builder.enter(new_block);
                    self.adjoints.open();
                    sweep.tasks.push(Task::Close(new_block));
                    if sweep.is_active_block(block) {
                        sweep.tasks.push(Task::Block(block));
                    }
                }
                Task::Close(new_block) => {
                    self.builder.leave();
                    sweep.ends.push((new_block, self.adjoints.close()));
                }
                Task::Join(new) => {
                    if let Some(region) = sweep.region() {
                        self.set_region_place(region);
                    }
                    let ends = sweep.ends.split_off(sweep.ends.len().saturating_sub(2));
                    self.join(new, &ends);
                }
                Task::Exit(new) => {
                    let Some(frame) = sweep.frames.pop() else { continue };
                    match self.graph.regions[frame.region].cycle {
                        Some(_) => self.exit_loop(new, frame),
                        None => self.exit_region(new, frame),
                    }
                }
            }
        }
    }

    fn enter_region(&mut self, region: Region, sweep: &mut Sweep) {
        let Some(copy) = self.region_copy[region] else { return };
        if self.graph.regions[region].cycle.is_some() {
            self.enter_loop(region, copy, sweep);
            return;
        }
        let carried = Carried::default();
        let active_blocks = self.active_blocks(region, &carried);
        if active_blocks.is_empty() {
            return;
        }
        self.set_region_place(region);
        let reads = &self.primal.reads[region];
        let opened = match reads.iter().all(|&array| self.is_open(array)) {
            true => Opened::default(),
            false => {
                let array = self.adjoint_flow(region).arrays;
                self.open_sums(&array, &[])
            }
        };
        let new = self.builder.begin_region(Some(copy));
        self.adjoints.open();
        sweep.frames.push(Frame { region, active_blocks, opened, carried });
        let root = self.graph.regions[region].root;
        sweep.tasks.extend([Task::Exit(new), Task::Block(root)]);
    }

    fn exit_region(&mut self, new: Region, Frame { region, opened, .. }: Frame) {
        let changed = self.adjoints.close();
        for &phi in &self.graph.regions[region].phis {
            self.adjoints.take(phi);
        }
        self.set_region_place(region);
        let root = self.builder.graph().regions[new].root;
        self.join(new, &[(root, changed)]);
        self.close_sums(&opened);
    }

    /// The blocks of `region` on paths to ends where an operand gets an adjoint, or all if it
    /// stores active values; the others need no sweep.
    pub(super) fn active_blocks(&self, region: Region, carried: &Carried) -> HashSet<Block> {
        let root = self.graph.regions[region].root;
        let mut active_blocks = HashSet::new();
        for &leaf in self.primal.leaves(region) {
            // Any path may store a value with an adjoint.
            let is_active =
                !self.primal.stored[region].is_empty() || self.is_seeded(region, leaf, carried);
            let mut next = Some(leaf).filter(|_| is_active);
            while let Some(block) = next.filter(|&block| active_blocks.insert(block)) {
                next = self.primal.parents[block].filter(|_| block != root);
            }
        }
        active_blocks
    }

    /// Sweeps the end of `block` and schedules the sweep of its items.
    fn sweep_end(&mut self, block: Block, sweep: &mut Sweep) {
        let data = &self.graph.blocks[block];
        sweep.tasks.push(Task::Steps(block, data.items.len()));
        let graph = self.graph;
        for region in graph.regions_of(block) {
            if self.recomputed.contains(&region) {
                self.copy_again(region);
            }
            self.zero_trajectory_adjoints(region);
        }
        self.zero_cell_adjoints(&data.items);
        match &data.end {
            End::Return(_) => {
                if let Some(frame) = sweep.frames.last() {
                    self.sweep_phi_operands(block, frame);
                }
            }
            &End::Branch { condition, then, otherwise } => {
                if !sweep.is_active_block(then) && !sweep.is_active_block(otherwise) {
                    return;
                }
                if let Some(region) = sweep.region() {
                    self.set_region_place(region);
                }
                let condition = self.copied(condition);
                let new = self.builder.begin_region(None);
                let (new_then, new_otherwise) = self.builder.branch(condition);
                sweep.tasks.extend([
                    Task::Join(new),
                    Task::Arm(otherwise, new_otherwise),
                    Task::Arm(then, new_then),
                ]);
            }
            End::Open => {}
        }
    }

    /// Sweeps the first `count` items of `block`, last first, up to a region.
    fn sweep_steps(&mut self, block: Block, count: usize, sweep: &mut Sweep) {
        for index in (0..count).rev() {
            match self.graph.blocks[block].items[index] {
                Item::Node(node) => self.propagate(node),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
                Item::Store(access, node) => self.propagate_store(access, node),
                Item::Region(region) => {
                    sweep.tasks.extend([Task::Steps(block, index), Task::Region(region)]);
                    return;
                }
            }
        }
    }

    /// Ends the current region, `new`, with `ends`: each adjoint that one of them changed
    /// becomes a φ.
    fn join(&mut self, new: Region, ends: &[(Block, Changed)]) {
        let replays = self.builder.graph().regions[new].replays.is_some();
        let mut nodes: Vec<Node> =
            ends.iter().flat_map(|(_, changed)| changed).map(|&(node, _)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut operands: Vec<Vec<Node>> = vec![Vec::new(); ends.len()];
        let (mut joined, mut same) = (Vec::new(), Vec::new());
        for node in nodes {
            let before = self.adjoints.get(node);
            let mut values: SmallVec<[Node; 2]> = SmallVec::new();
            for (_, changed) in ends {
                let found = changed.binary_search_by_key(&node, |&(node, _)| node);
                let adjoint = found.ok().map(|index| changed[index].1).or(before);
                values.push(adjoint.unwrap_or_else(|| self.builder.constant(0.0)));
            }
            let first = values[0];
            // A node that both arms return is computed before the branch. A node that the
            // single end of a replay returns may be visible in the replay only.
            let visible = !replays || self.builder.graph().constant(first).is_some();
            if visible && values.iter().all(|&value| value == first) {
                same.push((node, first));
            } else {
                joined.push(node);
                operands.iter_mut().zip(values).for_each(|(operands, value)| operands.push(value));
            }
        }
        for ((block, _), operands) in ends.iter().zip(&operands) {
            self.builder.enter(*block);
            self.builder.finish_block(operands);
            self.builder.leave();
        }
        let phis = self.builder.end_region(new, joined.len());
        let phis = joined.into_iter().zip(phis);
        phis.chain(same).for_each(|(node, adjoint)| self.adjoints.set(node, adjoint));
    }
}
