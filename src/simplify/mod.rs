//! Simplification of segments by equality saturation, with egg.
//!
//! - `segment`: a segment becomes an e-graph, and the best terms become nodes again.
//! - `egraph`: its terms, with an analysis of what is known of numbers (`range`, `known`) and
//!   in which loops they change (`loops`).
//! - `rules`, `matching`, `saturate`: rules add equal terms, within limits that are counts.
//! - `extract`: the cheapest terms are taken, common ones counted once.
//!
//! What a comparison or a singularity depends on keeps its bits, and is in the e-graph only
//! for rules to see. So are values of enclosing blocks, and of blocks that a block replays.
//! A segment in which no rule may apply costs a look at each node.
//!
//! egg: Willsey et al., "egg: Fast and Extensible Equality Saturation" (POPL 2021).

mod egraph;
mod extract;
mod known_ranges;
mod loops;
mod matching;
mod range;
mod rules;
mod saturate;
mod segment;

pub use self::rules::Tag;

use self::known_ranges::Known;
use self::loops::Loops;
use self::matching::Place;
use self::rules::Rule;
use self::saturate::Saturation;
use self::segment::{Better, Context, better};
use crate::ssa::{
    Flow, Folding, Graph, Segments, control_slice, eliminate_dead_code, rebuild, verify,
};

/// How much work simplification may be, for each segment.
///
/// All are counts, so that the result is the same on every machine.
///
/// # Examples
///
/// ```
/// use phigrad::internals::simplify::SimplifyLimits;
///
/// let hasty = SimplifyLimits { iterations: 2, ..SimplifyLimits::DEFAULT };
/// assert!(hasty.terms_per_node > 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimplifyLimits {
    /// How often all rules are tried.
    pub iterations: usize,
    /// How many terms there may be for each node of the segment, before no more
    /// rules are applied.
    pub terms_per_node: usize,
}

impl SimplifyLimits {
    /// What the library uses.
    pub const DEFAULT: SimplifyLimits = SimplifyLimits { iterations: 6, terms_per_node: 4 };
}

/// Whether what is simplified is differentiated.
///
/// # Examples
///
/// ```
/// use phigrad::internals::simplify::Stage;
///
/// assert_ne!(Stage::Primal, Stage::Final);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It will be: forms whose derivative is less accurate are not used.
    Primal,
    /// It will not be.
    Final,
}

/// A rewrite rule.
///
/// # Examples
///
/// ```
/// use phigrad::internals::simplify::{Tag, rewrite_rules};
///
/// let rule = rewrite_rules().find(|rule| rule.name == "power-half");
/// assert!(rule.is_some_and(|rule| rule.tag == Tag::NeedsFact && rule.left == "(powf ?y 0.5)"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteRule {
    /// Its name.
    pub name: &'static str,
    /// On what numbers it holds.
    pub tag: Tag,
    /// The terms that it is about: `?x` is any term, `?k` and `?m` are constants.
    pub left: &'static str,
}

/// All rewrite rules. For an example see [`RewriteRule`].
pub fn rewrite_rules() -> impl Iterator<Item = RewriteRule> {
    rules::rules().map(|&Rule { name, tag, left, .. }| RewriteRule { name, tag, left })
}

/// How a segment was simplified: counts, the same on every machine. For an example see
/// [`simplify_segments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// How many nodes the segment has.
    pub nodes: usize,
    /// How many terms were known in the end.
    pub terms: usize,
    /// How often all rules were tried.
    pub iterations: usize,
    /// Whether no rule had anything to add; if not, a limit was reached.
    pub complete: bool,
    /// Whether a better form was found.
    pub improved: bool,
}

/// What [`simplify_segments`] made of a graph, with an example there.
#[derive(Clone, Debug, PartialEq)]
pub struct Simplified {
    /// The simplified graph.
    pub graph: Graph,
    /// The segments in which a rule might apply, in order; others cost nothing.
    pub runs: Vec<SegmentRun>,
}

/// A graph with the same outputs as real numbers, computed faster, or with less
/// rounding and overflow.
///
/// What a comparison or a singularity depends on, such as the operands of a guard or of a
/// square root, keeps its bits. No number becomes infinite or NaN that was not. The work is in
/// proportion to the number of segments that rules may apply to; `phigrad-bench simplify`
/// measures it.
///
/// # Examples
///
/// ```
/// use phigrad::internals::simplify::{SimplifyLimits, Stage, simplify_segments};
/// use phigrad::internals::soi::divide;
/// use phigrad::internals::ssa::parse;
///
/// // ln(e^v0 + 1)
/// let graph = parse("graph active 1 inactive 0\nv1 = const 1.0\nb0:\n  v2 = exp v0\n  \
///                    v3 = add v2 v1\n  v4 = ln v3\n  return v4\n")?;
/// let segments = divide(&graph, 100);
/// let stable = simplify_segments(&graph, &segments, Stage::Final, SimplifyLimits::DEFAULT);
/// assert_eq!((stable.runs[0].nodes, stable.runs[0].improved), (3, true));
/// let outcome = phigrad::internals::ssa::interpret(&stable.graph, &[1000.0]);
/// assert_eq!(outcome, phigrad::internals::ssa::Outcome::Values(vec![1000.0]));
/// # Ok::<(), phigrad::internals::ssa::ParseError>(())
/// ```
pub fn simplify_segments(
    graph: &Graph,
    segments: &Segments,
    stage: Stage,
    limits: SimplifyLimits,
) -> Simplified {
    let saturation = Saturation::new(stage, limits);
    let loops = &Loops::of(graph);
    let ops = graph.nodes.keys().fold(0, |ops, node| ops | graph.has(node));
    let may_match = |segment| saturation.may_match(graph, ops, segment);
    let is_candidate: Vec<bool> = segments.list.iter().map(may_match).collect();
    if !is_candidate.contains(&true) {
        return Simplified { graph: graph.clone(), runs: Vec::new() };
    }
    let flow = Flow::of(graph);
    let (known, keeps_bits) = (Known::of(graph, &flow), control_slice(graph, &flow));
    let context = Context { graph, segments, is_candidate, known, loops, keeps_bits };
    let mut found: Vec<Option<Better>> = Vec::with_capacity(segments.list.len());
    let mut runs = Vec::new();
    for (segment, &is_candidate) in segments.list.iter().zip(&context.is_candidate) {
        let better = is_candidate.then(|| better(&context, segment, &saturation));
        found.push(better.and_then(|(better, run)| {
            runs.push(run);
            better
        }));
    }
    if found.iter().all(Option::is_none) {
        return Simplified { graph: graph.clone(), runs };
    }
    let simplified = rebuild(graph, Folding::Real, |rebuild, node| {
        let better = found.get_mut(segments.of[node]? as usize)?.as_mut()?;
        better.build(rebuild, node)
    });
    let simplified = eliminate_dead_code(&simplified);
    // A form of a value that is not visible where it is used would be refused later.
    match verify(&simplified) {
        Ok(()) => Simplified { graph: simplified, runs },
        Err(_) => Simplified { graph: graph.clone(), runs },
    }
}
