//! An opened object and the settings that may change before linking.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use btf::ext::CoreKind;
use btf::{Btf, BtfExt, Kind, Linkage, Shape};

use crate::container::ContainerFault;
use crate::datasec;
use crate::elf::{Elf, SectionId};
use crate::error::{Error, Problem, SourceLine};
use crate::externs::{ExternFault, Externs, Undefined};
use crate::guess::Guess;
use crate::linked::{LinkSession, Linked, link};
use crate::maps::{Maps, Source};
use crate::programs::{ProgramDef, ProgramDefs, ProgramId};
use crate::relocate::RelocationFault;
use crate::relocate::assemble::is_local_call;
use crate::relocate::info::Info;
use crate::relocate::patches::{Patches, Reader, callee};
use crate::sections::{Role, Sections};
use crate::types::read_types;
use program::{AttachTarget, Program};
use spec::Kernel;
use spec::loader::LoaderKind;
use spec::programs::ProgramType;

/// Maximum length of the licence in bytes.
const MAX_LICENSE: usize = 63;

/// Options of opening an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions<'o> {
    /// Name or path of the object; part of the names of its global data maps. Of a path,
    /// the last component counts, up to the first dot.
    pub name: Option<&'o str>,
    /// True for a name that counts as it is (`object_name` of `bpf_object_open_opts`).
    pub keeps_name: bool,
    /// True to ignore unknown attributes of maps (`relaxed_maps`).
    pub relaxed_maps: bool,
    /// Directory in which maps are pinned; `/sys/fs/bpf` by default.
    pub pin_root: Option<&'o str>,
    /// Kernel configuration that overrides the kernel's own: lines `CONFIG_NAME=value`.
    pub config: Option<&'o str>,
    /// Loader whose conventions the object follows.
    pub loader: LoaderKind,
    /// Values of undefined symbols that the loader defines; [`Object::check_defines`] checks that
    /// the object has them.
    pub defines: &'o [(String, u64)],
}

/// An opened object: programs, maps, BTF and externs. It borrows the bytes of its file.
#[derive(Debug)]
pub struct Object<'a> {
    /// Bytes of the file.
    pub(crate) file: &'a [u8],
    pub(crate) name: String,
    pub(crate) loader: LoaderKind,
    pub(crate) guess: Option<Guess>,
    pub(crate) elf: Elf<'a>,
    pub(crate) sections: Sections,
    pub(crate) btf: Option<Btf<'a>>,
    pub(crate) btf_ext: Option<BtfExt<'a>>,
    pub(crate) license: String,
    pub(crate) kernel_version: Option<u32>,
    pub(crate) codes: ProgramDefs<'a>,
    pub(crate) externs: Externs,
    pub(crate) maps: Maps<'a>,
    pub(crate) patches: Patches,
    pub(crate) config: Option<String>,
    /// BTF shared by linked programs, set by the first link.
    pub(crate) shared_btf: OnceLock<Arc<Btf<'static>>>,
}

impl<'a> Object<'a> {
    /// Opens an object file.
    pub fn open(file: &'a [u8]) -> Result<Object<'a>, Error> {
        Object::open_with(file, &OpenOptions::default())
    }

    /// Bytes of the file.
    pub fn file(&self) -> &'a [u8] {
        self.file
    }

    /// Opens an object file with options.
    pub fn open_with(file: &'a [u8], options: &OpenOptions<'_>) -> Result<Object<'a>, Error> {
        let opened = Object::read(file, options);
        opened.map_err(|error| match options.name {
            Some(name) => error.by(options.loader).in_file(name),
            None => error.by(options.loader),
        })
    }

    /// Steps in libbpf's order, so that the first of several faults is the same.
    fn read(file: &'a [u8], options: &OpenOptions<'_>) -> Result<Object<'a>, Error> {
        let elf = Elf::parse(file).map_err(|error| match error.problem() {
            Problem::Elf(fault) if fault.is_about_kind() => ContainerFault::of(file).into(),
            _ => error,
        })?;
        let rules = options.loader.rules();
        let sections = Sections::of(&elf, rules)?;
        let codes = ProgramDefs::of(&elf, &sections, options.loader)?;
        let (mut types, btf_ext) = read_types(&elf, &sections, rules)?;
        if let Some(ext) = btf_ext.as_ref().filter(|_| !rules.has_type_matches) {
            let mut relocations = ext.relocations().flat_map(|section| section.records());
            if relocations.any(|relocation| relocation.spec.kind == CoreKind::TYPE_MATCHES) {
                return Err(RelocationFault::TypeMatches.into());
            }
        }
        let undefined = Undefined {
            rules,
            defines: options.defines,
        };
        let externs = Externs::collect(&elf, types.as_mut(), &undefined)?;
        if let Some(types) = &mut types {
            datasec::complete(&elf, types, rules)?;
        }
        let name = options.name.unwrap_or("object");
        let name = match options.keeps_name {
            true => cut(name),
            false => short_name(name),
        };
        let maps = Maps::collect(&Source {
            elf: &elf,
            sections: &sections,
            btf: types.as_ref(),
            externs: &externs,
            name: &name,
            rules,
            relaxed: options.relaxed_maps || rules.ignores_attributes,
            pin_root: options.pin_root,
        })?;
        if let Some(types) = &mut types {
            hide_functions(&codes, types);
        }
        let license = license(&elf, &sections);
        let mut object = Object {
            file,
            name,
            loader: options.loader,
            guess: None,
            license: match license.is_empty() {
                true => rules.default_license.to_owned(),
                false => license,
            },
            kernel_version: kernel_version(&elf, &sections),
            elf,
            sections,
            btf: types,
            btf_ext,
            codes,
            externs,
            maps,
            patches: Patches::default(),
            config: options.config.map(str::to_owned),
            shared_btf: OnceLock::new(),
        };
        let read = object.read_relocations();
        read.map_err(|error| object.with_line(error))?;
        Ok(object)
    }

    fn read_relocations(&mut self) -> Result<(), Error> {
        let mut collected = Vec::new();
        for &table in &self.sections.relocations {
            let Some(table) = self.elf.section(table) else {
                continue;
            };
            let types = self.btf.as_ref();
            if self.sections.role(table.target) == Role::StructOps {
                self.maps
                    .bind_struct_ops(&self.elf, types, &self.codes, table)?;
            } else if self.sections.maps == Some(table.target) {
                if !self.loader.rules().has_initial_values {
                    continue;
                }
                self.maps
                    .add_initial_values(&self.elf, types, &self.codes, table)?;
            } else {
                let reader = Reader {
                    elf: &self.elf,
                    sections: &self.sections,
                    codes: &self.codes,
                    externs: &self.externs,
                    rules: self.loader.rules(),
                    maps: &self.maps,
                };
                reader.read(table, &mut collected)?;
            }
        }
        self.patches = Patches::new(collected, self.codes.len());
        if self.loader.rules().calls_programs {
            self.mark_called();
        }
        if self.loader.rules().has_tail_call_sections {
            self.maps.add_tail_calls(&self.codes);
        }
        Ok(())
    }

    /// Marks programs that other functions call.
    fn mark_called(&mut self) {
        let mut called = Vec::new();
        for (id, code) in self.codes.iter() {
            let mut patches = self.patches.of(id).iter().peekable();
            for (slot, insn) in code.slots().enumerate() {
                let patch = patches.next_if(|patch| patch.slot as usize == slot);
                let goal = patch.map(|patch| patch.goal);
                if goal.is_some() || is_local_call(insn) {
                    let places = (&self.codes, &self.sections);
                    called.extend(callee(places, code, slot, (goal, insn.imm)));
                }
            }
        }
        for id in called {
            if let Some(code) = self.codes.get_mut(id) {
                code.is_called = !code.is_function;
            }
        }
    }

    /// Loader whose conventions count.
    pub fn loader(&self) -> LoaderKind {
        self.loader
    }

    /// Why these conventions were chosen, if they were guessed.
    pub fn guess(&self) -> Option<&Guess> {
        self.guess.as_ref()
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Licence; empty if none is stated.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// Kernel version of the section `version`.
    pub fn kernel_version(&self) -> Option<u32> {
        self.kernel_version
    }

    /// Tables of the file.
    pub fn elf(&self) -> &Elf<'a> {
        &self.elf
    }

    /// Sections by role.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// BTF, completed for the kernel.
    pub fn btf(&self) -> Option<&Btf<'a>> {
        self.btf.as_ref()
    }

    /// Owned BTF, shared by linked programs.
    pub(crate) fn shared_btf(&self) -> Option<Arc<Btf<'static>>> {
        let types = self.btf.as_ref()?;
        let shared = self.shared_btf.get_or_init(|| Arc::new(types.to_owned()));
        Some(shared.clone())
    }

    /// `.BTF.ext`.
    pub fn btf_ext(&self) -> Option<&BtfExt<'a>> {
        self.btf_ext.as_ref()
    }

    /// Programs, without the functions that they call.
    pub fn programs(&self) -> impl Iterator<Item = (ProgramId, &ProgramDef<'a>)> {
        self.codes.programs()
    }

    /// Programs and functions.
    pub fn program_defs(&self) -> &ProgramDefs<'a> {
        &self.codes
    }

    /// Program with this name.
    pub fn program(&self, name: &str) -> Option<&ProgramDef<'a>> {
        let id = self.codes.program_named(name.as_bytes())?;
        self.codes.get(id)
    }

    /// Mutable program with this name, to change its type and autoload.
    pub fn program_mut(&mut self, name: &str) -> Option<&mut ProgramDef<'a>> {
        let id = self.codes.program_named(name.as_bytes())?;
        self.codes.get_mut(id)
    }

    /// Mutable program with this index, to change its type and autoload.
    pub fn program_def_mut(&mut self, id: ProgramId) -> Option<&mut ProgramDef<'a>> {
        self.codes.get_mut(id)
    }

    /// Names that a loader may define: undefined symbols, kconfig values and variables of the
    /// kernel.
    pub fn definable(&self) -> BTreeSet<String> {
        self.externs.definable(&self.elf)
    }

    /// Checks that the object has what a loader defines.
    ///
    /// # Errors
    /// For the first name that it has not.
    pub fn check_defines(&self, defines: &[(String, u64)]) -> Result<(), Error> {
        let known = self.definable();
        let mut names = defines.iter().map(|(name, _)| name);
        match names.find(|name| !known.contains(*name)) {
            Some(name) => Err(Error::new(ExternFault::NotUndefined { known }).about(name)),
            None => Ok(()),
        }
    }

    /// Sets the program that freplace programs replace a function of, and that tracing programs
    /// trace a function of if it has one of the name in their section.
    pub fn set_target(&mut self, target: &Arc<Program>) {
        let types = target.btf();
        for id in 0..self.codes.len() as u32 {
            let Some(code) = self.codes.get_mut(ProgramId(id)) else {
                continue;
            };
            let section = code.section_name.to_string();
            let name = code.attach_name.clone();
            let name = name.or_else(|| Some(section.split_once('/')?.1.to_owned()));
            let has_function = || {
                let name = name.as_deref().unwrap_or_default();
                types.is_some_and(|types| types.find(Kind::Func, name).is_some())
            };
            let is_replacement = code.kind == Some(ProgramType::Ext);
            let is_traced = code.kind == Some(ProgramType::Tracing) && has_function();
            if is_replacement || is_traced {
                code.attach_target = Some(AttachTarget {
                    program: Some(Arc::clone(target)),
                    ..AttachTarget::default()
                });
            }
        }
    }

    /// Sets autoload of each program.
    pub fn set_autoload(&mut self, mut choose: impl FnMut(&ProgramDef<'a>) -> bool) {
        for id in 0..self.codes.len() as u32 {
            if let Some(code) = self.codes.get_mut(ProgramId(id))
                && !code.is_function
            {
                code.autoload = choose(code);
            }
        }
    }

    /// Maps.
    pub fn maps(&self) -> &Maps<'a> {
        &self.maps
    }

    /// Mutable maps, to change sizes, contents and autocreate.
    pub fn maps_mut(&mut self) -> &mut Maps<'a> {
        &mut self.maps
    }

    /// Externs.
    pub fn externs(&self) -> &Externs {
        &self.externs
    }

    /// Links the programs to be loaded for this kernel.
    pub fn link(&self, kernel: &Kernel) -> Result<Linked, Error> {
        link(self, kernel).map_err(|error| self.with_line(error))
    }

    /// Linker of single programs for this kernel.
    pub fn link_session<'o>(&'o self, kernel: &'o Kernel) -> Result<LinkSession<'o, 'a>, Error> {
        LinkSession::new(self, kernel).map_err(|error| self.with_line(error))
    }

    /// Source line of a slot of a section.
    pub fn line(&self, section: SectionId, slot: usize) -> Option<SourceLine> {
        let (types, ext) = (self.btf.as_ref()?, self.btf_ext.as_ref()?);
        self.line_in(&Info::of(&self.elf, types, ext), section, slot)
    }

    fn line_in(&self, info: &Info<'_>, section: SectionId, slot: usize) -> Option<SourceLine> {
        let types = self.btf.as_ref()?;
        let line = info.line(section, slot)?;
        Some(SourceLine {
            file: types.string(line.file).to_string(),
            line: line.line,
            column: line.column,
            text: types.string(line.text).to_string(),
        })
    }

    /// Adds the source line of the instruction to an error.
    fn with_line(&self, error: Error) -> Error {
        let error = error.by(self.loader);
        match (&self.btf, &self.btf_ext) {
            (Some(types), Some(ext)) if error.place().instruction.is_some() => {
                self.with_line_of(&Info::of(&self.elf, types, ext), error)
            }
            _ => error,
        }
    }

    /// Adds the source line of the instruction to an error.
    pub(crate) fn with_line_of(&self, info: &Info<'_>, error: Error) -> Error {
        let error = error.by(self.loader);
        let place = error.place();
        let line = place.instruction.and_then(|slot| {
            let name = place.program.as_deref()?;
            let named = |code: &ProgramDef<'_>| code.name.as_bytes() == name.as_bytes();
            let (_, code) = self.codes.iter().find(|(_, code)| named(code))?;
            self.line_in(info, code.section, slot)
        });
        error.on_line(line)
    }
}

/// Last component of a path, up to the first dot, cut to the kernel's length.
fn short_name(path: &str) -> String {
    let file = path.rsplit(std::path::is_separator).next().unwrap_or(path);
    cut(file.split('.').next().unwrap_or(file))
}

/// A name cut to the kernel's length.
fn cut(name: &str) -> String {
    let mut end = name.len().min(spec::maps::MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// Text of the section `license`, cut to the kernel's length.
pub(crate) fn license(elf: &Elf<'_>, sections: &Sections) -> String {
    let section = sections.license.and_then(|id| elf.section(id));
    let bytes = section
        .and_then(|section| section.data().ok())
        .unwrap_or_default();
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end.min(MAX_LICENSE)]).into_owned()
}

fn kernel_version(elf: &Elf<'_>, sections: &Sections) -> Option<u32> {
    let section = elf.section(sections.version?)?;
    let bytes = section.data().ok()?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Makes hidden global functions static, so that the kernel verifies them together with
/// their callers.
fn hide_functions(codes: &ProgramDefs<'_>, types: &mut Btf<'_>) {
    for (_, code) in codes
        .iter()
        .filter(|(_, code)| code.is_function && code.is_hidden)
    {
        let global = types
            .find_all(Kind::Func, code.name.as_bytes())
            .find(|ty| matches!(ty.shape(), Shape::Func(func) if func.linkage == Linkage::GLOBAL));
        if let Some(id) = global.map(|ty| ty.id()) {
            types.set_linkage(id, Linkage::STATIC);
        }
    }
}
