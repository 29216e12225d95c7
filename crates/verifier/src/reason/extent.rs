//! Accesses of a function through one packet pointer, from an instruction on.
//!
//! A search over instructions and holders of the pointer, along the function's control flow,
//! which follows copies, constants that are added, spills and fills. It ends where the pointer
//! is compared with another register, as what follows is proven by that comparison, and where
//! a loop moves it.
//!
//! Complexity: `MOST_STATES` pairs of an instruction and a holder at most.

use std::collections::{BTreeMap, BTreeSet};

use isa::ebpf::{AluOp, Insn, Operand, Reg, Width};

use super::cause::PacketExtent;
use super::loops::{Holder, memory, moves};
use super::scene::Scene;
use super::{describe, merged};
use crate::flow::MAX_PACKET_OFF;
use crate::state::RegState;

/// States of the search at most.
const MOST_STATES: usize = 20_000;
/// Instructions that may move the pointer in a loop, which are looked at.
const MOST_LOOPS: usize = 64;
/// Offsets that comparisons with the end of the packet count for.
const MOST_OFFSET: i64 = MAX_PACKET_OFF as i64;

/// Before an instruction, a holder of the pointer with an offset added to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    insn: u32,
    holder: Holder,
    offset: i64,
    /// Behind a branch.
    branched: bool,
}

/// Bytes that the function accesses through the pointer in a register from the refused
/// instruction on, as offsets from the pointer's base.
pub(super) fn of(scene: &Scene<'_>, reg: Reg, own: PacketExtent) -> PacketExtent {
    let (Some(insn), Some(pointer)) = (scene.refusal.insn, scene.reg(reg)) else {
        return own;
    };
    let starts = holders(scene, pointer)
        .into_iter()
        .map(|(holder, offset)| At {
            insn,
            holder,
            offset,
            branched: false,
        });
    let starts: Vec<At> = starts.collect();
    let mut compared = BTreeSet::new();
    search(scene, &starts, &BTreeSet::new(), |at| {
        if compares(scene, at) {
            compared.insert(at.insn);
        }
    });
    let mut extent = own;
    search(scene, &starts, &compared, |at| {
        let access = scene.input.insns[at.insn as usize].access();
        if let Some(access) = access
            && Holder::Reg(access.base) == at.holder
        {
            let first = at.offset + i64::from(access.off);
            let end = first + i64::from(access.size.bytes());
            if first < 0 || end > MOST_OFFSET {
                return;
            }
            extent.first = extent.first.min(first);
            extent.end = extent.end.max(end);
            if !at.branched {
                extent.next = extent.next.max(end);
            }
        }
    });
    extent
}

impl PacketExtent {
    /// The same bytes, as offsets from a pointer with this offset.
    pub(super) fn from(self, offset: i64) -> PacketExtent {
        PacketExtent {
            first: self.first - offset,
            next: self.next - offset,
            end: self.end - offset,
        }
    }
}

/// Registers and slots that hold the pointer, with constants added to it or not, and their
/// offsets from its base.
fn holders(scene: &Scene<'_>, pointer: &RegState) -> Vec<(Holder, i64)> {
    let is_same = |reg: &RegState| {
        reg.kind.base() == pointer.kind.base()
            && reg.id == pointer.id
            && reg.num.is_const() == pointer.num.is_const()
    };
    let mut found = Vec::new();
    let Some(frame) = (scene.last()).and_then(|last| scene.trace.frame(last, scene.frame())) else {
        return found;
    };
    for reg in (0..10).filter_map(Reg::new) {
        let state = &frame.regs[reg.index()];
        if is_same(state) {
            found.push((Holder::Reg(reg), describe::fixed_offset(state)));
        }
    }
    for (spi, slot) in frame.stack.iter().enumerate() {
        if slot.is_spilled() && is_same(&slot.reg) {
            let off = -8 * (spi as i16 + 1);
            found.push((Holder::Slot(off), describe::fixed_offset(&slot.reg)));
        }
    }
    found
}

/// True if the pointer is compared with another register.
fn compares(scene: &Scene<'_>, at: &At) -> bool {
    match scene.input.insns[at.insn as usize] {
        Insn::Jump {
            dst,
            src: Operand::Reg(src),
            ..
        } => [Holder::Reg(dst), Holder::Reg(src)].contains(&at.holder),
        _ => false,
    }
}

/// Visits each instruction with each holder of the pointer before it, up to the comparisons.
fn search(scene: &Scene<'_>, starts: &[At], compared: &BTreeSet<u32>, mut visit: impl FnMut(&At)) {
    let mut seen = BTreeSet::new();
    let mut moved: BTreeMap<u32, bool> = BTreeMap::new();
    let before = merged::predecessors(scene);
    let mut pending = starts.to_vec();
    while let Some(at) = pending.pop() {
        let is_far = at.offset.abs() > MOST_OFFSET;
        if is_far || seen.len() >= MOST_STATES || !seen.insert(at) {
            continue;
        }
        visit(&at);
        if compared.contains(&at.insn) {
            continue;
        }
        let insn = scene.input.insns[at.insn as usize];
        if let Insn::Alu { op, dst, .. } = insn
            && op != AluOp::Mov
            && at.holder == Holder::Reg(dst)
            && (moved.len() >= MOST_LOOPS
                || *{ moved.entry(at.insn) }.or_insert_with(|| moves(scene, at.insn, dst)))
        {
            continue;
        }
        let branched = at.branched || matches!(insn, Insn::Jump { .. } | Insn::MayGoto { .. });
        for next in scene.analysis.next(at.insn) {
            if (next as usize) < scene.input.insns.len() {
                let held = match insn {
                    Insn::Alu {
                        op: AluOp::Add,
                        width: Width::W64,
                        dst,
                        src: Operand::Reg(src),
                    } if at.holder == Holder::Reg(dst) => {
                        // A constant that branches choose.
                        let added = merged::constants(scene, &before, at.insn, src).into_iter();
                        let held = added.map(|(value, _)| (at.holder, at.offset + value));
                        held.collect()
                    }
                    _ => after(insn, &at),
                };
                let held = held.into_iter();
                pending.extend(held.map(|(holder, offset)| At {
                    insn: next,
                    holder,
                    offset,
                    branched,
                }));
            }
        }
    }
}

/// Holders of the pointer behind an instruction, of one before it.
fn after(insn: Insn, at: &At) -> Vec<(Holder, i64)> {
    let holds = |reg: Reg| at.holder == Holder::Reg(reg);
    let same = (at.holder, at.offset);
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst,
            src: Operand::Reg(src),
        } if holds(src) => vec![same, (Holder::Reg(dst), at.offset)],
        Insn::Alu {
            op: AluOp::Add,
            width: Width::W64,
            dst,
            src: Operand::Imm(imm),
        } if holds(dst) => vec![(at.holder, at.offset + i64::from(imm))],
        Insn::Load { dst, base, off, .. } if memory(base, off) == at.holder && base == Reg::R10 => {
            vec![same, (Holder::Reg(dst), at.offset)]
        }
        Insn::Store {
            base: Reg::R10,
            off,
            src,
            ..
        } => match src {
            Operand::Reg(src) if holds(src) => vec![same, (Holder::Slot(off), at.offset)],
            _ if at.holder == Holder::Slot(off) => Vec::new(),
            _ => vec![same],
        },
        _ => match at.holder {
            Holder::Reg(reg) if insn.writes().contains(reg) => Vec::new(),
            _ => vec![same],
        },
    }
}
