//! How BTF stands in memory: the header, the record that each type starts with,
//! and what follows it. Everything is little-endian, four bytes to a word
//! (Documentation/bpf/btf.rst of Linux has the format in words).

/// The first two bytes of a blob.
pub(crate) const MAGIC: u16 = 0xeb9f;
/// The only version there is.
pub(crate) const VERSION: u8 = 1;
/// Bytes of the header that every reader knows.
pub(crate) const HEADER_SIZE: usize = 24;
/// Bytes of the record that each type starts with.
pub(crate) const RECORD_SIZE: usize = 12;
/// The largest offset of a string.
pub(crate) const MAX_NAME_OFFSET: u32 = 0x00ff_ffff;
/// The largest number of a type.
pub(crate) const MAX_TYPE: u32 = 0x000f_ffff;

/// Bytes of a member of a struct or union: name, type, offset.
pub(crate) const MEMBER_SIZE: usize = 12;
/// Bytes of a value of an enum: name, value.
pub(crate) const VALUE_SIZE: usize = 8;
/// Bytes of a value of an enum of 64 bits: name, low half, high half.
pub(crate) const VALUE64_SIZE: usize = 12;
/// Bytes of a parameter: name, type.
pub(crate) const PARAM_SIZE: usize = 8;
/// Bytes of a variable in its section: type, offset, size.
pub(crate) const PLACED_SIZE: usize = 12;

/// The little-endian word at `at`; 0 beyond the end.
#[inline(always)]
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(word) => u32::from_le_bytes([word[0], word[1], word[2], word[3]]),
        None => 0,
    }
}

/// The header; fields that a short one leaves out are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: u16,
    pub(crate) version: u8,
    pub(crate) flags: u8,
    /// Bytes of the header itself, which the offsets below count from the end of.
    pub(crate) len: u32,
    pub(crate) type_off: u32,
    pub(crate) type_len: u32,
    pub(crate) str_off: u32,
    pub(crate) str_len: u32,
}

impl Header {
    /// Reads what there is of it.
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

/// What each type starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) name: u32,
    pub(crate) info: u32,
    /// The size in bytes or the type referred to, as the kind says.
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

    /// The number of the kind.
    #[inline(always)]
    pub(crate) fn kind(self) -> u32 {
        self.info >> 24 & 0x7f
    }

    /// How many members, values, parameters or variables follow.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (self.info & 0x00ff_ffff) as usize
    }

    /// The flag whose meaning the kind decides.
    pub(crate) fn flag(self) -> bool {
        self.info >> 31 != 0
    }
}

/// The flag, kind and count of an info word.
pub(crate) fn info(kind: u32, count: u32, flag: bool) -> u32 {
    u32::from(flag) << 31 | kind << 24 | count
}

/// The word that follows an integer: encoding, offset and size in bits.
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
