//! Conversion of struct_ops variables to the kernel's type.
//!
//! Kernels add, remove and reorder members, so each member is matched by name: numbers
//! are copied if their sizes are equal, function pointers become programs, and members
//! that the kernel lacks are dropped if they are zero. The conversion decides
//! attach_btf_id (the kernel's type) and expected attach type (the member index) of the
//! programs.
//!
//! Cost: members of the object times members of the kernel.

use std::collections::BTreeMap;

use btf::core::essential_name;
use btf::{Btf, Composite, Kind, Member, TypeId};
use program::{Image, MapId};
use spec::programs::ProgramType;

use super::struct_ops::{StructOps, StructOpsFault, prototype};
use super::{Contents, Maps};
use crate::error::Error;
use crate::programs::{ProgramDefs, ProgramId};
use spec::Kernel;

/// Conversion of the struct_ops of an object, and its effect on programs.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Converted variables to be created, by map.
    pub(super) tables: BTreeMap<MapId, Table>,
    /// Attach targets of struct_ops programs.
    attached: BTreeMap<ProgramId, Binding>,
    /// Autoload of struct_ops programs.
    autoload: BTreeMap<ProgramId, bool>,
}

/// Attach target of a struct_ops program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding {
    /// BTF id of the struct_ops type in the kernel.
    pub table: TypeId,
    /// Module of the type, from 1; 0 is vmlinux.
    pub module: u16,
    /// Member index in that type (the expected attach type).
    pub member: u32,
}

/// struct_ops value in the kernel's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// BTF id of the kernel's value type, which contains the struct_ops type.
    pub(super) value: TypeId,
    /// Module of the type, from 1; 0 is vmlinux.
    pub(super) module: u16,
    /// Bytes of the value, function pointers zero.
    pub(super) image: Image<'static>,
    /// Programs, by offset.
    pub(super) programs: BTreeMap<u32, ProgramId>,
}

impl Bindings {
    /// Attach target of a program.
    pub fn of(&self, program: ProgramId) -> Option<Binding> {
        self.attached.get(&program).copied()
    }

    /// Programs that are loaded because struct_ops refer to them.
    pub(crate) fn autoloaded(&self) -> impl Iterator<Item = ProgramId> + '_ {
        let loaded = self.autoload.iter().filter(|(_, is_loaded)| **is_loaded);
        loaded.map(|(&id, _)| id)
    }

    /// Autoload of a program; `None` if no struct_ops refers to it.
    pub fn autoload(&self, program: ProgramId) -> Option<bool> {
        self.autoload.get(&program).copied()
    }
}

/// Types of a struct_ops in the kernel.
struct KernelOps<'t> {
    btf: &'t Btf<'t>,
    module: u16,
    /// struct_ops type.
    table: TypeId,
    /// Value type, which contains the struct_ops type.
    value: TypeId,
    value_size: u32,
    /// Offset in bytes of the struct_ops type in the value type.
    offset: u32,
}

impl Maps<'_> {
    /// Converts all struct_ops that are created.
    pub(crate) fn bind_to_kernel(
        &self,
        btf: Option<&Btf<'_>>,
        codes: &ProgramDefs<'_>,
        kernel: &Kernel,
    ) -> Result<Bindings, Error> {
        let mut bindings = Bindings::default();
        let Some(btf) = btf else {
            return Ok(bindings);
        };
        for (id, map) in self.iter() {
            let Contents::StructOps(table) = &map.contents else {
                continue;
            };
            if map.autocreate {
                let bindings = &mut bindings;
                let mut fitting = Fitting {
                    btf,
                    codes,
                    table,
                    bindings,
                };
                let fitted = fitting.fit(kernel);
                let fitted = fitted.map_err(|fault| Error::new(fault).about(&map.name))?;
                bindings.tables.insert(id, fitted);
            }
        }
        self.decide_autoload(codes, &mut bindings);
        Ok(bindings)
    }

    /// A program is loaded if a struct_ops that refers to it is created; not if the
    /// caller removed it from its struct_ops, unless another refers to it.
    fn decide_autoload(&self, codes: &ProgramDefs<'_>, bindings: &mut Bindings) {
        let mut used: BTreeMap<ProgramId, bool> = BTreeMap::new();
        for map in &self.all {
            let Contents::StructOps(table) = &map.contents else {
                continue;
            };
            // A struct_ops that is not created keeps its declared programs.
            let programs = match map.autocreate {
                true => &table.programs,
                false => &table.declared,
            };
            for (member, &declared) in &table.declared {
                if programs.get(member) != Some(&declared) {
                    bindings.autoload.insert(declared, false);
                }
            }
            for &program in programs.values() {
                *used.entry(program).or_default() |= map.autocreate;
            }
        }
        for (program, is_created) in used {
            let kind = codes.get(program).and_then(|code| code.kind);
            if kind == Some(ProgramType::StructOps) {
                bindings.autoload.insert(program, is_created);
            }
        }
    }
}

/// Conversion of one variable.
struct Fitting<'f> {
    btf: &'f Btf<'f>,
    codes: &'f ProgramDefs<'f>,
    table: &'f StructOps<'f>,
    bindings: &'f mut Bindings,
}

impl Fitting<'_> {
    fn fit(&mut self, kernel: &Kernel) -> Result<Table, StructOpsFault> {
        let ty = self.btf.at(self.table.ty);
        let ops = KernelOps::find(ty.name().as_bytes(), kernel)?;
        let mut fitted = Table {
            value: ops.value,
            module: ops.module,
            image: Image::zeros(ops.value_size),
            programs: BTreeMap::new(),
        };
        if let Some(structure) = ty.as_composite() {
            for (index, member) in structure.members().enumerate() {
                self.fit_member(&ops, index, member, &mut fitted)?;
            }
        }
        Ok(fitted)
    }

    fn fit_member(
        &mut self,
        ops: &KernelOps<'_>,
        index: usize,
        member: Member,
        fitted: &mut Table,
    ) -> Result<(), StructOpsFault> {
        let name = self.btf.string(member.name);
        let text = || name.to_string();
        let offset = member.bit_offset / 8;
        let size = self.btf.size_of(member.ty);
        let size = size.ok_or_else(|| StructOpsFault::NoSize(text()))?;
        let program = self.table.program(index);
        let Some((number, there)) = ops.member(name.as_bytes()) else {
            if program.is_some() || !self.is_zero(offset, size) {
                return Err(StructOpsFault::MissingMember(text()));
            }
            return Ok(());
        };
        if member.bits != 0 || there.bits != 0 {
            return Err(StructOpsFault::BitField(text()));
        }
        let bare = |btf: &Btf<'_>, ty| btf.skip_modifiers(ty).unwrap_or_default();
        let here_kind = self.btf.at(bare(self.btf, member.ty)).kind();
        let there_kind = ops.btf.at(bare(ops.btf, there.ty)).kind();
        if here_kind != there_kind {
            return Err(StructOpsFault::OtherKind {
                member: text(),
                here: here_kind,
                there: there_kind,
            });
        }
        let place = ops.offset + there.bit_offset / 8;
        if here_kind == Kind::Ptr {
            return match program {
                Some(program) => {
                    self.bind(ops, program, number, there, text())?;
                    fitted.programs.insert(place, program);
                    Ok(())
                }
                None if self.is_zero(offset, size) => Ok(()),
                None => Err(StructOpsFault::NotProgram(text())),
            };
        }
        let there_size = ops.btf.size_of(there.ty);
        if there_size != Some(size) {
            return Err(StructOpsFault::OtherSize {
                member: text(),
                here: size,
                there: there_size,
            });
        }
        let mut bytes = vec![0; size.min(self.table.image.size()) as usize];
        self.table.image.read(offset, &mut bytes);
        fitted.image.write(place, &bytes);
        Ok(())
    }

    fn bind(
        &mut self,
        ops: &KernelOps<'_>,
        program: ProgramId,
        number: usize,
        there: Member,
        member: String,
    ) -> Result<(), StructOpsFault> {
        let kind = self.codes.get(program).and_then(|code| code.kind);
        if kind != Some(ProgramType::StructOps) {
            return Err(StructOpsFault::NotProgram(member));
        }
        if prototype(ops.btf, there.ty).is_none() {
            return Err(StructOpsFault::KernelNotFunction(member));
        }
        let binding = Binding {
            table: ops.table,
            module: ops.module,
            member: number as u32,
        };
        // A program may be shared by several struct_ops if type and member are equal.
        let first = *self.bindings.attached.entry(program).or_insert(binding);
        if (first.table, first.member) != (binding.table, binding.member) {
            return Err(StructOpsFault::SecondUse { member });
        }
        self.bindings.attached.insert(program, binding);
        Ok(())
    }

    fn is_zero(&self, offset: u32, size: u32) -> bool {
        let known = self.table.image.start();
        let end = known.len().min(offset as usize + size as usize);
        let bytes = known.get(offset as usize..end).unwrap_or_default();
        bytes.iter().all(|&byte| byte == 0)
    }
}

impl<'t> KernelOps<'t> {
    /// Finds the struct_ops type with this name, without flavour, and its value type.
    fn find(name: &[u8], kernel: &'t Kernel) -> Result<KernelOps<'t>, StructOpsFault> {
        let name = String::from_utf8_lossy(essential_name(name)).into_owned();
        let holder = format!("bpf_struct_ops_{name}");
        let missing = |name: &str| StructOpsFault::NotInKernel(name.to_owned());
        let vmlinux = kernel.btf().ok_or_else(|| missing(&holder))?;
        let modules = kernel.modules().iter().map(|module| &*module.btf);
        let found = std::iter::once(&**vmlinux)
            .chain(modules)
            .zip(0..=u16::MAX)
            .find_map(|(btf, module)| Some((btf, module, structure(btf, &holder)?)));
        let (btf, module, (value, kept)) = found.ok_or_else(|| missing(&holder))?;
        let (table, _) = structure(btf, &name).ok_or_else(|| missing(&name))?;
        let mut members = kept.members();
        let data = members.find(|member| member.ty == table);
        let data = data.ok_or(StructOpsFault::NotInValue(name))?;
        Ok(KernelOps {
            btf,
            module,
            table,
            value,
            value_size: kept.size,
            offset: data.bit_offset / 8,
        })
    }

    /// Member with this name and its index.
    fn member(&self, name: &[u8]) -> Option<(usize, Member)> {
        let table = self.btf.at(self.table).as_composite()?;
        let mut members = table.members().enumerate();
        members.find(|(_, member)| self.btf.string(member.name).as_bytes() == name)
    }
}

fn structure<'t>(btf: &'t Btf<'t>, name: &str) -> Option<(TypeId, Composite<'t>)> {
    let id = btf.find(Kind::Struct, name)?.id();
    Some((id, btf.at(id).as_composite()?))
}
