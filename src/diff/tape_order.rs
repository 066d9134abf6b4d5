//! Tape-order accumulation: whether the sweep of a loop adds up each adjoint in the order of
//! the tape.
//!
//! The tape has one accumulator for each event, to which it adds one contribution for each use,
//! last use first. In a graph with loops a value has aliases: entry φs, φs of loops and array
//! elements are no events. An alias with an adjoint of its own adds up its uses first and then
//! adds the total to the adjoint of the value: `sum + (use + use)` instead of
//! `(sum + use) + use`. These have the same bits only if
//!
//! - there was no contribution to the value before, or
//! - the alias has a single use, which comes after all other contributions.
//!
//! So with [`Folding::Exact`] uses of an element are added to the adjoint of the value
//! ([`Reverse::alias_target`]), and so are uses of an entry φ to that of its first value where
//! neither condition holds (see `entry_phis`). For other aliases the sweep tests the conditions
//! and marks the loop as reordered if both fail. φs of regions that are no loops are events of
//! the tape.

use super::entry_phis::{Alias, longest_phi_chain};
use super::loops::Carried;
use super::primal::Primal;
use super::regions::Frame;
use super::reverse::{Reverse, Wanted, has_gradient};
use super::sums::Opened;
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{
    AccessData, Array, ArrayData, Block, Def, End, Folding, Graph, Item, Node, Region, passes_on,
    phi_operands,
};

/// The loops of `graph` that have to become straight-line code before its gradient, made
/// with [`Folding::Exact`], adds up adjoints as the tape does for the straight-line code of
/// all loops. Expanding these may show further ones.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::reordered;
/// use phigrad::internals::ssa::parse;
///
/// // x is squared ten times; the last square is returned once or twice.
/// let squares = |last: &str, after: &str| {
///     let text = format!(
///         "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\nb0:\n  \
///          {after}\nb1:\n  v4 = mul v2 v2\n  v5 = lt v3 v1\n  return v5 v4 {last}\n"
///     );
///     parse(&text)
/// };
/// let once = "v6 = region r0 b1 bound 10 entries v2=v0\n  v7 = add v6 v0\n  return v7";
/// assert!(reordered(&squares("v4", once)?).is_empty());
/// // Each φ adds up its uses, and then the square gets two totals.
/// let twice = "v6 v7 = region r0 b1 bound 10 entries v2=v0\n  v8 = mul v6 v7\n  return v8";
/// assert_eq!(reordered(&squares("v4 v4", twice)?).len(), 1);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn reordered(graph: &Graph) -> Vec<Region> {
    let has_loops = graph.regions.values().any(|region| region.cycle.is_some());
    if !has_loops || !has_gradient(graph) {
        return Vec::new();
    }
    let primal = Primal::of(graph);
    let mut pass = Reverse::new(&primal, &[], Wanted::Gradient, Folding::Exact, EntryPhis::Aliases);
    pass.run();
    graph.regions.keys().filter(|&region| pass.order.reordered[region]).collect()
}

/// The treatment of entry φs in the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryPhis {
    /// As aliases of other nodes, as on the tape, with [`Folding::Exact`]; see `entry_phis`.
    Aliases,
    /// As events that copy a value.
    Copies,
}

impl EntryPhis {
    /// The treatment in the sweep of `graph`.
    pub(super) fn of(graph: &Graph) -> EntryPhis {
        if reordered(graph).is_empty() { EntryPhis::Aliases } else { EntryPhis::Copies }
    }
}

/// The state of tape-order accumulation.
pub(super) struct TapeOrder {
    is_exact: bool,
    /// True if entry φs are aliases of other nodes.
    pub(super) has_aliases: bool,
    /// For each node the number of its uses; a use by an alias counts twice.
    uses: PrimaryMap<Node, u32>,
    /// The loops that add up an adjoint in another order than the tape.
    reordered: PrimaryMap<Region, bool>,
    /// For each node whose trajectory is read the length of the longest φ chain behind it: so
    /// many adjoints precede those of its iterations in the array of sums.
    pub(super) lag: PrimaryMap<Node, u32>,
    /// True for nodes in an array of nodes; a contribution to an element is added to them alone.
    pub(super) in_array: PrimaryMap<Node, bool>,
    /// The aliases of the loops that are being swept, outermost first.
    pub(super) aliases: Vec<Alias>,
}

/// The accumulator that contributions to an alias are added to.
pub(super) enum AliasTarget {
    /// The adjoint of this node.
    Node(Node),
    /// An element of sums.
    Sums,
    /// The adjoint of this node in the iteration with this number, in sums.
    Saved(Node, u32),
}

impl TapeOrder {
    pub(super) fn of(primal: &Primal<'_>, folding: Folding, entries: EntryPhis) -> Self {
        let is_exact = folding == Folding::Exact;
        let uses = match is_exact {
            true => uses(primal),
            false => PrimaryMap::new(),
        };
        let has_aliases = is_exact && entries == EntryPhis::Aliases;
        let mut lag = PrimaryMap::filled(0, primal.graph.nodes.len());
        for (region, trajectories) in primal.trajectories.iter().filter(|_| has_aliases) {
            trajectories
                .iter()
                .for_each(|&saved| lag[saved] = longest_phi_chain(primal.graph, region, saved));
        }
        let mut in_array = PrimaryMap::filled(false, primal.graph.nodes.len());
        for array in primal.graph.arrays.values() {
            if let ArrayData::Nodes(nodes) = array {
                nodes.iter().for_each(|&node| in_array[node] = true);
            }
        }
        let reordered = PrimaryMap::filled(false, primal.graph.regions.len());
        TapeOrder { is_exact, has_aliases, uses, reordered, lag, in_array, aliases: Vec::new() }
    }

    /// True if some loop adds up in another order than the tape.
    pub(super) fn is_reordered(&self) -> bool {
        self.reordered.values().any(|&reordered| reordered)
    }

    pub(super) fn is_used_once(&self, node: Node) -> bool {
        self.uses[node] <= 1
    }
}

impl Reverse<'_> {
    /// The accumulator that contributions to `node` are added to, if it is an alias.
    pub(super) fn alias_target(&self, node: Node) -> Option<AliasTarget> {
        if !self.order.is_exact {
            return None;
        }
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_)
                | ArrayData::Sums(_)
                | ArrayData::Outputs { .. }
                | ArrayData::Cells(_) => None,
                ArrayData::Inputs { .. } => {
                    self.primal.first_input(access).map(|_| AliasTarget::Sums)
                }
                ArrayData::Saved(_) => Some(AliasTarget::Sums),
                ArrayData::Nodes(_) => match self.primal.known_element(access) {
                    Some(only) => Some(AliasTarget::Node(only)),
                    None => self.is_open(graph.accesses[access].array).then_some(AliasTarget::Sums),
                },
            },
            // A φ of a loop with a constant trip count is its operand in the last iteration.
            Def::Phi(region, number) => {
                let last = self.last_iteration(region)?;
                let operands = phi_operands(graph, region, graph.regions[region].root);
                let &value = operands.values.get(number as usize)?;
                let is_own = self.primal.nest.node_loop(value) == Some(region);
                (is_own && self.has_trajectory(value)).then_some(AliasTarget::Saved(value, last))
            }
            _ => None,
        }
    }

    /// The number of the last iteration of `region`, a loop, if the trip count is constant.
    pub(super) fn last_iteration(&self, region: Region) -> Option<u32> {
        let graph = self.graph;
        let last = graph.regions[region].cycle.as_ref()?.bound.checked_sub(1)?;
        let &[leaf] = self.primal.leaves(region) else { return None };
        let End::Return(all) = &graph.blocks[leaf].end else { return None };
        let Def::Apply(Op::Lt, [counter, most, _]) = graph.nodes[*all.first()?].def else {
            return None;
        };
        let counts = graph.nodes[counter].def == Def::Iteration(region)
            && graph.constant(most) == Some(f64::from(last));
        counts.then_some(last)
    }

    /// Adds `increment` to the accumulator that `node` is an alias for, if there is one.
    pub(super) fn add_to_alias_target(&mut self, node: Node, increment: Node) -> bool {
        match (self.alias_target(node), self.graph.nodes[node].def) {
            (Some(AliasTarget::Saved(saved, at)), _) => {
                self.add_to_trajectory(saved, at, increment)
            }
            (Some(_), Def::Element(access)) => self.add_to_element(access, increment),
            _ => return false,
        }
        true
    }

    /// Checks the order where the adjoint of entry φ `number` of `region`, which has been swept,
    /// is added to that of its first value. The sums `opened` are closed before.
    pub(super) fn check_first(
        &mut self,
        region: Region,
        number: usize,
        carried: &Carried,
        opened: &Opened,
    ) {
        let entries = self.graph.entries(region);
        let (phi, first) = (entries[number].phi, entries[number].first);
        let is_forwarding = carried.entry_order.is_forwarding(number);
        if !self.order.is_exact || !self.primal.varied[first] || is_forwarding {
            return;
        }
        let same = carried.entries.iter().filter(|&&(other, _)| entries[other].first == first);
        let is_only =
            same.count() == 1 && self.alias_target(first).is_none() && !self.order.is_alias(first);
        let is_untouched = || self.is_untouched(region, first);
        // It has no contribution yet.
        let is_fresh = || self.is_empty(opened, first) && (!self.has_sum(first) || is_untouched());
        let is_behind = || self.order.is_used_once(phi) && is_untouched();
        if !is_only || !(is_fresh() || is_behind()) {
            self.order.reordered[region] = true;
        }
    }

    /// True if the sweep of `region` adds nothing to `node` or an alias of it.
    pub(super) fn is_untouched(&self, region: Region, node: Node) -> bool {
        !self.order.has_alias(node)
            && !self.is_used_in(region, node)
            && !self.may_read(region, node)
    }

    /// True if an item or end in `region` uses `node`.
    fn is_used_in(&self, region: Region, node: Node) -> bool {
        let (graph, primal) = (self.graph, &self.primal);
        let is_operand = graph
            .nodes
            .iter()
            .any(|(user, data)| data.args().contains(&node) && primal.is_inside(user, region));
        let is_passed = || {
            graph.blocks.iter().any(|(block, data)| {
                let passes = match &data.end {
                    End::Return(values) => values.contains(&node),
                    End::Branch { .. } | End::Open => false,
                };
                let begins =
                    |inner: Region| graph.entries(inner).iter().any(|entry| entry.first == node);
                (passes || graph.regions_of(block).any(begins))
                    && primal.is_block_inside(block, region)
            })
        };
        is_operand || is_passed()
    }

    /// True if an element that is read in `region` may be `node`, whose adjoint is in sums.
    fn may_read(&self, region: Region, node: Node) -> bool {
        let Some((sums, at)) = self.place(node) else { return false };
        self.graph.nodes.iter().any(|(element, data)| match data.def {
            Def::Element(access) => {
                let places = self.places(access);
                let hits = |(of, low, high): (Array, i64, i64)| {
                    of == sums && (low..=high).contains(&i64::from(at))
                };
                places.is_some_and(hits) && self.primal.is_inside(element, region)
            }
            _ => false,
        })
    }

    /// Checks the order where adjoints of φs and entry φs of a loop are added to those of their
    /// operands at the end `leaf`.
    pub(super) fn check_phi_operands(&mut self, leaf: Block, frame: &Frame) {
        let (graph, region) = (self.graph, frame.region);
        if !self.order.is_exact || graph.regions[region].cycle.is_none() {
            return;
        }
        let operands = phi_operands(graph, region, leaf);
        let is_own = |node: Node| {
            self.primal.is_inside(node, region)
                && !self.has_sum(node)
                && self.alias_target(node).is_none()
        };
        let phis = graph.regions[region].phis.iter().zip(operands.values);
        let values: Vec<Node> = phis
            .filter(|&(&phi, &value)| self.adjoints.get(phi).is_some() && self.primal.varied[value])
            .map(|(_, &value)| value)
            .collect();
        let entries = graph.entries(region);
        let nexts: Vec<(Node, Node)> = frame
            .carried
            .entries
            .iter()
            .filter_map(|&(number, _)| Some((entries[number].phi, *operands.nexts.get(number)?)))
            .filter(|&(_, next)| self.primal.varied[next])
            .collect();
        let values_fit = values.iter().enumerate().all(|(index, &value)| {
            is_own(value)
                && self.trajectory_adjoints(value).is_none()
                && !values[..index].contains(&value)
                && self.is_added_first(region, value, &values, &frame.carried)
        });
        let nexts_fit = nexts.iter().enumerate().all(|(index, &(phi, next))| {
            is_own(next)
                && (self.trajectory_adjoints(next).is_none()
                    || self.order.is_used_once(phi)
                    || self.seeds_phi_chain(next, &frame.carried.entry_order))
                && nexts[..index].iter().all(|&(_, other)| other != next)
        });
        if !values_fit || !nexts_fit {
            self.order.reordered[region] = true;
        }
    }

    /// Marks the loops that read an array with `node`, an element of another array, since its
    /// adjoint is added to an accumulator of that array.
    pub(super) fn check_element(&mut self, node: Node) {
        if !self.order.is_exact {
            return;
        }
        let has = |data: &ArrayData| match data {
            ArrayData::Nodes(nodes) => nodes.contains(&node),
            _ => false,
        };
        let sums = self.graph.arrays.iter().filter(|(_, data)| has(data));
        let arrays: Vec<Array> = sums.map(|(array, _)| array).collect();
        self.mark_readers_reordered(&arrays);
    }

    /// Marks the loops that read one of `array`, some nodes of which have two accumulators, as
    /// reordered; all loops if none reads them.
    pub(super) fn mark_readers_reordered(&mut self, array: &[Array]) {
        if !self.order.is_exact {
            return;
        }
        let graph = self.graph;
        let mut found: Vec<Region> = Vec::new();
        for (node, data) in graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let AccessData { array: of, strides, .. } = &graph.accesses[access];
            if !array.contains(of) {
                continue;
            }
            let changing = strides.iter().filter(|&&(_, stride)| stride != 0);
            let loops = changing.map(|&(region, _)| region);
            let around = self.primal.nest.node_loop(node);
            match loops.clone().find(|&region| Some(region) == around) {
                Some(inner) => found.push(inner),
                None => found.extend(loops),
            }
        }
        if found.is_empty() {
            found.extend(graph.regions.keys().filter(|&r| graph.regions[r].cycle.is_some()));
        }
        found.into_iter().for_each(|region| self.order.reordered[region] = true);
    }
}

/// The number of contributions to each node, in an iteration, or in a run if it is in no
/// loop: 0, 1, or more. A use by an alias counts as two.
fn uses(primal: &Primal<'_>) -> PrimaryMap<Node, u32> {
    let graph = primal.graph;
    let mut uses = PrimaryMap::filled(0u32, graph.nodes.len());
    for (block, data) in graph.blocks.iter() {
        let around = primal.nest.block_loop(block);
        // A use in an inner loop counts as two.
        let weigh = |node: Node| match primal.nest.node_loop(node) == around {
            true => 1,
            false => 2,
        };
        for item in &data.items {
            match *item {
                Item::Node(node) => {
                    if let Def::Apply(op, args) = graph.nodes[node].def {
                        for (operand, &arg) in args.iter().enumerate().take(op.arity()) {
                            if passes_on(op, operand) {
                                uses[arg] += weigh(arg);
                            }
                        }
                    }
                }
                Item::Region(region) => {
                    graph.entries(region).iter().for_each(|entry| uses[entry.first] += 2);
                }
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) | Item::Store(..) => {}
            }
        }
        if let End::Return(values) = &data.end {
            let region = primal.nest.block_region(block);
            let is_loop = region.is_some_and(|region| graph.regions[region].cycle.is_some());
            for &value in values {
                uses[value] += if is_loop { 2 } else { weigh(value) };
            }
        }
    }
    for array in graph.arrays.values() {
        array.nodes().for_each(|node| uses[node] += 2);
        if let &ArrayData::Inputs { first, count } = array {
            let is_in = |&(_, number): &(Node, u32)| (first..first + count).contains(&number);
            graph.input_nodes().filter(is_in).for_each(|(node, _)| uses[node] += 2);
        }
    }
    uses
}
