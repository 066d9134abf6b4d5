//! The builder's methods for loops, arrays and accesses.

use super::arrays::{Access, AccessData, Array, ArrayData};
use super::build::{Builder, Fact};
use super::graph::{Def, Item, Node, Region};
use crate::entity::PrimaryMap;
use crate::op::Op;

/// The loops, arrays and accesses that the builder has made.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// The loops around the current block.
    open: Vec<Region>,
    /// The loops whose iteration number is visible: each enclosing loop, or the one that it
    /// replays.
    counted: Vec<Region>,
    /// The innermost loop around each node; new nodes are added by [`Builder::assign_loops`].
    nodes: PrimaryMap<Node, Option<Region>>,
}

impl Loops {
    pub(super) fn is_counted(&self, region: Region) -> bool {
        self.counted.contains(&region)
    }
}

impl Builder {
    /// Begins a loop of at most `bound` iterations in the current block and enters its root.
    /// Returns it with its entry φs, one for each of the initial values.
    ///
    /// Its blocks are built like those of the graph. Each leaf ends with
    /// [`Builder::finish_block`] on the condition for another iteration, the next values of the
    /// entry φs, and the results of the loop if it ends there. A loop that `replays` another
    /// passes on no condition. Then [`Builder::end_loop`] ends the loop.
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
    /// let access = AccessData { array, base: 0, strides: [(region, 1)].into_iter().collect(), changes: Default::default() };
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
        self.assign_loops();
        let region = self.graph.push_region(self.block, replays, self.place);
        let entries = self.graph.make_loop(region, bound, firsts);
        self.loops.open.push(region);
        self.loops.counted.push(replays.unwrap_or(region));
        self.assign_loops();
        self.enter(self.graph.regions[region].root);
        for &entry in &entries {
            self.record_fact(Fact::Defined(self.graph.nodes[entry].def), entry);
        }
        (region, entries)
    }

    /// Ends the loop `region`, whose leaves pass on `values` results, and returns to its block.
    /// Returns one node for each result: its φ, or the value itself if all leaves pass on the
    /// same one and it is visible outside. For an example see [`Builder::begin_loop`].
    pub fn end_loop(&mut self, region: Region, values: usize) -> Vec<Node> {
        self.assign_loops();
        self.loops.open.pop();
        self.loops.counted.pop();
        self.join(region, values)
    }

    /// The iteration number of the loop `region`, which is around the current block, or is
    /// replayed by a loop that is. For an example see [`Builder::begin_loop`].
    pub fn iteration(&mut self, region: Region) -> Node {
        let data = &self.graph.regions[region];
        if data.cycle.as_ref().is_some_and(|cycle| cycle.bound == 1) {
            return self.constant(0.0);
        }
        let counted = data.replays.unwrap_or(region);
        self.assign_loops();
        let number = self.graph.intern_iteration(counted);
        if number == self.loops.nodes.next_key() {
            self.loops.nodes.push(Some(counted));
        }
        number
    }

    /// The array with these contents: an equal one, or a new one. Accumulators and cells are always
    /// new.
    /// For an example see [`Builder::begin_loop`].
    pub fn array(&mut self, data: ArrayData) -> Array {
        self.graph.intern_array(data)
    }

    /// The element at `access`, whose loops have visible iteration numbers: an equal visible
    /// node, the only value that it can have, or a new node. For an example see
    /// [`Builder::begin_loop`].
    ///
    /// For saved values use [`Builder::saved`].
    pub fn element(&mut self, access: AccessData) -> Node {
        if let Some(node) = self.only_value(&access) {
            return node;
        }
        let is_written = self.graph.arrays[access.array].is_written();
        let access = self.access(access);
        let fact = Fact::Defined(Def::Element(access));
        if let Some(&node) = self.known.get(&fact) {
            return node;
        }
        let node = self.graph.push_element(self.block, access, self.place);
        // An element may change between two reads.
        self.record_fact(if is_written { Fact::Visible(node) } else { fact }, node);
        node
    }

    /// The saved value of `node` in one iteration of the loop `region`, a loop that has ended and
    /// replays none: the iteration whose number is `base` plus these strides. The node was
    /// visible at the end of the root of `region`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{Builder, Folding, Outcome, interpret, verify};
    ///
    /// // x, sin(x), sin(sin(x)); returns the second.
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let (x, last) = (builder.input(0), builder.constant(2.0));
    /// let (region, entries) = builder.begin_loop(3, &[x], None);
    /// let next = builder.apply(Op::Sin, &[entries[0]]);
    /// let number = builder.iteration(region);
    /// let again = builder.apply(Op::Lt, &[number, last]);
    /// builder.finish_block(&[again, next]);
    /// builder.end_loop(region, 0);
    /// let second = builder.saved(region, entries[0], 1, &[]);
    /// builder.finish_block(&[second]);
    /// assert_eq!(verify(builder.graph()), Ok(()));
    /// assert_eq!(interpret(builder.graph(), &[2.0]), Outcome::Values(vec![2.0f64.sin()]));
    /// ```
    pub fn saved(
        &mut self,
        region: Region,
        node: Node,
        base: u32,
        strides: &[(Region, i32)],
    ) -> Node {
        self.assign_loops();
        match self.graph.nodes[node].def {
            Def::Iteration(counted) if counted == region => self.index(base, strides),
            Def::Input(_) | Def::Const(_) => node,
            // A value from outside the loop is the same in all iterations.
            _ if self.loops.nodes[node] != Some(region) => node,
            _ => {
                let array = self.array(ArrayData::Saved(node));
                self.element(AccessData {
                    array,
                    base,
                    strides: strides.iter().copied().collect(),
                    changes: Default::default(),
                })
            }
        }
    }

    /// Sets the accumulators of `array` to their initial values.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, Builder, Folding, Outcome, ArrayData, interpret, verify};
    ///
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let x = builder.input(0);
    /// let array = builder.array(ArrayData::Sums(vec![Some(x), None]));
    /// let first = AccessData { array, base: 0, strides: Default::default(), changes: Default::default() };
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

    /// Adds `node` to the accumulator at `access`. For an example see [`Builder::fill`].
    pub fn accumulate(&mut self, access: AccessData, node: Node) {
        // Only -0 leaves every sum as it is, zeros included.
        let changes_nothing = |c: f64| c.to_bits() == (-0.0f64).to_bits();
        if self.graph.constant(node).is_some_and(changes_nothing) {
            return;
        }
        let access = self.access(access);
        self.graph.blocks[self.block].items.push(Item::Accumulate(access, node));
    }

    /// Stores `node` in the cell at `access`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, ArrayData, Builder, Folding, Outcome, interpret, verify};
    ///
    /// let mut builder = Builder::new(1, 0, Folding::Exact);
    /// let x = builder.input(0);
    /// let array = builder.array(ArrayData::Cells(1));
    /// let cell = AccessData { array, base: 0, strides: Default::default(), changes: Default::default() };
    /// builder.fill(array);
    /// builder.store(cell.clone(), x);
    /// let element = builder.element(cell);
    /// builder.finish_block(&[element]);
    /// assert_eq!(verify(builder.graph()), Ok(()));
    /// assert_eq!(interpret(builder.graph(), &[2.0]), Outcome::Values(vec![2.0]));
    /// ```
    pub fn store(&mut self, access: AccessData, node: Node) {
        let access = self.access(access);
        self.graph.blocks[self.block].items.push(Item::Store(access, node));
    }

    /// The only value of the element at `access`, if it has only one.
    fn only_value(&mut self, access: &AccessData) -> Option<Node> {
        let data = &self.graph.arrays[access.array];
        let is_fixed = self.normalized(access.clone()).is_fixed();
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
            ArrayData::Saved(_)
            | ArrayData::Sums(_)
            | ArrayData::Outputs { .. }
            | ArrayData::Cells(_) => None,
        }
    }

    /// The index with this base and these strides as a node.
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
        let access = self.normalized(access);
        self.graph.intern_access(access)
    }

    /// The normal form of an access: equal indices have equal accesses.
    fn normalized(&self, mut access: AccessData) -> AccessData {
        let bound = |region: Region| self.graph.regions[region].cycle.as_ref().map(|c| c.bound);
        let changes = |&mut (region, by): &mut (Region, i32)| by != 0 && bound(region) != Some(1);
        access.strides.retain(changes);
        access.strides.sort_unstable();
        access.changes.retain(changes);
        access.changes.sort_unstable();
        access
    }

    /// Records the innermost loop of all new nodes. Called before the loops around change.
    fn assign_loops(&mut self) {
        let around = self.loops.open.last().copied();
        while self.loops.nodes.len() < self.graph.nodes.len() {
            self.loops.nodes.push(around);
        }
    }
}
