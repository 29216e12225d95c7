//! A type as it stands in a blob, read where it is: nothing is copied but the
//! twelve bytes that every type starts with.

use crate::kind::Kind;
use crate::wire::{
    IntWord, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE, Record, VALUE_SIZE, VALUE64_SIZE,
    word,
};
use crate::{Btf, Name, StrOffset, TypeId};

/// One type of a blob.
#[derive(Clone, Copy)]
pub struct Type<'b> {
    btf: &'b Btf<'b>,
    id: TypeId,
    record: Record,
    tail: &'b [u8],
}

/// What a type is, with what belongs to its kind.
#[derive(Clone, Copy)]
pub enum Shape<'b> {
    /// No type.
    Void,
    /// An integer.
    Int(Int),
    /// A pointer to this type.
    Ptr(TypeId),
    /// An array.
    Array(Array),
    /// A structure.
    Struct(Composite<'b>),
    /// A union.
    Union(Composite<'b>),
    /// An enumeration, of either kind.
    Enum(Enum<'b>),
    /// Only the name of a structure or union.
    Fwd(Forward),
    /// Another name for this type.
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
    /// A variable.
    Var(Var),
    /// A section.
    Datasec(Datasec<'b>),
    /// A floating-point number of so many bytes.
    Float(u32),
    /// What a declaration is tagged with; the name is the tag.
    DeclTag(DeclTag),
    /// This type, tagged; the name is the tag.
    TypeTag(TypeId),
}

/// An integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    /// Bytes.
    pub size: u32,
    /// Bits of the value.
    pub bits: u32,
    /// Bits before the value (compilers have stopped using it).
    pub offset: u32,
    /// What the bits say.
    pub encoding: Encoding,
}

/// What the bits of an integer say: any of these, in practice one at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding(pub u8);

impl Encoding {
    /// An unsigned number.
    pub const NONE: Encoding = Encoding(0);
    /// A signed number.
    pub const SIGNED: Encoding = Encoding(1);
    /// A character.
    pub const CHAR: Encoding = Encoding(2);
    /// A truth value.
    pub const BOOL: Encoding = Encoding(4);

    /// Is it a signed number?
    pub fn is_signed(self) -> bool {
        self.0 & 1 != 0
    }

    /// Is it a truth value?
    pub fn is_bool(self) -> bool {
        self.0 & 4 != 0
    }
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Array {
    /// The type of its elements.
    pub element: TypeId,
    /// The type of its index.
    pub index: TypeId,
    /// How many elements it has.
    pub count: u32,
}

/// A structure or union.
#[derive(Clone, Copy)]
pub struct Composite<'b> {
    /// Bytes.
    pub size: u32,
    bitfields: bool,
    tail: &'b [u8],
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name, empty for an anonymous one.
    pub name: StrOffset,
    /// Its type.
    pub ty: TypeId,
    /// Bits from the start of the structure.
    pub bit_offset: u32,
    /// Bits of a bit field; 0 for any other member, and for bit fields of old
    /// compilers, whose integers say how many bits they have.
    pub bits: u32,
}

/// An enumeration.
#[derive(Clone, Copy)]
pub struct Enum<'b> {
    /// Bytes.
    pub size: u32,
    /// Are the values signed?
    pub signed: bool,
    /// Does it have room for 64 bits of each value?
    pub wide: bool,
    tail: &'b [u8],
}

/// A value of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// Its name.
    pub name: StrOffset,
    /// The value; a signed one of 32 bits is extended by its sign.
    pub value: u64,
}

/// What a name without a type stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// A structure.
    Struct,
    /// A union.
    Union,
}

/// Who may see a function or variable. The numbers are those of the format; one
/// that it does not define is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Linkage(pub u32);

impl Linkage {
    /// Its own file.
    pub const STATIC: Linkage = Linkage(0);
    /// Everybody.
    pub const GLOBAL: Linkage = Linkage(1);
    /// It is defined elsewhere.
    pub const EXTERN: Linkage = Linkage(2);
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Func {
    /// Its prototype.
    pub proto: TypeId,
    /// Who may call it.
    pub linkage: Linkage,
}

/// A prototype.
#[derive(Clone, Copy)]
pub struct Proto<'b> {
    /// What is returned.
    pub returns: TypeId,
    tail: &'b [u8],
}

/// A parameter. One of type `void` at the end stands for "and any others".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// Its name.
    pub name: StrOffset,
    /// Its type.
    pub ty: TypeId,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Its type.
    pub ty: TypeId,
    /// Who may see it.
    pub linkage: Linkage,
}

/// A section.
#[derive(Clone, Copy)]
pub struct Datasec<'b> {
    /// Bytes; compilers leave 0.
    pub size: u32,
    tail: &'b [u8],
}

/// A variable's place in its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placed {
    /// The variable, or a function of another file.
    pub var: TypeId,
    /// Bytes from the start of the section.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
}

/// What is tagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeclTag {
    /// The type.
    pub target: TypeId,
    /// Which of its members or parameters; -1 for the type itself.
    pub component: i32,
}

impl<'b> Type<'b> {
    /// The type whose record starts at `start`; 0 stands for `void`.
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

    /// Its number.
    pub fn id(&self) -> TypeId {
        self.id
    }

    /// Its kind.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::from_number(self.record.kind()).unwrap_or(Kind::Void)
    }

    /// Its name; empty where there is none.
    pub fn name(&self) -> Name<'b> {
        self.btf.string(self.name_offset())
    }

    /// Where its name starts.
    pub fn name_offset(&self) -> StrOffset {
        StrOffset(self.record.name)
    }

    /// The blob that it belongs to.
    pub fn btf(&self) -> &'b Btf<'b> {
        self.btf
    }

    /// How many members, values, parameters or variables it has.
    pub fn count(&self) -> usize {
        self.record.count()
    }

    /// The flag of the record, whose meaning the kind decides.
    pub fn flag(&self) -> bool {
        self.record.flag()
    }

    pub(crate) fn record(&self) -> Record {
        self.record
    }

    pub(crate) fn tail(&self) -> &'b [u8] {
        self.tail
    }

    /// What it is.
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
            Kind::Fwd if self.flag() => Shape::Fwd(Forward::Union),
            Kind::Fwd => Shape::Fwd(Forward::Struct),
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

    /// The structure or union that it is.
    pub fn as_composite(&self) -> Option<Composite<'b>> {
        self.kind().is_composite().then(|| self.composite())
    }

    /// The type that a pointer, modifier, function, variable or declaration tag
    /// is about, or that a prototype returns.
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
    /// Its members, in order.
    pub fn members(
        self,
    ) -> impl DoubleEndedIterator<Item = Member> + ExactSizeIterator + Clone + 'b {
        self.tail
            .chunks_exact(MEMBER_SIZE)
            .map(move |raw| self.read(raw))
    }

    /// Member number `index`.
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
    /// Its values, in order.
    pub fn values(self) -> impl DoubleEndedIterator<Item = Value> + ExactSizeIterator + Clone + 'b {
        let each = if self.wide { VALUE64_SIZE } else { VALUE_SIZE };
        self.tail.chunks_exact(each).map(move |raw| {
            let low = word(raw, 4);
            let value = match (self.wide, self.signed) {
                (true, _) => u64::from(word(raw, 8)) << 32 | u64::from(low),
                (false, true) => low as i32 as u64,
                (false, false) => low.into(),
            };
            Value {
                name: StrOffset(word(raw, 0)),
                value,
            }
        })
    }
}

impl<'b> Proto<'b> {
    /// Its parameters, in order.
    pub fn params(self) -> impl DoubleEndedIterator<Item = Param> + ExactSizeIterator + Clone + 'b {
        self.tail.chunks_exact(PARAM_SIZE).map(|raw| Param {
            name: StrOffset(word(raw, 0)),
            ty: TypeId(word(raw, 4)),
        })
    }
}

impl<'b> Datasec<'b> {
    /// Where its variables are, in order.
    pub fn vars(self) -> impl DoubleEndedIterator<Item = Placed> + ExactSizeIterator + Clone + 'b {
        self.tail.chunks_exact(PLACED_SIZE).map(|raw| Placed {
            var: TypeId(word(raw, 0)),
            offset: word(raw, 4),
            size: word(raw, 8),
        })
    }
}
