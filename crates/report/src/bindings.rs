//! C headers and Rust bindings of an object, for programs in user space that use its maps
//! and global variables: types of keys and values, names of maps and programs, and the
//! layout of each section of variables, which is the value of its map.
//!
//! Static variables are left out, as in skeletons of bpftool: compilers may remove or
//! duplicate them.

mod header;
mod pods;
mod rust;

use std::error::Error;
use std::fmt;

use btf::{Btf, DumpError, Kind, Linkage, Shape, TypeId};
use object::Object;
use object::maps::{Contents, Map};

pub use header::header;
pub use rust::rust_bindings;

/// Section of the variables of an arena.
const ARENA: &str = ".addr_space.1";

/// Options of bindings.
#[derive(Clone, Debug, Default)]
pub struct BindingsOptions {
    /// Name of the file, for the first comment.
    pub file: String,
    /// Prefix of C names; the name of the object if empty.
    pub name: String,
    /// Types to define besides those of maps and variables.
    pub types: Vec<TypeId>,
    /// True to define no types in a C header: another header does.
    pub omit_types: bool,
    /// True to implement `beebox::Pod` for the structures in Rust that contain no union.
    pub pod: bool,
}

/// Error of making bindings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingsError {
    /// The object has no BTF.
    NoBtf,
    /// A type can't be written.
    Type {
        /// Name of the type; empty for an anonymous one.
        name: String,
        /// Reason.
        error: DumpError,
    },
    /// A variable overlaps the one before it.
    Overlap {
        /// Name of the section.
        section: String,
        /// Name of the variable.
        variable: String,
    },
}

impl fmt::Display for BindingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindingsError::NoBtf => write!(f, "no section .BTF, so no types"),
            BindingsError::Type { name, error } if name.is_empty() => write!(f, "{error}"),
            BindingsError::Type { name, error } => write!(f, "type {name}: {error}"),
            BindingsError::Overlap { section, variable } => {
                write!(f, "section {section}: variable {variable} overlaps another")
            }
        }
    }
}

impl Error for BindingsError {}

/// Contents of the bindings of an object.
struct Contained<'o> {
    btf: &'o Btf<'o>,
    maps: Vec<MapTypes<'o>>,
    sections: Vec<Section<'o>>,
    programs: Vec<String>,
}

/// A declared map.
struct MapTypes<'o> {
    map: &'o Map<'o>,
    key: Option<TypeId>,
    value: Option<TypeId>,
}

/// Global variables of a section.
struct Section<'o> {
    /// Name in bindings: of `.data.own`, `data_own`.
    ident: String,
    name: String,
    map: &'o Map<'o>,
    /// Size in bytes.
    size: u32,
    variables: Vec<Variable>,
}

/// A global variable.
struct Variable {
    name: String,
    /// Type without modifiers.
    ty: TypeId,
    /// Offset in bytes from the start of the section.
    offset: u32,
}

impl<'o> Contained<'o> {
    fn of(object: &'o Object<'o>) -> Result<Contained<'o>, BindingsError> {
        let btf = object.btf().ok_or(BindingsError::NoBtf)?;
        let mut maps = Vec::new();
        let mut sections = Vec::new();
        for (_, map) in object.maps().iter() {
            match map.contents() {
                Contents::Data(data) => {
                    let size = map.params().value_size;
                    let datasec = map.params().value_type;
                    sections.push(section(btf, map, &data.section, datasec, size));
                }
                Contents::Arena(image) => {
                    if let Some(datasec) = btf.find(Kind::Datasec, ARENA) {
                        sections.push(section(btf, map, ARENA, datasec.id(), image.size()));
                    }
                    maps.push(map_types(map));
                }
                Contents::Entries(_) | Contents::StructOps(_) => maps.push(map_types(map)),
            }
        }
        sections.retain(|section| !section.variables.is_empty());
        let programs = object.programs().map(|(_, code)| code.name.to_string());
        Ok(Contained {
            btf,
            maps,
            sections,
            programs: programs.collect(),
        })
    }

    fn failed(&self, ty: TypeId) -> impl Fn(DumpError) -> BindingsError {
        let at = |error| match error {
            DumpError::NoType { id }
            | DumpError::Cycle { id }
            | DumpError::TooDeep { id }
            | DumpError::NoLayout { id } => Some(id),
            DumpError::TooLong => None,
        };
        move |error| {
            let named = |id: TypeId| Some(self.btf.get(id)?.name().to_string());
            let own = at(error).and_then(named).filter(|name| !name.is_empty());
            BindingsError::Type {
                name: own.or_else(|| named(ty)).unwrap_or_default(),
                error,
            }
        }
    }
}

fn map_types<'o>(map: &'o Map<'o>) -> MapTypes<'o> {
    let params = map.params();
    let stated = |id: TypeId| Some(id).filter(|id| !id.is_void());
    MapTypes {
        map,
        key: stated(params.key_type),
        value: match map.struct_ops() {
            None => stated(params.value_type),
            Some(_) => None,
        },
    }
}

fn section<'o>(
    btf: &'o Btf<'o>,
    map: &'o Map<'o>,
    name: &str,
    datasec: TypeId,
    size: u32,
) -> Section<'o> {
    let shape = btf.get(datasec).map(|ty| ty.shape());
    let mut variables = Vec::new();
    if let Some(Shape::Datasec(of)) = shape {
        for placed in of.vars() {
            let ty = btf.at(placed.var);
            if let Shape::Var(var) = ty.shape()
                && var.linkage != Linkage::STATIC
            {
                variables.push(Variable {
                    name: ty.name().to_string(),
                    ty: unqualified(btf, var.ty),
                    offset: placed.offset,
                });
            }
        }
    }
    variables.sort_by_key(|variable| variable.offset);
    let ident = match name {
        ARENA => "arena".to_owned(),
        name => name.trim_start_matches('.').replace('.', "_"),
    };
    Section {
        ident,
        name: name.to_owned(),
        map,
        size,
        variables,
    }
}

/// Type below `const`, `volatile`, `restrict` and type tags.
fn unqualified(btf: &Btf<'_>, id: TypeId) -> TypeId {
    let mut id = id;
    for _ in 0..btf.len() {
        id = match btf.at(id).shape() {
            Shape::Const(to) | Shape::Volatile(to) | Shape::Restrict(to) | Shape::TypeTag(to) => to,
            _ => break,
        };
    }
    id
}
