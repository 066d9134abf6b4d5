//! Loops with a data-dependent exit, or with guards, whose state is an affine recurrence.
//!
//! The loop is kept only to compute its trip count and to check the guards; it is not
//! differentiated. The derivatives are those of the closed form for that trip count. The exit φs
//! are computed from the state at the head of the last iteration, by copies of the steps of the
//! loop:
//!
//! ```text
//! count, exit = loop …                    not differentiated
//! state = call c0 … count …               with partials attached
//! exit φs = copies of the steps before the exit, from state
//! ```

use hashbrown::{HashMap, HashSet};

use super::extract::{Body, body_to, needed, steps_to};
use super::{Evaluation, Group, evaluation, is_inside};
use crate::entity::PrimaryMap;
use crate::loops::trip_count;
use crate::numeric::Routine;
use crate::op::Op;
use crate::phi::reason::RecurrenceReason;
use crate::phi::rule::Applied;
use crate::phi::version::{Versions, move_before};
use crate::pipeline::cost;
use crate::ssa::{
    Block, Copies, Def, Editor, End, Entry, Graph, Item, Nest, Node, NodeData, Passed, Region,
};
use crate::validate::{Subject, refuted};

/// The largest number of steps that are copied after a loop, for one exit.
const MAX_COPIED_STEPS: usize = 256;

/// The closed form of a loop with exits, to be inserted after it.
pub(super) struct ExitClosing {
    evaluations: Vec<Evaluation>,
    states: Vec<State>,
    exits: Vec<Exit>,
    pub(super) applied: Vec<Applied>,
}

/// An entry φ that exits read.
struct State {
    phi: Node,
    /// The index of its evaluation, and of its output there.
    output: (usize, usize),
    /// The value in the first iteration, if the output for a trip count of zero is another one: no
    /// iteration reads the φ, or another entry φ has the same next value.
    first: Option<Node>,
}

/// A leaf where the loop may exit.
struct Exit {
    leaf: Block,
    /// The steps of an iteration that compute `values`, in order.
    steps: Vec<Node>,
    /// The operands of the exit φs.
    values: Vec<Node>,
}

/// The closed form of `region`, a loop with exits or guards.
pub(super) fn closed(
    graph: &Graph,
    nest: &Nest,
    activity: &PrimaryMap<Node, bool>,
    region: Region,
    always: bool,
) -> Result<ExitClosing, RecurrenceReason> {
    // The states are the entry φs that exits read; the system computes their next values.
    let body = continuing(graph, region)?;
    let exits = exits(graph, nest, region)?;
    let entries = graph.entries(region);
    let used: HashSet<Node> = exits
        .iter()
        .flat_map(|exit| {
            let operands = exit.steps.iter().flat_map(|&step| graph.operands(step));
            operands.chain(&exit.values).copied()
        })
        .collect();
    let states: Vec<usize> =
        (0..entries.len()).filter(|&entry| used.contains(&entries[entry].phi)).collect();
    if !states.iter().any(|&state| activity[entries[state].phi]) {
        return Err(RecurrenceReason::Inactive);
    }
    let wanted: Vec<Node> = states.iter().map(|&state| body.nexts[state]).collect();
    let mut closing =
        ExitClosing { evaluations: Vec::new(), states: Vec::new(), exits, applied: Vec::new() };
    for Group { values, outputs: of } in super::groups(graph, nest, region, &body, &wanted)? {
        let needed = needed(graph, nest, region, &body.nexts, &values);
        for (at, output) in of {
            let own = (0..entries.len()).find(|&entry| {
                body.nexts[entry] == wanted[at] && needed.contains(&entries[entry].phi)
            });
            let Entry { phi, first } = entries[states[at]];
            let output = (closing.evaluations.len(), output);
            let first = (own != Some(states[at])).then_some(first);
            closing.states.push(State { phi, output, first });
        }
        let (evaluation, description) =
            evaluation(graph, nest, activity, region, &body, None, &values)?;
        let subject = Subject {
            region,
            items: &body.items,
            nexts: &body.nexts,
            values: &values,
            live_ins: &evaluation.live_ins,
        };
        if refuted(graph, &subject, &evaluation.routine) {
            return Err(RecurrenceReason::ValidationFailed);
        }
        closing.evaluations.push(evaluation);
        closing.applied.push(description);
    }
    let routines = closing.evaluations.iter().map(|evaluation| &evaluation.routine);
    // A loop with guards alone has a constant trip count.
    let is_counted = closing.exits.len() == 1 && trip_count(graph, region, body.again).is_some();
    match always || cost::is_worth_closing_exit_loop(graph, region, is_counted, routines) {
        true => Ok(closing),
        false => Err(RecurrenceReason::Cost),
    }
}

/// The body on the only path that continues the loop; an error if there are several.
fn continuing(graph: &Graph, region: Region) -> Result<Body, RecurrenceReason> {
    let root = graph.regions[region].root;
    let goes_on = |leaf: &Block| {
        let again = graph.passed(region, *leaf).and_then(|passed| passed.again);
        again.is_some_and(|again| graph.constant(again) != Some(0.0))
    };
    let leaves: Vec<Block> = graph.leaves(root).into_iter().filter(goes_on).collect();
    let [leaf] = leaves[..] else { return Err(RecurrenceReason::Branches) };
    let (parents, mut path) = (graph.parents(), vec![leaf]);
    while let Some(&block) = path.last().filter(|&&block| block != root) {
        path.extend(parents[block]);
    }
    path.reverse();
    body_to(graph, region, &path)
}

/// The leaves of `region` where the loop may exit.
fn exits(graph: &Graph, nest: &Nest, region: Region) -> Result<Vec<Exit>, RecurrenceReason> {
    let mut exits = Vec::new();
    for leaf in graph.leaves(graph.regions[region].root) {
        let Some(Passed { again: Some(again), values, .. }) = graph.passed(region, leaf) else {
            return Err(RecurrenceReason::Branches);
        };
        if graph.constant(again).is_some_and(|again| again != 0.0) {
            continue;
        }
        let steps = steps_before_exit(graph, nest, region, values)?;
        exits.push(Exit { leaf, steps, values: values.to_vec() });
    }
    Ok(exits)
}

/// The steps of an iteration of `region` that compute `values`, in order.
fn steps_before_exit(
    graph: &Graph,
    nest: &Nest,
    region: Region,
    values: &[Node],
) -> Result<Vec<Node>, RecurrenceReason> {
    let is_step = |node: Node| match graph.nodes[node].def {
        _ if !is_inside(nest, node, region) => Some(false),
        Def::Apply(..) => Some(true),
        Def::Entry(of, _) | Def::Iteration(of) if of == region => Some(false),
        _ => None,
    };
    steps_to(graph, values, MAX_COPIED_STEPS, is_step).ok_or(RecurrenceReason::Exit)
}

/// Inserts the closed form after `region`.
pub(super) fn insert(
    new: &mut Editor,
    graph: &Graph,
    nest: &Nest,
    region: Region,
    closing: ExitClosing,
) {
    let Some(block) = nest.region_block(region) else { return };
    let place = graph.regions[region].place;
    // The fallback version, which runs if the routine rejects the call.
    let fallback = Copies::default().region(new, region);
    new.replace_region(block, region, fallback);
    // The φs become those of both versions, so the loop gets new ones.
    let outer = new.regions[region].phis.clone();
    new.insert(fallback, Item::Region(region));
    let (count, exit) = count_iterations(new, region, &closing.exits);
    let mut versions = Versions::of(new, block, fallback);
    let arm = versions.arm;
    let (mut outputs, mut copies) = (Vec::new(), Copies::default());
    for Evaluation { routine, mut live_ins, trips } in closing.evaluations {
        move_before(new, graph, nest, (region, fallback), &mut copies, &mut live_ins);
        if let Some(trips) = trips {
            live_ins[trips] = count;
        }
        outputs.push(versions.call(new, Routine::AffinePower(routine), live_ins));
    }
    // The state at the head of the last iteration.
    let mut states: HashMap<Node, Node> = HashMap::new();
    for State { phi, output: (of, output), first } in closing.states {
        let mut value = outputs[of][output];
        if let Some(first) = first {
            let zero = new.push_const(0.0f64.to_bits());
            let is_first = new.push_apply(arm, Op::Eq, &[count, zero], place);
            value = new.push_apply(arm, Op::Select, &[is_first, first, value], place);
        }
        states.insert(phi, value);
    }
    if let Some((number, _)) =
        graph.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region))
    {
        states.insert(number, count);
    }
    // The exit φs: those of the first exit, replaced by a select for each other one.
    let mut values: Vec<Node> = Vec::new();
    for (index, of) in closing.exits.iter().enumerate() {
        let mut copies = Copies::of(states.clone());
        for &step in &of.steps {
            let copy = copies.step(new, step);
            new.blocks[arm].items.push(Item::Node(copy));
        }
        let own: Vec<Node> = of.values.iter().map(|&value| copies.node(value)).collect();
        if index == 0 {
            values = own;
            continue;
        }
        let Some(exit) = exit else { continue };
        let number = new.push_const((index as f64).to_bits());
        let is_this = new.push_apply(arm, Op::Eq, &[exit, number], place);
        for (value, own) in values.iter_mut().zip(own).filter(|(value, own)| **value != *own) {
            *value = new.push_apply(arm, Op::Select, &[is_this, own, *value], place);
        }
    }
    versions.finish(new, &outer, values);
}

/// Replaces the exit φs of `region` by its last iteration number and, if there are several `exits`,
/// the index of the one taken. Returns both.
fn count_iterations(new: &mut Graph, region: Region, exits: &[Exit]) -> (Node, Option<Node>) {
    let place = new.regions[region].place;
    let known = new.nodes.iter().find(|(_, data)| data.def == Def::Iteration(region));
    let number = match known.map(|(node, _)| node) {
        Some(number) => number,
        None => new.push_iteration(region),
    };
    let kept = 1 + new.entries(region).len();
    let several = exits.len() > 1;
    for leaf in new.leaves(new.regions[region].root) {
        let exit = exits.iter().position(|exit| exit.leaf == leaf).unwrap_or(0);
        let exit = several.then(|| new.push_const((exit as f64).to_bits()));
        if let End::Return(passed) = &mut new.blocks[leaf].end {
            passed.truncate(kept);
            passed.push(number);
            passed.extend(exit);
        }
    }
    new.regions[region].phis.clear();
    let mut phi = |number: u32| {
        let phi = new.nodes.push(NodeData { def: Def::Phi(region, number), place });
        new.regions[region].phis.push(phi);
        phi
    };
    (phi(0), several.then(|| phi(1)))
}
