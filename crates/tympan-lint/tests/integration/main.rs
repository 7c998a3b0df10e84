//! The tests of the rules.

mod table;
