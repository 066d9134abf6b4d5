//! The region nest: the region and the loop around each block and node.

use crate::entity::PrimaryMap;
use crate::ssa::graph::{Block, Def, End, Graph, Item, Node, Region};

/// The innermost region and loop around each block and node.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Nest, parse};
///
/// let text = "graph active 1 inactive 0\nv1 = const 0.0\nb0:\n  v3 = region r0 b1 bound 2\n  \
///             return v3\nb1:\n  v2 = sin v0\n  return v1 v2\n";
/// let graph = parse(text)?;
/// let nest = Nest::of(&graph);
/// let (region, root) = (graph.regions.keys().next(), graph.root());
/// assert_eq!(nest.block_region(root), None);
/// let sine = graph.nodes.keys().find(|node| node.to_string() == "v2");
/// assert_eq!(sine.and_then(|sine| nest.node_loop(sine)), region);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nest {
    block_regions: PrimaryMap<Block, Option<Region>>,
    block_loops: PrimaryMap<Block, Option<Region>>,
    node_blocks: PrimaryMap<Node, Option<Block>>,
    region_blocks: PrimaryMap<Region, Option<Block>>,
}

impl Nest {
    /// The nest of `graph`, whose blocks form a tree.
    pub fn of(graph: &Graph) -> Nest {
        let mut nest = Nest {
            block_regions: PrimaryMap::filled(None, graph.blocks.len()),
            block_loops: PrimaryMap::filled(None, graph.blocks.len()),
            node_blocks: PrimaryMap::filled(None, graph.nodes.len()),
            region_blocks: PrimaryMap::filled(None, graph.regions.len()),
        };
        for block in graph.preorder() {
            let (here, around) = (nest.block_regions[block], nest.block_loops[block]);
            if let End::Branch { then, otherwise, .. } = graph.blocks[block].end {
                for arm in [then, otherwise] {
                    nest.block_regions[arm] = here;
                    nest.block_loops[arm] = around;
                }
            }
            for item in &graph.blocks[block].items {
                match *item {
                    // The verifier builds the nest before it has checked that nodes exist.
                    Item::Node(node) if graph.nodes.get(node).is_none() => {}
                    Item::Node(node) => nest.node_blocks[node] = Some(block),
                    Item::Region(region) => {
                        let data = &graph.regions[region];
                        nest.region_blocks[region] = Some(block);
                        nest.block_regions[data.root] = Some(region);
                        let is_loop = data.cycle.is_some();
                        nest.block_loops[data.root] = if is_loop { Some(region) } else { around };
                        data.phis.iter().for_each(|&phi| nest.node_blocks[phi] = Some(block));
                        for entry in graph.entries(region) {
                            nest.node_blocks[entry.phi] = Some(data.root);
                        }
                    }
                    Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {
                    }
                }
            }
        }
        for (node, data) in graph.nodes.iter() {
            if let Def::Iteration(region) = data.def {
                nest.node_blocks[node] = graph.regions.get(region).map(|data| data.root);
            }
        }
        nest
    }

    /// The region whose tree contains `block`; `None` for the graph's own tree.
    pub fn block_region(&self, block: Block) -> Option<Region> {
        self.block_regions[block]
    }

    /// The innermost loop around `block`.
    pub fn block_loop(&self, block: Block) -> Option<Region> {
        self.block_loops[block]
    }

    /// The block where `node` is defined: for a φ the one of its region, for an entry φ or
    /// iteration number the root of its loop. Inputs and constants have none.
    pub fn node_block(&self, node: Node) -> Option<Block> {
        self.node_blocks[node]
    }

    /// The region whose tree defines `node`.
    pub fn node_region(&self, node: Node) -> Option<Region> {
        self.node_block(node).and_then(|block| self.block_region(block))
    }

    /// The innermost loop around the definition of `node`.
    pub fn node_loop(&self, node: Node) -> Option<Region> {
        self.node_block(node).and_then(|block| self.block_loop(block))
    }

    /// The block of which `region` is a step.
    pub fn region_block(&self, region: Region) -> Option<Block> {
        self.region_blocks[region]
    }

    /// The region around `region`.
    pub fn region_around(&self, region: Region) -> Option<Region> {
        self.region_block(region).and_then(|block| self.block_region(block))
    }

    /// The innermost loop around `region`.
    pub fn loop_around(&self, region: Region) -> Option<Region> {
        self.region_block(region).and_then(|block| self.block_loop(block))
    }
}

/// The largest number of steps of a run of `graph`, with `weight` steps for each item.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{most_steps, parse};
///
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\nb0:\n  \
///             v6 = region r0 b1 bound 10 entries v2=v0\n  return v6\nb1:\n  \
///             v4 = sin v2\n  v5 = lt v3 v1\n  return v5 v4 v4\n";
/// // The loop, and ten times two steps in it.
/// assert_eq!(most_steps(&parse(text)?, |_| 1), 21);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn most_steps(graph: &Graph, weight: impl Fn(&Item) -> u64) -> u64 {
    let (nest, mut total) = (Nest::of(graph), 0u64);
    for (block, data) in graph.blocks.iter() {
        let mut times = 1u64;
        let mut around = nest.block_loop(block);
        while let Some(region) = around {
            times = times.saturating_mul(u64::from(graph.bound(region)));
            around = nest.region_block(region).and_then(|block| nest.block_loop(block));
        }
        let weight = data.items.iter().map(&weight).sum();
        total = total.saturating_add(times.saturating_mul(weight));
    }
    total
}
