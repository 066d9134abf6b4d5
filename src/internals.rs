//! The stages between trace and kernel, for tests and tools: behind the feature
//! `internals`, and exempt from semantic versioning.

pub mod diff {
    //! See `src/diff`.

    pub use crate::diff::*;
}

pub mod entity {
    //! See `src/entity`.

    pub use crate::entity::*;
}

pub mod jit {
    //! See `src/jit`.

    pub use crate::jit::*;
}

pub mod loops {
    //! See `src/loops`.

    pub use crate::loops::*;
}

pub mod merge {
    //! See `src/merge`.

    pub use crate::merge::*;
}

pub mod numeric {
    //! See `src/numeric`.

    pub use crate::numeric::*;
}

pub mod op {
    //! See `src/op`.

    pub use crate::op::*;
}

pub mod phi {
    //! See `src/phi`.

    pub use crate::phi::*;
}

pub mod simplify {
    //! See `src/simplify`.

    pub use crate::simplify::*;
}

pub mod soi {
    //! See `src/soi`.

    pub use crate::soi::*;
}

pub mod sparse {
    //! See `src/sparse`.

    pub use crate::sparse::*;
}

pub mod ssa {
    //! See `src/ssa`.

    pub use crate::ssa::*;
}

pub mod trace {
    //! See `src/trace`.

    pub use crate::trace::*;
}

pub mod explain {
    //! Graphs as text; see `src/explain`.

    pub use crate::explain::dot::dot;
    pub use crate::explain::phis::differentiated_phis;
    pub use crate::explain::program::program;
}

pub use crate::pipeline::{LoopForm, Tier, Tuning};
pub use crate::random::Random;
