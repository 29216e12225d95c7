//! Load options of an object.

use std::time::Duration;

use ::kernel::maps::MapMemory;

use crate::Engine;

/// Options of [`LoadedObject::load`](super::LoadedObject::load).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Run programs without verification, in the checked engine: an access or call that the
    /// verifier would have refused ends a run with a trap.
    pub unverified: bool,
    /// Explain a refusal ([`LoadError::Refused`](super::LoadError::Refused)): the program is
    /// verified a second time, with its path recorded.
    pub explains: bool,
    /// Engine of verified programs. Those that it does not run, or that run unverified, have
    /// another one ([`RunnableProgram::fallback_reason`](super::RunnableProgram::fallback_reason)).
    pub engine: Engine,
    /// Native code checks the deadline of
    /// [`RunnableProgram::set_limits`](super::RunnableProgram::set_limits), also without
    /// `timeout`; its loops are slower then.
    pub checks_deadline: bool,
    /// Most time of a run without checks for which no deadline is set; its loops check it. A
    /// run that takes longer ends with [`RunError::TooLong`](super::RunError::TooLong). `None`
    /// for runs that may take for ever. Runs in the checked engine have a limit of instructions.
    pub timeout: Option<Duration>,
    /// Indirect jumps and calls of native code go through a retpoline, which keeps processors
    /// from predicting them. Tail calls and calls of helpers are slower then.
    pub retpoline: bool,
    /// Runs count what they execute ([`LoadedObject::coverage`](super::LoadedObject)).
    #[cfg(feature = "coverage")]
    pub counts: bool,
    /// The checked engine remembers which bytes of the stack were written, and runs slower.
    pub watches_stack: bool,
    /// Several threads run at the same time: they count with a lock, which takes longer.
    #[cfg(feature = "coverage")]
    pub shares_counts: bool,
    /// Programs of types that Linux does not test-run are loaded too: they run in a model of the kernel.
    pub models: bool,
    /// Maps remember what is written to them, so that fuzzing can set them back.
    #[cfg(feature = "fuzz")]
    pub journals: bool,
    /// Functions of native code begin with a slot of five bytes, which a call or jump can
    /// replace.
    pub entry_slots: bool,
    /// Most bytes that the maps take. An operation that needs more answers ENOMEM, and its run
    /// ends with [`RunError::Memory`](super::RunError::Memory). Arrays count from the start,
    /// other maps by what they held at most; global variables do not count.
    pub memory: u64,
    /// Least number of possible CPUs, more than `cpu`: the machine has more if the description
    /// of the kernel says so ([`Kernel::cpus`](crate::Kernel::cpus)). Per-CPU maps hold a value
    /// for each, and LRU maps evict by their number.
    pub cpus: u32,
    /// The CPU that programs run on.
    pub cpu: u32,
    /// Seed of random numbers, hashes, and the addresses that programs see in the checked engine.
    pub seed: u64,
}

impl LoadOptions {
    /// Most bytes of maps, if nothing else is given.
    pub const DEFAULT_MEMORY: u64 = MapMemory::DEFAULT_LIMIT;

    /// Most time of a run, if nothing else is given.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// Least number of possible CPUs.
    pub(super) fn possible_cpus(&self) -> u32 {
        self.cpus.max(self.cpu.saturating_add(1))
    }
}

impl Default for LoadOptions {
    /// Verified, in the fastest engine, on the CPUs of the kernel's description, seed 0, 10 s for a
    /// run, 1 GiB for maps.
    fn default() -> LoadOptions {
        LoadOptions {
            unverified: false,
            explains: false,
            engine: Engine::default().of_objects(),
            checks_deadline: false,
            timeout: Some(LoadOptions::DEFAULT_TIMEOUT),
            retpoline: false,
            #[cfg(feature = "coverage")]
            counts: false,
            watches_stack: false,
            #[cfg(feature = "coverage")]
            shares_counts: false,
            models: false,
            #[cfg(feature = "fuzz")]
            journals: false,
            entry_slots: false,
            memory: LoadOptions::DEFAULT_MEMORY,
            cpus: 1,
            cpu: 0,
            seed: 0,
        }
    }
}
