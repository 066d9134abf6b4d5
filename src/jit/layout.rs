//! The layout of the scratch buffer before the spill slots: iteration numbers, array elements,
//! saved trajectories, operands and results of calls.
//!
//! A value that is used outside the loop that computes it (where the loop is replayed, or by an
//! array access) has a *trajectory*: one word for each iteration. All addresses are linear
//! functions of iteration numbers. These are at least 0 and below the bound of their loop, since
//! a loop exits before it exceeds its bound, and the verifier has checked that each access is
//! then in its array. So no address is outside its part of the buffer.

use smallvec::SmallVec;

use super::CompileError;
use super::operands::{for_each_use, is_copied, operands};
use super::single_additions::single_additions;
use crate::entity::PrimaryMap;
use crate::ssa::{Array, ArrayData, Block, Call, CallData, Def, Graph, Item, Nest, Node, Region};

/// A saved trajectory: one word for each combination of iterations of some loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trajectory {
    /// The word when all iteration numbers are 0.
    pub(super) first: u32,
    /// The stride of each loop.
    pub(super) strides: SmallVec<[(Region, u32); 2]>,
}

/// The storage of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArraySource {
    /// Constants, from this index on.
    Constants(u32),
    /// Inputs at equal distances.
    Active {
        first: u32,
        stride: i32,
    },
    Inactive {
        first: u32,
        stride: i32,
    },
    /// Words of the scratch buffer, from this one on.
    Scratch(u32),
    /// Outputs, from this one on.
    Outputs(u32),
    /// The trajectory of a node that is computed in this loop.
    Saved(Node, Region),
}

/// The addresses of everything in the scratch buffer and the constants.
pub(super) struct Layout {
    pub(super) nest: Nest,
    /// The word of the current iteration number of each loop that replays none.
    counters: PrimaryMap<Region, Option<u32>>,
    trajectories: Vec<Trajectory>,
    node_trajectories: PrimaryMap<Node, Option<u32>>,
    /// The trajectory of the last iteration number of each loop that is replayed.
    loop_trajectories: PrimaryMap<Region, Option<u32>>,
    pub(super) arrays: PrimaryMap<Array, ArraySource>,
    /// True for sums whose elements get one addition each, which have no zeros before.
    pub(super) single_additions: PrimaryMap<Array, bool>,
    /// The arrays that are copied to the buffer before each loop.
    pub(super) copied: PrimaryMap<Region, Vec<Array>>,
    /// The elements whose array is copied just before them.
    pub(super) gathers: Vec<Node>,
    pub(super) constants: Vec<f64>,
    /// The words of the operands and results of each call.
    pub(super) calls: PrimaryMap<Call, Words>,
    /// True for calls of which a partial derivative is used.
    pub(super) needs_partials: PrimaryMap<Call, bool>,
    /// The number of words.
    pub(super) words: u32,
}

/// The first words of the operands and of the results of a call.
#[derive(Clone, Copy, Default)]
pub(super) struct Words {
    pub(super) args: u32,
    pub(super) results: u32,
}

/// The largest number of words of a scratch buffer.
pub(crate) const MAX_WORDS: u64 = 1 << 27;

/// The number of values that a kernel for `graph` saves in all iterations of its loops, for loops
/// that replay them and accesses to trajectories.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::{Wanted, reverse};
/// use phigrad::internals::jit::saved_words;
/// use phigrad::internals::ssa::{Folding, parse};
///
/// // sin(sin(… sin(x) …)), up to 1000 times: each iteration saves the operand of the sine,
/// // and the loop saves its trip count.
/// let text = "graph active 1 inactive 1\nv2 = const 1.0\nv4 = iteration r0\nb0:\n  \
///             v7 = region r0 b1 bound 1000 entries v3=v0\n  return v7\nb1:\n  \
///             v5 = sin v3\n  v6 = lt v4 v1\n  return v6 v5 v5\n";
/// let graph = parse(text)?;
/// assert_eq!(saved_words(&graph), 0);
/// assert_eq!(saved_words(&reverse(&graph, Wanted::Gradient, Folding::Real)), 1001);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn saved_words(graph: &Graph) -> u64 {
    if graph.regions.values().all(|data| data.cycle.is_none()) {
        return 0;
    }
    let layout = Layout::empty(graph);
    let nodes = layout.saved_nodes(graph).into_iter();
    let nodes = nodes.map(|(node, shared)| (layout.nest.node_loop(node), shared));
    let loops = layout.saved_loops(graph).into_iter();
    let loops = loops.map(|(region, shared)| (layout.nest.loop_around(region), shared));
    let words = |(around, shared)| layout.not_shared(graph, around, shared).1;
    nodes.chain(loops).map(words).fold(0, u64::saturating_add)
}

impl Layout {
    fn empty(graph: &Graph) -> Layout {
        Layout {
            nest: Nest::of(graph),
            counters: PrimaryMap::filled(None, graph.regions.len()),
            trajectories: Vec::new(),
            node_trajectories: PrimaryMap::filled(None, graph.nodes.len()),
            loop_trajectories: PrimaryMap::filled(None, graph.regions.len()),
            arrays: PrimaryMap::new(),
            single_additions: PrimaryMap::filled(false, graph.arrays.len()),
            copied: PrimaryMap::filled(Vec::new(), graph.regions.len()),
            gathers: Vec::new(),
            constants: Vec::new(),
            calls: PrimaryMap::filled(Words::default(), graph.calls.len()),
            needs_partials: PrimaryMap::filled(false, graph.calls.len()),
            words: 0,
        }
    }

    /// The layout for `graph`, a verified graph.
    pub(super) fn of(graph: &Graph) -> Result<Layout, CompileError> {
        let mut layout = Layout::empty(graph);
        let is_loop = graph.regions.values().any(|data| data.cycle.is_some());
        if is_loop || !graph.arrays.is_empty() {
            layout.place_counters(graph)?;
            layout.place_trajectories(graph)?;
            layout.place_arrays(graph)?;
            layout.single_additions = single_additions(graph);
            layout.place_gathers(graph);
        }
        layout.place_calls(graph)?;
        Ok(layout)
    }

    /// Allocates words for the operands and results of each call.
    fn place_calls(&mut self, graph: &Graph) -> Result<(), CompileError> {
        for (call, CallData { routine, args }) in graph.calls.iter() {
            let args = self.allocate(args.len() as u64)?;
            let results = self.allocate(routine.results() as u64)?;
            self.calls[call] = Words { args, results };
        }
        for data in graph.nodes.values() {
            if let Def::Result(of, number) = data.def
                && let Def::Call(call) = graph.nodes[of].def
            {
                let routine = &graph.calls[call].routine;
                self.needs_partials[call] |= routine.is_partial(number as usize);
            }
        }
        Ok(())
    }

    /// The word of the iteration number of `region`; a loop that replays another uses its word.
    pub(super) fn counter(&self, graph: &Graph, region: Region) -> u32 {
        let counting = graph.regions[region].replays.unwrap_or(region);
        debug_assert!(self.counters[counting].is_some(), "{region} is no loop");
        self.counters[counting].unwrap_or(0)
    }

    /// The trajectory of `node`, if it has one.
    pub(super) fn trajectory(&self, node: Node) -> Option<&Trajectory> {
        self.node_trajectories[node].map(|index| &self.trajectories[index as usize])
    }

    /// The trajectory of the last iteration number of `region`, if it is replayed.
    pub(super) fn last(&self, region: Region) -> Option<&Trajectory> {
        self.loop_trajectories[region].map(|index| &self.trajectories[index as usize])
    }

    fn allocate(&mut self, words: u64) -> Result<u32, CompileError> {
        let first = self.words;
        let sum = u64::from(first).saturating_add(words);
        if sum > MAX_WORDS {
            return Err(CompileError::Scratch { words: sum });
        }
        self.words = sum as u32;
        Ok(first)
    }

    fn place_counters(&mut self, graph: &Graph) -> Result<(), CompileError> {
        for (region, data) in graph.regions.iter() {
            if data.cycle.is_some() && data.replays.is_none() {
                self.counters[region] = Some(self.allocate(1)?);
            }
        }
        Ok(())
    }

    /// The loops around, innermost first, `region` included.
    fn loops(&self, region: Option<Region>) -> impl Iterator<Item = Region> {
        core::iter::successors(region, |&region| self.nest.loop_around(region))
    }

    /// The number of loops around both.
    fn shared(&self, a: Option<Region>, b: Option<Region>) -> usize {
        let [of_a, of_b] = [a, b].map(|region| self.loops(region).collect::<SmallVec<[_; 8]>>());
        of_a.iter().rev().zip(of_b.iter().rev()).take_while(|(a, b)| a == b).count()
    }

    /// Allocates trajectories for values that are used outside their loop.
    fn place_trajectories(&mut self, graph: &Graph) -> Result<(), CompileError> {
        for (node, shared) in self.saved_nodes(graph) {
            let around = self.nest.node_loop(node);
            self.node_trajectories[node] = Some(self.allocate_trajectory(graph, around, shared)?);
        }
        for (region, shared) in self.saved_loops(graph) {
            let around = self.nest.loop_around(region);
            self.loop_trajectories[region] = Some(self.allocate_trajectory(graph, around, shared)?);
        }
        Ok(())
    }

    /// The nodes that are used outside their loop, with the number of loops around them and all
    /// their uses.
    fn saved_nodes(&self, graph: &Graph) -> Vec<(Node, usize)> {
        let mut shared: PrimaryMap<Node, Option<usize>> =
            PrimaryMap::filled(None, graph.nodes.len());
        for_each_use(graph, |node, user| {
            let has_none = matches!(graph.nodes[node].def, Def::Iteration(_));
            if let (Some(around), false) = (self.nest.node_loop(node), has_none) {
                let both = self.shared(Some(around), self.nest.block_loop(user));
                shared[node] = Some(shared[node].map_or(both, |least| least.min(both)));
            }
        });
        let around = |node: Node| self.loops(self.nest.node_loop(node)).count();
        let saved = |&(node, shared): &(Node, usize)| shared < around(node);
        shared.iter().filter_map(|(node, &shared)| Some((node, shared?))).filter(saved).collect()
    }

    /// The loops that are replayed, with the number of loops around them and all their replays.
    fn saved_loops(&self, graph: &Graph) -> Vec<(Region, usize)> {
        let mut shared: PrimaryMap<Region, Option<usize>> =
            PrimaryMap::filled(None, graph.regions.len());
        for (region, data) in graph.regions.iter() {
            if let (Some(replayed), true) = (data.replays, data.cycle.is_some()) {
                let of_both = [region, replayed].map(|region| self.nest.loop_around(region));
                let both = self.shared(of_both[0], of_both[1]);
                shared[replayed] = Some(shared[replayed].map_or(both, |least| least.min(both)));
            }
        }
        shared.iter().filter_map(|(region, &shared)| Some((region, shared?))).collect()
    }

    /// The loops around but for the `shared` outermost ones, innermost first, `around` included,
    /// and the product of their bounds.
    fn not_shared(
        &self,
        graph: &Graph,
        around: Option<Region>,
        shared: usize,
    ) -> (SmallVec<[(Region, u32); 8]>, u64) {
        let mut loops: SmallVec<[(Region, u32); 8]> =
            self.loops(around).map(|region| (region, graph.bound(region))).collect();
        loops.truncate(loops.len().saturating_sub(shared));
        let times = loops.iter().fold(1u64, |all, &(_, bound)| all.saturating_mul(bound.into()));
        (loops, times)
    }

    /// Allocates a trajectory with a word for each iteration of the loops around but for the
    /// `shared` outermost ones, `around` included.
    fn allocate_trajectory(
        &mut self,
        graph: &Graph,
        around: Option<Region>,
        shared: usize,
    ) -> Result<u32, CompileError> {
        let (loops, words) = self.not_shared(graph, around, shared);
        let first = self.allocate(words)?;
        let mut stride = 1;
        let strides = loops.iter().map(|&(region, bound)| {
            let of_one = stride;
            stride *= bound;
            (region, of_one)
        });
        let strides = strides.collect();
        self.trajectories.push(Trajectory { first, strides });
        Ok(self.trajectories.len() as u32 - 1)
    }

    fn place_arrays(&mut self, graph: &Graph) -> Result<(), CompileError> {
        let mut copied = PrimaryMap::filled(false, graph.arrays.len());
        for access in graph.accesses.values() {
            copied[access.array] |= is_copied(graph, access);
        }
        for (array, data) in graph.arrays.iter() {
            let source = match data {
                ArrayData::Constants(numbers) => {
                    let first = self.constants.len();
                    if (first + numbers.len()) as u64 > MAX_WORDS {
                        return Err(CompileError::TooLarge { size: first + numbers.len() });
                    }
                    self.constants.extend(numbers.iter().map(|&bits| f64::from_bits(bits)));
                    ArraySource::Constants(first as u32)
                }
                &ArrayData::Inputs { first, .. } => {
                    match (first as usize).checked_sub(graph.active) {
                        None => ArraySource::Active { first, stride: 1 },
                        Some(first) => ArraySource::Inactive { first: first as u32, stride: 1 },
                    }
                }
                &ArrayData::Outputs { first, .. } => ArraySource::Outputs(first),
                ArrayData::Nodes(nodes) => match inputs_in_progression(graph, nodes) {
                    Some(source) => source,
                    None if copied[array] => {
                        ArraySource::Scratch(self.allocate(nodes.len() as u64)?)
                    }
                    // Only constant indices are read, without memory.
                    None => ArraySource::Scratch(0),
                },
                ArrayData::Saved(node) => match self.nest.node_loop(*node) {
                    Some(region) => ArraySource::Saved(*node, region),
                    None => ArraySource::Scratch(0),
                },
                ArrayData::Sums(firsts) => {
                    ArraySource::Scratch(self.allocate(firsts.len() as u64)?)
                }
                &ArrayData::Cells(count) => ArraySource::Scratch(self.allocate(count.into())?),
            };
            self.arrays.push(source);
        }
        Ok(())
    }

    /// Finds for each element of a copied array the block of the copy: before the outermost
    /// loop in which its nodes do not change.
    fn place_gathers(&mut self, graph: &Graph) {
        let mut done: Vec<(Region, Array)> = Vec::new();
        for block in graph.blocks.keys() {
            for item in &graph.blocks[block].items {
                if let Item::Node(node) = *item
                    && let Def::Element(access) = graph.nodes[node].def
                    && is_copied(graph, &graph.accesses[access])
                {
                    let array = graph.accesses[access].array;
                    match self.gather_loop(graph, block, operands(graph, node)) {
                        Some(region) => done.push((region, array)),
                        None => self.gathers.push(node),
                    }
                }
            }
        }
        done.sort_unstable();
        done.dedup();
        done.into_iter().for_each(|(region, array)| self.copied[region].push(array));
        self.gathers.sort_unstable();
    }

    fn gather_loop(&self, graph: &Graph, block: Block, nodes: &[Node]) -> Option<Region> {
        // The loops in which nodes of the array change.
        let mut changing: Vec<Region> = Vec::new();
        for &node in nodes {
            changing.extend(self.loops(self.nest.node_loop(node)));
        }
        changing.sort_unstable();
        changing.dedup();
        let loops = self.loops(self.nest.block_loop(block));
        let steady = loops.take_while(|&region| {
            let counting = graph.regions[region].replays.unwrap_or(region);
            changing.binary_search(&region).is_err() && changing.binary_search(&counting).is_err()
        });
        steady.last()
    }
}

/// The storage of `nodes` if they are active or inactive inputs at equal distances.
pub(super) fn inputs_in_progression(graph: &Graph, nodes: &[Node]) -> Option<ArraySource> {
    let number = |node: Node| match graph.nodes[node].def {
        Def::Input(number) => Some(i64::from(number)),
        _ => None,
    };
    let first = number(*nodes.first()?)?;
    let stride = match nodes.get(1) {
        Some(&second) => number(second)? - first,
        None => 0,
    };
    let is_active = |number: i64| (number as usize) < graph.active;
    for (&node, index) in nodes.iter().zip(0..) {
        let found = number(node)?;
        if found != first + stride * index || is_active(found) != is_active(first) {
            return None;
        }
    }
    let stride = i32::try_from(stride).ok()?;
    Some(match is_active(first) {
        true => ArraySource::Active { first: first as u32, stride },
        false => ArraySource::Inactive { first: (first as usize - graph.active) as u32, stride },
    })
}
