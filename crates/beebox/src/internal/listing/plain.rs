//! Programs without an object: numbered instructions, as text and as JSON.

use serde::Serialize;

use super::slot::{Slot, SlotRecord};
use crate::internal::ebpf::{Callee, Insn, RawInsn, helper_name};

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
pub fn hex(slot: RawInsn) -> String {
    slot.to_le_bytes()
        .map(|byte| format!("{byte:02x}"))
        .join(" ")
}

/// A slot as C code initialises a `struct bpf_insn`.
pub fn initializer(slot: RawInsn) -> String {
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
