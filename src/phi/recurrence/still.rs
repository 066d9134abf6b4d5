//! Where numbers that a loop carries stay where they are.
//!
//! Near a fixed point a step adds the difference of numbers that are almost equal. What pairs leave
//! of it in the end is rounding, and a loop in which powers grow would make that as large as
//! it likes. A program that has come so near is at rest: of numbers with half the digits
//! nothing is left at all.

use super::emit::Emitter;
use super::products::{Factors, sum_of_products};
use super::sizes::size_of_products;
use super::slopes::chosen;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, marked};

/// Pairs have 106 digits, of which sums of a few products lose some: terms that are so many times
/// larger than their sum leave rounding.
const LARGER: f64 = marked((1u128 << 96) as f64);

/// How many times larger the terms are than what a step adds to each number.
#[derive(Default)]
pub(super) struct Still {
    ratios: Vec<Node>,
}

impl Still {
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
        self.ratios.push(emitter.apply(Op::Div, &[size, sum]));
    }

    /// What it is to be if all numbers stay, or else.
    pub(super) fn either(&self, emitter: &mut Emitter<'_>, stays: Pair, moves: Pair) -> Pair {
        if self.ratios.is_empty() {
            return moves;
        }
        let larger = emitter.constant(LARGER);
        self.ratios.iter().fold(stays, |stays, &ratio| {
            // What is NaN moves.
            let is_still = emitter.apply(Op::Gt, &[ratio, larger]);
            chosen(emitter, is_still, stays, moves)
        })
    }
}
