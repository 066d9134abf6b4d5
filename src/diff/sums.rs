//! The adjoints of array elements: arrays of sums.
//!
//! The node that an element is depends on the iteration, so the sweep of `a[i]` cannot add to
//! the adjoint of one node. While a region that reads an array is swept, the adjoints of all
//! nodes of the array are elements of sums, and all other contributions to these nodes are
//! added to the sums as well. So each node has one accumulator, as on the tape.
//!
//! Arrays that share nodes share sums, if the position in the sums is an affine function of
//! the index in each: a part of an array, an array reversed, every other element. Otherwise a
//! node that is in two of them, or twice in one, has a second accumulator, which is added to
//! its adjoint in the end. The result differs in rounding only.
//!
//! A saved trajectory has sums of its own, from the end of the block with its loop up to the
//! sweep of the loop. Cells have theirs, from the end of the block that fills them.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::collections::BTreeMap;

use super::entry_phis::EntryOrder;
use super::input_adjoints::range;
use super::reverse::Reverse;
use crate::entity::PrimaryMap;
use crate::ssa::{Access, AccessData, Array, ArrayData, Def, Graph, Item, Node, Region};

/// The adjoints that are in sums at the current position.
pub(super) struct Sums {
    /// For each node the element that is its adjoint.
    places: PrimaryMap<Node, Option<(Array, u32)>>,
    /// For each array of nodes the map from its indices to sums.
    maps: PrimaryMap<Array, Option<Map>>,
    /// For each node the sums of its trajectory, and whether there was a contribution.
    trajectories: PrimaryMap<Node, Option<(Array, bool)>>,
    /// For each array of cells the sums that are its adjoint.
    cells: PrimaryMap<Array, Option<Array>>,
}

/// The position in sums of element i of an array: `scale · i + offset`.
#[derive(Clone, Copy)]
struct Map {
    sums: Array,
    scale: i64,
    offset: i64,
}

/// Sums that are in use while a region is swept.
#[derive(Default)]
pub(super) struct Opened {
    /// The arrays of the gradient graph, with their elements.
    sums: Vec<(Array, Vec<Slot>)>,
    /// The arrays of the primal graph whose adjoints they are.
    arrays: Vec<Array>,
}

/// The meaning of an element of sums.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    /// Not used.
    Unused,
    /// The adjoint of a node.
    Adjoint(Node),
    /// A second accumulator of a node.
    Part(Node),
}

impl Sums {
    pub(super) fn new(graph: &Graph) -> Self {
        Sums {
            places: PrimaryMap::filled(None, graph.nodes.len()),
            maps: PrimaryMap::filled(None, graph.arrays.len()),
            trajectories: PrimaryMap::filled(None, graph.nodes.len()),
            cells: PrimaryMap::filled(None, graph.arrays.len()),
        }
    }
}

impl Reverse<'_> {
    /// True if the adjoint of `node` is in sums.
    pub(super) fn has_sum(&self, node: Node) -> bool {
        self.place(node).is_some()
    }

    /// The array and the index of the adjoint of `node`, if it is in sums.
    pub(super) fn place(&self, node: Node) -> Option<(Array, u32)> {
        match self.graph.nodes[node].def {
            Def::Input(number) => self.output_element_of(number).or(self.sums.places[node]),
            _ => self.sums.places[node],
        }
    }

    /// True if `node` has no adjoint yet, or one in `opened` that began with 0.
    pub(super) fn is_empty(&self, opened: &Opened, node: Node) -> bool {
        let Some((sums, at)) = self.place(node) else { return self.adjoints.get(node).is_none() };
        let is_zero = match &self.builder.graph().arrays[sums] {
            ArrayData::Sums(firsts) => firsts.get(at as usize).is_some_and(Option::is_none),
            _ => false,
        };
        is_zero && opened.sums.iter().any(|&(array, _)| array == sums)
    }

    /// The sums, and the smallest and the largest index in them, for the element at `access`.
    pub(super) fn places(&self, access: Access) -> Option<(Array, i64, i64)> {
        let data = &self.graph.accesses[access];
        let Map { sums, scale, offset } = self.map(access)?;
        let (low, high) = range(self.graph, data);
        let (one, other) = (scale * low + offset, scale * high + offset);
        Some((sums, one.min(other), one.max(other)))
    }

    /// The map from the indices of `access` to sums.
    fn map(&self, access: Access) -> Option<Map> {
        let outputs =
            self.output_array_of(access).map(|(sums, offset)| Map { sums, scale: 1, offset });
        outputs.or(self.sums.maps[self.graph.accesses[access].array])
    }

    /// True if the adjoints of the elements of `array` are in sums.
    pub(super) fn is_open(&self, array: Array) -> bool {
        self.sums.maps[array].is_some()
    }

    /// Adds `increment` to the sum that is the adjoint of `node`, if there is one.
    pub(super) fn add_to_sum(&mut self, node: Node, increment: Node) -> bool {
        let Some((array, base)) = self.place(node) else { return false };
        let access =
            AccessData { array, base, strides: Default::default(), changes: Default::default() };
        self.builder.accumulate(access, increment);
        true
    }

    /// Moves the adjoints of the elements of `array` and of `others` to sums, until
    /// [`Reverse::close_sums`].
    pub(super) fn open_sums(&mut self, array: &[Array], others: &[Node]) -> Opened {
        let graph = self.graph;
        let mut layout = Layout::default();
        let nodes = |&array: &Array| match &graph.arrays[array] {
            ArrayData::Nodes(nodes) => Some((array, &nodes[..])),
            _ => None,
        };
        let mut order: Vec<(Array, &[Node])> = array.iter().filter_map(nodes).collect();
        // Longer ones first, so that shorter ones may be parts of them.
        order.sort_by_key(|&(array, nodes)| (core::cmp::Reverse(nodes.len()), array));
        let mut found = Vec::new();
        for &(array, nodes) in &order {
            let place = layout.place(nodes, |node| self.slot(node));
            if place.in_parts {
                self.mark_readers_reordered(&[array]);
            }
            found.push((array, place));
        }
        let others: Vec<Node> = others.iter().copied().filter(|&n| !layout.has(n)).collect();
        if !others.is_empty() {
            layout.place(&others, |node| self.slot(node));
        }
        let mut opened = Opened::default();
        let mut begins = Vec::new();
        for buffer in layout.buffers {
            let low = buffer.keys().next().copied().unwrap_or(0);
            let high = buffer.keys().next_back().copied().unwrap_or(-1);
            let slot = |at: i64| buffer.get(&at).copied().unwrap_or(Slot::Unused);
            let slots: Vec<Slot> = (low..=high).map(slot).collect();
            let first = |slot: &Slot| match *slot {
                Slot::Adjoint(node) => self.adjoints.get(node),
                Slot::Unused | Slot::Part(_) => None,
            };
            let firsts = slots.iter().map(first).collect();
            let sums = self.builder.array(ArrayData::Sums(firsts));
            self.builder.fill(sums);
            for (slot, base) in slots.iter().zip(0..) {
                if let Slot::Adjoint(node) = *slot {
                    self.sums.places[node] = Some((sums, base));
                }
            }
            opened.sums.push((sums, slots));
            begins.push((sums, low));
        }
        for (array, place) in found {
            let (sums, low) = begins[place.buffer];
            let Placement { scale, offset, .. } = place;
            self.sums.maps[array] = Some(Map { sums, scale, offset: offset - low });
            opened.arrays.push(array);
        }
        opened
    }

    /// The element of sums that a `node` of an array requires.
    fn slot(&self, node: Node) -> Slot {
        match (self.primal.varied[node], self.place(node)) {
            (false, _) => Slot::Unused,
            (true, None) => Slot::Adjoint(node),
            (true, Some(_)) => Slot::Part(node),
        }
    }

    /// Moves the adjoints back from sums to nodes, and adds second accumulators.
    pub(super) fn close_sums(&mut self, opened: &Opened) {
        for &array in &opened.arrays {
            self.sums.maps[array] = None;
        }
        let mut parts: Vec<(Node, AccessData)> = Vec::new();
        for &(array, ref slots) in &opened.sums {
            for (&slot, base) in slots.iter().zip(0..) {
                let access = AccessData {
                    array,
                    base,
                    strides: Default::default(),
                    changes: Default::default(),
                };
                match slot {
                    Slot::Unused => {}
                    Slot::Adjoint(node) => {
                        self.sums.places[node] = None;
                        let adjoint = self.builder.element(access);
                        self.adjoints.set(node, adjoint);
                    }
                    Slot::Part(node) => parts.push((node, access)),
                }
            }
        }
        for (node, access) in parts {
            let part = self.builder.element(access);
            self.add(node, part);
        }
    }

    /// Adds `increment` to the adjoint of the element at `access`.
    pub(super) fn add_to_element(&mut self, access: Access, increment: Node) {
        let graph = self.graph;
        let data = &graph.accesses[access];
        match &graph.arrays[data.array] {
            ArrayData::Constants(_) | ArrayData::Sums(_) | ArrayData::Outputs { .. } => {}
            ArrayData::Cells(_) => {
                if let Some(sums) = self.sums.cells[data.array] {
                    self.accumulate(data, Map { sums, scale: 1, offset: 0 }, increment);
                }
            }
            &ArrayData::Saved(saved) => {
                let Some((sums, _)) = self.sums.trajectories[saved] else { return };
                self.sums.trajectories[saved] = Some((sums, true));
                let offset = i64::from(self.order.lag[saved]);
                self.accumulate(data, Map { sums, scale: 1, offset }, increment);
            }
            ArrayData::Inputs { .. } | ArrayData::Nodes(_) => {
                if let Some(node) = self.primal.known_element(access) {
                    if self.primal.varied[node] {
                        self.add(node, increment);
                    }
                } else if let Some(map) = self.map(access) {
                    self.accumulate(data, map, increment);
                } else {
                    // It reads nodes of its own iteration.
                    let opened = self.open_sums(&[data.array], &[]);
                    if let Some(map) = self.map(access) {
                        self.accumulate(data, map, increment);
                    }
                    self.close_sums(&opened);
                }
            }
        }
    }

    /// Adds `increment` to the adjoint of `saved` in iteration `at`.
    pub(super) fn add_to_trajectory(&mut self, saved: Node, at: u32, increment: Node) {
        let Some((array, _)) = self.sums.trajectories[saved] else { return };
        self.sums.trajectories[saved] = Some((array, true));
        let base = at.saturating_add(self.order.lag[saved]);
        let access =
            AccessData { array, base, strides: Default::default(), changes: Default::default() };
        self.builder.accumulate(access, increment);
    }

    /// True if the trajectory of `node` has sums.
    pub(super) fn has_trajectory(&self, node: Node) -> bool {
        self.sums.trajectories[node].is_some()
    }

    fn accumulate(&mut self, data: &AccessData, map: Map, increment: Node) {
        let base = map.scale * i64::from(data.base) + map.offset;
        let changing = data.strides.iter().filter(|&&(r, _)| self.graph.bound(r) > 1);
        let scale = i32::try_from(map.scale).unwrap_or(0);
        let stride = |&(region, stride): &(Region, i32)| {
            self.region_copy[region].map(|copy| (copy, stride.saturating_mul(scale)))
        };
        let strides = changing.filter_map(stride).collect();
        let changes = data.changes.iter().filter_map(stride).collect();
        let base = u32::try_from(base).unwrap_or(0);
        let access = AccessData { array: map.sums, base, strides, changes };
        self.builder.accumulate(access, increment);
    }

    /// Sets the sums for the trajectories of `region` to zero.
    pub(super) fn zero_trajectory_adjoints(&mut self, region: Region) {
        for &saved in &self.primal.trajectories[region] {
            let count = self.graph.bound(region) as usize + self.order.lag[saved] as usize;
            let sums = self.builder.array(ArrayData::Sums(vec![None; count]));
            self.builder.fill(sums);
            self.sums.trajectories[saved] = Some((sums, false));
        }
    }

    /// Sets the adjoints of cells that `items`, the steps of a block, fill to zero.
    pub(super) fn zero_cell_adjoints(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Fill(array) = *item
                && let ArrayData::Cells(count) = self.graph.arrays[array]
                && self.primal.varied_cells[array]
            {
                let sums = self.builder.array(ArrayData::Sums(vec![None; count as usize]));
                self.builder.fill(sums);
                self.sums.cells[array] = Some(sums);
            }
        }
    }

    /// Adds the adjoint of the cell at `access` to that of `node`, which has been stored there.
    pub(super) fn propagate_store(&mut self, access: Access, node: Node) {
        let data = &self.graph.accesses[access];
        if self.primal.varied[node]
            && let Some(array) = self.sums.cells[data.array]
        {
            let access = data.with_loops(array, |region| self.region_copy[region]);
            let adjoint = self.builder.element(access);
            self.add(node, adjoint);
        }
    }

    /// The access of the gradient graph to the same cell.
    pub(super) fn copied_cell(&self, access: Access) -> Option<AccessData> {
        let data = &self.graph.accesses[access];
        let array = self.cells_copy[data.array]?;
        Some(data.with_loops(array, |region| self.region_copy[region]))
    }

    fn copied_strides(&self, data: &AccessData) -> SmallVec<[(Region, i32); 2]> {
        let stride = |&(region, stride): &(Region, i32)| Some((self.region_copy[region]?, stride));
        data.strides.iter().filter_map(stride).collect()
    }

    /// The sums for the trajectory of `node`, if there was a contribution.
    pub(super) fn trajectory_adjoints(&self, node: Node) -> Option<Array> {
        self.sums.trajectories[node].filter(|&(_, is_used)| is_used).map(|(sums, _)| sums)
    }

    /// Starts the adjoint of each node of the loop `region` with a trajectory from the adjoint of
    /// its element in the current iteration, unless an entry φ starts from that.
    pub(super) fn seed_from_trajectories(&mut self, region: Region, entry_order: &EntryOrder) {
        let Some(copy) = self.region_copy[region] else { return };
        for &saved in &self.primal.trajectories[region] {
            if let Some(array) = self.trajectory_adjoints(saved)
                && !self.seeds_phi_chain(saved, entry_order)
            {
                let (base, strides) =
                    (self.order.lag[saved], core::iter::once((copy, 1)).collect());
                let adjoint = self.builder.element(AccessData {
                    array,
                    base,
                    strides,
                    changes: Default::default(),
                });
                self.adjoints.set(saved, adjoint);
            }
        }
    }

    /// The copy of the element at `access`.
    pub(super) fn copy_element(&mut self, access: Access) -> Node {
        let graph = self.graph;
        let data = &graph.accesses[access];
        let copy = match &graph.arrays[data.array] {
            &ArrayData::Saved(saved) => {
                let region = self.primal.nest.node_loop(saved).and_then(|r| self.region_copy[r]);
                let saved = self.copied(saved);
                return match region {
                    Some(region) => {
                        let strides = self.copied_strides(data);
                        self.builder.saved(region, saved, data.base, &strides)
                    }
                    None => saved,
                };
            }
            ArrayData::Nodes(nodes) => {
                ArrayData::Nodes(nodes.iter().map(|&node| self.copied(node)).collect())
            }
            ArrayData::Cells(_) => {
                return match self.copied_cell(access) {
                    Some(cell) => self.builder.element(cell),
                    None => self.builder.constant(f64::NAN),
                };
            }
            other => other.clone(),
        };
        let array = self.builder.array(copy);
        self.builder.element(data.with_loops(array, |region| self.region_copy[region]))
    }
}

/// The layout of new sums.
#[derive(Default)]
struct Layout {
    /// The elements by index, which may be negative until the layout is complete.
    buffers: Vec<BTreeMap<i64, Slot>>,
    /// The buffer and the index of the adjoint of each node.
    known: HashMap<Node, (usize, i64)>,
}

/// The placement of an array: element i is at `scale · i + offset` of a buffer.
struct Placement {
    buffer: usize,
    scale: i64,
    offset: i64,
    /// True if some nodes have a second accumulator.
    in_parts: bool,
}

impl Layout {
    fn has(&self, node: Node) -> bool {
        self.known.contains_key(&node)
    }

    /// Places an array of these nodes.
    fn place(&mut self, nodes: &[Node], slot: impl Fn(Node) -> Slot) -> Placement {
        let slots: Vec<Slot> = nodes.iter().map(|&node| slot(node)).collect();
        let place = self.candidates(&slots).into_iter().find(|place| self.fits(&slots, place));
        let is_new = place.is_none();
        let mut place = place.unwrap_or_else(|| {
            self.buffers.push(BTreeMap::new());
            Placement { buffer: self.buffers.len() - 1, scale: 1, offset: 0, in_parts: false }
        });
        for (&slot, index) in slots.iter().zip(0..) {
            let position = place.scale * index + place.offset;
            let slot = match slot {
                Slot::Adjoint(node) if !self.has(node) => {
                    self.known.insert(node, (place.buffer, position));
                    slot
                }
                Slot::Adjoint(node) if is_new => Slot::Part(node),
                slot => slot,
            };
            place.in_parts |= matches!(slot, Slot::Part(_));
            self.buffers[place.buffer].entry(position).or_insert(slot);
        }
        place
    }

    /// The placements that agree with the first two nodes of `slots` that are placed already.
    fn candidates(&self, slots: &[Slot]) -> Vec<Placement> {
        let known = slots.iter().zip(0i64..).filter_map(|(&slot, index)| match slot {
            Slot::Adjoint(node) => self.known.get(&node).map(|&(buffer, at)| (index, buffer, at)),
            Slot::Unused | Slot::Part(_) => None,
        });
        let known: Vec<(i64, usize, i64)> = known.take(2).collect();
        let place = |buffer, scale, index: i64, at: i64| {
            let offset = at - scale * index;
            Placement { buffer, scale, offset, in_parts: false }
        };
        match *known {
            [(index, buffer, at)] => {
                vec![place(buffer, 1, index, at), place(buffer, -1, index, at)]
            }
            [(index, buffer, at), (other, _, to)] => {
                let (rise, run) = (to - at, other - index);
                if rise != 0 && rise % run == 0 {
                    vec![place(buffer, rise / run, index, at)]
                } else {
                    vec![]
                }
            }
            _ => vec![],
        }
    }

    fn fits(&self, slots: &[Slot], place: &Placement) -> bool {
        let buffer = &self.buffers[place.buffer];
        let mut known = 0;
        let each_fits = slots.iter().zip(0..).all(|(&slot, index)| {
            let at = place.scale * index + place.offset;
            let place_of = match slot {
                Slot::Adjoint(node) => self.known.get(&node),
                Slot::Unused | Slot::Part(_) => None,
            };
            match (place_of, buffer.get(&at)) {
                (Some(&found), _) => {
                    known += 1;
                    found == (place.buffer, at)
                }
                (None, Some(&there)) => there == Slot::Unused && slot == Slot::Unused,
                (None, None) => true,
            }
        });
        // A buffer with more gaps than elements does not pay.
        let last = place.scale * (slots.len() as i64 - 1) + place.offset;
        let low = buffer.keys().next().into_iter().copied().chain([place.offset, last]).min();
        let high = buffer.keys().next_back().into_iter().copied().chain([place.offset, last]).max();
        let extent = high.unwrap_or(0) - low.unwrap_or(0) + 1;
        // A node that occurs twice has no position before its first occurrence.
        let mut seen = HashSet::new();
        let mut nodes = slots.iter().filter(|&&slot| slot != Slot::Unused);
        each_fits
            && nodes.all(|slot| seen.insert(slot))
            && extent as usize <= 2 * (buffer.len() + slots.len() - known)
    }
}
