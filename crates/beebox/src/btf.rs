//! BTF: the types of programs and kernels.

pub use ::btf::{
    Array, Btf, BtfExt, Builder, CDump, COptions, Composite, Datasec, DeclTag, DedupError,
    Deduplicated, DumpError, Encoding, Enum, Enumerator, Func, FwdKind, Int, Kind, Linkage, Member,
    Name, Param, ParseError, Proto, Shape, StrOffset, Type, TypeId, Var, VarSecinfo, dedup,
    dedup_types, dump_c, dump_raw, dump_raw_type,
};
