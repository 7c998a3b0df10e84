//! The option that decides when to use colors.

use clap::ValueEnum;

/// When to use colors.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// Only on a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Sets this choice for everything that prints.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
