//! BPF objects (`.bpf.o`): open, inspect, change, link.
//!
//! [`Object::open`] reads a file, [`Object::overview`] lists what it contains and needs,
//! and [`Object::link`] makes the programs and maps that libbpf would load for a
//! [`Kernel`](crate::Kernel); a [`LinkSession`] links one program after the other. A
//! [`Linker`] makes one object of several.

pub use ::object::externs::{
    ConfigKind, ConfigValue, Extern, ExternFault, ExternKind, Externs, ResolvedExterns,
};
pub use ::object::linker::{LinkFault, Linker, MapAttribute, Mismatch, SectionMismatch};
pub use ::object::maps::{
    Binding, Bindings, Contents, Data, DataKind, Global, InitialEntry, LinkedMap, Map, MapFault,
    Maps, SizeAttribute, StructOps, StructOpsFault,
};
pub use ::object::overview::{
    LinkOutcome, LinkReport, Overview, ProgramLinkReport, ProgramOverview, RequiredFeature,
    Requirement, UseSite, oldest,
};
pub use ::object::programs::{ProgramDefFault, ProgramDefs};
pub use ::object::sections::{Role, SectionFault, Sections};
pub use ::object::unlinked::{LegacyMapDef, UnlinkedMap, UnlinkedObject};
pub use ::object::{
    AttachFault, Blame, BtfFault, ContainerFault, ContainerKind, DatasecFault, Embedded, Error,
    LinkSession, Linked, LinkedProgram, LinkedPrograms, Object, OpenOptions, Place, Problem,
    ProgramDef, ProgramFault, ProgramId, Reference, Referent, RelocationFault, SourceLine,
    UnloadableProgram, objects_in, reference_at,
};

// Files that hold objects.
pub use super::object_files::{
    defines, is_object, is_undecided, kernel_lacks_feature, short_names, undefined_symbol,
};

/// Tables of an ELF file.
pub mod elf {
    pub use ::object::elf::{
        Binding, Elf, ElfFault, Relocation, Section, SectionId, SectionKind, Symbol, SymbolId,
        SymbolKind, SymbolPlace,
    };
}
