//! Instructions other than packet loads and branches: most are one operation each. Calls, with the
//! frames of what they call.

use std::sync::Arc;

use isa::ebpf::{AluOp, Imm64, Insn, Operand, Reg, Width};
use lower::{Evidence, LoweredCall, LoweredCode};
use vm::{FRAME_BYTES, FrameLayout, TailConvention};

use super::{Builder, Field, Unsupported};
use crate::op::Op;
use crate::ops::linked::Kind;
use crate::ops::pairs::Half;
use crate::ops::{alu, atomic, branch, control, memory};
use crate::{Fusion, fuse};

/// Frames of the functions of a program, if it was verified. Other programs read no stack that
/// they did not write, and no helper of theirs looks for it.
pub(super) fn layouts(program: &LoweredCode) -> Arc<[FrameLayout]> {
    match program.evidence() {
        Evidence::Classic(_) | Evidence::CallerAsserted => return Arc::default(),
        Evidence::Verified(_) => {}
    }
    let may_probe = program.may_probe();
    let functions = program.functions().iter();
    let layouts = functions.map(|function| match program.stack(*function) {
        Some(stack) => FrameLayout::new(stack.bytes, stack.address_slots, may_probe),
        None => FrameLayout::new(FRAME_BYTES as u32, u64::MAX, may_probe),
    });
    layouts.collect()
}

impl Builder<'_> {
    /// Compiles an instruction other than packet loads and branches; returns the number of
    /// slots.
    #[inline(never)]
    pub(super) fn single_or_arithmetic(&mut self, slot: usize) -> Result<usize, Unsupported> {
        Ok(match self.insns[slot] {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => self.arithmetic(slot, op, width, dst, src),
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let kind = if signed {
                    Kind::Other
                } else {
                    Kind::Half(Half::Load { size, dst, base })
                };
                self.push(memory::load(size, signed, dst, base, off), kind);
                1
            }
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => {
                self.push(alu::load_imm64(dst, value.get()), Kind::Other);
                2
            }
            insn => {
                if let Some(map) = self.looked_up(insn) {
                    self.push(alu::load_imm64(Reg::R1, map), Kind::Other);
                }
                let op = self
                    .simple_operation(insn, slot)
                    .ok_or(Unsupported { slot, insn })?;
                self.push(op, Kind::Other);
                1
            }
        })
    }

    /// Compiles arithmetic; a copy and an operation on it become one operation.
    fn arithmetic(
        &mut self,
        slot: usize,
        op: AluOp,
        width: Width,
        dst: Reg,
        src: Operand,
    ) -> usize {
        let changed = |this: &Self| match (op, src) {
            (AluOp::Mov, Operand::Reg(lhs)) => {
                let change = fuse::changed_copy(this.insns, this.cfg, slot)?;
                let fused = alu::ternary(change.op, change.width, dst, lhs, change.src)?;
                Some((lhs, change, fused))
            }
            _ => None,
        };
        if let Some((lhs, change, fused)) = self.fuse(Fusion::ThreeOperands, changed) {
            let half = Half::Binary {
                op: change.op,
                width: change.width,
                dst,
                lhs,
                src: change.src.into(),
            };
            self.push(fused, Kind::Half(half));
            return 2;
        }
        let half = Half::Binary {
            op,
            width,
            dst,
            lhs: dst,
            src: src.into(),
        };
        self.push(alu::binary(op, width, dst, src), Kind::Half(half));
        1
    }

    /// Compiles an instruction to an operation of its own; `None` if it is not supported.
    fn simple_operation(&mut self, insn: Insn, slot: usize) -> Option<Op> {
        Some(match insn {
            Insn::Neg { width, dst } => alu::negate(width, dst),
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => alu::sign_extend(width, from, dst, src),
            Insn::Endian { order, size, dst } => alu::byte_order(order, size, dst),
            Insn::Store {
                size,
                base,
                off,
                src,
            } => memory::store(size, base, off, src),
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => atomic::modify(op, size, base, off, src),
            Insn::LoadAcquire {
                size,
                dst,
                base,
                off,
            } => atomic::load_acquire(size, dst, base, off),
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => atomic::store_release(size, base, off, src),
            // Without an arena both casts keep the low half.
            Insn::Cast { dst, src, .. } => {
                alu::binary(AluOp::Mov, Width::W32, dst, Operand::Reg(src))
            }
            Insn::Goto { .. } | Insn::GotoLong { .. } => branch::always(self.patch_target(slot)),
            Insn::MayGoto { .. } => branch::may_goto(self.patch_target(slot)),
            Insn::Call(callee) => match LoweredCall::of(callee)? {
                LoweredCall::Local(distance) => {
                    let target = (slot + 1).checked_add_signed(distance as isize)?;
                    self.patch_later(Field::First, target);
                    match self.layout_at(target) {
                        Some(layout) => control::call_framed(layout),
                        None => control::call_local(),
                    }
                }
                LoweredCall::TailCall => control::tail_call(self.tail_caller(slot)?.is_linked()),
                LoweredCall::TailSlot(index) => {
                    let is_linked = self.tail_caller(slot)?.is_linked();
                    control::tail_call_of_slot(self.program.tail_slot(index), is_linked)
                }
                LoweredCall::Count(index) => {
                    let is_shared = self.program.shares_counters();
                    control::count(self.program.counter(index), is_shared)
                }
                call @ (LoweredCall::Helper(_)
                | LoweredCall::ProcessorId
                | LoweredCall::Bits(_)
                | LoweredCall::Kfunc(_)
                | LoweredCall::Host(_)
                | LoweredCall::MapFunction(_)
                | LoweredCall::HashLookup(_)
                | LoweredCall::BeginCallbacks
                | LoweredCall::NextCallback
                | LoweredCall::PacketLoad) => control::call(self.program.function(call)?),
            },
            Insn::Exit => control::exit(),
            // Compiled by `operation`, or not in lowered programs.
            Insn::Alu { .. }
            | Insn::Jump { .. }
            | Insn::Load { .. }
            | Insn::LoadImm64 { .. }
            | Insn::PacketAbs { .. }
            | Insn::PacketInd { .. }
            | Insn::Imm64High
            | Insn::CallReg { .. }
            | Insn::GotoReg { .. }
            | Insn::Invalid { .. } => return None,
        })
    }

    /// The first argument of a lookup in a known hash table, which the instructions may leave out.
    fn looked_up(&self, insn: Insn) -> Option<u64> {
        match insn {
            Insn::Call(callee) => match LoweredCall::of(callee)? {
                LoweredCall::HashLookup(index) => {
                    Some(self.program.hash_lookup(index)?.function().address())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The layout of the frame of the function that a slot belongs to, in verified programs.
    fn layout_at(&self, slot: usize) -> Option<&FrameLayout> {
        let functions = self.program.functions();
        let index = functions.partition_point(|function| function.start <= slot);
        self.layouts.get(index.checked_sub(1)?)
    }

    /// As [`Builder::layout_at`], of a function that makes a tail call; `None` as well if targets
    /// are code of another engine.
    fn tail_caller(&self, slot: usize) -> Option<&FrameLayout> {
        let mut tables = self.program.tail_tables().iter();
        let are_ours = tables.all(|table| table.admits_callers(TailConvention::Threaded));
        self.layout_at(slot).filter(|_| are_ours)
    }
}
