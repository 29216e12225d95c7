//! Runs of classic filters: of packets, and of system calls.

use std::marker::PhantomData;

use lower::{PacketFilter, SyscallFilter};
use packet::Packet;
use spec::context::SECCOMP_DATA_SIZE;
use spec::{Random, SplitMix};
use vm::{Machine, Outcome, RunContext};

use super::entry::{Alone, FilterEntry, Limits};
use super::{NO_PACKET, Native, NativeCode};

impl Native<PacketFilter> {
    /// A handle that runs the filter on bytes; `None` if it uses more than the bytes.
    #[inline]
    pub fn on_packets(&self) -> Option<PacketFn<'_>> {
        match self.entry {
            FilterEntry::Bytes(entry) => Some(PacketFn::new(entry)),
            FilterEntry::WithLength(_) | FilterEntry::WithFields(_) => None,
        }
    }

    /// Runs the filter on a packet. `budget` limits its backward jumps.
    #[inline]
    pub fn run(
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

    /// Runs a filter that uses its context or the native context.
    #[inline(never)]
    fn run_with_skb(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        let rules = self.code.rules;
        let (entry, skb) = match self.entry {
            FilterEntry::Bytes(entry) => {
                return Outcome::Returned(PacketFn::new(entry).run(packet.data()).into());
            }
            FilterEntry::WithLength(entry) => {
                machine.length.describe_length(packet, rules);
                (entry, &raw mut machine.length)
            }
            FilterEntry::WithFields(entry) => {
                machine.skb.describe(packet, rules);
                (entry, &raw mut machine.skb)
            }
        };
        let r1 = skb.expose_provenance() as u64;
        let limits = Limits {
            budget,
            deadline: None,
        };
        let clock = machine.clock.get();
        let cx = || RunContext::new(packet, random, clock);
        // SAFETY: the program is a packet filter, so its evidence allows exactly the context
        // that `r1` points to, and the packet; the code is borrowed.
        unsafe { entry.run([r1, 0], packet.data(), cx, limits) }
    }
}

/// Runs a packet filter on bytes; see [`Native::on_packets`].
#[derive(Clone, Copy)]
pub struct PacketFn<'n> {
    entry: Alone,
    code: PhantomData<&'n NativeCode>,
}

impl PacketFn<'_> {
    /// A handle for an entry of [`FilterEntry::Bytes`].
    #[inline]
    fn new(entry: Alone) -> Self {
        PacketFn {
            entry,
            code: PhantomData,
        }
    }

    /// The filter's result for a packet of these bytes.
    #[inline]
    pub fn run(self, data: &[u8]) -> u32 {
        // SAFETY: the code uses nothing but the packet's bytes, not even `r1` and `r2`, and is
        // borrowed.
        unsafe { (self.entry)(0, 0, data.as_ptr(), data.len()) as u32 }
    }
}

impl Native<SyscallFilter> {
    /// Runs the filter on `struct seccomp_data` in host order.
    #[inline]
    pub fn run(&self, _: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        let r1 = data.as_ptr().expose_provenance() as u64;
        let random = &mut SplitMix::new(0);
        let limits = Limits {
            budget: 0,
            deadline: None,
        };
        // SAFETY: the program is a seccomp filter, whose checker bounds every load to the 64
        // bytes at `r1`; the code is borrowed.
        unsafe {
            self.entry.run(
                [r1, 0],
                &[],
                || RunContext::new(&NO_PACKET, random, None),
                limits,
            )
        }
    }
}
