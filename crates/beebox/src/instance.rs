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

#[cfg(feature = "run")]
mod handle;
#[cfg(feature = "run")]
mod loader;
#[cfg(feature = "run")]
mod map;
#[cfg(feature = "run")]
mod map_bytes;
#[cfg(feature = "run")]
mod map_objects;
mod object;
#[cfg(feature = "run")]
mod program;
#[cfg(feature = "run")]
mod runner;
#[cfg(feature = "run")]
mod test_run;
#[cfg(feature = "run")]
mod verdict;

#[cfg(feature = "run")]
pub use handle::Instance;
#[cfg(feature = "run")]
pub use loader::Loader;
#[cfg(feature = "run")]
pub use map::{Map, UpdateMode};
pub use object::Object;
#[cfg(feature = "run")]
pub use program::Program;
#[cfg(feature = "run")]
pub use runner::{PacketResult, Runner};
#[cfg(feature = "run")]
pub use test_run::{TestRun, TestRunResult};
#[cfg(feature = "run")]
pub use verdict::{
    CgroupVerdict, NetfilterVerdict, ReturnCode, SkAction, TcAction, Verdict, XdpAction,
};
