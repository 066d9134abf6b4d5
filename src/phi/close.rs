//! The order of the formulas: loops become closed forms from the inside out.

use super::draft::Draft;
use super::lost::{LOST, require_what_is_lost, without_differences};
use super::overflow::{require_outputs, require_what_is_hidden, without_evident_guards};
use super::proofs::Proofs;
use super::recurrence::{Kind, close_recurrences};
use super::replacement::Replacement;
use super::rule::{Applied, Refused, Rule};
use super::sums::close_sums;
use crate::ssa::{Folding, Graph, Place, Region, loops_have_tangents, simplify, verify};

/// How far [`close`] goes; all are counts.
///
/// # Examples
///
/// ```
/// use phigrad::phi::CloseLimits;
///
/// assert_eq!(CloseLimits::default(), CloseLimits::DEFAULT);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseLimits {
    /// The largest number of variables of a polynomial. Default: 6.
    pub variables: usize,
    /// The largest number of monomials of a polynomial. Default: 28.
    pub monomials: usize,
    /// How much is done at most to fold the data of one sum, in products of
    /// coefficients; for a parabola some 30 for each number, for a plane 80. Default: 2²⁸.
    pub work: u64,
    /// The largest number of loops that are looked at. Default: 2¹⁴.
    pub loops: usize,
    /// How often sums and recurrences take turns. Default: 3.
    pub rounds: usize,
    /// Whether loops are closed also where that costs more than the loop. Default: no.
    pub always: bool,
}

impl CloseLimits {
    /// The default, as a constant.
    pub const DEFAULT: CloseLimits = CloseLimits {
        variables: 6,
        monomials: 28,
        work: 1 << 28,
        loops: 1 << 14,
        rounds: 3,
        always: false,
    };
}

impl Default for CloseLimits {
    fn default() -> Self {
        CloseLimits::DEFAULT
    }
}

/// What [`close`] made.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The graph with closed forms; the one that was given if there are none.
    pub graph: Graph,
    /// The formulas that were applied.
    pub applied: Vec<Applied>,
    /// The loops, or values of loops, that have no closed form here.
    pub refused: Vec<Refused>,
    /// How many loops are left that only search for the number of their iterations, with
    /// a closed form behind them.
    pub searches: usize,
    /// The graph without these forms, if there are any. Such a loop has come to its values
    /// when it is left, so where no derivative is wanted they cost more than they save.
    pub without_searches: Option<Graph>,
}

/// Replaces values of loops by closed forms, from the inside out.
///
/// `graph` is a verified graph that replays nothing. The new graph means the same
/// but for rounding: values differ from those of the loops by about as much as
/// those do from the true ones, so a comparison may come out differently only
/// where rounding decides it. Each closed form is compared with its loop before
/// it is used.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{CloseLimits, Rule, close};
/// use phigrad::ssa::{AccessData, Builder, Folding, SeriesData};
/// use phigrad::op::Op;
///
/// // The sum of i·x for i < 100.
/// let mut builder = Builder::new(1, 0, Folding::Real);
/// let (x, zero, last) = (builder.input(0), builder.constant(0.0), builder.constant(99.0));
/// let (region, entries) = builder.begin_loop(100, &[zero], None);
/// let number = builder.iteration(region);
/// let term = builder.apply(Op::Mul, &[number, x]);
/// let sum = builder.apply(Op::Add, &[entries[0], term]);
/// let again = builder.apply(Op::Lt, &[number, last]);
/// builder.finish_block(&[again, sum, sum]);
/// let sum = builder.end_loop(region, 1)[0];
/// builder.finish_block(&[sum]);
///
/// let closed = close(&builder.into_graph(), CloseLimits::default());
/// assert_eq!(closed.applied[0].rule, Rule::C7);
/// let text = "graph active 1 inactive 0\nv1 = const 4950.0\nb0:\n  v2 = mul v0 v1\n  return v2\n";
/// assert_eq!(closed.graph.to_string(), text);
/// ```
pub fn close(graph: &Graph, limits: CloseLimits) -> Closed {
    close_by(graph, limits, &mut Proofs::AtOnce)
}

/// Closed forms that may be wrong: to be looked at, and proven before they are used.
pub(crate) struct Unproven {
    pub(crate) closed: Closed,
    proofs: Proofs,
}

impl Unproven {
    /// The closed forms, if all are right.
    pub(crate) fn proven(self) -> Option<Closed> {
        self.proofs.hold().then_some(self.closed)
    }
}

/// The same before any form is compared with its loop, which takes much longer than to find it.
pub(crate) fn close_unproven(graph: &Graph, limits: CloseLimits) -> Unproven {
    let mut proofs = Proofs::Later(Vec::new());
    let closed = close_by(graph, limits, &mut proofs);
    Unproven { closed, proofs }
}

fn close_by(graph: &Graph, limits: CloseLimits, proofs: &mut Proofs) -> Closed {
    let (applied, refused) = (Vec::new(), Vec::new());
    let (whole, without_searches) = (graph.clone(), None);
    let mut closed = Closed { graph: whole, applied, refused, searches: 0, without_searches };
    let mut relies = false;
    if graph.regions.values().any(|data| data.replays.is_some()) {
        return closed;
    }
    // A sum in the body of a loop may be what keeps that from being affine, and
    // the other way round.
    for _ in 0..limits.rounds {
        let before = closed.applied.len();
        // What sums were refused for stays known where they are not looked for again.
        let stays = loops_have_tangents(&closed.graph);
        let applied = &closed.applied;
        closed.refused.retain(|this| {
            let is_open = applied.iter().all(|formula| formula.at != this.at);
            stays && is_open && this.why.starts_with(AS_A_SUM)
        });
        closed = sums(closed, limits, &mut relies, proofs);
        closed = recurrences(closed, Kind::Counted, limits.always);
        if closed.applied.len() == before {
            break;
        }
    }
    let (without, before) = (closed.graph.clone(), closed.applied.len());
    closed = recurrences(closed, Kind::Exits, limits.always);
    if closed.applied.len() > before {
        closed.searches = closed.applied.len() - before;
        closed.without_searches = Some(without);
    }
    if !closed.applied.is_empty() {
        let graphs = core::iter::once(&mut closed.graph).chain(&mut closed.without_searches);
        for graph in graphs {
            // A kernel that is asked for derivatives alone does not look at the value.
            if relies {
                require_outputs(graph);
            }
            *graph = without_evident_guards(&without_differences(graph));
        }
    }
    closed.refused = grouped(closed.refused);
    exits(&mut closed.applied);
    closed
}

/// F5, once for each loop that has a closed form: what comes out of it is what it
/// carries, after its last iteration.
fn exits(applied: &mut Vec<Applied>) {
    let is_exit = |formula: &&Applied| formula.rule == Rule::F5;
    let mut known: Vec<Option<Place>> =
        applied.iter().filter(is_exit).map(|formula| formula.at.clone()).collect();
    let others = known.len();
    for formula in applied.iter() {
        if formula.rule >= Rule::C5 && !known.contains(&formula.at) {
            known.push(formula.at.clone());
        }
    }
    let form = "φ_L'(p, d) = d after the last iteration: the loop is left there only".to_owned();
    applied.extend(known.into_iter().skip(others).map(|at| Applied {
        rule: Rule::F5,
        at,
        form: form.clone(),
    }));
}

/// All that was said of one place at once.
fn grouped(refused: Vec<Refused>) -> Vec<Refused> {
    let mut all: Vec<Refused> = Vec::new();
    for this in refused {
        match all.iter_mut().find(|other| other.at == this.at) {
            Some(other) if other.why.split("; ").any(|why| why == this.why) => {}
            Some(other) => other.why = format!("{}; {}", other.why, this.why),
            None => all.push(this),
        }
    }
    all
}

/// What is said of a loop whose form is not that of the loop.
pub(super) const DISPROVED: &str = "its closed form comes to something else";

const AS_A_SUM: &str = "as a sum, ";
const AS_A_RECURRENCE: &str = "as a recurrence, ";
/// What is said where each form by itself is that of its loop, and all together come to
/// something else.
const CANCELS: &str = "its closed form is right by itself, but what is computed of it cancels, \
                       and comes to something else";

/// What is said of a form that cannot be computed where it is needed.
pub(super) const NO_GRAPH: &str = "its closed form is no graph";

/// So often a pass begins again without the loops whose forms were wrong.
pub(super) const MOST_ATTEMPTS: usize = 4;

fn sums(closed: Closed, limits: CloseLimits, relies: &mut bool, proofs: &mut Proofs) -> Closed {
    // Sums are found by the rules of real numbers, by which tangents are no zeros.
    if true || loops_have_tangents(&closed.graph) {
        return closed;
    }
    let (graph, mut wrong) = (&closed.graph, Vec::new());
    for _ in 0..MOST_ATTEMPTS {
        let (mut new, applied, mut refused) = attempt(Draft::new(graph), &limits, &wrong);
        refused.iter_mut().for_each(|this| this.why = format!("{AS_A_SUM}{}", this.why));
        if applied.is_empty() {
            return certified(closed, None, applied, refused, proofs);
        }
        let rules = move |graph: &Graph| {
            let mut draft = Draft::new(graph);
            draft.all_forms = true;
            attempt(draft, &limits, &[]).0.ordered()
        };
        let disproved = proofs.disproved((graph, &new), false, rules);
        if disproved.is_empty() {
            *relies |= require_what_is_hidden(graph, &mut new);
            if !require_what_is_lost(graph, &mut new) {
                refused.push(doubtful(&format!("{AS_A_SUM}{LOST}")));
                return certified(closed, None, Vec::new(), refused, proofs);
            }
            let graph = new.ordered().filter(|graph| verify(graph).is_ok());
            return certified(closed, graph, applied, refused, proofs);
        }
        wrong.extend(disproved);
    }
    let refused = wrong.into_iter().map(|region| refusal(graph, region)).collect();
    certified(closed, None, Vec::new(), refused, proofs)
}

/// Closes the sums of the loops of `draft` but those that have been found `wrong`.
fn attempt(
    mut draft: Draft,
    limits: &CloseLimits,
    wrong: &[Region],
) -> (Replacement, Vec<Applied>, Vec<Refused>) {
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    for region in inside_out(&draft.graph).into_iter().take(limits.loops) {
        match wrong.contains(&region) {
            true => refused.push(refusal(&draft.graph, region)),
            false => close_sums(&mut draft, region, limits, &mut applied, &mut refused),
        }
    }
    (draft.replacement(), applied, refused)
}

fn refusal(graph: &Graph, region: Region) -> Refused {
    let place = graph.regions[region].place;
    let at = place.and_then(|place| graph.places.get(place)).cloned();
    Refused { at, why: DISPROVED.to_owned() }
}

fn recurrences(mut closed: Closed, kind: Kind, always: bool) -> Closed {
    let mut found = close_recurrences(&closed.graph, kind, always);
    found.open.iter_mut().for_each(|this| this.why = format!("{AS_A_RECURRENCE}{}", this.why));
    closed.refused.append(&mut found.open);
    if let Some(graph) = found.graph {
        closed.graph = simplify(&graph, Folding::Real);
        closed.applied.append(&mut found.applied);
    }
    closed
}

/// What was closed before with what was closed now, if that is right.
fn certified(
    mut before: Closed,
    graph: Option<Graph>,
    mut applied: Vec<Applied>,
    mut refused: Vec<Refused>,
    proofs: &mut Proofs,
) -> Closed {
    before.refused.append(&mut refused);
    if let Some(graph) = graph.map(|graph| simplify(&graph, Folding::Real)) {
        if proofs.agree(&before.graph, &graph) {
            before.graph = graph;
            before.applied.append(&mut applied);
        } else {
            before.refused.push(doubtful(CANCELS));
        }
    } else if !applied.is_empty() {
        before.refused.push(doubtful(NO_GRAPH));
    }
    before
}

fn doubtful(why: &str) -> Refused {
    Refused { at: None, why: why.to_owned() }
}

/// The loops of `graph`, each after those in it.
pub(super) fn inside_out(graph: &Graph) -> Vec<Region> {
    let mut order = Vec::new();
    for block in graph.preorder() {
        order.extend(graph.regions_of(block));
    }
    // A block comes before the blocks of its regions.
    order.retain(|&region| graph.regions[region].cycle.is_some());
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    /// Two loops that add the input, which is multiplied by their iteration numbers.
    fn two_sums(count: u32) -> Graph {
        let text = format!(
            "graph active 1 inactive 0\nv1 = const 0.0\nv2 = const {}.0\nv4 = iteration r0\n\
             v9 = iteration r1\n\
             b0:\n  v8 = region r0 b1 bound {count} entries v3=v1\n  \
             v14 = region r1 b2 bound {count} entries v10=v0\n  v15 = mul v8 v14\n  return v15\n\
             b1:\n  v5 = mul v4 v0\n  v6 = add v3 v5\n  v7 = lt v4 v2\n  return v7 v6 v6\n\
             b2:\n  v11 = mul v9 v0\n  v12 = add v10 v11\n  v13 = lt v9 v2\n  return v13 v12 v12\n",
            count - 1
        );
        parse(&text).unwrap()
    }

    #[test]
    fn only_sums_that_were_found_wrong_stay() {
        let graph = two_sums(100);
        let regions: Vec<Region> = graph.regions.keys().collect();
        for wrong in [&[][..], &regions[..1], &regions[1..], &regions] {
            let (new, applied, refused) = attempt(Draft::new(&graph), &CloseLimits::DEFAULT, wrong);
            assert_eq!((applied.len(), refused.len()), (2 - wrong.len(), wrong.len()));
            assert!(refused.iter().all(|this| this.why == DISPROVED));
            assert!(crate::certificate::agree(&graph, &new.ordered().unwrap()));
        }
    }

    /// The sum of `(i·v0 + v1 - v2)²`, which does not change where v1 and v2 do by the same.
    fn squares(count: u32) -> Graph {
        let text = format!(
            "graph active 3 inactive 0\nv3 = const 0.0\nv4 = const {}.0\nv5 = iteration r0\n\
             b0:\n  v13 = region r0 b1 bound {count} entries v6=v3\n  return v13\n\
             b1:\n  v7 = mul v5 v0\n  v8 = add v7 v1\n  v9 = sub v8 v2\n  \
             v10 = mul v9 v9\n  v11 = add v6 v10\n  v12 = lt v5 v4\n  return v12 v11 v11\n",
            count - 1
        );
        parse(&text).unwrap()
    }

    #[test]
    fn sums_have_forms_at_all_lengths_that_are_compared() {
        let single = [1, 2, 3, 4, 18, 302].map(|count| (two_sums(count), 2));
        let several = [1, 2, 3, 18, 302].map(|count| (squares(count), 1));
        for (graph, sums) in single.into_iter().chain(several) {
            let mut draft = Draft::new(&graph);
            draft.all_forms = true;
            let (_, applied, refused) = attempt(draft, &CloseLimits::DEFAULT, &[]);
            assert_eq!(applied.len(), sums, "{graph} {refused:?}");
        }
    }
}
