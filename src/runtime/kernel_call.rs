//! One call by a kernel: in one run, or in a run for each row or column of a Jacobian.

use core::cell::Cell;
use std::time::{Duration, Instant};

use super::function::Request;
use super::installed::{Dispatch, Installed};
use super::kernel_rows::BatchBuffers;
use super::profile::{ExitReason, KernelExit};
use super::specialisation::Specialisation;
use crate::jit::{Kernel, RunError};
use crate::pipeline::{Audit, Purpose};
use crate::sparse::SparseMatrix;
use crate::trace::Inputs;

/// The buffers of one kernel call.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) scratch: Vec<f64>,
    outputs: Vec<f64>,
    /// Inactive inputs, weights and direction.
    inactive: Vec<f64>,
    /// Weights of zero.
    zeros: Vec<f64>,
    /// A unit vector, and a Jacobian.
    unit: Vec<f64>,
    jacobian: Vec<f64>,
    pub(super) batch: BatchBuffers,
}

thread_local! {
    /// The buffers of the latest call, for their memory; they are large, so calls exchange a pointer.
    /// A call inside a custom operation finds none and makes its own.
    static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Calls `run` with the buffers of the thread.
#[inline]
pub(super) fn with_buffers<T>(run: impl FnOnce(&mut Buffers) -> T) -> T {
    let mut buffers = BUFFERS.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = run(&mut buffers);
    // In a thread that is ending the buffers are dropped.
    let _ = BUFFERS.try_with(|kept| kept.set(Some(buffers)));
    result
}

/// A call that a kernel served.
pub(super) struct Served {
    pub(super) value: f64,
    /// If the tape repeats the call.
    pub(super) repetition: Option<Box<Repetition>>,
}

/// A kernel call that the tape repeats.
pub(super) struct Repetition {
    /// The number of the call.
    pub(super) call: u64,
    /// Its time, if it was taken.
    pub(super) time: Option<Duration>,
    /// The results before the call.
    pub(super) before: Vec<f64>,
    pub(super) sparse_before: Option<SparseMatrix>,
}

impl Repetition {
    /// That of call number `call`, before it writes results.
    #[cold]
    pub(super) fn new(call: u64, request: Request<'_>, results: &[f64]) -> Box<Self> {
        let sparse_before = request.sparse.map(|sparse| sparse.matrix.borrow().clone());
        Box::new(Repetition { call, time: None, before: results.to_vec(), sparse_before })
    }
}

/// Runs the kernel, unless there is none or it backs off. Writes to `results` on success only. A call
/// that is timed or in the `audit` is to be repeated.
pub(super) fn run_kernel(
    specialisation: &Specialisation,
    inputs: Inputs<'_>,
    request: Request<'_>,
    audit: Audit,
    results: &mut [f64],
) -> Option<Result<Served, KernelExit>> {
    let installed = specialisation.kernel(request.purpose);
    let installed = installed.as_deref()?;
    let is_timed = match installed.dispatch() {
        Dispatch::Kernel => false,
        Dispatch::Timed => true,
        Dispatch::Tape => return None,
    };
    // Calls of other threads may get this number, too.
    let call = installed.latest_call() + 1;
    let is_repeated = is_timed || audit.includes(call);
    let mut repetition = is_repeated.then(|| Repetition::new(call, request, results));
    let start = is_timed.then(Instant::now);
    let request = request.in_specialisation(specialisation);
    let result = match run(installed, inputs, request, results) {
        Ok(value) => {
            if let Some(repetition) = &mut repetition {
                repetition.time = start.map(|start| start.elapsed());
            }
            installed.served(1);
            Ok(Served { value, repetition })
        }
        Err(reason) => {
            installed.exit();
            Err(KernelExit { graph_version: installed.graph_version, reason })
        }
    };
    Some(result)
}

/// Runs the kernel; returns the value, or the derivative along the direction. Writes to
/// `results` on success only.
#[inline]
fn run(
    installed: &Installed,
    inputs: Inputs<'_>,
    request: Request<'_>,
    results: &mut [f64],
) -> Result<f64, ExitReason> {
    with_buffers(|buffers| match request.purpose {
        Purpose::Jacobian => run_jacobian(installed, inputs, results, buffers),
        Purpose::SparseHessian | Purpose::SparseJacobian => {
            run_sparse(installed, inputs, request, buffers)
        }
        _ => run_once(&installed.kernel, inputs, request, buffers).map(|outputs| {
            if request.purpose.has_reverse_sweep() {
                results.copy_from_slice(&outputs[..results.len()]);
            }
            outputs.last().copied().unwrap_or(f64::NAN)
        }),
    })
}

/// Runs the kernel for each row or column of the Jacobian, which it writes into `results` on
/// success.
fn run_jacobian(
    Installed { kernel, product, .. }: &Installed,
    inputs: Inputs<'_>,
    results: &mut [f64],
    buffers: &mut Buffers,
) -> Result<f64, ExitReason> {
    if *product == Purpose::Jacobian {
        let all = run_once(kernel, inputs, Purpose::Jacobian.into(), buffers)?;
        results.copy_from_slice(all);
        return Ok(f64::NAN);
    }
    let columns = inputs.active.len();
    let rows = results.len() / columns.max(1);
    let mut jacobian = core::mem::take(&mut buffers.jacobian);
    jacobian.clear();
    jacobian.resize(results.len(), 0.0);
    let by_rows = *product == Purpose::VectorJacobianProduct;
    let mut unit = core::mem::take(&mut buffers.unit);
    unit.clear();
    unit.resize(if by_rows { rows } else { columns }, 0.0);
    let mut result = Ok(f64::NAN);
    for number in 0..unit.len() {
        unit[number] = 1.0;
        let (direction, weights) =
            if by_rows { (&[][..], &unit[..]) } else { (&unit[..], &[][..]) };
        let request = Request { direction, weights, ..Request::from(*product) };
        match run_once(kernel, inputs, request, buffers) {
            Err(reason) => {
                result = Err(reason);
                break;
            }
            Ok(row) if by_rows => jacobian[number * columns..][..columns].copy_from_slice(row),
            Ok(column) => {
                let rows = jacobian.chunks_exact_mut(columns).zip(column);
                rows.for_each(|(row, &derivative)| row[number] = derivative);
            }
        }
        unit[number] = 0.0;
    }
    if result.is_ok() {
        results.copy_from_slice(&jacobian);
    }
    (buffers.jacobian, buffers.unit) = (jacobian, unit);
    result
}

/// Runs the kernel for each product that the pattern needs; writes the sparse matrix on success.
fn run_sparse(
    Installed { kernel, product, .. }: &Installed,
    inputs: Inputs<'_>,
    request: Request<'_>,
    buffers: &mut Buffers,
) -> Result<f64, ExitReason> {
    // The pattern is loaded after the kernel, so it has all entries of the kernel's paths.
    let sparse = request.sparse.and_then(|sparse| Some((sparse.matrix, sparse.known?)));
    let Some((matrix, known)) = sparse else { return Err(ExitReason::SideExit) };
    let compression = known.compression();
    let Some(compression) = compression.as_deref() else { return Err(ExitReason::SideExit) };
    if known.purpose_of(compression.products) != *product {
        // The kind of products has changed since the kernel was loaded.
        return Err(ExitReason::SideExit);
    }
    let (mut entries, mut seed) =
        (core::mem::take(&mut buffers.jacobian), core::mem::take(&mut buffers.unit));
    entries.clear();
    entries.resize(compression.pattern.len(), 0.0);
    let mut result = Ok(f64::NAN);
    // Also without entries a run finds out whether the kernel has the path.
    for number in 0..compression.count() {
        compression.seed(number, &mut seed);
        let (direction, weights) = match *product {
            Purpose::VectorJacobianProduct => (&[][..], &seed[..]),
            _ if product.has_direction() => (&seed[..], &[][..]),
            _ => (&[][..], &[][..]),
        };
        let request = Request { direction, weights, ..Request::from(*product) };
        match run_once(kernel, inputs, request, buffers) {
            Err(reason) => {
                result = Err(reason);
                break;
            }
            Ok(outputs) => compression.read(number, |place| outputs[place], &mut entries),
        }
    }
    if result.is_ok() {
        matrix.borrow_mut().assign(&compression.pattern, &entries);
    }
    (buffers.jacobian, buffers.unit) = (entries, seed);
    result
}

/// Runs `kernel` once; returns its outputs.
#[inline]
pub(super) fn run_once<'a>(
    kernel: &Kernel,
    inputs: Inputs<'_>,
    Request { purpose, direction, weights, .. }: Request<'_>,
    buffers: &'a mut Buffers,
) -> Result<&'a [f64], ExitReason> {
    let Buffers { scratch, outputs, inactive, zeros, .. } = buffers;
    let count = kernel.outputs();
    if outputs.len() < count {
        outputs.resize(count, 0.0);
    }
    let outputs = &mut outputs[..count];
    let is_by_weights = purpose.is_by_weights();
    // The outputs do not depend on the weights.
    if purpose.has_weights() {
        zeros.resize(zeros.len().max(count), 0.0);
    }
    let before: &[f64] = match purpose {
        Purpose::Jacobian => &zeros[..count / inputs.active.len().max(1)],
        _ if is_by_weights => inputs.active,
        _ => &[],
    };
    let inactive = match (before, inputs.inactive, weights, direction) {
        (&[], data, &[], &[]) => data,
        (&[], &[], &[], direction) => direction,
        (before, data, weights, direction) => {
            inactive.clear();
            for part in [before, data, weights, direction] {
                inactive.extend_from_slice(part);
            }
            inactive
        }
    };
    let active = if is_by_weights { &zeros[..count] } else { inputs.active };
    match kernel.run(active, inactive, scratch, outputs) {
        Err(RunError::SideExit | RunError::Shape) => Err(ExitReason::SideExit),
        // A kernel multiplies zero adjoints, which the sweep skips, and its rewrites assume
        // finite numbers, so the tape decides what is NaN or infinite.
        Ok(_) if !all_finite(outputs) => Err(ExitReason::NonFinite),
        Ok(()) => Ok(outputs),
    }
}

/// True if all numbers are finite; without an early exit, so that the loop is vectorised.
pub(super) fn all_finite(numbers: &[f64]) -> bool {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    numbers.iter().fold(true, |all, x| all & (x.to_bits() & EXPONENT != EXPONENT))
}
