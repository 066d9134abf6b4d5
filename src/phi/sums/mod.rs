//! Closed forms of sums and products over data: C7, C8 and C9.
//!
//! If each iteration adds a polynomial of loop invariants with data as coefficients to an entry φ,
//! the sum is a polynomial of the same variables. Its coefficients, the moments of the data, are
//! folded at compile time. Example: Σ (yᵢ - a)² = n a² - 2 (Σ yᵢ) a + Σ yᵢ².
//!
//! - `extract`: the polynomial that an iteration adds (`polynomial`), with coefficients that a
//!   straight-line program computes from the data (`data`)
//! - `solve`: the closed form of one value
//! - `moments`: folds the coefficients in double-double
//! - `condition`: the expansion point, and the test that the polynomial is accurate there in
//!   working precision
//! - `form`: lowering of sums, to nodes if that is accurate, otherwise to a routine of `numeric`
//!   with the loop as its fallback version
//! - `product`: products of data and invariants
//! - `hoist`: moments of inactive inputs, computed in the call before the loops around
//! - `description`: the display form

mod condition;
mod data;
mod description;
mod extract;
mod form;
mod hoist;
mod moments;
mod polynomial;
mod product;
mod solve;

use hashbrown::HashSet;

use super::close::CloseLimits;
use super::reason::{OpenReason, SumReason};
use super::recurrence::{Body, body, check_saved, loops_in, needed};
use super::rule::{Applied, OpenLoop};
use super::version::{Versions, move_before};
use crate::entity::{Entity, PrimaryMap};
use crate::loops::trip_count;
use crate::numeric::Routine;
use crate::pipeline::cost;
use crate::ssa::{
    ArrayData, Copies, Def, Editor, End, Folding, Graph, Nest, Node, Region, activity, simplify,
};
use crate::validate::{Subject, differs};
use extract::{LoopContext, Transform, Variable};
use form::{NodeBuilder, Target};
use solve::{ClosedForm, Expression, closed_form};

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
    /// The index of its exit φ.
    phi: usize,
    form: ClosedForm,
    /// The routine and its inputs, if the form is not accurate in working precision.
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

/// Closes the innermost loops.
fn pass(
    graph: &Graph,
    limits: &CloseLimits,
    applied: &mut Vec<Applied>,
    open: &mut Vec<OpenLoop>,
) -> Option<Graph> {
    let (nest, activity, inactive) = (Nest::of(graph), activity(graph), inactive(graph));
    let mut new = Editor::of(graph);
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
        let context = LoopContext { graph, nest: &nest, region, outer: None, inactive: &inactive };
        let at = graph.regions[region].place.and_then(|place| graph.places.get(place)).cloned();
        let mut leave_open = |reason: SumReason| {
            open.push(OpenLoop { at: at.clone(), reasons: vec![OpenReason::Sum(reason)] });
        };
        match closed(context, &activity, limits, &mut leave_open) {
            Ok(all) => {
                is_changed |= !all.is_empty();
                let describe = |closed: &Closed| {
                    let ClosedForm { rule, description, .. } = &closed.form;
                    Applied { rule: *rule, at: at.clone(), form: description.clone() }
                };
                applied.extend(all.iter().map(describe));
                if insert(&mut new, context, &activity, all).is_none() {
                    applied.truncate(known);
                    return None;
                }
            }
            Err(reason) => leave_open(reason),
        }
    }
    let new = if is_changed { new.finish() } else { None };
    if new.is_none() {
        applied.truncate(known);
    }
    new
}

/// True for nodes that depend on constants, inactive inputs and iteration numbers alone.
fn inactive(graph: &Graph) -> PrimaryMap<Node, bool> {
    let mut inactive = PrimaryMap::filled(false, graph.nodes.len());
    for (node, data) in graph.nodes.iter() {
        inactive[node] = match data.def {
            Def::Const(_) | Def::Iteration(_) => true,
            Def::Input(number) => !graph.is_active(number),
            Def::Apply(..) => graph.operands(node).iter().all(|&arg| inactive[arg]),
            Def::Element(access) => match graph.arrays[graph.accesses[access].array] {
                ArrayData::Constants(_) => true,
                ArrayData::Inputs { first, .. } => !graph.is_active(first),
                _ => false,
            },
            Def::Phi(..) | Def::Entry(..) | Def::Call(_) | Def::Result(..) => false,
        };
    }
    inactive
}

/// The closed forms of the values of a loop; `leave_open` gets the reasons of the other values.
fn closed(
    context: LoopContext<'_>,
    activity: &PrimaryMap<Node, bool>,
    limits: &CloseLimits,
    leave_open: &mut impl FnMut(SumReason),
) -> Result<Vec<Closed>, SumReason> {
    let LoopContext { graph, nest, region, .. } = context;
    let body = body(graph, region).map_err(|_| SumReason::Branches)?;
    let count = trip_count(graph, region, body.again).ok_or(SumReason::TripCount)?;
    check_saved(graph, nest, region).map_err(|_| SumReason::ReadAfterwards)?;
    let (mut all, mut open_values) = (Vec::new(), Vec::new());
    for (phi, &value) in body.values.iter().enumerate() {
        let form =
            closed_form(context, &body, value, count, limits).or_else(|reason| match reason {
                SumReason::DataOfCall => hoist::hoisted_form(context, &body, value, count, limits),
                reason => Err(reason),
            });
        let closed = form.and_then(|form| {
            if let Expression::Sum(sum) = &form.expression
                && share_an_input(graph, sum.monomial_nodes())
            {
                return Err(SumReason::SharedInput);
            }
            let routine = match form.is_accurate {
                true => None,
                false => Some(form.expression.routine(graph, |node| activity[node])?),
            };
            Ok(Closed { phi, form, routine })
        });
        match closed {
            Ok(closed) => all.push(closed),
            Err(reason) => {
                open_values.push(value);
                leave_open(reason);
            }
        }
    }
    if !open_values.is_empty() {
        // An open value keeps the entry φs that it reads, and the loop with all fallback versions.
        let kept = needed(graph, nest, region, &body.nexts, &open_values);
        all.retain(|closed: &Closed| {
            let reason = match closed.routine {
                _ if kept.contains(&graph.entries(region)[closed.form.entry].phi) => {
                    SumReason::PartialSumRead
                }
                Some(_) => SumReason::OtherValue,
                None => return true,
            };
            leave_open(reason);
            false
        });
    }
    let steps = all.iter().filter(|closed| closed.routine.is_none());
    let steps = steps.map(|closed| closed.form.expression.steps()).sum();
    let before = all.iter().filter_map(|closed| closed.form.hoist.as_ref());
    let before = before.map(|hoist| hoist.cost(graph, region)).fold(0, u64::saturating_add);
    let routines = all.iter().filter_map(|closed| closed.routine.as_ref());
    let routines = routines.map(|(routine, _)| routine);
    if !limits.always
        && !all.is_empty()
        && !cost::is_worth_folding(graph, region, (steps, before), routines)
    {
        return Err(SumReason::Cost);
    }
    match all.iter().any(|closed| is_refuted(context, &body, count, closed)) {
        true => Err(SumReason::ValidationFailed),
        false => Ok(all),
    }
}

/// True if two of `variables` depend on the same active input. The partials by the two may cancel
/// in every term, such as those of n - k/λ in a Poisson likelihood: the tape adds up the small
/// differences, the closed form would subtract two large sums.
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

/// True if the closed form and the loop differ at a test point.
fn is_refuted(context: LoopContext<'_>, body: &Body, count: u64, closed: &Closed) -> bool {
    let (nodes, value) = (closed.form.expression.nodes(context.graph), body.values[closed.phi]);
    let Body { items, nexts, .. } = body;
    let (region, values, live_ins) = (context.region, &[value][..], &nodes[..]);
    let subject = Subject { region, items, nexts, values, live_ins };
    let graph = match &closed.form.hoist {
        Some(_) => &hoist::sampled(context.graph, &closed.form.update),
        None => context.graph,
    };
    differs(graph, &subject, Some(count), |count, point| {
        Some(vec![closed.form.at(context.graph, count, &nodes, point)?])
    })
}

/// Inserts inline closed forms before the loop, and replaces the loop by both versions if there are
/// routines. `None` if that fails; `new` is to be discarded then.
fn insert(
    new: &mut Editor,
    context: LoopContext<'_>,
    activity: &PrimaryMap<Node, bool>,
    all: Vec<Closed>,
) -> Option<()> {
    let LoopContext { graph, nest, region, .. } = context;
    let block = nest.region_block(region)?;
    let place = graph.regions[region].place;
    let (mut copies, mut outputs) = (Copies::default(), Vec::new());
    let (mut versions, mut replaced) = (None, HashSet::new());
    for Closed { phi, mut form, mut routine } in all {
        if let (Some(hoist), Expression::Sum(sum)) = (&form.hoist, &mut form.expression) {
            hoist.insert(new, context, &form.update, sum);
            if routine.is_some() {
                // The moments are inputs now, which are not differentiated.
                let is_active = |node: Node| node.index() < activity.len() && activity[node];
                routine = Some(form.expression.routine(graph, is_active).ok()?);
            }
        }
        let nodes = form.expression.nodes(graph);
        let mut before = nodes.clone();
        move_before(new, graph, nest, (region, region), &mut copies, &mut before);
        let moved = nodes.into_iter().zip(before).collect();
        let mut target = NodeBuilder { editor: new, region, place, moved };
        match (routine, &form.expression) {
            (Some((routine, inputs)), _) => {
                let inputs = inputs
                    .into_iter()
                    .map(|node| Variable { node, transform: Transform::Identity });
                let args = inputs.map(|input| target.variable(input));
                let args: Vec<Node> = args.collect::<Result<_, SumReason>>().ok()?;
                let versions = versions.get_or_insert_with(|| Versions::of(new, block, region));
                outputs.extend(versions.call(new, routine, args));
            }
            (None, Expression::Sum(sum)) => {
                let value = sum.lower(&mut target).ok()?;
                let phi = graph.regions[region].phis[phi];
                new.replace(phi, value);
                replaced.insert(phi);
            }
            (None, Expression::Product(_)) => {}
        }
    }
    drop_phis(new, region, &replaced);
    if let Some(versions) = versions {
        let phis = new.regions[region].phis.clone();
        versions.finish(new, &phis, outputs);
    }
    Some(())
}

/// Removes the exit φs `replaced` from `region`, a loop of one block.
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
