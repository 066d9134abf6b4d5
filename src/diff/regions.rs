//! The reverse sweep of a region.
//!
//! For each region on a path the gradient graph has one that replays it: it goes
//! over the way that was taken, in which it sees what was computed there, and
//! passes on the adjoints that it changes. A block that ends in a branch is
//! swept from its end: first a nested region that branches on the same condition,
//! with the sweep of one side in each block, then the steps of the block
//! backwards. So control has joined again before each step, and each block of the
//! region has one sweep, however many ways lead through it.
//!
//! The tape has one sum for each adjoint, to which it adds in the reverse order
//! of the events. So that the bits agree, a region goes on with the adjoint from
//! before it, `before + c₁ + c₂`, instead of passing on `c₁ + c₂`. To the tape a
//! φ is an event that copies the value passed on, after those of the region and
//! in order; so at an end the adjoints of the φs are added to those of the values
//! last φ first.
//!
//! Where a way changes no adjoint that another way changes, it passes on the
//! adjoint from before, or 0 if there was none. The tape begins with 0 too; the
//! graph, outside, with the first contribution. The two can differ in the sign of
//! a zero alone, here as there: a sum that began with 0 is never -0.0, a zero of
//! either sign passes on zeros, a zero added to a number that is not zero is
//! lost, and the zeros that reach an input become positive at the end of the leaf.

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::adjoints::Changed;
use super::loops::Carried;
use super::reverse::Reverse;
use super::sums::Opened;
use crate::ssa::{Block, End, Item, Node, Region};

/// What is left to sweep. The list of these is the stack of the sweep, so the
/// thread's own does not grow with the nesting of regions and branches.
pub(super) enum Task {
    /// A region, in the current block.
    Region(Region),
    /// A block and all below it, in the current block.
    Block(Block),
    /// The first so many steps of a block.
    Steps(Block, usize),
    /// A block and all below it, in a new block on the same side of a branch.
    Side(Block, Block),
    /// The end of a block of a new region, which then has its adjoints.
    Close(Block),
    /// The end of a new region without a region that it replays, with two ends.
    Join(Region),
    /// The end of the sweep of the innermost region, in the new region.
    Leave(Region),
}

/// The state of the sweep of one step of a path.
#[derive(Default)]
pub(super) struct Sweep {
    pub(super) tasks: Vec<Task>,
    /// The regions being swept, each in the one before.
    pub(super) frames: Vec<Frame>,
    /// The ends of new regions that are not joined yet.
    ends: Vec<(Block, Changed)>,
}

/// A region that is being swept.
pub(super) struct Frame {
    pub(super) region: Region,
    /// The blocks to sweep.
    pub(super) reached: HashSet<Block>,
    /// The sums that close when the region has been swept.
    pub(super) opened: Opened,
    /// What one iteration passes on to the one before, if it is a loop.
    pub(super) carried: Carried,
}

impl Sweep {
    fn region(&self) -> Option<Region> {
        self.frames.last().map(|frame| frame.region)
    }

    fn is_reached(&self, block: Block) -> bool {
        self.frames.last().is_some_and(|frame| frame.reached.contains(&block))
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
                Task::Side(block, new_block) => {
                    self.builder.enter(new_block);
                    self.adjoints.open();
                    sweep.tasks.push(Task::Close(new_block));
                    if sweep.is_reached(block) {
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
                Task::Leave(new) => {
                    let Some(frame) = sweep.frames.pop() else { continue };
                    match self.graph.regions[frame.region].cycle {
                        Some(_) => self.leave_loop(new, frame),
                        None => self.leave_region(new, frame),
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
        let reached = self.reached_blocks(region, &carried);
        if reached.is_empty() {
            return;
        }
        self.set_region_place(region);
        let reads = &self.activity.reads[region];
        let opened = match reads.iter().all(|&array| self.is_open(array)) {
            true => Opened::default(),
            false => {
                let array = self.reach(region).arrays;
                self.open_sums(&array, &[])
            }
        };
        let new = self.builder.begin_region(Some(copy));
        self.adjoints.open();
        sweep.frames.push(Frame { region, reached, opened, carried });
        let root = self.graph.regions[region].root;
        sweep.tasks.extend([Task::Leave(new), Task::Block(root)]);
    }

    fn leave_region(&mut self, new: Region, Frame { region, opened, .. }: Frame) {
        let changed = self.adjoints.close();
        for &phi in &self.graph.regions[region].phis {
            self.adjoints.take(phi);
        }
        self.set_region_place(region);
        let root = self.builder.graph().regions[new].root;
        self.join(new, &[(root, changed)]);
        self.close_sums(&opened);
    }

    /// The blocks of `region` on the ways to ends that pass on what gets an adjoint;
    /// in others there is nothing to sweep.
    pub(super) fn reached_blocks(&self, region: Region, carried: &Carried) -> HashSet<Block> {
        let root = self.graph.regions[region].root;
        let mut reached = HashSet::new();
        for &leaf in &self.activity.leaves[region] {
            let mut next = Some(leaf).filter(|&leaf| self.is_seeded(region, leaf, carried));
            while let Some(block) = next.filter(|&block| reached.insert(block)) {
                next = self.activity.parents[block].filter(|_| block != root);
            }
        }
        reached
    }

    /// Sweeps what comes after the steps of `block`, and leaves the steps to do.
    fn sweep_end(&mut self, block: Block, sweep: &mut Sweep) {
        let data = &self.graph.blocks[block];
        sweep.tasks.push(Task::Steps(block, data.items.len()));
        let graph = self.graph;
        for region in graph.regions_of(block) {
            if self.recomputed.contains(&region) {
                self.copy_again(region);
            }
            self.fill_pasts(region);
        }
        match &data.end {
            End::Return(_) => {
                if let Some(frame) = sweep.frames.last() {
                    self.sweep_passed(block, frame);
                }
            }
            &End::Branch { condition, then, otherwise } => {
                if !sweep.is_reached(then) && !sweep.is_reached(otherwise) {
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
                    Task::Side(otherwise, new_otherwise),
                    Task::Side(then, new_then),
                ]);
            }
            End::Open => {}
        }
    }

    /// Sweeps the first `count` steps of `block`, up to the last region among
    /// them.
    fn sweep_steps(&mut self, block: Block, count: usize, sweep: &mut Sweep) {
        for index in (0..count).rev() {
            match self.graph.blocks[block].items[index] {
                Item::Node(node) => self.pass_on(node),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
                Item::Region(region) => {
                    sweep.tasks.extend([Task::Steps(block, index), Task::Region(region)]);
                    return;
                }
            }
        }
    }

    /// Ends the new region `new`, the current one, with `ends`: the adjoints that
    /// any of them changed become its φs.
    fn join(&mut self, new: Region, ends: &[(Block, Changed)]) {
        let replays = self.builder.graph().regions[new].replays.is_some();
        let mut nodes: Vec<Node> =
            ends.iter().flat_map(|(_, changed)| changed).map(|&(node, _)| node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut passed: Vec<Vec<Node>> = vec![Vec::new(); ends.len()];
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
            // What two sides have in common is visible before them; what the one
            // end of a replay has may be visible through the replay alone.
            let visible = !replays || self.builder.graph().constant(first).is_some();
            if visible && values.iter().all(|&value| value == first) {
                same.push((node, first));
            } else {
                joined.push(node);
                passed.iter_mut().zip(values).for_each(|(passed, value)| passed.push(value));
            }
        }
        for ((block, _), passed) in ends.iter().zip(&passed) {
            self.builder.enter(*block);
            self.builder.finish_block(passed);
            self.builder.leave();
        }
        let phis = self.builder.end_region(new, joined.len());
        let phis = joined.into_iter().zip(phis);
        phis.chain(same).for_each(|(node, adjoint)| self.adjoints.set(node, adjoint));
    }
}
