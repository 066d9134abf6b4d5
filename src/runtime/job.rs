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
    Coarsened, Matrix, Options, Primal, Purpose, Refusal, Rolled, Runs, Tier, coarsen,
    grouped_products, primal, rolled, whole_matrix,
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
        for &tier in tiers {
            let is_replaced = tiers.len() > 1 && tier == Tier::First;
            let mut primals = Primals::new(self, &rolled, tier, options);
            for &purpose in &self.kernels {
                // The function has been dropped.
                if Arc::strong_count(&self.specialisation) == 1 {
                    return;
                }
                if is_replaced && self.specialisation.kernel(purpose).is_some() {
                    continue;
                }
                let covered = match purpose.is_sparse() {
                    true => self.add_pattern(purpose, rolled.as_ref().map_err(Refusal::clone)),
                    false => Ok(()),
                };
                let matrix = self.specialisation.matrix(purpose);
                let (result, own) = match &matrix {
                    None => primals.kernel(purpose, &snapshot),
                    Some(matrix) => primals.matrix_kernel(matrix, &snapshot),
                };
                let result = covered.and(result);
                // The optimised tier reports why there is no kernel.
                if result.is_ok() || !is_replaced {
                    self.install(&snapshot, purpose, result, rolling + own);
                }
                if let (Some(primal), false) = (primals.known(false, false), is_replaced) {
                    self.note_closed_forms(&snapshot, primal);
                }
            }
        }
        // A program that compiles in the foreground does not depend on time.
        if options.background {
            self.specialisation.lock().compiled(start.elapsed(), snapshot.steps);
        }
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
        purpose: Purpose,
        result: Result<(Coarsened, Runs), Refusal>,
        elapsed: Duration,
    ) {
        let Some(mut profile) = self.profile(snapshot) else { return };
        let specialisation = &self.specialisation;
        let attempt = &mut profile.attempts[purpose as usize];
        attempt.version = snapshot.version;
        attempt.refusal = result.as_ref().err().cloned();
        if let Ok((coarsened, runs)) = result {
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
            let made = (coarsened.kernel, runs);
            let installed = Installed::new(made, coarsened.batches, graph_version, calls);
            specialisation.install(purpose, installed);
        }
    }
}

/// The result of a stage, and the time that it took.
type Timed<T> = (Result<T, Refusal>, Duration);

/// The primal graphs of a tier, which its kernels share.
struct Primals<'a> {
    job: &'a Job,
    rolled: &'a Result<Rolled, Refusal>,
    tier: Tier,
    options: &'a Options,
    /// The derivative along a direction.
    tangent: Option<Result<Rolled, Refusal>>,
    /// Without and with a direction, of the inputs and of the weights; each with the time it took.
    made: [[Option<Timed<Primal>>; 2]; 2],
}

impl<'a> Primals<'a> {
    fn new(
        job: &'a Job,
        rolled: &'a Result<Rolled, Refusal>,
        tier: Tier,
        options: &'a Options,
    ) -> Self {
        Primals { job, rolled, tier, options, tangent: None, made: Default::default() }
    }

    /// The primal graph if it has been made.
    fn known(&self, has_direction: bool, is_by_weights: bool) -> Option<&Primal> {
        let made = &self.made[usize::from(has_direction)][usize::from(is_by_weights)];
        made.as_ref()?.0.as_ref().ok()
    }

    /// The primal graph, and the time that it took.
    fn get(&mut self, has_direction: bool, is_by_weights: bool) -> Timed<&Primal> {
        let Primals { job, rolled, tier, options, ref mut tangent, ref mut made } = *self;
        let made = &mut made[usize::from(has_direction)][usize::from(is_by_weights)];
        let (primal, time) = made.get_or_insert_with(|| {
            let rolled = rolled.as_ref().map_err(Refusal::clone);
            timed(|| {
                let rolled = match has_direction {
                    false => rolled?,
                    true => tangent
                        .get_or_insert_with(|| rolled.and_then(|one| one.tangent(options)))
                        .as_ref()
                        .map_err(Refusal::clone)?,
                };
                match is_by_weights {
                    false => primal(rolled, tier, options),
                    true => primal(&rolled.by_weights(job.specialisation.weights()), tier, options),
                }
            })
        });
        (primal.as_ref().map_err(Refusal::clone), *time)
    }

    /// The kernel of calls for `purpose`, no matrix, and the time that it took.
    fn kernel(&mut self, purpose: Purpose, snapshot: &Snapshot) -> Timed<(Coarsened, Runs)> {
        let options = self.options;
        let (primal, shared) = self.get(purpose.has_direction(), purpose.is_by_weights());
        let (result, own) =
            timed(|| coarsen(primal?, purpose, options, &snapshot.profiling_inputs));
        (result.map(|coarsened| (coarsened, Runs::One)), shared + own)
    }

    /// The kernel of calls for `matrix`: for all of it, for several products, or for one.
    fn matrix_kernel(&mut self, matrix: &Matrix, snapshot: &Snapshot) -> Timed<(Coarsened, Runs)> {
        let (tier, options) = (self.tier, self.options);
        let rolled = self.rolled.as_ref();
        let (whole, time) =
            timed(|| whole_matrix(rolled.map_err(Refusal::clone)?, matrix, tier, options));
        if let Ok(Some(coarsened)) = whole {
            return (Ok((coarsened, Runs::One)), time);
        }
        let active = self.job.specialisation.active;
        let by_weights = matrix.product == Purpose::JacobianVectorProduct;
        let (primal, shared) = self.get(false, by_weights);
        let (groups, own) = timed(|| grouped_products(primal?, matrix, active, options));
        let time = time + shared + own;
        if let Ok(Some(made)) = groups {
            return (Ok(made), time);
        }
        let (result, own) = self.kernel(matrix.product, snapshot);
        let runs = Runs::EachProduct(matrix.product);
        (result.map(|(coarsened, _)| (coarsened, runs)), time + own)
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

/// The result of `stage` and the time that it took. A panic, a bug in it, becomes a refusal: it
/// must not end the process.
fn timed<T>(stage: impl FnOnce() -> Result<T, Refusal>) -> Timed<T> {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(stage)).unwrap_or(Err(Refusal::Panicked));
    (result, start.elapsed())
}
