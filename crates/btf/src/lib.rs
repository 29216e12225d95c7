//! BPF type format (BTF): what types a program and a kernel have.
//!
//! A blob is kept as it came, with four bytes of index for each type; everything
//! is read where it stands ([`Btf`], [`Type`], [`Shape`]).
#![forbid(unsafe_code)]

mod ids;
mod kind;
mod lookup;
mod parse;
mod types;
pub mod validate;
mod wire;
mod write;

pub use ids::{Name, StrOffset, TypeId};
pub use kind::Kind;
pub use parse::{Btf, ParseError};
pub use types::{
    Array, Composite, Datasec, DeclTag, Encoding, Enum, Forward, Func, Int, Linkage, Member, Param,
    Placed, Proto, Shape, Type, Value, Var,
};
pub use write::Builder;
