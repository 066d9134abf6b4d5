//! The arithmetic operators of `Var`: with `Var` and `f64` in every order, by
//! value and by reference, with assignment, and sums and products.

use core::iter::{Product, Sum};
use core::ops::{
    Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign,
};

use super::{Var, recorder};
use crate::op::Op;

macro_rules! binary {
    ($trait:ident $method:ident $assign:ident $assign_method:ident $op:ident) => {
        binary!(@pair $trait $method $op Var, Var);
        binary!(@pair $trait $method $op Var, f64);
        binary!(@pair $trait $method $op f64, Var);

        impl $assign for Var {
            #[inline(always)]
            #[track_caller]
            fn $assign_method(&mut self, other: Var) {
                *self = self.apply2(Op::$op, other);
            }
        }

        impl $assign<&Var> for Var {
            #[inline(always)]
            #[track_caller]
            fn $assign_method(&mut self, other: &Var) {
                *self = self.apply2(Op::$op, *other);
            }
        }

        impl $assign<f64> for Var {
            #[inline(always)]
            #[track_caller]
            fn $assign_method(&mut self, other: f64) {
                *self = self.apply2_with(Op::$op, other);
            }
        }
    };
    (@pair $trait:ident $method:ident $op:ident $left:ty, $right:ty) => {
        binary!(@one $trait $method $op $left, $right);
        binary!(@one $trait $method $op &$left, $right);
        binary!(@one $trait $method $op $left, &$right);
        binary!(@one $trait $method $op &$left, &$right);
    };
    (@one $trait:ident $method:ident $op:ident $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Var;

            #[inline(always)]
            #[track_caller]
            fn $method(self, other: $right) -> Var {
                (self.plain(), other.plain()).apply(Op::$op)
            }
        }
    };
}

binary!(Add add AddAssign add_assign Add);
binary!(Sub sub SubAssign sub_assign Sub);
binary!(Mul mul MulAssign mul_assign Mul);
binary!(Div div DivAssign div_assign Div);
binary!(Rem rem RemAssign rem_assign Rem);

/// A `Var` or an `f64`, by value or behind references.
pub(super) trait Plain {
    type Plain;

    fn plain(&self) -> Self::Plain;
}

impl Plain for Var {
    type Plain = Var;

    #[inline]
    fn plain(&self) -> Var {
        *self
    }
}

impl Plain for f64 {
    type Plain = f64;

    #[inline]
    fn plain(&self) -> f64 {
        *self
    }
}

impl<T: Plain> Plain for &T {
    type Plain = T::Plain;

    #[inline]
    fn plain(&self) -> T::Plain {
        (*self).plain()
    }
}

/// The operands of a binary operator.
pub(super) trait Pair {
    #[track_caller]
    fn apply(self, op: Op) -> Var;
}

impl Pair for (Var, Var) {
    #[inline(always)]
    #[track_caller]
    fn apply(self, op: Op) -> Var {
        self.0.apply2(op, self.1)
    }
}

impl Pair for (Var, f64) {
    #[inline(always)]
    #[track_caller]
    fn apply(self, op: Op) -> Var {
        self.0.apply2_with(op, self.1)
    }
}

impl Pair for (f64, Var) {
    #[inline(always)]
    #[track_caller]
    fn apply(self, op: Op) -> Var {
        self.1.apply2_after(op, self.0)
    }
}

impl Neg for Var {
    type Output = Var;

    #[inline]
    #[track_caller]
    fn neg(self) -> Var {
        self.apply1(Op::Neg)
    }
}

impl Neg for &Var {
    type Output = Var;

    #[inline]
    #[track_caller]
    fn neg(self) -> Var {
        self.apply1(Op::Neg)
    }
}

macro_rules! fold {
    ($trait:ident $method:ident $op:ident $empty:literal) => {
        impl $trait for Var {
            fn $method<I: Iterator<Item = Var>>(vars: I) -> Var {
                // The caller is `Iterator`; the user's place is that of the latest term.
                let apply = |a: Var, b: Var| a.apply2_at(Op::$op, b, recorder::latest_site());
                vars.reduce(apply).unwrap_or(Var::constant($empty))
            }
        }

        impl<'a> $trait<&'a Var> for Var {
            fn $method<I: Iterator<Item = &'a Var>>(vars: I) -> Var {
                <Var as $trait>::$method(vars.copied())
            }
        }
    };
}

fold!(Sum sum Add 0.0);
fold!(Product product Mul 1.0);
