//! BTF: the types of programs and kernels.

pub use ::btf::{
    AccessFault, Array, Btf, BtfExt, Builder, CDump, COptions, Composite, Datasec, DeclTag,
    DedupError, Deduplicated, DumpError, Encoding, Enum, Enumerator, FoundAt, Func, FwdKind, Int,
    Kind, Linkage, Member, Name, OtherIndex, Param, ParseError, PointerTag, Proto, ReadObject,
    RustDump, RustField, RustSize, Shape, ShowError, ShowFlags, StrOffset, Type, TypeId, Var,
    VarSecinfo, dedup, dedup_types, dump_c, dump_raw, dump_raw_type,
};

pub use crate::internal::type_file::{TypeFile, TypeFileError};

/// Differences between two blobs.
pub mod diff {
    pub use ::btf::diff::{Change, Changed, MemberPlace, describe, diff};
}

/// The special fields of values of maps: locks, timers, pointers to objects.
pub mod fields {
    pub use ::btf::fields::{FieldKind, FieldRecord, FieldSet, SpecialField};
}

/// Linux's check of a blob, with its log.
pub mod validate {
    pub use ::btf::validate::{BlobPlace, FieldFault, Pass, Reason, Refusal, kernel_log, validate};
}

/// Records of `.BTF.ext`.
pub mod ext {
    pub use ::btf::ext::{
        CoreKind, CoreRelo, CoreSpec, ExtError, ExtFault, ExtFuncInfo, ExtLineInfo, ExtSection,
        TableKind,
    };
}

/// CO-RE relocations: minimal BTF for objects, and why a relocation has no answer.
pub mod core {
    pub use ::btf::core::{Absence, CoreError, Minimal, MinimalBtf, Path};
    pub use ::btf::ext::{CoreKind, CoreSpec};
}
