//! The data structures of the graph: nodes, blocks, regions, and source places.
//!
//! A graph is a function from inputs to outputs that may also stop without a result. Its blocks
//! form a tree: control flow is a decision tree over conditions. A node is visible in its block
//! and in the blocks below it.
//!
//! A region is a step of a block with a tree of blocks of its own, whose leaves join: each value
//! that the leaves pass on becomes a φ, visible after the region. Other nodes of the region are
//! visible outside only in a region that *replays* it. Replaying serves the reverse sweep, which
//! needs the values of the forward sweep: the replaying region takes the same path. In its root
//! the root of the replayed region is visible, and if both branch on the same condition, so is
//! the block of the same arm.
//!
//! A region may be a loop; see [`Loop`](super::Loop).

use std::sync::Arc;

use smallvec::SmallVec;

use super::arrays::{Access, AccessData, Array, ArrayData, Loop};
use crate::custom::CustomRoutine;
use crate::entity::{Entity, PrimaryMap, entity};
use crate::numeric::Routine;
use crate::op::{MAX_ARITY, Op};

entity!(
    /// A value of the graph.
    Node,
    "v"
);

entity!(
    /// A call of a routine: an instruction with several results.
    Call,
    "c"
);

entity!(
    /// A basic block.
    Block,
    "b"
);

entity!(
    /// A tree of blocks inside a block, whose leaves join.
    Region,
    "r"
);

entity!(
    /// A place in the user's source, interned in the graph.
    PlaceId,
    "p"
);

/// A place in the user's source.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The file, as the compiler named it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The number of the loop at this place, from 0, if there are several, such as those of a
    /// function that is called twice. Other than 0 in explanations only; displayed as `#2` for
    /// the second.
    pub nth: u32,
}

impl Place {
    /// A place by its file, line and column.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(phigrad::Place::new("loss.rs", 3, 8).to_string(), "loss.rs:3:8");
    /// ```
    pub fn new(file: &str, line: u32, column: u32) -> Place {
        Place { file: file.into(), line, column, nth: 0 }
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        if self.nth > 0 { write!(f, "#{}", u64::from(self.nth) + 1) } else { Ok(()) }
    }
}

/// The definition of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Def {
    /// An input: active ones first, then inactive ones.
    Input(u32),
    /// A constant, by its bits.
    Const(u64),
    /// A primitive and its operands; entries beyond the arity repeat the first.
    Apply(Op, [Node; MAX_ARITY]),
    /// φ: the value with this number that the leaves of a region pass on.
    Phi(Region, u32),
    /// The entry φ with this number of a loop.
    Entry(Region, u32),
    /// The number of the current iteration of a loop, from 0; visible in the loop
    /// and where it is replayed.
    Iteration(Region),
    /// An element of an array.
    Element(Access),
    /// The call of a routine; the node is its result 0.
    Call(Call),
    /// Result number 1 or more of a call in the same block.
    Result(Node, u32),
}

/// The routine and the operands of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallData {
    /// The routine, shared between calls.
    pub routine: Arc<Routine>,
    /// The operands, one for each input of the routine.
    pub args: Vec<Node>,
}

/// A node: its definition and its source place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeData {
    /// The definition.
    pub def: Def,
    /// The place in the user's source, if the node comes from there.
    pub place: Option<PlaceId>,
}

impl NodeData {
    /// The operands of a primitive, or the call of a result. [`Graph::operands`] has those of
    /// calls, too; the sources of a φ are in the leaves of its region.
    pub fn args(&self) -> &[Node] {
        match &self.def {
            Def::Apply(op, args) => &args[..op.arity()],
            Def::Result(call, _) => core::slice::from_ref(call),
            _ => &[],
        }
    }
}

/// A step of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Computes a node.
    Node(Node),
    /// Stops without a result unless the condition has the expected outcome. A condition holds if
    /// it is not 0.
    Guard {
        /// The condition.
        condition: Node,
        /// The expected outcome.
        expect: bool,
    },
    /// Runs the blocks of a region; its φs are visible afterwards.
    Region(Region),
    /// Sets the sums of an array to their initial values, or forgets the contents of cells.
    Fill(Array),
    /// Adds a node to the sum at this place.
    Accumulate(Access, Node),
    /// Stores a node in the cell at this place.
    Store(Access, Node),
}

/// The terminator of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// No terminator yet; only while a graph is being built.
    Open,
    /// Returns the outputs of the graph; in a region, passes on the values of its φs.
    Return(SmallVec<[Node; 2]>),
    /// Branches to one of two blocks.
    Branch {
        /// The condition.
        condition: Node,
        /// The target if the condition is not 0.
        then: Block,
        /// The target if it is 0.
        otherwise: Block,
    },
}

/// A block: steps, then a terminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockData {
    /// The steps in order.
    pub items: Vec<Item>,
    /// The terminator.
    pub end: End,
}

/// A region: its tree of blocks and its φs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionData {
    /// The root of its tree of blocks.
    pub root: Block,
    /// The φs, one for each value that the leaves pass on, in order. Their ids are larger than
    /// all ids in the region.
    pub phis: Vec<Node>,
    /// The replayed region, if any.
    pub replays: Option<Region>,
    /// The loop, if the region is one.
    pub cycle: Option<Loop>,
    /// The place in the user's source.
    pub place: Option<PlaceId>,
}

/// A function from inputs to outputs as a tree of blocks of SSA nodes.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Outcome, interpret, parse};
///
/// let graph = parse("graph active 2 inactive 0\nb0:\n  v2 = mul v0 v1\n  return v2\n")?;
/// assert_eq!(interpret(&graph, &[2.0, 3.0]), Outcome::Values(vec![6.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The nodes; operands have smaller ids than the nodes that use them. An input is a node only
    /// if something uses it by itself, not as an element of an array.
    pub nodes: PrimaryMap<Node, NodeData>,
    /// The blocks; the root is the first.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// The arrays that loops read and write.
    pub arrays: PrimaryMap<Array, ArrayData>,
    /// The array accesses of nodes and items.
    pub accesses: PrimaryMap<Access, AccessData>,
    /// The calls of routines.
    pub calls: PrimaryMap<Call, CallData>,
    /// The source places of nodes and regions.
    pub places: PrimaryMap<PlaceId, Place>,
    /// The number of active inputs, those with derivatives.
    pub active: usize,
    /// The number of inactive inputs.
    pub inactive: usize,
}

impl Graph {
    /// A graph of these inputs, each of which is a node, with one open, empty block.
    ///
    /// [`Builder`](super::Builder) folds and shares nodes; this appends them as they are.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{End, Graph, verify};
    ///
    /// let mut graph = Graph::new(1, 0);
    /// let (root, x) = (graph.root(), graph.input(0));
    /// let sine = graph.push_apply(root, Op::Sin, &[x], None);
    /// graph.blocks[root].end = End::Return([sine].into_iter().collect());
    /// assert_eq!(verify(&graph), Ok(()));
    /// assert_eq!((graph.outputs(), graph.paths(), graph.conditions()), (1, 1, 0));
    /// ```
    pub fn new(active: usize, inactive: usize) -> Self {
        let mut graph = Graph::without_nodes(active, inactive);
        (0..active + inactive).for_each(|number| _ = graph.push_input(number as u32));
        graph
    }

    /// Like [`Graph::new`], but without nodes.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, End, Graph, Outcome, ArrayData, interpret};
    ///
    /// // The last of a million inputs.
    /// let mut graph = Graph::without_nodes(1_000_000, 0);
    /// let array = graph.arrays.push(ArrayData::Inputs { first: 0, count: 1_000_000 });
    /// let data = AccessData { array, base: 999_999, strides: Default::default(), changes: Default::default() };
    /// let access = graph.accesses.push(data);
    /// let root = graph.root();
    /// let last = graph.push_element(root, access, None);
    /// graph.blocks[root].end = End::Return([last].into_iter().collect());
    /// assert_eq!(graph.nodes.len(), 1);
    /// let inputs: Vec<f64> = (0..1_000_000).map(f64::from).collect();
    /// assert_eq!(interpret(&graph, &inputs), Outcome::Values(vec![999_999.0]));
    /// ```
    pub fn without_nodes(active: usize, inactive: usize) -> Self {
        let mut graph = Graph {
            nodes: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            regions: PrimaryMap::new(),
            arrays: PrimaryMap::new(),
            accesses: PrimaryMap::new(),
            calls: PrimaryMap::new(),
            places: PrimaryMap::new(),
            active,
            inactive,
        };
        graph.new_block();
        graph
    }

    /// The root of the tree of blocks.
    pub fn root(&self) -> Block {
        Block::from_index(0)
    }

    /// The node of input number `index`, in a graph in which each input is a node, as
    /// in [`Graph::new`].
    pub fn input(&self, index: usize) -> Node {
        Node::from_index(index)
    }

    /// Appends an open, empty block.
    pub fn new_block(&mut self) -> Block {
        self.blocks.push(BlockData { items: Vec::new(), end: End::Open })
    }

    /// Appends the constant with these bits, which is visible everywhere.
    pub fn push_const(&mut self, bits: u64) -> Node {
        self.nodes.push(NodeData { def: Def::Const(bits), place: None })
    }

    /// Appends an application of `op` to `block`; `args` has as many entries as `op` takes.
    pub fn push_apply(
        &mut self,
        block: Block,
        op: Op,
        args: &[Node],
        place: Option<PlaceId>,
    ) -> Node {
        let node = self.nodes.push(NodeData { def: Def::Apply(op, padded(args)), place });
        self.blocks[block].items.push(Item::Node(node));
        node
    }

    /// Appends a region with an open, empty root to `block`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{End, Graph, Outcome, interpret, verify};
    ///
    /// // (if x > 0 { x } else { -x }) + x
    /// let mut graph = Graph::new(1, 0);
    /// let (root, x, zero) = (graph.root(), graph.input(0), graph.push_const(0));
    /// let positive = graph.push_apply(root, Op::Gt, &[x, zero], None);
    /// let region = graph.push_region(root, None, None);
    /// let (then, otherwise) = (graph.new_block(), graph.new_block());
    /// let start = graph.regions[region].root;
    /// graph.blocks[start].end = End::Branch { condition: positive, then, otherwise };
    /// graph.blocks[then].end = End::Return([x].into_iter().collect());
    /// let negative = graph.push_apply(otherwise, Op::Neg, &[x], None);
    /// graph.blocks[otherwise].end = End::Return([negative].into_iter().collect());
    /// let size = graph.push_phi(region);
    /// let sum = graph.push_apply(root, Op::Add, &[size, x], None);
    /// graph.blocks[root].end = End::Return([sum].into_iter().collect());
    /// assert_eq!(verify(&graph), Ok(()));
    /// assert_eq!(interpret(&graph, &[-3.0]), Outcome::Values(vec![0.0]));
    /// ```
    pub fn push_region(
        &mut self,
        block: Block,
        replays: Option<Region>,
        place: Option<PlaceId>,
    ) -> Region {
        let root = self.new_block();
        let (phis, cycle) = (Vec::new(), None);
        let region = self.regions.push(RegionData { root, phis, replays, cycle, place });
        self.blocks[block].items.push(Item::Region(region));
        region
    }

    /// Appends the next φ of `region`. For an example see [`Graph::push_region`].
    pub fn push_phi(&mut self, region: Region) -> Node {
        let data = &mut self.regions[region];
        let def = Def::Phi(region, data.phis.len() as u32);
        let node = self.nodes.push(NodeData { def, place: data.place });
        data.phis.push(node);
        node
    }

    /// The operands of `node`, a primitive, call or result.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::Graph;
    ///
    /// let mut graph = Graph::new(2, 0);
    /// let (x, y) = (graph.input(0), graph.input(1));
    /// let product = graph.push_apply(graph.root(), Op::Mul, &[x, y], None);
    /// assert_eq!(graph.operands(product), [x, y]);
    /// ```
    pub fn operands(&self, node: Node) -> &[Node] {
        match self.nodes[node].def {
            Def::Call(call) => &self.calls[call].args,
            _ => self.nodes[node].args(),
        }
    }

    /// The source place with this id, if known.
    pub(crate) fn place(&self, place: Option<PlaceId>) -> Option<&Place> {
        place.and_then(|place| self.places.get(place))
    }

    /// Tests whether `node` calls a custom operation.
    pub(crate) fn is_custom_call(&self, node: Node) -> bool {
        matches!(self.nodes[node].def, Def::Call(_)) && self.custom_routine(node).is_some()
    }

    /// The function of a custom operation that `node`, a call or one of its results, computes.
    pub(crate) fn custom_routine(&self, node: Node) -> Option<&CustomRoutine> {
        match self.nodes[node].def {
            Def::Call(call) => self.calls[call].routine.custom(),
            Def::Result(call, _) => self.custom_routine(call),
            _ => None,
        }
    }

    /// Appends a call of `routine` to `block`; `args` has one node for each input of the routine.
    pub fn push_call(
        &mut self,
        block: Block,
        routine: Arc<Routine>,
        args: Vec<Node>,
        place: Option<PlaceId>,
    ) -> Node {
        let call = self.calls.push(CallData { routine, args });
        let node = self.nodes.push(NodeData { def: Def::Call(call), place });
        self.blocks[block].items.push(Item::Node(node));
        node
    }

    /// Appends result number `number` of `call`, a call in `block`, to `block`.
    pub fn push_result(&mut self, block: Block, call: Node, number: u32) -> Node {
        let place = self.nodes[call].place;
        let node = self.nodes.push(NodeData { def: Def::Result(call, number), place });
        self.blocks[block].items.push(Item::Node(node));
        node
    }

    /// The value of `node` if it is a constant.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::Graph;
    ///
    /// let mut graph = Graph::new(1, 0);
    /// let half = graph.push_const(0.5f64.to_bits());
    /// assert_eq!(graph.constant(half), Some(0.5));
    /// assert_eq!(graph.constant(graph.input(0)), None);
    /// ```
    pub fn constant(&self, node: Node) -> Option<f64> {
        match self.nodes[node].def {
            Def::Const(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
}

/// Pads operands to the fixed size of [`Def::Apply`].
pub(crate) fn padded(args: &[Node]) -> [Node; MAX_ARITY] {
    core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]))
}
