//! BTF (BPF type format): the types of programs and kernels.
//!
//! A blob is kept as it is, borrowed or owned, with an index of two bytes for each type;
//! [`Btf`], its [`Type`]s and their [`Shape`]s are read in place.
//!
//! - [`Builder`] writes blobs, [`dedup`] merges equal types;
//! - [`dump_c`] and [`dump_raw`] print types as bpftool does, [`RustDump`] writes them as
//!   Rust;
//! - [`diff`](mod@diff) compares two blobs;
//! - [`core`](mod@core) resolves CO-RE relocations;
//! - [`ext`] is `.BTF.ext`: func_info, line_info and CO-RE relocations;
//! - [`fields`] finds the special fields of map values and objects (locks, timers, kptrs);
//! - [`validate`] is Linux's check of a blob, with its error numbers and its log.
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
//!
//! # Modules
//!
//! `btf.rs` keeps the blob, two bytes for each type (`starts.rs`), and a module's base; `parse.rs`
//! finds where types start, `lookup.rs` builds indexes by name on demand; `types.rs` reads each
//! type in place, `edit.rs` changes types in place; `validate/` is Linux's check in Linux's order,
//! with its log (`validate/log.rs`); `fields/` finds special fields, `saved_index.rs` an index as
//! bytes, `typed_walk.rs` what lies at an offset of a structure; `dump_c/` orders types, then
//! writes declarations, `dump_rust/` writes Rust with explicit padding; `show/` prints objects as
//! `bpf_snprintf_btf` does; `dedup/` merges equal types; `ext/` is `.BTF.ext`. `core/` answers
//! CO-RE relocations: `path.rs` (the access path), `name.rs` (flavours), `matching.rs`,
//! `compatible.rs`, `alike.rs` (the same path in the target), `value.rs` (the value of the
//! instruction), `resolver.rs` (an object's relocations in order), `minimal.rs` (the types that
//! they need).
#![forbid(unsafe_code)]

mod btf;
mod context;
pub mod core;
mod dedup;
pub mod diff;
mod dump_c;
mod dump_raw;
mod dump_rust;
mod edit;
mod errno;
pub mod ext;
pub mod fields;
mod ids;
mod kfunc_param;
mod kind;
mod layout;
mod lookup;
mod parse;
mod saved_index;
mod show;
mod starts;
mod strings;
mod typed_walk;
mod types;
pub mod validate;
mod wire;
mod write;

pub use btf::Btf;
pub use dedup::{DedupError, Deduplicated, dedup, dedup_types};
pub use dump_c::{CDump, COptions, DumpError, dump_c};
pub use dump_raw::{dump_raw, dump_raw_type};
pub use dump_rust::{RustDump, RustField, RustSize};
pub use ext::BtfExt;
pub use ids::{Name, StrOffset, TypeId};
pub use kfunc_param::ParamSuffix;
pub use kind::Kind;
pub use parse::ParseError;
pub use saved_index::OtherIndex;
pub use show::{ReadObject, ShowError, ShowFlags};
pub use typed_walk::{AccessFault, FoundAt, PointerTag};
pub use types::{
    Array, Composite, Datasec, DeclTag, Encoding, Enum, Enumerator, Func, FwdKind, Int, Linkage,
    Member, Param, Proto, Shape, Type, Var, VarSecinfo,
};
pub use write::Builder;
