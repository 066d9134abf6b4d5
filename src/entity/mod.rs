//! Typed ids and the arrays that they index.
//!
//! An id is a `NonZeroU32` inside, so `Option<Id>` is as small as the id. Its
//! `Debug`, its `Display` and its spelling in the text form of the graph are
//! the same: a prefix and the index (`v7`, `b0`).

mod primary_map;

pub use primary_map::PrimaryMap;

/// A typed index into one [`PrimaryMap`].
pub trait Entity: Copy + Eq + Ord + core::hash::Hash {
    /// The id with this index. An index above `u32::MAX - 1` saturates; an array of that length
    /// would take a hundred gigabytes.
    fn from_index(index: usize) -> Self;

    /// The index of the id.
    fn index(self) -> usize;
}

/// Defines an [`Entity`] type from its docs, its name and the prefix of its text form.
macro_rules! entity {
    ($(#[$meta:meta])* $name:ident, $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(core::num::NonZeroU32);

        impl $crate::entity::Entity for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                let raw = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
                Self(core::num::NonZeroU32::new(raw).unwrap_or(core::num::NonZeroU32::MAX))
            }

            #[inline]
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!($prefix, "{}"), $crate::entity::Entity::index(*self))
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use entity;

#[cfg(test)]
mod tests {
    use super::*;

    entity!(
        /// An id for these tests.
        Thing,
        "t"
    );

    #[test]
    fn an_optional_id_costs_nothing() {
        assert_eq!(size_of::<Option<Thing>>(), size_of::<u32>());
    }

    #[test]
    fn debug_display_and_index_agree() {
        let thing = Thing::from_index(41);
        assert_eq!(thing.index(), 41);
        assert_eq!(format!("{thing} {thing:?}"), "t41 t41");
    }
}
