//! What each section of the file is for, by its name and kind.
//!
//! The names are conventions of clang and libbpf: `license`, `version`, `.maps`,
//! `.BTF`, `.data*`, `.rodata*`, `.bss*`, `.struct_ops*`, `.addr_space.1`,
//! `.jumptables`; a section with instructions is one of programs, `.text` that of
//! functions that programs call. What has no meaning here is passed over.

use std::fmt;

use crate::elf::{Elf, Section, SectionId, SectionKind};
use crate::error::{Blame, Error, FORMAT};

/// The sections of an object that mean something.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// What each section is, by number.
    roles: Vec<Role>,
    /// The functions that programs call.
    pub text: Option<SectionId>,
    /// The definitions of maps.
    pub maps: Option<SectionId>,
    /// The licence.
    pub license: Option<SectionId>,
    /// The kernel version.
    pub version: Option<SectionId>,
    /// The types.
    pub types: Option<SectionId>,
    /// What instructions have to do with types.
    pub types_of_code: Option<SectionId>,
    /// Variables in an arena.
    pub arena: Option<SectionId>,
    /// Tables of places to jump to.
    pub jump_tables: Option<SectionId>,
    /// Relocations that matter, in the order of the file.
    pub relocations: Vec<SectionId>,
}

/// What a section is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing to us, or something of which there is only one.
    #[default]
    Other,
    /// Instructions.
    Code,
    /// Variables with a value.
    Data,
    /// Constants.
    Constants,
    /// Variables that start as zero.
    Zeros,
    /// Tables of functions for the kernel.
    StructOps,
}

/// What is wrong with the sections as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionFault {
    /// Maps in the old way, as structures in a section `maps`.
    OldMaps,
    /// The version is no four bytes.
    Version,
    /// The licence has no bytes.
    License,
    /// A section of types is not of the kind that holds bytes.
    TypesKind,
}

impl SectionFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            SectionFault::OldMaps => Blame::User,
            _ => Blame::File,
        }
    }

    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        match self {
            SectionFault::OldMaps => 95,
            _ => FORMAT,
        }
    }
}

impl fmt::Display for SectionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionFault::OldMaps => write!(
                f,
                "maps are defined in the old way, in a section \"maps\", which libbpf dropped \
                 with version 1.0: define them in SEC(\".maps\") with __uint and __type"
            ),
            SectionFault::Version => write!(f, "the kernel version is no number of 32 bits"),
            SectionFault::License => write!(f, "the licence is missing"),
            SectionFault::TypesKind => write!(f, "a section of types without bytes"),
        }
    }
}

impl Sections {
    /// Finds out what each section is for.
    pub fn of(elf: &Elf<'_>) -> Result<Sections, Error> {
        let mut found = Sections {
            roles: vec![Role::Other; elf.sections().len()],
            ..Sections::default()
        };
        for section in elf.sections().iter().skip(1) {
            if !is_ignored(section) {
                found
                    .take(elf, section)
                    .map_err(|error| error.in_section(section.name))?;
            }
        }
        Ok(found)
    }

    fn take(&mut self, elf: &Elf<'_>, section: &Section<'_>) -> Result<(), Error> {
        let data = section.data()?;
        let id = Some(section.id);
        match (section.name.as_bytes(), section.kind) {
            (b"license", kind) => {
                if kind == SectionKind::Zeros || data.is_empty() {
                    return Err(SectionFault::License.into());
                }
                self.license = id;
            }
            (b"version", _) if data.len() != 4 => return Err(SectionFault::Version.into()),
            (b"version", _) => self.version = id,
            (b"maps", _) => return Err(SectionFault::OldMaps.into()),
            (b".maps", _) => self.maps = id,
            (b".BTF" | b".BTF.ext", kind) if kind != SectionKind::Bytes => {
                return Err(SectionFault::TypesKind.into());
            }
            (b".BTF", _) => self.types = id,
            (b".BTF.ext", _) => self.types_of_code = id,
            (_, SectionKind::Symbols) => {}
            (name, SectionKind::Bytes) if !data.is_empty() => {
                self.take_bytes(section, name);
            }
            (name, SectionKind::Relocations) => {
                if section.entry_size != 16 || elf.section(section.target).is_none() {
                    return Err(crate::elf::ElfFault::BadRelocations.into());
                }
                let for_code = elf.section(section.target).is_some_and(|it| it.executable);
                if for_code || has_relocated_values(name) {
                    self.relocations.push(section.id);
                }
            }
            (name, SectionKind::Zeros) if is_or_starts(name, b".bss") => {
                self.roles[section.id.0 as usize] = Role::Zeros;
            }
            _ => {}
        }
        Ok(())
    }

    fn take_bytes(&mut self, section: &Section<'_>, name: &[u8]) {
        let role = match name {
            _ if section.executable => {
                if name == b".text" {
                    self.text = Some(section.id);
                }
                Role::Code
            }
            name if is_or_starts(name, b".data") => Role::Data,
            name if is_or_starts(name, b".rodata") => Role::Constants,
            name if is_struct_ops(name) => Role::StructOps,
            b".addr_space.1" => {
                self.arena = Some(section.id);
                Role::Other
            }
            b".jumptables" => {
                self.jump_tables = Some(section.id);
                Role::Other
            }
            _ => Role::Other,
        };
        self.roles[section.id.0 as usize] = role;
    }

    /// What the section of that number is.
    pub fn role(&self, id: SectionId) -> Role {
        self.roles.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// The sections with this role, by number.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = SectionId> + '_ {
        let all = self.roles.iter().zip(0..);
        all.filter(move |(its, _)| **its == role)
            .map(|(_, id)| SectionId(id))
    }
}

/// Sections that no loader looks into, so that damage there does not matter.
fn is_ignored(section: &Section<'_>) -> bool {
    let name = section.name.as_bytes();
    let relocated = name.strip_prefix(b".rel").unwrap_or_default();
    let is_debug = |name: &[u8]| name.starts_with(b".debug_");
    matches!(
        section.kind,
        SectionKind::Names | SectionKind::AddressSignificance
    ) || section.kind == SectionKind::Bytes && section.size == 0 && name == b".text"
        || is_debug(name)
        || is_debug(relocated)
        || matches!(relocated, b".BTF" | b".BTF.ext")
}

/// Is it that name, or that name, a dot and more?
fn is_or_starts(name: &[u8], stem: &[u8]) -> bool {
    name.strip_prefix(stem)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

fn is_struct_ops(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"?").unwrap_or(name);
    matches!(name, b".struct_ops" | b".struct_ops.link")
}

/// Relocations of values, not of instructions, that loaders know.
fn has_relocated_values(name: &[u8]) -> bool {
    let of = name.strip_prefix(b".rel").unwrap_or_default();
    of == b".maps" || is_struct_ops(of)
}
