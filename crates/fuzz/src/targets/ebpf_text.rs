//! Slots of any bits, written as text and read back.

use isa::ebpf::{Insn, assemble, decode, encode, from_bytes};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "ebpf-text",
    property: "what is printed of any slots is read back as the same slots",
    words: &[
        "goto",
        "gotol",
        "if",
        "lock",
        "call",
        "exit",
        "ll",
        "r10",
        "w3",
        "skb",
        "*(u32 *)",
        "load_acquire",
        ".8byte",
        "bswap16",
        "s>",
        "+4",
        "label:",
    ],
    run,
};

/// Largest number of slots, because the text is proportional.
const MOST: usize = 256;

fn run(input: &[u8]) -> Signature {
    let whole = &input[..input.len().min(8 * MOST) / 8 * 8];
    let slots = from_bytes(whole).expect("whole slots");
    let insns = decode(&slots);
    let text: String = insns.iter().map(|insn| format!("{insn}\n")).collect();
    let again = assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(insns, again, "read back from\n{text}");
    let encoded = encode(&insns).expect("what was decoded");
    assert_eq!(decode(&encoded), insns, "encoded");
    // Bytes that are text are read as they are: an error is an answer.
    let read = std::str::from_utf8(input)
        .ok()
        .map(|text| assemble(text).is_ok());
    let valid = insns
        .iter()
        .filter(|insn| !matches!(insn, Insn::Invalid { .. }));
    let kinds: u64 = valid.fold(0, |set, insn| {
        set | insn.row().map_or(0, |row| 1 << (row.op as u8 % 64))
    });
    Signature::of((read, kinds))
}
