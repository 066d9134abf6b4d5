//! A graph in the making: what a pass inserts before loops, and which of their
//! values it replaces.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::replacement::Replacement;
use crate::entity::Array;
use crate::op::Op;
use crate::ssa::{
    Access, AccessData, Block, Def, End, Entry, Graph, Item, Loop, Nest, Node, NodeData, PlaceId,
    Region, RegionData, Series, SeriesData, Table, verify,
};

/// A graph with what is to be inserted and replaced; [`Draft::finish`] does it.
pub(super) struct Draft {
    /// The graph as it was, with nodes appended that are no steps yet.
    pub(super) graph: Graph,
    /// The block where each node gets its value; inputs and constants have none.
    homes: Array<Node, Option<Block>>,
    /// The region in whose tree each block is.
    pub(super) around: Array<Block, Option<Region>>,
    /// The block in which each region stands.
    pub(super) places: Array<Region, Option<Block>>,
    /// What stands for a node now.
    replaced: Array<Node, Option<Node>>,
    /// Steps to be inserted before a region.
    before: Array<Region, Vec<Item>>,
    /// Whether a node depends on nothing but constants and iteration numbers.
    folds: Array<Node, bool>,
    /// Whether a node certainly does not depend on an active input.
    passive: Array<Node, bool>,
    /// How many places refer to each node.
    uses: Array<Node, u32>,
    /// For each node an application that has it as an operand.
    users: Array<Node, Option<Node>>,
    constants: HashMap<u64, Node>,
    /// For elements of numbers what rounding has taken from each of them.
    pub(super) lost: HashMap<Node, Table>,
    inputs: HashMap<u32, Node>,
    cleared: HashSet<Region>,
    /// Whether forms are wanted that are no shorter than their loops, to be compared.
    pub(super) all_forms: bool,
}

impl Draft {
    pub(super) fn new(graph: &Graph) -> Draft {
        let nest = Nest::of(graph);
        let mut draft = Draft {
            homes: graph.nodes.keys().map(|node| nest.node_block(node)).collect(),
            around: graph.blocks.keys().map(|block| nest.block_region(block)).collect(),
            places: graph.regions.keys().map(|region| nest.region_block(region)).collect(),
            replaced: Array::filled(None, graph.nodes.len()),
            before: Array::filled(Vec::new(), graph.regions.len()),
            folds: Array::filled(false, graph.nodes.len()),
            passive: Array::filled(false, graph.nodes.len()),
            uses: uses(graph),
            users: Array::filled(None, graph.nodes.len()),
            constants: HashMap::new(),
            lost: HashMap::new(),
            inputs: graph.input_nodes().map(|(node, number)| (number, node)).collect(),
            cleared: HashSet::new(),
            all_forms: false,
            graph: graph.clone(),
        };
        for node in graph.nodes.keys() {
            draft.folds[node] = draft.finds_fold(node);
            draft.passive[node] = draft.finds_passive(node);
            graph.operands(node).iter().for_each(|&arg| draft.users[arg] = Some(node));
        }
        draft
    }

    /// What stands for `node` now.
    pub(super) fn resolve(&self, mut node: Node) -> Node {
        while let Some(other) = self.replaced[node] {
            node = other;
        }
        node
    }

    /// The operands of `node`, as they are now.
    pub(super) fn args(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        self.graph.operands(node).iter().map(|&arg| self.resolve(arg))
    }

    pub(super) fn folds(&self, node: Node) -> bool {
        self.folds[node]
    }

    pub(super) fn is_passive(&self, node: Node) -> bool {
        self.passive[node]
    }

    /// How many places refer to `node`.
    pub(super) fn uses(&self, node: Node) -> u32 {
        self.uses[node]
    }

    /// The only place that refers to `node`, if it is an application.
    pub(super) fn only_user(&self, node: Node) -> Option<Node> {
        self.users[node].filter(|_| self.uses[node] == 1)
    }

    /// A place that refers to `node` counts no more.
    pub(super) fn forget_use(&mut self, node: Node) {
        self.uses[node] = self.uses[node].saturating_sub(1);
    }

    fn finds_fold(&self, node: Node) -> bool {
        match self.graph.nodes[node].def {
            Def::Const(_) | Def::Iteration(_) => true,
            Def::Element(access) => {
                let series = self.graph.accesses[access].series;
                matches!(self.graph.series[series], SeriesData::Constants(_))
            }
            Def::Apply(..) => self.args(node).all(|arg| self.folds[arg]),
            Def::Input(_) | Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => false,
        }
    }

    /// The nodes from the first to the last that `access`, to a series of nodes, may read.
    pub(super) fn read(&self, access: Access) -> impl Iterator<Item = Node> + '_ {
        let data = &self.graph.accesses[access];
        let nodes = match &self.graph.series[data.series] {
            SeriesData::Nodes(nodes) => nodes.as_slice(),
            _ => &[],
        };
        let (mut first, mut last) = (i64::from(data.base), i64::from(data.base));
        for &(region, stride) in &data.strides {
            let bound = self.graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
            let most = i64::from(stride) * i64::from(bound.saturating_sub(1));
            first += most.min(0);
            last += most.max(0);
        }
        let is_read = move |index: usize| (first..=last).contains(&(index as i64));
        let nodes = nodes.iter().enumerate().filter(move |&(index, _)| is_read(index));
        nodes.map(|(_, &node)| self.resolve(node))
    }

    fn finds_passive(&self, node: Node) -> bool {
        match self.graph.nodes[node].def {
            Def::Const(_) | Def::Iteration(_) => true,
            Def::Input(number) => number as usize >= self.graph.active,
            Def::Apply(..) => self.args(node).all(|arg| self.passive[arg]),
            Def::Element(access) => match &self.graph.series[self.graph.accesses[access].series] {
                SeriesData::Constants(_) => true,
                SeriesData::Inputs { first, .. } => !self.graph.is_active(*first),
                SeriesData::Nodes(_) => self.read(access).all(|node| self.passive[node]),
                SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => false,
            },
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => false,
        }
    }

    /// Whether `node` gets its value in the tree of `region` or of one in it.
    pub(super) fn is_inside(&self, node: Node, region: Region) -> bool {
        let around = self.homes[node].and_then(|block| self.around[block]);
        self.is_within(around, region)
    }

    /// Whether a region is `region` or in its tree or in that of one in it.
    pub(super) fn is_within(&self, mut around: Option<Region>, region: Region) -> bool {
        while let Some(inner) = around.filter(|&inner| inner != region) {
            around = self.places[inner].and_then(|block| self.around[block]);
        }
        around == Some(region)
    }

    /// The innermost loop around the block where `region` stands.
    pub(super) fn loop_around(&self, region: Region) -> Option<Region> {
        let mut around = self.places[region].and_then(|block| self.around[block]);
        while let Some(outer) = around.filter(|&outer| self.graph.regions[outer].cycle.is_none()) {
            around = self.places[outer].and_then(|block| self.around[block]);
        }
        around
    }

    fn push(&mut self, def: Def, home: Option<Block>, place: Option<PlaceId>) -> Node {
        let node = self.graph.nodes.push(NodeData { def, place });
        self.homes.push(home);
        self.replaced.push(None);
        self.folds.push(false);
        self.uses.push(0);
        self.users.push(None);
        self.folds[node] = self.finds_fold(node);
        self.passive.push(false);
        self.passive[node] = self.finds_passive(node);
        let args: SmallVec<[Node; 3]> = self.graph.operands(node).into();
        for arg in args {
            self.uses[arg] += 1;
            self.users[arg] = Some(node);
        }
        node
    }

    pub(super) fn constant(&mut self, value: f64) -> Node {
        let bits = value.to_bits();
        if let Some(&node) = self.constants.get(&bits) {
            return node;
        }
        let node = self.push(Def::Const(bits), None, None);
        self.constants.insert(bits, node);
        node
    }

    /// Input number `number`.
    pub(super) fn input(&mut self, number: u32) -> Node {
        if let Some(&node) = self.inputs.get(&number) {
            return node;
        }
        let node = self.push(Def::Input(number), None, None);
        self.inputs.insert(number, node);
        node
    }

    /// Inserts a node before `region`.
    fn insert(&mut self, region: Region, def: Def) -> Node {
        let place = self.graph.regions[region].place;
        let node = self.push(def, self.places[region], place);
        self.before[region].push(Item::Node(node));
        node
    }

    /// Inserts an application before `region`.
    pub(super) fn apply(&mut self, region: Region, op: Op, args: &[Node]) -> Node {
        let padded = core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]));
        self.insert(region, Def::Apply(op, padded))
    }

    /// Stops the graph before `region` where the size of `node` is not between these.
    pub(super) fn require_size(&mut self, region: Region, node: Node, low: f64, high: f64) {
        let size = self.apply(region, Op::Abs, &[node]);
        self.require(region, Op::Ge, size, low);
        self.require(region, Op::Le, size, high);
    }

    /// Stops the graph before `region` where `node` does not compare like that with `bound`.
    pub(super) fn require(&mut self, region: Region, op: Op, node: Node, bound: f64) {
        let bound = self.constant(bound);
        let condition = self.apply(region, op, &[node, bound]);
        self.uses[condition] += 1;
        self.before[region].push(Item::Guard { condition, expect: true });
    }

    /// Inserts a copy of `node`, an application or element, with other operands,
    /// before `region`.
    pub(super) fn copy(&mut self, region: Region, node: Node, args: &[Node]) -> Node {
        match self.graph.nodes[node].def {
            Def::Apply(op, _) => self.apply(region, op, args),
            def => self.insert(region, def),
        }
    }

    /// Inserts an element of these numbers before `region`; loops around it and
    /// how far apart the elements of two of their iterations are.
    pub(super) fn element(
        &mut self,
        region: Region,
        numbers: Vec<f64>,
        strides: &[(Region, i32)],
    ) -> Node {
        let numbers = numbers.into_iter().map(f64::to_bits).collect();
        let series: Series = self.graph.series.push(SeriesData::Constants(numbers));
        let strides = strides.iter().copied().collect();
        let access: Access = self.graph.accesses.push(AccessData { series, base: 0, strides });
        self.insert(region, Def::Element(access))
    }

    /// Inserts a loop of `count` iterations before `region`, with no step yet.
    pub(super) fn begin_loop(&mut self, region: Region, count: u32, firsts: &[Node]) -> Body {
        let place = self.graph.regions[region].place;
        let root = self.graph.new_block();
        let (phis, replays, cycle) = (Vec::new(), None, None);
        let inner = self.graph.regions.push(RegionData { root, phis, replays, cycle, place });
        self.around.push(Some(inner));
        self.places.push(self.places[region]);
        self.before.push(Vec::new());
        self.before[region].push(Item::Region(inner));
        let entries: Vec<Node> = (0..firsts.len() as u32)
            .map(|number| self.push(Def::Entry(inner, number), Some(root), place))
            .collect();
        let both = entries.iter().zip(firsts);
        let entries_with_firsts = both.map(|(&phi, &first)| Entry { phi, first }).collect();
        self.graph.regions[inner].cycle = Some(Loop { bound: count, entries: entries_with_firsts });
        let number = self.push(Def::Iteration(inner), Some(root), None);
        Body { region: inner, root, entries, number, count }
    }

    /// Appends a step to the loop.
    pub(super) fn step(&mut self, body: &Body, def: Def) -> Node {
        let place = self.graph.regions[body.region].place;
        let node = self.push(def, Some(body.root), place);
        self.graph.blocks[body.root].items.push(Item::Node(node));
        node
    }

    /// Appends a step that reads one of `numbers` in each iteration.
    pub(super) fn number_in(
        &mut self,
        body: &Body,
        numbers: &Table,
        base: i64,
        stride: i64,
    ) -> Node {
        let series = self.graph.series.push(SeriesData::Constants(numbers.clone()));
        let strides = [(body.region, stride as i32)].into_iter().collect();
        let data = AccessData { series, base: base as u32, strides };
        let access = self.graph.accesses.push(data);
        self.step(body, Def::Element(access))
    }

    /// Ends the loop; returns what its entry φs, which get these values, come to.
    pub(super) fn end_loop(&mut self, body: &Body, nexts: &[Node]) -> Vec<Node> {
        let last = self.constant(f64::from(body.count - 1));
        let again = self.step(body, Def::Apply(Op::Lt, [body.number, last, body.number]));
        let passed = core::iter::once(again).chain(nexts.iter().copied());
        let passed = passed.chain(nexts.iter().copied()).collect();
        self.graph.blocks[body.root].end = End::Return(passed);
        let place = self.graph.regions[body.region].place;
        let home = self.places[body.region];
        let phis: Vec<Node> = (0..nexts.len() as u32)
            .map(|number| self.push(Def::Phi(body.region, number), home, place))
            .collect();
        self.graph.regions[body.region].phis.clone_from(&phis);
        phis
    }

    /// The steps of `block`, with what is inserted.
    pub(super) fn items(&self, block: Block) -> Vec<Item> {
        let mut items = Vec::new();
        for &item in &self.graph.blocks[block].items {
            if let Item::Region(region) = item {
                items.extend_from_slice(&self.before[region]);
            }
            items.push(item);
        }
        items
    }

    /// Inserts a guard before `region`.
    pub(super) fn guard(&mut self, region: Region, condition: Node, expect: bool) {
        self.before[region].push(Item::Guard { condition, expect });
    }

    /// Leaves nothing of `region`, a loop of one block whose values have all been
    /// replaced, but an iteration that does nothing.
    pub(super) fn clear(&mut self, region: Region) {
        let root = self.graph.regions[region].root;
        let zero = self.constant(0.0);
        self.graph.blocks[root].items.retain(|item| matches!(item, Item::Region(_)));
        let mut inside: Vec<Region> = self.graph.regions_of(root).collect();
        while let Some(inner) = inside.pop() {
            self.before[inner].clear();
            let data = &mut self.graph.regions[inner];
            if let Some(cycle) = &mut data.cycle {
                cycle.entries.iter_mut().for_each(|entry| entry.first = zero);
            }
            let root = data.root;
            inside.extend(self.graph.regions_of(root));
        }
        if let End::Return(values) = &mut self.graph.blocks[root].end {
            values.fill(zero);
        }
        // Nobody reads what it computed any more.
        let keys: Vec<Series> = self.graph.series.keys().collect();
        for series in keys {
            let is_lost = |node: &Node| self.homes[*node] == Some(root);
            let size = match &self.graph.series[series] {
                SeriesData::History(node) if is_lost(node) => {
                    self.graph.regions[region].cycle.as_ref().map_or(1, |c| c.bound) as usize
                }
                SeriesData::Nodes(nodes) if nodes.iter().any(is_lost) => nodes.len(),
                _ => continue,
            };
            self.graph.series[series] = SeriesData::Constants(vec![0; size].into());
        }
        self.cleared.insert(region);
    }

    /// Whether nothing is left of `region`.
    pub(super) fn is_clear(&self, region: Region) -> bool {
        self.cleared.contains(&region)
    }

    /// The block where `node` gets its value.
    pub(super) fn home(&self, node: Node) -> Option<Block> {
        self.homes[node]
    }

    /// Inserts an element before `region`.
    pub(super) fn read_at(&mut self, region: Region, data: AccessData) -> Node {
        let access = self.graph.accesses.push(data);
        self.insert(region, Def::Element(access))
    }

    /// The number of iterations of `region`, which goes on while `again` holds.
    pub(super) fn trips(&self, region: Region, again: Node) -> Option<u32> {
        let cycle = self.graph.regions[region].cycle.as_ref()?;
        if self.graph.regions[region].replays.is_some() {
            return None;
        }
        if let Some(again) = self.graph.constant(again) {
            return (again == 0.0).then_some(1);
        }
        let Def::Apply(Op::Lt, [number, last, _]) = self.graph.nodes[again].def else {
            return None;
        };
        let last = self.graph.constant(self.resolve(last))?;
        let counts = self.graph.nodes[number].def == Def::Iteration(region);
        let is_bound =
            counts && last.fract() == 0.0 && (0.0..f64::from(cycle.bound)).contains(&last);
        is_bound.then_some(last as u32 + 1)
    }

    /// Lets `other` stand for `node` wherever it is used.
    pub(super) fn replace(&mut self, node: Node, other: Node) {
        if self.resolve(other) != node {
            let other = self.resolve(other);
            self.replaced[node] = Some(other);
            self.uses[other] += self.uses[node];
            self.users[other] = self.users[node].or(self.users[other]);
        }
    }

    /// The graph with all that done, its nodes in no order yet.
    pub(super) fn replacement(self) -> Replacement {
        let Draft { mut graph, replaced, before, .. } = self;
        let replaced = replaced.iter().filter_map(|(node, other)| Some((node, (*other)?)));
        let nodes: HashMap<Node, Node> = replaced.collect();
        for block in graph.blocks.keys() {
            let data = &mut graph.blocks[block];
            let mut items = Vec::with_capacity(data.items.len());
            for item in core::mem::take(&mut data.items) {
                if let Item::Region(region) = item {
                    items.extend_from_slice(&before[region]);
                }
                items.push(item);
            }
            data.items = items;
        }
        Replacement::new(graph, nodes)
    }

    /// The graph with all that done; `None` if it is none.
    pub(super) fn finish(self) -> Option<Graph> {
        self.replacement().ordered().filter(|graph| verify(graph).is_ok())
    }
}

/// A loop that is being made.
pub(super) struct Body {
    pub(super) region: Region,
    root: Block,
    /// Its entry φs.
    pub(super) entries: Vec<Node>,
    /// Its iteration number.
    pub(super) number: Node,
    count: u32,
}

/// How many places of `graph` refer to each node.
fn uses(graph: &Graph) -> Array<Node, u32> {
    let mut uses = Array::filled(0, graph.nodes.len());
    for data in graph.nodes.values() {
        data.args().iter().for_each(|&arg| uses[arg] += 1);
    }
    graph.calls.values().flat_map(|call| &call.args).for_each(|&arg| uses[arg] += 1);
    for block in graph.blocks.values() {
        for item in &block.items {
            if let Item::Guard { condition: node, .. } | Item::Accumulate(_, node) = *item {
                uses[node] += 1;
            }
        }
        match &block.end {
            End::Open => {}
            End::Return(values) => values.iter().for_each(|&value| uses[value] += 1),
            End::Branch { condition, .. } => uses[*condition] += 1,
        }
    }
    for region in graph.regions.keys() {
        graph.entries(region).iter().for_each(|entry| uses[entry.first] += 1);
    }
    graph.series.values().flat_map(SeriesData::nodes).for_each(|node| uses[node] += 1);
    uses
}
