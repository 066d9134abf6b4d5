//! Reasons why a loop, or a value of one, has no closed form.

use super::recurrence::MAX_DEGREE;
use crate::numeric::MAX_STATES;
use crate::numeric::program::MAX_SLOTS;
use crate::op::Op;

// The messages that both kinds of closed forms share.

const TRIP_COUNT: &str = "its trip count is not the same in all calls";
const READ_AFTERWARDS: &str = "later code reads values of single iterations";
const COST: &str = "its closed form is estimated to cost no less than the loop";
const VALIDATION_FAILED: &str = "translation validation refuted its closed form at a test point";

/// A reason why a loop stays open.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum OpenReason {
    /// It is no sum and no product over data.
    #[error("as a sum, {0}")]
    Sum(SumReason),
    /// It is no affine recurrence.
    #[error("as a recurrence, {0}")]
    Recurrence(RecurrenceReason),
    /// The cost model prefers the graph without closed forms.
    #[error("the straight-line code without its closed form is estimated to be cheaper")]
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
    /// Later code reads values of single iterations.
    ReadAfterwards,
    /// The value is not the next value of an entry φ.
    Exit,
    /// A carried value is operand of another operation than a sum or a product.
    NotAdded,
    /// A value that stays in the loop reads the partial sum.
    PartialSumRead,
    /// The factor of a carried value depends on active inputs and changes, terms are added to it
    /// as well, or it is the same in all iterations.
    Factors,
    /// A primitive that is not polynomial is applied to a value that depends on live-ins.
    NotPolynomial(Op),
    /// The degree of a polynomial is above this limit.
    Degree(u32),
    /// The program of a routine is too long.
    TooManySteps,
    /// A polynomial has more variables than this limit.
    Variables(usize),
    /// A polynomial has more monomials than this limit.
    Monomials(usize),
    /// Data are known only in a call, and change in each loop around.
    DataOfCall,
    /// An inner loop computes a term.
    InnerLoop,
    /// Two variables depend on one active input, so that its partials may cancel in each term.
    SharedInput,
    /// Folding the data takes more products than this limit.
    Work(u64),
    /// Moments or products of the data are out of range.
    Range,
    /// The cost model prefers the loop.
    Cost,
    /// A test point refuted the closed form.
    ValidationFailed,
    /// Another value of the loop stays open, so that the loop runs anyway.
    OtherValue,
}

impl core::fmt::Display for SumReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SumReason::Branches => "its body branches; where data decide, choose by `select`",
            SumReason::TripCount => TRIP_COUNT,
            SumReason::ReadAfterwards => READ_AFTERWARDS,
            SumReason::Exit => "its result is not the next value of a carried variable",
            SumReason::NotAdded => {
                "an iteration applies other operations than sums and products to a carried value"
            }
            SumReason::PartialSumRead => {
                "a value that stays in the loop reads the partial sum; sum up in a loop of its own"
            }
            SumReason::Factors => "the factor of its carried value is not data of the iteration",
            SumReason::NotPolynomial(op) => {
                return write!(f, "it applies `{op}` to inputs and data, which is no polynomial");
            }
            SumReason::Degree(limit) => {
                return write!(f, "the degree of its terms is above {limit}");
            }
            SumReason::TooManySteps => {
                return write!(f, "its coefficients take more than {MAX_SLOTS} instructions");
            }
            SumReason::Variables(limit) => {
                return write!(f, "its terms depend on more than {limit} live-ins");
            }
            SumReason::Monomials(limit) => {
                return write!(f, "its closed form has more than {limit} monomials");
            }
            SumReason::DataOfCall => {
                "its terms read values that are known only in a call; make data that do not change \
                 constants, or inactive inputs"
            }
            SumReason::InnerLoop => "an inner loop computes its terms",
            SumReason::SharedInput => {
                "two live-ins of its terms depend on one input, whose partials may cancel"
            }
            SumReason::Work(limit) => {
                return write!(f, "folding its data takes more than {limit} products");
            }
            SumReason::Range => "the moments of its data are out of range; rescale the data",
            SumReason::Cost => COST,
            SumReason::ValidationFailed => VALIDATION_FAILED,
            SumReason::OtherValue => "the loop runs anyway, since another value of it stays open",
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
    /// The divisor is a carried value, or changes from iteration to iteration.
    Quotient,
    /// A coefficient is an array element that changes from iteration to iteration.
    ChangingCoefficient,
    /// The degree in the iteration number is too large.
    Degree,
    /// The system has too many states.
    TooManyStates,
    /// The coefficient program is too long, or the routine takes too much memory.
    TooManySteps,
    /// Later code reads values of single iterations.
    ReadAfterwards,
    /// The body calls the routine of another closed form.
    Call,
    /// No carried value that exits read is active.
    Inactive,
    /// The cost model prefers the loop.
    Cost,
    /// The limit of examined loops was reached before it.
    TooManyLoops,
    /// A test point refuted the closed form.
    ValidationFailed,
    /// A value at an exit is not computed from the carried values alone.
    Exit,
}

impl core::fmt::Display for RecurrenceReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            RecurrenceReason::Branches => "its body branches",
            RecurrenceReason::TripCount => TRIP_COUNT,
            RecurrenceReason::NotAffine(op) => {
                return write!(f, "it applies `{op}` to a carried value, which is not affine");
            }
            RecurrenceReason::Product => "it multiplies two carried values",
            RecurrenceReason::Quotient => {
                "it divides by a value that changes from iteration to iteration"
            }
            RecurrenceReason::ChangingCoefficient => {
                "a coefficient is an array element that changes from iteration to iteration"
            }
            RecurrenceReason::Degree => {
                return write!(f, "its degree in the iteration number is above {MAX_DEGREE}");
            }
            RecurrenceReason::TooManyStates => {
                return write!(f, "more than {MAX_STATES} carried values depend on each other");
            }
            RecurrenceReason::TooManySteps => {
                return write!(
                    f,
                    "its coefficients take more than {MAX_SLOTS} instructions, or too much memory"
                );
            }
            RecurrenceReason::ReadAfterwards => READ_AFTERWARDS,
            RecurrenceReason::Call => "it calls the routine of another closed form",
            RecurrenceReason::Inactive => "no derivative passes through its carried values",
            RecurrenceReason::TooManyLoops => "the limit of examined loops was reached before it",
            RecurrenceReason::Cost => COST,
            RecurrenceReason::ValidationFailed => VALIDATION_FAILED,
            RecurrenceReason::Exit => {
                "a value at an exit is not computed from its carried values alone"
            }
        })
    }
}
