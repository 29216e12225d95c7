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
//! | verify the programs of an object | [`Object::verify`], [`verify`] |
//! | hold runs to expectation files | [`expect`] |
//! | find packets on which a property does not hold | [`fuzz`] |
//! | measure which source lines runs execute | [`coverage`] |
//! | fill maps from JSON, and write them | [`MapsJson`] |
//! | set global variables by path | [`Assignment`] |
//! | let programs call host functions | [`kfunc!`], [`HostFunction`] |
//! | run tracing programs on kernel objects that are given | [`KernelModel`] |
//! | describe the network that programs see | [`network`] |
//! | describe the kernel that answers are for | [`kernel`] |
//! | run a packet filter | [`Filter`], [`Expression`] |
//! | filter captures | [`captures`] |
//! | run a seccomp filter, or compute its actions for all calls | [`seccomp`] |
//!
//! Every type in a signature of these is one of them. Functions return [`Error`]; those of filters return
//! [`FilterError`] and [`JumpLimitExceeded`], which `?` turns into it. What the pages show is stable as semantic versions say; the list is in
//! `crates/beebox/public-api.txt`. The hidden module `internal`, and hidden fields and methods, are
//! for the command and the tools of the repository: they have no promise and change with any version.
//!
//! # Filter a capture by an expression
//!
//! ```
//! use beebox::Expression;
//! use beebox::captures::Input;
//!
//! fn main() -> Result<(), beebox::Error> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
//! #   if let Err(beebox::FilterError::NoLibpcap(_)) = Expression::new("") { return Ok(()); }
//!     // The system's libpcap compiles it, once for each link type of the capture.
//!     let ssh = Expression::new("tcp port 22")?;
//!     let found = Input::open_path("examples/sample.pcap")?.count(&ssh)?;
//!     println!("{} of {} packets match", found.matched, found.packets);
//! #   assert_eq!((found.matched, found.packets), (100, 298));
//!     Ok(())
//! }
//! ```
//!
//! # Query a seccomp filter
//!
//! ```
//! use beebox::seccomp::{Action, Arch, SeccompFilter};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//!     let filter = SeccompFilter::parse(&std::fs::read("examples/sandbox.asm")?)?;
//!     let openat = Arch::X86_64.call("openat", [0; 6]).ok_or("no such call")?;
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
//! # Features
//!
//! All but presets of other series are on by default; each adds items, and none changes what others do.
//!
//! | feature | adds |
//! |---|---|
//! | none | [`Object`], [`verify`], [`Assignment`], [`kernel`] |
//! | `run` | [`Loader`], [`Instance`], [`Program`], [`Map`], [`expect`], [`MapsJson`], [`HostFunction`], [`KernelModel`], [`network`]; with `capture` |
//! | `coverage` | [`coverage`], [`Loader::coverage`], [`Instance::coverage`]; with `run` |
//! | `fuzz` | [`fuzz`]; with `coverage` |
//! | `trace` | what `beebox run --why` and `--against` stand on, without promise; with `run` |
//! | `debug` | what `beebox debug` stands on, without promise; with `trace` |
//! | `html` | what `beebox run --html` and `verify --html` stand on, without promise; with `trace` and `coverage` |
//! | `capture` | [`Filter`], [`Expression`], [`captures`] |
//! | `seccomp` | [`seccomp`] |
//! | `yaml` | container profiles in YAML, which `beebox seccomp` reads, without promise; with `seccomp` |
//! | `decompress` | BTF in kernel images and compressed sections |
//! | `kernel-data` | [`kernel::Kernels`], `Loader::default` |
//! | `kernel-5.10` | the preset of Linux 5.10 ([`kernel::Kernels`]), 0.4 MB; off by default, as those below |
//! | `kernel-6.1` | those of 6.1 and 5.15, 0.4 MB |
//! | `kernel-6.12` | those of 6.12 and 6.6, 0.15 MB |
//! | `kernel-7.0` | that of 7.0, 0.14 MB |
//! | `kernel-7.2` | that of 7.2, 0.28 MB |
//! | `kernel-7.3` | that of 7.3, 0.35 MB |
//! | `all-kernels` | all of these |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "run"),
    allow(dead_code, reason = "what runs of programs use of other parts")
)]

#[cfg(feature = "capture")]
pub mod captures;
#[cfg(feature = "coverage")]
pub mod coverage;
#[cfg(any(feature = "capture", feature = "seccomp"))]
mod engine;
#[cfg(any(feature = "capture", feature = "seccomp"))]
mod error;
#[cfg(feature = "run")]
pub mod expect;
#[cfg(feature = "capture")]
mod expression;
mod failure;
#[cfg(feature = "capture")]
mod filter;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "run")]
mod host;
mod instance;
#[doc(hidden)]
pub mod internal;
pub mod kernel;
#[cfg(feature = "run")]
mod model;
#[cfg(feature = "run")]
pub mod network;
#[cfg(feature = "seccomp")]
pub mod seccomp;
pub mod verify;

#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use engine::Engine;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use error::FilterError;
#[cfg(feature = "capture")]
pub use expression::Expression;
pub use failure::{Error, ErrorKind};
#[cfg(feature = "capture")]
pub use filter::{Filter, FilterBuilder, FilterRunner};
pub use instance::Object;
#[cfg(feature = "run")]
pub use instance::{
    CgroupVerdict, Instance, Loader, Map, NetfilterVerdict, PacketResult, Program, ReturnCode,
    Runner, SkAction, TcAction, TestRun, TestRunResult, UpdateMode, Verdict, XdpAction,
};
#[cfg(feature = "run")]
pub use internal::host::HostFunction;
#[cfg(feature = "run")]
pub use internal::maps_json::{LeftOut, MapsJson};
#[cfg(feature = "run")]
pub use internal::pod::Pod;
#[cfg(feature = "run")]
pub use internal::run::{
    CaptureSummary, PacketOutput, PacketRun, PrintedText, RunClock, RunRecord, VerdictCount,
};
pub use internal::variables::Assignment;
#[cfg(any(feature = "capture", feature = "seccomp"))]
pub use internal::{JumpLimitExceeded, Rules, Semantics, SockFilter};
#[cfg(feature = "run")]
pub use model::KernelModel;
#[cfg(feature = "capture")]
pub use packet::{Device, Metadata, Packet, VlanTag};
pub use spec::loader::LoaderKind;
pub use spec::maps::MapKind;
pub use spec::programs::ProgramType;
pub use spec::{Errno, Kernel};
#[cfg(feature = "run")]
pub use vm::Redirect;
