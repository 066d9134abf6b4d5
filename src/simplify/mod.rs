//! Simplification of segments by equality saturation, with egg.
//!
//! - `segment`: from a segment to its e-graph, and from the best terms back to nodes
//! - `egraph`: terms, and the analysis with facts about each class
//!   - `loops`: the enclosing loops in which values change
//! - `rules`: the rewrite rules
//! - `matching`: patterns and their instances
//! - `saturate`: applies the rules, within limits that are counts
//! - `extract`: chooses the cheapest terms, common subterms counted once
//!
//! `reciprocals` is a pass of its own: divisions become multiplications.
//!
//! Nodes of the control slice, on which comparisons and singularities depend, keep their bits. They
//! are in the e-graph only as context for rules, and so are values of enclosing blocks and of
//! replayed blocks. A segment in which no rule may apply takes one test for each node.
//!
//! egg: Willsey et al., "egg: Fast and Extensible Equality Saturation" (POPL 2021).

mod egraph;
mod extract;
mod loops;
mod matching;
mod reciprocals;
mod rules;
mod saturate;
mod segment;

pub use self::reciprocals::share_reciprocals;
pub use self::rules::Tag;

use self::loops::Loops;
use self::matching::TermSource;
use self::rules::Rule;
use self::saturate::Saturation;
use self::segment::{Context, Improvement, improvement};
use crate::ssa::{
    Flow, Folding, Graph, KnownRanges, Segments, control_slice, eliminate_dead_code, rebuild,
    verify,
};

/// Limits of simplification, for each segment.
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
    /// The largest number of iterations over all rules.
    pub iterations: usize,
    /// The largest number of terms for each node of the segment; beyond it no rule is applied.
    pub terms_per_node: usize,
}

impl SimplifyLimits {
    /// The limits that the library uses.
    pub const DEFAULT: SimplifyLimits = SimplifyLimits { iterations: 6, terms_per_node: 4 };
}

/// The stage of a graph in the pipeline.
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
    /// Before differentiation: forms whose derivatives are less accurate are not used.
    Primal,
    /// Not to be differentiated.
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
    /// The name.
    pub name: &'static str,
    /// The condition under which the rule holds.
    pub tag: Tag,
    /// The left-hand side: `?x` is any term, `?k` and `?m` are constants.
    pub left: &'static str,
}

/// All rewrite rules. For an example see [`RewriteRule`].
pub fn rewrite_rules() -> impl Iterator<Item = RewriteRule> {
    rules::rules().map(|&Rule { name, tag, left, .. }| RewriteRule { name, tag, left })
}

/// Statistics of the simplification of a segment: counts, the same on every machine. For an example
/// see [`simplify_segments`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRun {
    /// The number of nodes of the segment.
    pub nodes: usize,
    /// The number of terms in the end.
    pub terms: usize,
    /// The number of iterations over all rules.
    pub iterations: usize,
    /// True if the e-graph is saturated; if not, a limit was reached.
    pub complete: bool,
    /// True if a better form was found.
    pub improved: bool,
}

/// The result of [`simplify_segments`]; for an example see there.
#[derive(Clone, Debug, PartialEq)]
pub struct Simplified {
    /// The simplified graph.
    pub graph: Graph,
    /// The runs on segments in which a rule may apply, in order.
    pub runs: Vec<SegmentRun>,
}

/// Simplifies the segments of a graph: the outputs are equal as real numbers, and are computed
/// faster or with less rounding and overflow.
///
/// Nodes on which a comparison or a singularity depends, such as the operands of a guard or of a
/// square root, keep their bits. No finite number becomes infinite or NaN. The work is proportional
/// to the number of segments that rules may apply to; `phigrad-bench simplify` measures it.
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
    let (ranges, control_slice) = (KnownRanges::of(graph, &flow), control_slice(graph, &flow));
    let context = Context { graph, segments, is_candidate, ranges, loops, control_slice };
    let mut improvements: Vec<Option<Improvement>> = Vec::with_capacity(segments.list.len());
    let mut runs = Vec::new();
    for (segment, &is_candidate) in segments.list.iter().zip(&context.is_candidate) {
        let improvement = is_candidate.then(|| improvement(&context, segment, &saturation));
        improvements.push(improvement.and_then(|(improvement, run)| {
            runs.push(run);
            improvement
        }));
    }
    if improvements.iter().all(Option::is_none) {
        return Simplified { graph: graph.clone(), runs };
    }
    let simplified = rebuild(graph, Folding::Real, |rebuild, node| {
        let improvement = improvements.get_mut(segments.of[node]? as usize)?.as_mut()?;
        improvement.build(rebuild, node)
    });
    let simplified = eliminate_dead_code(&simplified);
    // A result that uses a value where it is not visible is discarded.
    match verify(&simplified) {
        Ok(()) => Simplified { graph: simplified, runs },
        Err(_) => Simplified { graph: graph.clone(), runs },
    }
}
