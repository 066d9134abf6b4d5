//! The numbers with which loops and their forms are interpreted: floats, and numbers of
//! twice the precision with a derivative. Both know how large the numbers were that loops
//! carried on the way to them, and only those: what has nothing to do with a value does not
//! excuse its error.

use super::twice::Twice;
use crate::op::{MAX_ARITY, Numbers, Op, contribution, eval};
use crate::ssa::{Number, is_far};

/// A float, as kernels compute it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float {
    pub(super) value: f64,
    /// The largest size that a loop carried of what it was computed from.
    pub(super) carried: f64,
}

impl Number for Float {
    fn constant(value: f64) -> Float {
        Float { value, carried: 0.0 }
    }

    fn apply(op: Op, args: [Float; MAX_ARITY]) -> Float {
        let used = &args[..op.arity()];
        let carried = used.iter().fold(0.0, |most: f64, arg| most.max(arg.carried));
        let value = match op {
            // Kernels have no tangents.
            Op::MulAdd if is_far(-args[2].value) => 0.0,
            _ => eval(op, args.map(|arg| arg.value)),
        };
        Float { value, carried }
    }

    fn holds(self) -> bool {
        self.value != 0.0
    }

    fn number(self) -> f64 {
        self.value
    }

    fn carried(self) -> Float {
        Float { carried: larger(self.carried, self.value), ..self }
    }
}

/// A value of twice the precision, and its derivative along one direction, found by the
/// rules of differentiation of the primitives, one step after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dual {
    pub(super) value: Twice,
    pub(super) slope: Twice,
    /// The largest sizes of a value and of a slope that a loop carried of what it was
    /// computed from.
    pub(super) carried: [f64; 2],
    /// Whether no digit of it is known: it was computed from a sine, or the like, of a number so large
    /// that twice the digits do not reach to the point.
    pub(super) is_vague: bool,
}

impl Dual {
    /// An input that changes by `slope`.
    pub(super) fn input(value: f64, slope: f64) -> Dual {
        Dual::of(value.into(), slope.into())
    }

    fn of(value: Twice, slope: Twice) -> Dual {
        Dual { value, slope, carried: [0.0; 2], is_vague: false }
    }

    /// The product, and its derivative.
    fn times(self, other: Dual) -> Dual {
        let slope = self.slope.times(other.value).plus(self.value.times(other.slope));
        Dual::of(self.value.times(other.value), slope)
    }

    fn plus(self, other: Dual) -> Dual {
        Dual::of(self.value.plus(other.value), self.slope.plus(other.slope))
    }

    fn over(self, other: Dual) -> Dual {
        let value = self.value.over(other.value);
        Dual::of(value, self.slope.minus(value.times(other.slope)).over(other.value))
    }

    fn negated(self) -> Dual {
        Dual::of(self.value.negated(), self.slope.negated())
    }

    /// What primitives come to that are not computed with all digits: of what is below
    /// those of a float the first order.
    fn smooth(op: Op, args: [Dual; MAX_ARITY]) -> Dual {
        /// Of what is larger a period is no small part.
        const SMALL: f64 = 1e-3;
        let x = args.map(|arg| arg.value.high);
        let y = eval(op, x);
        let mut all = Dual::of(y.into(), Twice::default());
        let is_periodic = matches!(op, Op::Sin | Op::Cos | Op::Tan | Op::Fract);
        all.is_vague = is_periodic && args[0].value.low.abs() > SMALL;
        for (operand, arg) in args[..op.arity()].iter().enumerate() {
            let partial = contribution(&mut Numbers, op, operand, x, y, 1.0);
            let Some(partial) = partial.map(Twice::from) else { continue };
            let is_there = |part: f64| part != 0.0;
            if is_there(arg.value.low) && partial.high.is_finite() {
                all.value = all.value.plus(partial.times(arg.value.low.into()));
            }
            if is_there(arg.slope.high) {
                all.slope = all.slope.plus(partial.times(arg.slope));
            }
        }
        all
    }
}

impl Number for Dual {
    fn constant(value: f64) -> Dual {
        Dual::input(value, 0.0)
    }

    fn apply(op: Op, args: [Dual; MAX_ARITY]) -> Dual {
        let [a, b, c] = args;
        let mut result = match op {
            Op::Add => a.plus(b),
            Op::Sub => a.plus(b.negated()),
            Op::Neg => a.negated(),
            Op::Mul => a.times(b),
            Op::Div => a.over(b),
            Op::Recip => Dual::constant(1.0).over(a),
            // A tangent is zero, whatever the digits: only its derivative counts.
            Op::MulAdd if is_far(-c.value.high) => {
                Dual::of(Twice::default(), a.times(b).plus(c).slope)
            }
            Op::MulAdd => a.times(b).plus(c),
            Op::Abs if a.value.high < 0.0 => a.negated(),
            Op::Abs if a.value.high > 0.0 => a,
            // What is not chosen has no part in it.
            Op::Select => {
                let chosen = if a.holds() { b } else { c };
                return Dual { is_vague: a.is_vague || chosen.is_vague, ..chosen };
            }
            _ => Dual::smooth(op, args),
        };
        for arg in &args[..op.arity()] {
            result.is_vague |= arg.is_vague;
            for (most, &size) in result.carried.iter_mut().zip(&arg.carried) {
                *most = most.max(size);
            }
        }
        result
    }

    fn holds(self) -> bool {
        self.value.high != 0.0
    }

    fn number(self) -> f64 {
        self.value.high
    }

    fn carried(self) -> Dual {
        let [value, slope] = self.carried;
        let carried = [larger(value, self.value.high), larger(slope, self.slope.high)];
        Dual { carried, ..self }
    }
}

/// The larger size; one that is not finite says nothing.
fn larger(most: f64, number: f64) -> f64 {
    if number.is_finite() { most.max(number.abs()) } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::FAR;

    #[test]
    fn derivatives_are_those_of_difference_quotients() {
        for &op in Op::ALL {
            let domains = crate::op::domain(op);
            let at = [0, 1, 2].map(|i| domains[i].member([0.3, 0.45, 0.6][i]));
            let slopes = [0.7, -1.3, 0.4];
            let point = |t: f64| [0, 1, 2].map(|i| at[i] + t * slopes[i]);
            // Exponents are integers, and what is compared or counted has steps.
            if matches!(op, Op::Powi) || (0..op.arity()).all(|i| is_flat(op, i)) {
                continue;
            }
            let dual = Dual::apply(op, [0, 1, 2].map(|i| Dual::input(at[i], slopes[i])));
            let step = 1e-6;
            let difference = (eval(op, point(step)) - eval(op, point(-step))) / (2.0 * step);
            let error = (dual.slope.high - difference).abs();
            assert!(error <= 1e-6 * difference.abs().max(1.0), "{op}: {dual:?} {difference}");
            assert!((dual.value.high - eval(op, at)).abs() <= 1e-15 * eval(op, at).abs(), "{op}");
        }
    }

    fn is_flat(op: Op, operand: usize) -> bool {
        contribution(&mut Numbers, op, operand, [1.0; 3], 1.0, 1.0).is_none()
    }

    #[test]
    fn tangents_are_zero_with_a_derivative() {
        let (x, far) = (Dual::input(3.5, 2.0), Dual::constant(FAR));
        let (one, less) = (Dual::constant(1.0), Dual::constant(-FAR));
        let sum = Dual::apply(Op::Add, [x, far, x]);
        let tangent = Dual::apply(Op::MulAdd, [sum, one, less]);
        assert_eq!((tangent.value.high, tangent.slope.high), (0.0, 2.0));
        let held = Dual::apply(Op::Sub, [x, tangent, x]);
        assert_eq!((held.value.high, held.slope.high), (3.5, 0.0));
    }

    #[test]
    fn only_what_a_value_is_computed_from_has_been_carried() {
        let (large, small) = (Dual::input(1e9, -2e9).carried(), Dual::input(2.0, 1.0).carried());
        let sum = Dual::apply(Op::Add, [small, small, large]);
        assert_eq!(sum.carried, [2.0, 1.0]);
        assert_eq!(Dual::apply(Op::Mul, [small, large, large]).carried, [1e9, 2e9]);
        let float = Float::apply(Op::Neg, [Float::constant(-3.0).carried(); 3]);
        assert_eq!((float.value, float.carried), (3.0, 3.0));
    }
}
