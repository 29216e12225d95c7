//! Instructions without a source line: what the compiler adds at the begin of a block has none, which the line
//! table of DWARF says and line_info does not, where a record goes on to the next one in the order of the code.

use gimli::{DebugLine, DebugLineOffset, EndianSlice, LittleEndian};
use object::elf::{Elf, SymbolKind, SymbolPlace};
use program::Program;

use super::read::relocated;

/// The line table of an object.
#[derive(Debug)]
pub struct LineTable {
    functions: Vec<LinedFunction>,
    /// Addresses from which instructions have a line, or have none, ascending.
    rows: Vec<(u64, bool)>,
}

#[derive(Debug)]
struct LinedFunction {
    name: String,
    section: String,
    /// With the number of the section in the upper half.
    start: u64,
    size: u64,
}

impl LineTable {
    /// That of an ELF file; `None` if it has none that can be read.
    pub fn read(file: &[u8]) -> Option<LineTable> {
        let elf = Elf::parse(file).ok()?;
        let bytes = relocated(&elf, ".debug_line")?;
        let table = DebugLine::from(EndianSlice::new(&bytes, LittleEndian));
        let mut rows = Vec::new();
        let mut at = 0;
        // What a damaged table has in front of the damage is kept.
        while let Ok(unit) = table.program(DebugLineOffset(at), 8, None, None) {
            let len = unit.header().unit_length();
            let mut states = unit.rows();
            while let Ok(Some((_, row))) = states.next_row() {
                if !row.end_sequence() {
                    rows.push((row.address(), row.line().is_some()));
                }
            }
            at += len + 4;
            if len == 0 || at >= bytes.len() {
                break;
            }
        }
        // Of rows of one address the last one holds.
        rows.sort_by_key(|(address, _)| *address);
        let functions = elf.symbols().iter().filter_map(|symbol| {
            let SymbolPlace::Section(id) = symbol.place else {
                return None;
            };
            let is_function = symbol.kind == SymbolKind::Function;
            Some(LinedFunction {
                name: elf.symbol_name(symbol).filter(|_| is_function)?.to_string(),
                section: elf.section(id)?.name.to_string(),
                start: u64::from(id.0) << 32 | symbol.value,
                size: symbol.size,
            })
        });
        Some(LineTable {
            functions: functions.collect(),
            rows,
        })
    }

    /// The slots of a program from which instructions have a line, or have none, ascending.
    pub fn of(&self, program: &Program) -> Vec<(u32, bool)> {
        let mut places: Vec<(u32, bool)> = Vec::new();
        for subprog in program.subprogs() {
            let section = match subprog.start {
                0 => program.section(),
                _ => ".text",
            };
            let Some(function) = self.function(&subprog.name, section) else {
                continue;
            };
            let first = self
                .rows
                .partition_point(|(address, _)| *address < function.start);
            let inside = self.rows[first..].iter();
            let inside =
                inside.take_while(|(address, _)| *address < function.start + function.size);
            for (address, has_line) in inside {
                let slot = subprog.start + ((address - function.start) / 8) as u32;
                places.pop_if(|(last, _)| *last == slot);
                places.push((slot, *has_line));
            }
        }
        places
    }

    /// The function of a name: of several the one in a section.
    fn function(&self, name: &str, section: &str) -> Option<&LinedFunction> {
        let named = || {
            self.functions
                .iter()
                .filter(|function| function.name == name)
        };
        let only = || named().next().filter(|_| named().count() == 1);
        named()
            .find(|function| function.section == section)
            .or_else(only)
    }
}
