//! The tables of a manifest.

/// The version of the tables. It changes if an older Tympan cannot read them any more.
pub(super) const VERSION: &str = "1";

pub(super) const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS job (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The rows from first_row up to end_row, which is not included, are in the file, except those in the table exception.
CREATE TABLE IF NOT EXISTS file (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    first_row INTEGER NOT NULL,
    end_row INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    batch TEXT,
    upload TEXT,
    error TEXT
);

CREATE TABLE IF NOT EXISTS exception (
    file INTEGER NOT NULL,
    row INTEGER NOT NULL,
    state TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (file, row)
) WITHOUT ROWID;

-- Each time that a file, or the rest of it, was sent or will be. The row is there before anything is sent.
CREATE TABLE IF NOT EXISTS submission (
    file INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    name TEXT NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    token TEXT NOT NULL,
    started INTEGER NOT NULL,
    upload TEXT,
    batch TEXT,
    status TEXT NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    output TEXT,
    errors TEXT,
    error TEXT,
    report TEXT,
    PRIMARY KEY (file, attempt)
) WITHOUT ROWID;
";
