//! Beebox, the Linux BPF machine in user space: the library to embed.
//!
//! Run a program of an object on a packet, read a counter in a map, run it again, without a kernel
//! and without root:
//!
//! ```
//! use beebox::{Loader, Object, TestRun, XdpAction};
//!
//! fn main() -> Result<(), beebox::Error> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//!     let object = Object::open("examples/packets/firewall.bpf.o")?;
//!     let instance = Loader::default().load(&object)?;
//!     let (firewall, actions) = (instance.program("firewall")?, instance.map("actions")?);
//!     for runs in 1..=2 {
//!         let result = firewall.test_run(&TestRun::packet(&[0; 64]))?;
//!         assert_eq!(result.verdict, XdpAction::Pass);
//!         let passed = actions.lookup_percpu::<u32, u64>(&XdpAction::Pass.number())?;
//!         assert_eq!(passed.map(|cpus| cpus[0]), Some(runs));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! | to | use |
//! |---|---|
//! | load an object and run its programs | [`Object`], [`Loader`], [`Instance`], [`Program`], [`Map`] |
//! | run a packet filter | [`Filter`], [`Expression`] |
//! | filter captures | [`captures`] |
//! | read and write filters as text | [`text`] |
//! | run a seccomp filter, or compute its actions for all calls | [`seccomp`] |
//! | open, inspect and link objects (`.bpf.o`) | [`object`], [`program`], [`btf`] |
//! | verify programs | [`verify`] |
//! | hold runs to expectation files | [`expect`] |
//! | fill maps from JSON, and write them | [`maps_json`] |
//! | inspect maps and runs in detail | [`run`], [`maps`] |
//! | let programs call host functions | [`host`], [`kfunc!`] |
//! | describe the network that programs see | [`network`] |
//! | describe the kernel that answers are for | [`kernel`] |
//! | set global variables by path | [`variables`] |
//! | run unverified eBPF instructions | [`raw`] |
//! | decode, assemble and print instructions | [`ebpf`], [`classic`] |
//! | show the native code of a program | [`native`] |
//!
//! Every type in a signature of this crate is exported from it, and every error
//! implements [`std::error::Error`].
//!
//! # Filter a capture by an expression
//!
//! ```
//! use beebox::Expression;
//! use beebox::captures::{self, Input};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//! #   if let Err(beebox::FilterError::NoLibpcap(_)) = Expression::new("") { return Ok(()); }
//!     // The system's libpcap compiles it, once for each link type of the capture.
//!     let ssh = Expression::new("tcp port 22")?;
//!     let found = captures::count(Input::open_path("examples/sample.pcap")?, &ssh)?;
//!     println!("{} of {} packets match", found.matched, found.packets);
//! #   assert_eq!((found.matched, found.packets), (100, 298));
//!     Ok(())
//! }
//! ```
//!
//! # Query a seccomp filter
//!
//! ```
//! use beebox::seccomp::{Action, Arch, SeccompFilter, call};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let filter = SeccompFilter::parse(&std::fs::read("examples/sandbox.asm")?)?;
//!     let openat = call(Arch::X86_64, "openat", [0; 6]).ok_or("no such call")?;
//!     assert_eq!(filter.decide(&openat), Action::Errno(1));
//!
//!     // All calls with all arguments at once.
//!     let table = filter.analyze()?.table(Arch::X86_64)?;
//!     for group in &table.groups {
//!         for case in &group.cases {
//!             println!("{} calls: {} when {}", group.calls.len(), case.action, case.when);
//!         }
//!     }
//! #   assert!(table.groups.len() >= 3);
//!     Ok(())
//! }
//! ```
//!
//! # Open an object and list what it needs
//!
//! ```
//! use beebox::object::Object;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let file = std::fs::read("examples/traffic/traffic.bpf.o")?;
//!     let object = Object::open(&file)?;
//!     let needs = object.overview().needs();
//!     for need in &needs {
//!         if let Some(since) = need.since {
//!             let name = need.name_in(&object);
//!             println!("Linux {}: {} {name}", since.release, need.category());
//!         }
//!     }
//! #   assert_eq!(needs[0].name_in(&object), "bpf_ringbuf_reserve");
//!     Ok(())
//! }
//! ```
#![forbid(unsafe_code)]

pub mod btf;
pub mod bytes;
pub mod captures;
pub mod classic;
pub mod ebpf;
mod engine;
mod error;
pub mod expect;
mod expression;
mod failure;
mod filter;
pub mod host;
mod instance;
pub mod kernel;
#[cfg(feature = "kernel-data")]
mod kernel_files;
mod kernel_image;
pub mod maps;
pub mod maps_json;
pub mod native;
pub mod network;
pub mod object;
#[doc(hidden)]
pub mod pod;
pub mod program;
pub mod raw;
pub mod run;
pub mod seccomp;
pub mod text;
mod type_file;
pub mod variables;
pub mod verify;

pub use ::classic::run::{Next, Step};
pub use ::classic::{Checked, JumpLimitExceeded, Refusal, Rule, Rules, Semantics, Stage};
pub use engine::{Engine, UnknownEngine};
pub use error::FilterError;
pub use expression::Expression;
pub use failure::{Error, ErrorKind};
pub use filter::{Filter, FilterBuilder, FilterRunner};
pub use instance::{
    CgroupVerdict, Instance, Loader, Map, NetfilterVerdict, Object, PacketResult, Program,
    ReturnCode, Runner, SkAction, TcAction, TestRun, TestRunResult, UpdateMode, Verdict, XdpAction,
};
pub use isa::classic::{Insn as ClassicInsn, SockFilter};
pub use jit::memory::{Image, MemoryError, Pool, PoolOptions, Writing};
pub use jit::perf;
pub use kernel::Kernel;
pub use packet::{Device, Metadata, Packet, VlanTag};
pub use pod::Pod;
pub use run::{
    Arena, CaptureSummary, PacketOutput, PacketRun, PrintedText, RunClock, RunEngine, RunRecord,
    StorageOwner, UnwrittenRead, VerdictCount,
};
pub use spec::Errno;
pub use spec::maps::{MapFlags, MapKind};
pub use spec::programs::ProgramType;
pub use vm::{Redirect, Stream};
