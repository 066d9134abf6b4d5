//! The range of what a recurrence begins with and adds: what is too large or too small for its
//! form is left to the loop.

use std::collections::BTreeMap;

use super::emit::Emitter;
use super::form::{Base, Forms};
use super::power::{System, offset};
use super::terms::Terms;
use crate::op::Op;
use crate::phi::pair::Pairs;
use crate::ssa::Node;

/// 2¹²⁸. With larger first values, powers that are less than the smallest normal number
/// would still matter: what comes out would lose digits above 1e-269.
const MODERATE: f64 = f64::from_bits(0x47F0_0000_0000_0000);

/// 2⁻⁸⁹⁶. What is not less keeps its digits if it is multiplied by factors from 2⁻¹²⁶ on.
///
/// Forms multiply what is added, and first values, by factors less 1, or divide them by such,
/// before they multiply them by powers. There they would lose digits to underflow where the
/// loop only makes them larger.
const LEAST: f64 = f64::from_bits(0x07F0_0000_0000_0000);

/// Of larger products it is not looked at what their factors are.
const MOST_FACTORS: u32 = 8;

const UNDERFLOWS: &str = "what it begins with or adds is almost zero";

/// Products of powers of nodes that are not to be almost zero, with a node that is a part
/// of them if there is one.
type Products = BTreeMap<Vec<(Node, i32)>, Option<Node>>;

impl Forms<'_, '_> {
    /// Stops the graph where first values, or what a step adds, are out of the range of the
    /// form of `system`. A single number that is multiplied alone has no such range: it is
    /// multiplied by two halves of its power. Powers of known coefficients are looked at when
    /// they are computed.
    ///
    /// # Errors
    ///
    /// That they are known to be out of range.
    pub(super) fn require_range(&mut self, system: &System) -> Result<(), &'static str> {
        let is_added = |base: &Base| matches!(base, Base::Node(_));
        if system.states.len() == 1 && !system.rows.iter().any(|row| row.keys().any(is_added)) {
            return Ok(());
        }
        let emitter = &mut *self.emitter;
        // What is not less than 2¹²⁸ overflows by that.
        let most = emitter.constant(1.0 / LEAST);
        let mut products = Products::new();
        for &first in &system.firsts {
            let scaled = emitter.apply(Op::Mul, &[first, most]);
            emitter.require_finite(scaled);
            let terms = Terms::of_node(emitter, first);
            collect(emitter, first, &terms, &mut products)?;
        }
        collect_added(emitter, system, &mut products)?;
        require_all(emitter, products);
        Ok(())
    }

    /// The same for what a step adds only, where what `system` begins with is not known.
    ///
    /// # Errors
    ///
    /// As above.
    pub(super) fn require_range_of_added(&mut self, system: &System) -> Result<(), &'static str> {
        let mut products = Products::new();
        collect_added(self.emitter, system, &mut products)?;
        require_all(self.emitter, products);
        Ok(())
    }
}

fn require_all(emitter: &mut Emitter<'_>, products: Products) {
    for (powers, node) in products {
        let node = node.unwrap_or_else(|| product_of(emitter, &powers));
        emitter.require_none_below(node, LEAST);
    }
}

/// Collects what must not be almost zero of what a step of `system` adds.
fn collect_added(
    emitter: &mut Emitter<'_>,
    system: &System,
    products: &mut Products,
) -> Result<(), &'static str> {
    for row in &system.rows {
        let Some(added) = offset(emitter, row) else { continue };
        let terms = Terms::of(emitter, added).unwrap_or_else(|| Terms::node(added.high));
        collect(emitter, added.high, &terms, products)?;
    }
    Ok(())
}

/// Collects what must not be almost zero so that neither `node`, which is made of `terms`, nor,
/// if that is a product, a derivative of it loses digits.
fn collect(
    emitter: &Emitter<'_>,
    node: Node,
    terms: &Terms,
    products: &mut Products,
) -> Result<(), &'static str> {
    let is_moderate = |number: f64| MODERATE.recip() < number.abs() && number.abs() < MODERATE;
    let mut insert = |powers: &[(Node, i32)], node: Option<Node>| {
        let known = products.entry(powers.to_vec()).or_default();
        *known = known.or(node);
    };
    match terms.single() {
        None if terms.is_zero() => {}
        Some(([], number)) => {
            if number.high.abs() < LEAST {
                return Err(UNDERFLOWS);
            }
        }
        Some((powers, number)) if is_moderate(number.high) && terms.degree() <= MOST_FACTORS => {
            insert(powers, Some(node).filter(|_| number.high.abs() <= 1.0));
            for factor in terms.nodes().into_iter().filter(|&node| emitter.may_be_active(node)) {
                // Its terms are products, and as many.
                let slope = terms.slope(factor);
                let slope = slope.single().filter(|(powers, _)| !powers.is_empty());
                slope.iter().for_each(|(powers, _)| insert(powers, None));
            }
        }
        _ => insert(&[(node, 1)], Some(node)),
    }
    Ok(())
}

/// The product of these powers.
fn product_of(emitter: &mut Emitter<'_>, powers: &[(Node, i32)]) -> Node {
    let mut product = emitter.constant(1.0);
    for &(node, power) in powers {
        let op = if power > 0 { Op::Mul } else { Op::Div };
        for _ in 0..power.unsigned_abs() {
            product = emitter.apply(op, &[product, node]);
        }
    }
    product
}
