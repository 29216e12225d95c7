//! A program as native code, and its entry points.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use lower::{ContextKind, EntrySizes, Evidence, Lowered, Requirements};
use packet::{Metadata, Packet};
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{
    Deadline, DirectAccess, HostFunction, Machine, MapHandle, Outcome, PacketRules, RunContext,
    TailTable,
};

use crate::backend::{Backend, GeneratedCode, Host, Request};
use crate::memory::{Image, MemoryError, Placement, Pool};

#[cfg(test)]
mod tests;
mod verified;

pub use verified::{OnContext, OnEntries, WithoutPacket};

/// State of a run that native code accesses beside its arguments, at the offsets below.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct NativeContext {
    /// Pointer to a [`RunContext`].
    run_context: *mut (),
    /// Address and length of the packet's bytes.
    data: *const u8,
    len: usize,
    /// Remaining backward jumps; negative once the limit is exceeded.
    budget: i64,
    /// Fuel: loop iterations and calls until the next deadline check; negative once the
    /// deadline has passed.
    fuel: i64,
    /// Stack pointer of the entry function, if the run may end in a callee.
    stack: u64,
    /// Processor id.
    processor: u32,
    /// Tail calls made.
    tail_calls: u32,
    deadline: Option<Deadline>,
}

impl NativeContext {
    pub(crate) const RUN_CONTEXT: usize = mem::offset_of!(NativeContext, run_context);
    pub(crate) const DATA: usize = mem::offset_of!(NativeContext, data);
    pub(crate) const LEN: usize = mem::offset_of!(NativeContext, len);
    pub(crate) const BUDGET: usize = mem::offset_of!(NativeContext, budget);
    pub(crate) const FUEL: usize = mem::offset_of!(NativeContext, fuel);
    pub(crate) const STACK: usize = mem::offset_of!(NativeContext, stack);
    pub(crate) const TAIL_CALLS: usize = mem::offset_of!(NativeContext, tail_calls);
    pub(crate) const PROCESSOR: usize = mem::offset_of!(NativeContext, processor);
}

/// Called by native code when its fuel is used up: sets new fuel, or leaves it negative if
/// the deadline has passed. The run then ends without unwinding, because frames of native
/// code own nothing that must be dropped.
pub(crate) extern "C" fn check_deadline(context: &mut NativeContext) {
    context.fuel = match context.deadline {
        Some(deadline) if deadline.has_passed() => -1,
        deadline => fuel(deadline),
    };
}

/// Fuel until the next deadline check.
fn fuel(deadline: Option<Deadline>) -> i64 {
    deadline.map_or(i64::MAX, |deadline| deadline.interval().into())
}

/// Signature of native code: `r1`, `r2`, address and length of the packet, the native
/// context (null if the code does not use it); returns `r0`.
type Entry = unsafe extern "C" fn(u64, u64, *const u8, usize, *mut NativeContext) -> u64;

/// Options of a compilation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The processor's extensions that the code may use.
    pub features: crate::Features,
    /// Keeps the code map for [`Native::map`].
    pub map: bool,
    /// The optimizations to use; all by default.
    pub optimizations: crate::Optimizations,
    /// Adds deadline checks, which [`Native::run_memory_until`] needs: loops and local
    /// calls then consume fuel (docs/native-code.md has the cost).
    pub deadline: bool,
    /// Tail calls may enter the program ([`Native::tail_target`]). Only with deadline checks
    /// does the code differ.
    pub tail_target: bool,
    /// Indirect jumps and calls go through a retpoline, which keeps the processor from
    /// predicting their targets; jump tables are not used. Tail calls and calls of helpers
    /// are slower then.
    pub retpoline: bool,
    /// Puts a slot of five bytes at the entry of the program and of each subprogram
    /// ([`Native::entry_slots`]).
    pub entry_slots: bool,
    /// Saves all callee-saved registers in every function, as a compiler does that does not
    /// look at the registers in use: for measurements.
    pub save_all_registers: bool,
}

/// Bytes of a slot at an entry, those of a call or a jump ([`Options::entry_slots`]).
pub const ENTRY_SLOT: usize = 5;

/// Errors of a compilation.
#[derive(Debug)]
pub enum CompileError {
    /// Executable memory could not be allocated.
    Memory(MemoryError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Memory(error) => write!(f, "native code: {error}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// A program was to run on a CPU for which its maps have no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchCpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of CPUs for which the maps have values.
    pub cpus: u32,
}

impl fmt::Display for NoSuchCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSuchCpu { cpu, cpus } = self;
        write!(
            f,
            "CPU {cpu}: the program's maps have values for {cpus} CPUs, numbered from 0"
        )
    }
}

impl std::error::Error for NoSuchCpu {}

/// The arguments that a run passes to the code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// A native context, and the arguments of the program's kind.
    Full,
    /// A packet's bytes; the code uses neither the context nor a native context.
    Packet,
    /// The context of a seccomp filter.
    Seccomp,
    /// Memory; the code uses no native context.
    Memory,
    /// The context of a verified program of that kind.
    Verified(ContextKind),
    /// The context of a call with an entry of a map.
    Entry(EntrySizes),
}

impl Arguments {
    fn of(program: &Lowered, requirements: Requirements, uses_context: bool) -> Arguments {
        use classic::Rules;
        if let Some(sizes) = program.entry_sizes() {
            return Arguments::Entry(sizes);
        }
        match program.evidence() {
            Evidence::Classic(Rules::Seccomp) => Arguments::Seccomp,
            Evidence::Classic(Rules::Socket | Rules::Capture) => {
                match uses_context || requirements.context {
                    true => Arguments::Full,
                    false => Arguments::Packet,
                }
            }
            Evidence::CallerAsserted => match uses_context {
                true => Arguments::Full,
                false => Arguments::Memory,
            },
            Evidence::Verified(kind) => Arguments::Verified(kind),
        }
    }
}

/// A program as native code. Dropping it frees its memory; a run borrows it.
pub struct Native {
    image: Image,
    entry: Entry,
    /// Offset of the entry for tail calls.
    tail_entry: usize,
    arguments: Arguments,
    /// The code uses the native context.
    uses_context: bool,
    /// The code reads fields of a packet's context other than the length.
    reads_metadata: bool,
    checks_deadline: bool,
    evidence: Evidence,
    rules: PacketRules,
    /// The maps that the code refers to by address, whose values it may probe.
    maps: Vec<MapHandle>,
    /// What operations on maps refer to by address.
    _accesses: Vec<DirectAccess>,
    /// The tables of targets that it refers to by address.
    _tail_tables: Vec<Arc<TailTable>>,
    /// The functions of the host that it calls by index.
    host: Arc<[HostFunction]>,
    /// Compiled with [`Options::tail_target`].
    is_tail_target: bool,
    /// Number of CPUs that it may run on.
    cpus: u32,
    /// The code map: slots and offsets of pieces; empty without [`Options::map`].
    code_map: Vec<(u32, u32)>,
    /// Offsets of the slots at the entries.
    entry_slots: Vec<u32>,
}

impl Native {
    /// Compiles a program for this machine and installs the code in the pool's memory.
    pub fn compile(
        program: &Lowered,
        options: &Options,
        pool: &Pool,
    ) -> Result<Native, CompileError> {
        let request = Request::new(options, None);
        Host::new(options.features).compile(program, request, |code| {
            Native::install(program, options, code, pool, Placement::BestFit)
        })
    }

    /// As [`Native::compile`], for untrusted programs: constants are blinded, and the code
    /// is placed at a random address. Hardened code is longer and slower.
    pub fn compile_hardened(
        program: &Lowered,
        options: &Options,
        pool: &Pool,
        random: &mut dyn Random,
    ) -> Result<Native, CompileError> {
        let blinding_keys =
            SplitMix::new(u64::from(random.next_u32()) << 32 | u64::from(random.next_u32()));
        let request = Request::new(options, Some(blinding_keys));
        Host::new(options.features).compile(program, request, |code| {
            Native::install(program, options, code, pool, Placement::Random(random))
        })
    }

    fn install(
        program: &Lowered,
        options: &Options,
        code: impl GeneratedCode,
        pool: &Pool,
        placement: Placement<'_>,
    ) -> Result<Native, CompileError> {
        let evidence = program.evidence();
        let uses_context = code.uses_context();
        let requirements = match evidence {
            // Runs of eBPF programs do not depend on them.
            Evidence::CallerAsserted | Evidence::Verified(_) => Requirements::default(),
            Evidence::Classic(_) => {
                Requirements::of(program.insns(), program.packet_rules(), evidence)
            }
        };
        let image = pool
            .install_at(placement, code.len(), 16, |out, _| code.write(out))
            .map_err(CompileError::Memory)?;
        // SAFETY: the backend made a function of this type at that offset, and the
        // image keeps it there.
        let entry =
            unsafe { mem::transmute::<*const u8, Entry>(image.address().add(code.entry())) };
        Ok(Native {
            entry,
            arguments: Arguments::of(program, requirements, uses_context),
            uses_context,
            reads_metadata: requirements.metadata,
            checks_deadline: options.deadline,
            evidence,
            rules: program.packet_rules(),
            maps: program.maps().to_vec(),
            cpus: cpus(program),
            _accesses: program.map_accesses().to_vec(),
            _tail_tables: program.tail_tables().to_vec(),
            host: program.host().clone(),
            tail_entry: code.tail_entry(),
            is_tail_target: options.tail_target,
            entry_slots: code.entry_slots().to_vec(),
            code_map: if options.map {
                code_map(program, &code)
            } else {
                Vec::new()
            },
            image,
        })
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
    /// several pieces (a filter's code may be written twice), or none (where it is part of
    /// another instruction or dead). Empty without [`Options::map`].
    pub fn map(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        pieces(&self.code_map, self.image.bytes().len())
    }

    /// A handle that runs the program on memory; `None` if the program uses a native
    /// context or is a classic filter.
    #[inline]
    pub fn on_memory(&self) -> Option<OnMemory<'_>> {
        (self.arguments == Arguments::Memory).then_some(OnMemory {
            entry: self.entry,
            code: PhantomData,
        })
    }

    /// A handle that runs a packet filter on bytes; `None` if the filter uses more than the
    /// bytes, or is no packet filter.
    #[inline]
    pub fn on_packets(&self) -> Option<OnPackets<'_>> {
        (self.arguments == Arguments::Packet).then_some(OnPackets {
            entry: self.entry,
            code: PhantomData,
        })
    }

    /// Runs a packet filter. `budget` limits its backward jumps.
    ///
    /// # Panics
    /// If the program is a seccomp filter.
    #[inline]
    pub fn run_packet(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        if let Some(filter) = self.on_packets() {
            return Outcome::Returned(filter.run(packet.data()).into());
        }
        self.run_with_skb(machine, packet, random, budget)
    }

    /// Runs a packet filter that uses its context or the native context.
    #[inline(never)]
    fn run_with_skb(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        match self.arguments {
            Arguments::Seccomp => panic!("a seccomp filter runs on system calls"),
            Arguments::Verified(_) | Arguments::Entry(_) => {
                panic!("a verified program runs on its context")
            }
            Arguments::Full | Arguments::Packet | Arguments::Memory => {}
        }
        machine
            .skb
            .describe(packet, self.rules, self.reads_metadata);
        let data = packet.data();
        let context = (&raw mut machine.skb).expose_provenance() as u64;
        // SAFETY: the program is a packet filter, so its evidence allows exactly
        // the context that `r1` points to, and the packet.
        unsafe {
            if self.uses_context {
                let mut cx = RunContext::new(packet, random, machine.clock.get());
                self.run_with_context(context, 0, data, &mut cx, budget, None)
            } else {
                self.run_without_context(context, 0, data)
            }
        }
    }

    /// Runs a seccomp filter on `struct seccomp_data` in host order.
    ///
    /// # Panics
    /// If the program is a packet filter.
    #[inline]
    pub fn run_seccomp(&self, _: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        let is_seccomp = self.arguments == Arguments::Seccomp;
        assert!(is_seccomp, "a packet filter runs on packets");
        let context = data.as_ptr().expose_provenance() as u64;
        // SAFETY: the program is a seccomp filter, whose checker bounds every load
        // to the 64 bytes at `r1`. It has no loops, no calls and no packet loads,
        // which would use the native context.
        unsafe { self.run_without_context(context, 0, &[]) }
    }

    /// Runs an eBPF program on memory: `r1` is its address, `r2` its length. Packet loads
    /// find an empty packet.
    ///
    /// # Panics
    /// If the program is a classic filter.
    #[inline]
    pub fn run_memory(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
    ) -> Outcome {
        match self.on_memory() {
            Some(program) => Outcome::Returned(program.run(memory)),
            None => self.run_unchecked(machine, memory, &NO_PACKET, random, None),
        }
    }

    /// As [`Native::run_memory`], with a packet for packet loads and helpers, and an
    /// optional deadline.
    ///
    /// # Panics
    /// If the program is a classic filter, or there is a deadline and the program was
    /// compiled without [`Options::deadline`].
    pub fn run_memory_with_packet(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        deadline: Option<Deadline>,
    ) -> Outcome {
        assert!(
            self.checks_deadline || deadline.is_none(),
            "the code was compiled without deadline checks"
        );
        self.run_unchecked(machine, memory, packet, random, deadline)
    }

    /// As [`Native::run_memory`], until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with the memory as the program left it.
    ///
    /// # Panics
    /// If the program is a classic filter (those have a budget), or was compiled
    /// without [`Options::deadline`].
    #[inline]
    pub fn run_memory_until(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        deadline: Deadline,
    ) -> Outcome {
        assert!(
            self.checks_deadline,
            "the code was compiled without deadline checks"
        );
        self.run_unchecked(machine, memory, &NO_PACKET, random, Some(deadline))
    }

    #[inline(never)]
    fn run_unchecked(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        deadline: Option<Deadline>,
    ) -> Outcome {
        match self.evidence {
            Evidence::CallerAsserted => {}
            Evidence::Classic(_) => panic!("a classic filter runs on packets or system calls"),
            Evidence::Verified(_) => panic!("a verified program runs on its context"),
        }
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let len = memory.len() as u64;
        // SAFETY: the caller of `assume_safe` asserted that the program accesses nothing
        // but the memory, which is unique to this run.
        unsafe {
            if self.uses_context {
                let mut cx = RunContext::new(packet, random, machine.clock.get());
                self.run_with_context(address, len, packet.data(), &mut cx, u64::MAX, deadline)
            } else {
                self.run_without_context(address, len, packet.data())
            }
        }
    }

    /// Runs a program that does not use the native context.
    ///
    /// # Safety
    /// The program does not use the native context; `r1` and `r2` are as its evidence
    /// requires.
    #[inline]
    unsafe fn run_without_context(&self, r1: u64, r2: u64, data: &[u8]) -> Outcome {
        debug_assert!(!self.uses_context);
        let context = std::ptr::null_mut();
        // SAFETY: the code was compiled from a lowered program, whose evidence covers its
        // accesses; the rest is upheld by the caller.
        Outcome::Returned(unsafe { (self.entry)(r1, r2, data.as_ptr(), data.len(), context) })
    }

    /// Runs a program that uses the native context.
    ///
    /// # Safety
    /// `r1` and `r2` are as the program's evidence requires.
    unsafe fn run_with_context(
        &self,
        r1: u64,
        r2: u64,
        data: &[u8],
        cx: &mut RunContext<'_>,
        budget: u64,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let processor = cx.cpu();
        let run_context: *mut RunContext<'_> = cx;
        let mut context = NativeContext {
            run_context: run_context.cast(),
            data: data.as_ptr(),
            len: data.len(),
            budget: i64::try_from(budget).unwrap_or(i64::MAX),
            fuel: fuel(deadline),
            stack: 0,
            processor,
            tail_calls: 0,
            deadline,
        };
        // SAFETY: as in `run_without_context`; the native context outlives the call.
        let r0 = unsafe { (self.entry)(r1, r2, data.as_ptr(), data.len(), &raw mut context) };
        if context.budget < 0 {
            Outcome::BudgetExhausted
        } else if context.fuel < 0 {
            Outcome::DeadlinePassed
        } else {
            Outcome::Returned(r0)
        }
    }
}

/// CPUs that a program may run on: those of which its maps have values, and for which its
/// program arrays take targets.
fn cpus(program: &Lowered) -> u32 {
    let copies = program
        .map_accesses()
        .iter()
        .filter_map(|access| match access {
            DirectAccess::Elements(elements) => Some(elements.copies()),
            DirectAccess::Maps(_) | DirectAccess::Hash(_) | DirectAccess::Function(_) => None,
        });
    let callers = program.tail_tables().iter().map(|table| table.cpus());
    copies
        .filter(|copies| *copies > 1)
        .chain(callers)
        .min()
        .unwrap_or(u32::MAX)
}

/// The empty packet of runs without a packet.
const NO_PACKET: Packet<'static> = Packet::whole(&[], &Metadata::UNKNOWN);

/// The code map with the slots of the program that was lowered.
pub(crate) fn code_map(program: &Lowered, code: &impl GeneratedCode) -> Vec<(u32, u32)> {
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

/// Runs a program on memory; see [`Native::on_memory`].
#[derive(Clone, Copy)]
pub struct OnMemory<'n> {
    entry: Entry,
    code: PhantomData<&'n Native>,
}

impl OnMemory<'_> {
    /// The program's `r0`: `r1` is the memory's address, `r2` its length.
    #[inline]
    pub fn run(self, memory: &mut [u8]) -> u64 {
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let (data, context) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the code uses no native context and no packet, and the caller of
        // `assume_safe` asserted that it accesses nothing but the memory, which is unique
        // to this run; the code is borrowed.
        unsafe { (self.entry)(address, memory.len() as u64, data, 0, context) }
    }
}

/// Runs a packet filter on bytes; see [`Native::on_packets`].
#[derive(Clone, Copy)]
pub struct OnPackets<'n> {
    entry: Entry,
    code: PhantomData<&'n Native>,
}

impl OnPackets<'_> {
    /// The filter's result for a packet of these bytes.
    #[inline]
    pub fn run(self, data: &[u8]) -> u32 {
        let context = std::ptr::null_mut();
        // SAFETY: the code uses nothing but the packet's bytes, and is borrowed.
        unsafe { (self.entry)(0, 0, data.as_ptr(), data.len(), context) as u32 }
    }
}
