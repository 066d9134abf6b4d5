//! Loops, and the arrays that they access by index.

use smallvec::SmallVec;

use super::graph::{Block, Def, End, Graph, Item, Node, NodeData, PlaceId, Region};
use super::table::Table;
use crate::entity::entity;

entity!(
    /// An array of values that nodes read by index.
    Array,
    "a"
);

entity!(
    /// An access to an array: an index that is affine in iteration numbers.
    Access,
    "i"
);

/// A loop: a region whose tree of blocks is repeated.
///
/// Each leaf of its tree passes on `again`, then the next value of each entry φ, then one value
/// for each φ of the region. While `again` is not 0, the entry φs get their next values and
/// another iteration begins; otherwise the φs of the region get theirs. A loop has at least one
/// iteration. A loop that needs more than `bound` iterations stops the graph without a result, as
/// a guard does.
///
/// A loop that replays another has one iteration for each iteration of that loop, in reverse
/// order. Its leaves pass on no `again`. Each iteration sees the values that the replayed loop
/// computed in the same iteration. After the last one, the φs of the region get their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The largest number of iterations; the same for a replaying loop and the replayed one.
    pub bound: u32,
    /// The entry φs, in order.
    pub entries: Vec<Entry>,
}

/// An entry φ of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The φ, visible in the loop.
    pub phi: Node,
    /// Its value in the first iteration.
    pub first: Node,
}

/// The values that a leaf of a region passes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed<'a> {
    /// The condition for another iteration; `None` unless the region is a loop that replays none.
    pub(crate) again: Option<Node>,
    /// The next values of the entry φs.
    pub(crate) nexts: &'a [Node],
    /// The operands of the φs.
    pub(crate) values: &'a [Node],
}

/// The contents of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArrayData {
    /// Constants, by their bits.
    Constants(Table),
    /// Consecutive inputs, all active or all inactive. They need no nodes.
    Inputs {
        /// The number of the first input.
        first: u32,
        /// The number of elements.
        count: u32,
    },
    /// Nodes that are visible at each access.
    Nodes(Vec<Node>),
    /// The saved values of a node, one for each iteration of its innermost loop, which has ended
    /// (within the current iteration of the loops around both).
    Saved(Node),
    /// Accumulators. [`Item::Fill`](super::Item::Fill) sets them to these nodes, or to zero. No
    /// step adds to an element that another has read: the interpreter makes that a NaN.
    Sums(Vec<Option<Node>>),
    /// So many cells of memory. After [`Item::Fill`](super::Item::Fill) each is stored at most once
    /// ([`Item::Store`](super::Item::Store)), and read after that only: so a loop can read what
    /// its earlier iterations have computed.
    Cells(u32),
    /// Accumulators that begin with zero and are the outputs from this number on. Each path of
    /// the graph fills them, and returns only the other outputs, in order.
    Outputs {
        /// The number of the first output.
        first: u32,
        /// The number of elements.
        count: u32,
    },
}

impl ArrayData {
    /// The nodes that the array refers to.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{Graph, ArrayData};
    ///
    /// let x = Graph::new(1, 0).input(0);
    /// let mut sums = ArrayData::Sums(vec![None, Some(x)]);
    /// assert_eq!(sums.nodes().collect::<Vec<_>>(), [x]);
    /// assert_eq!(sums.nodes_mut().count(), 1);
    /// assert!(sums.is_sums() && sums.is_written());
    /// ```
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        let (nodes, saved, firsts) = match self {
            ArrayData::Constants(_)
            | ArrayData::Inputs { .. }
            | ArrayData::Outputs { .. }
            | ArrayData::Cells(_) => (&[][..], None, &[][..]),
            ArrayData::Nodes(nodes) => (&nodes[..], None, &[][..]),
            ArrayData::Saved(saved) => (&[][..], Some(*saved), &[][..]),
            ArrayData::Sums(firsts) => (&[][..], None, &firsts[..]),
        };
        nodes.iter().copied().chain(saved).chain(firsts.iter().copied().flatten())
    }

    /// The same nodes, mutable. For an example see [`ArrayData::nodes`].
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let (nodes, saved, firsts) = match self {
            ArrayData::Constants(_)
            | ArrayData::Inputs { .. }
            | ArrayData::Outputs { .. }
            | ArrayData::Cells(_) => (&mut [][..], None, &mut [][..]),
            ArrayData::Nodes(nodes) => (&mut nodes[..], None, &mut [][..]),
            ArrayData::Saved(saved) => (&mut [][..], Some(saved), &mut [][..]),
            ArrayData::Sums(firsts) => (&mut [][..], None, &mut firsts[..]),
        };
        nodes.iter_mut().chain(saved).chain(firsts.iter_mut().flatten())
    }

    /// Tests whether steps write its elements. For an example see [`ArrayData::nodes`].
    pub fn is_written(&self) -> bool {
        matches!(self, ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_))
    }

    /// Tests whether an equal array is another one: their elements may differ.
    pub(crate) fn has_identity(&self) -> bool {
        matches!(self, ArrayData::Sums(_) | ArrayData::Cells(_))
    }

    /// Tests whether steps accumulate into its elements. For an example see [`ArrayData::nodes`].
    pub fn is_sums(&self) -> bool {
        matches!(self, ArrayData::Sums(_) | ArrayData::Outputs { .. })
    }
}

/// The index of an access: `base` plus, for each stride, the stride times the current iteration
/// number of its loop. Strides may change: with `k` the iteration number, a change adds
/// `change · k (k − 1) / 2`, as in the rows of a packed triangle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessData {
    /// The array.
    pub array: Array,
    /// The index if all iteration numbers are zero.
    pub base: u32,
    /// The strides: loops around the access, or replayed by those, with the change of the index
    /// from one iteration to the next.
    pub strides: SmallVec<[(Region, i32); 2]>,
    /// Loops as for strides, with the change of the stride from one iteration to the next.
    pub changes: SmallVec<[(Region, i32); 1]>,
}

impl AccessData {
    /// Tests whether the index is the same in all iterations.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, ArrayData, Graph};
    ///
    /// let mut graph = Graph::new(1, 0);
    /// let array = graph.arrays.push(ArrayData::Cells(3));
    /// let (strides, changes) = Default::default();
    /// assert!(AccessData { array, base: 2, strides, changes }.is_fixed());
    /// ```
    pub fn is_fixed(&self) -> bool {
        self.strides.is_empty() && self.changes.is_empty()
    }

    /// The loops whose iteration numbers it uses, some of them twice.
    pub(crate) fn loops(&self) -> impl Iterator<Item = Region> {
        self.strides.iter().chain(&self.changes).map(|&(region, _)| region)
    }

    /// The same index with other loops, those for which there are any.
    pub(crate) fn with_loops(&self, array: Array, copy: impl Fn(Region) -> Option<Region>) -> Self {
        let copied = |&(region, by): &(Region, i32)| Some((copy(region)?, by));
        AccessData {
            array,
            base: self.base,
            strides: self.strides.iter().filter_map(copied).collect(),
            changes: self.changes.iter().filter_map(copied).collect(),
        }
    }

    /// The part of the index that the iteration number `number` of `region` gives.
    pub(crate) fn part(&self, region: Region, number: u32) -> i64 {
        let of = |parts: &[(Region, i32)]| {
            let own = parts.iter().find(|&&(other, _)| other == region);
            own.map_or(0, |&(_, by)| i64::from(by))
        };
        let number = i64::from(number);
        of(&self.strides) * number + of(&self.changes) * (number * (number - 1) / 2)
    }
}

impl Graph {
    /// Makes `region` a loop of at most `bound` iterations, and returns its entry φs, one for
    /// each of the initial values.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::op::Op;
    /// use phigrad::internals::ssa::{End, Graph, Outcome, interpret, verify};
    ///
    /// // let mut y = x; while y < 100 { y = y * y }
    /// let mut graph = Graph::new(1, 0);
    /// let (root, x) = (graph.root(), graph.input(0));
    /// let most = graph.push_const(100.0f64.to_bits());
    /// let region = graph.push_region(root, None, None);
    /// let body = graph.regions[region].root;
    /// let y = graph.make_loop(region, 10, &[x])[0];
    /// let square = graph.push_apply(body, Op::Mul, &[y, y], None);
    /// let again = graph.push_apply(body, Op::Lt, &[square, most], None);
    /// graph.blocks[body].end = End::Return([again, square, square].into_iter().collect());
    /// let last = graph.push_phi(region);
    /// graph.blocks[root].end = End::Return([last].into_iter().collect());
    /// assert_eq!(verify(&graph), Ok(()));
    /// assert_eq!(interpret(&graph, &[2.0]), Outcome::Values(vec![256.0]));
    /// // It would not terminate.
    /// assert_eq!(interpret(&graph, &[1.0]), Outcome::Unseen(again));
    /// ```
    pub fn make_loop(&mut self, region: Region, bound: u32, firsts: &[Node]) -> Vec<Node> {
        let place = self.regions[region].place;
        let numbered = firsts.iter().zip(0..);
        let entries: Vec<Entry> = numbered
            .map(|(&first, number)| {
                let phi = self.nodes.push(NodeData { def: Def::Entry(region, number), place });
                Entry { phi, first }
            })
            .collect();
        let phis = entries.iter().map(|entry| entry.phi).collect();
        self.regions[region].cycle = Some(Loop { bound, entries });
        phis
    }

    /// Appends the iteration number of `region`, a loop that has none yet.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{Def, Graph};
    ///
    /// let mut graph = Graph::new(0, 0);
    /// let region = graph.push_region(graph.root(), None, None);
    /// graph.make_loop(region, 10, &[]);
    /// let number = graph.push_iteration(region);
    /// assert_eq!(graph.nodes[number].def, Def::Iteration(region));
    /// ```
    pub fn push_iteration(&mut self, region: Region) -> Node {
        self.nodes.push(NodeData { def: Def::Iteration(region), place: None })
    }

    /// Appends the element at `access` to `block`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{AccessData, End, Graph, Outcome, ArrayData, interpret};
    ///
    /// let mut graph = Graph::new(0, 0);
    /// let root = graph.root();
    /// let numbers = [1.5f64, 2.5].map(f64::to_bits).into_iter().collect();
    /// let array = graph.arrays.push(ArrayData::Constants(numbers));
    /// let data = AccessData { array, base: 1, strides: Default::default(), changes: Default::default() };
    /// let access = graph.accesses.push(data);
    /// let element = graph.push_element(root, access, None);
    /// graph.blocks[root].end = End::Return([element].into_iter().collect());
    /// assert_eq!(interpret(&graph, &[]), Outcome::Values(vec![2.5]));
    /// ```
    pub fn push_element(&mut self, block: Block, access: Access, place: Option<PlaceId>) -> Node {
        let node = self.nodes.push(NodeData { def: Def::Element(access), place });
        self.blocks[block].items.push(Item::Node(node));
        node
    }

    /// The entry φs of `region` with their initial values; none if it is no loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::Graph;
    ///
    /// let mut graph = Graph::new(1, 0);
    /// let (region, x) = (graph.push_region(graph.root(), None, None), graph.input(0));
    /// assert!(graph.entries(region).is_empty());
    /// let entry = graph.make_loop(region, 10, &[x])[0];
    /// assert_eq!((graph.entries(region)[0].phi, graph.entries(region)[0].first), (entry, x));
    /// ```
    pub fn entries(&self, region: Region) -> &[Entry] {
        self.regions[region].cycle.as_ref().map_or(&[], |cycle| &cycle.entries)
    }

    /// Sets the source place of `region` and its φs.
    pub(crate) fn move_region(&mut self, region: Region, place: PlaceId) {
        let entries = self.entries(region).iter().map(|entry| entry.phi);
        let phis: Vec<Node> = entries.chain(self.regions[region].phis.iter().copied()).collect();
        self.regions[region].place = Some(place);
        phis.into_iter().for_each(|phi| self.nodes[phi].place = Some(place));
    }

    /// The values that `leaf`, a leaf of `region`, passes on; `None` if it is no end.
    pub(crate) fn passed(&self, region: Region, leaf: Block) -> Option<Passed<'_>> {
        let End::Return(all) = &self.blocks[leaf].end else { return None };
        let (decides, nexts) = self.passed_before_phis(region);
        let (again, rest) = all.split_at_checked(decides)?;
        let (nexts, values) = rest.split_at_checked(nexts)?;
        Some(Passed { again: again.first().copied(), nexts, values })
    }

    /// The numbers of values that each leaf of `region` passes on before those for its φs: the
    /// `again` of a loop (0 or 1), and the next values of its entry φs.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::Graph;
    ///
    /// let mut graph = Graph::new(1, 0);
    /// let (region, x) = (graph.push_region(graph.root(), None, None), graph.input(0));
    /// assert_eq!(graph.passed_before_phis(region), (0, 0));
    /// graph.make_loop(region, 10, &[x, x]);
    /// assert_eq!(graph.passed_before_phis(region), (1, 2));
    /// ```
    pub fn passed_before_phis(&self, region: Region) -> (usize, usize) {
        let data = &self.regions[region];
        let has_condition = data.cycle.is_some() && data.replays.is_none();
        (usize::from(has_condition), self.entries(region).len())
    }

    /// The largest number of iterations of `region`; 1 if it is no loop.
    pub(crate) fn bound(&self, region: Region) -> u32 {
        self.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound)
    }

    /// The number of elements of `array`; for saved values the bound of their loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::internals::ssa::{Graph, ArrayData};
    ///
    /// let mut graph = Graph::new(0, 0);
    /// let array = graph.arrays.push(ArrayData::Sums(vec![None; 3]));
    /// let nest = phigrad::internals::ssa::Nest::of(&graph);
    /// assert_eq!(graph.array_len(array, &nest), 3);
    /// ```
    pub fn array_len(&self, array: Array, nest: &super::Nest) -> usize {
        match &self.arrays[array] {
            ArrayData::Constants(numbers) => numbers.len(),
            &ArrayData::Inputs { count, .. } | &ArrayData::Outputs { count, .. } => count as usize,
            ArrayData::Nodes(nodes) => nodes.len(),
            ArrayData::Sums(firsts) => firsts.len(),
            ArrayData::Cells(count) => *count as usize,
            ArrayData::Saved(node) => {
                let cycle = nest.node_loop(*node).and_then(|l| self.regions[l].cycle.as_ref());
                cycle.map_or(0, |cycle| cycle.bound as usize)
            }
        }
    }

    /// The index of `access` for these iteration numbers; 0 if it is negative.
    pub(crate) fn index_at(&self, access: Access, iteration: impl Fn(Region) -> u32) -> usize {
        let data = &self.accesses[access];
        let steps =
            |&(region, stride): &(Region, i32)| i64::from(stride) * i64::from(iteration(region));
        let changes = |&(region, change): &(Region, i32)| {
            let number = i64::from(iteration(region));
            i64::from(change) * (number * (number - 1) / 2)
        };
        let index = i64::from(data.base)
            + data.strides.iter().map(steps).sum::<i64>()
            + data.changes.iter().map(changes).sum::<i64>();
        usize::try_from(index).unwrap_or(0)
    }
}
