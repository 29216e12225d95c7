//! Refusals of blobs: pass, place, reason and error number.
//! [`kernel_log`](super::kernel_log) makes the kernel's messages of them.

use std::fmt;

use crate::fields::FieldFault;
use crate::{TypeId, errno};

/// Refusal of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// Pass that found the fault.
    pub pass: Pass,
    /// Place.
    pub place: BlobPlace,
    /// Violated rule.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            BlobPlace::Blob => {}
            BlobPlace::Type(id) => write!(f, "type {id}: ")?,
            BlobPlace::Member { of, index, .. } => write!(f, "type {of}, member {index}: ")?,
            BlobPlace::VarSecinfo { of, index } => write!(f, "type {of}, variable {index}: ")?,
            BlobPlace::Value { of, index } => write!(f, "type {of}, enumerator {index}: ")?,
        }
        self.reason.fmt(f)
    }
}

impl std::error::Error for Refusal {}

/// The kernel's message, or our own where it has none.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Field(fault) => fault.fmt(f),
            Reason::TooLarge => f.write_str("BTF exceeds 16 MiB"),
            reason => f.write_str(&reason.message()),
        }
    }
}

impl std::error::Error for Reason {}

impl Refusal {
    /// The error number of bpf(2).
    pub fn errno(&self) -> i32 {
        self.reason.errno()
    }
}

/// Passes of the kernel, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// Header, before its fields are decoded.
    Header,
    /// Sections and strings.
    Sections,
    /// Each type by itself (`btf_check_all_metas`).
    Records,
    /// References between types (`btf_check_all_types`).
    References,
    /// Order of type tags and modifiers (`btf_check_type_tags`).
    Tags,
    /// Structures with special fields (`btf_parse_struct_metas`).
    Fields,
}

/// Place of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlobPlace {
    /// Blob as a whole.
    Blob,
    /// Type.
    Type(TypeId),
    /// Member of a structure or union.
    Member {
        /// Structure or union.
        of: TypeId,
        /// Index of the member.
        index: usize,
        /// Type of the member, or the one below its modifiers if that is at fault.
        ty: TypeId,
    },
    /// Variable of a DATASEC.
    VarSecinfo {
        /// DATASEC.
        of: TypeId,
        /// Index of the variable.
        index: usize,
    },
    /// Enumerator.
    Value {
        /// Enumeration.
        of: TypeId,
        /// Index of the enumerator.
        index: usize,
    },
}

/// Part of a type that the kernel logs before the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Type id only.
    Numbered,
    /// Type id, kind and name.
    Basic,
    /// Whole type.
    Full,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $ty:ty),* })? => $form:ident, $errno:ident, $text:literal;)*) => {
        /// Violated rule, with the kernel's message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name $({ $(#[allow(missing_docs)] $field: $ty),* })?,)*
            /// A special field is invalid; there is no message.
            Field(FieldFault),
        }

        impl Reason {
            /// Error number.
            pub fn errno(self) -> i32 {
                match self {
                    $(Reason::$name $({ $($field: _),* })? => errno::$errno,)*
                    Reason::Field(fault) => fault.errno(),
                }
            }

            /// Message of the kernel, without the text before it.
            pub fn message(self) -> String {
                match self {
                    $(Reason::$name $({ $($field),* })? => format!($text),)*
                    Reason::Field(_) => String::new(),
                }
            }

            pub(super) fn form(self) -> Form {
                match self {
                    $(Reason::$name $({ $($field: _),* })? => Form::$form,)*
                    Reason::Field(_) => Form::Numbered,
                }
            }
        }
    };
}

// Name and fields, logged part of the type, error number, message.
reasons! {
    /// The blob exceeds 16 MiB; there is no message.
    TooLarge => Numbered, E2BIG, "";
    /// The blob is too short for the length of its header.
    NoHeaderLen => Numbered, EINVAL, "hdr_len not found";
    /// The blob is shorter than its header.
    HeaderCut => Numbered, EINVAL, "btf_header not found";
    /// The header is longer than the known one, and the rest is not zero.
    HeaderUnknown => Numbered, E2BIG, "Unsupported btf_header";
    /// The magic number is wrong.
    Magic => Numbered, EINVAL, "Invalid magic";
    /// The version is not 1.
    Version => Numbered, ENOTSUPP, "Unsupported version";
    /// Flags are set.
    Flags => Numbered, ENOTSUPP, "Unsupported flags";
    /// The blob has a header only.
    NoData => Numbered, EINVAL, "No data";
    /// A section starts beyond the end.
    SectionOffset => Numbered, EINVAL, "Invalid section offset";
    /// The sections have a gap, or bytes after them.
    SectionUnknown => Numbered, EINVAL, "Unsupported section found";
    /// The sections overlap.
    SectionOverlap => Numbered, EINVAL, "Section overlap found";
    /// The sections are longer than the blob.
    SectionTooLong => Numbered, EINVAL, "Total section length too long";
    /// The string section is not the last.
    StringsNotLast => Numbered, EINVAL, "String section is not at the end";
    /// The strings do not start and end with a NUL, or exceed the maximum.
    Strings => Numbered, EINVAL, "Invalid string section";
    /// The type section is not aligned to four bytes.
    Misaligned => Numbered, EINVAL, "Unaligned type_off";
    /// The type section is empty.
    NoTypes => Numbered, EINVAL, "No type found";

    /// The record is truncated.
    RecordCut { left: usize, needed: usize } => Numbered, EINVAL, "meta_left:{left} meta_needed:{needed}";
    /// Undefined bits of the info word are set.
    InfoBits { info: u32 } => Numbered, EINVAL, "Invalid btf_info:{info:x}";
    /// The kind is unknown.
    UnknownKind { kind: u32 } => Numbered, EINVAL, "Invalid kind:{kind}";
    /// A name is beyond the strings.
    NameOffset { offset: u32 } => Numbered, EINVAL, "Invalid name_offset:{offset}";
    /// The data after the record are truncated.
    TailCut { left: usize, needed: usize } => Basic, EINVAL, "meta_left:{left} meta_needed:{needed}";
    /// Undefined bits of the word of an integer are set.
    IntWord { data: u32 } => Basic, EINVAL, "Invalid int_data:{data:x}";
    /// The count is not 0 in a kind without counted items.
    Count => Full, EINVAL, "vlen != 0";
    /// The flag is set in a kind without a flag.
    Flag => Full, EINVAL, "Invalid btf_info kind_flag";
    /// An integer has more than 128 bits.
    IntTooWide => Full, EINVAL, "nr_bits exceeds 128";
    /// An integer has more bits than its size.
    IntTooLarge => Full, EINVAL, "nr_bits exceeds type_size";
    /// An integer has several encodings.
    Encoding => Full, ENOTSUPP, "Unsupported encoding";
    /// A referred type is missing or not allowed.
    TypeId => Full, EINVAL, "Invalid type_id";
    /// A name is missing, not allowed or invalid.
    Name => Full, EINVAL, "Invalid name";
    /// A forward declaration refers to a type.
    TypeNotZero => Full, EINVAL, "type != 0";
    /// An array states a size.
    SizeNotZero => Full, EINVAL, "size != 0";
    /// The type cannot be an element.
    Element => Full, EINVAL, "Invalid elem";
    /// The type cannot be an index.
    Index => Full, EINVAL, "Invalid index";
    /// The size of an enumeration is not 1, 2, 4 or 8.
    EnumSize => Full, EINVAL, "Unexpected size";
    /// The linkage of a function is neither static, global nor extern.
    FuncLinkage => Full, EINVAL, "Invalid func linkage";
    /// The linkage of a variable is neither static nor global.
    VarLinkage => Full, EINVAL, "Linkage not supported";
    /// A DATASEC has size 0.
    SectionEmpty => Full, EINVAL, "size == 0";
    /// The size of a floating-point number is not 2, 4, 8, 12 or 16.
    FloatSize => Full, EINVAL, "Invalid type_size";
    /// A tag is empty.
    TagValue => Full, EINVAL, "Invalid value";
    /// The tagged member or parameter is missing.
    Component => Full, EINVAL, "Invalid component_idx";
    /// The element of an array is an integer that does not fill its bytes.
    ArrayOfInt => Full, EINVAL, "Invalid array of int";
    /// An array exceeds 4 GiB.
    ArrayTooLarge => Full, EINVAL, "Array size overflows U32_MAX";
    /// The type cannot be returned.
    ReturnType => Full, EINVAL, "Invalid return type";
    /// The type cannot be a parameter; the first has number 1.
    Parameter { number: usize } => Full, EINVAL, "Invalid arg#{number}";
    /// Types are nested more than 32 deep.
    TooDeep => Full, E2BIG, "Exceeded max resolving depth:32";
    /// A type contains itself.
    Loop => Full, EEXIST, "Loop detected";
    /// A type resolves to none with a size.
    ResolveState => Full, EINVAL, "Invalid resolve state";

    /// The name of a member is beyond the strings.
    MemberNameOffset { offset: u32 } => Full, EINVAL, "Invalid member name_offset:{offset}";
    /// Members are not ascending, or those of a union not at offset 0.
    MemberOffset => Full, EINVAL, "Invalid member bits_offset";
    /// A member starts beyond the structure.
    MemberBeyond => Full, EINVAL, "Member bits_offset exceeds its struct size";
    /// The type of a member is not allowed.
    Member => Full, EINVAL, "Invalid member";
    /// The offset of an integer's bits exceeds 32 bits.
    MemberOffsetOverflow => Full, EINVAL, "bits_offset exceeds U32_MAX";
    /// A bit field spans more than 128 bits.
    MemberTooWide => Full, EINVAL, "nr_copy_bits exceeds 128";
    /// A member ends beyond the structure.
    MemberTooLarge => Full, EINVAL, "Member exceeds struct_size";
    /// A bit field has an integer that does not fill its bytes.
    MemberBaseType => Full, EINVAL, "Invalid member base type";
    /// A member that is no bit field does not start at a byte.
    MemberStart => Full, EINVAL, "Invalid member offset";
    /// A bit field is wider than its type, or its type allows none.
    MemberBits => Full, EINVAL, "Invalid member bitfield_size";
    /// A member does not start at a byte.
    MemberByte => Full, EINVAL, "Member is not byte aligned";
    /// A floating-point member is unaligned.
    MemberAlignment => Full, EINVAL, "Member is not properly aligned";

    /// A variable overlaps the previous one, or starts beyond the DATASEC.
    PlacedOffset => Full, EINVAL, "Invalid offset";
    /// The size of a variable is 0 or exceeds the DATASEC.
    PlacedSize => Full, EINVAL, "Invalid size";
    /// A variable ends beyond the DATASEC.
    PlacedEnd => Full, EINVAL, "Invalid offset+size";
    /// The variables exceed the size of the DATASEC.
    SectionTooFull => Full, EINVAL, "Invalid btf_info size";
    /// The DATASEC lists a type that is no variable.
    PlacedKind => Full, EINVAL, "Not a VAR kind member";
    /// The type of a variable has no size.
    PlacedType => Full, EINVAL, "Invalid type";

    /// More than 32 consecutive modifiers.
    ModifierChain => Numbered, ELOOP, "Max chain length or cycle detected";
    /// A type tag follows another modifier.
    TagOrder => Numbered, EINVAL, "Type tags don't precede modifiers";
}

impl FieldFault {
    fn errno(self) -> i32 {
        match self {
            FieldFault::Twice | FieldFault::TooDeep | FieldFault::TooMany => errno::E2BIG,
            FieldFault::NoDestructor | FieldFault::ContainsNothing | FieldFault::NoNode => {
                errno::ENOENT
            }
            FieldFault::Overlap => errno::EEXIST,
            FieldFault::None | FieldFault::ContainsPlain => errno::EFAULT,
            FieldFault::OwnershipLoop => errno::ELOOP,
            FieldFault::InsideByte
            | FieldFault::Repeated
            | FieldFault::Pointer
            | FieldFault::Contains
            | FieldFault::Node
            | FieldFault::TwoLocks
            | FieldFault::NoLock
            | FieldFault::NoRefcount => errno::EINVAL,
        }
    }
}
