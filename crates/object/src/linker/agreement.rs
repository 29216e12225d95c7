//! Do two files mean the same by a name?
//!
//! What is compared is what the two must agree on to work together: kinds, names,
//! sizes, the members of what is held by value. Behind a pointer the names are
//! enough, and one side may only declare a structure there. Names of parameters
//! and numbers of elements may differ.
//!
//! Types can hold themselves in a broken file, so the walk has a budget.

use std::fmt;

use btf::{Btf, Composite, Forward, Kind, Linkage, Proto, Shape, Type, TypeId};

use crate::maps::MapFault;

/// The most pairs of types that are compared for one symbol.
const MAX_PAIRS: u32 = 1 << 20;
/// The deepest nesting of types that is followed.
const MAX_DEPTH: u32 = 256;

/// What two files do not agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// One of them does not say which type it is.
    Untyped,
    /// It is neither a variable nor a function.
    Neither(Kind),
    /// One is of this kind, the other of that.
    Kinds(Kind, Kind),
    /// Names of types of this kind.
    Names(Kind, String, String),
    /// Bytes of types of this kind.
    Sizes(Kind, u32, u32),
    /// One is static.
    Linkage,
    /// How many members or parameters there are.
    Counts(Kind, usize, usize),
    /// Names of a member.
    MemberNames(String, String),
    /// Where this member is.
    MemberPlace(String),
    /// A type of this kind can't be compared.
    NotComparable(Kind),
    /// The types are nested too deep, or contain themselves.
    TooDeep,
    /// Two maps differ in this attribute.
    Map(MapAttribute),
    /// One is a map, but what it says of itself is wrong.
    NoMap(Option<MapFault>),
}

/// An attribute of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapAttribute {
    /// The kind of map.
    Kind,
    /// The size of keys.
    KeySize,
    /// The type of keys.
    KeyType,
    /// The size of values.
    ValueSize,
    /// The type of values.
    ValueType,
    /// How many entries it can have.
    MaxEntries,
    /// Its flags.
    Flags,
    /// The memory node.
    NumaNode,
    /// Whether it is pinned by name.
    Pinning,
    /// The map that it holds.
    Inner,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Untyped => write!(f, "one of them has no type"),
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
            Mismatch::MemberNames(was, is) => write!(f, "member {is} stands in the place of {was}"),
            Mismatch::MemberPlace(name) => write!(f, "member {name} is at another offset"),
            Mismatch::NotComparable(kind) => write!(f, "{} can't be compared", noun(*kind)),
            Mismatch::TooDeep => write!(f, "its type is nested too deep"),
            Mismatch::Map(attribute) => write!(f, "the maps differ in {attribute}"),
            Mismatch::NoMap(Some(why)) => write!(f, "it is no map: {why}"),
            Mismatch::NoMap(None) => write!(f, "it is no map"),
        }
    }
}

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

/// What a type of this kind is, for people.
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

/// A type of a file.
#[derive(Clone, Copy)]
pub(super) struct Typed<'b> {
    pub(super) btf: &'b Btf<'b>,
    pub(super) id: TypeId,
}

impl<'b> Typed<'b> {
    /// The type below the modifiers.
    fn plain(self) -> Result<Type<'b>, Mismatch> {
        let id = self.btf.skip_modifiers(self.id).ok_or(Mismatch::TooDeep)?;
        Ok(self.btf.at(id))
    }
}

/// Do two variables or functions agree? `before` may be one of which another file
/// has completed the type: then `linkage` and `ty` are those of now.
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

/// Do two types agree, with all that they hold by value?
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

/// Behind a pointer, a declaration agrees with the definition of its name.
fn check_declaration(declared: Type<'_>, defined: Type<'_>) -> Result<(), Mismatch> {
    same_name(declared, defined)?;
    match (declared.shape(), defined.shape()) {
        (Shape::Fwd(Forward::Struct), Shape::Struct(_)) => Ok(()),
        (Shape::Fwd(Forward::Union), Shape::Union(_)) => Ok(()),
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
