//! Reasons why a value of a loop has no closed form as a sum or a product.

use super::polynomial::{MOST_DEGREE, MOST_VARIABLES};
use crate::op::Op;

/// Why a value of a loop stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::phi) enum Reason {
    /// A block of the body is not straight-line code.
    Branches,
    /// The trip count is not a constant.
    Trips,
    /// A later step reads what single iterations computed.
    Saved,
    /// The loop passes on something else than the next value of an entry φ.
    Exit,
    /// A carried value is not only added to or multiplied.
    Carried,
    /// A carried value is used for values that stay open.
    Used,
    /// Factors of a carried value depend on inputs and change, or terms are added as well.
    Factors,
    /// A primitive that is not polynomial is applied to what is not data.
    NotPolynomial(Op),
    /// A polynomial has too high a degree.
    Degree,
    /// Its coefficients are computed in too many steps.
    Large,
    /// A polynomial has too many variables.
    Variables(usize),
    /// A polynomial has too many monomials.
    Monomials(usize),
    /// Data are known only in a call.
    Data,
    /// What another loop computes in each iteration.
    Inner,
    /// Two variables depend on one input, whose partials may cancel in each term.
    Shared,
    /// Folding the data takes too long.
    Work(u64),
    /// Coefficients are too large or too small.
    Range,
    /// The closed form takes as long as the loop.
    Cost,
    /// The closed form and the loop differ at a test point.
    Refuted,
    /// Another value of the loop stays open, so that it runs anyway.
    Others,
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Reason::Branches => "its body branches",
            Reason::Trips => "its trip count is not a constant",
            Reason::Saved => "a later step reads what its iterations computed",
            Reason::Exit => "it passes on something else than what it carries",
            Reason::Carried => "an iteration does more with what it carries than to add to it",
            Reason::Used => "an iteration reads its partial sum",
            Reason::Factors => "what multiplies its value may depend on inputs and change",
            Reason::NotPolynomial(op) => {
                return write!(f, "it applies `{op}` to what is not data, which is no polynomial");
            }
            Reason::Degree => return write!(f, "its terms have a degree above {MOST_DEGREE}"),
            Reason::Large => "its coefficients take too many steps",
            Reason::Variables(limit) => {
                let limit = limit.min(&MOST_VARIABLES);
                return write!(f, "its terms have more than {limit} variables");
            }
            Reason::Monomials(limit) => {
                return write!(f, "a form would have more than {limit} monomials");
            }
            Reason::Data => "its terms read data that are known only in a call",
            Reason::Inner => "its terms are computed by another loop",
            Reason::Shared => "two variables of its terms depend on one input",
            Reason::Work(limit) => {
                return write!(
                    f,
                    "folding its data would take too long, more than {limit} products"
                );
            }
            Reason::Range => "its data are too large or too small",
            Reason::Cost => "its closed form would take as long as the loop",
            Reason::Refuted => "its closed form and the loop differ at a test point",
            Reason::Others => "another value of it stays open",
        })
    }
}
