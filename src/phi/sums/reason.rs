//! Reasons why a value of a loop has no closed form as a sum or a product.

use super::polynomial::{MOST_DEGREE, MOST_VARIABLES};
use crate::op::Op;

/// A reason why a value of a loop has no closed form as a sum or a product.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SumReason {
    /// A block of the body is not straight-line code.
    Branches,
    /// The trip count is not a constant.
    TripCount,
    /// A later step reads what single iterations computed.
    ReadAfterwards,
    /// The loop passes on something else than the next value of an entry φ.
    Exit,
    /// A carried value is not only added to or multiplied.
    NotAdded,
    /// A carried value is used for values that stay open.
    PartialSumRead,
    /// Factors of a carried value depend on inputs and change, or terms are added as well.
    Factors,
    /// A primitive that is not polynomial is applied to what is not data.
    NotPolynomial(Op),
    /// A polynomial has too high a degree.
    Degree,
    /// Its coefficients are computed in too many steps.
    TooManySteps,
    /// A polynomial has too many variables.
    Variables(usize),
    /// A polynomial has too many monomials.
    Monomials(usize),
    /// Data are known only in a call.
    DataOfCall,
    /// What another loop computes in each iteration.
    InnerLoop,
    /// Two variables depend on one input, whose partials may cancel in each term.
    SharedInput,
    /// Folding the data takes too long.
    Work(u64),
    /// Coefficients are too large or too small.
    Range,
    /// The closed form takes as long as the loop.
    Cost,
    /// The closed form and the loop differ at a test point.
    ValidationFailed,
    /// Another value of the loop stays open, so that it runs anyway.
    OtherValue,
}

impl core::fmt::Display for SumReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SumReason::Branches => "its body branches",
            SumReason::TripCount => "its trip count is not a constant",
            SumReason::ReadAfterwards => "a later step reads what its iterations computed",
            SumReason::Exit => "it passes on something else than what it carries",
            SumReason::NotAdded => "an iteration does more with what it carries than to add to it",
            SumReason::PartialSumRead => "an iteration reads its partial sum",
            SumReason::Factors => "what multiplies its value may depend on inputs and change",
            SumReason::NotPolynomial(op) => {
                return write!(f, "it applies `{op}` to what is not data, which is no polynomial");
            }
            SumReason::Degree => return write!(f, "its terms have a degree above {MOST_DEGREE}"),
            SumReason::TooManySteps => "its coefficients take too many steps",
            SumReason::Variables(limit) => {
                let limit = limit.min(&MOST_VARIABLES);
                return write!(f, "its terms have more than {limit} variables");
            }
            SumReason::Monomials(limit) => {
                return write!(f, "a form would have more than {limit} monomials");
            }
            SumReason::DataOfCall => "its terms read data that are known only in a call",
            SumReason::InnerLoop => "its terms are computed by another loop",
            SumReason::SharedInput => "two variables of its terms depend on one input",
            SumReason::Work(limit) => {
                return write!(
                    f,
                    "folding its data would take too long, more than {limit} products"
                );
            }
            SumReason::Range => "its data are too large or too small",
            SumReason::Cost => "its closed form would take as long as the loop",
            SumReason::ValidationFailed => "its closed form and the loop differ at a test point",
            SumReason::OtherValue => "another value of it stays open",
        })
    }
}
