//! Simplification of segments by equality saturation, with egg.
//!
//! Each segment becomes an e-graph (`language`), in which an analysis keeps what
//! is known of numbers (`facts`, `range`, `known`), and in which loops they change
//! (`loops`). Rules (`rules`, `pattern`) add equal terms; then the cheapest are taken
//! (`extract`, `cost`). What decides something keeps its bits, and is a part of the
//! e-graph only to be seen by rules. So are values of blocks around, and of those that a
//! block replays.
//!
//! Sums of exponentials of which only quotients and logarithms are used are scaled
//! (`scale`): that is no matter of single terms.
//!
//! Segments in which no rule has anything to do cost a look at each node. Forms that
//! avoid an overflow are taken at any cost, but not where what overflows is needed
//! for something else: then they would be computed in vain.
//!
//! egg: Willsey et al., "egg: Fast and Extensible Equality Saturation" (POPL 2021).

mod compensated;
mod cost;
mod extract;
mod facts;
mod found;
mod known;
mod language;
mod loops;
mod matching;
mod pattern;
mod range;
mod rules;
mod saturate;
mod scale;
mod segment;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::{HashMap, HashSet};

pub use self::rules::Tag;

use self::compensated::compensated;
use self::known::Known;
use self::loops::Loops;
use self::matching::Place;
use self::saturate::Saturation;
use self::segment::{Better, better};
use crate::entity::Array;
use crate::ssa::{
    Flow, Folding, Graph, Node, Segments, decisive_nodes, eliminate_dead_code, live_nodes, rebuild,
    verify,
};

/// How often forms are tried without those that were in vain.
const MOST_ROUNDS: usize = 4;

/// How much work simplification may be, for each segment.
///
/// All are counts, so that the result is the same on every machine.
///
/// # Examples
///
/// ```
/// use phigrad::phi::SimplifyLimits;
///
/// let hasty = SimplifyLimits { iterations: 2, ..SimplifyLimits::DEFAULT };
/// assert!(hasty.growth > 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimplifyLimits {
    /// How often all rules are tried.
    pub iterations: usize,
    /// How many terms there may be for each node of the segment, before no more
    /// rules are applied.
    pub growth: usize,
}

impl SimplifyLimits {
    /// What the library uses.
    pub const DEFAULT: SimplifyLimits = SimplifyLimits { iterations: 6, growth: 4 };
}

/// What becomes of what is simplified.
///
/// # Examples
///
/// ```
/// use phigrad::phi::Stage;
///
/// assert_ne!(Stage::Primal, Stage::Final);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It will be: forms whose derivative is less accurate are not used.
    Primal,
    /// It will not be.
    Final,
    /// It will not be, and is to be read by people: no guards are added that only say that
    /// numbers do not overflow.
    Shown,
}

/// The names of all rewrite rules, and on what numbers they hold. For an example see
/// [`Tag`].
pub fn rewrite_rules() -> impl Iterator<Item = (&'static str, Tag)> {
    rules::rules().map(|rule| (rule.name, rule.tag))
}

/// How a segment was simplified: counts, the same on every machine.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{SimplifyLimits, Stage, simplify_segments};
/// use phigrad::soi::divide;
/// use phigrad::ssa::parse;
///
/// // v0/√v0 needs to be told that v0 is positive.
/// let text = "graph active 1 inactive 0\nb0:\n  v1 = sqrt v0\n  v2 = div v0 v1\n  return v2\n";
/// let graph = parse(text)?;
/// let runs =
///     simplify_segments(&graph, &divide(&graph, 64), Stage::Final, SimplifyLimits::DEFAULT).runs;
/// assert_eq!((runs[0].nodes, runs[0].iterations, runs[0].improved), (2, 1, false));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// How many nodes the segment has.
    pub nodes: usize,
    /// How many terms were known in the end.
    pub terms: usize,
    /// How often all rules were tried.
    pub iterations: usize,
    /// Whether no rule had anything to add; if not, a limit was met.
    pub complete: bool,
    /// Whether a better form was found.
    pub improved: bool,
}

/// What [`simplify_segments`] made of a graph.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{Simplified, SimplifyLimits, Stage, simplify_segments};
/// use phigrad::soi::divide;
/// use phigrad::ssa::parse;
///
/// // No rule has a sine.
/// let graph = parse("graph active 1 inactive 0\nb0:\n  v1 = sin v0\n  return v1\n")?;
/// let Simplified { graph: same, runs } =
///     simplify_segments(&graph, &divide(&graph, 64), Stage::Final, SimplifyLimits::DEFAULT);
/// assert!(same == graph && runs.is_empty());
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Simplified {
    /// The simplified graph.
    pub graph: Graph,
    /// The segments in which a rule might apply, in order; others cost nothing.
    pub runs: Vec<SegmentRun>,
}

/// What is the same for all segments of a graph.
struct Settings<'a> {
    segments: &'a Segments,
    /// Whether a rule may apply in a segment.
    is_candidate: Vec<bool>,
    known: Known<'a>,
    loops: &'a Loops,
    /// What decides something, and keeps its bits.
    decisive: Array<Node, bool>,
    /// What has a rounding error that may be made up for.
    compensated: Array<Node, bool>,
    /// What is not worth a form that avoids an overflow: what overflows is needed anyway.
    as_they_are: HashSet<Node>,
}

/// A graph with the same outputs as real numbers, computed faster, or with less
/// rounding and overflow.
///
/// What decides something, such as the operands of a guard or of a square root,
/// keeps its bits. No number becomes infinite or
/// NaN that was not. The work is in proportion to the number of segments that rules
/// may apply to; `phigrad-bench simplify` measures it.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{SimplifyLimits, Stage, simplify_segments};
/// use phigrad::soi::divide;
/// use phigrad::ssa::parse;
///
/// // ln(e^v0 + 1)
/// let graph = parse("graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  \
///                    v3 = add v2 v1\n  v4 = ln v3\n  return v4\n")?;
/// let segments = divide(&graph, 100);
/// let stable = simplify_segments(&graph, &segments, Stage::Final, SimplifyLimits::DEFAULT);
/// assert!(stable.runs[0].improved && stable.runs[0].iterations > 0);
/// let outcome = phigrad::ssa::interpret(&stable.graph, &[1000.0]);
/// assert_eq!(outcome, phigrad::ssa::Outcome::Values(vec![1000.0]));
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn simplify_segments(
    graph: &Graph,
    segments: &Segments,
    stage: Stage,
    limits: SimplifyLimits,
) -> Simplified {
    let simplified = simplified_by_rules(graph, segments, stage, limits);
    if stage == Stage::Primal {
        return simplified;
    }
    let Some(scaled) = scale::scaled(&simplified.graph) else { return simplified };
    let scaled = eliminate_dead_code(&scaled);
    if verify(&scaled).is_err() {
        return simplified;
    }
    Simplified { graph: scaled, ..simplified }
}

fn simplified_by_rules(
    graph: &Graph,
    segments: &Segments,
    stage: Stage,
    limits: SimplifyLimits,
) -> Simplified {
    let unchanged = |runs| Simplified { graph: graph.clone(), runs };
    let saturation = Saturation::new(stage, limits);
    let loops = &Loops::of(graph);
    let ops = graph.nodes.keys().fold(0, |ops, node| ops | graph.has(node));
    let may_match = |segment| saturation.may_match(graph, ops, loops, segment);
    let is_candidate: Vec<bool> = segments.list.iter().map(may_match).collect();
    if !is_candidate.contains(&true) {
        return unchanged(Vec::new());
    }
    let flow = Flow::of(graph);
    let (known, decisive) = (Known::of(graph, &flow), decisive_nodes(graph, &flow));
    let (compensated, as_they_are) = (compensated(graph), HashSet::new());
    let mut settings =
        Settings { segments, is_candidate, known, loops, decisive, compensated, as_they_are };
    let mut found: BTreeMap<u32, Better> = BTreeMap::new();
    let mut runs = Vec::new();
    for (number, segment) in (0u32..).zip(&segments.list) {
        if settings.is_candidate[number as usize] {
            let (better, run) = better(graph, segment, &settings, &saturation);
            runs.push(run);
            found.extend(better.map(|better| (number, better)));
        }
    }
    for _ in 0..MOST_ROUNDS {
        if found.is_empty() {
            break;
        }
        let (simplified, useless) = rebuilt(graph, segments, &mut found);
        if useless.is_empty() {
            let simplified = eliminate_dead_code(&simplified);
            // A form that uses what is not visible where it is used would be refused later.
            if verify(&simplified).is_ok() {
                return Simplified { graph: simplified, runs };
            }
            break;
        }
        for &(number, node) in &useless {
            settings.as_they_are.insert(node);
            found.remove(&number);
        }
        found.values_mut().for_each(Better::restart);
        let again: BTreeSet<u32> = useless.into_iter().map(|(number, _)| number).collect();
        for number in again {
            let segment = &segments.list[number as usize];
            let (better, _) = better(graph, segment, &settings, &saturation);
            found.extend(better.map(|better| (number, better)));
        }
    }
    unchanged(runs)
}

/// The graph with better forms, dead code included, and the nodes, with the numbers
/// of their segments, whose forms avoid an overflow in vain: what overflows is
/// needed anyway.
fn rebuilt(
    graph: &Graph,
    segments: &Segments,
    found: &mut BTreeMap<u32, Better>,
) -> (Graph, Vec<(u32, Node)>) {
    let overflowing: Vec<(u32, Node, Node)> = found
        .iter()
        .flat_map(|(&number, better)| {
            better.overflowing().iter().map(move |&(node, from)| (number, node, from))
        })
        .collect();
    let exponentials: HashSet<Node> = overflowing.iter().map(|&(.., from)| from).collect();
    let mut copies: HashMap<Node, Node> = HashMap::new();
    let mut last = None;
    let simplified = rebuild(graph, Folding::Real, |rebuild, node| {
        if let Some(copied) = last.replace(node).filter(|last| exponentials.contains(last)) {
            copies.insert(copied, rebuild.copied(copied));
        }
        let better = found.get_mut(&segments.of[node]?)?;
        better.build(rebuild, node)
    });
    let mut useless = Vec::new();
    if !overflowing.is_empty() {
        let live = live_nodes(&simplified);
        // An exponential that is the last node of all is an output.
        let is_live = |from: Node| copies.get(&from).is_none_or(|&copy| live[copy]);
        let in_vain = overflowing.into_iter().filter(|&(.., from)| is_live(from));
        useless.extend(in_vain.map(|(number, node, _)| (number, node)));
    }
    (simplified, useless)
}
