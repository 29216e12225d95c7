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

/// The lines of both registries, each behind its mark.
pub fn marked_text() -> Vec<u8> {
    decompress(include_bytes!("../data/linux-6.18.registry.gz"))
}

/// The registry of a configuration, resolved to the ids of these types.
pub(crate) fn of(configuration: Configuration, types: &Btf<'_>) -> Registry {
    let marked = String::from_utf8(marked_text()).expect("text as it was written");
    let has = |before: &str| before == OF_BOTH || before == mark(configuration);
    let lines = |is_wanted: &dyn Fn(&str, &str) -> bool| -> String {
        let lines = marked.lines().filter_map(|line| {
            let (before, line) = line.split_at_checked(1)?;
            is_wanted(before, line).then_some([line, "\n"])
        });
        lines.flatten().collect()
    };
    let read = |lines: &str| text::parse(lines).expect("lines as they were written");
    let mut registry = read(&lines(&|before, _| has(before)));
    if configuration == Configuration::Debian {
        // What the minimal kernel has built in is in modules of Debian's.
        let others = read(&lines(&|before, line| {
            !has(before) && line.starts_with("kfunc ")
        }));
        registry.add_kfuncs(others);
    }
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    registry
}
