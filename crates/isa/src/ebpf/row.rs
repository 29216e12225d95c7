//! The rows of the instruction table, and the macro that derives decoding and encoding from
//! them.
//!
//! A row has its instruction once, as a Rust phrase such as `Alu { op: Add, width: W64,
//! dst, src: K(imm) }`. The macro uses the phrase as an expression for decoding and as a
//! pattern for encoding, so both agree; the columns before it bind its names to fields of
//! the slot, or give the value that a field must have.
//!
//! Invariant: no two rows admit the same slot (`tests/ebpf_table.rs`), and no two rows have
//! the same `Insn` (the compiler rejects unreachable patterns). Cost: decoding and encoding
//! are one `match` each.

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

/// Side effect of an instruction; sizes and targets are in the instruction.
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
    /// Reads and writes memory at `dst + off` atomically.
    Atomic,
    /// Reads the packet; a load outside it ends the program.
    Packet,
    /// Branches `off` slots after the next one.
    Branch,
    /// Jumps `off` slots after the next one.
    Goto,
    /// Jumps `imm` slots after the next one.
    GotoLong,
    /// Jumps to an address in a register.
    GotoReg,
    /// Calls, and returns to the next slot.
    Call,
    /// Returns from the function.
    Exit,
}

/// Constraint of a row on one field of the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Any value: an operand.
    Any,
    /// This value only: part of the operation, or reserved (0).
    Is(i32),
    /// Any value, ignored by Linux. Encoding writes 0.
    Ignored,
}

impl Field {
    /// The value of the field: the operand, if it is one.
    pub const fn value_or(self, operand: i32) -> i32 {
        match self {
            Field::Any => operand,
            Field::Is(only) => only,
            Field::Ignored => 0,
        }
    }

    /// True if the field may have this value.
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
    /// Name.
    pub op: Op,
    /// The opcode byte.
    pub code: u8,
    /// Destination register field.
    pub dst: Field,
    /// Source register field, or a selector.
    pub src: Field,
    /// The offset field.
    pub off: Field,
    /// The immediate field.
    pub imm: Field,
    /// The immediate of the second slot, if there is one.
    pub high: Field,
    /// Conformance group.
    pub group: Group,
    /// Side effect.
    pub effect: Effect,
    /// Registers that it reads.
    pub reads: RegRoles,
    /// Registers that it writes.
    pub writes: RegRoles,
    /// Template of its text in the LLVM form (placeholders: `super::template`).
    pub llvm: &'static str,
    /// Template of its text in the form of the verifier's log, after the opcode.
    pub kernel: &'static str,
}

impl Row {
    /// Encodes a slot of this row with these operands; other fields have the values of the
    /// row. Register numbers are 0 to 10.
    pub const fn slot(&self, dst: u8, src: u8, off: i16, imm: i32) -> RawInsn {
        RawInsn {
            code: self.code,
            regs: (self.src.value_or(src as i32) as u8) << 4
                | self.dst.value_or(dst as i32) as u8 & 15,
            off: self.off.value_or(off as i32) as i16,
            imm: self.imm.value_or(imm),
        }
    }

    /// True if it takes two slots.
    pub const fn is_wide(&self) -> bool {
        matches!(self.effect, Effect::Wide)
    }

    /// True if the slot has the opcode of this row.
    pub const fn has_opcode_of(&self, raw: RawInsn) -> bool {
        self.code == raw.code
    }

    /// True if the slot has the fixed fields of this row (`high`: the second slot's
    /// immediate, or 0); register numbers are not checked.
    pub const fn admits(&self, raw: RawInsn, high: i32) -> bool {
        self.has_opcode_of(raw)
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
/// A field column is the value of a fixed field, `_` for an ignored field, or the name of
/// an operand in the instruction phrase. Names for the immediate: `imm` for the 32 bits,
/// `value` for 64 bits over both slots, `cast` for an address-space pair, `(imm high)` for
/// the two slots apart.
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

        /// Decodes a slot to `insn`, if a row admits it; `high` is the second slot's
        /// immediate.
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

        /// The row of an instruction, its first slot and the immediate of its second one (0
        /// if it has none); `None` without a row.
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

/// The constraint of a field column.
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

/// The pattern of a field column for decoding.
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

/// The value of a field column for encoding.
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
