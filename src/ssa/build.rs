//! The builder: appends nodes block by block, with value numbering (hash-consing) and folding.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::analysis::is_value_used;
use super::append::Appender;
use super::build_loops::Loops;
use super::dead::Live;
use super::fold::{Folded, Folding, Operand, fold};
use super::graph::{Block, Def, End, Graph, Item, Node, PlaceId, Region, RegionData, padded};
use super::retain::retain;
use crate::numeric::Routine;
use crate::op::{Algebra, MAX_ARITY, Op};

/// Builds a [`Graph`]. Blocks are visited depth first: [`Builder::enter`] opens one,
/// [`Builder::leave`] closes it and drops the facts that hold only inside.
///
/// # Examples
///
/// ```
/// use phigrad::internals::op::Op;
/// use phigrad::internals::ssa::{Builder, Folding};
///
/// let mut builder = Builder::new(1, 0, Folding::Exact);
/// let x = builder.input(0);
/// let square = builder.apply(Op::Mul, &[x, x]);
/// assert_eq!(square, builder.apply(Op::Mul, &[x, x]));
/// builder.finish_block(&[square]);
/// assert_eq!(builder.into_graph().outputs(), 1);
/// ```
///
/// For loops see [`Builder::begin_loop`].
#[derive(Debug)]
pub struct Builder {
    pub(super) graph: Appender,
    pub(super) block: Block,
    folding: Folding,
    pub(super) place: Option<PlaceId>,
    /// The facts that hold in the current block.
    pub(super) known: HashMap<Fact, Node>,
    /// For each open block, the facts to drop when it closes.
    scopes: Vec<(Block, Vec<Fact>)>,
    /// Regions that were inlined: their only block was appended to the block around.
    inlined: HashSet<Region>,
    pub(super) loops: Loops,
}

/// A fact that holds in the current block, keyed for lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fact {
    /// A node with this definition is available.
    Defined(Def),
    /// This node is visible, but must not be reused for an equal definition.
    Visible(Node),
    /// This condition has had this outcome, by a guard or by a branch above.
    Checked(Node, bool),
}

impl Builder {
    /// Starts a graph of these inputs, each of which is a node, in its root block.
    pub fn new(active: usize, inactive: usize, folding: Folding) -> Self {
        Builder::from(Appender::new(Graph::new(active, inactive)), folding)
    }

    fn from(graph: Appender, folding: Folding) -> Self {
        let block = graph.root();
        Builder {
            graph,
            block,
            folding,
            place: None,
            known: HashMap::new(),
            scopes: Vec::new(),
            inlined: HashSet::new(),
            loops: Loops::default(),
        }
    }

    /// Starts a graph with the inputs and places of `graph`. The nodes of inputs are created at
    /// once.
    pub fn of(graph: &Graph, folding: Folding) -> Self {
        let mut builder = Builder::from(Appender::like(graph), folding);
        builder.known.reserve(graph.nodes.len());
        builder
    }

    /// The graph so far. Inlined regions are still listed, but are no step.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph.
    pub fn into_graph(self) -> Graph {
        if self.inlined.is_empty() {
            return self.graph.into_graph();
        }
        retain(&self.graph, &Live::reachable(&self.graph))
    }

    /// Sets the source place of the nodes that follow.
    pub fn set_place(&mut self, place: Option<PlaceId>) {
        self.place = place;
    }

    /// The folding rules in use.
    pub fn folding(&self) -> Folding {
        self.folding
    }

    /// The node of input number `index`, active inputs before inactive ones.
    pub fn input(&mut self, index: usize) -> Node {
        self.graph.intern_input(index as u32)
    }

    /// The node of the constant `value`.
    pub fn constant(&mut self, value: f64) -> Node {
        self.graph.intern_const(value.to_bits())
    }

    /// See [`Appender::poison`].
    pub(crate) fn poison(&mut self) -> Node {
        self.graph.poison()
    }

    /// Applies `op` to `args`, as many as its arity: returns an equal visible node, a folded one,
    /// or a new one.
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
            // Constants second, so that equal sums and products have equal definitions.
            args[..2].sort_by_key(|&arg| (self.graph.constant(arg).is_some(), arg));
            args = padded(&args[..op.arity()]);
        }
        let fact = Fact::Defined(Def::Apply(op, args));
        if let Some(&node) = self.known.get(&fact) {
            return node;
        }
        let node = self.graph.push_apply(self.block, op, &args[..op.arity()], self.place);
        self.record_fact(fact, node);
        node
    }

    /// Calls `routine` with one node for each of its inputs. For its result 0 see [`Def::Call`],
    /// for the others [`Builder::result`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use phigrad::internals::numeric::Routine;
    /// use phigrad::internals::ssa::{Builder, Folding, Outcome, interpret};
    ///
    /// // x³ as a product of three factors, by a routine.
    /// let text = "affine_power inputs 1 wrt x0 : t0 = const 1.0 | \
    ///             t1 = x0 | advance 3 states 1 matrix t1 offset - start t0 outputs 0";
    /// let routine = text.parse::<Routine>()?;
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let x = builder.input(0);
    /// let accepted = builder.call(&Arc::new(routine), vec![x]);
    /// let (value, slope) = (builder.result(accepted, 1), builder.result(accepted, 2));
    /// builder.finish_block(&[accepted, value, slope]);
    /// let outputs = interpret(builder.graph(), &[2.0]);
    /// assert_eq!(outputs, Outcome::Values(vec![1.0, 8.0, 12.0]));
    /// # Ok::<(), phigrad::internals::numeric::TextError>(())
    /// ```
    pub fn call(&mut self, routine: &Arc<Routine>, args: Vec<Node>) -> Node {
        let node = self.graph.push_call(self.block, Arc::clone(routine), args, self.place);
        self.record_fact(Fact::Defined(self.graph.nodes[node].def), node);
        node
    }

    /// Result number `number` of `call`, a call in the current block. For an example see
    /// [`Builder::call`].
    pub fn result(&mut self, call: Node, number: u32) -> Node {
        let fact = Fact::Defined(Def::Result(call, number));
        if let Some(&node) = self.known.get(&fact) {
            return node;
        }
        let node = self.graph.push_result(self.block, call, number);
        self.record_fact(fact, node);
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

    /// Appends a guard that `condition` has the outcome `expect`, unless that is known.
    pub fn guard(&mut self, condition: Node, expect: bool) {
        let certain = self.graph.constant(condition).is_some_and(|c| (c != 0.0) == expect);
        let fact = Fact::Checked(condition, expect);
        if certain || self.known.contains_key(&fact) {
            return;
        }
        self.graph.blocks[self.block].items.push(Item::Guard { condition, expect });
        self.record_fact(fact, condition);
    }

    /// Assumes that `condition` has the outcome `expect` in the current block and below.
    pub(crate) fn assume(&mut self, condition: Node, expect: bool) {
        self.record_fact(Fact::Checked(condition, expect), condition);
    }

    /// The outcome of `condition`, if it is a constant or has been checked.
    pub(super) fn known_outcome(&self, condition: Node) -> Option<bool> {
        let is_known = |expect| self.known.contains_key(&Fact::Checked(condition, expect));
        match self.graph.constant(condition) {
            Some(constant) => Some(constant != 0.0),
            None => [true, false].into_iter().find(|&expect| is_known(expect)),
        }
    }

    /// Ends the current block with a branch. Returns the blocks of both arms: the one where
    /// `condition` holds, then the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{Builder, Folding, Outcome, interpret};
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

    /// Ends the current block and returns `outputs`.
    pub fn finish_block(&mut self, outputs: &[Node]) {
        self.graph.blocks[self.block].end = End::Return(SmallVec::from_slice(outputs));
    }

    /// Enters `block`, an arm of a [`Builder::branch`] of the current block. For an example see
    /// there.
    pub fn enter(&mut self, block: Block) {
        let above = self.block;
        self.scopes.push((above, Vec::new()));
        self.block = block;
        if let End::Branch { condition, then, .. } = self.graph.blocks[above].end {
            let fact = Fact::Checked(condition, block == then);
            if !self.known.contains_key(&fact) {
                self.record_fact(fact, condition);
            }
        }
    }

    /// Returns to the block above.
    pub fn leave(&mut self) {
        if let Some((above, facts)) = self.scopes.pop() {
            for fact in facts {
                self.known.remove(&fact);
            }
            self.block = above;
        }
    }

    /// Begins a region in the current block and enters its root. Its blocks are built like those
    /// of the graph; then [`Builder::end_region`] ends it. Until then the region is the last step
    /// of the current block.
    ///
    /// Nodes of a replayed region that was inlined are visible in its block; then the new region
    /// replays none.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{Builder, Folding, Outcome, interpret};
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
        let replays = replays.filter(|replayed| !self.inlined.contains(replayed));
        let region = self.graph.push_region(self.block, replays, self.place);
        self.enter(self.graph.regions[region].root);
        region
    }

    /// Ends `region`, whose leaves pass on `values` values each, and returns to its block.
    /// Returns one node for each value: its φ, or the value itself if all leaves pass on the
    /// same. For an example see [`Builder::begin_region`].
    ///
    /// A region of a single block that replays none is inlined into its block.
    pub fn end_region(&mut self, region: Region, values: usize) -> Vec<Node> {
        let &RegionData { root, replays, .. } = &self.graph.regions[region];
        if let (End::Return(passed), None) = (&self.graph.blocks[root].end, replays) {
            let passed = passed.to_vec();
            self.inline(region, root);
            return passed;
        }
        self.join(region, values)
    }

    /// Ends `region` and makes its φs.
    pub(super) fn join(&mut self, region: Region, values: usize) -> Vec<Node> {
        self.leave();
        let (conditions, nexts) = self.graph.passed_before_phis(region);
        let leaves = self.graph.leaves(self.graph.regions[region].root);
        let mut kept = vec![true; conditions + nexts];
        let mut phis: HashMap<Vec<Node>, Node> = HashMap::new();
        let mut results = Vec::with_capacity(values);
        for number in (0..values).map(|number| conditions + nexts + number) {
            let passed = |&leaf: &Block| match &self.graph.blocks[leaf].end {
                End::Return(passed) if is_value_used(&self.graph, region, passed, number) => {
                    passed.get(number).copied()
                }
                End::Return(_) | End::Branch { .. } | End::Open => None,
            };
            let passed: Vec<Node> = leaves.iter().filter_map(passed).collect();
            // F1 of the φ-calculus: φ(a, …, a) = a.
            let same = passed.first().copied().filter(|first| passed.iter().all(|p| p == first));
            let outer = same.filter(|&node| self.is_visible(node));
            kept.push(outer.is_none() && !phis.contains_key(&passed));
            results.push(match outer.or_else(|| phis.get(&passed).copied()) {
                Some(node) => node,
                None => {
                    let phi = self.graph.push_phi(region);
                    self.record_fact(Fact::Defined(self.graph.nodes[phi].def), phi);
                    phis.insert(passed, phi);
                    phi
                }
            });
        }
        for leaf in leaves {
            if let End::Return(passed) = &mut self.graph.blocks[leaf].end {
                let mut kept = kept.iter();
                passed.retain(|_| kept.next().copied().unwrap_or(true));
            }
        }
        results
    }

    /// Inlines `region`: appends the steps of `root`, its only block, to the block around.
    fn inline(&mut self, region: Region, root: Block) {
        let steps = core::mem::take(&mut self.graph.blocks[root].items);
        self.graph.blocks[root].end = End::Open;
        if let Some((above, facts)) = self.scopes.pop() {
            self.block = above;
            let items = &mut self.graph.blocks[above].items;
            items.pop();
            items.extend(steps);
            if let Some((_, known)) = self.scopes.last_mut() {
                known.extend(facts);
            }
        }
        self.inlined.insert(region);
    }

    /// Tests whether `node` is visible in the current block, other than by replaying.
    pub(super) fn is_visible(&self, node: Node) -> bool {
        match self.graph.nodes[node].def {
            Def::Input(_) | Def::Const(_) => true,
            Def::Iteration(region) => self.loops.is_counted(region),
            def => {
                self.known.get(&Fact::Defined(def)) == Some(&node)
                    || self.known.contains_key(&Fact::Visible(node))
            }
        }
    }

    pub(super) fn record_fact(&mut self, fact: Fact, node: Node) {
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
