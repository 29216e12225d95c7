//! The kernel's symbols, from the text that `/proc/kallsyms` has.

use std::collections::HashMap;

use crate::target::SymbolAddress;

/// The addresses of a kernel's symbols, by name.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols(HashMap<Box<str>, SymbolAddress>);

impl KernelSymbols {
    /// Reads lines `address kind name`, perhaps with a module behind; what is no such
    /// line is passed over. Variables that a compiler made local to a module
    /// (`name.llvm.123`) go by their own name.
    pub fn read(text: &str) -> KernelSymbols {
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
        KernelSymbols(symbols)
    }

    /// Where the symbol of a name is.
    pub fn address(&self, name: &str) -> SymbolAddress {
        let found = self.0.get(name);
        found.copied().unwrap_or(SymbolAddress::Missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_the_kernel_writes_them() {
        let symbols = KernelSymbols::read(
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
