//! Unrolling: short loops become straight code again.
//!
//! Loops are made of shorter repetition than it pays to run as a loop, so that
//! formulas see it. Those that are left when the formulas have been applied are
//! faster as straight code.

use hashbrown::{HashMap, HashSet};

use super::close::inside_out;
use super::draft::Draft;
use crate::ssa::{
    AccessData, Def, End, Folding, Graph, Item, Node, NodeData, Region, Series, SeriesData,
    simplify,
};

/// `graph` with loops of fewer iterations, or that replace fewer steps, as
/// straight code, as far as they have no regions in them.
///
/// # Examples
///
/// ```
/// use phigrad::phi::unroll;
/// use phigrad::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nv1 = const 2.0\nv3 = iteration r0\nb0:\n  \
///             v6 = region r0 b1 bound 3 entries v2=v0\n  return v6\nb1:\n  v4 = sin v2\n  \
///             v5 = lt v3 v1\n  return v5 v4 v4\n";
/// let straight = unroll(&parse(text)?, 10, 10);
/// let expected = "graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  v2 = sin v1\n  v3 = sin v2\n  \
///                 return v3\n";
/// assert_eq!(straight.to_string(), expected);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn unroll(graph: &Graph, iterations: u32, weight: u64) -> Graph {
    let mut draft = Draft::new(graph);
    let moving = moving_histories(graph);
    let mut changed = false;
    for region in inside_out(graph) {
        let straight = straight(&draft, region, &moving, |trips, steps| {
            trips < iterations || u64::from(trips) * steps < weight
        });
        if let Some((trips, items, values)) = straight {
            changed = true;
            Copier { draft: &mut draft, region, copies: HashMap::new() }
                .run(trips, &items, &values);
        }
    }
    match changed.then(|| draft.finish()).flatten() {
        Some(unrolled) => simplify(&unrolled, Folding::Real),
        None => graph.clone(),
    }
}

/// The histories that are read at a place that changes.
fn moving_histories(graph: &Graph) -> HashSet<Series> {
    let moves = |data: &&AccessData| data.strides.iter().any(|&(_, stride)| stride != 0);
    let moving = graph.accesses.values().filter(moves);
    moving
        .map(|data| data.series)
        .filter(|&s| matches!(graph.series[s], SeriesData::History(_)))
        .collect()
}

/// The iterations of `region`, its steps and what its end passes on, if it is to
/// be unrolled and can be.
fn straight(
    draft: &Draft,
    region: Region,
    moving: &HashSet<Series>,
    is_short: impl Fn(u32, u64) -> bool,
) -> Option<(u32, Vec<Item>, Vec<Node>)> {
    let root = draft.graph.regions[region].root;
    let End::Return(values) = &draft.graph.blocks[root].end else { return None };
    let values: Vec<Node> = values.iter().map(|&value| draft.resolve(value)).collect();
    let trips = draft.trips(region, *values.first()?)?;
    let mut items = draft.items(root);
    // Loops that have been unrolled before do nothing.
    items.retain(|item| !matches!(item, Item::Region(inner) if draft.is_clear(*inner)));
    let is_plain = |item: &Item| matches!(item, Item::Node(_) | Item::Guard { .. });
    if !is_short(trips, items.len() as u64) || !items.iter().all(is_plain) {
        return None;
    }
    let is_read = |&series: &Series| match draft.graph.series[series] {
        SeriesData::History(node) => draft.is_inside(node, region),
        _ => false,
    };
    let is_copied = |item: &Item| match *item {
        Item::Node(node) => can_be_copied(draft, region, node, trips),
        _ => true,
    };
    (!moving.iter().any(is_read) && items.iter().all(is_copied)).then_some((trips, items, values))
}

/// Whether an element is one of its series in each iteration on its own.
fn can_be_copied(draft: &Draft, region: Region, node: Node, trips: u32) -> bool {
    let Def::Element(access) = draft.graph.nodes[node].def else { return true };
    let data = &draft.graph.accesses[access];
    let own = data.strides.iter().filter(|&&(other, _)| other == region);
    let last: i64 = own.map(|&(_, stride)| i64::from(stride) * i64::from(trips - 1)).sum();
    let moves = data.strides.iter().any(|&(other, stride)| other != region && stride != 0);
    let reads_inside = || draft.read(access).any(|node| draft.is_inside(node, region));
    i64::from(data.base) + last >= 0 && !(moves && reads_inside())
}

struct Copier<'a> {
    draft: &'a mut Draft,
    region: Region,
    /// What each node of the loop is in the current iteration.
    copies: HashMap<Node, Node>,
}

impl Copier<'_> {
    fn run(&mut self, trips: u32, items: &[Item], values: &[Node]) {
        let (decides, nexts) = self.draft.graph.passed_before_phis(self.region);
        let entries = self.draft.graph.entries(self.region).to_vec();
        let mut heads: Vec<Node> =
            entries.iter().map(|entry| self.draft.resolve(entry.first)).collect();
        let past = self.past();
        for iteration in 0..trips {
            self.copies.clear();
            for (entry, &head) in entries.iter().zip(&heads) {
                self.copies.insert(entry.phi, head);
            }
            for &item in items {
                match item {
                    Item::Guard { condition, expect } => {
                        let condition = self.copied(condition, iteration);
                        self.draft.guard(self.region, condition, expect);
                    }
                    Item::Node(node) if self.draft.resolve(node) == node => {
                        let copy = self.copy(node, iteration);
                        self.copies.insert(node, copy);
                    }
                    _ => {}
                }
            }
            let next = values[decides..decides + nexts].iter();
            heads = next.map(|&value| self.copied(value, iteration)).collect();
            for &(_, element, node) in past.iter().filter(|&&(at, ..)| at == iteration) {
                let value = self.copied(node, iteration);
                self.draft.replace(element, value);
            }
        }
        let phis = self.draft.graph.regions[self.region].phis.clone();
        for (&phi, &value) in phis.iter().zip(&values[decides + nexts..]) {
            let last = self.copied(value, trips - 1);
            self.draft.replace(phi, last);
        }
        self.draft.clear(self.region);
    }

    /// What `node` is in this iteration.
    fn copied(&mut self, node: Node, iteration: u32) -> Node {
        let node = self.draft.resolve(node);
        if self.draft.graph.nodes[node].def == Def::Iteration(self.region) {
            return self.draft.constant(f64::from(iteration));
        }
        self.copies.get(&node).copied().unwrap_or(node)
    }

    fn copy(&mut self, node: Node, iteration: u32) -> Node {
        let Def::Element(access) = self.draft.graph.nodes[node].def else {
            let args: Vec<Node> = self.draft.graph.nodes[node].args().to_vec();
            let args: Vec<Node> = args.into_iter().map(|arg| self.copied(arg, iteration)).collect();
            return self.draft.copy(self.region, node, &args);
        };
        let mut data = self.draft.graph.accesses[access].clone();
        let own = |&&(region, _): &&(Region, i32)| region == self.region;
        let stride = data.strides.iter().find(own).map_or(0, |&(_, stride)| i64::from(stride));
        let base = i64::from(data.base) + stride * i64::from(iteration);
        data.strides.retain(|&mut (region, stride)| region != self.region && stride != 0);
        // It is not negative.
        let index = usize::try_from(base).unwrap_or(0);
        if data.strides.is_empty() {
            let bits = match &self.draft.graph.series[data.series] {
                SeriesData::Constants(numbers) => numbers.get(index).copied(),
                SeriesData::Nodes(nodes) => match nodes.get(index).copied() {
                    Some(node) => return self.copied(node, iteration),
                    None => None,
                },
                &SeriesData::Inputs { first, .. } => {
                    return self.draft.input(first + index as u32);
                }
                SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => None,
            };
            if let Some(bits) = bits {
                return self.draft.constant(f64::from_bits(bits));
            }
        }
        data.base = index as u32;
        self.draft.read_at(self.region, data)
    }

    /// The elements of histories of what the loop computes: each with its
    /// iteration and the node of the loop.
    fn past(&self) -> Vec<(u32, Node, Node)> {
        let graph = &self.draft.graph;
        let root = graph.regions[self.region].root;
        let past = |(element, data): (Node, &NodeData)| {
            let Def::Element(access) = data.def else { return None };
            let data = &graph.accesses[access];
            match graph.series[data.series] {
                SeriesData::History(node) if self.draft.home(node) == Some(root) => {
                    Some((data.base, element, node))
                }
                _ => None,
            }
        };
        graph.nodes.iter().filter_map(past).collect()
    }
}
