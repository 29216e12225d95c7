//! Files that hold objects: what they are by their first bytes, their names in results, and which of
//! several defines what another one only declares.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use btf::Linkage;

use super::loading::ObjectLoading;
use super::object::elf::{Binding, Elf, ElfFault};
use super::object::{
    AttachFault, Blame, Error, ExternFault, LinkReport, MapFault, Problem, ProgramDefFault,
    ProgramLinkReport, RelocationFault, SectionFault, UnlinkedObject,
};

/// True for the bytes of an ELF file, or of an archive of such.
pub fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.starts_with(b"!<arch>\n")
}

/// What files are called in results: the last parts of their paths, as veristat has them, and
/// paths as given where several files have the same last part.
pub fn short_names(files: &[PathBuf]) -> Vec<String> {
    let last = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_owned();
    let mut paths: HashMap<_, HashSet<&PathBuf>> = HashMap::new();
    for file in files {
        paths.entry(last(file)).or_default().insert(file);
    }
    let name = |file: &PathBuf| match paths[&last(file)].len() {
        1 => last(file).display().to_string(),
        _ => file.display().to_string(),
    };
    files.iter().map(name).collect()
}

impl ObjectLoading {
    /// The object as the compiler wrote it, if the loader refuses it only for its byte
    /// order, its legacy map definitions, static programs, or how its maps are declared.
    pub fn unlinked<'a>(&self, file: &'a [u8]) -> Option<UnlinkedObject<'a>> {
        let error = self.open(file, "").err()?;
        let is_shown = match error.problem() {
            Problem::Elf(fault) => *fault == ElfFault::ForeignByteOrder,
            Problem::Section(fault) => *fault == SectionFault::LegacyMaps,
            Problem::Relocation(fault) => {
                matches!(fault, RelocationFault::OtherLoadersMap { .. })
            }
            Problem::ProgramDef(fault) => *fault == ProgramDefFault::StaticProgram,
            Problem::Map(fault) => is_declaration(fault),
            // An extern map.
            Problem::Extern(ExternFault::UnknownSection(section)) => section == ".maps",
            _ => false,
        };
        let object = UnlinkedObject::open(file).ok().filter(|_| is_shown)?;
        Some(object.refused_for(error))
    }
}

/// True for a fault of a map's declaration that leaves the rest of the object readable.
fn is_declaration(fault: &MapFault) -> bool {
    match fault {
        MapFault::NotGlobal(_) | MapFault::UnknownPinning(_) | MapFault::InnerPinned => true,
        MapFault::Inner(fault) => is_declaration(fault),
        _ => false,
    }
}

/// The symbol that an object declares and another one may define, if that is why it is refused.
pub fn undefined_symbol(error: &Error) -> Option<&str> {
    let is_of_another_object = match error.problem() {
        Problem::Extern(fault) => {
            matches!(
                fault,
                ExternFault::NotDescribed | ExternFault::NoSection | ExternFault::UnknownSection(_)
            )
        }
        Problem::Map(fault) => *fault == MapFault::NotGlobal(Linkage::EXTERN),
        _ => false,
    };
    let symbol = error.place().symbol.as_deref();
    symbol.filter(|_| is_of_another_object)
}

/// True if an object defines this symbol for others.
pub fn defines(file: &[u8], symbol: &str) -> bool {
    Elf::parse_any_order(file).is_ok_and(|elf| {
        elf.symbols().iter().any(|it| {
            it.binding != Binding::Local
                && it.section().is_some()
                && elf.symbol_name(it).is_some_and(|name| name == symbol)
        })
    })
}

/// True if the kernel lacks something that a program needs.
pub fn kernel_lacks_feature(link_report: &LinkReport) -> bool {
    let programs = link_report
        .programs
        .iter()
        .filter_map(ProgramLinkReport::refusal);
    programs
        .chain(&link_report.refusal)
        .any(|error| error.blame() == Blame::Target)
}

/// True if the data of the kernel leave out what decides; the message has the remedy.
pub fn is_undecided(error: &Error) -> bool {
    matches!(
        error.problem(),
        Problem::Attach(AttachFault::LeftOut { .. })
            | Problem::Relocation(RelocationFault::LeftOut { .. })
            | Problem::Extern(ExternFault::NoSymbols)
    )
}
