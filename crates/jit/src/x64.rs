//! x86-64: an assembler, and a selection of machine instructions.
//!
//! `alu.rs`, `copy.rs`, `shift.rs`, `byte_order.rs`, `divide.rs`, `bits.rs`, `memory.rs` and
//! `packet.rs` select machine instructions, `retpoline.rs` has the indirect branches; `asm.rs` has
//! a method for each machine instruction, which `encode.rs` encodes into `buffer.rs`.
//!
//! | program | machine | |
//! |---|---|---|
//! | `r0` | `rax` | the result |
//! | `r1` to `r5` | `rdi`, `rsi`, `rdx`, `rcx`, `r8` | arguments, caller-saved |
//! | `r6` to `r9` | `rbx`, `rbp`, `r14`, `r15`, `r13` | callee-saved, saved where used |
//! | | `r11` | scratch register of the generator |
//! | | `r12` | the [`NativeContext`](crate::native::NativeContext), where it is used |

mod alu;
mod asm;
mod bits;
mod buffer;
mod byte_order;
mod copy;
mod divide;
mod encode;
mod features;
mod form;
mod memory;
mod packet;
mod reg;
mod retpoline;
mod shift;

pub use features::Features;

use buffer::Buffer;
use form::Form;
use isa::ebpf::{AtomicOp, ByteOrder, Insn, Operand, Reg, Size, Width};
use reg::{Gpr, Mem, SCRATCH};
use spec::bits::BitOp;

use crate::analysis::Halves;
use crate::codegen::{Arithmetic, Frame, Label, LookupRegs, Target};

/// The code generator for x86-64.
type Generator<'a> = crate::codegen::Generator<'a, X64>;

/// An x86-64 processor.
#[derive(Clone, Copy)]
pub(crate) struct X64 {
    features: Features,
}

impl X64 {
    pub(crate) fn new(features: Features) -> X64 {
        X64 { features }
    }
}

impl Target for X64 {
    type Reg = Gpr;
    type Assembler = Buffer;

    const RESULT: Gpr = Gpr::RAX;
    const ARGUMENTS: [Gpr; 5] = [Gpr::RDI, Gpr::RSI, Gpr::RDX, Gpr::RCX, Gpr::R8];
    const RUN_CONTEXT: Gpr = Gpr::R9;
    const SPARE: Gpr = Gpr::R10;
    const SCRATCH: Gpr = SCRATCH;
    const CONTEXT: Gpr = Gpr::R12;
    const ENTRY_DATA: Gpr = Gpr::RDX;
    const ENTRY_LEN: Gpr = Gpr::RCX;
    const ENTRY_CONTEXT: Gpr = Gpr::R8;
    const STACK_POINTER: Gpr = Gpr::RSP;
    const FRAME_POINTER: Gpr = Gpr::RBP;
    /// The first two need no prefix byte.
    const CALLEE_SAVED: &'static [Gpr] =
        &[Gpr::RBX, Gpr::RBP, Gpr::R14, Gpr::R15, Gpr::R13, Gpr::R12];
    const CALLER_SAVED: &'static [Gpr] = &[
        Gpr::RCX,
        Gpr::RDX,
        Gpr::RSI,
        Gpr::RDI,
        Gpr::R8,
        Gpr::R9,
        Gpr::R10,
    ];
    const UNBOUND: &'static [Gpr] = &[Gpr::R10, Gpr::R9];
    /// `mul` takes and returns `rax`, and returns `rdx`.
    const LOOKUP: LookupRegs<Gpr> = LookupRegs {
        map: Gpr::RDI,
        key: Gpr::RSI,
        words: [Gpr::RDI, Gpr::R8],
        hash: Gpr::RAX,
        tags: Gpr::RDX,
        element: Gpr::RCX,
        slot: Gpr::R10,
        operand: Gpr::R9,
    };
    const RED_ZONE: i32 = 128;
    const RETURN_BYTES: i32 = 8;

    fn inlines_lookups(self) -> bool {
        self.features.bmi1
    }

    fn epilogue_len(frame: &Frame<X64>) -> usize {
        let saved = frame.saved.iter();
        let pops: usize = saved.map(|gpr| if gpr.number() < 8 { 1 } else { 2 }).sum();
        let freed = if frame.has_frame_pointer() {
            1
        } else if frame.reserved > 0 {
            4
        } else {
            0
        };
        pops + freed + 1
    }

    /// `rax` and `rdx` for division, `rcx` for shift counts.
    fn needs_fixed_registers(insn: Insn) -> bool {
        let Insn::Alu { op, src, .. } = insn else {
            return false;
        };
        match Form::of(op) {
            Form::Divide { .. } => true,
            Form::Shift(_) => matches!(src, Operand::Reg(_)),
            Form::Move | Form::Plain(_) | Form::Multiply => false,
        }
    }

    fn alu(generator: &mut Generator<'_>, slot: usize, this: Arithmetic) -> usize {
        generator.alu(slot, this)
    }

    fn negate(generator: &mut Generator<'_>, slot: usize, width: Width, dst: Reg) {
        generator.negate(slot, width, dst);
    }

    fn sign_extend(
        generator: &mut Generator<'_>,
        slot: usize,
        width: Width,
        from: Size,
        dst: Reg,
        src: Reg,
    ) {
        generator.sign_extend(slot, width, from, dst, src);
    }

    fn byte_order(generator: &mut Generator<'_>, order: ByteOrder, size: Size, dst: Reg) {
        generator.byte_order(order, size, dst);
    }

    fn rotate(generator: &mut Generator<'_>, width: Width, dst: Reg, src: Reg, left: u8) {
        generator.rotate(width, dst, src, left);
    }

    fn bit_operation(generator: &mut Generator<'_>, op: BitOp) {
        generator.bit_operation(op);
    }

    fn load(
        generator: &mut Generator<'_>,
        slot: usize,
        size: Size,
        dst: Reg,
        live_out: Halves,
        mem: Mem,
    ) -> usize {
        generator.load(slot, size, dst, live_out, mem)
    }

    /// Every load has acquire semantics.
    fn load_acquire(generator: &mut Generator<'_>, size: Size, dst: Reg, mem: Mem) {
        generator.load_acquire(size, dst, mem);
    }

    /// Every store has release semantics.
    fn store_release(generator: &mut Generator<'_>, size: Size, mem: Mem, src: Reg) {
        generator.store(size, mem, Operand::Reg(src));
    }

    fn atomic(
        generator: &mut Generator<'_>,
        slot: usize,
        op: AtomicOp,
        size: Size,
        mem: Mem,
        src: Reg,
    ) {
        generator.atomic(slot, op, size, mem, src);
    }

    fn updates_memory(generator: &Generator<'_>, slot: usize, sum: Reg) -> bool {
        generator
            .read_modify_write(slot)
            .is_some_and(|update| update.src != Operand::Reg(sum))
    }

    fn load_packet(
        generator: &mut Generator<'_>,
        next: Option<usize>,
        size: Size,
        mem: Mem,
    ) -> usize {
        generator.load_packet(next, size, mem)
    }

    fn jump_to_scratch(generator: &mut Generator<'_>) {
        generator.jump_to_scratch();
    }

    fn call_through(generator: &mut Generator<'_>, label: Label) {
        generator.call_through(label);
    }

    fn write_thunks(generator: &mut Generator<'_>) {
        generator.write_retpoline();
    }
}
