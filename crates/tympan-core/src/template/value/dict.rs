//! Maps that templates create.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use smallvec::SmallVec;

use crate::template::value::limits::Meter;
use crate::template::value::ops;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;

/// Up to this many entries, a linear search is used; above it, an index.
const MAX_SEARCHED: usize = 16;

/// A map that a template created: ordered entries with keys of any type.
///
/// The value of a key depends on the other keys, because an equal key replaces the entry. Therefore
/// [`Dict::keys_origin`] is added to the origin of every lookup.
#[derive(Debug, Default, Clone)]
pub(crate) struct Dict<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// The positions of keys by their hash, once there are many.
    index: Option<Index>,
    depth: u16,
    shape: Origin,
    keys: Origin,
    inner: Origin,
}

#[derive(Debug, Default, Clone)]
struct Index {
    hasher: RandomState,
    places: HashMap<u64, SmallVec<[u32; 2]>>,
}

impl Index {
    /// Hashes a key. Equal values have equal hashes, and numbers are equal whatever their type. Types that are rarely
    /// used as keys share one hash.
    fn hash(&self, key: &Value<'_>) -> u64 {
        if let Some(text) = key.as_str() {
            return self.hasher.hash_one(text);
        }
        match (&key.repr, key.as_float()) {
            (_, Some(number)) => self.hasher.hash_one((number + 0.0).to_bits()),
            (Repr::None, _) => 1,
            _ => 0,
        }
    }

    fn add(&mut self, key: &Value<'_>, place: usize) {
        let hash = self.hash(key);
        self.places.entry(hash).or_default().push(u32::try_from(place).unwrap_or(u32::MAX));
    }
}

impl<'a> Dict<'a> {
    /// Creates an empty map whose set of keys depends on `origin`.
    pub(crate) fn shaped_by(origin: Origin) -> Self {
        Self { shape: origin, keys: origin, inner: origin, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[(Value<'a>, Value<'a>)] {
        &self.entries
    }

    /// Returns how deeply containers are nested in the map, including itself.
    pub(crate) fn depth(&self) -> u16 {
        self.depth.max(1)
    }

    /// Returns the inputs that decided how many entries there are, apart from the keys themselves.
    pub(crate) fn shape(&self) -> Origin {
        self.shape
    }

    /// Returns the inputs that contributed to the keys, and so to the result of every lookup.
    pub(crate) fn keys_origin(&self) -> Origin {
        self.keys
    }

    /// Returns the union of all origins in the map.
    pub(crate) fn inner(&self) -> Origin {
        self.inner
    }

    pub(crate) fn get(&self, key: &Value<'_>, meter: &mut Meter) -> Option<Value<'a>> {
        let (_, value) = &self.entries[self.find(key, meter)?];
        Some(value.clone().also(self.keys))
    }

    pub(crate) fn get_str(&self, key: &str, meter: &mut Meter) -> Option<Value<'a>> {
        self.get(&Value::new(Repr::Str(key), self.keys), meter)
    }

    /// Inserts an entry, or replaces the value of an equal key.
    pub(crate) fn insert(&mut self, key: Value<'a>, value: Value<'a>, meter: &mut Meter) {
        let key_origin = key.whole_origin();
        self.keys |= key_origin;
        self.inner |= key_origin | value.whole_origin();
        self.depth = self.depth.max(1 + key.depth().max(value.depth()));
        match self.find(&key, meter) {
            Some(place) => self.entries[place].1 = value,
            None if meter.is_spent() => {}
            None => self.push(key, value),
        }
    }

    fn push(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(index) = &mut self.index {
            index.add(&key, self.entries.len());
        }
        self.entries.push((key, value));
        if self.index.is_none() && self.entries.len() > MAX_SEARCHED {
            let mut index = Index::default();
            for (place, (key, _)) in self.entries.iter().enumerate() {
                index.add(key, place);
            }
            self.index = Some(index);
        }
    }

    fn find(&self, key: &Value<'_>, meter: &mut Meter) -> Option<usize> {
        if !meter.spend(1 + ops::weight(key)) {
            return None;
        }
        let Some(index) = &self.index else {
            return self.entries.iter().position(|(name, _)| ops::equal(name, key, meter));
        };
        let places = index.places.get(&index.hash(key))?;
        let mut places = places.iter().map(|place| *place as usize);
        places.find(|place| meter.spend(1) && ops::equal(&self.entries[*place].0, key, meter))
    }
}
