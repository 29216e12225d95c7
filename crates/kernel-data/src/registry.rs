//! The registry of each configuration.
//!
//! One text has the lines of both (`spec::registry::text`), each behind a [`mark`] that says which
//! configuration has it.

use btf::{Btf, Kind};
use spec::registry::{Registry, text};

use crate::{Configuration, decompress};

/// Lines that both configurations have.
pub const OF_BOTH: &str = " ";

/// The character in front of lines that one configuration has alone.
pub const fn mark(configuration: Configuration) -> &'static str {
    match configuration {
        Configuration::Debian => "+",
        Configuration::Minimal => "-",
    }
}

/// The registry of a configuration, resolved to the ids of these types.
pub(crate) fn of(configuration: Configuration, types: &Btf<'_>) -> Registry {
    let bytes = decompress(include_bytes!("../data/linux-6.18.registry.gz"));
    let marked = String::from_utf8(bytes).expect("text as it was written");
    let lines = marked.lines().filter_map(|line| {
        let (before, line) = line.split_at_checked(1)?;
        (before == OF_BOTH || before == mark(configuration)).then_some([line, "\n"])
    });
    let lines: String = lines.flatten().collect();
    let mut registry = text::parse(&lines).expect("lines as they were written");
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    registry
}
