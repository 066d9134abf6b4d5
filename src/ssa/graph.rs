//! The graph itself: nodes, blocks and the places they come from.
//!
//! A graph is a function from inputs to outputs that may also stop without a
//! result. Its blocks form a tree: control flow is a decision tree over
//! conditions. A node is visible in its block and in the blocks below.
//!
//! A region is a step of a block with a tree of blocks of its own. Where that
//! tree ends, control flow joins: each value that its ends pass on becomes a φ,
//! visible after the region. Other nodes of the region are visible outside only
//! where it is replayed: a region that replays another goes over the way that
//! the other took (for derivatives, which need its values), so in its root the
//! root of the other is visible, and where both branch on the same condition,
//! so are the blocks on the same side.
//!
//! A region may be a loop; see [`Loop`](super::Loop).

use std::sync::Arc;

use smallvec::SmallVec;

use super::arrays::{Access, AccessData, Array, ArrayData, Loop};
use crate::entity::{Entity, PrimaryMap, entity};
use crate::numeric::Routine;
use crate::op::{MAX_ARITY, Op};

entity!(
    /// A value of the graph.
    Node,
    "v"
);

entity!(
    /// A call of a routine, an instruction with several results.
    Call,
    "c"
);

entity!(
    /// A basic block of straight-line code in the graph.
    Block,
    "b"
);

entity!(
    /// A tree of blocks inside a block, whose ends meet.
    Region,
    "r"
);

entity!(
    /// A place in the user's source, kept once in each graph.
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
    /// Which of the loops there, from 0, where several are told apart, such as those of a
    /// function that is called twice: other than 0 in explanations only. Shown as `#2` for the
    /// second.
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

/// How a node is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Def {
    /// An input: active ones first, then inactive ones.
    Input(u32),
    /// A constant, by its bits.
    Const(u64),
    /// A primitive and its operands; entries beyond the arity repeat the first.
    Apply(Op, [Node; MAX_ARITY]),
    /// φ: the value with this number that the end of a region passes on.
    Phi(Region, u32),
    /// The entry φ with this number of a loop.
    Entry(Region, u32),
    /// The number of the current iteration of a loop, from 0; visible in the loop
    /// and where it is replayed.
    Iteration(Region),
    /// An element of an array.
    Element(Access),
    /// Runs a routine; its own value is result 0.
    Call(Call),
    /// Result number 1 or more of a call in the same block.
    Result(Node, u32),
}

/// What a call runs, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct CallData {
    /// The routine; calls share it.
    pub routine: Arc<Routine>,
    /// Its operands, one for each of its inputs.
    pub args: Vec<Node>,
}

/// A node with the place it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeData {
    /// How the node is defined.
    pub def: Def,
    /// Where the user's code asked for it, if it did.
    pub place: Option<PlaceId>,
}

impl NodeData {
    /// The operands of a primitive, or the call of a result. For all operands see
    /// [`Graph::operands`]; a φ has its values at the ends of its region.
    pub fn args(&self) -> &[Node] {
        match &self.def {
            Def::Apply(op, args) => &args[..op.arity()],
            Def::Result(call, _) => core::slice::from_ref(call),
            _ => &[],
        }
    }
}

/// One step of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Computes a node.
    Node(Node),
    /// Stops without a result unless the condition came out as expected (a
    /// condition holds when it is not 0).
    Guard {
        /// The condition.
        condition: Node,
        /// Whether it must hold.
        expect: bool,
    },
    /// Goes through the blocks of a region, and on with its φs.
    Region(Region),
    /// Sets the sums of an array to their first values.
    Fill(Array),
    /// Adds a node to the sum at this place.
    Accumulate(Access, Node),
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Not decided yet; only while a graph is being built.
    Open,
    /// The outputs; in a region the values of its φs.
    Return(SmallVec<[Node; 2]>),
    /// Goes on in one of two blocks.
    Branch {
        /// The condition.
        condition: Node,
        /// Where to go when the condition is not 0.
        then: Block,
        /// Where to go when it is 0.
        otherwise: Block,
    },
}

/// A block: steps, then an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockData {
    /// The steps in order.
    pub items: Vec<Item>,
    /// What comes after them.
    pub end: End,
}

/// A region: where it begins, and what is known when it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionData {
    /// The block where it begins, the root of a tree of its own.
    pub root: Block,
    /// One φ for each value that its ends pass on, in order; larger ids than
    /// everything in the region.
    pub phis: Vec<Node>,
    /// The region that it replays.
    pub replays: Option<Region>,
    /// What makes it a loop, if it is one.
    pub cycle: Option<Loop>,
    /// Where it is in the user's source.
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
    /// The nodes; operands have smaller ids than the nodes that use them. An input is
    /// a node only where something uses it by itself.
    pub nodes: PrimaryMap<Node, NodeData>,
    /// The blocks; the root is the first.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The regions.
    pub regions: PrimaryMap<Region, RegionData>,
    /// The arrays that loops read and write.
    pub arrays: PrimaryMap<Array, ArrayData>,
    /// The places in arrays that nodes and items refer to.
    pub accesses: PrimaryMap<Access, AccessData>,
    /// The calls of routines.
    pub calls: PrimaryMap<Call, CallData>,
    /// The places that nodes refer to.
    pub places: PrimaryMap<PlaceId, Place>,
    /// The number of inputs whose derivative may be asked for.
    pub active: usize,
    /// The number of inputs that need none.
    pub inactive: usize,
}

impl Graph {
    /// A graph of these inputs, each of which is a node, with one open, empty block.
    ///
    /// [`Builder`](super::Builder) makes graphs more comfortably.
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

    /// As [`Graph::new`], without a node.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, End, Graph, Outcome, ArrayData, interpret};
    ///
    /// // The last of a million inputs.
    /// let mut graph = Graph::without_nodes(1_000_000, 0);
    /// let array = graph.arrays.push(ArrayData::Inputs { first: 0, count: 1_000_000 });
    /// let data = AccessData { array, base: 999_999, strides: Default::default() };
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

    /// The block where the graph begins.
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

    /// Appends a node of the constant with these bits, which is visible everywhere.
    pub fn push_const(&mut self, bits: u64) -> Node {
        self.nodes.push(NodeData { def: Def::Const(bits), place: None })
    }

    /// Appends a node to `block`; `args` has as many entries as `op` takes.
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

    /// The place in the user's source that `place` stands for, if that is known.
    pub(crate) fn place(&self, place: Option<PlaceId>) -> Option<&Place> {
        place.and_then(|place| self.places.get(place))
    }

    /// Appends a call of `routine` to `block`; `args` has one node for each of its inputs.
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

    /// Appends result number `number` of `call`, a call in `block`, to it.
    pub fn push_result(&mut self, block: Block, call: Node, number: u32) -> Node {
        let place = self.nodes[call].place;
        let node = self.nodes.push(NodeData { def: Def::Result(call, number), place });
        self.blocks[block].items.push(Item::Node(node));
        node
    }

    /// The number that `node` always has, if it is a constant.
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

/// Operands in the fixed array of [`Def::Apply`].
pub(super) fn padded(args: &[Node]) -> [Node; MAX_ARITY] {
    core::array::from_fn(|i| args.get(i).copied().unwrap_or(args[0]))
}
