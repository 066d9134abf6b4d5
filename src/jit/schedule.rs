//! The schedule: the graph as a list of instructions in the order of execution.
//!
//! The regions in a block divide it into basic blocks. The items of a basic block are visited in
//! order, and each output, condition, or value that another block uses is scheduled after its
//! operands (see `order`). So a value of the forward sweep that only the reverse sweep uses is
//! computed next to its use and is not live before: nodes move down to the last basic block of
//! their block that dominates their uses, but never into another block.
//!
//! Regions and the two arms of branches follow one another in the list, with bracketing
//! instructions:
//!
//! ```text
//! Enter  …  Branch  (first arm)  Otherwise  (second arm)  Close  Join
//! ```
//!
//! Each arm ends with `End`, or with a branch of its own.
//!
//! A loop is such a region; each path through it ends with a branch, one arm of which gives the
//! entry φs their operands and ends with `BackEdge`.

use super::hot::hot_arm;
use super::layout::Layout;
use super::operands::for_each_use;
use super::order::Order;
use crate::entity::PrimaryMap;
use crate::ssa::{Access, Block, Def, End, Graph, Item, Node, Region};

/// An instruction of the schedule. A position is the index of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inst {
    /// Computes a node.
    Node(Node),
    /// Takes the side exit unless the condition is as expected.
    Guard(Node, bool),
    /// Enters a region, whose `Join` is at `end`.
    Enter { region: Region, end: u32 },
    /// The paths of the region join, and its φs are defined.
    Join,
    /// Continues with the next instruction if the test holds, otherwise at `otherwise`; the branch
    /// is over at `end`. `hot` is the outcome in profiled runs, if it is always the same.
    Branch { test: Test, hot: Option<bool>, otherwise: u32, end: u32 },
    /// Begins the second arm of the innermost branch.
    Otherwise,
    /// Ends the second arm of the innermost branch.
    Close,
    /// Returns a value: output, or in a region φ, with this number.
    Return(u32, Node),
    /// Ends the path, or in a region jumps to its `Join`.
    End,
    /// Copies a node to this word of the scratch buffer.
    Write { word: u32, node: Node },
    /// Sets words of the scratch buffer to zero.
    Zero { word: u32, len: u32 },
    /// Sets outputs to zero.
    ZeroOutputs { first: u32, count: u32 },
    /// Adds a node to an element of sums.
    Accumulate(Access, Node),
    /// Stores a node in a cell.
    Store(Access, Node),
    /// Keeps this entry φ for the operand of the entry φ with this number until all entry φs of
    /// the innermost loop are assigned (a parallel copy).
    Hold(u32, Node),
    /// Assigns an operand to the entry φ with this number of the innermost loop.
    Next(u32, Node),
    /// Jumps to the next iteration of the innermost loop.
    BackEdge,
}

/// The condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// The node is not 0.
    Node(Node),
    /// This loop, which replays another, has more iterations.
    More(Region),
}

/// Schedules `graph`. `profile` has the blocks that profiled runs reach.
pub(super) fn insts(
    graph: &Graph,
    layout: &Layout,
    profile: Option<&PrimaryMap<Block, bool>>,
) -> Vec<Inst> {
    let exports = Exports::of(graph);
    let mut order = Order::new(graph, layout);
    let mut tasks = vec![Task::Items(graph.root(), 0)];
    while let Some(task) = tasks.pop() {
        let here = order.insts.len() as u32;
        match task {
            Task::Items(block, start) => {
                match basic_block(graph, block, start, &exports, &mut order) {
                    Some((region, next)) => {
                        layout.copied[region].iter().for_each(|&array| order.gather(array));
                        let enter = order.insts.len();
                        order.insts.push(Inst::Enter { region, end: 0 });
                        let root = Task::Items(graph.regions[region].root, 0);
                        tasks.extend([Task::Items(block, next), Task::Join(enter), root]);
                    }
                    None => finish(graph, layout, profile, block, &mut order.insts, &mut tasks),
                }
            }
            Task::Otherwise(branch) => {
                if let Inst::Branch { otherwise, .. } = &mut order.insts[branch] {
                    *otherwise = here;
                }
                order.insts.push(Inst::Otherwise);
            }
            Task::Close(branch) => {
                if let Inst::Branch { end, .. } = &mut order.insts[branch] {
                    *end = here;
                }
                order.insts.push(Inst::Close);
            }
            Task::Join(enter) => {
                if let Inst::Enter { end, .. } = &mut order.insts[enter] {
                    *end = here;
                }
                order.insts.push(Inst::Join);
            }
        }
    }
    debug_assert_eq!(guard_insts(&order.insts), guards(graph), "each guard is checked once");
    order.insts
}

/// A unit of work; the worklist is a stack. Instructions are given by their positions.
enum Task {
    /// The items of a block from this number on.
    Items(Block, usize),
    Otherwise(usize),
    Close(usize),
    Join(usize),
}

/// Schedules the items of `block` from number `start` up to the next region, which is returned
/// with the number of the item after it, or to the end.
fn basic_block(
    graph: &Graph,
    block: Block,
    start: usize,
    exports: &Exports,
    order: &mut Order<'_>,
) -> Option<(Region, usize)> {
    let data = &graph.blocks[block];
    let rest = &data.items[start..];
    let region = rest.iter().zip(start..).find_map(|(item, index)| match *item {
        Item::Region(region) => Some((region, index)),
        _ => None,
    });
    let straight = &data.items[start..region.map_or(data.items.len(), |(_, index)| index)];
    let mut unchecked = Vec::new();
    for item in straight {
        match *item {
            Item::Guard { condition, expect } => {
                order.await_guard(condition, expect);
                unchecked.push(condition);
            }
            // Custom operations are called only where the program calls them, behind its guards.
            Item::Node(node) if graph.is_custom_call(node) => {
                unchecked.drain(..).for_each(|condition| order.demand(condition));
                order.demand(node);
            }
            // Accesses to the sums come later, so fills stay in order.
            Item::Fill(array) => order.fill(array),
            Item::Accumulate(access, node) => {
                order.demand(node);
                order.insts.push(Inst::Accumulate(access, node));
            }
            // Elements are loaded where they are used, perhaps later: their cells stay as they are.
            Item::Store(access, node) => {
                order.demand(node);
                order.insts.push(Inst::Store(access, node));
            }
            Item::Node(_) | Item::Region(_) => {}
        }
    }
    if let Some((region, index)) = region {
        exports.before[region].iter().for_each(|&node| order.demand(node));
        for item in straight {
            if let Item::Guard { condition, .. } = *item {
                order.demand(condition);
            }
        }
        return Some((region, index + 1));
    }
    if let End::Return(outputs) = &data.end {
        outputs.iter().for_each(|&output| order.demand(output));
    }
    // From the first item on: uses may be behind regions.
    for item in &data.items {
        match *item {
            Item::Node(node) if exports.at_end[node] => order.demand(node),
            Item::Guard { condition, .. } => order.demand(condition),
            _ => {}
        }
    }
    if let End::Branch { condition, .. } = data.end {
        order.demand(condition);
    }
    None
}

/// Schedules the end of `block`, and pushes its successors to `tasks`.
fn finish(
    graph: &Graph,
    layout: &Layout,
    profile: Option<&PrimaryMap<Block, bool>>,
    block: Block,
    insts: &mut Vec<Inst>,
    tasks: &mut Vec<Task>,
) {
    let region = layout.nest.block_region(block);
    match &graph.blocks[block].end {
        End::Return(values)
            if let Some(region) = region
                && graph.regions[region].cycle.is_some() =>
        {
            finish_iteration(graph, region, values, insts);
        }
        End::Return(values) if region.is_some() => {
            insts.extend(values.iter().zip(0..).map(|(&value, i)| Inst::Return(i, value)));
            insts.push(Inst::End);
        }
        End::Return(values) => {
            let numbered = values.iter().zip(graph.returned_outputs());
            insts.extend(numbered.map(|(&value, number)| Inst::Return(number, value)));
            insts.push(Inst::End);
        }
        &End::Branch { condition, then, otherwise } => {
            let branch = insts.len();
            let hot = hot_arm(graph, condition, [then, otherwise], profile);
            insts.push(Inst::Branch { test: Test::Node(condition), hot, otherwise: 0, end: 0 });
            tasks.extend([
                Task::Close(branch),
                Task::Items(otherwise, 0),
                Task::Otherwise(branch),
                Task::Items(then, 0),
            ]);
        }
        End::Open => insts.push(Inst::End),
    }
}

/// Schedules an end of the loop `region` with these return values.
fn finish_iteration(graph: &Graph, region: Region, values: &[Node], insts: &mut Vec<Inst>) {
    let (decides, nexts) = graph.passed_before_phis(region);
    let (again, values) = values.split_at(decides);
    let (nexts, values) = values.split_at(nexts);
    let known = again.first().and_then(|&again| graph.constant(again));
    let test = match again.first() {
        Some(&again) => Test::Node(again),
        None => Test::More(region),
    };
    let branch = insts.len();
    if known.is_none() {
        insts.push(Inst::Branch { test, hot: None, otherwise: 0, end: 0 });
    }
    if known.is_none_or(|again| again != 0.0) {
        let is_entry =
            |next: Node| matches!(graph.nodes[next].def, Def::Entry(of, _) if of == region);
        let entries = graph.entries(region);
        let numbered = || nexts.iter().copied().zip(0..);
        // An entry φ that is its own operand is not assigned, but others may need its value.
        let held =
            |&(next, number): &(Node, u32)| is_entry(next) && entries[number as usize].phi != next;
        insts.extend(numbered().filter(held).map(|(next, number)| Inst::Hold(number, next)));
        insts.extend(numbered().map(|(next, number)| Inst::Next(number, next)));
        insts.push(Inst::BackEdge);
    }
    if known.is_none() {
        let here = insts.len() as u32;
        if let Inst::Branch { otherwise, .. } = &mut insts[branch] {
            *otherwise = here;
        }
        insts.push(Inst::Otherwise);
    }
    if known.is_none_or(|again| again == 0.0) {
        insts.extend(values.iter().zip(0..).map(|(&value, i)| Inst::Return(i, value)));
        insts.push(Inst::End);
    }
    if known.is_none() {
        let here = insts.len() as u32;
        if let Inst::Branch { end, .. } = &mut insts[branch] {
            *end = here;
        }
        insts.push(Inst::Close);
    }
}

/// The position where nodes must be computed that are used outside their blocks.
struct Exports {
    /// For each region of a block the nodes of the block that it uses and no region before does.
    before: PrimaryMap<Region, Vec<Node>>,
    /// True for nodes that are used in blocks below, outside the regions of their block.
    at_end: PrimaryMap<Node, bool>,
}

impl Exports {
    fn of(graph: &Graph) -> Exports {
        let preorder = graph.preorder();
        let parents = graph.parents();
        let mut number = PrimaryMap::filled(0, graph.blocks.len());
        // The number of blocks in the tree of each block.
        let mut sizes = PrimaryMap::filled(1, graph.blocks.len());
        for (index, &block) in preorder.iter().enumerate().rev() {
            number[block] = index;
            if let Some(parent) = parents[block] {
                sizes[parent] += sizes[block];
            }
        }
        let mut def_blocks: PrimaryMap<Node, Option<Block>> =
            PrimaryMap::filled(None, graph.nodes.len());
        let mut regions: PrimaryMap<Block, Vec<Region>> =
            PrimaryMap::filled(vec![], graph.blocks.len());
        for (block, data) in graph.blocks.iter() {
            for item in &data.items {
                match *item {
                    Item::Node(node) => def_blocks[node] = Some(block),
                    Item::Region(region) => regions[block].push(region),
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                    }
                }
            }
        }
        // For each node the first region of its block that uses it.
        let mut first: PrimaryMap<Node, Option<usize>> =
            PrimaryMap::filled(None, graph.nodes.len());
        let mut at_end = PrimaryMap::filled(false, graph.nodes.len());
        for_each_use(graph, |node, user| {
            let Some(def_block) = def_blocks[node].filter(|&def_block| def_block != user) else {
                return;
            };
            let def_regions = &regions[def_block];
            let root = |region: Region| graph.regions[region].root;
            let after = def_regions.partition_point(|&region| number[root(region)] <= number[user]);
            let inside = after.checked_sub(1).filter(|&index| {
                let root = root(def_regions[index]);
                number[user] < number[root] + sizes[root]
            });
            match inside {
                Some(index) => {
                    first[node] = Some(first[node].map_or(index, |least| least.min(index)))
                }
                None => at_end[node] = true,
            }
        });
        let mut before: PrimaryMap<Region, Vec<Node>> =
            PrimaryMap::filled(vec![], graph.regions.len());
        for (block, data) in graph.blocks.iter() {
            for item in &data.items {
                if let Item::Node(node) = *item
                    && let Some(&region) = first[node].and_then(|index| regions[block].get(index))
                {
                    before[region].push(node);
                }
            }
        }
        Exports { before, at_end }
    }
}

fn guard_insts(insts: &[Inst]) -> usize {
    insts.iter().filter(|inst| matches!(inst, Inst::Guard(..))).count()
}

fn guards(graph: &Graph) -> usize {
    let items = graph.blocks.values().flat_map(|data| &data.items);
    items.filter(|item| matches!(item, Item::Guard { .. })).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::Entity;
    use crate::ssa::parse;

    fn insts_of(text: &str) -> Vec<Inst> {
        let graph = parse(text).unwrap();
        insts(&graph, &Layout::of(&graph).unwrap(), None)
    }

    #[test]
    fn a_guard_that_follows_the_condition_of_another_is_kept() {
        let insts = insts_of(
            "graph active 3 inactive 0\nb0:\n  v3 = lt v0 v1\n  v4 = gt v3 v2\n  \
             guard v4\n  guard v3\n  v5 = sin v0\n  return v5\n",
        );
        assert_eq!(guard_insts(&insts), 2);
        // Three nodes, two guards, one output and the end.
        assert_eq!(insts.len(), 7);
    }

    /// The numbers of the nodes in each basic block.
    fn basic_blocks(insts: &[Inst]) -> Vec<Vec<usize>> {
        let mut basic_blocks = vec![vec![]];
        for inst in insts {
            match inst {
                Inst::Node(node) => basic_blocks.last_mut().unwrap().push(node.index()),
                Inst::Guard(..) | Inst::Return(..) | Inst::End => {}
                _ => basic_blocks.push(vec![]),
            }
        }
        basic_blocks
    }

    #[test]
    fn nodes_move_down_to_the_basic_block_that_uses_them_but_not_into_regions() {
        let insts = insts_of(
            "graph active 2 inactive 0\nb0:\n  v2 = sin v0\n  v3 = cos v0\n  v4 = exp v0\n  \
             v7 = region r0 b1\n  v10 = region r1 b4\n  v11 = add v2 v10\n  return v11\n\
             b1:\n  v5 = lt v0 v1\n  branch v5 b2 b3\nb2:\n  return v3\n\
             b3:\n  v6 = neg v1\n  return v6\n\
             b4:\n  v8 = mul v4 v3\n  v9 = add v8 v7\n  return v9\n",
        );
        // Only the first arm of the first region uses v3, but all of b0 sees it.
        let expected: [&[usize]; 8] = [&[3], &[5], &[], &[6], &[], &[4], &[8, 9], &[2, 11]];
        assert_eq!(basic_blocks(&insts), expected);
        let matched = insts.iter().all(|inst| match *inst {
            Inst::Enter { end, .. } => insts[end as usize] == Inst::Join,
            Inst::Branch { otherwise, end, .. } => {
                (insts[otherwise as usize], insts[end as usize]) == (Inst::Otherwise, Inst::Close)
            }
            _ => true,
        });
        assert!(matched, "{insts:?}");
    }

    #[test]
    fn values_for_a_replay_are_computed_in_the_replayed_region() {
        let insts = insts_of(
            "graph active 2 inactive 0\nb0:\n  v2 = lt v0 v1\n  v4 = region r0 b1\n  \
             v6 = region r1 b4 replays r0\n  return v6\n\
             b1:\n  branch v2 b2 b3\nb2:\n  v3 = sin v0\n  return v0\nb3:\n  return v1\n\
             b4:\n  branch v2 b5 b6\nb5:\n  v5 = neg v3\n  return v5\nb6:\n  return v4\n",
        );
        let expected: [&[usize]; 11] = [&[2], &[], &[3], &[], &[], &[], &[], &[5], &[], &[], &[]];
        assert_eq!(basic_blocks(&insts), expected);
    }
}
