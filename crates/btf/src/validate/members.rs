//! Check of a member against its structure (`btf_*_check_member`).

use super::blob::RawMember;
use super::reason::Reason;
use super::references::Walk;
use crate::TypeId;
use crate::kind::Kind;
use crate::wire::{IntWord, Record, word};

/// Checks a member of `of` whose type is resolved (`btf_modifier_check_member`,
/// `btf_modifier_check_kflag_member`). The error states the type at fault: the member's, or the one
/// below its modifiers.
#[doc(alias = "btf_modifier_check_member")]
#[doc(alias = "btf_modifier_check_kflag_member")]
pub(super) fn check_member(
    walk: &Walk<'_>,
    of: TypeId,
    member: RawMember,
) -> Result<(), (TypeId, Reason)> {
    let ty = if walk.kind(member.ty).is_modifier() {
        let sized = walk.sized(member.ty);
        sized.ok_or((member.ty, Reason::Member))?.0
    } else {
        member.ty
    };
    let fit = Fit {
        structure: walk.blob.record_or_void(of),
        kind: walk.kind(ty),
        record: walk.blob.record_or_void(ty),
        int: IntWord(word(walk.blob.tail(ty), 0)),
        is_regular_int: walk.blob.is_regular_int(ty),
        size: walk.sized(ty).map_or(0, |(_, size)| size),
        place: member.place,
    };
    fit.check().map_err(|reason| (ty, reason))
}

struct Fit {
    structure: Record,
    kind: Kind,
    record: Record,
    int: IntWord,
    is_regular_int: bool,
    /// Size of an array or pointer in bytes.
    size: u32,
    place: u32,
}

impl Fit {
    /// Checks the member by the kind of its type (`btf_generic_check_kflag_member`).
    #[doc(alias = "btf_generic_check_kflag_member")]
    fn check(&self) -> Result<(), Reason> {
        let has_bitfields = self.structure.flag();
        match self.kind {
            Kind::Int if has_bitfields => self.check_bitfield_of_int(),
            Kind::Int => self.check_int(),
            Kind::Enum | Kind::Enum64 if has_bitfields => self.check_bitfield_of_enum(),
            Kind::Enum | Kind::Enum64 => self.check_bytes(self.record.payload),
            _ if has_bitfields && self.place >> 24 != 0 => Err(Reason::MemberBits),
            Kind::Float => self.check_float(),
            Kind::Struct | Kind::Union => self.check_bytes(self.record.payload),
            _ => self.check_bytes(self.size),
        }
    }

    fn starts_inside_byte(bits: u32) -> bool {
        !bits.is_multiple_of(8)
    }

    /// Checks a member of whole bytes at a byte boundary (`btf_struct_check_member`,
    /// `btf_array_check_member`, `btf_ptr_check_member`, `btf_enum_check_member`).
    #[doc(alias = "btf_struct_check_member")]
    #[doc(alias = "btf_array_check_member")]
    #[doc(alias = "btf_ptr_check_member")]
    #[doc(alias = "btf_enum_check_member")]
    fn check_bytes(&self, size: u32) -> Result<(), Reason> {
        if Fit::starts_inside_byte(self.place) {
            return Err(Reason::MemberByte);
        }
        if self.structure.payload.wrapping_sub(self.place / 8) < size {
            return Err(Reason::MemberTooLarge);
        }
        Ok(())
    }

    /// Checks an integer (`btf_int_check_member`).
    #[doc(alias = "btf_int_check_member")]
    fn check_int(&self) -> Result<(), Reason> {
        let start = self
            .place
            .checked_add(self.int.offset())
            .ok_or(Reason::MemberOffsetOverflow)?;
        self.check_bits(start, self.int.bits())
    }

    /// Checks an integer of a structure with bit fields (`btf_int_check_kflag_member`).
    #[doc(alias = "btf_int_check_kflag_member")]
    fn check_bitfield_of_int(&self) -> Result<(), Reason> {
        if !self.is_regular_int {
            return Err(Reason::MemberBaseType);
        }
        let (bits, start) = (self.place >> 24, self.place & 0x00ff_ffff);
        if bits == 0 && Fit::starts_inside_byte(start) {
            return Err(Reason::MemberStart);
        }
        if bits > self.int.bits() {
            return Err(Reason::MemberBits);
        }
        let bits = if bits == 0 { self.int.bits() } else { bits };
        self.check_bits(start, bits)
    }

    /// Checks a copy of `bits` bits, including the byte in which they start.
    fn check_bits(&self, start: u32, bits: u32) -> Result<(), Reason> {
        let copied = bits + start % 8;
        if copied > 128 {
            return Err(Reason::MemberTooWide);
        }
        let room = self.structure.payload.checked_sub(start / 8);
        if room.is_none_or(|room| room < copied.div_ceil(8)) {
            return Err(Reason::MemberTooLarge);
        }
        Ok(())
    }

    /// Checks an enumeration of a structure with bit fields (`btf_enum_check_kflag_member`).
    #[doc(alias = "btf_enum_check_kflag_member")]
    fn check_bitfield_of_enum(&self) -> Result<(), Reason> {
        let (bits, start) = (self.place >> 24, self.place & 0x00ff_ffff);
        if bits == 0 && Fit::starts_inside_byte(start) {
            return Err(Reason::MemberByte);
        }
        if bits > 32 {
            return Err(Reason::MemberBits);
        }
        let bits = if bits == 0 { 32 } else { bits };
        if self.structure.payload < (start + bits).div_ceil(8) {
            return Err(Reason::MemberTooLarge);
        }
        Ok(())
    }

    /// Checks the alignment, which the kernel limits to 4 or 8 bytes (`btf_float_check_member`).
    #[doc(alias = "btf_float_check_member")]
    fn check_float(&self) -> Result<(), Reason> {
        let size = self.record.payload;
        if !self.place.is_multiple_of(size.min(8) * 8) {
            return Err(Reason::MemberAlignment);
        }
        if u64::from(self.place / 8) + u64::from(size) > self.structure.payload.into() {
            return Err(Reason::MemberTooLarge);
        }
        Ok(())
    }
}
