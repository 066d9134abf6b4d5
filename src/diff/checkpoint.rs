//! Checkpoints: less memory for the reverse sweep of loops, at the price of going
//! through their iterations once more.
//!
//! What the sweep of a loop needs of each iteration is kept, unless the loop is in
//! another one and is computed again: then the sweep of each iteration of the outer
//! loop first goes through the inner one once more, from its first values, which are
//! kept, and what that keeps is needed for this iteration of the outer loop alone. So a
//! nest of two loops needs the sum of their iterations instead of the product; and a
//! loop of n iterations needs about 2√n if it is made two first (see `split`), with what
//! its entry φs are every √n iterations for a checkpoint. Loops that are split again
//! need less, and one more time through the iterations.

use core::cmp::Reverse;

use super::activity::{Activity, bound};
use super::needed::Needed;
use super::order::Entries;
use super::reverse::{Wanted, reverse_from};
use super::split::{Strips, split, strips};
use crate::entity::PrimaryMap;
use crate::ssa::{Block, End, Folding, Graph, Nest, Region, blocks_inside};

/// A graph that is to be differentiated, with the loops that the sweep computes again.
///
/// # Examples
///
/// ```
/// use phigrad::internals::diff::{Checkpointed, Wanted, checkpoint, reverse};
/// use phigrad::internals::op::Op;
/// use phigrad::internals::ssa::{Builder, Folding, interpret};
///
/// // sin(sin(… sin(x) …)), a hundred times.
/// let mut builder = Builder::new(1, 0, Folding::Exact);
/// let (x, last) = (builder.input(0), builder.constant(99.0));
/// let (region, entries) = builder.begin_loop(100, &[x], None);
/// let next = builder.apply(Op::Sin, &[entries[0]]);
/// let number = builder.iteration(region);
/// let again = builder.apply(Op::Lt, &[number, last]);
/// builder.finish_block(&[again, next, next]);
/// let value = builder.end_loop(region, 1)[0];
/// builder.finish_block(&[value]);
/// let graph = builder.into_graph();
///
/// let checkpointed = checkpoint(&Checkpointed::new(&graph)).expect("there is a way");
/// // A loop of ten iterations, and in it one of ten.
/// assert_eq!((checkpointed.graph.regions.len(), checkpointed.recomputed.len()), (2, 1));
/// let [gradient, plain] = [
///     checkpointed.reverse(Wanted::Gradient, Folding::Exact),
///     reverse(&graph, Wanted::Gradient, Folding::Exact),
/// ];
/// assert_eq!(interpret(&gradient, &[0.5]), interpret(&plain, &[0.5]));
/// ```
#[derive(Clone, Debug)]
pub struct Checkpointed {
    /// The graph: it computes what the original one does, and stops where that does.
    pub graph: Graph,
    /// Loops in loops that are gone through again by the sweep, in no order.
    pub recomputed: Vec<Region>,
    /// What entry φs are to the sweep of the original graph, if this is another one.
    entries: Option<Entries>,
}

impl Checkpointed {
    /// `graph`, of which nothing is computed again.
    pub fn new(graph: &Graph) -> Self {
        Checkpointed { graph: graph.clone(), recomputed: Vec::new(), entries: None }
    }

    /// The gradient, as [`reverse()`](super::reverse()) makes it; for an example see
    /// [`Checkpointed`].
    ///
    /// What is computed again is computed by the same steps, and adjoints are added up
    /// in the same order as without checkpoints: with [`Folding::Exact`] the outputs
    /// are the same bits.
    pub fn reverse(&self, wanted: Wanted, folding: Folding) -> Graph {
        reverse_from(&self.graph, &self.recomputed, self.entries, wanted, folding)
    }
}

/// One step towards less memory: what the sweep keeps of `from` becomes half of what it
/// was, by an estimate, or less. `None` if nothing helps: a loop whose history is read
/// later is one row, and is not split.
///
/// For an example see [`Checkpointed`].
pub fn checkpoint(from: &Checkpointed) -> Option<Checkpointed> {
    let (mut to, mut enough) = (None, None);
    loop {
        let here = to.as_ref().unwrap_or(from);
        let estimate = Estimate::of(here);
        let words = estimate.words(None);
        let enough = *enough.get_or_insert(words / 2);
        match estimate.best().filter(|_| words > enough) {
            Some(change) => to = Some(change.made(here, &estimate.nest)?),
            None => return to,
        }
    }
}

/// What can be done to one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Recompute(Region),
    Split(Region, Strips),
}

impl Change {
    fn made(self, from: &Checkpointed, nest: &Nest) -> Option<Checkpointed> {
        let mut recomputed = from.recomputed.clone();
        let entries = from.entries.or_else(|| Some(Entries::of(&from.graph)));
        match self {
            Change::Recompute(region) => {
                recomputed.push(region);
                Some(Checkpointed { graph: from.graph.clone(), recomputed, entries })
            }
            Change::Split(region, _) => {
                let (graph, outer) = split(&from.graph, nest, region)?;
                let stands_for = recomputed.contains(&region).then_some(outer);
                recomputed.push(stands_for.unwrap_or(region));
                Some(Checkpointed { graph, recomputed, entries })
            }
        }
    }
}

/// How much the sweep keeps.
struct Estimate<'a> {
    graph: &'a Graph,
    nest: Nest,
    recomputed: &'a [Region],
    /// For each loop the nodes that are kept of each of its iterations.
    kept: PrimaryMap<Region, u64>,
}

impl<'a> Estimate<'a> {
    fn of(from: &'a Checkpointed) -> Self {
        let (graph, recomputed) = (&from.graph, &from.recomputed[..]);
        let activity = Activity::of(graph);
        let mut kept = PrimaryMap::filled(0, graph.regions.len());
        for node in Needed::of(&activity, recomputed).kept() {
            if let Some(region) = activity.nest.node_loop(node) {
                kept[region] += 1;
            }
        }
        Estimate { graph, nest: activity.nest, recomputed, kept }
    }

    /// The words that are kept, after this change if there is one.
    fn words(&self, change: Option<Change>) -> u64 {
        let each = self.graph.regions.keys().map(|region| self.words_of(region, change));
        // The first values of what will be computed again.
        let firsts = change.map_or(0, |change| {
            let (region, begins) = match change {
                Change::Recompute(region) => (region, 1),
                Change::Split(region, strips) => (region, u64::from(strips.count)),
            };
            let is_kept = !self.recomputed.contains(&region);
            let around = self.nest.loop_around(region).filter(|_| is_kept);
            let entries = self.graph.entries(region).len() as u64;
            entries.saturating_mul(begins).saturating_mul(self.span(around, None))
        });
        each.fold(firsts, u64::saturating_add)
    }

    fn words_of(&self, region: Region, change: Option<Change>) -> u64 {
        self.kept[region].saturating_mul(self.span(Some(region), change))
    }

    /// How many iterations of `region` are kept at once.
    fn span(&self, region: Option<Region>, change: Option<Change>) -> u64 {
        let (mut span, mut next) = (1u64, region);
        while let Some(region) = next {
            let (iterations, begins) = match change {
                Some(Change::Split(other, strips)) if other == region => (strips.longest, true),
                Some(Change::Recompute(other)) if other == region => {
                    (bound(self.graph, region), true)
                }
                _ => (bound(self.graph, region), self.recomputed.contains(&region)),
            };
            span = span.saturating_mul(u64::from(iterations));
            next = self.nest.loop_around(region).filter(|_| !begins);
        }
        span
    }

    /// The best change that is worth the time: to the loop that keeps most, or to one
    /// around it; if there is none, to the next.
    fn best(&self) -> Option<Change> {
        let weighed = self.graph.regions.keys().map(|region| (self.words_of(region, None), region));
        let mut loops: Vec<(u64, Region)> = weighed.filter(|&(words, _)| words > 0).collect();
        loops.sort_by_key(|&(words, _)| Reverse(words));
        loops.into_iter().find_map(|(words, region)| self.best_around(region, words))
    }

    /// The best change to `heaviest`, which keeps so many words, or to a loop around it.
    fn best_around(&self, heaviest: Region, words: u64) -> Option<Change> {
        let mut changes: Vec<Change> = Vec::new();
        let mut next = Some(heaviest);
        while let Some(region) = next {
            if !self.recomputed.contains(&region) && self.can_recompute(region) {
                changes.push(Change::Recompute(region));
            }
            let strips = strips(self.graph, &self.nest, region);
            changes.extend(strips.map(|strips| Change::Split(region, strips)));
            next = self.nest.loop_around(region).filter(|_| !self.recomputed.contains(&region));
        }
        let best = changes.into_iter().min_by_key(|&change| self.words(Some(change)))?;
        let gain = self.words(None).saturating_sub(self.words(Some(best)));
        (gain > words / 4).then_some(best)
    }

    /// Whether `region`, a loop, can be computed again: it is in another loop, and
    /// nothing in it branches on what its block branches on in the end (what is
    /// visible in the second copy would not be where that is replayed).
    fn can_recompute(&self, region: Region) -> bool {
        let condition = |block: Block| match self.graph.blocks[block].end {
            End::Branch { condition, .. } => Some(condition),
            End::Return(_) | End::Open => None,
        };
        let last = self.nest.region_block(region).and_then(condition);
        let branches_alike = || {
            let inside = blocks_inside(self.graph, region);
            last.is_some() && inside.into_iter().any(|block| condition(block) == last)
        };
        self.nest.loop_around(region).is_some() && !branches_alike()
    }
}
