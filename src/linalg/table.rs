//! The operations of all shapes: a call of the same shape is a call of the same operation, whoever
//! makes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::custom::{CustomOperation, Operation};

/// The operations of one kind.
pub(super) struct Table<T>(Mutex<BTreeMap<T, CustomOperation<T>>>);

impl<T: Operation + Copy + Ord> Table<T> {
    pub(super) const fn new() -> Self {
        Table(Mutex::new(BTreeMap::new()))
    }

    /// `operation` as all calls name it.
    pub(super) fn get(&self, operation: T) -> CustomOperation<T> {
        let mut operations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        operations.entry(operation).or_insert_with(|| CustomOperation::new(operation)).clone()
    }
}
