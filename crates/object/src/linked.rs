//! Linking: programs and maps as libbpf loads them into a kernel.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use btf::Btf;
use btf::core::{Absence, Path};
use btf::ext::CoreSpec;
use isa::ebpf::RawInsn;
use program::{
    AttachTarget, ExternResolution, ExternSymbol, FailedRelocation, FuncInfo, InvalidProgram,
    LineInfo, MapDef, Program, Subprog,
};
use spec::Errno;
use spec::programs::{AttachType, LoadFlags, ProgramType};

use crate::attach::attachment;
use crate::error::{Blame, Error};
use crate::externs::{ExternFault, Externs, ResolvedExterns};
use crate::maps::{Bindings, Creation, LinkedMap, jump_table};
use crate::object::Object;
use crate::programs::ProgramId;
use crate::reference::{Reference, Referent};
use crate::relocate::RelocationFault;
use crate::relocate::assemble::{Assembler, Assembly, Placed};
use crate::relocate::callback::Callbacks;
use crate::relocate::core::{Copies, CoreRelocations};
use crate::relocate::data::Data;
use crate::relocate::info::Info;
use spec::Kernel;

/// An object linked for a kernel.
#[derive(Clone, Debug)]
pub struct Linked {
    /// Loadable programs, in the object's order.
    pub programs: Vec<LinkedProgram>,
    /// Programs that are linked and cannot be loaded, for example because their attach
    /// target is missing.
    pub unloadable: Vec<UnloadableProgram>,
    /// Maps by index, followed by those of jump tables. The programs have the same.
    pub maps: Vec<LinkedMap>,
    /// Resolution of the externs.
    pub externs: ResolvedExterns,
}

/// A linked program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedProgram {
    /// Index in the object.
    pub id: ProgramId,
    /// The program.
    pub program: Program,
    /// References by instruction: the relocations that wrote them.
    pub references: Vec<Reference>,
}

/// A program that is linked and cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnloadableProgram {
    /// Index in the object.
    pub id: ProgramId,
    /// Reason why it cannot be loaded.
    pub error: Error,
    /// Name.
    pub name: String,
    /// Name of the section, without a leading `?`.
    pub section: String,
    /// Program type, if known.
    pub kind: Option<ProgramType>,
    /// Attach type, if stated.
    pub attach_type: Option<AttachType>,
    /// Load flags.
    pub flags: LoadFlags,
    /// Instructions.
    pub insns: Vec<RawInsn>,
    /// Subprogs, sorted by start.
    pub subprogs: Vec<Subprog>,
    /// line_info records.
    pub line_info: Vec<LineInfo>,
    /// References by instruction: the relocations that wrote them.
    pub references: Vec<Reference>,
}

/// Violated invariant of a linked program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFault(pub InvalidProgram);

impl ProgramFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        Blame::User
    }

    /// Error number: EINVAL.
    pub fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

impl fmt::Display for ProgramFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ProgramFault {}

impl LinkedProgram {
    /// Reference of an instruction.
    pub fn reference_at(&self, insn: u32) -> Option<&Reference> {
        reference_at(&self.references, insn)
    }
}

/// Reference of an instruction in references sorted by instruction.
pub fn reference_at(references: &[Reference], insn: u32) -> Option<&Reference> {
    let at = references.partition_point(|reference| reference.slot < insn);
    references
        .get(at)
        .filter(|reference| reference.slot == insn)
}

/// Links all programs to be loaded, in libbpf's order.
pub(crate) fn link(object: &Object<'_>, kernel: &Kernel) -> Result<Linked, Error> {
    let mut session = LinkSession::new(object, kernel)?;
    let programs = object.codes.programs();
    let loaded = programs.filter(|(id, code)| session.autoload(*id).unwrap_or(code.autoload));
    let loaded: Vec<ProgramId> = loaded.map(|(id, _)| id).collect();
    let together = session.link(&loaded)?;
    let mut maps = session.maps;
    maps.extend(together.jump_tables);
    Ok(Linked {
        programs: together.programs,
        unloadable: together.unloadable,
        maps,
        externs: session.externs,
    })
}

/// An object that is linked for a kernel program by program.
///
/// What does not depend on the linked programs is computed once: externs, struct_ops, map
/// definitions, relocations of functions. A link then costs what its programs contain.
pub struct LinkSession<'o, 'a> {
    object: &'o Object<'a>,
    kernel: &'o Kernel,
    externs: ResolvedExterns,
    bindings: Bindings,
    core: Option<CoreRelocations<'o>>,
    code: Copies,
    /// True if [`Copies::mark_addresses`] was applied to the functions.
    are_functions_marked: bool,
    info: Info<'o>,
    callbacks: Callbacks<'o>,
    placed: Placed,
    maps: Vec<LinkedMap>,
    shared: Shared,
}

/// What all programs of an object have in common.
struct Shared {
    license: Arc<str>,
    maps: Arc<[Arc<MapDef>]>,
    btf: Option<Arc<Btf<'static>>>,
    externs: Arc<[ExternSymbol]>,
    modules: Arc<[String]>,
}

/// Programs linked together.
#[derive(Clone, Debug)]
pub struct LinkedPrograms {
    /// Loadable programs, in the object's order.
    pub programs: Vec<LinkedProgram>,
    /// Programs that are linked and cannot be loaded.
    pub unloadable: Vec<UnloadableProgram>,
    /// Maps of jump tables, which follow the maps of the object.
    pub(crate) jump_tables: Vec<LinkedMap>,
}

impl<'o, 'a> LinkSession<'o, 'a> {
    /// Resolves externs and struct_ops.
    pub(crate) fn new(
        object: &'o Object<'a>,
        kernel: &'o Kernel,
    ) -> Result<LinkSession<'o, 'a>, Error> {
        LinkSession::with_externs(object, kernel, &object.externs)
    }

    /// Resolves struct_ops, and these externs, which differ from the object's in what is weak.
    pub(crate) fn with_externs(
        object: &'o Object<'a>,
        kernel: &'o Kernel,
        declared: &Externs,
    ) -> Result<LinkSession<'o, 'a>, Error> {
        let (codes, btf) = (&object.codes, object.btf.as_ref());
        let externs = match btf {
            Some(types) => declared.resolve(types, kernel, object.config.as_deref())?,
            None => ResolvedExterns::default(),
        };
        let bindings = object.maps.bind_to_kernel(btf, codes, kernel)?;
        let code = Copies::of(codes)?;
        let (core, info) = match (btf, &object.btf_ext) {
            (Some(types), Some(ext)) => (
                CoreRelocations::of(&object.elf, codes, (types, ext), kernel)?,
                Info::of(&object.elf, types, ext),
            ),
            _ => (None, Info::default()),
        };
        let maps = Creation {
            maps: &object.maps,
            codes,
            file: object.file,
            has_btf: btf.is_some(),
            kernel,
            rules: object.loader.rules(),
            externs: &externs,
            bindings: &bindings,
        };
        let maps = maps.maps();
        let shared = Shared {
            license: object.license.as_str().into(),
            maps: maps.iter().map(|map| map.def.clone()).collect(),
            btf: object.shared_btf(),
            externs: declared.symbols(&externs).into(),
            modules: kernel.modules().iter().map(|it| it.name.clone()).collect(),
        };
        Ok(LinkSession {
            object,
            kernel,
            externs,
            bindings,
            core,
            code,
            are_functions_marked: false,
            info,
            callbacks: btf.map(|btf| Callbacks::of(btf, codes)).unwrap_or_default(),
            placed: Placed::new(codes.len()),
            maps,
            shared,
        })
    }

    /// Autoload of a program by the struct_ops that refer to it; `None` if none does.
    pub fn autoload(&self, program: ProgramId) -> Option<bool> {
        self.bindings.autoload(program)
    }

    /// Programs that are loaded because struct_ops refer to them.
    pub(crate) fn struct_ops_programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.bindings.autoloaded()
    }

    /// Links these programs, in the object's order, whatever their autoload.
    pub fn link(&mut self, programs: &[ProgramId]) -> Result<LinkedPrograms, Error> {
        let linked = self.link_together(programs);
        linked.map_err(|error| self.object.with_line_of(&self.info, error))
    }

    fn link_together(&mut self, programs: &[ProgramId]) -> Result<LinkedPrograms, Error> {
        let object = self.object;
        let codes = &object.codes;
        // Programs that others call have a copy, as functions.
        let is_callee = |id: &ProgramId| codes.get(*id).is_some_and(|code| code.is_callee());
        let own: Vec<ProgramId> = programs
            .iter()
            .copied()
            .filter(|id| !is_callee(id))
            .collect();
        for &id in &own {
            self.code.load(codes, id);
        }
        if let Some(core) = &mut self.core {
            let are_functions_new = core.apply(codes, &own, &mut self.code)?;
            self.are_functions_marked &= !are_functions_new;
        }
        if !self.are_functions_marked {
            let functions = codes.iter().filter(|(_, code)| code.is_callee());
            functions.for_each(|(id, _)| self.code.mark_addresses(id, &object.patches));
            self.are_functions_marked = true;
        }
        for &id in &own {
            self.code.mark_addresses(id, &object.patches);
        }
        let mut assembler = Assembler::new(
            (codes, &object.sections),
            &mut self.code,
            &object.patches,
            &self.info,
            object.loader.rules().subprogs,
            &mut self.placed,
        );
        let mut assemblies = Vec::with_capacity(programs.len());
        for &id in programs {
            let callback = || match object.loader.rules().has_exception_callbacks {
                true => self.callbacks.of_program(codes, id),
                false => Ok(None),
            };
            assemblies.push((id, assembler.assemble(id, callback)?));
        }
        let mut data = Data {
            elf: &object.elf,
            sections: &object.sections,
            codes,
            patches: &object.patches,
            maps: &object.maps,
            externs: &object.externs,
            resolved: &self.externs,
            arena_offset: object.maps.arena_offset(self.kernel) as u32,
            jump_tables: Vec::new(),
            jump_table_at: HashMap::new(),
        };
        for (id, assembly) in &mut assemblies {
            data.patch(*id, assembly)?;
        }
        let jump_tables: Vec<LinkedMap> = data.jump_tables.into_iter().map(jump_table).collect();
        let maps = match jump_tables.is_empty() {
            true => self.shared.maps.clone(),
            false => {
                let added = jump_tables.iter().map(|map| &map.def);
                self.shared.maps.iter().chain(added).cloned().collect()
            }
        };
        let mut finishing = Finishing {
            object,
            kernel: self.kernel,
            bindings: &self.bindings,
            resolved: &self.externs,
            shared: &self.shared,
            maps,
            programs: Vec::with_capacity(assemblies.len()),
            unloadable: Vec::new(),
        };
        for (id, made) in assemblies {
            finishing.program(id, made)?;
        }
        Ok(LinkedPrograms {
            programs: finishing.programs,
            unloadable: finishing.unloadable,
            jump_tables,
        })
    }
}

/// Last step of linking: from instructions to programs.
struct Finishing<'o, 'a> {
    object: &'o Object<'a>,
    kernel: &'o Kernel,
    bindings: &'o Bindings,
    resolved: &'o ResolvedExterns,
    shared: &'o Shared,
    maps: Arc<[Arc<MapDef>]>,
    programs: Vec<LinkedProgram>,
    unloadable: Vec<UnloadableProgram>,
}

impl Finishing<'_, '_> {
    fn program(&mut self, id: ProgramId, made: Assembly) -> Result<(), Error> {
        let codes = &self.object.codes;
        let Some(code) = codes.get(id) else {
            return Ok(());
        };
        let subprogs = made.pieces.iter().map(|piece| {
            let function = codes.get(piece.id).map(|code| code.name);
            Subprog {
                name: function.unwrap_or_default().to_string(),
                start: piece.start,
            }
        });
        let subprogs: Vec<Subprog> = subprogs.collect();
        let flags = code.flags.with(code.section_flags());
        let member = self.bindings.of(id).map(|binding| AttachTarget {
            btf_id: binding.table,
            module: binding.module,
            member: Some(binding.member),
            program: None,
        });
        let given = member.or_else(|| code.attach_target.clone());
        let located = |error: Error| {
            let error = error.in_section(code.section_name).in_program(code.name);
            error.by(self.object.loader)
        };
        let line_info = made.lines.unwrap_or_default();
        let attachment = attachment(code, given, self.kernel).map_err(Error::from);
        let unlinked = made.unlinked.or_else(|| self.left_out(&made.references));
        let attachment = attachment.and_then(|attachment| match unlinked {
            Some(error) => Err(error),
            None => Ok(attachment),
        });
        let (kind, attach_type, target) = match attachment {
            Ok(attachment) => attachment,
            Err(error) => {
                self.unloadable.push(UnloadableProgram {
                    id,
                    error: located(error),
                    name: code.name.to_string(),
                    section: code.section_name.to_string(),
                    kind: code.kind,
                    attach_type: code.attach,
                    flags,
                    insns: made.slots,
                    subprogs,
                    line_info,
                    references: made.references,
                });
                return Ok(());
            }
        };
        let func_info: Vec<FuncInfo> = made.functions.unwrap_or_default();
        let failed = self.failed_relocations(&made.references);
        let program = Program::builder(kind, made.slots)
            .name(code.name.to_string())
            .section(code.section_name.to_string())
            .attach_type(attach_type)
            .attach_target(target)
            .flags(flags)
            .subprogs(subprogs)
            .maps(self.maps.clone())
            .btf(self.shared.btf.clone())
            .func_info(func_info)
            .line_info(line_info)
            .failed_relocations(failed)
            .externs(self.shared.externs.clone())
            .modules(self.shared.modules.clone())
            .license(self.shared.license.clone())
            .kernel_version(
                self.object
                    .kernel_version
                    .unwrap_or(self.kernel.version_code()),
            )
            .build()
            .map_err(|fault| located(ProgramFault(fault).into()))?;
        self.programs.push(LinkedProgram {
            id,
            program,
            references: made.references,
        });
        Ok(())
    }
    /// Error of the first reference to what the data of the kernel leave out.
    fn left_out(&self, references: &[Reference]) -> Option<Error> {
        references.iter().find_map(|reference| match reference.to {
            Referent::LeftOut(spec) => {
                let what = match self.absence(&spec) {
                    Some(Absence::NoType { name }) => name,
                    Some(Absence::NoPart { of, part, .. }) => format!("{part} of {of}"),
                    Some(other) => other.to_string(),
                    None => String::from("what the relocation refers to"),
                };
                Some(RelocationFault::LeftOut { what }.into())
            }
            Referent::Address(id) if self.resolved.get(id) == ExternResolution::Unknown => {
                let name = self.object.externs.get(id).map(|known| known.name.as_str());
                Some(Error::new(ExternFault::NoSymbols).about(name.unwrap_or_default()))
            }
            _ => None,
        })
    }

    /// The failed CO-RE relocations among references.
    fn failed_relocations(&self, references: &[Reference]) -> Vec<FailedRelocation> {
        let failed = references.iter().filter_map(|reference| {
            let Referent::MissingCore(spec) = reference.to else {
                return None;
            };
            let types = self.object.btf.as_ref()?;
            Some(FailedRelocation {
                insn: reference.slot,
                access: Path::parse(types, &spec).ok()?.label(),
                absence: self.absence(&spec)?.to_string(),
            })
        });
        failed.collect()
    }

    fn absence(&self, spec: &CoreSpec) -> Option<Absence> {
        self.object.absence(spec, self.kernel)
    }
}

impl Object<'_> {
    /// Reason why the types of a kernel lack the access of a CO-RE relocation; `None` if the
    /// relocation is malformed, or there are no types.
    pub fn absence(&self, spec: &CoreSpec, kernel: &Kernel) -> Option<Absence> {
        let types = self.btf.as_ref()?;
        if let Some(core) = kernel.core_btf() {
            return Absence::of(types, core, &[], spec).ok();
        }
        let modules: Vec<&Btf<'_>> = kernel.modules().iter().map(|it| &*it.btf).collect();
        Absence::of(types, kernel.btf()?, &modules, spec).ok()
    }
}
