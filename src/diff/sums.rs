//! The adjoints of the elements of array.
//!
//! Which node an element of an array is depends on the iteration, so a sweep
//! cannot know to whose adjoint it adds. The adjoints of all nodes of the array
//! are elements of sums as long as a region is swept that reads the array, and
//! whatever else in it adds to one of these nodes adds to the sums as well: there
//! is one accumulator for each node, as on the tape.
//!
//! Series that share nodes share sums, where the place in the sums is an affine
//! function of the index in each: parts of a row, a row backwards, every other
//! element. Where there is no such function, a node that is in two of them, or
//! twice in one, has a second accumulator, which is added to its adjoint in the
//! end: the same but for rounding.
//!
//! A history has sums of its own, from the end of the block in which its loop
//! stands up to where the loop itself is swept.

use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

use super::activity::bound;
use super::arrays::range;
use super::reverse::Reverse;
use super::running::Running;
use crate::entity::PrimaryMap;
use crate::ssa::{Access, AccessData, Array, ArrayData, Def, Graph, Node, Region};

/// Which adjoints are in sums at present.
pub(super) struct Sums {
    /// For each node the place that is its adjoint.
    places: PrimaryMap<Node, Option<(Array, u32)>>,
    /// For each array of nodes where its elements are.
    maps: PrimaryMap<Array, Option<Map>>,
    /// For each node the sums of its history, and whether anything has been added.
    pasts: PrimaryMap<Node, Option<(Array, bool)>>,
}

/// Where the elements of an array of the graph are in sums of the new one.
#[derive(Clone, Copy)]
struct Map {
    sums: Array,
    scale: i64,
    offset: i64,
}

/// Sums that are open.
#[derive(Default)]
pub(super) struct Opened {
    /// The new array, with the nodes in each.
    sums: Vec<(Array, Vec<Slot>)>,
    /// The array whose elements they are.
    arrays: Vec<Array>,
}

/// What an element of sums is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Slot {
    /// Of no interest.
    Unused,
    /// The adjoint of a node.
    Adjoint(Node),
    /// A part of the adjoint of a node.
    Part(Node),
}

impl Sums {
    pub(super) fn new(graph: &Graph) -> Self {
        Sums {
            places: PrimaryMap::filled(None, graph.nodes.len()),
            maps: PrimaryMap::filled(None, graph.arrays.len()),
            pasts: PrimaryMap::filled(None, graph.nodes.len()),
        }
    }
}

impl Reverse<'_> {
    /// Whether the adjoint of `node` is in sums at present.
    pub(super) fn has_sum(&self, node: Node) -> bool {
        self.place(node).is_some()
    }

    /// The sums that have the adjoint of `node` at present, and where.
    pub(super) fn place(&self, node: Node) -> Option<(Array, u32)> {
        match self.graph.nodes[node].def {
            Def::Input(number) => self.place_of_input(number).or(self.sums.places[node]),
            _ => self.sums.places[node],
        }
    }

    /// Whether `node` has no adjoint yet, or one in these sums that began there with 0.
    pub(super) fn is_empty(&self, opened: &Opened, node: Node) -> bool {
        let Some((sums, at)) = self.place(node) else { return self.adjoints.get(node).is_none() };
        let is_zero = match &self.builder.graph().arrays[sums] {
            ArrayData::Sums(firsts) => firsts.get(at as usize).is_some_and(Option::is_none),
            _ => false,
        };
        is_zero && opened.sums.iter().any(|&(array, _)| array == sums)
    }

    /// The least and the largest place in sums that the element at `access` may have at
    /// present.
    pub(super) fn places(&self, access: Access) -> Option<(Array, i64, i64)> {
        let data = &self.graph.accesses[access];
        let Map { sums, scale, offset } = self.map(access)?;
        let (low, high) = range(self.graph, data);
        let (one, other) = (scale * low + offset, scale * high + offset);
        Some((sums, one.min(other), one.max(other)))
    }

    /// Where the elements that `access` reads have their adjoints at present.
    fn map(&self, access: Access) -> Option<Map> {
        let row = self.row_of(access).map(|(sums, offset)| Map { sums, scale: 1, offset });
        row.or(self.sums.maps[self.graph.accesses[access].array])
    }

    /// Whether the adjoints of the elements of `array` are in sums at present.
    pub(super) fn is_open(&self, array: Array) -> bool {
        self.sums.maps[array].is_some()
    }

    /// Adds `passed` to the sum that is the adjoint of `node`, if there is one.
    pub(super) fn add_to_sum(&mut self, node: Node, passed: Node) -> bool {
        let Some((array, base)) = self.place(node) else { return false };
        let access = AccessData { array, base, strides: Default::default() };
        self.builder.accumulate(access, passed);
        true
    }

    /// Puts the adjoints of the elements of `array`, and those of `others`, in
    /// sums, until they are closed.
    pub(super) fn open_sums(&mut self, array: &[Array], others: &[Node]) -> Opened {
        let graph = self.graph;
        let mut layout = Layout::default();
        let nodes = |&array: &Array| match &graph.arrays[array] {
            ArrayData::Nodes(nodes) => Some((array, &nodes[..])),
            _ => None,
        };
        let mut order: Vec<(Array, &[Node])> = array.iter().filter_map(nodes).collect();
        // Longer ones first, so that others are parts of them.
        order.sort_by_key(|&(array, nodes)| (core::cmp::Reverse(nodes.len()), array));
        let mut found = Vec::new();
        for &(array, nodes) in &order {
            let place = layout.place(nodes, |node| self.slot(node));
            if place.in_parts {
                self.refuse_readers(&[array]);
            }
            found.push((array, place));
        }
        let others: Vec<Node> = others.iter().copied().filter(|&n| !layout.has(n)).collect();
        if !others.is_empty() {
            layout.place(&others, |node| self.slot(node));
        }
        let mut opened = Opened::default();
        let mut begins = Vec::new();
        for row in layout.rows {
            let low = row.keys().next().copied().unwrap_or(0);
            let high = row.keys().next_back().copied().unwrap_or(-1);
            let slot = |at: i64| row.get(&at).copied().unwrap_or(Slot::Unused);
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
            let (sums, low) = begins[place.row];
            let Place { scale, offset, .. } = place;
            self.sums.maps[array] = Some(Map { sums, scale, offset: offset - low });
            opened.arrays.push(array);
        }
        opened
    }

    /// What the element of an array that is `node` needs in sums.
    fn slot(&self, node: Node) -> Slot {
        match (self.activity.active[node], self.place(node)) {
            (false, _) => Slot::Unused,
            (true, None) => Slot::Adjoint(node),
            (true, Some(_)) => Slot::Part(node),
        }
    }

    /// Takes the adjoints out of sums again.
    pub(super) fn close_sums(&mut self, opened: &Opened) {
        for &array in &opened.arrays {
            self.sums.maps[array] = None;
        }
        let mut parts: Vec<(Node, AccessData)> = Vec::new();
        for &(array, ref slots) in &opened.sums {
            for (&slot, base) in slots.iter().zip(0..) {
                let access = AccessData { array, base, strides: Default::default() };
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

    /// Adds `passed` to the adjoint of the element at `access`.
    pub(super) fn add_to_element(&mut self, access: Access, passed: Node) {
        let graph = self.graph;
        let data = &graph.accesses[access];
        match &graph.arrays[data.array] {
            ArrayData::Constants(_) | ArrayData::Sums(_) | ArrayData::Outputs { .. } => {}
            &ArrayData::Saved(past) => {
                let Some((sums, _)) = self.sums.pasts[past] else { return };
                self.sums.pasts[past] = Some((sums, true));
                let offset = i64::from(self.order.lead[past]);
                self.accumulate(data, Map { sums, scale: 1, offset }, passed);
            }
            ArrayData::Inputs { .. } | ArrayData::Nodes(_) => {
                if let Some(node) = self.activity.fixed(access) {
                    if self.activity.active[node] {
                        self.add(node, passed);
                    }
                } else if let Some(map) = self.map(access) {
                    self.accumulate(data, map, passed);
                } else {
                    // It reads nodes of the iteration that it is in itself.
                    let opened = self.open_sums(&[data.array], &[]);
                    if let Some(map) = self.map(access) {
                        self.accumulate(data, map, passed);
                    }
                    self.close_sums(&opened);
                }
            }
        }
    }

    /// Adds `passed` to the sum of what `past` was in iteration number `at`.
    pub(super) fn add_to_past(&mut self, past: Node, at: u32, passed: Node) {
        let Some((array, _)) = self.sums.pasts[past] else { return };
        self.sums.pasts[past] = Some((array, true));
        let base = at.saturating_add(self.order.lead[past]);
        let access = AccessData { array, base, strides: Default::default() };
        self.builder.accumulate(access, passed);
    }

    /// Whether what is read later of `node` has sums at present.
    pub(super) fn has_past(&self, node: Node) -> bool {
        self.sums.pasts[node].is_some()
    }

    fn accumulate(&mut self, data: &AccessData, map: Map, passed: Node) {
        let base = map.scale * i64::from(data.base) + map.offset;
        let changing = data.strides.iter().filter(|&&(r, _)| bound(self.graph, r) > 1);
        let scale = i32::try_from(map.scale).unwrap_or(0);
        let stride = |&(region, stride): &(Region, i32)| {
            self.region_copy[region].map(|copy| (copy, stride.saturating_mul(scale)))
        };
        let strides = changing.filter_map(stride).collect();
        let base = u32::try_from(base).unwrap_or(0);
        self.builder.accumulate(AccessData { array: map.sums, base, strides }, passed);
    }

    /// Begins the sums of what is read later of the history of `region`.
    pub(super) fn fill_pasts(&mut self, region: Region) {
        for &past in &self.activity.pasts[region] {
            let count = bound(self.graph, region) as usize + self.order.lead[past] as usize;
            let sums = self.builder.array(ArrayData::Sums(vec![None; count]));
            self.builder.fill(sums);
            self.sums.pasts[past] = Some((sums, false));
        }
    }

    /// The sums of the history of `node`, if anything has been added to them.
    pub(super) fn past_sums(&self, node: Node) -> Option<Array> {
        self.sums.pasts[node].filter(|&(_, is_used)| is_used).map(|(sums, _)| sums)
    }

    /// Lets the adjoint of each node of the loop `region` that is read later begin
    /// with what it gets from there in the current iteration, unless it gets that by way
    /// of entry φs.
    pub(super) fn begin_with_pasts(&mut self, region: Region, running: &Running) {
        let Some(copy) = self.region_copy[region] else { return };
        for &past in &self.activity.pasts[region] {
            if let Some(array) = self.past_sums(past)
                && !self.begins_in_chain(past, running)
            {
                let (base, strides) =
                    (self.order.lead[past], core::iter::once((copy, 1)).collect());
                let adjoint = self.builder.element(AccessData { array, base, strides });
                self.adjoints.set(past, adjoint);
            }
        }
    }

    /// The copy of the element at `access`.
    pub(super) fn copy_element(&mut self, access: Access) -> Node {
        let graph = self.graph;
        let data = &graph.accesses[access];
        let stride = |&(region, stride): &(Region, i32)| Some((self.region_copy[region]?, stride));
        let strides: Vec<(Region, i32)> = data.strides.iter().filter_map(stride).collect();
        let copy = match &graph.arrays[data.array] {
            &ArrayData::Saved(past) => {
                let region = self.activity.nest.node_loop(past).and_then(|r| self.region_copy[r]);
                let past = self.copied(past);
                return match region {
                    Some(region) => self.builder.saved(region, past, data.base, &strides),
                    None => past,
                };
            }
            ArrayData::Nodes(nodes) => {
                ArrayData::Nodes(nodes.iter().map(|&node| self.copied(node)).collect())
            }
            other => other.clone(),
        };
        let array = self.builder.array(copy);
        let strides = strides.into_iter().collect();
        self.builder.element(AccessData { array, base: data.base, strides })
    }
}

/// Sums that are being laid out.
#[derive(Default)]
struct Layout {
    /// By index, which may be negative as long as they are laid out.
    rows: Vec<BTreeMap<i64, Slot>>,
    /// Where the adjoint of each node is.
    known: HashMap<Node, (usize, i64)>,
}

/// Where the elements of an array are: `scale · index + offset` in a row.
struct Place {
    row: usize,
    scale: i64,
    offset: i64,
    /// Whether some nodes have accumulators elsewhere, too.
    in_parts: bool,
}

impl Layout {
    fn has(&self, node: Node) -> bool {
        self.known.contains_key(&node)
    }

    /// Finds a place for an array of these nodes.
    fn place(&mut self, nodes: &[Node], slot: impl Fn(Node) -> Slot) -> Place {
        let slots: Vec<Slot> = nodes.iter().map(|&node| slot(node)).collect();
        let place = self.candidates(&slots).into_iter().find(|place| self.fits(&slots, place));
        let is_new = place.is_none();
        let mut place = place.unwrap_or_else(|| {
            self.rows.push(BTreeMap::new());
            Place { row: self.rows.len() - 1, scale: 1, offset: 0, in_parts: false }
        });
        for (&slot, index) in slots.iter().zip(0..) {
            let position = place.scale * index + place.offset;
            let slot = match slot {
                Slot::Adjoint(node) if !self.has(node) => {
                    self.known.insert(node, (place.row, position));
                    slot
                }
                Slot::Adjoint(node) if is_new => Slot::Part(node),
                slot => slot,
            };
            place.in_parts |= matches!(slot, Slot::Part(_));
            self.rows[place.row].entry(position).or_insert(slot);
        }
        place
    }

    /// The places where the nodes of `slots` that are known are at theirs.
    fn candidates(&self, slots: &[Slot]) -> Vec<Place> {
        let known = slots.iter().zip(0i64..).filter_map(|(&slot, index)| match slot {
            Slot::Adjoint(node) => self.known.get(&node).map(|&(row, at)| (index, row, at)),
            Slot::Unused | Slot::Part(_) => None,
        });
        let known: Vec<(i64, usize, i64)> = known.take(2).collect();
        let place = |row, scale, index: i64, at: i64| {
            let offset = at - scale * index;
            Place { row, scale, offset, in_parts: false }
        };
        match *known {
            [(index, row, at)] => vec![place(row, 1, index, at), place(row, -1, index, at)],
            [(index, row, at), (other, _, to)] => {
                let (rise, run) = (to - at, other - index);
                if rise != 0 && rise % run == 0 {
                    vec![place(row, rise / run, index, at)]
                } else {
                    vec![]
                }
            }
            _ => vec![],
        }
    }

    fn fits(&self, slots: &[Slot], place: &Place) -> bool {
        let row = &self.rows[place.row];
        let mut known = 0;
        let each_fits = slots.iter().zip(0..).all(|(&slot, index)| {
            let at = place.scale * index + place.offset;
            let place_of = match slot {
                Slot::Adjoint(node) => self.known.get(&node),
                Slot::Unused | Slot::Part(_) => None,
            };
            match (place_of, row.get(&at)) {
                (Some(&found), _) => {
                    known += 1;
                    found == (place.row, at)
                }
                (None, Some(&there)) => there == Slot::Unused && slot == Slot::Unused,
                (None, None) => true,
            }
        });
        // A row of gaps is no gain.
        let last = place.scale * (slots.len() as i64 - 1) + place.offset;
        let low = row.keys().next().into_iter().copied().chain([place.offset, last]).min();
        let high = row.keys().next_back().into_iter().copied().chain([place.offset, last]).max();
        let extent = high.unwrap_or(0) - low.unwrap_or(0) + 1;
        // A node that is there twice is not known before its first time.
        let mut seen = HashSet::new();
        let mut nodes = slots.iter().filter(|&&slot| slot != Slot::Unused);
        each_fits
            && nodes.all(|slot| seen.insert(slot))
            && extent as usize <= 2 * (row.len() + slots.len() - known)
    }
}
