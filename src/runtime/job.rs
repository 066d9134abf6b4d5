//! A compilation: takes on the kernels that are stale, makes them and installs them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::profile::{Forms, Known, Profile};
use super::report::KernelReport;
use super::specialisation::{Installed, Specialisation};
use crate::pipeline::Options;
use crate::pipeline::{Coarsened, Primal, coarsen, primal};
use crate::pipeline::{Purpose, Refusal};
use crate::ssa::{Graph, most_steps};

/// A compilation under way; at its end, however it comes, those who wait for it
/// go on.
pub(super) struct Job {
    specialisation: Arc<Specialisation>,
    graph: Arc<Graph>,
    paths: usize,
    version: u64,
    generation: usize,
    kernels: SmallVec<[Purpose; 3]>,
    /// The inputs of runs that added something.
    profiling_inputs: Vec<Arc<[f64]>>,
}

impl Job {
    /// Takes on those kernels that are stale, of the purposes that are wanted.
    pub(super) fn start(
        specialisation: &Arc<Specialisation>,
        mut profile: MutexGuard<'_, Profile>,
        wanted: impl FnOnce(&Profile) -> [bool; 3],
    ) -> Self {
        let wanted = wanted(&profile);
        let is_stale = |&purpose: &Purpose| wanted[purpose as usize] && profile.is_stale(purpose);
        let kernels = Purpose::ALL.into_iter().filter(is_stale).collect();
        profile.compiling = true;
        profile.taped_events = 0;
        Job {
            specialisation: Arc::clone(specialisation),
            graph: Arc::clone(profile.traces.compact()),
            paths: profile.traces.paths(),
            version: profile.traces.version(),
            generation: profile.traces.generation(),
            kernels,
            profiling_inputs: profile.profiling_inputs(),
        }
    }

    /// Makes the kernels and installs them.
    pub(super) fn run(self, options: &Options) {
        let mut made = None;
        for &purpose in &self.kernels {
            // Nobody is left to call a kernel.
            if Arc::strong_count(&self.specialisation) == 1 {
                return;
            }
            let (primal, shared) = made.get_or_insert_with(|| {
                let start = Instant::now();
                let primal = unwound(|| primal(&self.graph, options));
                if let Ok(primal) = &primal {
                    self.note_forms(primal);
                }
                (primal, start.elapsed())
            });
            let start = Instant::now();
            let result = match &primal {
                Ok(primal) => unwound(|| coarsen(primal, purpose, options, &self.profiling_inputs)),
                Err(refusal) => Err(refusal.clone()),
            };
            self.install(purpose, result, *shared + start.elapsed());
        }
    }

    /// Keeps what φ-calculus came to, for the report.
    fn note_forms(&self, primal: &Primal) {
        let Some(mut profile) = self.profile() else { return };
        profile.forms = Forms { closed: primal.applied.clone(), open: primal.open.clone() };
    }

    /// What has been recorded, unless the graph of this job has been given up.
    fn profile(&self) -> Option<MutexGuard<'_, Profile>> {
        let profile = self.specialisation.lock();
        let is_current = profile.traces.generation() == self.generation;
        (is_current && !profile.divergent).then_some(profile)
    }

    fn install(&self, purpose: Purpose, result: Result<Coarsened, Refusal>, elapsed: Duration) {
        let Some(mut profile) = self.profile() else { return };
        let specialisation = &self.specialisation;
        let attempt = &mut profile.attempts[purpose as usize];
        attempt.version = self.version;
        attempt.refusal = result.as_ref().err().cloned();
        if let Ok(coarsened) = result {
            attempt.kernel = Some(KernelReport {
                active: specialisation.active,
                inactive: specialisation.inactive,
                purpose,
                paths: self.paths,
                recorded_nodes: nodes(&self.graph),
                nodes: coarsened.nodes,
                saved_values: coarsened.saved_values,
                recomputed: coarsened.recomputed,
                segments: coarsened.segments,
                crossing: coarsened.crossing,
                bytes: coarsened.kernel.bytes(),
                code_bytes: coarsened.kernel.code_bytes(),
                compile_time: elapsed,
            });
            let known = Known { generation: self.generation, version: self.version };
            specialisation.install(purpose, Installed::new(coarsened.kernel, known));
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.specialisation.end_compiling();
    }
}

/// The number of nodes of a recorded graph, in all iterations.
fn nodes(graph: &Graph) -> usize {
    let once: usize = graph.blocks.values().map(|block| block.items.len()).sum();
    let all = usize::try_from(most_steps(graph, |_| 1)).unwrap_or(usize::MAX);
    graph.nodes.len().saturating_add(all.saturating_sub(once))
}

/// What `stage` comes to; a bug in it must not take the process along.
fn unwound<T>(stage: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(stage)).unwrap_or(Err(Refusal::Panicked))
}
