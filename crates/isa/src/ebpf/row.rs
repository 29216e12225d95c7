//! What a row of the table says, and the macro that makes everything derive
//! from it.
//!
//! A row writes its instruction once, as a Rust phrase such as
//! `Alu { op: Add, width: W64, dst, src: K(imm) }`. The macro uses the phrase
//! as an expression to decode and as a pattern to encode, so the two can't
//! disagree; the columns before it say which field of the slot each name comes
//! from, or which value a field must have.
//!
//! Invariant: no two rows admit the same slot (`tests/ebpf_table.rs`), and no
//! two rows stand for the same `Insn` (the compiler refuses a pattern that can't
//! be reached). Cost: decoding and encoding are one `match` each.

use super::insn::RawInsn;
use super::operands::RegRoles;
use super::table::Op;

/// Conformance groups of RFC 9669 section 2.4, and two beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Group {
    Base32,
    Base64,
    Atomic32,
    Atomic64,
    Divmul32,
    Divmul64,
    Packet,
    /// Not in the RFC; Linux 6.18 executes it.
    Linux,
    /// Emitted by compilers or executed by later kernels, refused by 6.18.
    Later,
}

/// What an instruction does besides computing; sizes and targets are in the
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Registers only.
    Compute,
    /// As `Compute`, and the immediate takes a second slot.
    Wide,
    /// Reads memory at `src + off`.
    Load,
    /// Writes memory at `dst + off`.
    Store,
    /// Reads and writes memory at `dst + off` in one step.
    Atomic,
    /// Reads the packet; beyond it the program ends.
    Packet,
    /// Continues with the next slot or `off` slots after it.
    Branch,
    /// Continues `off` slots after the next.
    Goto,
    /// Continues `imm` slots after the next.
    GotoLong,
    /// Continues where a register says.
    GotoReg,
    /// Calls, and returns to the next slot.
    Call,
    /// Leaves the function.
    Exit,
}

/// What a row demands of one field of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Any value: an operand.
    Any,
    /// This value and no other: part of the operation, or reserved (0).
    Is(i32),
    /// Any value, without a meaning: Linux doesn't look. Encoding writes 0.
    Ignored,
}

impl Field {
    /// What stands in the field: the operand, if it is one.
    pub const fn value_or(self, operand: i32) -> i32 {
        match self {
            Field::Any => operand,
            Field::Is(only) => only,
            Field::Ignored => 0,
        }
    }

    /// Whether a field with this value fits.
    pub const fn admits(self, value: i32) -> bool {
        match self {
            Field::Any | Field::Ignored => true,
            Field::Is(only) => only == value,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub op: Op,
    /// The opcode byte.
    pub code: u8,
    /// Destination register, or what must stand in its place.
    pub dst: Field,
    /// Source register, or the selector that must stand in its place.
    pub src: Field,
    /// The offset field.
    pub off: Field,
    /// The immediate field.
    pub imm: Field,
    /// The immediate of the second slot, if there is one.
    pub high: Field,
    /// Where it is defined.
    pub group: Group,
    /// What it does besides computing.
    pub effect: Effect,
    /// Registers it reads.
    pub reads: RegRoles,
    /// Registers it writes.
    pub writes: RegRoles,
    /// Template of its text in the LLVM form (placeholders: `super::template`).
    pub llvm: &'static str,
    /// Template of its text in the kernel's log form, after the opcode.
    pub kernel: &'static str,
}

impl Row {
    /// A slot of this row with these operands, each put where the row has one;
    /// its other fields are as the row demands. Register numbers are 0 to 10.
    pub const fn slot(&self, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
        RawInsn {
            code: self.code,
            regs: (self.src.value_or(src as i32) as u8) << 4
                | self.dst.value_or(dst as i32) as u8 & 15,
            off: self.off.value_or(off as i32) as i16,
            imm: self.imm.value_or(imm),
        }
    }

    /// Whether it takes two slots.
    pub const fn is_wide(&self) -> bool {
        matches!(self.effect, Effect::Wide)
    }

    /// Whether the fixed fields of this row stand in the slot (`high`: the
    /// second slot's immediate, or 0); register numbers are not judged.
    pub const fn admits(&self, raw: RawInsn, high: i32) -> bool {
        self.code == raw.code
            && self.dst.admits(raw.dst() as i32)
            && self.src.admits(raw.src() as i32)
            && self.off.admits(raw.off as i32)
            && self.imm.admits(raw.imm)
            && self.high.admits(high)
    }
}

/// `rows! { name code dst src off imm group effect [reads] -> [writes]
/// Variant { … }, "LLVM text", "kernel text"; … }`.
///
/// A field column is a number that must stand there, `_` if nobody looks, or
/// the name under which the instruction phrase uses it. Names for the
/// immediate: `imm` for the 32 bits, `value` for 64 bits over both slots,
/// `cast` for an address-space pair, `(imm high)` for the two slots apart.
macro_rules! rows {
    ($(
        $name:ident $code:literal $dst:tt $src:tt $off:tt $imm:tt $group:ident $effect:ident
        [$($reads:ident)*] -> [$($writes:ident)*]
        $variant:ident $phrase:tt, $llvm:literal, $kernel:literal;
    )*) => {
        /// The rows by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum Op { $($name,)* }

        /// The table, in the order of [`Op`].
        pub static ROWS: &[Row] = &[$(
            Row {
                op: Op::$name,
                code: $code,
                dst: field!($dst),
                src: field!($src),
                off: field!($off),
                imm: imm_field!($imm),
                high: high_field!($imm),
                group: Group::$group,
                effect: Effect::$effect,
                reads: RegRoles::EMPTY$(.union(role!($reads)))*,
                writes: RegRoles::EMPTY$(.union(role!($writes)))*,
                llvm: $llvm,
                kernel: $kernel,
            },
        )*];

        /// Writes the instruction in a slot to `insn`, if a row admits it; `high`
        /// is the second slot's immediate.
        // Neither inlined nor returned by value: a copy of what the arms have
        // just written field by field costs twice as much as the rest.
        #[inline(never)]
        pub(super) const fn build(raw: RawInsn, high: i32, insn: &mut Insn) -> bool {
            let (Some(dst), Some(src)) = (Reg::new(raw.dst()), Reg::new(raw.src())) else {
                return false;
            };
            match (raw.code, dst, src, raw.off, Immediate::new(raw.imm, high)) {
                $((
                    $code,
                    reg_pattern!($dst),
                    reg_pattern!($src),
                    $off,
                    imm_pattern!($imm),
                ) => *insn = Insn::$variant $phrase,)*
                _ => return false,
            }
            true
        }

        /// The row of an instruction, its first slot and the immediate of its
        /// second one (0 if it has none); `None` for what no row says.
        pub(super) fn take_apart(insn: Insn) -> Option<(Op, RawInsn, i32)> {
            Some(match insn {
                $(Insn::$variant $phrase => {
                    let (imm, high) = imm_value!($imm);
                    let regs = reg_value!($dst) | reg_value!($src) << 4;
                    (Op::$name, RawInsn { code: $code, regs, off: off_value!($off), imm }, high)
                })*
                _ => return None,
            })
        }
    };
}

/// The demand that a field column makes.
#[rustfmt::skip]
macro_rules! field {
    (_) => { Field::Ignored };
    ($fixed:literal) => { Field::Is($fixed) };
    ($name:ident) => { Field::Any };
}

#[rustfmt::skip]
macro_rules! imm_field {
    (($low:tt $high:tt)) => { field!($low) };
    ($imm:tt) => { field!($imm) };
}

#[rustfmt::skip]
macro_rules! high_field {
    (value) => { Field::Any };
    (($low:tt $high:tt)) => { field!($high) };
    ($imm:tt) => { Field::Is(0) };
}

/// A register that a row reads or writes.
#[rustfmt::skip]
macro_rules! role {
    (dst) => { RegRoles::DST };
    (src) => { RegRoles::SRC };
    ($fixed:ident) => { RegRoles::of(Reg::$fixed) };
}

/// The pattern that a field column stands for in decoding.
#[rustfmt::skip]
macro_rules! reg_pattern {
    (0) => { Reg::R0 };
    (1) => { Reg::R1 };
    (2) => { Reg::R2 };
    (3) => { Reg::R3 };
    (4) => { Reg::R4 };
    (5) => { Reg::R5 };
    (6) => { Reg::R6 };
    ($name:ident) => { $name };
}

#[rustfmt::skip]
macro_rules! imm_pattern {
    ($fixed:literal) => { Immediate { imm: $fixed, .. } };
    (($low:tt $high:tt)) => { Immediate { imm: $low, high: $high, .. } };
    ($name:ident) => { Immediate { $name, .. } };
}

/// The value that a field column stands for in encoding.
#[rustfmt::skip]
macro_rules! reg_value {
    ($fixed:literal) => { $fixed };
    ($name:ident) => { $name.number() };
}

#[rustfmt::skip]
macro_rules! off_value {
    (_) => { 0 };
    ($off:tt) => { $off };
}

#[rustfmt::skip]
macro_rules! imm_value {
    ($fixed:literal) => { ($fixed, 0) };
    (($low:tt $high:tt)) => { ($low, $high) };
    ($name:ident) => { $name.halves() };
}
