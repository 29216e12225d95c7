//! Why a blob is refused, as data: where, what, and the error number. The
//! kernel's words for it are made in [`kernel_log`](super::kernel_log).

use crate::TypeId;

/// Why Linux refuses a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// In which pass it was found.
    pub pass: Pass,
    /// Where.
    pub place: Place,
    /// What.
    pub reason: Reason,
}

impl Refusal {
    /// The error number of bpf(2).
    pub fn errno(&self) -> i32 {
        self.reason.errno()
    }
}

/// The passes that the kernel makes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// The header, up to where its fields can be read.
    Header,
    /// The sections and the strings.
    Sections,
    /// Each type on its own.
    Records,
    /// What types say about each other.
    References,
    /// The order of type tags and modifiers.
    Tags,
    /// Structures with fields that the kernel manages (locks, lists, trees).
    Fields,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In no type.
    Blob,
    /// In a type.
    Type(TypeId),
    /// In a member of a structure or union.
    Member {
        /// The structure.
        of: TypeId,
        /// Which member.
        index: usize,
        /// The member's type; the one below the modifiers where that is at fault.
        ty: TypeId,
    },
    /// In a variable's place in a section.
    Placed {
        /// The section.
        of: TypeId,
        /// Which variable.
        index: usize,
    },
    /// In a value of an enumeration.
    Value {
        /// The enumeration.
        of: TypeId,
        /// Which value.
        index: usize,
    },
}

/// How much of a type the kernel prints before the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nothing but the number.
    Numbered,
    /// Number, kind and name.
    Basic,
    /// Everything.
    Full,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident: $ty:ty),* })? => $form:ident, $errno:ident, $text:literal;)*) => {
        /// What is wrong. Each is one rule of the kernel, with its message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name $({ $(#[allow(missing_docs)] $field: $ty),* })?,)*
            /// A field that the kernel would have to manage is not as it must be;
            /// there is no message.
            Field(FieldFault),
        }

        impl Reason {
            /// The error number that goes with it.
            pub fn errno(self) -> i32 {
                match self {
                    $(Reason::$name $({ $($field: _),* })? => errno::$errno,)*
                    Reason::Field(fault) => fault.errno(),
                }
            }

            /// The kernel's message, without what stands before it.
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

mod errno {
    pub(super) const E2BIG: i32 = 7;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const ELOOP: i32 = 40;
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EFAULT: i32 = 14;
    /// Not in the headers for programs.
    pub(super) const ENOTSUPP: i32 = 524;
}

// Name and fields, how much of the type is printed, error number, message.
reasons! {
    /// More than 16 MiB; there is no message.
    TooLarge => Numbered, E2BIG, "";
    /// Too short to say how long the header is.
    NoHeaderLen => Numbered, EINVAL, "hdr_len not found";
    /// Shorter than its header.
    HeaderCut => Numbered, EINVAL, "btf_header not found";
    /// The header is longer than what is known, and not with zeroes.
    HeaderUnknown => Numbered, E2BIG, "Unsupported btf_header";
    /// Not BTF.
    Magic => Numbered, EINVAL, "Invalid magic";
    /// Not version 1.
    Version => Numbered, ENOTSUPP, "Unsupported version";
    /// Flags are set.
    Flags => Numbered, ENOTSUPP, "Unsupported flags";
    /// There is only a header.
    NoData => Numbered, EINVAL, "No data";
    /// A section starts beyond the end.
    SectionOffset => Numbered, EINVAL, "Invalid section offset";
    /// There is something between or after the sections.
    SectionUnknown => Numbered, EINVAL, "Unsupported section found";
    /// The sections overlap.
    SectionOverlap => Numbered, EINVAL, "Section overlap found";
    /// The sections are longer than the blob.
    SectionTooLong => Numbered, EINVAL, "Total section length too long";
    /// Something follows the strings.
    StringsNotLast => Numbered, EINVAL, "String section is not at the end";
    /// The strings do not start and end with a NUL, or are too many.
    Strings => Numbered, EINVAL, "Invalid string section";
    /// The types do not start at a multiple of four bytes.
    Misaligned => Numbered, EINVAL, "Unaligned type_off";
    /// There are no types.
    NoTypes => Numbered, EINVAL, "No type found";

    /// The section ends within the record.
    RecordCut { left: usize, needed: usize } => Numbered, EINVAL, "meta_left:{left} meta_needed:{needed}";
    /// Bits of the info word are set that have no meaning.
    InfoBits { info: u32 } => Numbered, EINVAL, "Invalid btf_info:{info:x}";
    /// No kind has this number.
    UnknownKind { kind: u32 } => Numbered, EINVAL, "Invalid kind:{kind}";
    /// A name starts beyond the strings.
    NameOffset { offset: u32 } => Numbered, EINVAL, "Invalid name_offset:{offset}";
    /// The section ends within what follows the record.
    TailCut { left: usize, needed: usize } => Basic, EINVAL, "meta_left:{left} meta_needed:{needed}";
    /// Bits of the word of an integer are set that have no meaning.
    IntWord { data: u32 } => Basic, EINVAL, "Invalid int_data:{data:x}";
    /// The kind counts nothing, yet the count is not 0.
    Count => Full, EINVAL, "vlen != 0";
    /// The kind has no use for the flag.
    Flag => Full, EINVAL, "Invalid btf_info kind_flag";
    /// An integer of more than 128 bits.
    IntTooWide => Full, EINVAL, "nr_bits exceeds 128";
    /// An integer of more bits than its bytes have.
    IntTooLarge => Full, EINVAL, "nr_bits exceeds type_size";
    /// An integer that is several things at once.
    Encoding => Full, ENOTSUPP, "Unsupported encoding";
    /// A type referred to does not exist, or may not be referred to.
    TypeId => Full, EINVAL, "Invalid type_id";
    /// A name is missing, forbidden, or no name.
    Name => Full, EINVAL, "Invalid name";
    /// A forward declaration refers to a type.
    TypeNotZero => Full, EINVAL, "type != 0";
    /// An array states a size.
    SizeNotZero => Full, EINVAL, "size != 0";
    /// What can't be an element.
    Element => Full, EINVAL, "Invalid elem";
    /// What can't be an index.
    Index => Full, EINVAL, "Invalid index";
    /// The size of an enumeration is not 1, 2, 4 or 8.
    EnumSize => Full, EINVAL, "Unexpected size";
    /// A function neither static, global nor extern.
    FuncLinkage => Full, EINVAL, "Invalid func linkage";
    /// A variable neither static nor global.
    VarLinkage => Full, EINVAL, "Linkage not supported";
    /// A section without bytes.
    SectionEmpty => Full, EINVAL, "size == 0";
    /// The size of a floating-point number is not 2, 4, 8, 12 or 16.
    FloatSize => Full, EINVAL, "Invalid type_size";
    /// An empty tag.
    TagValue => Full, EINVAL, "Invalid value";
    /// The tagged member or parameter does not exist.
    Component => Full, EINVAL, "Invalid component_idx";
    /// An array of parts of integers.
    ArrayOfInt => Full, EINVAL, "Invalid array of int";
    /// An array of more than 4 GiB.
    ArrayTooLarge => Full, EINVAL, "Array size overflows U32_MAX";
    /// What can't be returned.
    ReturnType => Full, EINVAL, "Invalid return type";
    /// What can't be a parameter; the first has number 1.
    Parameter { number: usize } => Full, EINVAL, "Invalid arg#{number}";
    /// More than 32 types inside each other.
    TooDeep => Full, E2BIG, "Exceeded max resolving depth:32";
    /// A type that contains itself.
    Loop => Full, EEXIST, "Loop detected";
    /// A type that leads to none that could be used.
    ResolveState => Full, EINVAL, "Invalid resolve state";

    /// A member's name starts beyond the strings.
    MemberNameOffset { offset: u32 } => Full, EINVAL, "Invalid member name_offset:{offset}";
    /// Members that do not follow each other, or of a union that do.
    MemberOffset => Full, EINVAL, "Invalid member bits_offset";
    /// A member starts beyond the structure.
    MemberBeyond => Full, EINVAL, "Member bits_offset exceeds its struct size";
    /// A type that no member can have.
    Member => Full, EINVAL, "Invalid member";
    /// The offset of an integer's bits does not fit 32 bits.
    MemberOffsetOverflow => Full, EINVAL, "bits_offset exceeds U32_MAX";
    /// A bit field that reaches over more than 128 bits.
    MemberTooWide => Full, EINVAL, "nr_copy_bits exceeds 128";
    /// A member ends beyond the structure.
    MemberTooLarge => Full, EINVAL, "Member exceeds struct_size";
    /// A bit field of a part of an integer.
    MemberBaseType => Full, EINVAL, "Invalid member base type";
    /// A member that is no bit field starts inside a byte.
    MemberStart => Full, EINVAL, "Invalid member offset";
    /// A bit field wider than its type, or of a type that has none.
    MemberBits => Full, EINVAL, "Invalid member bitfield_size";
    /// A member starts inside a byte.
    MemberByte => Full, EINVAL, "Member is not byte aligned";
    /// A floating-point number where none can be.
    MemberAlignment => Full, EINVAL, "Member is not properly aligned";

    /// A variable that starts before the last one ends, or beyond the section.
    PlacedOffset => Full, EINVAL, "Invalid offset";
    /// A variable without bytes, or larger or smaller than it may be.
    PlacedSize => Full, EINVAL, "Invalid size";
    /// A variable that ends beyond the section.
    PlacedEnd => Full, EINVAL, "Invalid offset+size";
    /// The variables of a section are larger than the section.
    SectionTooFull => Full, EINVAL, "Invalid btf_info size";
    /// What is in the section is no variable.
    PlacedKind => Full, EINVAL, "Not a VAR kind member";
    /// The variable has no size.
    PlacedType => Full, EINVAL, "Invalid type";

    /// More than 32 modifiers in a row.
    ModifierChain => Numbered, ELOOP, "Max chain length or cycle detected";
    /// A type tag after another modifier.
    TagOrder => Numbered, EINVAL, "Type tags don't precede modifiers";
}

/// What is wrong with the fields of a structure that the kernel would manage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldFault {
    /// A member starts inside a byte.
    InsideByte,
    /// A lock or the like a second time.
    Twice,
    /// Structures inside structures, more than 32 deep.
    TooDeep,
    /// More than eleven such fields.
    TooMany,
    /// An array of what can't be repeated.
    Repeated,
    /// A pointer with a tag that is unknown, or two tags, or not to a structure.
    Pointer,
    /// A pointer to a kernel structure that nothing releases.
    NoDestructor,
    /// A list head or tree root that does not say what it contains.
    Contains,
    /// It contains what does not exist.
    ContainsNothing,
    /// The node that it names is none.
    Node,
    /// The node that it names does not exist.
    NoNode,
    /// Fields overlap.
    Overlap,
    /// Two kinds of locks.
    TwoLocks,
    /// A list head or tree root without a lock.
    NoLock,
    /// Nodes of both kinds without a reference count.
    NoRefcount,
    /// None was found where there should be one.
    None,
    /// It contains a structure that has no such fields.
    ContainsPlain,
    /// What owns others is owned, and so is what it owns.
    OwnershipLoop,
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
