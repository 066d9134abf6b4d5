//! What was learnt about calls with one length of input: the graph of the
//! paths seen, the kernels made from it, and when to make them.

use core::sync::atomic::{AtomicU64, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::coarsen::coarsen;
use super::options::Options;
use super::report::{KernelReport, Purpose, Refusal, Report};
use crate::jit::Kernel;
use crate::ssa::{LiftError, Lifted, Merged, Paths, Place};
use crate::trace::Trace;

pub(super) struct Specialisation {
    pub(super) active: usize,
    pub(super) inactive: usize,
    kernels: [ArcSwapOption<Kernel>; 3],
    learning: Mutex<Learning>,
    compiled: Condvar,
    pub(super) tape_calls: AtomicU64,
    pub(super) kernel_calls: AtomicU64,
    pub(super) fallbacks: AtomicU64,
    pub(super) non_finite: AtomicU64,
}

/// What the tape's calls have taught.
struct Learning {
    /// Shared with a compilation in the background; copied if it has to grow
    /// meanwhile.
    lifted: Arc<Lifted>,
    /// How often each path was taken on the tape, by the trace's signature.
    seen: HashMap<u64, u64>,
    longest: usize,
    last_new_path: Option<Place>,
    wanted: [bool; 3],
    reports: [Option<KernelReport>; 3],
    /// Events recorded since the last compilation.
    taped_events: u64,
    compiling: bool,
    refusals: Vec<Refusal>,
    /// Runs of one path differed, so no kernel can be trusted.
    divergent: bool,
}

impl Specialisation {
    pub(super) fn new(active: usize, inactive: usize) -> Self {
        Specialisation {
            active,
            inactive,
            kernels: Default::default(),
            learning: Mutex::new(Learning {
                lifted: Arc::new(Lifted::new(active, inactive)),
                seen: HashMap::new(),
                longest: 0,
                last_new_path: None,
                wanted: [false; 3],
                reports: [const { None }; 3],
                taped_events: 0,
                compiling: false,
                refusals: Vec::new(),
                divergent: false,
            }),
            compiled: Condvar::new(),
            tape_calls: AtomicU64::new(0),
            kernel_calls: AtomicU64::new(0),
            fallbacks: AtomicU64::new(0),
            non_finite: AtomicU64::new(0),
        }
    }

    /// The kernel for `purpose`, if there is one.
    pub(super) fn kernel(&self, purpose: Purpose) -> arc_swap::Guard<Option<Arc<Kernel>>> {
        self.kernels[purpose as usize].load()
    }

    /// Learns from a call that the tape served, and compiles when that pays.
    pub(super) fn learn(self: &Arc<Self>, trace: &Trace<'_>, purpose: Purpose, options: &Options) {
        self.tape_calls.fetch_add(1, Ordering::Relaxed);
        let mut learning = self.lock();
        learning.longest = learning.longest.max(trace.events.len());
        learning.taped_events += trace.events.len() as u64;
        learning.wanted[purpose as usize] = true;
        let limit = options.limits.paths;
        let room = learning.seen.len() < limit;
        let count = match learning.seen.entry(trace.signature) {
            Entry::Occupied(mut seen) => {
                *seen.get_mut() += 1;
                Some(*seen.get())
            }
            Entry::Vacant(new) if room => Some(*new.insert(1)),
            Entry::Vacant(_) => None,
        };
        match count {
            // A path seen before is compared with the graph now and then, to
            // notice functions that depend on hidden state.
            Some(count) if count.is_power_of_two() && !learning.divergent => {
                self.merge(&mut learning, trace, options);
            }
            Some(_) => {}
            None => learning.refuse(LiftError::TooManyPaths { limit }.into()),
        }
        if learning.is_hot(purpose, options) {
            self.start_compiling(learning, options);
        }
    }

    fn merge(&self, learning: &mut Learning, trace: &Trace<'_>, options: &Options) {
        let limits = Paths { paths: options.limits.paths, nodes: options.limits.nodes };
        match Arc::make_mut(&mut learning.lifted).merge(trace, limits) {
            Ok(Merged::Known | Merged::First) => {}
            Ok(Merged::New { at }) => learning.last_new_path = Some(at),
            Err(error) => {
                if matches!(error, LiftError::Divergent { .. }) {
                    learning.divergent = true;
                    self.kernels.iter().for_each(|kernel| kernel.store(None));
                    learning.reports = [const { None }; 3];
                }
                learning.refuse(error.into());
            }
        }
    }

    fn start_compiling(
        self: &Arc<Self>,
        mut learning: MutexGuard<'_, Learning>,
        options: &Options,
    ) {
        learning.compiling = true;
        learning.taped_events = 0;
        let (lifted, wanted) = (Arc::clone(&learning.lifted), learning.wanted);
        if !options.background {
            drop(learning);
            self.compile(lifted, wanted, options);
            return;
        }
        let (this, options) = (Arc::clone(self), *options);
        let thread = std::thread::Builder::new().name("phigrad-compile".into());
        let started = thread.spawn(move || this.compile(lifted, wanted, &options));
        if let Err(error) = started {
            learning.compiling = false;
            learning.refuse(Refusal::Thread { reason: error.to_string() });
        }
    }

    /// Makes the kernels that are `wanted` and installs them.
    fn compile(&self, lifted: Arc<Lifted>, wanted: [bool; 3], options: &Options) {
        for purpose in Purpose::ALL {
            if !wanted[purpose as usize] {
                continue;
            }
            let start = Instant::now();
            let graph = lifted.graph();
            let result =
                catch_unwind(AssertUnwindSafe(|| coarsen(graph, purpose, options.numerics)));
            let compile_ns = start.elapsed().as_nanos() as u64;
            let mut learning = self.lock();
            match result {
                Ok(Ok(_)) if learning.divergent => {}
                Ok(Ok(coarsened)) => {
                    learning.reports[purpose as usize] = Some(KernelReport {
                        active: self.active,
                        inactive: self.inactive,
                        purpose,
                        paths: lifted.paths(),
                        recorded_nodes: graph.nodes.len(),
                        nodes: coarsened.nodes,
                        bytes: coarsened.kernel.bytes(),
                        compile_ns,
                    });
                    self.kernels[purpose as usize].store(Some(Arc::new(coarsened.kernel)));
                }
                Ok(Err(error)) => learning.refuse(error.into()),
                Err(_) => learning.refuse(Refusal::Panicked),
            }
        }
        drop(lifted);
        self.lock().compiling = false;
        self.compiled.notify_all();
    }

    /// Compiles all purposes now, after a compilation under way. Returns whether
    /// there is something to compile.
    pub(super) fn compile_now(&self, options: &Options) -> Result<bool, Refusal> {
        let mut learning = self.lock();
        while learning.compiling {
            learning = self.compiled.wait(learning).unwrap_or_else(PoisonError::into_inner);
        }
        let complete = Purpose::ALL.iter().all(|&purpose| !learning.is_stale(purpose));
        if !complete && !learning.divergent && learning.lifted.paths() > 0 {
            learning.compiling = true;
            learning.taped_events = 0;
            let lifted = Arc::clone(&learning.lifted);
            drop(learning);
            self.compile(lifted, [true; 3], options);
            learning = self.lock();
        }
        let learnt = learning.lifted.paths() > 0;
        let complete = learnt && Purpose::ALL.iter().all(|&purpose| !learning.is_stale(purpose));
        match learning.refusals.last() {
            Some(refusal) if !complete => Err(refusal.clone()),
            _ => Ok(learnt),
        }
    }

    /// Adds what happened here to `report`.
    pub(super) fn report(&self, report: &mut Report) {
        let learning = self.lock();
        report.trace_events = report.trace_events.max(learning.longest);
        report.paths += learning.lifted.paths();
        report.conditions += learning.lifted.graph().conditions();
        report.tape_calls += self.tape_calls.load(Ordering::Relaxed);
        report.kernel_calls += self.kernel_calls.load(Ordering::Relaxed);
        report.fallbacks += self.fallbacks.load(Ordering::Relaxed);
        report.non_finite += self.non_finite.load(Ordering::Relaxed);
        report.last_new_path = learning.last_new_path.clone().or(report.last_new_path.take());
        report.kernels.extend(learning.reports.iter().flatten().cloned());
        report.refusals.extend(learning.refusals.iter().cloned());
    }

    fn lock(&self) -> MutexGuard<'_, Learning> {
        // No user code runs under the lock, and each step leaves it consistent.
        self.learning.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Learning {
    /// Whether the kernel for `purpose` is missing or knows fewer paths than
    /// the graph.
    fn is_stale(&self, purpose: Purpose) -> bool {
        let known = self.reports[purpose as usize].as_ref().map_or(0, |report| report.paths);
        known < self.lifted.paths()
    }

    /// Whether the time spent on the tape has paid for compiling: both it and
    /// compile time grow with the number of events.
    fn is_hot(&self, purpose: Purpose, options: &Options) -> bool {
        let size = self.lifted.graph().nodes.len() as u64;
        let threshold = u64::from(options.hot_threshold);
        options.hot_threshold != u32::MAX
            && !self.compiling
            && !self.divergent
            && self.is_stale(purpose)
            && self.taped_events >= threshold.saturating_mul(size)
    }

    fn refuse(&mut self, refusal: Refusal) {
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}
