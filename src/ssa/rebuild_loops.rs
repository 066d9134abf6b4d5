//! Copies loops, arrays and accesses through the folding builder.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::analysis::{Flow, is_value_used};
use super::arrays::{Access, AccessData, Array, ArrayData, Loop};
use super::dead::Live;
use super::graph::{Def, End, Graph, Node, Region};
use super::rebuild::Rebuild;
use crate::entity::PrimaryMap;

impl Rebuild<'_> {
    /// Replaces entry φs that keep their initial values.
    pub(super) fn replace_invariant_entries(&mut self, live: &mut Live) {
        self.invariant_entries = invariant_entries(self.graph);
        for (node, &invariant) in self.invariant_entries.iter() {
            live.nodes[node] &= !invariant;
        }
    }

    pub(super) fn begin_loop(
        &mut self,
        cycle: &Loop,
        replays: Option<Region>,
        live: &Live,
    ) -> Region {
        let entries = cycle.entries.iter().filter(|entry| live.nodes[entry.phi]);
        let firsts: Vec<Node> = entries.clone().map(|entry| self.copied(entry.first)).collect();
        let (new, phis) = self.builder.begin_loop(cycle.bound, &firsts, replays);
        for (entry, phi) in entries.zip(phis) {
            self.copies[entry.phi] = Some(phi);
        }
        new
    }

    pub(super) fn copy_element(&mut self, access: Access) -> Node {
        let graph = self.graph;
        self.element(&graph.accesses[access])
    }

    /// The element of the new graph at the copy of `data`.
    pub(crate) fn element(&mut self, data: &AccessData) -> Node {
        let ArrayData::Saved(node) = self.graph.arrays[data.array] else {
            let access = self.access_of(data);
            return self.builder.element(access);
        };
        let region = self.nest.node_loop(node).and_then(|region| self.regions[region]);
        let (strides, node) = (self.strides(data), self.copied(node));
        match region {
            Some(region) => self.builder.saved(region, node, data.base, &strides),
            None => self.builder.poison(),
        }
    }

    /// The copy of `access`, which is not to saved values.
    pub(super) fn access(&mut self, access: Access) -> AccessData {
        let graph = self.graph;
        self.access_of(&graph.accesses[access])
    }

    fn access_of(&mut self, data: &AccessData) -> AccessData {
        let array = self.array(data.array);
        data.with_loops(array, |region| self.regions[region])
    }

    /// The index of `data` as a node.
    pub(crate) fn index(&mut self, data: &AccessData) -> Node {
        let strides = self.strides(data);
        self.builder.index(data.base, &strides)
    }

    fn strides(&self, data: &AccessData) -> SmallVec<[(Region, i32); 2]> {
        let copied = |&(region, stride)| Some((self.regions[region]?, stride));
        data.strides.iter().filter_map(copied).collect()
    }

    /// The copy of `array`, which is not of saved values. Its nodes are visible at the access,
    /// and may have other copies elsewhere.
    pub(super) fn array(&mut self, array: Array) -> Array {
        if let Some(copy) = self.written[array] {
            return copy;
        }
        let graph = self.graph;
        let copy = match &graph.arrays[array] {
            ArrayData::Nodes(nodes) => {
                ArrayData::Nodes(nodes.iter().map(|&node| self.copied(node)).collect())
            }
            ArrayData::Sums(firsts) => {
                let copied = |first: &Option<Node>| first.map(|first| self.copied(first));
                ArrayData::Sums(firsts.iter().map(copied).collect())
            }
            other => other.clone(),
        };
        let has_identity = copy.has_identity();
        let copy = self.builder.array(copy);
        if has_identity {
            self.written[array] = Some(copy);
        }
        copy
    }
}

/// True if `graph` has an entry φ that keeps its initial value in all iterations.
pub(super) fn has_invariant_entries(graph: &Graph) -> bool {
    invariant_entries(graph).values().any(|&invariant| invariant)
}

/// Finds the entry φs that keep their initial value: each leaf that continues the loop passes on
/// the φ itself, or its initial value, perhaps through other such φs.
fn invariant_entries(graph: &Graph) -> PrimaryMap<Node, bool> {
    let mut invariant = PrimaryMap::filled(false, graph.nodes.len());
    if graph.regions.values().all(|data| data.cycle.is_none()) {
        return invariant;
    }
    let flow = Flow::of(graph);
    // The value that each entry φ is known to keep.
    let mut known_value: PrimaryMap<Node, Node> = graph.nodes.keys().collect();
    // Equal constants are equal values.
    let mut constants: HashMap<u64, Node> = HashMap::new();
    for (node, data) in graph.nodes.iter() {
        if let Def::Const(bits) = data.def {
            known_value[node] = *constants.entry(bits).or_insert(node);
        }
    }
    // Iterates to a fixed point: nested loops depend on each other in both directions.
    let mut changed = true;
    while core::mem::take(&mut changed) {
        for region in graph.regions.keys() {
            let (conditions, _) = graph.passed_before_phis(region);
            for (number, entry) in graph.entries(region).iter().enumerate() {
                if invariant[entry.phi] {
                    continue;
                }
                let first = known_value[entry.first];
                let next_value = |&leaf| match &graph.blocks[leaf].end {
                    End::Return(values)
                        if is_value_used(graph, region, values, conditions + number) =>
                    {
                        values.get(conditions + number).copied()
                    }
                    _ => None,
                };
                let mut nexts = flow.leaves(region).iter().filter_map(next_value);
                if nexts.all(|next| next == entry.phi || known_value[next] == first) {
                    invariant[entry.phi] = true;
                    known_value[entry.phi] = first;
                    changed = true;
                }
            }
        }
    }
    invariant
}
