//! Invariants of uses: every use is of a visible node.

use super::filled::Filled;
use super::{VerifyError, at_block, at_node, at_region};
use crate::entity::PrimaryMap;
use crate::ssa::analysis::Nest;
use crate::ssa::arrays::{Access, Array, ArrayData};
use crate::ssa::graph::{Block, Def, End, Graph, Item, Node, Region};

/// Checks visibility: invariants 3, 4, 6, 8, 12 and 13.
pub(super) fn check(graph: &Graph, nest: &Nest) -> Result<(), VerifyError> {
    let is_computed = |def: &Def| !matches!(def, Def::Input(_) | Def::Const(_));
    let mut walk = Walk {
        graph,
        nest,
        visible: graph.nodes.values().map(|data| u32::from(!is_computed(&data.def))).collect(),
        regions: PrimaryMap::filled(0, graph.regions.len()),
        loops: PrimaryMap::filled(0, graph.regions.len()),
        numbers: PrimaryMap::filled(None, graph.regions.len()),
        filled: Filled::new(graph),
        replaying: PrimaryMap::filled(false, graph.regions.len()),
        output_arrays: graph.output_arrays().iter().map(|&(array, ..)| array).collect(),
        computed: PrimaryMap::filled(false, graph.nodes.len()),
        open: Vec::new(),
    };
    for (node, data) in graph.nodes.iter() {
        if let Def::Iteration(region) = data.def {
            walk.numbers[region] = Some(node);
        }
    }
    walk.run()?;
    let missing =
        graph.nodes.iter().find(|(node, data)| is_step(&data.def) && !walk.computed[*node]);
    missing.map_or(Ok(()), |(node, _)| Err(at_node(graph, node, "is a step of no block")))
}

/// Tests whether such a node is computed by a step of a block.
fn is_step(def: &Def) -> bool {
    matches!(def, Def::Apply(..) | Def::Element(_) | Def::Call(_) | Def::Result(..))
}

/// A depth-first walk over the tree, in the order of the steps.
struct Walk<'a> {
    graph: &'a Graph,
    nest: &'a Nest,
    /// The number of open scopes that make each node visible.
    visible: PrimaryMap<Node, u32>,
    /// The number of open scopes that make each region visible.
    regions: PrimaryMap<Region, u32>,
    /// The number of open loops that are or replay each loop.
    loops: PrimaryMap<Region, u32>,
    /// The node of each loop's iteration number.
    numbers: PrimaryMap<Region, Option<Node>>,
    filled: Filled,
    /// The arrays of outputs.
    output_arrays: Vec<Array>,
    /// True for regions with a block whose forward block is not that of the block around the
    /// region.
    replaying: PrimaryMap<Region, bool>,
    computed: PrimaryMap<Node, bool>,
    /// The blocks from the root to the current one.
    open: Vec<Open>,
}

/// An open block of the walk.
#[derive(Clone, Copy)]
struct Open {
    block: Block,
    /// The number of the next item; past the items 0 and 1 more for the arms of a branch.
    next: usize,
    /// The forward block.
    forward: Option<Block>,
    /// True if the block above has no or another forward block.
    opens_forward: bool,
    /// The region of which the block is the root.
    begins: Option<Region>,
    /// The number of values that each leaf of this tree passes on.
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
            values: graph.returned(),
        });
        while let Some(here) = self.open.last_mut() {
            let data = &graph.blocks[here.block];
            let next = here.next;
            here.next += 1;
            let here = *here;
            // The items in order, then both arms of a branch, or the values returned.
            match (data.items.get(next), &data.end) {
                (Some(&Item::Node(node)), _) => self.compute(here.block, node)?,
                (Some(&Item::Guard { condition, .. }), _) => self.used(here.block, condition)?,
                (Some(&Item::Region(region)), _) => self.begin(here, region)?,
                (Some(&Item::Fill(array)), _) => self.fill(here.block, array)?,
                (Some(&Item::Accumulate(access, node)), _) => {
                    self.write(here.block, access, node, ArrayData::is_sums)?;
                }
                (Some(&Item::Store(access, node)), _) => {
                    let has_cells = |array: &ArrayData| matches!(array, ArrayData::Cells(_));
                    self.write(here.block, access, node, has_cells)?;
                }
                (None, &End::Branch { condition, then, otherwise }) => {
                    let arms = [then, otherwise];
                    match arms.get(next - data.items.len()) {
                        Some(&arm) => {
                            self.used(here.block, condition)?;
                            self.branch(here, condition, arm);
                        }
                        None => self.leave(),
                    }
                }
                (None, End::Return(values)) => {
                    values.iter().try_for_each(|&value| self.used(here.block, value))?;
                    self.check_count(here, values.len())?;
                    self.check_outputs(here.block)?;
                    self.leave();
                }
                (None, End::Open) => self.leave(),
            }
        }
        Ok(())
    }

    fn compute(&mut self, block: Block, node: Node) -> Result<(), VerifyError> {
        let data = self.graph.nodes.get(node);
        let Some(data) = data.filter(|data| is_step(&data.def)) else {
            return Err(at_block(
                self.graph,
                block,
                "has a step for a node that is not computed by steps",
            ));
        };
        if self.computed[node] {
            return Err(at_node(self.graph, node, "is computed twice"));
        }
        let operands = self.graph.operands(node);
        if let Some(arg) = operands.iter().find(|&&arg| self.visible[arg] == 0) {
            return Err(at_node(self.graph, node, &format!("uses {arg}, not visible here")));
        }
        if let Def::Result(call, _) = data.def
            && self.nest.node_block(call) != Some(block)
        {
            return Err(at_node(self.graph, node, "is in another block than its call"));
        }
        if let Def::Element(access) = data.def {
            self.read(node, access).map_err(|what| at_node(self.graph, node, &what))?;
        }
        self.computed[node] = true;
        self.visible[node] += 1;
        Ok(())
    }

    /// Checks that `node` may read at `access` here; the error says why not.
    fn read(&mut self, node: Node, access: Access) -> Result<(), String> {
        self.counted(access)?;
        let array = self.graph.accesses[access].array;
        let operands = match &self.graph.arrays[array] {
            ArrayData::Constants(_) | ArrayData::Inputs { .. } => &[][..],
            ArrayData::Nodes(nodes) => {
                if let Some(missing) = nodes.iter().find(|&&node| self.visible[node] == 0) {
                    return Err(format!("uses {missing} in {array}, not visible here"));
                }
                nodes
            }
            ArrayData::Saved(past) => {
                let region = self.nest.node_loop(*past);
                if region.is_none_or(|region| self.regions[region] == 0) {
                    return Err(format!("reads {array}, of a loop that is not visible here"));
                }
                core::slice::from_ref(past)
            }
            ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => {
                if !self.filled.is_filled(array) {
                    return Err(format!("reads {array}, not filled here"));
                }
                &[]
            }
        };
        match operands.iter().find(|&&operand| operand >= node) {
            Some(late) => Err(format!("has no larger id than {late} in {array}")),
            None => Ok(()),
        }
    }

    /// Checks that the iteration numbers of `access` are visible.
    fn counted(&self, access: Access) -> Result<(), String> {
        let mut loops = self.graph.accesses[access].loops();
        match loops.find(|&region| self.loops[region] == 0) {
            Some(region) => Err(format!("needs the iteration of {region}, not known here")),
            None => Ok(()),
        }
    }

    fn fill(&mut self, block: Block, array: Array) -> Result<(), VerifyError> {
        let Some(data) = self.graph.arrays.get(array).filter(|data| data.is_written()) else {
            return Err(at_block(
                self.graph,
                block,
                &format!("fills {array}, which no step writes"),
            ));
        };
        data.nodes().try_for_each(|first| self.used(block, first))?;
        let is_output = matches!(data, ArrayData::Outputs { .. });
        if is_output && self.nest.block_region(block).is_some() {
            let what = format!("fills {array}, an array of outputs, in a region");
            return Err(at_block(self.graph, block, &what));
        }
        self.filled.fill(array, is_output).map_err(|what| at_block(self.graph, block, &what))
    }

    /// Checks that the step that writes `node` at `access` may do so; `may_write` tests arrays.
    fn write(
        &self,
        block: Block,
        access: Access,
        node: Node,
        may_write: fn(&ArrayData) -> bool,
    ) -> Result<(), VerifyError> {
        let wrong = |what: &str| at_block(self.graph, block, what);
        let Some(data) = self.graph.accesses.get(access) else {
            return Err(wrong(&format!("writes at {access}, which is no access")));
        };
        let array = data.array;
        if !may_write(&self.graph.arrays[array]) {
            return Err(wrong(&format!("writes {array} as it cannot be written")));
        }
        self.counted(access).map_err(|what| wrong(&what))?;
        if !self.filled.is_filled(array) {
            return Err(wrong(&format!("writes {array}, not filled here")));
        }
        self.used(block, node)
    }

    fn used(&self, block: Block, node: Node) -> Result<(), VerifyError> {
        match self.visible.get(node) {
            Some(&count) if count > 0 => Ok(()),
            _ => Err(at_block(self.graph, block, &format!("uses {node}, not visible here"))),
        }
    }

    fn begin(&mut self, here: Open, region: Region) -> Result<(), VerifyError> {
        let data = &self.graph.regions[region];
        let what = match data.replays {
            Some(replayed) if self.regions[replayed] == 0 => "that is not visible here",
            Some(replayed) if self.replaying[replayed] => "that replays another",
            _ => "",
        };
        if !what.is_empty() {
            return Err(at_region(self.graph, region, &format!("replays a region {what}")));
        }
        if data.cycle.is_some() && data.replays.is_some_and(|replayed| self.loops[replayed] > 0) {
            let what = "replays a loop that is being replayed";
            return Err(at_region(self.graph, region, what));
        }
        for entry in self.graph.entries(region) {
            if self.visible.get(entry.first).is_none_or(|&count| count == 0) {
                let what = format!("begins with {}, not visible here", entry.first);
                return Err(at_region(self.graph, region, &what));
            }
        }
        let (conditions, nexts) = self.graph.passed_before_phis(region);
        let replayed = data.replays.map(|replayed| self.graph.regions[replayed].root);
        let forward = replayed.or(here.forward);
        self.replaying[region] = replayed.is_some();
        self.enter(Open {
            block: data.root,
            next: 0,
            forward,
            opens_forward: replayed.is_some(),
            begins: Some(region),
            values: conditions + nexts + data.phis.len(),
        });
        Ok(())
    }

    fn branch(&mut self, here: Open, condition: Node, arm: Block) {
        let end = |block: Block| match self.graph.blocks[block].end {
            End::Branch { condition, then, otherwise } => Some((condition, then, otherwise)),
            End::Return(_) | End::Open => None,
        };
        let is_then = end(here.block).is_some_and(|(_, then, _)| then == arm);
        let forward = here.forward.and_then(end).filter(|forward| forward.0 == condition);
        let forward = forward.map(|(_, then, otherwise)| if is_then { then } else { otherwise });
        if forward.is_some() {
            // Up to the region that has its own forward block.
            for region in self.open.iter().rev().filter_map(|open| open.begins) {
                if core::mem::replace(&mut self.replaying[region], true) {
                    break;
                }
            }
        }
        self.enter(Open {
            block: arm,
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
            Some(region) => format!("passes on another number of values than {region} takes"),
        };
        Err(at_block(self.graph, here.block, &what))
    }

    /// Checks that a path that ends with `block` has filled all arrays of outputs.
    fn check_outputs(&self, block: Block) -> Result<(), VerifyError> {
        if self.output_arrays.is_empty() || self.nest.block_region(block).is_some() {
            return Ok(());
        }
        match self.output_arrays.iter().find(|&&array| !self.filled.is_filled(array)) {
            Some(array) => Err(at_block(
                self.graph,
                block,
                &format!("returns without filling {array}, an array of outputs"),
            )),
            None => Ok(()),
        }
    }

    fn enter(&mut self, open: Open) {
        self.open.push(open);
        if let (true, Some(forward)) = (open.opens_forward, open.forward) {
            self.show(forward, true);
        }
        if let Some(region) = open.begins.filter(|&r| self.graph.regions[r].cycle.is_some()) {
            self.show_iteration(region, true);
        }
    }

    fn leave(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.show(open.block, false);
        if let (true, Some(forward)) = (open.opens_forward, open.forward) {
            self.show(forward, false);
        }
        if let Some(region) = open.begins.filter(|&r| self.graph.regions[r].cycle.is_some()) {
            self.show_iteration(region, false);
        }
        self.filled.leave(&self.graph.blocks[open.block]);
        // The leaves of a region join: its φs are visible from here on.
        if let Some(region) = open.begins {
            self.show_region(region, true);
        }
    }

    /// Makes the nodes of `block` visible, or invisible again.
    fn show(&mut self, block: Block, visible: bool) {
        for item in &self.graph.blocks[block].items {
            match *item {
                Item::Node(node) => change(&mut self.visible[node], visible),
                Item::Region(region) => self.show_region(region, visible),
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
    }

    /// Makes the entry φs and the iteration number of a loop, and of the one that it replays,
    /// visible or invisible.
    fn show_iteration(&mut self, region: Region, visible: bool) {
        let counting = self.graph.regions[region].replays.unwrap_or(region);
        change(&mut self.loops[counting], visible);
        if let Some(number) = self.numbers[counting] {
            change(&mut self.visible[number], visible);
        }
        let replayed = self.graph.regions[region].replays;
        for region in [Some(region), replayed].into_iter().flatten() {
            for entry in self.graph.entries(region) {
                change(&mut self.visible[entry.phi], visible);
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

fn change(count: &mut u32, up: bool) {
    *count = if up { *count + 1 } else { count.saturating_sub(1) };
}
