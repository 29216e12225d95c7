//! A program as native code, and its entry points.

use std::mem;
use std::ops::{Deref, Range};

use lower::{Lowered, LoweredCode};
use packet::{Metadata, Packet};
use vm::{Deadline, PacketRules, References, TailConvention};

use crate::backend::{Code, Host, RUNS_HERE};
use crate::codegen;
use crate::memory::{Image, Pool};

mod classic;
mod context;
mod entry;
mod memory;
mod options;
#[cfg(all(test, target_os = "linux"))]
mod stand_ins;
#[cfg(test)]
mod tests;
mod verified;

pub use classic::PacketFn;
pub(crate) use context::{NativeContext, check_deadline};
pub use entry::EntryAbi;
use entry::{Alone, Entry, WithContext};
pub use memory::OnMemory;
pub use options::{CompileError, ENTRY_SLOT, Options};
pub use verified::VerifiedNative;
pub use vm::NoSuchCpu;

/// A program of a kind as native code. Dropping it frees its memory; a run borrows it.
///
/// A program has the entries of its kind only:
///
/// ```
/// use beebox_jit::Native;
/// use lower::SyscallFilter;
/// use vm::{Machine, Outcome};
///
/// fn run(filter: &Native<SyscallFilter>, call: &[u8; 64]) -> Outcome {
///     filter.run(&mut Machine::new(), call)
/// }
/// ```
///
/// ```compile_fail,E0061
/// use beebox_jit::Native;
/// use lower::PacketFilter;
/// use vm::{Machine, Outcome};
///
/// fn run(filter: &Native<PacketFilter>, call: &[u8; 64]) -> Outcome {
///     filter.run(&mut Machine::new(), call)
/// }
/// ```
///
/// A filter is not entered with the context of a verified program:
///
/// ```compile_fail,E0308
/// use beebox_jit::{Native, NoSuchCpu};
/// use lower::PacketFilter;
/// use vm::{DirectContext, PacketBuffer, RunContext, RunGuard};
///
/// fn run(
///     program: &Native<PacketFilter>,
///     packet: &mut PacketBuffer,
///     context: &mut DirectContext,
///     guard: &RunGuard,
///     cx: RunContext<'_>,
/// ) -> Result<u64, NoSuchCpu> {
///     program.run(packet, context, guard, cx)
/// }
/// ```
///
/// The same with `PacketProgram` compiles:
///
/// ```
/// use beebox_jit::{Native, NoSuchCpu};
/// use lower::PacketProgram;
/// use vm::{DirectContext, PacketBuffer, RunContext, RunGuard};
///
/// fn run<'r>(
///     program: &'r Native<PacketProgram>,
///     packet: &mut PacketBuffer,
///     context: &mut DirectContext,
///     guard: &'r RunGuard,
///     cx: RunContext<'r>,
/// ) -> Result<u64, NoSuchCpu> {
///     program.run(packet, context, guard, cx)
/// }
/// ```
pub struct Native<K: EntryAbi> {
    code: NativeCode,
    entry: K::Entry,
}

impl<K: EntryAbi> Native<K> {
    /// Compiles a program for this machine and installs the code in the pool's memory.
    ///
    /// # Errors
    /// If there is no executable memory, or no code generator for this processor.
    pub fn compile(
        program: &Lowered<K>,
        options: &Options,
        pool: &Pool,
    ) -> Result<Native<K>, CompileError> {
        codegen::compile(Host::new(options.features), program, options, |code| {
            Native::install(program, options, code, pool)
        })
    }

    fn install(
        program: &Lowered<K>,
        options: &Options,
        code: Code<'_>,
        pool: &Pool,
    ) -> Result<Native<K>, CompileError> {
        if !RUNS_HERE {
            return Err(CompileError::Processor);
        }
        let (code, entry) = NativeCode::install(program, options, code, pool)?;
        let entry = K::entry(program.entry_info(), entry);
        Ok(Native { code, entry })
    }
}

impl<K: EntryAbi> Deref for Native<K> {
    type Target = NativeCode;

    fn deref(&self) -> &NativeCode {
        &self.code
    }
}

/// The code of a program in executable memory, whatever its kind.
pub struct NativeCode {
    image: Image,
    /// Offset of the entry for tail calls.
    tail_entry: usize,
    checks_deadline: bool,
    rules: PacketRules,
    references: References,
    /// Compiled with [`Options::tail_target`].
    is_tail_target: bool,
    /// The code map: slots and offsets of pieces; empty without [`Options::map`].
    code_map: Vec<(u32, u32)>,
    /// Offsets of the slots at the entries.
    entry_slots: Vec<u32>,
}

impl NativeCode {
    /// Installs generated code; its entry takes what the code uses.
    fn install(
        program: &LoweredCode,
        options: &Options,
        code: Code<'_>,
        pool: &Pool,
    ) -> Result<(NativeCode, Entry), CompileError> {
        let mut tables = program.tail_tables().iter();
        if !tables.all(|table| table.admits_callers(TailConvention::Native)) {
            return Err(CompileError::TailCalls);
        }
        let image = pool
            .install(code.len, 16, |out, _| code.write(out))
            .map_err(CompileError::Memory)?;
        // SAFETY: the backend made a function of this type at that offset, by whether it uses
        // the native context, and the image keeps it there.
        let entry = unsafe {
            let address = image.address().add(code.entry);
            match code.uses_context {
                false => Entry::Alone(mem::transmute::<*const u8, Alone>(address)),
                true => Entry::WithContext(mem::transmute::<*const u8, WithContext>(address)),
            }
        };
        let installed = NativeCode {
            checks_deadline: options.deadline,
            rules: program.packet_rules(),
            references: program.references(),
            tail_entry: code.tail_entry,
            is_tail_target: options.tail_target,
            code_map: match options.map {
                true => code_map(program, &code),
                false => Vec::new(),
            },
            entry_slots: code.entry_slots,
            image,
        };
        Ok((installed, entry))
    }

    /// # Panics
    /// If there is a deadline that the code does not check.
    #[inline]
    fn assert_checks(&self, deadline: Option<Deadline>) {
        assert!(
            self.checks_deadline || deadline.is_none(),
            "the code was compiled without deadline checks"
        );
    }

    /// The machine code.
    pub fn image(&self) -> &[u8] {
        self.image.bytes()
    }

    /// The address of the machine code.
    pub fn address(&self) -> u64 {
        self.image.address() as u64
    }

    /// Offsets of the slots of [`Options::entry_slots`], of the program first and then of its
    /// subprograms. A slot is a no-operation of [`ENTRY_SLOT`] bytes within eight aligned
    /// bytes, which one store replaces as a whole; tail calls enter behind it.
    pub fn entry_slots(&self) -> &[u32] {
        &self.entry_slots
    }

    /// The machine code under a name, for the profiler.
    pub fn code_region<'a>(&'a self, name: &'a str) -> crate::perf::CodeRegion<'a> {
        crate::perf::CodeRegion {
            name,
            address: self.address(),
            bytes: self.image(),
            lines: &[],
        }
    }

    /// Pieces of the code in ascending order, each with the slot that it comes from in the
    /// program that was lowered;
    /// `None` for prologues and for the bytes after the last function. A slot may have
    /// several pieces (its slow path comes after the function), or none (where it is part of
    /// another instruction or dead). Empty without [`Options::map`].
    pub fn map(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        pieces(&self.code_map, self.image.bytes().len())
    }
}

/// The empty packet of runs without a packet.
const NO_PACKET: Packet<'static> = Packet::whole(&[], &Metadata::UNKNOWN);

/// The code map with the slots of the program that was lowered.
pub(crate) fn code_map(program: &LoweredCode, code: &Code<'_>) -> Vec<(u32, u32)> {
    let mut map = code.code_map();
    for (slot, _) in map.iter_mut().filter(|(slot, _)| *slot != u32::MAX) {
        *slot = program.origin(*slot as usize) as u32;
    }
    map
}

/// The pieces of `len` bytes of code for a code map.
pub(crate) fn pieces(
    code_map: &[(u32, u32)],
    len: usize,
) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
    let ends = code_map.iter().skip(1).map(|place| place.1 as usize);
    let ends = ends.chain([len]);
    code_map.iter().zip(ends).map(|(&(slot, start), end)| {
        let slot = (slot != u32::MAX).then_some(slot as usize);
        (slot, start as usize..end)
    })
}
