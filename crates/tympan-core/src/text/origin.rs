//! The origin of text: which inputs wrote it.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The set of inputs that contributed to some text. The empty set means that the author wrote it.
///
/// An input is identified by its index in the template's list of inputs. The first 63 inputs have a bit each, and all
/// later ones share the last bit. A set therefore never loses an input; it only becomes less precise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin(u64);

impl Origin {
    /// The origin of text that no input contributed to.
    pub const AUTHOR: Self = Self(0);

    /// The number of bits: one for each input that can be distinguished, and one that the remaining inputs share.
    pub const BITS: usize = 64;

    /// Returns the set that contains only the input with this index.
    pub const fn input(index: usize) -> Self {
        let bit = if index < Self::BITS - 1 { index } else { Self::BITS - 1 };
        Self(1 << bit)
    }

    /// Returns whether the set is empty, so that only the author wrote the text.
    pub const fn is_author(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the two sets have an input in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set contains the input with this index, or one that shares its bit.
    pub const fn contains(self, index: usize) -> bool {
        self.intersects(Self::input(index))
    }

    /// Returns the inputs in this set that are not in the other one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether all inputs in this set are also in the other one.
    pub const fn is_within(self, other: Self) -> bool {
        self.without(other).is_author()
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Origin {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Origin {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl FromIterator<Origin> for Origin {
    fn from_iter<I: IntoIterator<Item = Self>>(origins: I) -> Self {
        origins.into_iter().fold(Self::AUTHOR, Self::union)
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_author() {
            return f.write_str("author");
        }
        f.debug_set().entries((0..Self::BITS).filter(|&index| self.contains(index))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_inputs_share_the_last_bit() {
        assert_eq!(Origin::input(63), Origin::input(1000));
        assert_ne!(Origin::input(62), Origin::input(63));
        assert!(Origin::input(1000).contains(64));
    }
}
