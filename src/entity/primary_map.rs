//! `PrimaryMap`: a vector indexed by a typed id.

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use super::Entity;

/// A growing array of `V`, indexed by the ids that [`PrimaryMap::push`] returns.
///
/// Indexing panics for an id of another map, as a slice does for an index that is too large: only
/// the map makes ids, so this is a bug in the caller.
///
/// # Examples
///
/// ```
/// use phigrad::internals::entity::PrimaryMap;
/// use phigrad::internals::ssa::PlaceId;
///
/// let mut names: PrimaryMap<PlaceId, &str> = PrimaryMap::new();
/// let here = names.push("here");
/// let mut visits = PrimaryMap::filled(0, names.len());
/// visits[here] += 1;
/// assert_eq!((names[here], visits[here], here.to_string()), ("here", 1, "p0".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PrimaryMap<K, V> {
    items: Vec<V>,
    key: PhantomData<K>,
}

impl<K: Entity, V> PrimaryMap<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self { items: Vec::new(), key: PhantomData }
    }

    /// A map of `len` clones of `value`: a secondary map for the ids of another map.
    pub fn filled(value: V, len: usize) -> Self
    where
        V: Clone,
    {
        Self { items: vec![value; len], key: PhantomData }
    }

    /// Appends `value` and returns its id.
    pub fn push(&mut self, value: V) -> K {
        let key = K::from_index(self.items.len());
        self.items.push(value);
        key
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tests whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Truncates the map to the first `len` items.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }

    /// The item of `key`, or `None` if `key` is out of range.
    pub fn get(&self, key: K) -> Option<&V> {
        self.items.get(key.index())
    }

    /// The id that the next [`PrimaryMap::push`] will return.
    pub fn next_key(&self) -> K {
        K::from_index(self.items.len())
    }

    /// All ids in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.items.len()).map(K::from_index)
    }

    /// All ids with their items, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(i, v)| (K::from_index(i), v))
    }

    /// All items in the order of their ids.
    pub fn values(&self) -> core::slice::Iter<'_, V> {
        self.items.iter()
    }
}

impl<K: Entity, V> Default for PrimaryMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, V> Index<K> for PrimaryMap<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, key: K) -> &V {
        &self.items[key.index()]
    }
}

impl<K: Entity, V> IndexMut<K> for PrimaryMap<K, V> {
    #[inline]
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.items[key.index()]
    }
}

impl<K: Entity, V> FromIterator<V> for PrimaryMap<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        Self { items: items.into_iter().collect(), key: PhantomData }
    }
}
