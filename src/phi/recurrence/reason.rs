//! Reasons why a loop has no closed form as a recurrence.

use crate::op::Op;

/// Why a loop stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// A block of the body is not straight-line code.
    Branches,
    /// The trip count is not a constant.
    Trips,
    /// A primitive that is not affine is applied to a carried value.
    NotAffine(Op),
    /// Two carried values are multiplied.
    Product,
    /// It divides by a carried value, or by one that changes from iteration to iteration.
    Quotient,
    /// A coefficient is a datum that changes from iteration to iteration.
    Data,
    /// The iteration number occurs with too large a power.
    Degree,
    /// Too many values depend on each other.
    States,
    /// The coefficients are too many, or computed in too many steps.
    Large,
    /// A later step reads what single iterations computed.
    Saved,
    /// Calls of routines are in the body.
    Call,
    /// The function has no derivative through the loop.
    Inactive,
    /// The closed form takes as long as the loop.
    Cost,
    /// Too many loops were looked at before it.
    Loops,
    /// The closed form and the loop differ at a test point.
    Refuted,
    /// Exits of the loop pass on what is not a function of what it carries.
    Exit,
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Reason::Branches => "its body branches",
            Reason::Trips => "its trip count is not a constant",
            Reason::NotAffine(op) => {
                return write!(f, "it applies `{op}` to what it carries, which is not affine");
            }
            Reason::Product => "it multiplies two values that it carries",
            Reason::Quotient => "it divides by a value that changes from iteration to iteration",
            Reason::Data => "its coefficients are data that change from iteration to iteration",
            Reason::Degree => "the iteration number occurs with a power above 4",
            Reason::States => "more than 6 values that it carries depend on each other",
            Reason::Large => "its coefficients take more than 128 steps",
            Reason::Saved => "a later step reads what its iterations computed",
            Reason::Call => "a loop in it is evaluated by a routine",
            Reason::Inactive => "the function has no derivative through it",
            Reason::Loops => "there are too many loops before it",
            Reason::Cost => "its closed form would take as long as the loop",
            Reason::Refuted => "its closed form and the loop differ at a test point",
            Reason::Exit => "its exits pass on what is not computed from what it carries",
        })
    }
}
