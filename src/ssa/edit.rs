//! The graph editor: inserts, moves, clones and replaces steps of a graph. Steps that it leaves
//! alone keep their operands, so their values keep their bits.
//!
//! ```text
//! let mut editor = Editor::of(graph);
//! editor.insert_apply(region, Op::Sin, &[x], place);   // a step before `region`
//! editor.replace(old, new);                            // all uses
//! let edited = editor.finish()?;                       // ids in order again
//! ```
//!
//! The editor dereferences to the edited [`Graph`], so that a pass may also change blocks, regions
//! and definitions in place. Until [`Editor::finish`] the items of the original blocks keep their
//! positions, except where steps are appended to a block.

use core::ops::{Deref, DerefMut};

use hashbrown::{HashMap, HashSet};

use super::graph::{Block, Def, Graph, Item, Node, NodeData, PlaceId, Region, padded};
use super::renumber::in_order;
use crate::op::Op;

/// A graph that is being edited.
pub(crate) struct Editor {
    graph: Graph,
    /// The items to insert before each region.
    inserted: HashMap<Region, Vec<Item>>,
    /// Moved items, by block and position.
    moved: HashSet<(Block, usize)>,
    /// Replaced nodes with their replacements.
    replaced: HashMap<Node, Node>,
}

impl Editor {
    /// Edits a copy of `graph`.
    pub(crate) fn of(graph: &Graph) -> Editor {
        Editor {
            graph: graph.clone(),
            inserted: HashMap::new(),
            moved: HashSet::new(),
            replaced: HashMap::new(),
        }
    }

    /// Inserts `item` before `region`, after the items inserted there so far.
    pub(crate) fn insert(&mut self, region: Region, item: Item) {
        self.inserted.entry(region).or_default().push(item);
    }

    /// Inserts a new step before `region`.
    pub(crate) fn insert_node(&mut self, region: Region, def: Def, place: Option<PlaceId>) -> Node {
        let node = self.graph.nodes.push(NodeData { def, place });
        self.insert(region, Item::Node(node));
        node
    }

    /// Inserts an application before `region`; `args` has the arity of `op`.
    pub(crate) fn insert_apply(
        &mut self,
        region: Region,
        op: Op,
        args: &[Node],
        place: Option<PlaceId>,
    ) -> Node {
        self.insert_node(region, Def::Apply(op, padded(args)), place)
    }

    /// Moves the item at `position` of `block`, in the original graph, to before `region`.
    pub(crate) fn move_before(&mut self, (block, position): (Block, usize), region: Region) {
        if self.moved.insert((block, position)) {
            let item = self.graph.blocks[block].items[position];
            self.insert(region, item);
        }
    }

    /// True if the item at this position is moved.
    pub(crate) fn is_moved(&self, position: (Block, usize)) -> bool {
        self.moved.contains(&position)
    }

    /// Puts `other` in the place of `region`, an item of `block`. Items inserted before `region`
    /// are then before `other`.
    pub(crate) fn replace_region(&mut self, block: Block, region: Region, other: Region) {
        for item in &mut self.graph.blocks[block].items {
            if *item == Item::Region(region) {
                *item = Item::Region(other);
            }
        }
        if let Some(items) = self.inserted.remove(&region) {
            self.inserted.entry(other).or_default().extend(items);
        }
    }

    /// Replaces all uses of `node`.
    pub(crate) fn replace(&mut self, node: Node, by: Node) {
        self.replaced.insert(node, by);
    }

    /// True if all uses of `node` are replaced.
    pub(crate) fn is_replaced(&self, node: Node) -> bool {
        self.replaced.contains_key(&node)
    }

    /// The edited graph with its nodes in order; `None` if a step uses a node that is not computed
    /// by a step.
    pub(crate) fn finish(mut self) -> Option<Graph> {
        self.place_items();
        let replaced = &self.replaced;
        if !replaced.is_empty() {
            self.graph.visit_uses(|node| {
                while let Some(&other) = replaced.get(node) {
                    *node = other;
                }
            });
        }
        in_order(&self.graph)
    }

    /// Puts inserted items into their blocks, and takes moved ones out.
    fn place_items(&mut self) {
        if self.inserted.is_empty() {
            return;
        }
        let blocks: Vec<Block> = self.graph.blocks.keys().collect();
        for block in blocks {
            let items = core::mem::take(&mut self.graph.blocks[block].items);
            let mut all = Vec::with_capacity(items.len());
            // A stack: inserted regions may have items inserted before them.
            let mut pending = Vec::new();
            for (position, item) in items.into_iter().enumerate() {
                if self.moved.contains(&(block, position)) {
                    continue;
                }
                pending.push(item);
                while let Some(item) = pending.pop() {
                    match item {
                        Item::Region(region)
                            if let Some(before) = self.inserted.remove(&region) =>
                        {
                            pending.push(item);
                            pending.extend(before.into_iter().rev());
                        }
                        _ => all.push(item),
                    }
                }
            }
            self.graph.blocks[block].items = all;
        }
    }
}

impl Deref for Editor {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }
}
