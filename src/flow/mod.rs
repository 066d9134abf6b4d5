//! Control flow of annotated functions: regions, and what is carried to the
//! points where their ways meet.
//!
//! [`traced`](crate::traced) rewrites a function so that it enters a [`Region`]
//! at each control-flow keyword, and hands over the variables that were changed
//! when the ways meet again and at each loop head. [`Carry`] says what a type
//! has to hand over. What else is here serves generated code alone.

mod carrier;
mod carry;
mod collections;
mod element;
mod foreign;
mod items;
mod probe;
mod question;
mod region;
mod steady;

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
pub use probe::{
    Carried, Hidden, Hold, Holds, HoldsSteadily, MayHold, NoReference, OtherMethods, Own,
    OwnMethods, Probe, Reach, Reaches, SteadyMethods, Uncarried, View, Viewed,
};
#[doc(hidden)]
pub use question::{Question, Residual};
#[doc(hidden)]
pub use region::{Region, enter, join};
