//! The calls for a range of elements: a kernel serves most of them, many consecutive ones at a
//! time, and single calls serve the others.

use core::ops::Range;
use std::sync::Arc;

use super::inputs::{Batch, BatchResults};
use super::kernels::run_elements;
use crate::pipeline::{InvariantInputs, Purpose};
use crate::runtime::core::{Core, SpecialisationKey, find};
use crate::runtime::error::Error;
use crate::runtime::function::{Request, Scalar};
use crate::runtime::installed::Installed;
use crate::runtime::kernel_call::Repetition;
use crate::runtime::profile::KernelExit;
use crate::runtime::specialisation::Specialisation;
use crate::runtime::workers;
use crate::trace::Var;

/// The largest number of elements that a kernel serves before a newer one may replace it.
const MAX_CONSECUTIVE: usize = 256;

/// A range of the elements of a batch, with the place for their results.
pub(super) struct BatchRange<'a, 'r> {
    pub(super) batch: &'a Batch<'a>,
    pub(super) purpose: Purpose,
    /// The number of the element that has the first ones of the results.
    pub(super) first: usize,
    pub(super) results: BatchResults<'r>,
}

impl BatchRange<'_, '_> {
    fn set_value(&mut self, element: usize, value: f64) {
        self.results.set_value(element - self.first, value);
    }

    /// The value of an element; NaN if there are none.
    fn value(&self, element: usize) -> f64 {
        let values = self.results.values.as_deref();
        values.map_or(f64::NAN, |values| values[element - self.first])
    }

    fn gradient(&mut self, element: usize) -> &mut [f64] {
        self.results.gradient(element - self.first)
    }

    /// Writes the outputs of a kernel: the gradient, and the value after it.
    pub(super) fn write(&mut self, element: usize, outputs: &[f64]) {
        let gradient = self.gradient(element);
        gradient.copy_from_slice(&outputs[..gradient.len()]);
        if let Some(&value) = outputs.last() {
            self.set_value(element, value);
        }
    }

    /// Writes the outputs for `element` and the next one, which are next to each other.
    pub(super) fn write_two(&mut self, element: usize, outputs: &[f64]) {
        let element = element - self.first;
        let (outputs, _) = outputs.as_chunks::<2>();
        let (first, second) = self.results.gradients_of_two(element);
        for ((to_first, to_second), &[first, second]) in first.iter_mut().zip(second).zip(outputs) {
            (*to_first, *to_second) = (first, second);
        }
        if let Some(&[first, second]) = outputs.last() {
            self.results.set_value(element, first);
            self.results.set_value(element + 1, second);
        }
    }
}

impl Core {
    /// Calls `f`, a function of one output, for the elements in `range`. The first of the results
    /// are those of the first one. `fail` is called for each element that has an error.
    pub(super) fn call_batch(
        &self,
        f: impl Fn(&[Var], &[Var]) -> Option<Var>,
        (batch, range): (&Batch<'_>, Range<usize>),
        purpose: Purpose,
        results: BatchResults<'_>,
        mut fail: impl FnMut(usize, Error),
    ) {
        let f = Scalar(f);
        let mut elements = BatchRange { batch, purpose, first: range.start, results };
        let mut next = range.start;
        while next < range.end {
            next += self.call_elements(&f, &mut elements, next..range.end, &mut fail);
        }
    }

    /// Calls for the first elements in `range`, at least for one. Returns their number.
    fn call_elements<F: Fn(&[Var], &[Var]) -> Option<Var>>(
        &self,
        f: &Scalar<F>,
        elements: &mut BatchRange<'_, '_>,
        range: Range<usize>,
        fail: &mut impl FnMut(usize, Error),
    ) -> usize {
        let (first, request) = (range.start, Request::from(elements.purpose));
        let key = SpecialisationKey { inputs: elements.batch.inputs(first), outputs: None };
        let specialisations = self.load_specialisations();
        let specialisation = find(&specialisations, key);
        let (served, exit) = match specialisation {
            Some(specialisation) => self.serve_elements(f, specialisation, elements, range, fail),
            None => (0, None),
        };
        if served > 0 && exit.is_none() {
            return served;
        }
        let element = first + served;
        let key = SpecialisationKey { inputs: elements.batch.inputs(element), outputs: None };
        let result = match exit {
            Some(_) => self.call_tape(f, key, request, exit, elements.gradient(element)),
            None => self.call_scalar(f, key, request, elements.gradient(element)),
        };
        match result {
            Ok(value) => elements.set_value(element, value),
            Err(error) => fail(element, error),
        }
        served + 1
    }

    /// Has the kernel serve the first elements in `range`, if calls try it without taking its time.
    /// Returns the number of elements that it has served, and its exit in the one after them.
    fn serve_elements<F: Fn(&[Var], &[Var]) -> Option<Var>>(
        &self,
        f: &Scalar<F>,
        specialisation: &Specialisation,
        elements: &mut BatchRange<'_, '_>,
        range: Range<usize>,
        fail: &mut impl FnMut(usize, Error),
    ) -> (usize, Option<KernelExit>) {
        let (installed, audit) = (specialisation.kernel(elements.purpose), self.options().audit);
        let Some(installed) = installed.as_ref().filter(|one| one.is_in_use()) else {
            return (0, None);
        };
        // An audited call is the last one of those that the kernel serves at once. Calls of other
        // threads may get the same numbers.
        let before = installed.latest_call();
        let most = (audit.next_after(before) - before).min(MAX_CONSECUTIVE as u64) as usize;
        let range = range.start..range.end.min(range.start + most);
        let (call, last) = (before + range.len() as u64, range.end - 1);
        let repetition = audit.includes(call).then(|| {
            let repetition =
                Repetition::new(call, elements.purpose.into(), elements.gradient(last));
            (repetition, elements.value(last))
        });
        let (served, exit) = run_elements(installed, elements, range.clone());
        installed.served(served);
        let invariant = elements.batch.invariant_inputs();
        if installed.batches.count(invariant, served) {
            self.make_batch_code(installed, invariant);
        }
        if let Some(repetition) = repetition.filter(|_| served == range.len()) {
            self.audit_element(f, (specialisation, repetition), elements, last, fail);
        }
        let exit = exit.map(|reason| {
            installed.exit();
            let exit = KernelExit { graph_version: installed.graph_version, reason };
            specialisation.fell_back(exit);
            exit
        });
        (served, exit)
    }

    /// Has the kernel's code for batches made.
    #[cold]
    fn make_batch_code(&self, installed: &Arc<Installed>, invariant: InvariantInputs) {
        if !self.options().background {
            installed.batches.make(invariant);
            return;
        }
        let installed = Arc::clone(installed);
        // Without a thread the kernel serves on as it is.
        let _ = workers::run(move || installed.batches.make(invariant));
    }

    /// Repeats the call for `element`, whose value was `before`, on the tape.
    fn audit_element<F: Fn(&[Var], &[Var]) -> Option<Var>>(
        &self,
        f: &Scalar<F>,
        (specialisation, (repetition, before)): (&Specialisation, (Box<Repetition>, f64)),
        elements: &mut BatchRange<'_, '_>,
        element: usize,
        fail: &mut impl FnMut(usize, Error),
    ) {
        let (inputs, request) = (elements.batch.inputs(element), Request::from(elements.purpose));
        let served = (specialisation, elements.value(element), repetition);
        match self.repeat(f, served, inputs, request, elements.gradient(element)) {
            Ok(value) => elements.set_value(element, value),
            Err(error) => {
                elements.set_value(element, before);
                fail(element, error);
            }
        }
    }
}
