//! Programs of an object run on packets, as `BPF_PROG_TEST_RUN` runs them, and on captures.
//!
//! [`LoadedObject::load`] links an object, creates its maps, verifies its programs and
//! compiles them to native code, or for the threaded interpreter where there is none; programs that
//! these do not support run in the checked engine ([`RunnableProgram::fallback_reason`] names the reason). Time comes from the caller or the capture and
//! random numbers from a seed, so that equal input gives equal runs.
//!
//! A unit test of an object:
//!
//! ```
//! use beebox::internal::object::Object;
//! use beebox::internal::run::{LoadOptions, LoadedObject};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//! #   let kernel = kernel_data::linux_6_18();
//!     let file = std::fs::read("examples/packets/firewall.bpf.o")?;
//!     let mut loaded = LoadedObject::load(&Object::open(&file)?, &kernel, &LoadOptions::default())?;
//!
//!     // A network is blocked: 192.0.2.0/24.
//!     let blocked = loaded.map("blocked").ok_or("no such map")?;
//!     blocked.update(&[24, 0, 0, 0, 192, 0, 2, 0], &[0; 24], 0)?;
//!
//!     let mut packet = [0; 34];
//!     packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
//!     packet[26..30].copy_from_slice(&[192, 0, 2, 7]);
//!     let mut firewall = loaded.program("firewall").ok_or("no such program")?;
//!     let run = firewall.test_run(&packet)?;
//!     assert_eq!(run.verdict.name, "XDP_DROP");
//!     Ok(())
//! }
//! ```

#[cfg(feature = "trace")]
mod against;
mod answer;
mod attached;
mod by_verdict;
mod capture;
mod checked;
mod choice;
mod compiled;
#[cfg(feature = "coverage")]
mod counts;
mod data;
#[cfg(feature = "debug")]
pub mod debug;
mod error;
mod faults;
mod hook;
#[cfg(feature = "html")]
mod html;
mod inner_maps;
#[cfg(feature = "fuzz")]
mod inputs;
mod kernel_sockets;
mod load;
mod loaded;
mod map_structure;
mod maps;
mod options;
mod outputs;
mod packet_rows;
mod parallel;
mod prepared;
mod printed;
mod process;
#[cfg(feature = "coverage")]
mod profile;
mod program;
mod random;
#[cfg(feature = "trace")]
mod recording;
mod records;
mod redirect;
mod returned;
mod reuse;
mod selection;
mod services;
mod shared;
mod sockets;
mod spool;
mod summary;
mod tail_calls;
mod task;
mod timers;
mod unwritten;
#[cfg(feature = "trace")]
mod why;

pub use ::kernel::kfuncs::state as kfunc_state;
pub use ::kernel::maps::RunGuard;
pub use ::kernel::maps::{Arena, Map, Ring};
pub use ::kernel::process::{Descriptor, LoadedProgram, Process, ProgramVerifier};
pub use ::kernel::programs::{PacketVerdict, verdict_list, verdict_names};
#[cfg(feature = "trace")]
pub use against::{Comparison, Differing, PartingGroup, RunDifference, Sides};
pub use answer::{RunAnswer, RunEnd, WrittenFiles};
pub use by_verdict::VerdictOutput;
pub use capture::{CaptureOptions, Choose, PacketOutput, PacketRun, RunCaptureError};
pub use choice::{PacketChoice, PacketChoiceError, find_verdict, verdict_word};
pub use data::DataError;
pub use error::{LoadError, RunError, TrapPlace};
pub(crate) use faults::Faults;
pub use faults::ForcedResult;
#[cfg(feature = "html")]
pub use html::HtmlRuns;
pub use inner_maps::InnerMap;
#[cfg(feature = "fuzz")]
pub(crate) use inputs::{Compared, Marked, RunInput};
pub use jit::NoSuchCpu;
pub use loaded::{LoadedObject, PERF_BUFFER_BYTES};
pub use maps::{Entry, ObjectMap, StorageOwner};
pub use options::LoadOptions;
pub use outputs::{RecordList, RunOutputs, TextList};
pub use packet_rows::{PacketRows, RowForm};
pub use printed::PrintedText;
pub use program::{RunnableProgram, TestRunOutput};
pub use records::RunRecord;
pub use redirect::{redirect_json, redirect_text};
pub use reuse::{ReuseFault, ReusedMaps};
pub use selection::{fallback_reason, leave_out_struct_ops, load_only, programs_in_arrays};
pub use services::RunClock;
pub use spec::kfuncs::CallState;
pub use spec::{Errno, SplitMix};
pub use spool::{Spool, SpoolItem};
pub use summary::{CaptureSummary, VerdictCount};
#[cfg(feature = "trace")]
pub use trace::dwarf::Debug;
pub use unwritten::UnwrittenRead;
pub use vm::{Redirect, Stream};
#[cfg(feature = "trace")]
pub use why::{Explained, WhyOptions, tail_from};

use std::borrow::Cow;

use ::kernel::programs::{LINK_HEADER, TestProgram};
use spec::programs::ProgramType;

/// True for the program types that `BPF_PROG_TEST_RUN` takes and [`RunnableProgram`] runs.
pub fn can_test_run(kind: ProgramType) -> bool {
    TestProgram::of(kind).is_some()
}

/// The packet behind a test run, of what that returns; `None` for types whose runs return none. Linux returns zeros
/// in place of the link-layer header that a program does not see.
pub fn packet_behind<'d>(
    kind: ProgramType,
    before: &[u8],
    data_out: &'d [u8],
) -> Option<Cow<'d, [u8]>> {
    let rules = TestProgram::of(kind).filter(|rules| rules.has_packet())?;
    match kind {
        ProgramType::FlowDissector | ProgramType::Netfilter => None,
        _ if rules.has_link_header() => Some(data_out.into()),
        _ => {
            let header = LINK_HEADER.min(before.len()).min(data_out.len());
            Some([&before[..header], &data_out[header..]].concat().into())
        }
    }
}

/// True for the program types whose test runs get a packet; the others get a context only.
pub fn takes_packet(kind: ProgramType) -> bool {
    TestProgram::of(kind).is_some_and(TestProgram::has_packet)
}
