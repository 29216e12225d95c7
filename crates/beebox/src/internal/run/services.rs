//! Host services of a run: random numbers, the clock, the machine and the process that helpers
//! report, the maps and timers of the object, and the buffer for printed text. Set once, and
//! used by run after run.

use std::sync::Arc;
use std::time::Instant;

use packet::{Metadata, Packet};
use vm::network::Network;
use vm::{FiredTimer, RunContext, System, Timers};

use super::PrintedText;
use super::random::RunRandom;
use super::shared::Shared;

/// The clock of the time helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    /// The time of the packet in its capture, which stands still during a run; 0 for a packet
    /// without one.
    Capture,
    /// A fixed time in nanoseconds.
    Fixed(u64),
    /// Nanoseconds since this clock was set.
    Real,
}

/// Services of the host for the runs of a program on one CPU.
#[derive(Debug)]
pub(super) struct Services<'o> {
    shared: &'o Shared,
    /// The timers of the object, if its maps have some.
    pub(super) timers: Option<&'o Timers>,
    random: RunRandom<'o>,
    /// Names the CPU.
    metadata: Metadata,
    /// The machine of these runs, if it is not that of the object.
    own_system: Option<Arc<System>>,
    /// The task of these runs, if it is not that of the object.
    own_task: Option<u64>,
    clock: RunClock,
    clock_set: Instant,
    /// Time of the current packet in its capture, in nanoseconds.
    pub(super) packet_time: u64,
    pub(super) printed: PrintedText,
}

impl<'o> Services<'o> {
    /// Services with the clock of captures.
    pub(super) fn new(shared: &'o Shared, cpu: u32, random: RunRandom<'o>) -> Services<'o> {
        Services {
            shared,
            timers: shared.used_timers(),
            random,
            metadata: Metadata::from_cpu(cpu),
            own_system: None,
            own_task: None,
            clock: RunClock::Capture,
            clock_set: Instant::now(),
            packet_time: 0,
            printed: PrintedText::default(),
        }
    }

    pub(super) fn set_clock(&mut self, clock: RunClock) {
        self.clock = clock;
        self.clock_set = Instant::now();
    }

    /// Sets the random numbers of the next runs.
    #[cfg(feature = "fuzz")]
    pub(super) fn set_random(&mut self, random: RunRandom<'o>) {
        self.random = random;
    }

    /// The machine and the network that helpers report.
    pub(super) fn system(&self) -> &System {
        self.own_system.as_deref().unwrap_or(&self.shared.system)
    }

    /// That machine, if it is not the object's.
    pub(super) fn own_system(&self) -> Option<Arc<System>> {
        self.own_system.clone()
    }

    /// Sets the network of these runs in place of the object's.
    pub(super) fn set_network(&mut self, network: Network) {
        let mut system = self.shared.system.clone();
        system.network = network;
        self.own_system = Some(Arc::new(system));
    }

    /// Sets the process and the task of these runs in place of the object's.
    pub(super) fn set_process(&mut self, system: System, task: Option<u64>) {
        self.own_system = Some(Arc::new(system));
        self.own_task = task;
    }

    /// Number of the CPU.
    pub(super) fn cpu(&self) -> u32 {
        self.metadata.cpu
    }

    /// The time of the clock.
    pub(super) fn nanoseconds(&self) -> u64 {
        nanoseconds(self.clock, self.packet_time, self.clock_set)
    }

    /// Runs something with these services: a program, or the function that a timer calls.
    #[inline]
    pub(super) fn with_context<R>(
        &mut self,
        timer: Option<FiredTimer>,
        run: impl FnOnce(RunContext<'_>) -> R,
    ) -> R {
        let (clock, packet_time, clock_set) = (self.clock, self.packet_time, self.clock_set);
        let mut clock = || match (clock, timer) {
            (RunClock::Capture | RunClock::Fixed(_), Some(timer)) => timer.time,
            _ => nanoseconds(clock, packet_time, clock_set),
        };
        let no_packet = Packet::whole(&[], &self.metadata);
        run(RunContext {
            printk: Some(&mut self.printed),
            system: self.own_system.as_deref().unwrap_or(&self.shared.system),
            task: self.own_task.unwrap_or(self.shared.addresses.task),
            types: self.shared.process.types(),
            process: Some(&self.shared.process),
            maps: &self.shared.handles,
            timers: self.timers,
            running_timer: timer.map_or(0, |timer| timer.address),
            ..RunContext::new(&no_packet, &mut self.random, Some(&mut clock))
        })
    }
}

fn nanoseconds(clock: RunClock, packet_time: u64, clock_set: Instant) -> u64 {
    match clock {
        RunClock::Capture => packet_time,
        RunClock::Fixed(time) => time,
        RunClock::Real => clock_set.elapsed().as_nanos() as u64,
    }
}
