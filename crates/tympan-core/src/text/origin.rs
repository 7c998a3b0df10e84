//! Who wrote a byte.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// The set of inputs that took part in writing some text. The empty set means the author.
///
/// An input is known by its index in the template's list of inputs. Sixty-three of them have a
/// bit of their own; all later ones share the last bit, so that a set never forgets, it only
/// becomes less precise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin(u64);

impl Origin {
    /// Text that no input had a part in.
    pub const AUTHOR: Self = Self(0);

    /// The number of inputs that can be told apart, plus one that stands for the rest.
    pub const BITS: usize = 64;

    /// The input with this index.
    pub const fn input(index: usize) -> Self {
        let bit = if index < Self::BITS - 1 { index } else { Self::BITS - 1 };
        Self(1 << bit)
    }

    /// Whether no input had a part in it.
    pub const fn is_author(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets have an input in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the set holds the input with this index (or one that shares its bit).
    pub const fn contains(self, index: usize) -> bool {
        self.intersects(Self::input(index))
    }

    /// Returns the inputs of this set that are not in the other one.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether all inputs of this set are in the other one.
    pub const fn is_within(self, other: Self) -> bool {
        self.without(other).is_author()
    }

    /// Both sets together.
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
