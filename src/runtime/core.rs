//! One call: a kernel serves it if there is one that does not back off and has the path; otherwise
//! the tape does.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

use super::error::{Error, Kind};
use super::installed::Dispatch;
use super::lengths::OtherLengths;
use super::profile::{ExitReason, KernelExit};
use super::report::Report;
use super::specialisation::Specialisation;
use crate::jit::{Kernel, RunError};
use crate::pipeline::{Limits, Numerics, Options, Purpose, Recording, Refusal};
use crate::trace::{
    Adjoints, Detail, Inputs, Run, RunLimits, Site, Tangents, TraceError, Tracer, Var,
    push_forward, sweep, sweep_tangents,
};

/// All of a recorded function but the function itself.
pub(super) struct Core {
    options: Options,
    created_at: Site,
    /// The number of calls with a length of input that had no specialisation.
    unspecialised_calls: AtomicU64,
    /// In the order of their lengths.
    specialisations: ArcSwap<SmallVec<[Arc<Specialisation>; 2]>>,
    /// The lengths without a specialisation; locked to add one.
    others: Mutex<OtherLengths>,
    /// The bytes of all recorded paths.
    profile_bytes: Arc<AtomicUsize>,
    /// Buffers of earlier tape calls.
    workspaces: Mutex<Vec<Workspace>>,
}

/// The buffers of one tape call.
#[derive(Default)]
struct Workspace {
    tracer: Tracer,
    adjoints: Adjoints,
    tangents: Tangents,
}

/// The derivatives that a call asks for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) purpose: Purpose,
    /// The direction, if the purpose has one: a number for each active input.
    pub(super) direction: &'a [f64],
}

impl From<Purpose> for Request<'_> {
    /// A request without direction.
    fn from(purpose: Purpose) -> Self {
        Request { purpose, direction: &[] }
    }
}

/// The buffers of one kernel call.
#[derive(Default)]
struct Buffers {
    scratch: Vec<f64>,
    outputs: Vec<f64>,
    /// Inactive inputs and direction.
    inactive: Vec<f64>,
}

impl Buffers {
    const fn new() -> Self {
        Buffers { scratch: Vec::new(), outputs: Vec::new(), inactive: Vec::new() }
    }
}

thread_local! {
    /// The buffers of the latest call, for their memory. Kernels run no user
    /// code, so one pair for each thread is enough.
    static BUFFERS: Cell<Buffers> = const { Cell::new(Buffers::new()) };
}

impl Core {
    pub(super) fn new(options: Options, created_at: Site) -> Self {
        Core {
            options,
            created_at,
            unspecialised_calls: AtomicU64::new(0),
            specialisations: ArcSwap::default(),
            others: Mutex::default(),
            profile_bytes: Arc::default(),
            workspaces: Mutex::new(Vec::new()),
        }
    }

    /// Calls `f`. The gradient is written into `gradient` unless `purpose` is
    /// the value alone; the value is returned unless it is the gradient alone.
    pub(super) fn call(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        request: Request<'_>,
        gradient: &mut [f64],
    ) -> Result<f64, Error> {
        if request.purpose.has_reverse_sweep() {
            Error::check_length(inputs.active.len(), gradient.len())?;
        }
        if request.purpose.has_direction() {
            Error::check_length(inputs.active.len(), request.direction.len())?;
        }
        let mut exit = None;
        if let Some(specialisation) = find(&self.specialisations.load(), inputs) {
            match run_kernel(specialisation, inputs, request, gradient) {
                Some(Ok(Served { value, call, time: None }))
                    if !self.options.audit.includes(call) =>
                {
                    return Ok(value);
                }
                Some(Ok(served)) => {
                    return self.repeat(f, (specialisation, served), inputs, request, gradient);
                }
                Some(Err(kernel_exit)) => {
                    specialisation.fell_back(kernel_exit);
                    exit = Some(kernel_exit);
                }
                None => {}
            }
        }
        self.call_tape(f, inputs, request, exit, gradient)
    }

    #[inline(never)]
    fn call_tape(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        request: Request<'_>,
        exit: Option<KernelExit>,
        gradient: &mut [f64],
    ) -> Result<f64, Error> {
        let specialisation = self.specialisation(inputs);
        // A call without a specialisation is not merged, and a kernel without a finite result has
        // taken a known path.
        let is_known = matches!(exit, Some(KernelExit { reason: ExitReason::NonFinite, .. }));
        let detail = match &specialisation {
            Some(specialisation) if !is_known => specialisation.detail(),
            _ => Detail::Untracked,
        };
        let is_timed = self.options.is_timed()
            && detail == Detail::Untracked
            && specialisation.as_ref().is_some_and(|one| one.times_run());
        let start = is_timed.then(Instant::now);
        self.on_tape(f, inputs, request, detail, gradient, |run| match (run, &specialisation) {
            (Run::Whole(trace), Some(specialisation)) => {
                let time = start.map(|start| start.elapsed());
                specialisation.record(
                    (trace, inputs),
                    request.purpose,
                    (exit, time),
                    &self.options,
                );
            }
            (Run::Long(run), Some(specialisation)) => {
                specialisation.record_long(run, &self.options);
            }
            (_, None) => _ = self.unspecialised_calls.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Repeats a kernel call on the tape. An audited run is compared with the recorded paths; for
    /// another one the times of kernel and tape are noted. The tape's answer is the result: it is
    /// right also if the kernel is not.
    #[cold]
    #[inline(never)]
    fn repeat(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Var,
        (specialisation, served): (&Specialisation, Served),
        inputs: Inputs<'_>,
        request: Request<'_>,
        gradient: &mut [f64],
    ) -> Result<f64, Error> {
        let is_audited = self.options.audit.includes(served.call);
        let detail = if is_audited { Detail::Marks } else { Detail::Untracked };
        // Of the call that is repeated.
        let outputs = BUFFERS.try_with(|buffers| {
            let mut kept = buffers.take();
            let outputs = core::mem::take(&mut kept.outputs);
            buffers.set(kept);
            outputs
        });
        let outputs = outputs.unwrap_or_default();
        let mut unknown = None;
        let start = Instant::now();
        let value = self.on_tape(f, inputs, request, detail, gradient, |run| {
            let installed = specialisation.kernel(request.purpose);
            let Some(installed) = installed.as_deref() else { return };
            match (run, served.time) {
                // A long run is not kept to be compared.
                (Run::Whole(trace), _) if is_audited => {
                    let version = installed.graph_version;
                    unknown = specialisation.audit((trace, inputs), version, &self.options);
                    if self.options.is_timed() && self.options.audit.is_rare(served.call) {
                        installed.time_calls();
                    }
                }
                (_, Some(time)) if !is_audited => installed.add_times(time, start.elapsed()),
                _ => {}
            }
        })?;
        // The kernel served the same inputs along another path: something else has changed. Near a
        // guard rounding may decide, too, but then the results hardly differ.
        if let Some(side_exit) = unknown {
            let results = gradient.iter().zip(&outputs).map(|(tape, kernel)| (*tape, *kernel));
            let has_value = !matches!(request.purpose, Purpose::Gradient | Purpose::HessianProduct);
            if has_value && differ(value, served.value)
                || results.into_iter().any(|(tape, kernel)| differ(tape, kernel))
            {
                specialisation.refuse_divergent(side_exit.at);
            }
        }
        let _ = BUFFERS.try_with(|buffers| buffers.set(Buffers { outputs, ..buffers.take() }));
        Ok(value)
    }

    /// Runs `f` on the tape with this detail, and `then`; returns the value, or the derivative along
    /// the direction if there is one.
    ///
    /// The buffers are kept for later calls if the whole run fits into them: those of a long run
    /// may be much larger.
    fn on_tape(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Var,
        inputs: Inputs<'_>,
        request: Request<'_>,
        detail: Detail,
        gradient: &mut [f64],
        then: impl FnOnce(&Run<'_>),
    ) -> Result<f64, Error> {
        let mut workspace = self.lock_workspaces().pop().unwrap_or_default();
        let Workspace { tracer, adjoints, tangents } = &mut workspace;
        // Marks change the order in which adjoints are added up, so with exact numerics they are
        // always recorded.
        tracer.detail(match self.options.numerics {
            Numerics::Exact => detail.max(Detail::Marks),
            Numerics::Real => detail,
        });
        let Limits { trace_events: whole, call_events: call, .. } = self.options.limits;
        let Request { purpose, direction } = request;
        let limits = RunLimits { whole, call, has_reverse_sweep: purpose != Purpose::Value };
        let mut run =
            tracer.run_within(&f, inputs, limits, self.created_at).map_err(Kind::Trace)?;
        let value = match &mut run {
            Run::Whole(trace) if purpose.has_direction() => {
                push_forward(trace, direction, tangents);
                let derivative = tangents.of(trace.output);
                if purpose.has_reverse_sweep() {
                    let products = sweep_tangents(trace, tangents).iter().map(|one| one.tangent);
                    gradient.iter_mut().zip(products).for_each(|(to, product)| *to = product);
                }
                derivative
            }
            Run::Long(run) if purpose.has_direction() => {
                let too_long = TraceError::TooLong { limit: whole, at: run.beyond() };
                return Err(Kind::Trace(too_long).into());
            }
            Run::Whole(trace) => {
                if purpose.has_reverse_sweep() {
                    gradient.copy_from_slice(sweep(trace, adjoints));
                }
                trace.value()
            }
            Run::Long(run) => {
                if purpose.has_reverse_sweep() {
                    gradient.copy_from_slice(run.sweep(&f, adjoints).map_err(Kind::Trace)?);
                }
                run.value()
            }
        };
        then(&run);
        let is_whole = matches!(run, Run::Whole(_));
        if is_whole {
            self.lock_workspaces().push(workspace);
        }
        Ok(value)
    }

    /// Forgets all that was recorded, and all kernels.
    pub(super) fn invalidate(&self) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        *others = OtherLengths::default();
        self.specialisations.store(Arc::default());
        self.unspecialised_calls.store(0, Ordering::Relaxed);
    }

    /// Compiles everything recorded so far.
    pub(super) fn compile(&self) -> Result<(), Error> {
        let (mut compiled, mut refused) = (false, None);
        // All specialisations are compiled, even after a refusal of one of them.
        for specialisation in self.specialisations.load().iter() {
            match specialisation.compile_now(&self.options) {
                Ok(recorded) => compiled |= recorded,
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        // A length that was called and has no specialisation.
        if refused.is_none() && self.unspecialised_calls.load(Ordering::Relaxed) > 0 {
            let limit = self.options.limits.specialisations;
            refused = Some(Refusal::TooManyLengths { limit });
        }
        match refused {
            Some(refusal) => Err(Kind::NotCompiled(refusal).into()),
            None if compiled => Ok(()),
            None => Err(Kind::Unrecorded.into()),
        }
    }

    pub(super) fn report(&self) -> Report {
        let mut report = Report::default();
        let specialisations = self.specialisations.load();
        for specialisation in specialisations.iter() {
            specialisation.report(&mut report, &self.options);
        }
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        report.add_served(others.replaced_calls);
        let unspecialised_calls = self.unspecialised_calls.load(Ordering::Relaxed);
        if unspecialised_calls > 0 {
            report.tape_calls += unspecialised_calls;
            let limit = self.options.limits.specialisations;
            report.refusals.push(Refusal::TooManyLengths { limit });
        }
        report
    }

    /// The recording for the length of input with the most calls.
    pub(super) fn recording(&self) -> Result<Recording, Error> {
        let mut most: Option<(u64, Arc<Specialisation>)> = None;
        for specialisation in self.specialisations.load().iter() {
            let calls = specialisation.calls();
            if most.as_ref().is_none_or(|(most, _)| calls > *most) {
                most = Some((calls, Arc::clone(specialisation)));
            }
        }
        let recording = most.map_or(Ok(None), |(_, most)| most.recording(&self.options));
        match recording {
            Ok(Some(recording)) => Ok(recording),
            Ok(None) => Err(Kind::Unrecorded.into()),
            Err(refusal) => Err(Kind::NotCompiled(refusal).into()),
        }
    }

    /// The specialisation for the lengths of `inputs`; `None` beyond the limit.
    fn specialisation(&self, inputs: Inputs<'_>) -> Option<Arc<Specialisation>> {
        if let Some(found) = find(&self.specialisations.load(), inputs) {
            return Some(Arc::clone(found));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.specialisations.load_full();
        let Err(at) = position(&known, inputs) else {
            return find(&known, inputs).map(Arc::clone);
        };
        let length = (inputs.active.len(), inputs.inactive.len());
        let mut all = SmallVec::clone(&known);
        let at = if known.len() < self.options.limits.specialisations {
            at
        } else {
            let replaced = others.replaced(length, &known)?;
            others.add_replaced(all.remove(replaced).served_calls());
            at - usize::from(replaced < at)
        };
        let new =
            Specialisation::new(length, self.options.hotness, Arc::clone(&self.profile_bytes));
        let new = Arc::new(new);
        all.insert(at, Arc::clone(&new));
        self.specialisations.store(Arc::new(all));
        Some(new)
    }

    fn lock_workspaces(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The specialisation for the lengths of `inputs`.
fn find<'a>(
    specialisations: &'a [Arc<Specialisation>],
    inputs: Inputs<'_>,
) -> Option<&'a Arc<Specialisation>> {
    position(specialisations, inputs).ok().map(|at| &specialisations[at])
}

/// The position of the specialisation for the lengths of `inputs`, or that of a new one.
fn position(specialisations: &[Arc<Specialisation>], inputs: Inputs<'_>) -> Result<usize, usize> {
    let length = (inputs.active.len(), inputs.inactive.len());
    specialisations.binary_search_by_key(&length, |one| (one.active, one.inactive))
}

/// A call that a kernel served.
struct Served {
    value: f64,
    /// The number of the call.
    call: u64,
    /// Its time, if it was taken.
    time: Option<Duration>,
}

/// Runs the kernel, unless there is none or it backs off. Writes to `gradient` on success only.
fn run_kernel(
    specialisation: &Specialisation,
    inputs: Inputs<'_>,
    request: Request<'_>,
    gradient: &mut [f64],
) -> Option<Result<Served, KernelExit>> {
    let installed = specialisation.kernel(request.purpose);
    let installed = installed.as_deref()?;
    let start = match installed.dispatch() {
        Dispatch::Kernel => None,
        Dispatch::Timed => Some(Instant::now()),
        Dispatch::Tape => return None,
    };
    let result = match run(&installed.kernel, inputs, request, gradient) {
        Ok(value) => {
            let time = start.map(|start| start.elapsed());
            Ok(Served { value, call: installed.served(), time })
        }
        Err(reason) => {
            installed.exit();
            Err(KernelExit { graph_version: installed.graph_version, reason })
        }
    };
    Some(result)
}

/// Runs `kernel`; returns the value, or the derivative along the direction. Writes to `gradient` on success only.
#[inline]
fn run(
    kernel: &Kernel,
    inputs: Inputs<'_>,
    Request { purpose, direction }: Request<'_>,
    gradient: &mut [f64],
) -> Result<f64, ExitReason> {
    let mut buffers = BUFFERS.try_with(Cell::take).unwrap_or_default();
    let Buffers { scratch, outputs, inactive } = &mut buffers;
    let count = kernel.outputs();
    if outputs.len() < count {
        outputs.resize(count, 0.0);
    }
    let outputs = &mut outputs[..count];
    let inactive = match (inputs.inactive, direction) {
        (data, []) => data,
        ([], direction) => direction,
        (data, direction) => {
            inactive.clear();
            inactive.extend_from_slice(data);
            inactive.extend_from_slice(direction);
            inactive
        }
    };
    let result = match kernel.run(inputs.active, inactive, scratch, outputs) {
        Err(RunError::SideExit | RunError::Shape) => Err(ExitReason::SideExit),
        // A kernel multiplies zero adjoints, which the sweep skips, and its rewrites assume
        // finite numbers, so the tape decides what is NaN or infinite.
        Ok(_) if !all_finite(outputs) => Err(ExitReason::NonFinite),
        Ok(()) => {
            if purpose.has_reverse_sweep() {
                gradient.copy_from_slice(&outputs[..gradient.len()]);
            }
            Ok(outputs.last().copied().unwrap_or(f64::NAN))
        }
    };
    // In a thread that is ending the buffers are dropped.
    let _ = BUFFERS.try_with(|kept| kept.set(buffers));
    result
}

/// Tests whether two results differ by more than rounding explains.
fn differ(one: f64, other: f64) -> bool {
    const TOLERANCE: f64 = 1e-6;
    (one - other).abs() > TOLERANCE * one.abs().max(other.abs())
}

/// True if all numbers are finite; without an early exit, so that the loop is vectorised.
fn all_finite(numbers: &[f64]) -> bool {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    numbers.iter().fold(true, |all, x| all & (x.to_bits() & EXPONENT != EXPONENT))
}
