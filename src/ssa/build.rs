//! The builder: makes a graph block by block, with hash-consing and folding.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::fold::{Folded, Folding, Operand, fold};
use super::graph::{Block, Def, End, Graph, Item, Node, PlaceId, Region, padded};
use crate::op::{Algebra, MAX_ARITY, Op};

/// Builds a [`Graph`]. Blocks are visited depth first: [`Builder::enter`]
/// opens one, [`Builder::leave`] closes it and forgets the nodes that are not
/// visible outside.
///
/// # Examples
///
/// ```
/// use phigrad::op::Op;
/// use phigrad::ssa::{Builder, Folding};
///
/// let mut builder = Builder::new(1, 0, Folding::Exact);
/// let x = builder.input(0);
/// let square = builder.apply(Op::Mul, &[x, x]);
/// assert_eq!(square, builder.apply(Op::Mul, &[x, x]));
/// builder.finish_block(&[square]);
/// assert_eq!(builder.into_graph().outputs(), 1);
/// ```
#[derive(Debug)]
pub struct Builder {
    graph: Graph,
    block: Block,
    folding: Folding,
    place: Option<PlaceId>,
    constants: HashMap<u64, Node>,
    /// What is visible in the current block.
    known: HashMap<Fact, Node>,
    /// For each open block, what to forget when it closes.
    scopes: Vec<(Block, Vec<Fact>)>,
}

/// What the builder remembers, for each visible node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Fact {
    /// This definition has been computed.
    Defined(Def),
    /// This condition has been checked and held, or did not hold.
    Checked(Node, bool),
}

impl Builder {
    /// Starts a graph of these inputs in its root block.
    pub fn new(active: usize, inactive: usize, folding: Folding) -> Self {
        let graph = Graph::new(active, inactive);
        let block = graph.root();
        Builder {
            graph,
            block,
            folding,
            place: None,
            constants: HashMap::new(),
            known: HashMap::new(),
            scopes: Vec::new(),
        }
    }

    /// Starts a graph of the same inputs and places as `graph`.
    pub fn of(graph: &Graph, folding: Folding) -> Self {
        let mut builder = Builder::new(graph.active, graph.inactive, folding);
        builder.graph.places = graph.places.clone();
        builder.known.reserve(graph.nodes.len());
        builder
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// Nodes from here on come from `place`, a place of the graph.
    pub fn set_place(&mut self, place: Option<PlaceId>) {
        self.place = place;
    }

    /// Which rules may be used.
    pub fn folding(&self) -> Folding {
        self.folding
    }

    /// The node of input number `index`, active inputs before inactive ones.
    pub fn input(&self, index: usize) -> Node {
        self.graph.input(index)
    }

    /// The node of the constant `value`.
    pub fn constant(&mut self, value: f64) -> Node {
        let bits = value.to_bits();
        *self.constants.entry(bits).or_insert_with(|| self.graph.push_const(bits))
    }

    /// The node of `op` applied to `args`, as many as its arity: an equal one
    /// that is visible, a simpler one, or a new one.
    pub fn apply(&mut self, op: Op, args: &[Node]) -> Node {
        match fold(&self.graph, self.folding, op, args) {
            Some(Folded::To(operand)) => return self.operand(operand),
            Some(Folded::Apply(op, operands)) => return self.apply_folded(op, &operands),
            Some(Folded::Negated(op, operands)) => {
                let node = self.apply_folded(op, &operands);
                return self.apply(Op::Neg, &[node]);
            }
            None => {}
        }
        let mut args = padded(args);
        if self.folding == Folding::Real && op.commutes() {
            // Constants second, so that equal sums and products look alike.
            args[..2].sort_by_key(|&arg| (self.graph.constant(arg).is_some(), arg));
        }
        let fact = Fact::Defined(Def::Apply(op, args));
        if let Some(&node) = self.known.get(&fact) {
            return node;
        }
        let node = self.graph.push_apply(self.block, op, &args[..op.arity()], self.place);
        self.learn(fact, node);
        node
    }

    fn apply_folded(&mut self, op: Op, operands: &[Operand]) -> Node {
        let args: SmallVec<[Node; MAX_ARITY]> =
            operands.iter().map(|&arg| self.operand(arg)).collect();
        self.apply(op, &args)
    }

    fn operand(&mut self, operand: Operand) -> Node {
        match operand {
            Operand::Node(node) => node,
            Operand::Const(value) => self.constant(value),
        }
    }

    /// Requires that `condition` came out as `expect`, unless that is known.
    pub fn guard(&mut self, condition: Node, expect: bool) {
        let certain = self.graph.constant(condition).is_some_and(|c| (c != 0.0) == expect);
        let fact = Fact::Checked(condition, expect);
        if certain || self.known.contains_key(&fact) {
            return;
        }
        self.graph.blocks[self.block].items.push(Item::Guard { condition, expect });
        self.learn(fact, condition);
    }

    /// Ends the current block with a branch. Returns the two new blocks: where
    /// `condition` holds, and where it does not.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::op::Op;
    /// use phigrad::ssa::{Builder, Folding, Outcome, interpret};
    ///
    /// // if x > 0 { x } else { -x }
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let (x, zero) = (builder.input(0), builder.constant(0.0));
    /// let positive = builder.apply(Op::Gt, &[x, zero]);
    /// let (then, otherwise) = builder.branch(positive);
    /// builder.enter(then);
    /// builder.finish_block(&[x]);
    /// builder.leave();
    /// builder.enter(otherwise);
    /// let negated = builder.apply(Op::Neg, &[x]);
    /// builder.finish_block(&[negated]);
    /// builder.leave();
    /// assert_eq!(interpret(builder.graph(), &[-2.0]), Outcome::Values(vec![2.0]));
    /// ```
    pub fn branch(&mut self, condition: Node) -> (Block, Block) {
        let (then, otherwise) = (self.graph.new_block(), self.graph.new_block());
        self.graph.blocks[self.block].end = End::Branch { condition, then, otherwise };
        (then, otherwise)
    }

    /// Ends the current block with the outputs.
    pub fn finish_block(&mut self, outputs: &[Node]) {
        self.graph.blocks[self.block].end = End::Return(SmallVec::from_slice(outputs));
    }

    /// Goes down into `block`, which a [`Builder::branch`] of the current block
    /// returned. For an example see there.
    pub fn enter(&mut self, block: Block) {
        self.scopes.push((self.block, Vec::new()));
        self.block = block;
    }

    /// Goes back up to the block above.
    pub fn leave(&mut self) {
        if let Some((above, facts)) = self.scopes.pop() {
            for fact in facts {
                self.known.remove(&fact);
            }
            self.block = above;
        }
    }

    /// Begins a region in the current block and goes into its root. Its blocks
    /// are built like those of the graph; then [`Builder::end_region`] ends it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::op::Op;
    /// use phigrad::ssa::{Builder, Folding, Outcome, interpret};
    ///
    /// // (if x > 0 { x } else { -x }) + 1
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let (x, zero, one) = (builder.input(0), builder.constant(0.0), builder.constant(1.0));
    /// let positive = builder.apply(Op::Gt, &[x, zero]);
    /// let region = builder.begin_region(None);
    /// let (then, otherwise) = builder.branch(positive);
    /// builder.enter(then);
    /// builder.finish_block(&[x]);
    /// builder.leave();
    /// builder.enter(otherwise);
    /// let negated = builder.apply(Op::Neg, &[x]);
    /// builder.finish_block(&[negated]);
    /// builder.leave();
    /// let size = builder.end_region(region, 1)[0];
    /// let sum = builder.apply(Op::Add, &[size, one]);
    /// builder.finish_block(&[sum]);
    /// assert_eq!(interpret(builder.graph(), &[-2.0]), Outcome::Values(vec![3.0]));
    /// ```
    pub fn begin_region(&mut self, replays: Option<Region>) -> Region {
        let region = self.graph.push_region(self.block, replays, self.place);
        self.enter(self.graph.regions[region].root);
        region
    }

    /// Ends `region`, whose ends pass on `values` values each, and goes back to
    /// its block. Returns the φs. For an example see [`Builder::begin_region`].
    pub fn end_region(&mut self, region: Region, values: usize) -> Vec<Node> {
        self.leave();
        (0..values).map(|_| self.graph.push_phi(region)).collect()
    }

    fn learn(&mut self, fact: Fact, node: Node) {
        self.known.insert(fact, node);
        if let Some((_, facts)) = self.scopes.last_mut() {
            facts.push(fact);
        }
    }
}

impl Algebra for Builder {
    type Value = Node;

    fn constant(&mut self, value: f64) -> Node {
        Builder::constant(self, value)
    }

    fn apply<const N: usize>(&mut self, op: Op, args: [Node; N]) -> Node {
        Builder::apply(self, op, &args)
    }
}
