//! A graph whose loops are being replaced.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::combined::{Combination, combinations};
use super::emit::{measured, measured_by};
use super::rest::{Given, carry};
use crate::entity::Array;
use crate::phi::replacement::Replacement;
use crate::ssa::{Block, Def, Graph, Item, Nest, Node, Region, SeriesData};

/// An element that reads what a node was in an iteration of its loop.
#[derive(Clone, Copy)]
pub(super) struct Past {
    pub(super) element: Node,
    pub(super) node: Node,
    /// The iteration, if it is always the same.
    pub(super) iteration: Option<u32>,
}

/// A graph with nodes that others take the place of. They are replaced wherever
/// they are used when all is done.
pub(super) struct Edit {
    pub(super) graph: Graph,
    replaced: HashMap<Node, Node>,
    gone: HashSet<Region>,
    /// The conditions of guards of closed forms. A form of the loop around needs none of them
    /// in its iterations; after the last one it requires this to be finite.
    pub(super) required: HashMap<Node, Option<Node>>,
    /// What elements read of the histories of a loop's nodes.
    histories: HashMap<Region, Vec<Past>>,
    /// The sums of what comes out of a loop.
    combinations: HashMap<Region, Vec<Combination>>,
    /// What is [`measured`], also by forms.
    pub(super) measured: Rc<HashSet<Node>>,
    blocks: Array<Region, Option<Block>>,
    /// The region in whose blocks each region stands, and the regions in loops.
    around: Array<Region, Option<Region>>,
    inner: HashSet<Region>,
    /// What outer loops are to carry besides.
    pub(super) given: Vec<Given>,
    /// Whether forms are made that are not worth it, to be compared with their loops.
    pub(super) all_forms: bool,
    /// Whether sums of what comes out of loops have no forms of their own.
    pub(super) without_sums: bool,
}

impl Edit {
    pub(super) fn of(graph: &Graph) -> Edit {
        let nest = Nest::of(graph);
        let mut histories: HashMap<Region, Vec<Past>> = HashMap::new();
        let mut replaced = HashMap::new();
        for (element, data) in graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let access = &graph.accesses[access];
            let iteration = access.strides.is_empty().then_some(access.base);
            match (&graph.series[access.series], iteration) {
                (&SeriesData::History(node), _) => {
                    if let Some(region) = nest.node_loop(node) {
                        let past = Past { element, node, iteration };
                        histories.entry(region).or_default().push(past);
                    }
                }
                (SeriesData::Nodes(nodes), Some(index)) => {
                    if let Some(&node) = nodes.get(index as usize) {
                        replaced.insert(element, node);
                    }
                }
                _ => {}
            }
        }
        let blocks = graph.regions.keys().map(|region| nest.region_block(region)).collect();
        let around = graph
            .regions
            .keys()
            .map(|region| nest.region_block(region).and_then(|block| nest.block_region(block)));
        let around = around.collect();
        let is_inner = |region: &Region| nest.loop_around(*region).is_some();
        let inner = graph.regions.keys().filter(is_inner).collect();
        let (combinations, measured) = (combinations(graph), Rc::new(measured(graph)));
        let graph = graph.clone();
        let (gone, required) = (HashSet::new(), HashMap::new());
        Edit {
            graph,
            replaced,
            gone,
            required,
            histories,
            combinations,
            measured,
            blocks,
            around,
            inner,
            given: Vec::new(),
            all_forms: false,
            without_sums: false,
        }
    }

    /// The node that stands for `node` now.
    pub(super) fn resolved(&self, mut node: Node) -> Node {
        while let Some(&other) = self.replaced.get(&node) {
            node = other;
        }
        node
    }

    /// The region in whose blocks `region` stands.
    pub(super) fn around(&self, region: Region) -> Option<Region> {
        self.around[region]
    }

    /// Whether `region` is in a loop, so that what it takes counts more than once.
    pub(super) fn is_inner(&self, region: Region) -> bool {
        self.inner.contains(&region)
    }

    pub(super) fn is_gone(&self, region: Region) -> bool {
        self.gone.contains(&region)
    }

    /// What is read of earlier iterations of `region`.
    pub(super) fn histories(&self, region: Region) -> &[Past] {
        self.histories.get(&region).map_or(&[], Vec::as_slice)
    }

    /// The sums of what comes out of `region`.
    pub(super) fn combinations(&self, region: Region) -> &[Combination] {
        if self.without_sums {
            return &[];
        }
        self.combinations.get(&region).map_or(&[], Vec::as_slice)
    }

    /// Puts `items` before `region`, and nodes in the place of what comes out of it.
    pub(super) fn replace(
        &mut self,
        region: Region,
        items: Vec<Item>,
        nodes: Vec<(Node, Node)>,
        is_gone: bool,
    ) {
        self.replaced.extend(nodes);
        self.measure(&items);
        if let Some(block) = self.blocks[region] {
            let steps = &mut self.graph.blocks[block].items;
            let at = steps.iter().position(|&item| item == Item::Region(region));
            let at = at.unwrap_or(steps.len());
            steps.splice(at..at, items);
        }
        if is_gone {
            self.gone.insert(region);
            let root = self.graph.regions[region].root;
            let is_kept = |item: &Item| !matches!(item, Item::Guard { .. });
            self.graph.blocks[root].items.retain(is_kept);
        }
    }

    /// Notes whose rounding errors `items` compute.
    fn measure(&mut self, items: &[Item]) {
        let graph = &self.graph;
        let found = items.iter().filter_map(|item| {
            let &Item::Node(node) = item else { return None };
            match graph.nodes[node].def {
                Def::Apply(op, args) => measured_by(graph, op, &args[..op.arity()]),
                _ => None,
            }
        });
        Rc::make_mut(&mut self.measured).extend(found);
    }

    /// Leaves out `regions`: they are in a loop that is gone.
    pub(super) fn leave_out(&mut self, regions: impl IntoIterator<Item = Region>) {
        self.gone.extend(regions);
    }

    /// Puts `items` behind `region`, and nodes in the place of what comes out of it.
    pub(super) fn insert_after(
        &mut self,
        region: Region,
        items: Vec<Item>,
        nodes: Vec<(Node, Node)>,
    ) {
        self.replaced.extend(nodes);
        self.measure(&items);
        if let Some(block) = self.blocks[region] {
            let steps = &mut self.graph.blocks[block].items;
            let at = steps.iter().position(|&item| item == Item::Region(region));
            let at = at.map_or(steps.len(), |at| at + 1);
            steps.splice(at..at, items);
        }
    }

    /// The graph with everything replaced; the loops that are gone are dead code.
    pub(super) fn replacement(mut self) -> Replacement {
        let given = core::mem::take(&mut self.given);
        carry(&mut self, &given);
        Replacement::new(self.graph, self.replaced)
    }
}
