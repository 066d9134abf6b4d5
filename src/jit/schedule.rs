//! The order in which a block computes its nodes.
//!
//! Nodes are computed when something needs them: the items of a block are
//! visited in order, and each output, condition or value for a later block
//! pulls in what it depends on just before. A value of the forward sweep that
//! only the reverse sweep uses is then computed next to its use, and need not
//! be kept until then. Of several operands the one that needs most registers is
//! computed first (Sethi and Ullman, "The Generation of Optimal Code for
//! Arithmetic Expressions", 1970), so that the others do not wait in registers.

use core::cmp::Reverse;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::entity::Array;
use crate::op::MAX_ARITY;
use crate::ssa::{Block, Def, End, Graph, Item, Node};

/// One block in the order of execution.
pub(super) struct Scheduled {
    pub(super) block: Block,
    pub(super) items: Vec<Item>,
    /// One past the last block of the tree below this one, as an index into
    /// the schedule.
    pub(super) subtree_end: usize,
}

/// All blocks of `graph` in preorder, each with its items in a good order.
pub(super) fn schedule(graph: &Graph) -> Vec<Scheduled> {
    let preorder = graph.preorder();
    let parents = graph.parents();
    let mut home: Array<Node, Option<Block>> = Array::filled(None, graph.nodes.len());
    for (block, data) in graph.blocks.iter() {
        for item in &data.items {
            if let Item::Node(node) = *item {
                home[node] = Some(block);
            }
        }
    }
    let mut exported = Array::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        for &arg in data.args() {
            exported[arg] |= home[arg] != home[node];
        }
    }
    for (block, data) in graph.blocks.iter() {
        let mut export = |node: Node| exported[node] |= home[node] != Some(block);
        for item in &data.items {
            if let Item::Guard { condition, .. } = *item {
                export(condition);
            }
        }
        match &data.end {
            End::Return(outputs) => outputs.iter().for_each(|&output| export(output)),
            End::Branch { condition, .. } => export(*condition),
            End::Open => {}
        }
    }
    let mut sizes = Array::filled(1usize, graph.blocks.len());
    for &block in preorder.iter().rev() {
        if let Some(parent) = parents[block] {
            sizes[parent] += sizes[block];
        }
    }
    let needs = register_needs(graph);
    let mut done = Array::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        done[node] = !matches!(data.def, Def::Apply(..));
    }
    let in_order = preorder.into_iter().enumerate();
    in_order
        .map(|(index, block)| {
            let items = order_block(graph, block, &exported, &needs, &mut done);
            Scheduled { block, items, subtree_end: index + sizes[block] }
        })
        .collect()
}

/// What it takes to compute a node and what it depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    /// Registers, as if no value were used twice.
    registers: u32,
    /// The longest way to a leaf.
    depth: u32,
}

fn register_needs(graph: &Graph) -> Array<Node, Need> {
    let mut needs = Array::filled(Need { registers: 1, depth: 0 }, graph.nodes.len());
    // Operands have smaller ids than their users.
    for (node, data) in graph.nodes.iter() {
        let mut args: SmallVec<[Need; MAX_ARITY]> =
            data.args().iter().map(|&arg| needs[arg]).collect();
        args.sort_by_key(|&need| Reverse(need));
        // While one operand is computed, those before it wait in a register each.
        let registers = args.iter().zip(0..).map(|(need, waiting)| need.registers + waiting);
        let depth = args.iter().map(|need| need.depth + 1);
        needs[node] =
            Need { registers: registers.max().unwrap_or(1), depth: depth.max().unwrap_or(0) };
    }
    needs
}

fn order_block(
    graph: &Graph,
    block: Block,
    exported: &Array<Node, bool>,
    needs: &Array<Node, Need>,
    done: &mut Array<Node, bool>,
) -> Vec<Item> {
    let data = &graph.blocks[block];
    let mut order = Order { graph, needs, done, items: Vec::new(), waiting: HashMap::new() };
    for &item in &data.items {
        if let Item::Guard { condition, .. } = item {
            order.await_guard(item, condition);
        }
    }
    if let End::Return(outputs) = &data.end {
        outputs.iter().for_each(|&output| order.demand(output));
    }
    for &item in &data.items {
        match item {
            Item::Node(node) if exported[node] => order.demand(node),
            Item::Node(_) | Item::Region(_) | Item::Fill(_) | Item::Accumulate(..) => {}
            Item::Guard { condition, .. } => order.demand(condition),
        }
    }
    if let End::Branch { condition, .. } = data.end {
        order.demand(condition);
    }
    debug_assert_eq!(guards(&order.items), guards(&data.items), "each guard is checked once");
    order.items
}

/// The order of one block, as it grows.
struct Order<'a> {
    graph: &'a Graph,
    needs: &'a Array<Node, Need>,
    done: &'a mut Array<Node, bool>,
    items: Vec<Item>,
    /// The guards to check as soon as a node is done.
    waiting: HashMap<Node, SmallVec<[Item; 1]>>,
}

/// What is left to do, innermost last.
enum Task {
    /// Compute this node after its operands, from this one on.
    Compute(Node, usize),
    /// Check this guard, whose condition has been computed.
    Check(Item),
}

impl Order<'_> {
    /// Sees to it that `guard` is checked as soon as the latest operand of its
    /// condition is done, when both are likely to be in registers.
    fn await_guard(&mut self, guard: Item, condition: Node) {
        let pending = |&&node: &&Node| !self.done[node];
        let args = self.graph.nodes[condition].args();
        match args.iter().filter(pending).max() {
            Some(&last) if !self.done[condition] => {
                self.waiting.entry(last).or_default().push(guard);
            }
            _ => self.run(smallvec![Task::Check(guard), Task::Compute(condition, 0)]),
        }
    }

    /// Computes `node` and what it depends on, operands first.
    fn demand(&mut self, node: Node) {
        self.run(smallvec![Task::Compute(node, 0)]);
    }

    /// Works on `tasks`, and on those that come up meanwhile, until none is left.
    fn run(&mut self, mut tasks: SmallVec<[Task; 32]>) {
        while let Some(task) = tasks.pop() {
            match task {
                Task::Check(guard) => self.items.push(guard),
                Task::Compute(node, _) if self.done[node] => {}
                Task::Compute(node, next) => match self.operand(node, next) {
                    Some(arg) => {
                        tasks.extend([Task::Compute(node, next + 1), Task::Compute(arg, 0)]);
                    }
                    None => {
                        self.done[node] = true;
                        self.items.push(Item::Node(node));
                        for guard in self.waiting.remove(&node).unwrap_or_default() {
                            if let Item::Guard { condition, .. } = guard {
                                tasks.extend([Task::Check(guard), Task::Compute(condition, 0)]);
                            }
                        }
                    }
                },
            }
        }
    }

    /// The operand of `node` to compute as number `index`.
    fn operand(&self, node: Node, index: usize) -> Option<Node> {
        let mut args: SmallVec<[Node; MAX_ARITY]> =
            SmallVec::from_slice(self.graph.nodes[node].args());
        args.sort_by_key(|&arg| Reverse(self.needs[arg]));
        args.get(index).copied()
    }
}

fn guards(items: &[Item]) -> usize {
    items.iter().filter(|item| matches!(item, Item::Guard { .. })).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    #[test]
    fn a_guard_that_waits_for_the_condition_of_another_is_kept() {
        let text = "graph active 3 inactive 0\nb0:\n  v3 = lt v0 v1\n  v4 = gt v3 v2\n  \
                    guard v4\n  guard v3\n  v5 = sin v0\n  return v5\n";
        let graph = parse(text).unwrap();
        let scheduled = schedule(&graph);
        assert_eq!(guards(&scheduled[0].items), 2);
        assert_eq!(scheduled[0].items.len(), 5);
    }
}
