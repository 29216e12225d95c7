//! eBPF programs in files: the bytes of their instructions, or text.

use isa::ebpf::{Insn, assemble, decode as decode_slots, from_bytes};

use super::converted::Slot;
use crate::answer::Failure;
use crate::program_input::ProgramInput;

/// Bytes of the longest text that is read: a million instructions with a label
/// each.
const LONGEST_TEXT: u64 = 64 << 20;

/// Reads a program: text, unless it has bytes that no text has.
pub(super) fn decode(input: &ProgramInput) -> Result<Vec<Insn>, Failure> {
    let bytes = input.read_file(LONGEST_TEXT)?;
    let is_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    match str::from_utf8(&bytes) {
        Ok(source) if bytes.iter().all(is_text) => assemble(source).map_err(|error| {
            let line = source.lines().nth(error.line.wrapping_sub(1));
            let failure = Failure::new(&error).within(input.name());
            match line {
                Some(line) => failure.excerpt(line),
                None => failure,
            }
        }),
        _ => match from_bytes(&bytes) {
            Ok(slots) => Ok(decode_slots(&slots)),
            Err(error) => Err(Failure::new(error).within(input.name())),
        },
    }
}

/// The instructions with their numbers; the second slots of 64-bit immediates
/// belong to the first ones.
pub(super) fn slots(insns: &[Insn]) -> Vec<Slot> {
    let numbered = insns.iter().enumerate();
    numbered
        .filter(|(_, insn)| !matches!(insn, Insn::Imm64High))
        .map(|(index, &insn)| Slot {
            index,
            origin: None,
            insn,
            sees_packets: false,
        })
        .collect()
}
