//! Properties that an opcode states by itself, whatever the other fields of its slot hold.
//!
//! Linux's passes before the verification proper look at opcodes only: instructions whose
//! reserved fields are set, and opcodes that no instruction has, are refused behind them.
//! Decoding makes [`Insn::Invalid`](super::Insn::Invalid) of both; these passes read what
//! follows. Constant time.

use super::operands::Flow;
use super::pseudo::PseudoCall;
use super::row::Row;
use super::table::{Op, ROWS};
use super::{RawInsn, Size};

/// Bits of an opcode that are its class, and classes (RFC 9669 section 3.1).
const CLASS: u8 = 0x07;
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;

/// Bits of the size of a load or store.
const SIZE: u8 = 0x18;

/// Bits that are the mode of a load or store, and modes.
const MODE: u8 = 0xe0;
const IMM: u8 = 0x00;
const ABS: u8 = 0x20;
const IND: u8 = 0x40;
const MEM: u8 = 0x60;
const MEMSX: u8 = 0x80;
const ATOMIC: u8 = 0xc0;

/// Bit of the second operand of arithmetic and jumps: a register, not the immediate.
const REGISTER: u8 = 0x08;

/// Bit of the immediate of an atomic operation that returns the old value.
const FETCH: i32 = 1;

/// Bits that are the operation of a jump, and operations.
const OPERATION: u8 = 0xf0;
const JA: u8 = 0x00;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const JCOND: u8 = 0xe0;

/// By opcode, the first row that has it.
static FIRST: [Option<Op>; 256] = {
    let mut first = [None; 256];
    let mut at = ROWS.len();
    while at > 0 {
        at -= 1;
        first[ROWS[at].code as usize] = Some(ROWS[at].op);
    }
    first
};

impl RawInsn {
    /// The first row with the opcode; rows that share one differ in other fields.
    pub fn row(self) -> Option<&'static Row> {
        FIRST[usize::from(self.code)].map(Op::row)
    }

    /// True for the classes of arithmetic.
    pub const fn is_arithmetic(self) -> bool {
        matches!(self.code & CLASS, ALU | ALU64)
    }

    /// True for arithmetic with an immediate.
    pub const fn is_immediate_arithmetic(self) -> bool {
        self.is_arithmetic() && self.code & REGISTER == 0
    }

    /// True for the class of 64-bit immediates and packet loads (`BPF_LD`).
    pub const fn is_of_immediate_class(self) -> bool {
        self.code & CLASS == LD
    }

    /// True for the classes of loads through a register and of stores.
    pub const fn is_of_memory_class(self) -> bool {
        matches!(self.code & CLASS, LDX..=STX)
    }

    /// The size of a load or store.
    pub const fn size(self) -> Size {
        match self.code & SIZE {
            0x00 => Size::W,
            0x08 => Size::H,
            0x10 => Size::B,
            _ => Size::DW,
        }
    }

    /// The load or store with another size.
    #[must_use]
    pub const fn with_size(self, size: Size) -> RawInsn {
        RawInsn {
            code: self.code & !SIZE | size as u8,
            ..self
        }
    }

    /// A call of a helper.
    pub const fn call_helper(number: i32) -> RawInsn {
        RawInsn {
            code: JMP | CALL,
            regs: 0,
            off: 0,
            imm: number,
        }
    }

    /// True for the first of the two slots of a 64-bit immediate load.
    pub const fn is_wide_load(self) -> bool {
        self.code == LD | IMM | SIZE
    }

    /// True unless the opcode is that of the second of two slots, 0.
    pub const fn has_opcode(self) -> bool {
        self.code != 0
    }

    /// True for a slot that may be the second one of a 64-bit immediate load.
    pub const fn is_second_slot(&self) -> bool {
        self.code == 0 && self.regs == 0 && self.off == 0
    }

    /// True for the classes of jumps.
    pub const fn is_of_jump_class(self) -> bool {
        matches!(self.code & CLASS, JMP | JMP32)
    }

    /// True for calls.
    pub const fn is_call(self) -> bool {
        self.code == JMP | CALL
    }

    /// True for exits.
    pub const fn is_exit(self) -> bool {
        self.code == JMP | EXIT
    }

    /// True for `goto` and `gotol`.
    pub const fn is_goto(self) -> bool {
        self.code == JMP | JA || self.is_long_goto()
    }

    /// True for `gotol`.
    pub const fn is_long_goto(self) -> bool {
        self.code == JMP32 | JA
    }

    /// True for `may_goto` (`is_may_goto_insn`, `is_may_goto_insn_at`, `bpf_is_may_goto_insn`).
    #[doc(alias = "is_may_goto_insn")]
    #[doc(alias = "is_may_goto_insn_at")]
    #[doc(alias = "bpf_is_may_goto_insn")]
    pub const fn is_may_goto(self) -> bool {
        self.code == JMP | JCOND && self.src() == 0
    }

    /// True for the class of loads through a register (`BPF_LDX`).
    pub const fn is_of_load_class(self) -> bool {
        self.code & CLASS == LDX
    }

    /// True for loads through a register of a mode that exists, of whatever size.
    pub const fn is_memory_load(self) -> bool {
        self.is_of_load_class() && matches!(self.code & MODE, MEM | MEMSX)
    }

    /// True for loads through a register that extend no sign, of whatever size.
    pub const fn is_plain_load(self) -> bool {
        self.is_of_load_class() && self.code & MODE == MEM
    }

    /// True for stores of registers, of whatever size and mode.
    pub const fn is_of_register_store_class(self) -> bool {
        self.code & CLASS == STX
    }

    /// True for stores of registers of a mode that exists, atomic ones among them, of whatever size.
    pub const fn is_register_store(self) -> bool {
        self.is_of_register_store_class() && matches!(self.code & MODE, MEM | ATOMIC)
    }

    /// True for packet loads of classic BPF.
    pub const fn is_packet_load(self) -> bool {
        self.is_of_immediate_class() && matches!(self.code & MODE, ABS | IND)
    }

    /// True for atomic instructions, loads and stores with an order among them.
    pub const fn is_atomic(self) -> bool {
        self.is_of_register_store_class() && self.code & MODE == ATOMIC
    }

    /// True for the immediate of an atomic operation that returns the old value, whatever the operation.
    pub const fn fetches(self) -> bool {
        self.imm & FETCH != 0
    }

    /// Control flow after the opcode (`bpf_jmp_offset`).
    #[doc(alias = "bpf_jmp_offset")]
    pub const fn opcode_flow(self) -> Flow {
        if self.is_wide_load() {
            return Flow::SkipOne;
        }
        if !self.is_of_jump_class() {
            return Flow::Next;
        }
        match self.code & OPERATION {
            EXIT => Flow::Exit,
            CALL => Flow::Call(match self.pseudo_call() {
                Some(PseudoCall::Local) => Some(self.imm),
                Some(PseudoCall::Helper | PseudoCall::Kfunc) | None => None,
            }),
            JA if self.is_long_goto() => Flow::Goto(self.imm),
            JA => Flow::Goto(self.off as i32),
            _ => Flow::Branch(self.off as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Effect, Insn};
    use super::*;

    /// A slot of every row, with operands that differ.
    fn slots() -> impl Iterator<Item = (&'static Row, RawInsn)> {
        ROWS.iter().map(|row| (row, row.slot(1, 2, 3, 4)))
    }

    #[test]
    fn opcodes_flow_as_their_instructions() {
        for (row, raw) in slots() {
            let insn = Insn::decode_one(raw, Some(RawInsn::default()));
            match insn.flow() {
                // Indirect jumps and calls share the operation of direct ones.
                Flow::GotoReg(_) => assert_eq!(raw.opcode_flow(), Flow::Goto(0)),
                flow => assert_eq!(raw.opcode_flow(), flow, "{:?}", row.op),
            }
        }
    }

    #[test]
    fn opcodes_tell_instructions_apart() {
        for (row, raw) in slots() {
            let insn = Insn::decode_one(raw, Some(RawInsn::default()));
            assert_eq!(raw.row().map(|first| first.code), Some(row.code));
            assert_eq!(raw.is_call(), matches!(insn, Insn::Call(_)));
            assert_eq!(raw.is_exit(), insn == Insn::Exit);
            let is_goto = matches!(row.effect, Effect::Goto | Effect::GotoLong);
            assert_eq!(raw.is_goto(), is_goto);
            assert_eq!(raw.is_may_goto(), matches!(insn, Insn::MayGoto { .. }));
            let is_load = matches!(insn, Insn::Load { .. });
            assert_eq!(
                (raw.is_memory_load(), raw.is_of_load_class()),
                (is_load, is_load)
            );
            assert_eq!(raw.is_packet_load(), row.effect == Effect::Packet);
            let is_atomic = matches!(
                insn,
                Insn::Atomic { .. } | Insn::LoadAcquire { .. } | Insn::StoreRelease { .. }
            );
            assert_eq!(raw.is_atomic(), is_atomic);
        }
    }
}
