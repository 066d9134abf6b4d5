//! Terms as steps. Guards stop the graph where the order in which products are computed, or
//! what cancels in their sum, would cost digits.

use super::emit::{Emitter, LARGE};
use super::sizes::total_size;
use super::slopes::quotient;
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::Node;

/// So many numbers before a loop are known with twice the digits at most.
const MOST_NUMBERS: usize = 128;
/// Products may be so many times larger than their sum, or than that and 1 where the sum is
/// a factor, or one less 1: of twice the digits more are left than a million steps need.
const MOST_CANCELLED: f64 = (1u64 << 40) as f64;

impl Terms {
    /// Stops the graph where a number that has cancelled is none, and where products that
    /// are written out in another order than they were computed in might lose digits.
    fn require_numbers(&self, emitter: &mut Emitter<'_>) {
        let mut signs = self.lost.clone();
        for powers in self.all.keys() {
            let degree: u32 = powers.iter().map(|&(_, of)| of.unsigned_abs()).sum();
            if degree > 1 {
                signs.extend(powers.iter().map(|&(node, power)| (node, power.signum())));
            }
            // Of two factors neither makes up for what the other makes too small.
            if degree > 2 && powers.len() > 1 {
                powers.iter().for_each(|&(node, _)| emitter.require_none_below(node, 1.0 / LARGE));
            }
        }
        for (node, sign) in signs {
            emitter.require_size(node, sign < 0);
        }
    }

    /// Stops the graph where so much of products that were written out cancels in `sum` that it
    /// would be off, next to itself and `scale`, by what counts in many steps.
    fn require_digits(emitter: &mut Emitter<'_>, products: &[Option<Pair>], sum: Pair, scale: f64) {
        let size = total_size(emitter, products);
        let largest = emitter.constant(-MOST_CANCELLED);
        let left = emitter.apply(Op::Abs, &[sum.high]);
        let more = emitter.apply(Op::MulAdd, &[left, largest, size]);
        // Of no products nothing cancels.
        emitter.require_below(more, MOST_CANCELLED * scale + f64::MIN_POSITIVE);
    }

    /// The pair that this comes to as a factor, or as what one is more than 1; `None` if it is
    /// zero.
    pub(super) fn emitted(&self, emitter: &mut Emitter<'_>) -> Option<Pair> {
        self.emitted_next_to(emitter, 1.0)
    }

    /// The same; what counts is what it is next to itself and `scale`.
    pub(super) fn emitted_next_to(&self, emitter: &mut Emitter<'_>, scale: f64) -> Option<Pair> {
        self.require_numbers(emitter);
        let (mut sum, mut products) = (None, Vec::new());
        for (powers, number) in &self.all {
            let mut product: Option<Pair> = None;
            for &(node, power) in powers {
                if power > 0 {
                    let factor = value(emitter, node);
                    let factor = powered(emitter, factor, power.unsigned_abs());
                    product = Some(match product {
                        Some(before) => emitter.product(before, factor),
                        None => factor,
                    });
                }
            }
            let number = emitter.number(number.high, number.low);
            let mut product = match product {
                Some(before) => emitter.product(before, number),
                None => number,
            };
            for &(node, power) in powers {
                if power < 0 {
                    let normal = emitter.normal(product);
                    let divisor = value(emitter, node);
                    let divisor = powered(emitter, divisor, power.unsigned_abs());
                    product = quotient(emitter, normal, divisor);
                }
            }
            sum = emitter.sum(sum, Some(product));
            products.push(Some(product));
        }
        let sum = sum.map(|sum| emitter.normal(sum));
        if let (Some(sum), true) = (sum, products.len() > 1 && self.degree() > 1) {
            Terms::require_digits(emitter, &products, sum, scale);
        }
        sum
    }
}

/// `of` multiplied by itself, by squaring.
fn powered(emitter: &mut Emitter<'_>, of: Pair, power: u32) -> Pair {
    let mut product = of;
    for digit in (0..power.ilog2()).rev() {
        product = emitter.product(product, product);
        if power >> digit & 1 == 1 {
            product = emitter.product(product, of);
        }
        product = emitter.normal(product);
    }
    product
}

/// What `node` comes to, with twice the digits where it is made of others.
pub(super) fn value(emitter: &mut Emitter<'_>, node: Node) -> Pair {
    if let Some(&known) = emitter.numbers.get(&node) {
        return known;
    }
    // First, so that what is made of many is not looked at in all ways.
    let mut pair = node.into();
    emitter.numbers.insert(node, pair);
    let written = Terms::of_node(emitter, node);
    if emitter.numbers.len() <= MOST_NUMBERS && written != Terms::node(node) {
        pair = written.emitted(emitter).unwrap_or_else(|| emitter.number(0.0, 0.0));
        emitter.numbers.insert(node, pair);
    }
    pair
}
