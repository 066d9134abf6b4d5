//! Code for batches: for two elements at once, and with the work that all elements share apart. It is
//! made from the graph of a kernel when batches pay for it.

use std::sync::Arc;

use super::passes::cuts;
use super::{Options, Purpose};
use crate::entity::PrimaryMap;
use crate::jit::{Kernel, schedule_with_profile};
use crate::ssa::{Block, Graph, SharedParts, block_profile, split_shared};

/// The largest number of nodes of a graph that is kept for such code.
const MOST_NODES: usize = 1 << 16;

/// The inputs that all elements of a batch share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    None,
    Active,
    Inactive,
}

impl Sharing {
    pub(crate) const COUNT: usize = 3;
}

/// The graph of a kernel, and how it was compiled.
#[derive(Debug)]
pub(crate) struct BatchSource {
    graph: Graph,
    options: Options,
    profiling_inputs: Vec<Arc<[f64]>>,
}

/// The code of a kernel for batches.
#[derive(Debug, Default)]
pub(crate) struct BatchCode {
    /// Computes what elements share, and the kernel for one element, which has the results of that
    /// as its last inactive inputs. `None` if they share nothing.
    pub(crate) shared: Option<(Kernel, Kernel)>,
    /// The kernel for two elements at once: its buffers have the numbers of both next to each
    /// other. `None` if the kernel calls routines, which are for one element.
    pub(crate) pair: Option<Kernel>,
}

impl BatchSource {
    /// `None` if there is no such code for the purpose, or the graph is too large.
    pub(super) fn new(
        graph: Graph,
        purpose: Purpose,
        options: &Options,
        profiling_inputs: &[Arc<[f64]>],
    ) -> Option<Self> {
        let is_kept = purpose.has_batches() && graph.nodes.len() <= MOST_NODES;
        let profiling_inputs = profiling_inputs.to_vec();
        is_kept.then(|| BatchSource { graph, options: *options, profiling_inputs })
    }

    /// Compiles it for batches whose elements share these inputs.
    pub(crate) fn compile(&self, sharing: Sharing) -> BatchCode {
        let active = self.graph.active as u32;
        let parts = match sharing {
            Sharing::None => None,
            Sharing::Active => split_shared(&self.graph, |input| input < active),
            Sharing::Inactive => split_shared(&self.graph, |input| input >= active),
        };
        if let Some(SharedParts { shared, rest }) = parts
            && let (Some(shared), Some(single)) =
                (self.kernel(&shared, None), self.kernel(&rest, None))
        {
            return BatchCode { shared: Some((shared, single)), pair: self.pair(&rest, None) };
        }
        let profile = block_profile(&self.graph, &self.profiling_inputs);
        BatchCode { shared: None, pair: self.pair(&self.graph, profile.as_ref()) }
    }

    fn kernel(&self, graph: &Graph, profile: Option<&PrimaryMap<Block, bool>>) -> Option<Kernel> {
        let schedule = schedule_with_profile(graph, profile).ok()?;
        schedule.compile(&cuts(&schedule.sequence(), &self.options)).ok()
    }

    fn pair(&self, graph: &Graph, profile: Option<&PrimaryMap<Block, bool>>) -> Option<Kernel> {
        let schedule = schedule_with_profile(graph, profile).ok()?;
        schedule.compile_pairs(&cuts(&schedule.sequence(), &self.options)).ok()?
    }
}
