//! Checkpointing: less memory for the reverse sweep of loops, at the price of running their
//! iterations again (Griewank and Walther, chapter 12).
//!
//! A loop saves the values that its sweep requires in each iteration. An inner loop may be
//! *recomputed* instead: the sweep of each iteration of the outer loop first runs the inner
//! loop again from its saved first values, and what that saves is live in this iteration
//! alone. So a nest of m and n iterations saves m + n values instead of m·n.
//!
//! A single loop of n iterations is first split into a nest of √n by √n (see `split`). Its
//! entry φs at each √n-th iteration are the checkpoints, and it saves about 2√n values. A
//! loop that is split again saves less and runs its iterations once more.

use core::cmp::Reverse;

use super::primal::Primal;
use super::rematerialise::SavedValues;
use super::reverse::{Wanted, reverse_from};
use super::split::{Strips, split, strips};
use super::tape_order::EntryPhis;
use crate::entity::PrimaryMap;
use crate::ssa::{Block, End, Folding, Graph, Nest, Region};

/// A graph to differentiate, with the loops that its reverse sweep recomputes.
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
/// let checkpointed = checkpoint(&Checkpointed::new(&graph)).expect("a loop that can be split");
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
    /// The graph, equivalent to the original one.
    pub graph: Graph,
    /// The inner loops that the sweep recomputes, in no order.
    pub recomputed: Vec<Region>,
    /// The treatment of entry φs in the sweep of the original graph, if this is another one.
    entries: Option<EntryPhis>,
}

impl Checkpointed {
    /// `graph` without recomputed loops.
    pub fn new(graph: &Graph) -> Self {
        Checkpointed { graph: graph.clone(), recomputed: Vec::new(), entries: None }
    }

    /// The gradient, as [`reverse()`](super::reverse()) makes it; for an example see
    /// [`Checkpointed`].
    ///
    /// Recomputed loops run the same operations, and adjoints are added up in the same order
    /// as without checkpoints: with [`Folding::Exact`] the outputs are the same bits.
    pub fn reverse(&self, wanted: Wanted, folding: Folding) -> Graph {
        reverse_from(&self.graph, &self.recomputed, self.entries, wanted, folding)
    }
}

/// Recomputes or splits loops of `from` until the estimated number of saved values is halved.
/// `None` if that is impossible: a loop whose saved trajectory is read later is not split.
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

/// A change to one loop that saves memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Recompute(Region),
    Split(Region, Strips),
}

impl Change {
    fn made(self, from: &Checkpointed, nest: &Nest) -> Option<Checkpointed> {
        let mut recomputed = from.recomputed.clone();
        let entries = from.entries.or_else(|| Some(EntryPhis::of(&from.graph)));
        match self {
            Change::Recompute(region) => {
                recomputed.push(region);
                Some(Checkpointed { graph: from.graph.clone(), recomputed, entries })
            }
            Change::Split(region, _) => {
                let (graph, outer) = split(&from.graph, nest, region)?;
                // Of a recomputed loop both new loops are recomputed, of another the inner one.
                let around = recomputed.contains(&region).then_some(outer);
                recomputed.push(around.unwrap_or(region));
                Some(Checkpointed { graph, recomputed, entries })
            }
        }
    }
}

/// The estimated number of values that the sweep saves.
struct Estimate<'a> {
    graph: &'a Graph,
    nest: Nest,
    recomputed: &'a [Region],
    /// For each loop the number of values saved in each iteration.
    saved: PrimaryMap<Region, u64>,
}

impl<'a> Estimate<'a> {
    fn of(from: &'a Checkpointed) -> Self {
        let (graph, recomputed) = (&from.graph, &from.recomputed[..]);
        let primal = Primal::of(graph);
        let mut saved = PrimaryMap::filled(0, graph.regions.len());
        for node in SavedValues::of(&primal, recomputed).saved() {
            if let Some(region) = primal.nest.node_loop(node) {
                saved[region] += 1;
            }
        }
        Estimate { graph, nest: primal.nest, recomputed, saved }
    }

    /// The number of saved words, after `change` if there is one.
    fn words(&self, change: Option<Change>) -> u64 {
        let each = self.graph.regions.keys().map(|region| self.words_of(region, change));
        // The checkpoints: first values of the loop that the change recomputes.
        let firsts = change.map_or(0, |change| {
            let (region, begins) = match change {
                Change::Recompute(region) => (region, 1),
                Change::Split(region, strips) => (region, u64::from(strips.count)),
            };
            let is_new = !self.recomputed.contains(&region);
            let around = self.nest.loop_around(region).filter(|_| is_new);
            let entries = self.graph.entries(region).len() as u64;
            entries.saturating_mul(begins).saturating_mul(self.span(around, None))
        });
        each.fold(firsts, u64::saturating_add)
    }

    fn words_of(&self, region: Region, change: Option<Change>) -> u64 {
        self.saved[region].saturating_mul(self.span(Some(region), change))
    }

    /// The number of iterations of `region` whose values are live at once.
    fn span(&self, region: Option<Region>, change: Option<Change>) -> u64 {
        let (mut span, mut next) = (1u64, region);
        while let Some(region) = next {
            let (iterations, begins) = match change {
                Some(Change::Split(other, strips)) if other == region => (strips.longest, true),
                Some(Change::Recompute(other)) if other == region => {
                    (self.graph.bound(region), true)
                }
                _ => (self.graph.bound(region), self.recomputed.contains(&region)),
            };
            span = span.saturating_mul(u64::from(iterations));
            next = self.nest.loop_around(region).filter(|_| !begins);
        }
        span
    }

    /// The best change to the loop that saves most or to a loop around it; if none gains
    /// enough, to the loop that saves second most, and so on.
    fn best(&self) -> Option<Change> {
        let weighed = self.graph.regions.keys().map(|region| (self.words_of(region, None), region));
        let mut loops: Vec<(u64, Region)> = weighed.filter(|&(words, _)| words > 0).collect();
        loops.sort_by_key(|&(words, _)| Reverse(words));
        loops.into_iter().find_map(|(words, region)| self.best_around(region, words))
    }

    /// The best change to `heaviest`, which saves `words`, or to a loop around it.
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

    /// True if `region`, a loop, can be recomputed: it is in another loop and uses no cells, and no branch in it
    /// has the condition of the branch that ends its block (values of the second copy would not
    /// dominate their uses where that branch is replayed).
    fn can_recompute(&self, region: Region) -> bool {
        let condition = |block: Block| match self.graph.blocks[block].end {
            End::Branch { condition, .. } => Some(condition),
            End::Return(_) | End::Open => None,
        };
        let last = self.nest.region_block(region).and_then(condition);
        let branches_alike = || {
            let inside = self.graph.blocks_inside(region);
            last.is_some() && inside.into_iter().any(|block| condition(block) == last)
        };
        self.nest.loop_around(region).is_some()
            && !self.graph.uses_cells(region)
            && !branches_alike()
    }
}
