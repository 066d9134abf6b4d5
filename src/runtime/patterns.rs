//! The sparsity patterns of a specialisation: of all paths that it has seen.
//!
//! A kernel does not tell its path, so there is one pattern for all paths: those of runs on the
//! tape, and all that the graph of a kernel has. It only grows, by calls with new paths and by
//! compilations, so a kernel in use never has an entry that the pattern has not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use hashbrown::HashSet;

use super::error::{Error, Kind};
use crate::pipeline::{Purpose, Refusal};
use crate::sparse::{
    Compression, MAX_STEPS, MatrixKind, Pattern, Products, TooDense, pattern_of_graph,
    pattern_of_trace, structure_hash,
};
use crate::ssa::Graph;
use crate::trace::Trace;

/// The largest number of runs that are remembered; then the memory starts again.
const MAX_RUNS: usize = 4096;

/// The pattern of one kind of derivatives.
pub(super) struct KnownPattern {
    kind: MatrixKind,
    compression: ArcSwapOption<Compression>,
    /// Hashes of runs whose entries the pattern has; locked to change the pattern.
    runs: Mutex<HashSet<u64>>,
}

impl KnownPattern {
    pub(super) fn new(kind: MatrixKind) -> Self {
        KnownPattern { kind, compression: ArcSwapOption::empty(), runs: Mutex::default() }
    }

    /// The products for the pattern; `None` before the first run.
    pub(super) fn compression(&self) -> arc_swap::Guard<Option<Arc<Compression>>> {
        self.compression.load()
    }

    /// The products for a pattern that has the entries of `trace`.
    pub(super) fn of_trace(&self, trace: &Trace<'_>) -> Result<Arc<Compression>, Error> {
        let run = structure_hash(trace);
        if self.lock().contains(&run)
            && let Some(known) = self.compression.load_full()
        {
            return Ok(known);
        }
        let pattern = pattern_of_trace(trace, self.kind).map_err(too_dense)?;
        let mut runs = self.lock();
        let compression = self.add(pattern, false);
        if runs.len() >= MAX_RUNS {
            runs.clear();
        }
        runs.insert(run);
        Ok(compression)
    }

    /// Adds the entries of all paths of `graph`, before a kernel that is made from it is used. If
    /// there is no kernel yet, the kind of products may change.
    pub(super) fn add_graph(&self, graph: &Graph, is_first: bool) -> Result<(), Refusal> {
        let pattern = pattern_of_graph(graph, self.kind, MAX_STEPS)
            .map_err(|TooDense| Refusal::TooDense { limit: TooDense::LIMIT })?;
        let _runs = self.lock();
        self.add(pattern, is_first);
        Ok(())
    }

    /// Adds the entries of `pattern`; the runs are locked.
    fn add(&self, pattern: Pattern, may_change_products: bool) -> Arc<Compression> {
        let known = self.compression.load_full();
        let (pattern, products) = match known {
            Some(known) if known.pattern.covers(&pattern) => return known,
            Some(known) => {
                let products = (!may_change_products).then_some(known.products);
                (known.pattern.union(&pattern), products)
            }
            None => (pattern, None),
        };
        let compression = Arc::new(Compression::new(pattern, self.kind, products));
        self.compression.store(Some(Arc::clone(&compression)));
        compression
    }

    /// The number of products.
    pub(super) fn products(&self) -> usize {
        self.compression().as_ref().map_or(0, |compression| compression.count())
    }

    /// The purpose of the kernel that computes the products.
    pub(super) fn product(&self) -> Purpose {
        let products = self.compression().as_ref().map(|compression| compression.products);
        self.purpose_of(products.unwrap_or(Products::Rows))
    }

    /// The purpose of a kernel that computes products of this kind.
    pub(super) fn purpose_of(&self, products: Products) -> Purpose {
        match (self.kind, products) {
            (MatrixKind::Hessian, _) => Purpose::HessianProduct,
            (MatrixKind::Gradient, _) => Purpose::Gradient,
            (MatrixKind::Jacobian { .. }, Products::Columns) => Purpose::JacobianVectorProduct,
            (MatrixKind::Jacobian { .. }, Products::Rows) => Purpose::VectorJacobianProduct,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The products for the pattern of `trace` alone.
pub(super) fn of_single_run(
    trace: &Trace<'_>,
    kind: MatrixKind,
) -> Result<Arc<Compression>, Error> {
    let pattern = pattern_of_trace(trace, kind).map_err(too_dense)?;
    Ok(Arc::new(Compression::new(pattern, kind, None)))
}

fn too_dense(TooDense: TooDense) -> Error {
    Kind::TooDense { limit: TooDense::LIMIT }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{ArrayData, Item, parse};

    #[test]
    fn a_pattern_with_too_many_entries_is_refused() {
        for (inputs, is_refused) in [(100, false), (20_000, true)] {
            let text = format!("graph active {inputs} inactive 0\nb0:\n  return v0\n");
            let mut graph = parse(&text).unwrap();
            // The pattern of a step that is not known to it has all entries.
            let array = graph.arrays.push(ArrayData::Sums(vec![]));
            let root = graph.root();
            graph.blocks[root].items.push(Item::Fill(array));
            let refused = Err(Refusal::TooDense { limit: TooDense::LIMIT });
            let expected = if is_refused { refused } else { Ok(()) };
            assert_eq!(KnownPattern::new(MatrixKind::Hessian).add_graph(&graph, true), expected);
        }
    }
}
