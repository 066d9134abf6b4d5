//! The tree of blocks: its paths, leaves and orders.

use super::arrays::ArrayData;
use super::graph::{Block, BlockData, Def, End, Graph, Item, Region};
use crate::entity::PrimaryMap;

impl Graph {
    /// The number of paths from the root to a leaf; a region is one step of each.
    pub fn paths(&self) -> usize {
        self.leaves(self.root()).len()
    }

    /// The leaves of the tree of `root`, first arms first.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "graph active 1 inactive 0\nb0:\n  branch v0 b1 b2\nb1:\n  return v0\nb2:\n  return v0\n";
    /// let graph = phigrad::internals::ssa::parse(text)?;
    /// assert_eq!(graph.leaves(graph.root()).len(), 2);
    /// # Ok::<(), phigrad::internals::ssa::ParseError>(())
    /// ```
    pub fn leaves(&self, root: Block) -> Vec<Block> {
        let mut tree = self.tree(root);
        tree.retain(|&block| !matches!(self.blocks[block].end, End::Branch { .. }));
        tree
    }

    /// `root` and the blocks below it in depth-first order, without those of regions.
    pub(crate) fn tree(&self, root: Block) -> Vec<Block> {
        let (mut tree, mut pending) = (Vec::new(), vec![root]);
        while let Some(block) = pending.pop() {
            tree.push(block);
            if let End::Branch { then, otherwise, .. } = self.blocks[block].end {
                pending.extend([otherwise, then]);
            }
        }
        tree
    }

    /// The blocks of `region` and of the regions in it.
    pub(crate) fn blocks_inside(&self, region: Region) -> Vec<Block> {
        let (mut blocks, mut pending) = (Vec::new(), vec![self.regions[region].root]);
        while let Some(block) = pending.pop() {
            blocks.push(block);
            pending.extend(self.regions_of(block).map(|inner| self.regions[inner].root));
            if let End::Branch { then, otherwise, .. } = self.blocks[block].end {
                pending.extend([then, otherwise]);
            }
        }
        blocks
    }

    /// Tests whether `region` or a region in it reads or stores cells.
    pub(crate) fn uses_cells(&self, region: Region) -> bool {
        let blocks = self.blocks_inside(region);
        let mut items = blocks.iter().flat_map(|&block| &self.blocks[block].items);
        items.any(|item| match *item {
            Item::Store(..) => true,
            Item::Node(node) => match self.nodes[node].def {
                Def::Element(access) => {
                    matches!(self.arrays[self.accesses[access].array], ArrayData::Cells(_))
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// The number of guards and branches.
    pub fn conditions(&self) -> usize {
        let guards = |block: &BlockData| {
            let items = block.items.iter().filter(|item| matches!(item, Item::Guard { .. }));
            items.count() + usize::from(matches!(block.end, End::Branch { .. }))
        };
        self.blocks.values().map(guards).sum()
    }

    /// All blocks in execution order: each comes before the blocks of its regions, and those
    /// before the blocks below it (depth first, first arms first).
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "graph active 1 inactive 0\nb0:\n  branch v0 b1 b2\nb1:\n  return v0\nb2:\n  return v0\n";
    /// let graph = phigrad::internals::ssa::parse(text)?;
    /// let names: Vec<String> = graph.preorder().iter().map(|block| block.to_string()).collect();
    /// assert_eq!(names, ["b0", "b1", "b2"]);
    /// # Ok::<(), phigrad::internals::ssa::ParseError>(())
    /// ```
    pub fn preorder(&self) -> Vec<Block> {
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut pending = vec![self.root()];
        while let Some(block) = pending.pop() {
            order.push(block);
            if let End::Branch { then, otherwise, .. } = self.blocks[block].end {
                pending.extend([otherwise, then]);
            }
            pending.extend(self.regions_of(block).rev().map(|region| self.regions[region].root));
        }
        order
    }

    /// The regions that are steps of `block`, in order.
    pub fn regions_of(&self, block: Block) -> impl DoubleEndedIterator<Item = Region> + '_ {
        self.blocks[block].items.iter().filter_map(|item| match *item {
            Item::Region(region) => Some(region),
            _ => None,
        })
    }

    /// The parent of each block; for the root of a region, the block of which the region is a
    /// step. The root of the graph has none.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = "graph active 1 inactive 0\nb0:\n  branch v0 b1 b2\nb1:\n  return v0\nb2:\n  return v0\n";
    /// let graph = phigrad::internals::ssa::parse(text)?;
    /// let root = Some(graph.root());
    /// assert_eq!(graph.parents().values().collect::<Vec<_>>(), [&None, &root, &root]);
    /// # Ok::<(), phigrad::internals::ssa::ParseError>(())
    /// ```
    pub fn parents(&self) -> PrimaryMap<Block, Option<Block>> {
        let mut parents = PrimaryMap::filled(None, self.blocks.len());
        for (block, data) in self.blocks.iter() {
            if let End::Branch { then, otherwise, .. } = data.end {
                parents[then] = Some(block);
                parents[otherwise] = Some(block);
            }
            for region in self.regions_of(block) {
                parents[self.regions[region].root] = Some(block);
            }
        }
        parents
    }
}
