//! Which sums are filled, and which have been read, at a point of the walk.

use crate::entity::Array;
use crate::ssa::analysis::Nest;
use crate::ssa::graph::{BlockData, Def, Graph, Item, Region};
use crate::ssa::series::Series;

pub(super) struct Sums {
    /// Whether each series has been filled by a step in this block or above.
    filled: Array<Series, bool>,
    /// Whether the walk has come by a step that fills the series.
    seen: Array<Series, bool>,
    /// How many times each series is in the list of those read.
    counts: Array<Series, u32>,
    /// The series that may have been read, in order.
    read: Vec<Series>,
    /// Those that were read on other sides of branches: where these meet, they
    /// may have been read.
    aside: Vec<Series>,
    /// The lengths of both lists where each block began.
    marks: Vec<(usize, usize)>,
    /// The series that each loop reads.
    in_loops: Array<Region, Vec<Series>>,
}

impl Sums {
    pub(super) fn new(graph: &Graph, nest: &Nest) -> Self {
        let mut in_loops = Array::filled(Vec::new(), graph.regions.len());
        for (node, data) in graph.nodes.iter() {
            let Def::Element(access) = data.def else { continue };
            let series = graph.accesses[access].series;
            if !graph.series[series].is_sums() {
                continue;
            }
            let mut next = nest.node_loop(node);
            while let Some(region) = next {
                in_loops[region].push(series);
                next = nest.loop_around(region);
            }
        }
        Sums {
            filled: Array::filled(false, graph.series.len()),
            seen: Array::filled(false, graph.series.len()),
            counts: Array::filled(0, graph.series.len()),
            read: Vec::new(),
            aside: Vec::new(),
            marks: Vec::new(),
            in_loops,
        }
    }

    /// Whether `series` has been filled here.
    pub(super) fn is_filled(&self, series: Series) -> bool {
        self.filled[series]
    }

    /// Fills `series`; `again` tells whether other paths may do the same.
    pub(super) fn fill(&mut self, series: Series, again: bool) -> Result<(), String> {
        if if again { self.filled[series] } else { self.seen[series] } {
            return Err(format!("fills {series}, as another step does"));
        }
        self.seen[series] = true;
        self.filled[series] = true;
        Ok(())
    }

    pub(super) fn read(&mut self, series: Series) -> Result<(), String> {
        if !self.filled[series] {
            return Err(format!("reads {series}, not filled here"));
        }
        self.note(series);
        Ok(())
    }

    pub(super) fn add(&self, series: Series) -> Result<(), String> {
        if !self.filled[series] {
            return Err(format!("adds to {series}, not filled here"));
        }
        if self.counts[series] > 0 {
            return Err(format!("adds to {series}, which may have been read"));
        }
        Ok(())
    }

    /// Begins a block.
    pub(super) fn enter(&mut self) {
        self.marks.push((self.read.len(), self.aside.len()));
    }

    /// Begins a loop: what one iteration reads has been read in the next.
    pub(super) fn enter_loop(&mut self, region: Region) {
        for series in core::mem::take(&mut self.in_loops[region]) {
            if self.filled[series] {
                self.note(series);
            }
        }
    }

    /// Ends `block`; `meet` tells whether the ends of a region meet there.
    pub(super) fn leave(&mut self, block: &BlockData, meet: bool) {
        for item in &block.items {
            if let Item::Fill(series) = *item {
                self.filled[series] = false;
            }
        }
        let Some((read, aside)) = self.marks.pop() else { return };
        let mut here = self.read.split_off(read);
        here.iter().for_each(|&series| self.counts[series] -= 1);
        if !meet {
            self.aside.append(&mut here);
            return;
        }
        here.extend(self.aside.drain(aside..));
        here.sort_unstable();
        here.dedup();
        here.into_iter().for_each(|series| self.note(series));
    }

    fn note(&mut self, series: Series) {
        if self.counts[series] == 0 {
            self.counts[series] += 1;
            self.read.push(series);
        }
    }
}
