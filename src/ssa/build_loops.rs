//! The part of the builder that makes loops, and arrays and accesses for them.

use super::arrays::{Access, AccessData, Array, ArrayData};
use super::build::{Builder, Fact};
use super::graph::{Def, Item, Node, Region};
use crate::entity::PrimaryMap;
use crate::op::Op;
use hashbrown::HashMap;

/// What the builder knows of loops.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// The loops around the current block.
    open: Vec<Region>,
    /// The loops whose iteration number is known here: for each of those around,
    /// itself or what it replays.
    counted: Vec<Region>,
    /// For each loop the node of its iteration number.
    numbers: HashMap<Region, Node>,
    /// For each node, as far as the list goes, the innermost loop that it is in.
    nodes: PrimaryMap<Node, Option<Region>>,
    arrays: HashMap<ArrayData, Array>,
    accesses: HashMap<AccessData, Access>,
}

impl Loops {
    pub(super) fn is_counted(&self, region: Region) -> bool {
        self.counted.contains(&region)
    }
}

impl Builder {
    /// Begins a loop of at most `bound` iterations in the current block and goes
    /// into its root. Returns it with an entry φ for each of the first values.
    ///
    /// Its blocks are built like those of the graph. At each of its ends
    /// [`Builder::finish_block`] gets the node that decides whether there is
    /// another iteration, the next values of the entry φs, and what the loop
    /// comes to if it ends there; without the first one if `replays` says which
    /// loop it goes through backwards. Then [`Builder::end_loop`] ends it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{AccessData, Builder, Folding, Outcome, ArrayData, interpret, verify};
    ///
    /// // The sum of 1·x, 2·x and 5·x.
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let (x, zero, last) = (builder.input(0), builder.constant(0.0), builder.constant(2.0));
    /// let numbers = [1.0f64, 2.0, 5.0].map(f64::to_bits).into_iter().collect();
    /// let array = builder.array(ArrayData::Constants(numbers));
    /// let (region, entries) = builder.begin_loop(3, &[zero], None);
    /// let access = AccessData { array, base: 0, strides: [(region, 1)].into_iter().collect() };
    /// let factor = builder.element(access);
    /// let term = builder.apply(Op::Mul, &[factor, x]);
    /// let sum = builder.apply(Op::Add, &[entries[0], term]);
    /// let number = builder.iteration(region);
    /// let again = builder.apply(Op::Lt, &[number, last]);
    /// builder.finish_block(&[again, sum, sum]);
    /// let sum = builder.end_loop(region, 1)[0];
    /// builder.finish_block(&[sum]);
    /// let graph = builder.into_graph();
    /// assert_eq!(verify(&graph), Ok(()));
    /// assert_eq!(interpret(&graph, &[10.0]), Outcome::Values(vec![80.0]));
    /// ```
    pub fn begin_loop(
        &mut self,
        bound: u32,
        firsts: &[Node],
        replays: Option<Region>,
    ) -> (Region, Vec<Node>) {
        self.settle();
        let region = self.graph.push_region(self.block, replays, self.place);
        let entries = self.graph.make_loop(region, bound, firsts);
        self.loops.open.push(region);
        self.loops.counted.push(replays.unwrap_or(region));
        self.settle();
        self.enter(self.graph.regions[region].root);
        for &entry in &entries {
            self.record_fact(Fact::Defined(self.graph.nodes[entry].def), entry);
        }
        (region, entries)
    }

    /// Ends the loop `region`, whose ends pass on `values` values besides what is
    /// for its next iteration, and goes back to its block. Returns what comes out
    /// of it, one node for each value: its φ, or, where all ends pass on the same
    /// that is visible outside, that. For an example see [`Builder::begin_loop`].
    pub fn end_loop(&mut self, region: Region, values: usize) -> Vec<Node> {
        self.settle();
        self.loops.open.pop();
        self.loops.counted.pop();
        self.join(region, values)
    }

    /// The number of the current iteration of the loop `region`, which is around
    /// or is replayed by one that is. For an example see [`Builder::begin_loop`].
    pub fn iteration(&mut self, region: Region) -> Node {
        let data = &self.graph.regions[region];
        if data.cycle.as_ref().is_some_and(|cycle| cycle.bound == 1) {
            return self.constant(0.0);
        }
        let counted = data.replays.unwrap_or(region);
        if let Some(&number) = self.loops.numbers.get(&counted) {
            return number;
        }
        self.settle();
        let number = self.graph.push_iteration(counted);
        self.loops.nodes.push(Some(counted));
        self.loops.numbers.insert(counted, number);
        number
    }

    /// The array of these values: an equal one, or a new one. Sums are new each
    /// time. For an example see [`Builder::begin_loop`].
    pub fn array(&mut self, data: ArrayData) -> Array {
        if matches!(data, ArrayData::Sums(_)) {
            return self.graph.arrays.push(data);
        }
        let known = self.loops.arrays.entry(data);
        *known.or_insert_with_key(|data| self.graph.arrays.push(data.clone()))
    }

    /// The element at `access`, of whose loops the iteration numbers are known
    /// here: an equal one that is visible, what it always is, or a new one. For an
    /// example see [`Builder::begin_loop`].
    ///
    /// For the elements of a history [`Builder::past`] is the better way.
    pub fn element(&mut self, access: AccessData) -> Node {
        if let Some(node) = self.always(&access) {
            return node;
        }
        let is_sums = self.graph.arrays[access.array].is_sums();
        let access = self.access(access);
        let fact = Fact::Defined(Def::Element(access));
        if let Some(&node) = self.known.get(&fact) {
            return node;
        }
        let node = self.graph.push_element(self.block, access, self.place);
        // The same sum is another number after a step that adds to it.
        self.record_fact(if is_sums { Fact::Visible(node) } else { fact }, node);
        node
    }

    /// What `node` was in an iteration of the loop `region`, a loop that has ended
    /// and replays none: that whose number has this base and these strides. The
    /// node is one that was visible at the end of the root of `region`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{Builder, Folding, Outcome, interpret, verify};
    ///
    /// // x, sin(x), sin(sin(x)); in the end the second of them.
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let (x, last) = (builder.input(0), builder.constant(2.0));
    /// let (region, entries) = builder.begin_loop(3, &[x], None);
    /// let next = builder.apply(Op::Sin, &[entries[0]]);
    /// let number = builder.iteration(region);
    /// let again = builder.apply(Op::Lt, &[number, last]);
    /// builder.finish_block(&[again, next]);
    /// builder.end_loop(region, 0);
    /// let second = builder.past(region, entries[0], 1, &[]);
    /// builder.finish_block(&[second]);
    /// assert_eq!(verify(builder.graph()), Ok(()));
    /// assert_eq!(interpret(builder.graph(), &[2.0]), Outcome::Values(vec![2.0f64.sin()]));
    /// ```
    pub fn past(
        &mut self,
        region: Region,
        node: Node,
        base: u32,
        strides: &[(Region, i32)],
    ) -> Node {
        self.settle();
        match self.graph.nodes[node].def {
            Def::Iteration(counted) if counted == region => self.index(base, strides),
            Def::Input(_) | Def::Const(_) => node,
            // What comes from outside is the same in all iterations.
            _ if self.loops.nodes[node] != Some(region) => node,
            _ => {
                let array = self.array(ArrayData::Saved(node));
                self.element(AccessData { array, base, strides: strides.iter().copied().collect() })
            }
        }
    }

    /// Sets the sums of `array` to their first values.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, Builder, Folding, Outcome, ArrayData, interpret, verify};
    ///
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let x = builder.input(0);
    /// let array = builder.array(ArrayData::Sums(vec![Some(x), None]));
    /// let first = AccessData { array, base: 0, strides: Default::default() };
    /// builder.fill(array);
    /// builder.accumulate(first.clone(), x);
    /// builder.accumulate(first.clone(), x);
    /// let sum = builder.element(first);
    /// builder.finish_block(&[sum]);
    /// assert_eq!(verify(builder.graph()), Ok(()));
    /// assert_eq!(interpret(builder.graph(), &[2.0]), Outcome::Values(vec![6.0]));
    /// ```
    pub fn fill(&mut self, array: Array) {
        self.graph.blocks[self.block].items.push(Item::Fill(array));
    }

    /// Adds `node` to the sum at `access`. For an example see [`Builder::fill`].
    pub fn accumulate(&mut self, access: AccessData, node: Node) {
        // Nothing else can be added without a change to a zero.
        let changes_nothing = |c: f64| c.to_bits() == (-0.0f64).to_bits();
        if self.graph.constant(node).is_some_and(changes_nothing) {
            return;
        }
        let access = self.access(access);
        self.graph.blocks[self.block].items.push(Item::Accumulate(access, node));
    }

    /// What the element at `access` is, if that is a node.
    fn always(&mut self, access: &AccessData) -> Option<Node> {
        let data = &self.graph.arrays[access.array];
        let is_fixed = self.normal(access.clone()).strides.is_empty();
        let base = access.base as usize;
        match data {
            ArrayData::Constants(numbers) => {
                let number = *numbers.get(base)?;
                let same = is_fixed || numbers.is_uniform();
                same.then(|| self.constant(f64::from_bits(number)))
            }
            &ArrayData::Inputs { first, count } => {
                let same = (is_fixed || count == 1) && access.base < count;
                same.then(|| self.input(first as usize + base))
            }
            ArrayData::Nodes(nodes) => {
                let node = *nodes.get(base)?;
                (is_fixed || nodes.iter().all(|&other| other == node)).then_some(node)
            }
            ArrayData::Saved(_) | ArrayData::Sums(_) | ArrayData::Outputs { .. } => None,
        }
    }

    /// An index of this base and these strides as a node.
    pub(super) fn index(&mut self, base: u32, strides: &[(Region, i32)]) -> Node {
        let mut index = self.constant(f64::from(base));
        for &(region, stride) in strides {
            let (number, stride) = (self.iteration(region), self.constant(f64::from(stride)));
            let step = self.apply(Op::Mul, &[number, stride]);
            index = self.apply(Op::Add, &[index, step]);
        }
        index
    }

    fn access(&mut self, access: AccessData) -> Access {
        let known = self.loops.accesses.entry(self.normal(access));
        *known.or_insert_with_key(|data| self.graph.accesses.push(data.clone()))
    }

    /// The one of all accesses to the same that the graph has.
    fn normal(&self, mut access: AccessData) -> AccessData {
        let bound = |region: Region| self.graph.regions[region].cycle.as_ref().map(|c| c.bound);
        access.strides.retain(|&mut (region, stride)| stride != 0 && bound(region) != Some(1));
        access.strides.sort_unstable();
        access
    }

    /// Notes the loop of all new nodes; before the loops around change.
    fn settle(&mut self) {
        let around = self.loops.open.last().copied();
        while self.loops.nodes.len() < self.graph.nodes.len() {
            self.loops.nodes.push(around);
        }
    }
}
