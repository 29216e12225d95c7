//! A program compiled for the threaded interpreter, and its entry points.

use std::sync::Arc;

use isa::ebpf::Reg;
use lower::{Evidence, Input, Lowered, PacketRules, Requirements};
use packet::{Metadata, Packet};
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{Deadline, MAY_GOTO_LOOPS, Machine, Meter, Outcome, RunContext};

use crate::compile::{Compiled, Unsupported, compile};
use crate::op::{Op, Run};
use crate::ops::branch::Table;
use crate::{Applied, Fusions};

/// A program compiled for the threaded interpreter.
pub struct ThreadedProgram {
    ops: Box<[Op]>,
    /// Lookup tables; operations hold their addresses.
    tables: Arc<[Table]>,
    evidence: Evidence,
    rules: PacketRules,
    requirements: Requirements,
    setup: Setup,
    applied: Applied,
}

/// The state that a run sets up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setup {
    /// Nothing: the program uses registers and the packet's bytes only.
    Nothing,
    /// The context of a seccomp filter that uses nothing else.
    SeccompContext,
    /// Context, run context and limits.
    Full,
}

impl Setup {
    fn of(requirements: Requirements, evidence: Evidence) -> Setup {
        let seccomp = evidence.input() == Input::SystemCall;
        match requirements.limits | requirements.run_context {
            false if seccomp => Setup::SeccompContext,
            false if !requirements.context => Setup::Nothing,
            _ => Setup::Full,
        }
    }
}

impl ThreadedProgram {
    /// Compiles a program: one pass, linear in its length. Verified programs, which run on
    /// contexts of their own, are unsupported from their first instruction on.
    pub fn compile(program: &Lowered) -> Result<ThreadedProgram, Unsupported> {
        ThreadedProgram::compile_with(program, Fusions::ALL)
    }

    /// As [`ThreadedProgram::compile`], with only these fusions.
    pub fn compile_with(
        program: &Lowered,
        fusions: Fusions,
    ) -> Result<ThreadedProgram, Unsupported> {
        let (rules, evidence) = (program.packet_rules(), program.evidence());
        if let Evidence::Verified(_) = evidence {
            let insn = program.insns()[0];
            return Err(Unsupported { slot: 0, insn });
        }
        let Compiled {
            ops,
            tables,
            applied,
        } = compile(program, fusions)?;
        let requirements = Requirements::of(program.insns(), rules, evidence);
        Ok(ThreadedProgram {
            requirements,
            setup: Setup::of(requirements, evidence),
            evidence,
            rules,
            ops,
            tables,
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

    /// Runs a packet filter, or an eBPF program on a packet: `r1` is its context. `budget`
    /// limits its backward jumps.
    ///
    /// # Panics
    /// If the program is a seccomp filter.
    #[inline(always)]
    pub fn run_packet(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        if self.setup == Setup::Nothing {
            // SAFETY: the program uses registers and these bytes only.
            return unsafe { self.run_without_context(machine, 0, packet.data()) };
        }
        // A copy, so that the caller's packet can stay in registers on the fast path.
        self.run_with_context(machine, &{ *packet }, random, budget)
    }

    /// Runs a packet filter with a context, out of line: the fast path of
    /// [`run_packet`](Self::run_packet) then saves no registers.
    #[inline(never)]
    fn run_with_context(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        assert!(!self.is_seccomp(), "a seccomp filter runs on system calls");
        machine
            .skb
            .describe(packet, self.rules, self.requirements.metadata);
        let data = packet.data();
        let m = machine.enter();
        // SAFETY: `m` is unique for this run; the program is a packet filter, so
        // its evidence allows exactly the context that `r1` points to.
        unsafe {
            let context = (&raw mut (*m).skb).expose_provenance() as u64;
            self.run(m, context, data, packet, random, Meter::new(budget, None))
        }
    }

    /// Runs a seccomp filter on `struct seccomp_data` in host order.
    ///
    /// # Panics
    /// If the program is a packet filter.
    #[inline]
    pub fn run_seccomp(&self, machine: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        assert!(self.is_seccomp(), "a packet filter runs on packets");
        let context = data.as_ptr().expose_provenance() as u64;
        if self.setup == Setup::SeccompContext {
            // SAFETY: the program is a seccomp filter that uses its context only, and its
            // checker bounds every load to the 64 bytes at `r1`.
            return unsafe { self.run_without_context(machine, context, &[]) };
        }
        let (packet, mut random) = (NO_PACKET, SplitMix::new(0));
        let m = machine.enter();
        // SAFETY: `m` is unique for this run; the program is a seccomp filter,
        // whose checker bounds every load to the 64 bytes at `r1`.
        unsafe { self.run(m, context, &[], &packet, &mut random, Meter::new(0, None)) }
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
        self.run_memory_within(machine, memory, random, u64::MAX)
    }

    /// As [`ThreadedProgram::run_memory`], limited to `budget` backward jumps.
    #[inline]
    pub fn run_memory_within(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        self.run_unchecked(
            machine,
            memory,
            &NO_PACKET,
            random,
            Meter::new(budget, None),
        )
    }

    /// As [`ThreadedProgram::run_memory`], until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with the memory as the program left it.
    #[inline]
    pub fn run_memory_until(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        deadline: Deadline,
    ) -> Outcome {
        let meter = Meter::new(u64::MAX, Some(deadline));
        self.run_unchecked(machine, memory, &NO_PACKET, random, meter)
    }

    /// As [`ThreadedProgram::run_memory`], with a packet for packet loads and helpers.
    pub fn run_memory_with_packet(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
    ) -> Outcome {
        let meter = Meter::new(u64::MAX, None);
        self.run_unchecked(machine, memory, packet, random, meter)
    }

    #[inline]
    fn run_unchecked(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        meter: Meter,
    ) -> Outcome {
        let is_unchecked = self.evidence.input() == Input::Memory;
        assert!(
            is_unchecked,
            "a classic filter runs on packets or system calls"
        );
        let m = machine.enter();
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: `m` and the memory are unique for this run, and the caller of
        // `assume_safe` asserted that the program accesses nothing else.
        unsafe {
            (*m).regs[Reg::R2.index()] = memory.len() as u64;
            self.run(m, address, packet.data(), packet, random, meter)
        }
    }

    fn is_seccomp(&self) -> bool {
        self.evidence.input() == Input::SystemCall
    }

    /// Runs a classic filter without loops that uses registers, its context and the
    /// packet's bytes only.
    ///
    /// # Safety
    /// `context` is `r1` as the program's evidence requires, if the program reads it.
    #[inline(always)]
    unsafe fn run_without_context(
        &self,
        machine: &mut Machine,
        context: u64,
        data: &[u8],
    ) -> Outcome {
        let m = machine.enter();
        let no_run_context = std::ptr::null_mut();
        // SAFETY: the operations were compiled from a lowered program, whose evidence
        // covers their accesses; by `requirements`, none uses the run context.
        let r0 = unsafe {
            if self.requirements.context {
                (*m).regs[Reg::R6.index()] = context;
            }
            Run::new(self.ops.as_ptr(), m, data, no_run_context).complete()
        };
        Outcome::Returned(r0)
    }

    /// # Safety
    /// `m` comes from `Machine::enter`; `context` is `r1` as the program's evidence
    /// requires.
    #[inline(always)]
    unsafe fn run(
        &self,
        m: *mut Machine,
        context: u64,
        data: &[u8],
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
            (*m).regs[Reg::R1.index()] = context;
            (*m).regs[Reg::R6.index()] = context;
            let cx: *mut RunContext<'_> = &raw mut cx;
            let r0 = Run::new(self.ops.as_ptr(), m, data, cx.cast()).complete();
            (*m).meter.outcome(r0)
        }
    }
}

/// The empty packet of runs without a packet.
const NO_PACKET: Packet<'static> = Packet::whole(&[], &Metadata::UNKNOWN);
