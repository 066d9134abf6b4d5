//! A buffer of each thread for intermediate matrices, so that derivatives do not allocate.

use core::cell::Cell;

thread_local! {
    static BUFFER: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

/// Calls `run` with `length` zeros.
pub(super) fn with_zeros<R>(length: usize, run: impl FnOnce(&mut [f64]) -> R) -> R {
    // While a thread ends there may be no buffer.
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    buffer.resize(length, 0.0);
    let result = run(&mut buffer);
    let _ = BUFFER.try_with(|place| place.set(buffer));
    result
}
