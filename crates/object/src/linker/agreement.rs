//! Compatibility of the types of a symbol in two files, as libbpf's linker checks it.
//!
//! Kinds, names, sizes and by-value members must be equal. Behind a pointer the names
//! suffice, and one side may have a forward declaration. Parameter names and array sizes
//! may differ.
//!
//! A budget bounds the walk, since types of malformed files may contain themselves.

use std::fmt;

use btf::{Btf, Composite, FwdKind, Kind, Linkage, Proto, Shape, Type, TypeId};

use crate::maps::MapFault;

/// Maximum number of pairs of types compared for one symbol.
const MAX_PAIRS: u32 = 1 << 20;
/// Maximum depth of nesting.
const MAX_DEPTH: u32 = 256;

/// Incompatibility of a symbol in two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// One file has no type for it.
    Untyped,
    /// The type is neither a variable nor a function.
    Neither(Kind),
    /// Kinds before and now.
    Kinds(Kind, Kind),
    /// Kind of the types, names before and now.
    Names(Kind, String, String),
    /// Kind of the types, sizes before and now in bytes.
    Sizes(Kind, u32, u32),
    /// One is static.
    Linkage,
    /// Kind of the types, numbers of members or parameters before and now.
    Counts(Kind, usize, usize),
    /// Member names before and now.
    MemberNames(String, String),
    /// Member with different offsets.
    MemberPlace(String),
    /// Types of this kind are not comparable.
    NotComparable(Kind),
    /// The types are nested too deeply, or contain themselves.
    TooDeep,
    /// Maps with a different attribute.
    Map(MapAttribute),
    /// One is a map with a malformed declaration.
    NoMap(Option<MapFault>),
}

/// Attribute of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapAttribute {
    /// Map kind.
    Kind,
    /// Size of keys.
    KeySize,
    /// Type of keys.
    KeyType,
    /// Size of values.
    ValueSize,
    /// Type of values.
    ValueType,
    /// Maximum number of entries.
    MaxEntries,
    /// Its flags.
    Flags,
    /// NUMA node.
    NumaNode,
    /// Pinning by name.
    Pinning,
    /// Definition of inner maps.
    Inner,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Untyped => write!(f, "one of the files has no type for it"),
            Mismatch::Neither(kind) => {
                write!(f, "{} is neither a variable nor a function", noun(*kind))
            }
            Mismatch::Kinds(was, is) => write!(f, "{} instead of {}", noun(*is), noun(*was)),
            Mismatch::Names(kind, was, is) => {
                let named = |name: &str| match name {
                    "" => "without a name".to_owned(),
                    name => format!("called {name}"),
                };
                write!(f, "{} {} instead of {}", noun(*kind), named(is), named(was))
            }
            Mismatch::Sizes(kind, was, is) => {
                write!(f, "{} of {is} bytes instead of {was}", noun(*kind))
            }
            Mismatch::Linkage => write!(f, "one of them is static"),
            Mismatch::Counts(Kind::FuncProto, was, is) => {
                write!(f, "{is} parameters instead of {was}")
            }
            Mismatch::Counts(kind, was, is) => {
                write!(f, "{} with {is} members instead of {was}", noun(*kind))
            }
            Mismatch::MemberNames(was, is) => write!(f, "member {is} instead of {was}"),
            Mismatch::MemberPlace(name) => write!(f, "member {name} is at another offset"),
            Mismatch::NotComparable(kind) => write!(f, "{} is not comparable", noun(*kind)),
            Mismatch::TooDeep => write!(f, "type is nested too deeply"),
            Mismatch::Map(attribute) => write!(f, "the maps differ in {attribute}"),
            Mismatch::NoMap(Some(why)) => write!(f, "no map: {why}"),
            Mismatch::NoMap(None) => write!(f, "no map"),
        }
    }
}

impl std::error::Error for Mismatch {}

impl fmt::Display for MapAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MapAttribute::Kind => "type",
            MapAttribute::KeySize => "key_size",
            MapAttribute::KeyType => "the type of the key",
            MapAttribute::ValueSize => "value_size",
            MapAttribute::ValueType => "the type of the value",
            MapAttribute::MaxEntries => "max_entries",
            MapAttribute::Flags => "map_flags",
            MapAttribute::NumaNode => "numa_node",
            MapAttribute::Pinning => "pinning",
            MapAttribute::Inner => "the inner map",
        })
    }
}

/// Noun for a kind of type in messages.
fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Void => "nothing",
        Kind::Int => "an integer",
        Kind::Ptr => "a pointer",
        Kind::Array => "an array",
        Kind::Struct => "a struct",
        Kind::Union => "a union",
        Kind::Enum | Kind::Enum64 => "an enum",
        Kind::Fwd => "a declaration",
        Kind::Typedef => "a typedef",
        Kind::Volatile | Kind::Const | Kind::Restrict => "a qualifier",
        Kind::Func => "a function",
        Kind::FuncProto => "a prototype",
        Kind::Var => "a variable",
        Kind::Datasec => "a section",
        Kind::Float => "a floating-point number",
        Kind::DeclTag | Kind::TypeTag => "a tag",
    }
}

/// Type of a file.
#[derive(Clone, Copy)]
pub(super) struct Typed<'b> {
    pub(super) btf: &'b Btf<'b>,
    pub(super) id: TypeId,
}

impl<'b> Typed<'b> {
    /// Type below the modifiers.
    fn plain(self) -> Result<Type<'b>, Mismatch> {
        let id = self.btf.skip_modifiers(self.id).ok_or(Mismatch::TooDeep)?;
        Ok(self.btf.at(id))
    }
}

/// Checks the compatibility of two variables or functions. `before` may have a type that
/// another file completed: then `linkage` and `ty` are the current ones.
pub(super) fn check_symbols(
    before: Type<'_>,
    linkage: Linkage,
    ty: Typed<'_>,
    now: Type<'_>,
) -> Result<(), Mismatch> {
    same_kind(before, now)?;
    same_name(before, now)?;
    let (now_linkage, to) = match now.shape() {
        Shape::Func(func) => (func.linkage, func.proto),
        Shape::Var(var) => (var.linkage, var.ty),
        _ => return Err(Mismatch::Neither(now.kind())),
    };
    if (linkage == Linkage::STATIC) != (now_linkage == Linkage::STATIC) {
        return Err(Mismatch::Linkage);
    }
    let now = Typed {
        btf: now.btf(),
        id: to,
    };
    check_types(ty, now)
}

/// Checks the compatibility of two types, by-value members included.
pub(super) fn check_types(before: Typed<'_>, now: Typed<'_>) -> Result<(), Mismatch> {
    let mut walk = Walk {
        before: before.btf,
        now: now.btf,
        budget: MAX_PAIRS,
    };
    walk.check(before.id, now.id, true, MAX_DEPTH)
}

struct Walk<'b> {
    before: &'b Btf<'b>,
    now: &'b Btf<'b>,
    budget: u32,
}

impl Walk<'_> {
    /// `whole` is false behind a pointer.
    fn check(
        &mut self,
        before: TypeId,
        now: TypeId,
        whole: bool,
        depth: u32,
    ) -> Result<(), Mismatch> {
        self.budget = self.budget.checked_sub(1).ok_or(Mismatch::TooDeep)?;
        let depth = depth.checked_sub(1).ok_or(Mismatch::TooDeep)?;
        let (btf, id) = (self.before, before);
        let before = Typed { btf, id }.plain()?;
        let (btf, id) = (self.now, now);
        let now = Typed { btf, id }.plain()?;

        let is_declared = |ty: Type<'_>| ty.kind() == Kind::Fwd;
        if !whole && is_declared(before) != is_declared(now) {
            return match is_declared(before) {
                true => check_declaration(before, now),
                false => check_declaration(now, before),
            };
        }
        same_kind(before, now)?;
        match (before.shape(), now.shape()) {
            (Shape::Void, Shape::Void) => Ok(()),
            (Shape::Fwd(_), Shape::Fwd(_)) => same_name(before, now),
            (Shape::Int(was), Shape::Int(is)) => same_size(before.kind(), was.size, is.size),
            (Shape::Float(was), Shape::Float(is)) => same_size(before.kind(), was, is),
            (Shape::Enum(was), Shape::Enum(is)) => {
                same_name(before, now)?;
                same_size(before.kind(), was.size, is.size)
            }
            (Shape::Ptr(was), Shape::Ptr(is)) => self.check(was, is, false, depth),
            (Shape::Array(was), Shape::Array(is)) => {
                self.check(was.element, is.element, whole, depth)
            }
            (Shape::Struct(was), Shape::Struct(is)) | (Shape::Union(was), Shape::Union(is)) => {
                same_name(before, now)?;
                match whole {
                    true => self.check_members(before.kind(), was, is, depth),
                    false => Ok(()),
                }
            }
            (Shape::Proto(was), Shape::Proto(is)) => self.check_protos(was, is, whole, depth),
            _ => Err(Mismatch::NotComparable(before.kind())),
        }
    }

    fn check_members(
        &mut self,
        kind: Kind,
        before: Composite<'_>,
        now: Composite<'_>,
        depth: u32,
    ) -> Result<(), Mismatch> {
        let (was, is) = (before.members(), now.members());
        if was.len() != is.len() {
            return Err(Mismatch::Counts(kind, was.len(), is.len()));
        }
        for (was, is) in was.zip(is) {
            let (old, new) = (self.before.string(was.name), self.now.string(is.name));
            if old != new {
                return Err(Mismatch::MemberNames(old.to_string(), new.to_string()));
            }
            if (was.bit_offset, was.bits) != (is.bit_offset, is.bits) {
                return Err(Mismatch::MemberPlace(new.to_string()));
            }
            self.check(was.ty, is.ty, true, depth)?;
        }
        Ok(())
    }

    fn check_protos(
        &mut self,
        before: Proto<'_>,
        now: Proto<'_>,
        whole: bool,
        depth: u32,
    ) -> Result<(), Mismatch> {
        let (was, is) = (before.params(), now.params());
        if was.len() != is.len() {
            return Err(Mismatch::Counts(Kind::FuncProto, was.len(), is.len()));
        }
        for (was, is) in was.zip(is) {
            self.check(was.ty, is.ty, whole, depth)?;
        }
        self.check(before.returns, now.returns, whole, depth)
    }
}

/// Checks that a forward declaration behind a pointer has the name of the definition.
fn check_declaration(declared: Type<'_>, defined: Type<'_>) -> Result<(), Mismatch> {
    same_name(declared, defined)?;
    match (declared.shape(), defined.shape()) {
        (Shape::Fwd(FwdKind::Struct), Shape::Struct(_)) => Ok(()),
        (Shape::Fwd(FwdKind::Union), Shape::Union(_)) => Ok(()),
        _ => Err(Mismatch::Kinds(declared.kind(), defined.kind())),
    }
}

fn same_kind(before: Type<'_>, now: Type<'_>) -> Result<(), Mismatch> {
    match before.kind() == now.kind() {
        true => Ok(()),
        false => Err(Mismatch::Kinds(before.kind(), now.kind())),
    }
}

fn same_name(before: Type<'_>, now: Type<'_>) -> Result<(), Mismatch> {
    let (was, is) = (before.name(), now.name());
    match was == is {
        true => Ok(()),
        false => Err(Mismatch::Names(now.kind(), was.to_string(), is.to_string())),
    }
}

fn same_size(kind: Kind, was: u32, is: u32) -> Result<(), Mismatch> {
    match was == is {
        true => Ok(()),
        false => Err(Mismatch::Sizes(kind, was, is)),
    }
}
