//! Objects loaded into instances, and handles of their programs and maps.
//!
//! | type | what it is |
//! |---|---|
//! | [`Object`] | a file of clang (`.bpf.o`) |
//! | [`Loader`] | how it is loaded: kernel, engine, limits, values of globals, maps of others |
//! | [`Instance`] | the loaded object |
//! | [`Program`], [`Map`] | handles; clones are the same program or map |
//! | [`Runner`] | runs one program on packet after packet |
//!
//! Handles share the instance, which lives as long as one of them does. They are
//! `Send + Sync + 'static`: a structure can keep them, a thread or task can own them. Nothing
//! here blocks but [`Object::open`], which reads a file.

mod handle;
mod loader;
mod map;
mod map_bytes;
mod map_objects;
mod object;
mod program;
mod runner;
mod test_run;
mod verdict;

pub use handle::Instance;
pub use loader::Loader;
pub use map::{Map, UpdateMode};
pub use object::Object;
pub use program::Program;
pub use runner::{PacketResult, Runner};
pub use test_run::{TestRun, TestRunResult};
pub use verdict::{
    CgroupVerdict, NetfilterVerdict, ReturnCode, SkAction, TcAction, Verdict, XdpAction,
};
