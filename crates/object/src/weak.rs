//! Weakening of externs: undefined global symbols become weak, so that only the programs
//! that use a missing function or variable fail. Linear in the number of symbols.

/// Size of a section header and of a symbol in bytes (ELF64).
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// Section type SHT_SYMTAB.
const SYMBOLS: u32 = 2;
/// Bindings, in the upper half of `st_info`.
const GLOBAL: u8 = 1;
const WEAK: u8 = 2;

/// Makes undefined global symbols weak. No effect on files that are not little-endian
/// ELF64, and on tables that reach beyond the file.
pub fn make_undefined_symbols_weak(file: &mut [u8]) {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return;
    }
    let (Some(table), Some(count)) = (long(file, 40), half(file, 60)) else {
        return;
    };
    for index in 0..usize::from(count) {
        let Some(header) = table.checked_add(index * SECTION) else {
            return;
        };
        let (Some(kind), Some(start), Some(size)) = (
            word(file, header + 4),
            long(file, header + 24),
            long(file, header + 32),
        ) else {
            return;
        };
        let symbols = start
            .checked_add(size)
            .and_then(|end| file.get_mut(start..end));
        if let Some(symbols) = symbols.filter(|_| kind == SYMBOLS) {
            for symbol in symbols.chunks_exact_mut(SYMBOL).skip(1) {
                let is_undefined = symbol[6..8] == [0, 0];
                if is_undefined && symbol[4] >> 4 == GLOBAL {
                    symbol[4] = symbol[4] & 15 | WEAK << 4;
                }
            }
        }
    }
}

fn half(file: &[u8], at: usize) -> Option<u16> {
    let bytes = file.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn word(file: &[u8], at: usize) -> Option<u32> {
    let bytes = file.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn long(file: &[u8], at: usize) -> Option<usize> {
    let bytes = file.get(at..)?.first_chunk()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undefined_globals_become_weak_and_nothing_else() {
        let mut file = vec![0; 64 + 2 * SECTION + 4 * SYMBOL];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[40] = 64;
        file[60] = 2;
        let (header, symbols) = (64 + SECTION, 64 + 2 * SECTION);
        file[header + 4] = 2;
        file[header + 24..header + 26].copy_from_slice(&(symbols as u16).to_le_bytes());
        file[header + 32] = 4 * SYMBOL as u8;
        // The first symbol is null; then global, local and defined.
        for (index, info, section) in [(0, 0x12, 0), (1, 0x12, 0), (2, 0x02, 0), (3, 0x12, 5)] {
            file[symbols + index * SYMBOL + 4] = info;
            file[symbols + index * SYMBOL + 6] = section;
        }
        let mut weakened = file.clone();
        make_undefined_symbols_weak(&mut weakened);
        file[symbols + SYMBOL + 4] = 0x22;
        assert_eq!(weakened, file);
        // Truncated files are unchanged.
        for length in 0..file.len() {
            make_undefined_symbols_weak(&mut file[..length].to_vec());
        }
    }
}
