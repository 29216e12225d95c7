//! Slots to instructions and back, and slots to bytes and back.
//!
//! Decoding keeps one [`Insn`] per slot and never fails: what no row of the
//! table admits becomes [`Insn::Invalid`] with its bits. Encoding what was
//! decoded gives the same slots, bit for bit. A 64-bit immediate is two slots;
//! if its first one is invalid its second is kept as invalid bits too.

use super::frequent::build_frequent;
use super::insn::{AddrSpaceCast, Fault, Insn, RawInsn, Size, Value64};
use super::row::{Effect, Field, Row};
use super::table::{Op, ROWS, build, take_apart};
use std::fmt;

/// Opcode of the first slot of a 64-bit immediate.
const WIDE: u8 = 0x18;

/// The views of the immediate that rows name.
#[derive(Clone, Copy)]
pub(super) struct Immediate {
    /// The 32 bits of the first slot.
    pub(super) imm: i32,
    /// Those of the second slot.
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

/// A view of the immediate, as the two slots hold it.
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
    /// The pair that an immediate holds.
    pub const fn from_imm(imm: i32) -> AddrSpaceCast {
        AddrSpaceCast {
            to: (imm as u32 >> 16) as u16,
            from: imm as u16,
        }
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

    /// The slot in these eight bytes, little-endian.
    pub const fn from_le_bytes(b: [u8; 8]) -> RawInsn {
        RawInsn {
            code: b[0],
            regs: b[1],
            off: i16::from_le_bytes([b[2], b[3]]),
            imm: i32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }

    /// Its eight bytes, little-endian.
    pub const fn to_le_bytes(self) -> [u8; 8] {
        let off = self.off.to_le_bytes();
        let imm = self.imm.to_le_bytes();
        [
            self.code, self.regs, off[0], off[1], imm[0], imm[1], imm[2], imm[3],
        ]
    }

    /// Why no row admits this slot, or `None` if one does.
    fn fault(self, high: i32) -> Option<Fault> {
        let missing = |field, number| field == Field::Any && number > 10;
        let mut fault = Fault::UnknownOpcode;
        for row in Row::with_code(self.code) {
            // Linux asks for a branch's first register before it looks at any
            // field, and elsewhere for registers last.
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
    /// Its row.
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

impl Size {
    /// The size that the opcode of a load or store says.
    pub const fn from_code(code: u8) -> Size {
        match code & 0x18 {
            0x00 => Size::W,
            0x08 => Size::H,
            0x10 => Size::B,
            _ => Size::DW,
        }
    }
}

/// Bytes that are no whole number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSlot {
    /// How many bytes there were.
    pub len: usize,
}

impl fmt::Display for PartialSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes are no whole number of eight-byte instructions",
            self.len
        )
    }
}

impl std::error::Error for PartialSlot {}

/// The slots in a program's bytes.
pub fn from_bytes(bytes: &[u8]) -> Result<Vec<RawInsn>, PartialSlot> {
    let slots = chunks(bytes)?.iter();
    Ok(slots.map(|b| RawInsn::from_le_bytes(*b)).collect())
}

/// A program's bytes.
pub fn to_bytes(slots: &[RawInsn]) -> Vec<u8> {
    slots.iter().flat_map(|slot| slot.to_le_bytes()).collect()
}

/// The instructions in these slots, one for each slot.
pub fn decode(slots: &[RawInsn]) -> Vec<Insn> {
    decode_slots(slots, |slot| slot)
}

/// The instructions in a program's bytes, as [`decode`] of [`from_bytes`] without the
/// intermediate buffer.
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
        if !build_frequent(raw(slot), insn) {
            decode_rare(slots, index, &raw, insn);
        }
    }
    insns
}

/// Decodes the slot at an index.
#[cold]
#[inline(never)]
fn decode_rare<T: Copy>(slots: &[T], index: usize, raw: &impl Fn(T) -> RawInsn, insn: &mut Insn) {
    let at = |index: usize| slots.get(index).map(|&slot| raw(slot));
    let (before, next) = (index.checked_sub(1).and_then(at), at(index + 1));
    let raw = raw(slots[index]);
    match before {
        Some(first) if first.code == WIDE && is_second_slot(&raw) => {
            // After a first slot with a bad field, a second one that is in order is
            // still no instruction of its own.
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

/// The slots of these instructions, one for each, or the index of the first
/// that has no encoding.
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

/// An instruction value that no slot can hold, such as a byte swap of one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEncoding {
    /// Its index.
    pub index: usize,
}

impl fmt::Display for NoEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} has no encoding", self.index)
    }
}

impl std::error::Error for NoEncoding {}

/// Whether the slot may follow the first one of a 64-bit immediate.
fn is_second_slot(raw: &RawInsn) -> bool {
    raw.code == 0 && raw.regs == 0 && raw.off == 0
}

/// What a slot holds that no row admits.
#[cold]
fn invalid(raw: RawInsn, high: i32) -> Insn {
    let fault = raw.fault(high).unwrap_or(Fault::ReservedField);
    Insn::Invalid { raw, fault }
}

impl Insn {
    /// The instruction in a slot; `next` is the slot after it, which belongs to
    /// it if it is a 64-bit immediate.
    pub fn decode_one(raw: RawInsn, next: Option<RawInsn>) -> Insn {
        let mut insn = Insn::Imm64High;
        insn.decode_from(raw, next);
        insn
    }

    #[inline(always)]
    fn decode_from(&mut self, raw: RawInsn, next: Option<RawInsn>) {
        let high = match raw.code {
            WIDE => next.filter(is_second_slot).map(|second| second.imm),
            _ => Some(0),
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

    /// Its slot, and the immediate of the second one if it takes two. `None`
    /// for the second slot of a 64-bit immediate, which is nothing without the
    /// first, and for a value that no slot can hold.
    pub fn encode(self) -> Option<(RawInsn, Option<i32>)> {
        match self {
            Insn::Invalid { raw, .. } => Some((raw, None)),
            _ => {
                let (_, raw, high) = take_apart(self)?;
                Some((raw, (raw.code == WIDE).then_some(high)))
            }
        }
    }

    /// Its row; `None` for what is no instruction of the table.
    pub fn row(self) -> Option<&'static Row> {
        self.anatomy().map(|(row, ..)| row)
    }

    /// Its row, its slot and the immediate of the second slot.
    pub(super) fn anatomy(self) -> Option<(&'static Row, RawInsn, i32)> {
        take_apart(self).map(|(op, raw, high)| (op.row(), raw, high))
    }
}
