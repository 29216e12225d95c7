//! First pass of the kernel over the types (`btf_check_all_metas`): each record by
//! itself, in order. Finds the start of each type.

use super::blob::{Blob, RawMember};
use super::reason::{BlobPlace, Pass, Reason, Refusal};
use crate::TypeId;
use crate::kind::Kind;
use crate::wire::{
    IntWord, MAX_TYPE, MEMBER_SIZE, PLACED_SIZE, RECORD_SIZE, Record, VALUE_SIZE, VALUE64_SIZE,
    word,
};

/// Defined bits of the info word.
const INFO_MASK: u32 = 0x9f00_ffff;
/// Defined bits of the word of an integer.
const INT_MASK: u32 = 0x0fff_ffff;

/// Record under validation.
#[derive(Clone, Copy)]
struct Entry<'b> {
    blob: &'b Blob<'b>,
    id: TypeId,
    record: Record,
    kind: Kind,
    tail: &'b [u8],
}

/// Checks all records and sets the starts of the types (`btf_check_all_metas`).
#[doc(alias = "btf_check_all_metas")]
pub(super) fn check_records(blob: &mut Blob<'_>) -> Result<(), Refusal> {
    let mut at = 0;
    let mut id = TypeId(1);
    while at < blob.types.len() {
        let size = check_record(blob, id, at).map_err(|(place, reason)| Refusal {
            pass: Pass::Records,
            place,
            reason,
        })?;
        // Types beyond the maximum number are checked and not entered.
        if blob.starts.len() < MAX_TYPE as usize {
            blob.starts.push(at as u32);
        }
        at += size;
        id.0 += 1;
    }
    Ok(())
}

type Fault = (BlobPlace, Reason);

/// Checks one record; returns its size in bytes, with the data after it (`btf_check_meta`).
#[doc(alias = "btf_check_meta")]
fn check_record(blob: &Blob<'_>, id: TypeId, at: usize) -> Result<usize, Fault> {
    let here = |reason| (BlobPlace::Type(id), reason);
    let left = blob.types.len() - at;
    if left < RECORD_SIZE {
        return Err(here(Reason::RecordCut {
            left,
            needed: RECORD_SIZE,
        }));
    }
    let record = Record::read(blob.types, at);
    if record.info & !INFO_MASK != 0 {
        return Err(here(Reason::InfoBits { info: record.info }));
    }
    let kind = record.kind();
    let kind = Kind::from_number(kind).ok_or(here(Reason::UnknownKind { kind }))?;
    if !blob.has_string(record.name) {
        let offset = record.name;
        return Err(here(Reason::NameOffset { offset }));
    }
    let (fixed, each) = kind.tail();
    let needed = fixed + each * record.count();
    let rest = &blob.types[at + RECORD_SIZE..];
    let Some(tail) = rest.get(..needed) else {
        let left = rest.len();
        return Err(here(Reason::TailCut { left, needed }));
    };
    Entry {
        blob,
        id,
        record,
        kind,
        tail,
    }
    .check()?;
    Ok(RECORD_SIZE + needed)
}

impl Entry<'_> {
    fn check(self) -> Result<(), Fault> {
        match self.kind {
            Kind::Void => Ok(()),
            Kind::Int => self.check_int(),
            Kind::Ptr
            | Kind::Typedef
            | Kind::Volatile
            | Kind::Const
            | Kind::Restrict
            | Kind::TypeTag => self.check_reference(),
            Kind::Array => self.check_array(),
            Kind::Struct | Kind::Union => self.check_composite(),
            Kind::Enum => self.check_enum(VALUE_SIZE),
            Kind::Enum64 => self.check_enum(VALUE64_SIZE),
            Kind::Fwd => self.check_forward(),
            Kind::Func => self.check_function(),
            Kind::FuncProto => self.check_prototype(),
            Kind::Var => self.check_variable(),
            Kind::Datasec => self.check_section(),
            Kind::Float => self.check_float(),
            Kind::DeclTag => self.check_declaration_tag(),
        }
    }

    /// Returns `reason` unless the rule holds.
    fn expect(self, holds: bool, reason: Reason) -> Result<(), Fault> {
        if holds {
            Ok(())
        } else {
            Err((BlobPlace::Type(self.id), reason))
        }
    }

    fn expect_no_count(self) -> Result<(), Fault> {
        self.expect(self.record.count() == 0, Reason::Count)
    }

    fn expect_no_flag(self) -> Result<(), Fault> {
        self.expect(!self.record.flag(), Reason::Flag)
    }

    fn expect_no_name(self) -> Result<(), Fault> {
        self.expect(self.record.name == 0, Reason::Name)
    }

    fn expect_identifier(self) -> Result<(), Fault> {
        let name = self.record.name;
        self.expect(name != 0 && self.blob.is_identifier(name), Reason::Name)
    }

    fn expect_identifier_or_none(self) -> Result<(), Fault> {
        let name = self.record.name;
        self.expect(name == 0 || self.blob.is_identifier(name), Reason::Name)
    }

    /// Linux's `btf_int_check_meta`.
    #[doc(alias = "btf_int_check_meta")]
    fn check_int(self) -> Result<(), Fault> {
        self.expect_no_count()?;
        self.expect_no_flag()?;
        let data = IntWord(word(self.tail, 0));
        self.expect(data.0 & !INT_MASK == 0, Reason::IntWord { data: data.0 })?;
        let bits = data.bits() + data.offset();
        self.expect(bits <= 128, Reason::IntTooWide)?;
        self.expect(bits.div_ceil(8) <= self.record.payload, Reason::IntTooLarge)?;
        self.expect(matches!(data.encoding(), 0 | 1 | 2 | 4), Reason::Encoding)
    }

    /// Linux's `btf_ref_type_check_meta`.
    #[doc(alias = "btf_ref_type_check_meta")]
    fn check_reference(self) -> Result<(), Fault> {
        self.expect_no_count()?;
        let is_tag = self.kind == Kind::TypeTag;
        self.expect(!self.record.flag() || is_tag, Reason::Flag)?;
        self.expect(self.record.payload <= MAX_TYPE, Reason::TypeId)?;
        match self.kind {
            Kind::Typedef => self.expect_identifier(),
            Kind::TypeTag => self.expect(self.has_text(), Reason::Name),
            _ => self.expect_no_name(),
        }
    }

    /// Linux's `btf_array_check_meta`.
    #[doc(alias = "btf_array_check_meta")]
    fn check_array(self) -> Result<(), Fault> {
        self.expect_no_name()?;
        self.expect_no_count()?;
        self.expect_no_flag()?;
        self.expect(self.record.payload == 0, Reason::SizeNotZero)?;
        let may_be = |id: u32| id != 0 && id <= MAX_TYPE;
        self.expect(may_be(word(self.tail, 0)), Reason::Element)?;
        self.expect(may_be(word(self.tail, 4)), Reason::Index)
    }

    /// Linux's `btf_struct_check_meta`.
    #[doc(alias = "btf_struct_check_meta")]
    fn check_composite(self) -> Result<(), Fault> {
        self.expect_identifier_or_none()?;
        let mut last = 0;
        for (index, raw) in self.tail.chunks_exact(MEMBER_SIZE).enumerate() {
            let member = RawMember::read(raw, 0);
            let place = BlobPlace::Member {
                of: self.id,
                index,
                ty: member.ty,
            };
            let offset = member.bit_offset(self.record);
            self.check_member(member, offset, last)
                .map_err(|reason| (place, reason))?;
            last = offset;
        }
        Ok(())
    }

    fn check_member(self, member: RawMember, offset: u32, last: u32) -> Result<(), Reason> {
        if !self.blob.has_string(member.name) {
            let offset = member.name;
            return Err(Reason::MemberNameOffset { offset });
        }
        if member.name != 0 && !self.blob.is_identifier(member.name) {
            return Err(Reason::Name);
        }
        if member.ty.is_void() || member.ty.0 > MAX_TYPE {
            return Err(Reason::TypeId);
        }
        // The last member may be an array without elements, so two members may have the
        // same offset.
        if (self.kind == Kind::Union && offset != 0) || last > offset {
            return Err(Reason::MemberOffset);
        }
        if offset.div_ceil(8) > self.record.payload {
            return Err(Reason::MemberBeyond);
        }
        Ok(())
    }

    /// Linux's `btf_enum_check_meta` and `btf_enum64_check_meta`.
    #[doc(alias = "btf_enum_check_meta")]
    #[doc(alias = "btf_enum64_check_meta")]
    fn check_enum(self, each: usize) -> Result<(), Fault> {
        let size = self.record.payload;
        self.expect(matches!(size, 1 | 2 | 4 | 8), Reason::EnumSize)?;
        self.expect_identifier_or_none()?;
        for (index, raw) in self.tail.chunks_exact(each).enumerate() {
            let place = BlobPlace::Value { of: self.id, index };
            let offset = word(raw, 0);
            if !self.blob.has_string(offset) {
                return Err((place, Reason::NameOffset { offset }));
            }
            if offset == 0 || !self.blob.is_identifier(offset) {
                return Err((place, Reason::Name));
            }
        }
        Ok(())
    }

    /// Linux's `btf_fwd_check_meta`.
    #[doc(alias = "btf_fwd_check_meta")]
    fn check_forward(self) -> Result<(), Fault> {
        self.expect_no_count()?;
        self.expect(self.record.payload == 0, Reason::TypeNotZero)?;
        self.expect_identifier()
    }

    /// Linux's `btf_func_check_meta`.
    #[doc(alias = "btf_func_check_meta")]
    fn check_function(self) -> Result<(), Fault> {
        self.expect_identifier()?;
        self.expect(self.record.count() <= 1, Reason::FuncLinkage)?;
        self.expect_no_flag()
    }

    /// Linux's `btf_func_proto_check_meta`.
    #[doc(alias = "btf_func_proto_check_meta")]
    fn check_prototype(self) -> Result<(), Fault> {
        self.expect_no_name()?;
        self.expect_no_flag()
    }

    /// Linux's `btf_var_check_meta`.
    #[doc(alias = "btf_var_check_meta")]
    fn check_variable(self) -> Result<(), Fault> {
        self.expect_no_count()?;
        self.expect_no_flag()?;
        self.expect_identifier()?;
        let ty = self.record.payload;
        self.expect(ty != 0 && ty <= MAX_TYPE, Reason::TypeId)?;
        self.expect(word(self.tail, 0) <= 1, Reason::VarLinkage)
    }

    /// Checks a DATASEC (`btf_datasec_check_meta`). Ends of variables may wrap; then only the sum
    /// of sizes is checked.
    #[doc(alias = "btf_datasec_check_meta")]
    fn check_section(self) -> Result<(), Fault> {
        let size = self.record.payload;
        self.expect(size != 0, Reason::SectionEmpty)?;
        self.expect_no_flag()?;
        let name = self.record.name;
        self.expect(name != 0 && self.blob.is_section_name(name), Reason::Name)?;
        let mut last_end = 0;
        let mut sum = 0;
        for (index, raw) in self.tail.chunks_exact(PLACED_SIZE).enumerate() {
            let [ty, start, len] = [word(raw, 0), word(raw, 4), word(raw, 8)];
            let end = start.wrapping_add(len);
            let reason = if ty == 0 || ty > MAX_TYPE {
                Reason::TypeId
            } else if start < last_end || start >= size {
                Reason::PlacedOffset
            } else if len == 0 || len > size {
                Reason::PlacedSize
            } else if end > size {
                Reason::PlacedEnd
            } else {
                last_end = end;
                sum += u64::from(len);
                continue;
            };
            return Err((BlobPlace::VarSecinfo { of: self.id, index }, reason));
        }
        if u64::from(size) < sum {
            let index = self.record.count();
            return Err((
                BlobPlace::VarSecinfo { of: self.id, index },
                Reason::SectionTooFull,
            ));
        }
        Ok(())
    }

    /// Linux's `btf_float_check_meta`.
    #[doc(alias = "btf_float_check_meta")]
    fn check_float(self) -> Result<(), Fault> {
        self.expect_no_count()?;
        self.expect_no_flag()?;
        let size = self.record.payload;
        self.expect(matches!(size, 2 | 4 | 8 | 12 | 16), Reason::FloatSize)
    }

    /// Linux's `btf_decl_tag_check_meta`.
    #[doc(alias = "btf_decl_tag_check_meta")]
    fn check_declaration_tag(self) -> Result<(), Fault> {
        self.expect(self.has_text(), Reason::TagValue)?;
        self.expect_no_count()?;
        let component = word(self.tail, 0) as i32;
        self.expect(component >= -1, Reason::Component)
    }

    fn has_text(self) -> bool {
        self.blob
            .string(self.record.name)
            .is_some_and(|text| !text.is_empty())
    }
}
