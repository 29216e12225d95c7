//! Tables of functions of the kernel, filled with programs: each variable in
//! `.struct_ops` or `.struct_ops.link` is one.
//!
//! The variable's bytes are the table as the object knows its type; relocations say
//! which program each function is. What a kernel makes of it is decided when the
//! object is linked for one ([`kernel_ops`](super::kernel_ops)).

use std::collections::BTreeMap;
use std::fmt;

use btf::{Btf, Composite, Kind, Placed, Shape, TypeId};
use program::{Image, MapParams};
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::{Contents, Map, Maps, Place, Source};
use crate::elf::{Elf, Relocation, Section, SectionId, Symbol, SymbolPlace};
use crate::error::{Blame, Error};
use crate::programs::{Codes, ProgramId};
use crate::sections::Role;

/// A table of functions.
#[derive(Clone, Debug)]
pub struct StructOps<'a> {
    /// Its type in the object.
    pub ty: TypeId,
    /// Is it registered when its object is attached?
    pub autoattach: bool,
    /// Its bytes; pointers to functions are zero in them.
    pub(super) image: Image<'a>,
    /// The programs, by the number of the member: what the object says.
    pub(super) declared: BTreeMap<usize, ProgramId>,
    /// The same as the user wants it.
    pub(super) programs: BTreeMap<usize, ProgramId>,
}

/// What is wrong with a table of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructOpsFault {
    /// There are tables but no types that describe them.
    NoTypes,
    /// No types describe the section.
    NotDescribed,
    /// The types of the section list something without a type.
    NoType,
    /// Its type has no name.
    Anonymous,
    /// It is no structure.
    NotStructure(String),
    /// The types place it beyond its section.
    BeyondSection,
    /// A relocation stands where no table is.
    Nowhere {
        /// Bytes from the start of the section.
        offset: u64,
    },
    /// A function of another file, or none at all.
    NotLocal,
    /// A function that does not start at an instruction.
    Misaligned {
        /// Bytes from the start of the section.
        offset: u64,
    },
    /// No member starts there.
    NoMember {
        /// Bytes from the start of the table.
        offset: u64,
    },
    /// The member is no pointer to a function.
    NotFunction(String),
    /// No program is where the member points to.
    NoProgram(String),
    /// The program is of another type.
    OtherProgram {
        /// The member.
        member: String,
    },
    /// The kernel has no such table.
    NotInKernel(String),
    /// What the kernel keeps beside the table does not hold the table.
    NotInValue(String),
    /// A member has no size.
    NoSize(String),
    /// The kernel has no such member, but the object sets it.
    MissingMember(String),
    /// A member is a bit field.
    BitField(String),
    /// The kernel's member is of another kind.
    OtherKind {
        /// The member.
        member: String,
        /// What it is here.
        here: Kind,
        /// What it is in the kernel.
        there: Kind,
    },
    /// The kernel's member has another size.
    OtherSize {
        /// The member.
        member: String,
        /// Bytes here.
        here: u32,
        /// Bytes in the kernel, if it has a size.
        there: Option<u32>,
    },
    /// A pointer is set to what is no program.
    NotProgram(String),
    /// The kernel's member is no pointer to a function.
    KernelNotFunction(String),
    /// A program serves two tables, or two members, that differ.
    SecondUse {
        /// The member.
        member: String,
    },
}

impl StructOpsFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            StructOpsFault::NoTypes
            | StructOpsFault::NotDescribed
            | StructOpsFault::NoType
            | StructOpsFault::BeyondSection
            | StructOpsFault::Nowhere { .. }
            | StructOpsFault::Misaligned { .. }
            | StructOpsFault::NoSize(_) => Blame::File,
            StructOpsFault::NotInKernel(_)
            | StructOpsFault::NotInValue(_)
            | StructOpsFault::MissingMember(_)
            | StructOpsFault::OtherKind { .. }
            | StructOpsFault::OtherSize { .. }
            | StructOpsFault::KernelNotFunction(_) => Blame::Target,
            _ => Blame::User,
        }
    }

    /// The number of the error that Linux's loader gives (`errno.h`).
    pub fn errno(&self) -> i32 {
        const ENOENT: i32 = 2;
        const ESRCH: i32 = 3;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        match self {
            StructOpsFault::NoTypes => ENOENT,
            StructOpsFault::NotLocal => 4005,
            StructOpsFault::Misaligned { .. } => 4001,
            StructOpsFault::NotInKernel(_) => ESRCH,
            StructOpsFault::Anonymous
            | StructOpsFault::MissingMember(_)
            | StructOpsFault::BitField(_)
            | StructOpsFault::OtherKind { .. }
            | StructOpsFault::OtherSize { .. }
            | StructOpsFault::NotProgram(_)
            | StructOpsFault::KernelNotFunction(_) => EOPNOTSUPP,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for StructOpsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StructOpsFault::NoTypes => write!(
                f,
                "tables of functions are described by types, but there are none: compile with -g"
            ),
            StructOpsFault::NotDescribed => write!(f, "the types do not describe the section"),
            StructOpsFault::NoType => write!(f, "the section lists something without a type"),
            StructOpsFault::Anonymous => write!(f, "its type has no name to look for"),
            StructOpsFault::NotStructure(name) => write!(f, "its type {name} is no structure"),
            StructOpsFault::BeyondSection => write!(f, "the types place it beyond its section"),
            StructOpsFault::Nowhere { offset } => {
                write!(f, "a pointer at offset {offset}, where no table is")
            }
            StructOpsFault::NotLocal => write!(f, "a function that is not in this file"),
            StructOpsFault::Misaligned { offset } => {
                write!(
                    f,
                    "a function at offset {offset}, where no instruction starts"
                )
            }
            StructOpsFault::NoMember { offset } => {
                write!(f, "no member starts at offset {offset}")
            }
            StructOpsFault::NotFunction(member) => {
                write!(f, "the member `{member}` is no pointer to a function")
            }
            StructOpsFault::NoProgram(member) => {
                write!(f, "the member `{member}` points to no program")
            }
            StructOpsFault::OtherProgram { member } => {
                write!(
                    f,
                    "the program of member `{member}` is not in SEC(\"struct_ops\")"
                )
            }
            StructOpsFault::NotInKernel(name) => write!(f, "the kernel has no struct {name}"),
            StructOpsFault::NotInValue(name) => {
                write!(f, "the kernel's bpf_struct_ops_{name} holds no {name}")
            }
            StructOpsFault::NoSize(member) => write!(f, "the member `{member}` has no size"),
            StructOpsFault::MissingMember(member) => write!(
                f,
                "the kernel has no member `{member}`; it can be left out only as zero"
            ),
            StructOpsFault::BitField(member) => {
                write!(f, "the member `{member}` is a bit field")
            }
            StructOpsFault::OtherKind {
                member,
                here,
                there,
            } => write!(
                f,
                "the member `{member}` is a {}, but a {} in the kernel",
                here.name(),
                there.name()
            ),
            StructOpsFault::OtherSize {
                member,
                here,
                there,
            } => match there {
                Some(there) => write!(
                    f,
                    "the member `{member}` has {here} bytes, but {there} in the kernel"
                ),
                None => write!(f, "the member `{member}` has no size in the kernel"),
            },
            StructOpsFault::NotProgram(member) => {
                write!(
                    f,
                    "the member `{member}` is set, but not to a struct_ops program"
                )
            }
            StructOpsFault::KernelNotFunction(member) => {
                write!(
                    f,
                    "the kernel's member `{member}` is no pointer to a function"
                )
            }
            StructOpsFault::SecondUse { member } => write!(
                f,
                "the program of member `{member}` already serves another table or member"
            ),
        }
    }
}

impl StructOps<'_> {
    /// The number of the member of that name, in the types of the object.
    pub fn member(&self, types: &Btf<'_>, name: &str) -> Option<usize> {
        let mut members = types.at(self.ty).as_composite()?.members();
        members.position(|member| types.string(member.name) == name)
    }

    /// The program of a member, by the member's number in the type.
    pub fn program(&self, member: usize) -> Option<ProgramId> {
        self.programs.get(&member).copied()
    }

    /// Sets the program of a member, or none. A member that is no pointer to a
    /// function is refused when the object is linked.
    pub fn set_program(&mut self, member: usize, program: Option<ProgramId>) {
        match program {
            Some(program) => self.programs.insert(member, program),
            None => self.programs.remove(&member),
        };
    }
}

impl<'a> Map<'a> {
    /// The table of functions, to be changed.
    pub fn struct_ops_mut(&mut self) -> Option<&mut StructOps<'a>> {
        match &mut self.contents {
            Contents::StructOps(table) => Some(table),
            _ => None,
        }
    }
}

/// Adds a map for each variable.
pub(super) fn collect<'a>(source: &Source<'_, 'a>, maps: &mut Maps<'a>) -> Result<(), Error> {
    for id in source.sections.with_role(Role::StructOps) {
        if let Some(section) = source.elf.section(id) {
            read_section(source, section, maps).map_err(|error| error.in_section(section.name))?;
        }
    }
    Ok(())
}

fn read_section<'a>(
    source: &Source<'_, 'a>,
    section: &Section<'a>,
    maps: &mut Maps<'a>,
) -> Result<(), Error> {
    let btf = source.btf.ok_or(StructOpsFault::NoTypes)?;
    let described = btf.find_all(Kind::Datasec, section.name.as_bytes()).next();
    let Some(Shape::Datasec(listed)) = described.map(|ty| ty.shape()) else {
        return Err(StructOpsFault::NotDescribed.into());
    };
    let data = section.data()?;
    let name = section.name.as_bytes();
    for (index, placed) in listed.vars().enumerate() {
        let mut map = read_table(btf, section.id, data, placed)
            .map_err(|fault| Error::new(fault).about(btf.at(placed.var).name()))?;
        if name.ends_with(b".link") {
            map.params.flags = MapFlags::LINK;
        }
        // libbpf looks for the question mark of a section at its first table only.
        map.autocreate = !(name.starts_with(b"?") && index == 0);
        maps.push(map);
    }
    Ok(())
}

fn read_table<'a>(
    btf: &Btf<'_>,
    section: SectionId,
    data: &'a [u8],
    placed: Placed,
) -> Result<Map<'a>, StructOpsFault> {
    let ty = resolve(btf, placed.var).ok_or(StructOpsFault::NoType)?;
    let type_name = btf.at(ty).name();
    if type_name.is_empty() {
        return Err(StructOpsFault::Anonymous);
    }
    let Shape::Struct(structure) = btf.at(ty).shape() else {
        return Err(StructOpsFault::NotStructure(type_name.to_string()));
    };
    let from = placed.offset as usize;
    let end = from.checked_add(structure.size as usize);
    let bytes = end.and_then(|end| data.get(from..end));
    let bytes = bytes.ok_or(StructOpsFault::BeyondSection)?;
    let name = btf.at(placed.var).name().to_string();
    Ok(Map {
        kernel_name: name.clone(),
        name,
        place: Place {
            section,
            offset: placed.offset.into(),
            size: structure.size.into(),
            ty: placed.var,
        },
        params: MapParams {
            map_type: MapKind::StructOps.number(),
            key_size: 4,
            value_size: structure.size,
            max_entries: 1,
            value_type: ty,
            ..MapParams::default()
        },
        inner: None,
        autocreate: true,
        pin: None,
        device: 0,
        contents: Contents::StructOps(StructOps {
            ty,
            autoattach: true,
            image: Image::new(bytes, structure.size),
            declared: BTreeMap::new(),
            programs: BTreeMap::new(),
        }),
    })
}

/// The most modifiers that are followed, as the kernel and libbpf have it.
const MAX_DEPTH: usize = 32;

/// The type of a variable below its modifiers.
fn resolve(btf: &Btf<'_>, variable: TypeId) -> Option<TypeId> {
    let mut id = variable;
    for _ in 0..MAX_DEPTH {
        let ty = btf.at(id);
        match ty.shape() {
            Shape::Void => return None,
            Shape::Var(var) => id = var.ty,
            _ if ty.kind().is_modifier() => id = ty.referred()?,
            _ => return Some(id),
        }
    }
    None
}

impl<'a> Maps<'a> {
    /// Takes the relocations of a section of tables.
    pub(crate) fn bind_struct_ops(
        &mut self,
        elf: &Elf<'_>,
        btf: Option<&Btf<'_>>,
        codes: &Codes<'_>,
        relocations: &Section<'_>,
    ) -> Result<(), Error> {
        let btf = btf.ok_or(StructOpsFault::NoTypes)?;
        for reference in elf.references(relocations)? {
            let (relocation, symbol) = reference?;
            let map = self.around(relocations.target, relocation.offset, 1);
            let map = map.and_then(|id| self.get_mut(id));
            let bound = match map {
                Some(map) => map
                    .bind(btf, codes, relocation, symbol)
                    .map_err(|fault| Error::new(fault).about(&map.name)),
                None => Err(Error::new(StructOpsFault::Nowhere {
                    offset: relocation.offset,
                })),
            };
            bound.map_err(|error| error.in_section(relocations.name))?;
        }
        Ok(())
    }
}

impl Map<'_> {
    fn bind(
        &mut self,
        btf: &Btf<'_>,
        codes: &Codes<'_>,
        relocation: Relocation,
        symbol: &Symbol,
    ) -> Result<(), StructOpsFault> {
        let offset = relocation.offset - self.place.offset;
        let Contents::StructOps(table) = &mut self.contents else {
            return Err(StructOpsFault::Nowhere { offset });
        };
        if matches!(symbol.place, SymbolPlace::Special(_)) {
            return Err(StructOpsFault::NotLocal);
        }
        if !symbol.value.is_multiple_of(8) {
            return Err(StructOpsFault::Misaligned {
                offset: symbol.value,
            });
        }
        let structure = btf.at(table.ty).as_composite();
        let member = structure.and_then(|structure| member_at(structure, offset));
        let (index, member) = member.ok_or(StructOpsFault::NoMember { offset })?;
        let name = btf.string(member.name).to_string();
        if prototype(btf, member.ty).is_none() {
            return Err(StructOpsFault::NotFunction(name));
        }
        let slot = (symbol.value / 8) as usize;
        let program = symbol.section().and_then(|section| codes.at(section, slot));
        let code = program.and_then(|program| codes.get(program));
        let (Some(program), Some(code)) = (program, code) else {
            return Err(StructOpsFault::NoProgram(name));
        };
        if code.kind != Some(ProgramType::StructOps) {
            return Err(StructOpsFault::OtherProgram { member: name });
        }
        table.declared.insert(index, program);
        table.programs.insert(index, program);
        Ok(())
    }
}

/// The first member that starts there, in bytes.
fn member_at(structure: Composite<'_>, offset: u64) -> Option<(usize, btf::Member)> {
    let mut members = structure.members().enumerate();
    members.find(|(_, member)| u64::from(member.bit_offset) == offset * 8)
}

/// The prototype of a pointer to functions.
pub(super) fn prototype(btf: &Btf<'_>, pointer: TypeId) -> Option<TypeId> {
    let Shape::Ptr(to) = btf.at(btf.skip_modifiers(pointer)?).shape() else {
        return None;
    };
    let to = btf.skip_modifiers(to)?;
    (btf.at(to).kind() == Kind::FuncProto).then_some(to)
}
