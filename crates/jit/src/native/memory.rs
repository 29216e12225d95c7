//! Runs of eBPF programs on memory, whose safety the caller asserts.

use std::marker::PhantomData;

use lower::MemoryProgram;
use packet::Packet;
use spec::Random;
use vm::{Deadline, Machine, Outcome, RunContext};

use super::entry::{Alone, Entry, Limits};
use super::{NO_PACKET, Native, NativeCode};

impl Native<MemoryProgram> {
    /// A handle that runs the program on memory; `None` if the program uses a native context.
    #[inline]
    pub fn on_memory(&self) -> Option<OnMemory<'_>> {
        match self.entry {
            Entry::Alone(entry) => Some(OnMemory {
                entry,
                code: PhantomData,
            }),
            Entry::WithContext(_) => None,
        }
    }

    /// Runs the program on memory: `r1` is its address, `r2` its length. Packet loads find an
    /// empty packet.
    #[inline]
    pub fn run(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
    ) -> Outcome {
        match self.on_memory() {
            Some(program) => Outcome::Returned(program.run(memory)),
            None => self.run_with(machine, memory, &NO_PACKET, random, None),
        }
    }

    /// As [`run`](Native::run), with a packet for packet loads and helpers, and an optional
    /// deadline.
    ///
    /// # Panics
    /// If there is a deadline and the program was compiled without
    /// [`Options::deadline`](crate::Options::deadline).
    pub fn run_with_packet(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        deadline: Option<Deadline>,
    ) -> Outcome {
        self.code.assert_checks(deadline);
        self.run_with(machine, memory, packet, random, deadline)
    }

    /// As [`run`](Native::run), until a deadline: the outcome may be
    /// [`Outcome::DeadlinePassed`], with the memory as the program left it.
    ///
    /// # Panics
    /// If the program was compiled without [`Options::deadline`](crate::Options::deadline).
    #[inline]
    pub fn run_until(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        deadline: Deadline,
    ) -> Outcome {
        self.run_with_packet(machine, memory, &NO_PACKET, random, Some(deadline))
    }

    #[inline(never)]
    fn run_with(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        packet: &Packet<'_>,
        random: &mut dyn Random,
        deadline: Option<Deadline>,
    ) -> Outcome {
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let arguments = [address, memory.len() as u64];
        let clock = machine.clock.get();
        let cx = || RunContext::new(packet, random, clock);
        let limits = Limits::until(deadline);
        // SAFETY: the caller of `assume_safe` asserted that the program accesses nothing but
        // the memory, which is unique to this run; the code is borrowed.
        unsafe { self.entry.run(arguments, packet.data(), cx, limits) }
    }
}

/// Runs a program on memory; see [`Native::on_memory`].
#[derive(Clone, Copy)]
pub struct OnMemory<'n> {
    entry: Alone,
    code: PhantomData<&'n NativeCode>,
}

impl OnMemory<'_> {
    /// The program's `r0`: `r1` is the memory's address, `r2` its length.
    #[inline]
    pub fn run(self, memory: &mut [u8]) -> u64 {
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        let packet: &[u8] = &[];
        // SAFETY: the code uses no native context, and the caller of `assume_safe` asserted
        // that it accesses nothing but the memory, which is unique to this run; the code is
        // borrowed.
        unsafe { (self.entry)(address, memory.len() as u64, packet.as_ptr(), 0) }
    }
}
