//! Reasons why a loop has no closed form as a recurrence.

use crate::op::Op;

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
