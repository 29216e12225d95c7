//! The interface of a processor: its registers, an assembler of few instructions, and the selection
//! of machine instructions for those of a program.

use std::fmt::Debug;

use isa::ebpf::{AtomicOp, ByteOrder, Cond, Insn, Reg, Size, Width};
use spec::bits::BitOp;

use super::arithmetic::Arithmetic;
use super::frame::Frame;
use super::generator::Generator;
use crate::analysis::Halves;

/// A machine register.
pub(crate) trait Register: Copy + PartialEq + Debug + 'static {
    /// All registers in ascending order.
    const ALL: &'static [Self];

    /// Its number, below 32.
    fn number(self) -> u8;
}

/// A processor.
pub(crate) trait Target: Copy {
    type Reg: Register;
    type Assembler: Assembler<Reg = Self::Reg>;

    /// The register of `r0` and of results.
    const RESULT: Self::Reg;
    /// The registers of `r1` to `r5`, which are those of arguments.
    const ARGUMENTS: [Self::Reg; 5];
    /// The argument register behind them; it holds nothing in functions that make calls, but
    /// the address of the run context at calls.
    const RUN_CONTEXT: Self::Reg;
    /// A register that holds nothing in functions that make calls.
    const SPARE: Self::Reg;
    /// Scratch register of the generator, never assigned.
    const SCRATCH: Self::Reg;
    /// Register of the native context in functions that make calls.
    const CONTEXT: Self::Reg;
    /// Argument registers in which the entry function receives the packet's address, its length
    /// and the native context.
    const ENTRY_DATA: Self::Reg;
    const ENTRY_LEN: Self::Reg;
    const ENTRY_CONTEXT: Self::Reg;
    const STACK_POINTER: Self::Reg;
    const FRAME_POINTER: Self::Reg;
    /// Callee-saved registers in the order of assignment.
    const CALLEE_SAVED: &'static [Self::Reg];
    /// Caller-saved registers in the order of assignment.
    const CALLER_SAVED: &'static [Self::Reg];
    /// Caller-saved registers that no instruction uses implicitly.
    const UNBOUND: &'static [Self::Reg];
    /// Registers of lookups in hash tables.
    const LOOKUP: LookupRegs<Self::Reg>;
    /// Bytes below the stack pointer that a function without calls may use.
    const RED_ZONE: i32;
    /// Bytes that a call pushes.
    const RETURN_BYTES: i32;

    /// True if the processor has what a lookup without a call takes.
    fn inlines_lookups(self) -> bool;

    /// Estimated length of the epilogue in bytes, without what unlinks a record.
    fn epilogue_len(frame: &Frame<Self>) -> usize;

    /// True if an operation needs fixed registers.
    fn needs_fixed_registers(insn: Insn) -> bool;

    // Selection: each method compiles the instruction at a slot. Those that return a number
    // may compile following instructions with it, and return the number of slots.

    fn alu(generator: &mut Generator<'_, Self>, slot: usize, this: Arithmetic) -> usize;

    /// `dst = -dst`
    fn negate(generator: &mut Generator<'_, Self>, slot: usize, width: Width, dst: Reg);

    /// `dst = (signed, from)src`
    fn sign_extend(
        generator: &mut Generator<'_, Self>,
        slot: usize,
        width: Width,
        from: Size,
        dst: Reg,
        src: Reg,
    );

    fn byte_order(generator: &mut Generator<'_, Self>, order: ByteOrder, size: Size, dst: Reg);

    /// `dst` = `src` rotated left.
    fn rotate(generator: &mut Generator<'_, Self>, width: Width, dst: Reg, src: Reg, left: u8);

    /// `r0 = op(r1, r2)`
    fn bit_operation(generator: &mut Generator<'_, Self>, op: BitOp);

    /// A zero-extending load.
    fn load(
        generator: &mut Generator<'_, Self>,
        slot: usize,
        size: Size,
        dst: Reg,
        live_out: Halves,
        mem: Mem<Self::Reg>,
    ) -> usize;

    fn load_acquire(generator: &mut Generator<'_, Self>, size: Size, dst: Reg, mem: Mem<Self::Reg>);

    fn store_release(
        generator: &mut Generator<'_, Self>,
        size: Size,
        mem: Mem<Self::Reg>,
        src: Reg,
    );

    fn atomic(
        generator: &mut Generator<'_, Self>,
        slot: usize,
        op: AtomicOp,
        size: Size,
        mem: Mem<Self::Reg>,
        src: Reg,
    );

    /// True if the load at a slot, the operation and the store back become one instruction that
    /// does not use `sum` but as an address.
    fn updates_memory(generator: &Generator<'_, Self>, slot: usize, sum: Reg) -> bool;

    /// The packet load `r0 = mem`, in network byte order; with the comparison at the next slot,
    /// if there is an instruction for both. Returns the number of slots behind the load's that it
    /// compiled.
    fn load_packet(
        generator: &mut Generator<'_, Self>,
        next: Option<usize>,
        size: Size,
        mem: Mem<Self::Reg>,
    ) -> usize;

    /// Jumps to the address in the scratch register.
    fn jump_to_scratch(generator: &mut Generator<'_, Self>);

    /// Calls the address at a label.
    fn call_through(generator: &mut Generator<'_, Self>, label: Label);

    /// Writes code that others call, after the functions.
    fn write_thunks(generator: &mut Generator<'_, Self>);
}

/// The layout of the code: labels, jumps and tables.
pub(crate) trait Layout {
    /// An assembler for a program with this many slots and functions, all of which have labels.
    /// With `long_tables`, entries of tables hold any distance.
    fn new(slots: usize, functions: usize, long_tables: bool) -> Self;

    /// A new label, which is bound later.
    fn new_label(&mut self) -> Label;

    /// The label of a function.
    fn function(&self, index: usize) -> Label;

    /// Binds a label to the current position.
    fn bind(&mut self, label: Label);

    /// No-operations up to a multiple of `to` bytes, a power of two up to 64.
    fn align(&mut self, to: u8);

    /// Adds a table with the distances of labels from the table; returns the length of an
    /// entry in bytes.
    fn add_table(&mut self, label: Label, targets: Vec<Label>) -> usize;

    /// Reserves the space of all tables at the current position.
    fn place_tables(&mut self);

    /// Determines the length of every instruction; returns the length of the code in bytes.
    fn relax_branches(&mut self) -> usize;

    /// True if the entries of all tables hold their distances.
    fn tables_reach(&self) -> bool;

    /// The offset of a label in the code.
    fn offset(&self, label: Label) -> u32;

    /// The code map: offsets of pieces in ascending order, each with its slot, or `u32::MAX`
    /// for pieces that belong to none.
    fn code_map(&self) -> Vec<(u32, u32)>;

    /// Writes the code into memory of exactly its length.
    fn write(&self, out: &mut [u8]);

    fn jump(&mut self, label: Label);

    /// Jumps if the flags of the instruction before have the condition.
    fn jump_if(&mut self, cc: Cc, label: Label);

    fn call(&mut self, label: Label);
}

/// The assembler: the instructions that the generator writes itself, whatever is selected.
pub(crate) trait Assembler: Layout {
    type Reg: Register;

    /// A no-operation that a store replaces by a call or jump.
    fn entry_slot(&mut self);

    /// The low `len` bytes of a number.
    fn data(&mut self, value: u64, len: usize);

    fn ret(&mut self);

    /// Saves registers and allocates the stack, with a frame pointer or without.
    fn enter_frame(&mut self, has_frame_pointer: bool, saved: &[Self::Reg], reserved: i32);

    /// Restores what [`Assembler::enter_frame`] saved.
    fn leave_frame(&mut self, has_frame_pointer: bool, saved: &[Self::Reg], reserved: i32);

    /// Saves registers before a call, where the stack pointer is as at the entry of a function.
    fn save(&mut self, kept: &[Self::Reg]);

    /// Restores what [`Assembler::save`] saved.
    fn restore(&mut self, kept: &[Self::Reg]);

    // Arithmetic: the operations of `Alu` set the flags.

    fn mov(&mut self, width: Width, dst: Self::Reg, src: Self::Reg);

    /// `dst = src` if the flags have the condition; the 32-bit form zeroes the upper half in
    /// either case.
    fn mov_if(&mut self, cc: Cc, width: Width, dst: Self::Reg, src: Self::Reg);

    /// Sets the low byte to 1 if the flags have the condition, else to 0.
    fn set_if(&mut self, cc: Cc, dst: Self::Reg);

    /// Sets a register; the flags change.
    fn set(&mut self, dst: Self::Reg, value: u64);

    fn set_keeping_flags(&mut self, dst: Self::Reg, value: u64);

    fn alu(&mut self, op: Alu, width: Width, dst: Self::Reg, src: Self::Reg);

    fn alu_imm(&mut self, op: Alu, width: Width, dst: Self::Reg, imm: i32);

    /// `op dst, mem`
    fn alu_load(&mut self, op: Alu, width: Width, dst: Self::Reg, mem: Mem<Self::Reg>);

    /// `op mem, src`
    fn alu_store(&mut self, op: Alu, size: Size, mem: Mem<Self::Reg>, src: Self::Reg);

    /// `op mem, imm`
    fn alu_store_imm(&mut self, op: Alu, size: Size, mem: Mem<Self::Reg>, imm: i32);

    /// `lock op qword mem, imm`
    fn lock_alu_store_imm(&mut self, op: Alu, mem: Mem<Self::Reg>, imm: i8);

    /// The flags of `a & b`.
    fn test(&mut self, width: Width, a: Self::Reg, b: Self::Reg);

    fn test_imm(&mut self, width: Width, reg: Self::Reg, imm: i32);

    fn shift(&mut self, op: Shift, width: Width, dst: Self::Reg, count: u8);

    fn multiply(&mut self, width: Width, dst: Self::Reg, src: Self::Reg);

    fn multiply_imm(&mut self, width: Width, dst: Self::Reg, src: Self::Reg, imm: i32);

    /// The product of 128 bits of [`LookupRegs::hash`] and a register, in [`LookupRegs::hash`] and
    /// [`LookupRegs::tags`].
    fn multiply_hash(&mut self, by: Self::Reg);

    /// `dst = !inverted & src`; the flags change.
    fn and_not(&mut self, width: Width, dst: Self::Reg, inverted: Self::Reg, src: Self::Reg);

    fn trailing_zeros(&mut self, dst: Self::Reg, src: Self::Reg);

    // Addresses and memory

    /// `dst` = the address of the operand; keeps the flags.
    fn lea(&mut self, width: Width, dst: Self::Reg, mem: Mem<Self::Reg>);

    fn lea_label(&mut self, dst: Self::Reg, label: Label);

    /// A load, zero-extended or sign-extended to a width.
    fn load(&mut self, size: Size, signed: Option<Width>, dst: Self::Reg, mem: Mem<Self::Reg>);

    fn store(&mut self, size: Size, mem: Mem<Self::Reg>, src: Self::Reg);

    fn store_imm(&mut self, size: Size, mem: Mem<Self::Reg>, imm: i32);
}

/// Registers of lookups in hash tables, all of which a call does not keep.
pub(crate) struct LookupRegs<R> {
    /// The map, at the start.
    pub(crate) map: R,
    /// The address of the key, throughout.
    pub(crate) key: R,
    /// The first words of the key.
    pub(crate) words: [R; 2],
    /// The hash, then the address of the bucket, then that of the value: the register of results.
    pub(crate) hash: R,
    /// Upper half of a product, then the differences of the tags.
    pub(crate) tags: R,
    /// Operands, then the address of the element.
    pub(crate) element: R,
    /// The slot, then the number of the element.
    pub(crate) slot: R,
    /// Constants, and words of the key behind the first ones.
    pub(crate) operand: R,
}

/// A position in the code that jumps and references name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(pub(crate) u32);

impl Label {
    /// The label of a slot.
    pub(crate) const fn of_slot(slot: usize) -> Label {
        Label(slot as u32)
    }
}

/// `[base + index * scale + disp]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mem<R> {
    pub(crate) base: R,
    /// A register (not the stack pointer) and the logarithm of its factor, 0 to 3.
    pub(crate) index: Option<(R, u8)>,
    pub(crate) disp: i32,
}

impl<R: Copy + PartialEq> Mem<R> {
    /// `[base + disp]`.
    pub(crate) const fn at(base: R, disp: i32) -> Mem<R> {
        Mem {
            base,
            index: None,
            disp,
        }
    }

    /// `[base + index + disp]`.
    pub(crate) const fn indexed(base: R, index: R, disp: i32) -> Mem<R> {
        Mem {
            base,
            index: Some((index, 0)),
            disp,
        }
    }

    /// True if the address depends on the register.
    pub(crate) fn uses(self, reg: R) -> bool {
        self.base == reg || self.index.is_some_and(|(index, _)| index == reg)
    }
}

/// Operations that set the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Add,
    Or,
    And,
    Sub,
    Xor,
    /// A subtraction whose result is dropped.
    Cmp,
}

/// Shifts and rotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    Rol,
    Ror,
    Shl,
    Shr,
    Sar,
}

/// A condition code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cc {
    Below,
    AboveEqual,
    Equal,
    NotEqual,
    BelowEqual,
    Above,
    Negative,
    NotNegative,
    Less,
    GreaterEqual,
    LessEqual,
    Greater,
}

impl Cc {
    /// The code of a condition after a comparison (for `Set`, after a test).
    pub(crate) const fn of(cond: Cond) -> Cc {
        match cond {
            Cond::Eq => Cc::Equal,
            Cond::Ne | Cond::Set => Cc::NotEqual,
            Cond::Gt => Cc::Above,
            Cond::Ge => Cc::AboveEqual,
            Cond::Lt => Cc::Below,
            Cond::Le => Cc::BelowEqual,
            Cond::SGt => Cc::Greater,
            Cond::SGe => Cc::GreaterEqual,
            Cond::SLt => Cc::Less,
            Cond::SLe => Cc::LessEqual,
        }
    }

    /// The opposite code.
    pub(crate) const fn not(self) -> Cc {
        match self {
            Cc::Below => Cc::AboveEqual,
            Cc::AboveEqual => Cc::Below,
            Cc::Equal => Cc::NotEqual,
            Cc::NotEqual => Cc::Equal,
            Cc::BelowEqual => Cc::Above,
            Cc::Above => Cc::BelowEqual,
            Cc::Negative => Cc::NotNegative,
            Cc::NotNegative => Cc::Negative,
            Cc::Less => Cc::GreaterEqual,
            Cc::GreaterEqual => Cc::Less,
            Cc::LessEqual => Cc::Greater,
            Cc::Greater => Cc::LessEqual,
        }
    }
}
