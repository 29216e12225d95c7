//! An object that was read, and what its user may change before it is linked.

use std::sync::{Arc, OnceLock};

use btf::{Btf, BtfExt, Kind, Linkage, Shape};

use crate::container::ContainerFault;
use crate::datasec;
use crate::elf::{Elf, SectionId};
use crate::error::{Error, Problem, SourceLine};
use crate::externs::Externs;
use crate::linked::{Linked, link};
use crate::maps::{Maps, Source};
use crate::programs::{Code, Codes, ProgramId};
use crate::relocate::info::Info;
use crate::relocate::patches::{Patches, Reader};
use crate::sections::{Role, Sections};
use crate::types::read_types;
use spec::Kernel;

/// The longest licence, in bytes.
const LONGEST_LICENSE: usize = 63;
/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 15;

/// How an object is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions<'o> {
    /// What the object is called: its name is a part of the names of some of its
    /// maps. Of a path, what follows the last slash counts, up to the first dot.
    pub name: Option<&'o str>,
    /// Pass over attributes of maps that nobody knows.
    pub relaxed_maps: bool,
    /// Where maps that ask for it are pinned; `/sys/fs/bpf` if not said.
    pub pin_root: Option<&'o str>,
    /// Configuration that goes before the kernel's own: lines `CONFIG_NAME=value`.
    pub config: Option<&'o str>,
}

/// An object: programs, maps, types, and what they need of a kernel.
///
/// It borrows the bytes of its file.
#[derive(Debug)]
pub struct Object<'a> {
    /// The bytes of the file.
    pub(crate) file: &'a [u8],
    pub(crate) name: String,
    pub(crate) elf: Elf<'a>,
    pub(crate) sections: Sections,
    pub(crate) types: Option<Btf<'a>>,
    pub(crate) types_of_code: Option<BtfExt<'a>>,
    pub(crate) license: String,
    pub(crate) kernel_version: Option<u32>,
    pub(crate) codes: Codes<'a>,
    pub(crate) externs: Externs,
    pub(crate) maps: Maps<'a>,
    pub(crate) patches: Patches,
    pub(crate) config: Option<String>,
    /// The types as programs share them, once one was linked.
    pub(crate) shared_types: OnceLock<Arc<Btf<'static>>>,
}

impl<'a> Object<'a> {
    /// Opens an object file.
    pub fn open(file: &'a [u8]) -> Result<Object<'a>, Error> {
        Object::open_with(file, &OpenOptions::default())
    }

    /// Opens an object file as these options say.
    pub fn open_with(file: &'a [u8], options: &OpenOptions<'_>) -> Result<Object<'a>, Error> {
        let opened = Object::read(file, options);
        opened.map_err(|error| match options.name {
            Some(name) => error.in_file(name),
            None => error,
        })
    }

    /// The steps are in libbpf's order, so that of several faults the same one is
    /// found first.
    fn read(file: &'a [u8], options: &OpenOptions<'_>) -> Result<Object<'a>, Error> {
        let elf = Elf::parse(file).map_err(|error| match error.problem() {
            Problem::Elf(fault) if fault.is_about_kind() => ContainerFault::of(file).into(),
            _ => error,
        })?;
        let sections = Sections::of(&elf)?;
        let codes = Codes::of(&elf, &sections)?;
        let (mut types, types_of_code) = read_types(&elf, &sections)?;
        let externs = Externs::collect(&elf, types.as_mut())?;
        if let Some(types) = &mut types {
            datasec::complete(&elf, types)?;
        }
        let name = short_name(options.name.unwrap_or("object"));
        let maps = Maps::collect(&Source {
            elf: &elf,
            sections: &sections,
            btf: types.as_ref(),
            externs: &externs,
            name: &name,
            relaxed: options.relaxed_maps,
            pin_root: options.pin_root,
        })?;
        if let Some(types) = &mut types {
            hide_functions(&codes, types);
        }
        let mut object = Object {
            file,
            name,
            license: license(&elf, &sections),
            kernel_version: kernel_version(&elf, &sections),
            elf,
            sections,
            types,
            types_of_code,
            codes,
            externs,
            maps,
            patches: Patches::default(),
            config: options.config.map(str::to_owned),
            shared_types: OnceLock::new(),
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
            let types = self.types.as_ref();
            if self.sections.role(table.target) == Role::StructOps {
                self.maps
                    .bind_struct_ops(&self.elf, types, &self.codes, table)?;
            } else if self.sections.maps == Some(table.target) {
                self.maps
                    .add_initial_values(&self.elf, types, &self.codes, table)?;
            } else {
                let reader = Reader {
                    elf: &self.elf,
                    sections: &self.sections,
                    codes: &self.codes,
                    externs: &self.externs,
                    maps: &self.maps,
                };
                reader.read(table, &mut collected)?;
            }
        }
        self.patches = Patches::new(collected, self.codes.len());
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The licence that it states, empty if it states none.
    pub fn license(&self) -> &str {
        &self.license
    }

    /// The kernel version that it states.
    pub fn kernel_version(&self) -> Option<u32> {
        self.kernel_version
    }

    /// The file's tables.
    pub fn elf(&self) -> &Elf<'a> {
        &self.elf
    }

    /// What its sections are for.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Its types, as a kernel will get them.
    pub fn types(&self) -> Option<&Btf<'a>> {
        self.types.as_ref()
    }

    /// Its types in memory of their own, shared by the programs that are linked.
    pub(crate) fn shared_types(&self) -> Option<Arc<Btf<'static>>> {
        let types = self.types.as_ref()?;
        let shared = self.shared_types.get_or_init(|| Arc::new(types.to_owned()));
        Some(shared.clone())
    }

    /// What its instructions have to do with its types.
    pub fn types_of_code(&self) -> Option<&BtfExt<'a>> {
        self.types_of_code.as_ref()
    }

    /// Its programs, without the functions that they call.
    pub fn programs(&self) -> impl Iterator<Item = (ProgramId, &Code<'a>)> {
        self.codes.programs()
    }

    /// Its programs and the functions that they call.
    pub fn codes(&self) -> &Codes<'a> {
        &self.codes
    }

    /// The program of that name.
    pub fn program(&self, name: &str) -> Option<&Code<'a>> {
        let id = self.codes.program_named(name.as_bytes())?;
        self.codes.get(id)
    }

    /// The program of that name, to change what it is and whether it is loaded.
    pub fn program_mut(&mut self, name: &str) -> Option<&mut Code<'a>> {
        let id = self.codes.program_named(name.as_bytes())?;
        self.codes.get_mut(id)
    }

    /// Says of each program whether it is to be loaded.
    pub fn set_autoload(&mut self, mut choose: impl FnMut(&Code<'a>) -> bool) {
        for id in 0..self.codes.len() as u32 {
            if let Some(code) = self.codes.get_mut(ProgramId(id))
                && !code.is_function
            {
                code.autoload = choose(code);
            }
        }
    }

    /// Its maps.
    pub fn maps(&self) -> &Maps<'a> {
        &self.maps
    }

    /// Its maps, to change sizes, contents and whether they are created.
    pub fn maps_mut(&mut self) -> &mut Maps<'a> {
        &mut self.maps
    }

    /// What it expects of the kernel.
    pub fn externs(&self) -> &Externs {
        &self.externs
    }

    /// Links what is to be loaded for this kernel.
    pub fn link(&self, kernel: &Kernel) -> Result<Linked, Error> {
        link(self, kernel).map_err(|error| self.with_line(error))
    }

    /// The source line of a slot of a section.
    pub fn line(&self, section: SectionId, slot: usize) -> Option<SourceLine> {
        let (types, ext) = (self.types.as_ref()?, self.types_of_code.as_ref()?);
        let line = Info::of(&self.elf, types, ext).line(section, slot)?;
        Some(SourceLine {
            file: types.string(line.file).to_string(),
            line: line.line,
            column: line.column,
            text: types.string(line.text).to_string(),
        })
    }

    /// The same error, with the line of the instruction that it is about.
    fn with_line(&self, error: Error) -> Error {
        let place = error.place();
        let line = place.instruction.and_then(|slot| {
            let name = place.program.as_deref()?;
            let named = |code: &Code<'_>| code.name.as_bytes() == name.as_bytes();
            let (_, code) = self.codes.iter().find(|(_, code)| named(code))?;
            self.line(code.section, slot)
        });
        error.on_line(line)
    }
}

/// What follows the last slash, up to the first dot, as far as a kernel takes it.
fn short_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let mut end = stem.len().min(LONGEST_NAME);
    while !stem.is_char_boundary(end) {
        end -= 1;
    }
    stem[..end].to_owned()
}

fn license(elf: &Elf<'_>, sections: &Sections) -> String {
    let section = sections.license.and_then(|id| elf.section(id));
    let bytes = section
        .and_then(|section| section.data().ok())
        .unwrap_or_default();
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end.min(LONGEST_LICENSE)]).into_owned()
}

fn kernel_version(elf: &Elf<'_>, sections: &Sections) -> Option<u32> {
    let section = elf.section(sections.version?)?;
    let bytes = section.data().ok()?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// Global functions that are hidden become static ones to the kernel, which then
/// judges them together with their callers.
fn hide_functions(codes: &Codes<'_>, types: &mut Btf<'_>) {
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
