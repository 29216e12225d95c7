//! Programs as bpf(2) takes them, with their maps, types and attach targets.

pub use ::program::case;
pub use ::program::{
    AttachTarget, ExternId, ExternResolution, ExternSymbol, ExternSymbolKind, FailedRelocation,
    FuncInfo, Image, InitialContents, InvalidProgram, KernelTypeId, LineInfo, MAX_INSNS,
    MAX_TARGETS, MapDef, MapEntry, MapId, MapParams, ModuleUse, PAGE_SIZE, Program, ProgramBuilder,
    ProgramId, ProgramRef, ProgramText, Subprog,
};
pub use spec::loader::LoaderKind;
pub use spec::maps::{MapFlags, MapKind, StorageKind};
pub use spec::programs::{AttachType, LoadFlags, ProgramType, SectionDef, SectionFlags};
pub use spec::since::{BadRelease, Feature, IntroducedBy, Release, Since};
