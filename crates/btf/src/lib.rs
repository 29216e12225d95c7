//! BPF type format (BTF): what types a program and a kernel have.
//!
//! A blob is kept as it came, with four bytes of index for each type; everything
//! is read where it stands ([`Btf`], [`Type`], [`Shape`]).
#![forbid(unsafe_code)]

mod dedup;
pub mod diff;
mod dump_c;
mod dump_raw;
pub mod ext;
mod ids;
mod kind;
mod layout;
mod lookup;
mod parse;
mod strings;
mod types;
pub mod validate;
mod wire;
mod write;

pub use dedup::{DedupError, Deduplicated, dedup};
pub use dump_c::{CDump, COptions, DumpError, dump_c};
pub use dump_raw::{dump_raw, dump_raw_type};
pub use ext::BtfExt;
pub use ids::{Name, StrOffset, TypeId};
pub use kind::Kind;
pub use parse::{Btf, ParseError};
pub use types::{
    Array, Composite, Datasec, DeclTag, Encoding, Enum, Forward, Func, Int, Linkage, Member, Param,
    Placed, Proto, Shape, Type, Value, Var,
};
pub use write::Builder;
