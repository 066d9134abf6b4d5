//! The range of what a recurrence begins with, adds and is coupled by: what is too large or too
//! small for its form is left to the loop.

use std::collections::BTreeMap;

use super::couplings::{collect_couplings, require_powers};
use super::emit::{Emitter, LARGE};
use super::form::{Base, Coefficient, Forms};
use super::power::{System, offset};
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::ssa::{MODERATE, Node};

/// 2⁻⁸⁹⁶. What is not less keeps its digits if it is multiplied by factors from 2⁻¹²⁶ on.
///
/// Forms multiply what is added, and first values, by factors less 1, or divide them by such,
/// before they multiply them by powers. There they would lose digits to underflow where the
/// loop only makes them larger.
const LEAST: f64 = least_of(1);

/// 2⁻¹⁰⁰⁰. What is added as often as the number of the iteration says is multiplied by that
/// first, which makes it larger. A coefficient by which a number takes part in another one, if no
/// other one meets it, is multiplied by powers of their own, as in the loop.
pub(super) const LEAST_ONCE: f64 = f64::from_bits(0x0170_0000_0000_0000);

/// What each of so many numbers may not be less than, so that their product is not less than
/// [`LEAST`]: a power of two.
pub(super) const fn least_of(numbers: u64) -> f64 {
    f64::from_bits((1023 - 896 / numbers) << 52)
}

/// 2⁻³².
const SMALL: f64 = f64::from_bits(0x3DF0_0000_0000_0000);

/// Of larger products it is not looked at what their factors are.
pub(super) const MOST_FACTORS: u32 = 8;

pub(super) const UNDERFLOWS: &str = "what it begins with, adds or is coupled by is almost zero";

/// Products of powers of nodes that are not to be almost zero, each with a node that is a part
/// of it if there is one, and what it may not be less than.
pub(super) type Products = BTreeMap<Vec<(Node, i32)>, (Option<Node>, f64)>;

impl Forms<'_, '_> {
    /// Stops the graph where first values, what a step adds, or the coefficients by which numbers
    /// take part in each other, are out of the range of the form of `system`. A single number that
    /// is multiplied alone has no such range: it is multiplied by two halves of its power. Powers
    /// of known coefficients are looked at when they are computed.
    ///
    /// # Errors
    ///
    /// That they are known to be out of range.
    pub(super) fn require_range(&mut self, system: &System) -> Result<(), &'static str> {
        require_powers(self.emitter, system, self.times);
        let is_added = |base: &Base| matches!(base, Base::Node(_));
        if system.states.len() == 1 && !system.rows.iter().any(|row| row.keys().any(is_added)) {
            return Ok(());
        }
        let counter = self.counter();
        let emitter = &mut *self.emitter;
        let mut products = Products::new();
        for &first in &system.firsts {
            require_moderate(emitter, first);
            let terms = Terms::of_node(emitter, first);
            collect(emitter, first, &terms, LEAST, &mut products)?;
        }
        collect_couplings(emitter, system, &mut products)?;
        collect_added(emitter, system, counter, &mut products)?;
        require_all(emitter, &products);
        Ok(())
    }

    /// The same for what a step does only, where what `system` begins with is not known.
    ///
    /// # Errors
    ///
    /// As above.
    pub(super) fn require_range_of_steps(&mut self, system: &System) -> Result<(), &'static str> {
        require_powers(self.emitter, system, self.times);
        let (counter, mut products) = (self.counter(), Products::new());
        collect_couplings(self.emitter, system, &mut products)?;
        collect_added(self.emitter, system, counter, &mut products)?;
        require_all(self.emitter, &products);
        Ok(())
    }
}

impl Emitter<'_> {
    /// Stops the graph where `node` is less than `least` in size, but not zero.
    pub(super) fn require_none_below(&mut self, node: Node, least: f64) {
        self.require_product(&[(node, 1)], least);
    }

    /// Stops the graph where the product of these powers is less than `least` in size, unless
    /// a factor is zero. Constants are not looked at.
    pub(super) fn require_product(&mut self, powers: &[(Node, i32)], least: f64) {
        let Some(size) = self.scaled_size(powers, least) else { return };
        let condition = match powers {
            [(_, 1)] => {
                // Of the numbers from 0 to 1 only these two are not larger than their squares.
                let square = self.apply(Op::Mul, &[size, size]);
                self.apply(Op::Ge, &[square, size])
            }
            // The product may be zero where no factor is.
            _ => {
                let (zero, one) = (self.constant(0.0), self.constant(1.0));
                let known = self.apply(Op::Ge, &[size, one]);
                powers.iter().filter(|(_, power)| *power > 0).fold(known, |known, &(node, _)| {
                    let is_zero = self.apply(Op::Eq, &[node, zero]);
                    self.apply(Op::Max, &[known, is_zero])
                })
            }
        };
        self.require(condition);
    }

    /// How many times `least` the product of these powers is in size, if that is not known.
    pub(super) fn scaled_size(&mut self, powers: &[(Node, i32)], least: f64) -> Option<Node> {
        // So that no part of the product underflows where the whole is not that small, nor overflows
        // at once.
        let whole = 1.0 / least;
        let first = if powers.len() > 1 { whole.min(LARGE * LARGE) } else { whole };
        let mut scaled = self.constant(first);
        for &(node, power) in powers {
            for _ in 0..power.unsigned_abs() {
                scaled = match power > 0 {
                    true => self.apply(Op::Mul, &[node, scaled]),
                    false => self.apply(Op::Div, &[scaled, node]),
                };
            }
        }
        if first < whole {
            let rest = self.constant(whole / first);
            scaled = self.apply(Op::Mul, &[scaled, rest]);
        }
        match self.value(scaled) {
            Some(_) => None,
            None => Some(self.apply(Op::Abs, &[scaled])),
        }
    }
}

/// Stops the graph where `node` is not less than [`MODERATE`]: powers that it is multiplied by, and
/// that are less than the smallest normal number, would still matter. What comes out would lose
/// digits above 1e-269.
pub(super) fn require_moderate(emitter: &mut Emitter<'_>, node: Node) {
    // What is not less overflows by that.
    let most = emitter.constant(1.0 / LEAST);
    let scaled = emitter.apply(Op::Mul, &[node, most]);
    emitter.require_finite(scaled);
}

/// Stops the graph where `slope` may have vanished, but is multiplied by more than [`MODERATE`].
pub(super) fn require_factor(emitter: &mut Emitter<'_>, factor: Node, slope: Node) {
    if emitter.value(slope).is_some_and(|slope| slope.abs() >= LEAST_ONCE) {
        return;
    }
    let [most, least] = [MODERATE, LEAST_ONCE].map(|number| emitter.constant(number));
    let [factor, slope] = [factor, slope].map(|number| emitter.apply(Op::Abs, &[number]));
    let is_moderate = emitter.apply(Op::Le, &[factor, most]);
    if emitter.value(is_moderate) != Some(1.0) {
        let is_left = emitter.apply(Op::Ge, &[slope, least]);
        let is_known = emitter.apply(Op::Max, &[is_moderate, is_left]);
        emitter.require(is_known);
    }
}

fn require_all(emitter: &mut Emitter<'_>, products: &Products) {
    for (powers, &(node, least)) in products {
        match node {
            Some(node) => emitter.require_product(&[(node, 1)], least),
            None => emitter.require_product(powers, least),
        }
    }
}

/// Collects what must not be almost zero of what a step of `system` adds to what the loop
/// carries; states from `counter` on are numbers and powers of the iteration.
fn collect_added(
    emitter: &mut Emitter<'_>,
    system: &System,
    counter: usize,
    products: &mut Products,
) -> Result<(), &'static str> {
    for (&state, row) in system.states.iter().zip(&system.rows) {
        if state >= counter {
            continue;
        }
        for (base, coefficient) in row {
            // A multiple of the number of the iteration, or of a power of it.
            if let (&Base::State(other), &Coefficient::Fixed(pair)) = (base, coefficient)
                && other >= counter
            {
                let terms = Terms::of(emitter, pair).unwrap_or_else(|| Terms::node(pair.high));
                collect(emitter, pair.high, &terms, LEAST_ONCE, products)?;
            }
        }
        let Some(added) = offset(emitter, row) else { continue };
        let terms = Terms::of(emitter, added).unwrap_or_else(|| Terms::node(added.high));
        collect(emitter, added.high, &terms, LEAST, products)?;
    }
    Ok(())
}

/// Collects what must not be less than `least` so that neither `node`, which is made of
/// `terms`, nor, if that is a product, a derivative of it loses digits.
fn collect(
    emitter: &Emitter<'_>,
    node: Node,
    terms: &Terms,
    least: f64,
    products: &mut Products,
) -> Result<(), &'static str> {
    let is_moderate = |number: f64| MODERATE.recip() < number.abs() && number.abs() < MODERATE;
    let mut insert = |powers: &[(Node, i32)], own: Option<Node>, number: f64| {
        // A few digits more or less are of no matter.
        let is_small = own.is_none() && number.abs() < SMALL;
        let least = if is_small { least / number.abs() } else { least };
        let known = products.entry(powers.to_vec()).or_insert((own, least));
        *known = (known.0.or(own), known.1.max(least));
    };
    match terms.single() {
        None if terms.is_zero() => {}
        Some(([], number)) => {
            if number.high.abs() < least {
                return Err(UNDERFLOWS);
            }
        }
        Some((powers, number)) if is_moderate(number.high) && terms.degree() <= MOST_FACTORS => {
            // A multiple of a single number has no parts that could lose more digits.
            let is_multiple = matches!(powers, [(_, 1)]) && number.high.abs() <= 1.0;
            insert(powers, is_multiple.then_some(node), number.high);
            for factor in terms.nodes().into_iter().filter(|&node| emitter.may_be_active(node)) {
                // Its terms are products, and as many.
                let slope = terms.slope(factor);
                let slope = slope.single().filter(|(powers, _)| !powers.is_empty());
                slope.iter().for_each(|(powers, number)| insert(powers, None, number.high));
            }
        }
        _ => insert(&[(node, 1)], None, 1.0),
    }
    Ok(())
}
