//! Recording: what one run of the user's function did, event by event.
//!
//! [`Var`] is the traced scalar; its operators append to the thread's
//! recorder. The events of one run are the tape: [`sweep()`] walks them
//! backwards for the gradient, and `ssa` lifts them to the graph. Marks between
//! them tell where the regions of annotated functions begin, meet and repeat.

mod apply;
mod captures;
mod carried;
mod compare;
mod error;
mod event;
mod events;
mod float;
pub(crate) mod mark;
mod operators;
mod pattern;
mod recorder;
mod repeats;
mod run;
mod sites;
mod stamp;
mod sweep;
mod tracer;
mod var;

pub use captures::ForJumps;
pub(crate) use carried::Carried;
pub use error::TraceError;
pub use event::{Event, Operand, Role, Site};
pub use events::Events;
pub(crate) use pattern::{Part, Slot, opening};
pub(crate) use repeats::{Repeat, Worth, repeats};
pub use run::{Inputs, Trace};
pub use sweep::{Adjoints, sweep};
pub use tracer::{Detail, Tracer};
pub use var::Var;
