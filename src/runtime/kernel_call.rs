//! One call by a kernel: in one run, or in several runs for the products that give a matrix.

use core::cell::Cell;
use std::time::{Duration, Instant};

use super::batch::BatchBuffers;
use super::error::{Error, Kind};
use super::function::Request;
use super::installed::{Dispatch, Installed};
use super::profile::{ExitReason, KernelExit};
use super::specialisation::Specialisation;
use crate::diff::Directions;
use crate::jit::{Kernel, RunError};
use crate::pipeline::{Audit, Purpose, Runs};
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
    /// The matrix of a call that is served in several runs.
    matrix: Vec<f64>,
    pub(super) batch: BatchBuffers,
}

thread_local! {
    /// The buffers of the latest call, for their memory; they are large, so calls exchange a
    /// pointer. A call inside a custom operation finds none and makes its own.
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

thread_local! {
    /// True while the tape repeats a kernel call.
    static IS_REPEATING: Cell<bool> = const { Cell::new(false) };
    /// True after a function inside had no finite result, until a kernel exits.
    static HAS_NESTED_EXIT: Cell<bool> = const { Cell::new(false) };
}

/// The error of a function that a kernel has called and that has no finite result. This is also the
/// reason of the kernel's own exit.
#[cold]
pub(super) fn nested_exit() -> Error {
    HAS_NESTED_EXIT.set(true);
    Kind::Failed.into()
}

/// Calls `run`, which repeats a kernel call on the tape.
pub(super) fn as_repetition<T>(run: impl FnOnce() -> T) -> T {
    /// Has the flag back also if the user's function panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_REPEATING.set(self.0);
        }
    }
    let _before = Before(IS_REPEATING.replace(true));
    run()
}

/// Tests whether the tape may repeat a kernel call. If it repeated those of functions inside
/// functions, too, the time would double with each level.
#[cold]
fn may_repeat(request: Request<'_>) -> bool {
    !request.is_by_kernel && !IS_REPEATING.get()
}

/// Runs the kernel, unless there is none or it backs off. Writes to `results` on success only. A
/// call that is timed or in the `audit` is to be repeated.
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
        // The tape inside a kernel would not be faster.
        _ if request.is_by_kernel => false,
        Dispatch::Kernel => false,
        Dispatch::Timed => true,
        Dispatch::Tape => return None,
    };
    // Calls of other threads may get this number, too.
    let call = installed.latest_call() + 1;
    let is_repeated = (is_timed || audit.includes(call)) && may_repeat(request);
    let mut repetition = is_repeated.then(|| Repetition::new(call, request, results));
    let start = (is_timed && is_repeated).then(Instant::now);
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
            let is_nested = HAS_NESTED_EXIT.replace(false);
            let reason = if is_nested { ExitReason::NonFinite } else { reason };
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
        Purpose::Jacobian | Purpose::Hessian => {
            run_dense(installed, inputs, request.purpose, results, buffers)
        }
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

/// Runs the kernel of a Jacobian or Hessian, which it writes into `results` on success.
fn run_dense(
    installed: &Installed,
    inputs: Inputs<'_>,
    purpose: Purpose,
    results: &mut [f64],
    buffers: &mut Buffers,
) -> Result<f64, ExitReason> {
    if installed.runs == Runs::One {
        results.copy_from_slice(run_once(&installed.kernel, inputs, purpose.into(), buffers)?);
        return Ok(f64::NAN);
    }
    let columns = inputs.active.len();
    let rows = results.len() / columns.max(1);
    let product = installed.product();
    let by_rows = product == Some(Purpose::VectorJacobianProduct);
    let count = if by_rows { rows } else { columns };
    let products = Products {
        count,
        weights: if purpose == Purpose::Jacobian { rows } else { 0 },
        seed: |number, seeds: &mut Vec<f64>| {
            let start = seeds.len();
            seeds.resize(start + count, 0.0);
            seeds[start + number] = 1.0;
        },
    };
    let mut matrix = core::mem::take(&mut buffers.matrix);
    matrix.clear();
    matrix.resize(results.len(), 0.0);
    let result = products.run(installed, inputs, buffers, |number, product| match by_rows {
        true => matrix[number * columns..][..columns].copy_from_slice(product),
        false => {
            let rows = matrix.chunks_exact_mut(columns).zip(product);
            rows.for_each(|(row, &derivative)| row[number] = derivative);
        }
    });
    if result.is_ok() {
        results.copy_from_slice(&matrix);
    }
    buffers.matrix = matrix;
    result.map(|()| f64::NAN)
}

/// Runs the kernel for each product that the pattern needs; writes the sparse matrix on success.
fn run_sparse(
    installed: &Installed,
    inputs: Inputs<'_>,
    request: Request<'_>,
    buffers: &mut Buffers,
) -> Result<f64, ExitReason> {
    // The pattern is loaded after the kernel, so it has all entries of the kernel's paths.
    let sparse = request.sparse.and_then(|sparse| Some((sparse.matrix, sparse.known?)));
    let Some((matrix, known)) = sparse else { return Err(ExitReason::SideExit) };
    let compression = known.compression();
    let Some(compression) = compression.as_deref() else { return Err(ExitReason::SideExit) };
    if Some(known.purpose_of(compression.products)) != installed.product() {
        // The kind of products has changed since the kernel was loaded.
        return Err(ExitReason::SideExit);
    }
    let mut entries = core::mem::take(&mut buffers.matrix);
    entries.clear();
    entries.resize(compression.pattern.len(), 0.0);
    let is_jacobian = request.purpose == Purpose::SparseJacobian;
    let products = Products {
        count: compression.count(),
        weights: if is_jacobian { compression.pattern.rows() } else { 0 },
        seed: |number, seeds: &mut Vec<f64>| compression.seed(number, seeds),
    };
    let result = products.run(installed, inputs, buffers, |number, product| {
        compression.read(number, |place| product[place], &mut entries);
    });
    if result.is_ok() {
        matrix.borrow_mut().assign(&compression.pattern, &entries);
    }
    buffers.matrix = entries;
    result.map(|()| f64::NAN)
}

/// The products that give a matrix.
struct Products<S> {
    count: usize,
    /// The number of weights: that of the outputs if there are several.
    weights: usize,
    /// Appends the direction, or the weights, of a product.
    seed: S,
}

impl<S: Fn(usize, &mut Vec<f64>)> Products<S> {
    /// Runs the kernel for all products, one after the other or in groups, and calls `read` with
    /// the number of each product and its numbers.
    fn run(
        &self,
        installed: &Installed,
        inputs: Inputs<'_>,
        buffers: &mut Buffers,
        mut read: impl FnMut(usize, &[f64]),
    ) -> Result<(), ExitReason> {
        // A sweep by the weights has these for its active inputs, before the others.
        let (product, group, has_seeds, is_by_weights) = match installed.runs {
            Runs::One => return Err(ExitReason::SideExit),
            Runs::EachProduct(product) => (product, 1, true, product.is_by_weights()),
            Runs::Groups(product, directions) => {
                let (group, has_seeds) = match directions {
                    Directions::Axes => (self.count, false),
                    Directions::Inputs(count) => (count, true),
                };
                (product, group, has_seeds, product == Purpose::VectorJacobianProduct)
            }
        };
        let Buffers { scratch, outputs, inactive, zeros, .. } = buffers;
        zeros.resize(zeros.len().max(self.weights), 0.0);
        let weights = &zeros[..self.weights];
        let has_weights = matches!(installed.runs, Runs::Groups(Purpose::JacobianVectorProduct, _));
        inactive.clear();
        let active = match (is_by_weights, has_weights) {
            (true, _) => {
                inactive.extend_from_slice(inputs.active);
                weights
            }
            (false, true) => {
                inactive.extend_from_slice(weights);
                inputs.active
            }
            (false, false) => inputs.active,
        };
        inactive.extend_from_slice(inputs.inactive);
        let before_seeds = inactive.len();
        let seed = match product {
            _ if !has_seeds => 0,
            Purpose::Gradient => 0,
            Purpose::VectorJacobianProduct => self.weights,
            _ => inputs.active.len(),
        };
        // Also without products a run finds out whether the kernel has the path.
        let mut numbers = 0..self.count.min(group);
        loop {
            inactive.truncate(before_seeds);
            if seed > 0 {
                numbers.clone().for_each(|number| (self.seed)(number, inactive));
                inactive.resize(before_seeds + group * seed, 0.0);
            }
            let outputs = run_inputs(&installed.kernel, (active, inactive), scratch, outputs)?;
            let each = outputs.len() / group.max(1);
            let products = outputs.chunks_exact(each.max(1));
            numbers.clone().zip(products).for_each(|(number, product)| read(number, product));
            if numbers.end >= self.count {
                return Ok(());
            }
            numbers = numbers.end..self.count.min(numbers.end + group);
        }
    }
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
    run_inputs(kernel, (active, inactive), scratch, outputs)
}

/// Runs `kernel` at active and inactive inputs; returns its outputs.
#[inline]
fn run_inputs<'a>(
    kernel: &Kernel,
    (active, inactive): (&[f64], &[f64]),
    scratch: &mut Vec<f64>,
    outputs: &'a mut Vec<f64>,
) -> Result<&'a [f64], ExitReason> {
    let count = kernel.outputs();
    if outputs.len() < count {
        outputs.resize(count, 0.0);
    }
    let outputs = &mut outputs[..count];
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
