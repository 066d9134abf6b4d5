//! The tape: recording one run of the user's function.
//!
//! Data structures: [`Var`] is the traced scalar; its operators append to the thread's `recorder`,
//! which has a ring of the latest events in thread-local storage. [`Events`] is the tape as
//! structure of arrays (values, steps, sites); [`Trace`] is the tape with its inputs, output and
//! [`Captures`](Detail::Captures). `mark` records the control flow of annotated functions between
//! the operations: where regions begin, iterate and join, and what is carried there. A run that is
//! too long to be kept whole (`store`) is a [`LongRun`]. A run of which only the gradient is wanted
//! has no events but a Jacobian tape (`jacobian`).
//!
//! Algorithms: [`sweep()`] is the reverse sweep over the tape; [`find_loops`] finds loops in a tape
//! (`trace_loops`), [`infer_induction`] how their operands depend on the iteration (`induction`);
//! [`record_gradient`] records the reverse sweep of a function that is called inside (`inline`);
//! `non_finite` finds the operation that made a NaN or an infinity.

mod apply;
mod captures;
mod carried;
mod compare;
mod custom_call;
mod differential;
mod error;
mod event;
mod events;
mod float;
mod induction;
mod inline;
mod jacobian;
mod long_run;
pub(crate) mod mark;
mod non_finite;
mod operations;
mod operators;
mod payload;
mod recorder;
mod run;
mod sites;
mod sort;
mod special;
mod stamp;
mod store;
mod sweep;
mod tangents;
mod trace_loops;
mod tracer;
mod var;
mod weighted;

pub(crate) use captures::EventCaptures;
pub use captures::JumpCapture;
pub(crate) use carried::CarriedValues;
pub use custom_call::CustomCall;
pub(crate) use custom_call::OutputWord;
pub use error::TraceError;
pub(crate) use event::StateWord;
pub use event::{Event, Operand, Role, Site};
pub use events::Events;
pub(crate) use induction::{BodyEvent, OperandRule, infer_induction};
pub(crate) use inline::{Inlining, inlines_calls, record_gradient};
pub use jacobian::JacobianRun;
pub use long_run::{LongRun, Run};
pub(crate) use non_finite::{
    Origin, number, operands, operation, origin_of_derivative, origin_of_value,
};
pub(crate) use recorder::{fail, note_failed_call};
pub(crate) use run::CarriedName;
pub use run::{Inputs, Trace};
pub use special::Special;
pub use store::RunLimits;
pub use sweep::{Adjoints, sweep};
pub(crate) use sweep::{sweep_from, sweep_from_sum};
pub use tangents::{Dual, Tangents, push_forward, sweep_tangents};
pub(crate) use trace_loops::{LoopRange, LoopThreshold, find_loops};
pub use tracer::{Detail, Tracer};
pub use var::Var;
pub(crate) use weighted::weighted_sum;
