//! Any bytes as an eBPF program: the checked engine runs them within their
//! budget, and where they turn out to be safe every engine gives one answer.
//!
//! The input: one byte that gives the length of the memory, one that seeds what
//! is in it, and the program's bytes.

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::{Insn, decode, from_bytes};
use spec::SplitMix;

use super::with_engines;
use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "ebpf-raw",
    property: "any bytes run checked within their budget, and safe ones alike everywhere",
    words: &[],
    run,
};

/// Instructions that a run may perform.
const BUDGET: u64 = 20_000;

fn run(input: &[u8]) -> Signature {
    let [len, seed, program @ ..] = input else {
        return Signature::of(());
    };
    let whole = &program[..program.len() / 8 * 8];
    let Ok(slots) = from_bytes(whole) else {
        return Signature::of(());
    };
    let insns = decode(&slots);
    let mut random = SplitMix::new((*seed).into());
    let memory: Vec<u8> = (0..usize::from(*len))
        .map(|_| random.next_u64() as u8)
        .collect();
    let outcome = run_checked(&insns, memory.clone());
    if outcome.is_ok() {
        let difference = with_engines(|engines| engines.compare(&insns, &memory, BUDGET));
        if let Some(difference) = difference {
            panic!("{}", difference.describe());
        }
    }
    let opcodes = slots.iter().fold([0_u64; 4], |mut set, slot| {
        set[usize::from(slot.code) / 64] |= 1 << (slot.code % 64);
        set
    });
    Signature::of((outcome.map(|value| value.min(4)), opcodes))
}

/// Result of the checked interpreter: a value, or the kind of a trap.
fn run_checked(insns: &[Insn], mut bytes: Vec<u8>) -> Result<u64, String> {
    let mut memory = Memory::new();
    let len = bytes.len() as u64;
    let region = memory.add("memory", &mut bytes).expect("255 bytes at most");
    let entry = Entry {
        arguments: [memory.address(region), len, 0, 0, 0],
    };
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut Calls::none(),
        packet: None,
    };
    let limits = Limits {
        instructions: BUDGET,
        ..Limits::default()
    };
    let finish = CheckedProgram::new(insns.to_vec()).run(cx, entry, &limits);
    assert!(
        finish.executed <= BUDGET,
        "{} instructions were executed",
        finish.executed
    );
    finish.outcome.map_err(|trap| {
        let reason = format!("{:?}", trap.reason);
        let kind = reason.split([' ', '(', '{']).next();
        kind.unwrap_or_default().to_owned()
    })
}
