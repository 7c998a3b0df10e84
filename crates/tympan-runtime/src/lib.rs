//! Tympan's runtime: everything that waits.
