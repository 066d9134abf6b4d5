//! Reasons why a loop, or a value of one, has no closed form.

use crate::op::Op;

/// A reason why a loop stays open.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OpenReason {
    /// It is no sum and no product.
    #[error("as a sum, {0}")]
    Sum(SumReason),
    /// It is no affine recurrence.
    #[error("as a recurrence, {0}")]
    Recurrence(RecurrenceReason),
    /// The cost model prices the graph without closed forms lower.
    #[error("the code without its closed form is estimated to take less")]
    Cost,
}

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
    Degree(u32),
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
            SumReason::Degree(limit) => return write!(f, "its terms have a degree above {limit}"),
            SumReason::TooManySteps => "its coefficients take too many steps",
            SumReason::Variables(limit) => {
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

/// A reason why a loop has no closed form as an affine recurrence.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecurrenceReason {
    /// A block of the body is not straight-line code.
    Branches,
    /// The trip count is not a constant.
    TripCount,
    /// A primitive that is not affine is applied to a carried value.
    NotAffine(Op),
    /// Two carried values are multiplied.
    Product,
    /// It divides by a carried value, or by one that changes from iteration to iteration.
    Quotient,
    /// A coefficient is a datum that changes from iteration to iteration.
    ChangingCoefficient,
    /// The iteration number occurs with too large a power.
    Degree,
    /// Too many values depend on each other.
    TooManyStates,
    /// The coefficients are too many, or computed in too many steps.
    TooManySteps,
    /// A later step reads what single iterations computed.
    ReadAfterwards,
    /// Calls of routines are in the body.
    Call,
    /// The function has no derivative through the loop.
    Inactive,
    /// The closed form takes as long as the loop.
    Cost,
    /// Too many loops were looked at before it.
    TooManyLoops,
    /// The closed form and the loop differ at a test point.
    ValidationFailed,
    /// Exits of the loop pass on what is not a function of what it carries.
    Exit,
}

impl core::fmt::Display for RecurrenceReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RecurrenceReason::Branches => "its body branches",
            RecurrenceReason::TripCount => "its trip count is not a constant",
            RecurrenceReason::NotAffine(op) => {
                return write!(f, "it applies `{op}` to what it carries, which is not affine");
            }
            RecurrenceReason::Product => "it multiplies two values that it carries",
            RecurrenceReason::Quotient => {
                "it divides by a value that changes from iteration to iteration"
            }
            RecurrenceReason::ChangingCoefficient => {
                "its coefficients are data that change from iteration to iteration"
            }
            RecurrenceReason::Degree => "the iteration number occurs with a power above 4",
            RecurrenceReason::TooManyStates => {
                "more than 6 values that it carries depend on each other"
            }
            RecurrenceReason::TooManySteps => "its coefficients take more than 128 steps",
            RecurrenceReason::ReadAfterwards => "a later step reads what its iterations computed",
            RecurrenceReason::Call => "a loop in it is evaluated by a routine",
            RecurrenceReason::Inactive => "the function has no derivative through it",
            RecurrenceReason::TooManyLoops => "there are too many loops before it",
            RecurrenceReason::Cost => "its closed form would take as long as the loop",
            RecurrenceReason::ValidationFailed => {
                "its closed form and the loop differ at a test point"
            }
            RecurrenceReason::Exit => "its exits pass on what is not computed from what it carries",
        })
    }
}
