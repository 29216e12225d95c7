//! BPF type format (BTF): what types a program and a kernel have.
//!
//! A blob is kept as it came, with two bytes of index for each type, and
//! everything is read where it stands: [`Btf`], its [`Type`]s and their
//! [`Shape`]s. From there
//!
//! - [`Builder`] writes blobs, [`dedup`] makes one type of those that several
//!   objects describe;
//! - [`dump_c`] and [`dump_raw`] print types as bpftool does;
//! - [`diff`](mod@diff) says what changed from one blob to another;
//! - [`core`](mod@core) answers what an object asks about the types of a kernel;
//! - [`ext`] is what an object says about its instructions: functions, lines,
//!   relocations;
//! - [`validate`] is the check that Linux makes before it takes a blob, with its
//!   error numbers and its log.
//!
//! ```
//! use beebox_btf::{Btf, Builder, Encoding, Int, Kind, Member, StrOffset, dump_raw};
//!
//! let mut builder = Builder::new();
//! let name = builder.string("int");
//! let int = builder.int(name, Int { size: 4, bits: 32, offset: 0, encoding: Encoding::SIGNED });
//! let member = |name, bit_offset| Member { name, ty: int, bit_offset, bits: 0 };
//! let members = [member(builder.string("x"), 0), member(builder.string("y"), 32)];
//! let name = builder.string("point");
//! builder.composite(Kind::Struct, name, 8, &members);
//!
//! let blob = builder.finish();
//! let btf = Btf::parse(&blob[..])?;
//! let point = btf.find(Kind::Struct, "point").expect("it was just added");
//! assert_eq!(btf.size_of(point.id()), Some(8));
//! let text = String::from_utf8(dump_raw(&btf)).unwrap();
//! assert!(text.ends_with("'y' type_id=1 bits_offset=32\n"));
//! # assert_eq!(members[0].name, StrOffset(5));
//! # Ok::<(), beebox_btf::ParseError>(())
//! ```
#![forbid(unsafe_code)]

mod btf;
pub mod core;
mod dedup;
pub mod diff;
mod dump_c;
mod dump_raw;
mod edit;
pub mod ext;
mod ids;
mod kind;
mod layout;
mod lookup;
mod parse;
mod starts;
mod strings;
mod types;
pub mod validate;
mod wire;
mod write;

pub use btf::Btf;
pub use dedup::{DedupError, Deduplicated, dedup, dedup_types};
pub use dump_c::{CDump, COptions, DumpError, dump_c};
pub use dump_raw::{dump_raw, dump_raw_type};
pub use ext::BtfExt;
pub use ids::{Name, StrOffset, TypeId};
pub use kind::Kind;
pub use parse::ParseError;
pub use types::{
    Array, Composite, Datasec, DeclTag, Encoding, Enum, Forward, Func, Int, Linkage, Member, Param,
    Placed, Proto, Shape, Type, Value, Var,
};
pub use write::Builder;
