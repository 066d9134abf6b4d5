//! The code of a kernel for batches. It is made when batches have used the kernel often enough.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::pipeline::{BatchCode, BatchSource, InvariantInputs};

/// The number of elements that a kernel serves before the code is made: some of those that save the
/// time of making it, because a batch is seldom the only one.
const MIN_ELEMENTS: usize = 1024;

/// The code for batches, and what it is made from.
pub(in crate::runtime) struct BatchCodes {
    source: Option<BatchSource>,
    /// The code for each kind of inputs that all elements have in common.
    codes: [OnceLock<BatchCode>; InvariantInputs::COUNT],
    /// The number of elements that the kernel has served in batches of each kind.
    elements: [AtomicUsize; InvariantInputs::COUNT],
}

impl BatchCodes {
    pub(in crate::runtime) fn new(source: Option<BatchSource>) -> Self {
        BatchCodes { source, codes: Default::default(), elements: Default::default() }
    }

    /// The code for batches with these invariant inputs, if it has been made.
    #[inline]
    pub(super) fn get(&self, invariant: InvariantInputs) -> Option<&BatchCode> {
        self.codes[invariant as usize].get()
    }

    /// Counts elements of a batch. True if the code for these invariant inputs is to be
    /// made: once.
    pub(super) fn count(&self, invariant: InvariantInputs, elements: usize) -> bool {
        let before = self.elements[invariant as usize].fetch_add(elements, Ordering::Relaxed);
        before < MIN_ELEMENTS && before.saturating_add(elements) >= MIN_ELEMENTS
    }

    /// Makes the code for these invariant inputs, if there is such code for the kernel.
    pub(super) fn make(&self, invariant: InvariantInputs) {
        let Some(source) = &self.source else { return };
        // A panic would be a bug in a pass; the kernel itself serves on.
        let made = catch_unwind(AssertUnwindSafe(|| source.compile(invariant)));
        if let Ok(code) = made {
            let _ = self.codes[invariant as usize].set(code);
        }
    }
}
