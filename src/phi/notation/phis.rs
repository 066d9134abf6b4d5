//! The φs of a graph, by where they are, and which of them are differentiated.

use super::brief::Brief;
use crate::entity::Array;
use crate::op::Op;
use crate::phi::rule::{Applied, Rule};
use crate::ssa::{Def, End, Flow, Graph, Node, Place, PlaceId, Region, swept};

/// The φs of the regions of one place in the user's source.
///
/// For an example see [`phis`].
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Phis {
    /// Where, if that is known.
    pub at: Option<Place>,
    /// Entry φs: what loops carry, and the number of the iteration.
    pub entries: usize,
    /// How many of these are the number of the iteration.
    pub numbers: usize,
    /// Exit φs of loops.
    pub exits: usize,
    /// φs where the sides of branches meet.
    pub joins: usize,
    /// How many of all these are in loops through which no derivative passes: such a
    /// loop only finds out how often it is gone through.
    pub steady: usize,
}

impl Phis {
    /// The number of all of them.
    pub fn count(&self) -> usize {
        self.entries + self.exits + self.joins
    }
}

/// The φs of `graph`, by where they are.
///
/// An exit φ that is what its loop carries, whichever way that is left, is none by
/// F5, unless `as_seen` says to count it nevertheless.
///
/// # Examples
///
/// ```
/// use phigrad::phi::phis;
/// use phigrad::ssa::parse;
///
/// let text = "graph active 1 inactive 0\nv1 = const 9.0\nv3 = iteration r0\n\
///             b0:\n  v6 = region r0 b1 bound 10 entries v2=v0\n  return v6\nb1:\n  \
///             v4 = sin v2\n  v5 = lt v3 v1\n  return v5 v4 v4\n";
/// let seen = phis(&parse(text)?, true);
/// // What is carried and the number of the iteration, and what comes out.
/// assert_eq!((seen[0].entries, seen[0].exits), (2, 1));
/// assert_eq!(phis(&parse(text)?, false)[0].exits, 0);
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn phis(graph: &Graph, as_seen: bool) -> Vec<Phis> {
    let mut all: Vec<(Option<PlaceId>, Phis)> = Vec::new();
    let swept = swept(graph);
    for region in graph.preorder().into_iter().flat_map(|block| graph.regions_of(block)) {
        let data = &graph.regions[region];
        let mut here = Phis::default();
        match &data.cycle {
            Some(cycle) => {
                here.entries = cycle.entries.len() + 1;
                here.numbers = 1;
                let is_carried = |number: usize| {
                    (0..cycle.entries.len()).any(|entry| carries(graph, region, entry, number))
                };
                let is_exit = |&number: &usize| as_seen || !is_carried(number);
                here.exits = (0..data.phis.len()).filter(is_exit).count();
                if !cycle.entries.iter().any(|entry| swept[entry.phi]) {
                    here.steady = here.entries + here.exits;
                }
            }
            None => here.joins = data.phis.len(),
        }
        let same = |(place, _): &&mut (Option<PlaceId>, Phis)| *place == data.place;
        match all.iter_mut().find(same) {
            Some((_, known)) => {
                known.entries += here.entries;
                known.numbers += here.numbers;
                known.exits += here.exits;
                known.joins += here.joins;
                known.steady += here.steady;
            }
            None => {
                here.at = data.place.and_then(|place| graph.places.get(place)).cloned();
                all.push((data.place, here));
            }
        }
    }
    all.into_iter().map(|(_, phis)| phis).filter(|phis| phis.count() > 0).collect()
}

/// Sides of so many characters are told.
const LONGEST: usize = 80;

/// The φs of branches whose derivatives are taken, each by C2.
///
/// # Examples
///
/// ```
/// use phigrad::phi::{Rule, differentiated_phis};
/// use phigrad::ssa::parse;
///
/// let text = "graph active 2 inactive 0\nv2 = const 0\nb0:\n  v3 = gt v0 v2\n  v5 = region r0 b1\n  \
///             return v5\nb1:\n  branch v3 b2 b3\nb2:\n  return v1\nb3:\n  v4 = neg v1\n  return v4\n";
/// let applied = differentiated_phis(&parse(text)?);
/// assert_eq!(applied[0].rule, Rule::C2);
/// assert_eq!(applied[0].form, "∂φ(x₀ > 0; x₁, −x₁) = φ(x₀ > 0; ∂(x₁), ∂(−x₁))");
/// # Ok::<(), phigrad::ssa::ParseError>(())
/// ```
pub fn differentiated_phis(graph: &Graph) -> Vec<Applied> {
    let active = active(graph);
    let brief = Brief::new(graph);
    let mut applied: Vec<Applied> = Vec::new();
    for (_, data) in graph.nodes.iter().filter(|&(node, _)| active[node]) {
        let (condition, sides, place) = match data.def {
            Def::Apply(Op::Select, [condition, then, otherwise]) => {
                (brief.node(condition), vec![then, otherwise], data.place)
            }
            Def::Phi(region, number) if graph.regions[region].cycle.is_none() => {
                let root = graph.regions[region].root;
                let End::Branch { condition, .. } = graph.blocks[root].end else { continue };
                let leaves = graph.leaves(root).into_iter();
                let value = |leaf| match &graph.blocks[leaf].end {
                    End::Return(values) => values.get(number as usize).copied(),
                    End::Branch { .. } | End::Open => None,
                };
                let sides = leaves.filter_map(value).collect();
                (brief.node(condition), sides, data.place.or(graph.regions[region].place))
            }
            _ => continue,
        };
        let side = |side: Node| match brief.node(side) {
            long if long.chars().count() > LONGEST => "…".to_owned(),
            side => side,
        };
        let sides: Vec<String> = sides.into_iter().map(side).collect();
        let at = place.and_then(|place| graph.places.get(place)).cloned();
        let form = format!(
            "∂φ({condition}; {}) = φ({condition}; ∂({}))",
            sides.join(", "),
            sides.join("), ∂(")
        );
        let new = Applied { rule: Rule::C2, at, form };
        if !applied.contains(&new) {
            applied.push(new);
        }
    }
    applied
}

/// Whether φ `number` of the loop `region` is what its entry φ `entry` is, or would
/// be next, whichever way the loop is left.
pub(super) fn carries(graph: &Graph, region: Region, entry: usize, number: usize) -> bool {
    let (decides, nexts) = graph.passed_before_phis(region);
    let leaves = graph.leaves(graph.regions[region].root);
    leaves.into_iter().all(|leaf| {
        let End::Return(values) = &graph.blocks[leaf].end else { return false };
        let again = values[..decides].first().and_then(|&again| graph.constant(again));
        let value = |index: usize| values.get(decides + index).copied();
        match again {
            Some(0.0) => {
                let phi = graph.entries(region).get(entry).map(|entry| entry.phi);
                [phi, value(entry)].contains(&value(nexts + number))
            }
            Some(_) => true,
            None => value(entry) == value(nexts + number),
        }
    })
}

/// Which nodes may have a derivative by an active input.
fn active(graph: &Graph) -> Array<Node, bool> {
    let flow = Flow::of(graph);
    let mut active = Array::filled(false, graph.nodes.len());
    // What loops carry may need several rounds.
    loop {
        let mut changed = false;
        for (node, data) in graph.nodes.iter() {
            if active[node] {
                continue;
            }
            active[node] = match data.def {
                Def::Input(number) => (number as usize) < graph.active,
                Def::Apply(op, _) if op.is_comparison() => false,
                _ => flow.sources(node).into_iter().any(|source| active[source]),
            };
            changed |= active[node];
        }
        if !changed {
            return active;
        }
    }
}
