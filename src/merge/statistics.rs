//! Branch statistics: outcomes of comparisons and trip counts of loops, over all analysed runs.

use hashbrown::HashMap;

use super::place;
use crate::op::Op;
use crate::ssa::Place;
use crate::trace::{Operand, Role, Site, Trace};

/// A comparison that a guard was made of, over all analysed runs: the first run of each path, and
/// every now and then a later one.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// The place of the comparison.
    pub at: Place,
    /// The comparison; [`Op::Same`] is an escape, of a number that was read out.
    pub op: Op,
    /// The number of times that it held.
    pub held: u64,
    /// The number of times that it did not hold.
    pub failed: u64,
    /// The smallest absolute difference of the operands; infinite if they were never both numbers.
    pub margin: f64,
}

/// A loop of an annotated function, over all analysed runs.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TripCounts {
    /// The place of the loop.
    pub at: Place,
    /// The number of times that it was entered.
    pub entered: u64,
    /// The smallest number of iterations.
    pub fewest: u64,
    /// The largest number of iterations.
    pub most: u64,
}

/// Decisions and loops by place.
#[derive(Clone, Debug, Default)]
pub(super) struct BranchStatistics {
    decisions: HashMap<(SiteAddress, Op), Decision>,
    loops: HashMap<SiteAddress, TripCounts>,
    /// The site and the iterations of each loop, by the id of its region; kept for its memory.
    open_loops: Vec<Option<(Site, u64)>>,
}

/// A site by its address, which is hashed faster. Equal sites may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SiteAddress(usize);

impl SiteAddress {
    fn of(site: Site) -> Self {
        SiteAddress(core::ptr::from_ref(site).addr())
    }
}

impl BranchStatistics {
    /// Counts the outcomes and iterations of `trace`.
    pub(super) fn count(&mut self, trace: &Trace<'_>) {
        for event in trace.events.guards_and_iterations() {
            match event.role() {
                Role::Guard => {
                    // A guard has two operands.
                    let [left, right] = [0, 1].map(|number| match event.operand(number) {
                        Operand::Constant(value) => value,
                        Operand::Event(index) => trace.events.at(index as usize).value(),
                    });
                    let distance = (left - right).abs();
                    let (site, op) = (event.site(), event.op());
                    let key = (SiteAddress::of(site), op);
                    let decision = self.decisions.entry(key).or_insert_with(|| Decision {
                        at: place(site),
                        op,
                        held: 0,
                        failed: 0,
                        margin: f64::INFINITY,
                    });
                    if event.value() != 0.0 {
                        decision.held += 1;
                    } else {
                        decision.failed += 1;
                    }
                    // `min` ignores NaN.
                    decision.margin = decision.margin.min(distance);
                }
                Role::Iterate => {
                    // Regions are counted.
                    let id = event.payload() as usize;
                    if self.open_loops.len() <= id {
                        self.open_loops.resize(id + 1, None);
                    }
                    self.open_loops[id].get_or_insert_with(|| (event.site(), 0)).1 += 1;
                }
                _ => {}
            }
        }
        // The counts do not depend on the order.
        for (site, iterations) in self.open_loops.drain(..).flatten() {
            let new = || TripCounts { at: place(site), entered: 0, fewest: u64::MAX, most: 0 };
            let trips = self.loops.entry(SiteAddress::of(site)).or_insert_with(new);
            trips.entered += 1;
            trips.fewest = trips.fewest.min(iterations);
            trips.most = trips.most.max(iterations);
        }
    }

    /// All decisions, by place.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        let mut all: Vec<Decision> = self.decisions.values().cloned().collect();
        all.sort_by(|a, b| by_place(&a.at, &b.at).then(a.op.cmp(&b.op)));
        all.dedup_by(|other, one| {
            let is_same = one.at == other.at && one.op == other.op;
            if is_same {
                one.held += other.held;
                one.failed += other.failed;
                one.margin = one.margin.min(other.margin);
            }
            is_same
        });
        all
    }

    /// All loops, by place.
    pub(super) fn loops(&self) -> Vec<TripCounts> {
        let mut all: Vec<TripCounts> = self.loops.values().cloned().collect();
        all.sort_by(|a, b| by_place(&a.at, &b.at));
        all.dedup_by(|other, one| {
            let is_same = one.at == other.at;
            if is_same {
                one.entered += other.entered;
                one.fewest = one.fewest.min(other.fewest);
                one.most = one.most.max(other.most);
            }
            is_same
        });
        all
    }
}

fn by_place(a: &Place, b: &Place) -> core::cmp::Ordering {
    (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column))
}
