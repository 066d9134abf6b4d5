//! Loops of the graph, and the arrays of values that they read and write.

use smallvec::SmallVec;

use super::graph::{Block, Def, Graph, Item, Node, NodeData, PlaceId, Region};
use super::table::Table;
use crate::entity::entity;

entity!(
    /// Values in a row, read by index.
    Array,
    "a"
);

entity!(
    /// A place in an array as a function of iteration numbers.
    Access,
    "i"
);

/// What makes a region a loop: its tree is gone through again and again.
///
/// Each end of its tree passes on `again`, then a value for each entry φ, then
/// one for each φ of the region. While `again` is not 0, the entry φs get their
/// values and the next iteration begins; otherwise the φs get theirs. A loop has
/// at least one iteration. One that wants more than `bound` iterations stops the
/// graph without a result, as a guard does.
///
/// A loop that replays another is gone through once for each iteration of that,
/// in reverse order. Its ends pass on no `again`; in each iteration it sees what
/// the other computed in that iteration. After the last one, the φs get their
/// values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The largest number of iterations; for a loop that replays, that of the other.
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

/// What an array holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ArrayData {
    /// Numbers, by their bits.
    Constants(Table),
    /// The inputs from this number on, all active or all inactive. They need no nodes.
    Inputs {
        /// The number of the first one.
        first: u32,
        /// How many there are.
        count: u32,
    },
    /// Nodes that are visible where the array is read.
    Nodes(Vec<Node>),
    /// What a node was in each iteration of its innermost loop, a loop that has
    /// ended (within the current iteration of the loops around both).
    Saved(Node),
    /// Sums that grow by accumulation. [`Item::Fill`](super::Item::Fill) sets
    /// them to these nodes, or to zero.
    Sums(Vec<Option<Node>>),
    /// Sums that begin with zero and are the outputs from this number on: each path of
    /// the graph fills them, and returns only the other outputs, in order.
    Outputs {
        /// The number of the first one.
        first: u32,
        /// How many there are.
        count: u32,
    },
}

impl ArrayData {
    /// The nodes that it refers to.
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
    /// assert!(sums.is_sums());
    /// ```
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        let (nodes, past, firsts) = match self {
            ArrayData::Constants(_) | ArrayData::Inputs { .. } | ArrayData::Outputs { .. } => {
                (&[][..], None, &[][..])
            }
            ArrayData::Nodes(nodes) => (&nodes[..], None, &[][..]),
            ArrayData::Saved(past) => (&[][..], Some(*past), &[][..]),
            ArrayData::Sums(firsts) => (&[][..], None, &firsts[..]),
        };
        nodes.iter().copied().chain(past).chain(firsts.iter().copied().flatten())
    }

    /// The same to be changed. For an example see [`ArrayData::nodes`].
    pub fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let (nodes, past, firsts) = match self {
            ArrayData::Constants(_) | ArrayData::Inputs { .. } | ArrayData::Outputs { .. } => {
                (&mut [][..], None, &mut [][..])
            }
            ArrayData::Nodes(nodes) => (&mut nodes[..], None, &mut [][..]),
            ArrayData::Saved(past) => (&mut [][..], Some(past), &mut [][..]),
            ArrayData::Sums(firsts) => (&mut [][..], None, &mut firsts[..]),
        };
        nodes.iter_mut().chain(past).chain(firsts.iter_mut().flatten())
    }

    /// Whether steps add to its elements. For an example see [`ArrayData::nodes`].
    pub fn is_sums(&self) -> bool {
        matches!(self, ArrayData::Sums(_) | ArrayData::Outputs { .. })
    }
}

/// A place in an array: `base` plus, for each stride, the current iteration
/// number of its loop times the stride.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccessData {
    /// The array.
    pub array: Array,
    /// The index when all iteration numbers are zero.
    pub base: u32,
    /// Loops whose iteration number is known here (those around, and those that
    /// are replayed by those around), with what one iteration adds to the index.
    pub strides: SmallVec<[(Region, i32); 2]>,
}

impl Graph {
    /// Makes `region` a loop of at most `bound` iterations, and returns an entry
    /// φ for each of the first values.
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
    /// // It would go on without end.
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

    /// Appends the node of the iteration number of `region`, a loop that has none yet.
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
    /// let data = AccessData { array, base: 1, strides: Default::default() };
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

    /// The entry φs of `region`, with their first values; none if it is no loop.
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

    /// Says that `region` comes from `place`, and its φs with it.
    pub(crate) fn move_region(&mut self, region: Region, place: PlaceId) {
        let entries = self.entries(region).iter().map(|entry| entry.phi);
        let phis: Vec<Node> = entries.chain(self.regions[region].phis.iter().copied()).collect();
        self.regions[region].place = Some(place);
        phis.into_iter().for_each(|phi| self.nodes[phi].place = Some(place));
    }

    /// How the values that each end of `region` passes on are used: how many say
    /// whether there is another iteration (0 or 1), how many are for its entry
    /// φs; the others are for its φs.
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
        let decides = data.cycle.is_some() && data.replays.is_none();
        (usize::from(decides), self.entries(region).len())
    }

    /// The number of elements of `array`; of a history, the bound of its loop.
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
            ArrayData::Saved(node) => {
                let cycle = nest.node_loop(*node).and_then(|l| self.regions[l].cycle.as_ref());
                cycle.map_or(0, |cycle| cycle.bound as usize)
            }
        }
    }

    /// The index that `access` has where `iteration` tells the iteration number
    /// of each loop; 0 if that is less than 0.
    pub(crate) fn index_at(&self, access: Access, iteration: impl Fn(Region) -> u32) -> usize {
        let data = &self.accesses[access];
        let steps =
            |&(region, stride): &(Region, i32)| i64::from(stride) * i64::from(iteration(region));
        let index = i64::from(data.base) + data.strides.iter().map(steps).sum::<i64>();
        usize::try_from(index).unwrap_or(0)
    }
}
