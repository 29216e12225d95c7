//! A program in the interpreter's form, and running it.

use std::sync::Arc;

use isa::ebpf::{Insn, Reg};
use lower::{Evidence, Input, Lowered, PacketRules, Requirements};
use packet::{Metadata, Packet};
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{Deadline, MAY_GOTO_LOOPS, Machine, Meter, Outcome, RunContext};

use crate::compile::{Compiled, Unsupported, compile};
use crate::op::{Op, Run};
use crate::ops::branch::Table;
use crate::{Applied, Fusions};

/// A program in the interpreter's form.
pub struct Code {
    ops: Box<[Op]>,
    /// Owned here because operations hold their addresses.
    tables: Arc<[Table]>,
    evidence: Evidence,
    rules: PacketRules,
    requirements: Requirements,
    setup: Setup,
    applied: Applied,
}

/// What a run sets up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setup {
    /// Nothing: the program looks at registers and a packet's bytes.
    Nothing,
    /// The context of a seccomp filter that looks at nothing else.
    Call,
    /// All there is.
    Everything,
}

impl Setup {
    fn of(requirements: Requirements, evidence: Evidence) -> Setup {
        let seccomp = evidence.input() == Input::SystemCall;
        match requirements.limits | requirements.run_context {
            false if seccomp => Setup::Call,
            false if !requirements.context => Setup::Nothing,
            _ => Setup::Everything,
        }
    }
}

impl Code {
    /// Compiles a program: one pass, linear in its length.
    pub fn compile(program: &Lowered) -> Result<Code, Unsupported> {
        Code::compile_with(program, Fusions::ALL)
    }

    /// As [`Code::compile`], with only these fusions.
    pub fn compile_with(program: &Lowered, fusions: Fusions) -> Result<Code, Unsupported> {
        let (rules, evidence) = (program.packet_rules(), program.evidence());
        Code::build(program.insns(), rules, evidence, fusions)
    }

    /// Compiles what a lowered program consists of.
    pub(crate) fn build(
        insns: &[Insn],
        rules: PacketRules,
        evidence: Evidence,
        fusions: Fusions,
    ) -> Result<Code, Unsupported> {
        let Compiled {
            ops,
            tables,
            applied,
        } = compile(insns, rules, fusions)?;
        let requirements = Requirements::of(insns, rules, evidence);
        Ok(Code {
            requirements,
            setup: Setup::of(requirements, evidence),
            evidence,
            rules,
            ops,
            tables,
            applied,
        })
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Never: a program has at least one instruction.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// How often each fusion was applied.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// How many comparison chains became table look-ups.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Runs a packet filter, or a trusted program on a packet: `r1` is its context.
    /// `budget` bounds how many backward jumps it takes.
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
            // SAFETY: the program looks at nothing but registers and these bytes.
            return unsafe { self.run_alone(machine, 0, packet.data()) };
        }
        // A copy, so that the caller's need not lie in memory for the other way.
        self.run_with_everything(machine, &{ *packet }, random, budget)
    }

    /// Apart, so that the many programs that want nothing else do not save
    /// registers for it.
    #[inline(never)]
    fn run_with_everything(
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
        if self.setup == Setup::Call {
            // SAFETY: the program is a seccomp filter that looks at its context
            // alone, whose checker bounds every load to the 64 bytes at `r1`.
            return unsafe { self.run_alone(machine, context, &[]) };
        }
        let (packet, mut random) = (NO_PACKET, SplitMix::new(0));
        let m = machine.enter();
        // SAFETY: `m` is unique for this run; the program is a seccomp filter,
        // whose checker bounds every load to the 64 bytes at `r1`.
        unsafe { self.run(m, context, &[], &packet, &mut random, Meter::new(0, None)) }
    }

    /// Runs a trusted program on memory: `r1` is its address, `r2` its length.
    /// Such a program ends by itself. It sees an empty packet.
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

    /// As [`Code::run_memory`], for at most `budget` backward jumps.
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

    /// As [`Code::run_memory`], but no longer than until a deadline: the outcome may
    /// be [`Outcome::DeadlinePassed`], with what the program wrote so far.
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

    /// As [`Code::run_memory`], with a packet for packet loads and helpers.
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
        // SAFETY: `m` is unique for this run, as is the memory, and the host
        // vouched that the program accesses nothing else.
        unsafe {
            (*m).regs[Reg::R2.index()] = memory.len() as u64;
            self.run(m, address, packet.data(), packet, random, meter)
        }
    }

    fn is_seccomp(&self) -> bool {
        self.evidence.input() == Input::SystemCall
    }

    /// Runs a classic filter that looks at nothing but its registers, its context
    /// and a packet's bytes. Such a program has no loops.
    ///
    /// # Safety
    /// `context` points to what the program's evidence says `r1` points to, if it
    /// looks at it.
    #[inline(always)]
    unsafe fn run_alone(&self, machine: &mut Machine, context: u64, data: &[u8]) -> Outcome {
        let m = machine.enter();
        let nobody = std::ptr::null_mut();
        // SAFETY: the operations were made from a lowered program, whose evidence
        // upholds what they do; none of them uses the run context, as `requirements` says.
        let r0 = unsafe {
            if self.requirements.context {
                (*m).regs[Reg::R6.index()] = context;
            }
            Run::new(self.ops.as_ptr(), m, data, nobody).complete()
        };
        Outcome::Returned(r0)
    }

    /// # Safety
    /// `m` comes from `Machine::enter`; `context` points to what the program's
    /// evidence says `r1` points to.
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
        // SAFETY: the operations were made from a lowered program, whose
        // evidence upholds what they do; the rest is passed on to the caller.
        // The lifetime of the surroundings is only lengthened in name: no
        // operation keeps the pointer. Nothing else in this run refers to the
        // machine's clock.
        unsafe {
            let mut cx = RunContext {
                packet,
                random,
                clock: (*m).clock.get(),
            };
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

/// What runs without a packet see.
const NO_PACKET: Packet<'static> = Packet::whole(&[], &Metadata::UNKNOWN);
