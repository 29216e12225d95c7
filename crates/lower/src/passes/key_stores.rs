//! Store sizes of lookup keys: a processor forwards a store to a load that it covers,
//! but a load that covers several stores waits for them.
//!
//! The search goes back from the call to the start of the basic block, and over at most
//! [`FARTHEST`] instructions: older stores are done.

use isa::ebpf::{Insn, Reg, Size};
use verifier::{InsnFact, Pointer, PointerKind, ProgramFacts, Value};

use crate::flow::{falls_through, jump_target};

/// Instructions that are searched.
const FARTHEST: usize = 64;

/// Words of the longest key.
const WORDS: i64 = 8;

/// For each word of 8 bytes of the key that `r2` points to, one bit: part of it was stored
/// by itself last.
pub(super) fn parted_words(insns: &[Insn], call: usize, facts: &ProgramFacts) -> u8 {
    let key = facts.insns[call].operand(Reg::R2).and_then(stack_offset);
    let Some(key) = key else {
        return 0;
    };
    let (mut known, mut parted) = (0u8, 0u8);
    for slot in (call.saturating_sub(FARTHEST)..call).rev() {
        if jump_target(&insns[slot], slot).is_some() || !falls_through(&insns[slot]) {
            break;
        }
        if let Some((offset, size)) = stored(insns[slot], &facts.insns[slot]) {
            let (first, last) = (offset - key, offset - key + i64::from(size.bytes()) - 1);
            for word in
                (first.div_euclid(8)..=last.div_euclid(8)).filter(|word| (0..WORDS).contains(word))
            {
                let covers = first <= 8 * word && last >= 8 * word + 7;
                parted |= u8::from(!covers) << word & !known;
                known |= 1 << word;
            }
        }
    }
    parted
}

/// The offset from the frame pointer, and the size, of a store to the own stack.
fn stored(insn: Insn, fact: &InsnFact) -> Option<(i64, Size)> {
    let Insn::Store { size, .. } = insn else {
        return None;
    };
    Some((stack_offset(fact.access.as_ref()?)?, size))
}

/// The offset from the frame pointer of the own function, if it is always the same.
fn stack_offset(value: &Value) -> Option<i64> {
    match value.pointer()? {
        Pointer {
            kind: PointerKind::Stack { frames_up: 0 },
            offset,
            ..
        } => offset.constant(),
        _ => None,
    }
}
