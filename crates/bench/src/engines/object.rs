//! The program in a compiled object of a workload.

use std::fmt;

use isa::ebpf::{self, Insn, RawInsn, Reg, Size};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

/// The function that a workload starts in, for every compiler.
pub(super) const ENTRY: &str = "entry";

/// Reason why an object holds no program that can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Not an ELF file, or the section is missing.
    Elf(String),
    /// The text has relocations.
    Relocations,
    /// `ENTRY` is not where the text starts.
    Entry,
    /// Its text is not made of whole instructions.
    Text,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Elf(said) => said.fmt(f),
            Unreadable::Relocations => f.write_str("it refers to what is outside its text"),
            Unreadable::Entry => write!(f, "its text does not start with {ENTRY}"),
            Unreadable::Text => f.write_str("its text ends inside an instruction"),
        }
    }
}

/// The instructions of an object, the entry first.
pub(super) fn program(object: &[u8]) -> Result<Vec<RawInsn>, Unreadable> {
    let said = |error: object::Error| Unreadable::Elf(error.to_string());
    let file = ElfFile64::<LittleEndian>::parse(object).map_err(said)?;
    let text = file
        .section_by_name(".text")
        .ok_or_else(|| Unreadable::Elf("it has no .text".into()))?;
    if text.relocations().next().is_some() {
        return Err(Unreadable::Relocations);
    }
    let mut symbols = file.symbols();
    if !symbols.any(|symbol| symbol.name() == Ok(ENTRY) && symbol.address() == 0) {
        return Err(Unreadable::Entry);
    }
    ebpf::from_bytes(text.data().map_err(said)?).map_err(|_| Unreadable::Text)
}

/// The program as the kernel runs it: the two fields of the context, which a
/// program sees as 32-bit numbers, are loaded as the pointers that they are.
/// Every workload loads them from `r1` before it computes anything in it.
pub(super) fn widened(program: &[RawInsn]) -> Vec<RawInsn> {
    let mut insns = ebpf::decode(program);
    for insn in &mut insns {
        let overwrites = insn.writes().contains(Reg::R1);
        if let Insn::Load {
            size: size @ Size::W,
            base: Reg::R1,
            off: off @ (0 | 4),
            ..
        } = insn
        {
            *size = Size::DW;
            *off *= 2;
        }
        if overwrites {
            break;
        }
    }
    ebpf::encode(&insns).expect("what was decoded can be encoded")
}
