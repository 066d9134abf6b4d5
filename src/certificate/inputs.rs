//! The inputs of a loop that was cut out of a graph: what they were there, and which
//! numbers they are where graphs are compared.

use super::numbers::{Dual, Float};
use crate::ssa::Number;

/// Where graphs are compared.
#[derive(Clone, Copy)]
pub(super) struct Point {
    /// What makes its numbers differ from those of others.
    pub(super) number: u64,
    /// Near which number they are, and how far from it.
    pub(super) near: f64,
    pub(super) size: f64,
}

impl Point {
    /// What `key` is there.
    fn value(self, key: u64) -> f64 {
        self.near + self.size * (2.0 * self.uniform(key) - 0.8)
    }

    /// How fast `key` changes there, which neither vanishes nor is the same for two.
    fn slope(self, key: u64) -> f64 {
        let slope = 3.0 * self.uniform(!key) - 1.5;
        slope + 0.5f64.copysign(slope)
    }

    /// A number between 0 and 1.
    fn uniform(self, key: u64) -> f64 {
        // The finaliser of a multiplicative generator: neighbours are far apart.
        let mut bits = (key << 8 | self.number).wrapping_add(0x9e37_79b9_7f4a_7c15);
        for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
            bits = (bits ^ (bits >> 30)).wrapping_mul(factor);
        }
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Numbers in a row that were inputs, or are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// What tells its first number from others; those after it are next to it.
    pub(super) key: u64,
    pub(super) count: u64,
    pub(super) is_active: bool,
}

/// The keys of inputs are their numbers; those of nodes and of what loops have kept of
/// their iterations are beyond these.
pub(super) const NODES: u64 = 1 << 33;
pub(super) const HISTORIES: u64 = 1 << 34;

/// All inputs of what was cut out, active ones first.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    rows: Vec<Row>,
    /// The number of the first input of each row.
    firsts: Vec<u64>,
    pub(super) active: usize,
    pub(super) inactive: usize,
}

impl Inputs {
    /// Of rows that have numbers in common the union.
    pub(super) fn of(mut found: Vec<Row>) -> Inputs {
        found.sort_unstable_by_key(|row| (!row.is_active, row.key));
        let mut inputs = Inputs::default();
        for row in found {
            match inputs.rows.last_mut() {
                Some(last)
                    if last.is_active == row.is_active && row.key < last.key + last.count =>
                {
                    last.count = last.count.max(row.key + row.count - last.key);
                }
                _ => inputs.rows.push(row),
            }
        }
        let mut all = 0;
        for row in &inputs.rows {
            inputs.firsts.push(all);
            all += row.count;
            let count = if row.is_active { &mut inputs.active } else { &mut inputs.inactive };
            *count += row.count as usize;
        }
        inputs
    }

    /// The number that the input of this key has.
    pub(super) fn number(&self, key: u64) -> Option<u32> {
        let row = self.rows.iter().position(|row| (row.key..row.key + row.count).contains(&key))?;
        u32::try_from(self.firsts[row] + (key - self.rows[row].key)).ok()
    }

    /// The inputs at `point`.
    pub(super) fn floats(&self, point: Point) -> Vec<Float> {
        self.all(|key, _| Float::constant(point.value(key)))
    }

    /// The inputs at `point`, with a direction in which the active ones change.
    pub(super) fn duals(&self, point: Point) -> Vec<Dual> {
        self.all(|key, is_active| {
            Dual::input(point.value(key), if is_active { point.slope(key) } else { 0.0 })
        })
    }

    fn all<N>(&self, number: impl Fn(u64, bool) -> N) -> Vec<N> {
        let rows = self.rows.iter();
        let keys = rows.flat_map(|row| (row.key..row.key + row.count).map(|k| (k, row.is_active)));
        keys.map(|(key, is_active)| number(key, is_active)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_common_numbers_are_one() {
        let row = |key, count, is_active| Row { key, count, is_active };
        let inputs = Inputs::of(vec![
            row(7, 1, true),
            row(20, 5, false),
            row(2, 3, true),
            row(4, 2, true),
            row(NODES + 3, 1, true),
        ]);
        assert_eq!((inputs.active, inputs.inactive), (6, 5));
        let numbers = [2, 5, 6, 7, NODES + 3, 20, 24].map(|key| inputs.number(key));
        assert_eq!(numbers, [Some(0), Some(3), None, Some(4), Some(5), Some(6), Some(10)]);
        let point = Point { number: 1, near: 0.0, size: 1.0 };
        let all = inputs.duals(point);
        assert!(all[..6].iter().all(|number| number.slope.high.abs() >= 0.5));
        assert!(all[6..].iter().all(|number| number.slope.high == 0.0));
        assert_eq!(inputs.floats(point)[4].value, all[4].value.high);
    }
}
