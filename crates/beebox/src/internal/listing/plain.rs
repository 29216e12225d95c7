//! Programs without an object: numbered instructions, as text and as JSON.

use serde::Serialize;

use super::slot::{Slot, SlotRecord};
use crate::internal::ebpf::{Callee, Insn, NoEncoding, RawInsn, encode, helper_name, to_bytes};

/// The instructions with their numbers; the second slots of 64-bit immediates
/// belong to the first ones.
pub fn slots(insns: &[Insn]) -> Vec<Slot> {
    let numbered = insns.iter().enumerate();
    numbered
        .filter(|(_, insn)| !matches!(insn, Insn::Imm64High))
        .map(|(index, &insn)| Slot {
            index,
            origin: None,
            insn,
            name: match insn {
                Insn::Call(Callee::Helper(number)) => helper_name(number).map(str::to_owned),
                _ => None,
            },
            source: None,
        })
        .collect()
}

/// The eight bytes of a slot.
fn hex(slot: RawInsn) -> String {
    slot.to_le_bytes()
        .map(|byte| format!("{byte:02x}"))
        .join(" ")
}

/// A slot as C code initialises a `struct bpf_insn`.
fn initializer(slot: RawInsn) -> String {
    let (dst, src) = (slot.dst(), slot.src());
    let RawInsn { code, off, imm, .. } = slot;
    format!("{{ {code:#04x}, {dst}, {src}, {off}, {imm} }},\n")
}

/// One instruction in JSON.
#[derive(Serialize)]
pub struct Record<'s> {
    #[serde(flatten)]
    slot: SlotRecord<'s>,
    /// Its slot, or both.
    hex: String,
    kernel_text: String,
}

impl<'s> Record<'s> {
    /// An instruction of a program in these slots.
    pub fn of(slot: &'s Slot, raw: &[RawInsn]) -> Record<'s> {
        let slots = match slot.insn {
            Insn::LoadImm64 { .. } => 2,
            _ => 1,
        };
        let slots = raw.iter().skip(slot.index).take(slots);
        let bytes: Vec<String> = slots.map(|&raw| hex(raw)).collect();
        Record {
            slot: slot.record(),
            hex: bytes.join(" "),
            kernel_text: slot.log_text(),
        }
    }
}

/// A form of a program without an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingForm {
    /// Its bytes.
    Bytes,
    /// Bytes in hexadecimal, a line for each slot.
    Hex,
    /// Initializers of C.
    Initializers,
    /// Numbered lines, as llvm-objdump has them.
    Llvm,
    /// LLVM's assembly language.
    Asm,
    /// Lines of the verifier's log.
    Log,
    /// A JSON object.
    Json,
}

#[derive(Serialize)]
struct ProgramRecord<'s> {
    insns: Vec<Record<'s>>,
}

/// A program in a form.
///
/// # Errors
/// For instructions that have no encoding.
pub fn listing_of(insns: &[Insn], form: ListingForm) -> Result<Vec<u8>, NoEncoding> {
    let raw = encode(insns)?;
    let slots = slots(insns);
    let line_each = |line: &dyn Fn(&Slot) -> String| -> String {
        slots.iter().map(|slot| line(slot) + "\n").collect()
    };
    let text: String = match form {
        ListingForm::Bytes => return Ok(to_bytes(&raw)),
        ListingForm::Json => {
            let insns = slots.iter().map(|slot| Record::of(slot, &raw));
            let record = ProgramRecord {
                insns: insns.collect(),
            };
            let mut line = serde_json::to_vec(&record).expect("records have string keys only");
            line.push(b'\n');
            return Ok(line);
        }
        ListingForm::Hex => raw.iter().map(|&slot| hex(slot) + "\n").collect(),
        ListingForm::Initializers => raw.iter().map(|&slot| initializer(slot)).collect(),
        ListingForm::Llvm => line_each(&Slot::line),
        ListingForm::Asm => line_each(&|slot| slot.insn.to_string()),
        ListingForm::Log => line_each(&|slot| format!("{}: {}", slot.index, slot.log_text())),
    };
    Ok(text.into_bytes())
}
