//! Decoding and encoding of slots and bytes.
//!
//! Decoding produces one [`Insn`] per slot and never fails: a slot that no row of the table
//! admits becomes [`Insn::Invalid`] with its bits. Encoding a decoded program yields the
//! same slots, bit for bit. A 64-bit immediate is two slots; if its first one is invalid
//! its second is kept as invalid bits too.

use super::frequent::decode_frequent;
use super::insn::{AddrSpaceCast, Fault, Insn, RawInsn, Value64};
use super::row::{Effect, Field, Row};
use super::table::{Op, ROWS, build, take_apart};
use std::fmt;

/// The forms of the immediate that rows refer to.
#[derive(Clone, Copy)]
pub(super) struct Immediate {
    /// Immediate of the first slot.
    pub(super) imm: i32,
    /// Immediate of the second slot.
    pub(super) high: i32,
    /// Both slots as one number.
    pub(super) value: Value64,
    /// The first slot as a pair of address spaces.
    pub(super) cast: AddrSpaceCast,
}

impl Immediate {
    #[inline(always)]
    pub(super) const fn new(imm: i32, high: i32) -> Immediate {
        Immediate {
            imm,
            high,
            value: Value64::new(imm as u32 as u64 | (high as u32 as u64) << 32),
            cast: AddrSpaceCast::from_imm(imm),
        }
    }
}

/// A form of the immediate, split into two slots.
pub(super) trait Halves {
    fn halves(self) -> (i32, i32);
}

impl Halves for i32 {
    fn halves(self) -> (i32, i32) {
        (self, 0)
    }
}

impl Halves for Value64 {
    fn halves(self) -> (i32, i32) {
        (self.get() as i32, (self.get() >> 32) as i32)
    }
}

impl Halves for AddrSpaceCast {
    fn halves(self) -> (i32, i32) {
        ((u32::from(self.to) << 16 | u32::from(self.from)) as i32, 0)
    }
}

impl AddrSpaceCast {
    /// Decodes the pair from an immediate.
    pub const fn from_imm(imm: i32) -> AddrSpaceCast {
        AddrSpaceCast {
            to: (imm as u32 >> 16) as u16,
            from: imm as u16,
        }
    }

    /// True for the two that there are: between the arena (1) and the kernel's space (0).
    pub const fn is_known(self) -> bool {
        matches!((self.from, self.to), (1, 0) | (0, 1))
    }
}

impl RawInsn {
    /// The destination field.
    pub const fn dst(self) -> u8 {
        self.regs & 15
    }

    /// The source field.
    pub const fn src(self) -> u8 {
        self.regs >> 4
    }

    /// Decodes a slot from eight bytes, little-endian.
    pub const fn from_le_bytes(b: [u8; 8]) -> RawInsn {
        RawInsn {
            code: b[0],
            regs: b[1],
            off: i16::from_le_bytes([b[2], b[3]]),
            imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// Decodes a slot from eight bytes, big-endian: there the destination register is in
    /// the high half of its byte (RFC 9669, section 3).
    pub const fn from_be_bytes(b: [u8; 8]) -> RawInsn {
        RawInsn {
            code: b[0],
            regs: b[1].rotate_left(4),
            off: i16::from_be_bytes([b[2], b[3]]),
            imm: i32::from_be_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// Encodes the slot to eight bytes, little-endian.
    pub const fn to_le_bytes(self) -> [u8; 8] {
        let off = self.off.to_le_bytes();
        let imm = self.imm.to_le_bytes();
        [
            self.code, self.regs, off[0], off[1], imm[0], imm[1], imm[2], imm[3],
        ]
    }

    /// The fault of a slot that no row admits; `None` if a row admits it.
    fn fault(self, high: i32) -> Option<Fault> {
        let missing = |field, number| field == Field::Any && number > 10;
        let mut fault = Fault::UnknownOpcode;
        for row in Row::with_code(self.code) {
            // Linux checks a branch's first register before other fields, and registers of
            // other instructions last.
            let (dst, src) = (missing(row.dst, self.dst()), missing(row.src, self.src()));
            let admits = row.admits(self, high);
            if admits && !dst && !src {
                return None;
            }
            if admits || (dst && row.effect == Effect::Branch) {
                return Some(Fault::RegisterOutOfRange);
            }
            fault = Fault::ReservedField;
        }
        Some(fault)
    }
}

impl Row {
    /// The rows with this opcode.
    pub fn with_code(code: u8) -> impl DoubleEndedIterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| row.code == code)
    }
}

impl Op {
    /// The row of the operation.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

/// An error: bytes that are not a whole number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSlot {
    /// Length in bytes.
    pub len: usize,
}

impl fmt::Display for PartialSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes are not a whole number of eight-byte instructions",
            self.len
        )
    }
}

impl std::error::Error for PartialSlot {}

/// Splits a program's bytes into slots.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<RawInsn>, PartialSlot> {
    let slots = chunks(bytes)?.iter();
    Ok(slots.map(|b| RawInsn::from_le_bytes(*b)).collect())
}

/// Encodes slots to bytes.
pub fn to_bytes(slots: &[RawInsn]) -> Vec<u8> {
    slots.iter().flat_map(|slot| slot.to_le_bytes()).collect()
}

/// Decodes slots, one instruction for each slot.
pub fn decode(slots: &[RawInsn]) -> Vec<Insn> {
    decode_slots(slots, |slot| slot)
}

/// Decodes a program's bytes; equivalent to [`decode`] of [`from_bytes`].
pub fn decode_bytes(bytes: &[u8]) -> Result<Vec<Insn>, PartialSlot> {
    Ok(decode_slots(chunks(bytes)?, RawInsn::from_le_bytes))
}

/// The bytes of each slot.
fn chunks(bytes: &[u8]) -> Result<&[[u8; 8]], PartialSlot> {
    match bytes.as_chunks() {
        (slots, []) => Ok(slots),
        _ => Err(PartialSlot { len: bytes.len() }),
    }
}

#[inline(always)]
fn decode_slots<T: Copy>(slots: &[T], raw: impl Fn(T) -> RawInsn) -> Vec<Insn> {
    let mut insns = vec![Insn::Imm64High; slots.len()];
    for (index, (&slot, insn)) in slots.iter().zip(&mut insns).enumerate() {
        if !decode_frequent(raw(slot), insn) {
            decode_infrequent(slots, index, &raw, insn);
        }
    }
    insns
}

/// Decodes the slot at an index.
#[cold]
#[inline(never)]
fn decode_infrequent<T: Copy>(
    slots: &[T],
    index: usize,
    raw: &impl Fn(T) -> RawInsn,
    insn: &mut Insn,
) {
    let at = |index: usize| slots.get(index).map(|&slot| raw(slot));
    let (before, next) = (index.checked_sub(1).and_then(at), at(index + 1));
    let raw = raw(slots[index]);
    match before {
        Some(first) if first.is_wide_load() && raw.is_second_slot() => {
            // A valid second slot after an invalid first one is no instruction of its own.
            *insn = match Insn::decode_one(first, Some(raw)) {
                Insn::Invalid { .. } => {
                    let fault = Fault::BrokenImm64;
                    Insn::Invalid { raw, fault }
                }
                _ => Insn::Imm64High,
            };
        }
        _ => insn.decode_from(raw, next),
    }
}

/// Encodes instructions, one slot for each; the error has the index of the first one
/// without encoding.
pub fn encode(insns: &[Insn]) -> Result<Vec<RawInsn>, NoEncoding> {
    let mut pending = 0;
    insns
        .iter()
        .enumerate()
        .map(|(index, insn)| {
            let high = std::mem::take(&mut pending);
            match *insn {
                Insn::Imm64High => Ok(RawInsn {
                    imm: high,
                    ..RawInsn::default()
                }),
                other => {
                    let (first, second) = other.encode().ok_or(NoEncoding { index })?;
                    pending = second.unwrap_or(0);
                    Ok(first)
                }
            }
        })
        .collect()
}

/// An error: an instruction value without an encoding, such as a byte swap of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEncoding {
    /// Index of the instruction.
    pub index: usize,
}

impl fmt::Display for NoEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} has no encoding", self.index)
    }
}

impl std::error::Error for NoEncoding {}

/// The invalid instruction of a slot that no row admits.
#[cold]
fn invalid(raw: RawInsn, high: i32) -> Insn {
    let fault = raw.fault(high).unwrap_or(Fault::ReservedField);
    Insn::Invalid { raw, fault }
}

impl Insn {
    /// Decodes a slot; `next` is the slot after it, the second one of a 64-bit immediate.
    pub fn decode_one(raw: RawInsn, next: Option<RawInsn>) -> Insn {
        let mut insn = Insn::Imm64High;
        insn.decode_from(raw, next);
        insn
    }

    #[inline(always)]
    fn decode_from(&mut self, raw: RawInsn, next: Option<RawInsn>) {
        let high = match raw.is_wide_load() {
            true => next
                .filter(RawInsn::is_second_slot)
                .map(|second| second.imm),
            false => Some(0),
        };
        let Some(high) = high else {
            let fault = Fault::BrokenImm64;
            *self = Insn::Invalid { raw, fault };
            return;
        };
        if !build(raw, high, self) {
            *self = invalid(raw, high);
        }
    }

    /// Encodes the instruction: its slot, and the immediate of the second slot if it has
    /// two. `None` for [`Insn::Imm64High`], which is encoded with the first slot, and for
    /// values without an encoding.
    pub fn encode(self) -> Option<(RawInsn, Option<i32>)> {
        match self {
            Insn::Invalid { raw, .. } => Some((raw, None)),
            _ => {
                let (_, raw, high) = take_apart(self)?;
                Some((raw, raw.is_wide_load().then_some(high)))
            }
        }
    }

    /// The row of the instruction; `None` if no row has it.
    pub fn row(self) -> Option<&'static Row> {
        self.row_and_slots().map(|(row, ..)| row)
    }

    /// The row of the instruction, its slot and the immediate of the second slot.
    pub(super) fn row_and_slots(self) -> Option<(&'static Row, RawInsn, i32)> {
        take_apart(self).map(|(op, raw, high)| (op.row(), raw, high))
    }
}
