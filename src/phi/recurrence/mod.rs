//! Affine recurrences: loops whose next state is an affine map of the state (C5, C6 and C9, for
//! systems of states).
//!
//! - `extract`: the affine forms of the values in a loop body
//! - `form`: affine forms
//! - `coefficients`: the straight-line program of their coefficients
//! - `system`: the smallest affine map that computes the wanted values
//! - `exit`: loops with data-dependent exits, closed after the loop
//! - `description`: the display form
//!
//! `numeric::AffinePower` evaluates the state after n steps, with partials and error bounds; if it
//! rejects the call, the loop runs (`phi::version`). Loops are tried from the outermost inwards; an
//! inner loop of a closed one is a power in its coefficient program.

mod coefficients;
mod description;
mod exit;
mod extract;
mod form;
mod system;

use core::cmp::Reverse;

use super::close::CloseLimits;
use super::reason::{OpenReason, RecurrenceReason};
use super::rule::{Applied, OpenLoop};
use super::version::{Evaluation, Versions, move_before};
use crate::entity::PrimaryMap;
use crate::loops::trip_count;
use crate::numeric::{AffineMap, AffinePower, MAX_STATES, Routine, Trips};
use crate::pipeline::cost;
use crate::ssa::{
    ArrayData, Block, Copies, Def, Editor, End, Graph, Item, Nest, Node, Region, activity,
    is_acceptance,
};
use crate::validate::{Subject, refuted};

use extract::Extraction;
pub(super) use extract::{Body, body, movable_steps, needed};
pub(super) use form::MAX_DEGREE;

/// A graph with closed forms of recurrences.
pub(super) struct Recurrences {
    /// The graph; `None` if there are none.
    pub(super) graph: Option<Graph>,
    pub(super) applied: Vec<Applied>,
    /// The reasons why loops stay open.
    pub(super) open: Vec<OpenLoop>,
}

/// The kind of loops to close.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Loops with constant trip counts and without guards.
    Counted,
    /// Loops with a data-dependent exit, or with guards in their iterations.
    Exits,
}

/// Makes two versions of each loop of this kind that is an affine recurrence. `graph` is a verified
/// graph that replays nothing. The cost model decides, unless `limits.always` is set.
pub(super) fn close_recurrences(graph: &Graph, kind: Kind, limits: &CloseLimits) -> Recurrences {
    let always = limits.always;
    let nest = Nest::of(graph);
    let activity = activity(graph);
    let mut new = Editor::of(graph);
    let (mut applied, mut open) = (Vec::new(), Vec::new());
    let (mut pending, mut known) = (loops_in(graph, graph.root()), 0);
    while let Some(region) = pending.pop() {
        known += 1;
        if is_counted(graph, region) != (kind == Kind::Counted) {
            pending.extend(loops_in(graph, graph.regions[region].root));
            continue;
        }
        let result = match kind {
            _ if known > limits.loops => Err(RecurrenceReason::TooManyLoops),
            Kind::Counted => closed(graph, &nest, &activity, region, always).map(|closing| {
                applied.extend_from_slice(&closing.applied);
                insert(&mut new, graph, &nest, region, closing);
            }),
            Kind::Exits => exit::closed(graph, &nest, &activity, region, always).map(|closing| {
                applied.extend_from_slice(&closing.applied);
                exit::insert(&mut new, graph, &nest, region, closing);
            }),
        };
        if let Err(reason) = result {
            let place = graph.regions[region].place;
            let at = place.and_then(|place| graph.places.get(place)).cloned();
            open.push(OpenLoop { at, reasons: vec![OpenReason::Recurrence(reason)] });
            pending.extend(loops_in(graph, graph.regions[region].root));
        }
    }
    let graph = if applied.is_empty() { None } else { new.finish() };
    Recurrences { graph, applied, open }
}

/// The outermost loops in the tree of `root`, without fallback versions.
pub(super) fn loops_in(graph: &Graph, root: Block) -> Vec<Region> {
    let (mut loops, mut pending) = (Vec::new(), vec![root]);
    while let Some(block) = pending.pop() {
        for region in graph.regions_of(block) {
            match graph.regions[region].cycle {
                Some(_) => loops.push(region),
                None => pending.push(graph.regions[region].root),
            }
        }
        match graph.blocks[block].end {
            End::Branch { condition, then, .. } if is_acceptance(graph, condition) => {
                pending.push(then);
            }
            End::Branch { then, otherwise, .. } => pending.extend([then, otherwise]),
            End::Return(_) | End::Open => {}
        }
    }
    loops
}

/// True if the trip count of `region` is a constant, and no iteration has a guard.
fn is_counted(graph: &Graph, region: Region) -> bool {
    let root = graph.regions[region].root;
    let has_guard = graph.blocks[root].items.iter().any(|item| matches!(item, Item::Guard { .. }));
    let again = graph.passed(region, root).and_then(|passed| passed.again);
    !has_guard && again.is_some_and(|again| trip_count(graph, region, again).is_some())
}

/// True if `node` is computed inside the loop `region`.
pub(super) fn is_inside(nest: &Nest, node: Node, region: Region) -> bool {
    core::iter::successors(nest.node_loop(node), |&around| nest.loop_around(around))
        .any(|around| around == region)
}

/// The closed form of a counted loop: its φs are outputs of routines.
struct Closing {
    evaluations: Vec<Evaluation>,
    /// For each φ the index of its evaluation, and of the output there.
    outputs: Vec<(usize, usize)>,
    applied: Vec<Applied>,
}

/// The closed form of `region`, a loop with a constant trip count.
fn closed(
    graph: &Graph,
    nest: &Nest,
    activity: &PrimaryMap<Node, bool>,
    region: Region,
    always: bool,
) -> Result<Closing, RecurrenceReason> {
    let body = body(graph, region)?;
    let trips = trip_count(graph, region, body.again).ok_or(RecurrenceReason::TripCount)?;
    check_saved(graph, nest, region)?;
    let mut closing = Closing {
        evaluations: Vec::new(),
        outputs: vec![(0, 0); body.values.len()],
        applied: Vec::new(),
    };
    let mut values = Vec::new();
    for group in groups(graph, nest, region, &body, &body.values)? {
        for (phi, output) in group.outputs {
            closing.outputs[phi] = (closing.evaluations.len(), output);
        }
        let (evaluation, description) =
            evaluation(graph, nest, activity, region, &body, Some(trips), &group.values)?;
        closing.evaluations.push(evaluation);
        closing.applied.push(description);
        values.push(group.values);
    }
    let routines = closing.evaluations.iter().map(|evaluation| &evaluation.routine);
    if !always && !cost::is_worth_closing(graph, region, routines) {
        return Err(RecurrenceReason::Cost);
    }
    for (Evaluation { routine, live_ins, .. }, values) in closing.evaluations.iter().zip(&values) {
        let Body { items, nexts, .. } = &body;
        if refuted(graph, &Subject { region, items, nexts, values, live_ins }, routine) {
            return Err(RecurrenceReason::ValidationFailed);
        }
    }
    Ok(closing)
}

/// The routine that computes `wanted` after `count` iterations of `region`, with its description.
/// Without `count` the trip count is an input.
fn evaluation(
    graph: &Graph,
    nest: &Nest,
    activity: &PrimaryMap<Node, bool>,
    region: Region,
    body: &Body,
    count: Option<u64>,
    wanted: &[Node],
) -> Result<(Evaluation, Applied), RecurrenceReason> {
    let mut extraction = Extraction::new(graph, nest);
    let system = extraction.system(region, body, count.unwrap_or(0), wanted)?;
    let mut starts = Vec::new();
    let entries = graph.entries(region);
    for variable in &system.variables {
        let first = match variable.state {
            // C(0, k) is zero.
            Some(state) if variable.degree == 0 => entries.get(state as usize),
            _ => None,
        };
        starts.push(match first.map(|entry| (entry.first, graph.constant(entry.first))) {
            None => extraction.coefficients.constant(0.0)?,
            Some((_, Some(number))) if number.is_finite() => {
                extraction.coefficients.constant(number)?
            }
            Some((first, _)) => extraction.coefficients.live_in(first, false)?,
        });
    }
    let n = count.map_or("k".to_owned(), |count| count.to_string());
    let description =
        description::describe(graph, region, &system, &starts, &extraction.coefficients, &n);
    let trips_input = match count {
        Some(_) => None,
        // A placeholder, which the caller replaces by the trip count.
        None => Some(extraction.coefficients.new_input(entries[0].phi)),
    };
    let trips = match (count, trips_input) {
        (Some(count), _) => Trips::Constant(count),
        (None, input) => Trips::Input(input.unwrap_or(0)),
    };
    let (program, live_ins) = extraction.coefficients.into_parts();
    let is_active = |&(input, &node): &(u32, &Node)| activity[node] && Some(input) != trips_input;
    let differentiated =
        (0u32..).zip(&live_ins).filter(is_active).map(|(input, _)| input).collect();
    let map = AffineMap::new(system.matrix, system.offset)
        .map_err(|_| RecurrenceReason::TooManyStates)?;
    let outputs = system.outputs.iter().map(|&row| row as u32).collect();
    let routine = AffinePower::new(program, map, starts, trips, outputs, differentiated)
        .map_err(|_| RecurrenceReason::TooManySteps)?;
    // For an unknown trip count this is the least; calls with too large ones are rejected.
    if !routine.has_memory(count.unwrap_or(1)) {
        return Err(RecurrenceReason::TooManySteps);
    }
    let trips = trips_input.map(|input| input as usize);
    Ok((Evaluation { routine, live_ins, trips }, description))
}

/// Wanted values that one routine computes.
struct Group {
    values: Vec<Node>,
    /// Pairs of an index of the wanted values and the index of that value in `values`.
    outputs: Vec<(usize, usize)>,
}

/// Partitions the wanted values into groups: all values of a group depend only on the states of
/// its first one.
fn groups(
    graph: &Graph,
    nest: &Nest,
    region: Region,
    body: &Body,
    wanted: &[Node],
) -> Result<Vec<Group>, RecurrenceReason> {
    let entries = graph.entries(region);
    let states = |at: usize| {
        let needed = needed(graph, nest, region, &body.nexts, &wanted[at..=at]);
        let states = (0..entries.len()).filter(|&entry| needed.contains(&entries[entry].phi));
        let states: Vec<usize> = states.collect();
        if states.len() > MAX_STATES {
            Err(RecurrenceReason::TooManyStates)
        } else {
            Ok((states, at))
        }
    };
    let mut all = (0..wanted.len()).map(states).collect::<Result<Vec<_>, RecurrenceReason>>()?;
    all.sort_by_key(|(states, at)| (Reverse(states.len()), *at));
    let mut groups: Vec<(Vec<usize>, Group)> = Vec::new();
    for (states, at) in all {
        let holds = |of: &Vec<usize>| states.iter().all(|state| of.contains(state));
        let known = groups.iter().position(|(of, _)| holds(of));
        let known = known.unwrap_or_else(|| {
            groups.push((states, Group { values: Vec::new(), outputs: Vec::new() }));
            groups.len() - 1
        });
        let Group { values, outputs } = &mut groups[known].1;
        let output = values.iter().position(|&value| value == wanted[at]);
        outputs.push((at, output.unwrap_or(values.len())));
        if output.is_none() {
            values.push(wanted[at]);
        }
    }
    Ok(groups.into_iter().map(|(_, group)| group).collect())
}

/// Fails if a node outside `region` reads saved values of its iterations.
pub(super) fn check_saved(
    graph: &Graph,
    nest: &Nest,
    region: Region,
) -> Result<(), RecurrenceReason> {
    let is_read = graph.nodes.iter().any(|(node, data)| match data.def {
        Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
            ArrayData::Saved(past) => {
                is_inside(nest, past, region) && !is_inside(nest, node, region)
            }
            _ => false,
        },
        _ => false,
    });
    if is_read { Err(RecurrenceReason::ReadAfterwards) } else { Ok(()) }
}

/// Replaces `region` by both versions.
fn insert(new: &mut Editor, graph: &Graph, nest: &Nest, region: Region, closing: Closing) {
    let Some(block) = nest.region_block(region) else { return };
    let mut versions = Versions::of(new, block, region);
    let (mut copies, mut outputs) = (Copies::default(), Vec::new());
    for Evaluation { routine, mut live_ins, .. } in closing.evaluations {
        move_before(new, graph, nest, (region, region), &mut copies, &mut live_ins);
        outputs.push(versions.call(new, Routine::AffinePower(routine), live_ins));
    }
    let values = closing.outputs.iter().map(|&(of, output)| outputs[of][output]).collect();
    let phis = new.regions[region].phis.clone();
    versions.finish(new, &phis, values);
}
