//! Packet loads: bounds checks, byte order, and offsets outside the data.
//!
//! A load outside the data ends the program with 0, so after a load the packet length is
//! proven up to its end and is not checked again (`proven_len`).
//!
//! Negative offsets are relative to the network or the link-layer header in Linux
//! (`SKF_NET_OFF`, `SKF_LL_OFF`): those loads call a host function through a stub that
//! preserves all registers.

use isa::ebpf::{Cond, Insn, Operand, Reg, Size, Width};
use lower::Function;
use vm::{PacketRules, RunContext, load_packet_outside};

use super::asm::Alu;
use super::buffer::Label;
use super::frame::SCRATCH;
use super::generator::Generator;
use super::reg::{Cc, Gpr, Mem};
use crate::Optimization;
use crate::native::NativeContext;

/// The slow path of a load outside the data, written after the function.
pub(super) struct SlowLoad {
    from: Label,
    back: Label,
    size: Size,
}

impl Generator<'_> {
    /// True if a load may need the slow path.
    pub(super) fn has_slow_loads(&self, function: Function) -> bool {
        let kernel = self.program.packet_rules() == PacketRules::Kernel;
        kernel
            && self.insns[function.start..function.end]
                .iter()
                .any(|insn| match *insn {
                    Insn::PacketAbs { imm, .. } => imm < 0,
                    Insn::PacketInd { .. } => true,
                    _ => false,
                })
    }

    /// Compiles `r0 = packet[imm]`; returns the number of slots.
    pub(super) fn packet_at(&mut self, slot: usize, size: Size, imm: i32) -> usize {
        if imm < 0 {
            self.packet_at_negative(size, imm);
            return 1;
        }
        let end = imm as u32 + size.bytes();
        if end > self.proven_len {
            let zero = self.zero_label();
            self.compare_len(end);
            self.buf.jump_if(Cc::B, zero);
            self.proven_len = end;
        }
        let mem = Mem::at(self.packet_data(), imm);
        if let Some(count) = self.compare_packet(slot + 1, size, mem) {
            return 1 + count;
        }
        self.load_swapped(size, mem);
        1
    }

    /// Compiles a load at a negative offset.
    fn packet_at_negative(&mut self, size: Size, imm: i32) {
        match self.program.packet_rules() {
            PacketRules::Capture => {
                let zero = self.zero_label();
                self.buf.jump(zero);
            }
            PacketRules::Kernel => {
                self.buf.set_keeping_flags(SCRATCH, u64::from(imm as u32));
                self.call_slow_load(size);
                self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
            }
        }
    }

    /// Compiles `r0 = packet[src + imm]`; returns the number of slots.
    pub(super) fn packet_index(&mut self, slot: usize, size: Size, src: Reg, imm: i32) -> usize {
        let index = if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.buf.lea(Width::W64, SCRATCH, top);
            SCRATCH
        } else {
            self.gpr(src)
        };
        let narrow = src != Reg::R10 && self.known_bits(src) <= 32;
        if imm < 0 {
            match self.program.packet_rules() {
                PacketRules::Capture => {
                    let zero = self.zero_label();
                    self.buf.jump(zero);
                }
                PacketRules::Kernel => {
                    // The 32-bit sum may wrap to an offset inside the data.
                    self.buf.lea(Width::W32, SCRATCH, Mem::at(index, imm));
                    self.call_slow_load(size);
                    self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
                }
            }
            return 1;
        }
        1 + self.packet_at_index(slot + 1, size, index, narrow, imm)
    }

    /// Compiles `r0 = packet[index + imm]`; `narrow` tells that the index has 32 bits.
    /// Returns the number of slots from `next` on that were fused with it.
    pub(super) fn packet_at_index(
        &mut self,
        next: usize,
        size: Size,
        index: Gpr,
        narrow: bool,
        imm: i32,
    ) -> usize {
        let rax = Gpr::RAX;
        let bytes = size.bytes() as i32;
        // The end of the load, of at most 33 bits.
        let index = if narrow {
            index
        } else {
            self.buf.mov(Width::W32, rax, index);
            rax
        };
        match imm.checked_add(bytes) {
            Some(end) => self.buf.lea(Width::W64, rax, Mem::at(index, end)),
            None => {
                self.buf.lea(Width::W64, rax, Mem::at(index, imm));
                self.buf.alu_imm(Alu::Add, Width::W64, rax, bytes);
            }
        }
        self.compare_with_len(rax);
        let back = self.buf.new_label();
        match self.program.packet_rules() {
            PacketRules::Capture => {
                let zero = self.zero_label();
                self.buf.jump_if(Cc::A, zero);
            }
            PacketRules::Kernel => {
                let from = self.buf.new_label();
                self.buf.jump_if(Cc::A, from);
                self.slow_loads.push(SlowLoad { from, back, size });
            }
        }
        let mem = Mem::indexed(self.packet_data(), rax, -bytes);
        // The slow path returns a value in host byte order.
        if self.program.packet_rules() == PacketRules::Capture
            && let Some(count) = self.compare_packet(next, size, mem)
        {
            return count;
        }
        self.load_swapped(size, mem);
        self.buf.bind(back);
        0
    }

    /// The register of the packet's address; loads it if needed.
    fn packet_data(&mut self) -> Gpr {
        match self.frame.packet {
            Some((data, _)) => data,
            None => {
                let data = self.context_word(NativeContext::DATA);
                self.buf.load(Size::DW, None, SCRATCH, data);
                SCRATCH
            }
        }
    }

    /// Compares the packet's length with a constant.
    fn compare_len(&mut self, end: u32) {
        match (self.frame.packet, i32::try_from(end)) {
            (Some((_, len)), Ok(end)) => self.buf.alu_imm(Alu::Cmp, Width::W64, len, end),
            (None, Ok(end)) => {
                let len = self.context_word(NativeContext::LEN);
                self.buf.alu_store_imm(Alu::Cmp, Size::DW, len, end);
            }
            (_, Err(_)) => {
                // The end of a load just below 2^31 exceeds an i32.
                self.buf.set(SCRATCH, end.into());
                self.compare_len_with(SCRATCH);
            }
        }
    }

    /// Compares the packet's length with a register; "below" if the packet is shorter.
    fn compare_len_with(&mut self, gpr: Gpr) {
        match self.frame.packet {
            Some((_, len)) => self.buf.alu(Alu::Cmp, Width::W64, len, gpr),
            None => {
                let len = self.context_word(NativeContext::LEN);
                self.buf.alu_store(Alu::Cmp, Size::DW, len, gpr);
            }
        }
    }

    /// Compares a register with the packet's length; "above" if the register is greater.
    fn compare_with_len(&mut self, gpr: Gpr) {
        match self.frame.packet {
            Some((_, len)) => self.buf.alu(Alu::Cmp, Width::W64, gpr, len),
            None => {
                let len = self.context_word(NativeContext::LEN);
                self.buf.alu_load(Alu::Cmp, Width::W64, gpr, len);
            }
        }
    }

    /// `rax = mem`, in network byte order.
    fn load_swapped(&mut self, size: Size, mem: Mem) {
        let rax = Gpr::RAX;
        if size == Size::W && self.features.movbe {
            self.buf.load_swapped(Width::W32, rax, mem);
        } else {
            self.buf.load(size, None, rax, mem);
            if size != Size::B {
                self.swap_bytes(size, rax, 8 * size.bytes() as u8);
            }
        }
        self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
    }

    /// `if w0 cond imm goto` after a load, if `r0` is dead afterwards: a comparison with
    /// memory in network byte order.
    fn compare_packet(&mut self, slot: usize, size: Size, mem: Mem) -> Option<usize> {
        let Insn::Jump {
            cond,
            width: Width::W32,
            dst: Reg::R0,
            src: Operand::Imm(imm),
            ..
        } = self.peek(slot)?
        else {
            return None;
        };
        if self.live_out(slot).has(Reg::R0) || !self.uses(Optimization::PacketComparison) {
            return None;
        }
        let swapped = match size {
            Size::B if (0..=0xff).contains(&imm) => imm,
            Size::W if matches!(cond, Cond::Eq | Cond::Ne) => imm.swap_bytes(),
            // A 16-bit immediate after an operand-size prefix stalls the decoder (LCP
            // stall), so the value is loaded.
            Size::H
                if matches!(cond, Cond::Eq | Cond::Ne | Cond::Set)
                    && (0..=0xffff).contains(&imm) =>
            {
                self.applies(Optimization::PacketComparison);
                let swapped = i32::from((imm as u16).swap_bytes());
                self.buf.load(Size::H, None, Gpr::RAX, mem);
                if cond.tests_bits() {
                    self.buf.test_imm(Width::W32, Gpr::RAX, swapped);
                } else {
                    self.buf.alu_imm(Alu::Cmp, Width::W32, Gpr::RAX, swapped);
                }
                return Some(self.jump_on(slot, Cc::of(cond)));
            }
            _ => return None,
        };
        self.applies(Optimization::PacketComparison);
        if cond.tests_bits() {
            self.buf.test_byte(mem, swapped as u8);
        } else {
            self.buf.alu_store_imm(Alu::Cmp, size, mem, swapped);
        }
        Some(self.jump_on(slot, Cc::of(cond.unsigned())))
    }

    /// Calls the slow path for the offset in the scratch register; the result is in `rax`.
    /// Ends the program with 0 if there is no such byte.
    fn call_slow_load(&mut self, size: Size) {
        let zero = self.zero_label();
        let stub = self.slow_load_stub(size);
        self.buf.call(stub);
        self.buf.test(Width::W64, Gpr::RAX, Gpr::RAX);
        self.buf.jump_if(Cc::S, zero);
    }

    fn slow_load_stub(&mut self, size: Size) -> Label {
        let index = size.bytes().trailing_zeros() as usize;
        *self.slow_load_stubs[index].get_or_insert_with(|| self.buf.new_label())
    }

    /// Writes the slow paths of the function's loads.
    pub(super) fn write_slow_loads(&mut self) {
        for SlowLoad { from, back, size } in std::mem::take(&mut self.slow_loads) {
            self.buf.bind(from);
            let end = -(size.bytes() as i32);
            self.buf.lea(Width::W32, SCRATCH, Mem::at(Gpr::RAX, end));
            self.call_slow_load(size);
            self.buf.jump(back);
        }
        self.write_slow_load_stubs();
    }

    /// Writes the stubs that call [`slow_packet_load`] with the offset in the scratch
    /// register: the result is in `rax`, all other registers are preserved.
    fn write_slow_load_stubs(&mut self) {
        for (index, stub) in std::mem::take(&mut self.slow_load_stubs)
            .into_iter()
            .enumerate()
        {
            let Some(label) = stub else { continue };
            self.buf.bind(label);
            let saved: Vec<Gpr> = self.frame.live_caller_saved().collect();
            self.preserve(&saved, |generator| {
                let run_context = generator.context_word(NativeContext::RUN_CONTEXT);
                generator.buf.load(Size::DW, None, Gpr::RDI, run_context);
                generator.buf.mov(Width::W32, Gpr::RSI, SCRATCH);
                generator.buf.set(Gpr::RDX, 1 << index);
                generator.call_host(slow_packet_load as *const () as u64);
            });
            self.buf.ret();
        }
    }
}

/// The slow path of a load of `size` bytes at an offset outside the data, by Linux's rules;
/// all ones if it fails.
extern "C" fn slow_packet_load(cx: &mut RunContext<'_>, offset: u32, size: u32) -> u64 {
    let (packet, rules) = (cx.packet, PacketRules::Kernel);
    load_packet_outside(packet, rules, offset.into(), size).map_or(u64::MAX, u64::from)
}
