//! BTF: the types of programs and kernels.

pub use ::btf::{
    Array, Btf, BtfExt, Builder, CDump, COptions, Composite, Datasec, DeclTag, DedupError,
    Deduplicated, DumpError, Encoding, Enum, Enumerator, Func, FwdKind, Int, Kind, Linkage, Member,
    Name, Param, ParseError, Proto, Shape, StrOffset, Type, TypeId, Var, VarSecinfo, dedup,
    dedup_types, dump_c, dump_raw, dump_raw_type,
};

/// CO-RE relocations: minimal BTF for objects, and why a relocation has no answer.
pub mod core {
    pub use ::btf::core::{CoreError, Minimal, MinimalBtf};
    pub use ::btf::ext::{CoreKind, CoreSpec};
}
