//! The code of a kernel for batches. It is made when batches have used the kernel often enough.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::pipeline::{BatchCode, BatchSource, Sharing};

/// The number of elements that a kernel serves before the code is made: some of those that save the
/// time of making it, because a batch is seldom the only one.
const ELEMENTS_BEFORE: usize = 1024;

/// The code for batches, and what it is made from.
pub(super) struct BatchCodes {
    source: Option<BatchSource>,
    /// The code for each sharing.
    codes: [OnceLock<BatchCode>; Sharing::COUNT],
    /// The number of elements that the kernel has served in batches of each sharing.
    elements: [AtomicUsize; Sharing::COUNT],
}

impl BatchCodes {
    pub(super) fn new(source: Option<BatchSource>) -> Self {
        BatchCodes { source, codes: Default::default(), elements: Default::default() }
    }

    /// The code for batches with this sharing, if it has been made.
    #[inline]
    pub(super) fn get(&self, sharing: Sharing) -> Option<&BatchCode> {
        self.codes[sharing as usize].get()
    }

    /// Counts elements of a batch. True if the code for this sharing is to be made: once.
    pub(super) fn count(&self, sharing: Sharing, elements: usize) -> bool {
        let before = self.elements[sharing as usize].fetch_add(elements, Ordering::Relaxed);
        before < ELEMENTS_BEFORE && before.saturating_add(elements) >= ELEMENTS_BEFORE
    }

    /// Makes the code for this sharing, if there is such code for the kernel.
    pub(super) fn make(&self, sharing: Sharing) {
        let Some(source) = &self.source else { return };
        // A panic would be a bug in a pass; the kernel itself serves on.
        let made = catch_unwind(AssertUnwindSafe(|| source.compile(sharing)));
        if let Ok(code) = made {
            let _ = self.codes[sharing as usize].set(code);
        }
    }
}
