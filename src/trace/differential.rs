//! Differentials: the derivative that a `Var` carries, and the arithmetic on it that operators are
//! inlined with.

use core::hint::cold_path;

use super::recorder::{CONSTANT, ID};
use crate::op::{MAX_ARITY, Numbers, Op, contribution};

/// The differential of a number: `coefficient` times that of the variable with this tag.
///
/// On the event tape each number is a variable of its own, an event. On the Jacobian tape a number
/// that depends on one variable only is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Differential {
    pub(super) coefficient: f64,
    /// The stamp of the recording (high half) and the id of the variable (low half); 0 for a
    /// constant. The highest bit is set for an event, and for a number of no recording. On a
    /// Jacobian tape variable 0 is the one of numbers without derivatives.
    pub(super) tag: u64,
}

impl Differential {
    pub(super) const CONSTANT: Differential = Differential { coefficient: 0.0, tag: CONSTANT };

    /// That of a variable.
    #[inline(always)]
    pub(super) const fn of_variable(tag: u64) -> Self {
        Differential { coefficient: 1.0, tag }
    }

    #[inline(always)]
    pub(super) const fn is_constant(self) -> bool {
        self.tag == CONSTANT
    }

    /// Tests whether it is that of a constant or of a number on a Jacobian tape.
    #[inline(always)]
    pub(super) const fn is_linear(self) -> bool {
        self.tag as i64 >= 0
    }

    /// That of a number without derivatives, computed in the same recording: of a multiple of
    /// variable 0.
    #[inline(always)]
    pub(super) const fn detached(self) -> Self {
        Differential { coefficient: 0.0, tag: self.tag & !ID }
    }

    /// That of `op` with the value `y` at `x`, where all operands but number `operand`, which has
    /// this differential, are constants. `None` for an event, and for a product that is not kept
    /// as a coefficient.
    #[inline(always)]
    pub(super) fn times(
        self,
        op: Op,
        operand: usize,
        x: [f64; MAX_ARITY],
        y: f64,
    ) -> Option<Differential> {
        if !self.is_linear() {
            return None;
        }
        let Some(partial) = Partial::of(op, operand, x, y) else { return Some(self.detached()) };
        let product = partial.times(self.coefficient);
        match is_sum(op) || product.is_kept() {
            true => Some(Differential { coefficient: product.value, ..self }),
            false => None,
        }
    }

    /// That of `op` with the value `y` at `x`, where both operands, which have these differentials,
    /// depend on the same variable or one is a constant. `None` otherwise, for an event, and for a
    /// coefficient that is not kept.
    #[inline(always)]
    pub(super) fn combined(
        [a, b]: [Differential; 2],
        op: Op,
        x: [f64; MAX_ARITY],
        y: f64,
    ) -> Option<Differential> {
        if !(a.tag == b.tag || a.is_constant() || b.is_constant()) || ((a.tag | b.tag) as i64) < 0 {
            return None;
        }
        let to_a = Partial::of(op, 0, x, y)?.times(a.coefficient);
        let to_b = Partial::of(op, 1, x, y)?.times(b.coefficient);
        let coefficient = to_a.value + to_b.value;
        // The tags are equal, or one is 0.
        let combined = Some(Differential { coefficient, tag: a.tag | b.tag });
        if is_moderate(coefficient) {
            return combined;
        }
        cold_path();
        match coefficient == 0.0 && to_a.is_kept() && to_b.is_kept() {
            true => combined,
            false => None,
        }
    }
}

/// A partial derivative of a primitive.
#[derive(Clone, Copy)]
pub(super) struct Partial {
    pub(super) value: f64,
    /// A factor of it: if this is not zero, neither is the derivative, whose value may underflow.
    factor: f64,
}

impl Partial {
    /// The partial derivative of `op`, whose value at `x` is `y`; `None` if it is zero everywhere.
    #[inline(always)]
    pub(super) fn of(op: Op, operand: usize, x: [f64; MAX_ARITY], y: f64) -> Option<Partial> {
        let value = contribution(&mut Numbers, op, operand, x, y, 1.0)?;
        // The other rules compute the partial derivative before they multiply by the adjoint.
        let multiplies_twice = matches!((op, operand), (Op::Recip, 0) | (Op::Div, 1));
        Some(Partial { value, factor: if multiplies_twice { y } else { value } })
    }

    /// Tests whether the rule gives the adjoint times this value for all adjoints, but for rounding.
    pub(super) fn is_exact(self) -> bool {
        self.value.is_normal() || self.value == 0.0 && self.factor == 0.0
    }

    /// Its product with a coefficient.
    #[inline(always)]
    pub(super) fn times(self, coefficient: f64) -> Product {
        Product { value: self.value * coefficient, partial: self, coefficient }
    }
}

/// The product of a partial derivative and a coefficient.
#[derive(Clone, Copy)]
pub(super) struct Product {
    pub(super) value: f64,
    partial: Partial,
    coefficient: f64,
}

impl Product {
    /// Tests whether it may be a coefficient: it is moderate, or zero because a factor is.
    #[inline(always)]
    pub(super) fn is_kept(self) -> bool {
        if is_moderate(self.value) {
            return true;
        }
        cold_path();
        self.value == 0.0 && (self.partial.factor == 0.0 || self.coefficient == 0.0)
    }
}

/// Tests whether both products may be coefficients.
#[inline(always)]
pub(super) fn are_kept(a: Product, b: Product) -> bool {
    if is_moderate(a.value) & is_moderate(b.value) {
        return true;
    }
    cold_path();
    a.is_kept() && b.is_kept()
}

/// Tests whether the magnitude of `x` is from 2⁻⁵¹¹ to 2⁵¹³: a product of two such numbers neither
/// overflows nor loses digits.
#[inline(always)]
pub(super) fn is_moderate(x: f64) -> bool {
    // Just one of the two highest bits of the exponent is set.
    let bits = x.to_bits();
    (bits ^ (bits << 1)) & (1 << 62) != 0
}

/// Tests whether the partial derivatives are 1 or -1 everywhere.
#[inline(always)]
pub(super) const fn is_sum(op: Op) -> bool {
    matches!(op, Op::Add | Op::Sub | Op::Neg)
}
