//! Numbers that a loop around, or one before, has brought so near a fixed point that a step adds
//! nothing but rounding.
//!
//! There a step adds the difference of numbers that are almost equal. What pairs leave
//! of it in the end is rounding, and powers that grow would make that as large as they
//! like. A program that has come so near is at rest: of numbers with half the digits
//! nothing is left at all. What comes from elsewhere is so near only if it begins there, and then
//! what is left is the rounding of coefficients: three times a third is not quite 1.
//!
//! A single number then stays where it is. Of several some may be on their way to zero, with
//! all digits, while no others move that hide it; where powers grow, these are the loop's in any
//! case (`doubt`).

use super::emit::Emitter;
use super::geometric::Whether;
use super::products::{Factors, sum_of_products};
use super::sizes::size_of_products;
use super::slopes::chosen;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// Pairs have 106 bits, of which sums of a few products lose some: terms that are so many times
/// larger than their sum leave rounding.
const LARGER: f64 = marked((1u128 << 96) as f64);

/// How many times larger the terms are than what a step adds to each number.
#[derive(Clone, Default)]
pub(super) struct Still {
    ratios: Vec<Node>,
}

impl Still {
    /// Whether nothing was added, so that nothing is known to stay.
    pub(super) fn is_empty(&self) -> bool {
        self.ratios.is_empty()
    }

    /// Lets a step add the sum of `products` and `addend` to a number.
    pub(super) fn add(
        &mut self,
        emitter: &mut Emitter<'_>,
        products: &[Factors],
        addend: Option<Pair>,
    ) {
        let sum = sum_of_products(emitter, products.iter().copied(), addend);
        let (Some(sum), Some(size)) = (sum, size_of_products(emitter, products, addend)) else {
            return;
        };
        let sum = emitter.apply(Op::Abs, &[sum.high]);
        // Where all terms are zero the number stays, too.
        let least = emitter.constant(f64::MIN_POSITIVE);
        let size = emitter.apply(Op::Add, &[size, least]);
        self.ratios.push(emitter.apply(Op::Div, &[size, sum]));
    }

    /// `moves`, but `stays` where all numbers stay.
    pub(super) fn either(&self, emitter: &mut Emitter<'_>, stays: Pair, moves: Pair) -> Pair {
        if self.is_empty() {
            return moves;
        }
        let larger = emitter.constant(LARGER);
        self.ratios.iter().fold(stays, |stays, &ratio| {
            // What is NaN moves.
            let is_still = emitter.apply(Op::Gt, &[ratio, larger]);
            chosen(emitter, is_still, stays, moves)
        })
    }

    /// `moves`, but `rests` where all stay, and not because nothing at all is added: then the
    /// numbers begin where they stay, but for what is rounded of coefficients.
    pub(super) fn unless_rounding(
        &self,
        emitter: &mut Emitter<'_>,
        rests: Pair,
        moves: Pair,
    ) -> Pair {
        let Some(&first) = self.ratios.first() else { return moves };
        let least = self.ratios[1..]
            .iter()
            .fold(first, |least, &ratio| emitter.apply(Op::Min, &[least, ratio]));
        // Where nothing at all is added each ratio is infinite.
        let largest = emitter.constant(f64::MAX);
        let is_exact = emitter.apply(Op::Gt, &[least, largest]);
        let stays = chosen(emitter, is_exact, moves, rests);
        self.either(emitter, stays, moves)
    }

    /// `moves`, but zero where all numbers stay.
    pub(super) fn unless(&self, emitter: &mut Emitter<'_>, moves: Option<Node>) -> Option<Node> {
        let zero = emitter.number(0.0, 0.0);
        moves.map(|moves| self.either(emitter, zero, moves.into()).high)
    }
}

/// `change`, the sum of `terms`, but zero where that is rounding.
pub(super) fn unless_still(emitter: &mut Emitter<'_>, change: Pair, terms: &[Factors]) -> Pair {
    let (mut still, zero) = (Still::default(), emitter.number(0.0, 0.0));
    still.add(emitter, terms, None);
    still.either(emitter, zero, change)
}

/// The same of a number that no loop has brought there: no number if powers are large.
pub(super) fn unless_rounded(
    emitter: &mut Emitter<'_>,
    change: Pair,
    terms: &[Factors],
    is_large: Whether,
) -> Pair {
    if let Whether::Known(false) = is_large {
        return change;
    }
    let (mut still, none) = (Still::default(), emitter.no_number());
    still.add(emitter, terms, None);
    let checked = still.unless_rounding(emitter, none.into(), change);
    is_large.either(emitter, checked, change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{End, Graph, Outcome, interpret};

    #[test]
    fn what_is_less_than_the_digits_of_pairs_does_not_move_a_number() {
        // A step adds x - (y + z).
        let mut graph = Graph::new(3, 0);
        let [x, y, z] = [0, 1, 2].map(|number| graph.input(number));
        let mut emitter = Emitter::new(&mut graph, None);
        let (one, less) = (emitter.number(1.0, 0.0), emitter.number(-1.0, 0.0));
        let other = Pair { high: y, low: Some(z) };
        let mut still = Still::default();
        assert!(still.is_empty());
        still.add(&mut emitter, &[(Some(x.into()), Some(one)), (Some(other), Some(less))], None);
        let (stays, moves) = (emitter.number(7.0, 0.0), emitter.number(3.0, 0.0));
        let either = still.either(&mut emitter, stays, moves);
        let least = still.unless(&mut emitter, Some(x));
        let outputs = [either.high, least.unwrap()];
        let items = emitter.items;
        let root = graph.root();
        graph.blocks[root].items = items;
        graph.blocks[root].end = End::Return(outputs.into_iter().collect());
        let come = |inputs: [f64; 3]| interpret(&graph, &inputs);
        for stays in [[1.0, 1.0, 0.0], [-5.0, -5.0, 4e-29], [0.0, 0.0, 0.0]] {
            assert_eq!(come(stays), Outcome::Values(vec![7.0, 0.0]), "{stays:?}");
        }
        for moves in [[1.0, 1.0, 1e-28], [1.0, 1.5, 0.0], [0.0, 1e-300, 0.0]] {
            assert_eq!(come(moves), Outcome::Values(vec![3.0, moves[0]]), "{moves:?}");
        }
        let Outcome::Values(values) = come([f64::NAN, 1.0, 0.0]) else { panic!("no values") };
        assert_eq!(values[0], 3.0);
    }
}
