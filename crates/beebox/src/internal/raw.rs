//! Unverified eBPF, run safely.
//!
//! A [`CheckedProgram`] is any sequence of instructions. The checked interpreter runs it with the
//! caller's [`Memory`]: every access is checked, instructions and time are bounded, and a
//! [`Trap`] says which instruction accessed which address and why that failed. A program
//! can't corrupt the process, and two runs with the same input are equal.
//!
//! ```
//! use beebox::internal::raw::{self, Calls, Entry, ProgramForm, Limits, Memory, Reason, CheckedContext};
//!
//! // Sums the bytes of the memory that r1 points to; r2 is its length.
//! let source = b"
//!         w0 = 0
//!         r2 += r1
//!     next:
//!         if r1 == r2 goto done
//!         r3 = *(u8 *)(r1 + 0)
//!         r0 += r3
//!         r1 += 1
//!         goto next
//!     done:
//!         exit
//! ";
//! let program = raw::read_program(source, Some(ProgramForm::Asm))?;
//!
//! let mut bytes = [1, 2, 3];
//! let mut memory = Memory::new();
//! let region = memory.add("bytes", &mut bytes)?;
//! let address = memory.address(region);
//! let mut calls = Calls::none();
//! let mut run = |len| {
//!     let cx = CheckedContext { memory: &mut memory, calls: &mut calls, packet: None };
//!     let entry = Entry { arguments: [address, len, 0, 0, 0] };
//!     program.run(cx, entry, &Limits::default())
//! };
//! assert_eq!(run(3).outcome, Ok(6));
//!
//! let trap = run(4).outcome.unwrap_err();
//! assert!(matches!(trap.reason, Reason::Memory(_)));
//! assert_eq!(
//!     trap.to_string(),
//!     "instruction 3 (r3 = *(u8 *)(r1 + 0)): it reads 1 byte at 0xffff88811035d943, \
//!      where `bytes` (0xffff88811035d940 to 0xffff88811035d943) ends"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod elf;
mod form;
mod regions;
mod tracing;
mod trap_json;
mod unchecked;
mod written;

pub use answer::{RawAnswer, RawEnd, RawStop};
pub use elf::{ElfError, elf_program};
pub use form::{ProgramForm, ProgramReadError, parse_hex, read_program};
pub use interp::Unsupported;
pub use interp::checked::{
    Access, AccessError, BadAccess, CallFault, Calls, CheckedContext, CheckedProgram,
    DEADLINE_INTERVAL, Entry, FRAME_BYTES, Finish, Limits, MAX_FRAMES, MOST_FRAMES, Memory,
    Missing, Moment, NoRoom, Observer, Permission, Reason, RegionId, RegionInfo, TailTargets, Trap,
    Unclosed,
};
pub use jit::CompileError;
pub use lower::{Malformed, Problem};
pub use regions::{Region, RegionError, RegionSource, Regions, parse_region};
pub use spec::{Clock, Printk, Random, SplitMix};
pub use tracing::run_traced;
pub use trap_json::{limit_json, trap_json, trap_text};
pub use unchecked::{UncheckedError, UncheckedProgram};
pub use vm::{
    Addresses, BpfCall, Checksum, ClonedPacket, ModelPort, ModelPrograms, ObjectLayout, Objects,
    Opened, Outcome, Owned, OwningField, PacketBuffer, PacketContext, PacketState, Redirect,
    RunContext, Side, StackFrames, Streams, System, SystemCalls, Tunnel, Unchecked,
};
pub use written::{ListingReadError, read_listing};
