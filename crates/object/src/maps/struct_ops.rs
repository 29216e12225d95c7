//! struct_ops maps: each variable in `.struct_ops` or `.struct_ops.link` is a kernel
//! structure whose function pointers are programs.
//!
//! The variable has the object's type; relocations state the programs of its members.
//! Linking converts it to the kernel's type ([`kernel_ops`](super::kernel_ops)).

mod fault;

use std::collections::BTreeMap;

use btf::{Btf, Composite, Kind, Shape, TypeId, VarSecinfo};
use program::{Image, MapParams};
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::{Contents, Map, Maps, Place, Source};
use crate::elf::{Elf, Relocation, Section, SectionId, Symbol, SymbolPlace};
use crate::error::Error;
use crate::programs::{ProgramDefs, ProgramId};
use crate::sections::Role;

pub use fault::StructOpsFault;

/// A struct_ops variable.
#[derive(Clone, Debug)]
pub struct StructOps<'a> {
    /// BTF id of its type in the object.
    pub ty: TypeId,
    /// True if it is registered when its object is attached.
    pub autoattach: bool,
    /// Bytes of the variable; function pointers are zero.
    pub(super) image: Image<'a>,
    /// Programs by member index, as declared.
    pub(super) declared: BTreeMap<usize, ProgramId>,
    /// Programs by member index, as set by the caller.
    pub(super) programs: BTreeMap<usize, ProgramId>,
}

impl StructOps<'_> {
    /// Index of the member with this name, in the object's type.
    pub fn member(&self, types: &Btf<'_>, name: &str) -> Option<usize> {
        let mut members = types.at(self.ty).as_composite()?.members();
        members.position(|member| types.string(member.name) == name)
    }

    /// Program of a member, by member index.
    pub fn program(&self, member: usize) -> Option<ProgramId> {
        self.programs.get(&member).copied()
    }

    /// Sets or clears the program of a member. Linking refuses a member that is no
    /// function pointer.
    pub fn set_program(&mut self, member: usize, program: Option<ProgramId>) {
        match program {
            Some(program) => self.programs.insert(member, program),
            None => self.programs.remove(&member),
        };
    }

    /// Clears the members whose programs `keep` rejects.
    pub fn retain_programs(&mut self, mut keep: impl FnMut(ProgramId) -> bool) {
        self.programs.retain(|_, program| keep(*program));
    }
}

impl<'a> Map<'a> {
    /// Mutable struct_ops.
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
        // libbpf checks the question mark of a section at its first variable only.
        map.autocreate = !(name.starts_with(b"?") && index == 0);
        maps.push(map);
    }
    Ok(())
}

fn read_table<'a>(
    btf: &Btf<'_>,
    section: SectionId,
    data: &'a [u8],
    placed: VarSecinfo,
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
        pinning: 0,
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

/// Maximum number of modifiers followed, as in the kernel and libbpf.
const MAX_DEPTH: usize = 32;

/// Type of a variable below its modifiers.
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
    /// Adds the programs of the relocations of a section.
    pub(crate) fn bind_struct_ops(
        &mut self,
        elf: &Elf<'_>,
        btf: Option<&Btf<'_>>,
        codes: &ProgramDefs<'_>,
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
        codes: &ProgramDefs<'_>,
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

/// First member at this byte offset.
fn member_at(structure: Composite<'_>, offset: u64) -> Option<(usize, btf::Member)> {
    let mut members = structure.members().enumerate();
    members.find(|(_, member)| u64::from(member.bit_offset) == offset * 8)
}

/// Prototype that a function pointer refers to.
pub(super) fn prototype(btf: &Btf<'_>, pointer: TypeId) -> Option<TypeId> {
    let Shape::Ptr(to) = btf.at(btf.skip_modifiers(pointer)?).shape() else {
        return None;
    };
    let to = btf.skip_modifiers(to)?;
    (btf.at(to).kind() == Kind::FuncProto).then_some(to)
}
