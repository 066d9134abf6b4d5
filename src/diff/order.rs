//! The order of additions: whether the sweep of a loop adds up each adjoint as the tape
//! does.
//!
//! The tape has one running sum for each event, to which the uses of the event add one
//! by one, the last use first. In a graph with loops a value has several names: entry
//! φs, φs of loops and elements of array are no events, but stand for one. Where such
//! a name has an adjoint of its own, its uses are added up there first, and what comes
//! of them is added to the value at once: `sum + (use + use)` in place of
//! `(sum + use) + use`. These are the same bits only
//!
//! - if nothing has been added to the value before, or
//! - if there is only one use, and it comes behind all that has been added.
//!
//! So with [`Folding::Exact`] uses of an element are added to the value directly
//! ([`Reverse::direct`]), and so are uses of an entry φ to its first value where neither
//! holds (see `running`); for the other names the sweep asks before it adds whether one
//! of the two does. If not, it notes the loop. φs of regions that are no loops are events
//! of the tape.

use super::activity::{Activity, passed};
use super::loops::Carried;
use super::regions::Frame;
use super::reverse::{Reverse, Wanted, has_gradient};
use super::running::{Name, longest_chain};
use super::sums::Opened;
use crate::entity::PrimaryMap;
use crate::op::Op;
use crate::ssa::{
    AccessData, Array, ArrayData, Block, Def, End, Folding, Graph, Item, Node, Region, passes_on,
};

/// The loops of `graph` that have to become straight-line code before its gradient, made
/// with [`Folding::Exact`], adds up adjoints as the tape does for the straight-line code of
/// all loops. Others may be found when these are.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::reordered;
/// use phigrad::internals::ssa::parse;
///
/// // x is squared again and again; the last square is passed on once or twice.
/// let squares = |last: &str, after: &str| {
///     let text = format!(
///         "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\nb0:\n  \
///          {after}\nb1:\n  v4 = mul v2 v2\n  v5 = lt v3 v1\n  return v5 v4 {last}\n"
///     );
///     parse(&text)
/// };
/// let once = "v6 = region r0 b1 bound 10 entries v2=v0\n  v7 = add v6 v0\n  return v7";
/// assert!(reordered(&squares("v4", once)?).is_empty());
/// // Each φ adds up its uses, and then the square gets two sums.
/// let twice = "v6 v7 = region r0 b1 bound 10 entries v2=v0\n  v8 = mul v6 v7\n  return v8";
/// assert_eq!(reordered(&squares("v4 v4", twice)?).len(), 1);
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn reordered(graph: &Graph) -> Vec<Region> {
    let has_loops = graph.regions.values().any(|region| region.cycle.is_some());
    if !has_loops || !has_gradient(graph) {
        return Vec::new();
    }
    let activity = Activity::of(graph);
    let mut pass = Reverse::new(&activity, &[], Wanted::Gradient, Folding::Exact, Entries::Named);
    pass.run();
    graph.regions.keys().filter(|&region| pass.order.wrong[region]).collect()
}

/// What entry φs are to the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// Names of other nodes, as to the tape, with [`Folding::Exact`]; see `running`.
    Named,
    /// Events that copy a value.
    Copies,
}

impl Entries {
    /// What they are to the sweep of `graph`.
    pub(super) fn of(graph: &Graph) -> Entries {
        if reordered(graph).is_empty() { Entries::Named } else { Entries::Copies }
    }
}

/// What is known of the order of additions.
pub(super) struct Order {
    is_exact: bool,
    /// Whether entry φs are names of other nodes.
    pub(super) has_names: bool,
    /// For each node how often it is used, where what stands for it counts twice.
    uses: PrimaryMap<Node, u32>,
    /// The loops in which the order is another one.
    wrong: PrimaryMap<Region, bool>,
    /// For each node whose history is read how many sums there are before those of its
    /// iterations, for the entry φs that begin with them.
    pub(super) lead: PrimaryMap<Node, u32>,
    /// Which nodes are in an array of nodes; what is added to an element of it is added
    /// to them alone.
    pub(super) in_array: PrimaryMap<Node, bool>,
    /// The entry φs that stand for other nodes in the loops that are being swept.
    pub(super) names: Vec<Name>,
}

/// Where what is passed on to a name is added at once.
pub(super) enum Direct {
    /// To the adjoint of this node.
    Node(Node),
    /// To an element of sums.
    Sums,
    /// To the sum of what this node was in the iteration of this number.
    Past(Node, u32),
}

impl Order {
    pub(super) fn of(activity: &Activity<'_>, folding: Folding, entries: Entries) -> Self {
        let is_exact = folding == Folding::Exact;
        let uses = match is_exact {
            true => uses(activity),
            false => PrimaryMap::new(),
        };
        let has_names = is_exact && entries == Entries::Named;
        let mut lead = PrimaryMap::filled(0, activity.graph.nodes.len());
        for (region, pasts) in activity.pasts.iter().filter(|_| has_names) {
            pasts.iter().for_each(|&past| lead[past] = longest_chain(activity.graph, region, past));
        }
        let mut in_array = PrimaryMap::filled(false, activity.graph.nodes.len());
        for array in activity.graph.arrays.values() {
            if let ArrayData::Nodes(nodes) = array {
                nodes.iter().for_each(|&node| in_array[node] = true);
            }
        }
        let wrong = PrimaryMap::filled(false, activity.graph.regions.len());
        Order { is_exact, has_names, uses, wrong, lead, in_array, names: Vec::new() }
    }

    /// Whether the order is another one in some loop.
    pub(super) fn has_wrong(&self) -> bool {
        self.wrong.values().any(|&wrong| wrong)
    }

    pub(super) fn is_single(&self, node: Node) -> bool {
        self.uses[node] <= 1
    }
}

impl Reverse<'_> {
    /// Where what is passed on to `node` is added at once, if it is a name.
    pub(super) fn direct(&self, node: Node) -> Option<Direct> {
        if !self.order.is_exact {
            return None;
        }
        let graph = self.graph;
        match graph.nodes[node].def {
            Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_) | ArrayData::Sums(_) | ArrayData::Outputs { .. } => None,
                ArrayData::Inputs { .. } => self.activity.input_row(access).map(|_| Direct::Sums),
                ArrayData::Saved(_) => Some(Direct::Sums),
                ArrayData::Nodes(_) => match self.activity.fixed(access) {
                    Some(only) => Some(Direct::Node(only)),
                    None => self.is_open(graph.accesses[access].array).then_some(Direct::Sums),
                },
            },
            // In a loop that always has the same last iteration it is a node of that one.
            Def::Phi(region, number) => {
                let last = self.last(region)?;
                let passed = passed(graph, region, graph.regions[region].root);
                let &value = passed.values.get(number as usize)?;
                let is_own = self.activity.nest.node_loop(value) == Some(region);
                (is_own && self.has_past(value)).then_some(Direct::Past(value, last))
            }
            _ => None,
        }
    }

    /// The number of the last iteration of `region`, a loop, if that is always the same.
    pub(super) fn last(&self, region: Region) -> Option<u32> {
        let graph = self.graph;
        let last = graph.regions[region].cycle.as_ref()?.bound.checked_sub(1)?;
        let &[leaf] = &self.activity.leaves[region][..] else { return None };
        let End::Return(all) = &graph.blocks[leaf].end else { return None };
        let Def::Apply(Op::Lt, [counter, most, _]) = graph.nodes[*all.first()?].def else {
            return None;
        };
        let counts = graph.nodes[counter].def == Def::Iteration(region)
            && graph.constant(most) == Some(f64::from(last));
        counts.then_some(last)
    }

    /// Adds `passed` to what `node` stands for, if that is possible.
    pub(super) fn add_directly(&mut self, node: Node, passed: Node) -> bool {
        match (self.direct(node), self.graph.nodes[node].def) {
            (Some(Direct::Past(past, at)), _) => self.add_to_past(past, at, passed),
            (Some(_), Def::Element(access)) => self.add_to_element(access, passed),
            _ => return false,
        }
        true
    }

    /// Checks the order where the adjoint of entry φ `number` of `region`, whose
    /// iterations have been swept, will be added to that of its first value. `opened`
    /// are the sums that close before that.
    pub(super) fn check_first(
        &mut self,
        region: Region,
        number: usize,
        carried: &Carried,
        opened: &Opened,
    ) {
        let entries = self.graph.entries(region);
        let (phi, first) = (entries[number].phi, entries[number].first);
        let is_direct = carried.running.is_direct(number);
        if !self.order.is_exact || !self.activity.active[first] || is_direct {
            return;
        }
        let same = carried.entries.iter().filter(|&&(other, _)| entries[other].first == first);
        let is_alone =
            same.count() == 1 && self.direct(first).is_none() && !self.order.is_named(first);
        let is_untouched = || self.is_untouched(region, first);
        // Nothing has been added to it before.
        let is_fresh = || self.is_empty(opened, first) && (!self.has_sum(first) || is_untouched());
        let is_behind = || self.order.is_single(phi) && is_untouched();
        if !is_alone || !(is_fresh() || is_behind()) {
            self.order.wrong[region] = true;
        }
    }

    /// Whether the sweep of `region` adds nothing to `node`, by whatever name.
    pub(super) fn is_untouched(&self, region: Region, node: Node) -> bool {
        !self.order.is_first(node) && !self.is_used_in(region, node) && !self.may_read(region, node)
    }

    /// Whether what is in `region` uses `node` by its own name.
    fn is_used_in(&self, region: Region, node: Node) -> bool {
        let (graph, activity) = (self.graph, &self.activity);
        let is_operand = graph
            .nodes
            .iter()
            .any(|(user, data)| data.args().contains(&node) && activity.is_inside(user, region));
        let is_passed = || {
            graph.blocks.iter().any(|(block, data)| {
                let passes = match &data.end {
                    End::Return(values) => values.contains(&node),
                    End::Branch { .. } | End::Open => false,
                };
                let begins =
                    |inner: Region| graph.entries(inner).iter().any(|entry| entry.first == node);
                (passes || graph.regions_of(block).any(begins))
                    && activity.is_block_inside(block, region)
            })
        };
        is_operand || is_passed()
    }

    /// Whether an element that is read in `region` may be `node`, whose adjoint is in
    /// sums.
    fn may_read(&self, region: Region, node: Node) -> bool {
        let Some((sums, at)) = self.place(node) else { return false };
        self.graph.nodes.iter().any(|(element, data)| match data.def {
            Def::Element(access) => {
                let places = self.places(access);
                let hits = |(of, low, high): (Array, i64, i64)| {
                    of == sums && (low..=high).contains(&i64::from(at))
                };
                places.is_some_and(hits) && self.activity.is_inside(element, region)
            }
            _ => false,
        })
    }

    /// Checks the order where adjoints of φs and entry φs of a loop are added to those
    /// of what its end `leaf` passes on.
    pub(super) fn check_passed(&mut self, leaf: Block, frame: &Frame) {
        let (graph, region) = (self.graph, frame.region);
        if !self.order.is_exact || graph.regions[region].cycle.is_none() {
            return;
        }
        let passed = passed(graph, region, leaf);
        let is_own = |node: Node| {
            self.activity.is_inside(node, region)
                && !self.has_sum(node)
                && self.direct(node).is_none()
        };
        let phis = graph.regions[region].phis.iter().zip(passed.values);
        let values: Vec<Node> = phis
            .filter(|&(&phi, &value)| {
                self.adjoints.get(phi).is_some() && self.activity.active[value]
            })
            .map(|(_, &value)| value)
            .collect();
        let entries = graph.entries(region);
        let nexts: Vec<(Node, Node)> = frame
            .carried
            .entries
            .iter()
            .filter_map(|&(number, _)| Some((entries[number].phi, *passed.nexts.get(number)?)))
            .filter(|&(_, next)| self.activity.active[next])
            .collect();
        let values_fit = values.iter().enumerate().all(|(index, &value)| {
            is_own(value)
                && self.past_sums(value).is_none()
                && !values[..index].contains(&value)
                && self.is_before_running(region, value, &values, &frame.carried)
        });
        let nexts_fit = nexts.iter().enumerate().all(|(index, &(phi, next))| {
            is_own(next)
                && (self.past_sums(next).is_none()
                    || self.order.is_single(phi)
                    || self.begins_in_chain(next, &frame.carried.running))
                && nexts[..index].iter().all(|&(_, other)| other != next)
        });
        if !values_fit || !nexts_fit {
            self.order.wrong[region] = true;
        }
    }

    /// Notes that the adjoint of `node`, an element that is in another array, is added
    /// to that of what it stands for.
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
        self.refuse_readers(&arrays);
    }

    /// Notes the loops that go through one of `array`, some nodes of which have two
    /// accumulators; all loops if there are none.
    pub(super) fn refuse_readers(&mut self, array: &[Array]) {
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
            let around = self.activity.nest.node_loop(node);
            match loops.clone().find(|&region| Some(region) == around) {
                Some(inner) => found.push(inner),
                None => found.extend(loops),
            }
        }
        if found.is_empty() {
            found.extend(graph.regions.keys().filter(|&r| graph.regions[r].cycle.is_some()));
        }
        found.into_iter().for_each(|region| self.order.wrong[region] = true);
    }
}

/// How often each node gets a contribution in an iteration, or in a run if it is in no
/// loop: 0, 1, or more, where a name counts as more.
fn uses(activity: &Activity<'_>) -> PrimaryMap<Node, u32> {
    let graph = activity.graph;
    let mut uses = PrimaryMap::filled(0u32, graph.nodes.len());
    for (block, data) in graph.blocks.iter() {
        let around = activity.nest.block_loop(block);
        // In a loop of its own a use is many.
        let weigh = |node: Node| match activity.nest.node_loop(node) == around {
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
                Item::Guard { .. } | Item::Fill(_) | Item::Accumulate(..) => {}
            }
        }
        if let End::Return(values) = &data.end {
            let region = activity.nest.block_region(block);
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
