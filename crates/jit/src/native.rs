//! A program as native code, and its runs.

use std::fmt;
use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ops::Range;

use lower::{Evidence, Lowered, Wants};
use packet::{Metadata, Packet};
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{Deadline, Machine, Outcome, PacketRules, Surroundings};

use crate::backend::{Backend, Code, Host, Request};
use crate::memory::{Image, MemoryError, Placement, Pool};

#[cfg(test)]
mod tests;

/// What native code may want of a run beside its arguments.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Env {
    /// A `Surroundings`.
    world: *mut (),
    /// The packet's bytes, and how many there are.
    data: *const u8,
    len: usize,
    /// Backward jumps that are left; below zero when they are used up.
    budget: i64,
    /// Rounds that are left before the next look at the deadline; below zero when
    /// it has passed.
    ticks: i64,
    /// The entry's stack pointer, where the run may end elsewhere.
    stack: u64,
    /// The processor's number, as the world tells it.
    processor: u32,
    deadline: Option<Deadline>,
}

impl Env {
    pub(crate) const WORLD: usize = std::mem::offset_of!(Env, world);
    pub(crate) const DATA: usize = std::mem::offset_of!(Env, data);
    pub(crate) const LEN: usize = std::mem::offset_of!(Env, len);
    pub(crate) const BUDGET: usize = std::mem::offset_of!(Env, budget);
    pub(crate) const TICKS: usize = std::mem::offset_of!(Env, ticks);
    pub(crate) const STACK: usize = std::mem::offset_of!(Env, stack);
    pub(crate) const PROCESSOR: usize = std::mem::offset_of!(Env, processor);
}

/// What native code calls when no ticks are left: gives new ones, or leaves them
/// below zero when the deadline has passed. The frames of native code that end
/// the run then hold nothing that wants to be dropped.
pub(crate) extern "C" fn look(env: &mut Env) {
    env.ticks = match env.deadline {
        Some(deadline) if deadline.has_passed() => -1,
        deadline => ticks_until(deadline),
    };
}

/// Rounds before a look at the deadline.
fn ticks_until(deadline: Option<Deadline>) -> i64 {
    deadline.map_or(i64::MAX, |deadline| deadline.rounds().into())
}

/// Where native code begins: `r1`, `r2`, the packet's bytes and their number, the
/// environment (which only some programs look at); the result is `r0`.
type Entry = unsafe extern "C" fn(u64, u64, *const u8, usize, *mut Env) -> u64;

/// The same of a program that looks at nothing but a packet's bytes: what it does not
/// look at is left as it is, which spares short filters a twentieth of their time.
type PacketEntry = unsafe extern "C" fn(
    MaybeUninit<u64>,
    MaybeUninit<u64>,
    *const u8,
    usize,
    MaybeUninit<*mut Env>,
) -> u64;

/// What a host decides about native code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What the code may use of the processor.
    pub features: crate::Features,
    /// Whether to keep what [`Native::map`] tells.
    pub map: bool,
    /// The optimizations to use; all by default.
    pub optimizations: crate::Optimizations,
    /// Whether the code of a program that a host vouches for looks at the deadline
    /// of [`Native::run_memory_until`]. It counts rounds of loops and local calls
    /// for that: in a loop of a function that calls nothing this takes 0 to 0.25 ns
    /// a round (on a loop that sums 8-byte words, 0.42 ns become 0.65; on a
    /// checksum of 2-byte words, 5 %), in one that calls up to 1 ns.
    pub deadline: bool,
}

/// Why there is no native code.
#[derive(Debug)]
pub enum CompileError {
    /// No memory to run it in.
    Memory(MemoryError),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Memory(error) => write!(f, "no memory for native code: {error}"),
        }
    }
}

impl std::error::Error for CompileError {}

/// Programs that want no environment run by a call and nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shortcut {
    None,
    /// On a packet's bytes; it does not look at its context either.
    Packet,
    /// On a system call.
    Seccomp,
    /// On memory.
    Memory,
}

impl Shortcut {
    fn of(evidence: Evidence, wants: Wants, wants_env: bool) -> Shortcut {
        match evidence {
            Evidence::Classic(classic::Rules::Seccomp) => Shortcut::Seccomp,
            _ if wants_env => Shortcut::None,
            Evidence::Trusted => Shortcut::Memory,
            Evidence::Classic(_) if wants.context => Shortcut::None,
            Evidence::Classic(_) => Shortcut::Packet,
        }
    }
}

/// A program as native code. It frees its memory when it is dropped, which no run
/// can be under way for: a run borrows it.
pub struct Native {
    image: Image,
    entry: Entry,
    shortcut: Shortcut,
    /// Whether it looks at the environment.
    wants_env: bool,
    /// Whether it reads any field of a packet's context but the length.
    reads_metadata: bool,
    /// Whether it looks at a deadline.
    heeds_deadline: bool,
    evidence: Evidence,
    rules: PacketRules,
    /// Where pieces of the code begin, with their slots; empty if not asked for.
    places: Vec<(u32, u32)>,
}

impl Native {
    /// Compiles a program for this machine and puts the code into the pool's
    /// memory.
    pub fn compile(
        program: &Lowered,
        options: &Options,
        pool: &Pool,
    ) -> Result<Native, CompileError> {
        let request = Request {
            map: options.map,
            deadline: options.deadline,
            keys: None,
            optimizations: options.optimizations,
        };
        Host::new(options.features).compile(program, request, |code| {
            Native::install(program, options, code, pool, Placement::BestFit)
        })
    }

    /// As [`Native::compile`], for programs of strangers: no constant of the
    /// program stands in the code, and the code lies where chance puts it. Such
    /// code is about half as long again, and slower.
    pub fn compile_hardened(
        program: &Lowered,
        options: &Options,
        pool: &Pool,
        random: &mut dyn Random,
    ) -> Result<Native, CompileError> {
        let keys = SplitMix::new(u64::from(random.next_u32()) << 32 | u64::from(random.next_u32()));
        let request = Request {
            map: options.map,
            deadline: options.deadline,
            keys: Some(keys),
            optimizations: options.optimizations,
        };
        Host::new(options.features).compile(program, request, |code| {
            Native::install(program, options, code, pool, Placement::Random(random))
        })
    }

    fn install(
        program: &Lowered,
        options: &Options,
        code: impl Code,
        pool: &Pool,
        placement: Placement<'_>,
    ) -> Result<Native, CompileError> {
        let wants_env = code.wants_env();
        let wants = match program.evidence() {
            // Asked by no run of these.
            Evidence::Trusted => Wants::default(),
            evidence => Wants::of(program.insns(), program.packet_rules(), evidence),
        };
        let places = if options.map {
            code.places()
        } else {
            Vec::new()
        };
        // Last, so that the image goes from there to its place in one step.
        let image = pool
            .install_at(placement, code.len(), 16, |out, _| code.write(out))
            .map_err(CompileError::Memory)?;
        // SAFETY: the backend made a function of this type at that offset, and the
        // image keeps it there.
        let entry =
            unsafe { mem::transmute::<*const u8, Entry>(image.address().add(code.entry())) };
        Ok(Native {
            entry,
            shortcut: Shortcut::of(program.evidence(), wants, wants_env),
            wants_env,
            reads_metadata: wants.metadata,
            heeds_deadline: options.deadline,
            evidence: program.evidence(),
            rules: program.packet_rules(),
            places,
            image,
        })
    }

    /// The machine code.
    pub fn image(&self) -> &[u8] {
        self.image.bytes()
    }

    /// Where the code lies.
    pub fn address(&self) -> u64 {
        self.image.address() as u64
    }

    /// Pieces of the code in their order, each with the slot that it comes from;
    /// none for what a function begins with and for what stands behind it. A slot
    /// may have several pieces (the code of short programs is written twice), or
    /// none (what is part of another instruction or does nothing). Nothing, if
    /// [`Options::map`] did not ask for it.
    pub fn map(&self) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
        pieces(&self.places, self.image.bytes().len())
    }

    /// What runs a trusted program on memory with nothing around it, for hosts that
    /// run short programs often; `None` where the program wants more than memory.
    #[inline]
    pub fn on_memory(&self) -> Option<OnMemory<'_>> {
        (self.shortcut == Shortcut::Memory).then_some(OnMemory {
            entry: self.entry,
            code: PhantomData,
        })
    }

    /// What runs a packet filter that looks at nothing but a packet's bytes, and ends
    /// by itself; `None` for others.
    #[inline]
    pub fn on_packets(&self) -> Option<OnPackets<'_>> {
        // SAFETY: the types differ only in what may be left as it is, and
        // `MaybeUninit` is passed as what it may be instead.
        let entry = unsafe { mem::transmute::<Entry, PacketEntry>(self.entry) };
        (self.shortcut == Shortcut::Packet).then_some(OnPackets {
            entry,
            code: PhantomData,
        })
    }

    /// Runs a packet filter. `budget` bounds how many backward jumps it takes.
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
        if let Some(filter) = self.on_packets() {
            return Outcome::Returned(filter.run(packet.data()).into());
        }
        self.run_described(machine, packet, random, budget)
    }

    /// Apart, so that the many programs that want nothing else do not save
    /// registers for it.
    #[inline(never)]
    fn run_described(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        assert!(!self.is_seccomp(), "a seccomp filter runs on system calls");
        machine
            .skb
            .describe(packet, self.rules, self.reads_metadata);
        let data = packet.data();
        let context = (&raw mut machine.skb).expose_provenance() as u64;
        // SAFETY: the program is a packet filter, so its evidence allows exactly
        // the context that `r1` points to, and the packet.
        unsafe {
            if self.wants_env {
                let clock = machine.clock.get();
                let mut world = Surroundings {
                    packet,
                    random,
                    clock,
                };
                self.run_in(context, 0, data, &mut world, budget, None)
            } else {
                self.run_alone(context, 0, data)
            }
        }
    }

    /// Runs a seccomp filter on `struct seccomp_data` in host order.
    ///
    /// # Panics
    /// If the program is a packet filter.
    #[inline]
    pub fn run_seccomp(&self, _: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        let seccomp = self.shortcut == Shortcut::Seccomp;
        assert!(seccomp, "a packet filter runs on packets");
        let context = data.as_ptr().expose_provenance() as u64;
        // SAFETY: the program is a seccomp filter, whose checker bounds every load
        // to the 64 bytes at `r1`. It has no loops, no calls and no packet loads,
        // for which it would want an environment.
        unsafe { self.run_alone(context, 0, &[]) }
    }

    /// Runs a trusted program on memory: `r1` is its address, `r2` its length.
    /// Such a program ends by itself. It sees an empty packet.
    ///
    /// # Panics
    /// If the program is a classic filter.
    #[inline(always)]
    pub fn run_memory(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
    ) -> Outcome {
        if self.shortcut == Shortcut::Memory {
            let address = memory.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: the host vouched that the program accesses nothing but the
            // memory, which is unique to this run; it wants nothing else.
            return unsafe { self.run_alone(address, memory.len() as u64, &[]) };
        }
        self.run_trusted(machine, memory, random, None)
    }

    /// As [`Native::run_memory`], but no longer than until a deadline: the outcome
    /// may be [`Outcome::DeadlinePassed`], with what the program wrote so far.
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
        assert!(self.heeds_deadline, "the code was made without deadline");
        self.run_trusted(machine, memory, random, Some(deadline))
    }

    #[inline(never)]
    fn run_trusted(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let trusted = matches!(self.evidence, Evidence::Trusted);
        assert!(trusted, "a classic filter runs on packets or system calls");
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let len = memory.len() as u64;
        // SAFETY: the host vouched that the program accesses nothing but the
        // memory, which is unique to this run.
        unsafe {
            if self.wants_env {
                let packet = Packet::whole(&[], &Metadata::UNKNOWN);
                let mut world = Surroundings {
                    packet: &packet,
                    random,
                    clock: machine.clock.get(),
                };
                self.run_in(address, len, &[], &mut world, u64::MAX, deadline)
            } else {
                self.run_alone(address, len, &[])
            }
        }
    }

    fn is_seccomp(&self) -> bool {
        matches!(self.evidence, Evidence::Classic(classic::Rules::Seccomp))
    }

    /// Runs a program that does not look at the environment.
    ///
    /// # Safety
    /// It does not; `r1` and `r2` are what the program's evidence says of them.
    #[inline(always)]
    unsafe fn run_alone(&self, r1: u64, r2: u64, data: &[u8]) -> Outcome {
        debug_assert!(!self.wants_env);
        let env = std::ptr::null_mut();
        // SAFETY: the code was made from a lowered program, whose evidence upholds
        // what it does; the rest is passed on to the caller.
        Outcome::Returned(unsafe { (self.entry)(r1, r2, data.as_ptr(), data.len(), env) })
    }

    /// Runs a program that looks at the environment.
    ///
    /// # Safety
    /// `r1` and `r2` are what the program's evidence says of them.
    unsafe fn run_in(
        &self,
        r1: u64,
        r2: u64,
        data: &[u8],
        world: &mut Surroundings<'_>,
        budget: u64,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let processor = world.packet.meta().cpu;
        let world: *mut Surroundings<'_> = world;
        let mut env = Env {
            world: world.cast(),
            data: data.as_ptr(),
            len: data.len(),
            budget: i64::try_from(budget).unwrap_or(i64::MAX),
            ticks: ticks_until(deadline),
            stack: 0,
            processor,
            deadline,
        };
        // SAFETY: as in `run_alone`; the environment outlives the call.
        let r0 = unsafe { (self.entry)(r1, r2, data.as_ptr(), data.len(), &raw mut env) };
        if env.budget < 0 {
            Outcome::BudgetExhausted
        } else if env.ticks < 0 {
            Outcome::DeadlinePassed
        } else {
            Outcome::Returned(r0)
        }
    }
}

/// The pieces of so many bytes of code that begin at these places.
pub(crate) fn pieces(
    places: &[(u32, u32)],
    len: usize,
) -> impl Iterator<Item = (Option<usize>, Range<usize>)> {
    let ends = places.iter().skip(1).map(|place| place.1 as usize);
    let ends = ends.chain([len]);
    places.iter().zip(ends).map(|(&(slot, start), end)| {
        let slot = (slot != u32::MAX).then_some(slot as usize);
        (slot, start as usize..end)
    })
}

/// See [`Native::on_memory`].
#[derive(Clone, Copy)]
pub struct OnMemory<'n> {
    entry: Entry,
    code: PhantomData<&'n Native>,
}

impl OnMemory<'_> {
    /// What the program returns: `r1` is the memory's address, `r2` its length.
    #[inline(always)]
    pub fn run(self, memory: &mut [u8]) -> u64 {
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let (nothing, env) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the program wants no environment and no packet, and the host
        // vouched that it accesses nothing but the memory, which is unique to this
        // run; the code is borrowed.
        unsafe { (self.entry)(address, memory.len() as u64, nothing, 0, env) }
    }
}

/// See [`Native::on_packets`].
#[derive(Clone, Copy)]
pub struct OnPackets<'n> {
    entry: PacketEntry,
    code: PhantomData<&'n Native>,
}

impl OnPackets<'_> {
    /// What the filter returns for a packet of these bytes.
    #[inline(always)]
    pub fn run(self, data: &[u8]) -> u32 {
        let (any, env) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the program looks at nothing but the packet's bytes; the code is
        // borrowed.
        unsafe { (self.entry)(any, any, data.as_ptr(), data.len(), env) as u32 }
    }
}
