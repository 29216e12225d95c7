//! Symbols of a kernel and their addresses.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Result of a symbol lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolAddress {
    /// The symbol is missing.
    Missing,
    /// The symbol has this address.
    At(u64),
    /// The name is ambiguous: two symbols have these addresses.
    Several(u64, u64),
}

/// Lookup of symbols by name.
#[derive(Clone)]
pub struct Symbols(Arc<dyn Fn(&str) -> SymbolAddress + Send + Sync>);

impl Symbols {
    /// Symbols by a lookup function.
    pub fn new(find: impl Fn(&str) -> SymbolAddress + Send + Sync + 'static) -> Symbols {
        Symbols(Arc::new(find))
    }

    /// Address of the symbol with this name.
    pub fn address(&self, name: &str) -> SymbolAddress {
        (self.0)(name)
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Symbols")
    }
}

/// Symbol table in the form of `/proc/kallsyms` or `System.map`.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable(HashMap<Box<str>, SymbolAddress>);

impl SymbolTable {
    /// Parses lines `address type name`, optionally followed by a module; skips other
    /// lines. Data symbols with a suffix of LTO (`name.llvm.123`) are entered without it.
    pub fn read(text: &str) -> SymbolTable {
        let mut symbols: HashMap<Box<str>, SymbolAddress> = HashMap::new();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else {
                continue;
            };
            let name = match (kind, name.split_once(".llvm.")) {
                ("d", Some((name, _))) => name,
                _ => name,
            };
            match symbols.get_mut(name) {
                None => {
                    symbols.insert(name.into(), SymbolAddress::At(address));
                }
                Some(known) => {
                    if let SymbolAddress::At(first) = *known
                        && first != address
                    {
                        *known = SymbolAddress::Several(first, address);
                    }
                }
            }
        }
        SymbolTable(symbols)
    }

    /// Address of the symbol of that name.
    pub fn address(&self, name: &str) -> SymbolAddress {
        let found = self.0.get(name);
        found.copied().unwrap_or(SymbolAddress::Missing)
    }
}

impl From<SymbolTable> for Symbols {
    fn from(table: SymbolTable) -> Symbols {
        Symbols::new(move |name| table.address(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let symbols = SymbolTable::read(
            "ffffffff81000000 T _stext\n\
             ffffffff82000010 d state.llvm.4711\n\
             ffffffff81000020 t twice\n\
             ffffffff81000030 t twice\n\
             ffffffff81000040 t again\n\
             ffffffff81000040 t again\n\
             ffffffffc0000000 t cut.llvm.5\t[module]\n\
             nonsense\n\
             xyz T no_address\n",
        );
        let at = |name| symbols.address(name);
        assert_eq!(at("_stext"), SymbolAddress::At(0xffff_ffff_8100_0000));
        assert_eq!(at("state"), SymbolAddress::At(0xffff_ffff_8200_0010));
        let several = SymbolAddress::Several(0xffff_ffff_8100_0020, 0xffff_ffff_8100_0030);
        assert_eq!(at("twice"), several);
        assert_eq!(at("again"), SymbolAddress::At(0xffff_ffff_8100_0040));
        // The suffix is removed from data symbols only.
        assert_eq!(at("cut"), SymbolAddress::Missing);
        assert_eq!(at("cut.llvm.5"), SymbolAddress::At(0xffff_ffff_c000_0000));
        assert_eq!(at("no_address"), SymbolAddress::Missing);
    }
}
