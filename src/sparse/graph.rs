//! Patterns from the graph: of all paths that a kernel may take.
//!
//! The graph is executed on dependences: both arms of a branch, and loops iteration by iteration,
//! so that an access to an array depends on one element. A loop of too many steps is not executed:
//! each value that leaves it is taken for any function of all that the loop reads; so is a custom
//! operation. A graph with steps that a recorded one has not, such as closed forms, gets a pattern
//! with all entries.

use hashbrown::HashMap;

use super::dependences::{Dependences, MAX_ENTRIES, NONE, TooDense, Value};
use super::kind::MatrixKind;
use super::pattern::Pattern;
use crate::entity::PrimaryMap;
use crate::op::{MAX_ARITY, Op, eval};
use crate::ssa::{
    Access, ArrayData, Block, Def, End, Graph, Item, Nest, Node, Region, phi_operands,
};

/// The number of steps that are executed for the pattern of a kernel, in all iterations.
pub(crate) const MAX_STEPS: u64 = 1 << 22;

/// The pattern of the matrix of this kind for the function that `graph` computes, over all
/// of its paths. At most `max_steps` steps are executed, in all iterations.
///
/// # Errors
///
/// When the pattern is too large.
///
/// # Examples
///
/// ```
/// use phigrad::internals::sparse::{MatrixKind, pattern_of_graph};
/// use phigrad::internals::ssa::parse;
///
/// // x₀ + x₁·x₂
/// let text = "graph active 3 inactive 0\nb0:\n  v3 = mul v1 v2\n  v4 = add v0 v3\n  return v4\n";
/// let pattern = pattern_of_graph(&parse(text)?, MatrixKind::Hessian, 100)?;
/// assert_eq!([0, 1, 2].map(|row| pattern.row(row)), [&[][..], &[2], &[1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pattern_of_graph(
    graph: &Graph,
    kind: MatrixKind,
    max_steps: u64,
) -> Result<Pattern, TooDense> {
    let inputs = graph.active + graph.inactive;
    let ranges = kind.ranges(graph.active, inputs);
    let (rows, columns) = (ranges.rows.len(), ranges.columns.len());
    let mut execution = Execution::new(graph, Dependences::new(ranges), max_steps);
    match execution.outputs() {
        Some(output) => kind.pattern(execution.dependences, output, inputs),
        None if rows.saturating_mul(columns) > MAX_ENTRIES => Err(TooDense),
        None => Ok(Pattern::dense(rows, columns)),
    }
}

/// The facts about a node.
#[derive(Clone, Copy)]
struct Known {
    value: Value,
    constant: Option<f64>,
}

impl Known {
    const NOTHING: Known = Known { value: NONE, constant: None };

    /// A number that is the same for all inputs.
    fn constant(number: f64) -> Known {
        Known { value: NONE, constant: Some(number) }
    }
}

/// The facts about a node in the iterations of its loop.
enum SavedValues {
    Each(Vec<Known>),
    /// The same in all of them.
    Any(Known),
}

struct Execution<'a> {
    graph: &'a Graph,
    nest: Nest,
    dependences: Dependences,
    known: PrimaryMap<Node, Known>,
    /// The current iteration number of each loop.
    iterations: PrimaryMap<Region, u32>,
    /// The node of each loop's iteration number.
    numbers: PrimaryMap<Region, Option<Node>>,
    /// The nodes of each loop whose values in all iterations an array has.
    saved: PrimaryMap<Region, Vec<Node>>,
    /// These values, of the latest run of the loop.
    saved_values: HashMap<Node, SavedValues>,
    /// The loops that are executed.
    executed: PrimaryMap<Region, bool>,
}

impl<'a> Execution<'a> {
    fn new(graph: &'a Graph, mut dependences: Dependences, max_steps: u64) -> Self {
        let mut known = PrimaryMap::filled(Known::NOTHING, graph.nodes.len());
        let mut numbers = PrimaryMap::filled(None, graph.regions.len());
        for (node, data) in graph.nodes.iter() {
            match data.def {
                Def::Input(number) => known[node].value = dependences.input(number),
                Def::Const(bits) => known[node] = Known::constant(f64::from_bits(bits)),
                Def::Iteration(region) => numbers[region] = Some(node),
                _ => {}
            }
        }
        let iterations = PrimaryMap::filled(0, graph.regions.len());
        let (nest, executed) = (Nest::of(graph), executed_loops(graph, max_steps));
        let mut saved = PrimaryMap::filled(Vec::new(), graph.regions.len());
        for array in graph.arrays.values() {
            if let ArrayData::Saved(node) = *array
                && let Some(region) = nest.node_loop(node)
            {
                saved[region].push(node);
            }
        }
        let saved_values = HashMap::new();
        Execution {
            graph,
            nest,
            dependences,
            known,
            iterations,
            numbers,
            saved,
            saved_values,
            executed,
        }
    }

    /// The union of the outputs at all ends; `None` if there is a step that is not known here.
    fn outputs(&mut self) -> Option<Value> {
        let mut output = NONE;
        for leaf in self.tree(self.graph.root())? {
            if let End::Return(outputs) = &self.graph.blocks[leaf].end
                && let Some(&first) = outputs.first()
            {
                output = self.dependences.union(output, self.known[first].value);
            }
        }
        Some(output)
    }

    /// Executes the tree of `root`, without arms that are never taken. Returns its leaves.
    fn tree(&mut self, root: Block) -> Option<Vec<Block>> {
        let (graph, mut leaves, mut pending) = (self.graph, Vec::new(), vec![root]);
        while let Some(block) = pending.pop() {
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(node) => self.known[node] = self.node(node)?,
                    Item::Guard { .. } => {}
                    Item::Region(region) => self.region(region)?,
                    Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => return None,
                }
            }
            match graph.blocks[block].end {
                End::Branch { condition, then, otherwise } => {
                    match self.known[condition].constant {
                        Some(0.0) => pending.push(otherwise),
                        Some(_) => pending.push(then),
                        None => pending.extend([otherwise, then]),
                    }
                }
                End::Return(_) | End::Open => leaves.push(block),
            }
        }
        Some(leaves)
    }

    fn node(&mut self, node: Node) -> Option<Known> {
        match self.graph.nodes[node].def {
            Def::Apply(op, args) => self.apply(op, args),
            Def::Element(access) => self.element(access),
            Def::Input(_) | Def::Const(_) | Def::Phi(..) | Def::Entry(..) | Def::Iteration(_) => {
                Some(self.known[node])
            }
            Def::Call(_) | Def::Result(..) => {
                // Routines of closed forms have derivatives of their own.
                self.graph.custom_routine(node)?;
                let known = self.graph.operands(node).iter().map(|&arg| self.known[arg].value);
                let all = known.fold(NONE, |all, arg| self.dependences.union(all, arg));
                Some(Known { value: self.dependences.any_function(all), constant: None })
            }
        }
    }

    fn apply(&mut self, op: Op, args: [Node; MAX_ARITY]) -> Option<Known> {
        let args = args.map(|arg| self.known[arg]);
        let (mut values, mut numbers) = ([NONE; MAX_ARITY], Some([0.0; MAX_ARITY]));
        for (operand, arg) in args.iter().enumerate().take(op.arity()) {
            values[operand] = arg.value;
            numbers = arg.constant.and_then(|number| {
                let mut numbers = numbers?;
                numbers[operand] = number;
                Some(numbers)
            });
        }
        let value = self.dependences.apply(op, values);
        Some(Known { value, constant: numbers.map(|numbers| eval(op, numbers)) })
    }

    /// The element at `access`, in the current iteration of each loop.
    fn element(&mut self, access: Access) -> Option<Known> {
        let graph = self.graph;
        let index = graph.index_at(access, |region| self.iterations[region]);
        Some(match &graph.arrays[graph.accesses[access].array] {
            ArrayData::Constants(numbers) => match numbers.get(index) {
                Some(bits) => Known::constant(f64::from_bits(*bits)),
                None => Known::NOTHING,
            },
            &ArrayData::Inputs { first, count } => {
                // An index out of range is never read.
                let number = (index < count as usize).then(|| first + index as u32);
                let value = number.map_or(NONE, |number| self.dependences.input(number));
                Known { value, constant: None }
            }
            ArrayData::Nodes(nodes) => {
                nodes.get(index).map_or(Known::NOTHING, |&node| self.known[node])
            }
            ArrayData::Saved(node) => match self.saved_values.get(node)? {
                SavedValues::Each(values) => values.get(index).copied().unwrap_or(Known::NOTHING),
                SavedValues::Any(known) => *known,
            },
            ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => return None,
        })
    }

    /// The value that depends on all elements of the array of `access`.
    fn all_elements(&mut self, access: Access) -> Option<Value> {
        let graph = self.graph;
        let dependences = &mut self.dependences;
        Some(match &graph.arrays[graph.accesses[access].array] {
            ArrayData::Constants(_) => NONE,
            &ArrayData::Inputs { first, count } => {
                (first..first + count).fold(NONE, |all, number| {
                    let input = dependences.input(number);
                    dependences.union(all, input)
                })
            }
            ArrayData::Nodes(nodes) => {
                nodes.iter().fold(NONE, |all, &node| dependences.union(all, self.known[node].value))
            }
            // Those of a loop inside have values that this loop computes itself.
            ArrayData::Saved(node) => {
                let known = match self.saved_values.get(node) {
                    Some(SavedValues::Each(values)) => values,
                    Some(SavedValues::Any(known)) => core::slice::from_ref(known),
                    None => &[],
                };
                known.iter().fold(NONE, |all, known| dependences.union(all, known.value))
            }
            ArrayData::Sums(_) | ArrayData::Outputs { .. } | ArrayData::Cells(_) => return None,
        })
    }

    fn region(&mut self, region: Region) -> Option<()> {
        let data = &self.graph.regions[region];
        if data.replays.is_some() {
            return None;
        }
        match &data.cycle {
            None => {
                let leaves = self.tree(data.root)?;
                let phis = self.passed(region, &leaves, false);
                self.define(&data.phis, &phis);
                Some(())
            }
            Some(_) if self.executed[region] => self.iterate(region),
            Some(_) => self.summary(region),
        }
    }

    /// Executes the iterations of `region`, a loop.
    fn iterate(&mut self, region: Region) -> Option<()> {
        let (graph, data) = (self.graph, &self.graph.regions[region]);
        let entries = graph.entries(region);
        let phis: Vec<Node> = entries.iter().map(|entry| entry.phi).collect();
        let mut nexts: Vec<Known> = entries.iter().map(|entry| self.known[entry.first]).collect();
        let mut results: Vec<Option<Known>> = vec![None; data.phis.len()];
        for &node in &self.saved[region] {
            self.saved_values.insert(node, SavedValues::Each(Vec::new()));
        }
        for iteration in 0..graph.bound(region) {
            self.iterations[region] = iteration;
            self.define(&phis, &nexts);
            if let Some(number) = self.numbers[region] {
                self.known[number] = Known::constant(f64::from(iteration));
            }
            let leaves = self.tree(data.root)?;
            for node in &self.saved[region] {
                if let Some(SavedValues::Each(values)) = self.saved_values.get_mut(node) {
                    values.push(self.known[*node]);
                }
            }
            let again = |leaf: &Block| {
                let again = graph.passed(region, *leaf).and_then(|passed| passed.again);
                again.and_then(|again| self.known[again].constant).map(|again| again != 0.0)
            };
            let (exits, continues): (Vec<Block>, Vec<Block>) = (
                leaves.iter().filter(|leaf| again(leaf) != Some(true)).copied().collect(),
                leaves.iter().filter(|leaf| again(leaf) != Some(false)).copied().collect(),
            );
            if !exits.is_empty() {
                for (result, passed) in results.iter_mut().zip(self.passed(region, &exits, false)) {
                    *result = Some(result.map_or(passed, |before| self.either(before, passed)));
                }
            }
            if continues.is_empty() {
                break;
            }
            nexts = self.passed(region, &continues, true);
        }
        let results: Vec<Known> = results.iter().map(|one| one.unwrap_or(Known::NOTHING)).collect();
        self.define(&data.phis, &results);
        Some(())
    }

    /// Takes each result of `region`, a loop, for any function of all that the loop reads.
    fn summary(&mut self, region: Region) -> Option<()> {
        let graph = self.graph;
        let blocks = graph.blocks_inside(region);
        let mut inside: Vec<Region> = vec![region];
        inside.extend(blocks.iter().flat_map(|&block| graph.regions_of(block)));
        let mut reads: Vec<Node> = Vec::new();
        let mut all = NONE;
        for &inner in &inside {
            reads.extend(graph.entries(inner).iter().map(|entry| entry.first));
        }
        for block in blocks {
            for item in &graph.blocks[block].items {
                match *item {
                    Item::Node(node) => match graph.nodes[node].def {
                        Def::Element(access) => {
                            let elements = self.all_elements(access)?;
                            all = self.dependences.union(all, elements);
                        }
                        Def::Call(_) | Def::Result(..) => {
                            graph.custom_routine(node)?;
                            reads.extend(graph.operands(node));
                        }
                        _ => reads.extend(graph.operands(node)),
                    },
                    Item::Guard { .. } | Item::Region(_) => {}
                    Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => return None,
                }
            }
            if let End::Return(values) = &graph.blocks[block].end {
                reads.extend(values);
            }
        }
        // Nodes of the loop itself may have values from an earlier iteration around it.
        reads.retain(|&node| !self.is_inside(node, region));
        reads.sort_unstable();
        reads.dedup();
        for node in reads {
            all = self.dependences.union(all, self.known[node].value);
        }
        let value = if all == NONE { NONE } else { self.dependences.any_function(all) };
        let known = Known { value, constant: None };
        for node in inside.iter().flat_map(|&inner| &self.saved[inner]) {
            self.saved_values.insert(*node, SavedValues::Any(known));
        }
        graph.regions[region].phis.iter().for_each(|&phi| self.known[phi] = known);
        Some(())
    }

    /// Tests whether `node` is computed in `region`.
    fn is_inside(&self, node: Node, region: Region) -> bool {
        let around = self.nest.node_block(node).and_then(|block| self.nest.block_region(block));
        core::iter::successors(around, |&around| self.nest.region_around(around))
            .any(|around| around == region)
    }

    /// The values for the entry φs, or for the φs, of `region` that one of `leaves` passes on.
    fn passed(&mut self, region: Region, leaves: &[Block], is_next: bool) -> Vec<Known> {
        let graph = self.graph;
        let count =
            if is_next { graph.entries(region).len() } else { graph.regions[region].phis.len() };
        let mut all: Vec<Option<Known>> = vec![None; count];
        for &leaf in leaves {
            let operands = phi_operands(graph, region, leaf);
            let passed = if is_next { operands.nexts } else { operands.values };
            for (one, &node) in all.iter_mut().zip(passed) {
                let known = self.known[node];
                *one = Some(one.map_or(known, |before| self.either(before, known)));
            }
        }
        all.into_iter().map(|one| one.unwrap_or(Known::NOTHING)).collect()
    }

    /// The facts about a node that is one or the other.
    fn either(&mut self, one: Known, other: Known) -> Known {
        let same =
            |number: &f64| other.constant.is_some_and(|other| other.to_bits() == number.to_bits());
        let value = self.dependences.union(one.value, other.value);
        Known { value, constant: one.constant.filter(same) }
    }

    fn define(&mut self, nodes: &[Node], known: &[Known]) {
        nodes.iter().zip(known).for_each(|(&node, &known)| self.known[node] = known);
    }
}

/// The loops that are executed, so that all steps are at most `max_steps`: of loops in loops those
/// that are short enough.
fn executed_loops(graph: &Graph, max_steps: u64) -> PrimaryMap<Region, bool> {
    let mut executed = PrimaryMap::filled(false, graph.regions.len());
    for most in [max_steps, 1 << 16, 1 << 12, 1 << 8, 1 << 4, 0] {
        if count_steps(graph, graph.root(), (most, max_steps), &mut executed) <= max_steps {
            break;
        }
    }
    executed
}

/// The number of steps in the tree of `root`. Loops in it are executed if they have at most `most`
/// steps; the first bound is for loops in other ones.
fn count_steps(
    graph: &Graph,
    root: Block,
    (inner, most): (u64, u64),
    executed: &mut PrimaryMap<Region, bool>,
) -> u64 {
    let mut all = 0u64;
    for block in graph.tree(root) {
        for item in &graph.blocks[block].items {
            let added = match *item {
                Item::Region(region) => {
                    let data = &graph.regions[region];
                    let bounds = if data.cycle.is_some() { (inner, inner) } else { (inner, most) };
                    let once = count_steps(graph, data.root, bounds, executed).saturating_add(1);
                    let steps = once.saturating_mul(u64::from(graph.bound(region)));
                    executed[region] = steps <= most;
                    if executed[region] { steps } else { once }
                }
                _ => 1,
            };
            all = all.saturating_add(added);
        }
    }
    all
}
