//! What the fixed point of a system depends on.
//!
//! Where powers have vanished, a system has come to its fixed point ζ, with A·ζ + b = ζ.
//! What ζ does not depend on, as the rate of gradient descent, has derivatives that vanish
//! with the powers; but they are computed as differences of numbers that do not, and what
//! rounding leaves of these may be 10³⁰⁰ times larger. By Cramer's rule each number of ζ
//! is a quotient of two determinants, which are sums of products of what coefficients are
//! made of. So it is known before any call what is to be zero.

use super::emit::Emitter;
use super::sizes::total_size;
use super::slopes::chosen;
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// Sums of more products are not multiplied out.
const MOST_TERMS: usize = 48;

/// The fixed point of a system.
pub(super) struct Fixed {
    /// The determinant of A - 1.
    below: Terms,
    /// The same with -b in the place of one column, for each number.
    above: Vec<Terms>,
}

impl Fixed {
    /// That of the system with these coefficients, and what is added; `None` if it has
    /// none by structure, or is too much to be written out.
    pub(super) fn of(map: &[Vec<Terms>], added: &[Terms]) -> Option<Fixed> {
        let mut less_one = map.to_vec();
        for (number, row) in less_one.iter_mut().enumerate() {
            row[number] = row[number].plus(&Terms::number((-1.0).into()));
        }
        let below = determinant(&less_one).filter(|below| !below.is_zero())?;
        let above = (0..map.len()).map(|number| {
            let mut replaced = less_one.clone();
            for (row, added) in replaced.iter_mut().zip(added) {
                row[number] = added.scaled(-1.0);
            }
            determinant(&replaced)
        });
        Some(Fixed { below, above: above.collect::<Option<_>>()? })
    }

    /// This number of the point, if it is zero or a single product.
    pub(super) fn number(&self, number: usize) -> Option<Terms> {
        match self.is_zero(number) {
            true => Some(Terms::default()),
            false => self.above[number].quotient(&self.below).map(Terms::snapped),
        }
    }

    /// Whether this number of the point is zero.
    pub(super) fn is_zero(&self, number: usize) -> bool {
        self.above[number].is_zero()
    }

    /// Whether this number of the point does not depend on `leaf`.
    pub(super) fn is_apart_from(&self, number: usize, leaf: Node) -> bool {
        let above = &self.above[number];
        let left = product(&above.slope(leaf), &self.below);
        let right = product(above, &self.below.slope(leaf));
        let (Some(left), Some(right)) = (left, right) else { return false };
        left.plus(&right.scaled(-1.0)).is_zero()
    }
}

/// `a · b`, multiplied out.
fn product(a: &Terms, b: &Terms) -> Option<Terms> {
    let mut sum = Terms::default();
    for single in a.singles() {
        sum = sum.plus(&single.times(b)?);
    }
    (sum.count() <= MOST_TERMS).then_some(sum)
}

/// The determinant of a matrix, by its first column.
fn determinant(matrix: &[Vec<Terms>]) -> Option<Terms> {
    if matrix.is_empty() {
        return Some(Terms::number(1.0.into()));
    }
    let mut sum = Terms::default();
    for (number, row) in matrix.iter().enumerate() {
        if row[0].is_zero() {
            continue;
        }
        let others = matrix.iter().enumerate().filter(|&(other, _)| other != number);
        let minor: Vec<Vec<Terms>> = others.map(|(_, row)| row[1..].to_vec()).collect();
        let sign = if number % 2 == 0 { 1.0 } else { -1.0 };
        sum = sum.plus(&product(&row[0], &determinant(&minor)?)?.scaled(sign));
    }
    (sum.count() <= MOST_TERMS).then_some(sum)
}

/// Half an ulp of 1, squared, is less than this, by what errors grow on the way.
const NOTHING: f64 = marked(1.0 / (1u128 << 90) as f64);

/// Whether powers of this size are more than what rounding leaves of sums of powers.
pub(super) fn is_left(emitter: &mut Emitter<'_>, power: Node) -> Node {
    let limit = emitter.constant(NOTHING);
    emitter.apply(Op::Gt, &[power, limit])
}

/// `number`, but zero where it is no more than what rounding leaves of numbers of the size
/// `largest`, unless there `is_more`.
pub(super) fn unless_left(
    emitter: &mut Emitter<'_>,
    is_more: Node,
    number: Pair,
    largest: Node,
) -> Pair {
    let limit = emitter.constant(NOTHING);
    let (size, zero) = (total_size(emitter, &[Some(number)]), emitter.number(0.0, 0.0));
    let limit = emitter.apply(Op::Mul, &[largest, limit]);
    let is_rounding = emitter.apply(Op::Lt, &[size, limit]);
    let exact = chosen(emitter, is_rounding, zero, number);
    chosen(emitter, is_more, number, exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Graph;

    /// m = k·m - r·(w - t), w = w + m
    fn momentum() -> (Fixed, [Node; 3]) {
        let graph = Graph::new(3, 0);
        let nodes = [0, 1, 2].map(|number| graph.input(number));
        let [rate, kept, target] = nodes.map(Terms::node);
        let less = rate.scaled(-1.0);
        let one = Terms::number(1.0.into());
        let added = rate.times(&target).unwrap();
        let map = vec![vec![kept.clone(), less.clone()], vec![kept, one.plus(&less)]];
        (Fixed::of(&map, &[added.clone(), added]).unwrap(), nodes)
    }

    #[test]
    fn a_rate_does_not_move_the_point_and_a_target_does() {
        let (fixed, [rate, kept, target]) = momentum();
        // The speed is zero there, and the place is the target.
        assert!(fixed.is_zero(0) && !fixed.is_zero(1));
        assert!([rate, kept, target].iter().all(|&leaf| fixed.is_apart_from(0, leaf)));
        assert!(fixed.is_apart_from(1, rate) && fixed.is_apart_from(1, kept));
        assert!(!fixed.is_apart_from(1, target));
    }

    #[test]
    fn a_system_without_a_single_point_has_none() {
        let one = Terms::number(1.0.into());
        let map = vec![vec![one.clone(), one.clone()], vec![Terms::default(), one.clone()]];
        assert!(Fixed::of(&map, &[Terms::default(), one]).is_none());
    }
}
