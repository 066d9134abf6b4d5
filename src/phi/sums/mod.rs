//! Sums and products out of loops: C7, C8 and C9.
//!
//! An entry φ to which each iteration adds a polynomial of what is invariant in the loop, with data
//! as coefficients, is a polynomial of the same variables after the loop. Its coefficients, the
//! moments of the data, are folded when the graph is compiled.
//!
//! - `extract` walks through the body and finds the polynomials (`polynomial`), whose coefficients
//!   are a straight-line program over the data (`data`).
//! - `moments` folds these in double-double, and `condition` finds an expansion point and decides
//!   whether the polynomial is accurate in working precision around it.
//! - `form` writes it: as nodes in place of the φ where it is; otherwise as a routine of `numeric`,
//!   with the loop as fallback version. `product` does the same for products with invariants.
//! - `hoist` folds data that are known only in a call, before the loops around.
//! - `record` writes the formula.

mod condition;
mod data;
mod extract;
mod form;
mod hoist;
mod moments;
mod polynomial;
mod product;
mod record;
mod solve;

use hashbrown::HashSet;

use super::close::CloseLimits;
use super::reason::{OpenReason, SumReason};
use super::recurrence::{Body, body, check_saved, loops_in, needed};
use super::rule::{Applied, OpenLoop};
use super::version::{Cursor, both, call, move_before, version};
use crate::entity::{Entity, PrimaryMap};
use crate::loops::trip_count;
use crate::numeric::Routine;
use crate::op::Op;
use crate::pipeline::cost;
use crate::ssa::{
    ArrayData, Copies, Def, End, Folding, Graph, Item, Nest, Node, Region, activity, in_order,
    simplify,
};
use crate::validate::{Subject, differs};
use extract::{Of, Place, Variable};
use form::{Nodes, Target};
use solve::{Form, Found, found};

/// A graph with closed forms of sums.
pub(super) struct Sums {
    /// The graph; `None` if there are none.
    pub(super) graph: Option<Graph>,
    pub(super) applied: Vec<Applied>,
    /// The reasons why values of loops stay open.
    pub(super) open: Vec<OpenLoop>,
}

/// A value of a loop with its closed form.
struct Closed {
    /// The number of its φ.
    phi: usize,
    found: Found,
    /// The routine, where the form is not accurate in working precision, and its inputs.
    routine: Option<(Routine, Vec<Node>)>,
}

/// Closes the sums and products of loops of `graph`, a verified graph that replays nothing, from
/// the innermost outwards.
pub(super) fn close_sums(graph: &Graph, limits: &CloseLimits) -> Sums {
    let mut sums = Sums { graph: None, applied: Vec::new(), open: Vec::new() };
    for _ in 0..limits.rounds {
        let before = sums.graph.as_ref().unwrap_or(graph);
        let Some(new) = pass(before, limits, &mut sums.applied, &mut sums.open) else { break };
        sums.graph = Some(simplify(&new, Folding::Real));
    }
    sums
}

/// Closes the loops that have no loops in them.
fn pass(
    graph: &Graph,
    limits: &CloseLimits,
    applied: &mut Vec<Applied>,
    open: &mut Vec<OpenLoop>,
) -> Option<Graph> {
    let (nest, activity, passive) = (Nest::of(graph), activity(graph), passive(graph));
    let mut new = graph.clone();
    let (mut innermost, mut pending) = (Vec::new(), loops_in(graph, graph.root()));
    while let Some(region) = pending.pop() {
        let inner = loops_in(graph, graph.regions[region].root);
        if inner.is_empty() {
            innermost.push(region);
        }
        pending.extend(inner);
    }
    open.clear();
    let (mut is_changed, known) = (false, applied.len());
    for &region in innermost.iter().rev().take(limits.loops) {
        let place = Place { graph, nest: &nest, region, outer: None, passive: &passive };
        let at = graph.regions[region].place.and_then(|place| graph.places.get(place)).cloned();
        let mut refuse = |reason: SumReason| {
            open.push(OpenLoop { at: at.clone(), reasons: vec![OpenReason::Sum(reason)] });
        };
        match closed(place, &activity, limits, &mut refuse) {
            Ok(all) => {
                is_changed |= !all.is_empty();
                let record = |closed: &Closed| {
                    let Found { rule, formula, .. } = &closed.found;
                    Applied { rule: *rule, at: at.clone(), form: formula.clone() }
                };
                applied.extend(all.iter().map(record));
                if insert(&mut new, place, &activity, all).is_none() {
                    applied.truncate(known);
                    return None;
                }
            }
            Err(reason) => refuse(reason),
        }
    }
    let new = if is_changed { in_order(&new) } else { None };
    if new.is_none() {
        applied.truncate(known);
    }
    new
}

/// Which nodes depend on nothing but constants, inactive inputs and iteration numbers.
fn passive(graph: &Graph) -> PrimaryMap<Node, bool> {
    let mut passive = PrimaryMap::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        passive[node] = match data.def {
            Def::Const(_) | Def::Iteration(_) => true,
            Def::Input(number) => !graph.is_active(number),
            Def::Apply(..) => graph.operands(node).iter().all(|&arg| passive[arg]),
            Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_) => true,
                ArrayData::Inputs { first, .. } => !graph.is_active(first),
                _ => false,
            },
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => false,
        };
    }
    passive
}

/// The closed forms of the values of a loop; the reasons of others are told to `refuse`.
fn closed(
    place: Place<'_>,
    activity: &PrimaryMap<Node, bool>,
    limits: &CloseLimits,
    refuse: &mut impl FnMut(SumReason),
) -> Result<Vec<Closed>, SumReason> {
    let Place { graph, nest, region, .. } = place;
    let body = body(graph, region).map_err(|_| SumReason::Branches)?;
    let count = trip_count(graph, region, body.again).ok_or(SumReason::TripCount)?;
    check_saved(graph, nest, region).map_err(|_| SumReason::ReadAfterwards)?;
    let (mut all, mut stays) = (Vec::new(), Vec::new());
    for (phi, &value) in body.values.iter().enumerate() {
        let found = found(place, &body, value, count, limits).or_else(|reason| match reason {
            SumReason::DataOfCall => hoist::hoisted(place, &body, value, count, limits),
            reason => Err(reason),
        });
        let closed = found.and_then(|found| {
            if let Form::Sum(sum) = &found.form
                && share_an_input(graph, sum.summed())
            {
                return Err(SumReason::SharedInput);
            }
            let routine = match found.is_accurate {
                true => None,
                false => Some(found.form.routine(graph, |node| activity[node])?),
            };
            Ok(Closed { phi, found, routine })
        });
        match closed {
            Ok(closed) => all.push(closed),
            Err(reason) => {
                stays.push(value);
                refuse(reason);
            }
        }
    }
    if !stays.is_empty() {
        // What stays in the loop still needs its operands there.
        let kept = needed(graph, nest, region, &body.nexts, &stays);
        all.retain(|closed: &Closed| {
            let reason = match closed.routine {
                _ if kept.contains(&graph.entries(region)[closed.found.entry].phi) => {
                    SumReason::PartialSumRead
                }
                Some(_) => SumReason::OtherValue,
                None => return true,
            };
            refuse(reason);
            false
        });
    }
    let steps = all.iter().filter(|closed| closed.routine.is_none());
    let steps = steps.map(|closed| closed.found.form.steps()).sum();
    let before = all.iter().filter_map(|closed| closed.found.hoist.as_ref());
    let before = before.map(|hoist| hoist.cost(graph, region)).fold(0, u64::saturating_add);
    let routines = all.iter().filter_map(|closed| closed.routine.as_ref());
    let routines = routines.map(|(routine, _)| routine);
    if !limits.always
        && !all.is_empty()
        && !cost::is_worth_folding(graph, region, (steps, before), routines)
    {
        return Err(SumReason::Cost);
    }
    match all.iter().any(|closed| is_refuted(place, &body, count, closed)) {
        true => Err(SumReason::ValidationFailed),
        false => Ok(all),
    }
}

/// Whether two of `variables` depend on the same active input. Its partials, one by each, may
/// cancel in every term, as those of n - k/λ do in a likelihood of Poisson's; the tape adds up
/// what is left of them, the closed form subtracts their sums.
fn share_an_input(graph: &Graph, mut variables: impl Iterator<Item = Node>) -> bool {
    let mut reached: HashSet<Node> = HashSet::new();
    variables.any(|variable| {
        let (mut own, mut pending) = (HashSet::new(), vec![variable]);
        while let Some(node) = pending.pop() {
            if own.insert(node) {
                pending.extend(graph.operands(node));
            }
        }
        own.retain(|&node| match graph.nodes[node].def {
            Def::Const(_) | Def::Apply(..) => false,
            Def::Input(number) => graph.is_active(number),
            _ => true,
        });
        let shared = !reached.is_disjoint(&own);
        reached.extend(own);
        shared
    })
}

/// Whether the closed form and the loop differ at a test point.
fn is_refuted(place: Place<'_>, body: &Body, count: u64, closed: &Closed) -> bool {
    let (nodes, value) = (closed.found.form.nodes(place.graph), body.values[closed.phi]);
    let Body { items, nexts, .. } = body;
    let (region, values, live_ins) = (place.region, &[value][..], &nodes[..]);
    let subject = Subject { region, items, nexts, values, live_ins };
    let graph = match &closed.found.hoist {
        Some(_) => &hoist::sampled(place.graph, &closed.found.iterate),
        None => place.graph,
    };
    differs(graph, &subject, Some(count), |count, point| {
        Some(vec![closed.found.at(place.graph, count, &nodes, point)?])
    })
}

/// Puts the closed forms before the loop, or both versions in its place. `None` if that fails; `new`
/// is no graph then.
fn insert(
    new: &mut Graph,
    place: Place<'_>,
    activity: &PrimaryMap<Node, bool>,
    all: Vec<Closed>,
) -> Option<()> {
    let Place { graph, nest, region, .. } = place;
    let block = nest.region_block(region)?;
    let mut cursor = Cursor::before(new, block, region)?;
    let source = graph.regions[region].place;
    let (mut copies, mut accepted) = (Copies::default(), None);
    let (mut steps, mut outputs, mut replaced) = (Vec::new(), Vec::new(), HashSet::new());
    let one = new.push_const(1.0f64.to_bits());
    for Closed { phi, mut found, mut routine } in all {
        if let (Some(hoist), Form::Sum(sum)) = (&found.hoist, &mut found.form) {
            hoist.insert(new, place, &found.iterate, sum)?;
            if routine.is_some() {
                // Now with the moments as inputs, which are not differentiated.
                let is_active = |node: Node| node.index() < activity.len() && activity[node];
                routine = Some(found.form.routine(graph, is_active).ok()?);
            }
            // Where the loop stands may have changed.
            cursor.at = Cursor::before(new, block, region)?.at;
        }
        let nodes = found.form.nodes(graph);
        let mut before = nodes.clone();
        move_before(new, graph, nest, region, &mut cursor, &mut copies, &mut before);
        let moved = nodes.into_iter().zip(before).collect();
        let mut target = Nodes { graph: new, cursor: &mut cursor, place: source, moved };
        match (routine, &found.form) {
            (Some((routine, inputs)), _) => {
                let inputs = inputs.into_iter().map(|node| Variable { node, of: Of::Itself });
                let args = inputs.map(|input| target.variable(input));
                let args: Vec<Node> = args.collect::<Result<_, SumReason>>().ok()?;
                let (condition, values) = call(new, &mut cursor, routine, args, &mut steps, source);
                accepted = Some(both(new, &mut cursor, accepted, condition));
                outputs.extend(values);
            }
            (None, Form::Sum(sum)) => {
                let value = sum.write(&mut target).ok()?;
                let phi = graph.regions[region].phis[phi];
                new.nodes[phi].def = Def::Apply(Op::Mul, [value, one, value]);
                cursor.insert(new, Item::Node(phi));
                replaced.insert(phi);
            }
            (None, Form::Product(_)) => {}
        }
    }
    drop_phis(new, region, &replaced);
    if let Some(accepted) = accepted {
        let phis = new.regions[region].phis.clone();
        version(new, &cursor, (region, &phis), accepted, (steps, outputs));
    }
    Some(())
}

/// Lets `region`, a loop of one block, pass on nothing for the φs that were `replaced`.
fn drop_phis(new: &mut Graph, region: Region, replaced: &HashSet<Node>) {
    let (root, kept) = (new.regions[region].root, 1 + new.entries(region).len());
    let phis = core::mem::take(&mut new.regions[region].phis);
    if let End::Return(passed) = &mut new.blocks[root].end {
        let values = passed[kept..].iter().zip(&phis).filter(|(_, phi)| !replaced.contains(*phi));
        let values: Vec<Node> = values.map(|(&value, _)| value).collect();
        passed.truncate(kept);
        passed.extend(values);
    }
    let phis: Vec<Node> = phis.into_iter().filter(|phi| !replaced.contains(phi)).collect();
    for (&phi, number) in phis.iter().zip(0..) {
        new.nodes[phi].def = Def::Phi(region, number);
    }
    new.regions[region].phis = phis;
}
