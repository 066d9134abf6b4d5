//! Translation validation: a closed form is compared with the loop that it replaces, at random
//! points and for several trip counts, by the interpreter.
//!
//! This validates the extraction of the closed form; that the routines compute it correctly, with
//! its partials, is tested in `numeric`.

use std::collections::BTreeSet;

use hashbrown::HashSet;

use crate::entity::{Entity, PrimaryMap};
use crate::numeric::{AffinePower, Routine, Trips};
use crate::op::Op;
use crate::random::Random;
use crate::ssa::{
    Array, ArrayData, Block, Def, Editor, End, Graph, Item, Node, NodeData, Outcome, Region,
    interpret, most_steps,
};

/// The number of random points for each trip count.
const POINTS: u64 = 3;
/// The trip counts that are tested besides that of the loop.
const TRIPS: [u64; 4] = [1, 2, 3, 17];
/// The limit on steps of the loop for a trip count above 1; others are not tested.
const MOST_STEPS: u64 = 1 << 15;
/// The limit on steps of one iteration; a larger loop is not tested and counts as refuted.
const MOST_STEPS_ONCE: u64 = 1 << 22;
/// The tolerance, relative to the largest value compared: far above rounding error, far below the
/// effect of a wrong coefficient.
const TOLERANCE: f64 = 1e-7;

/// The part of a loop that a closed form replaces.
pub(crate) struct Subject<'a> {
    pub(crate) region: Region,
    /// The steps of an iteration that is not the last one.
    pub(crate) items: &'a [Item],
    /// The next values of the entry φs.
    pub(crate) nexts: &'a [Node],
    /// The nodes of the last iteration that the closed form computes, one for each output.
    pub(crate) values: &'a [Node],
    /// The inputs of the closed form, the live-ins of the loop; the value of the trip count is
    /// replaced.
    pub(crate) live_ins: &'a [Node],
}

/// Tests whether a test point refutes `routine` as a closed form of `subject`, a loop of `graph`.
pub(crate) fn refuted(graph: &Graph, subject: &Subject<'_>, routine: &AffinePower) -> bool {
    let (own, of_trips) = match routine.trips() {
        Trips::Constant(count) => (Some(count), None),
        Trips::Input(input) => (None, Some(input as usize)),
    };
    differs(graph, subject, own, |count, point| {
        if let Some(number) = of_trips.and_then(|input| point.get_mut(input)) {
            *number = count as f64;
        }
        let routine = Routine::AffinePower(routine.with_trips(Trips::Constant(count)));
        let mut results = vec![0.0; routine.results()];
        routine.run(point, false, &mut results);
        let values = (0..routine.outputs()).map(|output| routine.value_index(output));
        let is_accepted = results.first().is_some_and(|&accepted| accepted != 0.0);
        is_accepted.then(|| values.map(|index| results[index]).collect())
    })
}

/// Tests whether a test point refutes a closed form of `subject`, a loop of `graph`, or none
/// could test it. `form` computes its values for a trip count and a point, or `None` if they are
/// rejected. `own` is the trip count of the loop, if constant.
pub(crate) fn differs(
    graph: &Graph,
    subject: &Subject<'_>,
    own: Option<u64>,
    mut form: impl FnMut(u64, &mut [f64]) -> Option<Vec<f64>>,
) -> bool {
    let Some(extracted) = ExtractedLoop::new(graph, subject) else { return true };
    if extracted.steps > MOST_STEPS_ONCE {
        return true;
    }
    let is_short = |&count: &u64| count.saturating_mul(extracted.steps) <= MOST_STEPS || count == 1;
    let is_less = |count: &u64| own.is_none_or(|own| *count < own) && is_short(count);
    let own = own.filter(is_short);
    let mut has_values = false;
    let mut random = Random::new(0);
    for count in TRIPS.into_iter().filter(is_less).chain(own) {
        let Some(extracted) = extracted.with_trips(count) else { return true };
        for _ in 0..POINTS {
            let mut point: Vec<f64> =
                subject.live_ins.iter().map(|_| random.uniform(-1.0, 1.0)).collect();
            let found = form(count, &mut point);
            let Outcome::Values(expected) = interpret(&extracted, &point) else { return true };
            let Some(found) = found else { continue };
            has_values |= expected.iter().all(|value| value.is_finite());
            let scale = expected.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
            let agrees = |(found, expected): (&f64, &f64)| {
                (found - expected).abs() <= TOLERANCE * scale || expected.is_infinite()
            };
            if !found.iter().zip(&expected).all(agrees) {
                return true;
            }
        }
    }
    !has_values
}

/// A loop extracted as a graph of its own, whose inputs are the live-ins of the closed form.
struct ExtractedLoop {
    graph: Graph,
    region: Region,
    /// The steps of an iteration, with those of inner loops for all their iterations.
    steps: u64,
}

impl ExtractedLoop {
    fn new(graph: &Graph, subject: &Subject<'_>) -> Option<ExtractedLoop> {
        let &Subject { region, items, nexts, values, live_ins } = subject;
        let mut extracted = Editor::of(graph);
        for (node, _) in graph.input_nodes() {
            // A dependence of the loop that the closed form does not have makes the values NaN.
            extracted.nodes[node].def = Def::Const(f64::NAN.to_bits());
        }
        let mut is_input = PrimaryMap::filled(false, extracted.nodes.len());
        let is_entry =
            |node: Node| matches!(graph.nodes[node].def, Def::Entry(of, _) if of == region);
        for (&node, number) in live_ins.iter().zip(0..).filter(|&(&node, _)| !is_entry(node)) {
            extracted.nodes[node].def = Def::Input(number);
            is_input[node] = true;
        }
        (extracted.active, extracted.inactive) = (live_ins.len(), 0);
        let is_computed = |item: &Item| !matches!(*item, Item::Node(node) if is_input[node]);
        for block in extracted.blocks.keys() {
            extracted.blocks[block].items.retain(is_computed);
        }
        let again = extracted.push_const(0);
        let (root, body) = (extracted.root(), extracted.new_block());
        let is_step = |item: &Item| !matches!(item, Item::Guard { .. }) && is_computed(item);
        extracted.blocks[body].items = items.iter().copied().filter(is_step).collect();
        let passed = core::iter::once(&again).chain(nexts).chain(values);
        extracted.blocks[body].end = End::Return(passed.copied().collect());
        let place = extracted.regions[region].place;
        let phi = |number: usize| NodeData { def: Def::Phi(region, number as u32), place };
        let phis: Vec<Node> =
            (0..values.len()).map(|number| extracted.nodes.push(phi(number))).collect();
        extracted.regions[region].root = body;
        extracted.blocks[root].items = steps_before(&extracted, region, items, nexts, values);
        extracted.blocks[root].items.push(Item::Region(region));
        extracted.blocks[root].end = End::Return(phis.iter().copied().collect());
        extracted.regions[region].phis = phis;
        clear_around(&mut extracted, region);
        let extracted = extracted.finish()?;
        let bound =
            extracted.regions[region].cycle.as_ref().map_or(1, |cycle| u64::from(cycle.bound));
        let steps = most_steps(&extracted, |_| 1) / bound.max(1);
        Some(ExtractedLoop { graph: extracted, region, steps })
    }

    /// The extracted graph with this trip count.
    fn with_trips(&self, count: u64) -> Option<Graph> {
        let mut extracted = Editor::of(&self.graph);
        let body = extracted.regions[self.region].root;
        let last = extracted.push_const((count.checked_sub(1)? as f64).to_bits());
        let number =
            extracted.nodes.iter().find(|(_, data)| data.def == Def::Iteration(self.region));
        let number = match number.map(|(node, _)| node) {
            Some(number) => number,
            None => extracted.push_iteration(self.region),
        };
        let def = Def::Apply(Op::Lt, [number, last, number]);
        let again = extracted.nodes.push(NodeData { def, place: None });
        extracted.blocks[body].items.push(Item::Node(again));
        let End::Return(passed) = &mut extracted.blocks[body].end else { return None };
        *passed.first_mut()? = again;
        if let Some(cycle) = &mut extracted.regions[self.region].cycle {
            cycle.bound = u32::try_from(count).ok()?;
        }
        extracted.finish()
    }
}

/// The steps before `region` that compute its other operands from the inputs.
fn steps_before(
    extracted: &Graph,
    region: Region,
    items: &[Item],
    nexts: &[Node],
    values: &[Node],
) -> Vec<Item> {
    let mut pending: Vec<Node> = nexts.iter().chain(values).copied().collect();
    pending.extend(extracted.entries(region).iter().map(|entry| entry.first));
    let inner = extracted
        .blocks_inside(region)
        .into_iter()
        .flat_map(|block| &extracted.blocks[block].items);
    let mut inside = HashSet::new();
    for &item in items.iter().chain(inner) {
        match item {
            Item::Node(node) => {
                inside.insert(node);
                pending.extend(extracted.operands(node));
            }
            Item::Region(inner) => {
                pending.extend(extracted.entries(inner).iter().map(|of| of.first))
            }
            _ => {}
        }
    }
    let mut steps = BTreeSet::new();
    while let Some(node) = pending.pop() {
        let is_step =
            matches!(extracted.nodes[node].def, Def::Apply(..)) && !inside.contains(&node);
        if is_step && steps.insert(node.index()) {
            pending.extend(extracted.operands(node));
        }
    }
    steps.into_iter().map(|index| Item::Node(Node::from_index(index))).collect()
}

/// Clears all blocks, regions and arrays that only the code around `region` uses.
fn clear_around(extracted: &mut Graph, region: Region) {
    let mut kept = extracted.blocks_inside(region);
    kept.push(extracted.root());
    let mut read = Vec::new();
    for &block in &kept {
        for item in &extracted.blocks[block].items {
            if let Item::Node(node) = *item
                && let Def::Element(access) = extracted.nodes[node].def
            {
                read.push(extracted.accesses[access].array);
            }
        }
    }
    let blocks: Vec<Block> =
        extracted.blocks.keys().filter(|block| !kept.contains(block)).collect();
    for block in blocks {
        (extracted.blocks[block].items, extracted.blocks[block].end) = (Vec::new(), End::Open);
    }
    let is_kept = |extracted: &Graph, of: Region| kept.contains(&extracted.regions[of].root);
    let regions: Vec<Region> =
        extracted.regions.keys().filter(|&of| !is_kept(extracted, of)).collect();
    for of in regions {
        (extracted.regions[of].phis, extracted.regions[of].cycle) = (Vec::new(), None);
    }
    let arrays: Vec<Array> =
        extracted.arrays.keys().filter(|array| !read.contains(array)).collect();
    for unread in arrays {
        extracted.arrays[unread] = ArrayData::Constants(Vec::new().into());
    }
}
