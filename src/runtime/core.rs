//! One call: a kernel serves it if there is one that does not back off and has the path; otherwise
//! the tape does.

use core::iter;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, Guard};
use smallvec::SmallVec;

use super::error::{Error, Kind};
use super::function::{Function, Request, Scalar, Weighted};
use super::kernel_call::{Repetition, Served, as_repetition, nested_exit, run_kernel};
use super::lengths::OtherLengths;
use super::outputs::{OutputShape, OutputWriter};
use super::profile::KernelExit;
use super::report::Report;
use super::specialisation::Specialisation;
use super::tape_run::{TapeRun, Workspace};
use crate::pipeline::{Options, Purpose, Recording, Refusal};
use crate::trace::{Detail, Inputs, Site, Var};

type Specialisations = SmallVec<[Arc<Specialisation>; 2]>;

/// The exits of the kernels that a call has tried, with the shapes of their outputs.
type KernelExits<'a> = SmallVec<[(&'a OutputShape, KernelExit); 2]>;

/// All of a recorded function but the function itself.
pub(super) struct Core {
    pub(super) options: Options,
    pub(super) created_at: Site,
    /// The number of calls with a length of input that had no specialisation.
    unspecialised_calls: AtomicU64,
    /// In the order of their lengths.
    specialisations: ArcSwap<Specialisations>,
    /// The lengths without a specialisation; locked to add one.
    others: Mutex<OtherLengths>,
    /// The bytes of all recorded paths.
    profile_bytes: Arc<AtomicUsize>,
    /// True if gradients of recorded functions inside are inlined.
    pub(super) inlines: bool,
    /// The same function with these inlined: for second derivatives, if they need it.
    inlined: OnceLock<Box<Core>>,
    /// Buffers of earlier tape calls.
    pub(super) workspaces: Mutex<Vec<Workspace>>,
}

/// The inputs of a call, and the shape of its outputs if there are several: these select the
/// specialisation.
#[derive(Clone, Copy)]
pub(super) struct SpecialisationKey<'a> {
    pub(super) inputs: Inputs<'a>,
    pub(super) outputs: Option<&'a OutputShape>,
}

impl SpecialisationKey<'_> {
    /// The number of active and of inactive inputs.
    pub(super) fn lengths(self) -> (usize, usize) {
        (self.inputs.active.len(), self.inputs.inactive.len())
    }
}

/// The place for the results of a call.
pub(super) enum Results<'a> {
    Into { slice: &'a mut [f64], name: &'static str },
    Allocated(&'a mut Vec<f64>),
}

impl Results<'_> {
    /// The slice for the results of a call with outputs of this shape.
    fn of_shape(
        &mut self,
        inputs: Inputs<'_>,
        request: Request<'_>,
        shape: &OutputShape,
    ) -> Result<&mut [f64], Error> {
        self.slice(match request.purpose {
            Purpose::VectorJacobianProduct | Purpose::HessianProduct => {
                Error::check_length("slice of weights", shape.count, request.weights.len())?;
                inputs.active.len()
            }
            Purpose::Jacobian => shape.count * inputs.active.len(),
            Purpose::SparseJacobian => 0,
            _ => shape.count,
        })
    }

    /// The slice for `count` results.
    pub(super) fn slice(&mut self, count: usize) -> Result<&mut [f64], Error> {
        match self {
            Results::Into { slice, name } => {
                Error::check_length(name, count, slice.len())?;
                Ok(slice)
            }
            Results::Allocated(vector) => {
                vector.resize(count, 0.0);
                Ok(vector)
            }
        }
    }
}

/// The outcome of an attempt to have a kernel serve a call.
enum Attempt {
    /// The call is served: by a kernel, or by the tape that has repeated it.
    Served(Result<f64, Error>),
    Exit(KernelExit),
    NoKernel,
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
            inlines: false,
            inlined: OnceLock::new(),
            workspaces: Mutex::new(Vec::new()),
        }
    }

    /// The part for second derivatives by inlined gradients.
    fn inlined(&self) -> &Core {
        self.inlined.get_or_init(|| {
            let (options, created_at) = (self.options, self.created_at);
            let profile_bytes = Arc::clone(&self.profile_bytes);
            Box::new(Core { inlines: true, profile_bytes, ..Core::new(options, created_at) })
        })
    }

    /// The part that serves requests for `purpose`.
    #[inline]
    fn of_purpose(&self, purpose: Purpose) -> &Core {
        match self.inlined.get() {
            Some(inlined) if purpose.is_second_order() => inlined,
            _ => self,
        }
    }

    /// This, and the part for second derivatives by inlined gradients, if there is one.
    fn parts(&self) -> impl Iterator<Item = &Core> {
        iter::once(self).chain(self.inlined.get().map(Box::as_ref))
    }

    /// Calls `f`, a function of one output. The gradient or the Hessian is written into `results`
    /// unless the purpose is the value alone; the value is returned unless it is the gradient
    /// alone.
    pub(super) fn call(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Option<Var>,
        inputs: Inputs<'_>,
        request: Request<'_>,
        results: &mut [f64],
    ) -> Result<f64, Error> {
        let active = inputs.active.len();
        if request.purpose == Purpose::Hessian {
            Error::check_length("Hessian", active * active, results.len())?;
        } else if request.purpose.has_reverse_sweep() {
            let is_product = request.purpose.has_direction();
            let name = if is_product { "product" } else { "gradient" };
            Error::check_length(name, active, results.len())?;
        }
        check_direction(inputs, request)?;
        let core = self.of_purpose(request.purpose);
        core.call_scalar(&Scalar(f), SpecialisationKey { inputs, outputs: None }, request, results)
    }

    /// As [`Core::call`], with slices whose lengths have been checked.
    #[inline]
    pub(super) fn call_scalar<F: Fn(&[Var], &[Var]) -> Option<Var>>(
        &self,
        f: &Scalar<F>,
        key: SpecialisationKey<'_>,
        request: Request<'_>,
        results: &mut [f64],
    ) -> Result<f64, Error> {
        let mut exit = None;
        if let Some(specialisation) = find(&self.specialisations.load(), key) {
            match self.try_kernel(f, specialisation, key.inputs, request, results) {
                Attempt::Served(value) => return value,
                Attempt::Exit(exit) if request.is_by_kernel && !exit.is_finite() => {
                    return Err(nested_exit());
                }
                Attempt::Exit(kernel_exit) => exit = Some(kernel_exit),
                Attempt::NoKernel => {}
            }
        }
        self.call_tape(f, key, request, exit, results)
    }

    /// Calls `f`, a function of several outputs, which have the shape `of_type` if their type
    /// tells. Writes the results into `results`; returns the shape of the outputs.
    ///
    /// Otherwise the shape is known after a run only. A run with other outputs than expected is
    /// repeated.
    pub(super) fn call_outputs(
        &self,
        f: impl Fn(&[Var], &[Var], &mut OutputWriter) -> bool,
        of_type: Option<OutputShape>,
        inputs: Inputs<'_>,
        request: Request<'_>,
        results: Results<'_>,
    ) -> Result<OutputShape, Error> {
        check_direction(inputs, request)?;
        self.of_purpose(request.purpose).call_several(f, of_type, inputs, request, results)
    }

    /// As [`Core::call_outputs`], by this part.
    fn call_several(
        &self,
        f: impl Fn(&[Var], &[Var], &mut OutputWriter) -> bool,
        of_type: Option<OutputShape>,
        inputs: Inputs<'_>,
        request: Request<'_>,
        mut results: Results<'_>,
    ) -> Result<OutputShape, Error> {
        let specialisations = self.specialisations.load();
        let (mut exits, mut expected) = (KernelExits::new(), None::<(u64, &OutputShape)>);
        for specialisation in with_lengths(&specialisations, inputs) {
            let Some(shape) = &specialisation.outputs else { continue };
            let Ok(results) = results.of_shape(inputs, request, shape) else { continue };
            let f = Weighted::new(&f, shape, self.created_at);
            match self.try_kernel(&f, specialisation, inputs, request, results) {
                Attempt::Served(result) => return result.map(|_| shape.clone()),
                Attempt::Exit(exit) => exits.push((shape, exit)),
                Attempt::NoKernel => {}
            }
            let calls = specialisation.calls();
            if expected.is_none_or(|(most, _)| calls >= most) {
                expected = Some((calls, shape));
            }
        }
        if request.is_by_kernel && !exits.iter().all(|(_, exit)| exit.is_finite()) {
            return Err(nested_exit());
        }
        let expected = expected.map(|(_, shape)| shape.clone()).or(of_type);
        let mut shape = match expected {
            Some(shape) => shape,
            None => self.shape_of_run(&f, inputs)?,
        };
        for is_repeated in [false, true] {
            let to = results.of_shape(inputs, request, &shape)?;
            let function = Weighted::new(&f, &shape, self.created_at);
            let key = SpecialisationKey { inputs, outputs: Some(&shape) };
            let exit = exits.iter().find(|(of, _)| **of == shape).map(|&(_, exit)| exit);
            match self.call_tape(&function, key, request, exit, to) {
                Err(error) if error.is_other_outputs() && !is_repeated => {
                    shape = function.shape();
                }
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        Ok(shape)
    }

    /// The shape of the outputs of a run that is not recorded.
    fn shape_of_run(
        &self,
        f: impl Fn(&[Var], &[Var], &mut OutputWriter) -> bool,
        inputs: Inputs<'_>,
    ) -> Result<OutputShape, Error> {
        let none = OutputShape::default();
        let function = Weighted::new(f, &none, self.created_at);
        let request = Purpose::Outputs.into();
        match self.on_tape(
            &function,
            inputs,
            request,
            (Detail::Untracked, None),
            &mut [],
            |_, _| {},
        ) {
            Err(error) if !error.is_other_outputs() => Err(error),
            _ => Ok(function.shape()),
        }
    }

    /// Has the kernel of `specialisation` serve a call of `f`, if there is one and it has a result.
    #[inline]
    fn try_kernel(
        &self,
        f: &impl Function,
        specialisation: &Specialisation,
        inputs: Inputs<'_>,
        request: Request<'_>,
        results: &mut [f64],
    ) -> Attempt {
        match run_kernel(specialisation, inputs, request, self.options.audit, results) {
            Some(Ok(Served { value, repetition: None })) => Attempt::Served(Ok(value)),
            Some(Ok(Served { value, repetition: Some(repetition) })) => {
                let served = (specialisation, value, repetition);
                Attempt::Served(self.repeat(f, served, inputs, request, results))
            }
            Some(Err(exit)) => {
                specialisation.fell_back(exit);
                Attempt::Exit(exit)
            }
            None => Attempt::NoKernel,
        }
    }

    /// Has the tape serve a call. If second derivatives are missing, it is repeated with the
    /// gradients of recorded functions inlined, and so are later calls for second derivatives.
    #[inline(never)]
    pub(super) fn call_tape(
        &self,
        f: &impl Function,
        key: SpecialisationKey<'_>,
        request: Request<'_>,
        exit: Option<KernelExit>,
        results: &mut [f64],
    ) -> Result<f64, Error> {
        match self.call_tape_once(f, key, request, exit, results) {
            Err(error) if error.is_not_twice_differentiable() && !self.inlines => {
                self.inlined().call_tape_once(f, key, request, None, results)
            }
            result => result,
        }
    }

    fn call_tape_once(
        &self,
        f: &impl Function,
        key: SpecialisationKey<'_>,
        request: Request<'_>,
        exit: Option<KernelExit>,
        results: &mut [f64],
    ) -> Result<f64, Error> {
        let specialisation = self.specialisation(key);
        let request = match &specialisation {
            Some(specialisation) => request.in_specialisation(specialisation),
            None => request,
        };
        // A call without a specialisation is not merged, and a kernel without a finite result has
        // taken a known path.
        let is_known = exit.is_some_and(|exit| !exit.is_finite());
        let detail = match &specialisation {
            Some(specialisation) if !is_known => specialisation.detail(),
            _ => Detail::Untracked,
        };
        let is_timed = self.options.is_timed()
            && detail == Detail::Untracked
            && specialisation.as_ref().is_some_and(|one| one.times_run());
        let start = is_timed.then(Instant::now);
        let record = |run: TapeRun<'_>, inputs: Inputs<'_>| match (run, &specialisation) {
            (TapeRun::Whole(run), Some(specialisation)) if run.has_failed_call => {
                specialisation.count_failed();
            }
            (TapeRun::Whole(run), Some(specialisation)) => {
                let time = start.map(|start| start.elapsed());
                let purpose = request.purpose;
                specialisation.record((run, inputs), purpose, (exit, time), &self.options);
            }
            (TapeRun::Long(run), Some(specialisation)) => {
                specialisation.record_long(run, &self.options);
            }
            (_, None) => _ = self.unspecialised_calls.fetch_add(1, Ordering::Relaxed),
        };
        // A kernel without a finite result leaves it to an event tape.
        let known = specialisation.as_deref().filter(|_| !is_known);
        let result = self.on_tape(f, key.inputs, request, (detail, known), results, record);
        if let (Err(error), Some(specialisation)) = (&result, &specialisation)
            && error.is_failed()
        {
            specialisation.count_failed();
        }
        result
    }

    /// Repeats a kernel call on the tape. An audited run is compared with the recorded paths; for
    /// another one the times of kernel and tape are noted. The tape's answer is the result: it is
    /// right also if the kernel is not. On an error the results are as before the call.
    #[cold]
    #[inline(never)]
    pub(super) fn repeat(
        &self,
        f: &impl Function,
        (specialisation, by_kernel, repetition): (&Specialisation, f64, Box<Repetition>),
        inputs: Inputs<'_>,
        request: Request<'_>,
        results: &mut [f64],
    ) -> Result<f64, Error> {
        let Repetition { call, time, before, sparse_before } = *repetition;
        let is_audited = self.options.audit.includes(call);
        let detail = if is_audited { Detail::Marks } else { Detail::Untracked };
        let request = request.in_specialisation(specialisation);
        let sparse = |request: Request<'_>| {
            request.sparse.map_or(Vec::new(), |sparse| sparse.matrix.borrow().values().to_vec())
        };
        let results_by_kernel = [results.to_vec(), sparse(request)].concat();
        let mut unknown = None;
        let start = Instant::now();
        let on_tape = as_repetition(|| {
            let detail = (detail, Some(specialisation));
            self.on_tape(f, inputs, request, detail, results, |run, inputs| {
                let installed = specialisation.kernel(request.purpose);
                let Some(installed) = installed.as_deref() else { return };
                let tracked = match run {
                    TapeRun::Whole(run) => run.tracked,
                    // It is not kept to be compared.
                    TapeRun::Long(_) => None,
                };
                match (tracked, time) {
                    (Some(trace), _) if is_audited && !trace.has_failed_call => {
                        let version = installed.graph_version;
                        unknown = specialisation.audit((trace, inputs), version, &self.options);
                        if self.options.is_timed() && self.options.audit.is_rare(call) {
                            installed.time_calls();
                        }
                    }
                    (_, Some(time)) if !is_audited => installed.add_times(time, start.elapsed()),
                    _ => {}
                }
            })
        });
        let value = match on_tape {
            Ok(value) => value,
            // The kernel has no such limit.
            Err(error) if error.is_too_long() => return Ok(by_kernel),
            Err(error) => {
                results.copy_from_slice(&before);
                if let (Some(sparse), Some(before)) = (request.sparse, sparse_before) {
                    sparse.matrix.replace(before);
                }
                return Err(error);
            }
        };
        // The kernel served the same inputs along another path: something else has changed. Near a
        // guard rounding may decide, too, but then the results hardly differ.
        if let Some(side_exit) = unknown {
            let by_tape = [results.to_vec(), sparse(request)].concat();
            let mut results = by_tape.iter().zip(&results_by_kernel);
            if request.purpose.has_value() && differ(value, by_kernel)
                || results.any(|(&tape, &kernel)| differ(tape, kernel))
            {
                specialisation.refuse_divergent(side_exit.at);
            }
        }
        Ok(value)
    }

    /// The specialisations of now.
    pub(super) fn load_specialisations(&self) -> Guard<Arc<Specialisations>> {
        self.specialisations.load()
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Forgets all that was recorded, and all kernels.
    pub(super) fn invalidate(&self) {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        *others = OtherLengths::default();
        self.specialisations.store(Arc::default());
        self.unspecialised_calls.store(0, Ordering::Relaxed);
        if let Some(inlined) = self.inlined.get() {
            inlined.invalidate();
        }
    }

    /// Compiles everything recorded so far.
    pub(super) fn compile(&self) -> Result<(), Error> {
        let (mut compiled, mut refused) = (false, None);
        // All specialisations are compiled, even after a refusal of one of them.
        for part in self.parts() {
            for specialisation in part.specialisations.load().iter() {
                match specialisation.compile_now(!part.inlines, &self.options) {
                    Ok(recorded) => compiled |= recorded,
                    Err(refusal) => refused = refused.or(Some(refusal)),
                }
            }
        }
        // A length that was called and has no specialisation.
        if refused.is_none() && self.parts().any(|part| part.unspecialised_calls() > 0) {
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
        for part in self.parts() {
            for specialisation in part.specialisations.load().iter() {
                specialisation.report(&mut report, &self.options);
            }
            let others = part.others.lock().unwrap_or_else(PoisonError::into_inner);
            report.add_served(others.replaced_calls);
        }
        let unspecialised_calls: u64 = self.parts().map(Core::unspecialised_calls).sum();
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
        for part in self.parts() {
            for specialisation in part.specialisations.load().iter() {
                let calls = specialisation.calls();
                if most.as_ref().is_none_or(|(most, _)| calls > *most) {
                    most = Some((calls, Arc::clone(specialisation)));
                }
            }
        }
        let recording = most.map_or(Ok(None), |(_, most)| most.recording(&self.options));
        match recording {
            Ok(Some(recording)) => Ok(recording),
            Ok(None) => Err(Kind::Unrecorded.into()),
            Err(refusal) => Err(Kind::NotCompiled(refusal).into()),
        }
    }

    /// The specialisation for `key`; `None` beyond the limit.
    fn specialisation(&self, key: SpecialisationKey<'_>) -> Option<Arc<Specialisation>> {
        if let Some(found) = find(&self.specialisations.load(), key) {
            return Some(Arc::clone(found));
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.specialisations.load_full();
        let Err(at) = position(&known, key) else {
            return find(&known, key).map(Arc::clone);
        };
        let mut all = SmallVec::clone(&known);
        let at = if known.len() < self.options.limits.specialisations {
            at
        } else {
            let replaced = others.replaced(key, &known)?;
            others.add_replaced(all.remove(replaced).served_calls());
            at - usize::from(replaced < at)
        };
        let new = Specialisation::new(key, self.options.hotness, Arc::clone(&self.profile_bytes));
        let new = Arc::new(new);
        all.insert(at, Arc::clone(&new));
        self.specialisations.store(Arc::new(all));
        Some(new)
    }

    /// The number of calls with a length of input that had no specialisation.
    fn unspecialised_calls(&self) -> u64 {
        self.unspecialised_calls.load(Ordering::Relaxed)
    }
}

/// The specialisation for `key`.
pub(super) fn find<'a>(
    specialisations: &'a [Arc<Specialisation>],
    key: SpecialisationKey<'_>,
) -> Option<&'a Arc<Specialisation>> {
    position(specialisations, key).ok().map(|at| &specialisations[at])
}

/// The position of the specialisation for `key`, or that of a new one.
fn position(
    specialisations: &[Arc<Specialisation>],
    key: SpecialisationKey<'_>,
) -> Result<usize, usize> {
    specialisations.binary_search_by(|one| {
        let lengths = (one.active, one.inactive).cmp(&key.lengths());
        lengths.then_with(|| one.outputs.as_ref().cmp(&key.outputs))
    })
}

/// The specialisations for the lengths of `inputs`, with outputs of any shape.
fn with_lengths<'a>(
    specialisations: &'a [Arc<Specialisation>],
    inputs: Inputs<'_>,
) -> &'a [Arc<Specialisation>] {
    let lengths = SpecialisationKey { inputs, outputs: None }.lengths();
    let start = specialisations.partition_point(|one| (one.active, one.inactive) < lengths);
    let end = specialisations.partition_point(|one| (one.active, one.inactive) <= lengths);
    &specialisations[start..end]
}

/// An error if there should be a direction and it is too short or too long.
fn check_direction(inputs: Inputs<'_>, request: Request<'_>) -> Result<(), Error> {
    match request.purpose.has_direction() {
        true => Error::check_length("direction", inputs.active.len(), request.direction.len()),
        false => Ok(()),
    }
}

/// Tests whether two results differ by more than rounding explains.
fn differ(one: f64, other: f64) -> bool {
    const TOLERANCE: f64 = 1e-6;
    (one - other).abs() > TOLERANCE * one.abs().max(other.abs())
}
