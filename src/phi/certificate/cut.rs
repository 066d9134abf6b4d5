//! A loop and what stands for its φs, cut out of a graph.
//!
//! What the loop and its forms are computed from is computed as it is in the graph, back
//! to inputs, φs of other regions and iteration numbers of loops around. These are
//! numbers here, so nothing decides whether the loop is reached, and nothing hides what
//! comes out of it.

use hashbrown::{HashMap, HashSet};

use crate::entity::Entity;
use crate::op::Op;
use crate::phi::replacement::Replacement;
use crate::ssa::{
    Access, AccessData, Block, Def, End, Entry, Graph, Item, Loop, Node, NodeData, Region,
    RegionData, Series, SeriesData,
};

/// Of more steps before a loop those that come first are numbers, too.
const MOST_STEPS: usize = 1 << 12;

/// Where graphs are compared.
#[derive(Clone, Copy)]
pub(super) struct Point {
    /// What makes its numbers differ from those of others.
    pub(super) number: u64,
    /// Near which number they are, and how far from it.
    pub(super) near: f64,
    pub(super) size: f64,
}

impl Point {
    /// What `key` is there.
    fn value(self, key: u64) -> f64 {
        // The finaliser of a multiplicative generator: neighbours are far apart.
        let mut bits = (key << 8 | self.number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
        }
        let uniform = (bits >> 11) as f64 / (1u64 << 53) as f64;
        self.near + self.size * (2.0 * uniform - 0.8)
    }

    /// The iteration of a loop around in which it is.
    fn iteration(self, bound: u32) -> u32 {
        let last = u64::from(bound.saturating_sub(1));
        let iteration = [0, last, last / 2, 1, last / 3, last / 5][self.number as usize % 6];
        iteration.min(last) as u32
    }
}

/// What was cut out. It returns the φs of the loop, then what stands for them, then how
/// large the numbers were that the loop carried.
pub(super) struct Cut {
    pub(super) graph: Graph,
    /// The loop.
    pub(super) region: Region,
    /// The blocks of the loop.
    pub(super) blocks: HashMap<Block, Block>,
}

/// Cuts out `region`, a loop of `before`, or what has become of it if it `stays`, and what
/// stands for `phis` in `after`; `None` if it reads what other loops have computed in each
/// of their iterations.
pub(super) fn cut(
    before: &Graph,
    after: &Replacement,
    region: Region,
    stays: bool,
    phis: &[Node],
    point: Point,
) -> Option<Cut> {
    let mut knife = Knife {
        before,
        after,
        point,
        graph: Graph::new(0, 0),
        nodes: HashMap::new(),
        regions: HashMap::new(),
        blocks: HashMap::new(),
        series: HashMap::new(),
        steps: 0,
    };
    knife.find(Task::Region(region, !stays))?;
    let magnitude = knife.magnitude(knife.regions[&region]);
    let forms: Vec<Node> = phis.iter().map(|&phi| after.resolved(phi)).collect();
    forms.iter().try_for_each(|&form| knife.find(Task::Node(form)))?;
    let returned = phis.iter().chain(&forms).map(|&node| knife.at(node));
    let returned = returned.chain([Some(magnitude)]).collect::<Option<_>>()?;
    let root = knife.graph.root();
    knife.graph.blocks[root].end = End::Return(returned);
    Some(Cut { region: knife.regions[&region], graph: knife.graph, blocks: knife.blocks })
}

enum Task {
    Node(Node),
    /// A node whose operands are there.
    Step(Node),
    /// A region, and whether it is that of the graph before.
    Region(Region, bool),
    /// A region whose operands are there.
    Whole(Region, bool),
}

struct Knife<'a> {
    before: &'a Graph,
    after: &'a Replacement,
    point: Point,
    graph: Graph,
    nodes: HashMap<Node, Node>,
    regions: HashMap<Region, Region>,
    blocks: HashMap<Block, Block>,
    series: HashMap<Series, Series>,
    /// How many steps of the graph before were found.
    steps: usize,
}

impl<'a> Knife<'a> {
    /// Does `task` and all that has to be done before it.
    fn find(&mut self, task: Task) -> Option<()> {
        let mut pending = vec![task];
        while let Some(task) = pending.pop() {
            match task {
                Task::Node(node) => self.node(node, &mut pending)?,
                Task::Step(node) => self.step(node)?,
                Task::Region(region, own) => {
                    pending.push(Task::Whole(region, own));
                    let tree = Tree::of(self.source(own), region);
                    pending.extend(tree.operands(self.source(own)).into_iter().map(Task::Node));
                }
                Task::Whole(region, own) => self.whole(region, own)?,
            }
        }
        Some(())
    }

    fn source(&self, own: bool) -> &'a Graph {
        if own { self.before } else { &self.after.graph }
    }

    /// What `node` is here.
    fn at(&self, node: Node) -> Option<Node> {
        let known = self.nodes.get(&node);
        known.or_else(|| self.nodes.get(&self.after.resolved(node))).copied()
    }

    fn node(&mut self, node: Node, pending: &mut Vec<Task>) -> Option<()> {
        if self.at(node).is_some() {
            return Some(());
        }
        let node = self.after.resolved(node);
        let graph = &self.after.graph;
        // All that was put in is computed.
        let is_step = matches!(graph.nodes[node].def, Def::Apply(..) | Def::Element(_));
        let is_old = node.index() < self.before.nodes.len();
        self.steps += usize::from(is_step && is_old);
        match graph.nodes[node].def {
            Def::Const(bits) => self.leaf(node, f64::from_bits(bits)),
            Def::Input(number) => self.leaf(node, self.point.value(u64::from(number))),
            Def::Iteration(region) => {
                let number = self.iteration(region);
                self.leaf(node, f64::from(number));
            }
            // What was put in is as it is; what was there is compared by itself.
            Def::Phi(region, _) if region.index() >= self.before.regions.len() => {
                pending.extend([Task::Node(node), Task::Region(region, false)]);
            }
            Def::Apply(..) | Def::Element(_) if !is_old || self.steps <= MOST_STEPS => {
                pending.push(Task::Step(node));
                pending.extend(operands(graph, node).into_iter().map(Task::Node));
            }
            Def::Phi(..) | Def::Entry(..) | Def::Apply(..) | Def::Element(_) => {
                self.leaf(node, self.point.value(1 << 40 | node.index() as u64));
            }
        }
        Some(())
    }

    fn leaf(&mut self, node: Node, value: f64) {
        let leaf = self.graph.push_const(value.to_bits());
        self.nodes.insert(node, leaf);
    }

    /// The number of the iteration of `region`, a loop around.
    fn iteration(&self, region: Region) -> u32 {
        let cycle = self.after.graph.regions[region].cycle.as_ref();
        self.point.iteration(cycle.map_or(1, |cycle| cycle.bound))
    }

    fn step(&mut self, node: Node) -> Option<()> {
        if self.nodes.contains_key(&node) {
            return Some(());
        }
        let data = self.after.graph.nodes[node];
        let def = self.def(&self.after.graph, data.def)?;
        let new = self.graph.nodes.push(NodeData { def, place: None });
        let root = self.graph.root();
        self.graph.blocks[root].items.push(Item::Node(new));
        self.nodes.insert(node, new);
        Some(())
    }

    /// The same application or element of what is here.
    fn def(&mut self, source: &Graph, def: Def) -> Option<Def> {
        match def {
            Def::Apply(op, mut args) => {
                for arg in &mut args[..op.arity()] {
                    *arg = self.used(*arg)?;
                }
                let first = args[0];
                args[op.arity()..].fill(first);
                Some(Def::Apply(op, args))
            }
            Def::Element(access) => self.access(source, access).map(Def::Element),
            def => Some(def),
        }
    }

    /// What `node` is here, which may be the number of an iteration.
    fn used(&mut self, node: Node) -> Option<Node> {
        if let (None, Def::Iteration(region)) = (self.at(node), self.after.graph.nodes[node].def) {
            let own = self.regions.get(&region).copied();
            let new = match own {
                Some(region) => self.graph.push_iteration(region),
                None => {
                    let number = f64::from(self.iteration(region));
                    self.graph.push_const(number.to_bits())
                }
            };
            self.nodes.insert(node, new);
        }
        self.at(node)
    }

    fn access(&mut self, source: &Graph, access: Access) -> Option<Access> {
        let data = &source.accesses[access];
        let (mut base, mut strides) = (i64::from(data.base), data.strides.clone());
        strides.retain(|(region, stride)| match self.regions.get(region) {
            Some(&own) => {
                *region = own;
                true
            }
            None => {
                base += i64::from(*stride) * i64::from(self.iteration(*region));
                false
            }
        });
        let series = self.row(source, data.series)?;
        let base = u32::try_from(base).ok()?;
        Some(self.graph.accesses.push(AccessData { series, base, strides }))
    }

    fn row(&mut self, source: &Graph, series: Series) -> Option<Series> {
        if let Some(&known) = self.series.get(&series) {
            return Some(known);
        }
        let data = match &source.series[series] {
            SeriesData::Constants(numbers) => SeriesData::Constants(numbers.clone()),
            SeriesData::Nodes(nodes) => {
                let nodes = nodes.iter().map(|&node| self.used(node));
                SeriesData::Nodes(nodes.collect::<Option<_>>()?)
            }
            &SeriesData::Inputs { first, count } => {
                let value = |number: u32| self.point.value(u64::from(number)).to_bits();
                SeriesData::Constants((first..first + count).map(value).collect())
            }
            SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => {
                return None;
            }
        };
        let new = self.graph.series.push(data);
        self.series.insert(series, new);
        Some(new)
    }

    fn whole(&mut self, region: Region, own: bool) -> Option<()> {
        if self.regions.contains_key(&region) {
            return Some(());
        }
        let source = self.source(own);
        let tree = Tree::of(source, region);
        for &block in &tree.blocks {
            let new = self.graph.new_block();
            self.blocks.insert(block, new);
        }
        for &inner in &tree.regions {
            let data = &source.regions[inner];
            let root = self.blocks[&data.root];
            let (phis, replays, cycle) = (Vec::new(), None, None);
            let data = RegionData { root, phis, replays, cycle, place: None };
            let new = self.graph.regions.push(data);
            self.regions.insert(inner, new);
        }
        for node in tree.defined(source) {
            let def = match source.nodes[node].def {
                Def::Phi(of, number) => Def::Phi(self.regions[&of], number),
                Def::Entry(of, number) => Def::Entry(self.regions[&of], number),
                def => def,
            };
            let new = self.graph.nodes.push(NodeData { def, place: None });
            self.nodes.insert(node, new);
        }
        for &inner in &tree.regions {
            let (data, new) = (&source.regions[inner], self.regions[&inner]);
            let phis = data.phis.iter().map(|&phi| self.at(phi)).collect::<Option<_>>()?;
            self.graph.regions[new].phis = phis;
            if let Some(cycle) = &data.cycle {
                let mut entries = Vec::new();
                for entry in &cycle.entries {
                    let (phi, first) = (self.at(entry.phi)?, self.used(entry.first)?);
                    entries.push(Entry { phi, first });
                }
                self.graph.regions[new].cycle = Some(Loop { bound: cycle.bound, entries });
            }
        }
        for &block in &tree.blocks {
            self.block(source, block)?;
        }
        let (root, region) = (self.graph.root(), self.regions[&region]);
        self.graph.blocks[root].items.push(Item::Region(region));
        Some(())
    }

    fn block(&mut self, source: &Graph, block: Block) -> Option<()> {
        let (data, new) = (&source.blocks[block], self.blocks[&block]);
        for item in &data.items {
            let item = match *item {
                Item::Node(node) => {
                    let copy = self.at(node)?;
                    self.graph.nodes[copy].def = self.def(source, source.nodes[node].def)?;
                    Item::Node(copy)
                }
                Item::Region(region) => Item::Region(self.regions[&region]),
                // What it would come to if they held.
                Item::Guard { .. } => continue,
                Item::Fill(_) | Item::Accumulate(..) => return None,
            };
            self.graph.blocks[new].items.push(item);
        }
        self.graph.blocks[new].end = match &data.end {
            End::Open => End::Open,
            End::Return(values) => {
                let values = values.iter().map(|&value| self.used(value));
                End::Return(values.collect::<Option<_>>()?)
            }
            &End::Branch { condition, then, otherwise } => {
                let [then, otherwise] = [then, otherwise].map(|side| self.blocks[&side]);
                End::Branch { condition: self.used(condition)?, then, otherwise }
            }
        };
        Some(())
    }

    /// Lets `region`, a loop, find out how large what it carries becomes.
    fn magnitude(&mut self, region: Region) -> Node {
        let (decides, nexts) = self.graph.passed_before_phis(region);
        let first = self.graph.push_const(0);
        let def = Def::Entry(region, nexts as u32);
        let carried = self.graph.nodes.push(NodeData { def, place: None });
        for leaf in self.graph.leaves(self.graph.regions[region].root) {
            let End::Return(mut values) = self.graph.blocks[leaf].end.clone() else { continue };
            let mut largest = carried;
            for &next in &values[decides..decides + nexts] {
                let size = self.graph.push_apply(leaf, Op::Abs, &[next], None);
                largest = self.graph.push_apply(leaf, Op::Max, &[largest, size], None);
            }
            values.insert(decides + nexts, largest);
            values.push(largest);
            self.graph.blocks[leaf].end = End::Return(values);
        }
        if let Some(cycle) = &mut self.graph.regions[region].cycle {
            cycle.entries.push(Entry { phi: carried, first });
        }
        self.graph.push_phi(region)
    }
}

/// A region with all that is in it.
struct Tree {
    blocks: Vec<Block>,
    regions: Vec<Region>,
}

impl Tree {
    fn of(graph: &Graph, region: Region) -> Tree {
        let mut tree = Tree { blocks: Vec::new(), regions: vec![region] };
        let mut pending = vec![graph.regions[region].root];
        while let Some(block) = pending.pop() {
            tree.blocks.push(block);
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                pending.extend([otherwise, then]);
            }
            for inner in graph.regions_of(block) {
                tree.regions.push(inner);
                pending.push(graph.regions[inner].root);
            }
        }
        tree
    }

    /// The nodes that get their values in it, but for iteration numbers.
    fn defined(&self, graph: &Graph) -> Vec<Node> {
        let mut defined = Vec::new();
        for &region in &self.regions {
            defined.extend(&graph.regions[region].phis);
            defined.extend(graph.entries(region).iter().map(|entry| entry.phi));
        }
        for &block in &self.blocks {
            defined.extend(graph.blocks[block].items.iter().filter_map(|item| match *item {
                Item::Node(node) => Some(node),
                _ => None,
            }));
        }
        defined
    }

    /// The nodes that it uses and that get their values before it.
    fn operands(&self, graph: &Graph) -> Vec<Node> {
        let mut used = Vec::new();
        for &region in &self.regions {
            used.extend(graph.entries(region).iter().map(|entry| entry.first));
        }
        for &block in &self.blocks {
            let data = &graph.blocks[block];
            for item in &data.items {
                if let Item::Node(node) = *item {
                    used.extend(operands(graph, node));
                }
            }
            match &data.end {
                End::Return(values) => used.extend(values),
                End::Branch { condition, .. } => used.push(*condition),
                End::Open => {}
            }
        }
        let mut known: HashSet<Node> = self.defined(graph).into_iter().collect();
        let is_own = |node: &Node| match graph.nodes[*node].def {
            Def::Iteration(region) => self.regions.contains(&region),
            _ => false,
        };
        used.retain(|node| !is_own(node) && known.insert(*node));
        used
    }
}

/// What `node` is computed from.
fn operands(graph: &Graph, node: Node) -> Vec<Node> {
    match graph.nodes[node].def {
        Def::Element(access) => match &graph.series[graph.accesses[access].series] {
            SeriesData::Nodes(nodes) => nodes.clone(),
            _ => Vec::new(),
        },
        _ => graph.nodes[node].args().to_vec(),
    }
}
