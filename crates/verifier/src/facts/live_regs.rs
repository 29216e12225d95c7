//! Registers that may be read before they are written, before each instruction: the
//! textbook backward data flow over the postorder, iterated to a fixpoint
//! (`compute_live_registers`).

use isa::ebpf::RawInsn;

use super::subprogs::NONE;
use super::{Facts, Pass, calls};
use crate::env::Env;
use crate::verbose;

/// Computes [`super::InsnFacts::live_regs`], and writes them to the log at level 2.
pub(super) fn compute(env: &Env<'_>, pass: &mut Pass<'_, '_>, facts: &mut Facts) {
    let accesses: Vec<Access> = env
        .program
        .insns()
        .iter()
        .map(|insn| access(env, *insn))
        .collect();
    loop {
        let mut changed = false;
        for &index in &facts.postorder {
            let index = index as usize;
            let after = facts.successors[index]
                .iter()
                .filter(|next| **next != NONE)
                .fold(0, |live, next| live | facts.insns[*next as usize].live_regs);
            let before = after & !accesses[index].written | accesses[index].read;
            changed |= before != facts.insns[index].live_regs;
            facts.insns[index].live_regs = before;
        }
        if !changed {
            break;
        }
    }
    // The second slot of a wide load is not in the graph; the kernel leaves its sets.
    if pass.sink.is_full() {
        write(env, pass, facts);
    }
}

/// Registers that an instruction reads and writes, one bit each.
#[derive(Clone, Copy, Default)]
struct Access {
    read: u16,
    written: u16,
}

const ALL: u16 = 0xffff;
const CALLER_SAVED: u16 = 0b11_1111;

fn access(env: &Env<'_>, insn: RawInsn) -> Access {
    let (dst, src) = (1 << insn.dst(), 1 << insn.src());
    let is_register = insn.code & 8 != 0;
    let (read, written) = match (insn.code & 7, insn.code & 0xe0, insn.code & 0xf0) {
        // Loads of immediates; legacy packet loads read what they may.
        (0, 0x00, _) if insn.code & 0x18 == 0x18 => (0, dst),
        (1, 0x60 | 0x80, _) => (src, dst),
        (2, 0x60, _) => (dst, 0),
        (3, 0x60, _) => (dst | src, 0),
        (3, 0xc0, _) => match insn.imm {
            0xf1 => (1 | dst | src, 1),
            0x100 => (src, dst),
            0x110 => (dst | src, 0),
            fetch if fetch & 1 != 0 => (dst | src, src),
            _ => (dst | src, 0),
        },
        (4 | 7, _, 0xd0) => (dst, dst),
        (4 | 7, _, 0xb0) => (if is_register { src } else { 0 }, dst),
        (4 | 7, ..) => (if is_register { dst | src } else { dst }, dst),
        (5 | 6, _, 0x00 | 0xe0) => (0, 0),
        (5 | 6, _, 0x90) => (1, 0),
        (5 | 6, _, 0x80) => {
            let arguments = match calls::summary(env, insn) {
                Some(call) => (2 << call.params) - 2,
                None => CALLER_SAVED & !1,
            };
            (arguments, CALLER_SAVED)
        }
        (5 | 6, ..) => (if is_register { dst | src } else { dst }, 0),
        _ => (ALL, 0),
    };
    Access { read, written }
}

fn write(env: &Env<'_>, pass: &mut Pass<'_, '_>, facts: &Facts) {
    verbose!(pass, "Live regs before insn:\n");
    let mut index = 0;
    while index < env.program.insns().len() {
        let insn = &facts.insns[index];
        match insn.scc {
            0 => verbose!(pass, "    "),
            scc => verbose!(pass, "{scc:3} "),
        }
        verbose!(pass, "{index:3}: ");
        for reg in 0..10 {
            match insn.live_regs >> reg & 1 {
                0 => verbose!(pass, "."),
                _ => verbose!(pass, "{reg}"),
            }
        }
        verbose!(pass, " ");
        crate::log::verbose_insn(env, pass.sink, index as u32);
        index += super::subprogs::slots(env.program.insns()[index]) as usize;
    }
}
