//! A kernel for elements of a batch one after the other: two at once where it has code for that and
//! they take the same path, and with the work that all elements share done before.

use core::ops::Range;

use super::batch::Batch;
use super::function::Request;
use super::installed::Installed;
use super::kernel_batch::Part;
use super::kernel_call::{Buffers, all_finite, run_once, with_buffers};
use super::profile::ExitReason;
use crate::jit::Kernel;
use crate::trace::Inputs;

/// The inputs of the code for batches.
#[derive(Default)]
pub(super) struct BatchBuffers {
    /// The inactive inputs of one element, and the results of the shared work after them.
    inactive: Vec<f64>,
    /// The numbers of two elements, next to each other.
    active_of_pair: Vec<f64>,
    inactive_of_pair: Vec<f64>,
    outputs_of_pair: Vec<f64>,
}

/// The kernels that serve the elements.
struct Kernels<'a> {
    single: &'a Kernel,
    /// For two elements at once.
    pair: Option<&'a Kernel>,
    /// True if `single` has the results of shared work as its last inactive inputs.
    has_shared: bool,
}

/// Runs the kernel for the elements in `range` of a batch, and writes their results, until it has an
/// exit. Returns the number of elements that it has served.
pub(super) fn run_rows(
    installed: &Installed,
    part: &mut Part<'_, '_>,
    range: Range<usize>,
) -> (usize, Option<ExitReason>) {
    with_buffers(|buffers| {
        let mut kernels = begin(installed, part.batch, range.start, buffers);
        let (first, mut element, mut rejected) = (range.start, range.start, 0);
        while element < range.end {
            if let Some(pair) = kernels.pair.filter(|_| element + 1 < range.end) {
                if run_pair(pair, part, element, buffers) {
                    element += 2;
                    continue;
                }
                rejected += 1;
                if too_many(rejected, element - first) {
                    kernels.pair = None;
                }
            }
            if let Err(reason) = run_single(&kernels, part, element, buffers) {
                return (element - first, Some(reason));
            }
            element += 1;
        }
        (range.len(), None)
    })
}

/// Tests whether pairs cost more than they save, when of those up to element number `elements` so
/// many were rejected.
fn too_many(rejected: usize, elements: usize) -> bool {
    rejected * 8 > elements + 32
}

/// The kernels for a batch from `element` on. Does the shared work, and writes the inputs that all
/// elements share to the buffers.
fn begin<'a>(
    installed: &'a Installed,
    batch: &Batch<'_>,
    element: usize,
    buffers: &mut Buffers,
) -> Kernels<'a> {
    let Batch { active, inactive, .. } = *batch;
    let mut kernels = Kernels { single: &installed.kernel, pair: None, has_shared: false };
    let Some(code) = installed.batches.get(batch.sharing()) else { return kernels };
    let mut results = 0;
    buffers.batch.inactive.clear();
    buffers.batch.inactive.extend_from_slice(inactive.row(element));
    if let Some((shared, single)) = &code.shared {
        results = shared.outputs();
        buffers.batch.inactive.resize(inactive.length + results, 0.0);
        let to = &mut buffers.batch.inactive[inactive.length..];
        let rows = (active.row(element), inactive.row(element));
        if shared.run(rows.0, rows.1, &mut buffers.scratch, to).is_err() {
            return kernels;
        }
        (kernels.single, kernels.has_shared) = (single, true);
    }
    kernels.pair = code.pair.as_ref();
    if let Some(pair) = kernels.pair {
        let batch = &mut buffers.batch;
        batch.outputs_of_pair.resize(pair.outputs(), 0.0);
        batch.active_of_pair.resize(2 * active.length, 0.0);
        batch.inactive_of_pair.resize(2 * (inactive.length + results), 0.0);
        interleave(&mut batch.active_of_pair, active.row(element), active.row(element));
        interleave(&mut batch.inactive_of_pair, &batch.inactive, &batch.inactive);
    }
    kernels
}

/// Runs the kernel for `element`. Nothing is written if it has no result.
fn run_single(
    kernels: &Kernels<'_>,
    part: &mut Part<'_, '_>,
    element: usize,
    buffers: &mut Buffers,
) -> Result<(), ExitReason> {
    let (inputs, request) = (part.batch.inputs(element), Request::from(part.purpose));
    if !kernels.has_shared {
        part.write(element, run_once(kernels.single, inputs, request, buffers)?);
        return Ok(());
    }
    // The run needs the other buffers.
    let mut inactive = core::mem::take(&mut buffers.batch.inactive);
    if !part.batch.inactive.is_shared {
        inactive[..inputs.inactive.len()].copy_from_slice(inputs.inactive);
    }
    let inputs = Inputs { inactive: &inactive, ..inputs };
    let outputs = run_once(kernels.single, inputs, request, buffers);
    let result = outputs.map(|outputs| part.write(element, outputs));
    buffers.batch.inactive = inactive;
    result
}

/// Runs the code for `element` and the next one. False if it has no result for one of them; then
/// nothing is written.
fn run_pair(
    kernel: &Kernel,
    part: &mut Part<'_, '_>,
    element: usize,
    Buffers { scratch, batch: buffers, .. }: &mut Buffers,
) -> bool {
    let Batch { active, inactive, .. } = *part.batch;
    for (input, to) in
        [(active, &mut buffers.active_of_pair), (inactive, &mut buffers.inactive_of_pair)]
    {
        if !input.is_shared {
            interleave(to, input.row(element), input.row(element + 1));
        }
    }
    let outputs = &mut buffers.outputs_of_pair;
    let (active, inactive) = (&buffers.active_of_pair, &buffers.inactive_of_pair);
    let is_served = kernel.run(active, inactive, scratch, outputs).is_ok() && all_finite(outputs);
    if is_served {
        part.write_pair(element, outputs);
    }
    is_served
}

/// Writes the numbers of `first` and `second` to `to`, in turn.
fn interleave(to: &mut [f64], first: &[f64], second: &[f64]) {
    let pairs = to.as_chunks_mut::<2>().0.iter_mut();
    pairs.zip(first).zip(second).for_each(|((to, &first), &second)| *to = [first, second]);
}
