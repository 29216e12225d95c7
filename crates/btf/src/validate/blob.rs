//! BTF blob under validation: its sections, and the types found so far.

use super::reason::{BlobPlace, Pass, Reason, Refusal};
use crate::kind::Kind;
use crate::wire::{
    HEADER_SIZE, Header, MAGIC, MAX_NAME_OFFSET, MEMBER_SIZE, RECORD_SIZE, Record, VERSION, word,
};
use crate::{Name, TypeId};

/// Maximum size of a blob in bytes (`BTF_MAX_SIZE`).
const MAX_SIZE: usize = 16 << 20;
/// Maximum length of a name in bytes (`KSYM_NAME_LEN`).
const MAX_NAME_LEN: usize = 512;

/// A blob with valid header and sections.
pub(super) struct Blob<'a> {
    /// Type section.
    pub(super) types: &'a [u8],
    /// String section.
    pub(super) strings: &'a [u8],
    /// Start of each type in the type section. The first entry is a placeholder for
    /// `void`.
    pub(super) starts: Vec<u32>,
}

impl<'a> Blob<'a> {
    /// Checks header and sections, in the kernel's order.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Blob<'a>, Refusal> {
        let header = read_header(bytes).map_err(|reason| refusal(Pass::Header, reason))?;
        check_header(&header, bytes.len())
            .and_then(|()| check_sections(&header, bytes.len()))
            .and_then(|()| Blob::cut(&header, bytes))
            .map_err(|reason| refusal(Pass::Sections, reason))
    }

    /// Cuts the blob into its sections, and checks them (`btf_parse_type_sec`,
    /// `btf_parse_str_sec`).
    #[doc(alias = "btf_parse_type_sec")]
    #[doc(alias = "btf_parse_str_sec")]
    fn cut(header: &Header, bytes: &'a [u8]) -> Result<Blob<'a>, Reason> {
        // The sections cover everything after the header.
        let rest = &bytes[header.len as usize..];
        let section = |offset: u32, len: u32| &rest[offset as usize..][..len as usize];
        let strings = section(header.str_off, header.str_len);
        if header.str_off as usize + strings.len() != rest.len() {
            return Err(Reason::StringsNotLast);
        }
        match strings {
            [0] | [0, .., 0] if strings.len() - 1 <= MAX_NAME_OFFSET as usize => {}
            _ => return Err(Reason::Strings),
        }
        if !header.type_off.is_multiple_of(4) {
            return Err(Reason::Misaligned);
        }
        if header.type_len == 0 {
            return Err(Reason::NoTypes);
        }
        Ok(Blob {
            types: section(header.type_off, header.type_len),
            strings,
            starts: vec![u32::MAX],
        })
    }

    /// Record of an existing type; empty for `void`.
    pub(super) fn record(&self, id: TypeId) -> Option<Record> {
        let start = *self.starts.get(id.index())?;
        Some(match start {
            u32::MAX => Record::default(),
            start => Record::read(self.types, start as usize),
        })
    }

    /// Record of a type, or of `void` if it is missing.
    pub(super) fn record_or_void(&self, id: TypeId) -> Record {
        self.record(id).unwrap_or_default()
    }

    /// Bytes after the record of a type.
    pub(super) fn tail(&self, id: TypeId) -> &'a [u8] {
        match self.starts.get(id.index()) {
            None | Some(&u32::MAX) => &[],
            Some(&start) => &self.types[start as usize + RECORD_SIZE..],
        }
    }

    /// Member of a structure or union.
    pub(super) fn member(&self, of: TypeId, index: usize) -> RawMember {
        RawMember::read(self.tail(of), index * MEMBER_SIZE)
    }

    /// True if the offset is inside the string section (`btf_name_offset_valid`).
    #[doc(alias = "btf_name_offset_valid")]
    pub(super) fn has_string(&self, offset: u32) -> bool {
        (offset as usize) < self.strings.len()
    }

    /// String at this offset.
    pub(super) fn string(&self, offset: u32) -> Option<Name<'a>> {
        let rest = self.strings.get(offset as usize..)?;
        let len = rest.iter().position(|&byte| byte == 0)?;
        Some(Name::new(&rest[..len]))
    }

    /// True if the string is a C identifier (`btf_name_valid_identifier`, `__btf_name_char_ok`). As
    /// in Linux, Latin-1 letters are letters; dots occur in names made by compilers.
    #[doc(alias = "btf_name_valid_identifier")]
    #[doc(alias = "__btf_name_char_ok")]
    pub(super) fn is_identifier(&self, offset: u32) -> bool {
        let name = self.string(offset).unwrap_or_default().as_bytes();
        let Some((&first, rest)) = name.split_first() else {
            return false;
        };
        let is_letter = |byte: u8| {
            byte.is_ascii_alphabetic()
                || byte == b'_'
                || byte == b'.'
                || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
        };
        is_letter(first)
            && rest
                .iter()
                .all(|&byte| is_letter(byte) || byte.is_ascii_digit())
            && name.len() <= MAX_NAME_LEN
    }

    /// True if the string is a valid section name: printable characters (`btf_name_valid_section`).
    #[doc(alias = "btf_name_valid_section")]
    pub(super) fn is_section_name(&self, offset: u32) -> bool {
        let name = self.string(offset).unwrap_or_default().as_bytes();
        let is_printable = |byte: &u8| (0x20..0x7f).contains(byte) || *byte >= 0xa0;
        !name.is_empty() && name.len() <= MAX_NAME_LEN && name.iter().all(is_printable)
    }

    /// True for an integer of 8, 16, 32, 64 or 128 bits that fills its bytes
    /// (`btf_type_int_is_regular`, `__btf_type_int_is_regular`).
    #[doc(alias = "btf_type_int_is_regular")]
    #[doc(alias = "__btf_type_int_is_regular")]
    pub(super) fn is_regular_int(&self, id: TypeId) -> bool {
        let data = crate::wire::IntWord(word(self.tail(id), 0));
        self.record_or_void(id).kind_or_void() == Kind::Int
            && data.offset() == 0
            && matches!(data.bits(), 8 | 16 | 32 | 64 | 128)
    }
}

/// Undecoded member.
#[derive(Clone, Copy)]
pub(super) struct RawMember {
    pub(super) name: u32,
    pub(super) ty: TypeId,
    /// Bit offset; with `kind_flag`, the width of a bit field in the upper byte.
    pub(super) place: u32,
}

impl RawMember {
    pub(super) fn read(bytes: &[u8], at: usize) -> RawMember {
        RawMember {
            name: word(bytes, at),
            ty: TypeId(word(bytes, at + 4)),
            place: word(bytes, at + 8),
        }
    }

    /// Offset in bits from the start of a structure.
    pub(super) fn bit_offset(self, of: Record) -> u32 {
        if of.flag() {
            self.place & 0x00ff_ffff
        } else {
            self.place
        }
    }
}

impl Record {
    pub(super) fn kind_or_void(self) -> Kind {
        Kind::from_number(self.kind()).unwrap_or(Kind::Void)
    }
}

fn refusal(pass: Pass, reason: Reason) -> Refusal {
    Refusal {
        pass,
        place: BlobPlace::Blob,
        reason,
    }
}

/// Reads the header (`btf_parse_hdr`).
#[doc(alias = "btf_parse_hdr")]
fn read_header(bytes: &[u8]) -> Result<Header, Reason> {
    if bytes.len() > MAX_SIZE {
        return Err(Reason::TooLarge);
    }
    if bytes.len() < 8 {
        return Err(Reason::NoHeaderLen);
    }
    let stated = word(bytes, 4) as usize;
    let Some(header) = bytes.get(..stated) else {
        return Err(Reason::HeaderCut);
    };
    let unknown = header.get(HEADER_SIZE..).unwrap_or_default();
    if unknown.iter().any(|&byte| byte != 0) {
        return Err(Reason::HeaderUnknown);
    }
    Ok(Header::read(header))
}

/// Checks the fields of the header (`btf_parse_hdr`).
#[doc(alias = "btf_parse_hdr")]
fn check_header(header: &Header, size: usize) -> Result<(), Reason> {
    if header.magic != MAGIC {
        return Err(Reason::Magic);
    }
    if header.version != VERSION {
        return Err(Reason::Version);
    }
    if header.flags != 0 {
        return Err(Reason::Flags);
    }
    if header.len as usize == size {
        return Err(Reason::NoData);
    }
    Ok(())
}

/// Checks that the sections cover everything after the header, without gap or overlap
/// (`btf_check_sec_info`, `btf_sec_info_cmp`).
#[doc(alias = "btf_check_sec_info")]
#[doc(alias = "btf_sec_info_cmp")]
fn check_sections(header: &Header, size: usize) -> Result<(), Reason> {
    let mut sections = [
        (header.type_off, header.type_len),
        (header.str_off, header.str_len),
    ];
    // The kernel sorts by 32-bit differences, which may wrap.
    let [types, strings] = sections;
    let by_offset = types.0.wrapping_sub(strings.0) as i32;
    let by_len = types.1.wrapping_sub(strings.1) as i32;
    if by_offset > 0 || (by_offset == 0 && by_len > 0) {
        sections.swap(0, 1);
    }
    let expected = size as u32 - header.len;
    let mut total = 0;
    for (offset, len) in sections {
        if expected < offset {
            return Err(Reason::SectionOffset);
        }
        if total < offset {
            return Err(Reason::SectionUnknown);
        }
        if total > offset {
            return Err(Reason::SectionOverlap);
        }
        if expected - total < len {
            return Err(Reason::SectionTooLong);
        }
        total += len;
    }
    if total != expected {
        return Err(Reason::SectionUnknown);
    }
    Ok(())
}
