//! Classification of sections by name and type.
//!
//! The names are conventions of clang and the loader: `license`, `version`, `.maps`, `.BTF`,
//! `.data*`, `.rodata*`, `.bss*`, `.struct_ops*`, `.addr_space.1`, `.jumptables`; an
//! executable section contains programs, `.text` the functions that programs call. Other
//! sections are ignored.

use std::fmt;

use spec::Errno;
use spec::loader::{LoaderKind, LoaderRules, StructOpsRule};

use crate::elf::{Elf, Section, SectionId, SectionKind};
use crate::error::{Blame, Error, FORMAT};

/// Sections of an object by role.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    /// Role of each section, by index.
    roles: Vec<Role>,
    /// `.text`: functions that programs call.
    pub text: Option<SectionId>,
    /// Other sections of such functions.
    more_text: Vec<SectionId>,
    /// True if functions in program sections are called too.
    calls_programs: bool,
    /// `.maps`: map definitions.
    pub maps: Option<SectionId>,
    /// Legacy map definitions: `maps`, which libbpf 1.0 dropped, and `maps/NAME`; for some
    /// loaders every section that begins with `maps`.
    pub legacy_maps: Vec<SectionId>,
    /// `license`.
    pub license: Option<SectionId>,
    /// `version`: the kernel version.
    pub version: Option<SectionId>,
    /// `.BTF`.
    pub btf: Option<SectionId>,
    /// `.BTF.ext`.
    pub btf_ext: Option<SectionId>,
    /// Variables in an arena.
    pub arena: Option<SectionId>,
    /// `.jumptables`: jump tables.
    pub jump_tables: Option<SectionId>,
    /// Relocation sections that are applied, in file order.
    pub relocations: Vec<SectionId>,
}

/// Role of a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Ignored, or a unique section.
    #[default]
    Other,
    /// Instructions.
    Code,
    /// Initialised variables.
    Data,
    /// Constants.
    Constants,
    /// Zero-initialised variables.
    Zeros,
    /// struct_ops.
    StructOps,
}

/// Fault of the sections as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionFault {
    /// Legacy map definitions in a section `maps`.
    LegacyMaps,
    /// The `version` does not have four bytes.
    Version,
    /// The `license` has no bytes.
    License,
    /// A BTF section is not SHT_PROGBITS.
    TypesKind,
    /// `.struct_ops`, for a loader that takes `.struct_ops.link` only.
    StructOps,
}

impl SectionFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            SectionFault::LegacyMaps | SectionFault::StructOps => Blame::User,
            _ => Blame::File,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            SectionFault::LegacyMaps | SectionFault::StructOps => Errno::EOPNOTSUPP,
            _ => FORMAT,
        }
    }
}

impl fmt::Display for SectionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SectionFault::LegacyMaps => write!(
                f,
                "legacy map definitions in a section \"maps\", which libbpf dropped \
                 with version 1.0: define them in SEC(\".maps\") with __uint and __type"
            ),
            SectionFault::Version => write!(f, "section version does not have 4 bytes"),
            SectionFault::License => write!(f, "section license is empty"),
            SectionFault::TypesKind => write!(f, "BTF section has no bytes in the file"),
            SectionFault::StructOps => {
                write!(
                    f,
                    "struct_ops that are registered without a link: use .struct_ops.link"
                )
            }
        }
    }
}

impl std::error::Error for SectionFault {}

impl Sections {
    /// Classifies the sections of a file by the conventions of a loader.
    pub fn of(elf: &Elf<'_>, rules: &LoaderRules) -> Result<Sections, Error> {
        Sections::classify_all(elf, (rules, rules.legacy_maps.is_some()))
    }

    /// Classifies the sections of a file, legacy map definitions included.
    pub(crate) fn with_legacy_maps(elf: &Elf<'_>) -> Result<Sections, Error> {
        Sections::classify_all(elf, (LoaderKind::Libbpf.rules(), true))
    }

    fn classify_all(
        elf: &Elf<'_>,
        (rules, accepts_legacy): (&LoaderRules, bool),
    ) -> Result<Sections, Error> {
        let mut found = Sections {
            roles: vec![Role::Other; elf.sections().len()],
            calls_programs: rules.calls_programs,
            ..Sections::default()
        };
        for section in elf.sections().iter().skip(1) {
            if !is_ignored(section) {
                found
                    .classify(elf, section, rules)
                    .map_err(|error| error.in_section(section.name))?;
                let is_legacy = section.name.as_bytes() == b"maps";
                if is_legacy && !accepts_legacy {
                    let error = Error::new(SectionFault::LegacyMaps);
                    return Err(error.in_section(section.name));
                }
            }
        }
        Ok(found)
    }

    fn classify(
        &mut self,
        elf: &Elf<'_>,
        section: &Section<'_>,
        rules: &LoaderRules,
    ) -> Result<(), Error> {
        let data = section.data()?;
        let maps: &[u8] = match &rules.legacy_maps {
            Some(legacy) if legacy.in_prefixed_sections => b"maps",
            _ => b"maps/",
        };
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
            (b"maps", _) => self.legacy_maps.push(section.id),
            (name, SectionKind::Bytes) if name.starts_with(maps) && !section.executable => {
                self.legacy_maps.push(section.id);
            }
            (b".maps", _) => self.maps = id,
            (b".BTF" | b".BTF.ext", kind) if kind != SectionKind::Bytes => {
                return Err(SectionFault::TypesKind.into());
            }
            (b".BTF", _) => self.btf = id,
            (b".BTF.ext", _) => self.btf_ext = id,
            (_, SectionKind::Symbols) => {}
            (name, SectionKind::Bytes) if !data.is_empty() => {
                self.classify_bytes(section, name, rules)?;
            }
            (name, SectionKind::Relocations) => {
                if section.entry_size != 16 || elf.section(section.target).is_none() {
                    return Err(crate::elf::ElfFault::BadRelocations.into());
                }
                let for_code = elf.section(section.target).is_some_and(|it| it.executable);
                if for_code || has_relocated_values(name, rules) {
                    self.relocations.push(section.id);
                }
            }
            (name, SectionKind::Zeros)
                if name == b".bss" || rules.has_named_bss && name.starts_with(b".bss.") =>
            {
                self.roles[section.id.0 as usize] = Role::Zeros;
            }
            _ => {}
        }
        Ok(())
    }

    fn classify_bytes(
        &mut self,
        section: &Section<'_>,
        name: &[u8],
        rules: &LoaderRules,
    ) -> Result<(), SectionFault> {
        let has_arena_and_jump_tables = rules.has_arena_and_jump_tables;
        let role = match name {
            _ if section.executable => {
                if name == b".text" {
                    self.text = Some(section.id);
                } else if rules.has_text_sections && name.starts_with(b".text") {
                    self.more_text.push(section.id);
                }
                Role::Code
            }
            name if is_or_starts(name, b".data") => Role::Data,
            name if is_or_starts(name, b".rodata") => Role::Constants,
            b".struct_ops" if rules.struct_ops == StructOpsRule::OnlyLink => {
                return Err(SectionFault::StructOps);
            }
            name if is_struct_ops(name, rules) => Role::StructOps,
            b".addr_space.1" if has_arena_and_jump_tables => {
                self.arena = Some(section.id);
                Role::Other
            }
            b".jumptables" if has_arena_and_jump_tables => {
                self.jump_tables = Some(section.id);
                Role::Other
            }
            _ => Role::Other,
        };
        self.roles[section.id.0 as usize] = role;
        Ok(())
    }

    /// True if the section has no programs, but functions that they call.
    pub(crate) fn is_text(&self, id: SectionId) -> bool {
        self.text == Some(id) || self.more_text.contains(&id)
    }

    /// True if the section has functions that programs of other sections call.
    pub(crate) fn has_functions(&self, id: SectionId) -> bool {
        self.text == Some(id) || self.calls_programs && self.role(id) == Role::Code
    }

    /// Section of the functions that instructions of a section call without a relocation. libbpf
    /// looks in `.text` only.
    pub(crate) fn called_from(&self, id: SectionId) -> Option<SectionId> {
        match self.calls_programs {
            true => Some(id),
            false => self.text,
        }
    }

    /// Role of the section with this index.
    pub fn role(&self, id: SectionId) -> Role {
        self.roles.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Sections with this role, by index.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = SectionId> + '_ {
        let all = self.roles.iter().zip(0..);
        all.filter(move |(its, _)| **its == role)
            .map(|(_, id)| SectionId(id))
    }
}

/// True for sections that libbpf ignores, where damage does not matter.
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

/// True for this name, and for this name followed by a dot.
fn is_or_starts(name: &[u8], stem: &[u8]) -> bool {
    name.strip_prefix(stem)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

fn is_struct_ops(name: &[u8], rules: &LoaderRules) -> bool {
    match rules.struct_ops {
        StructOpsRule::Both => {
            let name = name.strip_prefix(b"?").unwrap_or(name);
            matches!(name, b".struct_ops" | b".struct_ops.link")
        }
        StructOpsRule::WithoutLink => name == b".struct_ops",
        StructOpsRule::OnlyLink => name == b".struct_ops.link",
    }
}

/// True for sections whose values, not instructions, are relocated.
fn has_relocated_values(name: &[u8], rules: &LoaderRules) -> bool {
    let of = name.strip_prefix(b".rel").unwrap_or_default();
    of == b".maps" || is_struct_ops(of, rules)
}
