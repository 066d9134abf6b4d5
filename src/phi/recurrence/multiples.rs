//! One number of an affine recurrence whose coefficients are known, as a linear combination of what
//! all of them begin with and of what is added in the steps.

use super::doubt::checked;
use super::emit::Emitter;
use super::products::Row;
use super::sizes::total_size;
use super::slopes::{Digits, Totals};
use super::toward::{Taken, Toward};
use crate::op::Op;
use crate::phi::double::Double;
use crate::phi::pair::Pairs;
use crate::ssa::Node;

/// An entry is to be so many times what it is off by: then the 54 digits are true that a
/// rounded number has, and two bits more.
pub(super) const KNOWN: f64 = (1u64 << 32) as f64;

/// A number as a sum of multiples of columns.
pub(super) struct Multiples<'a> {
    pub(super) number: usize,
    /// Each so many times.
    pub(super) entries: &'a [Option<Double>],
    /// Those are off by so much.
    pub(super) off: &'a [f64],
}

impl Multiples<'_> {
    /// Whether powers are no larger than 1, and no number is off by anything that counts.
    pub(super) fn is_bounded(&self, states: usize) -> bool {
        let is_small = |entry: &Option<Double>| entry.is_none_or(|entry| entry.high.abs() <= 1.0);
        self.entries[..states].iter().all(is_small) && self.off.iter().all(|&off| off == 0.0)
    }

    /// The sum; no number if too few digits are left. Its derivatives are told where what columns
    /// were computed of is the same, so that some may cancel, and where it comes to a `level`.
    pub(super) fn added(
        &self,
        emitter: &mut Emitter<'_>,
        columns: &[Node],
        digits: Digits,
        level: Option<&Level>,
    ) -> Node {
        let before = emitter.items.len();
        let (mut sum, mut sizes, mut totals) = (None, Row::new(), Totals::default());
        let mut powers = Row::new();
        for (column, &node) in columns.iter().enumerate() {
            let entry = self.entries[column];
            let factor = entry.map(|entry| emitter.number(entry.high, entry.low));
            powers.push(factor);
            let Some(factor) = factor else { continue };
            let product = emitter.product(factor, node.into());
            sum = emitter.sum(sum, Some(product));
            let (off, mut least) = (self.off[column], None);
            if off != 0.0 {
                // If it overflows there are too few digits, which is no reason against the form.
                let overflows = emitter.overflows;
                let part = emitter.constant(off * KNOWN);
                sizes.push(Some(emitter.apply(Op::Mul, &[node, part]).into()));
                emitter.overflows = overflows;
                least = Some(part);
            }
            let is_told_beside = level.is_some_and(|level| level.column == column);
            if emitter.may_be_active(node) && !is_told_beside {
                totals.add_sum(emitter, node, Some(factor), [least]);
            }
        }
        let Some(mut sum) = sum else { return emitter.constant(0.0) };
        if !sizes.is_empty() {
            let least = total_size(emitter, &sizes);
            sum = checked(emitter, sum, least);
        }
        let mut node = emitter.rounded(sum);
        if digits == Digits::InPairs || level.is_some() || totals.meet(emitter) {
            let (number, row) = (self.number, &powers[..]);
            let taken = level.map(|level| Taken { toward: &level.toward, number, row });
            node = totals.told(emitter, node, taken, digits);
            emitter.derived += emitter.items.len() - before;
        }
        node
    }
}

/// What numbers come to where powers vanish.
pub(super) struct Level {
    /// The column of the node that it is.
    pub(super) column: usize,
    pub(super) toward: Toward,
}
