//! A compilation: makes the kernels that are out of date and installs them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::installed::Installed;
use super::profile::{ClosedForms, GraphVersion, Profile};
use super::report::KernelReport;
use super::specialisation::Specialisation;
use crate::jit::require_host;
use crate::pipeline::{
    Coarsened, Options, Primal, Purpose, Refusal, Rolled, Tier, coarsen, dense_jacobian, primal,
    rolled,
};
use crate::ssa::{Graph, most_steps};

/// A compilation under way. Its end, also by a panic, wakes the threads that wait for it.
pub(super) struct Job {
    specialisation: Arc<Specialisation>,
    kernels: SmallVec<[Purpose; Purpose::COUNT]>,
}

/// The recorded graph, and what was known when it was made.
struct Snapshot {
    graph: Arc<Graph>,
    paths: usize,
    version: u64,
    generation: usize,
    /// The number of steps of the recorded paths.
    steps: usize,
    /// The inputs of profiling runs.
    profiling_inputs: Vec<Arc<[f64]>>,
}

impl Snapshot {
    /// Makes the recorded graph. Calls on the tape are not merged meanwhile.
    fn take(specialisation: &Specialisation) -> Snapshot {
        specialisation.without_merging(|profile| Snapshot {
            graph: Arc::clone(profile.traces.compact()),
            paths: profile.traces.paths(),
            version: profile.traces.version(),
            generation: profile.traces.generation(),
            steps: profile.traces.distinct_steps(),
            profiling_inputs: profile.profiling_inputs(),
        })
    }
}

impl Job {
    /// Starts a compilation of the kernels for `requested` purposes that are out of date.
    pub(super) fn start(
        specialisation: &Arc<Specialisation>,
        mut profile: MutexGuard<'_, Profile>,
        requested: impl FnOnce(&Profile) -> [bool; Purpose::COUNT],
    ) -> Self {
        let requested = requested(&profile);
        let is_stale =
            |&purpose: &Purpose| requested[purpose as usize] && profile.is_stale(purpose);
        let kernels = Purpose::ALL.into_iter().filter(is_stale).collect();
        profile.compiling = true;
        profile.compilations += 1;
        profile.taped_events = 0;
        Job { specialisation: Arc::clone(specialisation), kernels }
    }

    /// Makes the optimised kernels and installs them.
    pub(super) fn run(self, options: &Options) {
        self.make(&[options.tuning.tier.unwrap_or(Tier::Optimised)], options);
    }

    /// As [`Job::run`], but a purpose without a kernel gets one of the first tier before.
    pub(super) fn run_in_tiers(self, options: &Options) {
        match options.tuning.tier {
            Some(tier) => self.make(&[tier], options),
            None => self.make(&[Tier::First, Tier::Optimised], options),
        }
    }

    /// Makes the kernels of each of `tiers` and installs them.
    fn make(&self, tiers: &[Tier], options: &Options) {
        let start = Instant::now();
        let (Ok(snapshot), _) = timed(|| Ok(Snapshot::take(&self.specialisation))) else {
            return self.specialisation.lock().refuse(Refusal::Panicked);
        };
        let (rolled, rolling) = timed(|| {
            require_host()?;
            rolled(&snapshot.graph, options)
        });
        let mut tangent = None;
        for &tier in tiers {
            let is_replaced = tiers.len() > 1 && tier == Tier::First;
            // Without and with direction, of the inputs and of the weights.
            let mut made = [const { [const { None }; 2] }; 2];
            for &purpose in &self.kernels {
                // The function has been dropped.
                if Arc::strong_count(&self.specialisation) == 1 {
                    return;
                }
                if is_replaced && self.specialisation.kernel(purpose).is_some() {
                    continue;
                }
                if purpose == Purpose::Jacobian
                    && self.make_dense(&snapshot, &rolled, tier, options)
                {
                    continue;
                }
                let covered = match purpose.is_sparse() {
                    true => self.add_pattern(purpose, rolled.as_ref().map_err(Refusal::clone)),
                    false => Ok(()),
                };
                let product = self.specialisation.product(purpose);
                let (has_direction, is_by_weights) =
                    (product.has_direction(), product.is_by_weights());
                let made = &mut made[usize::from(has_direction)][usize::from(is_by_weights)];
                let (primal, shared) = made.get_or_insert_with(|| {
                    let rolled = rolled.as_ref().map_err(Refusal::clone);
                    let made = timed(|| {
                        let rolled = match has_direction {
                            false => rolled?,
                            true => tangent
                                .get_or_insert_with(|| rolled.and_then(|one| one.tangent(options)))
                                .as_ref()
                                .map_err(Refusal::clone)?,
                        };
                        match is_by_weights {
                            false => primal(rolled, tier, options),
                            true => {
                                let weights = self.specialisation.weights();
                                primal(&rolled.by_weights(weights), tier, options)
                            }
                        }
                    });
                    if let (Ok(primal), false, false) = (&made.0, is_replaced, has_direction) {
                        self.note_closed_forms(&snapshot, primal);
                    }
                    made
                });
                let primal = primal.as_ref().map_err(|refusal| refusal.clone());
                let (result, own) =
                    timed(|| coarsen(primal?, product, options, &snapshot.profiling_inputs));
                let result = covered.and(result);
                // The optimised tier reports why there is no kernel.
                if result.is_ok() || !is_replaced {
                    let elapsed = rolling + *shared + own;
                    self.install(&snapshot, (purpose, product), result, elapsed);
                }
            }
        }
        // A program that compiles in the foreground does not depend on time.
        if options.background {
            self.specialisation.lock().compiled(start.elapsed(), snapshot.steps);
        }
    }

    /// Makes the kernel of the whole Jacobian and installs it; false if there is none.
    fn make_dense(
        &self,
        snapshot: &Snapshot,
        rolled: &Result<Rolled, Refusal>,
        tier: Tier,
        options: &Options,
    ) -> bool {
        let Ok(rolled) = rolled else { return false };
        let weights = self.specialisation.weights();
        let (made, elapsed) = timed(|| dense_jacobian(rolled, weights, tier, options));
        let Ok(Some(coarsened)) = made else { return false };
        let purposes = (Purpose::Jacobian, Purpose::Jacobian);
        self.install(snapshot, purposes, Ok(coarsened), elapsed);
        true
    }

    /// Adds the entries of all paths of a kernel to the pattern for `purpose`, before it is made.
    fn add_pattern(
        &self,
        purpose: Purpose,
        rolled: Result<&Rolled, Refusal>,
    ) -> Result<(), Refusal> {
        let is_first = self.specialisation.kernel(purpose).is_none();
        let pattern = self.specialisation.pattern(purpose);
        timed(|| pattern.add_graph(rolled?.graph(), is_first)).0
    }

    /// Stores the closed forms and open loops for the report.
    fn note_closed_forms(&self, snapshot: &Snapshot, primal: &Primal) {
        let Some(mut profile) = self.profile(snapshot) else { return };
        profile.closed_forms =
            ClosedForms { closed: primal.applied.clone(), open: primal.open.clone() };
    }

    /// The profile, unless its graph has been replaced since the start.
    fn profile(&self, snapshot: &Snapshot) -> Option<MutexGuard<'_, Profile>> {
        let profile = self.specialisation.lock();
        let is_current = profile.traces.generation() == snapshot.generation;
        (is_current && !profile.divergent).then_some(profile)
    }

    fn install(
        &self,
        snapshot: &Snapshot,
        (purpose, product): (Purpose, Purpose),
        result: Result<Coarsened, Refusal>,
        elapsed: Duration,
    ) {
        let Some(mut profile) = self.profile(snapshot) else { return };
        let specialisation = &self.specialisation;
        let attempt = &mut profile.attempts[purpose as usize];
        attempt.version = snapshot.version;
        attempt.refusal = result.as_ref().err().cloned();
        if let Ok(coarsened) = result {
            attempt.kernel = Some(KernelReport {
                active: specialisation.active,
                inactive: specialisation.inactive,
                purpose,
                paths: snapshot.paths,
                recorded_nodes: nodes(&snapshot.graph),
                nodes: coarsened.nodes,
                saved_values: coarsened.saved_values,
                recomputed: coarsened.recomputed,
                segments: coarsened.segments,
                crossing: coarsened.crossing,
                bytes: coarsened.kernel.bytes(),
                code_bytes: coarsened.kernel.code_bytes(),
                compile_time: elapsed,
                is_backing_off: false,
            });
            let graph_version =
                GraphVersion { generation: snapshot.generation, version: snapshot.version };
            let calls = specialisation.kernel_calls(purpose);
            let made = (coarsened.kernel, product);
            let installed = Installed::new(made, coarsened.batches, graph_version, calls);
            specialisation.install(purpose, installed);
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

/// The result of `stage` and the time that it took. A panic, a bug in it, becomes a refusal: it must
/// not end the process.
fn timed<T>(stage: impl FnOnce() -> Result<T, Refusal>) -> (Result<T, Refusal>, Duration) {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(stage)).unwrap_or(Err(Refusal::Panicked));
    (result, start.elapsed())
}
