//! Unrolling: short loops become straight-line code again.
//!
//! Loops are made of shorter repetition than it pays to run as a loop, so that
//! formulas see it. Those that are left when the formulas have been applied are
//! faster as straight-line code.

use hashbrown::{HashMap, HashSet};

use super::close::inside_out;
use super::recurrence::trips;
use crate::op::Op;
use crate::ssa::{
    AccessData, Copies, Def, End, Folding, Graph, Item, Nest, Node, NodeData, Region, Series,
    SeriesData, fallback_loops, in_order, simplify, verify,
};

/// `graph` with loops of fewer iterations, or that replace fewer steps, as
/// straight-line code, as far as they have no regions in them.
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
    let (nest, moving) = (Nest::of(graph), moving_histories(graph));
    let mut unrolling = Unrolling { graph: graph.clone(), nest, moving, cleared: HashSet::new() };
    let mut changed = false;
    // Those that hardly ever run are as good as loops.
    let fallback = fallback_loops(graph);
    for region in inside_out(graph).into_iter().filter(|region| !fallback.contains(region)) {
        let body = unrolling
            .short(region, |trips, steps| trips < u64::from(iterations) || trips * steps < weight);
        if let Some(body) = body {
            changed = true;
            unrolling.replace(region, &body);
        }
    }
    let unrolled = if changed { in_order(&unrolling.graph) } else { None };
    match unrolled.filter(|graph| verify(graph).is_ok()) {
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

/// A graph whose loops are unrolled from the inside out.
struct Unrolling {
    graph: Graph,
    nest: Nest,
    moving: HashSet<Series>,
    /// The loops that have been unrolled.
    cleared: HashSet<Region>,
}

/// The body of a loop that is unrolled.
struct Body {
    trips: u64,
    items: Vec<Item>,
    /// What its end passes on.
    values: Vec<Node>,
}

impl Unrolling {
    /// The body of `region`, if it is short and can be unrolled.
    fn short(&self, region: Region, is_short: impl Fn(u64, u64) -> bool) -> Option<Body> {
        let (graph, root) = (&self.graph, self.graph.regions[region].root);
        let End::Return(values) = &graph.blocks[root].end else { return None };
        if graph.regions[region].replays.is_some() {
            return None;
        }
        let (values, items) = (values.to_vec(), graph.blocks[root].items.clone());
        let trips = trips(graph, region, *values.first()?).ok()?;
        // Loops in it that have been unrolled before do nothing.
        let mut items = items;
        items.retain(|item| !matches!(item, Item::Region(of) if self.cleared.contains(of)));
        let is_plain = |item: &Item| matches!(item, Item::Node(_) | Item::Guard { .. });
        let is_copied = |item: &Item| match *item {
            Item::Node(node) => self.can_be_copied(region, node, trips),
            _ => true,
        };
        let is_read = |series: &Series| match graph.series[*series] {
            SeriesData::History(node) => self.nest.node_block(node) == Some(root),
            _ => false,
        };
        let is_unrolled = is_short(trips, items.len() as u64)
            && items.iter().all(is_plain)
            && items.iter().all(is_copied)
            && !self.moving.iter().any(is_read);
        is_unrolled.then_some(Body { trips, items, values })
    }

    /// Whether an element is one of its series in each iteration on its own.
    fn can_be_copied(&self, region: Region, node: Node, trips: u64) -> bool {
        let Def::Element(access) = self.graph.nodes[node].def else { return true };
        let data = &self.graph.accesses[access];
        let own = data.strides.iter().filter(|&&(of, _)| of == region);
        let last: i64 = own.map(|&(_, stride)| i64::from(stride) * (trips as i64 - 1)).sum();
        let moves = data.strides.iter().any(|&(of, stride)| of != region && stride != 0);
        let is_inside = |node: &Node| {
            let root = self.graph.regions[region].root;
            self.nest.node_block(*node) == Some(root)
        };
        let reads_inside = match &self.graph.series[data.series] {
            SeriesData::Nodes(nodes) => nodes.iter().any(is_inside),
            _ => false,
        };
        i64::from(data.base) + last >= 0 && !(moves && reads_inside)
    }

    /// Replaces `region` by its iterations.
    fn replace(&mut self, region: Region, body: &Body) {
        let Some(block) = self.nest.region_block(region) else { return };
        let decides = 1 + self.graph.entries(region).len();
        let entries = self.graph.entries(region).to_vec();
        let mut heads: Vec<Node> = entries.iter().map(|entry| entry.first).collect();
        let number = self.graph.nodes.iter().find(|(_, of)| of.def == Def::Iteration(region));
        let number = number.map(|(node, _)| node);
        let (past, mut items) = (self.past(region), Vec::new());
        let mut values = Vec::new();
        for iteration in 0..body.trips {
            let nodes = entries.iter().zip(&heads).map(|(entry, &head)| (entry.phi, head));
            let mut nodes: HashMap<Node, Node> = nodes.collect();
            if let Some(number) = number {
                nodes.insert(number, self.graph.push_const((iteration as f64).to_bits()));
            }
            let mut copies = Copies::of(nodes);
            for &item in &body.items {
                match item {
                    Item::Guard { condition, expect } => {
                        let condition = copies.node(condition);
                        items.push(Item::Guard { condition, expect });
                    }
                    Item::Node(node) => {
                        if let Some(copy) = self.copy(region, node, iteration, &mut copies) {
                            items.push(Item::Node(copy));
                        }
                    }
                    _ => {}
                }
            }
            values = body.values.iter().map(|&value| copies.node(value)).collect();
            heads = values[1..decides].to_vec();
            for &(_, element, node) in past.iter().filter(|&&(at, ..)| u64::from(at) == iteration) {
                self.alias(element, copies.node(node));
            }
        }
        let phis = self.graph.regions[region].phis.clone();
        for (&phi, &value) in phis.iter().zip(&values[decides..]) {
            self.alias(phi, value);
            items.push(Item::Node(phi));
        }
        let all = &mut self.graph.blocks[block].items;
        let at = all.iter().position(|&item| item == Item::Region(region));
        if let Some(at) = at {
            all.splice(at + 1..at + 1, items);
        }
        self.clear(region);
    }

    /// Leaves nothing of `region` but an iteration that does nothing, which is dead code.
    fn clear(&mut self, region: Region) {
        self.cleared.insert(region);
        let (root, zero) = (self.graph.regions[region].root, self.graph.push_const(0));
        let data = &mut self.graph.regions[region];
        data.phis.clear();
        let entries = data.cycle.as_mut().map_or(0, |cycle| {
            cycle.entries.iter_mut().for_each(|entry| entry.first = zero);
            cycle.entries.len()
        });
        let block = &mut self.graph.blocks[root];
        block.items.retain(|item| matches!(item, Item::Region(_)));
        block.end = End::Return(vec![zero; 1 + entries].into());
        // Nothing reads what it computed any more.
        let is_lost = |node: &Node| self.nest.node_block(*node) == Some(root);
        let all: Vec<Series> = self.graph.series.keys().collect();
        for series in all {
            let size = match &self.graph.series[series] {
                SeriesData::History(node) if is_lost(node) => 1,
                SeriesData::Nodes(nodes) if nodes.iter().any(is_lost) => nodes.len(),
                _ => continue,
            };
            self.graph.series[series] = SeriesData::Constants(vec![0; size].into());
        }
    }

    /// Lets `node` have the value of another one.
    fn alias(&mut self, node: Node, value: Node) {
        let one = self.graph.push_const(1.0f64.to_bits());
        self.graph.nodes[node].def = Def::Apply(Op::Mul, [value, one, value]);
    }

    /// What `node` is in this iteration; the new step, if it is one.
    fn copy(
        &mut self,
        region: Region,
        node: Node,
        iteration: u64,
        copies: &mut Copies,
    ) -> Option<Node> {
        let Def::Element(access) = self.graph.nodes[node].def else {
            return Some(copies.step(&mut self.graph, node));
        };
        let mut data = self.graph.accesses[access].clone();
        let own = |&&(of, _): &&(Region, i32)| of == region;
        let stride = data.strides.iter().find(own).map_or(0, |&(_, stride)| i64::from(stride));
        // It is not negative.
        let index = i64::from(data.base) + stride * iteration as i64;
        let index = usize::try_from(index).unwrap_or(0);
        data.base = index as u32;
        data.strides.retain(|&mut (of, stride)| of != region && stride != 0);
        let known =
            if data.strides.is_empty() { self.element(data.series, index, copies) } else { None };
        if let Some(value) = known {
            copies.nodes.insert(node, value);
            return None;
        }
        let (access, place) = (self.graph.accesses.push(data), self.graph.nodes[node].place);
        let copy = self.graph.nodes.push(NodeData { def: Def::Element(access), place });
        copies.nodes.insert(node, copy);
        Some(copy)
    }

    /// The node of an element, if it is one.
    fn element(&mut self, series: Series, index: usize, copies: &Copies) -> Option<Node> {
        match &self.graph.series[series] {
            SeriesData::Constants(numbers) => {
                let bits = numbers.get(index).copied()?;
                Some(self.graph.push_const(bits))
            }
            SeriesData::Nodes(nodes) => nodes.get(index).map(|&node| copies.node(node)),
            &SeriesData::Inputs { first, .. } => {
                let number = first + index as u32;
                let known = self.graph.input_nodes().find(|&(_, known)| known == number);
                Some(match known {
                    Some((node, _)) => node,
                    None => self.graph.push_input(number),
                })
            }
            SeriesData::History(_) | SeriesData::Sums(_) | SeriesData::Outputs { .. } => None,
        }
    }

    /// The elements of histories of what the loop computes: each with its
    /// iteration and the node of the loop.
    fn past(&self, region: Region) -> Vec<(u32, Node, Node)> {
        let (graph, root) = (&self.graph, self.graph.regions[region].root);
        let past = |(element, data): (Node, &NodeData)| {
            let Def::Element(access) = data.def else { return None };
            let data = &graph.accesses[access];
            match graph.series[data.series] {
                SeriesData::History(node) if self.nest.node_block(node) == Some(root) => {
                    Some((data.base, element, node))
                }
                _ => None,
            }
        };
        graph.nodes.iter().filter_map(past).collect()
    }
}
