//! Types of a blob, read in place: only the record of twelve bytes is decoded in advance.

use crate::kind::Kind;
use crate::wire::{
    IntWord, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE, Record, VALUE_SIZE, VALUE64_SIZE,
    word,
};
use crate::{Btf, Name, StrOffset, TypeId};

/// A type of a blob.
#[derive(Clone, Copy)]
pub struct Type<'b> {
    btf: &'b Btf<'b>,
    id: TypeId,
    record: Record,
    tail: &'b [u8],
}

/// Kind of a type with the data of its kind.
#[derive(Clone, Copy)]
pub enum Shape<'b> {
    /// No type.
    Void,
    /// An integer (`btf_type_int`).
    #[doc(alias = "btf_type_int")]
    Int(Int),
    /// Pointer to this type.
    Ptr(TypeId),
    /// Array (`btf_type_array`).
    #[doc(alias = "btf_type_array")]
    Array(Array),
    /// Structure.
    Struct(Composite<'b>),
    /// Union.
    Union(Composite<'b>),
    /// Enumeration, of 32 or 64 bits (`btf_type_enum`, `btf_type_enum64`).
    #[doc(alias = "btf_type_enum")]
    #[doc(alias = "btf_type_enum64")]
    Enum(Enum<'b>),
    /// FwdKind declaration of a structure or union.
    Fwd(FwdKind),
    /// Typedef of this type.
    Typedef(TypeId),
    /// `volatile` of this type.
    Volatile(TypeId),
    /// `const` of this type.
    Const(TypeId),
    /// `restrict` of this type.
    Restrict(TypeId),
    /// A function.
    Func(Func),
    /// A prototype.
    Proto(Proto<'b>),
    /// A variable (`btf_type_var`).
    #[doc(alias = "btf_type_var")]
    Var(Var),
    /// A section.
    Datasec(Datasec<'b>),
    /// Floating-point number of this size in bytes.
    Float(u32),
    /// Declaration tag; the name is the tag (`btf_type_decl_tag`).
    #[doc(alias = "btf_type_decl_tag")]
    DeclTag(DeclTag),
    /// Type tag on this type; the name is the tag.
    TypeTag(TypeId),
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    /// Size in bytes.
    pub size: u32,
    /// Number of bits of the value.
    pub bits: u32,
    /// Offset of the value in bits; 0 from current compilers.
    pub offset: u32,
    /// Encoding of the value.
    pub encoding: Encoding,
}

/// Encoding of an integer: BTF_INT_* bits, in practice at most one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding(pub u8);

impl Encoding {
    /// Unsigned number.
    pub const NONE: Encoding = Encoding(0);
    /// Signed number.
    pub const SIGNED: Encoding = Encoding(1);
    /// Character.
    pub const CHAR: Encoding = Encoding(2);
    /// Boolean.
    pub const BOOL: Encoding = Encoding(4);

    /// Name in listings: `SIGNED`, `CHAR`, `BOOL`, `(none)`, or `UNKN` for a combination
    /// (`btf_int_encoding_str`).
    #[doc(alias = "btf_int_encoding_str")]
    pub fn name(self) -> &'static str {
        match self {
            Encoding::NONE => "(none)",
            Encoding::SIGNED => "SIGNED",
            Encoding::CHAR => "CHAR",
            Encoding::BOOL => "BOOL",
            _ => "UNKN",
        }
    }

    /// True for a signed number.
    pub fn is_signed(self) -> bool {
        self.0 & 1 != 0
    }

    /// True for a boolean.
    pub fn is_bool(self) -> bool {
        self.0 & 4 != 0
    }
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    /// Type of the elements.
    pub element: TypeId,
    /// Type of the index.
    pub index: TypeId,
    /// Number of elements.
    pub count: u32,
}

/// A structure or union.
#[derive(Clone, Copy)]
pub struct Composite<'b> {
    /// Size in bytes.
    pub size: u32,
    bitfields: bool,
    tail: &'b [u8],
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Name; empty for an anonymous member.
    pub name: StrOffset,
    /// Type.
    pub ty: TypeId,
    /// Offset in bits from the start of the structure.
    pub bit_offset: u32,
    /// Width of a bit field in bits; 0 for other members, and for bit fields without
    /// `kind_flag`, whose width is that of their integer.
    pub bits: u32,
}

/// An enumeration.
#[derive(Clone, Copy)]
pub struct Enum<'b> {
    /// Size in bytes.
    pub size: u32,
    /// True if the values are signed.
    pub signed: bool,
    /// True for ENUM64.
    pub wide: bool,
    tail: &'b [u8],
}

/// An enumerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Enumerator {
    /// Name.
    pub name: StrOffset,
    /// Value; a signed one of 32 bits is sign-extended.
    pub value: u64,
}

/// Kind of a forward declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FwdKind {
    /// A structure.
    Struct,
    /// A union.
    Union,
}

/// Linkage of a function or variable. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linkage(pub u32);

impl Linkage {
    /// Visible in its own file.
    pub const STATIC: Linkage = Linkage(0);
    /// Visible everywhere.
    pub const GLOBAL: Linkage = Linkage(1);
    /// Defined elsewhere.
    pub const EXTERN: Linkage = Linkage(2);

    /// Name in listings: `static`, `global`, `extern`, or `(unknown)`.
    pub fn name(self) -> &'static str {
        match self {
            Linkage::STATIC => "static",
            Linkage::GLOBAL => "global",
            Linkage::EXTERN => "extern",
            _ => "(unknown)",
        }
    }
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    /// Prototype.
    pub proto: TypeId,
    /// Linkage.
    pub linkage: Linkage,
}

/// A function prototype.
#[derive(Clone, Copy)]
pub struct Proto<'b> {
    /// Return type.
    pub returns: TypeId,
    tail: &'b [u8],
}

/// A parameter. A last one of type `void` without name stands for variable arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Name.
    pub name: StrOffset,
    /// Type.
    pub ty: TypeId,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Type.
    pub ty: TypeId,
    /// Linkage.
    pub linkage: Linkage,
}

/// A data section.
#[derive(Clone, Copy)]
pub struct Datasec<'b> {
    /// Size in bytes; compilers leave 0.
    pub size: u32,
    tail: &'b [u8],
}

/// Variable in a data section (`struct btf_var_secinfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VarSecinfo {
    /// Variable, or function of another file.
    pub var: TypeId,
    /// Offset in bytes from the start of the section.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// Target of a declaration tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclTag {
    /// Tagged type.
    pub target: TypeId,
    /// Index of the tagged member or parameter; -1 for the type itself.
    pub component: i32,
}

impl<'b> Type<'b> {
    /// Type whose record starts at `start`; 0 is `void`.
    #[inline]
    pub(crate) fn at(btf: &'b Btf<'b>, id: TypeId, start: usize) -> Type<'b> {
        let (record, tail) = if start == 0 {
            (Record::default(), &[][..])
        } else {
            let blob = btf.as_bytes();
            let record = Record::read(blob, start);
            let (fixed, each) = Kind::from_number(record.kind())
                .unwrap_or(Kind::Void)
                .tail();
            let from = start + RECORD_SIZE;
            let len = fixed + each * record.count();
            (record, blob.get(from..from + len).unwrap_or_default())
        };
        Type {
            btf,
            id,
            record,
            tail,
        }
    }

    /// Type id.
    pub fn id(&self) -> TypeId {
        self.id
    }

    /// Kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_number(self.record.kind()).unwrap_or(Kind::Void)
    }

    /// Name; empty for anonymous types.
    pub fn name(&self) -> Name<'b> {
        self.btf.string(self.name_offset())
    }

    /// Offset of the name.
    pub fn name_offset(&self) -> StrOffset {
        StrOffset(self.record.name)
    }

    /// Blob that contains the type.
    pub fn btf(&self) -> &'b Btf<'b> {
        self.btf
    }

    /// Number of members, enumerators, parameters or variables (vlen).
    pub fn count(&self) -> usize {
        self.record.count()
    }

    /// `kind_flag`, whose meaning depends on the kind.
    pub fn flag(&self) -> bool {
        self.record.flag()
    }

    pub(crate) fn record(&self) -> Record {
        self.record
    }

    pub(crate) fn tail(&self) -> &'b [u8] {
        self.tail
    }

    /// Data of the type by kind.
    pub fn shape(&self) -> Shape<'b> {
        let to = TypeId(self.record.payload);
        let size = self.record.payload;
        let tail = self.tail;
        match self.kind() {
            Kind::Void => Shape::Void,
            Kind::Int => Shape::Int(self.int()),
            Kind::Ptr => Shape::Ptr(to),
            Kind::Array => Shape::Array(Array {
                element: TypeId(word(tail, 0)),
                index: TypeId(word(tail, 4)),
                count: word(tail, 8),
            }),
            Kind::Struct => Shape::Struct(self.composite()),
            Kind::Union => Shape::Union(self.composite()),
            Kind::Enum | Kind::Enum64 => Shape::Enum(Enum {
                size,
                signed: self.flag(),
                wide: self.kind() == Kind::Enum64,
                tail,
            }),
            Kind::Fwd if self.flag() => Shape::Fwd(FwdKind::Union),
            Kind::Fwd => Shape::Fwd(FwdKind::Struct),
            Kind::Typedef => Shape::Typedef(to),
            Kind::Volatile => Shape::Volatile(to),
            Kind::Const => Shape::Const(to),
            Kind::Restrict => Shape::Restrict(to),
            Kind::Func => Shape::Func(Func {
                proto: to,
                linkage: Linkage(self.count() as u32),
            }),
            Kind::FuncProto => Shape::Proto(Proto { returns: to, tail }),
            Kind::Var => Shape::Var(Var {
                ty: to,
                linkage: Linkage(word(tail, 0)),
            }),
            Kind::Datasec => Shape::Datasec(Datasec { size, tail }),
            Kind::Float => Shape::Float(size),
            Kind::DeclTag => Shape::DeclTag(DeclTag {
                target: to,
                component: word(tail, 0) as i32,
            }),
            Kind::TypeTag => Shape::TypeTag(to),
        }
    }

    /// Structure or union; `None` for other kinds.
    pub fn as_composite(&self) -> Option<Composite<'b>> {
        self.kind().is_composite().then(|| self.composite())
    }

    /// Type that a pointer, modifier, function, variable or declaration tag refers to, or
    /// return type of a prototype.
    pub fn referred(&self) -> Option<TypeId> {
        let refers =
            !self.kind().has_size() && !matches!(self.kind(), Kind::Void | Kind::Array | Kind::Fwd);
        refers.then_some(TypeId(self.record.payload))
    }

    fn int(&self) -> Int {
        let data = IntWord(word(self.tail, 0));
        Int {
            size: self.record.payload,
            bits: data.bits(),
            offset: data.offset(),
            encoding: Encoding(data.encoding() as u8),
        }
    }

    fn composite(&self) -> Composite<'b> {
        Composite {
            size: self.record.payload,
            bitfields: self.flag(),
            tail: self.tail,
        }
    }
}

impl std::fmt::Debug for Type<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {} {}", self.id, self.kind().name(), self.name())
    }
}

impl<'b> Composite<'b> {
    /// Members, in order.
    pub fn members(
        self,
    ) -> impl DoubleEndedIterator<Item = Member> + ExactSizeIterator + Clone + 'b {
        self.tail
            .chunks_exact(MEMBER_SIZE)
            .map(move |raw| self.read(raw))
    }

    /// Member with this index.
    pub fn member(self, index: usize) -> Option<Member> {
        let from = index.checked_mul(MEMBER_SIZE)?;
        Some(self.read(self.tail.get(from..from + MEMBER_SIZE)?))
    }

    fn read(self, raw: &[u8]) -> Member {
        let place = word(raw, 8);
        let (bits, bit_offset) = match self.bitfields {
            true => (place >> 24, place & 0x00ff_ffff),
            false => (0, place),
        };
        Member {
            name: StrOffset(word(raw, 0)),
            ty: TypeId(word(raw, 4)),
            bit_offset,
            bits,
        }
    }
}

impl<'b> Enum<'b> {
    /// Enumerators, in order.
    pub fn values(
        self,
    ) -> impl DoubleEndedIterator<Item = Enumerator> + ExactSizeIterator + Clone + 'b {
        let each = if self.wide { VALUE64_SIZE } else { VALUE_SIZE };
        self.tail.chunks_exact(each).map(move |raw| {
            let low = word(raw, 4);
            let value = match (self.wide, self.signed) {
                (true, _) => u64::from(word(raw, 8)) << 32 | u64::from(low),
                (false, true) => low as i32 as u64,
                (false, false) => low.into(),
            };
            Enumerator {
                name: StrOffset(word(raw, 0)),
                value,
            }
        })
    }
}

impl<'b> Proto<'b> {
    /// Parameters, in order.
    pub fn params(self) -> impl DoubleEndedIterator<Item = Param> + ExactSizeIterator + Clone + 'b {
        self.tail.chunks_exact(PARAM_SIZE).map(|raw| Param {
            name: StrOffset(word(raw, 0)),
            ty: TypeId(word(raw, 4)),
        })
    }
}

impl<'b> Datasec<'b> {
    /// Variables, in order.
    pub fn vars(
        self,
    ) -> impl DoubleEndedIterator<Item = VarSecinfo> + ExactSizeIterator + Clone + 'b {
        self.tail.chunks_exact(PLACED_SIZE).map(|raw| VarSecinfo {
            var: TypeId(word(raw, 0)),
            offset: word(raw, 4),
            size: word(raw, 8),
        })
    }
}
