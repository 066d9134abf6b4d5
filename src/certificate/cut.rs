//! A loop and what stands for what comes out of it, cut out of a graph.
//!
//! What the loop and its forms are computed from is computed as it is in the graph, back
//! to inputs, φs of other regions, and what other loops have kept of their iterations.
//! All these are inputs here, so nothing decides whether the loop is reached, and nothing
//! hides what comes out of it. Loops around are in one of their iterations.

use hashbrown::{HashMap, HashSet};

use super::facts::{Facts, past};
use super::inputs::{HISTORIES, Inputs, NODES, Row};
use super::tree::{Tree, operands};
use crate::entity::Entity;
use crate::ssa::{
    Access, AccessData, Block, Def, End, Entry, Graph, Item, Loop, Node, NodeData, Region,
    RegionData, Series, SeriesData,
};

/// Of more steps before a loop those that come first are inputs, too.
const MOST_STEPS_BEFORE: usize = 1 << 12;

/// What was cut out. It returns what comes out of the loop, then what stands for that.
pub(super) struct Cut {
    pub(super) graph: Graph,
    pub(super) inputs: Inputs,
    /// The loop.
    pub(super) region: Region,
    /// The blocks of the loop.
    pub(super) blocks: HashMap<Block, Block>,
    /// Whether it is another one in other iterations of the loops around.
    pub(super) turns: bool,
}

/// What is wanted of a loop.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) region: Region,
    /// What comes out of it.
    pub(super) outputs: &'a [Node],
    /// Whether it stays: the loop is then that of the graph after, from which more may
    /// come out.
    pub(super) stays: bool,
    /// Whether what stands for the outputs is wanted.
    pub(super) forms: bool,
    /// What chooses the iterations of the loops around.
    pub(super) around: u64,
}

/// Cuts out what is wanted; `None` if the loop adds to sums, or a form has a history.
pub(super) fn cut(facts: &Facts<'_>, wanted: Wanted<'_>) -> Option<Cut> {
    let Wanted { region, outputs, stays, .. } = wanted;
    let mut knife = Knife {
        facts,
        before: facts.claim.before,
        after: facts.claim.after,
        around: wanted.around,
        graph: Graph::new(0, 0),
        nodes: HashMap::new(),
        regions: HashMap::new(),
        blocks: HashMap::new(),
        series: HashMap::new(),
        steps: 0,
        inputs: Vec::new(),
        rows: Vec::new(),
        turns: false,
    };
    knife.find(Task::Region(region, !stays))?;
    for &output in outputs {
        knife.output(output, !stays)?;
    }
    let mut returned: Vec<Node> =
        outputs.iter().map(|output| knife.nodes.get(output).copied()).collect::<Option<_>>()?;
    if wanted.forms {
        let forms: Vec<Node> = outputs.iter().map(|&node| facts.claim.resolved(node)).collect();
        forms.iter().try_for_each(|&form| knife.find(Task::Node(form)))?;
        for form in forms {
            returned.push(knife.at(form)?);
        }
    }
    let root = knife.graph.root();
    knife.graph.blocks[root].end = End::Return(returned.into_iter().collect());
    knife.finished(region)
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
    facts: &'a Facts<'a>,
    before: &'a Graph,
    after: &'a Graph,
    around: u64,
    graph: Graph,
    nodes: HashMap<Node, Node>,
    regions: HashMap<Region, Region>,
    blocks: HashMap<Block, Block>,
    series: HashMap<Series, Series>,
    /// How many steps of the graph before were found.
    steps: usize,
    /// The nodes that are inputs, and the series that are rows of them.
    inputs: Vec<(Node, Row)>,
    rows: Vec<(Series, Row)>,
    turns: bool,
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
                    let operands = self.tree(region, own).operands(self.source(own));
                    pending.extend(operands.into_iter().map(Task::Node));
                }
                Task::Whole(region, own) => self.whole(region, own)?,
            }
        }
        Some(())
    }

    fn source(&self, own: bool) -> &'a Graph {
        if own { self.before } else { self.after }
    }

    /// `region` with all that is in it. What is read there of other loops and has a form
    /// is that form.
    fn tree(&self, region: Region, own: bool) -> Tree {
        let source = self.source(own);
        let mut tree = Tree::of(source, region);
        let regions: HashSet<Region> = tree.regions.iter().copied().collect();
        let is_form = |node: Node| match source.nodes[node].def {
            Def::Element(access) if self.facts.claim.resolved(node) != node => {
                let of = past(source, access).and_then(|of| self.facts.nest.node_loop(of));
                of.is_some_and(|of| !regions.contains(&of))
            }
            _ => false,
        };
        tree.forms = tree.defined(source).into_iter().filter(|&node| is_form(node)).collect();
        tree
    }

    /// What `node` is here.
    fn at(&self, node: Node) -> Option<Node> {
        let known = self.nodes.get(&node);
        known.or_else(|| self.nodes.get(&self.facts.claim.resolved(node))).copied()
    }

    fn node(&mut self, node: Node, pending: &mut Vec<Task>) -> Option<()> {
        if self.at(node).is_some() {
            return Some(());
        }
        let node = self.facts.claim.resolved(node);
        let graph = self.after;
        // All that was put in is computed.
        let is_step = matches!(graph.nodes[node].def, Def::Apply(..) | Def::Element(_));
        let is_old = node.index() < self.before.nodes.len();
        self.steps += usize::from(is_step && is_old);
        match graph.nodes[node].def {
            Def::Const(bits) => self.constant(node, f64::from_bits(bits)),
            Def::Input(number) => {
                let is_active = graph.is_active(number);
                self.input(node, Row { key: u64::from(number), count: 1, is_active });
            }
            Def::Iteration(region) => {
                let number = self.iteration(region);
                self.constant(node, f64::from(number));
            }
            // What was put in is as it is; what was there is compared by itself.
            Def::Phi(region, _) if region.index() >= self.before.regions.len() => {
                pending.extend([Task::Node(node), Task::Region(region, false)]);
            }
            // What a loop around carries besides is what rounding has taken: nothing, as far
            // as that is known here.
            Def::Entry(region, _) if !is_old && region.index() < self.before.regions.len() => {
                self.constant(node, 0.0);
            }
            Def::Apply(..) | Def::Element(_) if !is_old || self.steps <= MOST_STEPS_BEFORE => {
                pending.push(Task::Step(node));
                pending.extend(operands(graph, node).into_iter().map(Task::Node));
            }
            Def::Phi(..)
            | Def::Entry(..)
            | Def::Apply(..)
            | Def::Element(_)
            | Def::Call(_)
            | Def::Result(..) => {
                let is_active = self.facts.swept.get(node).is_none_or(|&swept| swept);
                self.input(node, Row { key: NODES + node.index() as u64, count: 1, is_active });
            }
        }
        Some(())
    }

    fn constant(&mut self, node: Node, value: f64) {
        let constant = self.graph.push_const(value.to_bits());
        self.nodes.insert(node, constant);
    }

    fn input(&mut self, node: Node, row: Row) {
        let input = self.graph.push_input(0);
        self.inputs.push((input, row));
        self.nodes.insert(node, input);
    }

    /// The number of the iteration of `region`, a loop around.
    fn iteration(&mut self, region: Region) -> u32 {
        let bound = self.after.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
        let last = u64::from(bound.saturating_sub(1));
        self.turns |= last > 0;
        let choices = [0, last, last / 2, 1, last / 3, last / 5];
        choices[self.around as usize % choices.len()].min(last) as u32
    }

    fn step(&mut self, node: Node) -> Option<()> {
        if self.nodes.contains_key(&node) {
            return Some(());
        }
        let data = self.after.nodes[node];
        let def = self.def(self.after, data.def)?;
        self.push_step(node, def);
        Some(())
    }

    fn push_step(&mut self, node: Node, def: Def) {
        let new = self.graph.nodes.push(NodeData { def, place: None });
        let root = self.graph.root();
        self.graph.blocks[root].items.push(Item::Node(new));
        self.nodes.insert(node, new);
    }

    /// What comes out of the loop: if it is no φ, it is computed of φs, or an element of what the
    /// loop has kept.
    fn output(&mut self, output: Node, own: bool) -> Option<()> {
        if self.nodes.contains_key(&output) {
            return Some(());
        }
        let source = self.source(own);
        match source.nodes[output].def {
            Def::Const(bits) => {
                self.constant(output, f64::from_bits(bits));
                return Some(());
            }
            // In the graph after, forms have taken the place of what it was computed of.
            Def::Apply(..) if !own => return None,
            Def::Apply(..) => {
                let args = source.nodes[output].args();
                args.iter().try_for_each(|&arg| self.output(arg, own))?;
            }
            _ => {}
        }
        let def = self.def(source, source.nodes[output].def)?;
        self.push_step(output, def);
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
        if let (None, Def::Iteration(region)) = (self.at(node), self.after.nodes[node].def) {
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
        let mut row = None;
        let data = match &source.series[series] {
            SeriesData::Constants(numbers) => SeriesData::Constants(numbers.clone()),
            SeriesData::Nodes(nodes) => {
                let nodes = nodes.iter().map(|&node| self.used(node));
                SeriesData::Nodes(nodes.collect::<Option<_>>()?)
            }
            &SeriesData::Inputs { first, count } => {
                let is_active = source.is_active(first);
                row = Some(Row { key: u64::from(first), count: u64::from(count), is_active });
                SeriesData::Inputs { first: 0, count }
            }
            SeriesData::History(_) => {
                // Before, it was of the same loop.
                let of = self.before.series.get(series);
                let of = of.and_then(|data| data.nodes().next())?;
                let of_loop = self.facts.nest.node_loop(of)?;
                match self.regions.contains_key(&of_loop) {
                    true => SeriesData::History(*self.nodes.get(&of)?),
                    false => {
                        let count = self.before.regions[of_loop].cycle.as_ref()?.bound;
                        let key = HISTORIES + ((series.index() as u64) << 32);
                        let (count, is_active) = (u64::from(count), self.facts.swept[of]);
                        row = Some(Row { key, count, is_active });
                        SeriesData::Inputs { first: 0, count: count as u32 }
                    }
                }
            }
            SeriesData::Sums(_) | SeriesData::Outputs { .. } => return None,
        };
        let new = self.graph.series.push(data);
        self.rows.extend(row.map(|row| (new, row)));
        self.series.insert(series, new);
        Some(new)
    }

    fn whole(&mut self, region: Region, own: bool) -> Option<()> {
        if self.regions.contains_key(&region) {
            return Some(());
        }
        let source = self.source(own);
        let tree = self.tree(region, own);
        for &block in &tree.blocks {
            let new = self.graph.new_block();
            self.blocks.insert(block, new);
        }
        for &inner in &tree.regions {
            let root = self.blocks[&source.regions[inner].root];
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
            self.block(source, &tree, block)?;
        }
        let (root, region) = (self.graph.root(), self.regions[&region]);
        self.graph.blocks[root].items.push(Item::Region(region));
        Some(())
    }

    fn block(&mut self, source: &Graph, tree: &Tree, block: Block) -> Option<()> {
        let (data, new) = (&source.blocks[block], self.blocks[&block]);
        for item in &data.items {
            let item = match *item {
                Item::Node(node) if tree.forms.contains(&node) => continue,
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

    /// The graph with its inputs.
    fn finished(mut self, region: Region) -> Option<Cut> {
        let inputs = self.inputs.iter().map(|(_, row)| *row);
        let rows = self.rows.iter().map(|(_, row)| *row);
        let inputs = Inputs::of(inputs.chain(rows).collect());
        for &(node, row) in &self.inputs {
            self.graph.nodes[node].def = Def::Input(inputs.number(row.key)?);
        }
        for &(series, row) in &self.rows {
            if let SeriesData::Inputs { first, .. } = &mut self.graph.series[series] {
                *first = inputs.number(row.key)?;
            }
        }
        (self.graph.active, self.graph.inactive) = (inputs.active, inputs.inactive);
        let region = *self.regions.get(&region)?;
        let Knife { graph, blocks, turns, .. } = self;
        Some(Cut { graph, inputs, region, blocks, turns })
    }
}
