//! The state of one run: registers, stack, context of the program, run context.

use std::any::Any;

use btf::Btf;
use isa::ebpf::Reg;
use packet::Packet;
use spec::limits;
use spec::{Clock, Printk, Random};

use crate::{
    Addresses, HostFunction, MapHandle, Meter, RunGuard, SkBuff, StackFrames, System, SystemCalls,
    Timers, system,
};

/// Call frames of a run at most, the entry's among them (Linux: `MAX_CALL_FRAMES`).
pub const MAX_FRAMES: usize = limits::FRAMES as usize;

/// Bytes of stack in a frame (Linux: `MAX_BPF_STACK`).
pub const FRAME_BYTES: usize = limits::STACK as usize;

/// Number of fall-throughs of `may_goto` in one activation of a function (Linux:
/// `BPF_MAX_LOOPS`).
pub const MAY_GOTO_LOOPS: u64 = limits::LOOPS as u64;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program returned this.
    Returned(u64),
    /// The limit of backward jumps was exceeded.
    BudgetExhausted,
    /// The run's [`Deadline`](crate::Deadline) passed before it returned. What it
    /// wrote until then is written.
    DeadlinePassed,
}

/// Inputs and host services of a run beside the machine.
pub struct RunContext<'a> {
    /// The packet that the loads of classic programs read, with the number of the CPU.
    pub packet: &'a Packet<'a>,
    /// The source of random numbers.
    pub random: &'a mut dyn Random,
    /// The clock of the time helpers; without one they return 0.
    pub clock: Option<&'a mut dyn Clock>,
    /// The receiver of text that a verified program prints; without one it is lost.
    pub printk: Option<&'a mut dyn Printk>,
    /// The machine and the process, for helpers of a verified program.
    pub system: &'a System,
    /// The address that stands for the task that runs. It is not 0.
    pub task: u64,
    /// The types of the kernel; without them helpers answer as a kernel without BTF.
    pub types: Option<&'a Btf<'static>>,
    /// The process of the run; without one no descriptor is open and none can be made.
    pub process: Option<&'a dyn SystemCalls>,
    /// The functions of the host that a verified program calls; native code sets its own.
    pub host: &'a [HostFunction],
    /// Address of the context of a verified program; 0 without one.
    pub context: u64,
    /// Stack frames of a verified program that runs as native code, which links them.
    pub frames: StackFrames,
    /// Epoch guard of the values of maps that a verified program looks up.
    pub guard: Option<&'a RunGuard>,
    /// The maps whose values native code may read by any address.
    pub maps: &'a [MapHandle],
    /// The timers in values of maps; without them none can be made (`-EOPNOTSUPP`).
    pub timers: Option<&'a Timers>,
    /// Address of the timer whose callback runs; 0 in other runs.
    pub running_timer: u64,
    /// The panic of a helper of a verified program: the helper returned 0 instead, and the
    /// panic goes on when the run has ended.
    pub panic: Option<Box<dyn Any + Send>>,
}

impl<'a> RunContext<'a> {
    /// The context of a run without maps.
    #[inline(always)]
    pub fn new(
        packet: &'a Packet<'a>,
        random: &'a mut dyn Random,
        clock: Option<&'a mut dyn Clock>,
    ) -> RunContext<'a> {
        RunContext {
            packet,
            random,
            clock,
            printk: None,
            system: &system::DEFAULT,
            task: Addresses::DEFAULT.task,
            types: None,
            process: None,
            host: &[],
            context: 0,
            frames: StackFrames::NONE,
            guard: None,
            maps: &[],
            timers: None,
            running_timer: 0,
            panic: None,
        }
    }

    /// The same context for a shorter time: what a run with a guard of its own needs.
    #[inline]
    pub fn reborrow(&mut self) -> RunContext<'_> {
        RunContext {
            packet: self.packet,
            random: &mut *self.random,
            clock: match &mut self.clock {
                Some(clock) => Some(&mut **clock),
                None => None,
            },
            printk: match &mut self.printk {
                Some(printk) => Some(&mut **printk),
                None => None,
            },
            system: self.system,
            task: self.task,
            types: self.types,
            process: self.process,
            host: self.host,
            context: self.context,
            frames: self.frames,
            guard: self.guard,
            maps: self.maps,
            timers: self.timers,
            running_timer: self.running_timer,
            panic: self.panic.take(),
        }
    }

    /// Number of the CPU that the run is on.
    #[inline]
    pub fn cpu(&self) -> u32 {
        self.packet.meta().cpu
    }

    /// The clock's time; 0 without a clock.
    #[inline]
    pub fn nanoseconds(&mut self) -> u64 {
        match &mut self.clock {
            Some(clock) => clock.nanoseconds(),
            None => 0,
        }
    }
}

/// The clock of the host, if it provides one.
pub struct HostClock(Option<Box<dyn Clock + Send>>);

impl HostClock {
    /// The clock in the form of [`RunContext::clock`].
    #[inline(always)]
    pub fn get(&mut self) -> Option<&mut dyn Clock> {
        match &mut self.0 {
            Some(clock) => Some(&mut **clock),
            None => None,
        }
    }
}

/// Registers, stack and context of a run; reused from run to run. A safe program reads
/// no register and no stack slot before it has written it, so a run depends on no other.
#[repr(C)]
pub struct Machine {
    /// The registers; engines may keep some elsewhere while they run.
    pub regs: [u64; Reg::COUNT],
    /// The limits of the run.
    pub meter: Meter,
    /// Remaining fall-throughs of `may_goto` in the current activation.
    pub may_goto: u64,
    /// Tail calls that the run made.
    pub tail_calls: u32,
    /// The context of socket filters.
    pub skb: SkBuff,
    /// The context of filters that read the length only: the other fields are zero.
    pub length: SkBuff,
    /// The clock of the time helpers.
    pub clock: HostClock,
    /// The frames, the entry's at the end.
    stack: [u64; MAX_FRAMES * FRAME_BYTES / 8],
}

impl Machine {
    /// A machine in which all registers and the stack are zero, without a clock.
    pub const fn new() -> Machine {
        Machine {
            regs: [0; Reg::COUNT],
            meter: Meter::EMPTY,
            may_goto: 0,
            tail_calls: 0,
            skb: SkBuff::EMPTY,
            length: SkBuff::EMPTY,
            clock: HostClock(None),
            stack: [0; MAX_FRAMES * FRAME_BYTES / 8],
        }
    }

    /// The machine with a clock for the time helpers.
    #[must_use]
    pub fn with_clock(self, clock: impl Clock + Send + 'static) -> Machine {
        let clock = HostClock(Some(Box::new(clock)));
        Machine { clock, ..self }
    }

    /// Sets the frame pointer, and returns the pointer through which an engine makes
    /// every other access of the run: the program's pointers to stack and context are
    /// derived from it.
    #[inline(always)]
    pub fn enter(&mut self) -> *mut Machine {
        let this: *mut Machine = self;
        // SAFETY: `this` was made from a unique reference just above.
        unsafe {
            let stack = &raw mut (*this).stack;
            (*this).regs[Reg::R10.index()] = stack.add(1).expose_provenance() as u64;
        }
        this
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}
