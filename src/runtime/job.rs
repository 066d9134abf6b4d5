//! A compilation: takes on the kernels that are stale, makes them and installs them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::coarsen::{Coarsened, Primal, coarsen, primal};
use super::learning::{Forms, Known, Learning, Role};
use super::options::{Limits, Numerics, Options};
use super::report::{KernelReport, Purpose, Refusal};
use super::specialisation::{Installed, Specialisation};
use crate::ssa::{Graph, most_steps};

/// A compilation under way; at its end, however it comes, those who wait for it
/// go on.
pub(super) struct Job {
    specialisation: Arc<Specialisation>,
    graph: Arc<Graph>,
    paths: usize,
    version: u64,
    generation: usize,
    kernels: SmallVec<[(Role, Purpose); 6]>,
    /// The inputs of runs that taught something.
    lessons: Vec<Arc<[f64]>>,
}

impl Job {
    /// Takes on those kernels that are stale, of the purposes that are wanted.
    pub(super) fn start(
        specialisation: &Arc<Specialisation>,
        mut learning: MutexGuard<'_, Learning>,
        wanted: impl FnOnce(&Learning) -> [bool; 3],
    ) -> Self {
        let wanted = wanted(&learning);
        let all = |role| Purpose::ALL.into_iter().map(move |purpose| (role, purpose));
        let kernels = Role::ALL.into_iter().flat_map(all);
        let is_stale = |&(role, purpose): &(Role, Purpose)| {
            wanted[purpose as usize] && learning.is_stale(role, purpose)
        };
        let kernels = kernels.filter(is_stale).collect();
        learning.compiling = true;
        learning.taped_events = 0;
        Job {
            specialisation: Arc::clone(specialisation),
            graph: Arc::clone(learning.lifted.compact()),
            paths: learning.lifted.paths(),
            version: learning.lifted.version(),
            generation: learning.lifted.generation(),
            kernels,
            lessons: learning.lessons(),
        }
    }

    /// Makes the kernels and installs them.
    pub(super) fn run(self, options: &Options) {
        self.make(Role::First, &[*options]);
        // Where a closed form does not serve, a derivative may be what is left where terms cancel
        // exactly on the tape; in any other order that is rounding.
        let open = Options { phi_calculus: false, ..*options };
        let compiled = options.limits.in_order.min(options.limits.compiled);
        let limits = Limits { compiled, ..options.limits };
        let in_order = Options { numerics: Numerics::Exact, limits, ..open };
        self.make(Role::Reserve, &[in_order, open]);
    }

    /// Makes the kernels for `role` by the first of these options with which they are not too large.
    fn make(&self, role: Role, choices: &[Options]) {
        let mut primals: SmallVec<[_; 2]> = choices.iter().map(|_| None).collect();
        for &(_, purpose) in self.kernels.iter().filter(|kernel| kernel.0 == role) {
            // Nobody is left to call a kernel.
            if Arc::strong_count(&self.specialisation) == 1 {
                return;
            }
            let mut elapsed = Duration::ZERO;
            for (number, (options, made)) in choices.iter().zip(&mut primals).enumerate() {
                let (primal, shared) = made.get_or_insert_with(|| {
                    let start = Instant::now();
                    let primal = unwound(|| primal(&self.graph, options));
                    if let (Role::First, Ok(primal)) = (role, &primal) {
                        self.note_forms(primal);
                    }
                    (primal, start.elapsed())
                });
                let start = Instant::now();
                let result = match &primal {
                    Ok(primal) => unwound(|| coarsen(primal, purpose, options, &self.lessons)),
                    Err(refusal) => Err(refusal.clone()),
                };
                elapsed += *shared + start.elapsed();
                let is_last = number + 1 == choices.len();
                if is_last || !result.as_ref().is_err_and(Refusal::is_for_size) {
                    self.install(role, purpose, result, (options.numerics, elapsed));
                    break;
                }
            }
        }
    }

    /// Keeps what φ-calculus came to, for the report.
    fn note_forms(&self, primal: &Primal) {
        let Some(mut learning) = self.learning() else { return };
        learning.forms = Forms {
            closed: primal.applied.clone(),
            open: primal.refused.clone(),
            closes_loops: primal.closes_loops,
        };
    }

    /// What has been learnt, unless the graph of this job has been given up.
    fn learning(&self) -> Option<MutexGuard<'_, Learning>> {
        let learning = self.specialisation.lock();
        let is_current = learning.lifted.generation() == self.generation;
        (is_current && !learning.divergent).then_some(learning)
    }

    fn install(
        &self,
        role: Role,
        purpose: Purpose,
        result: Result<Coarsened, Refusal>,
        (numerics, elapsed): (Numerics, Duration),
    ) {
        let Some(mut learning) = self.learning() else { return };
        let specialisation = &self.specialisation;
        let attempt = &mut learning.attempts[role as usize][purpose as usize];
        attempt.version = self.version;
        attempt.refusal = result.as_ref().err().cloned().map(|refusal| match role {
            Role::First => refusal,
            Role::Reserve => Refusal::Reserve(Box::new(refusal)),
        });
        if let Ok(coarsened) = result {
            attempt.kernel = Some(KernelReport {
                active: specialisation.active,
                inactive: specialisation.inactive,
                purpose,
                reserve: role == Role::Reserve,
                numerics,
                paths: self.paths,
                recorded_nodes: nodes(&self.graph),
                nodes: coarsened.nodes,
                history: coarsened.history,
                recomputed: coarsened.recomputed,
                segments: coarsened.segments,
                crossing: coarsened.crossing,
                bytes: coarsened.kernel.bytes(),
                code_bytes: coarsened.kernel.code_bytes(),
                compile_time: elapsed,
            });
            let known = Known { generation: self.generation, version: self.version };
            let installed = Installed::new(coarsened.kernel, coarsened.beyond, known);
            specialisation.install(role, purpose, installed);
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
