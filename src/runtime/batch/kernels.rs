//! A kernel for consecutive elements of a batch: two at once where it has code for two lanes and
//! both take the same path, and with the loop-invariant work, that which all elements share, done
//! before.

use core::ops::Range;

use super::elements::BatchRange;
use super::inputs::Batch;
use crate::jit::Kernel;
use crate::runtime::function::Request;
use crate::runtime::installed::Installed;
use crate::runtime::kernel_call::{Buffers, all_finite, run_once, with_buffers};
use crate::runtime::profile::ExitReason;
use crate::trace::Inputs;

/// The inputs of the code for batches.
#[derive(Default)]
pub(in crate::runtime) struct BatchBuffers {
    /// The inactive inputs of one element, and the results of the invariant work after them.
    inactive: Vec<f64>,
    /// The numbers of two elements, interleaved.
    active_of_two: Vec<f64>,
    inactive_of_two: Vec<f64>,
    outputs_of_two: Vec<f64>,
}

/// The kernels that serve the elements.
struct Kernels<'a> {
    scalar: &'a Kernel,
    /// For two elements at once.
    two_lanes: Option<&'a Kernel>,
    /// True if `scalar` has the results of the invariant work as its last inactive inputs.
    has_invariant: bool,
}

/// Runs the kernel for the elements in `range` of a batch, and writes their results, until it has
/// an exit. Returns the number of elements that it has served.
pub(super) fn run_elements(
    installed: &Installed,
    elements: &mut BatchRange<'_, '_>,
    range: Range<usize>,
) -> (usize, Option<ExitReason>) {
    with_buffers(|buffers| {
        let mut kernels = begin(installed, elements.batch, range.start, buffers);
        let (first, mut element, mut rejected) = (range.start, range.start, 0);
        while element < range.end {
            if let Some(kernel) = kernels.two_lanes.filter(|_| element + 1 < range.end) {
                if run_two_lanes(kernel, elements, element, buffers) {
                    element += 2;
                    continue;
                }
                rejected += 1;
                if costs_more(rejected, element - first) {
                    kernels.two_lanes = None;
                }
            }
            if let Err(reason) = run_scalar(&kernels, elements, element, buffers) {
                return (element - first, Some(reason));
            }
            element += 1;
        }
        (range.len(), None)
    })
}

/// Tests whether two lanes cost more than they save, when so many runs of them up to element number
/// `elements` were rejected.
fn costs_more(rejected: usize, elements: usize) -> bool {
    rejected * 8 > elements + 32
}

/// The kernels for a batch from `element` on. Does the invariant work, and writes the inputs that
/// are the same for all elements to the buffers.
fn begin<'a>(
    installed: &'a Installed,
    batch: &Batch<'_>,
    element: usize,
    buffers: &mut Buffers,
) -> Kernels<'a> {
    let Batch { active, inactive, .. } = *batch;
    let mut kernels = Kernels { scalar: &installed.kernel, two_lanes: None, has_invariant: false };
    let Some(code) = installed.batches.get(batch.invariant_inputs()) else { return kernels };
    let mut results = 0;
    buffers.batch.inactive.clear();
    buffers.batch.inactive.extend_from_slice(inactive.of_element(element));
    if let Some((invariant, scalar)) = &code.invariant {
        results = invariant.outputs();
        buffers.batch.inactive.resize(inactive.length + results, 0.0);
        let to = &mut buffers.batch.inactive[inactive.length..];
        let (active, inactive) = (active.of_element(element), inactive.of_element(element));
        if invariant.run(active, inactive, &mut buffers.scratch, to).is_err() {
            return kernels;
        }
        (kernels.scalar, kernels.has_invariant) = (scalar, true);
    }
    kernels.two_lanes = code.two_lanes.as_ref();
    if let Some(kernel) = kernels.two_lanes {
        let batch = &mut buffers.batch;
        batch.outputs_of_two.resize(kernel.outputs(), 0.0);
        batch.active_of_two.resize(2 * active.length, 0.0);
        batch.inactive_of_two.resize(2 * (inactive.length + results), 0.0);
        interleave(
            &mut batch.active_of_two,
            active.of_element(element),
            active.of_element(element),
        );
        interleave(&mut batch.inactive_of_two, &batch.inactive, &batch.inactive);
    }
    kernels
}

/// Runs the scalar kernel for `element`. Nothing is written if it has no result.
fn run_scalar(
    kernels: &Kernels<'_>,
    elements: &mut BatchRange<'_, '_>,
    element: usize,
    buffers: &mut Buffers,
) -> Result<(), ExitReason> {
    let (inputs, request) = (elements.batch.inputs(element), Request::from(elements.purpose));
    if !kernels.has_invariant {
        elements.write(element, run_once(kernels.scalar, inputs, request, buffers)?);
        return Ok(());
    }
    // The run needs the other buffers.
    let mut inactive = core::mem::take(&mut buffers.batch.inactive);
    if !elements.batch.inactive.is_shared {
        inactive[..inputs.inactive.len()].copy_from_slice(inputs.inactive);
    }
    let inputs = Inputs { inactive: &inactive, ..inputs };
    let outputs = run_once(kernels.scalar, inputs, request, buffers);
    let result = outputs.map(|outputs| elements.write(element, outputs));
    buffers.batch.inactive = inactive;
    result
}

/// Runs the kernel of two lanes for `element` and the next one. False if it has no result for one
/// of them; then nothing is written.
fn run_two_lanes(
    kernel: &Kernel,
    elements: &mut BatchRange<'_, '_>,
    element: usize,
    Buffers { scratch, batch: buffers, .. }: &mut Buffers,
) -> bool {
    let Batch { active, inactive, .. } = *elements.batch;
    for (input, to) in
        [(active, &mut buffers.active_of_two), (inactive, &mut buffers.inactive_of_two)]
    {
        if !input.is_shared {
            interleave(to, input.of_element(element), input.of_element(element + 1));
        }
    }
    let outputs = &mut buffers.outputs_of_two;
    let (active, inactive) = (&buffers.active_of_two, &buffers.inactive_of_two);
    let is_served = kernel.run(active, inactive, scratch, outputs).is_ok() && all_finite(outputs);
    if is_served {
        elements.write_two(element, outputs);
    }
    is_served
}

/// Writes the numbers of `first` and `second` to `to`, in turn.
fn interleave(to: &mut [f64], first: &[f64], second: &[f64]) {
    let to = to.as_chunks_mut::<2>().0.iter_mut();
    to.zip(first).zip(second).for_each(|((to, &first), &second)| *to = [first, second]);
}
