//! Packet loads: bounds checks, byte order, and offsets outside the data.
//!
//! A load outside the data ends the program with 0, so after a load the packet length is
//! proven up to its end and is not checked again (`proven_len`).
//!
//! Negative offsets are relative to the network or the link-layer header in Linux
//! (`SKF_NET_OFF`, `SKF_LL_OFF`): those loads call a host function through a stub that
//! preserves all registers.

use isa::ebpf::{Insn, Reg, Size, Width};
use lower::Function;
use vm::{PacketRules, RunContext, load_packet_outside};

use super::generator::Generator;
use super::target::{Alu, Assembler, Cc, Label, Layout, Mem, Target};
use crate::native::NativeContext;

/// The slow path of a load outside the data, written after the function.
pub(crate) struct SlowLoad {
    from: Label,
    back: Label,
    size: Size,
}

impl<T: Target> Generator<'_, T> {
    /// True if a load may need the slow path.
    pub(crate) fn has_slow_loads(&self, function: Function) -> bool {
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
    pub(crate) fn packet_at(&mut self, slot: usize, size: Size, imm: i32) -> usize {
        if imm < 0 {
            self.packet_at_negative(size, imm);
            return 1;
        }
        let end = imm as u32 + size.bytes();
        if end > self.proven_len {
            let zero = self.zero_label();
            self.compare_len(end);
            self.asm.jump_if(Cc::Below, zero);
            self.proven_len = end;
        }
        let mem = Mem::at(self.packet_data(), imm);
        1 + T::load_packet(self, Some(slot + 1), size, mem)
    }

    /// Compiles a load at a negative offset.
    fn packet_at_negative(&mut self, size: Size, imm: i32) {
        match self.program.packet_rules() {
            PacketRules::Capture => {
                let zero = self.zero_label();
                self.asm.jump(zero);
            }
            PacketRules::Kernel => {
                self.asm
                    .set_keeping_flags(T::SCRATCH, u64::from(imm as u32));
                self.call_slow_load(size);
                self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
            }
        }
    }

    /// Compiles `r0 = packet[src + imm]`; returns the number of slots.
    pub(crate) fn packet_index(&mut self, slot: usize, size: Size, src: Reg, imm: i32) -> usize {
        let index = if src == Reg::R10 {
            let top = self.frame.stack_top();
            self.asm.lea(Width::W64, T::SCRATCH, top);
            T::SCRATCH
        } else {
            self.gpr(src)
        };
        let narrow = src != Reg::R10 && self.known_bits(src) <= 32;
        if imm < 0 {
            match self.program.packet_rules() {
                PacketRules::Capture => {
                    let zero = self.zero_label();
                    self.asm.jump(zero);
                }
                PacketRules::Kernel => {
                    // The 32-bit sum may wrap to an offset inside the data.
                    self.asm.lea(Width::W32, T::SCRATCH, Mem::at(index, imm));
                    self.call_slow_load(size);
                    self.set_known_bits(Reg::R0, 8 * size.bytes() as u8);
                }
            }
            return 1;
        }
        self.packet_at_index(slot + 1, size, (index, narrow), imm)
    }

    /// Compiles `r0 = packet[index + imm]`; `narrow` tells that the index has 32 bits.
    fn packet_at_index(
        &mut self,
        next: usize,
        size: Size,
        (index, narrow): (T::Reg, bool),
        imm: i32,
    ) -> usize {
        let result = T::RESULT;
        let bytes = size.bytes() as i32;
        // The end of the load, of at most 33 bits.
        let index = if narrow {
            index
        } else {
            self.asm.mov(Width::W32, result, index);
            result
        };
        match imm.checked_add(bytes) {
            Some(end) => self.asm.lea(Width::W64, result, Mem::at(index, end)),
            None => {
                self.asm.lea(Width::W64, result, Mem::at(index, imm));
                self.asm.alu_imm(Alu::Add, Width::W64, result, bytes);
            }
        }
        self.compare_with_len(result);
        let mem = |data| Mem::indexed(data, result, -bytes);
        match self.program.packet_rules() {
            PacketRules::Capture => {
                let zero = self.zero_label();
                self.asm.jump_if(Cc::Above, zero);
                let data = self.packet_data();
                1 + T::load_packet(self, Some(next), size, mem(data))
            }
            // The slow path returns a value in host byte order.
            PacketRules::Kernel => {
                let (from, back) = (self.asm.new_label(), self.asm.new_label());
                self.asm.jump_if(Cc::Above, from);
                self.slow_loads.push(SlowLoad { from, back, size });
                let data = self.packet_data();
                T::load_packet(self, None, size, mem(data));
                self.asm.bind(back);
                1
            }
        }
    }

    /// The register of the packet's address; loads it if needed.
    fn packet_data(&mut self) -> T::Reg {
        match self.frame.packet {
            Some((data, _)) => data,
            None => {
                let data = self.context_word(NativeContext::DATA);
                self.asm.load(Size::DW, None, T::SCRATCH, data);
                T::SCRATCH
            }
        }
    }

    /// Compares the packet's length with a constant.
    fn compare_len(&mut self, end: u32) {
        match (self.frame.packet, i32::try_from(end)) {
            (Some((_, len)), Ok(end)) => self.asm.alu_imm(Alu::Cmp, Width::W64, len, end),
            (None, Ok(end)) => {
                let len = self.context_word(NativeContext::LEN);
                self.asm.alu_store_imm(Alu::Cmp, Size::DW, len, end);
            }
            (_, Err(_)) => {
                // The end of a load just below 2^31 exceeds an i32.
                self.asm.set(T::SCRATCH, end.into());
                self.compare_len_with(T::SCRATCH);
            }
        }
    }

    /// Compares the packet's length with a register; "below" if the packet is shorter.
    fn compare_len_with(&mut self, gpr: T::Reg) {
        match self.frame.packet {
            Some((_, len)) => self.asm.alu(Alu::Cmp, Width::W64, len, gpr),
            None => {
                let len = self.context_word(NativeContext::LEN);
                self.asm.alu_store(Alu::Cmp, Size::DW, len, gpr);
            }
        }
    }

    /// Compares a register with the packet's length; "above" if the register is greater.
    fn compare_with_len(&mut self, gpr: T::Reg) {
        match self.frame.packet {
            Some((_, len)) => self.asm.alu(Alu::Cmp, Width::W64, gpr, len),
            None => {
                let len = self.context_word(NativeContext::LEN);
                self.asm.alu_load(Alu::Cmp, Width::W64, gpr, len);
            }
        }
    }

    /// Calls the slow path for the offset in the scratch register; the result is in the register of results.
    /// Ends the program with 0 if there is no such byte.
    fn call_slow_load(&mut self, size: Size) {
        let zero = self.zero_label();
        let stub = self.slow_load_stub(size);
        self.asm.call(stub);
        self.asm.test(Width::W64, T::RESULT, T::RESULT);
        self.asm.jump_if(Cc::Negative, zero);
    }

    fn slow_load_stub(&mut self, size: Size) -> Label {
        let index = size.bytes().trailing_zeros() as usize;
        *self.slow_load_stubs[index].get_or_insert_with(|| self.asm.new_label())
    }

    /// Writes the slow paths of the function's loads.
    pub(crate) fn write_slow_loads(&mut self) {
        for SlowLoad { from, back, size } in std::mem::take(&mut self.slow_loads) {
            self.asm.bind(from);
            let end = -(size.bytes() as i32);
            self.asm
                .lea(Width::W32, T::SCRATCH, Mem::at(T::RESULT, end));
            self.call_slow_load(size);
            self.asm.jump(back);
        }
        self.write_slow_load_stubs();
    }

    /// Writes the stubs that call [`slow_packet_load`] with the offset in the scratch
    /// register: the result is in the register of results, all other registers are preserved.
    fn write_slow_load_stubs(&mut self) {
        for (index, stub) in std::mem::take(&mut self.slow_load_stubs)
            .into_iter()
            .enumerate()
        {
            let Some(label) = stub else { continue };
            self.asm.bind(label);
            let saved = self.frame.live_caller_saved();
            let [context, offset, length, ..] = T::ARGUMENTS;
            self.preserve(&saved, |generator| {
                let run_context = generator.context_word(NativeContext::RUN_CONTEXT);
                generator.asm.load(Size::DW, None, context, run_context);
                generator.asm.mov(Width::W32, offset, T::SCRATCH);
                generator.asm.set(length, 1 << index);
                generator.call_host(slow_packet_load as *const () as u64);
            });
            self.asm.ret();
        }
    }
}

/// The slow path of a load of `size` bytes at an offset outside the data, by Linux's rules;
/// all ones if it fails.
extern "C" fn slow_packet_load(cx: &mut RunContext<'_>, offset: u32, size: u32) -> u64 {
    let (packet, rules) = (cx.packet, PacketRules::Kernel);
    load_packet_outside(packet, rules, offset.into(), size).map_or(u64::MAX, u64::from)
}
