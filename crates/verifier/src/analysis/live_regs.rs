//! Registers that may be read before they are written, before each instruction: the
//! textbook backward data flow over the postorder, iterated to a fixpoint
//! (`compute_live_registers`).

use isa::ebpf::{Insn, Op, RawInsn, RegSet, Row};

use super::{Analysis, calls};
use crate::input::Input;
use crate::log::Sink;
use crate::verbose;

/// Computes [`super::InsnInfo::live_regs`], and writes them to the log at level 2
/// (`compute_live_registers`, `bpf_compute_live_registers`).
#[doc(alias = "compute_live_registers")]
#[doc(alias = "bpf_compute_live_registers")]
pub(super) fn compute(input: &Input<'_>, pass: &mut Sink<'_>, analysis: &mut Analysis) {
    let slots = input.insns.iter().zip(input.program.insns());
    let accesses: Vec<Access> = slots.map(|slot| access(input, slot)).collect();
    loop {
        let mut changed = false;
        for &index in &analysis.postorder {
            let index = index as usize;
            let after = analysis.next(index as u32).fold(0, |live, next| {
                live | analysis.insns[next as usize].live_regs
            });
            let before = after & !accesses[index].written | accesses[index].read;
            changed |= before != analysis.insns[index].live_regs;
            analysis.insns[index].live_regs = before;
        }
        if !changed {
            break;
        }
    }
    // The second slot of a wide load is not in the graph; Linux 6.18 leaves its sets.
    if pass.is_full() {
        write(input, pass, analysis);
    }
}

/// Registers that an instruction reads and writes, one bit each.
#[derive(Clone, Copy, Default)]
struct Access {
    read: u16,
    written: u16,
}

impl Access {
    /// Where Linux knows nothing: all are read.
    const UNKNOWN: Access = Access {
        read: u16::MAX,
        written: 0,
    };
}

/// Linux's `compute_insn_live_regs`.
#[doc(alias = "compute_insn_live_regs")]
fn access(input: &Input<'_>, (insn, raw): (&Insn, &RawInsn)) -> Access {
    if raw.is_call() {
        let clobbered = RegSet::ARGUMENTS.bits() | 1;
        let read = match calls::summary(input, *raw) {
            Some(call) => (2 << call.params) - 2,
            None => RegSet::ARGUMENTS.bits(),
        };
        return Access {
            read,
            written: clobbered,
        };
    }
    if raw.is_packet_load() {
        return Access::UNKNOWN;
    }
    if !matches!(insn, Insn::Invalid { .. } | Insn::Imm64High) {
        return Access {
            read: insn.reads().bits(),
            written: insn.writes().bits(),
        };
    }
    // The passes look at opcodes: fields that must be 0 are checked by the walk.
    let row = match raw.is_atomic() {
        // Operations are those of 8 bytes, whatever the size.
        true => Row::with_code(Op::AtomicAdd64.row().code).find(|row| row.imm.admits(raw.imm)),
        false => raw.row(),
    };
    let (dst, src) = (1 << raw.dst(), 1 << raw.src());
    match row {
        Some(row) => Access {
            read: row.reads.resolve(raw.dst(), raw.src()).bits(),
            written: row.writes.resolve(raw.dst(), raw.src()).bits(),
        },
        None if raw.is_atomic() => Access {
            read: dst | src,
            written: if raw.fetches() { src } else { 0 },
        },
        None => Access::UNKNOWN,
    }
}

fn write(input: &Input<'_>, pass: &mut Sink<'_>, analysis: &Analysis) {
    verbose!(pass, "Live regs before insn:\n");
    let mut index = 0;
    while index < input.program.insns().len() {
        let insn = &analysis.insns[index];
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
        crate::log::verbose_insn(input, pass, index as u32);
        index += super::subprogs::slots(input.program.insns()[index]) as usize;
    }
}
