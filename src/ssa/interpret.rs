//! The interpreter: the reference semantics of a graph, slow and obvious. It is the oracle of
//! every other executor.
//!
//! Each node keeps its latest value, so a replaying region finds the values of the replayed one.
//! The values of each iteration of a loop are saved if an array or a replaying loop reads them;
//! the replaying loop restores them, one iteration after the other.

use super::analysis::Nest;
use super::arrays::{Access, Array, ArrayData};
use super::graph::{Block, Call, CallData, Def, End, Graph, Item, Node, Region};
use crate::entity::{Entity, PrimaryMap};
use crate::op::{MAX_ARITY, Op, eval};

/// The outcome of running a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// These outputs.
    Values(Vec<f64>),
    /// Stopped at a guard on this condition, or in a loop that exceeded its bound because of this
    /// condition.
    Unseen(Node),
}

/// Runs `graph`, a verified graph, on `inputs`, active before inactive; missing inputs are NaN.
///
/// A saved value of an iteration that the loop did not have is NaN here; it is unspecified in
/// other executors.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::{Outcome, interpret, parse};
///
/// let text = "graph active 1 inactive 0\nv1 = const 0\nb0:\n  v2 = gt v0 v1\n  guard v2\n  return v0\n";
/// let graph = parse(text)?;
/// assert_eq!(interpret(&graph, &[2.0]), Outcome::Values(vec![2.0]));
/// assert!(matches!(interpret(&graph, &[-2.0]), Outcome::Unseen(_)));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn interpret(graph: &Graph, inputs: &[f64]) -> Outcome {
    match interpret_with(graph, inputs) {
        Ok(outputs) => Outcome::Values(outputs),
        Err(condition) => Outcome::Unseen(condition),
    }
}

/// The numbers that the interpreter computes with.
pub(crate) trait Number: Copy {
    /// A constant.
    fn constant(value: f64) -> Self;

    /// Applies `op` to `args`; operands beyond the arity are ignored.
    fn apply(op: Op, args: [Self; MAX_ARITY]) -> Self;

    /// Tests whether a condition holds.
    fn holds(self) -> bool;

    /// The nearest `f64`, the operand type of routines.
    fn number(self) -> f64;
}

impl Number for f64 {
    fn constant(value: f64) -> f64 {
        value
    }

    #[inline]
    fn apply(op: Op, args: [f64; MAX_ARITY]) -> f64 {
        eval(op, args)
    }

    fn holds(self) -> bool {
        self != 0.0
    }

    fn number(self) -> f64 {
        self
    }
}

/// Like [`interpret`], with other numbers; on failure the condition at which it stopped.
pub(crate) fn interpret_with<N: Number>(graph: &Graph, inputs: &[N]) -> Result<Vec<N>, Node> {
    // Only a condition stops it.
    interpret_while(graph, inputs, |_| true).map_err(|stop| stop.unwrap_or(Node::from_index(0)))
}

/// Like [`interpret_with`], as long as `goes_on` returns true for each block that is entered;
/// otherwise `Err(None)`.
pub(super) fn interpret_while<N: Number>(
    graph: &Graph,
    inputs: &[N],
    mut goes_on: impl FnMut(Block) -> bool,
) -> Result<Vec<N>, Option<Node>> {
    let mut execution = Execution::new(graph, inputs);
    let mut at = Position { block: graph.root(), next: 0 };
    // The positions after the enclosing regions, with the regions.
    let mut around: Vec<(Position, Region)> = Vec::new();
    // The values passed on; reused, so that an iteration allocates nothing.
    let mut passed_on: Vec<N> = Vec::new();
    'blocks: loop {
        if at.next == 0 && !goes_on(at.block) {
            return Err(None);
        }
        let data = &graph.blocks[at.block];
        for &item in &data.items[at.next..] {
            at.next += 1;
            match item {
                Item::Node(node) => execution.compute(node),
                Item::Guard { condition, expect } => {
                    if execution.values[condition].holds() != expect {
                        return Err(Some(condition));
                    }
                }
                Item::Region(region) => {
                    around.push((at, region));
                    execution.begin(region);
                    at = Position { block: graph.regions[region].root, next: 0 };
                    continue 'blocks;
                }
                Item::Fill(array) => execution.fill(array),
                Item::Accumulate(access, node) => execution.accumulate(access, node),
                Item::Store(access, node) => execution.store(access, node),
            }
        }
        match &data.end {
            End::Return(passed) => {
                passed_on.clear();
                passed_on.extend(passed.iter().map(|&node| execution.values[node]));
                let Some((after, region)) = around.pop() else {
                    return Ok(execution.outputs(passed_on));
                };
                match execution.pass_on(region, &passed_on) {
                    Next::After => at = after,
                    Next::Again => {
                        around.push((after, region));
                        at = Position { block: graph.regions[region].root, next: 0 };
                    }
                    // The first value is the condition for another iteration.
                    Next::TooMany => return Err(Some(passed[0])),
                }
            }
            End::Branch { condition, then, otherwise } => {
                let block = if execution.values[*condition].holds() { *then } else { *otherwise };
                at = Position { block, next: 0 };
            }
            // The verifier rejects open blocks.
            End::Open => return Err(Some(Node::from_index(0))),
        }
    }
}

/// A block and the number of its next item.
#[derive(Clone, Copy)]
struct Position {
    block: Block,
    next: usize,
}

/// The continuation at a leaf of a region.
enum Next {
    After,
    Again,
    TooMany,
}

/// The values to save in each iteration of a loop.
#[derive(Clone, Default)]
struct SavedNodes {
    /// True if an array or a replaying loop reads them.
    is_read: bool,
    /// The nodes with a value in each iteration.
    nodes: Vec<Node>,
    /// The loops directly inside the loop.
    loops: Vec<Region>,
}

/// The saved values of an iteration, in the order of [`SavedNodes`].
struct SavedIteration<N> {
    values: Vec<N>,
    /// The iterations of each inner loop.
    trajectories: Vec<Trajectory>,
}

/// The iterations of a loop, as indices into [`Execution::iterations`].
type Trajectory = Vec<usize>;

/// The state of a run.
struct Execution<'a, N> {
    graph: &'a Graph,
    inputs: &'a [N],
    saved_nodes: PrimaryMap<Region, SavedNodes>,
    /// The loop that saves each node, and the index of the node in its list.
    saved_at: PrimaryMap<Node, Option<(Region, usize)>>,
    /// The node of each loop's iteration number.
    numbers: PrimaryMap<Region, Option<Node>>,
    /// The latest value of each node.
    values: PrimaryMap<Node, N>,
    /// The current iteration number of each loop.
    iterations: PrimaryMap<Region, u32>,
    /// The elements of arrays that steps write.
    written: PrimaryMap<Array, Vec<N>>,
    /// True for elements of these that must not be written again: sums that have been read, and
    /// cells that have been stored.
    are_final: PrimaryMap<Array, Vec<bool>>,
    /// The latest results of each call.
    results: PrimaryMap<Call, Vec<f64>>,
    /// All saved iterations.
    saved: Vec<SavedIteration<N>>,
    /// The latest trajectory of each loop.
    trajectories: PrimaryMap<Region, Trajectory>,
}

impl<'a, N: Number> Execution<'a, N> {
    fn new(graph: &'a Graph, inputs: &'a [N]) -> Self {
        let unknown = N::constant(f64::NAN);
        let mut values: PrimaryMap<Node, N> = PrimaryMap::filled(unknown, graph.nodes.len());
        let mut numbers = PrimaryMap::filled(None, graph.regions.len());
        for (node, data) in graph.nodes.iter() {
            match data.def {
                Def::Input(i) => values[node] = inputs.get(i as usize).copied().unwrap_or(unknown),
                Def::Const(bits) => values[node] = N::constant(f64::from_bits(bits)),
                Def::Iteration(region) => numbers[region] = Some(node),
                Def::Apply(..)
                | Def::Phi(..)
                | Def::Entry(..)
                | Def::Element(_)
                | Def::Call(_)
                | Def::Result(..) => {}
            }
        }
        let saved_nodes = saved_nodes(graph);
        let mut saved_at = PrimaryMap::filled(None, graph.nodes.len());
        for (region, saved_nodes) in saved_nodes.iter() {
            for (place, &node) in saved_nodes.nodes.iter().enumerate() {
                saved_at[node] = Some((region, place));
            }
        }
        Execution {
            graph,
            inputs,
            saved_nodes,
            saved_at,
            numbers,
            values,
            iterations: PrimaryMap::filled(0, graph.regions.len()),
            written: graph.arrays.values().map(|_| Vec::new()).collect(),
            are_final: graph.arrays.values().map(|_| Vec::new()).collect(),
            results: graph.calls.values().map(|_| Vec::new()).collect(),
            saved: Vec::new(),
            trajectories: PrimaryMap::filled(Vec::new(), graph.regions.len()),
        }
    }

    #[inline]
    fn compute(&mut self, node: Node) {
        match self.graph.nodes[node].def {
            Def::Apply(op, [a, b, c]) => {
                let values = &self.values;
                self.values[node] = N::apply(op, [values[a], values[b], values[c]]);
            }
            Def::Element(access) => {
                let unknown = || N::constant(f64::NAN);
                self.values[node] = self.element(access).unwrap_or_else(unknown);
                let array = self.graph.accesses[access].array;
                if self.graph.arrays[array].is_sums() {
                    self.set_final(array, self.index(access));
                }
            }
            Def::Call(call) => self.call(node, call),
            Def::Result(of, number) => {
                let Def::Call(call) = self.graph.nodes[of].def else { return };
                let result = self.results[call].get(number as usize).copied();
                self.values[node] = N::constant(result.unwrap_or(f64::NAN));
            }
            _ => {}
        }
    }

    fn call(&mut self, node: Node, call: Call) {
        let CallData { routine, args } = &self.graph.calls[call];
        let args: Vec<f64> = args.iter().map(|&arg| self.values[arg].number()).collect();
        let results = &mut self.results[call];
        results.resize(routine.results(), f64::NAN);
        routine.run(&args, true, results);
        self.values[node] = N::constant(results.first().copied().unwrap_or(f64::NAN));
    }

    fn element(&self, access: Access) -> Option<N> {
        let index = self.index(access);
        match &self.graph.arrays[self.graph.accesses[access].array] {
            ArrayData::Constants(numbers) => {
                numbers.get(index).map(|&bits| N::constant(f64::from_bits(bits)))
            }
            ArrayData::Nodes(nodes) => nodes.get(index).map(|&node| self.values[node]),
            &ArrayData::Inputs { first, count } => {
                let index = Some(index).filter(|&index| index < count as usize)?;
                self.inputs.get(first as usize + index).copied()
            }
            ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => {
                self.written[self.graph.accesses[access].array].get(index).copied()
            }
            ArrayData::Saved(node) => {
                let (region, place) = self.saved_at[*node]?;
                let iteration = self.trajectories[region].get(index)?;
                self.saved[*iteration].values.get(place).copied()
            }
        }
    }

    fn index(&self, access: Access) -> usize {
        self.graph.index_at(access, |region| self.iterations[region])
    }

    fn fill(&mut self, array: Array) {
        match &self.graph.arrays[array] {
            ArrayData::Sums(firsts) => {
                let first = |first: &Option<Node>| {
                    first.map_or_else(|| N::constant(0.0), |node| self.values[node])
                };
                self.written[array] = firsts.iter().map(first).collect();
            }
            ArrayData::Outputs { count, .. } => {
                self.written[array] = vec![N::constant(0.0); *count as usize];
            }
            ArrayData::Cells(count) => {
                self.written[array] = vec![N::constant(f64::NAN); *count as usize];
            }
            _ => {}
        }
        self.are_final[array] = vec![false; self.written[array].len()];
    }

    /// Marks an element that must not be written again; returns true if it was marked before.
    fn set_final(&mut self, array: Array, index: usize) -> bool {
        let element = self.are_final[array].get_mut(index);
        element.is_some_and(|is_final| core::mem::replace(is_final, true))
    }

    /// The outputs: the values that a path returns, merged with those in arrays.
    fn outputs(&self, returned: Vec<N>) -> Vec<N> {
        let (mut returned, mut outputs) = (returned.into_iter(), Vec::new());
        for (array, first, _) in self.graph.output_arrays() {
            let before = (first as usize).saturating_sub(outputs.len());
            outputs.extend(returned.by_ref().take(before));
            outputs.extend(&self.written[array]);
        }
        outputs.extend(returned);
        outputs
    }

    fn accumulate(&mut self, access: Access, node: Node) {
        let index = self.index(access);
        let array = self.graph.accesses[access].array;
        let is_final = self.are_final[array].get(index) == Some(&true);
        if let Some(sum) = self.written[array].get_mut(index) {
            let added = if is_final { N::constant(f64::NAN) } else { self.values[node] };
            *sum = N::apply(Op::Add, [*sum, added, added]);
        }
    }

    fn store(&mut self, access: Access, node: Node) {
        let (index, stored) = (self.index(access), self.values[node]);
        let array = self.graph.accesses[access].array;
        let is_final = self.set_final(array, index);
        if let Some(cell) = self.written[array].get_mut(index) {
            *cell = if is_final { N::constant(f64::NAN) } else { stored };
        }
    }

    fn begin(&mut self, region: Region) {
        let graph = self.graph;
        if graph.regions[region].cycle.is_none() {
            return;
        }
        for entry in graph.entries(region) {
            self.values[entry.phi] = self.values[entry.first];
        }
        match graph.regions[region].replays {
            None => {
                self.trajectories[region].clear();
                self.set_iteration(region, 0);
            }
            Some(replayed) => {
                let count = self.trajectories[replayed].len();
                self.restore(region, replayed, count.saturating_sub(1));
            }
        }
    }

    /// Passes on the values of a leaf of `region`; returns the continuation.
    fn pass_on(&mut self, region: Region, passed: &[N]) -> Next {
        let data = &self.graph.regions[region];
        let (conditions, nexts) = self.graph.passed_before_phis(region);
        let (before, phis) = passed.split_at(conditions + nexts);
        let (conditions, nexts) = before.split_at(conditions);
        let iteration = self.iterations[region];
        let again = match (&data.cycle, data.replays) {
            (None, _) => false,
            (Some(_), Some(_)) => iteration > 0,
            (Some(cycle), None) => {
                self.save(region);
                let again = conditions.iter().any(|again| again.holds());
                if again && iteration + 1 >= cycle.bound {
                    return Next::TooMany;
                }
                again
            }
        };
        if !again {
            data.phis.iter().zip(phis).for_each(|(&phi, &value)| self.values[phi] = value);
            return Next::After;
        }
        match data.replays {
            None => self.set_iteration(region, iteration + 1),
            Some(replayed) => self.restore(region, replayed, iteration as usize - 1),
        }
        let entries = self.graph.entries(region).iter().zip(nexts.iter().copied());
        entries.for_each(|(entry, next)| self.values[entry.phi] = next);
        Next::Again
    }

    fn set_iteration(&mut self, region: Region, number: u32) {
        self.iterations[region] = number;
        if let Some(node) = self.numbers[region] {
            self.values[node] = N::constant(f64::from(number));
        }
    }

    /// Saves the current iteration of `region`.
    fn save(&mut self, region: Region) {
        let saved_nodes = &self.saved_nodes[region];
        if !saved_nodes.is_read {
            return;
        }
        let values = saved_nodes.nodes.iter().map(|&node| self.values[node]).collect();
        let trajectories =
            saved_nodes.loops.iter().map(|&inner| self.trajectories[inner].clone()).collect();
        self.trajectories[region].push(self.saved.len());
        self.saved.push(SavedIteration { values, trajectories });
    }

    /// Restores iteration `index` of `replayed` for `region`.
    fn restore(&mut self, region: Region, replayed: Region, index: usize) {
        let (saved_nodes, iteration) =
            (&self.saved_nodes[replayed], self.trajectories[replayed].get(index));
        let Some(iteration) = iteration.map(|&iteration| &self.saved[iteration]) else { return };
        saved_nodes
            .nodes
            .iter()
            .zip(&iteration.values)
            .for_each(|(&node, &v)| self.values[node] = v);
        for (&inner, trajectory) in saved_nodes.loops.iter().zip(&iteration.trajectories) {
            self.trajectories[inner].clone_from(trajectory);
        }
        self.iterations[replayed] = index as u32;
        self.iterations[region] = index as u32;
    }
}

/// The nodes and inner loops to save for each loop.
fn saved_nodes(graph: &Graph) -> PrimaryMap<Region, SavedNodes> {
    let nest = Nest::of(graph);
    let mut saved_nodes = PrimaryMap::filled(SavedNodes::default(), graph.regions.len());
    for (region, data) in graph.regions.iter() {
        if let Some(replayed) = data.replays {
            saved_nodes[replayed].is_read = true;
        }
        if let (Some(around), true) = (nest.loop_around(region), data.cycle.is_some()) {
            saved_nodes[around].loops.push(region);
        }
    }
    for array in graph.arrays.values() {
        if let ArrayData::Saved(node) = array
            && let Some(region) = nest.node_loop(*node)
        {
            saved_nodes[region].is_read = true;
        }
    }
    for node in graph.nodes.keys() {
        if let Some(around) = nest.node_loop(node) {
            saved_nodes[around].nodes.push(node);
        }
    }
    saved_nodes
}
