//! Spills and fills around calls that follow the `bpf_fastcall` contract
//! (`mark_fastcall_patterns`).
//!
//! A compiler that knows the contract keeps registers across such a call and surrounds
//! it with spills and fills for older kernels, at stack offsets below all others of the
//! function. Pairs are matched outwards from the call; where they are the only users of
//! their slots, the verifier drops them and the slots.

use isa::ebpf::{Op, RawInsn, Reg};

use super::{Analysis, calls};
use crate::input::Input;

const FRAME_POINTER: u8 = Reg::R10.number();
const CALLER_SAVED: u8 = 0b11_1111;

/// Marks the patterns of every subprogram (`mark_fastcall_patterns`).
pub(super) fn mark_fastcall_patterns(input: &Input<'_>, analysis: &mut Analysis) {
    for number in 0..analysis.subprogs.len() {
        let range = analysis.subprogs[number].start..analysis.subprogs[number].end;
        let lowest = input.program.insns()[range.start as usize..range.end as usize]
            .iter()
            .filter(|insn| is_spill(**insn))
            .fold(0, |lowest, insn| lowest.min(insn.off));
        for index in range {
            if input.program.insns()[index as usize].is_call() {
                mark_call(input, analysis, number, index as usize, lowest);
            }
        }
    }
}

/// True for the opcode of an operation that has one of its own.
fn is_op(insn: RawInsn, op: Op) -> bool {
    insn.row().is_some_and(|row| row.op == op)
}

fn is_spill(insn: RawInsn) -> bool {
    is_op(insn, Op::StoreReg64) && insn.dst() == FRAME_POINTER
}

/// Linux's `mark_fastcall_pattern_for_call`, `helper_fastcall_clobber_mask` and
/// `kfunc_fastcall_clobber_mask`.
#[doc(alias = "mark_fastcall_pattern_for_call")]
#[doc(alias = "helper_fastcall_clobber_mask")]
#[doc(alias = "kfunc_fastcall_clobber_mask")]
fn mark_call(input: &Input<'_>, analysis: &mut Analysis, number: usize, index: usize, lowest: i16) {
    let Some(call) = calls::summary(input, input.program.insns()[index]) else {
        return;
    };
    let mut clobbered = (2u8 << call.params) - 1;
    if call.is_void {
        clobbered &= !1;
    }
    let mut expected = !clobbered & CALLER_SAVED;
    let mut offset = lowest;
    let mut pairs = 0u8;
    for distance in 1..=6 {
        let (Some(before), Some(fill)) = (
            index.checked_sub(distance),
            input.program.insns().get(index + distance).copied(),
        ) else {
            break;
        };
        let spill = input.program.insns()[before];
        let is_pair = is_spill(spill)
            && is_op(fill, Op::Load64)
            && fill.src() == FRAME_POINTER
            && spill.src() == fill.dst()
            && spill.src() < 8
            && expected & 1 << spill.src() != 0
            && spill.off == offset
            && fill.off == offset;
        if !is_pair {
            break;
        }
        expected &= !(1 << spill.src());
        analysis.insns[before].fastcall_pattern = true;
        analysis.insns[index + distance].fastcall_pattern = true;
        offset = offset.wrapping_add(8);
        pairs += 1;
    }
    if pairs == 0 {
        return;
    }
    let subprog = &mut analysis.subprogs[number];
    if call.fastcall {
        analysis.insns[index].fastcall_spills = pairs;
    } else {
        subprog.keep_fastcall_stack = true;
    }
    subprog.fastcall_stack_off = subprog.fastcall_stack_off.min(offset.into());
}
