//! A program compiled for the threaded interpreter, and its entry points.

use std::sync::Arc;

use isa::ebpf::Reg;
use lower::{
    FilterContext, Kind, Lowered, LoweredCode, MemoryProgram, PacketFilter, PacketRules,
    SyscallFilter,
};
use packet::{Metadata, Packet};
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{Deadline, FrameLayout, MAY_GOTO_LOOPS, Machine, Meter, Outcome, References, RunContext};

use crate::compile::{Compiled, Unsupported, compile};
use crate::op::{Op, Run};
use crate::ops::branch::Table;
use crate::{Applied, Fusions};

/// The operations of a program, whatever its kind: for inspection. A [`ThreadedProgram`] runs.
pub struct ThreadedCode {
    pub(crate) ops: Box<[Op]>,
    /// Lookup tables; operations hold their addresses.
    tables: Arc<[Table]>,
    /// Frames of the functions of a verified program, the entry first; operations hold their
    /// addresses.
    pub(crate) layouts: Arc<[FrameLayout]>,
    /// What operations refer to by address.
    pub(crate) references: References,
    /// An operation uses the run context or the limits of the run.
    uses_run: bool,
    applied: Applied,
}

impl ThreadedCode {
    /// Compiles code with some fusions: one pass, linear in its length.
    ///
    /// # Errors
    /// The first instruction that the interpreter does not support.
    pub fn compile(program: &LoweredCode, fusions: Fusions) -> Result<ThreadedCode, Unsupported> {
        let Compiled {
            ops,
            tables,
            layouts,
            applied,
        } = compile(program, fusions)?;
        Ok(ThreadedCode {
            uses_run: ops.iter().any(|op| op.uses_run),
            ops,
            tables,
            layouts,
            references: program.references(),
            applied,
        })
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Always false: a program has at least one instruction.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Number of times that each fusion was applied.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Number of comparison chains that became table lookups.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Runs a program without loops and calls whose operations use neither run context nor
    /// limits.
    ///
    /// # Safety
    /// The program's evidence covers its accesses with this context in `r1`; `data` is the
    /// packet that its loads may read.
    #[inline(always)]
    unsafe fn run_alone(&self, machine: &mut Machine, context: Option<u64>, data: &[u8]) -> u64 {
        let m = machine.enter();
        // SAFETY: the operations were compiled from a lowered program, whose evidence covers
        // their accesses; `m` is unique for this run.
        unsafe {
            if let Some(context) = context {
                set_context(m, context);
            }
            Run::without_context(self.ops.as_ptr(), m, data).complete()
        }
    }

    /// Runs a program.
    ///
    /// # Safety
    /// `m` comes from `Machine::enter`; the program's evidence covers its accesses with this
    /// context in `r1`.
    #[inline(always)]
    unsafe fn run(
        &self,
        m: *mut Machine,
        context: u64,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        meter: Meter,
    ) -> Outcome {
        // SAFETY: the operations were compiled from a lowered program, whose evidence
        // covers their accesses; the rest is upheld by the caller. The lifetime of the run
        // context is extended in type only: no operation keeps the pointer. Nothing else in
        // this run refers to the machine's clock.
        unsafe {
            let mut cx = RunContext::new(packet, random, (*m).clock.get());
            (*m).may_goto = MAY_GOTO_LOOPS;
            (*m).meter = meter;
            set_context(m, context);
            let cx: *mut RunContext<'_> = &raw mut cx;
            let r0 = Run::new(self.ops.as_ptr(), m, packet.data(), cx.cast()).complete();
            (*m).meter.outcome(r0)
        }
    }
}

/// Sets the context: `r1` and, as compiled programs skip a leading copy of it, `r6`.
///
/// # Safety
/// `m` comes from `Machine::enter`.
#[inline(always)]
pub(crate) unsafe fn set_context(m: *mut Machine, context: u64) {
    // SAFETY: passed on to the caller.
    unsafe {
        (*m).regs[Reg::R1.index()] = context;
        (*m).regs[Reg::R6.index()] = context;
    }
}

/// Kinds of programs that the threaded interpreter runs.
pub trait Threaded: Kind {
    /// Entry function of programs.
    type Entry: Copy + Send + Sync;

    /// The entry of a program.
    fn entry(entry_info: Self::EntryInfo, code: &ThreadedCode) -> Self::Entry;
}

/// Entry point of a packet filter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FilterEntry {
    /// It uses registers and the packet's bytes only.
    Bytes,
    /// With a context of which it reads the length at most.
    WithLength,
    /// With a context in which all fields are set.
    WithFields,
}

impl Threaded for PacketFilter {
    type Entry = FilterEntry;

    fn entry(context: FilterContext, code: &ThreadedCode) -> FilterEntry {
        match (context, code.uses_run) {
            (FilterContext::Nothing, false) => FilterEntry::Bytes,
            (FilterContext::Nothing | FilterContext::Length, _) => FilterEntry::WithLength,
            (FilterContext::Fields, _) => FilterEntry::WithFields,
        }
    }
}

/// Entry point of a seccomp filter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SyscallEntry {
    /// It uses registers and its context only.
    Alone,
    /// With a run context and limits.
    WithRun,
}

impl Threaded for SyscallFilter {
    type Entry = SyscallEntry;

    fn entry((): (), code: &ThreadedCode) -> SyscallEntry {
        match code.uses_run {
            false => SyscallEntry::Alone,
            true => SyscallEntry::WithRun,
        }
    }
}

impl Threaded for MemoryProgram {
    type Entry = ();

    fn entry((): (), _: &ThreadedCode) {}
}

/// A program of a kind, compiled for the threaded interpreter.
///
/// A program has the entries of its kind only:
///
/// ```
/// use beebox_interp::ThreadedProgram;
/// use lower::SyscallFilter;
/// use vm::{Machine, Outcome};
///
/// fn run(filter: &ThreadedProgram<SyscallFilter>, call: &[u8; 64]) -> Outcome {
///     filter.run(&mut Machine::new(), call)
/// }
/// ```
///
/// ```compile_fail,E0308
/// use beebox_interp::ThreadedProgram;
/// use lower::PacketFilter;
/// use vm::{Machine, Outcome};
///
/// fn run(filter: &ThreadedProgram<PacketFilter>, call: &[u8; 64]) -> Outcome {
///     filter.run(&mut Machine::new(), call, &mut spec::SplitMix::new(1), 0)
/// }
/// ```
///
pub struct ThreadedProgram<K: Threaded> {
    pub(crate) code: ThreadedCode,
    rules: PacketRules,
    pub(crate) entry: K::Entry,
}

impl<K: Threaded> ThreadedProgram<K> {
    /// Compiles a program: one pass, linear in its length.
    ///
    /// # Errors
    /// The first instruction that the interpreter does not support.
    pub fn compile(program: &Lowered<K>) -> Result<ThreadedProgram<K>, Unsupported> {
        ThreadedProgram::compile_with(program, Fusions::ALL)
    }

    /// As [`ThreadedProgram::compile`], with only these fusions.
    ///
    /// # Errors
    /// As [`ThreadedProgram::compile`].
    pub fn compile_with(
        program: &Lowered<K>,
        fusions: Fusions,
    ) -> Result<ThreadedProgram<K>, Unsupported> {
        let code = ThreadedCode::compile(program, fusions)?;
        Ok(ThreadedProgram {
            entry: K::entry(program.entry_info(), &code),
            rules: program.packet_rules(),
            code,
        })
    }

    /// The operations.
    pub fn code(&self) -> &ThreadedCode {
        &self.code
    }
}

impl ThreadedProgram<PacketFilter> {
    /// Runs the filter on a packet. `budget` limits its backward jumps.
    #[inline(always)]
    pub fn run(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        if self.entry == FilterEntry::Bytes {
            // SAFETY: the filter uses registers and these bytes only: `r1` is not live at its
            // entry.
            let r0 = unsafe { self.code.run_alone(machine, None, packet.data()) };
            return Outcome::Returned(r0);
        }
        // A copy, so that the caller's packet can stay in registers on the fast path.
        self.run_with_context(machine, &{ *packet }, random, budget)
    }

    /// Runs the filter with a context, out of line: the fast path of
    /// [`run`](ThreadedProgram::run) then saves no registers.
    #[inline(never)]
    fn run_with_context(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        let m = machine.enter();
        // SAFETY: `m` is unique for this run; the program is a packet filter, so
        // its evidence allows exactly the context that `r1` points to.
        unsafe {
            let context = match self.entry {
                FilterEntry::Bytes | FilterEntry::WithLength => {
                    (*m).length.describe_length(packet, self.rules);
                    &raw mut (*m).length
                }
                FilterEntry::WithFields => {
                    (*m).skb.describe(packet, self.rules);
                    &raw mut (*m).skb
                }
            };
            let context = context.expose_provenance() as u64;
            let meter = Meter::new(budget, None);
            self.code.run(m, context, packet, random, meter)
        }
    }
}

impl ThreadedProgram<SyscallFilter> {
    /// Runs the filter on `struct seccomp_data` in host order.
    #[inline]
    pub fn run(&self, machine: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        let context = data.as_ptr().expose_provenance() as u64;
        match self.entry {
            SyscallEntry::Alone => {
                // SAFETY: the program is a seccomp filter that uses its context only, and its
                // checker bounds every load to the 64 bytes at `r1`.
                let r0 = unsafe { self.code.run_alone(machine, Some(context), &[]) };
                Outcome::Returned(r0)
            }
            SyscallEntry::WithRun => {
                let (m, mut random) = (machine.enter(), SplitMix::new(0));
                // SAFETY: `m` is unique for this run; the program is a seccomp filter,
                // whose checker bounds every load to the 64 bytes at `r1`.
                unsafe {
                    let meter = Meter::new(0, None);
                    self.code.run(m, context, &NO_PACKET, &mut random, meter)
                }
            }
        }
    }
}

impl ThreadedProgram<MemoryProgram> {
    /// Runs the program on memory: `r1` is its address, `r2` its length. Packet loads find an
    /// empty packet.
    #[inline]
    pub fn run(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
    ) -> Outcome {
        self.run_within(machine, memory, random, u64::MAX)
    }

    /// As [`run`](ThreadedProgram::run), limited to `budget` backward jumps.
    #[inline]
    pub fn run_within(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        let meter = Meter::new(budget, None);
        self.run_metered(machine, memory, &NO_PACKET, random, meter)
    }

    /// As [`run`](ThreadedProgram::run), until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with the memory as the program left it.
    #[inline]
    pub fn run_until(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        deadline: Deadline,
    ) -> Outcome {
        let meter = Meter::new(u64::MAX, Some(deadline));
        self.run_metered(machine, memory, &NO_PACKET, random, meter)
    }

    /// As [`run`](ThreadedProgram::run), with a packet for packet loads and helpers.
    pub fn run_with_packet(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
    ) -> Outcome {
        let meter = Meter::new(u64::MAX, None);
        self.run_metered(machine, memory, packet, random, meter)
    }

    #[inline]
    fn run_metered(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        meter: Meter,
    ) -> Outcome {
        let m = machine.enter();
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: `m` and the memory are unique for this run, and the caller of
        // `assume_safe` asserted that the program accesses nothing else.
        unsafe {
            (*m).regs[Reg::R2.index()] = memory.len() as u64;
            self.code.run(m, address, packet, random, meter)
        }
    }
}

/// The empty packet of runs without a packet.
const NO_PACKET: Packet<'static> = Packet::whole(&[], &Metadata::UNKNOWN);
