//! Generated programs that make tail calls from their main functions and from subprograms,
//! by constant and by computed indices.

use std::fmt::Write as _;

use isa::ebpf::{RawInsn, assemble, encode};

use super::{ARRAY, COUNTER, SLOTS};
use testkit::ebpf::Choices;

/// A program's instructions without addresses of maps, and where its functions begin.
#[derive(Clone, Debug)]
pub struct Code {
    /// The text.
    pub text: String,
    pub(super) slots: Vec<RawInsn>,
    pub(super) functions: Vec<u32>,
}

impl Code {
    fn new(text: String, subprograms: usize) -> Code {
        let slots = encode(&assemble(&text).expect(&text)).expect(&text);
        let exits = slots.iter().zip(1..).filter(|(slot, _)| slot.is_exit());
        let ends = exits.map(|(_, end)| end).take(subprograms);
        Code {
            text,
            functions: [0].into_iter().chain(ends).collect(),
            slots,
        }
    }
}

/// One step: an arithmetic trace of what ran, or a tail call, which falls through if it
/// does not happen.
fn step(choices: &mut Choices<'_>, id: u32, text: &mut String) {
    let _ = writeln!(text, "r8 = *(u64 *)(r7 + 0)\nr8 *= 31\nr8 += {id}");
    let _ = writeln!(text, "*(u64 *)(r7 + 0) = r8");
    match choices.below(4) {
        0 => {
            let _ = writeln!(text, "r3 = {}", choices.below(SLOTS + 3));
        }
        1 => {
            let _ = writeln!(text, "r3 = r8\nr3 %= {}", SLOTS + 2);
        }
        // Only the low 32 bits count.
        2 => {
            let _ = writeln!(
                text,
                "r3 = r8\nr3 &= 3\nr9 = {:#x} ll\nr3 |= r9",
                1u64 << 32
            );
        }
        _ => return,
    }
    let _ = writeln!(text, "r1 = r6\nr2 = map_idx({ARRAY}) ll\ncall 12");
}

fn prologue() -> String {
    format!("r6 = r1\nr7 = map_idx_value({COUNTER}) ll\n")
}

/// A program with up to two subprograms, which is known by a number below 100.
pub fn generate(choices: &mut Choices<'_>, id: u32) -> Code {
    let subprograms = choices.below(3);
    let mut text = prologue();
    for _ in 0..1 + choices.below(3) {
        step(choices, id, &mut text);
        if subprograms > 0 && choices.below(2) == 0 {
            let callee = choices.below(subprograms);
            let _ = writeln!(text, "r1 = r6\ncall f{callee}");
            text += "r8 = *(u64 *)(r7 + 0)\nr8 ^= r0\n*(u64 *)(r7 + 0) = r8\n";
        }
    }
    for callee in 0..subprograms {
        // Every subprogram is called.
        let _ = writeln!(text, "r1 = r6\ncall f{callee}");
    }
    text += "r0 = *(u64 *)(r7 + 0)\nr0 &= 0xffff\nexit\n";
    for callee in 0..subprograms {
        let _ = writeln!(text, "f{callee}:");
        text += &prologue();
        for _ in 0..1 + choices.below(2) {
            step(choices, 100 * (callee + 1) + id, &mut text);
        }
        let _ = writeln!(text, "r0 = {}\nexit", 1000 + id);
    }
    Code::new(text, subprograms as usize)
}

/// A program that counts its runs, then makes a tail call to index 0, and returns 7 if that
/// does not happen.
pub fn counting_program() -> Code {
    let mut text = prologue();
    text += "r8 = *(u64 *)(r7 + 0)\nr8 += 1\n*(u64 *)(r7 + 0) = r8\n";
    let _ = writeln!(
        text,
        "r1 = r6\nr2 = map_idx({ARRAY}) ll\nr3 = 0\ncall 12\nr0 = 7\nexit"
    );
    Code::new(text, 0)
}

/// A program that does nothing but go on with the one in the next slot, the first after the
/// last; with a computed index, which the verifier does not know.
pub fn link(id: u32, is_computed: bool) -> Code {
    let next = (id + 1) % SLOTS;
    let index = match is_computed {
        // The mark of the packet, which is 0.
        true => format!("r3 = *(u32 *)(r1 + 8)\nr3 += {next}"),
        false => format!("r3 = {next}"),
    };
    let text = format!("{index}\nr2 = map_idx({ARRAY}) ll\ncall 12\nr0 = {id}\nexit\n");
    Code::new(text, 0)
}
