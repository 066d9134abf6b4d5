//! Recurrences: loops whose state is an affine function of the state before
//! become straight code (corollaries 6, 8 and 9, and their like for states of
//! several numbers).
//!
//! `body` looks at a loop, `form` finds its affine forms, `power` composes them (`folded`, to
//! `multiples` of what they begin with, where coefficients are numbers), but for
//! those with coefficients that are not known: those of a single number are `single`'s, and
//! those of several `start`'s and `jet`'s and, if the number of steps is known, `binary`'s, with
//! derivatives by what `terms` and `slopes` know of coefficients (`written` makes steps of
//! terms), and `fixed` of the point that they lead to; `products` of matrices are made of pairs, `emit` writes steps in twice
//! the precision, and `edit` puts them in the loop's place. A loop may pass on anything of
//! its last iteration: the state before that is what is composed, and the last iteration
//! stays as it was.
//!
//! What changes with the iteration number becomes a part of the state: products with
//! polynomials of it (`binomials`), `powers` and `exponentials`. Numbers in even steps may be
//! rounded ones next to a `line`; where that may stand for them is `rounded`'s to say.
//!
//! An affine loop in an affine loop is a step of that, so both have one form (`nest`, with
//! `map` for what the inner one makes of the state). Where the outer loop is none, the
//! inner one is solved by itself, if that is cheaper in each iteration of the outer one;
//! `rest` lets that carry the digits that rounding would take in between, and `told` keeps
//! derivatives of what is the same in all iterations of the outer one; `toward` tells those by the
//! point that what is carried is taken to, and `still` where it is at rest there.
//!
//! A loop that is left by a decision on its state stays, to search for the number of
//! its iterations; behind it is the closed form at that number (`search`, with `ways`
//! for its ends and `doubling` for powers that are known in the call).
//!
//! # Accuracy
//!
//! Values and derivatives are computed with twice the digits, and rounded once (`single`,
//! `jet`): what cancels where coefficients are made of the same inputs, where two
//! eigenvalues are one, or where a point does not move, may be far larger than what is
//! left. That is better than the tape, which rounds in each iteration. Where powers have
//! grown and less than n·2⁻⁵⁰ is left of n steps, the result is no number, and the loop
//! serves (`doubt`). So it does where what a recurrence begins with or adds is so large, or so
//! near to zero, that a form would overflow or underflow where the loop does not (`range`).
//! Where so few steps are made that this would cost more than the loop, the loop stays.

mod binary;
mod binomials;
mod body;
mod combined;
mod couplings;
mod doubling;
mod doubt;
mod edit;
mod emit;
mod exponentials;
mod fixed;
mod folded;
mod form;
mod geometric;
mod growth;
mod jet;
mod line;
mod map;
mod multiples;
mod nest;
mod point;
mod power;
mod powers;
mod products;
mod range;
mod record;
mod rest;
mod rounded;
mod search;
mod single;
mod sizes;
mod slopes;
mod solve;
mod start;
mod still;
mod terms;
mod told;
mod toward;
mod ways;
mod written;

use super::close::{DISPROVED, MOST_ATTEMPTS, NO_GRAPH, inside_out};
use super::lost::{LOST, require_what_is_lost};
use super::overflow::require_what_is_hidden;
use super::proofs::Proofs;
use super::replacement::Replacement;
use super::rule::{Applied, Refused};
use crate::ssa::{Def, Graph, Node, Region, SeriesData, eliminate_dead_code, verify};

use edit::Edit;

/// The largest number of numbers that depend on each other. The work grows with
/// the cube of it, and what is gained shrinks.
pub const MOST_STATES: usize = 6;

/// A graph with closed forms, and how it came to it.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The graph.
    pub graph: Graph,
    /// The formulas that were applied.
    pub applied: Vec<Applied>,
    /// The loops that stay loops.
    pub refused: Vec<Refused>,
    /// Whether something is decided by what is not finite only where an output is neither. Then
    /// derivatives are wanted of calls with finite outputs only.
    pub relies_on_outputs: bool,
}

impl Solved {
    fn of(graph: &Graph) -> Solved {
        let (applied, refused) = (Vec::new(), Vec::new());
        Solved { graph: graph.clone(), applied, refused, relies_on_outputs: false }
    }
}

/// Puts closed forms in the place of the loops of `graph` that have one, from
/// the inside out.
///
/// # Examples
///
/// ```
/// use phigrad::op::Op;
/// use phigrad::phi::recurrence::solve_all;
/// use phigrad::ssa::{End, Graph, Outcome, RerollLimits, interpret, reroll};
///
/// // y = 0.5·y + x, a hundred times
/// let mut graph = Graph::new(2, 0);
/// let (root, mut y, x) = (graph.root(), graph.input(0), graph.input(1));
/// for _ in 0..100 {
///     let half = graph.push_const(0.5f64.to_bits());
///     let product = graph.push_apply(root, Op::Mul, &[half, y], None);
///     y = graph.push_apply(root, Op::Add, &[product, x], None);
/// }
/// graph.blocks[root].end = End::Return([y].into_iter().collect());
/// let rolled = reroll(&graph, RerollLimits::default());
///
/// let solved = solve_all(&rolled);
/// assert!(solved.graph.regions.is_empty());
/// assert_eq!(solved.applied[0].rule.to_string(), "C6");
/// assert_eq!(interpret(&solved.graph, &[7.0, 3.0]), Outcome::Values(vec![6.0]));
/// ```
pub fn solve_all(graph: &Graph) -> Solved {
    solve_all_by(graph, &mut Proofs::AtOnce)
}

/// The same, with proofs as these are wanted.
pub(super) fn solve_all_by(graph: &Graph, proofs: &mut Proofs) -> Solved {
    let mut solved = Solved::of(graph);
    let has_sums = graph.series.values().any(SeriesData::is_sums);
    if has_sums || graph.regions.values().any(|data| data.replays.is_some()) {
        return solved;
    }
    let (mut wrong, mut without_sums): (Vec<Region>, bool) = (Vec::new(), false);
    for _ in 0..MOST_ATTEMPTS {
        let mut edit = Edit::of(graph);
        edit.without_sums = without_sums;
        let (mut new, applied, refused) = attempt(edit, &wrong);
        solved.refused = refused;
        if applied.is_empty() {
            return solved;
        }
        let rules = move |graph: &Graph| {
            let mut edit = Edit::of(graph);
            edit.all_forms = true;
            edit.without_sums = without_sums;
            attempt(edit, &[]).0.ordered()
        };
        let disproved = proofs.disproved((graph, &new), false, rules);
        if disproved.is_empty() {
            solved.relies_on_outputs = require_what_is_hidden(graph, &mut new);
            let is_whole = require_what_is_lost(graph, &mut new);
            let new = new.ordered().filter(|graph| verify(graph).is_ok());
            match new {
                Some(new) if is_whole => {
                    (solved.graph, solved.applied) = (eliminate_dead_code(&new), applied);
                }
                Some(_) => solved.refused.push(Refused { at: None, why: LOST.to_owned() }),
                None => solved.refused.push(Refused { at: None, why: NO_GRAPH.to_owned() }),
            }
            return solved;
        }
        // Without forms of sums those of the numbers may be right.
        let is_sum = |node: &Node| match graph.nodes.get(*node) {
            Some(data) => matches!(data.def, Def::Apply(..)),
            None => false,
        };
        if !without_sums && new.nodes.keys().any(is_sum) {
            without_sums = true;
        } else {
            wrong.extend(disproved);
        }
    }
    solved.refused.extend(wrong.into_iter().map(|region| refusal(graph, region, DISPROVED)));
    solved
}

/// Solves the loops of the graph of `edit` but those that have been found `wrong`.
fn attempt(mut edit: Edit, wrong: &[Region]) -> (Replacement, Vec<Applied>, Vec<Refused>) {
    let (mut applied, mut refused) = (Vec::new(), Vec::new());
    let order = inside_out(&edit.graph);
    for &region in order.iter().rev().filter(|region| !wrong.contains(region)) {
        if let Some(mut found) = nest::solve(&mut edit, region) {
            applied.append(&mut found);
        }
    }
    for region in order {
        if edit.is_gone(region) {
            continue;
        }
        if wrong.contains(&region) {
            refused.push(refusal(&edit.graph, region, DISPROVED));
            continue;
        }
        match solve::solve(&mut edit, region) {
            Ok(mut found) => applied.append(&mut found),
            Err(why) => refused.push(refusal(&edit.graph, region, why)),
        }
    }
    (edit.replacement(), applied, refused)
}

/// So many loops are tried as searches at most: each needs a copy of the graph, and is
/// compared with what it was by itself.
const MOST_SEARCHES: usize = 64;

/// Puts closed forms behind the loops of `graph` that are left by a decision on what
/// they carry: what is left of such a loop is the search for the number of iterations,
/// through which no derivative passes.
pub(super) fn search_all(graph: &Graph, proofs: &mut Proofs) -> Solved {
    let mut all = Solved::of(graph);
    let has_sums = graph.series.values().any(SeriesData::is_sums);
    if has_sums || graph.regions.values().any(|data| data.replays.is_some()) {
        return all;
    }
    let (mut outlook, mut tried) = (search::Outlook::of(graph), 0);
    for region in inside_out(graph) {
        let wanted = outlook.wanted(region);
        if wanted.as_ref().is_ok_and(Vec::is_empty) {
            continue;
        }
        let found = wanted.and_then(|wanted| {
            if tried == MOST_SEARCHES {
                return Err("there are too many like it");
            }
            tried += 1;
            let mut found = search::search(&all.graph, &outlook, region, &wanted)?;
            let mut new = found.edit.replacement();
            let is_proven = match found.ends.as_slice() {
                [] => proofs.disproved((&all.graph, &new), true, searched).is_empty(),
                ends => proofs.agree_at_ends((&all.graph, &new), region, ends),
            };
            if !is_proven {
                return Err(DISPROVED);
            }
            all.relies_on_outputs |= require_what_is_hidden(&all.graph, &mut new);
            if !require_what_is_lost(&all.graph, &mut new) {
                return Err(LOST);
            }
            let new = new.ordered().filter(|graph| verify(graph).is_ok()).ok_or(NO_GRAPH)?;
            all.applied.append(&mut found.applied);
            Ok(new)
        });
        match found {
            Ok(new) => {
                outlook = search::Outlook::of(&new);
                all.graph = new;
            }
            Err(why) => all.refused.push(refusal(graph, region, why)),
        }
    }
    if !all.applied.is_empty() {
        all.graph = eliminate_dead_code(&all.graph);
    }
    all
}

/// The closed forms behind the first loop of `graph`, if it has any.
fn searched(graph: &Graph) -> Option<Graph> {
    let outlook = search::Outlook::of(graph);
    let region = graph.regions_of(graph.root()).next()?;
    let wanted = outlook.wanted(region).ok().filter(|wanted| !wanted.is_empty())?;
    let found = search::search(graph, &outlook, region, &wanted).ok()?;
    found.edit.replacement().ordered()
}

fn refusal(graph: &Graph, region: Region, why: &str) -> Refused {
    let place = graph.regions[region].place;
    let at = place.and_then(|place| graph.places.get(place)).cloned();
    Refused { at, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{interpret, parse};

    #[test]
    fn only_loops_that_were_found_wrong_stay() {
        // Two powers of the input, and their sum.
        let text = "graph active 1 inactive 0\nv1 = const 1.0\nv2 = const 99.0\nv4 = iteration r0\n\
                    v9 = iteration r1\n\
                    b0:\n  v7 = region r0 b1 bound 100 entries v3=v1\n  \
                    v12 = region r1 b2 bound 100 entries v8=v0\n  v13 = add v7 v12\n  return v13\n\
                    b1:\n  v5 = mul v3 v0\n  v6 = lt v4 v2\n  return v6 v5 v5\n\
                    b2:\n  v10 = mul v8 v0\n  v11 = lt v9 v2\n  return v11 v10 v10\n";
        let graph = parse(text).unwrap();
        let regions: Vec<Region> = graph.regions.keys().collect();
        let loops = |wrong: &[Region]| {
            let (new, applied, refused) = attempt(Edit::of(&graph), wrong);
            assert!(refused.iter().all(|this| this.why == DISPROVED));
            assert_eq!(refused.len(), wrong.len());
            let new = eliminate_dead_code(&new.ordered().unwrap());
            assert_eq!(interpret(&new, &[1.0]), interpret(&graph, &[1.0]));
            (applied.len(), new.regions.len())
        };
        assert_eq!(loops(&[]), (2, 0));
        assert_eq!(loops(&regions[..1]), (1, 1));
        assert_eq!(loops(&regions[1..]), (1, 1));
        assert_eq!(loops(&regions), (0, 2));
    }

    #[test]
    fn recurrences_have_forms_at_all_lengths_that_are_compared() {
        for count in [1u32, 2, 3, 4, 18, 302] {
            let last = count - 1;
            // Two numbers that depend on each other.
            let text = format!(
                "graph active 4 inactive 0\nv4 = const {last}.0\nv7 = iteration r0\n\
                 b0:\n  v12 = region r0 b1 bound {count} entries v5=v2 v6=v3\n  return v12\n\
                 b1:\n  v8 = mul v5 v0\n  v9 = add v8 v6\n  v10 = mul v6 v1\n  \
                 v11 = lt v7 v4\n  return v11 v9 v10 v9\n"
            );
            let mut edit = Edit::of(&parse(&text).unwrap());
            edit.all_forms = true;
            let (_, applied, refused) = attempt(edit, &[]);
            assert_eq!(applied.len(), 1, "{count} {refused:?}");
        }
    }
}
