//! Invariants of use: whatever is used is visible there.

use super::{VerifyError, at_block, at_node, at_region};
use crate::entity::Array;
use crate::ssa::graph::{Block, Def, End, Graph, Item, Node, Region};

pub(super) fn check(graph: &Graph) -> Result<(), VerifyError> {
    let is_computed = |def: &Def| matches!(def, Def::Apply(..) | Def::Phi(..));
    let mut walk = Walk {
        graph,
        visible: graph.nodes.values().map(|data| u32::from(!is_computed(&data.def))).collect(),
        regions: Array::filled(0, graph.regions.len()),
        replaying: Array::filled(false, graph.regions.len()),
        computed: Array::filled(false, graph.nodes.len()),
        open: Vec::new(),
    };
    walk.run()?;
    let lost = graph
        .nodes
        .iter()
        .find(|(node, data)| matches!(data.def, Def::Apply(..)) && !walk.computed[*node]);
    lost.map_or(Ok(()), |(node, _)| Err(at_node(graph, node, "is computed by no block")))
}

/// A walk over the tree, deepest first, in the order of the steps.
struct Walk<'a> {
    graph: &'a Graph,
    /// In how many ways each node is visible here.
    visible: Array<Node, u32>,
    /// In how many ways each region is visible here.
    regions: Array<Region, u32>,
    /// Which regions have a forward block.
    replaying: Array<Region, bool>,
    computed: Array<Node, bool>,
    /// The blocks from the root to here.
    open: Vec<Open>,
}

/// A block that the walk is in.
#[derive(Clone, Copy)]
struct Open {
    block: Block,
    /// The number of the next item, then 0 and 1 more for the sides of a branch.
    next: usize,
    /// The forward block.
    forward: Option<Block>,
    /// Whether the blocks above have no or another forward block.
    opens_forward: bool,
    /// The region that begins here.
    begins: Option<Region>,
    /// How many values each end of this tree passes on.
    values: usize,
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), VerifyError> {
        let graph = self.graph;
        self.enter(Open {
            block: graph.root(),
            next: 0,
            forward: None,
            opens_forward: false,
            begins: None,
            values: graph.outputs(),
        });
        while let Some(here) = self.open.last_mut() {
            let data = &graph.blocks[here.block];
            let next = here.next;
            here.next += 1;
            let here = *here;
            match (data.items.get(next), &data.end) {
                (Some(&Item::Node(node)), _) => self.compute(here.block, node)?,
                (Some(&Item::Guard { condition, .. }), _) => self.used(here.block, condition)?,
                (Some(&Item::Region(region)), _) => self.begin(here, region)?,
                (None, &End::Branch { condition, then, otherwise }) => {
                    let sides = [then, otherwise];
                    match sides.get(next - data.items.len()) {
                        Some(&side) => {
                            self.used(here.block, condition)?;
                            self.branch(here, condition, side);
                        }
                        None => self.leave(),
                    }
                }
                (None, End::Return(values)) => {
                    values.iter().try_for_each(|&value| self.used(here.block, value))?;
                    self.check_count(here, values.len())?;
                    self.leave();
                }
                (None, End::Open) => self.leave(),
            }
        }
        Ok(())
    }

    fn compute(&mut self, block: Block, node: Node) -> Result<(), VerifyError> {
        let data = self.graph.nodes.get(node);
        let Some(data) = data.filter(|data| matches!(data.def, Def::Apply(..))) else {
            return Err(at_block(self.graph, block, "computes what is no applied node"));
        };
        if self.computed[node] {
            return Err(at_node(self.graph, node, "is computed twice"));
        }
        if let Some(arg) = data.args().iter().find(|&&arg| self.visible[arg] == 0) {
            return Err(at_node(self.graph, node, &format!("uses {arg}, not visible here")));
        }
        self.computed[node] = true;
        self.visible[node] += 1;
        Ok(())
    }

    fn used(&self, block: Block, node: Node) -> Result<(), VerifyError> {
        match self.visible.get(node) {
            Some(&ways) if ways > 0 => Ok(()),
            _ => Err(at_block(self.graph, block, &format!("uses {node}, not visible here"))),
        }
    }

    fn begin(&mut self, here: Open, region: Region) -> Result<(), VerifyError> {
        let data = &self.graph.regions[region];
        let what = match data.replays {
            Some(replayed) if self.regions[replayed] == 0 => "that is not visible here",
            Some(replayed) if self.replaying[replayed] => "that replays one itself",
            _ => "",
        };
        if !what.is_empty() {
            return Err(at_region(self.graph, region, &format!("replays a region {what}")));
        }
        let replayed = data.replays.map(|replayed| self.graph.regions[replayed].root);
        let forward = replayed.or(here.forward);
        self.replaying[region] = forward.is_some();
        self.enter(Open {
            block: data.root,
            next: 0,
            forward,
            opens_forward: replayed.is_some(),
            begins: Some(region),
            values: data.phis.len(),
        });
        Ok(())
    }

    fn branch(&mut self, here: Open, condition: Node, side: Block) {
        let end = |block: Block| match self.graph.blocks[block].end {
            End::Branch { condition, then, otherwise } => Some((condition, then, otherwise)),
            End::Return(_) | End::Open => None,
        };
        let is_then = end(here.block).is_some_and(|(_, then, _)| then == side);
        let forward = here.forward.and_then(end).filter(|forward| forward.0 == condition);
        let forward = forward.map(|(_, then, otherwise)| if is_then { then } else { otherwise });
        self.enter(Open {
            block: side,
            next: 0,
            forward: forward.or(here.forward),
            opens_forward: forward.is_some(),
            begins: None,
            values: here.values,
        });
    }

    fn check_count(&self, here: Open, count: usize) -> Result<(), VerifyError> {
        if count == here.values {
            return Ok(());
        }
        let region = self.open.iter().rev().find_map(|open| open.begins);
        let what = match region {
            None => "returns another number of outputs".to_owned(),
            Some(region) => format!("passes on another number of values than {region} has φs"),
        };
        Err(at_block(self.graph, here.block, &what))
    }

    fn enter(&mut self, open: Open) {
        self.open.push(open);
        if let (true, Some(forward)) = (open.opens_forward, open.forward) {
            self.show(forward, true);
        }
    }

    fn leave(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.show(open.block, false);
        if let (true, Some(forward)) = (open.opens_forward, open.forward) {
            self.show(forward, false);
        }
        // The ends of a region meet: from here on its φs are visible.
        if let Some(region) = open.begins {
            self.show_region(region, true);
        }
    }

    /// Makes what `block` computes visible, or takes that back.
    fn show(&mut self, block: Block, visible: bool) {
        for item in &self.graph.blocks[block].items {
            match *item {
                Item::Node(node) => change(&mut self.visible[node], visible),
                Item::Region(region) => self.show_region(region, visible),
                Item::Guard { .. } => {}
            }
        }
    }

    fn show_region(&mut self, region: Region, visible: bool) {
        change(&mut self.regions[region], visible);
        for &phi in &self.graph.regions[region].phis {
            change(&mut self.visible[phi], visible);
        }
    }
}

fn change(ways: &mut u32, up: bool) {
    *ways = if up { *ways + 1 } else { ways.saturating_sub(1) };
}
