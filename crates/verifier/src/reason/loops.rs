//! Loops around an instruction, and what moves in them.

use std::collections::BTreeSet;

use isa::ebpf::{AluOp, Insn, Operand, Reg, RegSet};

use super::scene::Scene;

/// A register, or the stack slot at an offset from the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Reg(Reg),
    Slot(i16),
}

/// True if an instruction stands in a loop of its function whose iterations each give a
/// register another value, made of the last one.
pub(super) fn moves(scene: &Scene<'_>, insn: u32, reg: Reg) -> bool {
    let component = |insn: usize| scene.analysis.insns.get(insn).map_or(0, |info| info.scc);
    let own = component(insn as usize);
    if own == 0 {
        return false;
    }
    let members = (0..scene.input.insns.len()).filter(|&insn| component(insn) == own);
    let sources = Sources::of(members.map(|insn| scene.input.insns[insn]));
    let reached = sources.reached([Holder::Reg(reg)]);
    let is_cyclic = |&holder: &Holder| sources.reached(sources.of_holder(holder)).contains(&holder);
    reached.iter().any(is_cyclic)
}

/// What the instructions of a loop make the values of registers and slots of.
#[derive(Default)]
struct Sources {
    /// Holder, and a holder that it is set from.
    edges: BTreeSet<(Holder, Holder)>,
    /// Holders that arithmetic changes.
    changed: BTreeSet<Holder>,
    /// Holders that are set otherwise than by arithmetic on themselves.
    set: BTreeSet<Holder>,
}

impl Sources {
    fn of(insns: impl Iterator<Item = Insn>) -> Sources {
        let mut sources = Sources::default();
        insns.for_each(|insn| sources.add(insn));
        sources
    }

    fn add(&mut self, insn: Insn) {
        match insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src,
                ..
            } => {
                self.set.insert(Holder::Reg(dst));
                if let Operand::Reg(src) = src {
                    self.edges.insert((Holder::Reg(dst), Holder::Reg(src)));
                }
            }
            Insn::Alu { dst, src, .. } => {
                self.changed.insert(Holder::Reg(dst));
                if let Operand::Reg(src) = src {
                    self.edges.insert((Holder::Reg(dst), Holder::Reg(src)));
                }
            }
            Insn::Neg { dst, .. } | Insn::Endian { dst, .. } => {
                self.changed.insert(Holder::Reg(dst));
            }
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                self.set.insert(Holder::Reg(dst));
                self.edges.insert((Holder::Reg(dst), Holder::Reg(src)));
            }
            Insn::Load { dst, base, off, .. } | Insn::LoadAcquire { dst, base, off, .. } => {
                self.set.insert(Holder::Reg(dst));
                self.edges.insert((Holder::Reg(dst), memory(base, off)));
            }
            Insn::Store { base, off, src, .. } => {
                let slot = memory(base, off);
                if let (Holder::Slot(_), Operand::Reg(src)) = (slot, src) {
                    self.edges.insert((slot, Holder::Reg(src)));
                }
            }
            Insn::StoreRelease { base, off, src, .. } => {
                let slot = memory(base, off);
                if let Holder::Slot(_) = slot {
                    self.edges.insert((slot, Holder::Reg(src)));
                }
            }
            Insn::Atomic { base, off, .. } => {
                self.changed.insert(memory(base, off));
                self.set_all(insn.writes());
            }
            Insn::LoadImm64 { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Call(_)
            | Insn::CallReg { .. } => self.set_all(insn.writes()),
            Insn::Imm64High
            | Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Exit
            | Insn::Invalid { .. } => {}
        }
    }

    fn set_all(&mut self, regs: RegSet) {
        self.set.extend(regs.iter().map(Holder::Reg));
    }

    /// What a holder is made of in one step; arithmetic makes it of itself where nothing else
    /// in the loop sets it.
    fn of_holder(&self, holder: Holder) -> Vec<Holder> {
        let edges = self.edges.iter().filter(|(made, _)| *made == holder);
        let mut sources: Vec<Holder> = edges.map(|&(_, from)| from).collect();
        if self.changed.contains(&holder) && !self.set.contains(&holder) {
            sources.push(holder);
        }
        sources
    }

    /// Holders, and all that they are made of.
    fn reached(&self, from: impl IntoIterator<Item = Holder>) -> BTreeSet<Holder> {
        let mut pending: Vec<Holder> = from.into_iter().collect();
        let mut reached = BTreeSet::new();
        while let Some(holder) = pending.pop() {
            if reached.insert(holder) {
                pending.extend(self.of_holder(holder));
            }
        }
        reached
    }
}

/// The stack slot that an access through the frame pointer is of, else its base register.
pub(super) fn memory(base: Reg, off: i16) -> Holder {
    match base {
        Reg::R10 => Holder::Slot(off),
        base => Holder::Reg(base),
    }
}
