//! Tables: arrays of constants that graphs share.

use core::hash::{Hash, Hasher};
use core::ops::Deref;
use std::sync::{Arc, OnceLock};

/// Constants, by their bits. Clones share the numbers, their hash and their bounds, so comparing
/// and hashing a table takes constant time.
///
/// # Examples
///
/// ```
/// use phigrad::internals::ssa::Table;
///
/// let table: Table = [1.5f64, 2.5].map(f64::to_bits).into_iter().collect();
/// assert_eq!((table.len(), f64::from_bits(table[1])), (2, 2.5));
/// assert_eq!(table, table.clone());
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    numbers: Arc<[u64]>,
    /// The hash of the numbers.
    hash: u64,
    is_uniform: bool,
    bounds: Arc<OnceLock<Bounds>>,
}

/// Bounds and properties of all numbers of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The range of all numbers but NaN.
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) has_nan: bool,
    pub(crate) has_zero: bool,
    /// True if all are integers or infinite.
    pub(crate) are_integers: bool,
}

impl Table {
    /// Tests whether all numbers are the same.
    pub(crate) fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    /// The bounds, computed on the first call.
    pub(crate) fn bounds(&self) -> Bounds {
        *self.bounds.get_or_init(|| {
            let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
            let (has_nan, has_zero, are_integers) = (false, false, true);
            let mut all = Bounds { low, high, has_nan, has_zero, are_integers };
            for &bits in self.numbers.iter() {
                let x = f64::from_bits(bits);
                (all.low, all.high) = (all.low.min(x), all.high.max(x));
                all.has_nan |= x.is_nan();
                all.has_zero |= x == 0.0;
                all.are_integers = all.are_integers && x.trunc() == x;
            }
            all
        })
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
        Table { numbers, hash, is_uniform, bounds: Arc::default() }
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
