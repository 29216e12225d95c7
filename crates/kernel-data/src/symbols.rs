//! Symbols of the built-in kernels: those that `/proc/kallsyms` of each lists.
//!
//! Most are the functions of BTF; the data file has the exceptions, a line for each: `NAME` is
//! a symbol that is no function of BTF, `-NAME` a function of BTF without a symbol, and
//! `*NAME` a name of several symbols. A function has a symbol `__pfx_NAME` for the padding
//! in front of it, too.
//!
//! Addresses are those of a model: they differ, and lie where a kernel's text does.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use btf::{Btf, Kind};
use spec::kernel::{SymbolAddress, Symbols};

use crate::{Configuration, decompress};

/// Address of the first symbol, and distance of two.
const FIRST: u64 = 0xffff_ffff_8100_0000;
const DISTANCE: u64 = 16;
/// Prefix of the padding in front of a function.
const PADDING: &str = "__pfx_";

/// A line of the data file.
#[derive(Clone, Copy)]
enum Exception {
    /// A symbol that is no function of BTF.
    Symbol,
    /// A function of BTF without a symbol.
    None,
    /// A name of several symbols.
    Several,
}

/// Symbols of a kernel that has these types. The text of the exceptions is made at the first lookup.
pub fn of(text: impl Fn() -> String + Send + Sync + 'static, types: Arc<Btf<'static>>) -> Symbols {
    let exceptions = OnceLock::new();
    Symbols::new(move |name| {
        let exceptions = exceptions.get_or_init(|| read(&text()));
        let name = name.strip_prefix(PADDING).unwrap_or(name);
        let address = |place: usize| FIRST + place as u64 * DISTANCE;
        let behind_types = |place: &usize| address(types.len() + place);
        match exceptions.get(name) {
            Some((_, Exception::None)) => SymbolAddress::Missing,
            Some((place, Exception::Symbol)) => SymbolAddress::At(behind_types(place)),
            Some((place, Exception::Several)) => {
                let first = behind_types(place);
                SymbolAddress::Several(first, first + DISTANCE / 2)
            }
            None => match types.find(Kind::Func, name) {
                Some(function) => SymbolAddress::At(address(function.id().0 as usize)),
                None => SymbolAddress::Missing,
            },
        }
    })
}

/// The exceptions of a built-in kernel.
pub(crate) fn text(configuration: Configuration) -> String {
    let bytes = decompress(match configuration {
        Configuration::Debian => include_bytes!("../data/linux-6.18.symbols.gz"),
        Configuration::Minimal => include_bytes!("../data/linux-6.18-minimal.symbols.gz"),
    });
    String::from_utf8(bytes).expect("text as it was written")
}

/// The exceptions by name, with the number of their line.
fn read(text: &str) -> HashMap<Box<str>, (usize, Exception)> {
    let lines = text.lines().enumerate();
    let exceptions = lines.map(|(place, line)| {
        let (name, exception) = match line.split_at_checked(1) {
            Some(("-", name)) => (name, Exception::None),
            Some(("*", name)) => (name, Exception::Several),
            _ => (line, Exception::Symbol),
        };
        (name.into(), (place, exception))
    });
    exceptions.collect()
}
