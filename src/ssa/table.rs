//! Tables: many numbers that graphs share.

use core::hash::{Hash, Hasher};
use core::ops::Deref;
use std::sync::Arc;

/// Numbers in a row, by their bits. Clones share them, and to compare or hash a table
/// does not look at them again.
///
/// # Examples
///
/// ```
/// use phigrad::ssa::Table;
///
/// let table: Table = [1.5f64, 2.5].map(f64::to_bits).into_iter().collect();
/// assert_eq!((table.len(), f64::from_bits(table[1])), (2, 2.5));
/// assert_eq!(table, table.clone());
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    numbers: Arc<[u64]>,
    /// Of the numbers.
    hash: u64,
    is_uniform: bool,
}

impl Table {
    /// Whether all numbers are the same.
    pub(crate) fn is_uniform(&self) -> bool {
        self.is_uniform
    }
}

impl From<Arc<[u64]>> for Table {
    fn from(numbers: Arc<[u64]>) -> Self {
        /// An odd number near 2⁶⁴ divided by the golden ratio.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = |hash: u64, &number: &u64| {
            (hash.rotate_left(5) ^ number).wrapping_mul(SPREAD).rotate_left(23)
        };
        let hash = numbers.iter().fold(numbers.len() as u64, mixed);
        let is_uniform = numbers.windows(2).all(|pair| pair[0] == pair[1]);
        Table { numbers, hash, is_uniform }
    }
}

impl From<Vec<u64>> for Table {
    fn from(numbers: Vec<u64>) -> Self {
        Arc::<[u64]>::from(numbers).into()
    }
}

impl FromIterator<u64> for Table {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        numbers.into_iter().collect::<Arc<[u64]>>().into()
    }
}

impl Deref for Table {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.numbers
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.numbers, &other.numbers)
            || (self.hash == other.hash && self.numbers == other.numbers)
    }
}

impl Eq for Table {}

impl Hash for Table {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}
