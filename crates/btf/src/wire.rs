//! Binary format of BTF: header, type record and the data after it. Little-endian words
//! of four bytes (Documentation/bpf/btf.rst of Linux).

/// Magic number, the first two bytes of a blob.
pub(crate) const MAGIC: u16 = 0xeb9f;
/// The only version.
pub(crate) const VERSION: u8 = 1;
/// Size of the header in bytes.
pub(crate) const HEADER_SIZE: usize = 24;
/// Size of a type record in bytes.
pub(crate) const RECORD_SIZE: usize = 12;
/// Maximum string offset in Linux.
pub(crate) const MAX_NAME_OFFSET: u32 = 0x00ff_ffff;
/// Maximum string offset of loaders and linkers, whose files have more than Linux is given.
pub(crate) const MAX_STRING_OFFSET: u32 = 0x7fff_ffff;
/// Maximum type id.
pub(crate) const MAX_TYPE: u32 = 0x000f_ffff;

/// Size of a member of a structure or union: name, type, offset.
pub(crate) const MEMBER_SIZE: usize = 12;
/// Size of an enumerator: name, value.
pub(crate) const VALUE_SIZE: usize = 8;
/// Size of an enumerator of 64 bits: name, low half, high half.
pub(crate) const VALUE64_SIZE: usize = 12;
/// Size of a parameter: name, type.
pub(crate) const PARAM_SIZE: usize = 8;
/// Size of a variable of a data section: type, offset, size.
pub(crate) const PLACED_SIZE: usize = 12;

/// The little-endian word at `at`; 0 beyond the end.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(word) => u32::from_le_bytes([word[0], word[1], word[2], word[3]]),
        None => 0,
    }
}

/// Header; fields beyond the end of a short one are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: u16,
    pub(crate) version: u8,
    pub(crate) flags: u8,
    /// Size of the header in bytes; the offsets below are relative to its end.
    pub(crate) len: u32,
    pub(crate) type_off: u32,
    pub(crate) type_len: u32,
    pub(crate) str_off: u32,
    pub(crate) str_len: u32,
}

impl Header {
    /// Reads the fields that are present.
    pub(crate) fn read(bytes: &[u8]) -> Header {
        let mut copy = [0; HEADER_SIZE];
        let len = bytes.len().min(HEADER_SIZE);
        copy[..len].copy_from_slice(&bytes[..len]);
        Header {
            magic: u16::from_le_bytes([copy[0], copy[1]]),
            version: copy[2],
            flags: copy[3],
            len: word(&copy, 4),
            type_off: word(&copy, 8),
            type_len: word(&copy, 12),
            str_off: word(&copy, 16),
            str_len: word(&copy, 20),
        }
    }
}

/// Type record (`struct btf_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: u32,
    pub(crate) info: u32,
    /// Size in bytes or type id, depending on the kind.
    pub(crate) payload: u32,
}

impl Record {
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8], at: usize) -> Record {
        match bytes.get(at..at + RECORD_SIZE) {
            Some(record) => Record {
                name: word(record, 0),
                info: word(record, 4),
                payload: word(record, 8),
            },
            None => Record::default(),
        }
    }

    /// Number of the kind.
    #[inline(always)]
    pub(crate) fn kind(self) -> u32 {
        self.info >> 24 & 0x7f
    }

    /// Number of members, enumerators, parameters or variables (vlen).
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (self.info & 0x00ff_ffff) as usize
    }

    /// `kind_flag`, whose meaning depends on the kind.
    pub(crate) fn flag(self) -> bool {
        self.info >> 31 != 0
    }
}

/// Info word of a kind, count and flag.
pub(crate) fn info(kind: u32, count: u32, flag: bool) -> u32 {
    u32::from(flag) << 31 | kind << 24 | count
}

/// Word after an integer: encoding, offset and size in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IntWord(pub(crate) u32);

impl IntWord {
    pub(crate) fn encoding(self) -> u32 {
        self.0 >> 24 & 0x0f
    }

    pub(crate) fn offset(self) -> u32 {
        self.0 >> 16 & 0xff
    }

    pub(crate) fn bits(self) -> u32 {
        self.0 & 0xff
    }
}
