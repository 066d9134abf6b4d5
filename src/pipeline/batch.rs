//! Code for batches: two elements at once, one in each lane, and a kernel of its own for the work
//! that is the same for all elements. It is made from the graph of a kernel when batches pay for
//! it.

use std::sync::Arc;

use super::passes::cuts;
use super::{Options, Purpose};
use crate::entity::PrimaryMap;
use crate::jit::{Kernel, schedule_with_profile};
use crate::ssa::{Block, Graph, InvariantSplit, block_profile, split_invariant};

/// The largest number of nodes of a graph that is kept for such code.
const MAX_NODES: usize = 1 << 16;

/// The inputs that are the same for all elements of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvariantInputs {
    None,
    Active,
    Inactive,
}

impl InvariantInputs {
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
    /// The kernel for what is the same for all elements, and the kernel for one element, which has
    /// the results of the first as its last inactive inputs. `None` if all depends on the element.
    pub(crate) invariant: Option<(Kernel, Kernel)>,
    /// The kernel for two elements at once: its buffers interleave the numbers of both. `None` if
    /// the kernel calls routines, which are for one element.
    pub(crate) two_lanes: Option<Kernel>,
}

impl BatchSource {
    /// `None` if there is no such code for the purpose, or the graph is too large.
    pub(super) fn new(
        graph: Graph,
        purpose: Purpose,
        options: &Options,
        profiling_inputs: &[Arc<[f64]>],
    ) -> Option<Self> {
        let is_kept = purpose.has_batches() && graph.nodes.len() <= MAX_NODES;
        let profiling_inputs = profiling_inputs.to_vec();
        is_kept.then(|| BatchSource { graph, options: *options, profiling_inputs })
    }

    /// Compiles it for batches with these invariant inputs.
    pub(crate) fn compile(&self, invariant: InvariantInputs) -> BatchCode {
        let active = self.graph.active as u32;
        let parts = match invariant {
            InvariantInputs::None => None,
            InvariantInputs::Active => split_invariant(&self.graph, |input| input < active),
            InvariantInputs::Inactive => split_invariant(&self.graph, |input| input >= active),
        };
        if let Some(InvariantSplit { invariant, rest }) = parts
            && let (Some(invariant), Some(scalar)) =
                (self.scalar(&invariant, None), self.scalar(&rest, None))
        {
            let two_lanes = self.two_lanes(&rest, None);
            return BatchCode { invariant: Some((invariant, scalar)), two_lanes };
        }
        let profile = block_profile(&self.graph, &self.profiling_inputs);
        BatchCode { invariant: None, two_lanes: self.two_lanes(&self.graph, profile.as_ref()) }
    }

    fn scalar(&self, graph: &Graph, profile: Option<&PrimaryMap<Block, bool>>) -> Option<Kernel> {
        let schedule = schedule_with_profile(graph, profile).ok()?;
        schedule.compile(&cuts(&schedule.sequence(), &self.options)).ok()
    }

    fn two_lanes(
        &self,
        graph: &Graph,
        profile: Option<&PrimaryMap<Block, bool>>,
    ) -> Option<Kernel> {
        let schedule = schedule_with_profile(graph, profile).ok()?;
        schedule.compile_two_lanes(&cuts(&schedule.sequence(), &self.options)).ok()?
    }
}
