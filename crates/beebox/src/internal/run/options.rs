//! Load options of an object.

use std::time::Duration;

use ::kernel::maps::MapMemory;

/// Engine that runs verified programs. The first two run them without checks; programs that these
/// do not support run in the checked engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEngine {
    /// Native code; the threaded interpreter where there is none (x86-64 Linux has some).
    Native,
    /// The threaded interpreter; on big-endian machines the checked engine.
    Interp,
    /// The interpreter that checks every access.
    Checked,
}

impl RunEngine {
    /// Its name in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            RunEngine::Native => "native",
            RunEngine::Interp => "interp",
            RunEngine::Checked => "checked",
        }
    }

    /// The engine that runs programs for which this one is requested, on this machine.
    pub(super) const fn here(self) -> RunEngine {
        match self {
            // Programs are of a little-endian machine.
            RunEngine::Native | RunEngine::Interp if cfg!(target_endian = "big") => {
                RunEngine::Checked
            }
            RunEngine::Native if !jit::RUNS_HERE => RunEngine::Interp,
            engine => engine,
        }
    }
}

impl Default for RunEngine {
    /// The fastest one of this machine.
    fn default() -> RunEngine {
        RunEngine::Native.here()
    }
}

/// Options of [`LoadedObject::load`](super::LoadedObject::load).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Run programs without verification, in the checked engine: an access or call that the
    /// verifier would have refused ends a run with a trap.
    pub unverified: bool,
    /// Explain a refusal ([`LoadError::Refused`](super::LoadError::Refused)): the program is
    /// verified a second time, with its path recorded.
    pub explains: bool,
    /// Engine of verified programs.
    pub engine: RunEngine,
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
            engine: RunEngine::default(),
            checks_deadline: false,
            timeout: Some(LoadOptions::DEFAULT_TIMEOUT),
            retpoline: false,
            entry_slots: false,
            memory: LoadOptions::DEFAULT_MEMORY,
            cpus: 1,
            cpu: 0,
            seed: 0,
        }
    }
}
