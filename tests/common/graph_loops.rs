//! The generator's methods for loops and arrays.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::graphs::{Again, CONSTANTS, Ends, Generator, Position, is_small};
use phigrad::internals::op::Op;
use phigrad::internals::ssa::{Access, AccessData, Array, ArrayData, Block, Item, Node, Region};

/// The largest number of iterations of a loop.
const BOUND: usize = 5;

/// The loops and arrays that have been generated.
#[derive(Default)]
pub(super) struct Loops {
    /// The loops whose iteration number is visible.
    pub(super) counted: Vec<Region>,
    /// The properties of each loop.
    known: HashMap<Region, Known>,
    /// The accumulators that steps may add to, with their lengths.
    filling: Vec<(Array, usize)>,
    /// The accumulators that may be read here.
    pub(super) readable: Vec<(Array, usize)>,
}

#[derive(Clone, Default)]
struct Known {
    /// True if the trip count is the bound, unless the loop stops the graph.
    is_full: bool,
    /// The nodes with small values that are visible in a replay, besides those of its blocks.
    visible: Vec<Node>,
}

type Strides = SmallVec<[(Region, i32); 2]>;

impl Generator<'_> {
    /// A loop, or a loop that replays `replayed`.
    pub(super) fn cycle(&mut self, at: Position, replayed: Option<Region>) {
        let bound = match replayed.and_then(|region| self.graph.regions[region].cycle.as_ref()) {
            Some(cycle) => cycle.bound,
            None => 1 + self.random.below(BOUND) as u32,
        };
        let mut firsts: Vec<Node> = (0..self.random.below(4)).map(|_| self.value()).collect();
        let small = firsts.len();
        // One more entry φ may count up to a limit that depends on the inputs.
        let counts = replayed.is_none() && self.random.chance(0.4);
        if counts {
            firsts.push(self.value());
        }
        let place = self.place();
        let region = self.graph.push_region(at.block, replayed, place);
        let mut entries = self.graph.make_loop(region, bound, &firsts);
        let counter = entries.split_off(small);
        let block = self.graph.regions[region].root;
        let outside = (self.visible.len(), self.conditions.len());
        self.visible.extend(&entries);
        let mut known = Known { is_full: false, visible: entries.clone() };
        let again = match replayed {
            Some(replayed) => {
                let visible = self.loops.known.get(&replayed).map(|known| known.visible.clone());
                self.visible.extend(visible.unwrap_or_default());
                None
            }
            None => {
                let number = self.graph.push_iteration(region);
                known.visible.push(number);
                self.visible.push(number);
                let again = match counter.first() {
                    Some(&counter) => {
                        let value = self.value();
                        let limit = self.apply(block, Op::Abs, &[value]);
                        self.apply(block, Op::Lt, &[counter, limit])
                    }
                    None => {
                        let last = match self.random.below(20) {
                            0 => bound,
                            1..6 => self.random.below(bound as usize) as u32,
                            _ => bound - 1,
                        };
                        known.is_full = last + 1 >= bound && self.random.chance(0.7);
                        let last = self.graph.push_const(f64::from(last).to_bits());
                        self.apply(block, Op::Lt, &[number, last])
                    }
                };
                self.conditions.push(again);
                let (branches, breaks) = (self.random.chance(0.4), !known.is_full);
                Some(Again { node: again, branches, breaks })
            }
        };
        let values = self.passed_on(block, &entries, &firsts, counter.first().copied());
        let forward = replayed.map(|replayed| self.graph.regions[replayed].root);
        let forward = forward.or(at.forward);
        self.loops.counted.push(replayed.unwrap_or(region));
        let position = Position { block, forward, depth: at.depth + 1, branches: 0 };
        self.tree(position, Ends { again, values: &values });
        self.loops.counted.pop();
        self.visible.truncate(outside.0);
        self.conditions.truncate(outside.1);
        for _ in firsts.len()..values.len() {
            let phi = self.graph.push_phi(region);
            self.visible.push(phi);
        }
        self.loops.known.insert(region, known);
        if forward.is_none() {
            self.regions.push(region);
        }
    }

    /// The values that all leaves of a loop pass on for its entry φs, then for its φs; `None`
    /// where each passes on any value.
    fn passed_on(
        &mut self,
        block: Block,
        entries: &[Node],
        firsts: &[Node],
        counter: Option<Node>,
    ) -> Vec<Option<Node>> {
        let mut values = Vec::new();
        for (index, &entry) in entries.iter().enumerate() {
            values.push(match self.random.below(8) {
                0 => Some(entry),
                1 => Some(firsts[index]),
                2 | 3 => Some(entries[(index + 1) % entries.len()]),
                _ => None,
            });
        }
        if let Some(counter) = counter {
            let one = self.graph.push_const(1.0f64.to_bits());
            values.push(Some(self.apply(block, Op::Add, &[counter, one])));
        }
        for _ in 0..self.random.below(4) {
            values.push(self.random.chance(0.2).then(|| self.value()));
        }
        values
    }

    /// Ends a block with a branch to a leaf that continues the loop and one that exits.
    pub(super) fn branch_again(&mut self, at: Position, again: Again, values: &[Option<Node>]) {
        let (then, otherwise) = self.branch_to_new(at.block, again.node);
        for (block, goes_on) in [(then, 1.0f64), (otherwise, 0.0)] {
            let node = self.graph.push_const(goes_on.to_bits());
            let again = Some(Again { node, branches: false, breaks: again.breaks });
            let position = Position { block, branches: at.branches + 1, ..at };
            self.tree(position, Ends { again, values });
        }
    }

    pub(super) fn again_or_break(&mut self, again: Again) -> Node {
        match again.breaks && self.random.chance(0.2) {
            true => self.graph.push_const(0),
            false => again.node,
        }
    }

    /// Accumulators, a region that may add to them, and afterwards elements of them.
    pub(super) fn sums(&mut self, at: Position) {
        let first = |generator: &mut Self| {
            let is_set = generator.random.chance(0.4);
            is_set.then(|| generator.value())
        };
        let len = 1 + self.random.below(8);
        let firsts = (0..len).map(|_| first(self)).collect();
        let array = self.graph.arrays.push(ArrayData::Sums(firsts));
        self.graph.blocks[at.block].items.push(Item::Fill(array));
        self.loops.filling.push((array, len));
        self.add(at);
        self.cycle(at, None);
        self.add(at);
        self.loops.filling.pop();
        self.loops.readable.push((array, len));
        self.element(at);
    }

    /// Adds to an accumulator.
    fn add(&mut self, at: Position) {
        let (array, len) = self.random.pick(&self.loops.filling);
        let access = self.access(array, len);
        let value = self.value();
        self.graph.blocks[at.block].items.push(Item::Accumulate(access, value));
    }

    /// An element of an array, or a step that adds to an accumulator, if one can be added to
    /// here.
    pub(super) fn element(&mut self, at: Position) {
        let reads = |generator: &Self| !generator.loops.readable.is_empty();
        if !self.loops.filling.is_empty() && self.random.chance(0.5) {
            return self.add(at);
        }
        let has_inputs = self.graph.active + self.graph.inactive > 0;
        let access = match self.random.below(4) {
            0 if reads(self) => {
                let (array, len) = self.random.pick(&self.loops.readable);
                self.access(array, len)
            }
            0 | 1 => match self.saved() {
                Some(access) => access,
                None => return,
            },
            2 => {
                let len = 1 + self.random.below(8);
                let numbers = (0..len).map(|_| self.random.pick(&CONSTANTS).to_bits()).collect();
                let array = self.graph.arrays.push(ArrayData::Constants(numbers));
                self.access(array, len)
            }
            _ if has_inputs && self.random.chance(0.5) => {
                let (first, count) = self.consecutive_inputs();
                let array = self.graph.arrays.push(ArrayData::Inputs { first, count });
                self.access(array, count as usize)
            }
            _ => {
                let len = 1 + self.random.below(8);
                let nodes = (0..len).map(|_| self.value()).collect();
                let array = self.graph.arrays.push(ArrayData::Nodes(nodes));
                self.access(array, len)
            }
        };
        let place = self.place();
        let node = self.graph.push_element(at.block, access, place);
        let is_small = is_small(&self.graph, node);
        let node = if is_small { node } else { self.apply(at.block, Op::Atan, &[node]) };
        self.visible.push(node);
    }

    /// Consecutive inputs, all active or all inactive: the first and their number.
    fn consecutive_inputs(&mut self) -> (u32, u32) {
        let (active, inputs) = (self.graph.active, self.graph.active + self.graph.inactive);
        let first = self.random.below(inputs);
        let end = if first < active { active } else { inputs };
        (first as u32, 1 + self.random.below(end - first) as u32)
    }

    /// An access to saved values, if there are any.
    fn saved(&mut self) -> Option<Access> {
        let loops = self.regions.iter().copied();
        let loops: Vec<Region> = loops.filter(|r| self.loops.known.contains_key(r)).collect();
        let region = (!loops.is_empty()).then(|| self.random.pick(&loops))?;
        let known = self.loops.known.get(&region)?.clone();
        let mut nodes = known.visible;
        nodes.retain(|&node| self.graph.entries(region).iter().any(|entry| entry.phi == node));
        for item in &self.graph.blocks[self.graph.regions[region].root].items {
            match *item {
                Item::Node(node) if is_small(&self.graph, node) => nodes.push(node),
                Item::Region(inner) => nodes.extend(&self.graph.regions[inner].phis),
                _ => {}
            }
        }
        let node = (!nodes.is_empty()).then(|| self.random.pick(&nodes))?;
        let array = self.graph.arrays.push(ArrayData::Saved(node));
        if known.is_full {
            let bound = self.graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
            return Some(self.access(array, bound as usize));
        }
        // Only iterations that have run.
        let is_replayed = self.loops.counted.contains(&region) && self.random.chance(0.8);
        let strides = is_replayed.then_some((region, 1)).into_iter().collect();
        Some(self.graph.accesses.push(AccessData {
            array,
            base: 0,
            strides,
            changes: Default::default(),
        }))
    }

    /// A random access to `array`, which has `len` elements.
    fn access(&mut self, array: Array, len: usize) -> Access {
        let (mut strides, mut least, mut span) = (Strides::new(), 0, 0);
        for _ in 0..self.random.below(3) {
            if !self.loops.counted.is_empty() {
                let region = self.random.pick(&self.loops.counted);
                self.stride(region, len, &mut strides, &mut least, &mut span);
            }
        }
        let base = least + self.random.below(len - span) as u32;
        self.graph.accesses.push(AccessData { array, base, strides, changes: Default::default() })
    }

    /// Adds a stride by `region` if the index stays in range.
    fn stride(
        &mut self,
        region: Region,
        len: usize,
        strides: &mut Strides,
        least: &mut u32,
        span: &mut usize,
    ) {
        let stride = self.random.pick(&[-2, -1, -1, 1, 1, 1, 2]);
        let bound = self.graph.regions[region].cycle.as_ref().map_or(1, |cycle| cycle.bound);
        let reach = (bound - 1) * i32::unsigned_abs(stride);
        let is_new = strides.iter().all(|&(before, _)| before != region);
        if is_new && *span + (reach as usize) < len {
            strides.push((region, stride));
            *span += reach as usize;
            *least += if stride < 0 { reach } else { 0 };
        }
    }
}
