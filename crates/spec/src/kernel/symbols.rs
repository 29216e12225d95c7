//! Symbols of a kernel and their addresses.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Result of a symbol look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolAddress {
    /// There is no such symbol.
    Missing,
    /// The symbol is at this address.
    At(u64),
    /// There are several symbols of that name, two of them at these addresses.
    Several(u64, u64),
}

/// Look-up of symbols by name.
#[derive(Clone)]
pub struct Symbols(Arc<dyn Fn(&str) -> SymbolAddress + Send + Sync>);

impl Symbols {
    /// Symbols that a function finds.
    pub fn new(find: impl Fn(&str) -> SymbolAddress + Send + Sync + 'static) -> Symbols {
        Symbols(Arc::new(find))
    }

    /// Address of the symbol of that name.
    pub fn address(&self, name: &str) -> SymbolAddress {
        (self.0)(name)
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Symbols")
    }
}

/// Symbols by name, as `/proc/kallsyms` or `System.map` lists them.
#[derive(Clone, Debug, Default)]
pub struct SymbolTable(HashMap<Box<str>, SymbolAddress>);

impl SymbolTable {
    /// Reads lines `address kind name`, perhaps with a module behind; what is no such
    /// line is passed over. Variables that a compiler made local to a module
    /// (`name.llvm.123`) go by their own name.
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
        // Only data is known by its own name.
        assert_eq!(at("cut"), SymbolAddress::Missing);
        assert_eq!(at("cut.llvm.5"), SymbolAddress::At(0xffff_ffff_c000_0000));
        assert_eq!(at("no_address"), SymbolAddress::Missing);
    }
}
