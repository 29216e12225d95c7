//! Instructions that change nothing that is used, by definitions and uses: results that are not
//! live, and zero extensions of values whose upper half is not live or is zero already.
//!
//! A zero extension is the move of a register to itself on 32 bits, or a pair of shifts by 32.
//! One whose result's upper half is not live is removed first. The others stay if their value
//! may come from one of those, which then no longer clears that half. Cost: linear.

use isa::ebpf::{AluOp, AtomicOp, Imm64, Insn, Operand, Reg, Size, Width};

use super::{Pass, Passes};
use crate::Function;
use crate::flow::{DefUse, Definitions};

/// Copies through which the definition of a value is followed.
const COPIES: usize = 4;

/// Instructions that these passes remove.
#[derive(Default)]
pub(crate) struct Unused {
    /// Slots whose results are not live.
    pub(crate) dead: Vec<usize>,
    /// Slots of zero extensions.
    pub(crate) extensions: Vec<usize>,
}

/// The instructions that these passes remove; of a 64-bit immediate the first slot.
pub(crate) fn find(
    insns: &[Insn],
    functions: &[Function],
    def_use: &DefUse,
    passes: Passes,
) -> Unused {
    let mut unused = Unused::default();
    if passes.contains(Pass::UnusedResults) {
        for (slot, node) in def_use.nodes().iter().enumerate() {
            if node.is_dead() {
                unused.dead.push(slot);
            }
        }
    }
    if passes.contains(Pass::ZeroExtensions) {
        unused.extensions = find_extensions(insns, functions, def_use);
    }
    unused
}

/// A zero extension: its first slot, its register and the number of its slots.
#[derive(Clone, Copy)]
struct Extension {
    slot: usize,
    reg: Reg,
    len: usize,
}

fn find_extensions(insns: &[Insn], functions: &[Function], def_use: &DefUse) -> Vec<usize> {
    let mut found = Vec::new();
    for (slot, insn) in insns.iter().enumerate() {
        if let Insn::Alu {
            op: AluOp::Mov | AluOp::Lsh,
            ..
        } = insn
        {
            found.extend(extension(insns, def_use, slot));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let nodes = def_use.nodes();
    let is_dead = |slot: usize| nodes[slot].is_dead();
    let (unused, used): (Vec<Extension>, Vec<Extension>) = found
        .into_iter()
        .filter(|extension| {
            !is_dead(extension.slot) && !is_dead(extension.slot + extension.len - 1)
        })
        .partition(|extension| {
            let last = extension.slot + extension.len - 1;
            !nodes[last].live_out.has_upper(extension.reg)
        });
    let slots = |extension: &Extension| extension.slot..extension.slot + extension.len;
    let unused: Vec<usize> = unused.iter().flat_map(slots).collect();
    let mut removed = unused.clone();
    let mut definitions = Definitions::new(insns, functions, def_use);
    for extension in used {
        let Extension { slot, reg, .. } = extension;
        if is_zero_extended(insns, &mut definitions, &unused, (slot, reg), COPIES) {
            removed.extend(slots(&extension));
        }
    }
    removed
}

/// The zero extension at a slot. The upper half that a pair of shifts clears is read by the
/// first one, so that only its last slot tells what is live.
fn extension(insns: &[Insn], def_use: &DefUse, slot: usize) -> Option<Extension> {
    let shift = |op, dst| Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src: Operand::Imm(32),
    };
    match insns[slot] {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W32,
            dst: reg,
            src: Operand::Reg(src),
        } if src == reg => Some(Extension { slot, reg, len: 1 }),
        Insn::Alu {
            op: AluOp::Lsh,
            dst: reg,
            ..
        } if insns[slot] == shift(AluOp::Lsh, reg)
            && insns.get(slot + 1) == Some(&shift(AluOp::Rsh, reg))
            && !def_use.nodes()[slot + 1].is_target() =>
        {
            Some(Extension { slot, reg, len: 2 })
        }
        _ => None,
    }
}

/// True if the upper half of a register is zero at a slot whichever definition reaches it,
/// followed through some copies. The results of `unused` do not count.
fn is_zero_extended(
    insns: &[Insn],
    definitions: &mut Definitions<'_>,
    unused: &[usize],
    (slot, reg): (usize, Reg),
    copies: usize,
) -> bool {
    let Some(found) = definitions.reaching(slot, reg) else {
        return false;
    };
    let found = found.to_vec();
    found.into_iter().all(|at| {
        if unused.binary_search(&at).is_ok() {
            return false;
        }
        match upper_half(insns[at]) {
            Upper::Zero => true,
            Upper::Unknown => false,
            Upper::Of(src) => {
                copies > 0 && is_zero_extended(insns, definitions, unused, (at, src), copies - 1)
            }
        }
    })
}

/// Properties of the upper half of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upper {
    Zero,
    /// The upper half of a register before the instruction.
    Of(Reg),
    Unknown,
}

/// Properties of the upper half of the result of an instruction.
fn upper_half(insn: Insn) -> Upper {
    let zero_if = |is_zero| if is_zero { Upper::Zero } else { Upper::Unknown };
    match insn {
        Insn::Alu {
            width: Width::W32, ..
        }
        | Insn::Neg {
            width: Width::W32, ..
        }
        | Insn::MovSx {
            width: Width::W32, ..
        }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. } => Upper::Zero,
        Insn::Alu {
            op,
            width: Width::W64,
            src,
            ..
        } => match (op, src) {
            (AluOp::Mov, Operand::Reg(src)) => Upper::Of(src),
            (AluOp::Mov | AluOp::And, Operand::Imm(imm)) => zero_if(imm >= 0),
            (AluOp::Rsh, Operand::Imm(count)) => zero_if(count & 63 >= 32),
            (
                AluOp::Add
                | AluOp::Sub
                | AluOp::Mul
                | AluOp::Div
                | AluOp::SDiv
                | AluOp::Mod
                | AluOp::SMod
                | AluOp::Or
                | AluOp::And
                | AluOp::Xor
                | AluOp::Lsh
                | AluOp::Rsh
                | AluOp::Arsh,
                _,
            ) => Upper::Unknown,
        },
        Insn::Load { size, signed, .. } => zero_if(!signed && size != Size::DW),
        Insn::LoadAcquire { size, .. } | Insn::Endian { size, .. } => zero_if(size != Size::DW),
        Insn::Atomic { op, size, .. } => match op {
            AtomicOp::Add { .. }
            | AtomicOp::Or { .. }
            | AtomicOp::And { .. }
            | AtomicOp::Xor { .. }
            | AtomicOp::Xchg => zero_if(size != Size::DW),
            // What is compared stays in the register if it is equal.
            AtomicOp::CmpXchg => Upper::Unknown,
        },
        Insn::LoadImm64 { imm, .. } => match imm {
            Imm64::Value(value) => zero_if(u32::try_from(value.get()).is_ok()),
            Imm64::MapFd { .. }
            | Imm64::MapValue { .. }
            | Imm64::BtfId { .. }
            | Imm64::Func { .. }
            | Imm64::MapIndex { .. }
            | Imm64::MapIndexValue { .. } => Upper::Unknown,
        },
        Insn::Neg {
            width: Width::W64, ..
        }
        | Insn::MovSx {
            width: Width::W64, ..
        }
        | Insn::Cast { .. }
        | Insn::Imm64High
        | Insn::Store { .. }
        | Insn::StoreRelease { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        | Insn::Call(_)
        | Insn::CallReg { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => Upper::Unknown,
    }
}
