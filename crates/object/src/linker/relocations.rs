//! Static linking of relocations: offsets and symbol indices are adjusted.
//!
//! A relocation with a section symbol (calls of static functions, uses of static
//! variables) has its offset in the instruction: it grows by the offset of the input
//! section in the output section.
//! means: that grows by what now stands before.

use isa::ebpf::RawInsn;

use super::LinkFault;
use super::input::{Input, SLOT};
use super::output::{Output, SYMBOLS};
use crate::Error;
use crate::elf::{ElfFault, Relocation, Section, SymbolKind, SymbolPlace};

/// Appends the relocations of a file. `numbers` maps its symbols to those of the output.
pub(super) fn append(
    input: &mut Input<'_>,
    numbers: &[usize],
    output: &mut Output,
) -> Result<(), Error> {
    for index in 1..input.parts.len() {
        let part = &input.parts[index];
        let Some(section) = part.section.filter(|_| part.is_relocations()) else {
            continue;
        };
        let target = section.target.0 as usize;
        if input.parts[target].is_left_out {
            continue;
        }
        let to = append_section(input, &section, numbers, output)
            .map_err(|error| error.in_section(section.name))?;
        input.parts[index].to = to;
    }
    Ok(())
}

fn append_section(
    input: &Input<'_>,
    section: &Section<'_>,
    numbers: &[usize],
    output: &mut Output,
) -> Result<usize, Error> {
    let target = &input.parts[section.target.0 as usize];
    let to = match output.find(section.name.as_bytes()) {
        Some(known) => {
            output.check_match(known, section)?;
            known
        }
        None => output.add_section(section.name.as_bytes()),
    };
    output.ensure_header(to, section)?;
    let target_number = output.number(target.to);
    if let Some(header) = &mut output.sections[to].header {
        header.link = SYMBOLS;
        header.info = target_number;
    }
    let mut data = Vec::with_capacity(section.size as usize);
    for relocation in input.elf.relocations(section)? {
        let Relocation {
            offset,
            symbol,
            kind,
        } = relocation;
        let new_offset = offset.wrapping_add(target.at);
        let new_symbol = numbers.get(symbol.0 as usize).copied().unwrap_or(0);
        data.extend_from_slice(&new_offset.to_le_bytes());
        data.extend_from_slice(&kind.to_le_bytes());
        data.extend_from_slice(&(new_symbol as u32).to_le_bytes());
        let symbol = input.elf.symbol(symbol);
        let symbol = symbol.filter(|symbol| symbol.kind == SymbolKind::Section);
        let Some(symbol) = symbol else {
            continue;
        };
        let SymbolPlace::Section(part) = symbol.place else {
            return Err(ElfFault::NoSuchSection { section: 0 }.into());
        };
        if target.section.is_none_or(|section| !section.executable) {
            return Err(LinkFault::SectionInData.into());
        }
        let distance = input.parts[part.0 as usize].at;
        let code = &mut output.sections[target.to].data;
        shift(code, new_offset, distance).ok_or(LinkFault::RelocationOutside { offset })?;
    }
    output.append(to, section, &data)?;
    Ok(to)
}

/// Adds `distance` to the offset in the instruction at `offset`.
fn shift(code: &mut [u8], offset: u64, distance: u64) -> Option<()> {
    let start = usize::try_from(offset).ok()?;
    let slot = code.get_mut(start..start.checked_add(SLOT as usize)?)?;
    let (slot, _) = slot.as_chunks_mut::<8>();
    let mut insn = RawInsn::from_le_bytes(slot[0]);
    let distance = match insn.is_call() {
        true => distance / SLOT,
        false => distance,
    };
    insn.imm = insn.imm.wrapping_add(distance as i32);
    slot[0] = insn.to_le_bytes();
    Some(())
}
