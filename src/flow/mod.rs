//! Run-time support for annotated functions: regions, and the values carried to joins.
//!
//! [`traced`](crate::traced) rewrites a function: it enters a [`Region`] at each control-flow
//! keyword, and hands over the changed variables to a [`Carrier`] where the region ends and at each
//! loop head. [`Carry`] says what a type hands over. The other items are called by generated code
//! only: probes, which find out what the type of a variable implements (`probe`, `element`,
//! `known_aliasing`), shadows of plain variables (`shadow`, `plain`), the iterator of a `for` loop
//! (`items`) and the operator `?` (`try_operator`).

mod carrier;
mod carry;
mod collections;
mod element;
mod foreign;
mod items;
mod known_aliasing;
mod plain;
mod probe;
mod region;
mod shadow;
mod state_hash;
mod try_operator;

pub use carrier::Carrier;
pub use carry::Carry;
#[doc(hidden)]
pub use element::{
    CarriedElement, CarriedWhole, ComparedIndices, Element, ElementView, HiddenElement, Indexed,
    Numbered, OtherIndices, SameIndex, UncarriedElement, ViewedElement, ViewedWhole,
};
#[doc(hidden)]
pub use items::{Counted, ItemOrder, Items, Memory, Order, OtherOrder, items};
#[doc(hidden)]
pub use plain::{Numbering, Plain};
#[doc(hidden)]
pub use probe::{
    Carried, Hidden, Hold, Holds, HoldsKnown, KnownMethods, MayHold, NoReference, OtherMethods,
    Own, OwnMethods, Probe, Reach, Reaches, Uncarried, View, Viewed,
};
#[doc(hidden)]
pub use region::{Region, enter, enter_if, join};
#[doc(hidden)]
pub use shadow::{Comparison, Shadow, Track, Tracked, Untracked};
#[doc(hidden)]
pub use try_operator::{Residual, TryOperator};
