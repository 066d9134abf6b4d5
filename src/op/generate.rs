//! The macros that make the enum [`Op`](super::Op) and its functions from the table.

/// Makes the enum of the primitives, and the functions of it that are columns of the table.
macro_rules! primitives {
    (
        operands $a:ident $b:ident $c:ident, value $y:ident, adjoint $g:ident, algebra $k:ident;

        $(
            $(#[$doc:meta])*
            $variant:ident $name:literal {
                meaning: $meaning:expr;
                latency: $latency:literal;
                $(throughput: $throughput:literal;)?
                $(flags: $($flag:ident),+;)?
                lowering: $lowering:ident $(($feature:expr))?;
                $($operand:ident: $domain:ident, $smoothness:ident,
                    $rule:ident $(($($inner:tt)*))?;)+
            }
        )*
    ) => {
        /// A primitive operation.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::report::Op;
        ///
        /// assert_eq!((Op::Atan2.name(), Op::Atan2.arity()), ("atan2", 2));
        /// assert!(Op::ALL.iter().all(|op| Op::from_name(op.name()) == Some(*op)));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Op { $($(#[$doc])* $variant),* }

        impl Op {
            /// All primitives, in the order of the table.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// The name in the text form of the graph.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$variant => $name),* }
            }

            /// The number of operands, 1 to 3.
            #[inline(always)]
            pub const fn arity(self) -> usize {
                match self { $(Op::$variant => [$(operand_number!($operand)),+].len()),* }
            }

            /// The primitive of this name, if there is one.
            ///
            /// # Examples
            ///
            /// ```
            /// use phigrad::report::Op;
            ///
            /// assert_eq!(Op::from_name("mul_add"), Some(Op::MulAdd));
            /// assert_eq!(Op::from_name("fma"), None);
            /// ```
            pub fn from_name(name: &str) -> Option<Op> {
                match name { $($name => Some(Op::$variant),)* _ => None }
            }

            pub(super) const fn flags(self) -> &'static [Flag] {
                match self { $(Op::$variant => &[$($(Flag::$flag),+)?]),* }
            }

            /// The form in native code.
            pub(crate) const fn lowering(self) -> Lowering {
                match self { $(Op::$variant => Lowering::$lowering $(($feature))?),* }
            }
        }

        /// The value of `op` at `args`; operands beyond the arity are ignored.
        ///
        /// # Numerics
        ///
        /// Transcendental functions are the platform's mathematical library, reached
        /// through `std`; special functions, which `std` does not have, are written in
        /// Rust. `min`, `max` and `powi` are defined here because `std` leaves their
        /// zeros, ties and roundings open. NaN results carry no promise about their
        /// sign and payload.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::internals::op::{Op, eval};
        ///
        /// assert_eq!(eval(Op::Mul, [2.0, 3.0, 0.0]), 6.0);
        /// assert_eq!(eval(Op::Lt, [2.0, 3.0, 0.0]), 1.0);
        /// assert_eq!(eval(Op::Max, [f64::NAN, 3.0, 0.0]), 3.0);
        /// ```
        #[inline(always)]
        pub fn eval(op: Op, args: [f64; 3]) -> f64 {
            let [$a, $b, $c] = args;
            match op { $(Op::$variant => $meaning),* }
        }

        /// The contribution of `op`, computed as `y` from the operands `x` and with the
        /// adjoint `g`, to the adjoint of its operand number `operand`; `None` when the derivative
        /// is zero everywhere.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::internals::op::{Numbers, Op, contribution};
        ///
        /// // d(a·b)/da = b
        /// let c = contribution(&mut Numbers, Op::Mul, 0, [2.0, 3.0, 0.0], 6.0, 1.0);
        /// assert_eq!(c, Some(3.0));
        /// ```
        #[inline(always)]
        pub fn contribution<A: Algebra>(
            alg: &mut A,
            op: Op,
            operand: usize,
            x: [A::Value; 3],
            y: A::Value,
            g: A::Value,
        ) -> Option<A::Value> {
            let ($k, [$a, $b, $c], $y, $g) = (alg, x, y, g);
            match op {
                $(Op::$variant => {
                    $(if operand == operand_number!($operand) {
                        rule!($k; $rule $(($($inner)*))?)
                    } else)+ {
                        None
                    }
                }),*
            }
        }

        /// The domain of each operand of `op`; entries beyond the arity are
        /// [`Domain::Real`].
        ///
        /// `powf` is listed with a positive base: negative ones are defined for
        /// integer exponents only.
        ///
        /// # Examples
        ///
        /// ```
        /// use phigrad::internals::op::{Domain, Op, domain};
        ///
        /// assert_eq!(domain(Op::Div), [Domain::Real, Domain::NonZero, Domain::Real]);
        /// ```
        pub fn domain(op: Op) -> [Domain; 3] {
            let listed: &[Domain] = match op { $(Op::$variant => &[$(Domain::$domain),+]),* };
            let mut all = [Domain::Real; 3];
            all[..listed.len()].copy_from_slice(listed);
            all
        }

        /// The smoothness of `op` in each operand.
        pub(super) const fn smoothness(op: Op) -> &'static [Smoothness] {
            match op { $(Op::$variant => &[$(Smoothness::$smoothness),+]),* }
        }

        /// The latency of `op` in tenths of a nanosecond.
        pub(crate) const fn latency(op: Op) -> u64 {
            match op { $(Op::$variant => $latency),* }
        }

        /// The throughput of `op`, where the table has one.
        pub(super) const fn listed_throughput(op: Op) -> Option<u64> {
            match op { $(Op::$variant => optional!($($throughput)?)),* }
        }

        /// A type for each primitive.
        mod constant {
            $(pub struct $variant;)*
        }

        $(impl super::ConstantOp for constant::$variant {
            const OP: Op = Op::$variant;
        })*

        /// Calls `visitor` with `op` known at compile time in each arm, so that
        /// matches on it inside fold away: the dispatch of the reverse sweep.
        #[inline(always)]
        pub(crate) fn with_constant_op<V: super::OpVisitor>(op: Op, visitor: V) -> V::Output {
            match op { $(Op::$variant => visitor.visit::<constant::$variant>()),* }
        }
    };
}

/// The number of an operand by its name.
macro_rules! operand_number {
    (a) => {
        0
    };
    (b) => {
        1
    };
    (c) => {
        2
    };
}

/// An optional entry of a row.
macro_rules! optional {
    () => {
        None
    };
    ($entry:literal) => {
        Some($entry)
    };
}

/// The contribution to an operand: `none` or a formula.
macro_rules! rule {
    ($k:ident; none) => { None };
    ($k:ident; $($formula:tt)+) => { Some(formula!($k; $($formula)+)) };
}

/// A formula in the algebra `$k`, computed from left to right.
macro_rules! formula {
    ($k:ident; $value:ident) => { $value };
    ($k:ident; $number:literal) => { $k.constant($number) };
    ($k:ident; [$constant:expr]) => { $k.constant($constant) };
    ($k:ident; rule($value:expr)) => { $value };
    ($k:ident; $op:ident($($head:tt $(($($inner:tt)*))?),+)) => {{
        let args = [$(formula!($k; $head $(($($inner)*))?)),+];
        $k.apply(Op::$op, args)
    }};
}
