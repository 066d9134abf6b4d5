//! What the tape's calls have recorded about one length of input, and what kernels
//! for it wait for.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::report::{KernelReport, Wait};
use crate::merge::{MergedTraces, SideExit};
use crate::op::Op;
use crate::phi::{Applied, OpenLoop};
use crate::pipeline::Options;
use crate::pipeline::{Purpose, Refusal};
use crate::ssa::Place;
use crate::trace::{Inputs, Trace};

/// What was known: the generation and the version of the graph.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Known {
    pub(super) generation: usize,
    pub(super) version: u64,
}

/// A call that a kernel did not serve.
#[derive(Clone, Copy)]
pub(super) struct KernelExit {
    /// What the kernel knew.
    pub(super) known: Known,
    pub(super) reason: ExitReason,
}

/// Why a kernel did not serve.
#[derive(Clone, Copy)]
pub(super) enum ExitReason {
    /// A guard of it failed.
    Unseen,
    /// Its result was not finite.
    NonFinite,
}

/// What the tape's calls have recorded.
pub(super) struct Profile {
    pub(super) traces: MergedTraces,
    /// The paths that the tape went, by the trace's signature.
    pub(super) seen: HashMap<u64, TracedPath>,
    /// The signatures of untracked runs.
    pub(super) untracked: HashSet<u64>,
    pub(super) longest: usize,
    pub(super) last_new_path: Option<Place>,
    /// How often calls left kernels, by comparison, and where the last one did.
    pub(super) side_exits: HashMap<(Place, Op), u64>,
    pub(super) last_side_exit: Option<SideExit>,
    pub(super) wanted: [bool; 3],
    /// By purpose.
    pub(super) attempts: [Attempt; 3],
    /// Events recorded since the last compilation.
    pub(super) taped_events: u64,
    pub(super) compiling: bool,
    /// Why paths were not recorded.
    pub(super) refusals: Vec<Refusal>,
    /// What φ-calculus came to when kernels were made.
    pub(super) forms: Forms,
    /// Runs of one path differed, so no kernel can be trusted.
    pub(super) divergent: bool,
    /// The inputs of runs that added something, active before inactive: of the first one, which
    /// is likely to be a usual one, and then the latest, in order.
    profiling_inputs: Vec<Arc<[f64]>>,
}

/// What φ-calculus came to.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) closed: Vec<Applied>,
    pub(super) open: Vec<OpenLoop>,
}

/// A path through the function.
#[derive(Default)]
pub(super) struct TracedPath {
    /// How often it was taken on the tape.
    pub(super) count: u64,
    /// Where calls that took it left kernels that knew so much.
    pub(super) side_exit: Option<(Known, Option<SideExit>)>,
}

/// The latest compilation for one purpose.
#[derive(Default)]
pub(super) struct Attempt {
    /// What was known then; 0 before the first.
    pub(super) version: u64,
    pub(super) refusal: Option<Refusal>,
    /// What is in use, from this compilation or an earlier one.
    pub(super) kernel: Option<KernelReport>,
}

/// The inputs of so many runs are kept, and so many numbers.
const PROFILING_INPUTS: usize = 8;
const PROFILING_NUMBERS: usize = 1 << 16;
/// So many paths through the function are counted before counting starts anew.
const MOST_SEEN: usize = 4096;

impl Profile {
    pub(super) fn new(active: usize, inactive: usize) -> Self {
        Profile {
            traces: MergedTraces::new(active, inactive),
            seen: HashMap::new(),
            // Beforehand, so that the first untracked runs need no memory.
            untracked: HashSet::with_capacity(16),
            longest: 0,
            last_new_path: None,
            side_exits: HashMap::new(),
            last_side_exit: None,
            wanted: [false; 3],
            attempts: Default::default(),
            taped_events: 0,
            compiling: false,
            refusals: Vec::new(),
            forms: Forms::default(),
            divergent: false,
            profiling_inputs: Vec::new(),
        }
    }

    /// Keeps the inputs of a run that added something, unless they are many.
    pub(super) fn keep(&mut self, inputs: Inputs<'_>) {
        let size = inputs.active.len() + inputs.inactive.len();
        let most = PROFILING_INPUTS.min(PROFILING_NUMBERS / size.max(1));
        if most == 0 {
            return;
        }
        if self.profiling_inputs.len() >= most {
            self.profiling_inputs.remove(usize::from(most > 1));
        }
        self.profiling_inputs.push([inputs.active, inputs.inactive].concat().into());
    }

    /// The inputs of runs that added something, those first that tell most of what is usual.
    pub(super) fn profiling_inputs(&self) -> Vec<Arc<[f64]>> {
        let (first, others) = self.profiling_inputs.split_at(self.profiling_inputs.len().min(1));
        first.iter().chain(others.iter().rev()).cloned().collect()
    }

    /// Whether kernels can be made of what is known.
    pub(super) fn is_sound(&self) -> bool {
        self.traces.paths() > 0 && !self.divergent
    }

    /// The path that `trace` took.
    pub(super) fn path(&mut self, trace: &Trace<'_>) -> &mut TracedPath {
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        self.seen.entry(trace.signature).or_default()
    }

    /// Notes an untracked run; returns whether no untracked run took the same path.
    pub(super) fn note_untracked(&mut self, trace: &Trace<'_>) -> bool {
        if self.untracked.len() >= MOST_SEEN {
            self.untracked.clear();
        }
        self.untracked.insert(trace.signature)
    }

    /// Whether nothing was compiled for `purpose` since the graph grew.
    pub(super) fn is_stale(&self, purpose: Purpose) -> bool {
        self.attempts[purpose as usize].version < self.traces.version()
    }

    /// The events of one call along each path.
    fn events(&self) -> u64 {
        self.traces.events() as u64
    }

    /// What a kernel for `purpose` waits for; `None` if there is no need of one.
    pub(super) fn wait(&self, purpose: Purpose, options: &Options) -> Option<Wait> {
        if self.divergent || !self.wanted[purpose as usize] || !self.is_stale(purpose) {
            return None;
        }
        let threshold = u64::from(options.hot_threshold);
        // The time spent on the tape has to pay for compiling: both it and compile
        // time grow with the number of steps.
        let needed = threshold.saturating_mul(self.events().max(1));
        Some(match options.hot_threshold {
            _ if self.compiling => Wait::Compiling,
            u32::MAX => Wait::Compile,
            _ => Wait::Cold { recorded: self.taped_events, needed },
        })
    }

    /// Whether it is time to compile for `purpose`.
    pub(super) fn is_hot(&self, purpose: Purpose, options: &Options) -> bool {
        matches!(self.wait(purpose, options),
            Some(Wait::Cold { recorded, needed }) if recorded >= needed)
    }

    /// Takes what was noted of kernels back, as they are out of use.
    pub(super) fn withdraw(&mut self) {
        self.attempts = Default::default();
        self.forms = Forms::default();
        self.profiling_inputs.clear();
    }

    /// Notes at which comparison the call of `trace` left a kernel, if one was the reason.
    pub(super) fn leave(&mut self, trace: &Trace<'_>, KernelExit { known, reason }: KernelExit) {
        let is_current = !self.divergent && known.generation == self.traces.generation();
        if !is_current || matches!(reason, ExitReason::NonFinite) {
            return;
        }
        let path = self.seen.entry(trace.signature).or_default();
        let side_exit = match &path.side_exit {
            Some((before, side_exit)) if *before == known => side_exit.clone(),
            _ => {
                let side_exit = self.traces.side_exit(trace, known.version);
                path.side_exit = Some((known, side_exit.clone()));
                side_exit
            }
        };
        if let Some(side_exit) = side_exit {
            *self.side_exits.entry((side_exit.at.clone(), side_exit.op)).or_insert(0) += 1;
            self.last_side_exit = Some(side_exit);
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_profiling_input_and_the_latest_are_kept() {
        let mut profile = Profile::new(1, 1);
        for number in 0..20 {
            profile.keep(Inputs { active: &[f64::from(number)], inactive: &[0.5] });
        }
        let first: Vec<f64> = profile.profiling_inputs().iter().map(|inputs| inputs[0]).collect();
        assert_eq!(first, [0.0, 19.0, 18.0, 17.0, 16.0, 15.0, 14.0, 13.0]);
        assert_eq!(profile.profiling_inputs()[0][..], [0.0, 0.5]);
        profile.withdraw();
        assert!(profile.profiling_inputs().is_empty());
    }

    #[test]
    fn profiling_inputs_of_many_numbers_are_few() {
        let kept = |size: usize| {
            let mut profile = Profile::new(size, 0);
            (0..20).for_each(|_| profile.keep(Inputs { active: &vec![1.0; size], inactive: &[] }));
            profile.profiling_inputs().len()
        };
        let numbers = PROFILING_NUMBERS;
        assert_eq!([0, 1, numbers / 3, numbers, numbers + 1].map(kept), [8, 8, 3, 1, 0]);
    }
}
