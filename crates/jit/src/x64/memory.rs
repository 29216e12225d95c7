//! Loads, stores and atomics; loads become memory operands of x86 instructions where
//! possible.

use isa::ebpf::{AluOp, AtomicOp, Insn, Operand, Reg, Size, Width};

use super::Generator;
use super::form::Form;
use super::reg::{Gpr, Mem, SCRATCH};
use crate::Optimization;
use crate::analysis::Halves;
use crate::codegen::{Alu, Arithmetic, Assembler, Cc, Layout, all, bits_of};

/// A zero-extending load.
#[derive(Clone, Copy)]
struct Load {
    size: Size,
    dst: Reg,
}

/// Instruction that may use a load as its memory operand.
enum LoadUser {
    None,
    /// The operation of two registers at the next slot.
    Next,
    Other,
}

/// A read-modify-write operation.
pub(super) struct ReadModifyWrite {
    op: Alu,
    pub(super) src: Operand,
}

impl Generator<'_> {
    /// Compiles the load at a slot, as a memory operand of a following instruction where
    /// possible; returns the number of slots.
    pub(super) fn load(
        &mut self,
        slot: usize,
        size: Size,
        dst: Reg,
        live_out: Halves,
        mem: Mem,
    ) -> usize {
        match self.load_user(slot, size, dst) {
            LoadUser::None => self.only_load(size, dst, live_out, mem),
            LoadUser::Next => self.operate_or_load(slot, Load { size, dst }, live_out, mem),
            LoadUser::Other => self.operand_or_load(slot, size, dst, live_out, mem),
        }
    }

    /// Finds the instruction that may use a load as its memory operand: a quick check
    /// before the peephole search.
    fn load_user(&self, slot: usize, size: Size, dst: Reg) -> LoadUser {
        let may_take = match self.insns.get(slot + 1) {
            Some(&Insn::Alu {
                op, dst: to, src, ..
            }) => match src {
                Operand::Reg(src) if src == dst => {
                    return match size {
                        Size::B | Size::H => LoadUser::None,
                        Size::W | Size::DW => LoadUser::Next,
                    };
                }
                Operand::Imm(16..) if op == AluOp::Lsh && to == dst => true,
                _ if to == dst => matches!(self.insns.get(slot + 2), Some(Insn::Store { .. })),
                _ => false,
            },
            Some(&Insn::Jump { dst: to, .. }) => to == dst && !self.live_out(slot + 1).has(dst),
            _ => false,
        };
        if may_take {
            LoadUser::Other
        } else {
            LoadUser::None
        }
    }

    /// Compiles a load as the memory operand of the operation at the next slot, or by
    /// itself.
    fn operate_or_load(&mut self, slot: usize, load: Load, live_out: Halves, mem: Mem) -> usize {
        match self.arithmetic(slot + 1) {
            Some(this)
                if accepts_memory_operand(this, load)
                    && !self.live_out(slot + 1).has(load.dst)
                    && self.uses(Optimization::MemoryOperand) =>
            {
                self.applies(Optimization::MemoryOperand);
                self.operate_with(this.op, this.width, this.dst, mem);
                2
            }
            _ => self.only_load(load.size, load.dst, live_out, mem),
        }
    }

    fn operand_or_load(
        &mut self,
        slot: usize,
        size: Size,
        dst: Reg,
        live_out: Halves,
        mem: Mem,
    ) -> usize {
        match self.load_as_operand(slot, Load { size, dst }, mem) {
            Some(count) => count,
            None => self.only_load(size, dst, live_out, mem),
        }
    }

    /// Folds a load into an instruction with a memory operand at the next slot. Returns the
    /// number of slots.
    fn load_as_operand(&mut self, slot: usize, load: Load, mem: Mem) -> Option<usize> {
        let Load { size, dst } = load;
        let insn = self.peek(slot + 1)?;
        let next = &self.infos[slot + 1];
        if !next.reads(dst) {
            return None;
        }
        let is_last = !next.live_out.has(dst);
        match insn {
            Insn::Alu {
                op: AluOp::Lsh,
                dst: to,
                ..
            } if to == dst => self.extend_loaded(slot + 1, load, mem),
            Insn::Alu { dst: to, .. } if to == dst => match self.insns.get(slot + 2)? {
                Insn::Store { .. } => self.write_read_modify_write(slot, size, mem),
                _ => None,
            },
            Insn::Jump { dst: to, .. } if to == dst && is_last => {
                self.compare_memory(slot + 1, load, mem)
            }
            _ => None,
        }
    }

    /// `dst <<= count; dst >>= count` after a load: a zero- or sign-extending load.
    fn extend_loaded(&mut self, slot: usize, load: Load, mem: Mem) -> Option<usize> {
        let this = self.arithmetic_at(slot)?;
        let Operand::Imm(count) = this.src else {
            return None;
        };
        let extension = self.extension(slot + 1, this.dst, this.width, count)?;
        if extension.from.bytes() > load.size.bytes() {
            return None;
        }
        self.applies(Optimization::Extension);
        let gpr = self.gpr(load.dst);
        self.asm.load(extension.from, extension.sign, gpr, mem);
        self.finish_extension(load.dst, extension);
        Some(3)
    }

    /// `if dst cond src goto` at a slot, if `dst` is dead afterwards: a comparison with
    /// memory.
    fn compare_memory(&mut self, slot: usize, load: Load, mem: Mem) -> Option<usize> {
        if !self.uses(Optimization::MemoryComparison) {
            return None;
        }
        let Insn::Jump {
            cond,
            width,
            dst,
            src,
            ..
        } = self.insns[slot]
        else {
            return None;
        };
        let narrower = width == Width::W64 && load.size != Size::DW;
        // A zero-extended value is not negative.
        let (cond, imm) = match (load.size, src) {
            (Size::DW, _) if width == Width::W32 => return None,
            (Size::B, Operand::Imm(imm @ 0..=0xff)) => (cond.unsigned(), imm),
            (Size::H, Operand::Imm(imm @ 0..=0x7f)) => (cond.unsigned(), imm),
            (Size::W, Operand::Imm(imm)) if narrower && imm >= 0 => (cond.unsigned(), imm),
            (Size::W, Operand::Imm(imm)) if !narrower => (cond, imm),
            (Size::DW, Operand::Imm(imm)) => (cond, imm),
            (Size::W | Size::DW, Operand::Reg(other))
                if !narrower && other != dst && other != Reg::R10 && !cond.tests_bits() =>
            {
                self.applies(Optimization::MemoryComparison);
                let other = self.gpr(other);
                self.asm.alu_store(Alu::Cmp, load.size, mem, other);
                return Some(1 + self.jump_on(slot, Cc::of(cond)));
            }
            _ => return None,
        };
        if cond.tests_bits() {
            let (byte, mask) = single_byte(imm)?;
            let disp = mem.disp.checked_add(byte)?;
            self.asm.test_byte(Mem { disp, ..mem }, mask);
        } else {
            self.asm.alu_store_imm(Alu::Cmp, load.size, mem, imm);
        }
        self.applies(Optimization::MemoryComparison);
        Some(1 + self.jump_on(slot, Cc::of(cond)))
    }

    /// `dst op= mem`
    fn operate_with(&mut self, op: AluOp, width: Width, reg: Reg, mem: Mem) {
        let dst = self.gpr(reg);
        self.set_known_bits(reg, all(width));
        match Form::of(op) {
            Form::Plain(op) => {
                self.set_flags(reg, width);
                self.asm.alu_load(op, width, dst, mem);
            }
            Form::Multiply => self.asm.multiply_load(width, dst, mem),
            Form::Move | Form::Divide { .. } | Form::Shift(_) => {
                unreachable!("{op:?} takes no memory operand")
            }
        }
    }

    /// Compiles a load, an operation and a store back to a read-modify-write instruction.
    fn write_read_modify_write(&mut self, slot: usize, size: Size, mem: Mem) -> Option<usize> {
        let ReadModifyWrite { op, src } = self.read_modify_write(slot)?;
        self.applies(Optimization::MemoryUpdate);
        match src {
            Operand::Reg(src) => {
                let src = self.gpr(src);
                self.asm.alu_store(op, size, mem, src);
            }
            Operand::Imm(imm) => self.asm.alu_store_imm(op, size, mem, imm),
        }
        Some(3)
    }

    /// The operation between the load at a slot and the store back, if the value is dead
    /// afterwards and x86 has the read-modify-write form.
    pub(super) fn read_modify_write(&self, slot: usize) -> Option<ReadModifyWrite> {
        if !self.uses(Optimization::MemoryUpdate) {
            return None;
        }
        let Insn::Load {
            size,
            signed: false,
            dst,
            base,
            off,
        } = self.insns[slot]
        else {
            return None;
        };
        let Insn::Store {
            size: stored,
            base: to,
            off: at,
            src: Operand::Reg(src),
        } = self.peek(slot + 2)?
        else {
            return None;
        };
        let this = self.arithmetic(slot + 1)?;
        let Form::Plain(op) = Form::of(this.op) else {
            return None;
        };
        let stores_back = stored == size && to == base && at == off && src == dst;
        let dead = !self.live_out(slot + 2).has(dst);
        let same = this.dst == dst && base != dst;
        // The result of a 32-bit operation differs from that of the 64-bit operation in the
        // upper half.
        let whole = size != Size::DW || this.width == Width::W64;
        let has_form = match this.src {
            Operand::Reg(src) => src != dst && src != Reg::R10,
            // A 16-bit immediate after an operand-size prefix stalls the decoder (LCP
            // stall).
            Operand::Imm(imm) => size != Size::H || i8::try_from(imm).is_ok(),
        };
        (stores_back && dead && same && whole && has_form)
            .then_some(ReadModifyWrite { op, src: this.src })
    }

    pub(super) fn load_acquire(&mut self, size: Size, dst: Reg, mem: Mem) {
        let gpr = self.gpr(dst);
        self.asm.load(size, None, gpr, mem);
        self.set_known_bits(dst, bits_of(size));
    }

    pub(super) fn atomic(&mut self, slot: usize, op: AtomicOp, size: Size, mem: Mem, src: Reg) {
        let width = if size == Size::DW {
            Width::W64
        } else {
            Width::W32
        };
        let gpr = if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.asm.lea(Width::W64, SCRATCH, top);
            SCRATCH
        } else {
            self.gpr(src)
        };
        let bits = if width == Width::W32 { 32 } else { 64 };
        let alu = match op {
            AtomicOp::Add { .. } => Alu::Add,
            AtomicOp::Or { .. } => Alu::Or,
            AtomicOp::And { .. } => Alu::And,
            AtomicOp::Xor { .. } => Alu::Xor,
            AtomicOp::Xchg => {
                self.asm.exchange_memory(width, mem, gpr);
                self.set_known_bits(src, bits);
                return;
            }
            AtomicOp::CmpXchg => {
                self.asm.lock_compare_exchange(width, mem, gpr);
                // `cmpxchg` does not write `eax` if the values were equal.
                if width == Width::W32 && self.upper_live(slot, Reg::R0) {
                    self.asm.mov(Width::W32, Gpr::RAX, Gpr::RAX);
                    self.set_known_bits(Reg::R0, 32);
                } else {
                    self.set_known_bits(Reg::R0, 64);
                }
                return;
            }
        };
        match op {
            AtomicOp::Add { fetch: true } => {
                self.asm.lock_exchange_add(width, mem, gpr);
                self.set_known_bits(src, bits);
            }
            AtomicOp::Or { fetch: true }
            | AtomicOp::And { fetch: true }
            | AtomicOp::Xor { fetch: true } => {
                self.fetch_in_loop(slot, alu, width, mem, src);
                self.set_known_bits(src, bits);
            }
            AtomicOp::Add { fetch: false }
            | AtomicOp::Or { fetch: false }
            | AtomicOp::And { fetch: false }
            | AtomicOp::Xor { fetch: false }
            | AtomicOp::Xchg
            | AtomicOp::CmpXchg => self.asm.lock_alu(alu, width, mem, gpr),
        }
    }

    /// `src = fetch_op(mem, src)` by a compare-and-exchange loop.
    fn fetch_in_loop(&mut self, slot: usize, op: Alu, width: Width, mem: Mem, src: Reg) {
        let rax = Gpr::RAX;
        let operand = self.gpr(src);
        let keeps_r0 = src != Reg::R0 && self.live_out(slot).has(Reg::R0);
        if keeps_r0 {
            self.asm.push(rax);
        }
        // `cmpxchg` needs the old value in `rax`, so the value in `rax` moves to another
        // register.
        let held = mem.uses(rax) || operand == rax;
        let mut free = [Gpr::RDX, Gpr::RCX, Gpr::RSI]
            .into_iter()
            .filter(|&gpr| !mem.uses(gpr) && gpr != operand);
        let copy = free.next().expect("two registers are in use at most");
        if held {
            self.asm.push(copy);
            self.asm.mov(Width::W64, copy, rax);
        }
        let base = if mem.base == rax { copy } else { mem.base };
        let from = if operand == rax { copy } else { operand };
        let mem = Mem { base, ..mem };
        let again = self.asm.new_label();
        self.asm.load(
            if width == Width::W64 {
                Size::DW
            } else {
                Size::W
            },
            None,
            rax,
            mem,
        );
        self.asm.bind(again);
        self.asm.mov(width, SCRATCH, rax);
        self.asm.alu(op, width, SCRATCH, from);
        self.asm.lock_compare_exchange(width, mem, SCRATCH);
        self.asm.jump_if(Cc::NotEqual, again);
        if operand != rax || width == Width::W32 {
            self.asm.mov(width, operand, rax);
        }
        if held {
            self.asm.pop(copy);
        }
        if keeps_r0 {
            self.asm.pop(rax);
        }
    }
}

/// True if an operation can use the load as its memory operand.
fn accepts_memory_operand(this: Arithmetic, load: Load) -> bool {
    let fits = match load.size {
        Size::W => this.width == Width::W32,
        Size::DW => true,
        Size::B | Size::H => false,
    };
    let reads = this.src == Operand::Reg(load.dst) && this.dst != load.dst;
    fits && reads && matches!(Form::of(this.op), Form::Plain(_) | Form::Multiply)
}

/// The offset and value of the only nonzero byte of a mask.
fn single_byte(mask: i32) -> Option<(i32, u8)> {
    let bytes = mask.to_le_bytes();
    let position = bytes.iter().position(|&byte| byte != 0)?;
    let rest = bytes[position + 1..].iter().all(|&byte| byte == 0);
    // A negative mask is sign-extended.
    (rest && mask > 0).then_some((position as i32, bytes[position]))
}
